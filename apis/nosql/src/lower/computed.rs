//! Computed properties of a container: their queries, lowered.

use crate::faults::NosqlQueryFault;
use engine::{ComputedProperty, Container};
use model::RequestFault;
use serde_json::Value as Json;
use sql::Parameters;
use std::sync::{Arc, LazyLock};

/// The computed properties that queries over a container see.
pub(crate) fn computed_properties(container: &Container) -> Result<Arc<[ComputedProperty]>, NosqlQueryFault> {
    static NONE: LazyLock<Arc<[ComputedProperty]>> = LazyLock::new(|| Arc::new([]));
    let properties = container.definition().policies.computed.iter();
    if properties.len() == 0 {
        return Ok(Arc::clone(&NONE));
    }
    properties.map(|property| Ok((property.name.clone(), lowered(&property.query)?))).collect()
}

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

/// The query of a computed property, for those who index its values; nothing if it is none.
pub fn read_computed_property(text: &str) -> Option<plan::query::Query> {
    lowered(text).ok()
}

fn lowered(text: &str) -> Result<plan::query::Query, NosqlQueryFault> {
    let tree = sql::parse(text).map_err(NosqlQueryFault::Text)?;
    sql::lower(&tree, &Parameters::none()).map_err(NosqlQueryFault::Text)
}
