//! Deletes log entries of deletions and of replaced versions that every consumer has passed.
//!
//! The log of each partition is a separate piece of work: a long one, or one that fails, delays no other.

use super::HousekeepingJob;
use crate::catalog::Container;
use crate::engine::Engine;
use model::{ContainerNumber, Fault, PartitionOrdinal, StorageFault};
use std::sync::atomic::Ordering;

/// Rounds between two trims of a log.
const ROUNDS_PER_TRIM: u64 = 60;
/// Trims that are listed at once. More are listed when they have ended.
const LISTED_MAX: usize = 64;

impl Engine {
    /// Open partitions whose logs were not trimmed recently.
    pub(super) fn due_trims(&self) -> Vec<HousekeepingJob> {
        let Some(due_since) = self.jobs.round.load(Ordering::Relaxed).checked_sub(ROUNDS_PER_TRIM) else {
            return Vec::new();
        };
        let state = self.catalog.state();
        let of_container = |container: &Container| {
            let map = container.map.load();
            let due =
                map.entries.iter().filter(|slot| slot.trimmed_in() <= due_since && slot.current().is_some());
            due.map(|slot| HousekeepingJob::Trim(container.number(), slot.ordinal)).collect::<Vec<_>>()
        };
        state.containers().flat_map(|container| of_container(container)).take(LISTED_MAX).collect()
    }

    /// Trims the log of a partition, if it is open.
    pub(super) async fn trim_log(
        &self,
        number: ContainerNumber,
        ordinal: PartitionOrdinal,
    ) -> Result<(), Fault> {
        let Some(container) = self.catalog.state().container(number) else { return Ok(()) };
        let Some(slot) = container.map.load().by_ordinal(ordinal).cloned() else { return Ok(()) };
        slot.trim_begins(self.jobs.round.load(Ordering::Relaxed));
        let Some(partition) = slot.current() else { return Ok(()) };
        loop {
            let _step = self.housekeeping_step().await;
            let trimmed = partition.trim_log().await;
            if !unless_closed(trimmed, partition.has_ended())? || self.jobs.is_stopping() {
                return Ok(());
            }
        }
    }
}

/// Whether there is more to trim. A partition that was closed meanwhile, because it was idle, has nothing to trim until
/// it is opened again.
fn unless_closed(trimmed: Result<bool, Fault>, has_ended: bool) -> Result<bool, Fault> {
    match trimmed {
        Err(Fault::Storage(StorageFault::Unavailable { .. })) if has_ended => Ok(false),
        trimmed => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_was_closed_meanwhile_does_not_fail() {
        let stopped =
            || Err(StorageFault::Unavailable { cause: "the partition has stopped".to_owned() }.into());
        assert_eq!(unless_closed(stopped(), true), Ok(false));
        assert_eq!(unless_closed(stopped(), false), stopped());
        let internal = || Err(Fault::Internal("x".to_owned()));
        assert_eq!(unless_closed(internal(), true), internal());
        assert_eq!(unless_closed(Ok(true), false), Ok(true));
    }
}
