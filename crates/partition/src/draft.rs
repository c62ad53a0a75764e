//! Uncommitted changes of one logical partition and the resulting state: what a transaction outside the writer sees of
//! its own writes.
//!
//! Operations are evaluated as in the writer, on one committed state and at one time. To commit them, the writer runs
//! them again, provided that nobody else has changed the logical partition since. Document numbers and ETags are final:
//! the draft assigns them, and the writer uses them again. So is the time of a version, unless others have written to
//! the partition at that time or later. LSNs are provisional.

use crate::basis::Basis;
use crate::evaluate::evaluate_step;
use crate::head::Head;
use crate::index::Changes;
use crate::keyspace::{EXPIRY, NUMBERS, RECORDS};
use crate::numbering::{Identity, OpenDraft};
use crate::partition::PartitionCounts;
use crate::staging::{Accepted, StagingContext, TRANSACTION_BYTES_MAX, TRANSACTION_DOCUMENTS_MAX};
use crate::state::{Rows, WriterState};
use crate::view::PartitionView;
use crate::writer::KeyLock;
use model::{Ambient, Fault, LimitFault, Lsn, Ticks, Work};
use plan::{Condition, DocumentOperation, LogicalKey, Mutation, Outcome, Returned, Transaction};
use std::sync::Arc;

/// The number of the one batch that contains all uncommitted rows.
const BATCH: u64 = 0;

/// Uncommitted changes of a logical partition over one committed state.
#[derive(Debug)]
pub struct Draft {
    base: PartitionView,
    begun: Ticks,
    ambient: Arc<dyn Ambient>,
    /// The committed state with all rows of the changes, including unique rows.
    state: WriterState,
    /// The rows that readers of documents need.
    rows: Arc<Rows>,
    /// Bytes of all rows written, keys included.
    bytes: usize,
    changes: Changes,
    /// The operations that have changed something, and what was assigned to each.
    transaction: Transaction,
    identities: Vec<Identity>,
    /// The state after the changes so far, if a reader has asked for it.
    view: Option<Arc<PartitionView>>,
    open: OpenDraft,
    lock: Option<KeyLock>,
    is_followed: bool,
}

impl Draft {
    pub(crate) fn begin(
        base: PartitionView,
        key: LogicalKey,
        begun: Ticks,
        ambient: Arc<dyn Ambient>,
        open: OpenDraft,
        lock: Option<KeyLock>,
    ) -> Draft {
        // One time decides what has expired, for single reads and for queries.
        let base = base.at_seconds(begun.seconds());
        // As in the writer: a partition that was written under a wrong clock returns to the right one.
        let is_ahead = base.time.seconds() > begun.seconds();
        let time = if is_ahead { Ticks::from_seconds(begun.seconds()) } else { base.time };
        let head = Head::of_draft(base.lsn, time, base.counts);
        Draft {
            state: WriterState::new(base.view.base().clone(), head),
            base,
            begun,
            ambient,
            rows: Arc::default(),
            bytes: 0,
            changes: Changes::new(),
            transaction: Transaction { key, operations: Vec::new(), returned: Returned::Reads },
            identities: Vec::new(),
            view: None,
            open,
            lock,
            is_followed: false,
        }
    }

    /// Others will be committed soon, so that this one may wait a moment and share a batch with them.
    pub fn set_followed(&mut self) {
        self.is_followed = true;
    }

    /// Performs an operation. If it is refused, the draft is unchanged.
    pub async fn execute(&mut self, operation: DocumentOperation) -> Result<(Outcome, Work), Fault> {
        let numbering = Arc::clone(self.open.numbering());
        let steps = usize::from(matches!(operation, DocumentOperation::Write(_)));
        let taken = numbering.take(steps);
        (self.state.head.counter, self.state.head.stamp) = (taken.counter, taken.stamp);
        let evaluated = self.evaluated(&operation).await;
        let used = match &evaluated {
            Ok((accepted, ..)) if steps > 0 => {
                Identity { counter: accepted.head.counter, stamp: accepted.head.stamp }
            }
            Ok(_) | Err(_) => taken,
        };
        numbering.give_back(taken, steps, used);
        let (accepted, outcome, work) = evaluated?;
        if let DocumentOperation::Write(mutation) = operation {
            self.transaction.operations.push(DocumentOperation::Write(unconditional(mutation)));
            self.identities.push(taken);
            self.apply(accepted);
        }
        Ok((outcome, work))
    }

    async fn evaluated(&self, operation: &DocumentOperation) -> Result<(Accepted, Outcome, Work), Fault> {
        let context = StagingContext {
            partition: self.base.partition,
            lineage: &self.base.lineage,
            counted: [None, None],
            shape: &self.base.shape,
            now: self.begun,
            // No log entry is deleted for a change that may never be committed.
            lsn_consumed: Lsn(0),
            ambient: &*self.ambient,
        };
        let evaluated = evaluate_step(context, &self.state, &self.transaction.key, operation).await?;
        let (Accepted { bytes, changes, .. }, ..) = &evaluated;
        let new = changes.keys().filter(|number| !self.changes.contains_key(number)).count();
        check_bounds(self.bytes + bytes, self.changes.len() + new)?;
        Ok(evaluated)
    }

    fn apply(&mut self, accepted: Accepted) {
        self.view = None;
        self.bytes += accepted.bytes;
        self.state.submitted(BATCH, &accepted.rows);
        self.state.head = accepted.head;
        self.changes.extend(accepted.changes);
        let is_read = |(space, _): &(kv::Space, bytes::Bytes)| [RECORDS, NUMBERS, EXPIRY].contains(space);
        let rows = accepted.rows.into_iter().filter(|(key, _)| is_read(key));
        Arc::make_mut(&mut self.rows).extend(rows);
    }

    /// The state after the changes so far. It has the LSN of the committed state, because clients have seen nothing
    /// later.
    pub fn view(&mut self) -> Arc<PartitionView> {
        if let Some(view) = &self.view {
            return Arc::clone(view);
        }
        let view = match self.has_changes() {
            false => self.base.clone(),
            true => {
                let index = self.base.index.as_ref().map(|index| Arc::new(index.with_changes(&self.changes)));
                let Head { documents, bytes, .. } = self.state.head;
                PartitionView {
                    view: self.base.view.with_overlay(Arc::clone(&self.rows)),
                    index,
                    counts: PartitionCounts { documents, bytes },
                    ..self.base.clone()
                }
            }
        };
        Arc::clone(self.view.insert(Arc::new(view)))
    }

    /// Whether there is something to commit.
    pub fn has_changes(&self) -> bool {
        !self.transaction.operations.is_empty()
    }

    /// Bytes of all rows that its changes have written, keys included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether half of what a transaction may write is written: who can continue in another transaction should.
    pub fn is_half_full(&self) -> bool {
        self.bytes >= TRANSACTION_BYTES_MAX / 2 || self.changes.len() >= TRANSACTION_DOCUMENTS_MAX / 2
    }

    /// The LSN of the committed state on which the draft is based.
    pub fn lsn(&self) -> Lsn {
        self.base.lsn
    }

    /// What the writer needs to run the operations again, and the lock to hold meanwhile. The committed state is
    /// released.
    pub(crate) fn into_commit(self) -> (Transaction, Basis, Option<KeyLock>) {
        let basis = Basis {
            lsn: self.base.lsn,
            begun: self.begun,
            shape: self.base.shape,
            identities: self.identities,
            lock: self.lock.as_ref().map(|lock| lock.id),
            is_followed: self.is_followed,
            draft: self.open,
        };
        (self.transaction, basis, self.lock)
    }
}

/// The same change without its conditions. They have been met, and are met again as long as nobody else changes the
/// logical partition; some depend on the time or on chance.
fn unconditional(mutation: Mutation) -> Mutation {
    let condition = Condition::None;
    match mutation {
        Mutation::Upsert { item, .. } => Mutation::Upsert { item, condition },
        Mutation::Replace { target, item, rename, .. } => {
            Mutation::Replace { target, item, condition, rename }
        }
        Mutation::Merge { item, absent, check, .. } => Mutation::Merge { item, condition, absent, check },
        Mutation::Patch { target, operations, .. } => {
            Mutation::Patch { target, operations, condition, filter: None }
        }
        Mutation::Delete { target, .. } => Mutation::Delete { target, condition },
        Mutation::Create { .. } | Mutation::Expire { .. } | Mutation::Reschedule { .. } => mutation,
    }
}

/// All changes of a draft are limited like one transaction, because they are committed as one.
fn check_bounds(bytes: usize, documents: usize) -> Result<(), LimitFault> {
    if bytes > TRANSACTION_BYTES_MAX {
        return Err(LimitFault::TransactionBytes { bytes, limit: TRANSACTION_BYTES_MAX });
    }
    if documents > TRANSACTION_DOCUMENTS_MAX {
        return Err(LimitFault::TransactionDocuments { documents, limit: TRANSACTION_DOCUMENTS_MAX });
    }
    Ok(())
}
