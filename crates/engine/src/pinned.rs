//! The partition keys that a filter pins by comparing the paths of the key.
//!
//! `WHERE c.tenant = 'a' AND c.n > 1` pins one key; `c.tenant IN ('a', 'b')` pins two. Other filters pin none: their
//! queries read all keys. The filter is still evaluated on every document: pinned keys only exclude partitions where no
//! document can pass.

use model::{KeyComponent, PartitionKey, PartitionKeyDefinition};
use plan::query::{Comparison, Expression, Predicate, Query, Requirement};
use value::Value;

/// Maximum number of pinned keys; a filter with more pins none.
const KEYS_MAX: usize = 256;

/// A value for some of the paths.
type Pins = Vec<Option<KeyComponent>>;

/// The keys outside of which no document passes the filter, or prefixes of hierarchical keys. `None` if any key may.
pub fn pinned_keys(query: &Query, definition: &PartitionKeyDefinition) -> Option<Vec<PartitionKey>> {
    if !query.root_path()?.is_empty() {
        return None;
    }
    let pins = pins(Requirement::of_filter(query.filter.as_ref()?), definition)?;
    let mut keys: Vec<PartitionKey> = Vec::with_capacity(pins.len());
    for pin in pins {
        let components: Vec<KeyComponent> = pin.into_iter().map_while(|component| component).collect();
        if components.is_empty() {
            return None;
        }
        let key = PartitionKey { components };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    (!keys.is_empty()).then_some(keys)
}

/// The alternatives under which a requirement can be met; `None` if it does not restrict the key.
fn pins(requirement: Requirement<'_>, definition: &PartitionKeyDefinition) -> Option<Vec<Pins>> {
    match requirement.predicate() {
        Predicate::All(members) => {
            let said = members.iter().filter_map(|member| pins(member, definition));
            said.reduce(|one, other| both(&one, other))
        }
        Predicate::Any(members) => {
            let mut all = Vec::new();
            for member in members.iter() {
                all.extend(pins(member, definition)?);
                if all.len() > KEYS_MAX {
                    return None;
                }
            }
            Some(all)
        }
        Predicate::Compare { operand, comparison: Comparison::Equal, constant } => {
            Some(vec![pin(path_index(operand, definition)?, constant, definition)?])
        }
        Predicate::Listed { operand, constants, truth: true } if constants.count() <= KEYS_MAX => {
            let index = path_index(operand, definition)?;
            constants.iter().map(|constant| pin(index, constant, definition)).collect()
        }
        Predicate::Truth { .. }
        | Predicate::Compare { .. }
        | Predicate::CompareValues { .. }
        | Predicate::Listed { .. }
        | Predicate::Between { .. }
        | Predicate::Defined { .. }
        | Predicate::OfKind { .. }
        | Predicate::Text { .. }
        | Predicate::Contains { .. }
        | Predicate::Meets { .. }
        | Predicate::Other => None,
    }
}

/// All pairs of alternatives that do not contradict each other; if these are too many, one side is sufficient.
fn both(one: &[Pins], other: Vec<Pins>) -> Vec<Pins> {
    if one.len().saturating_mul(other.len()) > KEYS_MAX {
        return if one.len() <= other.len() { one.to_vec() } else { other };
    }
    let mut pairs = Vec::new();
    for first in one {
        pairs.extend(other.iter().filter_map(|second| merged(first, second)));
    }
    pairs
}

fn merged(one: &Pins, other: &Pins) -> Option<Pins> {
    let component = |(one, other): (&Option<KeyComponent>, &Option<KeyComponent>)| match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (Some(_), _) => Some(one.clone()),
        (None, other) => Some(other.clone()),
    };
    one.iter().zip(other).map(component).collect()
}

/// A value for one path. `None` if the value cannot be part of a key.
fn pin(index: usize, value: &Value, definition: &PartitionKeyDefinition) -> Option<Pins> {
    let mut pins = vec![None; definition.paths().len()];
    *pins.get_mut(index)? = Some(KeyComponent::from_value(value.as_ref())?);
    Some(pins)
}

/// The index of the key path that an expression refers to.
fn path_index(expression: &Expression, definition: &PartitionKeyDefinition) -> Option<usize> {
    let names = expression.document_path()?;
    definition.paths().iter().position(|path| path.segments().eq(names.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionKeyKind;

    fn definition(paths: &[&str]) -> PartitionKeyDefinition {
        let kind = if paths.len() > 1 { PartitionKeyKind::MultiHash } else { PartitionKeyKind::HashV2 };
        PartitionKeyDefinition::new(kind, paths.iter().copied()).unwrap()
    }

    /// The keys as JSON.
    fn keys(paths: &[&str], filter: &str) -> String {
        let tree = sql::parse(&format!("SELECT * FROM c WHERE {filter}")).unwrap();
        let query = sql::lower(&tree, &sql::Parameters::none()).unwrap();
        match pinned_keys(&query, &definition(paths)) {
            None => "any".to_owned(),
            Some(keys) => keys.iter().map(text).collect::<Vec<_>>().join(" "),
        }
    }

    fn text(key: &PartitionKey) -> String {
        let components = key.components.iter().map(|component| match component {
            KeyComponent::Undefined => "{}".to_owned(),
            KeyComponent::Null => "null".to_owned(),
            KeyComponent::Bool(boolean) => boolean.to_string(),
            KeyComponent::Number(number) => number.to_string(),
            KeyComponent::String(string) => string.clone(),
        });
        format!("[{}]", components.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn equality_and_in_pin_a_key() {
        for (filter, expected) in [
            ("c.pk = 'a'", "[a]"),
            ("'a' = c.pk", "[a]"),
            ("c['pk'] = 5", "[5]"),
            ("c.pk = 5.0", "[5]"),
            ("c.pk = null", "[null]"),
            ("c.pk = true", "[true]"),
            ("c.n > 1 AND c.pk = 'a' AND c.m = 2", "[a]"),
            ("(c.n > 1 AND (c.pk = 'a')) AND c.m = 2", "[a]"),
            ("c.pk IN ('a', 'b', 'a')", "[a] [b]"),
            ("c.pk = 'a' OR c.pk = 'b'", "[a] [b]"),
            ("(c.pk = 'a' AND c.id = '1') OR (c.pk = 'b' AND c.id = '2')", "[a] [b]"),
            ("c.pk IN ('a', 'b') AND c.pk = 'b'", "[b]"),
            ("NOT (c.n = 1 OR c.pk != 'a')", "[a]"),
        ] {
            assert_eq!(keys(&["/pk"], filter), expected, "{filter}");
        }
    }

    #[test]
    fn what_leaves_the_key_open_is_about_all() {
        for filter in [
            "true",
            "c.n = 1",
            "c.pk > 'a'",
            "c.pk != 'a'",
            "NOT c.pk = 'a'",
            "c.pk NOT IN ('a')",
            "c.pk = c.n",
            "c.pk = c.pk",
            "c.pk = 'a' OR c.n = 1",
            "c.pk.deeper = 'a'",
            "c.pk = [1]",
            "c.pk = undefined",
            "c.pk = LOWER('A')",
            "c.pk = 'a' AND c.pk = 'b'",
            "EXISTS(SELECT VALUE 1 FROM t IN c.tags WHERE c.pk = 'a')",
        ] {
            assert_eq!(keys(&["/pk"], filter), "any", "{filter}");
        }
        let many = (0..=KEYS_MAX).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
        assert_eq!(keys(&["/pk"], &format!("c.pk IN ({many})")), "any");
        assert_eq!(keys(&["/pk"], &format!("c.pk IN ({many}) AND c.pk = 7")), "[7]");
    }

    #[test]
    fn hierarchical_keys_are_pinned_from_the_front() {
        let paths = ["/a/x", "/b", "/c"];
        for (filter, expected) in [
            ("c.a.x = 1 AND c.b = 2 AND c.c = 3", "[1,2,3]"),
            ("c.c = 3 AND c.a.x = 1", "[1]"),
            ("c.a.x = 1 AND c.b IN (2, 3)", "[1,2] [1,3]"),
            ("c.a.x IN (1, 2) AND c.b IN (3, 4)", "[1,3] [1,4] [2,3] [2,4]"),
            ("c.b = 2", "any"),
            ("c.a = 1", "any"),
        ] {
            assert_eq!(keys(&paths, filter), expected, "{filter}");
        }
    }

    #[test]
    fn only_the_document_itself_has_the_key() {
        for query in [
            "SELECT * FROM c.pk WHERE pk.pk = 'a'",
            "SELECT VALUE t FROM t IN c.items WHERE t.pk = 'a'",
            "SELECT VALUE s FROM (SELECT VALUE c.x FROM c) s WHERE s.pk = 'a'",
            "SELECT * FROM c",
            "SELECT VALUE 1",
        ] {
            let lowered = sql::lower(&sql::parse(query).unwrap(), &sql::Parameters::none()).unwrap();
            assert_eq!(pinned_keys(&lowered, &definition(&["/pk"])), None, "{query}");
        }
        let joined = "SELECT t FROM c JOIN t IN c.items WHERE t.pk = 'b' AND c.pk = 'a'";
        let lowered = sql::lower(&sql::parse(joined).unwrap(), &sql::Parameters::none()).unwrap();
        assert_eq!(pinned_keys(&lowered, &definition(&["/pk"])).unwrap().len(), 1);
    }
}
