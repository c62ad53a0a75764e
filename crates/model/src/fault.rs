//! Everything that can go wrong with a request, by family, with the data that names cause and culprit.
//!
//! Knows no wire codes: each API maps a fault to its protocol in one exhaustive match.

use crate::Etag;
use thiserror::Error;

/// A refused or failed request.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Fault {
    /// The request itself is wrong; the same request can never succeed.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// The caller may not do this.
    #[error(transparent)]
    Access(#[from] AccessFault),
    /// What the request names is not there.
    #[error(transparent)]
    Missing(#[from] MissingFault),
    /// The request collides with what is there.
    #[error(transparent)]
    Conflict(#[from] ConflictFault),
    /// A condition that the client set does not hold.
    #[error(transparent)]
    Precondition(#[from] PreconditionFault),
    /// A query that cannot be answered.
    #[error(transparent)]
    Query(#[from] QueryFault),
    /// A published bound is exceeded.
    #[error(transparent)]
    Limit(#[from] LimitFault),
    /// The store cannot do it now.
    #[error(transparent)]
    Storage(#[from] StorageFault),
    /// Our own bug; the text is for the log and the report.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The client sent something that makes no sense.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RequestFault {
    /// The body is not JSON, or not JSON that can be stored.
    #[error("the request body is not valid JSON: {reason}")]
    BadJson {
        /// What the parser said, with the place.
        reason: String,
    },
    /// The body is JSON of the wrong shape.
    #[error("the request body is invalid: {reason}")]
    BadBody {
        /// What is wrong with it.
        reason: String,
    },
    /// A property of an item has a value that the service does not allow.
    #[error("the property \"{property}\" is invalid: {reason}")]
    BadProperty {
        /// The property.
        property: String,
        /// What is wrong with it.
        reason: String,
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
    /// A header has a value that cannot be understood.
    #[error("the header \"{name}\" has the invalid value \"{value}\": {reason}")]
    BadHeader {
        /// The header.
        name: &'static str,
        /// What was sent.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The value at a partition key path is an object or array.
    #[error("the value at partition key path \"{path}\" must be a string, number, boolean or null")]
    BadPartitionKeyValue {
        /// The path.
        path: String,
    },
    /// The partition key header is no list of scalars.
    #[error("the partition key header \"{text}\" is invalid: {reason}")]
    BadPartitionKeyHeader {
        /// What was sent.
        text: String,
        /// What is wrong with it.
        reason: String,
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
    #[error("PartitionKey value must be supplied for this operation.")]
    PartitionKeyRequired,
    /// Header and document disagree on the partition key.
    #[error("PartitionKey extracted from document doesn't match the one specified in the header")]
    PartitionKeyMismatch,
    /// A replace or patch would move the document to another partition key or id.
    #[error("the property \"{property}\" of a stored item cannot be changed")]
    ImmutableProperty {
        /// The property.
        property: String,
    },
    /// A patch cannot be applied to the document it names.
    #[error("the patch operation {index} cannot be applied: {reason}")]
    BadPatch {
        /// Which operation, from 0.
        index: usize,
        /// Why not.
        reason: String,
    },
    /// The container was created anew since the client looked.
    #[error("the container's resource id is \"{actual}\", the request was meant for \"{intended}\"")]
    ContainerChanged {
        /// What the client expects.
        intended: String,
        /// What is there.
        actual: String,
    },
    /// The continuation is not one of ours, or not of this request.
    #[error("the continuation token is invalid: {reason}")]
    BadContinuation {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The session token cannot be read.
    #[error("the session token \"{text}\" is invalid")]
    BadSessionToken {
        /// What was sent.
        text: String,
    },
    /// The client asks for a consistency that the account does not give.
    #[error("the consistency level \"{asked}\" is stronger than the account's level \"{offered}\"")]
    ConsistencyTooStrong {
        /// What was asked.
        asked: String,
        /// What the account has.
        offered: &'static str,
    },
    /// The request is well-formed, but what it asks for is not built.
    #[error("{feature} is not supported")]
    NotSupported {
        /// What was asked for.
        feature: String,
    },
}

/// A query cannot be answered.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum QueryFault {
    /// The text breaks the language.
    #[error("the query text is invalid: {}", .errors.first().map_or("", |error| &error.message))]
    Text {
        /// What is wrong and where; at least one.
        errors: Vec<QueryTextError>,
    },
    /// The query goes over all partitions and the request does not allow that.
    #[error(
        "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to \
         true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
    )]
    CrossPartitionDisabled,
    /// The client cannot merge what this query needs merged.
    #[error("the query needs features that the client does not support: {}", .missing.join(", "))]
    FeaturesMissing {
        /// Their names on the wire of query plans.
        missing: Vec<&'static str>,
    },
    /// A value that cannot be computed.
    #[error("the query cannot be evaluated: {reason}")]
    Evaluation {
        /// Why not.
        reason: String,
    },
    /// More memory than a query may have.
    #[error("the query needs more than {bytes_max} bytes of memory: filter more, or ask for fewer rows")]
    MemoryExceeded {
        /// Bytes that were granted.
        bytes_max: usize,
    },
    /// More rows looked at than a query may.
    #[error("the query looks at more than {rows_max} rows: filter more, or join less")]
    RowsExceeded {
        /// Rows that were granted.
        rows_max: u64,
    },
    /// More time than a page of a query may take.
    #[error(
        "the query did not finish a page within {milliseconds_max} ms: filter more, or read fewer partitions at once"
    )]
    TimeExceeded {
        /// Milliseconds that were granted.
        milliseconds_max: u64,
    },
}

/// One error in the text of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryTextError {
    /// The code of the language, such as `SC1001`.
    pub code: &'static str,
    /// First character of the culprit.
    pub start: usize,
    /// The character behind it.
    pub end: usize,
    /// What is wrong.
    pub message: String,
}

/// The caller is not known or not allowed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AccessFault {
    /// No credential was sent.
    #[error("Required Header authorization is missing. Ensure a valid Authorization token is passed.")]
    CredentialMissing,
    /// The credential cannot be read.
    #[error("the authorization header is malformed: {reason}")]
    CredentialMalformed {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No key makes this signature. The string to sign helps its sender and reveals nothing else.
    #[error(
        "The input authorization token can't serve the request. Please check that the expected payload is built as \
         per the protocol, and check the key being used. Server used the following payload to sign: '{payload}'"
    )]
    SignatureMismatch {
        /// What the server signed.
        payload: String,
    },
    /// The date of the request cannot be read.
    #[error("the request date \"{date}\" is not an RFC 1123 date")]
    DateMalformed {
        /// What was sent.
        date: String,
    },
    /// The date of the request is too far from now.
    #[error(
        "the authorization token is not valid at the current time: request date '{date}', server time '{server_time}', \
         {skew_seconds} seconds apart, 900 allowed"
    )]
    DateOutOfWindow {
        /// What was sent.
        date: String,
        /// What time it is here.
        server_time: String,
        /// How far apart they are.
        skew_seconds: u64,
    },
    /// Not a resource token of this account, or one from before its keys were changed.
    #[error("the resource token is not valid")]
    TokenInvalid,
    /// The resource token has had its time.
    #[error(
        "the resource token has expired {seconds_ago} seconds ago: read its permission again for a new one"
    )]
    TokenExpired {
        /// How long it has been over.
        seconds_ago: u64,
    },
    /// The permission that the resource token was made from is no longer what it was.
    #[error("the resource token has ended: its permission was replaced or deleted")]
    TokenEnded,
    /// The token of an identity provider is not taken.
    #[error("the bearer token cannot be accepted: {0}")]
    Bearer(#[from] BearerFault),
    /// No role that the caller has allows this.
    #[error(
        "Request is blocked because principal [{principal}] does not have required RBAC permissions to perform action \
         [{action}] on resource [{resource}]"
    )]
    RoleMissing {
        /// Who asked.
        principal: String,
        /// The right that is missing.
        action: &'static str,
        /// Where it is missing.
        resource: String,
        /// Whether it is about databases and containers rather than their data.
        is_metadata: bool,
    },
    /// No role can ever allow this: it needs a key.
    #[error(
        "The given request cannot be authorized by a bearer token, whatever its roles: {needed} needs an account key"
    )]
    RoleImpossible {
        /// What was asked for.
        needed: &'static str,
    },
    /// The credential is good, but not for this.
    #[error("the given credential does not permit this operation: {needed}")]
    NotPermitted {
        /// What would be needed.
        needed: &'static str,
    },
}

/// What is wrong with the token of an identity provider. Never repeats the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BearerFault {
    /// The account takes none.
    #[error("no identity provider is configured")]
    Disabled,
    /// It is no signed token, or lacks what every one must say.
    #[error("it is not a signed token with the claims iss, aud, exp and nbf")]
    Malformed,
    /// It is signed in a way that is not allowed.
    #[error("its signature algorithm is not allowed")]
    Algorithm,
    /// It names no key of the issuer.
    #[error("it is signed with a key that is not known")]
    UnknownKey,
    /// Its signature is another's.
    #[error("its signature is wrong")]
    Signature,
    /// It is too old.
    #[error("it has expired {seconds_ago} seconds ago")]
    Expired {
        /// How long it has been over.
        seconds_ago: u64,
    },
    /// It is too young.
    #[error("it becomes valid in {seconds_ahead} seconds")]
    NotYetValid {
        /// How long until it begins.
        seconds_ahead: u64,
    },
    /// Another party issued it.
    #[error("its issuer is not the configured one")]
    Issuer,
    /// It is meant for another service.
    #[error("its audience is not a configured one")]
    Audience,
    /// It does not say whom it stands for.
    #[error("it has neither an object id nor a subject")]
    Nobody,
}

/// What is named is not there.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MissingFault {
    /// No route has this path.
    #[error("no resource has the path \"{path}\"")]
    Route {
        /// The path.
        path: String,
    },
    /// The route exists but not for this verb.
    #[error("the verb {verb} is not allowed on this resource")]
    Verb {
        /// The verb.
        verb: String,
    },
    /// The database or container that owns the resource is absent.
    #[error("Owner resource does not exist")]
    Owner,
    /// The resource itself is absent.
    #[error("Entity with the specified id does not exist in the system.")]
    Resource,
    /// The partition key range never existed.
    #[error("the partition key range \"{id}\" does not exist")]
    Range {
        /// The id the client sent.
        id: String,
    },
    /// The client has seen more than this store has.
    #[error("The read session is not available for the input session token.")]
    Session,
}

/// The request collides with what is there.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConflictFault {
    /// Another resource has this id.
    #[error("Entity with the specified id already exists in the system.")]
    Id,
    /// The user has another permission for the same resource.
    #[error("the user already has the permission \"{id}\" for this resource")]
    Permission {
        /// The other one.
        id: String,
    },
    /// Another item has these values under a unique key.
    #[error("Unique index constraint violation.")]
    UniqueKey {
        /// Which constraint of the policy, from 0.
        constraint: usize,
    },
}

/// A condition of the client does not hold.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PreconditionFault {
    /// The resource has another version.
    #[error("One of the specified pre-condition is not met.")]
    EtagMismatch {
        /// The version that is there.
        current: Etag,
    },
    /// The resource exists and the client wanted it not to.
    #[error("One of the specified pre-condition is not met.")]
    Exists,
    /// The resource does not exist and the client wanted it to.
    #[error("One of the specified pre-condition is not met.")]
    Absent,
    /// The stored version is not what the client's filter asks for.
    #[error("One of the specified pre-condition is not met.")]
    Filter,
}

/// A published bound is exceeded.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LimitFault {
    /// The body or item is too large.
    #[error("Request size is too large: {bytes} bytes, {limit} allowed")]
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
    #[error(
        "Request rate is large. Too much is under way for this caller, so no changes were made; try again later."
    )]
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

/// The store cannot do it now.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StorageFault {
    /// The disk is nearly full: growing writes are refused, reads and deletes go on.
    #[error(
        "the disk is nearly full ({free_bytes} bytes free, {reserve_bytes} kept in reserve): no changes were made"
    )]
    Full {
        /// Bytes free.
        free_bytes: u64,
        /// Bytes that are kept free.
        reserve_bytes: u64,
    },
    /// The write may or may not have happened; reading tells.
    #[error("the outcome of the write is unknown: {cause}")]
    Uncertain {
        /// What the storage said.
        cause: String,
    },
    /// The store does not serve at the moment; nothing was changed.
    #[error("the store is not available: {cause}")]
    Unavailable {
        /// Why not.
        cause: String,
    },
    /// Stored bytes are not what was written.
    #[error("stored data is damaged: {what}")]
    Damaged {
        /// Which data.
        what: String,
    },
}
