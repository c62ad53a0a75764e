//! The text of a refusal: the service's own message if it is known, otherwise that of the fault.

use super::query_text::{code, sentence};
use super::{NosqlFault, NosqlQueryFault, Refusal, Subject, definition_text, script_text, wire};
use crate::compatibility::{HINT, MERGE_HINT, StrictFault};
use crate::wire::activity::ActivityId;
use crate::wire::{headers, json, names};
use crate::{role_actions, role_scope};
use model::limits::ID_BYTES_MAX;
use model::{
    AccessFault, ConflictFault, EvaluationFault, Fault, LimitFault, MissingFault, PreconditionFault,
    PropertyRule, QueryFault, RequestFault,
};
use sql::SqlFaults;
use value::PatchCause;

/// Longest message in characters: it quotes what the client sent, which need not be returned completely.
const MESSAGE_CHARS_MAX: usize = 1024;
/// The same for each error of a query text; there are at most twenty.
const TEXT_ERROR_CHARS_MAX: usize = 400;

/// Where the service explains a wrong partition key; clients' tests look for the address.
const LEARN_MORE_KEY: &str = "Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value";

/// The body of a refusal. Details of internal errors are only logged, with the activity id.
pub(crate) fn body(refusal: &Refusal, activity: &ActivityId, subject: Option<Subject>) -> Vec<u8> {
    let fault = &refusal.fault;
    let (_, _, status_text) = wire(fault);
    let mut message = text(fault);
    message.push_str("\r\nActivityId: ");
    message.push_str(activity.as_str());
    message.push_str(concat!(", perihelion/", env!("CARGO_PKG_VERSION")));
    if let Some(Subject { resource, operation }) = subject {
        message.push_str(&format!(", ResourceType: {resource}, OperationType: {operation}"));
    }
    let mut out = Vec::with_capacity(message.len() + 64);
    out.extend_from_slice(b"{\"code\":\"");
    out.extend_from_slice(status_text.as_bytes());
    out.extend_from_slice(b"\",\"message\":");
    json::push_string(&message, &mut out);
    if let NosqlFault::Strict(StrictFault::NeedsMerge { plan }) = fault {
        out.extend_from_slice(b",\"additionalErrorInfo\":");
        json::push_string(plan, &mut out);
    }
    out.push(b'}');
    out
}

/// The text of a fault.
pub(crate) fn text(fault: &NosqlFault) -> String {
    match fault {
        // Each error is shortened separately.
        NosqlFault::Query(NosqlQueryFault::Text(faults)) => text_errors(faults),
        // The parts of these are shortened separately.
        NosqlFault::Script(fault) => script_text::of_script(fault),
        NosqlFault::Core(Fault::Query(QueryFault::Evaluation(EvaluationFault::UserFunction {
            name,
            fault,
        }))) => script_text::of_function(name, fault),
        NosqlFault::Core(fault) => shortened(core(fault), MESSAGE_CHARS_MAX),
        NosqlFault::Strict(fault) => format!("{} {HINT}", shortened(fault.to_string(), MESSAGE_CHARS_MAX)),
        NosqlFault::Query(NosqlQueryFault::Unmergeable(_) | NosqlQueryFault::FeaturesMissing { .. }) => {
            format!("{} {MERGE_HINT}", shortened(fault.to_string(), MESSAGE_CHARS_MAX))
        }
        NosqlFault::Route(_) | NosqlFault::Credential(_) | NosqlFault::Wire(_) | NosqlFault::Query(_) => {
            shortened(fault.to_string(), MESSAGE_CHARS_MAX)
        }
    }
}

fn shortened(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn core(fault: &Fault) -> String {
    match fault {
        Fault::Internal(_) => "the server failed; its log has the cause under the activity id".to_owned(),
        Fault::Request(fault) => request(fault),
        Fault::Access(fault) => access(fault),
        Fault::Missing(missing) => match missing {
            MissingFault::Owner => "Owner resource does not exist".to_owned(),
            MissingFault::Resource => {
                "Entity with the specified id does not exist in the system. Resource Not Found. \
                                       Learn more: https://aka.ms/cosmosdb-tsg-not-found"
                    .to_owned()
            }
            MissingFault::Session => {
                "The read session is not available for the input session token.".to_owned()
            }
            MissingFault::Range { .. } => missing.to_string(),
        },
        Fault::Conflict(conflict) => match conflict {
            ConflictFault::Id => "Entity with the specified id already exists in the system.".to_owned(),
            ConflictFault::UniqueKey { .. } => "Unique index constraint violation.".to_owned(),
            ConflictFault::ConcurrentChange | ConflictFault::Locked { .. } => {
                format!(
                    "Conflicting request to resource has been attempted. Retry to avoid conflicts. {conflict}"
                )
            }
            ConflictFault::ThroughputPending => {
                "The throughput scale operation cannot be performed because there is another scale operation in \
                 progress."
                    .to_owned()
            }
            ConflictFault::Permission { .. } => conflict.to_string(),
        },
        Fault::Precondition(
            PreconditionFault::EtagMismatch { .. }
            | PreconditionFault::Exists
            | PreconditionFault::Absent
            | PreconditionFault::Filter
            | PreconditionFault::OtherText { .. },
        ) => "One of the specified pre-condition is not met.".to_owned(),
        Fault::Limit(fault) => limit(fault),
        Fault::Query(_) | Fault::Storage(_) => fault.to_string(),
    }
}

fn request(fault: &RequestFault) -> String {
    match fault {
        RequestFault::PartitionKeyRequired => {
            "PartitionKey value must be supplied for this operation.".to_owned()
        }
        RequestFault::PartitionKeyMismatch | RequestFault::OutsideTransaction { .. } => {
            format!(
                "PartitionKey extracted from document doesn't match the one specified in the header. \
                 {LEARN_MORE_KEY}"
            )
        }
        RequestFault::PartitionKeyLength { .. } => format!(
            "Partition key provided either doesn't correspond to definition in the collection or doesn't match \
             partition key field values specified in the document: {fault}. {LEARN_MORE_KEY}"
        ),
        RequestFault::ManualThroughput { rate, min, max, step } => {
            let hint = if rate < min { headers::too_low(rate, *min) + ": " } else { String::new() };
            let reason = format!("{hint}it must be from {min} to {max} in steps of {step}");
            headers::bad(&names::OFFER_THROUGHPUT, &rate.to_string(), &reason).to_string()
        }
        RequestFault::AutoscaleThroughput { rate, min, max, step } => {
            let hint = if rate < min { headers::too_low(rate, *min) + ": " } else { String::new() };
            let reason = format!("{hint}maxThroughput must be from {min} to {max} in steps of {step}");
            headers::bad(&names::AUTOPILOT_SETTINGS, &rate.to_string(), &reason).to_string()
        }
        RequestFault::BadName { name, rule } => definition_text::name_text(name, *rule),
        RequestFault::BadDefinition { part, rule } => definition_text::definition_text(*part, rule),
        RequestFault::BadProperty {
            property: "id",
            rule: PropertyRule::Length { .. } | PropertyRule::NotEmpty | PropertyRule::Required,
        } => format!(
            "{fault}. Ensure to provide a unique non-empty string less than '{}' characters.",
            ID_BYTES_MAX + 1
        ),
        RequestFault::BadPatch { cause: PatchCause::Missing, path, .. } => format!(
            "{fault}: Add Operation only support adding a leaf node of an existing node(array or object), no path \
             found beyond: '{}'",
            parent(path)
        ),
        RequestFault::BadProperty { .. }
        | RequestFault::BadPartitionKeyValue { .. }
        | RequestFault::PartitionKeyTooLong { .. }
        | RequestFault::Indivisible { .. }
        | RequestFault::ImmutableProperty { .. }
        | RequestFault::BadPatch { .. } => fault.to_string(),
        RequestFault::BadContinuation(reason) => format!("Invalid Continuation Token: {reason}"),
        RequestFault::ChangeFeed(_) => fault.to_string(),
    }
}

/// The last name of the parent in the path of a patch; of a top-level property, its own.
fn parent(path: &str) -> &str {
    let mut names = path.rsplit('/').filter(|name| !name.is_empty());
    let own = names.next().unwrap_or_default();
    names.next().unwrap_or(own)
}

fn access(fault: &AccessFault) -> String {
    match fault {
        AccessFault::RoleMissing { principal, action, scope } => {
            let (action, link) = (role_actions::name(*action), role_scope::text(scope));
            format!(
                "Request is blocked because principal [{principal}] does not have required RBAC permissions to \
                 perform action [{action}] on resource [{link}]"
            )
        }
        AccessFault::RoleImpossible { needed } => format!(
            "The given request cannot be authorized by a bearer token, whatever its roles: {needed} needs an \
             account key"
        ),
        AccessFault::TokenInvalid
        | AccessFault::TokenExpired { .. }
        | AccessFault::TokenEnded
        | AccessFault::Bearer(_)
        | AccessFault::NotPermitted { .. } => fault.to_string(),
    }
}

fn limit(fault: &LimitFault) -> String {
    match fault {
        LimitFault::TooLarge { bytes, limit } => {
            let words = "Message: {\"Errors\":[\"Request size is too large\"]}";
            format!("{words}\r\n{bytes} bytes were sent, {limit} are allowed")
        }
        LimitFault::LogicalPartitionFull { limit, .. } => {
            let size = match limit >> 30 {
                0 => format!("{limit} bytes"),
                gigabytes => format!("{gigabytes} GB"),
            };
            format!("Partition key reached maximum size of {size}. No changes were made.")
        }
        LimitFault::Busy { .. } => {
            "Request rate is large. Too much is under way for this caller, so no changes were made; try again later."
                .to_owned()
        }
        LimitFault::Throughput { retry_after_ms } => format!(
            "Message: {{\"Errors\":[\"Request rate is large. More Request Units may be needed, so no changes were \
             made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429\"]}}\r\n\
             The provisioned throughput is used up for {retry_after_ms} ms"
        ),
        LimitFault::TransactionBytes { .. }
        | LimitFault::TransactionTime { .. }
        | LimitFault::KeyBytes { .. }
        | LimitFault::TransactionDocuments { .. }
        | LimitFault::AnswerBytes { .. }
        | LimitFault::TooManyOperations { .. }
        | LimitFault::TooManyMembers { .. }
        | LimitFault::TooManyResources { .. }
        | LimitFault::Exhausted { .. }
        | LimitFault::Overloaded { .. }
        | LimitFault::Stopping { .. } => fault.to_string(),
    }
}

/// The errors of a query text: JSON inside the message, as in the service; editors parse it.
pub(crate) fn text_errors(faults: &SqlFaults) -> String {
    let errors = faults.0.iter().map(|fault| {
        serde_json::json!({
            "severity": "Error",
            "location": { "start": fault.span.start, "end": fault.span.end },
            "code": code(&fault.kind),
            "message": shortened(sentence(&fault.kind), TEXT_ERROR_CHARS_MAX),
        })
    });
    serde_json::json!({ "errors": errors.collect::<Vec<_>>() }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DataAction;
    use model::{Ambient, ScopeName};

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

    fn message(fault: impl Into<NosqlFault>) -> String {
        let activity = ActivityId::random(&Still);
        let body: serde_json::Value =
            serde_json::from_slice(&body(&fault.into().into(), &activity, None)).unwrap();
        body["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_long_value_does_not_come_back_whole() {
        let property = "é".repeat(100_000);
        let message = message(RequestFault::ImmutableProperty { property });
        assert!(message.chars().count() < MESSAGE_CHARS_MAX + 120);
        assert!(message.contains("…\r\nActivityId: "));
    }

    #[test]
    fn errors_of_a_query_are_json_inside_the_message() {
        let error = |near: &str| sql::SqlFault {
            kind: sql::FaultKind::Syntax { near: near.to_owned() },
            span: sql::Span { start: 7, end: 9 },
        };
        let faults = SqlFaults(vec![error("x"), error(&"é".repeat(100_000))]);
        let message = message(NosqlQueryFault::Text(faults));
        let list = message.split("\r\n").next().unwrap();
        let list: serde_json::Value = serde_json::from_str(list).unwrap();
        assert_eq!(list["errors"][0]["location"], serde_json::json!({ "start": 7, "end": 9 }));
        assert_eq!(list["errors"][0]["message"], "Syntax error, incorrect syntax near 'x'.");
        assert_eq!(list["errors"][1]["message"].as_str().unwrap().chars().count(), TEXT_ERROR_CHARS_MAX + 1);
    }

    #[test]
    fn the_sentences_of_the_service_are_kept() {
        let role = |scope| AccessFault::RoleMissing {
            principal: "p".to_owned(),
            action: DataAction::ReadMetadata,
            scope: Box::new(scope),
        };
        let container = ScopeName::Container { database: "d".to_owned(), container: "c".to_owned() };
        for (fault, sentence) in [
            (
                NosqlFault::from(RequestFault::PartitionKeyRequired),
                "PartitionKey value must be supplied for this operation.",
            ),
            (
                RequestFault::PartitionKeyMismatch.into(),
                "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: \
                 https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
            ),
            (MissingFault::Owner.into(), "Owner resource does not exist"),
            (
                MissingFault::Resource.into(),
                "Entity with the specified id does not exist in the system. Resource Not Found. Learn more: \
                 https://aka.ms/cosmosdb-tsg-not-found",
            ),
            (MissingFault::Session.into(), "The read session is not available for the input session token."),
            (ConflictFault::Id.into(), "Entity with the specified id already exists in the system."),
            (ConflictFault::UniqueKey { constraint: 1 }.into(), "Unique index constraint violation."),
            (PreconditionFault::Filter.into(), "One of the specified pre-condition is not met."),
            (
                LimitFault::TooLarge { bytes: 2, limit: 1 }.into(),
                "Message: {\"Errors\":[\"Request size is too large\"]}",
            ),
            (
                model::Throughput::manual(7).unwrap_err().into(),
                "the header \"x-ms-offer-throughput\" has the invalid value \"7\": Requested throughput 7 is less than \
                 required minimum throughput 400: it must be from 400 to 1000000 \
                 in steps of 100",
            ),
            (
                model::Throughput::autoscale(7).unwrap_err().into(),
                "the header \"x-ms-cosmos-offer-autopilot-settings\" has the invalid value \"7\": Requested \
                 throughput 7 is less than required minimum throughput 1000: maxThroughput \
                 must be from 1000 to 1000000 in steps of 1000",
            ),
            (
                role(container).into(),
                "Request is blocked because principal [p] does not have required RBAC permissions to perform action \
                 [Microsoft.DocumentDB/databaseAccounts/readMetadata] on resource [/dbs/d/colls/c]",
            ),
            (
                role(ScopeName::Account).into(),
                "Request is blocked because principal [p] does not have required RBAC permissions to perform action \
                 [Microsoft.DocumentDB/databaseAccounts/readMetadata] on resource [/]",
            ),
            (
                AccessFault::RoleImpossible { needed: "x" }.into(),
                "The given request cannot be authorized by a bearer token, whatever its roles: x needs an account key",
            ),
        ] {
            assert_eq!(message(fault).split("\r\n").next(), Some(sentence));
        }
    }

    #[test]
    fn our_own_bugs_are_not_described_to_strangers() {
        assert!(!message(Fault::Internal("secret state".to_owned())).contains("secret"));
    }
}
