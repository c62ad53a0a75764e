//! Splits: when a partition is split, where it is cut, and how its children take over.
//!
//! A partition is split if its documents have more bytes than a partition may have (cut by documents), if the throughput
//! of its container requires more partitions (cut in the middle, so that ranges stay even), or on request. The steps
//! before the swap change nothing that is stored; see `partition::split`.

use crate::authorisation::{Account, AdminPass, CatalogPass};
use crate::catalog::{Container, Offer, PARTITIONS_MAX, PartitionMap, PlannedSplit};
use crate::engine::Engine;
use crate::slot::PartitionSlot;
use model::{
    ContainerNumber, EffectiveKey, EffectiveRange, Fault, LimitFault, MissingFault, PartitionOrdinal,
    RequestFault, Rid, StorageFault,
};
use partition::PhysicalPartition;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Parts of the width that a range may exceed its share by before it is split for throughput.
const WIDTH_TOLERANCE: u128 = 8;

/// Where a partition is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitAt {
    /// So that both sides have about the same number of documents.
    Documents,
    /// In the middle of the range.
    Middle,
    /// At this effective key, which becomes the lower bound of the second partition.
    Key(EffectiveKey),
}

/// A partition as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Its id.
    pub ordinal: PartitionOrdinal,
    /// The hashes it owns.
    pub range: EffectiveRange,
    /// The partitions from which it was split, oldest first.
    pub parents: Vec<PartitionOrdinal>,
    /// Documents, including expired ones that were not deleted yet.
    pub documents: u64,
    /// Bytes of the documents.
    pub document_bytes: u64,
    /// What it is doing.
    pub state: PartitionState,
}

/// What a partition is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// It serves requests.
    Serving,
    /// It serves requests and is being split.
    Splitting,
    /// It serves requests and still shares index runs with partitions that were split from the same one.
    Separating,
}

/// The two partitions that replace one.
pub type Children = [PartitionOrdinal; 2];

/// A partition of a container.
type SplitTarget = (ContainerNumber, PartitionOrdinal);

/// Where to cut, and the channel for the answer.
type SplitRequest = (SplitAt, oneshot::Sender<Result<Children, Fault>>);

/// Splits that were requested and have not begun.
#[derive(Debug, Default)]
pub(crate) struct SplitRequests {
    waiting: Mutex<BTreeMap<SplitTarget, Vec<SplitRequest>>>,
}

impl SplitRequests {
    fn add(&self, target: SplitTarget, request: SplitRequest) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(target).or_default().push(request);
    }

    /// The partitions for which a split is requested.
    pub(crate) fn targets(&self) -> Vec<SplitTarget> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    pub(crate) fn take(&self, target: SplitTarget) -> Vec<SplitRequest> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&target).unwrap_or_default()
    }

    /// Refuses all requests: the engine stops.
    pub(crate) fn clear(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Engine {
    /// Splits a partition in two and returns their ids. Requests are served all the time.
    pub async fn split_partition(
        &self,
        pass: &AdminPass<&Container>,
        ordinal: PartitionOrdinal,
        at: SplitAt,
    ) -> Result<Children, Fault> {
        let container = pass.resource;
        if container.map.load().by_ordinal(ordinal).is_none() {
            return Err(MissingFault::Range { id: ordinal.to_string() }.into());
        }
        let (reply, answer) = oneshot::channel();
        self.split_requests.add((container.number(), ordinal), (at, reply));
        self.jobs.wake();
        let result = answer.await.unwrap_or_else(|_| {
            Err(StorageFault::Unavailable { cause: "the split was given up".to_owned() }.into())
        });
        match result {
            // The container was dropped meanwhile, which ends the split in any step.
            Err(_) if container.map.is_retired() => Err(MissingFault::Owner.into()),
            result => result,
        }
    }

    /// The partitions of a container, sorted by range. Closed ones are opened.
    pub async fn partition_list(
        &self,
        pass: &CatalogPass<&Container>,
    ) -> Result<Vec<PartitionStatus>, Fault> {
        let container = pass.resource;
        let routed = self.routed_everywhere(container).await?;
        let map = container.map.load();
        let status = |routed: &crate::router::Routed| {
            let slot = &routed.slot;
            let counts = routed.partition.counts();
            let shares = map.ancestors_of(slot).iter().any(|ancestor| ancestor.remains.has_runs());
            PartitionStatus {
                ordinal: slot.ordinal,
                range: slot.range.clone(),
                parents: slot.ancestors.iter().map(|ancestor| ancestor.ordinal).collect(),
                documents: counts.documents,
                document_bytes: counts.bytes,
                state: match (slot.division.is_splitting(), shares) {
                    (true, _) => PartitionState::Splitting,
                    (false, true) => PartitionState::Separating,
                    (false, false) => PartitionState::Serving,
                },
            }
        };
        Ok(routed.iter().map(status).collect())
    }

    /// Whether partitions must still be split because of the rate of an offer.
    pub fn is_offer_pending(&self, _pass: &CatalogPass<Account>, offer: &Offer) -> bool {
        let Rid::Container(_, number) = offer.owner().rid else { return false };
        let container = self.catalog.state().container(number);
        container.is_some_and(|container| {
            !self.splits_for_throughput(&container, offer.throughput().max()).is_empty()
        })
    }

    /// The partitions of a container that its throughput requires to split: those whose range is wider than the share
    /// of one partition would be.
    pub(crate) fn splits_for_throughput(&self, container: &Container, rate: u64) -> Vec<Arc<PartitionSlot>> {
        let map = container.map.load();
        let count = required_count(&map, rate, self.options.partition_throughput_max);
        if map.entries.len() >= PARTITIONS_MAX {
            return Vec::new();
        }
        let definition = &container.definition().partition_key;
        let share = definition.hash_count(&EffectiveRange::full()) / count as u128;
        let is_wide =
            |slot: &&Arc<PartitionSlot>| definition.hash_count(&slot.range) > share + share / WIDTH_TOLERANCE;
        map.entries.iter().filter(is_wide).cloned().collect()
    }

    /// Refuses a rate that needs more partitions than a container can have.
    pub(crate) fn check_rate(&self, container: &Container, rate: u64) -> Result<(), LimitFault> {
        let map = container.map.load();
        match required_count(&map, rate, self.options.partition_throughput_max) {
            count if count <= PARTITIONS_MAX => Ok(()),
            _ => Err(LimitFault::Exhausted { what: "partitions" }),
        }
    }

    /// Splits a partition. Returns `None` if it cannot be divided.
    pub(crate) async fn split(
        &self,
        container: &Arc<Container>,
        slot: &Arc<PartitionSlot>,
        at: &SplitAt,
    ) -> Result<Option<Children>, Fault> {
        slot.division.set_splitting(true);
        let _splitting = SplittingMark { slot };
        let partition = self.opened(container, slot).await?;
        let definition = &container.definition().partition_key;
        let cut = match at {
            SplitAt::Documents => partition.middle_by_documents().await?,
            SplitAt::Middle => definition.middle(&slot.range),
            SplitAt::Key(key) => (*key > slot.range.min && *key < slot.range.max).then(|| key.clone()),
        };
        let Some(cut) = cut else { return Ok(None) };
        let begun = std::time::Instant::now();
        let prepared = partition.prepare_split(cut.clone()).await?;
        let prepared_in = begun.elapsed();
        if self.jobs.is_stopping() {
            return Err(stopping());
        }
        #[cfg(feature = "planted-faults")]
        partition::planted::stall_split().await;
        let (children, paused_in) = self.swap(container, slot, &partition, cut, prepared).await?;
        let pause_ms = paused_in.as_secs_f64() * 1e3;
        let prepared_ms = prepared_in.as_secs_f64() * 1e3;
        tracing::info!(
            event = "partition_split",
            container = container.number().0,
            parent = slot.ordinal.0,
            first = children[0].0,
            second = children[1].0,
            prepared_ms,
            pause_ms,
            "a partition was split"
        );
        self.metrics.split_done(paused_in);
        self.jobs.wake();
        Ok(Some(children))
    }

    /// Seals the partition and replaces it by its children in one batch.
    async fn swap(
        &self,
        container: &Arc<Container>,
        slot: &Arc<PartitionSlot>,
        partition: &Arc<PhysicalPartition>,
        cut: EffectiveKey,
        prepared: partition::PreparedSplit,
    ) -> Result<(Children, std::time::Duration), Fault> {
        // Before the partition is sealed, so that its writer does not wait for other changes of the catalog.
        let mut change = self.catalog.begin(self).await?;
        let current = change.state.container(container.number()).ok_or(MissingFault::Owner)?;
        let begun = std::time::Instant::now();
        let (sealed, seal) = partition.seal(prepared).await?;
        let planned = PlannedSplit { parent: Arc::clone(slot), cut, lsn_last: sealed.lsn_last() };
        let children = match change.put_split(&current, &planned, &sealed) {
            Ok(children) => children,
            Err(fault) => {
                seal.refused();
                return Err(fault);
            }
        };
        let number = container.number();
        for child in &children {
            let id = partition::keyspace::PartitionId { container: number, ordinal: child.ordinal };
            child.inherit(sealed.carryover(id, Arc::clone(&self.ambient)));
            child.ledger.inherit(&slot.ledger);
        }
        match change.commit().await {
            Ok(()) => {
                for child in &children {
                    // The first request opens it otherwise.
                    let _ = child.begin_opening(&self.slots, &current.opening(child));
                }
                seal.committed();
                slot.seal(&self.slots).await;
                Ok((children.map(|child| child.ordinal), begun.elapsed()))
            }
            Err(fault @ Fault::Storage(StorageFault::Uncertain { .. })) => {
                // The writer ends. The partition is opened again unless the batch was applied.
                drop(seal);
                self.catalog.resolve_unknown_change(&self.store).await?;
                if current.map.has_replaced(slot) {
                    slot.seal(&self.slots).await;
                }
                Err(fault)
            }
            Err(fault) => {
                seal.refused();
                Err(fault)
            }
        }
    }
}

/// The number of even ranges that a rate requires: the initial number, doubled until each serves its share.
fn required_count(map: &PartitionMap, rate: u64, rate_max: u64) -> usize {
    let mut count = map.initial_count().max(1);
    while rate > rate_max.max(1).saturating_mul(count as u64) && count <= PARTITIONS_MAX {
        count *= 2;
    }
    count
}

/// Ends the mark of a split when it is dropped, also if the split panics.
struct SplittingMark<'a> {
    slot: &'a PartitionSlot,
}

impl Drop for SplittingMark<'_> {
    fn drop(&mut self) {
        self.slot.division.set_splitting(false);
    }
}

/// The fault for a partition that cannot be divided as requested.
pub(crate) fn indivisible(ordinal: PartitionOrdinal) -> Fault {
    RequestFault::Indivisible { id: ordinal.to_string() }.into()
}

fn stopping() -> Fault {
    StorageFault::Unavailable { cause: "the server stops".to_owned() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogStamp;
    use model::{PartitionKeyDefinition, PartitionKeyKind};

    #[test]
    fn partitions_double_until_each_serves_its_share() {
        let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let stamp = CatalogStamp { change: 1, ts: 1 };
        for (initial, rate, count) in [
            (1, 400, 1),
            (1, 10_000, 1),
            (1, 10_001, 2),
            (1, 20_000, 2),
            (1, 20_001, 4),
            (1, 30_000, 4),
            (4, 20_000, 4),
            (4, 40_001, 8),
            (3, 30_001, 6),
        ] {
            let map = PartitionMap::initial(&definition, initial, stamp);
            assert_eq!(required_count(&map, rate, 10_000), count, "{initial} at {rate}");
        }
        let map = PartitionMap::initial(&definition, 1, stamp);
        assert!(required_count(&map, u64::MAX, 1) > PARTITIONS_MAX);
    }
}
