//! The condition of a patch: the end of a query, starting at FROM.

use super::bad;
use crate::faults::{NosqlFault, NosqlQueryFault};
use crate::wire::links::document_link;
use engine::Container;
use plan::{Filter, SystemProperties};
use sql::{Parameters, Span, SqlFaults};
use std::sync::Arc;

/// Makes a query of a condition.
const BEGINNING: &str = "SELECT VALUE 1 ";

/// Maximum bytes of a condition. It is parsed on the threads of other requests and evaluated by the writer of the
/// partition, and a batch can have a hundred of them.
const CONDITION_BYTES_MAX: usize = 16 * 1024;

/// The filter of a condition on a document of `container`.
pub(crate) fn condition(container: &Container, text: &str) -> Result<Filter, NosqlFault> {
    if text.len() > CONDITION_BYTES_MAX {
        return Err(bad(&format!("the condition of a patch has at most {CONDITION_BYTES_MAX} bytes")).into());
    }
    let first = text.trim_start().get(..4).unwrap_or_default();
    if !first.eq_ignore_ascii_case("from") {
        return Err(bad("the condition of a patch begins with FROM").into());
    }
    let tree = sql::parse(&format!("{BEGINNING}{text}")).map_err(placed)?;
    if !tree.group_by.is_empty() || tree.order_by.is_some() || tree.offset_limit.is_some() {
        return Err(bad("the condition of a patch has FROM, JOIN and WHERE only").into());
    }
    let query = sql::lower(&tree, &Parameters::none()).map_err(placed)?;
    let (database, container) = (container.database().number(), container.number());
    let system = SystemProperties { database, container, link: document_link };
    Ok(Filter { query: Arc::new(query), system })
}

/// The faults, with places relative to the beginning of the condition.
fn placed(mut faults: SqlFaults) -> NosqlQueryFault {
    for fault in &mut faults.0 {
        let Span { start, end } = fault.span;
        fault.span = Span { start: after_beginning(start), end: after_beginning(end) };
    }
    NosqlQueryFault::Text(faults)
}

fn after_beginning(offset: u32) -> u32 {
    offset.saturating_sub(u32::try_from(BEGINNING.len()).unwrap_or(u32::MAX))
}
