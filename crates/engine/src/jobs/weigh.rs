//! Finds logical partitions that may exceed their limit, so that their writers count them.
//!
//! Only a partition with more bytes than the limit can contain one. Its largest logical partitions are counted once;
//! after that the writer knows their bytes exactly, until it is closed. Until then writes are not refused.

use super::HousekeepingJob;
use crate::engine::Engine;
use model::{ContainerNumber, Fault, PartitionOrdinal};
use std::sync::atomic::Ordering;

/// Rounds between two searches in a partition.
const ROUNDS_PER_SEARCH: u64 = 10;
/// A partition is searched when it has more than this part of the limit.
const LIMIT_PART: u64 = 2;
/// Searches that are listed at once.
const LISTED_MAX: usize = 64;

impl Engine {
    /// Partitions that may contain a large logical partition.
    pub(super) fn due_weighings(&self) -> Vec<HousekeepingJob> {
        let round = self.jobs.round.load(Ordering::Relaxed);
        let bytes_min = self.options.logical_partition_bytes_max / LIMIT_PART;
        let state = self.catalog.state();
        let mut due = Vec::new();
        for container in state.containers() {
            for slot in &container.map.load().entries {
                let is_large = slot.current().is_some_and(|open| open.counts().bytes > bytes_min);
                if is_large && due.len() < LISTED_MAX && slot.division.may_weigh(round) {
                    due.push(HousekeepingJob::Weigh(container.number(), slot.ordinal));
                }
            }
        }
        due
    }

    /// Counts the largest logical partitions of a partition.
    pub(super) async fn weigh(
        &self,
        number: ContainerNumber,
        ordinal: PartitionOrdinal,
    ) -> Result<(), Fault> {
        let Some(container) = self.catalog.state().container(number) else { return Ok(()) };
        let Some(slot) = container.map.load().by_ordinal(ordinal).cloned() else { return Ok(()) };
        let round = self.jobs.round.load(Ordering::Relaxed);
        slot.division.weigh_after(round + ROUNDS_PER_SEARCH);
        let Some(partition) = slot.current() else { return Ok(()) };
        match partition.limit_logical_partitions(self.options.logical_partition_bytes_max).await {
            // It was closed or split meanwhile.
            Err(_) if partition.has_ended() => Ok(()),
            counted => counted,
        }
    }
}
