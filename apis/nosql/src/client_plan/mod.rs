//! What a client that joins the answers of several ranges must know: a query for each range, and what to do with the
//! rows that come back.
//!
//! The forms are a protocol: clients look for `orderByItems`, `groupByItems` and `payload` in the rows of a rewritten
//! query. Knows nothing of keys and ranges; whether a query stays inside one logical partition is told by the caller.
//!
//! | file | holds |
//! |---|---|
//! | `order` | rows with their sort values, and a place for the client's filter |
//! | `aggregate` | partial aggregates |
//! | `group` | groups with their keys |
//! | `distinct` | whether equal rows come one behind the other |
//! | `count` | TOP, OFFSET and LIMIT, which only the client can count |
//! | `distinct_count` | the number of distinct rows |
//! | `hybrid` | a query for each score of an order by rank |
//! | `resume` | going on behind a row |
//! | `feature` | what a client must be able to do |

mod aggregate;
mod count;
mod distinct;
mod distinct_count;
mod feature;
mod group;
mod hybrid;
mod literal;
mod order;
mod resume;
#[cfg(test)]
mod tests;

pub(crate) use hybrid::{HybridPlan, hybrid_plan};
pub(crate) use resume::{ResumePoint, resumed};

use plan::query::Source;
use sql::ast::Query;
use sql::name_of_source;
use sql::{FaultKind, SqlFault, SqlFaults};
use thiserror::Error;

/// What a client does with the rows of all ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClientPlan {
    /// The query for each range; nothing if the query can be sent as it is.
    pub(crate) rewritten: Option<Query>,
    /// How equal rows become one.
    pub(crate) distinct: Distinct,
    /// Most rows.
    pub(crate) top: Option<u64>,
    /// Rows that are left out at the beginning.
    pub(crate) offset: Option<u64>,
    /// Most rows behind those.
    pub(crate) limit: Option<u64>,
    /// How rows are merged.
    pub(crate) order: Vec<OrderKey>,
    /// Whether rows of a range come in no useful order: the client must read all of them.
    pub(crate) is_order_unstable: bool,
    /// What rows are grouped by, as text.
    pub(crate) group_keys: Vec<String>,
    /// The aggregate that is the whole result, if it is one.
    pub(crate) aggregates: Vec<Fold>,
    /// The members of a folded row and how each is folded; nothing keeps the first.
    pub(crate) columns: Vec<(String, Option<Fold>)>,
    /// Whether a row is a value and no object of named columns.
    pub(crate) selects_value: bool,
    /// Whether the rows are only counted, and the name of the count; empty if the count is the whole result.
    pub(crate) distinct_count: Option<String>,
}

/// How equal rows become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Distinct {
    /// They stay.
    #[default]
    None,
    /// They come one behind the other.
    Ordered,
    /// They may be anywhere.
    Unordered,
}

/// A key by which a client merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderKey {
    /// The key as text.
    pub(crate) expression: String,
    /// Whether the largest comes first.
    pub(crate) descending: bool,
}

/// How partial results become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named after what they compute
pub(crate) enum Fold {
    Average,
    Count,
    CountIf,
    MakeList,
    MakeSet,
    Max,
    Min,
    Sum,
}

impl Fold {
    /// The name that clients know.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fold::Average => "Average",
            Fold::Count => "Count",
            Fold::CountIf => "CountIf",
            Fold::MakeList => "MakeList",
            Fold::MakeSet => "MakeSet",
            Fold::Max => "Max",
            Fold::Min => "Min",
            Fold::Sum => "Sum",
        }
    }
}

/// How far a query reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One logical partition, which lives in one range.
    OneKey,
    /// Any number of ranges.
    Ranges,
}

/// A query whose partial results no client can join.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum Unmergeable {
    /// An aggregate that is a part of a larger expression.
    #[error("Compositions of aggregates and other expressions are not allowed.")]
    Composition,
    /// Groups of which equal ones are given once.
    #[error("DISTINCT with a GROUP BY clause is only possible within one partition key.")]
    DistinctGroups,
    /// Groups, aggregates or distinct rows in a subquery over the container.
    #[error(
        "A subquery in the FROM clause that groups, aggregates or is DISTINCT is only possible within one partition key."
    )]
    FoldedSource,
    /// Ranks, which have a plan of another kind.
    #[error("The scores of an ORDER BY RANK clause must be calls with constant words.")]
    Rank,
    /// A count that clients cannot hold.
    #[error("{0}")]
    Count(SqlFaults),
}

impl Unmergeable {
    fn count(fault: FaultKind, place: sql::Place) -> Unmergeable {
        Unmergeable::Count(SqlFaults::from(SqlFault { kind: fault, place }))
    }
}

/// What a client must know of a query and its plan.
///
/// `is_similarity` tells for a sort key that is a call of `VectorDistance`, by its position, whether larger is nearer.
pub(crate) fn client_plan(
    query: &Query,
    lowered: &plan::query::Query,
    extent: Extent,
    is_similarity: &dyn Fn(usize) -> bool,
) -> Result<ClientPlan, Unmergeable> {
    let counts = count::counts(query, lowered)?;
    match (rewritten(query, lowered, &counts, extent, is_similarity), extent) {
        (Ok(plan), Extent::OneKey | Extent::Ranges) => Ok(plan),
        // One partition can answer whatever it is.
        (Err(_), Extent::OneKey) => Ok(passed(query, &counts)),
        (Err(fault), Extent::Ranges) => Err(fault),
    }
}

fn rewritten(
    query: &Query,
    lowered: &plan::query::Query,
    counts: &count::Counts,
    extent: Extent,
    is_similarity: &dyn Fn(usize) -> bool,
) -> Result<ClientPlan, Unmergeable> {
    if let Some(plan) = distinct_count::plan(query, counts) {
        return Ok(plan);
    }
    if lowered.sources.first().is_some_and(folds) {
        return Err(Unmergeable::FoldedSource);
    }
    if lowered.grouping.is_some() {
        return group::plan(query, counts);
    }
    if extent == Extent::OneKey && !lowered.distinct {
        return Ok(passed(query, counts));
    }
    match lowered.order {
        plan::query::Order::Rank(_) => Err(Unmergeable::Rank),
        plan::query::Order::Keys(_) => Ok(order::plan(query, counts, is_similarity)),
        plan::query::Order::None => Ok(plain(query, counts)),
    }
}

/// The rows of one range are the result: the query is sent as it is.
fn passed(query: &Query, counts: &count::Counts) -> ClientPlan {
    ClientPlan { top: counts.top, selects_value: selects_value(query), ..ClientPlan::default() }
}

/// Neither order nor folding: rows of one range behind those of another.
fn plain(query: &Query, counts: &count::Counts) -> ClientPlan {
    let mut plan = ClientPlan { selects_value: selects_value(query), ..ClientPlan::default() };
    counts.tell(&mut plan);
    let mut text = query.clone();
    if query.select.distinct {
        plan.distinct = Distinct::Unordered;
        count::take_out(&mut text);
    } else {
        counts.widen(&mut text);
    }
    plan.rewritten = (text != *query).then_some(text);
    plan
}

fn selects_value(query: &Query) -> bool {
    match query.select.list {
        sql::ast::SelectList::Value(_) => true,
        sql::ast::SelectList::Star(_) | sql::ast::SelectList::Items(_) => false,
    }
}

/// Whether rows of several documents become one row of this source.
fn folds(source: &Source) -> bool {
    match source {
        Source::Rows(query) | Source::RowElements(query) => {
            query.grouping.is_some() || query.distinct || query.sources.first().is_some_and(folds)
        }
        Source::Container { .. }
        | Source::ContainerElements { .. }
        | Source::Value(_)
        | Source::Elements(_) => false,
    }
}

/// The name of the first source, by which rows refer to their document.
fn root_name(query: &Query) -> String {
    let first = query.from.as_ref().and_then(|from| from.sources.first());
    first.and_then(name_of_source).unwrap_or("c").to_owned()
}
