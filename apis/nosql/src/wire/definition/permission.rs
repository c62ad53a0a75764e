//! Permissions of a user.

use super::{bad, choice, letter_case, members, name_in, name_of, spelled, text};
use crate::faults::NosqlFault;
use model::{PermissionDefinition, PermissionMode};
use serde_json::{Map, Value as Json};

const MODES: [(&str, PermissionMode); 2] = [("Read", PermissionMode::Read), ("All", PermissionMode::All)];

pub(crate) fn read(body: &Json) -> Result<PermissionDefinition, NosqlFault> {
    let members = members(body, "a permission")?;
    let key = match members.get("resourcePartitionKey") {
        None | Some(Json::Null) => None,
        Some(key @ Json::Array(_)) => Some(key.to_string()),
        Some(_) => return Err(bad("resourcePartitionKey", "it must be an array")),
    };
    let id = name_of(members)?;
    let mode = choice(members, "permissionMode", &MODES)?;
    let mode_case = letter_case(members, "permissionMode");
    let definition = PermissionDefinition::new(&id, mode, text(members, "resource")?, key)?;
    Ok(PermissionDefinition { mode_case, ..definition })
}

/// The JSON of a permission without system properties and token.
pub(crate) fn write(permission: &PermissionDefinition) -> Map<String, Json> {
    let mut json = Map::new();
    json.insert("id".to_owned(), permission.id.clone().into());
    let mode = spelled(name_in(&MODES, &permission.mode), permission.mode_case);
    json.insert("permissionMode".to_owned(), mode);
    json.insert("resource".to_owned(), permission.resource.clone().into());
    if let Some(key) = permission.key.as_ref().and_then(|key| serde_json::from_str(key).ok()) {
        json.insert("resourcePartitionKey".to_owned(), key);
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_mode_is_read_in_any_case_and_written_as_clients_do() {
        for (mode, written) in [("read", "read"), ("Read", "Read"), ("READ", "Read")] {
            let body = json!({ "id": "p", "permissionMode": mode, "resource": "dbs/d/colls/c" });
            let definition = read(&body).unwrap();
            assert_eq!(definition.mode, PermissionMode::Read);
            assert_eq!(write(&definition)["permissionMode"], written);
            assert!(!write(&definition).contains_key("resourcePartitionKey"));
        }
    }

    #[test]
    fn the_key_comes_back_as_it_was_sent() {
        let key = json!(["a", 1.5, null, {}]);
        let body =
            json!({ "id": "p", "permissionMode": "All", "resource": "x", "resourcePartitionKey": key });
        assert_eq!(write(&read(&body).unwrap())["resourcePartitionKey"], key);
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
            let message = read(&body).unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
        assert!(read(&json!([])).is_err());
    }
}
