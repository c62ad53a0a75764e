//! The condition of a patch: the end of a query, from its FROM on.

use super::{bad, text_fault};
use engine::Container;
use model::{Fault, QueryFault, QueryTextError};
use plan::{Filter, SystemProperties};
use sql::Parameters;
use std::sync::Arc;

/// What makes a query of a condition.
const BEGINNING: &str = "SELECT VALUE 1 ";

/// Most bytes of a condition. It is read beside other requests and evaluated while nobody else writes, and a batch can
/// have a hundred of them.
const CONDITION_BYTES_MAX: usize = 16 * 1024;

/// What a condition asks of a document of `container`.
pub(crate) fn condition(container: &Container, text: &str) -> Result<Filter, Fault> {
    if text.len() > CONDITION_BYTES_MAX {
        return Err(bad(&format!("the condition of a patch has at most {CONDITION_BYTES_MAX} bytes")).into());
    }
    let first = text.trim_start().get(..4).unwrap_or_default();
    if !first.eq_ignore_ascii_case("from") {
        return Err(bad("the condition of a patch begins with FROM").into());
    }
    let tree = sql::parse(&format!("{BEGINNING}{text}")).map_err(|faults| placed(text_fault(faults)))?;
    if !tree.group_by.is_empty() || tree.order_by.is_some() || tree.offset_limit.is_some() {
        return Err(bad("the condition of a patch has FROM, JOIN and WHERE only").into());
    }
    let query = sql::lower(&tree, &Parameters::none()).map_err(|faults| placed(text_fault(faults)))?;
    let system = SystemProperties { database: container.database().number(), container: container.number() };
    Ok(Filter { query: Arc::new(query), system })
}

/// The fault with places that count from the beginning of the condition.
fn placed(fault: QueryFault) -> QueryFault {
    let QueryFault::Text { mut errors } = fault else {
        return fault;
    };
    for QueryTextError { start, end, .. } in &mut errors {
        *start = start.saturating_sub(BEGINNING.len());
        *end = end.saturating_sub(BEGINNING.len());
    }
    QueryFault::Text { errors }
}
