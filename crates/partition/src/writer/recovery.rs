//! What the writer does when a batch was not committed: which transactions are refused, which run again, and from
//! which state it continues.
//!
//! A batch that was refused because of the head or the owner was evaluated on another state than the stored one: there
//! is another writer, or the container was dropped. The writer then ends. Waiting requests are routed again, which
//! opens the partition again.
//!
//! Any other refused batch has no effect, and nobody has seen its LSNs: the writer continues from the stored head, or
//! from the one it started with. After an unknown outcome it waits until the store was reopened, and continues after
//! all LSNs that may have been assigned.

use super::{InFlight, Writer};
use crate::head::Head;
use crate::log::LogPosition;
use crate::log::load_consumers;
use crate::owner::is_without_owner;
use crate::published::Published;
use crate::state::WriterState;
use crate::storage::{commit_fault, read_fault};
use crate::verdicts::{Retry, refuse};
use kv::{CommitFault, Durability, Health};
use model::{Fault, StorageFault};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is known of a failed batch. Of several failures the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BatchFailure {
    /// Nothing of it was applied, and everything acknowledged before is stored.
    Refused,
    /// It may be applied, or the store must be reopened, which may lose acknowledged batches that were not synced.
    Unknown,
    /// Nothing of it was applied, and this writer has lost the ownership of the partition.
    Lost,
}

impl BatchFailure {
    pub(super) fn of(fault: &CommitFault) -> BatchFailure {
        match fault {
            CommitFault::PreconditionFailed { .. } => BatchFailure::Lost,
            CommitFault::ChainBroken
            | CommitFault::LaneCrowded { .. }
            | CommitFault::Full { .. }
            | CommitFault::TooLarge { .. }
            | CommitFault::BadKey { .. }
            | CommitFault::ReservedKey { .. }
            | CommitFault::UnknownSpace { .. }
            | CommitFault::UnknownIngest { .. }
            | CommitFault::Unsorted { .. }
            | CommitFault::Unreadable(_) => BatchFailure::Refused,
            CommitFault::Uncertain { .. } | CommitFault::Poisoned { .. } | CommitFault::Closed => {
                BatchFailure::Unknown
            }
        }
    }
}

/// The transactions of a refused batch that run again.
fn retry_after(fault: &CommitFault) -> Retry {
    match fault {
        CommitFault::Full { .. } => Retry::Shrinking,
        // The contents of the batch were refused. Run alone, only the transaction that caused it is refused.
        CommitFault::TooLarge { .. } | CommitFault::BadKey { .. } | CommitFault::ReservedKey { .. } => {
            Retry::All
        }
        // This writer has lost the partition: it returns the waiting transactions for the current owner.
        CommitFault::PreconditionFailed { .. } => Retry::All,
        CommitFault::ChainBroken
        | CommitFault::LaneCrowded { .. }
        | CommitFault::Uncertain { .. }
        | CommitFault::Poisoned { .. }
        | CommitFault::Closed
        | CommitFault::UnknownSpace { .. }
        | CommitFault::UnknownIngest { .. }
        | CommitFault::Unsorted { .. }
        | CommitFault::Unreadable(_) => Retry::None,
    }
}

impl Writer {
    /// Handles a failed batch; all later ones fail too. Answers or queues their transactions and continues from the
    /// stored state.
    pub(super) async fn recover(&mut self, failed: InFlight, fault: CommitFault) {
        tracing::warn!(event = "batch_failed", partition = ?self.id, cause = %fault, "a batch was not committed");
        let mut failure = BatchFailure::of(&fault);
        let runs_again = retry_after(&fault);
        let client_fault = commit_fault(fault);
        let mut again = VecDeque::new();
        let is_to_blame = failed.decided.len() <= 1 && failure == BatchFailure::Refused;
        let of_failed = if is_to_blame && runs_again == Retry::All { Retry::None } else { runs_again };
        refuse(failed.decided, &client_fault, of_failed, &mut again);
        if of_failed == Retry::All && failure == BatchFailure::Refused {
            self.alone = again.len();
        }
        self.unresolved_keys.extend(failed.records.into_iter().map(|(key, _)| key));
        while let Some(mut batch) = self.in_flight.pop_front() {
            // The lane is broken, so none of these can be committed; waiting makes that certain.
            self.unresolved_keys.extend(batch.records.drain(..).map(|(key, _)| key));
            if let Err(fault) = (&mut batch.commit).await {
                failure = failure.max(BatchFailure::of(&fault));
                let is_open = matches!(fault, CommitFault::Uncertain { .. });
                let runs_again = if is_open { Retry::None } else { runs_again };
                // Later batches fail for the same full disk.
                let fault =
                    if runs_again == Retry::Shrinking { client_fault.clone() } else { commit_fault(fault) };
                refuse(batch.decided, &fault, runs_again, &mut again);
            }
        }
        // They came before the waiting commands.
        again.into_iter().rev().for_each(|command| self.backlog.push_front(command));
        self.batch_failed(failure).await;
    }

    /// Notes the failure of a batch. Reads the state again now if it is known, otherwise before the next evaluation.
    pub(super) async fn batch_failed(&mut self, failure: BatchFailure) {
        self.failure = self.failure.max(Some(failure));
        // They have noted changes that may not be stored, with LSNs that may be assigned again.
        self.last_writes = None;
        self.tally = None;
        self.weighed.clear();
        if let Err(fault) = self.reload().await
            && !self.has_ended
        {
            tracing::warn!(event = "partition_waits", partition = ?self.id, cause = %fault, "the partition waits until the store is reopened");
        }
    }

    /// Reads the state again. Nothing is submitted to the lane until then.
    async fn reload(&mut self) -> Result<(), Fault> {
        if self.failure == Some(BatchFailure::Lost) && !self.lane.is_rewound() {
            return Err(self.end().await);
        }
        let mut lane = match self.store.resolve_lane(&self.lane).await {
            Ok(lane) => lane,
            Err(fault) => {
                // The outcome of the last batches is not known yet.
                self.failure = Some(BatchFailure::Unknown);
                return Err(StorageFault::Unavailable { cause: fault.to_string() }.into());
            }
        };
        let view = self.store.view().await.map_err(read_fault)?;
        // After taking the view: the store marks the lanes of batches that may be lost as rewound before it provides a
        // view.
        if self.lane.is_rewound() {
            // Acknowledged batches may be lost, and index and cache may contain them.
            self.failure = Some(BatchFailure::Unknown);
            self.index.require_reopen();
            self.cache.clear();
            lane = self.store.lane();
        }
        // Batches that moved entries or trimmed may be among the lost ones.
        self.history_searched = LogPosition::default();
        let (head_row, head) = Head::load_row(&view, self.id).await?;
        self.head_row = head_row;
        self.consumers = load_consumers(&view, self.id).await?;
        self.catch_up_index(&view, &head).await?;
        let head = match self.failure {
            Some(BatchFailure::Refused) => head.after_refusal(&self.first_head),
            Some(BatchFailure::Lost | BatchFailure::Unknown) | None => {
                self.first_head = head.reopened();
                self.first_head.clone()
            }
        };
        self.lane = lane;
        self.tally = None;
        self.weighed.clear();
        self.last_writes = None;
        self.locks.note_all();
        self.numbering.raise_to(&head);
        self.publish(view.clone(), &head);
        self.state = WriterState::new(view, head);
        self.failure = None;
        // A batch with an unknown outcome may be stored, with expiry rows that were not noted.
        self.shape.note_expiry(0);
        // Readers see the decided outcome from now on.
        for key in self.unresolved_keys.drain(..) {
            self.cache.end_write(&key);
        }
        Ok(())
    }

    /// Ends the writer, which has lost the ownership of the partition. Nothing may be served from its state; refused
    /// batches had no effect.
    async fn end(&mut self) -> Fault {
        let is_dropped = matches!(is_without_owner(&self.store, self.id).await, Ok(true));
        let cause = if is_dropped { "the container was deleted" } else { "the partition has another writer" };
        if is_dropped {
            tracing::debug!(event = "partition_dropped", partition = ?self.id, "the container of the partition was deleted; its writer ends");
        } else if !self.has_ended {
            tracing::warn!(event = "ownership_lost", partition = ?self.id, "another writer owns the partition; this one ends");
        }
        self.has_ended = true;
        self.publish_without_view();
        for key in self.unresolved_keys.drain(..) {
            self.cache.end_write(&key);
        }
        StorageFault::Unavailable { cause: cause.to_owned() }.into()
    }

    /// Makes sure that there is a view to evaluate transactions on, and returns it.
    pub(super) async fn ensure_view(&mut self) -> Result<Arc<Published>, Fault> {
        if self.lane.is_rewound() && self.in_flight.is_empty() {
            self.failure = Some(BatchFailure::Unknown);
        }
        if self.failure.is_some() {
            self.reload().await?;
        }
        let published = self.published.load_full();
        match &published.view {
            // A batch in flight brings a new view with its answer.
            Some(view) if view.is_live() || !self.in_flight.is_empty() => {
                return Ok(published);
            }
            // The store was reopened because of another lane, or this writer was idle.
            Some(_) | None => {}
        }
        let view = self.store.view().await.map_err(read_fault)?;
        if self.durability == Durability::Buffered
            && let Health::Poisoned { cause } = self.store.health()
        {
            // Only after the reopen is it known whether batches of this writer are lost.
            return Err(StorageFault::Unavailable { cause: cause.to_string() }.into());
        }
        if self.lane.is_rewound() {
            self.failure = Some(BatchFailure::Unknown);
            self.reload().await?;
            return Ok(self.published.load_full());
        }
        self.state.set_view(view.clone());
        Ok(self.publish(view, &self.state.head))
    }
}
