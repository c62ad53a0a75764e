//! What a container is: its name, partition key, time to live, unique keys and policies.
//!
//! Reads and writes the wire form with the service's defaults. What each policy says is its own file's business.

use crate::limits::NAME_CHARS_MAX;
use crate::policy::{DefaultTtl, Policies, UniqueKeyPolicy};
use crate::{DecodeFault, Decoder, Encoder, PartitionKeyDefinition, RequestFault};
use serde_json::{Map, Value as Json};

/// The definition of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerDefinition {
    /// Its name.
    pub id: String,
    /// Where the partition key of its documents is.
    pub partition_key: PartitionKeyDefinition,
    /// When its documents expire.
    pub default_ttl: DefaultTtl,
    /// Which values may occur once only in a logical partition.
    pub unique_keys: UniqueKeyPolicy,
    /// All other policies.
    pub policies: Policies,
    /// How its values are ordered.
    pub order: ValueOrder,
}

/// The order of values of different kinds, in key codes and results. It is fixed when a container is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOrder {
    /// That of the NoSQL API.
    NoSql,
}

/// What stays as it is when a replacement does not mention it: clients leave out what cannot be changed.
const KEPT_WHEN_ABSENT: [&str; 4] =
    ["uniqueKeyPolicy", "conflictResolutionPolicy", "clientEncryptionPolicy", "vectorEmbeddingPolicy"];

impl ContainerDefinition {
    /// Reads the wire form of a new container. One without a partition key is of an old client and gets a key that
    /// its documents do not have.
    pub fn from_json(body: &Json) -> Result<ContainerDefinition, RequestFault> {
        let members = members(body)?;
        let id = name_of(members)?;
        let partition_key = match members.get("partitionKey") {
            Some(json) => PartitionKeyDefinition::from_json(json)?,
            None => PartitionKeyDefinition::system(),
        };
        let policies = Policies::from_json(members, &partition_key)?;
        Ok(ContainerDefinition {
            id,
            partition_key,
            default_ttl: DefaultTtl::from_json(members.get("defaultTtl"))?,
            unique_keys: UniqueKeyPolicy::from_json(members.get("uniqueKeyPolicy"))?,
            policies,
            order: ValueOrder::NoSql,
        })
    }

    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.byte(self.order.tag());
        out.text(&self.id);
        self.partition_key.encode(out);
        self.default_ttl.encode(out);
        self.unique_keys.encode(out);
        self.policies.encode(out);
    }

    /// Reads its encoding. What was accepted once is not judged again: rules for new definitions may change.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ContainerDefinition, DecodeFault> {
        Ok(ContainerDefinition {
            order: input.choice("value order", [ValueOrder::NoSql], ValueOrder::tag)?,
            id: input.text("name of a container")?,
            partition_key: PartitionKeyDefinition::decode(input)?,
            default_ttl: DefaultTtl::decode(input)?,
            unique_keys: UniqueKeyPolicy::decode(input)?,
            policies: Policies::decode(input)?,
        })
    }

    /// Reads the wire form of a replacement: what cannot be changed must be absent or as before.
    pub fn replaced_by(&self, body: &Json) -> Result<ContainerDefinition, RequestFault> {
        let mut merged = members(body)?.clone();
        let current = self.to_json();
        let without_key = self.partition_key.is_system_key().then_some("partitionKey");
        for name in KEPT_WHEN_ABSENT.into_iter().chain(without_key) {
            let absent = merged.get(name).is_none_or(Json::is_null);
            if let Some(json) = current.get(name).filter(|_| absent) {
                merged.insert(name.to_owned(), json.clone());
            }
        }
        if merged.get("partitionKey").is_none_or(Json::is_null) {
            return Err(bad("partitionKey", "it is missing"));
        }
        let new = ContainerDefinition {
            order: self.order,
            ..ContainerDefinition::from_json(&Json::Object(merged))?
        };
        for (property, same) in [
            ("id", new.id == self.id),
            ("partitionKey", new.partition_key == self.partition_key),
            ("uniqueKeyPolicy", new.unique_keys == self.unique_keys),
        ] {
            if !same {
                return Err(RequestFault::ImmutableProperty { property: property.to_owned() });
            }
        }
        self.policies.check_replacement(&new.policies)?;
        Ok(new)
    }

    /// The wire form, without system properties.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.id.clone().into());
        json.insert("partitionKey".to_owned(), self.partition_key.to_json());
        if let Some(ttl) = self.default_ttl.to_json() {
            json.insert("defaultTtl".to_owned(), ttl);
        }
        json.insert("uniqueKeyPolicy".to_owned(), self.unique_keys.to_json());
        self.policies.write(&mut json);
        json
    }
}

impl ValueOrder {
    fn tag(self) -> u8 {
        match self {
            ValueOrder::NoSql => 0,
        }
    }
}

fn members(body: &Json) -> Result<&Map<String, Json>, RequestFault> {
    let bad = || RequestFault::BadBody { reason: "a container definition is a JSON object".to_owned() };
    body.as_object().ok_or_else(bad)
}

/// Checks a name of a database or container against the published rules and gives it back.
pub fn checked_name(name: &str) -> Result<&str, RequestFault> {
    let bad = |reason: &str| Err(RequestFault::BadName { name: name.to_owned(), reason: reason.to_owned() });
    if name.is_empty() {
        return bad("it is empty");
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return bad("it has more than 255 characters");
    }
    if let Some(character) =
        name.chars().find(|character| matches!(character, '/' | '\\' | '#' | '?') || character.is_control())
    {
        return bad(&format!("the character {character:?} is not allowed"));
    }
    if name.ends_with(' ') {
        return bad("it ends with a space");
    }
    Ok(name)
}

/// The `id` of a definition of a database or container.
pub fn name_of(members: &Map<String, Json>) -> Result<String, RequestFault> {
    match members.get("id") {
        Some(Json::String(name)) => checked_name(name).map(str::to_owned),
        Some(_) => Err(bad("id", "it must be a string")),
        None => Err(bad("id", "it is missing")),
    }
}

fn bad(field: &str, reason: impl Into<String>) -> RequestFault {
    RequestFault::BadDefinition { field: field.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition() -> ContainerDefinition {
        ContainerDefinition::from_json(&json!({
            "id": "c",
            "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
            "defaultTtl": 60,
            "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/a", "/b/c"] }] },
        }))
        .unwrap()
    }

    #[test]
    fn the_wire_form_round_trips_and_has_the_defaults() {
        let json = Json::Object(definition().to_json());
        assert_eq!(ContainerDefinition::from_json(&json).unwrap(), definition());
        assert_eq!(json["indexingPolicy"]["includedPaths"][0]["path"], "/*");
        assert_eq!(json["conflictResolutionPolicy"]["mode"], "LastWriterWins");
    }

    #[test]
    fn immutable_parts_cannot_be_replaced() {
        let mut json = Json::Object(definition().to_json());
        json["partitionKey"]["paths"][0] = "/other".into();
        let property = "partitionKey".to_owned();
        assert_eq!(definition().replaced_by(&json), Err(RequestFault::ImmutableProperty { property }));
    }

    #[test]
    fn a_replacement_need_not_repeat_what_cannot_be_changed() {
        let body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } });
        let replaced = definition().replaced_by(&body).unwrap();
        assert_eq!(replaced.unique_keys, definition().unique_keys);
        assert_eq!(replaced.default_ttl, DefaultTtl::Off);
        let without_key = definition().replaced_by(&json!({ "id": "c" })).unwrap_err();
        assert!(without_key.to_string().contains("partitionKey"), "{without_key}");
    }

    #[test]
    fn a_replacement_that_changes_what_is_fixed_names_it() {
        let vectors =
            |dimensions: u32| json!({ "vectorEmbeddings": [{ "path": "/v", "dimensions": dimensions }] });
        let mut old = Json::Object(definition().to_json());
        old["vectorEmbeddingPolicy"] = vectors(3);
        let old = ContainerDefinition::from_json(&old).unwrap();
        for (property, value) in [
            ("id", json!("d")),
            ("uniqueKeyPolicy", json!({ "uniqueKeys": [] })),
            ("conflictResolutionPolicy", json!({ "mode": "Custom" })),
            ("vectorEmbeddingPolicy", vectors(4)),
            ("clientEncryptionPolicy", json!({ "includedPaths": [], "policyFormatVersion": 1 })),
        ] {
            let mut body = Json::Object(old.to_json());
            body[property] = value;
            let expected = RequestFault::ImmutableProperty { property: property.to_owned() };
            assert_eq!(old.replaced_by(&body), Err(expected));
        }
        let mut added = Json::Object(old.to_json());
        added["vectorEmbeddingPolicy"]["vectorEmbeddings"] = json!([{ "path": "/w" }]);
        assert!(old.replaced_by(&added).is_ok());
    }

    #[test]
    fn indexes_rest_on_their_policies() {
        let mut body = Json::Object(definition().to_json());
        body["indexingPolicy"]["vectorIndexes"] = json!([{ "path": "/v", "type": "flat" }]);
        body["indexingPolicy"]["fullTextIndexes"] = json!([{ "path": "/t" }]);
        let message = |body: &Json| ContainerDefinition::from_json(body).unwrap_err().to_string();
        assert!(message(&body).contains("/v"));
        body["vectorEmbeddingPolicy"] = json!({ "vectorEmbeddings": [{ "path": "/v", "dimensions": 506 }] });
        assert!(message(&body).contains("505"));
        body["vectorEmbeddingPolicy"]["vectorEmbeddings"][0]["dimensions"] = json!(505);
        assert!(message(&body).contains("/t"));
        body["fullTextPolicy"] = json!({ "fullTextPaths": [{ "path": "/t" }] });
        let definition = ContainerDefinition::from_json(&body).unwrap();
        assert_eq!(ContainerDefinition::from_json(&Json::Object(definition.to_json())).unwrap(), definition);
    }

    #[test]
    fn a_container_of_an_old_client_has_a_key_of_ours() {
        let definition = ContainerDefinition::from_json(&json!({ "id": "c" })).unwrap();
        assert!(definition.partition_key.is_system_key());
        let json = definition.to_json();
        let expected = json!({ "paths": ["/_partitionKey"], "kind": "Hash", "systemKey": true });
        assert_eq!(json["partitionKey"], expected);
        assert!(definition.replaced_by(&json!({ "id": "c" })).is_ok());
    }

    #[test]
    fn wrong_fields_are_named() {
        let cases = [
            (json!([]), "the request body is invalid"),
            (json!({}), "\"id\""),
            (json!({ "id": 1 }), "\"id\""),
            (json!({ "id": "a/b" }), "a/b"),
            (json!({ "id": "c", "partitionKey": { "paths": [] } }), "\"partitionKey\""),
            (
                json!({ "id": "c", "partitionKey": { "paths": ["/a", "/b"], "version": 2 } }),
                "\"partitionKey\"",
            ),
            (
                json!({ "id": "c", "partitionKey": { "paths": ["/a"], "kind": "MultiHash" } }),
                "\"partitionKey\"",
            ),
            (json!({ "id": "c", "partitionKey": { "paths": ["/a"] }, "defaultTtl": 0 }), "\"defaultTtl\""),
            (
                json!({ "id": "c", "partitionKey": { "paths": ["/a"] }, "uniqueKeyPolicy": 7 }),
                "\"uniqueKeyPolicy\"",
            ),
            (
                json!({ "id": "c", "partitionKey": { "paths": ["/a"] }, "indexingPolicy": [] }),
                "\"indexingPolicy\"",
            ),
        ];
        for (body, expected) in cases {
            let message = ContainerDefinition::from_json(&body).unwrap_err().to_string();
            assert!(message.contains(expected), "{body}: {message}");
        }
    }

    #[test]
    fn names_follow_the_rules_on_both_sides_of_the_bound() {
        assert!(checked_name(&"n".repeat(255)).is_ok());
        assert!(checked_name(&"n".repeat(256)).is_err());
        assert!(checked_name("").is_err() && checked_name("a ").is_err() && checked_name("a\tb").is_err());
        assert!(checked_name("é ü").is_ok());
    }
}
