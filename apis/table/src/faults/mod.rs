//! All faults of this API: those of the core, and its own about paths, credentials, headers and bodies.
//!
//! [`Code`] has the codes of the service with their statuses, [`map`] maps every fault to one of them, [`text`] has
//! the words, [`body`] writes them.

mod body;
mod code;
mod map;
mod text;

pub(crate) use body::{ErrorForm, error_body};
pub(crate) use code::Code;

use crate::filter::FilterFault;
use crate::wire::entity::EntityFault;
use crate::wire::multipart::MultipartFault;
use api_http::body::BodyFault;
use engine::{RefusedDocument, refusal_charge};
use model::{
    AccessFault, Charge, ConflictFault, Fault, LimitFault, MissingFault, PreconditionFault, QueryFault,
    RequestFault, StorageFault,
};
use thiserror::Error;

/// What a fault of the core is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A table, or the list of them.
    Table,
    /// An entity, or several.
    Entity,
}

/// A refused or failed request.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum TableFault {
    /// A fault of the core.
    #[error("{0}")]
    Core(Fault, Subject),
    /// The body of an entity is invalid.
    #[error(transparent)]
    Entity(#[from] EntityFault),
    /// The filter is invalid.
    #[error(transparent)]
    Filter(#[from] FilterFault),
    /// The body of a batch is invalid.
    #[error(transparent)]
    Multipart(#[from] MultipartFault),
    /// The body was not read.
    #[error("the request body cannot be read: {0}")]
    Body(#[from] BodyFault),
    /// The credential authenticates no caller.
    #[error(transparent)]
    Credential(#[from] CredentialFault),
    /// Anything else, by its code.
    #[error("{message}")]
    Request {
        /// The code.
        code: Code,
        /// The text.
        message: String,
    },
    /// An operation of a batch is refused.
    #[error("{index}:{fault}")]
    Step {
        /// Its index, from 0.
        index: usize,
        /// The reason.
        fault: Box<TableFault>,
    },
}

/// Why a credential authenticates no caller.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum CredentialFault {
    #[error("the request has no credential")]
    Missing,
    #[error("the authorization header is malformed: {reason}")]
    Malformed { reason: &'static str },
    #[error("the account \"{name}\" is not known here")]
    UnknownAccount { name: String },
    #[error("the request has neither x-ms-date nor date, or it is malformed")]
    Date,
    #[error("the date of the request differs by {skew_seconds} seconds from the time of the server")]
    Skew { skew_seconds: u64 },
    #[error("the signature is not that of the request: the signed text is \"{payload}\"")]
    Signature { payload: String },
    #[error("the shared access signature is malformed: {field}")]
    SignatureField { field: &'static str },
    #[error("the shared access signature is not valid yet or has expired")]
    Time,
    #[error("the stored access policy does not exist")]
    UnknownPolicy,
    #[error("a field is given both in the signature and in the stored access policy, or in neither")]
    PolicyConflict,
    #[error("the shared access signature is for another address")]
    Address,
    #[error("the shared access signature requires https")]
    Protocol,
    #[error("the shared access signature is for another service")]
    Service,
    #[error("the shared access signature is for other kinds of resources")]
    ResourceType,
    #[error("the shared access signature does not permit the operation")]
    Permission,
}

/// A fault with a code and a text.
pub(crate) fn request(code: Code, message: impl Into<String>) -> TableFault {
    TableFault::Request { code, message: message.into() }
}

impl TableFault {
    /// A fault of the core about a table.
    pub(crate) fn of_table(fault: impl Into<Fault>) -> TableFault {
        TableFault::Core(fault.into(), Subject::Table)
    }

    /// The charge of the refusal.
    pub(crate) fn charge(&self) -> Charge {
        match self {
            TableFault::Core(fault, _) => refusal_charge(fault),
            // An unauthenticated caller is not charged.
            TableFault::Credential(_) => Charge::NONE,
            TableFault::Step { fault, .. } => fault.charge(),
            TableFault::Entity(_)
            | TableFault::Filter(_)
            | TableFault::Multipart(_)
            | TableFault::Body(_)
            | TableFault::Request { .. } => Charge::MINIMUM,
        }
    }

    /// When to retry, if a retry may succeed.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        match self {
            TableFault::Core(Fault::Limit(limit), _) => limit.retry_after_ms(),
            TableFault::Step { fault, .. } => fault.retry_after_ms(),
            TableFault::Core(
                Fault::Request(_)
                | Fault::Access(_)
                | Fault::Missing(_)
                | Fault::Conflict(_)
                | Fault::Precondition(_)
                | Fault::Query(_)
                | Fault::Storage(_)
                | Fault::Internal(_),
                _,
            )
            | TableFault::Entity(_)
            | TableFault::Filter(_)
            | TableFault::Multipart(_)
            | TableFault::Body(_)
            | TableFault::Credential(_)
            | TableFault::Request { .. } => None,
        }
    }
}

/// Conversions from the fault families of the core, so that `?` accepts them: they are about entities.
macro_rules! from_families {
    ($($family:ident),+) => {
        $(impl From<$family> for TableFault {
            fn from(fault: $family) -> TableFault {
                TableFault::Core(fault.into(), Subject::Entity)
            }
        })+
    };
}

from_families!(
    Fault,
    RequestFault,
    AccessFault,
    MissingFault,
    ConflictFault,
    PreconditionFault,
    QueryFault,
    LimitFault,
    StorageFault
);

impl From<RefusedDocument> for TableFault {
    fn from(refused: RefusedDocument) -> TableFault {
        refused.fault.into()
    }
}
