//! The commands of a writer.

use super::SplitCommand;
use crate::partition::{Executed, IdleClose, Unexecuted};
use crate::published::Published;
use crate::split::Separation;
use bytes::Bytes;
use kv::KeyRange;
use model::{EffectiveKey, Fault, Lsn, StorageFault, Work};
use plan::{StepFault, Transaction};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The channel for the answer to a transaction.
pub(crate) type Reply = oneshot::Sender<Result<Executed, Unexecuted>>;

/// Commands of a writer.
pub(crate) enum Command {
    Execute {
        transaction: Transaction,
        reply: Reply,
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
    /// Counts some documents after a cut.
    Tally {
        cut: EffectiveKey,
        reply: oneshot::Sender<Result<bool, Fault>>,
    },
    /// Counts some documents of a logical partition that may be large.
    Weigh {
        keys: KeyRange,
        limit: u64,
        reply: oneshot::Sender<Result<bool, Fault>>,
    },
    /// Flushes the index.
    Flush {
        reply: oneshot::Sender<()>,
    },
    /// Seals the partition for a split.
    Split(Box<SplitCommand>),
    /// Separates the partition from its ancestors, one step.
    Separate {
        reply: oneshot::Sender<Result<Separation, Fault>>,
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
            Command::Execute { transaction, reply } => {
                let _ = reply.send(Err(Unexecuted::Stopped(Box::new(transaction))));
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
            Command::Execute { transaction, .. } => Unexecuted::Stopped(Box::new(transaction)),
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
            | Command::CloseIdle { .. } => {
                let fault = StorageFault::Unavailable { cause: "the partition has stopped".to_owned() };
                StepFault { index: 0, fault: fault.into(), work: Work::Free }.into()
            }
        }
    }
}
