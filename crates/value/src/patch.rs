//! Atomic partial changes of a document.
//!
//! | operation | rule |
//! |---|---|
//! | add | member: insert or overwrite; array: insert before the position, `-` or the length appends |
//! | set | as add, but an existing array element is overwritten |
//! | replace | the target must exist |
//! | remove | the target must exist; later elements move up |
//! | increment | adds to a number, creates a missing member; an existing value must be a number |
//! | move | remove at `from`, then add at `path` |
//!
//! Parents must exist. Callers check which paths a client may change; `patch_parse` reads operations from JSON.

use thiserror::Error;

use crate::decoded::DecodedNumber;
use crate::{Decimal128, Document, DocumentError, JSON_DEPTH_MAX, Kind, Pointer, Value, ValueRef};

/// Most operations of one patch; checked by the API.
pub const PATCH_OPERATIONS_MAX: usize = 10;

/// One change.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // The table above says what each does.
pub enum PatchOperation {
    Add { path: Pointer, value: Value },
    Set { path: Pointer, value: Value },
    Replace { path: Pointer, value: Value },
    Remove { path: Pointer },
    Increment { path: Pointer, by: Value },
    Move { from: Pointer, path: Pointer },
}

/// A patch that cannot be applied.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("patch operation {operation_index} at '{path}': {cause}")]
pub struct PatchError {
    /// Position of the operation in the patch.
    pub operation_index: usize,
    /// The path at fault: `from` of a move if that one is wrong.
    pub path: Pointer,
    /// Why the operation cannot be applied.
    pub cause: PatchCause,
}

/// Why an operation cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatchCause {
    /// The root cannot be changed as a whole.
    #[error("the path is the whole document")]
    Root,
    /// The parent, or the value to be replaced, removed or moved, does not exist.
    #[error("nothing is at the path")]
    Missing,
    /// A step into a value that is neither object nor array.
    #[error("the parent is neither an object nor an array")]
    NotAContainer,
    /// A step into an array that is not a position.
    #[error("not an array position")]
    NotAPosition,
    /// A position after the end.
    #[error("array position {index} is beyond the length {len}")]
    BeyondEnd {
        /// The position.
        index: usize,
        /// Number of elements.
        len: usize,
    },
    /// Only numbers can be incremented, and only by numbers.
    #[error("not a number")]
    NotANumber,
    /// The sum is beyond the largest double.
    #[error("the sum is out of range")]
    OutOfRange,
    /// A value cannot be moved into itself.
    #[error("the target of the move lies inside its source")]
    IntoItself,
    /// More levels of arrays and objects than [`JSON_DEPTH_MAX`].
    #[error("the result is nested too deep")]
    TooDeep,
    /// More than 4 GiB in encoded form.
    #[error("the result is too large")]
    TooLarge,
}

/// The document after all operations in order, or the first failure.
pub fn apply(document: &Document, operations: &[PatchOperation]) -> Result<Document, PatchError> {
    let mut root = document.to_value();
    for (operation_index, operation) in operations.iter().enumerate() {
        apply_one(&mut root, operation).map_err(|(path, cause)| PatchError {
            operation_index,
            path: path.clone(),
            cause,
        })?;
    }
    // Depth was checked with each operation, so only the size can fail here, and all operations contribute to it.
    Document::from_value(&root).map_err(|error| PatchError {
        operation_index: operations.len().saturating_sub(1),
        path: Pointer::root(),
        cause: match error {
            DocumentError::TooDeep => PatchCause::TooDeep,
            DocumentError::TooLarge => PatchCause::TooLarge,
            DocumentError::NotAnObject { .. } => PatchCause::Root,
        },
    })
}

fn apply_one<'a>(root: &mut Value, operation: &'a PatchOperation) -> Result<(), (&'a Pointer, PatchCause)> {
    let (path, outcome) = match operation {
        PatchOperation::Add { path, value } => (path, put(root, path, value, OnElement::Insert)),
        PatchOperation::Set { path, value } => (path, put(root, path, value, OnElement::Overwrite)),
        PatchOperation::Replace { path, value } => (path, replace(root, path, value)),
        PatchOperation::Remove { path } => (path, remove(root, path).map(drop)),
        PatchOperation::Increment { path, by } => (path, increment(root, path, by)),
        PatchOperation::Move { from, path } => {
            if path.is_below(from) {
                return Err((path, PatchCause::IntoItself));
            }
            let moved = remove(root, from).map_err(|cause| (from, cause))?;
            (path, put(root, path, &moved, OnElement::Insert))
        }
    };
    outcome.map_err(|cause| (path, cause))
}

/// What happens to an existing element at the position of a new value.
#[derive(Clone, Copy, PartialEq)]
enum OnElement {
    Insert,
    Overwrite,
}

fn put(root: &mut Value, path: &Pointer, value: &Value, on_element: OnElement) -> Result<(), PatchCause> {
    check_depth(path, value)?;
    let (parent, step) = parent(root, path)?;
    match parent {
        Parent::Object(members) => match position_of(members, step) {
            Some(index) => members[index].1 = value.clone(),
            None => members.push((step.to_owned(), value.clone())),
        },
        Parent::Array(elements) => {
            let len = elements.len();
            let index = if step == "-" { len } else { array_position(step)? };
            if index > len {
                return Err(PatchCause::BeyondEnd { index, len });
            }
            match elements.get_mut(index) {
                Some(element) if on_element == OnElement::Overwrite => *element = value.clone(),
                Some(_) | None => elements.insert(index, value.clone()),
            }
        }
    }
    Ok(())
}

fn replace(root: &mut Value, path: &Pointer, value: &Value) -> Result<(), PatchCause> {
    check_depth(path, value)?;
    *target(root, path)? = value.clone();
    Ok(())
}

fn remove(root: &mut Value, path: &Pointer) -> Result<Value, PatchCause> {
    let (parent, step) = parent(root, path)?;
    match parent {
        Parent::Object(members) => {
            let index = position_of(members, step).ok_or(PatchCause::Missing)?;
            Ok(members.remove(index).1)
        }
        Parent::Array(elements) => {
            let (index, len) = (array_position(step)?, elements.len());
            if index < len { Ok(elements.remove(index)) } else { Err(PatchCause::BeyondEnd { index, len }) }
        }
    }
}

fn increment(root: &mut Value, path: &Pointer, by: &Value) -> Result<(), PatchCause> {
    if ValueRef::from(by).number().is_none() {
        return Err(PatchCause::NotANumber);
    }
    let (parent, step) = parent(root, path)?;
    match parent {
        Parent::Object(members) => match position_of(members, step) {
            Some(index) => members[index].1 = sum(&members[index].1, by)?,
            None => members.push((step.to_owned(), by.clone())),
        },
        Parent::Array(elements) => {
            let (index, len) = (array_position(step)?, elements.len());
            let element = elements.get_mut(index).ok_or(PatchCause::BeyondEnd { index, len })?;
            *element = sum(element, by)?;
        }
    }
    Ok(())
}

/// Integers add up to an integer while it fits 64 bits, with or without a sign; everything else to a double.
fn sum(value: &Value, by: &Value) -> Result<Value, PatchCause> {
    let number = |value: &Value| ValueRef::from(value).number().ok_or(PatchCause::NotANumber);
    if let (Some(value), Some(by)) = (integer(number(value)?), integer(number(by)?)) {
        let sum = value + by;
        if let Ok(sum) = i64::try_from(sum) {
            return Ok(Value::Int64(sum));
        }
        if let Ok(sum) = u64::try_from(sum) {
            return Ok(Value::Decimal(Decimal128::from_u64(sum)));
        }
    }
    let double = |value: &Value| ValueRef::from(value).as_f64().ok_or(PatchCause::NotANumber);
    let sum = double(value)? + double(by)?;
    if sum.is_finite() { Ok(Value::Double(sum)) } else { Err(PatchCause::OutOfRange) }
}

/// An integer of JSON; those above 2^63 - 1 are stored as decimals.
fn integer(number: DecodedNumber) -> Option<i128> {
    match number {
        DecodedNumber::Integer(value) => Some(value.into()),
        DecodedNumber::Decimal(value) => value.to_u64_exact().map(i128::from),
        DecodedNumber::Double(_) => None,
    }
}

enum Parent<'a> {
    Object(&'a mut Vec<(String, Value)>),
    Array(&'a mut Vec<Value>),
}

/// The parent container of a pointer's target, and the last step.
fn parent<'a, 'b>(root: &'a mut Value, path: &'b Pointer) -> Result<(Parent<'a>, &'b str), PatchCause> {
    let (steps, last) = path.split_last().ok_or(PatchCause::Root)?;
    let mut value = root;
    for step in steps {
        value = child(value, step)?;
    }
    Ok((container(value)?, last))
}

/// The value a pointer names, which must exist.
fn target<'a>(root: &'a mut Value, path: &Pointer) -> Result<&'a mut Value, PatchCause> {
    if path.steps().len() == 0 {
        return Err(PatchCause::Root);
    }
    path.steps().try_fold(root, child)
}

fn child<'a>(value: &'a mut Value, step: &str) -> Result<&'a mut Value, PatchCause> {
    match container(value)? {
        Parent::Object(members) => {
            let index = position_of(members, step).ok_or(PatchCause::Missing)?;
            Ok(&mut members[index].1)
        }
        Parent::Array(elements) => {
            let (index, len) = (array_position(step)?, elements.len());
            elements.get_mut(index).ok_or(PatchCause::BeyondEnd { index, len })
        }
    }
}

fn container(value: &mut Value) -> Result<Parent<'_>, PatchCause> {
    match value {
        Value::Object(members) => Ok(Parent::Object(members)),
        Value::Array(elements) => Ok(Parent::Array(elements)),
        Value::Null
        | Value::Bool(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::String(_)
        | Value::Binary { .. }
        | Value::Date(_)
        | Value::Ticks(_)
        | Value::Guid(_)
        | Value::ObjectId(_) => Err(PatchCause::NotAContainer),
    }
}

fn position_of(members: &[(String, Value)], name: &str) -> Option<usize> {
    members.iter().position(|member| member.0 == name)
}

/// A position in digits without leading zeros, as RFC 6901 requires.
fn array_position(step: &str) -> Result<usize, PatchCause> {
    let digits = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    if digits { step.parse().map_err(|_| PatchCause::NotAPosition) } else { Err(PatchCause::NotAPosition) }
}

/// Refuses a value that would be nested too deep, before anything is cloned or traversed.
fn check_depth(path: &Pointer, value: &Value) -> Result<(), PatchCause> {
    match JSON_DEPTH_MAX.checked_sub(path.steps().len()) {
        Some(levels) if fits_depth(ValueRef::from(value), levels) => Ok(()),
        Some(_) | None => Err(PatchCause::TooDeep),
    }
}

fn fits_depth(value: ValueRef<'_>, levels_left: usize) -> bool {
    let is_container = matches!(value.kind(), Kind::Array | Kind::Object);
    match levels_left.checked_sub(1) {
        None => !is_container,
        Some(levels_left) => {
            value.elements().all(|element| fits_depth(element, levels_left))
                && value.members().all(|(_, member)| fits_depth(member, levels_left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(document: &str, operations: &str, expected: &str) {
        let document = Document::from_json(document.as_bytes()).unwrap();
        let list = Value::from_json(operations.as_bytes()).unwrap();
        let operations = PatchOperation::list_from_json((&list).into()).unwrap();
        let outcome = match apply(&document, &operations) {
            Ok(document) => format!("{document:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn add_inserts_and_set_overwrites() {
        let document = r#"{"a":[1,2],"b":3}"#;
        check(document, r#"[{"op":"add","path":"/a/0","value":0}]"#, r#"{"a":[0,1,2],"b":3}"#);
        check(document, r#"[{"op":"set","path":"/a/0","value":0}]"#, r#"{"a":[0,2],"b":3}"#);
        for op in ["add", "set"] {
            let list = |path: &str| format!(r#"[{{"op":"{op}","path":"{path}","value":9}}]"#);
            check(document, &list("/a/-"), r#"{"a":[1,2,9],"b":3}"#);
            check(document, &list("/a/2"), r#"{"a":[1,2,9],"b":3}"#);
            check(document, &list("/b"), r#"{"a":[1,2],"b":9}"#);
            check(document, &list("/c"), r#"{"a":[1,2],"b":3,"c":9}"#);
            let beyond = "patch operation 0 at '/a/3': array position 3 is beyond the length 2";
            check(document, &list("/a/3"), beyond);
            check(document, &list("/a/01"), "patch operation 0 at '/a/01': not an array position");
            check(document, &list("/x/y"), "patch operation 0 at '/x/y': nothing is at the path");
            let scalar = "patch operation 0 at '/b/y': the parent is neither an object nor an array";
            check(document, &list("/b/y"), scalar);
            check(document, &list(""), "patch operation 0 at '': the path is the whole document");
        }
    }

    #[test]
    fn replace_and_remove_need_their_target() {
        let document = r#"{"a":[1,2],"b":3}"#;
        check(document, r#"[{"op":"replace","path":"/a/1","value":{}}]"#, r#"{"a":[1,{}],"b":3}"#);
        check(document, r#"[{"op":"remove","path":"/a/0"},{"op":"remove","path":"/b"}]"#, r#"{"a":[2]}"#);
        let missing = "patch operation 0 at '/c': nothing is at the path";
        check(document, r#"[{"op":"replace","path":"/c","value":1}]"#, missing);
        check(document, r#"[{"op":"remove","path":"/c"}]"#, missing);
        let dash = "patch operation 0 at '/a/-': not an array position";
        check(document, r#"[{"op":"remove","path":"/a/-"}]"#, dash);
    }

    #[test]
    fn increment_keeps_integers_while_it_can() {
        let document = r#"{"n":9223372036854775806,"s":"x","a":[1.5]}"#;
        let list = |path: &str, by: &str| format!(r#"[{{"op":"incr","path":"{path}","value":{by}}}]"#);
        check(document, &list("/n", "1"), r#"{"n":9223372036854775807,"s":"x","a":[1.5]}"#);
        check(document, &list("/n", "2"), r#"{"n":9223372036854775808,"s":"x","a":[1.5]}"#);
        let largest = r#"{"n":18446744073709551615}"#;
        check(r#"{"n":18446744073709551614}"#, &list("/n", "1"), largest);
        check(largest, &list("/n", "-9223372036854775808"), r#"{"n":9223372036854775807}"#);
        check(r#"{"n":-1}"#, &list("/n", "18446744073709551615"), r#"{"n":18446744073709551614}"#);
        check(largest, &list("/n", "1"), r#"{"n":1.8446744073709552e+19}"#);
        check(r#"{"n":-9223372036854775808}"#, &list("/n", "-1"), r#"{"n":-9.223372036854776e+18}"#);
        check(document, &list("/a/0", "-0.25"), r#"{"n":9223372036854775806,"s":"x","a":[1.25]}"#);
        check(document, &list("/m", "2"), r#"{"n":9223372036854775806,"s":"x","a":[1.5],"m":2}"#);
        check(document, &list("/s", "2"), "patch operation 0 at '/s': not a number");
        check(r#"{"n":1e308}"#, &list("/n", "1.7e308"), "patch operation 0 at '/n': the sum is out of range");
    }

    #[test]
    fn move_removes_and_adds() {
        let document = r#"{"a":{"b":1},"c":[2,3]}"#;
        check(document, r#"[{"op":"move","from":"/a/b","path":"/d"}]"#, r#"{"a":{},"c":[2,3],"d":1}"#);
        check(document, r#"[{"op":"move","from":"/c/0","path":"/c/1"}]"#, r#"{"a":{"b":1},"c":[3,2]}"#);
        let into_itself = "patch operation 0 at '/a/b': the target of the move lies inside its source";
        check(document, r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, into_itself);
        let missing = "patch operation 0 at '/x': nothing is at the path";
        check(document, r#"[{"op":"move","from":"/x","path":"/y"}]"#, missing);
    }

    #[test]
    fn results_stay_within_the_depth() {
        let empty = Document::from_json(b"{}").unwrap();
        let add = |levels| {
            let value = (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
            apply(&empty, &[PatchOperation::Add { path: Pointer::parse("/a").unwrap(), value }])
        };
        assert_eq!(add(JSON_DEPTH_MAX).unwrap_err().cause, PatchCause::TooDeep);
        add(JSON_DEPTH_MAX - 1).unwrap().validate().unwrap();
    }
}
