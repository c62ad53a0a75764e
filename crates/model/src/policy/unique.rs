//! Unique keys: which values may occur once only in a logical partition.

use super::reader::bad;
use crate::limits::{UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX};
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Value as Json, json};
use value::PropertyPath;

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

impl UniqueKeyPolicy {
    pub(crate) fn from_json(json: Option<&Json>) -> Result<UniqueKeyPolicy, RequestFault> {
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

    pub(crate) fn to_json(&self) -> Json {
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

impl UniqueKeyPolicy {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.list(&self.keys, |out, key| out.list(&key.paths, Encoder::path));
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<UniqueKeyPolicy, DecodeFault> {
        let key = |input: &mut Decoder<'_>| {
            let paths = input.list("paths of a unique key", |input| input.path("path of a unique key"))?;
            Ok(UniqueKey { paths })
        };
        Ok(UniqueKeyPolicy { keys: input.list("unique keys", key)? })
    }
}
