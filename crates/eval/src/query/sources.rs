//! Rows of the sources: the cross product, left to right; each source can refer to those before it.

use std::ops::ControlFlow;

use plan::query::{PathStep, Source};
use value::ValueRef;

use super::results;
use crate::expression::Frame;
use crate::{EvalFault, Row};

/// A document, or a value in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) number: Option<u64>,
    pub(super) root: ValueRef<'a>,
}

/// Handles a row and returns whether more are wanted.
pub(super) type Visit<'v> = &'v mut dyn FnMut(Frame<'_>) -> Result<ControlFlow<()>, EvalFault>;

/// Calls `visit` for every row of the sources, combined with the row of the frame. Only the first source reads the
/// documents.
///
/// A row that waits for the result of a user-defined function does not stop the others, so that the calls of all rows are
/// known at once.
pub(super) fn for_each_row<'a>(
    frame: Frame<'a>,
    sources: &'a [Source],
    documents: Option<&'a [Origin<'a>]>,
    visit: Visit<'_>,
) -> Result<ControlFlow<()>, EvalFault> {
    if frame.context.user_calls.is_none() {
        return bind_all(frame, sources, documents, visit);
    }
    let mut is_pending = false;
    let end = bind_all(frame, sources, documents, &mut |frame| match visit(frame) {
        Err(EvalFault::CallPending) => {
            is_pending = true;
            Ok(ControlFlow::Continue(()))
        }
        end => end,
    })?;
    if is_pending { Err(EvalFault::CallPending) } else { Ok(end) }
}

/// Binds the slots of the sources to one row after the other.
fn bind_all<'a>(
    frame: Frame<'a>,
    sources: &'a [Source],
    documents: Option<&'a [Origin<'a>]>,
    visit: Visit<'_>,
) -> Result<ControlFlow<()>, EvalFault> {
    let Some((source, rest)) = sources.split_first() else {
        return visit(frame);
    };
    let frame = frame.deeper()?;
    // Binds the next slot to one value after the other.
    let mut bind = |value: ValueRef<'_>, number: Option<u64>| {
        frame.context.count_row()?;
        let document_number = number.or(frame.row.document_number);
        if frame.row.slots.is_empty() {
            // The document itself, once per document of a scan: without an allocation.
            let row = Row { slots: &[value], document_number, ..frame.row };
            return bind_all(frame.with_row(row), rest, None, visit);
        }
        let mut slots: Vec<ValueRef<'_>> = frame.row.slots.to_vec();
        slots.push(value);
        let row = Row { slots: &slots, document_number, ..frame.row };
        bind_all(frame.with_row(row), rest, None, visit)
    };
    match source {
        Source::Container { path } => {
            for document in documents.unwrap_or_default() {
                if let Some(value) = follow(document.root, path)
                    && bind(value, document.number)?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Source::ContainerElements { path } => {
            for document in documents.unwrap_or_default() {
                let array = follow(document.root, path);
                for element in array.into_iter().flat_map(ValueRef::elements) {
                    if bind(element, document.number)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Source::Value(expression) => {
            if let Some(value) = frame.evaluate(expression)? {
                return bind(value.as_ref(), None);
            }
        }
        Source::Elements(expression) => {
            if let Some(array) = frame.evaluate(expression)? {
                for element in array.as_ref().elements() {
                    if bind(element, None)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Source::Rows(query) => {
            let mut holding = frame.context.budget.holding();
            let rows = results(frame, query, documents, None)?;
            rows.iter().try_for_each(|row| holding.add_value(row.as_ref()))?;
            for row in &rows {
                if bind(row.as_ref(), None)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Source::RowElements(query) => {
            let mut holding = frame.context.budget.holding();
            let rows = results(frame, query, documents, None)?;
            rows.iter().try_for_each(|row| holding.add_value(row.as_ref()))?;
            for element in rows.iter().flat_map(|row| row.as_ref().elements()) {
                if bind(element, None)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The value at a path.
fn follow<'v>(root: ValueRef<'v>, path: &[PathStep]) -> Option<ValueRef<'v>> {
    path.iter().try_fold(root, |value, step| match step {
        PathStep::Name(name) => value.member(name),
        PathStep::Position(position) => value.element(usize::try_from(*position).ok()?),
    })
}
