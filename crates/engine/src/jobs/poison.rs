//! Passes mutations of many documents to a writer at once, and skips those that cannot be executed.
//!
//! A document that cannot be read, such as a damaged record, must not stop the work on the others: it is tried once
//! more alone, then logged, counted and skipped.

use super::expiry::TRANSACTION_DOCUMENTS;
use crate::catalog::Container;
use crate::engine::Engine;
use crate::router::RefusedStep;
use model::{EffectiveKey, Fault, KeyComponent, PartitionKey, StorageFault};
use plan::{DocumentOperation, LogicalKey, Mutation, Returned};
use std::ops::AddAssign;
use std::sync::atomic::Ordering;

/// Documents of one transaction that are skipped before the rest is executed one by one.
const TOGETHER_SKIPPED_MAX: u64 = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped(pub(super) u64);

impl AddAssign for Skipped {
    fn add_assign(&mut self, other: Skipped) {
        self.0 += other.0;
    }
}

impl Engine {
    /// Number of documents that housekeeping has skipped since the start because they could not be read.
    pub fn skipped_documents(&self) -> u64 {
        self.jobs.skipped.load(Ordering::Relaxed)
    }

    /// Executes mutations of documents of the partition that owns `place`, whatever their partition keys.
    pub(super) async fn carry_out(
        &self,
        container: &Container,
        place: EffectiveKey,
        mutations: Vec<Mutation>,
    ) -> Result<Skipped, Fault> {
        let key = LogicalKey { partition_key: any_key(container)?, effective: place };
        let mut skipped = Skipped::default();
        let mut rest = mutations.into_iter().map(DocumentOperation::Write);
        loop {
            let operations: Vec<DocumentOperation> = rest.by_ref().take(TRANSACTION_DOCUMENTS).collect();
            if operations.is_empty() {
                return Ok(skipped);
            }
            skipped += self.carry_out_together(container, &key, operations).await?;
        }
    }

    /// In one transaction; again without those that are skipped; one by one if there are many of them.
    async fn carry_out_together(
        &self,
        container: &Container,
        key: &LogicalKey,
        mut operations: Vec<DocumentOperation>,
    ) -> Result<Skipped, Fault> {
        let mut skipped = Skipped::default();
        let mut done = 0;
        // Terminates: each iteration skips a document or completes some.
        while done < operations.len() {
            let end = if skipped.0 < TOGETHER_SKIPPED_MAX { operations.len() } else { done + 1 };
            let some = operations[done..end].to_vec();
            let (executed, _) = self.execute_at(container, key.clone(), some, Returned::Reads).await?;
            let Err(RefusedStep { index, fault, .. }) = executed else {
                done = end;
                continue;
            };
            if !is_poison(&fault) || done + index >= end {
                return Err(fault);
            }
            let operation = operations.remove(done + index);
            // Once more alone: the read may have failed only temporarily.
            let alone = vec![operation.clone()];
            let (executed, _) = self.execute_at(container, key.clone(), alone, Returned::Reads).await?;
            let Err(RefusedStep { fault, .. }) = executed else { continue };
            if !is_poison(&fault) {
                return Err(fault);
            }
            tracing::warn!(event = "document_skipped", container = container.number().0, ?operation, cause = %fault, "housekeeping left out a document that it could not change");
            self.jobs.skipped.fetch_add(1, Ordering::Relaxed);
            skipped += Skipped(1);
        }
        Ok(skipped)
    }
}

/// Whether a refusal is about the document and not about the store.
fn is_poison(fault: &Fault) -> bool {
    #[cfg(feature = "planted-faults")]
    if partition::planted::is_planted(partition::planted::PlantedFault::PoisonEndsSweep) {
        return false;
    }
    match fault {
        Fault::Storage(StorageFault::Damaged { .. })
        | Fault::Request(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Limit(_)
        | Fault::Internal(_) => true,
        Fault::Storage(
            StorageFault::Full { .. } | StorageFault::Uncertain { .. } | StorageFault::Unavailable { .. },
        )
        | Fault::Access(_)
        | Fault::Missing(_) => false,
    }
}

/// Any complete key of the container.
pub(super) fn any_key(container: &Container) -> Result<PartitionKey, Fault> {
    let definition = &container.definition().partition_key;
    Ok(definition.key(vec![KeyComponent::Null; definition.paths().len()])?)
}
