//! Naive execution of a whole query over documents in memory, without an index.
//!
//! Used for subqueries inside expressions and as the reference for other execution paths. All rows of the result are
//! held in memory, within the budget of the context. [`for_each_match`] and [`Groups`] are shared with the other
//! execution paths.
//!
//! Groups and distinct results of a whole query are in the order of their key hashes, whatever the access path. A
//! subquery inside an expression is never paged or distributed, so its groups are in the order of their first rows.

mod grouping;
mod hash;
mod order;
mod rows;
mod sources;

pub use grouping::{Groups, KeptGroups};
pub use hash::{KeyHash, hash_of};
pub use rows::{MatchedRow, for_each_match, for_each_row};

use std::collections::HashSet;
use std::ops::ControlFlow;

use plan::query::{Grouping, Order, Query, SubqueryKind};
use value::{Value, ValueRef, encode_key};

use crate::budget::{Holding, WeightSum, allocated, table_bytes, weigh_inside};
use crate::expression::Frame;
use crate::{Computed, Context, EvalFault, GroupRow, Row};
use order::Ordered;
use rows::matches;
use sources::Origin;

/// A document and its number.
#[derive(Debug, Clone, Copy)]
pub struct DocumentRow<'a> {
    /// Tie breaker of every order.
    pub number: u64,
    /// The document.
    pub root: ValueRef<'a>,
}

/// The results of a query over documents, which may be given in any order.
pub fn run<'a>(
    context: &'a Context<'_>,
    query: &'a Query,
    documents: impl IntoIterator<Item = DocumentRow<'a>>,
) -> Result<Vec<Value>, EvalFault> {
    let origin = |document: DocumentRow<'a>| Origin { number: Some(document.number), root: document.root };
    let mut documents: Vec<_> = documents.into_iter().map(origin).collect();
    documents.sort_by_key(|document| document.number);
    let frame = Frame::new(context, Row::default());
    results(frame, query, Some(&documents), None)
}

/// The value of a subquery. It cannot read the documents of the container.
pub(crate) fn subquery(
    frame: Frame<'_>,
    kind: SubqueryKind,
    query: &Query,
) -> Result<Option<Value>, EvalFault> {
    match kind {
        SubqueryKind::Scalar => {
            let mut results = results(frame, query, None, Some(2))?;
            if results.len() > 1 {
                return Err(EvalFault::ScalarSubqueryRows);
            }
            Ok(results.pop())
        }
        SubqueryKind::Exists => Ok(Some(Value::Bool(!results(frame, query, None, Some(1))?.is_empty()))),
        SubqueryKind::Array => {
            let results = results(frame, query, None, None)?;
            let mut scale = WeightSum::default();
            results.iter().try_for_each(|result| scale.add_value(result.as_ref()))?;
            Ok(Some(Value::Array(results)))
        }
        SubqueryKind::First => Ok(results(frame, query, None, Some(1))?.into_iter().next()),
        SubqueryKind::Last => Ok(results(frame, query, None, None)?.pop()),
        SubqueryKind::All => all_pass(frame, query).map(|all| Some(Value::Bool(all))),
    }
}

/// Whether the filter is true for every row of the sources.
fn all_pass(frame: Frame<'_>, query: &Query) -> Result<bool, EvalFault> {
    let Some(filter) = &query.filter else {
        return Ok(true);
    };
    let mut all = true;
    let _ = sources::for_each_row(frame, &query.sources, None, &mut |frame| {
        all = frame.truth(filter)? == Some(true);
        Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(all)
}

/// The results of a query with an outer row; at most `wanted`, if given. Only a whole query, or the one in its first
/// source, can read documents.
fn results<'a>(
    frame: Frame<'a>,
    query: &'a Query,
    documents: Option<&'a [Origin<'a>]>,
    wanted: Option<u64>,
) -> Result<Vec<Value>, EvalFault> {
    let mut results = Results::new(frame, query, documents.is_some(), wanted);
    if results.is_full() {
        return Ok(Vec::new());
    }
    match &query.grouping {
        None => {
            let _ = matches(frame, query, documents, &mut |row| results.add(row))?;
        }
        Some(grouping) => {
            let groups = groups(frame, query, grouping, documents)?;
            for group in &groups {
                let row = Row { group: Some(group), ..frame.row };
                let row = MatchedRow { frame: frame.with_row(row), index: 0 };
                if results.add(row)?.is_break() {
                    break;
                }
            }
        }
    }
    Ok(results.finish())
}

/// The groups of a query in their order.
fn groups<'a>(
    frame: Frame<'a>,
    query: &'a Query,
    grouping: &'a Grouping,
    documents: Option<&'a [Origin<'a>]>,
) -> Result<Vec<GroupRow>, EvalFault> {
    let mut groups = Groups::new(grouping, frame.context, None);
    let mut seen = 0u64;
    let _ = matches(frame, query, documents, &mut |row| {
        groups.add(grouping, row, &seen.to_be_bytes())?;
        seen += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(match documents {
        Some(_) => groups.finish_by_hash().into_iter().map(|(_, row)| row).collect(),
        None => groups.finish_as_seen(),
    })
}

/// Projected rows before output: sorted, distinct if requested, with offset and limit.
struct Results<'a> {
    query: &'a Query,
    rows: Vec<Ordered>,
    /// Counted bytes of it.
    rows_room: usize,
    seen: HashSet<Vec<u8>>,
    seen_room: usize,
    /// Whether results are ordered by their hashes.
    by_hash: bool,
    /// Number of rows that suffice; `None` if all rows are needed to know the first.
    enough: Option<usize>,
    wanted: Option<u64>,
    /// The last field, so that the bytes are returned after the rows were freed.
    holding: Holding,
}

impl<'a> Results<'a> {
    fn new(frame: Frame<'a>, query: &'a Query, is_whole: bool, wanted: Option<u64>) -> Results<'a> {
        let last = match (query.limit, wanted) {
            (Some(limit), Some(wanted)) => Some(limit.min(wanted)),
            (limit, wanted) => limit.or(wanted),
        };
        let by_hash = is_whole && query.distinct && matches!(query.order, Order::None);
        let enough = match &query.order {
            Order::None if !by_hash => {
                last.and_then(|last| usize::try_from(query.offset.saturating_add(last)).ok())
            }
            Order::None | Order::Keys(_) | Order::Rank(_) => None,
        };
        Results {
            query,
            holding: frame.context.budget.holding(),
            rows: Vec::new(),
            rows_room: 0,
            seen: HashSet::new(),
            seen_room: 0,
            by_hash,
            enough,
            wanted,
        }
    }

    fn is_full(&self) -> bool {
        self.enough.is_some_and(|enough| self.rows.len() >= enough)
    }

    fn add(&mut self, row: MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault> {
        let Some(projected) = row.project(&self.query.projection)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let keys = order::keys(row.frame, &self.query.order)?;
        let mut hash = None;
        if self.query.distinct && keys.is_empty() {
            let mut code = Vec::new();
            encode_key(projected.as_ref(), &mut code);
            let weight = allocated(code.capacity());
            hash = self.by_hash.then(|| hash_of(&code));
            if !self.seen.insert(code) {
                return Ok(ControlFlow::Continue(()));
            }
            self.holding.add(weight)?;
            let room = table_bytes::<Vec<u8>>(self.seen.capacity());
            self.holding.resize(&mut self.seen_room, room)?;
        }
        let mut weight = weigh_inside(projected.as_ref())?;
        for key in keys.iter().flatten() {
            weight += crate::weigh(key.as_ref())?;
        }
        self.holding.add(weight)?;
        self.holding.grow(&mut self.rows, &mut self.rows_room)?;
        let number = row.frame.row.document_number;
        self.rows.push(Ordered { result: Computed::into_value(projected), keys, number, hash });
        Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn finish(mut self) -> Vec<Value> {
        let mut rows = std::mem::take(&mut self.rows);
        if self.by_hash {
            rows.sort_by_key(|row| row.hash);
        }
        order::sort(&mut rows, &self.query.order);
        if self.query.distinct && !matches!(self.query.order, Order::None) {
            // Of equal results the first in the order is kept.
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
