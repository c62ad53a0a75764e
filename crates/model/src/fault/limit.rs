//! Bounds that a request exceeds.

use thiserror::Error;

/// A published bound is exceeded.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LimitFault {
    /// The body or item is too large.
    #[error("{bytes} bytes are too many, {limit} allowed")]
    TooLarge {
        /// Its size; what was counted when the limit was met.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A transaction would write more than one commit of the store takes.
    #[error("the transaction writes {bytes} bytes, {limit} allowed: no changes were made")]
    TransactionBytes {
        /// What was counted when the limit was met.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// Partition key and id of a document make a longer key than the store takes.
    #[error("the key of the document has {bytes} bytes, {limit} allowed")]
    KeyBytes {
        /// Bytes of the key.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A transaction would change too many documents.
    #[error("the transaction changes {documents} documents, {limit} allowed: no changes were made")]
    TransactionDocuments {
        /// What was counted when the limit was met.
        documents: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// The documents that a request asks for are larger than an answer may be.
    #[error("the documents of the answer have {bytes} bytes, {limit} allowed: ask for fewer in one request")]
    AnswerBytes {
        /// What was counted when the limit was met.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// Too many operations in one request.
    #[error("{given} operations in one request, {limit} allowed")]
    TooManyOperations {
        /// Operations sent.
        given: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A container has as many resources of a kind as it can have.
    #[error("the container has {limit} {what}, which is the most it can have")]
    TooManyResources {
        /// What there are too many of.
        what: &'static str,
        /// The most that is allowed.
        limit: usize,
    },
    /// Numbers, LSNs or ordinals of a container ran out.
    #[error("the container has used up its {what}")]
    Exhausted {
        /// What ran out.
        what: &'static str,
    },
    /// The partition's queue is full, or the caller has too many queries under way: try again soon.
    #[error("the caller has too many requests in progress: no changes were made")]
    Busy {
        /// When to try again.
        retry_after_ms: u64,
    },
    /// All callers together have too many queries under way.
    #[error("the server is busy with other queries")]
    Overloaded {
        /// When to try again.
        retry_after_ms: u64,
    },
    /// The query was stopped because the server stops.
    #[error("the server is stopping")]
    Stopping {
        /// When to try again, perhaps somewhere else.
        retry_after_ms: u64,
    },
}

impl LimitFault {
    /// When to try again, if that may help.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            LimitFault::Busy { retry_after_ms }
            | LimitFault::Overloaded { retry_after_ms }
            | LimitFault::Stopping { retry_after_ms } => Some(*retry_after_ms),
            LimitFault::TooLarge { .. }
            | LimitFault::AnswerBytes { .. }
            | LimitFault::TransactionBytes { .. }
            | LimitFault::KeyBytes { .. }
            | LimitFault::TransactionDocuments { .. }
            | LimitFault::TooManyOperations { .. }
            | LimitFault::TooManyResources { .. }
            | LimitFault::Exhausted { .. } => None,
        }
    }
}
