//! All faults of this API: those of the core, and its own about paths, credentials, headers and bodies.
//!
//! [`status`] maps each fault to status and substatus, [`message`] to its text; [`definition_text`] has the texts about definitions, [`query_text`] has the codes and texts
//! of faults in queries, [`script_text`] the texts of faults of scripts.

mod definition_text;
mod message;
mod query_text;
mod script_text;
mod status;
mod subject;

pub(crate) use message::{body, text, text_errors};
#[cfg(test)]
pub(crate) use query_text::code;
pub(crate) use status::wire;
pub(crate) use subject::Subject;

use crate::client_plan::Unmergeable;
use crate::compatibility::StrictFault;
use crate::wire::body::BodyFault;
use crate::wire::trigger_time;
use engine::script::ScriptFault;
use engine::{RefusedDocument, ScriptRefusal, refusal_charge};
use model::{
    AccessFault, Charge, ConflictFault, Fault, LimitFault, MissingFault, PreconditionFault, QueryFault,
    RequestFault, SessionToken, StorageFault, TriggerTime,
};
use sql::SqlFaults;
use thiserror::Error;

/// A refused or failed request.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum NosqlFault {
    /// A fault of the core.
    #[error(transparent)]
    Core(#[from] Fault),
    /// The path or the verb is unknown.
    #[error(transparent)]
    Route(#[from] RouteFault),
    /// The `authorization` header or the date authenticates no caller.
    #[error(transparent)]
    Credential(#[from] CredentialFault),
    /// A header or the body is invalid.
    #[error(transparent)]
    Wire(#[from] WireFault),
    /// A query that cannot be answered as sent.
    #[error(transparent)]
    Query(#[from] NosqlQueryFault),
    /// A script that did not end normally; boxed, because every result would be as large.
    #[error(transparent)]
    Script(Box<ScriptFault>),
    /// A request that only the service refuses.
    #[error(transparent)]
    Strict(#[from] StrictFault),
}

impl From<BodyFault> for NosqlFault {
    fn from(fault: BodyFault) -> NosqlFault {
        match fault {
            BodyFault::Limit(limit) => limit.into(),
            BodyFault::Late | BodyFault::BrokenOff => WireFault::Body { reason: fault.to_string() }.into(),
        }
    }
}

impl From<ScriptRefusal> for NosqlFault {
    fn from(refusal: ScriptRefusal) -> NosqlFault {
        match refusal {
            ScriptRefusal::Script(fault) => NosqlFault::Script(Box::new(fault)),
            ScriptRefusal::Fault(fault) => NosqlFault::Core(fault),
            ScriptRefusal::WorkerLost { cause } => {
                StorageFault::Unavailable { cause: format!("the script worker ended: {cause}") }.into()
            }
            // A call with a runtime of its own never ends so.
            ScriptRefusal::Again => ConflictFault::ConcurrentChange.into(),
            ScriptRefusal::NotExecuted => {
                let feature = "the execution of scripts, which the operator has switched off,".to_owned();
                NosqlFault::Wire(WireFault::NotSupported { feature })
            }
        }
    }
}

/// A path or verb that does not exist.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum RouteFault {
    #[error("no resource has the path \"{path}\"")]
    Path { path: String },
    #[error("the verb {verb} is not allowed on this resource")]
    Verb { verb: String },
    /// A client in direct mode asks for the addresses of replicas. The status must not be 404, which such clients take
    /// for a moved partition and repeat without end.
    #[error(
        "direct mode is not supported: use gateway mode, in Java gatewayMode() of the client builder, in .NET \
         ConnectionMode.Gateway"
    )]
    DirectMode,
    /// The path goes on behind an offer.
    #[error("\"{path}\" is no link of an offer")]
    OfferLink { path: String },
}

/// A credential that is absent, cannot be parsed, or was not created with a key of the account.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum CredentialFault {
    #[error("Required Header authorization is missing. Ensure a valid Authorization token is passed.")]
    Missing,
    #[error("the authorization header is malformed: {reason}")]
    Malformed { reason: &'static str },
    /// No key of the account produces this signature. The string to sign helps the sender and reveals nothing else.
    #[error(
        "The input authorization token can't serve the request. Please check that the expected payload is built as \
         per the protocol, and check the key being used. Server used the following payload to sign: '{payload}'"
    )]
    SignatureMismatch { payload: String },
    #[error("the request date \"{date}\" is not an RFC 1123 date")]
    DateMalformed { date: String },
    #[error(
        "the authorization token is not valid at the current time: request date '{date}', server time '{server_time}', \
         {skew_seconds} seconds apart, {window_seconds} allowed"
    )]
    DateOutOfWindow { date: String, server_time: String, skew_seconds: u64, window_seconds: u64 },
}

/// An invalid header or body.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum WireFault {
    /// The body is not JSON, or not JSON that can be stored.
    #[error("the request body is not valid JSON: {reason}")]
    Json { reason: String },
    /// The body is JSON of the wrong form.
    #[error("the request body is invalid: {reason}")]
    Body { reason: String },
    /// A field of a definition has the wrong form.
    #[error(
        "One of the specified inputs is invalid: the field \"{field}\" of the definition is invalid: {reason}"
    )]
    Definition { field: String, reason: String },
    #[error("the header \"{name}\" has the invalid value \"{value}\": {reason}")]
    Header { name: &'static str, value: String, reason: String },
    /// A trigger that the request names cannot run with it.
    #[error(
        "the {}-trigger \"{name}\" of the request (option {} of SDKs, header {}): {reason}",
        trigger_time::word(*time),
        trigger_time::option(*time),
        trigger_time::header(*time)
    )]
    Trigger { time: TriggerTime, name: String, reason: String },
    #[error("the partition key header \"{text}\" is invalid: {reason}")]
    PartitionKey { text: String, reason: &'static str },
    #[error("the session token \"{text}\" is invalid")]
    SessionToken { text: String },
    /// The container was deleted and created again since the client read it.
    #[error("the container's resource id is \"{actual}\", the request was meant for \"{intended}\"")]
    ContainerChanged { intended: String, actual: String },
    /// The range belongs to a container that was deleted, or to another one.
    #[error("the range is one of the container \"{intended}\", this container is \"{actual}\"")]
    RangeOfOtherContainer { intended: String, actual: String },
    #[error("the consistency level \"{asked}\" is stronger than the account's level \"{offered}\"")]
    ConsistencyTooStrong { asked: String, offered: &'static str },
    /// Part of the protocol, but not implemented.
    #[error("{feature} is not supported")]
    NotSupported { feature: String },
}

/// A query whose text or form is refused before it reaches the engine.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum NosqlQueryFault {
    #[error("the query text is invalid: {}", first(.0))]
    Text(SqlFaults),
    /// The query covers all partitions and the request does not allow that.
    #[error(
        "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to \
         true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
    )]
    CrossPartitionDisabled,
    /// No client can merge the partial results.
    #[error("the query cannot be evaluated: {0}")]
    Unmergeable(Unmergeable),
    /// The client lacks features to merge the results of this query.
    #[error("the query needs features that the client does not support: {}", .missing.join(", "))]
    FeaturesMissing { missing: Vec<&'static str> },
}

fn first(faults: &SqlFaults) -> String {
    faults.0.first().map(|fault| query_text::sentence(&fault.kind)).unwrap_or_default()
}

/// Conversions from the fault families of the core, so that `?` accepts them.
macro_rules! from_families {
    ($($family:ident),+) => {
        $(impl From<$family> for NosqlFault {
            fn from(fault: $family) -> NosqlFault {
                NosqlFault::Core(fault.into())
            }
        })+
    };
}

from_families!(
    RequestFault,
    AccessFault,
    MissingFault,
    ConflictFault,
    PreconditionFault,
    QueryFault,
    LimitFault,
    StorageFault
);

impl NosqlFault {
    /// The charge of the refusal.
    pub(crate) fn charge(&self) -> Charge {
        match self {
            NosqlFault::Core(fault) => refusal_charge(fault),
            // An unauthenticated caller is not charged.
            NosqlFault::Credential(_) => Charge::NONE,
            NosqlFault::Route(_)
            | NosqlFault::Wire(_)
            | NosqlFault::Query(_)
            | NosqlFault::Script(_)
            | NosqlFault::Strict(_) => Charge::MINIMUM,
        }
    }

    /// When to retry, if a retry may succeed.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        match self {
            NosqlFault::Core(Fault::Limit(limit)) => limit.retry_after_ms(),
            NosqlFault::Core(
                Fault::Request(_)
                | Fault::Access(_)
                | Fault::Missing(_)
                | Fault::Conflict(_)
                | Fault::Precondition(_)
                | Fault::Query(_)
                | Fault::Storage(_)
                | Fault::Internal(_),
            )
            | NosqlFault::Route(_)
            | NosqlFault::Credential(_)
            | NosqlFault::Wire(_)
            | NosqlFault::Query(_)
            | NosqlFault::Script(_)
            | NosqlFault::Strict(_) => None,
        }
    }
}

/// A refused request, before it becomes an answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) fault: NosqlFault,
    /// The charge of the refusal.
    pub(crate) charge: Charge,
    /// The client's new session token, if a partition refused.
    pub(crate) session: Option<SessionToken>,
    /// What scripts have logged, if the client wants it.
    pub(crate) log: Option<Box<str>>,
}

impl From<RefusedDocument> for Refusal {
    fn from(refused: RefusedDocument) -> Refusal {
        let session = refused.session.filter(|_| tells_state(&refused.fault));
        Refusal { session, ..Refusal::from(refused.fault) }
    }
}

/// Whether a refusal tells the client something about the state of the partition, so that later reads must not be
/// older.
fn tells_state(fault: &Fault) -> bool {
    match fault {
        Fault::Missing(MissingFault::Resource) | Fault::Conflict(_) | Fault::Precondition(_) => true,
        Fault::Missing(MissingFault::Owner | MissingFault::Range { .. } | MissingFault::Session)
        | Fault::Request(_)
        | Fault::Access(_)
        | Fault::Query(_)
        | Fault::Limit(_)
        | Fault::Storage(_)
        | Fault::Internal(_) => false,
    }
}

impl<F: Into<NosqlFault>> From<F> for Refusal {
    fn from(fault: F) -> Refusal {
        let fault = fault.into();
        let charge = fault.charge();
        Refusal { fault, charge, session: None, log: None }
    }
}
