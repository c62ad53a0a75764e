//! `partitionKey`

use super::bad;
use crate::faults::NosqlFault;
use model::{PartitionKeyDefinition, PartitionKeyKind};
use serde::Deserialize;
use serde_json::{Value as Json, json};

const FIELD: &str = "partitionKey";

/// The wire form; a missing `version` means 1.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPartitionKeyDefinition {
    paths: Vec<String>,
    #[serde(default = "hash_kind")]
    kind: String,
    #[serde(default)]
    version: Option<RawVersion>,
    #[serde(default)]
    system_key: Option<bool>,
}

/// A version as clients write it: usually a number; the Java SDK sends the name of its constant, `"V2"`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawVersion {
    Number(u32),
    Name(String),
}

impl RawVersion {
    fn number(&self) -> Option<u32> {
        match self {
            RawVersion::Number(number) => Some(*number),
            RawVersion::Name(name) => name.strip_prefix(['V', 'v'])?.parse().ok(),
        }
    }
}

impl std::fmt::Display for RawVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RawVersion::Number(number) => write!(formatter, "{number}"),
            RawVersion::Name(name) => write!(formatter, "\"{name}\""),
        }
    }
}

fn hash_kind() -> String {
    "Hash".to_owned()
}

pub(crate) fn read(json: &Json) -> Result<PartitionKeyDefinition, NosqlFault> {
    let raw = RawPartitionKeyDefinition::deserialize(json).map_err(|error| bad(FIELD, error.to_string()))?;
    let states_version = raw.version.is_some();
    let version = raw.version.unwrap_or(RawVersion::Number(1));
    let kind = match (raw.kind.as_str(), version.number()) {
        ("Hash", Some(1)) => PartitionKeyKind::HashV1,
        ("Hash", Some(2)) => PartitionKeyKind::HashV2,
        ("MultiHash", Some(2)) => PartitionKeyKind::MultiHash,
        ("MultiHash", _) => return Err(bad(FIELD, "kind \"MultiHash\" needs version 2")),
        ("Hash", _) => return Err(bad(FIELD, format!("version {version} is not 1 or 2"))),
        (other, _) => {
            return Err(bad(FIELD, format!("kind \"{other}\" is neither \"Hash\" nor \"MultiHash\"")));
        }
    };
    let mut definition = PartitionKeyDefinition::new(kind, raw.paths)?;
    if states_version {
        definition = definition.with_stated_version();
    }
    Ok(if raw.system_key == Some(true) { definition.marked_as_system() } else { definition })
}

pub(crate) fn write(definition: &PartitionKeyDefinition) -> Json {
    let (kind, version) = match definition.kind() {
        PartitionKeyKind::HashV1 => ("Hash", definition.states_version().then_some(1)),
        PartitionKeyKind::HashV2 => ("Hash", Some(2)),
        PartitionKeyKind::MultiHash => ("MultiHash", Some(2)),
    };
    let mut json = json!({ "paths": definition.path_texts(), "kind": kind });
    if let Some(version) = version {
        json["version"] = version.into();
    }
    if definition.is_system_key() {
        json["systemKey"] = true.into();
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number_or_the_name_of_one() {
        let kind = |version: Json| {
            let json = json!({ "paths": ["/a"], "kind": "Hash", "version": version });
            read(&json).map(|definition| definition.kind())
        };
        for version in [1.into(), "V1".into(), Json::Null] {
            assert_eq!(kind(version), Ok(PartitionKeyKind::HashV1));
        }
        for version in [2.into(), "V2".into(), "v2".into()] {
            assert_eq!(kind(version), Ok(PartitionKeyKind::HashV2));
        }
        for version in [3.into(), "V3".into(), "2".into(), "".into(), true.into(), 1.5.into()] {
            assert!(kind(version).is_err());
        }
    }
}
