//! Partition keys as text: a JSON array with one element per path, fewer for a prefix of a hierarchical key.
//!
//! `{}` means undefined, and `[]` is the key of a container without one.

use crate::faults::{NosqlFault, WireFault};
use model::{KeyComponent, PartitionKey, PartitionKeyDefinition};
use value::{Kind, Value};

/// Parses the key in a header, or in a body where it has the same form.
pub(crate) fn parse(definition: &PartitionKeyDefinition, text: &str) -> Result<PartitionKey, NosqlFault> {
    if let Some(text) = only_string(text) {
        return Ok(definition.key(vec![text.into()])?);
    }
    Ok(definition.key(components(text, definition.paths().len())?)?)
}

/// The components in a text. If there are more than `needed`, their kinds are not checked: their number is the fault.
pub(crate) fn components(text: &str, needed: usize) -> Result<Vec<KeyComponent>, WireFault> {
    let bad = |reason| WireFault::PartitionKey { text: text.to_owned(), reason };
    let Ok(Value::Array(elements)) = Value::from_json(text.as_bytes()) else {
        return Err(bad("not a JSON array"));
    };
    if elements.len() > needed {
        return Ok(vec![KeyComponent::Undefined; elements.len()]);
    }
    elements
        .iter()
        .map(|element| component(element).ok_or_else(|| bad("an element is not a scalar")))
        .collect()
}

fn component(element: &Value) -> Option<KeyComponent> {
    let element = element.as_ref();
    match element.kind() {
        Kind::Object if element.is_empty() => Some(KeyComponent::Undefined),
        Kind::Object
        | Kind::Array
        | Kind::Null
        | Kind::Bool
        | Kind::Int32
        | Kind::Int64
        | Kind::Double
        | Kind::String
        | Kind::Decimal
        | Kind::Binary
        | Kind::Date
        | Kind::Ticks
        | Kind::Guid
        | Kind::ObjectId => KeyComponent::from_value(element),
    }
}

/// The text in a header of the usual form, `["text"]` without escapes or spaces: it is parsed without building a tree
/// of values.
fn only_string(header: &str) -> Option<&str> {
    let text = header.strip_prefix("[\"")?.strip_suffix("\"]")?;
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    text.bytes().all(is_plain).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionKeyKind;

    #[test]
    fn the_usual_header_is_read_as_any_other() {
        let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/a"]).unwrap();
        let parsed = |header: &str| parse(&definition, header);
        // A leading space is handled by the general parser.
        for header in [
            r#"["text"]"#,
            r#"[""]"#,
            "[\"é😀\u{7F}\"]",
            r#"["a,b]"]"#,
            r#"["a","b"]"#,
            r#"["a\u0041"]"#,
            r#"["\""]"#,
            "[\"\t\"]",
            "[\"\n\"]",
            r#"["]"#,
            r#"["\"]"#,
            r#"["a"]]"#,
            r#"[["a"]"#,
        ] {
            let general = parsed(&format!(" {header}"));
            match (parsed(header), general) {
                (Err(direct), Err(general)) => {
                    assert_eq!(std::mem::discriminant(&direct), std::mem::discriminant(&general), "{header}")
                }
                (direct, general) => assert_eq!(direct, general, "{header}"),
            }
        }
    }

    #[test]
    fn an_empty_list_is_the_key_of_a_container_without_one() {
        let system = PartitionKeyDefinition::system();
        assert_eq!(parse(&system, "[]").unwrap(), system.implied_key().unwrap());
        let own = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/a"]).unwrap();
        assert!(own.implied_key().is_none());
        assert!(parse(&own, "[]").is_err());
        let undefined = own.key(vec![KeyComponent::Undefined]).unwrap();
        assert_eq!(parse(&own, "[{}]").unwrap(), undefined);
        assert!(parse(&own, "[{\"a\":1}]").is_err() && parse(&own, "[[]]").is_err());
    }
}
