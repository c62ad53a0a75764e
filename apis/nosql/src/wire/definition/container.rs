//! Containers: create, replace, and the answer.

use super::{
    bad, change_feed, computed, conflict, encryption, full_text, geospatial, indexing, members, name_of,
};
use super::{partition_key, time_to_live, unique, vector};
use crate::faults::NosqlFault;
use model::policy::Policies;
use model::{ContainerChange, ContainerDefinition, ContainerDraft, KeptProperty, PartitionKeyDefinition};
use serde_json::{Map, Value as Json};

/// Properties that are kept if a replacement omits them: clients omit what cannot be changed.
const KEPT_WHEN_ABSENT: [(&str, KeptProperty); 3] = [
    ("uniqueKeyPolicy", KeptProperty::UniqueKeys),
    ("conflictResolutionPolicy", KeptProperty::ConflictResolution),
    ("clientEncryptionPolicy", KeptProperty::ClientEncryption),
];

/// A new container. Without a partition key it is from an old client and gets a key that its documents do not have.
pub(crate) fn read(body: &Json) -> Result<ContainerDefinition, NosqlFault> {
    let members = members(body, "a container definition")?;
    let id = name_of(members)?;
    let partition_key = match members.get("partitionKey") {
        Some(json) => partition_key::read(json)?,
        None => PartitionKeyDefinition::system(),
    };
    Ok(read_draft(members, id, partition_key)?.checked()?)
}

/// A replacement of `current`. Immutable properties may be absent; an absent mutable property is reset.
pub(crate) fn read_change(current: &ContainerDefinition, body: &Json) -> Result<ContainerChange, NosqlFault> {
    let members = members(body, "a container definition")?;
    let is_absent = |name: &str| given(members, name).is_none();
    let mut kept: Vec<KeptProperty> = KEPT_WHEN_ABSENT
        .into_iter()
        .filter(|(name, _)| is_absent(name))
        .map(|(_, property)| property)
        .collect();
    let partition_key = match given(members, "partitionKey") {
        // Clients of a container without a key of its own send none.
        None if current.partition_key.is_system_key() => {
            kept.push(KeptProperty::PartitionKey);
            None
        }
        None => return Err(bad("partitionKey", "it is missing")),
        Some(json) => Some(json),
    };
    let id = name_of(members)?;
    let partition_key = match partition_key {
        Some(json) => partition_key::read(json)?,
        None => current.partition_key.clone(),
    };
    let wanted = read_draft(members, id, partition_key)?;
    // Vector indexes need the embeddings in the same body; a client that knows neither keeps them.
    if is_absent("vectorEmbeddingPolicy") && wanted.policies.indexing.vectors.is_empty() {
        kept.push(KeptProperty::VectorEmbeddings);
    }
    Ok(ContainerChange { wanted, kept })
}

fn read_draft(
    members: &Map<String, Json>,
    id: String,
    partition_key: PartitionKeyDefinition,
) -> Result<ContainerDraft, NosqlFault> {
    let key = &partition_key;
    let given = |name| given(members, name);
    let policies = Policies {
        indexing: indexing::read(given("indexingPolicy"))?,
        conflicts: conflict::read(given("conflictResolutionPolicy"))?,
        geospatial: geospatial::read(given("geospatialConfig"))?,
        change_feed: given("changeFeedPolicy").map(change_feed::read).transpose()?,
        computed: computed::read(given("computedProperties"), key)?,
        vectors: given("vectorEmbeddingPolicy").map(vector::read).transpose()?,
        full_text: given("fullTextPolicy").map(full_text::read).transpose()?,
        encryption: given("clientEncryptionPolicy").map(|json| encryption::read(json, key)).transpose()?,
        analytical_ttl: given("analyticalStorageTtl").map(time_to_live::read_analytical).transpose()?,
    };
    Ok(ContainerDraft {
        default_ttl: time_to_live::read_default(members.get("defaultTtl"))?,
        unique_keys: unique::read(members.get("uniqueKeyPolicy"))?,
        policies,
        ..ContainerDraft::new(id, partition_key)
    })
}

/// The JSON of a definition without system properties.
pub(crate) fn write(definition: &ContainerDefinition) -> Map<String, Json> {
    let policies = &definition.policies;
    let mut json = Map::new();
    let mut put = |name: &str, value: Json| drop(json.insert(name.to_owned(), value));
    put("id", definition.id.clone().into());
    put("partitionKey", partition_key::write(&definition.partition_key));
    if let Some(ttl) = time_to_live::write_default(definition.default_ttl) {
        put("defaultTtl", ttl);
    }
    put("uniqueKeyPolicy", unique::write(&definition.unique_keys));
    put("indexingPolicy", indexing::write(&policies.indexing));
    put("conflictResolutionPolicy", conflict::write(&policies.conflicts));
    put("geospatialConfig", geospatial::write(policies.geospatial));
    if let Some(policy) = policies.change_feed {
        put("changeFeedPolicy", change_feed::write(policy));
    }
    if !policies.computed.is_empty() {
        put("computedProperties", computed::write(&policies.computed));
    }
    if let Some(policy) = &policies.vectors {
        put("vectorEmbeddingPolicy", vector::write(policy));
    }
    if let Some(policy) = &policies.full_text {
        put("fullTextPolicy", full_text::write(policy));
    }
    if let Some(policy) = &policies.encryption {
        put("clientEncryptionPolicy", encryption::write(policy));
    }
    if let Some(ttl) = policies.analytical_ttl {
        put("analyticalStorageTtl", time_to_live::write_analytical(ttl));
    }
    json
}

/// A member that is present; null counts as absent.
fn given<'a>(members: &'a Map<String, Json>, name: &str) -> Option<&'a Json> {
    members.get(name).filter(|json| !json.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DefaultTtl, RequestFault};
    use serde_json::json;

    fn definition() -> ContainerDefinition {
        read(&json!({
            "id": "c",
            "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
            "defaultTtl": 60,
            "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/a", "/b/c"] }] },
        }))
        .unwrap()
    }

    fn replace(current: &ContainerDefinition, body: &Json) -> Result<ContainerDefinition, NosqlFault> {
        Ok(read_change(current, body)?.applied(current)?)
    }

    #[test]
    fn the_wire_form_round_trips_and_has_the_defaults() {
        let json = Json::Object(write(&definition()));
        assert_eq!(read(&json).unwrap(), definition());
        assert_eq!(json["indexingPolicy"]["includedPaths"][0]["path"], "/*");
        assert_eq!(json["conflictResolutionPolicy"]["mode"], "LastWriterWins");
    }

    #[test]
    fn immutable_parts_cannot_be_replaced() {
        let mut json = Json::Object(write(&definition()));
        json["partitionKey"]["paths"][0] = "/other".into();
        let property = "partitionKey".to_owned();
        assert_eq!(replace(&definition(), &json), Err(RequestFault::ImmutableProperty { property }.into()));
    }

    #[test]
    fn a_replacement_need_not_repeat_what_cannot_be_changed() {
        let body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } });
        let replaced = replace(&definition(), &body).unwrap();
        assert_eq!(replaced.unique_keys, definition().unique_keys);
        assert_eq!(replaced.default_ttl, DefaultTtl::Off);
        let without_key = replace(&definition(), &json!({ "id": "c" })).unwrap_err();
        assert!(crate::faults::text(&without_key).contains("partitionKey"), "{without_key}");
    }

    #[test]
    fn a_replacement_that_changes_what_is_fixed_names_it() {
        let vectors =
            |dimensions: u32| json!({ "vectorEmbeddings": [{ "path": "/v", "dimensions": dimensions }] });
        let mut old = Json::Object(write(&definition()));
        old["vectorEmbeddingPolicy"] = vectors(3);
        let old = read(&old).unwrap();
        for (property, value) in [
            ("id", json!("d")),
            ("uniqueKeyPolicy", json!({ "uniqueKeys": [] })),
            ("conflictResolutionPolicy", json!({ "mode": "Custom" })),
            ("vectorEmbeddingPolicy", vectors(4)),
            ("vectorEmbeddingPolicy", json!({ "vectorEmbeddings": [] })),
            ("clientEncryptionPolicy", json!({ "includedPaths": [], "policyFormatVersion": 1 })),
        ] {
            let mut body = Json::Object(write(&old));
            body[property] = value;
            let expected = RequestFault::ImmutableProperty { property: property.to_owned() };
            assert_eq!(replace(&old, &body), Err(expected.into()));
        }
        let mut added = Json::Object(write(&old));
        added["vectorEmbeddingPolicy"]["vectorEmbeddings"] = json!([{ "path": "/w" }]);
        assert!(replace(&old, &added).is_ok());
    }

    #[test]
    fn indexes_rest_on_their_policies() {
        let mut body = Json::Object(write(&definition()));
        body["indexingPolicy"]["vectorIndexes"] = json!([{ "path": "/v", "type": "flat" }]);
        body["indexingPolicy"]["fullTextIndexes"] = json!([{ "path": "/t" }]);
        let message = |body: &Json| crate::faults::text(&read(body).unwrap_err());
        assert!(message(&body).contains("/v"));
        body["vectorEmbeddingPolicy"] = json!({ "vectorEmbeddings": [{ "path": "/v", "dimensions": 506 }] });
        assert!(message(&body).contains("505"));
        body["vectorEmbeddingPolicy"]["vectorEmbeddings"][0]["dimensions"] = json!(505);
        assert!(message(&body).contains("/t"));
        body["fullTextPolicy"] = json!({ "fullTextPaths": [{ "path": "/t" }] });
        let definition = read(&body).unwrap();
        assert_eq!(read(&Json::Object(write(&definition))).unwrap(), definition);
    }

    #[test]
    fn a_container_of_an_old_client_has_a_key_of_ours() {
        let definition = read(&json!({ "id": "c" })).unwrap();
        assert!(definition.partition_key.is_system_key());
        let json = write(&definition);
        let expected = json!({ "paths": ["/_partitionKey"], "kind": "Hash", "systemKey": true });
        assert_eq!(json["partitionKey"], expected);
        assert!(replace(&definition, &json!({ "id": "c" })).is_ok());
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
            let message = crate::faults::text(&read(&body).unwrap_err());
            assert!(message.contains(expected), "{body}: {message}");
        }
    }
}
