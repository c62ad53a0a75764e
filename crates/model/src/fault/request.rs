//! Requests that can never succeed, with the rule that they break.

use thiserror::Error;
use value::PatchCause;

/// The client sent something that makes no sense.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RequestFault {
    /// A property of an item has a value that is not allowed.
    #[error("the property \"{property}\" is invalid: {rule}")]
    BadProperty {
        /// The property.
        property: &'static str,
        /// The broken rule.
        rule: PropertyRule,
    },
    /// A name of a database or container breaks the naming rules.
    #[error("the name \"{name}\" is invalid: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// The broken rule.
        reason: String,
    },
    /// A definition of a container or one of its policies is wrong.
    #[error("the field \"{field}\" of the definition is invalid: {reason}")]
    BadDefinition {
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A fixed throughput outside the bounds.
    #[error("the throughput {rate} is invalid: it must be from {min} to {max} in steps of {step}")]
    ManualThroughput {
        /// Request units per second that were asked for.
        rate: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// What it must be a multiple of.
        step: u64,
    },
    /// An autoscale maximum outside the bounds.
    #[error("the autoscale maximum {rate} is invalid: it must be from {min} to {max} in steps of {step}")]
    AutoscaleThroughput {
        /// Request units per second that were asked for.
        rate: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// What it must be a multiple of.
        step: u64,
    },
    /// The value at a partition key path is an object or array.
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
    /// A string in the partition key is too long.
    #[error("a partition key string of {bytes} bytes exceeds the limit of {limit}")]
    PartitionKeyTooLong {
        /// Its length.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// The operation needs a partition key and none was sent.
    #[error("the operation needs a partition key")]
    PartitionKeyRequired,
    /// The document has another partition key than the one that the request names.
    #[error("the partition key of the document is not the one that the request names")]
    PartitionKeyMismatch,
    /// A replace or patch would move the document to another partition key or id.
    #[error("the property \"{property}\" of a stored item cannot be changed")]
    ImmutableProperty {
        /// The property.
        property: String,
    },
    /// A patch cannot be applied to the document it names.
    #[error("the patch operation {index} cannot be applied: {cause}")]
    BadPatch {
        /// Which operation, from 0.
        index: usize,
        /// Why not.
        cause: PatchCause,
    },
    /// The continuation is not one of ours, or not of this request.
    #[error("the continuation token is invalid: {0}")]
    BadContinuation(ContinuationFault),
}

/// A rule that a property of an item breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PropertyRule {
    /// It is required and absent.
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
    /// It has a character that ids cannot have.
    #[error("the characters '/', '\\', '?' and '#' are not allowed")]
    Characters,
    /// It is no time to live.
    #[error("it must be -1 or a whole number from 1 to {seconds_max}")]
    TimeToLive {
        /// The most seconds.
        seconds_max: u32,
    },
}

/// What is wrong with a continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ContinuationFault {
    /// Longer than any of ours.
    #[error("it is too long")]
    TooLong,
    /// Not in the alphabet of continuations.
    #[error("it is not base64")]
    Alphabet,
    /// Nothing at all.
    #[error("it is empty")]
    Empty,
    /// Of a version that this server does not know.
    #[error("it has an unknown version")]
    Version,
    /// Shorter than any of ours.
    #[error("it is cut short")]
    CutShort,
    /// Made by another store or for another request.
    #[error("it was not made for this request by this server")]
    Foreign,
    /// Its position cannot be read.
    #[error("it is of another form")]
    Form,
    /// Its position is that of another list.
    #[error("it is not of this list")]
    OtherList,
    /// Its position is outside of what is read.
    #[error("its position is outside of what is read")]
    OutsideScope,
    /// The list has one page only.
    #[error("this list never had a second page")]
    OnePage,
}
