//! Definitions of the small resources: permissions, scripts, client encryption keys.
//!
//! Typed and checked as far as that is possible alone. Whether what they name exists is the catalog's question, how
//! clients write them their API's.

mod encryption_key;
mod permission;
mod script;

pub use encryption_key::ClientEncryptionKeyDefinition;
pub use permission::{PermissionDefinition, PermissionMode, TokenLife};
pub use script::{ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime};

use crate::RequestFault;

fn bad(field: &str, reason: impl Into<String>) -> RequestFault {
    RequestFault::BadDefinition { field: field.to_owned(), reason: reason.into() }
}
