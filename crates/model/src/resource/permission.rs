//! Permissions: what a user may do with a resource.

use super::LetterCase;
use crate::limits::{TOKEN_SECONDS_DEFAULT, TOKEN_SECONDS_MAX, TOKEN_SECONDS_MIN};
use crate::{DecodeFault, Decoder, Encoder, RequestFault, checked_name};

/// What a permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// To read.
    Read,
    /// To read and to change.
    All,
}

impl PermissionMode {
    /// All modes.
    pub(crate) const EACH: [PermissionMode; 2] = [PermissionMode::Read, PermissionMode::All];
}

/// A permission, checked as far as it can be without the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionDefinition {
    /// Its name.
    pub id: String,
    /// What it allows.
    pub mode: PermissionMode,
    /// How the client wrote the mode.
    pub mode_case: LetterCase,
    /// The resource as named by the API that wrote the permission: stored and returned, not interpreted here.
    pub resource: String,
    /// The partition key to which it is restricted, as written by that API: not interpreted here either.
    pub key: Option<String>,
}

impl PermissionDefinition {
    /// Checks the name; the resource is looked up when the permission is written.
    pub fn new(
        id: &str,
        mode: PermissionMode,
        resource: &str,
        key: Option<String>,
    ) -> Result<PermissionDefinition, RequestFault> {
        let (id, resource) = (checked_name(id)?.to_owned(), resource.to_owned());
        Ok(PermissionDefinition { id, mode, mode_case: LetterCase::Capital, resource, key })
    }
}

/// The lifetime of a resource token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLife(u64);

impl TokenLife {
    /// The default lifetime of a token.
    pub const DEFAULT: TokenLife = TokenLife(TOKEN_SECONDS_DEFAULT);

    /// A lifetime within the bounds.
    pub fn new(seconds: u64) -> Option<TokenLife> {
        (TOKEN_SECONDS_MIN..=TOKEN_SECONDS_MAX).contains(&seconds).then_some(TokenLife(seconds))
    }

    /// The seconds.
    pub fn seconds(self) -> u64 {
        self.0
    }
}

impl PermissionMode {
    fn tag(self) -> u8 {
        match self {
            PermissionMode::Read => 0,
            PermissionMode::All => 1,
        }
    }
}

fn spelled_tag((mode, case): (PermissionMode, LetterCase)) -> u8 {
    case.marked(mode.tag(), 2)
}

impl PermissionDefinition {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.id);
        out.byte(spelled_tag((self.mode, self.mode_case)));
        out.text(&self.resource);
        out.option(self.key.as_deref(), Encoder::text);
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<PermissionDefinition, DecodeFault> {
        let spelled = LetterCase::EACH.map(|case| PermissionMode::EACH.map(|mode| (mode, case)));
        let id = input.text("name of a permission")?;
        let (mode, mode_case) =
            input.choice("permission mode", spelled.into_iter().flatten(), spelled_tag)?;
        Ok(PermissionDefinition {
            id,
            mode,
            mode_case,
            resource: input.text("resource of a permission")?,
            key: input.option("key of a permission", |input| input.text("key of a permission"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_checked() {
        assert!(PermissionDefinition::new("a", PermissionMode::All, "x", None).is_ok());
        assert!(PermissionDefinition::new("a/b", PermissionMode::All, "x", None).is_err());
    }

    #[test]
    fn a_token_lives_between_ten_seconds_and_a_day() {
        assert!(TokenLife::new(9).is_none() && TokenLife::new(10).is_some());
        assert!(TokenLife::new(86_400).is_some() && TokenLife::new(86_401).is_none());
    }
}
