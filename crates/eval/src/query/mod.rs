//! A whole query over documents in memory: the obvious way, without an index.
//!
//! Used for subqueries inside expressions and as the measure that cleverer ways are compared with. All rows of the
//! result are held in memory, within the budget of the context.
//!
//! Groups come in the order of their first rows; so do distinct results.

mod grouping;
mod order;
mod sources;

use std::collections::HashSet;
use std::ops::ControlFlow;

use plan::query::{Order, Projection, Query, SubqueryKind};
use value::{Value, ValueRef, encode_key};

use crate::budget::{Holding, Scale};
use crate::expression::Frame;
use crate::{Computed, Context, EvalFault, Row};
use grouping::Groups;
use order::Ordered;

/// A document and its number.
#[derive(Debug, Clone, Copy)]
pub struct DocumentRow<'a> {
    /// Ties of any order are broken by it.
    pub number: u64,
    /// The document.
    pub root: ValueRef<'a>,
}

/// The results of a query over documents, which may come in any order.
pub fn run<'a>(
    context: &'a Context<'_>,
    query: &'a Query,
    documents: impl IntoIterator<Item = DocumentRow<'a>>,
) -> Result<Vec<Value>, EvalFault> {
    let mut documents: Vec<_> = documents.into_iter().collect();
    documents.sort_by_key(|document| document.number);
    let frame = Frame::new(context, Row::default());
    results(frame, query, &documents, None)
}

/// What a subquery makes of its rows. The documents of the container are out of its sight.
pub(crate) fn subquery(
    frame: Frame<'_>,
    kind: SubqueryKind,
    query: &Query,
) -> Result<Option<Value>, EvalFault> {
    match kind {
        SubqueryKind::Scalar => {
            let mut results = results(frame, query, &[], Some(2))?;
            if results.len() > 1 {
                return Err(EvalFault::ScalarSubqueryRows);
            }
            Ok(results.pop())
        }
        SubqueryKind::Exists => Ok(Some(Value::Bool(!results(frame, query, &[], Some(1))?.is_empty()))),
        SubqueryKind::Array => {
            let results = results(frame, query, &[], None)?;
            let mut scale = Scale::default();
            results.iter().try_for_each(|result| scale.add_value(result.as_ref()))?;
            Ok(Some(Value::Array(results)))
        }
        SubqueryKind::First => Ok(results(frame, query, &[], Some(1))?.into_iter().next()),
        SubqueryKind::Last => Ok(results(frame, query, &[], None)?.pop()),
        SubqueryKind::All => all_pass(frame, query).map(|all| Some(Value::Bool(all))),
    }
}

/// Whether the filter is true for every row of the sources.
fn all_pass(frame: Frame<'_>, query: &Query) -> Result<bool, EvalFault> {
    let Some(filter) = &query.filter else {
        return Ok(true);
    };
    let mut all = true;
    let _ = sources::for_each_row(frame, &query.sources, &[], &mut |frame| {
        all = frame.truth(filter)? == Some(true);
        Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(all)
}

/// The results of a query on top of an outer row; no more than `wanted`, if that is given.
fn results<'a>(
    frame: Frame<'a>,
    query: &'a Query,
    documents: &'a [DocumentRow<'a>],
    wanted: Option<u64>,
) -> Result<Vec<Value>, EvalFault> {
    let mut results = Results::new(frame, query, wanted);
    if results.is_full() {
        return Ok(Vec::new());
    }
    match &query.grouping {
        None => {
            let _ = for_each_match(frame, query, documents, &mut |frame| results.add(frame))?;
        }
        Some(grouping) => {
            let mut groups = Groups::new(grouping, frame.context);
            let _ = for_each_match(frame, query, documents, &mut |frame| {
                groups.add(frame)?;
                Ok(ControlFlow::Continue(()))
            })?;
            for group in groups.finish() {
                let row = Row { group: Some(&group), ..frame.row };
                if results.add(frame.with_row(row))?.is_break() {
                    break;
                }
            }
        }
    }
    Ok(results.finish())
}

/// Calls `visit` for every row of the sources that the filter lets pass.
fn for_each_match<'a>(
    frame: Frame<'a>,
    query: &'a Query,
    documents: &'a [DocumentRow<'a>],
    visit: &mut dyn FnMut(Frame<'_>) -> Result<ControlFlow<()>, EvalFault>,
) -> Result<ControlFlow<()>, EvalFault> {
    sources::for_each_row(frame, &query.sources, documents, &mut |frame| {
        let passes = match &query.filter {
            Some(filter) => frame.truth(filter)? == Some(true),
            None => true,
        };
        if passes { visit(frame) } else { Ok(ControlFlow::Continue(())) }
    })
}

/// Projected rows on their way out: ordered, each once if that is asked for, cut at both ends.
struct Results<'a> {
    query: &'a Query,
    holding: Holding<'a>,
    rows: Vec<Ordered>,
    seen: HashSet<Vec<u8>>,
    /// How many rows are enough; nothing where all must be seen to know the first.
    enough: Option<usize>,
    wanted: Option<u64>,
}

impl<'a> Results<'a> {
    fn new(frame: Frame<'a>, query: &'a Query, wanted: Option<u64>) -> Results<'a> {
        let last = match (query.limit, wanted) {
            (Some(limit), Some(wanted)) => Some(limit.min(wanted)),
            (limit, wanted) => limit.or(wanted),
        };
        let enough = match &query.order {
            Order::None => last.and_then(|last| usize::try_from(query.offset.saturating_add(last)).ok()),
            Order::Keys(_) | Order::Rank(_) => None,
        };
        Results {
            query,
            holding: frame.context.budget.holding(),
            rows: Vec::new(),
            seen: HashSet::new(),
            enough,
            wanted,
        }
    }

    fn is_full(&self) -> bool {
        self.enough.is_some_and(|enough| self.rows.len() >= enough)
    }

    fn add(&mut self, frame: Frame<'_>) -> Result<ControlFlow<()>, EvalFault> {
        let projected = match &self.query.projection {
            Projection::Row(slot) => {
                frame.row.slots.get(usize::from(slot.0)).copied().map(Computed::Borrowed)
            }
            Projection::Value(expression) => frame.evaluate(expression)?,
            Projection::Object(members) => frame.object(members)?,
        };
        let Some(projected) = projected else {
            return Ok(ControlFlow::Continue(()));
        };
        let keys = order::keys(frame, &self.query.order)?;
        if self.query.distinct && keys.is_empty() && !self.is_new(projected.as_ref())? {
            return Ok(ControlFlow::Continue(()));
        }
        self.holding.add_value(projected.as_ref())?;
        for key in keys.iter().flatten() {
            self.holding.add_value(key.as_ref())?;
        }
        let number = frame.row.document_number;
        self.rows.push(Ordered { result: projected.into_value(), keys, number });
        Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Whether a result has not been seen before.
    fn is_new(&mut self, result: ValueRef<'_>) -> Result<bool, EvalFault> {
        let mut code = Vec::new();
        encode_key(result, &mut code);
        self.holding.add(code.len())?;
        Ok(self.seen.insert(code))
    }

    fn finish(mut self) -> Vec<Value> {
        order::sort(&mut self.rows, &self.query.order);
        let mut rows = std::mem::take(&mut self.rows);
        if self.query.distinct && !matches!(self.query.order, Order::None) {
            // Of equal results the first in the order counts.
            rows.retain(|row| {
                let mut code = Vec::new();
                encode_key(row.result.as_ref(), &mut code);
                self.seen.insert(code)
            });
        }
        let offset = usize::try_from(self.query.offset).unwrap_or(usize::MAX);
        let last = [self.query.limit, self.wanted].into_iter().flatten().min().unwrap_or(u64::MAX);
        let last = usize::try_from(last).unwrap_or(usize::MAX);
        rows.into_iter().skip(offset).take(last).map(|row| row.result).collect()
    }
}
