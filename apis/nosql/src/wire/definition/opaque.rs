//! JSON that is stored and returned without being interpreted.

use model::{Opaque, OpaqueMembers};
use serde_json::{Map, Number, Value as Json};

/// The value of `json`.
pub(super) fn read(json: &Json) -> Opaque {
    match json {
        Json::Null => Opaque::Null,
        Json::Bool(flag) => Opaque::Bool(*flag),
        Json::Number(number) => read_number(number),
        Json::String(text) => Opaque::Text(text.clone()),
        Json::Array(items) => Opaque::List(items.iter().map(read).collect()),
        Json::Object(members) => Opaque::Members(read_members(members)),
    }
}

/// The members of an object.
pub(super) fn read_members(members: &Map<String, Json>) -> OpaqueMembers {
    members.iter().map(|(name, json)| (name.clone(), read(json))).collect()
}

fn read_number(number: &Number) -> Opaque {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => Opaque::Signed(number),
        (None, Some(number)) => Opaque::Unsigned(number),
        (None, None) => Opaque::Double(number.as_f64().unwrap_or_default()),
    }
}

/// The JSON of a value.
pub(super) fn write(value: &Opaque) -> Json {
    match value {
        Opaque::Null => Json::Null,
        Opaque::Bool(flag) => Json::Bool(*flag),
        Opaque::Signed(number) => Json::from(*number),
        Opaque::Unsigned(number) => Json::from(*number),
        Opaque::Double(number) => Json::from(*number),
        Opaque::Text(text) => Json::from(text.as_str()),
        Opaque::List(items) => items.iter().map(write).collect(),
        Opaque::Members(members) => Json::Object(write_members(members)),
    }
}

/// The object of some members.
pub(super) fn write_members(members: &OpaqueMembers) -> Map<String, Json> {
    members.iter().map(|(name, value)| (name.to_owned(), write(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_value_comes_back_as_it_was_written() {
        let json =
            json!([null, true, false, -1, u64::MAX, 0.1, 1.0, "ä", [], {}, { "b": [1], "a": { "x": null } }]);
        assert_eq!(write(&read(&json)).to_string(), json.to_string());
    }
}
