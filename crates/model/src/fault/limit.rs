//! Limits that a request exceeds.

use std::time::Duration;
use thiserror::Error;

/// A published limit is exceeded.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LimitFault {
    /// The body or item is too large.
    #[error("{bytes} bytes are too many, {limit} allowed")]
    TooLarge {
        /// Its size, as far as it was counted when the limit was reached.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A transaction would write more bytes than one commit of the store accepts.
    #[error("the transaction writes {bytes} bytes, {limit} allowed: no changes were made")]
    TransactionBytes {
        /// Bytes counted when the limit was reached.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A logical partition has as many bytes as it may have, and the write would add to them.
    #[error("the documents of the partition key have {bytes} bytes, {limit} allowed: no changes were made")]
    LogicalPartitionFull {
        /// Bytes that they would have.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Partition key and id of a document form a key that is too long for the store.
    #[error("the key of the document has {bytes} bytes, {limit} allowed")]
    KeyBytes {
        /// Bytes of the key.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A transaction would change too many documents.
    #[error("the transaction changes {documents} documents, {limit} allowed: no changes were made")]
    TransactionDocuments {
        /// Documents counted when the limit was reached.
        documents: usize,
        /// The limit.
        limit: usize,
    },
    /// A transaction was not committed in its time.
    #[error("the transaction was not committed within {} ms: no changes were made", limit.as_millis())]
    TransactionTime {
        /// The time that it was granted.
        limit: Duration,
    },
    /// The requested documents are larger than an answer may be.
    #[error("the documents of the answer have {bytes} bytes, {limit} allowed: ask for fewer in one request")]
    AnswerBytes {
        /// Bytes counted when the limit was reached.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many operations in one request.
    #[error("{given} operations in one request, {limit} allowed")]
    TooManyOperations {
        /// Operations sent.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// A document has too many members.
    #[error("{given} members are too many, {limit} allowed")]
    TooManyMembers {
        /// Its members.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// A container has the maximum number of resources of a kind.
    #[error("the container has {limit} {what}, which is the most it can have")]
    TooManyResources {
        /// The kind.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The container has no more numbers, LSNs or ordinals.
    #[error("the container has used up its {what}")]
    Exhausted {
        /// What is used up.
        what: &'static str,
    },
    /// The partition's queue is full, or the caller has too many queries in progress: retry soon.
    #[error("the caller has too many requests in progress: no changes were made")]
    Busy {
        /// When to retry.
        retry_after_ms: u64,
    },
    /// The provisioned throughput of the partition, or of the database that shares it, is used up.
    #[error("the request rate is higher than the provisioned throughput: no changes were made")]
    Throughput {
        /// When to retry.
        retry_after_ms: u64,
    },
    /// All callers together have too many queries in progress.
    #[error("the server is busy with other queries")]
    Overloaded {
        /// When to retry.
        retry_after_ms: u64,
    },
    /// The query was stopped because the server stops.
    #[error("the server is stopping")]
    Stopping {
        /// When to retry, possibly on another server.
        retry_after_ms: u64,
    },
}

impl LimitFault {
    /// When to retry, if a retry may succeed.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            LimitFault::Busy { retry_after_ms }
            | LimitFault::Throughput { retry_after_ms }
            | LimitFault::Overloaded { retry_after_ms }
            | LimitFault::Stopping { retry_after_ms } => Some(*retry_after_ms),
            LimitFault::TooLarge { .. }
            | LimitFault::AnswerBytes { .. }
            | LimitFault::TransactionBytes { .. }
            | LimitFault::KeyBytes { .. }
            | LimitFault::TransactionDocuments { .. }
            | LimitFault::TransactionTime { .. }
            | LimitFault::TooManyOperations { .. }
            | LimitFault::TooManyMembers { .. }
            | LimitFault::TooManyResources { .. }
            | LimitFault::LogicalPartitionFull { .. }
            | LimitFault::Exhausted { .. } => None,
        }
    }
}
