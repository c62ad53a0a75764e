//! Computed properties: named expressions for queries. Only the beginning of the query text is checked here.

use super::check::repeated;
use crate::{
    ComputedRule, DecodeFault, Decoder, DefinitionList, DefinitionPart, DefinitionRule, Encoder,
    PartitionKeyDefinition, RequestFault,
};

const PART: DefinitionPart = DefinitionPart::ComputedProperties;
/// Most computed properties of a container.
const COUNT_MAX: usize = 20;
/// Names of existing document properties.
const RESERVED: [&str; 8] = ["id", "_rid", "_ts", "_self", "_etag", "_attachments", "_lsn", "_metadata"];

/// A property that queries see but documents do not store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedProperty {
    /// Its name.
    pub name: String,
    /// The query that computes its value.
    pub query: String,
}

impl ComputedProperty {
    /// The property `name` with the value of `query`.
    pub fn new(name: impl Into<String>, query: impl Into<String>) -> ComputedProperty {
        ComputedProperty { name: name.into(), query: query.into() }
    }

    /// Refuses a list that is too long, repeats a name, or has a property that no query could use.
    pub fn check_all(
        properties: &[ComputedProperty],
        partition_key: &PartitionKeyDefinition,
    ) -> Result<(), RequestFault> {
        ComputedProperty::check_count(properties.len())?;
        properties.iter().try_for_each(|property| property.check(partition_key))?;
        let names: Vec<_> = properties.iter().map(|property| &property.name).collect();
        match repeated(&names) {
            Some(name) => Err(PART.violates(ComputedRule::RepeatedName((*name).clone()))),
            None => Ok(()),
        }
    }

    /// Refuses more properties than the limit.
    pub fn check_count(count: usize) -> Result<(), RequestFault> {
        match count > COUNT_MAX {
            true => Err(PART.violates(DefinitionRule::Count {
                list: DefinitionList::ComputedProperties,
                given: count,
                max: COUNT_MAX,
            })),
            false => Ok(()),
        }
    }

    /// Refuses a name that documents already have, and a query that returns no value.
    pub fn check(&self, partition_key: &PartitionKeyDefinition) -> Result<(), RequestFault> {
        let name = self.name.as_str();
        let is_plain = name.chars().all(|character| character.is_alphanumeric() || character == '_');
        if name.is_empty() || !is_plain {
            return Err(PART.violates(ComputedRule::NameCharacters(name.to_owned())));
        }
        let mut tops = partition_key.paths().iter().filter_map(|path| path.segments().next());
        if RESERVED.contains(&name) || tops.any(|top| top == name) {
            return Err(PART.violates(ComputedRule::ReservedName(name.to_owned())));
        }
        let mut words = self.query.split_whitespace();
        let mut is = |word: &str| words.next().is_some_and(|found| found.eq_ignore_ascii_case(word));
        if !(is("SELECT") && is("VALUE") && words.next().is_some()) {
            return Err(PART.violates(ComputedRule::NotSelectValue(name.to_owned())));
        }
        Ok(())
    }
}

impl ComputedProperty {
    /// Writes the property, for a stored row.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.name);
        out.text(&self.query);
    }

    /// Reads what [`ComputedProperty::encode`] wrote.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ComputedProperty, DecodeFault> {
        Ok(ComputedProperty {
            name: input.text("name of a computed property")?,
            query: input.text("query of a computed property")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartitionKeyKind;

    #[test]
    fn names_are_free_and_queries_give_a_value() {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/city/name"]).unwrap();
        let check = |properties: &[ComputedProperty]| ComputedProperty::check_all(properties, &key);
        let property = |name: &str| ComputedProperty::new(name, "select value LOWER(c.x) FROM c");
        assert!(check(&[property("cp_lower")]).is_ok());
        for bad in [
            vec![ComputedProperty::new("a", "SELECT c.x FROM c")],
            vec![ComputedProperty::new("a", "SELECT VALUE")],
            vec![property("id")],
            vec![property("city")],
            vec![property("a.b")],
            vec![property("")],
            vec![property("a"), property("a")],
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
        let many =
            |count: usize| (0..count).map(|number| property(&format!("p{number}"))).collect::<Vec<_>>();
        assert!(check(&many(20)).is_ok() && check(&many(21)).is_err());
    }
}
