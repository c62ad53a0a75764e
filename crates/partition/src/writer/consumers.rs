//! The writer's work for consumers of the log: their positions, and trimming of what all have read.

use super::{BATCH_BYTES_MAX, Writer};
use crate::keyspace::{self, HISTORY, LOG, META, NUMBERS, PartitionId, RECORDS};
use crate::lineage::LineageEntry;
use crate::log::{LogEntry, LogPosition};
use crate::overlay::RowsView;
use crate::record::Record;
use crate::storage::{commit_fault, read_fault};
use bytes::Bytes;
use kv::{Batch, ScanLimit, View};
use model::{Fault, Lsn};

/// Log rows per trim.
const TRIM_ROWS_MAX: usize = 4096;

impl Writer {
    /// Saves that a consumer has read up to a position.
    pub(super) async fn set_consumer(&mut self, name: String, lsn: Lsn) -> Result<(), Fault> {
        self.ensure_view().await?;
        let mut batch = Batch::default();
        let mut head = None;
        // From now on replaced versions keep their entries for this consumer, so the log must be trimmed again.
        let first = LogPosition::start_of(lsn.next());
        if first < self.state.head.trimmed {
            self.state.head.trimmed = first;
            head = Some(self.state.head.clone());
        }
        batch.put(META, keyspace::consumer_key(self.id, &name), Bytes::copy_from_slice(&lsn.0.to_be_bytes()));
        self.commit_alone(batch, head).await.map_err(commit_fault)?;
        self.consumers.insert(name, lsn);
        Ok(())
    }

    /// Saves the progress of rewriting the expiry rows.
    pub(super) async fn save_checkpoint(&mut self, row: Bytes) -> Result<(), Fault> {
        self.ensure_view().await?;
        let mut batch = Batch::default();
        batch.put(META, keyspace::reschedule_key(self.id), row);
        self.commit_alone(batch, None).await.map_err(commit_fault)
    }

    /// Deletes log entries of deletions and of replaced versions that are not needed any more. Reads a bounded number
    /// of entries and returns whether there are more.
    pub(super) async fn trim(&mut self) -> Result<bool, Fault> {
        self.ensure_view().await?;
        // A failed index build is retried also if nothing is written.
        self.check_policy();
        let view = self.store.view().await.map_err(read_fault)?;
        let more_history = self.trim_history(&view).await?;
        // If no index is open, there may be one on disk that needs the log.
        let Some(needed) = self.index.log_needed(self.state.head.lsn) else { return Ok(more_history) };
        let end = self.lsn_consumed().min(needed).min(self.state.head.lsn).next();
        let limit = ScanLimit { rows: TRIM_ROWS_MAX, bytes: BATCH_BYTES_MAX };
        let rows = RowsView::from(view.clone());
        let chunk = self.lineage.log(&rows, None, self.state.head.trimmed, end, limit).await?;
        let mut batch = Batch::default();
        for key in unneeded(self.id, !self.consumers.is_empty(), &view, &chunk.entries).await? {
            batch.delete(LOG, key);
        }
        self.state.head.trimmed = chunk.reached.unwrap_or(LogPosition::start_of(end));
        if !batch.is_empty() {
            batch.mark_shrinking();
            let head = self.state.head.clone();
            self.commit_alone(batch, Some(head)).await.map_err(commit_fault)?;
        }
        Ok(chunk.reached.is_some() || more_history)
    }

    /// Deletes a bounded number of history entries that are older than the retention. Returns whether there may be
    /// more.
    async fn trim_history(&mut self, view: &View) -> Result<bool, Fault> {
        let retention = self.shape.load().history_seconds;
        let now = self.clock.now();
        let head = &self.state.head;
        // Without a retention everything is deleted: history before a gap is useless.
        let end = LogPosition::start_of(head.lsn.next());
        let limit = ScanLimit { rows: TRIM_ROWS_MAX, bytes: BATCH_BYTES_MAX };
        let rows = RowsView::from(view.clone());
        // What siblings have before this position was read by an earlier call and is not this partition's to trim.
        let first = head.history_trimmed.max(self.history_searched);
        let chunk = self.lineage.history(&rows, first, end.lsn, limit).await?;
        if let Some(reached) = chunk.reached.filter(|_| chunk.entries.is_empty()) {
            self.history_searched = reached.next();
            return Ok(true);
        }
        let mut batch = Batch::default();
        // Only what was deleted counts as trimmed: a reader that has read everything up to the last entry has missed
        // nothing, whatever LSNs were skipped since.
        let mut trimmed = head.history_trimmed;
        let mut more = chunk.reached.is_some();
        for LineageEntry { at, key, entry, .. } in chunk.entries {
            let written = entry.time.seconds();
            let is_kept = retention.is_some_and(|seconds| written.saturating_add(seconds) > now);
            if is_kept && at >= head.history_from {
                self.history_searched = at;
                more = false;
                break;
            }
            batch.delete(HISTORY, key);
            trimmed = at.next();
        }
        self.state.head.history_trimmed = trimmed;
        self.state.head.history_from = self.state.head.history_from.max(trimmed);
        if !batch.is_empty() {
            batch.mark_shrinking();
            let head = self.state.head.clone();
            self.commit_alone(batch, Some(head)).await.map_err(commit_fault)?;
        }
        Ok(more)
    }

    /// Log entries up to this LSN were read by every consumer; without consumers, all entries.
    pub(super) fn lsn_consumed(&self) -> Lsn {
        self.consumers.values().min().copied().unwrap_or(Lsn(u64::MAX - 1))
    }
}

/// The keys of entries that say nothing about stored documents.
async fn unneeded(
    id: PartitionId,
    has_consumers: bool,
    view: &View,
    entries: &[LineageEntry<LogEntry>],
) -> Result<Vec<Bytes>, Fault> {
    let mut unneeded = Vec::new();
    let mut versions = Vec::new();
    for LineageEntry { at, key, entry, .. } in entries {
        if entry.is_removal() {
            unneeded.push(key.clone());
        } else {
            versions.push((key, entry.number, *at));
        }
    }
    // Without consumers the entry of a replaced version is deleted with the version, so there are none.
    if !has_consumers {
        return Ok(unneeded);
    }
    #[cfg(feature = "planted-faults")]
    if crate::planted::is_planted(crate::planted::PlantedFault::ReplacedEntriesStay) {
        return Ok(unneeded);
    }
    let numbers: Vec<_> =
        versions.iter().map(|(_, number, _)| keyspace::number_key(id.container, *number)).collect();
    let records = view.get_many(NUMBERS, &numbers).await.map_err(read_fault)?;
    for ((key, _, at), record_key) in versions.into_iter().zip(records) {
        let record = match record_key {
            Some(record_key) => view.get(RECORDS, &record_key).await.map_err(read_fault)?,
            None => None,
        };
        let written = record.map(|row| Record::decode(&row)).transpose()?;
        // The partition and its ancestors have assigned different LSNs.
        let is_current = written.is_some_and(|record| record.log_position() == at);
        if !is_current {
            unneeded.push(key.clone());
        }
    }
    Ok(unneeded)
}
