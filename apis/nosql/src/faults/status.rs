//! Status, substatus and code text of every fault.
//!
//! The only place that maps faults to HTTP. SDKs branch on the pair of status and substatus, so each pair is chosen for
//! what they do with it.

use super::{CredentialFault, NosqlFault, NosqlQueryFault, RouteFault, WireFault};
use crate::compatibility::StrictFault;
use engine::script::{ResultFault, ScriptFault};
use http::StatusCode;
use model::{
    AccessFault, BearerFault, ConflictFault, DataAction, Fault, LimitFault, MissingFault, PreconditionFault,
    QueryFault, RequestFault, StorageFault,
};

/// Status, substatus (0 for none) and code text of a fault.
pub(crate) fn wire(fault: &NosqlFault) -> (StatusCode, u32, &'static str) {
    let (status, substatus) = match fault {
        NosqlFault::Core(fault) => core(fault),
        NosqlFault::Route(RouteFault::Path { .. }) => (StatusCode::NOT_FOUND, 0),
        NosqlFault::Route(RouteFault::Verb { .. }) => (StatusCode::METHOD_NOT_ALLOWED, 0),
        NosqlFault::Route(RouteFault::DirectMode | RouteFault::OfferLink { .. }) => {
            (StatusCode::BAD_REQUEST, 0)
        }
        NosqlFault::Credential(
            CredentialFault::Missing
            | CredentialFault::Malformed { .. }
            | CredentialFault::SignatureMismatch { .. }
            | CredentialFault::DateMalformed { .. },
        ) => (StatusCode::UNAUTHORIZED, 0),
        NosqlFault::Credential(CredentialFault::DateOutOfWindow { .. }) => (StatusCode::FORBIDDEN, 0),
        // Makes a client read the container again and retry.
        NosqlFault::Wire(WireFault::ContainerChanged { .. }) => (StatusCode::BAD_REQUEST, 1024),
        // Makes a client resolve the name of the container again and retry.
        NosqlFault::Wire(WireFault::RangeOfOtherContainer { .. }) => (StatusCode::GONE, 1000),
        NosqlFault::Wire(
            WireFault::Json { .. }
            | WireFault::Body { .. }
            | WireFault::Definition { .. }
            | WireFault::Header { .. }
            | WireFault::Trigger { .. }
            | WireFault::PartitionKey { .. }
            | WireFault::SessionToken { .. }
            | WireFault::ConsistencyTooStrong { .. }
            | WireFault::NotSupported { .. },
        )
        | NosqlFault::Query(
            NosqlQueryFault::Text(_)
            | NosqlQueryFault::CrossPartitionDisabled
            | NosqlQueryFault::Unmergeable(_),
        )
        | NosqlFault::Strict(
            StrictFault::Version { .. } | StrictFault::DistanceDirection | StrictFault::CompositeIndex,
        ) => (StatusCode::BAD_REQUEST, 0),
        NosqlFault::Script(fault) => script(fault),
        // Makes a client ask for a plan and merge, if it can.
        NosqlFault::Strict(StrictFault::NeedsMerge { .. })
        | NosqlFault::Query(NosqlQueryFault::FeaturesMissing { .. }) => (StatusCode::BAD_REQUEST, 1004),
    };
    (status, substatus, code_text(status))
}

/// 449: a client runs the request again.
fn retry_with() -> StatusCode {
    StatusCode::from_u16(449).unwrap_or(StatusCode::CONFLICT)
}

/// The number of an error that a script has thrown is the substatus.
fn script(fault: &ScriptFault) -> (StatusCode, u32) {
    match fault {
        ScriptFault::Syntax(_) => (StatusCode::BAD_REQUEST, 0xFFFF),
        ScriptFault::Thrown(thrown) => {
            let number = thrown.number.and_then(|number| u32::try_from(number).ok());
            (StatusCode::BAD_REQUEST, number.unwrap_or(0))
        }
        ScriptFault::Result(ResultFault::TooDeep { .. }) => (StatusCode::BAD_REQUEST, 0),
        ScriptFault::Result(ResultFault::TooLarge { .. }) | ScriptFault::InputTooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, 0)
        }
        ScriptFault::TimeExceeded { .. } => (StatusCode::REQUEST_TIMEOUT, 0),
        ScriptFault::MemoryExceeded { .. } => (StatusCode::FORBIDDEN, 0),
        ScriptFault::Busy => (StatusCode::TOO_MANY_REQUESTS, 0),
        ScriptFault::Unavailable { .. } => (StatusCode::BAD_REQUEST, 0),
        ScriptFault::Crashed { .. } => (StatusCode::INTERNAL_SERVER_ERROR, 0),
    }
}

fn core(fault: &Fault) -> (StatusCode, u32) {
    match fault {
        Fault::Request(fault) => (StatusCode::BAD_REQUEST, request_substatus(fault)),
        Fault::Access(fault) => (access_status(fault), access_substatus(fault)),
        Fault::Missing(fault) => missing(fault),
        Fault::Conflict(
            ConflictFault::Id | ConflictFault::Permission { .. } | ConflictFault::UniqueKey { .. },
        ) => (StatusCode::CONFLICT, 0),
        Fault::Conflict(ConflictFault::ThroughputPending) => (StatusCode::LOCKED, 0),
        Fault::Conflict(ConflictFault::ConcurrentChange | ConflictFault::Locked { .. }) => (retry_with(), 0),
        Fault::Precondition(
            PreconditionFault::EtagMismatch { .. }
            | PreconditionFault::Exists
            | PreconditionFault::Absent
            | PreconditionFault::Filter
            | PreconditionFault::OtherText { .. },
        ) => (StatusCode::PRECONDITION_FAILED, 0),
        Fault::Query(
            QueryFault::Evaluation(_)
            | QueryFault::MemoryExceeded { .. }
            | QueryFault::RowsExceeded { .. }
            | QueryFault::TimeExceeded { .. },
        ) => (StatusCode::BAD_REQUEST, 0),
        Fault::Limit(fault) => limit(fault),
        Fault::Storage(fault) => (storage_status(fault), 0),
        Fault::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, 0),
    }
}

/// One of the substatuses makes a client read the container again and retry.
fn request_substatus(fault: &RequestFault) -> u32 {
    match fault {
        RequestFault::PartitionKeyMismatch
        | RequestFault::PartitionKeyLength { .. }
        | RequestFault::OutsideTransaction { .. } => 1001,
        RequestFault::BadProperty { .. }
        | RequestFault::BadName { .. }
        | RequestFault::BadDefinition { .. }
        | RequestFault::ManualThroughput { .. }
        | RequestFault::AutoscaleThroughput { .. }
        | RequestFault::BadPartitionKeyValue { .. }
        | RequestFault::PartitionKeyTooLong { .. }
        | RequestFault::Indivisible { .. }
        | RequestFault::PartitionKeyRequired
        | RequestFault::ImmutableProperty { .. }
        | RequestFault::BadPatch { .. }
        | RequestFault::BadContinuation(_)
        | RequestFault::ChangeFeed(_) => 0,
    }
}

fn access_status(fault: &AccessFault) -> StatusCode {
    match fault {
        AccessFault::TokenInvalid | AccessFault::Bearer(_) => StatusCode::UNAUTHORIZED,
        AccessFault::TokenExpired { .. }
        | AccessFault::TokenEnded
        | AccessFault::RoleMissing { .. }
        | AccessFault::RoleImpossible { .. }
        | AccessFault::NotPermitted { .. } => StatusCode::FORBIDDEN,
    }
}

/// Only faults about bearer tokens and roles have a substatus.
fn access_substatus(fault: &AccessFault) -> u32 {
    match fault {
        AccessFault::Bearer(fault) => match fault {
            BearerFault::Disabled => 5002,
            BearerFault::Malformed | BearerFault::Algorithm => 5003,
            BearerFault::Signature => 5004,
            BearerFault::NotYetValid { .. } => 5005,
            BearerFault::Expired { .. } => 5006,
            BearerFault::Issuer => 5007,
            BearerFault::Audience => 5008,
            BearerFault::Nobody => 5011,
            BearerFault::UnknownKey => 5200,
        },
        AccessFault::RoleImpossible { .. } => 5300,
        AccessFault::RoleMissing { action: DataAction::ReadMetadata, .. } => 5301,
        AccessFault::RoleMissing { .. } => 5302,
        AccessFault::TokenInvalid
        | AccessFault::TokenExpired { .. }
        | AccessFault::TokenEnded
        | AccessFault::NotPermitted { .. } => 0,
    }
}

fn missing(fault: &MissingFault) -> (StatusCode, u32) {
    match fault {
        MissingFault::Resource => (StatusCode::NOT_FOUND, 0),
        MissingFault::Owner => (StatusCode::NOT_FOUND, 1003),
        MissingFault::Range { .. } => (StatusCode::GONE, 1002),
        MissingFault::Session => (StatusCode::NOT_FOUND, 1002),
    }
}

fn limit(fault: &LimitFault) -> (StatusCode, u32) {
    match fault {
        LimitFault::TooLarge { .. }
        | LimitFault::TransactionBytes { .. }
        | LimitFault::TransactionDocuments { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 0),
        // Unverified: the substatus that is assumed to make bulk clients resend the operation in another request.
        LimitFault::AnswerBytes { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 3402),
        LimitFault::TooManyOperations { .. }
        | LimitFault::TooManyMembers { .. }
        | LimitFault::KeyBytes { .. } => (StatusCode::BAD_REQUEST, 0),
        LimitFault::TransactionTime { .. } => (StatusCode::REQUEST_TIMEOUT, 0),
        LimitFault::LogicalPartitionFull { .. } => (StatusCode::FORBIDDEN, 1014),
        LimitFault::TooManyResources { .. } | LimitFault::Exhausted { .. } => (StatusCode::FORBIDDEN, 1005),
        LimitFault::Busy { .. } | LimitFault::Throughput { .. } => (StatusCode::TOO_MANY_REQUESTS, 3200),
        LimitFault::Overloaded { .. } | LimitFault::Stopping { .. } => (StatusCode::SERVICE_UNAVAILABLE, 0),
    }
}

fn storage_status(fault: &StorageFault) -> StatusCode {
    match fault {
        // Not 503: SDKs retry that immediately, and a full disk does not recover in that time.
        StorageFault::Full { .. } => StatusCode::INSUFFICIENT_STORAGE,
        StorageFault::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        // The only status after which SDKs do not retry a write automatically: it may have happened.
        StorageFault::Uncertain { .. } => StatusCode::REQUEST_TIMEOUT,
        StorageFault::Damaged { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The code text for a status in a body.
fn code_text(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        423 => "Locked",
        429 => "TooManyRequests",
        449 => "RetryWith",
        503 => "ServiceUnavailable",
        507 => "InsufficientStorage",
        _ => "InternalServerError",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[track_caller]
    fn check(fault: impl Into<NosqlFault>, status: u16, substatus: u32, code: &str) {
        let (actual_status, actual_substatus, actual_code) = wire(&fault.into());
        assert_eq!((actual_status.as_u16(), actual_substatus, actual_code), (status, substatus, code));
    }

    #[test]
    fn faults_have_the_codes_that_clients_branch_on() {
        check(RequestFault::PartitionKeyMismatch, 400, 1001, "BadRequest");
        check(WireFault::NotSupported { feature: String::new() }, 400, 0, "BadRequest");
        let changed = WireFault::ContainerChanged { intended: String::new(), actual: String::new() };
        check(changed, 400, 1024, "BadRequest");
        let other = WireFault::RangeOfOtherContainer { intended: String::new(), actual: String::new() };
        check(other, 410, 1000, "Gone");
        check(RouteFault::Path { path: String::new() }, 404, 0, "NotFound");
        check(RouteFault::Verb { verb: String::new() }, 405, 0, "MethodNotAllowed");
        check(CredentialFault::Missing, 401, 0, "Unauthorized");
        check(MissingFault::Owner, 404, 1003, "NotFound");
        check(MissingFault::Resource, 404, 0, "NotFound");
        check(MissingFault::Session, 404, 1002, "NotFound");
        check(MissingFault::Range { id: "9".to_owned() }, 410, 1002, "Gone");
        check(ConflictFault::UniqueKey { constraint: 0 }, 409, 0, "Conflict");
        check(PreconditionFault::Exists, 412, 0, "PreconditionFailed");
        check(ConflictFault::ConcurrentChange, 449, 0, "RetryWith");
        check(ConflictFault::Locked { waited: Duration::from_secs(5) }, 449, 0, "RetryWith");
        check(ConflictFault::ThroughputPending, 423, 0, "Locked");
        check(LimitFault::TransactionTime { limit: Duration::from_secs(5) }, 408, 0, "RequestTimeout");
        check(LimitFault::TransactionBytes { bytes: 2, limit: 1 }, 413, 0, "RequestEntityTooLarge");
        check(LimitFault::AnswerBytes { bytes: 2, limit: 1 }, 413, 3402, "RequestEntityTooLarge");
        check(LimitFault::KeyBytes { bytes: 2, limit: 1 }, 400, 0, "BadRequest");
        check(LimitFault::TransactionDocuments { documents: 2, limit: 1 }, 413, 0, "RequestEntityTooLarge");
        check(LimitFault::Busy { retry_after_ms: 5 }, 429, 3200, "TooManyRequests");
        check(LimitFault::Overloaded { retry_after_ms: 5 }, 503, 0, "ServiceUnavailable");
        check(LimitFault::Stopping { retry_after_ms: 5 }, 503, 0, "ServiceUnavailable");
        check(StorageFault::Uncertain { cause: String::new() }, 408, 0, "RequestTimeout");
        check(StorageFault::Unavailable { cause: String::new() }, 503, 0, "ServiceUnavailable");
        check(Fault::Internal(String::new()), 500, 0, "InternalServerError");
    }
}
