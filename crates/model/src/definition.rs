//! What a container is: its name, partition key, time to live, unique keys and policies.
//!
//! Reads and writes the wire form with the service's defaults. Policies that no floor acts on yet are checked to
//! be objects, kept as they came and given back.

use crate::limits::{NAME_CHARS_MAX, UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX};
use crate::{PartitionKeyDefinition, RequestFault};
use serde_json::{Map, Value as Json, json};
use value::PropertyPath;

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
    /// All other policies in wire form, with defaults filled in.
    policies: Map<String, Json>,
}

/// The container's word on expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Nothing expires, whatever the document says.
    Off,
    /// Documents expire when they say so themselves.
    OnDemand,
    /// Documents expire after so many seconds unless they say otherwise.
    Seconds(u32),
}

/// The unique key constraints of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueKeyPolicy {
    /// The constraints, in the order of the definition.
    pub keys: Vec<UniqueKey>,
}

/// One constraint: no two documents of a logical partition have equal values at all these paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    /// The paths.
    pub paths: Vec<PropertyPath>,
}

/// Policies that are kept and given back as they came.
const KEPT_POLICIES: [&str; 9] = [
    "indexingPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "changeFeedPolicy",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "clientEncryptionPolicy",
    "computedProperties",
    "analyticalStorageTtl",
];

impl ContainerDefinition {
    /// Reads the wire form of a new container.
    pub fn from_json(body: &Json) -> Result<ContainerDefinition, RequestFault> {
        let Json::Object(members) = body else {
            return Err(RequestFault::BadBody {
                reason: "a container definition is a JSON object".to_owned(),
            });
        };
        let id = name_of(members)?;
        let Some(partition_key) = members.get("partitionKey").filter(|json| !json.is_null()) else {
            return Err(bad("partitionKey", "it is missing"));
        };
        Ok(ContainerDefinition {
            id,
            partition_key: PartitionKeyDefinition::from_json(partition_key)?,
            default_ttl: DefaultTtl::from_json(members.get("defaultTtl"))?,
            unique_keys: UniqueKeyPolicy::from_json(members.get("uniqueKeyPolicy"))?,
            policies: policies_of(members)?,
        })
    }

    /// Reads the wire form of a replacement: name, partition key and unique keys must be as before.
    pub fn replaced_by(&self, body: &Json) -> Result<ContainerDefinition, RequestFault> {
        let new = ContainerDefinition::from_json(body)?;
        if new.id != self.id {
            return Err(RequestFault::ImmutableProperty { property: "id".to_owned() });
        }
        if new.partition_key != self.partition_key {
            return Err(RequestFault::ImmutableProperty { property: "partitionKey".to_owned() });
        }
        if new.unique_keys != self.unique_keys {
            return Err(RequestFault::ImmutableProperty { property: "uniqueKeyPolicy".to_owned() });
        }
        Ok(new)
    }

    /// The wire form, without system properties.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.id.clone().into());
        json.insert("partitionKey".to_owned(), self.partition_key.to_json());
        match self.default_ttl {
            DefaultTtl::Off => {}
            DefaultTtl::OnDemand => drop(json.insert("defaultTtl".to_owned(), (-1).into())),
            DefaultTtl::Seconds(seconds) => drop(json.insert("defaultTtl".to_owned(), seconds.into())),
        }
        json.insert("uniqueKeyPolicy".to_owned(), self.unique_keys.to_json());
        json.extend(self.policies.clone());
        json
    }
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

impl DefaultTtl {
    fn from_json(json: Option<&Json>) -> Result<DefaultTtl, RequestFault> {
        match json {
            None | Some(Json::Null) => Ok(DefaultTtl::Off),
            Some(json) => match json.as_i64() {
                Some(-1) => Ok(DefaultTtl::OnDemand),
                Some(seconds @ 1..=0x7FFF_FFFF) => {
                    Ok(DefaultTtl::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX)))
                }
                Some(_) | None => {
                    Err(bad("defaultTtl", "it must be -1 or a whole number from 1 to 2147483647"))
                }
            },
        }
    }
}

impl UniqueKeyPolicy {
    fn from_json(json: Option<&Json>) -> Result<UniqueKeyPolicy, RequestFault> {
        let field = "uniqueKeyPolicy";
        let Some(json) = json.filter(|json| !json.is_null()) else {
            return Ok(UniqueKeyPolicy::default());
        };
        let Json::Object(policy) = json else {
            return Err(bad(field, "it must be an object"));
        };
        let keys = match policy.get("uniqueKeys") {
            None | Some(Json::Null) => return Ok(UniqueKeyPolicy::default()),
            Some(Json::Array(keys)) => keys,
            Some(_) => return Err(bad(field, "\"uniqueKeys\" must be an array")),
        };
        if keys.len() > UNIQUE_KEYS_MAX {
            return Err(bad(field, format!("{} constraints given, {UNIQUE_KEYS_MAX} allowed", keys.len())));
        }
        let keys = keys.iter().map(UniqueKey::from_json).collect::<Result<_, _>>()?;
        Ok(UniqueKeyPolicy { keys })
    }

    fn to_json(&self) -> Json {
        let key = |key: &UniqueKey| json!({ "paths": key.paths.iter().map(ToString::to_string).collect::<Vec<_>>() });
        json!({ "uniqueKeys": self.keys.iter().map(key).collect::<Vec<_>>() })
    }
}

impl UniqueKey {
    fn from_json(json: &Json) -> Result<UniqueKey, RequestFault> {
        let field = "uniqueKeyPolicy";
        let Some(Json::Array(texts)) = json.get("paths") else {
            return Err(bad(field, "each constraint needs an array \"paths\""));
        };
        if texts.is_empty() || texts.len() > UNIQUE_KEY_PATHS_MAX {
            return Err(bad(
                field,
                format!("{} paths in a constraint, 1 to {UNIQUE_KEY_PATHS_MAX} allowed", texts.len()),
            ));
        }
        let path = |text: &Json| {
            let text = text.as_str().ok_or_else(|| bad(field, "a path must be a string"))?;
            PropertyPath::parse(text).map_err(|error| bad(field, error.to_string()))
        };
        Ok(UniqueKey { paths: texts.iter().map(path).collect::<Result<_, _>>()? })
    }
}

/// Takes over the policies given and fills in what the service defaults.
fn policies_of(members: &Map<String, Json>) -> Result<Map<String, Json>, RequestFault> {
    let mut policies = Map::new();
    policies.insert("indexingPolicy".to_owned(), default_indexing_policy());
    policies.insert(
        "conflictResolutionPolicy".to_owned(),
        json!({ "mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": "" }),
    );
    policies.insert("geospatialConfig".to_owned(), json!({ "type": "Geography" }));
    for field in KEPT_POLICIES {
        let Some(json) = members.get(field).filter(|json| !json.is_null()) else {
            continue;
        };
        let fits = match field {
            "computedProperties" => json.is_array(),
            "analyticalStorageTtl" => json.is_i64(),
            _ => json.is_object(),
        };
        if !fits {
            return Err(bad(field, "it has the wrong JSON type"));
        }
        let json = if field == "indexingPolicy" { indexing_policy(json)? } else { json.clone() };
        policies.insert(field.to_owned(), json);
    }
    Ok(policies)
}

fn default_indexing_policy() -> Json {
    json!({
        "indexingMode": "consistent",
        "automatic": true,
        "includedPaths": [{ "path": "/*" }],
        "excludedPaths": [{ "path": ETAG_PATH }],
    })
}

/// The one property that is left out of the index by default.
const ETAG_PATH: &str = "/\"_etag\"/?";

/// Fills the members that a client left out; the mode is compared without case.
fn indexing_policy(json: &Json) -> Result<Json, RequestFault> {
    let field = "indexingPolicy";
    let mode = match json.get("indexingMode") {
        None | Some(Json::Null) => "consistent".to_owned(),
        Some(Json::String(mode)) => mode.to_ascii_lowercase(),
        Some(_) => return Err(bad(field, "\"indexingMode\" must be a string")),
    };
    let automatic = match mode.as_str() {
        "consistent" | "lazy" => true,
        "none" => false,
        other => return Err(bad(field, format!("the indexing mode \"{other}\" is unknown"))),
    };
    let mut policy =
        json!({ "indexingMode": mode, "automatic": automatic, "includedPaths": [], "excludedPaths": [] });
    for (name, member) in json.as_object().into_iter().flatten() {
        let fits = match name.as_str() {
            "automatic" => member.is_boolean(),
            "indexingMode" => true,
            _ => member.is_array(),
        };
        if !fits {
            return Err(bad(field, format!("\"{name}\" has the wrong JSON type")));
        }
        policy[name] = member.clone();
    }
    if mode != "none" {
        add_implied_paths(&mut policy);
    }
    policy["indexingMode"] = mode.into();
    Ok(policy)
}

/// As the service does: the root is included unless a list names it, and the ETag excluded unless a list names it.
fn add_implied_paths(policy: &mut Json) {
    let unquoted = |path: &str| path.replace('"', "");
    for (list, implied) in [("includedPaths", "/*"), ("excludedPaths", ETAG_PATH)] {
        let lists = ["includedPaths", "excludedPaths"].iter().filter_map(|list| policy[list].as_array());
        let mut paths = lists.flatten().filter_map(|entry| entry.get("path")?.as_str());
        if !paths.any(|path| unquoted(path) == unquoted(implied))
            && let Some(paths) = policy[list].as_array_mut()
        {
            paths.push(json!({ "path": implied }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_root_and_the_etag_are_always_in_one_of_the_lists() {
        let lists = |policy: Json| {
            let policy = indexing_policy(&policy).unwrap();
            ["includedPaths", "excludedPaths"].map(|list| {
                let paths = policy[list].as_array().unwrap().iter();
                paths.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
            })
        };
        let paths = |paths: &[&str]| paths.iter().map(|path| json!({ "path": path })).collect::<Vec<_>>();
        assert_eq!(lists(json!({})), [vec!["/*"], vec![ETAG_PATH]]);
        // What the Java SDK sends by default.
        let java = json!({ "includedPaths": paths(&["/*"]), "excludedPaths": [] });
        assert_eq!(lists(java), [vec!["/*"], vec![ETAG_PATH]]);
        let none = json!({ "excludedPaths": paths(&["/*"]) });
        assert_eq!(lists(none), [vec![], vec!["/*", ETAG_PATH]]);
        let some = json!({ "includedPaths": paths(&["/a/?"]) });
        assert_eq!(lists(some), [vec!["/a/?", "/*"], vec![ETAG_PATH]]);
        let etag = json!({ "includedPaths": paths(&["/*", "/_etag/?"]) });
        assert_eq!(lists(etag), [vec!["/*", "/_etag/?"], vec![]]);
        assert_eq!(lists(json!({ "indexingMode": "None" })), [Vec::<String>::new(), vec![]]);
    }

    #[test]
    fn immutable_parts_cannot_be_replaced() {
        let mut json = Json::Object(definition().to_json());
        json["partitionKey"]["paths"][0] = "/other".into();
        let property = "partitionKey".to_owned();
        assert_eq!(definition().replaced_by(&json), Err(RequestFault::ImmutableProperty { property }));
    }

    #[test]
    fn wrong_fields_are_named() {
        let cases = [
            (json!([]), "the request body is invalid"),
            (json!({}), "\"id\""),
            (json!({ "id": 1 }), "\"id\""),
            (json!({ "id": "a/b" }), "a/b"),
            (json!({ "id": "c" }), "\"partitionKey\""),
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
