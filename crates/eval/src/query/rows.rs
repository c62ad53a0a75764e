//! Rows of a query: the rows of its sources that pass its filter.
//!
//! The entry point for callers that do their own ordering, grouping and paging.

use std::ops::ControlFlow;

use plan::query::{Expression, Projection, Query};
use value::ValueRef;

use super::sources::{self, Origin, Visit};
use crate::expression::{EvalResult, Frame};
use crate::{Computed, Context, EvalFault, GroupRow, Row};

/// A row that passed the filter.
#[derive(Clone, Copy)]
pub struct MatchedRow<'a> {
    pub(super) frame: Frame<'a>,
    /// Index among the rows of its document, including those that did not pass.
    pub index: u32,
}

impl<'a> MatchedRow<'a> {
    /// The row of a group.
    pub fn of_group(context: &'a Context<'_>, group: &'a GroupRow) -> MatchedRow<'a> {
        let row = Row { group: Some(group), ..Row::default() };
        MatchedRow { frame: Frame::new(context, row), index: 0 }
    }

    /// The value of an expression; `None` is undefined.
    pub fn evaluate(&self, expression: &'a Expression) -> EvalResult<'a> {
        self.frame.evaluate(expression)
    }

    /// The projection of the row; `None` if the row is omitted.
    pub fn project(&self, projection: &'a Projection) -> EvalResult<'a> {
        match projection {
            Projection::Row(slot) => {
                let slot = self.frame.row.slots.get(usize::from(slot.0));
                Ok(slot.copied().map(Computed::Borrowed))
            }
            Projection::Value(expression) => self.frame.evaluate(expression),
            Projection::Object(members) => self.frame.object(members),
        }
    }
}

/// Calls `visit` for every row of one document that passes the filter.
///
/// Without a document the sources must not refer to the container; a query without sources has one row.
pub fn for_each_match<'a>(
    context: &'a Context<'_>,
    query: &'a Query,
    root: Option<ValueRef<'a>>,
    number: Option<u64>,
    visit: &mut dyn FnMut(MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault>,
) -> Result<ControlFlow<()>, EvalFault> {
    let origin = root.map(|root| Origin { number, root });
    let frame = Frame::new(context, Row::default());
    matches(frame, query, Some(origin.as_slice()), visit)
}

/// The same for a document all of whose rows are known to pass the filter.
pub fn for_each_row<'a>(
    context: &'a Context<'_>,
    query: &'a Query,
    root: Option<ValueRef<'a>>,
    number: Option<u64>,
    visit: &mut dyn FnMut(MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault>,
) -> Result<ControlFlow<()>, EvalFault> {
    let origin = root.map(|root| Origin { number, root });
    let mut index = 0u32;
    let all: Visit<'_> = &mut |frame| {
        let row = MatchedRow { frame, index };
        index = index.saturating_add(1);
        visit(row)
    };
    sources::for_each_row(Frame::new(context, Row::default()), &query.sources, Some(origin.as_slice()), all)
}

/// The same with an outer row, over any number of documents.
pub(super) fn matches<'a>(
    frame: Frame<'a>,
    query: &'a Query,
    documents: Option<&'a [Origin<'a>]>,
    visit: &mut dyn FnMut(MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault>,
) -> Result<ControlFlow<()>, EvalFault> {
    let mut index = 0u32;
    let filtered: Visit<'_> = &mut |frame| {
        let row = MatchedRow { frame, index };
        index = index.saturating_add(1);
        let passes = match &query.filter {
            Some(filter) => frame.truth(filter)? == Some(true),
            None => true,
        };
        if passes { visit(row) } else { Ok(ControlFlow::Continue(())) }
    };
    sources::for_each_row(frame, &query.sources, documents, filtered)
}
