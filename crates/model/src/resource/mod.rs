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

/// The letter case of a word that a client chose from a list: clients get it back as they wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterCase {
    /// The first letter is a capital.
    #[default]
    Capital,
    /// All letters are small.
    Lower,
}

impl LetterCase {
    const EACH: [LetterCase; 2] = [LetterCase::Capital, LetterCase::Lower];

    /// The tag of a word in this letter case; `mark` is above all tags.
    fn marked(self, tag: u8, mark: u8) -> u8 {
        match self {
            LetterCase::Capital => tag,
            LetterCase::Lower => tag | mark,
        }
    }
}
