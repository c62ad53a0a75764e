//! Separates partitions from those that they were split from, and deletes what is left of the latter.
//!
//! A partition moves the log entries that belong to it, trims its history and rewrites the index runs that it shares.
//! When no descendant of a split partition needs its rows, they are deleted.

use super::HousekeepingJob;
use crate::engine::Engine;
use crate::slot::PartitionSlot;
use kv::{Batch, Durability, ScanLimit, Space};
use model::{ContainerNumber, Fault, PartitionOrdinal};
use partition::keyspace::{self, HISTORY, INDEX, LOG, PartitionId};
use partition::{commit_fault, read_fault};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rounds between two steps of separating a partition. The index rewrites runs meanwhile.
const ROUNDS_PER_STEP: u64 = 2;
/// Jobs that are listed at once.
const LISTED_MAX: usize = 64;
/// Rows that one step deletes.
const ROWS_AT_A_TIME: usize = 1000;
/// Bytes of keys that one step reads.
const BYTES_AT_A_TIME: usize = 4 * 1024 * 1024;

impl Engine {
    /// Partitions to separate from their ancestors, and split partitions whose rows nobody needs.
    pub(super) fn due_separations(&self) -> Vec<HousekeepingJob> {
        let round = self.jobs.round.load(Ordering::Relaxed);
        let state = self.catalog.state();
        let mut due = Vec::new();
        for container in state.containers() {
            let map = container.map.load();
            let with_rows = map.retired.iter().filter(|retired| !retired.is_empty);
            for retired in with_rows {
                let is_descendant = |slot: &&Arc<PartitionSlot>| {
                    slot.ancestors.iter().any(|ancestor| ancestor.ordinal == retired.ordinal)
                };
                let descendants = map.entries.iter().filter(is_descendant);
                if descendants.clone().all(|slot| !slot.division.may_need(retired.ordinal)) {
                    due.push(HousekeepingJob::DeleteSplit(container.number(), retired.ordinal));
                    continue;
                }
                for slot in descendants {
                    let job = HousekeepingJob::Separate(container.number(), slot.ordinal);
                    let is_due = slot.division.separated_in() + ROUNDS_PER_STEP <= round;
                    if is_due && slot.division.may_need(retired.ordinal) && !due.contains(&job) {
                        due.push(job);
                    }
                }
            }
            if due.len() >= LISTED_MAX {
                break;
            }
        }
        due
    }

    /// Continues to separate a partition from its ancestors.
    pub(super) async fn separate(
        &self,
        number: ContainerNumber,
        ordinal: PartitionOrdinal,
    ) -> Result<(), Fault> {
        let Some(container) = self.catalog.state().container(number) else { return Ok(()) };
        let Some(slot) = container.map.load().by_ordinal(ordinal).cloned() else { return Ok(()) };
        slot.division.separation_begins(self.jobs.round.load(Ordering::Relaxed));
        let partition = match self.opened(&container, &slot).await {
            Err(_) if container.map.has_replaced(&slot) => return Ok(()),
            partition => partition?,
        };
        loop {
            let step = self.index_memory.steps().slow_step().await;
            let separation = match partition.separate().await {
                Err(_) if container.map.has_replaced(&slot) => return Ok(()),
                separation => separation?,
            };
            if !separation.has_more {
                slot.division.set_needs(separation.needs);
                return Ok(());
            }
            step.end().await;
            if self.jobs.is_stopping() {
                return Ok(());
            }
        }
    }

    /// Deletes the rows of a split partition that no descendant needs, and records that.
    pub(super) async fn delete_split(
        &self,
        number: ContainerNumber,
        ordinal: PartitionOrdinal,
    ) -> Result<(), Fault> {
        let id = PartitionId { container: number, ordinal };
        for space in [LOG, HISTORY, INDEX] {
            while self.delete_some_of(space, id).await? {
                if self.jobs.is_stopping() {
                    return Ok(());
                }
            }
        }
        let mut change = self.catalog.begin(self).await?;
        let Some(container) = change.state.container(number) else { return Ok(()) };
        let map = container.map.load().with_empty(ordinal);
        change.put_map(&container, map);
        change.commit().await
    }

    /// Deletes a limited number of rows; returns whether there are more.
    async fn delete_some_of(&self, space: Space, id: PartitionId) -> Result<bool, Fault> {
        let step = self.index_memory.steps().slow_step().await;
        let view = self.store().view().await.map_err(read_fault)?;
        let limit = ScanLimit { rows: ROWS_AT_A_TIME, bytes: BYTES_AT_A_TIME };
        let chunk = view.scan_keys(space, keyspace::partition_rows(id), limit).await.map_err(read_fault)?;
        drop(view);
        if chunk.keys.is_empty() {
            return Ok(false);
        }
        let mut batch = Batch::default();
        batch.mark_shrinking();
        chunk.keys.into_iter().for_each(|key| batch.delete(space, key));
        let submitted = self.store().submit(&self.store().lane(), batch, Durability::Buffered).await;
        submitted.map_err(commit_fault)?;
        step.end().await;
        Ok(chunk.more)
    }
}
