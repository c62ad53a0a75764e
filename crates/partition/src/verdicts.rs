//! Transactions that were evaluated and wait for their commit, and the answers to them.

use crate::evaluate::Outcomes;
use crate::partition::{Executed, Unexecuted};
use crate::writer::{Command, Execution};
use kv::{DiskSpace, Store};
use model::{Fault, Lsn, StorageFault};
use plan::{DocumentOperation, Mutation, StepFault, Transaction};
use std::collections::VecDeque;

/// A transaction that was evaluated and waits for its commit.
pub(crate) struct Decided {
    pub(crate) execution: Execution,
    pub(crate) verdict: Result<Outcomes, StepFault>,
}

/// Whether a transaction can only free space.
pub(crate) fn is_shrinking(transaction: &Transaction) -> bool {
    transaction.operations.iter().all(|operation| match operation {
        DocumentOperation::Read { .. } => true,
        DocumentOperation::Write(mutation) => match mutation {
            Mutation::Delete { .. } | Mutation::Expire { .. } => true,
            Mutation::Create { .. }
            | Mutation::Upsert { .. }
            | Mutation::Replace { .. }
            | Mutation::Merge { .. }
            | Mutation::Patch { .. }
            | Mutation::Reschedule { .. } => false,
        },
    })
}

pub(crate) fn full_fault(store: &Store) -> Option<Fault> {
    let DiskSpace { free_bytes, reserve_bytes } = store.shortage()?;
    Some(StorageFault::Full { free_bytes, reserve_bytes }.into())
}

pub(crate) fn answer(decided: Vec<Decided>, lsn: Lsn) {
    for one in decided {
        let _ = one
            .execution
            .reply
            .send(one.verdict.map(|outcomes| Executed { outcomes, lsn }).map_err(Unexecuted::from));
    }
}

/// The transactions of a failed batch that run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    None,
    /// Those that only free space: the disk was too full for the others.
    Shrinking,
    All,
}

/// Answers the transactions of a failed batch that do not run again.
pub(crate) fn refuse(decided: Vec<Decided>, fault: &Fault, runs: Retry, again: &mut VecDeque<Command>) {
    for one in decided {
        let runs_again = match runs {
            Retry::None => false,
            Retry::Shrinking => is_shrinking(&one.execution.transaction),
            Retry::All => true,
        };
        if runs_again {
            again.push_back(Command::Execute(one.execution));
        } else {
            one.execution.refuse(fault.clone());
        }
    }
}
