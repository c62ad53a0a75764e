//! Requests that can never succeed, with the rule that they violate.

use super::{ChangeFeedFault, DefinitionPart, DefinitionRule, NameRule};
use crate::PartitionKey;
use thiserror::Error;
use value::PatchCause;

/// The request is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RequestFault {
    /// A property of an item has a value that is not allowed.
    #[error("the property \"{property}\" is invalid: {rule}")]
    BadProperty {
        /// The property.
        property: &'static str,
        /// The violated rule.
        rule: PropertyRule,
    },
    /// The name of a database or container violates the naming rules.
    #[error("the name \"{name}\" violates the rule {rule:?}")]
    BadName {
        /// The name.
        name: String,
        /// The violated rule.
        rule: NameRule,
    },
    /// The definition of a container or one of its policies is invalid.
    #[error("the part {part:?} of the definition violates the rule {rule:?}")]
    BadDefinition {
        /// Which part.
        part: DefinitionPart,
        /// The violated rule.
        rule: Box<DefinitionRule>,
    },
    /// A fixed throughput out of bounds.
    #[error("the throughput {rate} is invalid: it must be from {min} to {max} in steps of {step}")]
    ManualThroughput {
        /// The requested request units per second.
        rate: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
        /// What it must be a multiple of.
        step: u64,
    },
    /// An autoscale maximum out of bounds.
    #[error("the autoscale maximum {rate} is invalid: it must be from {min} to {max} in steps of {step}")]
    AutoscaleThroughput {
        /// The requested request units per second.
        rate: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
        /// What it must be a multiple of.
        step: u64,
    },
    /// The value at a partition key path cannot be a key.
    #[error("the value at partition key path \"{path}\" must be a string, number, boolean or null")]
    BadPartitionKeyValue {
        /// The path.
        path: String,
    },
    /// The partition key has the wrong number of components.
    #[error("the partition key has {given} components, the container's definition has {expected}")]
    PartitionKeyLength {
        /// Components sent.
        given: usize,
        /// Components of the definition.
        expected: usize,
    },
    /// A partition cannot be split as requested.
    #[error(
        "the partition key range {id} cannot be split: both parts need documents, and all documents of a partition key \
         stay together"
    )]
    Indivisible {
        /// The id of the range.
        id: String,
    },
    /// A string in the partition key is too long.
    #[error("a partition key string of {bytes} bytes exceeds the limit of {limit}")]
    PartitionKeyTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The operation needs a partition key and none was sent.
    #[error("the operation needs a partition key")]
    PartitionKeyRequired,
    /// The document's partition key differs from the one in the request.
    #[error("the partition key of the document is not the one that the request names")]
    PartitionKeyMismatch,
    /// An operation of a transaction names another logical partition than the transaction.
    #[error("the operation names another partition key than its transaction")]
    OutsideTransaction {
        /// The key of the transaction.
        own: PartitionKey,
        /// The key of the operation.
        given: PartitionKey,
    },
    /// A replace or patch would change the document's partition key or id.
    #[error("the property \"{property}\" of a stored item cannot be changed")]
    ImmutableProperty {
        /// The property.
        property: String,
    },
    /// A patch cannot be applied to its document.
    #[error("the patch operation {index} cannot be applied: {cause}")]
    BadPatch {
        /// Index of the operation, from 0.
        index: usize,
        /// Its path.
        path: String,
        /// The reason.
        cause: PatchCause,
    },
    /// The continuation was not issued by this server, or not for this request.
    #[error("the continuation token is invalid: {0}")]
    BadContinuation(ContinuationFault),
    /// The change feed cannot be read as requested.
    #[error("the change feed cannot be read: {0}")]
    ChangeFeed(#[from] ChangeFeedFault),
}

/// A rule that a property of an item violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PropertyRule {
    /// It is required and missing.
    #[error("it is missing")]
    Required,
    /// It is not a string.
    #[error("it must be a string")]
    String,
    /// It is the empty string.
    #[error("it is empty")]
    NotEmpty,
    /// It is too long.
    #[error("it is longer than {bytes_max} bytes")]
    Length {
        /// The most bytes.
        bytes_max: usize,
    },
    /// It is not a valid time to live.
    #[error("it must be -1 or a whole number from 1 to {seconds_max}")]
    TimeToLive {
        /// The most seconds.
        seconds_max: u32,
    },
}

/// What is wrong with a continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ContinuationFault {
    /// It is longer than any that the server issues.
    #[error("it is too long")]
    TooLong,
    /// It is not base64.
    #[error("it is not base64")]
    Alphabet,
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It has an unknown version.
    #[error("it has an unknown version")]
    Version,
    /// It is shorter than any that the server issues.
    #[error("it is cut short")]
    CutShort,
    /// It was issued by another store or for another request.
    #[error("it was not made for this request by this server")]
    Foreign,
    /// Its position cannot be decoded.
    #[error("it is of another form")]
    Form,
    /// Its position belongs to another list.
    #[error("it is not of this list")]
    OtherList,
    /// Its position is outside the range that is read.
    #[error("its position is outside of what is read")]
    OutsideScope,
    /// The list has only one page.
    #[error("this list never had a second page")]
    OnePage,
}
