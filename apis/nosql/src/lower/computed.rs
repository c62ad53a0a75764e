//! The queries of computed properties.

use crate::faults::{NosqlFault, NosqlQueryFault};
use model::{ComputedRule, DefinitionPart};
use serde_json::Value as Json;
use sql::Parameters;

/// The query of a computed property; `None` if it is invalid. The engine uses this once per definition.
pub fn read_computed_property(text: &str) -> Option<plan::query::Query> {
    lowered(text).ok()
}

/// Why the query of a computed property is invalid.
pub(crate) fn check_computed_query(text: &str) -> Result<(), NosqlQueryFault> {
    lowered(text).map(drop)
}

/// The fault of a refused definition. An invalid query of a computed property is reported before all other faults, but
/// the engine parses the queries after the rest of the definition was checked.
pub(crate) fn first_fault(definition: &Json, fault: NosqlFault) -> NosqlFault {
    let properties = definition.get("computedProperties").and_then(Json::as_array);
    // A missing or wrong member has its own fault.
    let mut queries = properties.into_iter().flatten().filter_map(|property| property.get("query")?.as_str());
    match queries.find(|query| check_computed_query(query).is_err()) {
        Some(query) => {
            let rule = ComputedRule::Query { query: query.to_owned() };
            DefinitionPart::ComputedProperties.violates(rule).into()
        }
        None => fault,
    }
}

fn lowered(text: &str) -> Result<plan::query::Query, NosqlQueryFault> {
    let tree = sql::parse(text).map_err(NosqlQueryFault::Text)?;
    sql::lower(&tree, &Parameters::none()).map_err(NosqlQueryFault::Text)
}
