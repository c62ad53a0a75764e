//! Mutations and transactions: changes of one document, or of several in one logical partition with one commit.

use crate::Outcome;
use crate::{Filter, Item};
use model::{DocumentNumber, EffectiveKey, Etag, LimitFault, PartitionKey, PreconditionFault, Ticks};
use value::{Document, PatchOperation, ValueRef};

/// A complete partition key with its hash: identifies one logical partition.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalKey {
    /// The values.
    pub partition_key: PartitionKey,
    /// Their hash.
    pub effective: EffectiveKey,
}

/// Identifies a document in a logical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The one with this id.
    Id(String),
    /// The one with this number, from its RID.
    Number(DocumentNumber),
}

/// A precondition on the stored version.
///
/// ETags are compared as the client sent them: text that is not one of our ETags matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    #[default]
    None,
    /// The stored version has this ETag.
    IfMatch(String),
    /// There is a stored version.
    IfExists,
    /// The stored version has another ETag; for a read, an equal ETag means "not modified".
    IfNoneMatch(String),
    /// There is no stored version.
    IfAbsent,
    /// The stored version was written at this time. Times identify the versions of a document as ETags do.
    IfWrittenAt(Ticks),
    /// The stored version has this text in a member of its root, and satisfies another condition. For APIs that identify
    /// a document by more than its id, or by a value from which the id is derived.
    IfText {
        /// The name of the member.
        member: &'static str,
        /// Its value.
        text: String,
        /// The other condition.
        and: Box<Condition>,
    },
}

impl Condition {
    /// Refuses a stored version that violates the condition. Resources of the catalog have no `document`.
    pub fn check(
        &self,
        current: Etag,
        time: Ticks,
        document: Option<ValueRef<'_>>,
    ) -> Result<(), PreconditionFault> {
        let matches = |text: &str| text == current.to_string();
        match self {
            Condition::None | Condition::IfExists => Ok(()),
            Condition::IfMatch(etag) if matches(etag) => Ok(()),
            Condition::IfNoneMatch(etag) if !matches(etag) => Ok(()),
            Condition::IfWrittenAt(expected) if *expected == time => Ok(()),
            Condition::IfMatch(_) | Condition::IfNoneMatch(_) | Condition::IfWrittenAt(_) => {
                Err(PreconditionFault::EtagMismatch { current })
            }
            Condition::IfAbsent => Err(PreconditionFault::Exists),
            Condition::IfText { member, text, and } => {
                let found = document.and_then(|document| document.member(member)?.as_str());
                if found != Some(text) {
                    return Err(PreconditionFault::OtherText { member });
                }
                and.check(current, time, document)
            }
        }
    }
}

/// Whether the sender of a replace may change the id of the document.
///
/// A target given by number does not contain the id of the stored version, so only the partition can compare the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// The sender may write any id of the logical partition.
    Allowed,
    /// The sender may write only this document.
    Refused,
}

/// What a merge does if there is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// Stores its members as a new document.
    Create,
    /// Refuses the merge.
    Refuse,
}

/// Refuses a document that exceeds the limits of its API. Only the partition sees the result of a merge.
pub type ResultCheck = fn(&Document) -> Result<(), LimitFault>;

/// A change of one document.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// Store a document whose id is free.
    Create {
        /// The new document.
        item: Item,
    },
    /// Store a document, whether or not its id exists.
    Upsert {
        /// The new document or version.
        item: Item,
        /// Checked only if the id exists, except [`Condition::IfExists`].
        condition: Condition,
    },
    /// Store a new version of an existing document.
    Replace {
        /// Which document.
        target: Target,
        /// The new version.
        item: Item,
        /// Condition on the stored version.
        condition: Condition,
        /// Whether the id of the new version may differ from that of the stored one.
        rename: Rename,
    },
    /// Merge members into a document: they replace members of the same name in the stored version; the others are
    /// unchanged.
    Merge {
        /// The members, with the id of the document. The partition key is only required if the item may be stored as a
        /// new document.
        item: Item,
        /// Checked only if there is a stored version.
        condition: Condition,
        /// What happens if there is no stored version.
        absent: WhenAbsent,
        /// Limits of the result beyond those of every document.
        check: Option<ResultCheck>,
    },
    /// Change parts of an existing document.
    Patch {
        /// Which document.
        target: Target,
        /// The changes, applied in order, all or none.
        operations: Vec<PatchOperation>,
        /// Condition on the stored version.
        condition: Condition,
        /// An additional condition on the stored version.
        filter: Option<Filter>,
    },
    /// Remove an existing document.
    Delete {
        /// Which document.
        target: Target,
        /// Condition on the stored version.
        condition: Condition,
    },
    /// Remove a document if it has expired; no error if it has not, or does not exist. Sent by the expiry job.
    Expire {
        /// Which document.
        number: DocumentNumber,
        /// The second at which its expiry is scheduled.
        second: u64,
    },
    /// Schedule the expiry of a document again, after the container's default changed. Sent by the expiry job.
    Reschedule {
        /// Which document.
        number: DocumentNumber,
    },
}

/// An operation on one document, as a step of a transaction.
#[derive(Clone, Debug)]
pub enum DocumentOperation {
    /// Change a document.
    Write(Mutation),
    /// Read a document in the state after the previous steps.
    Read {
        /// Which document.
        target: Target,
        /// With `IfNoneMatch` the answer can be "not modified".
        condition: Condition,
    },
}

/// Several steps in one logical partition: one commit, all or nothing. A single change is a transaction with one step.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The logical partition.
    pub key: LogicalKey,
    /// The steps, in order.
    pub operations: Vec<DocumentOperation>,
    /// Which documents are returned.
    pub returned: Returned,
}

/// Which documents a transaction returns. Their total size is limited, so that a small request cannot cause an answer
/// of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Those read and those written.
    All,
    /// Those read.
    Reads,
}

impl Returned {
    /// Size of the document that is returned for a step, in bytes.
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
