//! Records as they lie, one chunk after the other.

use kv::KeyRange;
use model::Fault;
use partition::{PartitionView, RecordScan, keyspace};
use plan::StoredDocument;
use std::time::Instant;

use crate::found::QueryMetrics;

/// Records of one chunk.
const CHUNK_ROWS: usize = 1024;
/// Bytes after which a chunk ends.
const CHUNK_BYTES: usize = 1 << 20;

/// A walk over the records of a range of keys.
#[derive(Debug)]
pub(crate) struct RecordWalk {
    view: PartitionView,
    /// What is left.
    range: Option<KeyRange>,
}

impl RecordWalk {
    pub(crate) fn new(view: PartitionView, range: KeyRange) -> RecordWalk {
        RecordWalk { view, range: Some(range) }
    }

    /// The next chunk; nothing at the end.
    pub(crate) async fn next(
        &mut self,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<StoredDocument>>, Fault> {
        let Some(range) = self.range.take() else {
            return Ok(None);
        };
        let begun = Instant::now();
        let scan = RecordScan { range, items_max: CHUNK_ROWS, bytes_max: CHUNK_BYTES };
        let page = self.view.page(&scan).await?;
        self.range = page.resume_after.map(|last| keyspace::after(&scan.range, &last));
        metrics.count_read(&page.documents, begun.elapsed());
        Ok(Some(page.documents))
    }
}
