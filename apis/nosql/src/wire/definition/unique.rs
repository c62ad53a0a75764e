//! `uniqueKeyPolicy`

use super::bad;
use crate::faults::NosqlFault;
use model::{UniqueKey, UniqueKeyPolicy};
use serde_json::{Value as Json, json};
use value::PropertyPath;

const POLICY: &str = "uniqueKeyPolicy";

/// Absent means none.
pub(super) fn read(json: Option<&Json>) -> Result<UniqueKeyPolicy, NosqlFault> {
    let Some(json) = json.filter(|json| !json.is_null()) else {
        return Ok(UniqueKeyPolicy::default());
    };
    let Json::Object(policy) = json else {
        return Err(bad(POLICY, "it must be an object"));
    };
    let keys = match policy.get("uniqueKeys") {
        None | Some(Json::Null) => return Ok(UniqueKeyPolicy::default()),
        Some(Json::Array(keys)) => keys,
        Some(_) => return Err(bad(POLICY, "\"uniqueKeys\" must be an array")),
    };
    UniqueKeyPolicy::check_count(keys.len())?;
    Ok(UniqueKeyPolicy { keys: keys.iter().map(read_key).collect::<Result<_, _>>()? })
}

fn read_key(json: &Json) -> Result<UniqueKey, NosqlFault> {
    let Some(Json::Array(texts)) = json.get("paths") else {
        return Err(bad(POLICY, "each constraint needs an array \"paths\""));
    };
    UniqueKey::check_count(texts.len())?;
    let path = |text: &Json| {
        let text = text.as_str().ok_or_else(|| bad(POLICY, "a path must be a string"))?;
        PropertyPath::parse(text).map_err(|error| bad(POLICY, error.to_string()))
    };
    Ok(UniqueKey { paths: texts.iter().map(path).collect::<Result<_, _>>()? })
}

pub(super) fn write(policy: &UniqueKeyPolicy) -> Json {
    let key =
        |key: &UniqueKey| json!({ "paths": key.paths.iter().map(ToString::to_string).collect::<Vec<_>>() });
    json!({ "uniqueKeys": policy.keys.iter().map(key).collect::<Vec<_>>() })
}
