//! The partitions of a container by hash range, and what became of those that were split.
//!
//! All versions of a container share one current map, so a request that holds an old version is routed by the newest
//! map. A split replaces one partition by two; the map keeps the ordinal and the range of the old one forever, because
//! clients may still name it.

use super::entries::CatalogStamp;
use crate::slot::PartitionSlot;
use arc_swap::{ArcSwap, Guard};
use model::{
    EffectiveKey, EffectiveRange, Fault, LimitFault, Lsn, MissingFault, PartitionKeyDefinition,
    PartitionOrdinal,
};
use partition::{Ancestor, Remains};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of partitions of a container after splits.
pub(crate) const PARTITIONS_MAX: usize = 4096;

/// The current map of a container, shared by all versions of the container.
#[derive(Debug)]
pub(crate) struct CurrentMap {
    map: ArcSwap<PartitionMap>,
    is_dropped: AtomicBool,
    /// The children of a split that is being committed. If its outcome is unknown at first, they are used when it is
    /// found in the store.
    expected: Mutex<Vec<Arc<PartitionSlot>>>,
}

impl CurrentMap {
    pub(crate) fn new(map: PartitionMap) -> CurrentMap {
        let map = ArcSwap::from_pointee(map);
        CurrentMap { map, is_dropped: AtomicBool::new(false), expected: Mutex::default() }
    }

    /// The current map.
    pub(crate) fn load(&self) -> Guard<Arc<PartitionMap>> {
        self.map.load()
    }

    /// Replaces the map after a durable change.
    pub(super) fn replace(&self, map: Arc<PartitionMap>) {
        self.map.store(map);
    }

    /// These partitions replace one of the map if the change in progress is committed.
    pub(super) fn expect(&self, children: &[Arc<PartitionSlot>]) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = children.to_vec();
    }

    /// Takes over a newer map from the store, with the slots that are in use or expected.
    pub(super) fn adopt(&self, stored: &PartitionMap) {
        let in_use = self.load();
        if stored.stamp.change > in_use.stamp.change {
            let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
            let map = stored.with_slots_of(&in_use.entries).with_slots_of(&expected);
            drop(expected);
            self.replace(Arc::new(map));
        }
    }

    /// Ends the use of the partitions: the container was dropped, although some requests may still hold it.
    pub(crate) fn retire(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
    }

    /// Whether the container was dropped.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_dropped.load(Ordering::SeqCst)
    }

    /// Whether the partition of a slot was split since the slot was taken from the map.
    pub(crate) fn has_replaced(&self, slot: &PartitionSlot) -> bool {
        !self.is_retired() && self.load().by_ordinal(slot.ordinal).is_none()
    }
}

/// The partitions of a container, sorted by range, without gaps.
#[derive(Clone, Debug)]
pub(crate) struct PartitionMap {
    pub(crate) entries: Vec<Arc<PartitionSlot>>,
    /// The partitions that were split, by ordinal.
    pub(crate) retired: Vec<RetiredPartition>,
    /// When the ranges last changed.
    pub(crate) stamp: CatalogStamp,
}

/// A partition that was split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetiredPartition {
    pub(crate) ordinal: PartitionOrdinal,
    /// The hashes that it owned; its descendants own them now.
    pub(crate) range: EffectiveRange,
    /// The rows that it has left.
    pub(crate) remains: Remains,
}

/// How a partition is split.
#[derive(Clone, Debug)]
pub(crate) struct PlannedSplit {
    /// The partition.
    pub(crate) parent: Arc<PartitionSlot>,
    /// The lower bound of the second child.
    pub(crate) cut: EffectiveKey,
    /// The highest LSN that the parent has assigned.
    pub(crate) lsn_last: Lsn,
}

impl PartitionMap {
    pub(crate) fn new(
        entries: Vec<Arc<PartitionSlot>>,
        retired: Vec<RetiredPartition>,
        stamp: CatalogStamp,
    ) -> PartitionMap {
        PartitionMap { entries, retired, stamp }
    }

    pub(crate) fn initial(
        definition: &PartitionKeyDefinition,
        count: u32,
        stamp: CatalogStamp,
    ) -> PartitionMap {
        let entry = |(ordinal, range)| {
            Arc::new(PartitionSlot::new(PartitionOrdinal(ordinal), range, Vec::new(), stamp))
        };
        let entries = (0..).zip(definition.initial_ranges(count)).map(entry).collect();
        PartitionMap::new(entries, Vec::new(), stamp)
    }

    /// The partition that owns `key`.
    pub(crate) fn owner(&self, key: &EffectiveKey) -> Option<&Arc<PartitionSlot>> {
        let after = self.entries.partition_point(|entry| entry.range.min <= *key);
        self.entries.get(after.checked_sub(1)?)
    }

    /// The partitions that own a part of `range`, in its order.
    pub(crate) fn owners<'a>(
        &'a self,
        range: &'a EffectiveRange,
    ) -> impl Iterator<Item = &'a Arc<PartitionSlot>> {
        self.entries.iter().filter(|entry| entry.range.overlaps(range))
    }

    pub(crate) fn by_ordinal(&self, ordinal: PartitionOrdinal) -> Option<&Arc<PartitionSlot>> {
        self.entries.iter().find(|entry| entry.ordinal == ordinal)
    }

    /// The hashes of a partition, also if it was split: its descendants own them.
    pub(crate) fn range_of(&self, ordinal: PartitionOrdinal) -> Result<&EffectiveRange, MissingFault> {
        let retired = || self.retired.iter().find(|retired| retired.ordinal == ordinal);
        let live = self.by_ordinal(ordinal).map(|slot| &slot.range);
        let range = live.or_else(|| retired().map(|retired| &retired.range));
        range.ok_or_else(|| MissingFault::Range { id: ordinal.to_string() })
    }

    /// The last LSN of a partition that was split.
    pub(crate) fn last_lsn(&self, ordinal: PartitionOrdinal) -> Option<Lsn> {
        let mut ancestors = self.entries.iter().flat_map(|slot| &slot.ancestors);
        ancestors.find(|ancestor| ancestor.ordinal == ordinal).map(|ancestor| ancestor.lsn_last)
    }

    /// The number of partitions with which the container was created.
    pub(crate) fn initial_count(&self) -> usize {
        let live = self.entries.iter().filter(|slot| slot.ancestors.is_empty()).count();
        let ordinals = self.entries.iter().flat_map(|slot| slot.ancestors.first());
        let mut roots: Vec<PartitionOrdinal> = ordinals.map(|ancestor| ancestor.ordinal).collect();
        roots.sort_unstable();
        roots.dedup();
        live + roots.len()
    }

    /// The two ordinals that children of the next split get, above `floor`. Ordinals are never reused.
    fn next_ordinals(&self, floor: u32) -> Result<[PartitionOrdinal; 2], Fault> {
        let live = self.entries.iter().map(|slot| slot.ordinal);
        let used = live.chain(self.retired.iter().map(|retired| retired.ordinal));
        let last = used.map(|ordinal| ordinal.0).chain([floor]).max().unwrap_or(0);
        let next = |step: u32| last.checked_add(step).and_then(PartitionOrdinal::from_raw);
        match (next(1), next(2)) {
            (Some(first), Some(second)) if self.entries.len() < PARTITIONS_MAX => Ok([first, second]),
            (_, _) => Err(LimitFault::Exhausted { what: "partitions" }.into()),
        }
    }

    /// The map after a split, and its two new partitions, with ordinals above `floor`.
    pub(crate) fn split(
        &self,
        planned: &PlannedSplit,
        stamp: CatalogStamp,
        floor: u32,
    ) -> Result<(PartitionMap, [Arc<PartitionSlot>; 2]), Fault> {
        let PlannedSplit { parent, cut, lsn_last } = planned;
        let place = self.entries.iter().position(|slot| Arc::ptr_eq(slot, parent));
        let place = place.ok_or_else(|| MissingFault::Range { id: parent.ordinal.to_string() })?;
        if *cut <= parent.range.min || *cut >= parent.range.max {
            return Err(Fault::Internal("a partition is cut outside its range".to_owned()));
        }
        let mut ancestors = parent.ancestors.clone();
        ancestors.push(Ancestor { ordinal: parent.ordinal, lsn_last: *lsn_last, remains: Remains::All });
        let [first, second] = self.next_ordinals(floor)?;
        let child = |ordinal, range| Arc::new(PartitionSlot::new(ordinal, range, ancestors.clone(), stamp));
        let children = [
            child(first, EffectiveRange { min: parent.range.min.clone(), max: cut.clone() }),
            child(second, EffectiveRange { min: cut.clone(), max: parent.range.max.clone() }),
        ];
        let mut map = PartitionMap { stamp, ..self.clone() };
        map.entries.splice(place..=place, children.iter().cloned());
        let (ordinal, range) = (parent.ordinal, parent.range.clone());
        map.retired.push(RetiredPartition { ordinal, range, remains: Remains::All });
        map.retired.sort_by_key(|retired| retired.ordinal);
        Ok((map, children))
    }

    /// The map after rows of a split partition were deleted.
    pub(crate) fn with_remains(&self, ordinal: PartitionOrdinal, remains: Remains) -> PartitionMap {
        let mut map = self.clone();
        let retired = map.retired.iter_mut().filter(|retired| retired.ordinal == ordinal);
        retired.for_each(|retired| retired.remains = remains);
        map
    }

    /// The rows that a split partition has left.
    pub(crate) fn remains_of(&self, ordinal: PartitionOrdinal) -> Remains {
        let retired = self.retired.iter().find(|retired| retired.ordinal == ordinal);
        retired.map_or(Remains::All, |retired| retired.remains)
    }

    /// The ancestors of a partition, with the rows that they have left.
    pub(crate) fn ancestors_of(&self, slot: &PartitionSlot) -> Vec<Ancestor> {
        let current =
            |ancestor: &Ancestor| Ancestor { remains: self.remains_of(ancestor.ordinal), ..*ancestor };
        slot.ancestors.iter().map(current).collect()
    }

    /// This map, read from the store again, with the slots that are in use.
    fn with_slots_of(&self, slots: &[Arc<PartitionSlot>]) -> PartitionMap {
        let same = |slot: &Arc<PartitionSlot>| slots.iter().find(|other| other.ordinal == slot.ordinal);
        let in_use = |slot: &Arc<PartitionSlot>| Arc::clone(same(slot).unwrap_or(slot));
        let entries = self.entries.iter().map(in_use).collect();
        PartitionMap { entries, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionKeyKind;

    fn stamp(change: u64) -> CatalogStamp {
        CatalogStamp { change, ts: 0 }
    }

    fn split(map: &PartitionMap, ordinal: u32, cut: u8, change: u64) -> PartitionMap {
        let parent = Arc::clone(map.by_ordinal(PartitionOrdinal(ordinal)).unwrap());
        let (cut, lsn_last) = (EffectiveKey::from_bytes(&[cut]), Lsn(change * 10));
        map.split(&PlannedSplit { parent, cut, lsn_last }, stamp(change), 0).unwrap().0
    }

    fn initial(count: u32) -> PartitionMap {
        let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        PartitionMap::initial(&definition, count, stamp(1))
    }

    #[test]
    fn an_old_ordinal_means_its_descendants_through_generations() {
        let map = split(&split(&initial(1), 0, 0x20, 2), 1, 0x10, 3);
        let ordinals: Vec<u32> = map.entries.iter().map(|slot| slot.ordinal.0).collect();
        assert_eq!(ordinals, [3, 4, 2]);
        let owners = |ordinal| {
            let range = map.range_of(PartitionOrdinal(ordinal)).unwrap();
            map.owners(range).map(|slot| slot.ordinal.0).collect::<Vec<_>>()
        };
        assert_eq!((owners(0), owners(1), owners(2)), (vec![3, 4, 2], vec![3, 4], vec![2]));
        assert_eq!(owners(3), [3]);
        assert_eq!(
            map.range_of(PartitionOrdinal(5)),
            Err(MissingFault::Range { id: "5".to_owned() }),
            "it never existed"
        );
        let ancestors = &map.entries[0].ancestors;
        let known: Vec<_> = ancestors.iter().map(|one| (one.ordinal.0, one.lsn_last.0)).collect();
        assert_eq!(known, [(0, 20), (1, 30)]);
        let last = [0, 1, 2, 5].map(|ordinal| map.last_lsn(PartitionOrdinal(ordinal)));
        assert_eq!(last, [Some(Lsn(20)), Some(Lsn(30)), None, None]);
        assert_eq!(map.owner(&EffectiveKey::from_bytes(&[0x15])).unwrap().ordinal.0, 4);
        assert_eq!((map.initial_count(), map.stamp.change), (1, 3));
        assert_eq!(map.entries[2].since.change, 2, "an unsplit partition keeps its stamp");
    }

    #[test]
    fn slots_in_use_are_kept_and_wrong_cuts_refused() {
        let first = initial(2);
        assert_eq!(first.initial_count(), 2);
        let second = split(&first, 1, 0x30, 2);
        assert_eq!(second.initial_count(), 2);
        let again = second.with_slots_of(&first.entries);
        assert!(Arc::ptr_eq(&again.entries[0], &first.entries[0]));
        assert!(Arc::ptr_eq(&again.entries[1], &second.entries[1]));
        let current = CurrentMap::new(second.clone());
        assert!(current.has_replaced(&first.entries[1]) && !current.has_replaced(&first.entries[0]));
        let parent = Arc::clone(&second.entries[2]);
        for cut in [&[0x30][..], &[0x10], &[0xFF]] {
            let (cut, lsn_last) = (EffectiveKey::from_bytes(cut), Lsn(1));
            let planned = PlannedSplit { parent: Arc::clone(&parent), cut, lsn_last };
            assert!(second.split(&planned, stamp(3), 0).is_err());
        }
        let slot = Arc::clone(&second.entries[1]);
        let remains = |map: &PartitionMap| map.ancestors_of(&slot)[0].remains;
        assert_eq!(remains(&second), Remains::All);
        for left in [Remains::Log, Remains::Nothing] {
            assert_eq!(remains(&second.with_remains(PartitionOrdinal(1), left)), left);
        }
    }
}
