//! Client plans: for clients that merge the answers of several ranges, the query for each range and how to combine the
//! rows.
//!
//! The forms are a protocol: clients look for `orderByItems`, `groupByItems` and `payload` in the rows of a rewritten
//! query. Does not know keys and ranges; the caller says whether a query stays inside one logical partition.
//!
//! | file | holds |
//! |---|---|
//! | `order` | rows with their sort values, and a placeholder for the client's filter |
//! | `aggregate` | partial aggregates |
//! | `group` | groups with their keys |
//! | `distinct` | whether equal rows are adjacent |
//! | `count` | TOP, OFFSET and LIMIT, which only the client can apply |
//! | `distinct_count` | the number of distinct rows |
//! | `hybrid` | a query for each score of an order by rank |
//! | `resume` | resuming after a row |
//! | `feature` | the features that a client needs |

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
    /// The query for each range; `None` if the query can be sent unchanged.
    pub(crate) rewritten: Option<Query>,
    /// How duplicates are removed.
    pub(crate) distinct: Distinct,
    pub(crate) top: Option<u64>,
    /// Number of rows to skip.
    pub(crate) offset: Option<u64>,
    /// Maximum number of rows after those.
    pub(crate) limit: Option<u64>,
    /// How rows are merged.
    pub(crate) order: Vec<OrderKey>,
    /// Whether the rows of a range have no useful order: the client must read all of them.
    pub(crate) is_order_unstable: bool,
    /// The group keys as text.
    pub(crate) group_keys: Vec<String>,
    /// The aggregate that is the whole result, if there is one.
    pub(crate) aggregates: Vec<Fold>,
    /// The members of a combined row and how each is combined; `None` keeps the first value.
    pub(crate) columns: Vec<(String, Option<Fold>)>,
    /// Whether a row is a single value instead of an object with named columns.
    pub(crate) selects_value: bool,
    /// Set if the rows are only counted: the name of the count; empty if the count is the whole result.
    pub(crate) distinct_count: Option<String>,
}

/// How duplicates are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Distinct {
    /// They are kept.
    #[default]
    None,
    /// Equal rows are adjacent.
    Ordered,
    /// Equal rows may be anywhere.
    Unordered,
}

/// A key by which a client merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderKey {
    /// The key as text.
    pub(crate) expression: String,
    /// Whether the order is descending.
    pub(crate) descending: bool,
}

/// How partial results are combined.
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

/// The extent of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One logical partition, which is in one range.
    OneKey,
    /// Any number of ranges.
    Ranges,
}

/// A query whose partial results no client can merge.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum Unmergeable {
    /// An aggregate that is a part of a larger expression.
    #[error("Compositions of aggregates and other expressions are not allowed.")]
    Composition,
    /// DISTINCT with GROUP BY.
    #[error("DISTINCT with a GROUP BY clause is only possible within one partition key.")]
    DistinctGroups,
    /// Groups, aggregates or DISTINCT in a subquery over the container.
    #[error(
        "A subquery in the FROM clause that groups, aggregates or is DISTINCT is only possible within one partition key."
    )]
    FoldedSource,
    /// ORDER BY RANK, which has another kind of plan.
    #[error("The scores of an ORDER BY RANK clause must be calls with constant words.")]
    Rank,
    /// A count that clients do not support.
    #[error("{0}")]
    Count(SqlFaults),
}

impl Unmergeable {
    fn count(fault: FaultKind, span: sql::Span) -> Unmergeable {
        Unmergeable::Count(SqlFaults::from(SqlFault { kind: fault, span }))
    }
}

/// The client plan of a query.
///
/// `is_similarity` says for a sort key that is a call of `VectorDistance`, by its position, whether larger is nearer.
pub(crate) fn client_plan(
    query: &Query,
    lowered: &plan::query::Query,
    extent: Extent,
    is_similarity: &dyn Fn(usize) -> bool,
) -> Result<ClientPlan, Unmergeable> {
    let counts = count::counts(query, lowered)?;
    match (rewritten(query, lowered, &counts, extent, is_similarity), extent) {
        (Ok(plan), Extent::OneKey | Extent::Ranges) => Ok(plan),
        // One partition can answer any query.
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
    // One row, whatever the ranges.
    if lowered.sources.is_empty() {
        return Ok(passed(query, counts));
    }
    // Clients keep plans without an order for other keys, so an order is part of the plan even for one key. Rows that
    // are skipped or counted are not: the partition does that.
    let is_ordered = matches!(lowered.order, plan::query::Order::Keys(_));
    let is_counted = query.offset_limit.is_some();
    if extent == Extent::OneKey && !lowered.distinct && (!is_ordered || is_counted) {
        return Ok(passed(query, counts));
    }
    match lowered.order {
        plan::query::Order::Rank(_) => Err(Unmergeable::Rank),
        plan::query::Order::Keys(_) => Ok(order::plan(query, counts, is_similarity)),
        plan::query::Order::None => Ok(plain(query, counts)),
    }
}

/// The rows of one range are the result: the query is sent unchanged.
fn passed(query: &Query, counts: &count::Counts) -> ClientPlan {
    ClientPlan { top: counts.top, selects_value: selects_value(query), ..ClientPlan::default() }
}

/// Neither order nor combination: the rows of the ranges are concatenated.
fn plain(query: &Query, counts: &count::Counts) -> ClientPlan {
    let mut plan = ClientPlan { selects_value: selects_value(query), ..ClientPlan::default() };
    counts.tell(&mut plan);
    let mut text = query.clone();
    // Without a source there is one row, which has no duplicate.
    if query.select.distinct && query.from.is_some() {
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

/// Whether this source combines rows of several documents.
fn folds(source: &Source) -> bool {
    match source {
        Source::Rows(query) | Source::RowElements(query) => {
            query.grouping.is_some()
                || (query.distinct && !selects_documents(query))
                || query.sources.first().is_some_and(folds)
        }
        Source::Container { .. }
        | Source::ContainerElements { .. }
        | Source::Value(_)
        | Source::Elements(_) => false,
    }
}

/// Whether the rows are whole documents, of which no two are equal.
fn selects_documents(query: &plan::query::Query) -> bool {
    let is_document = |source: &Source| matches!(source, Source::Container { path } if path.is_empty());
    matches!(&query.sources[..], [source] if is_document(source))
        && matches!(&query.projection, plan::query::Projection::Row(_))
}

/// The name of the first source, by which rows refer to their document.
fn root_name(query: &Query) -> String {
    let first = query.from.as_ref().and_then(|from| from.sources.first());
    first.and_then(name_of_source).unwrap_or("c").to_owned()
}
