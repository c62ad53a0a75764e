//! `computedProperties`

use super::bad;
use super::reader::Reader;
use crate::faults::NosqlFault;
use model::PartitionKeyDefinition;
use model::policy::ComputedProperty;
use serde_json::{Value as Json, json};

const POLICY: &str = "computedProperties";

/// Absent means none.
pub(super) fn read(
    json: Option<&Json>,
    partition_key: &PartitionKeyDefinition,
) -> Result<Vec<ComputedProperty>, NosqlFault> {
    let list = match json {
        None => return Ok(Vec::new()),
        Some(Json::Array(list)) => list,
        Some(_) => return Err(bad(POLICY, "it must be an array")),
    };
    ComputedProperty::check_count(list.len())?;
    let properties = list.iter().map(|json| {
        let property = read_property(json)?;
        property.check(partition_key)?;
        Ok(property)
    });
    let properties: Vec<ComputedProperty> = properties.collect::<Result<_, NosqlFault>>()?;
    ComputedProperty::check_all(&properties, partition_key)?;
    Ok(properties)
}

fn read_property(json: &Json) -> Result<ComputedProperty, NosqlFault> {
    let reader = Reader::new(POLICY, "a computed property", json)?;
    reader.only(&["name", "query"])?;
    Ok(ComputedProperty::new(reader.required_text("name")?, reader.required_text("query")?))
}

pub(super) fn write(properties: &[ComputedProperty]) -> Json {
    properties.iter().map(|property| json!({ "name": property.name, "query": property.query })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionKeyKind;

    fn read(list: Json) -> Result<Vec<ComputedProperty>, NosqlFault> {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV1, ["/city/name"]).unwrap();
        super::read(Some(&list), &key)
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
