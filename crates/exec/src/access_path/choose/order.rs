//! The choice for rows in the order of sort keys: walking an index in that order or sorting. Either all parts of a page
//! are walked or none, since their rows are merged.

use model::Fault;
use plan::query::{Order, SortKey};
use std::sync::Arc;

use super::super::lookup::{self, Tests};
use super::super::ordered::{OrderKind, OrderedRequest};
use super::super::path::{AccessPath, ChoiceReason, OrderEstimate, Rejected, RejectionCause, Way};
use super::super::walk_bounds::{OrderedMember, WalkBounds};
use super::{FETCH_COST, narrowed, scans_after, with_few_tests};
use crate::program::{Layer, LayerInput, Shape};
use crate::task::OpenPart;

/// Documents per wanted row up to which fetching and sorting is preferred to an ordered walk.
const SORT_INSTEAD: u64 = 4;

/// The result of a choice between an ordered walk and sorting.
pub(crate) enum Ordering<'l> {
    /// All parts are walked in the order of their indexes.
    Walk(Vec<AccessPath<'l>>),
    /// All rows are read and sorted; contains the order that an index has, if any.
    Sort(Option<Rejected<'l>>),
}

/// Chooses between an ordered walk of all parts and sorting, for this number of rows.
pub(crate) async fn in_order<'l>(
    layer: &Layer,
    parts: &[Arc<OpenPart>],
    wanted: u64,
) -> Result<Ordering<'l>, Fault> {
    let mut prospect = OrderEstimate { wanted, candidates: Some(0), total: 0 };
    let mut requests: Vec<Arc<OrderedRequest>> = Vec::with_capacity(parts.len());
    let mut before: Option<&OpenPart> = None;
    let mut dear = Vec::new();
    for open in parts {
        // Parts with the same indexes get the same request.
        let same = requests.last().filter(|_| before.is_some_and(|before| open.has_same_lookups(before)));
        let request = match same {
            Some(request) => Arc::clone(request),
            None => match ordering(layer, open).await? {
                Some((request, rejected)) => {
                    dear.extend(rejected);
                    Arc::new(request)
                }
                None => return Ok(Ordering::Sort(requests.pop().map(not_everywhere))),
            },
        };
        if open.is_explained || !prospect.should_walk() {
            prospect.add(open, &request).await?;
        }
        requests.push(request);
        before = Some(open);
    }
    if prospect.should_walk() {
        let path = |(request, open): (_, &Arc<OpenPart>)| AccessPath {
            scans_after: scans_after(layer, open),
            ..AccessPath::new(Way::Ordered(request), ChoiceReason::InOrder(prospect))
        };
        let mut paths: Vec<AccessPath<'_>> = requests.into_iter().zip(parts).map(path).collect();
        if let Some(first) = paths.first_mut() {
            first.rejected = dear;
        }
        return Ok(Ordering::Walk(paths));
    }
    let rejected =
        |request| Rejected { way: Way::Ordered(request), cause: RejectionCause::FewDocuments(prospect) };
    Ok(Ordering::Sort(requests.pop().map(rejected)))
}

fn not_everywhere<'l>(request: Arc<OrderedRequest>) -> Rejected<'l> {
    Rejected { way: Way::Ordered(request), cause: RejectionCause::NotEverywhere }
}

impl OrderEstimate {
    /// Takes one more part into account.
    async fn add(&mut self, open: &OpenPart, request: &OrderedRequest) -> Result<(), Fault> {
        let Some(index) = open.view.index() else {
            return Ok(());
        };
        let statistics = open.statistics(index).await?;
        self.total = self.total.saturating_add(statistics.total);
        let is_all_met = request.bounds.as_ref().is_some_and(|bounds| bounds.rest.is_none());
        self.candidates = match (&request.within, self.candidates) {
            (_, None) => None,
            (Some(_), Some(_)) if is_all_met => None,
            (Some(within), Some(known)) => {
                let enough = self.wanted.saturating_mul(SORT_INSTEAD).saturating_add(1);
                let most = if open.is_explained { u64::MAX } else { enough.saturating_sub(known) };
                Some(known.saturating_add(statistics.documents(index, &within.lookup, most).await?))
            }
            (None, Some(known)) => Some(known.saturating_add(statistics.total)),
        };
        Ok(())
    }

    /// Whether to walk documents in order instead of reading and sorting all of them.
    fn should_walk(&self) -> bool {
        let enough = self.wanted.saturating_mul(SORT_INSTEAD);
        self.total > self.wanted.saturating_mul(FETCH_COST)
            && self.candidates.is_none_or(|candidates| candidates > enough)
    }
}

/// The request for the documents of a part in the order of the first key; `None` if the index does not have that order.
/// Also returns lookups with tests that the request does not use.
async fn ordering<'l>(
    layer: &Layer,
    open: &OpenPart,
) -> Result<Option<(OrderedRequest, Vec<Rejected<'l>>)>, Fault> {
    let Order::Keys(keys) = &layer.query.order else {
        return Ok(None);
    };
    let (Some(index), Some(first)) = (open.view.index(), keys.first()) else {
        return Ok(None);
    };
    if layer.shape != Shape::Rows || layer.input != LayerInput::Documents {
        return Ok(None);
    }
    let (within, rejected) = match narrowed(layer, open, index, Tests::All) {
        // Boxed: rarely needed.
        Some(within) if within.has_tests => Box::pin(with_few_tests(layer, open, index, within)).await?,
        within => (within, Vec::new()),
    };
    let is_exact = within.as_ref().map_or(layer.query.filter.is_none(), |within| within.is_exact);
    let composite = if keys.len() > 1 { lookup::composite_path(keys, &layer.query, index) } else { None };
    let are_numbers_turned = first.is_backwards();
    let (path, kind, is_backwards, keys) = match composite {
        Some((path, is_backwards)) => (path, OrderKind::Tuples, is_backwards, &keys[..]),
        None => {
            let Some(path) = lookup::sort_path(first, &layer.query, index) else {
                return Ok(None);
            };
            let kind = if keys.len() == 1 { OrderKind::Values } else { OrderKind::FirstValues };
            (path, kind, are_numbers_turned, &keys[..1])
        }
    };
    let member = |key: &SortKey| {
        // Values of one path are never inverted, only walked backwards.
        let is_turned = kind == OrderKind::Tuples && key.is_backwards() != is_backwards;
        Some(OrderedMember { path: lookup::sort_path(key, &layer.query, index)?, is_turned })
    };
    let members: Vec<OrderedMember> = keys.iter().map_while(member).collect();
    let bounds =
        within.as_ref().and_then(|within| WalkBounds::of(&within.lookup, &members, open.is_explained));
    let text = open.is_explained.then(|| {
        let words = |key: &SortKey| {
            let path = lookup::sort_path(key, &layer.query, index);
            let path = path.map_or_else(|| key.expression.to_string(), |path| path.to_string());
            if key.is_backwards() { format!("{path} descending") } else { path }
        };
        keys.iter().map(words).collect::<Vec<_>>().join(", ")
    });
    let keys = keys.iter().map(SortKey::is_backwards).collect();
    let request = OrderedRequest {
        path,
        kind,
        is_backwards,
        are_numbers_turned,
        keys,
        within,
        is_exact,
        bounds,
        has_one_row: layer.has_one_row(),
        text,
    };
    Ok(Some((request, rejected)))
}
