//! Trees, encoded bytes and text represent the same value.

use proptest::prelude::*;
use value::{Document, PropertyPath, Value, ValueRef};

use crate::generate;

/// Equality that distinguishes kinds and bits, including NaN.
fn exact(value: &Value) -> String {
    format!("{value:?}")
}

fn lookup<'a>(value: &'a Value, names: &[String]) -> Option<&'a Value> {
    names.iter().try_fold(value, |value, name| match value {
        Value::Object(members) => members.iter().find(|member| member.0 == *name).map(|member| &member.1),
        _ => None,
    })
}

proptest! {
    #[test]
    fn trees_survive_encoding(value in generate::object()) {
        let document = Document::from_value(&value).unwrap();
        document.validate().unwrap();
        prop_assert_eq!(exact(&document.to_value()), exact(&value));
        let stored = Document::from_stored(document.bytes().clone()).unwrap();
        prop_assert_eq!(&Document::from_value(&stored.to_value()).unwrap(), &document);
        prop_assert_eq!(&Document::from_value_ref(stored.root()).unwrap(), &document);
    }

    #[test]
    fn text_survives_reading(value in generate::json_object()) {
        let text = value.to_json();
        let document = Document::from_json(text.as_bytes()).unwrap();
        document.validate().unwrap();
        prop_assert_eq!(exact(&document.to_value()), exact(&value));
        prop_assert_eq!(&document, &Document::from_value(&value).unwrap());
        let mut again = Vec::new();
        document.write_json(&mut again);
        prop_assert_eq!(text.as_bytes(), &again);
        // Another reader must see the same document.
        let other: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(Document::from_json(other.to_string().as_bytes()).unwrap(), document);
    }

    #[test]
    fn text_of_every_kind_is_json(value in generate::value()) {
        let text = value.to_json();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn paths_lead_where_the_tree_says(value in generate::object(), names in prop::collection::vec(generate::name(), 1..4)) {
        let document = Document::from_value(&value).unwrap();
        let path = PropertyPath::from_names(names.iter().map(String::as_str)).unwrap();
        let found = document.get(&path).map(|found| exact(&found.to_value()));
        prop_assert_eq!(&found, &lookup(&value, &names).map(exact));
        prop_assert_eq!(path.lookup(ValueRef::from(&value)).map(|found| exact(&found.to_value())), found);
        prop_assert_eq!(PropertyPath::parse(&path.to_string()).unwrap(), path);
    }

    #[test]
    fn members_and_elements_are_those_of_the_tree(value in generate::value()) {
        let object = Value::Object(vec![("root".to_owned(), value.clone())]);
        let document = Document::from_value(&object).unwrap();
        let encoded = document.root().member("root").unwrap();
        let tree = ValueRef::from(&value);
        prop_assert_eq!(encoded.kind(), tree.kind());
        prop_assert_eq!(encoded.len(), tree.len());
        prop_assert_eq!(encoded.as_i64(), tree.as_i64());
        prop_assert_eq!(encoded.as_f64().map(f64::to_bits), tree.as_f64().map(f64::to_bits));
        prop_assert_eq!((encoded.as_str(), encoded.as_bool()), (tree.as_str(), tree.as_bool()));
        let names = |value: ValueRef<'_>| value.members().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(names(encoded), names(tree));
        for index in 0..=tree.len() {
            let element = |value: ValueRef<'_>| value.element(index).map(|element| exact(&element.to_value()));
            prop_assert_eq!(element(encoded), element(tree));
        }
    }

    #[test]
    fn repeated_names_keep_first_place_and_last_value(members in prop::collection::vec((generate::name(), 0i64..9), 0..60)) {
        let mut expected: Vec<(String, Value)> = Vec::new();
        for (name, number) in &members {
            match expected.iter_mut().find(|member| member.0 == *name) {
                Some(member) => member.1 = Value::Int64(*number),
                None => expected.push((name.clone(), Value::Int64(*number))),
            }
        }
        let given = members.into_iter().map(|(name, number)| (name, Value::Int64(number))).collect();
        let document = Document::from_value(&Value::Object(given)).unwrap();
        document.validate().unwrap();
        prop_assert_eq!(document.to_value(), Value::Object(expected));
    }

    #[test]
    fn names_are_left_out_while_reading(value in generate::json_object()) {
        let text = value.to_json();
        let skip = ["a", "id", ""];
        let document = Document::from_json_without(text.as_bytes(), &skip).unwrap();
        prop_assert_eq!(&Document::from_json(text.as_bytes()).unwrap().without(&skip), &document);
        let Value::Object(mut members) = value else { unreachable!() };
        members.retain(|member| !skip.contains(&member.0.as_str()));
        prop_assert_eq!(document.to_value(), Value::Object(members));
    }
}
