//! Client encryption keys: data keys that only clients can unwrap. The server keeps them and gives them back.

use super::{bad, members, text};
use crate::{DecodeFault, Decoder, Encoder, RequestFault, name_of};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json};

/// A wrapped data key and what a client needs to unwrap it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEncryptionKeyDefinition {
    /// Its name.
    pub id: String,
    algorithm: String,
    /// Base64, as it was sent.
    wrapped_key: String,
    /// Type, name, value and algorithm of the key that wrapped it, as they were sent.
    metadata: Map<String, Json>,
}

/// What the metadata must have.
const METADATA_FIELDS: [&str; 4] = ["type", "name", "value", "algorithm"];

impl ClientEncryptionKeyDefinition {
    /// Reads the wire form.
    pub fn from_json(body: &Json) -> Result<ClientEncryptionKeyDefinition, RequestFault> {
        let members = members(body, "a client encryption key")?;
        let id = name_of(members)?;
        let algorithm = text(members, "encryptionAlgorithm")?;
        if algorithm.is_empty() {
            return Err(bad("encryptionAlgorithm", "it is empty"));
        }
        let wrapped_key = text(members, "wrappedDataEncryptionKey")?;
        let bytes = BASE64_STANDARD
            .decode(wrapped_key)
            .map_err(|_| bad("wrappedDataEncryptionKey", "it is not base64"))?;
        if bytes.is_empty() {
            return Err(bad("wrappedDataEncryptionKey", "it is empty"));
        }
        Ok(ClientEncryptionKeyDefinition {
            id,
            algorithm: algorithm.to_owned(),
            wrapped_key: wrapped_key.to_owned(),
            metadata: metadata(members)?,
        })
    }

    /// The wire form, without system properties.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.id.clone().into());
        json.insert("encryptionAlgorithm".to_owned(), self.algorithm.clone().into());
        json.insert("wrappedDataEncryptionKey".to_owned(), self.wrapped_key.clone().into());
        json.insert("keyWrapMetadata".to_owned(), self.metadata.clone().into());
        json
    }
}

fn metadata(members: &Map<String, Json>) -> Result<Map<String, Json>, RequestFault> {
    let field = "keyWrapMetadata";
    let Some(Json::Object(metadata)) = members.get(field) else {
        return Err(bad(field, "it must be an object"));
    };
    for name in METADATA_FIELDS {
        match metadata.get(name) {
            Some(Json::String(text)) if !text.is_empty() => {}
            Some(_) | None => return Err(bad(field, format!("it needs a string \"{name}\""))),
        }
    }
    Ok(metadata.clone())
}

impl ClientEncryptionKeyDefinition {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.id);
        out.text(&self.algorithm);
        out.text(&self.wrapped_key);
        out.json_members(&self.metadata);
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ClientEncryptionKeyDefinition, DecodeFault> {
        Ok(ClientEncryptionKeyDefinition {
            id: input.text("name of an encryption key")?,
            algorithm: input.text("algorithm of an encryption key")?,
            wrapped_key: input.text("wrapped key")?,
            metadata: input.json_members("metadata of an encryption key")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Json {
        json!({
            "id": "k",
            "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
            "wrappedDataEncryptionKey": "AQIDBA==",
            "keyWrapMetadata": { "type": "AZURE_KEY_VAULT", "name": "n", "value": "v", "algorithm": "RSA-OAEP" },
        })
    }

    #[test]
    fn the_wire_form_round_trips() {
        let definition = ClientEncryptionKeyDefinition::from_json(&good()).unwrap();
        assert_eq!(Json::Object(definition.to_json()), good());
    }

    #[test]
    fn wrong_fields_are_named() {
        for (field, value) in [
            ("encryptionAlgorithm", json!(1)),
            ("encryptionAlgorithm", json!("")),
            ("wrappedDataEncryptionKey", json!("***")),
            ("wrappedDataEncryptionKey", json!("")),
            ("wrappedDataEncryptionKey", json!([1])),
            ("keyWrapMetadata", json!("x")),
            ("keyWrapMetadata", json!({ "type": "t", "name": "n", "value": "v" })),
            ("keyWrapMetadata", json!({ "type": "t", "name": 1, "value": "v", "algorithm": "a" })),
        ] {
            let mut body = good();
            body[field] = value;
            let message = ClientEncryptionKeyDefinition::from_json(&body).unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }
}
