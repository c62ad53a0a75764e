//! What the writer does for consumers of the log: knows how far each has read, and drops what all have.

use super::{BATCH_BYTES_MAX, Writer};
use crate::keyspace::{self, LOG, META};
use crate::log::LogEntry;
use crate::storage::read_fault;
use bytes::Bytes;
use kv::{Batch, Direction, ScanLimit};
use model::{Fault, Lsn};

/// Log rows that one trim looks at.
const TRIM_ROWS_MAX: usize = 4096;

impl Writer {
    /// A consumer has read up to a position.
    pub(super) async fn set_consumer(&mut self, name: String, lsn: Lsn) -> Result<(), Fault> {
        self.wake().await?;
        let mut batch = Batch::default();
        batch.put(META, keyspace::consumer_key(self.id, &name), Bytes::copy_from_slice(&lsn.0.to_be_bytes()));
        self.commit_alone(batch).await?;
        self.consumers.insert(name, lsn);
        Ok(())
    }

    /// Drops log entries of deletions that nobody needs any more, a bounded number; tells whether there are more.
    pub(super) async fn trim(&mut self) -> Result<bool, Fault> {
        self.wake().await?;
        let view = self.store.view().map_err(read_fault)?;
        // Without an index there may still be one on disk that needs the log.
        let Some(keeper) = &self.index else { return Ok(false) };
        let built = self.build.as_ref().map(|build| build.lsn);
        let built = built.into_iter().chain(self.built.as_ref().map(|keeper| keeper.lsn));
        let needed = keeper.lsn_needed().into_iter().chain(built).min().unwrap_or(self.state.head.lsn);
        let end = self.lsn_consumed().min(needed).min(self.state.head.lsn).next();
        let range = keyspace::log_range(self.id, self.state.head.trimmed, end);
        let limit = ScanLimit { rows: TRIM_ROWS_MAX, bytes: BATCH_BYTES_MAX };
        let chunk = view.scan(LOG, range, Direction::Forward, limit).await.map_err(read_fault)?;
        let mut batch = Batch::default();
        for (key, row) in &chunk.rows {
            if LogEntry::decode(row)?.is_removal() {
                batch.delete(LOG, key.clone());
            }
        }
        let last = chunk.rows.last().and_then(|(key, _)| keyspace::parse_log_key(key));
        self.state.head.trimmed = if chunk.more { last.unwrap_or(end) } else { end };
        if !batch.is_empty() {
            batch.mark_shrinking();
            batch.put(META, keyspace::head_key(self.id), self.state.head.encode());
            self.commit_alone(batch).await?;
        }
        Ok(chunk.more)
    }

    /// Log entries at or below are read by every consumer; without any, all are.
    pub(super) fn lsn_consumed(&self) -> Lsn {
        self.consumers.values().min().copied().unwrap_or(Lsn(u64::MAX - 1))
    }
}
