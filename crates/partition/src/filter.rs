//! Filters of conditional changes, evaluated on the stored document.
//!
//! The writer evaluates a filter between two versions of a document, so no other change can come between check and
//! write. No other transaction of the partition runs meanwhile; the limits are therefore far below those of a query.

use crate::record::Record;
use eval::{Budget, Context, DocumentRow, Meter};
use model::{Ambient, Fault, PreconditionFault, QueryFault};
use plan::Filter;

/// Memory limit of a filter.
const BYTES_MAX: usize = 16 << 20;
/// Limit of the rows that a filter evaluates; more than one needs a join.
const ROWS_MAX: u64 = 10_000;

/// Step limit of a filter, some tens of milliseconds.
const STEPS_MAX: u64 = 2_000_000;

/// Refuses a document that the filter does not match.
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
