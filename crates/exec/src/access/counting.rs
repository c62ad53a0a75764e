//! The documents that count where an index answers by itself: those of the part that pass the filter and have not
//! expired.

use model::{DocumentNumber, Fault};
use partition::index::{Documents, IndexReader, Lookup};

use super::FETCH_COST;
use super::covered::{Covered, Fold};
use super::lookup::of_filter;
use crate::program::Layer;
use crate::task::OpenPart;

/// Values that are walked in the time that it takes to look at a document, at least.
const VALUES_PER_DOCUMENT: u64 = 2;

/// Documents whose values are put side by side in the time that it takes to walk a value.
const TUPLES_PER_VALUE: u64 = 4;

/// See the file's head.
pub(crate) struct Counting<'a> {
    pub(crate) index: &'a IndexReader,
    open: &'a OpenPart,
    /// The part and the filter.
    lookups: Vec<Lookup>,
    expired: Vec<DocumentNumber>,
    /// All that count; nothing where the index has no others.
    pub(crate) within: Option<Documents>,
    /// How many these are.
    pub(crate) count: u64,
}

impl<'a> Counting<'a> {
    /// Nothing where the index does not know them exactly, or where another way is cheaper.
    pub(crate) async fn begin(
        layer: &Layer,
        open: &'a OpenPart,
        covered: &Covered<'_>,
    ) -> Result<Option<Counting<'a>>, Fault> {
        let Some(index) = open.view.index() else {
            return Ok(None);
        };
        let mut lookups: Vec<Lookup> = open.part.scope.lookup().into_iter().collect();
        if layer.query.filter.is_some() {
            match exact_filter(layer, index, open) {
                Some(lookup) => lookups.push(lookup),
                None => return Ok(None),
            }
        }
        if !is_cheapest(index, &lookups, covered).await? {
            return Ok(None);
        }
        let Some(expired) = open.view.expired().await? else {
            return Ok(None);
        };
        let mut counting =
            Counting { index, open, lookups, expired, within: None, count: index.document_count() };
        if !counting.lookups.is_empty() || !counting.expired.is_empty() {
            let Some(within) = counting.documents(None).await? else {
                return Ok(None);
            };
            counting.count = within.count();
            counting.within = Some(within);
        }
        Ok(Some(counting))
    }

    /// Those that a lookup finds too; nothing where the index does not know them exactly.
    pub(crate) async fn documents(&self, lookup: Option<Lookup>) -> Result<Option<Documents>, Fault> {
        let lookups = self.lookups.iter().cloned().chain(lookup).collect();
        let mut documents = self.open.looked_up(self.index, &Lookup::And(lookups)).await?;
        if !documents.is_exact() {
            return Ok(None);
        }
        documents.remove(&self.expired);
        Ok(Some(documents))
    }
}

/// The filter as a lookup that says all of it, without tests of values if that can be.
fn exact_filter(layer: &Layer, index: &IndexReader, open: &OpenPart) -> Option<Lookup> {
    let known = |tests_max| {
        let known = of_filter(&layer.query, index, tests_max, &open.meter).known;
        known.filter(|known| known.is_exact)
    };
    known(0).or_else(|| known(u64::MAX)).map(|known| known.lookup)
}

/// Whether to walk values costs less than to look at documents.
async fn is_cheapest(index: &IndexReader, lookups: &[Lookup], covered: &Covered<'_>) -> Result<bool, Fault> {
    let tests = index.test_bound(&Lookup::And(lookups.to_vec()))?;
    if covered.is_always_cheapest() && tests == 0 {
        return Ok(true);
    }
    let total = index.document_count();
    let candidates = match lookups {
        [] => total,
        _ => index.estimate(&Lookup::And(lookups.to_vec())).await?,
    };
    let cost: u64 = match covered {
        Covered::Values(values) => index.value_bound(&values.path),
        Covered::Tuples(paths) => {
            let values: u64 = paths.iter().map(|values| index.value_bound(&values.path)).sum();
            values.saturating_add(total / TUPLES_PER_VALUE)
        }
        Covered::Folds(folds) => folds.iter().map(|fold| fold_cost(index, fold, total, candidates)).sum(),
    };
    let cost = cost.saturating_add(tests) / VALUES_PER_DOCUMENT;
    Ok(cost <= total.min(candidates.saturating_mul(FETCH_COST)))
}

fn fold_cost(index: &IndexReader, fold: &Fold, total: u64, candidates: u64) -> u64 {
    match fold {
        Fold::All | Fold::Present(_) | Fold::Matching(_) => 0,
        Fold::Sum(path) => index.value_bound(path),
        // So many values are passed over until one of a candidate comes.
        Fold::Extreme(path, _) => index.value_bound(path).min(total / candidates.max(1)),
    }
}
