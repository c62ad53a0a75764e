//! Maps faults of the store to `model::Fault`.

use kv::{CommitFault, ReadFault};
use model::{Fault, LimitFault, StorageFault};

/// The fault of a request whose read failed.
pub fn read_fault(fault: ReadFault) -> Fault {
    match fault {
        ReadFault::Damaged { .. } => damaged(fault.to_string()),
        ReadFault::Io { .. } | ReadFault::Poisoned | ReadFault::Closed => {
            StorageFault::Unavailable { cause: fault.to_string() }.into()
        }
        ReadFault::UnknownSpace { .. } => Fault::Internal(fault.to_string()),
    }
}

/// The fault of a request whose commit failed. Only [`StorageFault::Uncertain`] means that the outcome is unknown.
pub fn commit_fault(fault: CommitFault) -> Fault {
    match fault {
        CommitFault::Full { free_bytes, reserve_bytes } => {
            StorageFault::Full { free_bytes, reserve_bytes }.into()
        }
        CommitFault::Uncertain { cause } => StorageFault::Uncertain { cause: cause.to_string() }.into(),
        CommitFault::PreconditionFailed { .. }
        | CommitFault::ChainBroken
        | CommitFault::LaneCrowded { .. }
        | CommitFault::Poisoned { .. }
        | CommitFault::Closed => StorageFault::Unavailable { cause: fault.to_string() }.into(),
        CommitFault::Unreadable(cause) => read_fault(cause),
        CommitFault::TooLarge { size_bytes, limit_bytes } => {
            LimitFault::TransactionBytes { bytes: size_bytes, limit: limit_bytes }.into()
        }
        CommitFault::BadKey { .. }
        | CommitFault::ReservedKey { .. }
        | CommitFault::UnknownSpace { .. }
        | CommitFault::UnknownIngest { .. }
        | CommitFault::Unsorted { .. } => Fault::Internal(fault.to_string()),
    }
}

/// The fault for stored bytes that are invalid.
pub(crate) fn damaged(what: impl Into<String>) -> Fault {
    StorageFault::Damaged { what: what.into() }.into()
}
