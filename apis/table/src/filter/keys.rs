//! Filters that name one entity by its keys: they are point reads.

use super::Filter;
use crate::edm::{PARTITION_KEY, ROW_KEY};
use plan::query::Comparison;
use value::Value;

/// PartitionKey and RowKey, if the filter says that they equal two texts and nothing else.
pub fn exact_keys(filter: &Filter) -> Option<(&str, &str)> {
    let mut keys = [None, None];
    gather(filter, &mut keys)?;
    Some((keys[0]?, keys[1]?))
}

/// Collects the keys of a conjunction; `None` if it says anything else, or two different things of one key.
fn gather<'a>(filter: &'a Filter, keys: &mut [Option<&'a str>; 2]) -> Option<()> {
    match filter {
        Filter::And(members) => members.iter().try_for_each(|member| gather(member, keys)),
        Filter::Compare { property, comparison: Comparison::Equal, literal: Value::String(text) } => {
            let place = [PARTITION_KEY, ROW_KEY].iter().position(|name| property == name)?;
            let key = keys.get_mut(place)?;
            (*key.get_or_insert(text.as_str()) == text).then_some(())
        }
        Filter::Compare { .. }
        | Filter::Or(_)
        | Filter::Not(_)
        | Filter::Property(_)
        | Filter::Constant(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parse;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str)>) {
        let filter = parse(text).unwrap().unwrap();
        assert_eq!(exact_keys(&filter), expected, "{text}");
    }

    #[test]
    fn two_equalities_name_an_entity() {
        check("PartitionKey eq 'p' and RowKey eq 'r'", Some(("p", "r")));
        check("(RowKey eq '') and ('it''s' eq PartitionKey)", Some(("it's", "")));
        check("PartitionKey eq 'p' and RowKey eq 'r' and RowKey eq 'r'", Some(("p", "r")));
        for text in [
            "PartitionKey eq 'p'",
            "PartitionKey eq 'p' or RowKey eq 'r'",
            "PartitionKey eq 'p' and RowKey ge 'r'",
            "PartitionKey eq 'p' and RowKey eq 'r' and RowKey eq 's'",
            "PartitionKey eq 'p' and RowKey eq 5",
            "PartitionKey eq 'p' and RowKey eq 'r' and x eq 1",
            "not (PartitionKey eq 'p' and RowKey eq 'r')",
        ] {
            check(text, None);
        }
    }
}
