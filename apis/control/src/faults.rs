//! Faults of the control API with their status.

use http::{Method, StatusCode};
use model::{AccessFault, Fault, LimitFault, PartitionOrdinal, StorageFault};
use serde_json::{Value as Json, json};
use std::fmt;
use std::time::Duration;

/// Why a request is refused.
#[derive(Debug, PartialEq)]
pub(crate) enum ControlFault {
    /// There is nothing at the path.
    NoRoute,
    /// The path has another verb.
    Verb { allowed: Method },
    /// The id of a partition is not a number.
    Partition { id: String },
    /// There is no such database or container.
    NoContainer { database: String, container: String },
    /// The partition was split, into these or into others that these were split into.
    Split { id: PartitionOrdinal, descendants: Vec<PartitionOrdinal> },
    /// The time of a pause is missing or too long.
    Milliseconds { max: Duration },
    /// There is no credential, or several.
    NoCredential,
    /// The credential is not one of this account.
    WrongCredential,
    /// The engine refuses.
    Core(Fault),
}

impl From<Fault> for ControlFault {
    fn from(fault: Fault) -> ControlFault {
        ControlFault::Core(fault)
    }
}

impl From<AccessFault> for ControlFault {
    fn from(fault: AccessFault) -> ControlFault {
        ControlFault::Core(fault.into())
    }
}

impl fmt::Display for ControlFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlFault::NoRoute => formatter.write_str("there is no such operation"),
            ControlFault::Verb { allowed } => write!(formatter, "only {allowed} is allowed here"),
            ControlFault::Partition { id } => {
                write!(formatter, "\"{id}\" is no partition id: it must be a number")
            }
            ControlFault::NoContainer { database, container } => {
                write!(formatter, "there is no container \"{container}\" in a database \"{database}\"")
            }
            ControlFault::Split { id, descendants } => {
                let ids: Vec<String> = descendants.iter().map(ToString::to_string).collect();
                write!(formatter, "the partition {id} was split; its documents are in {}", ids.join(", "))
            }
            ControlFault::Milliseconds { max } => {
                write!(formatter, "\"milliseconds\" must be a whole number up to {}", max.as_millis())
            }
            ControlFault::NoCredential => {
                formatter.write_str("one header \"Authorization: Bearer\" with an account key is required")
            }
            ControlFault::WrongCredential => {
                formatter.write_str("the credential is not valid for this account")
            }
            ControlFault::Core(fault) => fault.fmt(formatter),
        }
    }
}

impl ControlFault {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            ControlFault::NoRoute | ControlFault::NoContainer { .. } | ControlFault::Split { .. } => {
                StatusCode::NOT_FOUND
            }
            ControlFault::Verb { .. } => StatusCode::METHOD_NOT_ALLOWED,
            ControlFault::Partition { .. } | ControlFault::Milliseconds { .. } => StatusCode::BAD_REQUEST,
            ControlFault::NoCredential | ControlFault::WrongCredential => StatusCode::UNAUTHORIZED,
            ControlFault::Core(fault) => core_status(fault),
        }
    }

    pub(crate) fn body(&self) -> Json {
        // One word, as the codes of the other APIs: "NotFound".
        let code = self.status().canonical_reason().unwrap_or("Error").replace(' ', "");
        json!({ "code": code, "message": self.to_string() })
    }
}

fn core_status(fault: &Fault) -> StatusCode {
    match fault {
        Fault::Request(_) | Fault::Query(_) => StatusCode::BAD_REQUEST,
        Fault::Access(_) => StatusCode::FORBIDDEN,
        Fault::Missing(_) => StatusCode::NOT_FOUND,
        Fault::Conflict(_) => StatusCode::CONFLICT,
        Fault::Precondition(_) => StatusCode::PRECONDITION_FAILED,
        Fault::Limit(limit) if limit.retry_after_ms().is_some() => StatusCode::SERVICE_UNAVAILABLE,
        Fault::Limit(LimitFault::Exhausted { .. }) => StatusCode::FORBIDDEN,
        Fault::Limit(_) => StatusCode::BAD_REQUEST,
        Fault::Storage(StorageFault::Full { .. }) => StatusCode::INSUFFICIENT_STORAGE,
        Fault::Storage(StorageFault::Unavailable { .. } | StorageFault::Uncertain { .. }) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Fault::Storage(StorageFault::Damaged { .. }) | Fault::Internal(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}
