//! Everything that can go wrong with a request, by family, with the data that identifies the cause.
//!
//! Contains no wire codes: each API maps a fault to its protocol in one exhaustive match.

mod access;
mod change_feed;
mod definition;
mod evaluation;
mod limit;
mod request;

pub use access::{AccessFault, BearerFault, DataAction, ScopeName};
pub use change_feed::ChangeFeedFault;
pub use definition::{
    ComputedRule, DefinitionList, DefinitionNumber, DefinitionPart, DefinitionRule, EncryptionRule,
    IndexRule, NameRule, PolicyPathError, ThroughputRule,
};
pub use evaluation::{EvaluationFault, UserFunctionFault};
pub use limit::LimitFault;
pub use request::{ContinuationFault, PropertyRule, RequestFault};

use crate::Etag;
use std::time::Duration;
use thiserror::Error;

/// A refused or failed request.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Fault {
    /// The request itself is wrong; the same request can never succeed.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// The caller is not permitted to do this.
    #[error(transparent)]
    Access(#[from] AccessFault),
    /// The named resource does not exist.
    #[error(transparent)]
    Missing(#[from] MissingFault),
    /// The request conflicts with the stored state.
    #[error(transparent)]
    Conflict(#[from] ConflictFault),
    /// A condition that the client set does not hold.
    #[error(transparent)]
    Precondition(#[from] PreconditionFault),
    /// A query that cannot be answered.
    #[error(transparent)]
    Query(#[from] QueryFault),
    /// A published limit is exceeded.
    #[error(transparent)]
    Limit(#[from] LimitFault),
    /// The store cannot serve the request now.
    #[error(transparent)]
    Storage(#[from] StorageFault),
    /// A bug of the server; the text is for the log and the report.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<ChangeFeedFault> for Fault {
    fn from(fault: ChangeFeedFault) -> Fault {
        RequestFault::ChangeFeed(fault).into()
    }
}

/// A query cannot be answered.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum QueryFault {
    /// A value cannot be computed.
    #[error("the query cannot be evaluated: {0}")]
    Evaluation(#[from] EvaluationFault),
    /// The query needs more memory than granted.
    #[error("the query needs more than {bytes_max} bytes of memory: filter more, or ask for fewer rows")]
    MemoryExceeded {
        /// Bytes that were granted.
        bytes_max: usize,
    },
    /// The query reads more rows than granted.
    #[error("the query looks at more than {rows_max} rows: filter more, or join less")]
    RowsExceeded {
        /// Rows that were granted.
        rows_max: u64,
    },
    /// A page takes more time than granted.
    #[error(
        "the query did not finish a page within {milliseconds_max} ms: filter more, or read fewer partitions at once"
    )]
    TimeExceeded {
        /// Milliseconds that were granted.
        milliseconds_max: u64,
    },
}

/// A named resource does not exist.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MissingFault {
    /// The database or container that owns the resource is absent.
    #[error("the owner of the resource does not exist")]
    Owner,
    /// The resource itself is absent.
    #[error("the resource does not exist")]
    Resource,
    /// The partition key range never existed.
    #[error("the partition key range \"{id}\" does not exist")]
    Range {
        /// The id the client sent.
        id: String,
    },
    /// The client has seen a later state than this store has.
    #[error("the session token names a state that this store has not reached")]
    Session,
}

/// The request conflicts with the stored state.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConflictFault {
    /// Another resource has this id.
    #[error("another resource has this id")]
    Id,
    /// The user has another permission for the same resource.
    #[error("the user already has the permission \"{id}\" for this resource")]
    Permission {
        /// The id of that permission.
        id: String,
    },
    /// Another item has the same values for a unique key.
    #[error("another item has the same values for the unique key {constraint}")]
    UniqueKey {
        /// Index of the constraint in the policy, from 0.
        constraint: usize,
    },
    /// The logical partition was changed by others while a transaction used it. The same transaction may succeed if it
    /// is run again.
    #[error("the documents of the partition key were changed during the transaction: no changes were made")]
    ConcurrentChange,
    /// The partitions are still split for an earlier change of the throughput.
    #[error("an earlier change of the throughput is not complete: its partitions are still split")]
    ThroughputPending,
    /// Another transaction has locked the logical partition.
    #[error("another transaction has locked the partition key for {} ms: no changes were made", waited.as_millis())]
    Locked {
        /// How long the request has waited.
        waited: Duration,
    },
}

/// A condition of the client does not hold.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PreconditionFault {
    /// The resource has another version.
    #[error("the condition is not met: the version is {current}")]
    EtagMismatch {
        /// The current version.
        current: Etag,
    },
    /// The resource exists and the condition requires that it does not.
    #[error("the condition is not met: the resource exists")]
    Exists,
    /// The resource does not exist and the condition requires that it does.
    #[error("the condition is not met: the resource does not exist")]
    Absent,
    /// The stored version does not satisfy the client's filter.
    #[error("the condition is not met: the stored version does not satisfy the filter")]
    Filter,
    /// A member of the stored version has another value than the condition requires.
    #[error("the condition is not met: the stored version has another {member}")]
    OtherText {
        /// The name of the member.
        member: &'static str,
    },
}

/// The store cannot serve the request now.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StorageFault {
    /// The disk is nearly full: writes that need space are refused, reads and deletes continue.
    #[error(
        "the disk is nearly full ({free_bytes} bytes free, {reserve_bytes} kept in reserve): no changes were made"
    )]
    Full {
        /// Bytes free.
        free_bytes: u64,
        /// Bytes that are kept free.
        reserve_bytes: u64,
    },
    /// The write may or may not have happened; a read shows which.
    #[error("the outcome of the write is unknown: {cause}")]
    Uncertain {
        /// The error of the storage.
        cause: String,
    },
    /// The store is not available at the moment; nothing was changed.
    #[error("the store is not available: {cause}")]
    Unavailable {
        /// The reason.
        cause: String,
    },
    /// Stored bytes differ from what was written.
    #[error("stored data is damaged: {what}")]
    Damaged {
        /// Which data.
        what: String,
    },
}
