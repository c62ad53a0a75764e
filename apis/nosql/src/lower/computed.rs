//! Computed properties of a container: their lowered queries.

use crate::faults::NosqlQueryFault;
use model::RequestFault;
use serde_json::Value as Json;
use sql::Parameters;

/// Refuses a definition with a computed property that is not a valid query.
pub(crate) fn check_computed_properties(definition: &Json) -> Result<(), RequestFault> {
    let properties = definition.get("computedProperties").and_then(Json::as_array);
    for property in properties.into_iter().flatten() {
        // A missing or wrong member has its own fault.
        let Some(text) = property.get("query").and_then(Json::as_str) else {
            continue;
        };
        lowered(text).map_err(|fault| RequestFault::BadDefinition {
            field: "computedProperties".to_owned(),
            reason: fault.to_string(),
        })?;
    }
    Ok(())
}

/// The query of a computed property; `None` if it is invalid. The engine uses this once per definition.
pub fn read_computed_property(text: &str) -> Option<plan::query::Query> {
    lowered(text).ok()
}

fn lowered(text: &str) -> Result<plan::query::Query, NosqlQueryFault> {
    let tree = sql::parse(text).map_err(NosqlQueryFault::Text)?;
    sql::lower(&tree, &Parameters::none()).map_err(NosqlQueryFault::Text)
}
