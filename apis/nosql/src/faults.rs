//! What a fault looks like on this wire: status, substatus, code text and body.
//!
//! The one place where core faults meet HTTP. SDKs branch on the pair of status and substatus, so each pair here is
//! chosen for what they then do.

use crate::wire::activity::ActivityId;
use crate::wire::json;
use http::StatusCode;
use model::{
    AccessFault, BearerFault, Charge, ConflictFault, Fault, LimitFault, MissingFault, PreconditionFault,
    QueryFault, QueryTextError, RequestFault, StorageFault,
};

/// A refused request on its way to the client.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) fault: Fault,
    /// What finding out cost.
    pub(crate) charge: Charge,
}

impl<F: Into<Fault>> From<F> for Refusal {
    fn from(fault: F) -> Refusal {
        let fault = fault.into();
        let charge = match fault {
            // A caller who is nobody is not charged.
            Fault::Access(_) => Charge::NONE,
            Fault::Request(_)
            | Fault::Missing(_)
            | Fault::Conflict(_)
            | Fault::Precondition(_)
            | Fault::Query(_)
            | Fault::Limit(_)
            | Fault::Storage(_)
            | Fault::Internal(_) => Charge::MINIMUM,
        };
        Refusal { fault, charge }
    }
}

/// Status, substatus (0 for none) and code text of a fault.
pub(crate) fn wire(fault: &Fault) -> (StatusCode, u32, &'static str) {
    let (status, substatus) = match fault {
        Fault::Request(fault) => (StatusCode::BAD_REQUEST, request_substatus(fault)),
        Fault::Access(fault) => (access_status(fault), access_substatus(fault)),
        Fault::Missing(fault) => missing(fault),
        Fault::Conflict(
            ConflictFault::Id | ConflictFault::Permission { .. } | ConflictFault::UniqueKey { .. },
        ) => (StatusCode::CONFLICT, 0),
        Fault::Precondition(
            PreconditionFault::EtagMismatch { .. }
            | PreconditionFault::Exists
            | PreconditionFault::Absent
            | PreconditionFault::Filter,
        ) => (StatusCode::PRECONDITION_FAILED, 0),
        Fault::Query(
            QueryFault::Text { .. }
            | QueryFault::CrossPartitionDisabled
            | QueryFault::FeaturesMissing { .. }
            | QueryFault::Evaluation { .. }
            | QueryFault::MemoryExceeded { .. }
            | QueryFault::RowsExceeded { .. }
            | QueryFault::TimeExceeded { .. },
        ) => (StatusCode::BAD_REQUEST, 0),
        Fault::Limit(fault) => limit(fault),
        Fault::Storage(fault) => (storage_status(fault), 0),
        Fault::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, 0),
    };
    (status, substatus, code_text(status))
}

/// The two substatus numbers that make a client read the container again and retry.
fn request_substatus(fault: &RequestFault) -> u32 {
    match fault {
        RequestFault::PartitionKeyMismatch => 1001,
        RequestFault::ContainerChanged { .. } => 1024,
        RequestFault::BadJson { .. }
        | RequestFault::BadBody { .. }
        | RequestFault::BadProperty { .. }
        | RequestFault::BadName { .. }
        | RequestFault::BadDefinition { .. }
        | RequestFault::BadHeader { .. }
        | RequestFault::BadPartitionKeyValue { .. }
        | RequestFault::BadPartitionKeyHeader { .. }
        | RequestFault::PartitionKeyLength { .. }
        | RequestFault::PartitionKeyTooLong { .. }
        | RequestFault::PartitionKeyRequired
        | RequestFault::ImmutableProperty { .. }
        | RequestFault::BadPatch { .. }
        | RequestFault::BadContinuation { .. }
        | RequestFault::BadSessionToken { .. }
        | RequestFault::ConsistencyTooStrong { .. }
        | RequestFault::NotSupported { .. } => 0,
    }
}

fn access_status(fault: &AccessFault) -> StatusCode {
    match fault {
        AccessFault::CredentialMissing
        | AccessFault::CredentialMalformed { .. }
        | AccessFault::SignatureMismatch { .. }
        | AccessFault::DateMalformed { .. }
        | AccessFault::TokenInvalid
        | AccessFault::Bearer(_) => StatusCode::UNAUTHORIZED,
        AccessFault::DateOutOfWindow { .. }
        | AccessFault::TokenExpired { .. }
        | AccessFault::TokenEnded
        | AccessFault::RoleMissing { .. }
        | AccessFault::RoleImpossible { .. }
        | AccessFault::NotPermitted { .. } => StatusCode::FORBIDDEN,
    }
}

/// Only about tokens of identity providers clients are told more than the status.
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
        AccessFault::RoleMissing { is_metadata: true, .. } => 5301,
        AccessFault::RoleMissing { is_metadata: false, .. } => 5302,
        AccessFault::CredentialMissing
        | AccessFault::CredentialMalformed { .. }
        | AccessFault::SignatureMismatch { .. }
        | AccessFault::DateMalformed { .. }
        | AccessFault::DateOutOfWindow { .. }
        | AccessFault::TokenInvalid
        | AccessFault::TokenExpired { .. }
        | AccessFault::TokenEnded
        | AccessFault::NotPermitted { .. } => 0,
    }
}

fn missing(fault: &MissingFault) -> (StatusCode, u32) {
    match fault {
        MissingFault::Route { .. } | MissingFault::Resource => (StatusCode::NOT_FOUND, 0),
        MissingFault::Verb { .. } => (StatusCode::METHOD_NOT_ALLOWED, 0),
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
        // Unverified: the substatus that bulk clients are believed to send again in another request.
        LimitFault::AnswerBytes { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 3402),
        LimitFault::TooManyOperations { .. } | LimitFault::KeyBytes { .. } => (StatusCode::BAD_REQUEST, 0),
        LimitFault::TooManyResources { .. } | LimitFault::Exhausted { .. } => (StatusCode::FORBIDDEN, 1005),
        LimitFault::Busy { .. } => (StatusCode::TOO_MANY_REQUESTS, 3200),
        LimitFault::Overloaded { .. } | LimitFault::Stopping { .. } => (StatusCode::SERVICE_UNAVAILABLE, 0),
    }
}

fn storage_status(fault: &StorageFault) -> StatusCode {
    match fault {
        // Not 503: SDKs repeat that at once, and a full disk does not empty itself in between.
        StorageFault::Full { .. } => StatusCode::INSUFFICIENT_STORAGE,
        StorageFault::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        // The one status after which SDKs do not repeat a write by themselves: it may have happened.
        StorageFault::Uncertain { .. } => StatusCode::REQUEST_TIMEOUT,
        StorageFault::Damaged { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The text that stands beside a status in a body.
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
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        507 => "InsufficientStorage",
        _ => "InternalServerError",
    }
}

/// Longest message in characters: what a client sent is quoted in it, and need not come back whole.
const MESSAGE_CHARS_MAX: usize = 1024;
/// The same for each error of a query's text; there are at most twenty.
const TEXT_ERROR_CHARS_MAX: usize = 400;

/// The body of a refusal. The details of our own bugs stay in the log, found by the activity id.
pub(crate) fn body(refusal: &Refusal, activity: &ActivityId) -> Vec<u8> {
    let fault = &refusal.fault;
    let (_, _, code) = wire(fault);
    let mut message = match fault {
        Fault::Internal(_) => "the server failed; its log has the cause under the activity id".to_owned(),
        Fault::Query(QueryFault::Text { errors }) => text_errors(errors),
        Fault::Request(_)
        | Fault::Access(_)
        | Fault::Missing(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Limit(_)
        | Fault::Storage(_) => shortened(fault.to_string(), MESSAGE_CHARS_MAX),
    };
    message.push_str("\r\nActivityId: ");
    message.push_str(activity.as_str());
    message.push_str(concat!(", perihelion/", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::with_capacity(message.len() + 64);
    out.extend_from_slice(b"{\"code\":\"");
    out.extend_from_slice(code.as_bytes());
    out.extend_from_slice(b"\",\"message\":");
    json::push_string(&message, &mut out);
    out.push(b'}');
    out
}

fn shortened(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What is wrong with the text of a query: JSON inside the message, as the service has it and editors read it.
fn text_errors(errors: &[QueryTextError]) -> String {
    let errors = errors.iter().map(|error| {
        serde_json::json!({
            "severity": "Error",
            "location": { "start": error.start, "end": error.end },
            "code": error.code,
            "message": shortened(error.message.clone(), TEXT_ERROR_CHARS_MAX),
        })
    });
    serde_json::json!({ "errors": errors.collect::<Vec<_>>() }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Ambient;

    #[derive(Debug)]
    struct Still;

    impl Ambient for Still {
        fn now_ms(&self) -> u64 {
            0
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    fn message(fault: Fault) -> String {
        let activity = ActivityId::of(&http::HeaderMap::new(), &Still);
        let body: serde_json::Value = serde_json::from_slice(&body(&fault.into(), &activity)).unwrap();
        body["message"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn check(fault: impl Into<Fault>, status: u16, substatus: u32, code: &str) {
        let (actual_status, actual_substatus, actual_code) = wire(&fault.into());
        assert_eq!((actual_status.as_u16(), actual_substatus, actual_code), (status, substatus, code));
    }

    #[test]
    fn faults_have_the_codes_that_clients_branch_on() {
        check(RequestFault::PartitionKeyMismatch, 400, 1001, "BadRequest");
        check(MissingFault::Owner, 404, 1003, "NotFound");
        check(MissingFault::Resource, 404, 0, "NotFound");
        check(MissingFault::Session, 404, 1002, "NotFound");
        check(MissingFault::Range { id: "9".to_owned() }, 410, 1002, "Gone");
        check(ConflictFault::UniqueKey { constraint: 0 }, 409, 0, "Conflict");
        check(PreconditionFault::Exists, 412, 0, "PreconditionFailed");
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

    #[test]
    fn a_long_value_does_not_come_back_whole() {
        let property = "é".repeat(100_000);
        let message = message(RequestFault::ImmutableProperty { property }.into());
        assert!(message.chars().count() < MESSAGE_CHARS_MAX + 120);
        assert!(message.contains("…\r\nActivityId: "));
    }

    #[test]
    fn errors_of_a_query_are_json_inside_the_message() {
        let error =
            |message: &str| QueryTextError { code: "SC1001", start: 7, end: 9, message: message.to_owned() };
        let errors = vec![error("near \"x\""), error(&"é".repeat(100_000))];
        let message = message(QueryFault::Text { errors }.into());
        let list = message.split("\r\n").next().unwrap();
        let list: serde_json::Value = serde_json::from_str(list).unwrap();
        assert_eq!(list["errors"][0]["location"], serde_json::json!({ "start": 7, "end": 9 }));
        assert_eq!(list["errors"][0]["message"], "near \"x\"");
        assert_eq!(list["errors"][1]["message"].as_str().unwrap().chars().count(), TEXT_ERROR_CHARS_MAX + 1);
    }

    #[test]
    fn our_own_bugs_are_not_described_to_strangers() {
        assert!(!message(Fault::Internal("secret state".to_owned())).contains("secret"));
    }
}
