//! Documents in the order of their numbers, one chunk after the other.
//!
//! A partition gives its documents numbers of its own, so these lie side by side. One that came out of a split also
//! holds documents with numbers of those it came from, side by side with those of its siblings, which are passed over.

use kv::KeyRange;
use model::{DocumentNumber, Fault, PartitionOrdinal};
use partition::{NumberScan, PartitionView};
use plan::StoredDocument;
use std::collections::VecDeque;
use std::time::Instant;

use crate::found::QueryMetrics;

/// Fewest and most numbers of one chunk.
const CHUNK_ROWS_MIN: usize = 16;
const CHUNK_ROWS_MAX: usize = 512;
/// Bytes of documents after which a chunk ends.
const CHUNK_BYTES: usize = 1 << 20;

/// A walk over the documents of a partition.
#[derive(Debug)]
pub(crate) struct NumberWalk {
    view: PartitionView,
    keys: KeyRange,
    /// What is left: first and last number of each stretch, in order.
    stretches: VecDeque<(DocumentNumber, DocumentNumber)>,
    chunk_rows: usize,
}

impl NumberWalk {
    /// A walk from `first` on over numbers that the partitions `ordinals` gave; `wanted` rows will do.
    pub(crate) fn new(
        view: PartitionView,
        keys: KeyRange,
        ordinals: impl IntoIterator<Item = PartitionOrdinal>,
        first: u64,
        wanted: usize,
    ) -> NumberWalk {
        let mut stretches: Vec<_> = ordinals
            .into_iter()
            .filter_map(|ordinal| {
                let start = DocumentNumber::new(ordinal, 0)?;
                let end = DocumentNumber::new(ordinal, DocumentNumber::COUNTER_MAX)?;
                let start = start.max(DocumentNumber::from_raw(first)?);
                (start <= end).then_some((start, end))
            })
            .collect();
        stretches.sort_unstable();
        let chunk_rows = wanted.saturating_add(1).clamp(CHUNK_ROWS_MIN, CHUNK_ROWS_MAX);
        NumberWalk { view, keys, stretches: stretches.into(), chunk_rows }
    }

    /// Whether there may be documents left.
    pub(crate) fn has_more(&self) -> bool {
        !self.stretches.is_empty()
    }

    /// The number before which nothing is left.
    pub(crate) fn next_number(&self) -> u64 {
        self.stretches.front().map_or(u64::MAX, |(first, _)| first.raw())
    }

    /// The next chunk, which may be empty before the end.
    pub(crate) async fn next(&mut self, metrics: &mut QueryMetrics) -> Result<Vec<StoredDocument>, Fault> {
        let Some((first, last)) = self.stretches.pop_front() else {
            return Ok(Vec::new());
        };
        let begun = Instant::now();
        let scan = NumberScan {
            first,
            last,
            keys: self.keys.clone(),
            items_max: self.chunk_rows,
            bytes_max: CHUNK_BYTES,
        };
        let page = self.view.numbered(&scan).await?;
        let next = page.resume_after.and_then(|seen| DocumentNumber::from_raw(seen.raw() + 1));
        if let Some(next) = next.filter(|next| *next <= last) {
            self.stretches.push_front((next, last));
        }
        self.chunk_rows = (self.chunk_rows * 2).min(CHUNK_ROWS_MAX);
        metrics.count_read(&page.documents, begun.elapsed());
        Ok(page.documents)
    }
}
