//! TOP, OFFSET and LIMIT: a range returns as many rows as could be needed from it, the client applies the counts.

use super::{ClientPlan, Unmergeable};
use sql::ast::{Count, OffsetLimit, Query};
use sql::{CountClause, FaultKind};

/// Largest count that clients support.
const CLIENT_COUNT_MAX: u64 = i32::MAX as u64;

/// The counts of a query with parameters resolved. TOP with OFFSET LIMIT is already part of the limit.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) top: Option<u64>,
    offset_limit: Option<(u64, u64)>,
}

/// Reads the counts of a query from its plan.
pub(super) fn counts(query: &Query, lowered: &plan::query::Query) -> Result<Counts, Unmergeable> {
    let checked = |count: u64, clause: CountClause, written: &Count| {
        if count > CLIENT_COUNT_MAX {
            let fault = FaultKind::BadCount { clause, given: count.to_string() };
            return Err(Unmergeable::count(fault, written.span));
        }
        Ok(count)
    };
    if let Some(written) = &query.offset_limit {
        let offset = checked(lowered.offset, CountClause::Offset, &written.offset)?;
        let limit = checked(lowered.limit.unwrap_or(0), CountClause::Limit, &written.limit)?;
        return Ok(Counts { top: None, offset_limit: Some((offset, limit)) });
    }
    let top = match (&query.select.top, lowered.limit) {
        (Some(written), Some(top)) => Some(checked(top, CountClause::Top, written)?),
        (Some(_) | None, _) => None,
    };
    Ok(Counts { top, offset_limit: None })
}

impl Counts {
    /// Adds the counts that the client applies.
    pub(super) fn tell(&self, plan: &mut ClientPlan) {
        plan.top = self.top;
        (plan.offset, plan.limit) = self.offset_limit.unzip();
    }

    /// Makes a range also return the rows that the client will skip, because the skipped rows may be in another range.
    pub(super) fn widen(&self, query: &mut Query) {
        if let Some((offset, limit)) = self.offset_limit {
            let limit = u32::try_from(offset + limit).unwrap_or(u32::MAX);
            query.offset_limit = Some(OffsetLimit { offset: Count::of(0), limit: Count::of(limit) });
            query.select.top = None;
        }
    }
}

/// Removes the counts from the text: they apply to the rows that the client has combined.
pub(super) fn take_out(query: &mut Query) {
    query.select.top = None;
    query.offset_limit = None;
}
