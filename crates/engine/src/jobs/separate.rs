//! Separates partitions from those that they were split from, and deletes what is left of the latter.
//!
//! A partition rewrites the index runs that it shares. When no descendant of a split partition uses its runs, they are
//! deleted. Its log and history stay until descendants have replaced or trimmed the last entry.

use super::HousekeepingJob;
use crate::engine::Engine;
use crate::slot::PartitionSlot;
use kv::{Batch, Durability, ScanLimit, Space};
use model::{ContainerNumber, Fault, PartitionOrdinal};
use partition::keyspace::{self, HISTORY, INDEX, LOG, PartitionId};
use partition::{Remains, commit_fault, read_fault};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rounds between two looks at a partition that is being separated. The index rewrites runs meanwhile.
const ROUNDS_PER_STEP: u64 = 2;
/// Rounds between two looks whether a split partition has log entries left.
const ROUNDS_PER_LOG_CHECK: u64 = 600;
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
            for retired in &map.retired {
                let is_due = match retired.remains {
                    Remains::Nothing => false,
                    Remains::Log => round > 0 && round.is_multiple_of(ROUNDS_PER_LOG_CHECK),
                    Remains::All => {
                        let is_descendant = |slot: &&Arc<PartitionSlot>| {
                            slot.ancestors.iter().any(|ancestor| ancestor.ordinal == retired.ordinal)
                        };
                        let descendants = map.entries.iter().filter(is_descendant);
                        let users = descendants.filter(|slot| slot.division.may_need(retired.ordinal));
                        for slot in users.clone() {
                            let job = HousekeepingJob::Separate(container.number(), slot.ordinal);
                            let is_due = slot.division.separated_in() + ROUNDS_PER_STEP <= round;
                            if is_due && !due.contains(&job) {
                                due.push(job);
                            }
                        }
                        users.count() == 0
                    }
                };
                if is_due {
                    due.push(HousekeepingJob::DeleteSplit(container.number(), retired.ordinal));
                }
            }
            if due.len() >= LISTED_MAX {
                break;
            }
        }
        due
    }

    /// Has a partition separate itself from its ancestors, and notes those that it still needs.
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
        match partition.separate().await {
            Err(_) if container.map.has_replaced(&slot) => {}
            needs => slot.division.set_needs(needs?),
        }
        Ok(())
    }

    /// Deletes the index runs of a split partition, which no descendant uses, and records which rows remain.
    pub(super) async fn delete_split(
        &self,
        number: ContainerNumber,
        ordinal: PartitionOrdinal,
    ) -> Result<(), Fault> {
        let id = PartitionId { container: number, ordinal };
        while self.delete_some_of(INDEX, id).await? {
            if self.jobs.is_stopping() {
                return Ok(());
            }
        }
        let remains = match self.has_rows(LOG, id).await? || self.has_rows(HISTORY, id).await? {
            true => Remains::Log,
            false => Remains::Nothing,
        };
        let Some(container) = self.catalog.state().container(number) else { return Ok(()) };
        if container.map.load().remains_of(ordinal) == remains {
            return Ok(());
        }
        let mut change = self.catalog.begin(self).await?;
        let Some(container) = change.state.container(number) else { return Ok(()) };
        let map = container.map.load().with_remains(ordinal, remains);
        change.put_map(&container, map);
        change.commit().await
    }

    async fn has_rows(&self, space: Space, id: PartitionId) -> Result<bool, Fault> {
        let view = self.store().view().await.map_err(read_fault)?;
        let limit = ScanLimit { rows: 1, bytes: BYTES_AT_A_TIME };
        let chunk = view.scan_keys(space, keyspace::partition_rows(id), limit).await.map_err(read_fault)?;
        Ok(!chunk.keys.is_empty())
    }

    /// Deletes a limited number of rows; returns whether it found any. The last ones are deleted durably: the map must
    /// not say that nothing remains while the store may still lose deletions.
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
        let durability = if chunk.more { Durability::Buffered } else { Durability::Sync };
        self.store().submit(&self.store().lane(), batch, durability).await.map_err(commit_fault)?;
        step.end().await;
        // Also after the last ones: rows of an earlier step have returned if the store lost its deletions.
        Ok(true)
    }
}
