//! How a partition's documents are reached. One file per way; which one is taken never changes a result.
//!
//! | file | the way |
//! |---|---|
//! | `records` | all records as they lie |
//! | `numbers` | in the order of numbers, all or those that an index named; each document is fetched by itself |
//! | `ordered` | in the order of a sort key, as an index has it |
//! | `lookup`, `known`, `spatial`, `computed`, `tested` | what an index can say about a filter, by lookups or value by value |
//! | `shared` | the same for all partitions of a page |
//! | `covered`, `counting` | what an index answers by itself, and of which documents |
//! | `folds`, `values`, `tuples`, `extremes` | such answers: aggregates over everything; groups and different results |

mod computed;
mod counting;
mod covered;
mod extremes;
mod folds;
mod known;
mod lookup;
mod numbers;
mod ordered;
mod records;
mod shared;
mod spatial;
mod tested;
mod tuples;
mod values;

pub(crate) use known::Known;
pub(crate) use numbers::{Named, NumberWalk};
pub(crate) use ordered::{Beginning, Codes, OrderKind, OrderedRequest, OrderedWalk};
pub(crate) use records::RecordWalk;
pub(crate) use shared::{Narrowing, SharedFilter, SharedNeedles};

use eval::{Context, Meter};
use model::Fault;
use partition::index::{IndexReader, Lookup};
use plan::StoredDocument;
use plan::query::{Order, SortKey};
use std::sync::Arc;
use std::time::Instant;

use crate::collect::{Collector, Wish};
use crate::found::QueryMetrics;
use crate::program::{Check, Input, Layer, Shape};
use crate::task::{OpenPart, Task};
use counting::Counting;
use covered::Covered;
use folds::Folding;
use values::Grouping;

/// What fetching a document by its number costs against reading it as records lie.
const FETCH_COST: u64 = 4;
/// Values of a path that are tested whatever else could be done.
const TESTS_CHEAP: u64 = 256;
/// Documents that could be looked at in the time that testing a value takes, and that may be in vain.
const TEST_COST: u64 = 2;
/// Documents that are fetched and sorted rather than walked in order, for each that is wanted.
const SORT_INSTEAD: u64 = 4;

/// Whether results come in the order of numbers, so that reading can end when the page is full.
pub(crate) fn comes_by_number(layer: &Layer) -> bool {
    let is_unordered = layer.shape == Shape::Rows && matches!(layer.query.order, Order::None);
    layer.input == Input::Documents && is_unordered
}

/// All that the index of a view can say about the filter, whatever that costs; in words too.
pub(crate) fn known(layer: &Layer, open: &OpenPart) -> Option<Known> {
    lookup::told_of_filter(&layer.query, open.view.index()?, u64::MAX, &open.meter)
}

/// Whether what the index can say about the filter needs tests of values.
pub(crate) fn has_tests(layer: &Layer, open: Option<&OpenPart>) -> bool {
    let known = |tests_max| {
        let open = open?;
        lookup::told_of_filter(&layer.query, open.view.index()?, tests_max, &open.meter)?.text
    };
    known(0) != known(u64::MAX)
}

impl Narrowing {
    async fn documents(&self, open: &OpenPart, index: &IndexReader) -> Result<Box<Named>, Fault> {
        let documents = open.looked_up(index, &self.lookup).await?;
        let is_answered = self.is_exact && documents.is_exact();
        let check = if is_answered { Check::Nothing } else { Check::Filter };
        Ok(Box::new(Named { documents, check }))
    }
}

/// Nothing if the index cannot narrow the documents. At no path are more than `tests_max` values tested, roughly.
fn narrowed(layer: &Layer, open: &OpenPart, tests_max: u64) -> Option<Narrowing> {
    let index = open.view.index()?;
    let Some(scope) = open.part.scope.lookup() else {
        return open.filter.narrowing(&layer.query, index, tests_max, &open.meter);
    };
    let known = lookup::of_filter(&layer.query, index, tests_max, &open.meter).known;
    let is_exact = known.as_ref().map_or(layer.query.filter.is_none(), |known| known.is_exact);
    let lookup = match known.map(|known| known.lookup) {
        None => scope,
        Some(Lookup::And(mut known)) => {
            known.insert(0, scope);
            Lookup::And(known)
        }
        Some(known) => Lookup::And(vec![scope, known]),
    };
    Some(Narrowing { lookup: Arc::new(lookup), is_exact })
}

/// The documents that the index names without much ado; nothing if all may be meant.
pub(crate) async fn named_cheaply(layer: &Layer, open: &OpenPart) -> Result<Option<Box<Named>>, Fault> {
    let (Some(index), Some(narrowing)) = (open.view.index(), narrowed(layer, open, TESTS_CHEAP)) else {
        return Ok(None);
    };
    let named = narrowing.documents(open, index).await?;
    let is_most = named.documents.count().saturating_mul(2) > index.document_count();
    if is_most && index.test_bound(&narrowing.lookup)? > 0 {
        // The tests said little.
        return match narrowed(layer, open, 0) {
            Some(narrowing) => narrowing.documents(open, index).await.map(Some),
            None => Ok(None),
        };
    }
    Ok(Some(named))
}

/// Whether it is cheaper to look at all records of a partition than to go on document by document. `seen` documents
/// gave `found` rows, `wanted` more are needed, and there are `total` documents of which `seen` are behind us.
pub(crate) fn is_scan_cheaper(layer: &Layer, seen: u64, found: u64, wanted: u64, total: u64) -> bool {
    if layer.query.filter.is_none() && layer.has_one_row() {
        return false;
    }
    let left = total.saturating_sub(seen);
    let needed = wanted.saturating_mul(seen) / found.max(1);
    needed.min(left).saturating_mul(FETCH_COST) > total
}

/// The documents that the index names, where it is cheaper to fetch these than to look at all.
async fn named(layer: &Layer, open: &OpenPart) -> Result<Option<Box<Named>>, Fault> {
    let Some(index) = open.view.index() else {
        return Ok(None);
    };
    let total = match open.part.scope.lookup() {
        None => index.document_count(),
        Some(scope) => index.estimate(&scope).await?,
    };
    let plain = narrowed(layer, open, 0);
    let fetches = match &plain {
        Some(narrowing) => index.estimate(&narrowing.lookup).await?.saturating_mul(FETCH_COST),
        None => u64::MAX,
    };
    if let Some(narrowing) = narrowed(layer, open, total) {
        let tests = index.test_bound(&narrowing.lookup)?;
        if tests > 0 && tests.saturating_mul(TEST_COST) < fetches.min(total) {
            let named = narrowing.documents(open, index).await?;
            let is_cheaper = named.documents.count().saturating_mul(FETCH_COST) < total;
            return Ok(is_cheaper.then_some(named));
        }
    }
    match plain {
        Some(narrowing) if fetches < total => narrowing.documents(open, index).await.map(Some),
        Some(_) | None => Ok(None),
    }
}

/// A way to all documents of a part that the filter may let pass, in any order.
#[derive(Debug)]
pub(crate) enum Walk {
    Records(RecordWalk),
    Numbers(Box<NumberWalk>),
}

impl Walk {
    /// The cheaper of the two ways.
    pub(crate) async fn begin(
        layer: &Layer,
        open: Arc<OpenPart>,
        metrics: &mut QueryMetrics,
    ) -> Result<Walk, Fault> {
        let begun = Instant::now();
        let named = named(layer, &open).await?;
        metrics.index_time += begun.elapsed();
        if let Some(named) = named {
            let walk = NumberWalk::over_named(open, named, 0, usize::MAX);
            return Ok(Walk::Numbers(Box::new(walk)));
        }
        Ok(Walk::Records(RecordWalk::new(open)))
    }

    /// What is left to be found out of the documents.
    pub(crate) fn check(&self) -> Check {
        match self {
            Walk::Records(_) => Check::Filter,
            Walk::Numbers(walk) => walk.check(),
        }
    }

    /// The next chunk; nothing at the end.
    pub(crate) async fn next(
        &mut self,
        meter: &Meter,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<StoredDocument>>, Fault> {
        match self {
            Walk::Records(walk) => walk.next(meter, metrics).await,
            Walk::Numbers(walk) if walk.has_more() => walk.next(metrics).await.map(Some),
            Walk::Numbers(_) => Ok(None),
        }
    }
}

/// What an index is asked for beside the filter by a query that it answers by itself.
pub(crate) fn covered_lookups(layer: &Layer, open: &OpenPart) -> Vec<Lookup> {
    let is_exact = layer.query.filter.is_none() || known(layer, open).is_some_and(|known| known.is_exact);
    let index = open.view.index().filter(|_| is_exact);
    let covered = index.and_then(|index| covered::covered(layer, index));
    covered.map(|covered| covered.lookups()).unwrap_or_default()
}

/// What an index by itself can say of a query, if it answers the filter exactly; in words.
pub(crate) fn covered_text(layer: &Layer, open: &OpenPart) -> Option<String> {
    let covered = covered::covered(layer, open.view.index()?)?;
    let filter = match known(layer, open) {
        Some(known) if known.is_exact => format!(" where {}", known.text.unwrap_or_default()),
        Some(_) => return None,
        None if layer.query.filter.is_some() => return None,
        None => String::new(),
    };
    let is_certain = covered.is_always_cheapest() && !has_tests(layer, Some(open));
    let otherwise = if is_certain { "" } else { ", or documents if that is cheaper" };
    Some(format!("the index alone: {}{filter}{otherwise}", covered.text()))
}

/// What a part has, where an index knows it by itself and no other way is cheaper.
pub(crate) async fn by_index(
    task: &Task,
    context: &Context<'_>,
    open: &OpenPart,
    wish: &Wish,
    metrics: &mut QueryMetrics,
) -> Result<Option<Collector>, Fault> {
    let (Some(layer), Some(index)) = (task.program.layers.first(), open.view.index()) else {
        return Ok(None);
    };
    let Some(covered) = covered::covered(layer, index) else {
        return Ok(None);
    };
    let begun = Instant::now();
    let Some(counting) = Counting::begin(layer, open, &covered).await? else {
        return Ok(None);
    };
    let counting = &counting;
    let mut collector = Collector::new(layer, context, wish.clone());
    let is_known = match &covered {
        Covered::Folds(folds) => {
            Folding { task, layer, context, open, counting }.run(folds, &mut collector, metrics).await?
        }
        Covered::Values(values) => {
            let grouping = Grouping { task, layer, context, open, counting };
            grouping.run(values, &mut collector, metrics).await?
        }
        Covered::Tuples(paths) => {
            let grouping = Grouping { task, layer, context, open, counting };
            grouping.run_tuples(paths, &mut collector, metrics).await?
        }
    };
    metrics.index_time += begun.elapsed();
    Ok(is_known.then_some(collector))
}

/// What to ask the index of a part for to get its documents in the order of the first key; nothing if it cannot.
pub(crate) fn ordering(layer: &Layer, open: &OpenPart) -> Option<OrderedRequest> {
    let Order::Keys(keys) = &layer.query.order else {
        return None;
    };
    if layer.shape != Shape::Rows || layer.input != Input::Documents {
        return None;
    }
    let index = open.view.index()?;
    let narrowing = narrowed(layer, open, TESTS_CHEAP);
    let is_exact = narrowing.as_ref().map_or(layer.query.filter.is_none(), |narrowing| narrowing.is_exact);
    let within = narrowing.map(|narrowing| narrowing.lookup);
    let first = keys.first()?;
    let are_numbers_turned = first.is_backwards();
    let composite = if keys.len() > 1 { lookup::composite_path(keys, &layer.query, index) } else { None };
    let (path, kind, is_backwards, keys, beginning) = match composite {
        Some((path, is_backwards)) => {
            let paths = keys.iter().map_while(|key| {
                let path = lookup::sort_path(key, &layer.query, index)?;
                Some((path, key.is_backwards() != is_backwards))
            });
            let beginning = within.as_deref().and_then(|within| Beginning::of(within, paths));
            (path, OrderKind::Tuples, is_backwards, &keys[..], beginning)
        }
        None => {
            let path = lookup::sort_path(first, &layer.query, index)?;
            let kind = if keys.len() == 1 { OrderKind::Values } else { OrderKind::FirstValues };
            (path, kind, are_numbers_turned, &keys[..1], None)
        }
    };
    let keys = keys.iter().map(SortKey::is_backwards).collect();
    Some(OrderedRequest {
        path,
        kind,
        is_backwards,
        are_numbers_turned,
        keys,
        within,
        is_exact,
        beginning,
        has_one_row: layer.has_one_row(),
    })
}

/// What parts hold that are to be walked in the order of their indexes.
#[derive(Default)]
pub(crate) struct Prospect {
    documents: u64,
    /// Those of them that may be wanted.
    candidates: u64,
}

impl Prospect {
    /// Looks at one more part.
    pub(crate) async fn add(&mut self, open: &OpenPart, request: &OrderedRequest) -> Result<(), Fault> {
        let Some(index) = open.view.index() else {
            return Ok(());
        };
        let total = index.document_count();
        self.documents = self.documents.saturating_add(total);
        let candidates = match &request.within {
            // No other document is met on the way.
            Some(_) if request.beginning.as_ref().is_some_and(|beginning| beginning.is_all) => u64::MAX,
            Some(lookup) => index.estimate(lookup).await?,
            None => total,
        };
        self.candidates = self.candidates.saturating_add(candidates);
        Ok(())
    }

    /// Whether to walk documents in order, if so many are wanted, rather than to look at all of them and sort.
    pub(crate) fn should_walk(&self, wanted: usize) -> bool {
        let wanted = wanted as u64;
        self.documents > wanted.saturating_mul(FETCH_COST)
            && self.candidates > wanted.saturating_mul(SORT_INSTEAD)
    }
}
