//! Uncommitted changes of a partition and the resulting state: what a script sees of its own writes.
//!
//! Changes are evaluated as in the writer, on one committed state, and are never committed. LSNs, document numbers and
//! ETags are those that the writer would assign if nothing else were written meanwhile, so they are provisional.

use crate::clock::PartitionClock;
use crate::evaluate::{Outcomes, evaluate};
use crate::head::Head;
use crate::index::Changes;
use crate::keyspace::{EXPIRY, NUMBERS, RECORDS};
use crate::partition::PartitionCounts;
use crate::staging::{StagingContext, TRANSACTION_BYTES_MAX, TRANSACTION_DOCUMENTS_MAX};
use crate::state::{Rows, WriterState};
use crate::view::PartitionView;
use model::{Ambient, Fault, LimitFault, Lsn, Work};
use plan::{StepFault, Transaction};
use std::sync::Arc;

/// The number of the one batch that contains all uncommitted rows.
const BATCH: u64 = 0;

/// Uncommitted changes over one committed state of a partition.
#[derive(Debug)]
pub struct Draft {
    base: PartitionView,
    clock: Arc<PartitionClock>,
    ambient: Arc<dyn Ambient>,
    /// The committed state with all rows of the changes, including unique rows.
    state: WriterState,
    /// The rows that readers of documents need.
    rows: Rows,
    /// Bytes of all rows written, keys included.
    bytes: usize,
    changes: Changes,
}

impl Draft {
    pub(crate) async fn begin(
        base: PartitionView,
        clock: Arc<PartitionClock>,
        ambient: Arc<dyn Ambient>,
    ) -> Result<Draft, Fault> {
        let committed = base.view.base().clone();
        let head = Head::load(&committed, base.partition).await?;
        let state = WriterState::new(committed, head);
        Ok(Draft { base, clock, ambient, state, rows: Rows::new(), bytes: 0, changes: Changes::new() })
    }

    /// Adds the changes of a transaction: all of them, or none if a step is refused.
    pub async fn execute(&mut self, transaction: &Transaction) -> Result<Outcomes, StepFault> {
        let context = StagingContext {
            partition: self.base.partition,
            lineage: &self.base.lineage,
            counted: [None, None],
            shape: &self.base.shape,
            now: self.clock.now_ticks(),
            // No log entry is deleted for a change that may never be committed.
            lsn_consumed: Lsn(0),
            ambient: &*self.ambient,
        };
        let (accepted, outcomes) = evaluate(context, &self.state, transaction).await?;
        let bytes = self.bytes + accepted.bytes;
        let new = accepted.changes.keys().filter(|number| !self.changes.contains_key(number)).count();
        check_bounds(bytes, self.changes.len() + new).map_err(|fault| StepFault {
            index: 0,
            fault: fault.into(),
            work: Work::Lookup,
        })?;
        self.bytes = bytes;
        self.state.submitted(BATCH, &accepted.rows);
        self.state.head = accepted.head;
        self.changes.extend(accepted.changes);
        let is_read = |(space, _): &(kv::Space, bytes::Bytes)| [RECORDS, NUMBERS, EXPIRY].contains(space);
        self.rows.extend(accepted.rows.into_iter().filter(|(key, _)| is_read(key)));
        Ok(outcomes)
    }

    /// The state after the changes so far. It has the LSN of the committed state, because clients have seen nothing
    /// later.
    pub fn view(&self) -> PartitionView {
        let index = self.base.index.as_ref().map(|index| Arc::new(index.with_changes(&self.changes)));
        let Head { documents, bytes, .. } = self.state.head;
        PartitionView {
            view: self.base.view.with_overlay(self.rows.clone()),
            index,
            counts: PartitionCounts { documents, bytes },
            ..self.base.clone()
        }
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
