//! What a caller asks of a script, and what it gets back.

use bytes::Bytes;
use std::sync::Arc;

/// One execution of a stored procedure or trigger.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the script, for stack traces.
    pub name: String,
    /// The text of the script: one function.
    pub source: Arc<str>,
    /// What the script is, with its input.
    pub role: Role,
    /// The links of the container that the script may use.
    pub links: Links,
    /// What the script reads as time.
    pub clock: Clock,
    /// The source of `Math.random` and of generated ids. Two calls with the same seed, the same clock and the same
    /// replies do the same.
    pub seed: u64,
    /// Whether `console.log` is recorded.
    pub logs: bool,
    /// The limits of the container as the script can read them.
    pub quota: Quota,
    /// Whether the call must have a runtime that no other call has. Otherwise it may end with
    /// [`CallFault::Again`](crate::CallFault::Again).
    pub needs_own_runtime: bool,
}

/// The kinds of scripts that operate on documents, with their input as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A stored procedure.
    Procedure {
        /// A JSON array with one element per argument of the function; empty for none.
        parameters: Bytes,
    },
    /// A trigger before a write. It may replace the document to be written.
    PreTrigger {
        /// The write.
        operation: TriggerOperation,
        /// The document of the request; empty for a delete.
        document: Bytes,
    },
    /// A trigger after a write, in the same transaction.
    PostTrigger {
        /// The write.
        operation: TriggerOperation,
        /// The document of the request; empty for a delete.
        request: Bytes,
        /// The document as written; empty for a delete.
        document: Bytes,
    },
}

/// The write that a trigger belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Each variant is the write of that name.
pub enum TriggerOperation {
    Create,
    Replace,
    Upsert,
    Delete,
}

/// The two links of the container of a call. Links of its documents start with either.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The link by RIDs.
    pub self_link: String,
    /// The link by names.
    pub alt_link: String,
}

/// What `Date` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// This time at the start of the call, in milliseconds since 1970, advancing with the monotonic clock of the
    /// worker. Scripts measure their own time with it.
    Running {
        /// Time at the start.
        start_ms: u64,
    },
    /// This time during the whole call, so that a run can be replayed.
    Fixed {
        /// The time.
        at_ms: u64,
    },
}

/// Texts that a response returns to scripts about the limits of the container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// The limits.
    pub max: String,
    /// What of them is used.
    pub usage: String,
}

/// A script that ended normally. Its operations are to be committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// The response body of a procedure as JSON text; `None` if it was never set.
    pub body: Option<Bytes>,
    /// The document that a pre-trigger has set in place of the one of the request, as JSON text.
    pub document: Option<Bytes>,
    /// What the script logged, if [`Call::logs`].
    pub log: String,
}
