//! Client encryption keys of a database.

use super::{bad, members, name_of, opaque, text};
use crate::faults::NosqlFault;
use model::{ClientEncryptionKeyDefinition, OpaqueMembers};
use serde_json::{Map, Value as Json};

pub(crate) fn read(body: &Json) -> Result<ClientEncryptionKeyDefinition, NosqlFault> {
    let members = members(body, "a client encryption key")?;
    let id = name_of(members)?;
    let algorithm = text(members, "encryptionAlgorithm")?;
    let wrapped_key = text(members, "wrappedDataEncryptionKey")?;
    Ok(ClientEncryptionKeyDefinition::new(&id, algorithm, wrapped_key, metadata(members)?)?)
}

fn metadata(members: &Map<String, Json>) -> Result<OpaqueMembers, NosqlFault> {
    match members.get("keyWrapMetadata") {
        Some(Json::Object(metadata)) => Ok(opaque::read_members(metadata)),
        Some(_) | None => Err(bad("keyWrapMetadata", "it must be an object")),
    }
}

/// The JSON of a key without system properties.
pub(crate) fn write(key: &ClientEncryptionKeyDefinition) -> Map<String, Json> {
    let mut json = Map::new();
    json.insert("id".to_owned(), key.id().into());
    json.insert("encryptionAlgorithm".to_owned(), key.algorithm().into());
    json.insert("wrappedDataEncryptionKey".to_owned(), key.wrapped_key().into());
    json.insert("keyWrapMetadata".to_owned(), opaque::write_members(key.metadata()).into());
    json
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
        let definition = read(&good()).unwrap();
        assert_eq!(Json::Object(write(&definition)), good());
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
            let message = crate::faults::text(&read(&body).unwrap_err());
            assert!(message.contains(field), "{message}");
        }
    }
}
