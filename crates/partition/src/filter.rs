//! Filters: whether a stored document is what a change asks for.
//!
//! Evaluated by the writer between a document's last version and its next, so that nobody else can come between. While
//! it looks nobody else writes in this partition: so its bounds are far below those of a query.

use crate::record::Record;
use eval::{Budget, Context, DocumentRow, Meter};
use model::{Ambient, Fault, PreconditionFault, QueryFault};
use plan::Filter;

/// Most memory of a filter.
const BYTES_MAX: usize = 16 << 20;
/// Most rows that a filter looks at, which only joins can make.
const ROWS_MAX: u64 = 10_000;

/// Most steps of a filter, some tens of milliseconds.
const STEPS_MAX: u64 = 2_000_000;

/// Refuses a document that does not pass.
pub(crate) fn check(filter: Option<&Filter>, record: &Record, ambient: &dyn Ambient) -> Result<(), Fault> {
    let Some(filter) = filter else {
        return Ok(());
    };
    let stored = record.clone().into_stored();
    let document = filter.system.extend(&stored).map_err(|error| Fault::Internal(error.to_string()))?;
    let context =
        Context::new(ambient, Budget::new(BYTES_MAX, ROWS_MAX)).with_meter(Meter::bounded(STEPS_MAX));
    let row = DocumentRow { number: stored.number.raw(), root: document.root() };
    let found = eval::run(&context, &filter.query, [row]).map_err(QueryFault::Evaluation)?;
    if found.is_empty() {
        return Err(PreconditionFault::Filter.into());
    }
    Ok(())
}
