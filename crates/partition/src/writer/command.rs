//! The commands of a writer.

use super::{KeyLock, SplitCommand};
use crate::basis::Basis;
use crate::partition::{Executed, IdleClose, Unexecuted};
use crate::published::Published;
use crate::tally::Tally;
use bytes::Bytes;
use kv::KeyRange;
use model::{EffectiveKey, Fault, Lsn, PartitionOrdinal, StorageFault, Work};
use plan::{StepFault, Transaction};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The channel for the answer to a transaction.
pub(crate) type Reply = oneshot::Sender<Result<Executed, Unexecuted>>;

/// The channel for the answer to the request of a lock.
pub(crate) type LockReply = oneshot::Sender<Result<KeyLock, Fault>>;

/// A transaction to execute.
pub(crate) struct Execution {
    pub(crate) transaction: Transaction,
    /// For the commit of a draft: what it is based on.
    pub(crate) basis: Option<Box<Basis>>,
    pub(crate) reply: Reply,
    /// Since when it waits for a lock to end.
    pub(crate) waits_since: Option<Instant>,
}

impl Execution {
    /// Whether others will follow soon. A lock is not held for them.
    pub(crate) fn is_followed(&self) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.is_followed && basis.lock.is_none())
    }

    /// Answers that nothing was done because of `fault`.
    pub(crate) fn refuse(self, fault: Fault) {
        let _ = self.reply.send(Err(StepFault { index: 0, fault, work: Work::Free }.into()));
    }
}

/// Commands of a writer.
pub(crate) enum Command {
    Execute(Execution),
    /// Locks a logical partition.
    Lock {
        /// The prefix of its keys.
        prefix: Bytes,
        reply: LockReply,
    },
    /// A reader needs the latest durable state and none is published.
    View {
        reply: oneshot::Sender<Result<Arc<Published>, Fault>>,
    },
    SetConsumer {
        name: String,
        lsn: Lsn,
        reply: oneshot::Sender<Result<(), Fault>>,
    },
    Trim {
        reply: oneshot::Sender<Result<bool, Fault>>,
    },
    /// Saves the progress of rewriting the expiry rows.
    Checkpoint {
        row: Bytes,
        reply: oneshot::Sender<Result<(), Fault>>,
    },
    /// The container's definition was replaced.
    Reshape,
    /// Notes changes after a cut from now on.
    Tally {
        cut: EffectiveKey,
        reply: oneshot::Sender<Result<Weak<Tally>, Fault>>,
    },
    /// Notes changes of a logical partition that may be large from now on.
    Weigh {
        keys: KeyRange,
        limit: u64,
        reply: oneshot::Sender<Result<Weak<Tally>, Fault>>,
    },
    /// Flushes the index.
    Flush {
        reply: oneshot::Sender<()>,
    },
    /// Seals the partition for a split.
    Split(Box<SplitCommand>),
    /// Separates the partition from its ancestors.
    Separate {
        reply: oneshot::Sender<Result<Vec<PartitionOrdinal>, Fault>>,
    },
    Close {
        reply: oneshot::Sender<Result<(), Fault>>,
    },
    /// The partition was not used for a while.
    CloseIdle {
        reply: oneshot::Sender<Result<IdleClose, Fault>>,
    },
}

impl Command {
    /// Answers the waiting commands that the partition has stopped. Other senders see a closed channel.
    pub(super) fn return_unexecuted(self) {
        match self {
            Command::Execute(Execution { transaction, reply, .. }) => {
                let _ = reply.send(Err(Unexecuted::Stopped(Box::new(transaction))));
            }
            Command::Lock { .. }
            | Command::View { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Tally { .. }
            | Command::Weigh { .. }
            | Command::Flush { .. }
            | Command::Split(_)
            | Command::Separate { .. }
            | Command::Close { .. }
            | Command::CloseIdle { .. } => {}
        }
    }

    /// Answers that nothing was done because of `fault`. Other senders than those of transactions and locks see a
    /// closed channel.
    pub(super) fn refuse(self, fault: Fault) {
        match self {
            Command::Execute(execution) => execution.refuse(fault),
            Command::Lock { reply, .. } => {
                let _ = reply.send(Err(fault));
            }
            Command::View { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Tally { .. }
            | Command::Weigh { .. }
            | Command::Flush { .. }
            | Command::Split(_)
            | Command::Separate { .. }
            | Command::Close { .. }
            | Command::CloseIdle { .. } => {}
        }
    }

    /// The answer to a command that was not accepted.
    pub(crate) fn into_unexecuted(self) -> Unexecuted {
        match self {
            Command::Execute(Execution { transaction, .. }) => Unexecuted::Stopped(Box::new(transaction)),
            Command::Lock { .. }
            | Command::View { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Tally { .. }
            | Command::Weigh { .. }
            | Command::Flush { .. }
            | Command::Split(_)
            | Command::Separate { .. }
            | Command::Close { .. }
            | Command::CloseIdle { .. } => {
                let fault = StorageFault::Unavailable { cause: "the partition has stopped".to_owned() };
                StepFault { index: 0, fault: fault.into(), work: Work::Free }.into()
            }
        }
    }
}
