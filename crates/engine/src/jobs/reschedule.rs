//! Rewrites expiry rows after the default time to live of their container changed.
//!
//! The records of each partition are walked in key order. The progress of a walk is saved with the change number of the
//! definition it works for: after a restart it continues there, and for a newer definition it starts again.

use super::poison::{Skipped, any_key};
use crate::catalog::Container;
use crate::engine::Engine;
use crate::join::join_all;
use crate::slot::PartitionSlot;
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit};
use model::limits::PAGE_BYTES_MAX;
use model::{ContainerNumber, Fault};
use partition::keyspace::{self, RECORDS};
use partition::{RescheduleCheckpoint, RescheduleProgress, read_fault, stored_document};
use plan::{LogicalKey, Mutation, Returned};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Records that one step reads.
const RECORDS_AT_A_TIME: usize = 256;
/// Steps between two checkpoints.
const STEPS_PER_CHECKPOINT: usize = 64;
/// Partitions of a container that are walked concurrently.
const WALKS_MAX: usize = 4;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walked {
    All,
    /// The engine stops, or the container has another definition.
    Part,
}

impl Engine {
    /// Writes the expiry rows of a container with a changed default.
    pub(super) async fn reschedule_expiry(&self, number: ContainerNumber) -> Result<(), Fault> {
        let container = self.catalog.state().container(number);
        let Some(container) = container.filter(|container| container.expiry_pending) else { return Ok(()) };
        let mut walked = Walked::All;
        let map = Arc::clone(&container.map.load());
        for slots in map.entries.chunks(WALKS_MAX) {
            let walks = slots.iter().map(|slot| self.reschedule_at(&container, slot)).collect();
            for ended in join_all(walks).await {
                if ended? == Walked::Part {
                    walked = Walked::Part;
                }
            }
        }
        #[cfg(feature = "planted-faults")]
        if partition::planted::is_planted(partition::planted::PlantedFault::OldDefinitionReturns) {
            container.force_shape();
        }
        if walked == Walked::Part {
            return Ok(());
        }
        let mut change = self.catalog.begin(self).await?;
        // Only if there was no other change of the definition meanwhile.
        let current = change.state.container(number);
        if let Some(current) = current.filter(|current| current.etag() == container.etag()) {
            change.put_container(&Arc::new(current.rescheduled()));
            change.commit().await?;
        }
        Ok(())
    }

    /// Walks the records of one partition. The rows are written according to the definition in force when the writer
    /// executes, which is `container`'s or a newer one; a newer one causes the work to be repeated.
    async fn reschedule_at(&self, container: &Container, slot: &Arc<PartitionSlot>) -> Result<Walked, Fault> {
        let change = container.stamp().change;
        let whole = slot.keys(container.number());
        let id = container.spec(slot).id;
        let view = self.store().view().await.map_err(read_fault)?;
        let saved = RescheduleCheckpoint::load(&view, id).await?;
        drop(view);
        let mut rest = match saved.filter(|saved| saved.change == change).map(|saved| saved.progress) {
            Some(RescheduleProgress::Done) => return Ok(Walked::All),
            Some(RescheduleProgress::After(key)) => keyspace::after(whole, &key),
            None => {
                self.pass_writer(container, slot).await?;
                whole.clone()
            }
        };
        for step in 1_usize.. {
            let last = self.reschedule_some(container, slot, &rest).await?;
            let Some(last) = last else { break };
            rest = keyspace::after(&rest, &last);
            let is_current = self
                .catalog
                .state()
                .container(container.number())
                .is_some_and(|current| current.etag() == container.etag());
            let ends_early = self.jobs.is_stopping() || !is_current;
            if ends_early || step.is_multiple_of(STEPS_PER_CHECKPOINT) {
                self.save(container, slot, RescheduleProgress::After(last)).await?;
            }
            if ends_early {
                return Ok(Walked::Part);
            }
        }
        self.save(container, slot, RescheduleProgress::Done).await?;
        Ok(Walked::All)
    }

    /// Rewrites the rows of a limited number of documents; returns where to continue, if there are more.
    async fn reschedule_some(
        &self,
        container: &Container,
        slot: &PartitionSlot,
        rest: &KeyRange,
    ) -> Result<Option<Bytes>, Fault> {
        let _step = self.housekeeping_step().await;
        // Not through the partition's view: documents that the new default expires immediately need rows too.
        let view = self.store().view().await.map_err(read_fault)?;
        let limit = ScanLimit { rows: RECORDS_AT_A_TIME, bytes: PAGE_BYTES_MAX };
        let chunk = view.scan(RECORDS, rest.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
        drop(view);
        let mut mutations = Vec::with_capacity(chunk.rows.len());
        for (key, row) in &chunk.rows {
            match stored_document(row) {
                Ok(stored) => mutations.push(Mutation::Reschedule { number: stored.number }),
                Err(fault) => {
                    tracing::warn!(event = "document_skipped", container = container.number().0, ?key, cause = %fault, "housekeeping left out a document that it could not read");
                    self.jobs.skipped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let Skipped(_) = self.carry_out(container, slot.range.min.clone(), mutations).await?;
        Ok(chunk.rows.last().filter(|_| chunk.more).map(|(key, _)| key.clone()))
    }

    async fn save(
        &self,
        container: &Container,
        slot: &Arc<PartitionSlot>,
        progress: RescheduleProgress,
    ) -> Result<(), Fault> {
        let checkpoint = RescheduleCheckpoint { change: container.stamp().change, progress };
        self.opened(container, slot).await?.save_reschedule(&checkpoint).await
    }

    /// Waits until everything that the partition decided by an earlier definition is in the store. A transaction
    /// without steps is answered after all previous ones.
    async fn pass_writer(&self, container: &Container, slot: &PartitionSlot) -> Result<(), Fault> {
        let key = LogicalKey { partition_key: any_key(container)?, effective: slot.range.min.clone() };
        let (passed, _) = self.execute_at(container, key, Vec::new(), Returned::All).await?;
        passed.map(drop).map_err(|refusal| refusal.fault)
    }
}
