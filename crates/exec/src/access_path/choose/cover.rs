//! The choice for queries that an index may answer alone: walking its values or reading documents.

use model::Fault;
use partition::index::{IndexPath, IndexReader, ValueRange};

use super::super::covered::{Covered, IndexFold};
use super::super::path::{AccessPath, ChoiceReason, Rejected, RejectionCause, Way};
use super::super::shared::Narrowing;
use super::super::statistics::PartStatistics;
use super::FETCH_COST;
use crate::task::{OpenPart, PartScope};

/// Documents whose tuples are built for the cost of walking one value.
const TUPLES_PER_VALUE: u64 = 4;
/// Values that are walked for the cost of reading one document.
const VALUES_PER_DOCUMENT: u64 = 2;

/// Index only, if walking its values costs less than reading documents.
pub(super) async fn cover<'l>(
    open: &OpenPart,
    index: &IndexReader,
    covered: Covered<'l>,
    filter: Option<Narrowing>,
) -> Result<Result<AccessPath<'l>, Rejected<'l>>, Fault> {
    let has_tests = filter.as_ref().is_some_and(|filter| filter.has_tests);
    if covered.is_always_cheapest() && !has_tests {
        let reason = ChoiceReason::Walked { cost: None, otherwise: 0 };
        return Ok(Ok(AccessPath::new(Way::Covered(covered, filter), reason)));
    }
    let statistics = open.statistics(index).await?;
    let total = statistics.total;
    let candidates = match &filter {
        None => total,
        Some(filter) => {
            // Counted up to a quarter of all documents, which decides the choice.
            statistics.documents(index, &filter.lookup, total / FETCH_COST + 1).await?
        }
    };
    let otherwise = total.min(candidates.saturating_mul(FETCH_COST));
    let tests = filter.as_ref().map(|filter| filter.lookup.tested_ranges()).unwrap_or_default();
    let walk = ValueWalk { covered: &covered, tests, total, candidates };
    // Nothing is counted if the upper bound decides already. It is about all keys, so a scope is always counted. It
    // does not know whether the values are whole.
    let is_whole = open.part.scope == PartScope::Whole;
    let mut cost = if is_whole { walk.cost_at_most(index) } else { u64::MAX };
    if open.is_explained || cost > otherwise || walk.is_truncated(index, statistics).await? {
        cost = walk.cost(open, index, statistics, otherwise).await?;
    }
    let way = Way::Covered(covered, filter);
    if cost <= otherwise {
        let reason = ChoiceReason::Walked { cost: Some(cost), otherwise };
        return Ok(Ok(AccessPath::new(way, reason)));
    }
    Ok(Err(Rejected { way, cause: RejectionCause::ManyToWalk { cost, otherwise } }))
}

/// The values that an index walks to answer alone.
struct ValueWalk<'c, 'l> {
    covered: &'c Covered<'l>,
    /// Values that the filter tests.
    tests: Vec<ValueRange>,
    total: u64,
    candidates: u64,
}

impl ValueWalk<'_, '_> {
    /// Upper bound of the cost of the walk that is known without counting.
    fn cost_at_most(&self, index: &IndexReader) -> u64 {
        let values = |path: &IndexPath| index.value_bound(&[ValueRange::whole(path.clone())]);
        let walked: u64 =
            self.walked().into_iter().map(|(path, most)| values(path).min(most)).fold(0, u64::saturating_add);
        self.whole(walked.saturating_add(index.value_bound(&self.tests)))
    }

    /// The cost of the walk; some larger number than `most` if it exceeds that.
    async fn cost(
        &self,
        open: &OpenPart,
        index: &IndexReader,
        statistics: &PartStatistics,
        most: u64,
    ) -> Result<u64, Fault> {
        let values_max = most.saturating_add(1).saturating_mul(VALUES_PER_DOCUMENT);
        let mut walked = statistics.values(open, index, &self.tests, values_max).await?;
        for (path, most) in self.walked() {
            let range = ValueRange::whole(path.clone());
            let values = statistics.values(open, index, &[range], values_max.min(most)).await?;
            walked = walked.saturating_add(values);
        }
        Ok(self.whole(walked))
    }

    /// Whether most of the values are truncated, so that walking them leads to their documents anyway.
    async fn is_truncated(&self, index: &IndexReader, statistics: &PartStatistics) -> Result<bool, Fault> {
        if statistics.are_truncated(index, &self.tests).await? {
            return Ok(true);
        }
        for (path, most) in self.walked() {
            let range = ValueRange::whole(path.clone());
            if most == u64::MAX && statistics.are_truncated(index, &[range]).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The paths whose values are walked, each with the maximum number of values.
    fn walked(&self) -> Vec<(&IndexPath, u64)> {
        match self.covered {
            Covered::Values(values) => vec![(&values.path, u64::MAX)],
            Covered::Tuples(paths) => paths.iter().map(|values| (&values.path, u64::MAX)).collect(),
            Covered::Folds(folds) => {
                let walked = folds.iter().filter_map(|fold| match fold {
                    IndexFold::All | IndexFold::Present(_) | IndexFold::Matching(_) => None,
                    IndexFold::Sum(path) => Some((path, u64::MAX)),
                    // Number of values to skip until one belongs to a candidate.
                    IndexFold::Extreme(path, _) => Some((path, self.total / self.candidates.max(1))),
                });
                walked.collect()
            }
        }
    }

    fn whole(&self, values: u64) -> u64 {
        let turned = match self.covered {
            Covered::Tuples(_) => self.total / TUPLES_PER_VALUE,
            Covered::Values(_) | Covered::Folds(_) => 0,
        };
        values.saturating_add(turned) / VALUES_PER_DOCUMENT
    }
}
