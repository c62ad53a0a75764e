//! Patches against a second, naive implementation on another crate's trees.

use proptest::prelude::*;
use serde_json::Value as Json;
use value::{Document, PatchOperation, Pointer, Value, apply};

use crate::generate;

#[derive(Debug, Clone)]
struct Operation {
    op: &'static str,
    from: Vec<String>,
    path: Vec<String>,
    value: Value,
}

fn steps() -> impl Strategy<Value = Vec<String>> {
    let step = prop::sample::select(vec!["a", "b", "id", "a/b", "x~y", "", "0", "1", "2", "-", "01"]);
    prop::collection::vec(step.prop_map(str::to_owned), 0..4)
}

fn operation() -> impl Strategy<Value = Operation> {
    let op = prop::sample::select(vec!["add", "set", "replace", "remove", "incr", "move"]);
    let value = prop_oneof![
        generate::json_object(),
        (-9i64..9).prop_map(Value::Int64),
        generate::double().prop_map(Value::Double)
    ];
    (op, steps(), steps(), value).prop_map(|(op, from, path, value)| Operation { op, from, path, value })
}

/// Objects whose members are often arrays and numbers.
fn document() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (-9i64..9).prop_map(Value::Int64),
        Just(Value::Int64(i64::MAX)),
        Just(Value::Double(0.5))
    ];
    let leaf = prop_oneof![number, Just(Value::Null), Just(Value::from("text"))];
    let inner = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(generate::name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(generate::name(), inner, 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn pointer(steps: &[String]) -> String {
    steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

fn ours(operation: &Operation) -> PatchOperation {
    let path = Pointer::parse(&pointer(&operation.path)).unwrap();
    let value = operation.value.clone();
    match operation.op {
        "add" => PatchOperation::Add { path, value },
        "set" => PatchOperation::Set { path, value },
        "replace" => PatchOperation::Replace { path, value },
        "remove" => PatchOperation::Remove { path },
        "incr" => PatchOperation::Increment { path, by: value },
        _ => PatchOperation::Move { from: Pointer::parse(&pointer(&operation.from)).unwrap(), path },
    }
}

fn json(value: &Value) -> Json {
    serde_json::from_str(&value.to_json()).unwrap()
}

/// The naive rules; `None` is a refusal.
fn naive(root: &mut Json, operation: &Operation) -> Option<()> {
    let value = json(&operation.value);
    match operation.op {
        "add" => naive_put(root, &operation.path, value, false),
        "set" => naive_put(root, &operation.path, value, true),
        "replace" => {
            naive_get(root, &operation.path)?;
            naive_remove_last_step(&operation.path)?;
            *root.pointer_mut(&pointer(&operation.path))? = value;
            Some(())
        }
        "remove" => naive_remove(root, &operation.path).map(drop),
        "incr" => naive_increment(root, &operation.path, &value),
        _ => {
            let inside =
                operation.path.len() > operation.from.len() && operation.path.starts_with(&operation.from);
            if inside {
                return None;
            }
            let moved = naive_remove(root, &operation.from)?;
            naive_put(root, &operation.path, moved, false)
        }
    }
}

fn naive_get<'a>(root: &'a Json, path: &[String]) -> Option<&'a Json> {
    root.pointer(&pointer(path))
}

fn naive_remove_last_step(path: &[String]) -> Option<(String, &str)> {
    let (last, parent) = path.split_last()?;
    Some((pointer(parent), last))
}

fn naive_put(root: &mut Json, path: &[String], value: Json, overwrite: bool) -> Option<()> {
    let (parent, last) = naive_remove_last_step(path)?;
    match root.pointer_mut(&parent)? {
        Json::Object(members) => {
            members.insert(last.to_owned(), value);
        }
        Json::Array(elements) => {
            let index = if last == "-" { elements.len() } else { naive_index(last)? };
            if index > elements.len() {
                return None;
            }
            if overwrite && index < elements.len() {
                elements.remove(index);
            }
            elements.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn naive_remove(root: &mut Json, path: &[String]) -> Option<Json> {
    naive_get(root, path)?;
    let (parent, last) = naive_remove_last_step(path)?;
    match root.pointer_mut(&parent)? {
        Json::Object(members) => members.shift_remove(last),
        Json::Array(elements) => Some(elements.remove(naive_index(last)?)),
        _ => None,
    }
}

fn naive_increment(root: &mut Json, path: &[String], by: &Json) -> Option<()> {
    let (parent, last) = naive_remove_last_step(path)?;
    by.as_f64()?;
    if root.pointer(&parent)?.is_object() && naive_get(root, path).is_none() {
        return naive_put(root, path, by.clone(), false);
    }
    naive_index_or_member(root.pointer(&parent)?, last)?;
    let target = root.pointer_mut(&pointer(path))?;
    let integer = target.as_i64().zip(by.as_i64()).and_then(|(target, by)| target.checked_add(by));
    *target = match integer {
        Some(integer) => integer.into(),
        None => Json::Number(serde_json::Number::from_f64(target.as_f64()? + by.as_f64()?)?),
    };
    Some(())
}

fn naive_index_or_member(parent: &Json, last: &str) -> Option<()> {
    if parent.is_array() { naive_index(last).map(drop) } else { Some(()) }
}

fn naive_index(step: &str) -> Option<usize> {
    let index: usize = step.parse().ok()?;
    (index.to_string() == step).then_some(index)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn agrees_with_the_naive_rules(value in document(), operations in prop::collection::vec(operation(), 1..4)) {
        let document = Document::from_value(&value).unwrap();
        let list: Vec<PatchOperation> = operations.iter().map(ours).collect();
        let mut expected = json(&value);
        let expected_outcome = operations.iter().try_for_each(|operation| naive(&mut expected, operation));
        match apply(&document, &list) {
            Ok(patched) => {
                patched.validate().unwrap();
                prop_assert!(expected_outcome.is_some(), "{:?} gave {:?}", operations, patched);
                prop_assert_eq!(json(&patched.to_value()).to_string(), expected.to_string());
            }
            Err(error) => prop_assert!(expected_outcome.is_none(), "{} but {}", error, expected),
        }
    }
}
