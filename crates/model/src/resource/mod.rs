//! Definitions of the small resources: permissions, scripts, client encryption keys.
//!
//! Reads and writes their wire form. Whether what they name exists is the catalog's question.

mod encryption_key;
mod permission;
mod script;

pub use encryption_key::ClientEncryptionKeyDefinition;
pub use permission::{PermissionDefinition, PermissionMode, TokenLife};
pub use script::{ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime};

use crate::RequestFault;
use serde_json::{Map, Value as Json};

/// The members of a definition.
fn members<'a>(body: &'a Json, what: &str) -> Result<&'a Map<String, Json>, RequestFault> {
    body.as_object().ok_or_else(|| RequestFault::BadBody { reason: format!("{what} is a JSON object") })
}

/// A member that must be a string.
fn text<'a>(members: &'a Map<String, Json>, field: &str) -> Result<&'a str, RequestFault> {
    match members.get(field) {
        Some(Json::String(text)) => Ok(text),
        Some(_) => Err(bad(field, "it must be a string")),
        None => Err(bad(field, "it is missing")),
    }
}

/// The member of `choices` that `field` names in any letter case.
fn choice<T: Copy>(
    members: &Map<String, Json>,
    field: &str,
    choices: &[(&str, T)],
) -> Result<T, RequestFault> {
    let given = text(members, field)?;
    let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(given));
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(|(_, choice)| *choice).ok_or_else(|| bad(field, format!("it must be one of {}", names())))
}

fn bad(field: &str, reason: impl Into<String>) -> RequestFault {
    RequestFault::BadDefinition { field: field.to_owned(), reason: reason.into() }
}
