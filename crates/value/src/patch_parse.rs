//! Patch operations from the JSON of a request: `[{"op":"set","path":"/a","value":1}, …]`.

use thiserror::Error;

use crate::{Kind, PatchOperation, PathError, Pointer, Value, ValueRef};

/// JSON that is not a list of patch operations.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatchParseError {
    /// The JSON value is not an array.
    #[error("patch operations must be an array")]
    NotAnArray,
    /// One of the operations is wrong.
    #[error("patch operation {operation_index}: {cause}")]
    Operation {
        /// Position in the list.
        operation_index: usize,
        /// What is wrong with it.
        cause: PatchParseCause,
    },
}

/// What can be wrong with the JSON of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatchParseCause {
    /// The operation is not an object.
    #[error("an operation must be an object")]
    NotAnObject,
    /// A property is missing or not a string.
    #[error("'{property}' must be a string")]
    NotAString {
        /// `op`, `path` or `from`.
        property: &'static str,
    },
    /// An unknown operation.
    #[error("unknown operation '{op}'")]
    UnknownOperation {
        /// Its name.
        op: String,
    },
    /// A path that is not a JSON pointer.
    #[error("'{property}' is no JSON pointer: {error}")]
    InvalidPath {
        /// `path` or `from`.
        property: &'static str,
        /// What is wrong with it.
        error: PathError,
    },
    /// The operation needs a value.
    #[error("'value' is missing")]
    MissingValue,
    /// Only numbers can be added.
    #[error("'value' of an increment must be a number")]
    IncrementNotANumber,
}

impl PatchOperation {
    /// Reads a list of operations. The caller limits their number; see
    /// [`PATCH_OPERATIONS_MAX`](crate::PATCH_OPERATIONS_MAX).
    pub fn list_from_json(list: ValueRef<'_>) -> Result<Vec<PatchOperation>, PatchParseError> {
        if list.kind() != Kind::Array {
            return Err(PatchParseError::NotAnArray);
        }
        list.elements()
            .enumerate()
            .map(|(operation_index, operation)| {
                parse(operation).map_err(|cause| PatchParseError::Operation { operation_index, cause })
            })
            .collect()
    }
}

fn parse(operation: ValueRef<'_>) -> Result<PatchOperation, PatchParseCause> {
    if operation.kind() != Kind::Object {
        return Err(PatchParseCause::NotAnObject);
    }
    match string(operation, "op")? {
        "add" => Ok(PatchOperation::Add { path: pointer(operation, "path")?, value: value(operation)? }),
        "set" => Ok(PatchOperation::Set { path: pointer(operation, "path")?, value: value(operation)? }),
        "replace" => {
            Ok(PatchOperation::Replace { path: pointer(operation, "path")?, value: value(operation)? })
        }
        "remove" => Ok(PatchOperation::Remove { path: pointer(operation, "path")? }),
        "incr" => {
            let (path, by) = (pointer(operation, "path")?, value(operation)?);
            if !by.kind().is_number() {
                return Err(PatchParseCause::IncrementNotANumber);
            }
            Ok(PatchOperation::Increment { path, by })
        }
        "move" => {
            Ok(PatchOperation::Move { from: pointer(operation, "from")?, path: pointer(operation, "path")? })
        }
        op => Err(PatchParseCause::UnknownOperation { op: op.to_owned() }),
    }
}

fn string<'a>(operation: ValueRef<'a>, property: &'static str) -> Result<&'a str, PatchParseCause> {
    operation.member(property).and_then(ValueRef::as_str).ok_or(PatchParseCause::NotAString { property })
}

fn pointer(operation: ValueRef<'_>, property: &'static str) -> Result<Pointer, PatchParseCause> {
    Pointer::parse(string(operation, property)?)
        .map_err(|error| PatchParseCause::InvalidPath { property, error })
}

fn value(operation: ValueRef<'_>) -> Result<Value, PatchParseCause> {
    operation.member("value").map(ValueRef::to_value).ok_or(PatchParseCause::MissingValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_list(text: &str) -> Result<Vec<PatchOperation>, PatchParseError> {
        PatchOperation::list_from_json((&Value::from_json(text.as_bytes()).unwrap()).into())
    }

    #[test]
    fn every_operation_is_read() {
        let text = r#"[{"op":"add","path":"/a/b","value":1},{"op":"set","path":"/a","value":{}},
            {"op":"replace","path":"/x","value":null},{"op":"remove","path":"/y"},
            {"op":"incr","path":"/n","value":-2.5},{"op":"move","from":"/p","path":"/q"}]"#;
        let path = |text| Pointer::parse(text).unwrap();
        let expected = vec![
            PatchOperation::Add { path: path("/a/b"), value: Value::Int64(1) },
            PatchOperation::Set { path: path("/a"), value: Value::Object(vec![]) },
            PatchOperation::Replace { path: path("/x"), value: Value::Null },
            PatchOperation::Remove { path: path("/y") },
            PatchOperation::Increment { path: path("/n"), by: Value::Double(-2.5) },
            PatchOperation::Move { from: path("/p"), path: path("/q") },
        ];
        assert_eq!(parse_list(text), Ok(expected));
    }

    #[track_caller]
    fn check(text: &str, message: &str) {
        assert_eq!(parse_list(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn errors_name_operation_and_property() {
        check("{}", "patch operations must be an array");
        check("[1]", "patch operation 0: an operation must be an object");
        check(r#"[{"path":"/a"}]"#, "patch operation 0: 'op' must be a string");
        check(r#"[{"op":"copy"}]"#, "patch operation 0: unknown operation 'copy'");
        check(r#"[{"op":"remove"}]"#, "patch operation 0: 'path' must be a string");
        check(r#"[{"op":"move","path":"/a"}]"#, "patch operation 0: 'from' must be a string");
        check(r#"[{"op":"set","path":"/a"}]"#, "patch operation 0: 'value' is missing");
        let increment = "patch operation 1: 'value' of an increment must be a number";
        check(r#"[{"op":"remove","path":"/a"},{"op":"incr","path":"/a","value":"1"}]"#, increment);
        let path = "patch operation 0: 'path' is no JSON pointer: missing '/' at byte 0 of a path";
        check(r#"[{"op":"remove","path":"a"}]"#, path);
    }
}
