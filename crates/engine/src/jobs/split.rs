//! Splits partitions that are too large, or too few for the throughput of their container, or that an operator wants to
//! split.

use super::HousekeepingJob;
use crate::catalog::Container;
use crate::engine::Engine;
use crate::split::{SplitAt, indivisible};
use model::{ContainerNumber, Fault, MissingFault, PartitionOrdinal, Rid};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rounds between two attempts to split a partition.
const PAUSE_ROUNDS: u64 = 10;
/// Splits that are listed at once.
const LISTED_MAX: usize = 64;

impl Engine {
    /// The splits that are due.
    pub(super) fn due_splits(&self) -> Vec<HousekeepingJob> {
        let round = self.jobs.round.load(Ordering::Relaxed);
        let requested = self.split_requests.targets().into_iter();
        let mut due: Vec<_> =
            requested.map(|(number, ordinal)| HousekeepingJob::Split(number, ordinal)).collect();
        let state = self.catalog.state();
        for container in state.containers() {
            for slot in &container.map.load().entries {
                if slot.division.may_split(round) && self.is_oversized(slot) {
                    due.push(HousekeepingJob::Split(container.number(), slot.ordinal));
                }
            }
        }
        for offer in state
            .offers()
            .iter()
            .filter(|offer| offer.throughput().max() > self.options.partition_throughput_max)
        {
            let Rid::Container(_, number) = offer.owner().rid else { continue };
            let Some(container) = state.container(number) else { continue };
            for slot in self.splits_for_throughput(&container, offer.throughput().max()) {
                if slot.division.may_split(round) {
                    due.push(HousekeepingJob::Split(number, slot.ordinal));
                }
            }
        }
        due.truncate(LISTED_MAX);
        due
    }

    /// Whether a partition has more bytes than it may have and could be divided.
    fn is_oversized(&self, slot: &crate::slot::PartitionSlot) -> bool {
        slot.current().is_some_and(|partition| {
            let bytes = partition.counts().bytes;
            bytes > self.options.partition_bytes_max && !slot.division.is_indivisible(bytes)
        })
    }

    /// Splits a partition for the reason that applies now.
    pub(super) async fn split_due(
        &self,
        number: ContainerNumber,
        ordinal: PartitionOrdinal,
    ) -> Result<(), Fault> {
        let requests = self.split_requests.take((number, ordinal));
        let container = self.catalog.state().container(number);
        let slot = container.as_ref().and_then(|container| container.map.load().by_ordinal(ordinal).cloned());
        let (Some(container), Some(slot)) = (container, slot) else {
            let gone = || Fault::from(MissingFault::Range { id: ordinal.to_string() });
            requests.into_iter().for_each(|(_, reply)| drop(reply.send(Err(gone()))));
            return Ok(());
        };
        let round = self.jobs.round.load(Ordering::Relaxed);
        slot.division.pause_until(round + PAUSE_ROUNDS);
        // All requests for one partition get the same answer: it is split once.
        let at = match requests.first() {
            Some((at, _)) => at.clone(),
            None if self.is_wide(&container, ordinal) => SplitAt::Middle,
            None => SplitAt::Documents,
        };
        let bytes = slot.current().map_or(0, |partition| partition.counts().bytes);
        let split = self.split(&container, &slot, &at).await;
        if matches!(split, Ok(None)) && at == SplitAt::Documents {
            slot.division.set_indivisible(bytes);
        }
        let answer = split.and_then(|children| children.ok_or_else(|| indivisible(ordinal)));
        let is_requested = !requests.is_empty();
        requests.into_iter().for_each(|(_, reply)| drop(reply.send(answer.clone())));
        match answer {
            Ok(_) | Err(Fault::Request(_)) => Ok(()),
            Err(_) if is_requested => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Whether the throughput of the container requires to split the partition.
    fn is_wide(&self, container: &Arc<Container>, ordinal: PartitionOrdinal) -> bool {
        let offer = self.catalog.state().offer_of(&container.rid());
        offer.is_some_and(|offer| {
            let wide = self.splits_for_throughput(container, offer.throughput().max());
            wide.iter().any(|slot| slot.ordinal == ordinal)
        })
    }
}
