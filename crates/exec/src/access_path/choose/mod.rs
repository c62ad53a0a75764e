//! All choices between access paths: for rows in the order of numbers, for rows in the order of sort keys, and for all
//! rows of a part.
//!
//! Costs are in units of one document read in a scan of records. A choice depends only on the query, the indexing
//! policy and [`PartStatistics`], never on pieces of the index or on caches: the same documents always give the same path.
//! Documents are counted only as far as the choice needs it, and completely if the choice is explained.

mod cover;
mod order;

pub(crate) use order::{Ordering, in_order};

use cover::cover;
use model::Fault;
use partition::index::{IndexReader, Lookup};
use plan::query::Order;
use std::sync::Arc;

use super::covered;
use super::lookup::{self, Tests};
use super::numbers::LookupDocuments;
use super::path::{AccessPath, ChoiceReason, Estimate, Rejected, RejectionCause, Way};
use super::shared::Narrowing;
use crate::program::{Layer, LayerInput, Program, Shape};
use crate::task::{OpenPart, PartScope};

/// Cost of fetching a document by its number.
pub(crate) const FETCH_COST: u64 = 4;
/// Values of a path that may always be tested for the first rows.
const TESTS_CHEAP: u64 = 256;
/// Cost of testing a value, since the test may be useless.
const TEST_COST: u64 = 2;
/// Documents that are read before the rest may be read by a scan of records.
const SCAN_AFTER: u64 = 2048;

/// What a layer needs from its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The first rows in the order of numbers.
    FirstByNumber,
    /// The first rows in the order of sort keys: this many.
    FirstInOrder(u64),
    /// All rows, in any order.
    All,
}

/// Whether an index may answer alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covering {
    Allowed,
    /// It was tried; the index does not have enough information.
    Failed,
}

/// Whether results come in the order of numbers, so that reading ends when the page is full.
pub(crate) fn comes_by_number(layer: &Layer) -> bool {
    let is_unordered = layer.shape == Shape::Rows && matches!(layer.query.order, Order::None);
    layer.input == LayerInput::Documents && is_unordered
}

/// What a layer of a program needs for a first page of at most `items_max` rows.
pub(crate) fn goal(program: &Program, layer_at: usize, items_max: usize) -> Goal {
    let (Some(layer), 1) = (program.layers.get(layer_at), program.layers.len()) else {
        return Goal::All;
    };
    if comes_by_number(layer) {
        return Goal::FirstByNumber;
    }
    let rows = layer.query.limit.unwrap_or(u64::MAX).min(items_max.max(1) as u64);
    match (&layer.query.order, layer.shape) {
        (Order::Keys(_), Shape::Rows) => Goal::FirstInOrder(rows.saturating_add(layer.query.offset)),
        (Order::Keys(_) | Order::None | Order::Rank(_), _) => Goal::All,
    }
}

/// Chooses one path for each part.
pub(crate) async fn choose<'l>(
    layer: &'l Layer,
    parts: &[Arc<OpenPart>],
    goal: Goal,
) -> Result<Vec<AccessPath<'l>>, Fault> {
    let mut paths = Vec::with_capacity(parts.len());
    let mut order = None;
    match goal {
        Goal::FirstByNumber => {
            for open in parts {
                paths.push(by_number(layer, open).await?);
            }
            return Ok(paths);
        }
        Goal::FirstInOrder(wanted) => match in_order(layer, parts, wanted).await? {
            Ordering::Walk(paths) => return Ok(paths),
            Ordering::Sort(rejected) => order = rejected,
        },
        Goal::All => {}
    }
    for open in parts {
        paths.push(all(layer, open, Covering::Allowed).await?);
    }
    if let (Some(first), Some(order)) = (paths.first_mut(), order) {
        first.rejected.push(order);
    }
    Ok(paths)
}

/// Number of documents after which a path that returns the first rows is reconsidered.
fn scans_after(layer: &Layer, open: &OpenPart) -> Option<u64> {
    let gives_row_each = layer.query.filter.is_none() && layer.has_one_row();
    (open.part.scope == PartScope::Whole && !gives_row_each).then_some(SCAN_AFTER)
}

/// Whether scanning all records costs less than continuing document by document. `seen` of `total` documents have given
/// `found` rows; `wanted` more are needed.
pub(crate) fn is_scan_cheaper(seen: u64, found: u64, wanted: u64, total: u64) -> bool {
    let left = total.saturating_sub(seen);
    let needed = wanted.saturating_mul(seen) / found.max(1);
    needed.min(left).saturating_mul(FETCH_COST) > total
}

/// The path to the rows of a part in the order of numbers.
pub(crate) async fn by_number<'l>(layer: &'l Layer, open: &OpenPart) -> Result<AccessPath<'l>, Fault> {
    let Some(index) = open.view.index() else {
        let way = if open.part.scope == PartScope::Whole { Way::Numbers } else { Way::Records };
        let scans_after = scans_after(layer, open);
        return Ok(AccessPath { scans_after, ..AccessPath::new(way, ChoiceReason::NoIndex) });
    };
    let scans_after = scans_after(layer, open);
    let (narrowing, documents, rejected) = match narrowed(layer, open, index, Tests::All) {
        // Boxed: rarely needed.
        Some(narrowing) if narrowing.has_tests => {
            Box::pin(with_cheap_tests(layer, open, index, narrowing)).await?
        }
        narrowing => (narrowing, None, Vec::new()),
    };
    let Some(narrowing) = narrowing else {
        return Ok(AccessPath { way: Way::Numbers, reason: no_lookup(layer), scans_after, rejected });
    };
    let estimate = match open.is_explained {
        true => Some(Box::pin(estimate(open, index, &narrowing, documents.as_deref())).await?),
        false => None,
    };
    let (way, reason) = (Way::Lookup(narrowing, documents), ChoiceReason::FirstRows(estimate));
    Ok(AccessPath { way, reason, scans_after, rejected })
}

/// Upper bound of the number of documents that a lookup finds, fully counted; exact if they have been found.
async fn estimate(
    open: &OpenPart,
    index: &IndexReader,
    narrowing: &Narrowing,
    documents: Option<&LookupDocuments>,
) -> Result<Estimate, Fault> {
    let statistics = open.statistics(index).await?;
    let found = match documents {
        Some(documents) => statistics.found(&documents.set),
        None => statistics.documents(index, &narrowing.lookup, u64::MAX).await?,
    };
    Ok(Estimate { found, total: statistics.total })
}

fn no_lookup(layer: &Layer) -> ChoiceReason {
    if layer.query.filter.is_none() { ChoiceReason::NoFilter } else { ChoiceReason::NoLookup }
}

/// A lookup, its documents if they are known, and lookups that are not used.
type Narrowed<'l> = (Option<Narrowing>, Option<Box<LookupDocuments>>, Vec<Rejected<'l>>);

/// A lookup with tests if these are few and selective, otherwise one without.
async fn with_cheap_tests<'l>(
    layer: &Layer,
    open: &OpenPart,
    index: &IndexReader,
    narrowing: Narrowing,
) -> Result<Narrowed<'l>, Fault> {
    let (narrowing, mut rejected) = with_few_tests(layer, open, index, narrowing).await?;
    let narrowing = match narrowing {
        Some(narrowing) if narrowing.has_tests => narrowing,
        plain => return Ok((plain, None, rejected)),
    };
    let statistics = open.statistics(index).await?;
    let documents = narrowing.documents(open, index).await?;
    let estimate = Estimate { found: statistics.found(&documents.set), total: statistics.total };
    if estimate.found.saturating_mul(2) <= estimate.total {
        return Ok((Some(narrowing), Some(documents), rejected));
    }
    rejected.push(Rejected { way: Way::Lookup(narrowing, None), cause: RejectionCause::MostPass(estimate) });
    Ok((narrowed(layer, open, index, Tests::None), None, rejected))
}

/// A lookup with only those tests that have few values.
async fn with_few_tests<'l>(
    layer: &Layer,
    open: &OpenPart,
    index: &IndexReader,
    narrowing: Narrowing,
) -> Result<(Option<Narrowing>, Vec<Rejected<'l>>), Fault> {
    let ranges = narrowing.lookup.tested_ranges();
    let statistics = open.statistics(index).await?;
    let mut few = Vec::with_capacity(ranges.len());
    for range in &ranges {
        if statistics.has_few_values(open, index, std::slice::from_ref(range), TESTS_CHEAP).await? {
            few.push(range.clone());
        }
    }
    if few.len() == ranges.len() {
        return Ok((Some(narrowing), Vec::new()));
    }
    let cause = RejectionCause::ManyValues { most: TESTS_CHEAP };
    let rejected = Rejected { way: Way::Lookup(narrowing, None), cause };
    Ok((narrowed(layer, open, index, Tests::Of(&few)), vec![rejected]))
}

/// The lookup for the filter and the scope of a part; `None` if the index cannot narrow its documents.
fn narrowed(layer: &Layer, open: &OpenPart, index: &IndexReader, tests: Tests<'_>) -> Option<Narrowing> {
    let Some(scope) = open.part.scope.lookup() else {
        return open.filter.narrowing(&layer.query, index, tests, open);
    };
    let known = lookup::of_filter(&layer.query, index, tests, open).known;
    let is_exact = known.as_ref().map_or(layer.query.filter.is_none(), |known| known.is_exact);
    let scope_text = open.is_explained.then(|| open.part.scope.text());
    let (known, text) = known.map_or((None, None), |known| (Some(known.lookup), known.text));
    let lookup = match known {
        None => scope,
        Some(Lookup::And(mut known)) => {
            known.insert(0, scope);
            Lookup::And(known)
        }
        Some(known) => Lookup::And(vec![scope, known]),
    };
    let text = scope_text.map(|scope| text.map_or(scope.to_owned(), |text| format!("{scope} and {text}")));
    Some(Narrowing::new(lookup, is_exact, text))
}

/// An exact lookup for the scope and the filter of a part, if possible without tests of values; the inner `None` means
/// all documents. The outer `None` means that the index has no exact lookup.
fn exactly_narrowed(layer: &Layer, open: &OpenPart, index: &IndexReader) -> Option<Option<Narrowing>> {
    let plain = narrowed(layer, open, index, Tests::None);
    if layer.query.filter.is_none() {
        return Some(plain);
    }
    let exact = |narrowing: &Narrowing| narrowing.is_exact;
    plain.filter(exact).or_else(|| narrowed(layer, open, index, Tests::All).filter(exact)).map(Some)
}

/// The path to all rows of a part, in any order.
pub(crate) async fn all<'l>(
    layer: &'l Layer,
    open: &OpenPart,
    covering: Covering,
) -> Result<AccessPath<'l>, Fault> {
    let Some(index) = open.view.index() else {
        return Ok(AccessPath::new(Way::Records, ChoiceReason::NoIndex));
    };
    let mut rejected = Vec::new();
    if covering == Covering::Allowed
        && let Some(covered) = covered::covered(layer, index)
        && let Some(filter) = exactly_narrowed(layer, open, index)
    {
        match cover(open, index, covered, filter).await? {
            Ok(path) => return Ok(path),
            Err(dear) => rejected.push(dear),
        }
    }
    documents(layer, open, index, rejected).await
}

/// The documents of a lookup, or all records, whichever is cheaper.
async fn documents<'l>(
    layer: &Layer,
    open: &OpenPart,
    index: &IndexReader,
    mut rejected: Vec<Rejected<'l>>,
) -> Result<AccessPath<'l>, Fault> {
    let full = narrowed(layer, open, index, Tests::All);
    let Some(full) = full else {
        return Ok(AccessPath { way: Way::Records, reason: no_lookup(layer), rejected, scans_after: None });
    };
    let statistics = open.statistics(index).await?;
    let total = statistics.total;
    let has_tests = full.has_tests;
    let plain = if has_tests { narrowed(layer, open, index, Tests::None) } else { Some(full.clone()) };
    let mut estimate = None;
    if let Some(plain) = &plain {
        // Counted up to a quarter of all documents, which decides the choice.
        let most = if open.is_explained { u64::MAX } else { total / FETCH_COST + 1 };
        let found = statistics.documents(index, &plain.lookup, most).await?;
        estimate = Some(Estimate { found, total });
    }
    if has_tests {
        let otherwise = estimate.map_or(total, |estimate| estimate.cost().min(total));
        let ranges = full.lookup.tested_ranges();
        let most = otherwise.saturating_sub(1) / TEST_COST;
        if otherwise > 0 && statistics.has_few_values(open, index, &ranges, most).await? {
            let documents = full.documents(open, index).await?;
            let tested = Estimate { found: statistics.found(&documents.set), total };
            if tested.cost() < total {
                let reason = ChoiceReason::Fetched(tested);
                return Ok(AccessPath {
                    way: Way::Lookup(full, Some(documents)),
                    reason,
                    rejected,
                    scans_after: None,
                });
            }
            let cause = RejectionCause::ManyDocuments(tested);
            rejected.push(Rejected { way: Way::Lookup(full, None), cause });
        } else {
            rejected
                .push(Rejected { way: Way::Lookup(full, None), cause: RejectionCause::ManyValues { most } });
        }
    }
    Ok(match (plain, estimate) {
        (Some(plain), Some(estimate)) if estimate.cost() < total => AccessPath {
            way: Way::Lookup(plain, None),
            reason: ChoiceReason::Fetched(estimate),
            rejected,
            scans_after: None,
        },
        (Some(plain), Some(estimate)) => {
            let cause = RejectionCause::ManyDocuments(estimate);
            rejected.push(Rejected { way: Way::Lookup(plain, None), cause });
            AccessPath {
                way: Way::Records,
                reason: ChoiceReason::Read(estimate),
                rejected,
                scans_after: None,
            }
        }
        (Some(_) | None, _) => {
            let reason = ChoiceReason::Read(Estimate { found: total, total });
            AccessPath { way: Way::Records, reason, rejected, scans_after: None }
        }
    })
}
