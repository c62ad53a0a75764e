//! Wanted changes: one to one document, or several in one logical partition as one commit.

use crate::Outcome;
use crate::{Filter, Item};
use model::{DocumentNumber, EffectiveKey, PartitionKey};
use value::PatchOperation;

/// A complete partition key with its hash: the name of one logical partition.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalKey {
    /// The values.
    pub partition_key: PartitionKey,
    /// Their hash.
    pub effective: EffectiveKey,
}

/// Which document of a logical partition is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The one with this id.
    Id(String),
    /// The one with this number, from its RID.
    Number(DocumentNumber),
}

/// What must be true of the stored version for the operation to go ahead.
///
/// ETags are compared as the client sent them: text that is no ETag of ours matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Anything goes.
    #[default]
    None,
    /// The stored version has this ETag.
    IfMatch(String),
    /// There is a stored version.
    IfExists,
    /// The stored version has another ETag; on a read, equality means "not modified".
    IfNoneMatch(String),
    /// There is no stored version.
    IfAbsent,
}

/// Whether who sent a replace may give the document another id.
///
/// A target that names a number does not tell the id of the stored version, so only the partition can compare the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// Every free id of the logical partition is within their rights.
    Allowed,
    /// They may write to this document only.
    Refused,
}

/// What a merge does that finds no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// It stores its members as a new document.
    Create,
    /// It is refused.
    Refuse,
}

/// A wanted change to one document.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// Store a document whose id is free.
    Create {
        /// The new document.
        item: Item,
        /// Usually none; `IfAbsent` is what a create means anyway.
        condition: Condition,
    },
    /// Store a document, whether or not its id is free.
    Upsert {
        /// The new document or version.
        item: Item,
        /// Checked only when the id is taken, except [`Condition::IfExists`].
        condition: Condition,
    },
    /// Store a new version of a document that is there.
    Replace {
        /// Which document.
        target: Target,
        /// The new version.
        item: Item,
        /// Of the stored version.
        condition: Condition,
        /// Whether the id of the new version may differ from that of the stored one.
        rename: Rename,
    },
    /// Put members into a document: those given replace those of the stored version with the same names, the others
    /// stay as they are.
    Merge {
        /// The members, with the id that names the document. It need not have the partition key, unless it may be
        /// stored as a new document.
        item: Item,
        /// Checked only when there is a stored version.
        condition: Condition,
        /// What happens if there is none.
        absent: WhenAbsent,
    },
    /// Change parts of a document that is there.
    Patch {
        /// Which document.
        target: Target,
        /// The changes, in order, all or nothing.
        operations: Vec<PatchOperation>,
        /// Of the stored version.
        condition: Condition,
        /// What must be true of the stored version beside.
        filter: Option<Filter>,
    },
    /// Remove a document that is there.
    Delete {
        /// Which document.
        target: Target,
        /// Of the stored version.
        condition: Condition,
    },
    /// Remove a document if it has expired; not an error if it has not or is gone. Sent by the expiry job.
    Expire {
        /// Which document.
        number: DocumentNumber,
        /// The second under which its expiry was noted.
        second: u64,
    },
    /// Note anew when a document expires, after the container's default changed. Sent by the expiry job.
    Reschedule {
        /// Which document.
        number: DocumentNumber,
    },
}

/// A step of a transaction.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Change a document.
    Write(Mutation),
    /// Read a document as the steps before have left it.
    Read {
        /// Which document.
        target: Target,
        /// `IfNoneMatch` answers "not modified".
        condition: Condition,
    },
}

/// Several steps in one logical partition: one commit, all or nothing. A single change is a transaction of one.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The logical partition.
    pub key: LogicalKey,
    /// The steps, in order.
    pub operations: Vec<Operation>,
    /// What comes back.
    pub returned: Returned,
}

/// Which documents come back to whoever sent a transaction. They are bounded together, so that a small request cannot
/// ask for an answer of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Those that were read and those that were written.
    All,
    /// Those that were read.
    Reads,
}

impl Returned {
    /// Bytes of the document that comes back for a step.
    pub fn bytes(self, outcome: &Outcome) -> usize {
        match (outcome, self) {
            (Outcome::Read(stored), Returned::All | Returned::Reads)
            | (Outcome::Created(stored) | Outcome::Replaced(stored), Returned::All) => {
                stored.document.bytes().len()
            }
            (Outcome::Created(_) | Outcome::Replaced(_), Returned::Reads)
            | (Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing, _) => 0,
        }
    }
}
