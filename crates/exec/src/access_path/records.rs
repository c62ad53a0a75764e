//! A scan of records in chunks; the next chunk is read while the current one is evaluated.

use eval::Meter;
use kv::KeyRange;
use model::Fault;
use partition::{RecordPage, RecordScan, keyspace};
use plan::StoredDocument;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

use crate::found::QueryMetrics;
use crate::task::OpenPart;

/// Records of one chunk.
const CHUNK_ROWS: usize = 1024;
/// Bytes after which a chunk ends.
const CHUNK_BYTES: usize = 1 << 20;

/// A walk over the records of a range of keys.
#[derive(Debug)]
pub(crate) struct RecordWalk {
    open: Arc<OpenPart>,
    /// What remains, including the chunk that is being read.
    range: Option<KeyRange>,
    /// The chunk that is being read ahead, at most one; dropped with the walk.
    ahead: JoinSet<Result<RecordPage, Fault>>,
}

impl RecordWalk {
    pub(crate) fn new(open: Arc<OpenPart>) -> RecordWalk {
        RecordWalk { range: Some(open.part.keys.clone()), open, ahead: JoinSet::new() }
    }

    /// The next chunk; `None` at the end. A page that may still end on the thread that started it does not read ahead.
    pub(crate) async fn next(
        &mut self,
        meter: &Meter,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<StoredDocument>>, Fault> {
        let Some(range) = self.range.take() else {
            return Ok(None);
        };
        let begun = Instant::now();
        let page = match self.ahead.join_next().await {
            Some(page) => page.map_err(|error| Fault::Internal(error.to_string()))??,
            None => self.open.view.page(&chunk(range.clone())).await?,
        };
        if let Some(last) = &page.resume_after {
            let rest = keyspace::after(&range, last);
            if !meter.is_inline() {
                let (open, scan) = (Arc::clone(&self.open), chunk(rest.clone()));
                self.ahead.spawn(async move { open.view.page(&scan).await });
            }
            self.range = Some(rest);
        }
        metrics.count_read(&self.open, &page.documents, begun.elapsed());
        Ok(Some(page.documents))
    }
}

fn chunk(range: KeyRange) -> RecordScan {
    RecordScan { range, items_max: CHUNK_ROWS, bytes_max: CHUNK_BYTES }
}
