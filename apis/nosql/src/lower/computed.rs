//! Computed properties of a container: their queries, lowered.

use crate::faults::NosqlQueryFault;
use model::RequestFault;
use serde_json::Value as Json;
use sql::Parameters;

/// Refuses a definition with a computed property that is no query: nobody could ask for it.
pub(crate) fn check_computed_properties(definition: &Json) -> Result<(), RequestFault> {
    let properties = definition.get("computedProperties").and_then(Json::as_array);
    for property in properties.into_iter().flatten() {
        // What is absent or of another kind has a fault of its own.
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

/// The query of a computed property; nothing if it is none. The engine reads each definition once by this.
pub fn read_computed_property(text: &str) -> Option<plan::query::Query> {
    lowered(text).ok()
}

fn lowered(text: &str) -> Result<plan::query::Query, NosqlQueryFault> {
    let tree = sql::parse(text).map_err(NosqlQueryFault::Text)?;
    sql::lower(&tree, &Parameters::none()).map_err(NosqlQueryFault::Text)
}
