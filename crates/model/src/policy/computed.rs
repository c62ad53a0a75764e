//! Computed properties: names for what queries compute. The query's text is looked at no further than its beginning.

use super::reader::{Reader, bad, repeated};
use crate::{DecodeFault, Decoder, Encoder, PartitionKeyDefinition, RequestFault};
use serde_json::{Value as Json, json};

const POLICY: &str = "computedProperties";
/// Most computed properties of a container.
const COUNT_MAX: usize = 20;
/// Names that documents have already.
const RESERVED: [&str; 8] = ["id", "_rid", "_ts", "_self", "_etag", "_attachments", "_lsn", "_metadata"];

/// A property that queries see and documents do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedProperty {
    /// Its name.
    pub name: String,
    /// The query whose value it is.
    pub query: String,
}

/// Reads the list; absent means none.
pub(super) fn list_from_json(
    json: Option<&Json>,
    partition_key: &PartitionKeyDefinition,
) -> Result<Vec<ComputedProperty>, RequestFault> {
    let list = match json {
        None => return Ok(Vec::new()),
        Some(Json::Array(list)) => list,
        Some(_) => return Err(bad(POLICY, "it must be an array")),
    };
    if list.len() > COUNT_MAX {
        return Err(bad(POLICY, format!("{} properties given, {COUNT_MAX} allowed", list.len())));
    }
    let properties = list.iter().map(|json| ComputedProperty::from_json(json, partition_key));
    let properties: Vec<ComputedProperty> = properties.collect::<Result<_, _>>()?;
    let names: Vec<_> = properties.iter().map(|property| &property.name).collect();
    match repeated(&names) {
        Some(name) => Err(bad(POLICY, format!("the name \"{name}\" is given twice"))),
        None => Ok(properties),
    }
}

impl ComputedProperty {
    fn from_json(
        json: &Json,
        partition_key: &PartitionKeyDefinition,
    ) -> Result<ComputedProperty, RequestFault> {
        let reader = Reader::new(POLICY, "a computed property", json)?;
        reader.only(&["name", "query"])?;
        let (name, query) = (reader.required_text("name")?, reader.required_text("query")?);
        if !name.chars().all(|character| character.is_alphanumeric() || character == '_') {
            return Err(reader.bad(format!("the name \"{name}\" must have letters, digits and '_' only")));
        }
        let mut tops = partition_key.paths().iter().filter_map(|path| path.segments().next());
        if RESERVED.contains(&name) || tops.any(|top| top == name) {
            return Err(reader.bad(format!("the name \"{name}\" belongs to a property of the document")));
        }
        let mut words = query.split_whitespace();
        let mut is = |word: &str| words.next().is_some_and(|found| found.eq_ignore_ascii_case(word));
        if !(is("SELECT") && is("VALUE") && words.next().is_some()) {
            return Err(reader.bad(format!("the query of \"{name}\" must begin with SELECT VALUE")));
        }
        Ok(ComputedProperty { name: name.to_owned(), query: query.to_owned() })
    }

    pub(super) fn to_json(&self) -> Json {
        json!({ "name": self.name, "query": self.query })
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

    fn read(list: Json) -> Result<Vec<ComputedProperty>, RequestFault> {
        let key = PartitionKeyDefinition::from_json(&json!({ "paths": ["/city/name"] })).unwrap();
        list_from_json(Some(&list), &key)
    }

    #[test]
    fn names_are_free_and_queries_give_a_value() {
        let property = |name: &str| json!({ "name": name, "query": "select value LOWER(c.x) FROM c" });
        assert_eq!(read(json!([property("cp_lower")])).unwrap()[0].name, "cp_lower");
        for bad in [
            json!({}),
            json!([1]),
            json!([{ "name": "a" }]),
            json!([{ "name": "a", "query": "SELECT c.x FROM c" }]),
            json!([{ "name": "a", "query": "SELECT VALUE" }]),
            json!([property("id")]),
            json!([property("city")]),
            json!([property("a.b")]),
            json!([property("")]),
            json!([property("a"), property("a")]),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
        let many = |count: usize| (0..count).map(|number| property(&format!("p{number}"))).collect::<Json>();
        assert!(read(many(20)).is_ok() && read(many(21)).is_err());
    }
}
