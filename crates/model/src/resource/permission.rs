//! Permissions: what a user may do with a resource, as clients write it.

use super::{bad, choice, members, text};
use crate::limits::{TOKEN_SECONDS_DEFAULT, TOKEN_SECONDS_MAX, TOKEN_SECONDS_MIN};
use crate::{DecodeFault, Decoder, Encoder, RequestFault, name_of};
use serde_json::{Map, Value as Json};

/// What a permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// To read.
    Read,
    /// To read and to change.
    All,
}

const MODES: [(&str, PermissionMode); 2] = [("Read", PermissionMode::Read), ("All", PermissionMode::All)];

impl PermissionMode {
    fn name(self) -> &'static str {
        match self {
            PermissionMode::Read => "Read",
            PermissionMode::All => "All",
        }
    }
}

/// A permission in its wire form, checked as far as it can be without the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionDefinition {
    /// Its name.
    pub id: String,
    /// What it allows.
    pub mode: PermissionMode,
    /// The resource as the API that wrote the permission names it: kept and given back, never read here.
    pub resource: String,
    /// The partition key to which it is restricted, as that API writes it: likewise.
    pub key: Option<String>,
}

impl PermissionDefinition {
    /// Reads the wire form.
    pub fn from_json(body: &Json) -> Result<PermissionDefinition, RequestFault> {
        let members = members(body, "a permission")?;
        let key = match members.get("resourcePartitionKey") {
            None | Some(Json::Null) => None,
            Some(key @ Json::Array(_)) => Some(key.to_string()),
            Some(_) => return Err(bad("resourcePartitionKey", "it must be an array")),
        };
        Ok(PermissionDefinition {
            id: name_of(members)?,
            mode: choice(members, "permissionMode", &MODES)?,
            resource: text(members, "resource")?.to_owned(),
            key,
        })
    }

    /// The wire form, without system properties and token.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.id.clone().into());
        json.insert("permissionMode".to_owned(), self.mode.name().into());
        json.insert("resource".to_owned(), self.resource.clone().into());
        if let Some(key) = self.key.as_ref().and_then(|key| serde_json::from_str(key).ok()) {
            json.insert("resourcePartitionKey".to_owned(), key);
        }
        json
    }
}

/// How long a resource token lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLife(u64);

impl TokenLife {
    /// What a token gets when nobody says anything.
    pub const DEFAULT: TokenLife = TokenLife(TOKEN_SECONDS_DEFAULT);

    /// A life within the bounds.
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

impl PermissionDefinition {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.id);
        out.byte(self.mode.tag());
        out.text(&self.resource);
        out.option(self.key.as_deref(), Encoder::text);
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<PermissionDefinition, DecodeFault> {
        Ok(PermissionDefinition {
            id: input.text("name of a permission")?,
            mode: input.choice("permission mode", MODES.map(|(_, mode)| mode), PermissionMode::tag)?,
            resource: input.text("resource of a permission")?,
            key: input.option("key of a permission", |input| input.text("key of a permission"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_mode_is_read_in_any_case_and_written_in_one() {
        for mode in ["read", "Read", "READ"] {
            let body = json!({ "id": "p", "permissionMode": mode, "resource": "dbs/d/colls/c" });
            let definition = PermissionDefinition::from_json(&body).unwrap();
            assert_eq!(definition.mode, PermissionMode::Read);
            assert_eq!(definition.to_json()["permissionMode"], "Read");
            assert!(!definition.to_json().contains_key("resourcePartitionKey"));
        }
    }

    #[test]
    fn the_key_comes_back_as_it_was_sent() {
        let key = json!(["a", 1.5, null, {}]);
        let body =
            json!({ "id": "p", "permissionMode": "All", "resource": "x", "resourcePartitionKey": key });
        assert_eq!(PermissionDefinition::from_json(&body).unwrap().to_json()["resourcePartitionKey"], key);
    }

    #[test]
    fn wrong_fields_are_named() {
        let good = json!({ "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c" });
        for (field, value) in [
            ("id", json!(1)),
            ("permissionMode", json!("Write")),
            ("permissionMode", json!(null)),
            ("resource", json!(7)),
            ("resourcePartitionKey", json!("a")),
        ] {
            let mut body = good.clone();
            body[field] = value;
            let message = PermissionDefinition::from_json(&body).unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
        assert!(PermissionDefinition::from_json(&json!([])).is_err());
    }

    #[test]
    fn a_token_lives_between_ten_seconds_and_a_day() {
        assert!(TokenLife::new(9).is_none() && TokenLife::new(10).is_some());
        assert!(TokenLife::new(86_400).is_some() && TokenLife::new(86_401).is_none());
    }
}
