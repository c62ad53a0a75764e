//! Definitions of the small resources: permissions, scripts, client encryption keys.
//!
//! They are typed and checked as far as possible without the catalog. The catalog checks whether the named resources
//! exist. The wire format is in the API crates.

mod encryption_key;
mod permission;
mod script;

pub use encryption_key::ClientEncryptionKeyDefinition;
pub use permission::{PermissionDefinition, PermissionMode, TokenLife};
pub use script::{ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime};
