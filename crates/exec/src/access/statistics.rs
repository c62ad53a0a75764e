//! Statistics of the documents of a part, from which an access path is chosen.
//!
//! All numbers are about documents that a query can see: dead and expired documents do not count, and the pieces of the
//! index do not matter. So the same documents always give the same choice.

use model::{DocumentNumber, Fault};
use partition::index::{Documents, IndexReader, Lookup, ValueRange};

use crate::task::{OpenPart, rest_if_due};

/// Steps for each value that is visited to be counted.
const VALUE_STEPS: u64 = 2;

/// Statistics of one part, for one page.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// Documents of the partition.
    pub(crate) total: u64,
    /// These documents; `None` if the index has no others.
    live: Option<Documents>,
    /// Expired documents in the index; `None` if they are not known, and count.
    pub(crate) expired: Option<Vec<DocumentNumber>>,
}

impl Statistics {
    pub(crate) async fn new(open: &OpenPart, index: &IndexReader) -> Result<Statistics, Fault> {
        let expired = open.view.expired().await?;
        let live = match &expired {
            Some(expired) if !expired.is_empty() => {
                let mut live = index.documents(&Lookup::All).await?;
                live.remove(expired);
                Some(live)
            }
            Some(_) | None => None,
        };
        let total = live.as_ref().map_or_else(|| index.document_count(), Documents::count);
        Ok(Statistics { total, live, expired })
    }

    /// An upper bound of the number of documents that a lookup finds, at most `max`.
    pub(crate) async fn documents(
        &self,
        index: &IndexReader,
        lookup: &Lookup,
        max: u64,
    ) -> Result<u64, Fault> {
        index.count_bound(lookup, self.live.as_ref(), max).await
    }

    /// The number of documents that a lookup has found.
    pub(crate) fn found(&self, documents: &Documents) -> u64 {
        self.live.as_ref().map_or_else(|| documents.count(), |live| documents.count_in(live))
    }

    /// The number of distinct values in some ranges, at most `max`.
    pub(crate) async fn values(
        &self,
        open: &OpenPart,
        index: &IndexReader,
        ranges: &[ValueRange],
        max: u64,
    ) -> Result<u64, Fault> {
        open.meter.expect(index.value_bound(ranges).min(max).saturating_mul(VALUE_STEPS));
        rest_if_due(&open.meter).await?;
        index.value_count(ranges, self.live.as_ref(), max).await
    }

    /// Whether there are at most `max` distinct values in some ranges.
    pub(crate) async fn has_few_values(
        &self,
        open: &OpenPart,
        index: &IndexReader,
        ranges: &[ValueRange],
        max: u64,
    ) -> Result<bool, Fault> {
        // Nothing is counted if the upper bound decides already.
        if index.value_bound(ranges) <= max {
            return Ok(true);
        }
        Ok(self.values(open, index, ranges, max.saturating_add(1)).await? <= max)
    }
}
