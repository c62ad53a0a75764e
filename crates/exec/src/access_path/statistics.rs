//! Numbers of a part's documents that the choice of an access path depends on.
//!
//! Only documents in the scope of the part that a query can see are counted: no dead ones, and no expired ones that wait
//! to be swept. How the index is divided into pieces does not matter. So the same documents always give the same choice.
//!
//! A caller may be restricted to one partition key, and the documents read, the charge and the explanation show which
//! path was chosen. So documents of other keys must not decide: what is counted is counted within the scope, and values,
//! which are walked for all keys, are walked only if the scope has a good part of the partition's documents.

use model::{DocumentNumber, Fault};
use partition::index::{Documents, IndexReader, Lookup, ValueRange};

use crate::task::{OpenPart, yield_if_due};

/// Steps that counting one value takes.
const VALUE_STEPS: u64 = 2;
/// Values that are counted to see how many documents a value has.
const SAMPLE_VALUES: u64 = 256;
/// There are too many values without counting them all if the sample suggests this many times the limit.
const SAMPLE_MARGIN: u64 = 4;
/// A scope with less than this part of the partition's documents is small.
const SMALL_SCOPE_PART: u64 = 2;

/// Statistics of one part, for one page.
#[derive(Debug)]
pub(crate) struct PartStatistics {
    /// Documents in the scope of the part.
    pub(crate) total: u64,
    /// These documents; `None` if they are all in the index.
    live: Option<Documents>,
    /// Documents in the index that have expired; `None` if they are not known and count.
    pub(crate) expired: Option<Vec<DocumentNumber>>,
    /// Whether most documents of the partition are outside the scope, so that values are not walked.
    is_small_scope: bool,
}

impl PartStatistics {
    pub(crate) async fn new(open: &OpenPart, index: &IndexReader) -> Result<PartStatistics, Fault> {
        let expired = open.view.expired().await?;
        let scope = open.part.scope.lookup();
        let is_restricted = scope.is_some();
        let has_expired = expired.as_ref().is_some_and(|expired| !expired.is_empty());
        let live = if is_restricted || has_expired {
            let mut live = index.documents(&scope.unwrap_or(Lookup::All)).await?;
            live.remove(expired.as_deref().unwrap_or_default());
            Some(live)
        } else {
            None
        };
        let total = live.as_ref().map_or_else(|| index.document_count(), Documents::count);
        let is_small_scope = is_restricted && total.saturating_mul(SMALL_SCOPE_PART) < index.document_count();
        Ok(PartStatistics { total, live, expired, is_small_scope })
    }

    /// Upper bound of the documents in the scope that a lookup finds, at most `max`.
    pub(crate) async fn documents(
        &self,
        index: &IndexReader,
        lookup: &Lookup,
        max: u64,
    ) -> Result<u64, Fault> {
        index.count_bound(lookup, self.live.as_ref(), max).await
    }

    /// The number of documents in the scope that a lookup has found.
    pub(crate) fn found(&self, documents: &Documents) -> u64 {
        self.live.as_ref().map_or_else(|| documents.count(), |live| documents.count_in(live))
    }

    /// The number of distinct values in some ranges, at most `max`. It is `max` for a small scope, if the first values
    /// suggest that there are far more, or if most of them are truncated.
    pub(crate) async fn values(
        &self,
        open: &OpenPart,
        index: &IndexReader,
        ranges: &[ValueRange],
        max: u64,
    ) -> Result<u64, Fault> {
        if ranges.is_empty() {
            return Ok(0);
        }
        if self.is_small_scope {
            return Ok(max);
        }
        let live = self.live.as_ref();
        let sample = index.value_sample(ranges, live, max.min(SAMPLE_VALUES + 1)).await?;
        if sample.values <= SAMPLE_VALUES {
            return Ok(sample.values);
        }
        // Walking values that the index does not know whole leads to their documents anyway.
        if sample.is_truncated() {
            return Ok(max);
        }
        let expected = self.total.saturating_mul(sample.values) / sample.documents.max(1);
        if expected > max.saturating_mul(SAMPLE_MARGIN) {
            return Ok(max);
        }
        open.meter.expect(index.value_bound(ranges).min(max).saturating_mul(VALUE_STEPS));
        yield_if_due(&open.meter).await?;
        index.value_count(ranges, live, max).await
    }

    /// Whether there are many values in some ranges, and most of the first ones are truncated.
    pub(crate) async fn are_truncated(
        &self,
        index: &IndexReader,
        ranges: &[ValueRange],
    ) -> Result<bool, Fault> {
        if index.value_bound(ranges) <= SAMPLE_VALUES {
            return Ok(false);
        }
        let sample = index.value_sample(ranges, self.live.as_ref(), SAMPLE_VALUES + 1).await?;
        Ok(sample.values > SAMPLE_VALUES && sample.is_truncated())
    }

    /// Whether there are at most `max` distinct values in some ranges. Never for a small scope.
    pub(crate) async fn has_few_values(
        &self,
        open: &OpenPart,
        index: &IndexReader,
        ranges: &[ValueRange],
        max: u64,
    ) -> Result<bool, Fault> {
        // What is certain without counting is not counted.
        if !self.is_small_scope && index.value_bound(ranges) <= max {
            return Ok(true);
        }
        let most = max.saturating_add(1);
        Ok(self.values(open, index, ranges, most).await? < most)
    }
}
