//! The LSN of the last write of each logical partition: whether it has changed since the state of a draft.
//!
//! The table is bounded: it has two generations, and the older one is dropped when the newer one is full. Writes up to
//! the floor are forgotten, so a draft of an earlier state counts as changed. The table exists only while drafts are
//! in use; its first floor is the LSN at which it was created.

use foldhash::fast::FixedState;
use model::Lsn;
use std::collections::HashMap;
use std::hash::BuildHasher as _;

/// Logical partitions in one generation.
const GENERATION_MAX: usize = 4096;

/// The last writes by the hash of their logical partition. Two that collide count as one.
type Generation = HashMap<u64, Lsn, FixedState>;

/// The LSNs of the last writes, by logical partition.
#[derive(Debug)]
pub(crate) struct LastWrites {
    newer: Generation,
    older: Generation,
    /// The last write when the newer generation was started.
    older_last: Lsn,
    /// Writes up to here are forgotten.
    floor: Lsn,
    /// The last write.
    last: Lsn,
}

impl LastWrites {
    /// A table without writes; all writes up to `floor` are forgotten.
    pub(crate) fn after(floor: Lsn) -> LastWrites {
        #[cfg(feature = "planted-faults")]
        let floor = match crate::planted::is_planted(crate::planted::PlantedFault::FloorIsForgotten) {
            true => Lsn(0),
            false => floor,
        };
        let (newer, older) = (Generation::default(), Generation::default());
        LastWrites { newer, older, older_last: floor, floor, last: floor }
    }

    /// Notes a write of the logical partition with this prefix.
    pub(crate) fn note(&mut self, prefix: &[u8], lsn: Lsn) {
        if self.newer.len() >= GENERATION_MAX {
            self.older = std::mem::take(&mut self.newer);
            self.floor = self.older_last;
            self.older_last = self.last;
        }
        self.newer.insert(hash(prefix), lsn);
        self.last = lsn;
    }

    /// Whether the logical partition may have been written after `lsn`.
    pub(crate) fn may_have_changed(&self, prefix: &[u8], lsn: Lsn) -> bool {
        let hash = hash(prefix);
        let last = self.newer.get(&hash).or_else(|| self.older.get(&hash));
        lsn < self.floor || last.is_some_and(|last| *last > lsn)
    }
}

fn hash(prefix: &[u8]) -> u64 {
    FixedState::default().hash_one(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_happened_before_the_table_counts_as_a_write() {
        let mut writes = LastWrites::after(Lsn(10));
        assert!(writes.may_have_changed(b"a", Lsn(9)) && !writes.may_have_changed(b"a", Lsn(10)));
        writes.note(b"a", Lsn(11));
        assert!(writes.may_have_changed(b"a", Lsn(10)) && !writes.may_have_changed(b"a", Lsn(11)));
        assert!(!writes.may_have_changed(b"b", Lsn(10)));
    }

    /// The table never forgets a change, remembers at least one generation exactly, and stays bounded.
    #[test]
    fn a_bounded_table_forgets_no_change() {
        let mut writes = LastWrites::after(Lsn(0));
        let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
        let last = 5 * GENERATION_MAX as u64;
        for lsn in 1..=last {
            let key = lsn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
            writes.note(&key.to_be_bytes(), Lsn(lsn));
            exact.insert(key, lsn);
            assert!(writes.newer.len() <= GENERATION_MAX && writes.older.len() <= GENERATION_MAX);
            if lsn.is_multiple_of(997) {
                let recent = lsn - lsn.min(GENERATION_MAX as u64 - 1);
                for (key, written) in &exact {
                    for based_on in [0, written - 1, *written, recent, lsn] {
                        let may = writes.may_have_changed(&key.to_be_bytes(), Lsn(based_on));
                        let has = *written > based_on;
                        assert!(may || !has, "{key} at {based_on}");
                        assert!(based_on < recent || may == has, "{key} at {based_on} is recent");
                    }
                }
            }
        }
        assert!(writes.floor > Lsn(0));
    }
}
