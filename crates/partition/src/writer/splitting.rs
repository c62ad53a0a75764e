//! The writer's work for splits: counting one half, sealing, and separating a child from its ancestors.

use super::{BATCH_BYTES_MAX, Command, Writer};
use crate::checkpoint::RescheduleCheckpoint;
use crate::index::{IndexWriter, Manifest, RunSource};
use crate::keyspace::{self, LOG, META, RECORDS};
use crate::log::LogPosition;
use crate::overlay::RowsView;
use crate::split::{PreparedSplit, SealedPartition, Separation, SplitOutcome, Tally, WeighedKey};
use crate::storage::{commit_fault, read_fault};
use kv::{Batch, Direction, KeyRange, ScanLimit, Store};
use model::{EffectiveKey, EffectiveRange, Fault, Lsn, StorageFault};
use plan::Transaction;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Records that one step counts. The writer does nothing else meanwhile.
const TALLY_STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 1 << 20 };
/// Logical partitions whose bytes one writer counts.
const WEIGHED_MAX: usize = 64;
/// Log entries of ancestors that one step moves.
const MOVED_ROWS_MAX: usize = 256;
/// Rows of the meta space of one partition that are read at a time.
const META_STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };

/// A request to seal the partition.
pub(crate) struct SplitCommand {
    pub(crate) prepared: PreparedSplit,
    pub(crate) reply: oneshot::Sender<Result<SealedPartition, Fault>>,
    pub(crate) outcome: oneshot::Receiver<SplitOutcome>,
}

impl Writer {
    /// Counts some documents after a cut. Returns whether there are more.
    pub(super) async fn tally(&mut self, cut: &EffectiveKey) -> Result<bool, Fault> {
        self.ensure_view().await?;
        let second = EffectiveRange { min: cut.clone(), max: self.spec.range.max.clone() };
        let keys = keyspace::effective_range(self.id.container, &second);
        let tally = match &mut self.tally {
            Some(tally) if tally.keys == keys => tally,
            other => other.insert(Tally::new(keys)),
        };
        count_some(&self.store, tally).await
    }

    /// Counts some documents of a logical partition. Returns whether there are more.
    pub(super) async fn weigh(&mut self, keys: KeyRange, limit: u64) -> Result<bool, Fault> {
        self.ensure_view().await?;
        let place = match self.weighed.iter().position(|weighed| weighed.tally.keys == keys) {
            Some(place) => place,
            None => {
                if self.weighed.len() >= WEIGHED_MAX {
                    // The largest ones are named again by the next search.
                    self.weighed.clear();
                }
                self.weighed.push(WeighedKey { limit, tally: Tally::new(keys) });
                self.weighed.len() - 1
            }
        };
        self.weighed[place].limit = limit;
        count_some(&self.store, &mut self.weighed[place].tally).await
    }

    /// The large logical partition that a transaction changes, if it is one.
    pub(super) fn weighed_place(&self, transaction: &Transaction) -> Option<usize> {
        if self.weighed.is_empty() {
            return None;
        }
        let prefix = keyspace::logical_prefix(self.id.container, &transaction.key);
        self.weighed.iter().position(|weighed| weighed.tally.keys.start == prefix)
    }

    /// Waits for the end of the split, if the partition can be sealed.
    pub(super) async fn split(
        &mut self,
        command: SplitCommand,
        queue: &mut mpsc::Receiver<Command>,
    ) -> ControlFlow<()> {
        let SplitCommand { prepared, reply, outcome } = command;
        let sealed = self.seal(prepared).await;
        let is_sealed = sealed.is_ok();
        if reply.send(sealed).is_err() || !is_sealed {
            return ControlFlow::Continue(());
        }
        match outcome.await {
            Ok(SplitOutcome::Refused) => ControlFlow::Continue(()),
            Ok(SplitOutcome::Committed) => {
                self.carryover.set_closed(true);
                self.return_waiting(queue).await;
                ControlFlow::Break(())
            }
            // The caller has failed, perhaps after it had submitted the batch.
            Err(_) => {
                self.has_ended = true;
                self.publish_without_view();
                ControlFlow::Continue(())
            }
        }
    }

    /// The state of the partition for its children; nothing is in flight.
    async fn seal(&mut self, prepared: PreparedSplit) -> Result<SealedPartition, Fault> {
        self.ensure_view().await?;
        let PreparedSplit { cut, mut halves } = prepared;
        let cut_key = keyspace::effective_range(
            self.id.container,
            &EffectiveRange { min: cut.clone(), max: self.spec.range.max.clone() },
        );
        let tally = self.tally.as_ref().filter(|tally| tally.keys == cut_key && tally.is_complete());
        let not_counted = || StorageFault::Unavailable { cause: "a half is not counted".to_owned() };
        let second = tally.ok_or_else(not_counted)?.counts;
        let view = self.store.view().await.map_err(read_fault)?;
        let sealed = match self.index.needs_reopen() {
            true => None,
            false => self.index.index_writer().and_then(IndexWriter::sealed),
        };
        let index = match sealed {
            Some(sealed) => {
                let blocks = Arc::clone(self.index.environment().memory.blocks());
                let source = RunSource::Reader(view.clone(), blocks);
                sealed.complete(&source, &cut, &mut halves).await?;
                Some((sealed, halves))
            }
            None => None,
        };
        let mut meta_keys = Vec::new();
        let mut range = keyspace::partition_rows(self.id);
        loop {
            let chunk = view.scan_keys(META, range.clone(), META_STEP).await.map_err(read_fault)?;
            meta_keys.extend(chunk.keys);
            match meta_keys.last() {
                Some(last) if chunk.more => range = keyspace::after(&range, last),
                Some(_) | None => break,
            }
        }
        Ok(SealedPartition {
            id: self.id,
            cut,
            head: self.state.head.clone(),
            head_row: self.head_row.clone(),
            claim: self.claim.clone(),
            consumers: self.consumers.clone(),
            checkpoint: RescheduleCheckpoint::load(&view, self.id).await?,
            second,
            index,
            meta_keys,
            seconds: self.clock.now(),
        })
    }

    /// Starts to flush the index. The answer is sent when no job of the index runs any more.
    pub(super) async fn flush_index(&mut self, reply: oneshot::Sender<()>) {
        if let Some(index_writer) = self.index.index_writer_mut()
            && index_writer.documents_in_memory() > 0
        {
            index_writer.flush().await;
        }
        self.flush_waiters.push(reply);
    }

    /// Answers those who wait for a flush, if none is running.
    pub(super) fn answer_flush_waiters(&mut self) {
        let is_busy = |index_writer: &IndexWriter| index_writer.is_busy() || index_writer.has_install();
        if !self.flush_waiters.is_empty() && !self.index.index_writer().is_some_and(is_busy) {
            for waiter in self.flush_waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
    }

    /// One step of separating this partition from its ancestors: moves some of their log entries, trims, and has the
    /// index rewrite their runs.
    pub(super) async fn separate(&mut self) -> Result<Separation, Fault> {
        if !self.lineage.has_ancestors() {
            return Ok(Separation { has_more: false, needs: Vec::new() });
        }
        let mut has_more = self.trim().await?;
        if let Some(first) = self.unmoved {
            has_more |= self.move_log(first).await?;
        }
        if let Some(index_writer) = self.index.index_writer_mut() {
            index_writer.separate();
        }
        if has_more {
            return Ok(Separation { has_more, needs: Vec::new() });
        }
        let view = self.store.view().await.map_err(read_fault)?;
        let manifest = Manifest::load(&view, self.id).await?;
        let runs = manifest.iter().flat_map(|manifest| &manifest.runs);
        let owners: Vec<_> = runs.map(|run| run.owner).collect();
        let rows = RowsView::from(view);
        let searched = self.state.head.history_trimmed.max(self.history_searched);
        let mut needs = Vec::new();
        for ancestor in self.lineage.ancestors.iter().filter(|ancestor| !ancestor.is_empty) {
            let is_needed = self.unmoved.is_some()
                || owners.contains(&ancestor.ordinal)
                || self.lineage.may_have_history(&rows, searched, ancestor.lsn_last).await?;
            if is_needed {
                needs.push(ancestor.ordinal);
            }
        }
        Ok(Separation { has_more, needs })
    }

    /// Moves some log entries of ancestors to the log of this partition. Returns whether there are more.
    async fn move_log(&mut self, first: LogPosition) -> Result<bool, Fault> {
        self.ensure_view().await?;
        let view = self.store.view().await.map_err(read_fault)?;
        let limit = ScanLimit { rows: MOVED_ROWS_MAX, bytes: BATCH_BYTES_MAX };
        let chunk = self.lineage.log_of_ancestors(&RowsView::from(view), first, limit).await?;
        let mut batch = Batch::default();
        for moved in chunk.entries {
            batch.put(LOG, keyspace::log_key(self.id, moved.at), bytes::Bytes::copy_from_slice(&moved.row));
            batch.delete(LOG, moved.key);
        }
        if !batch.is_empty() {
            self.commit_alone(batch, None).await.map_err(commit_fault)?;
        }
        self.unmoved = chunk.reached.map(LogPosition::next);
        Ok(self.unmoved.is_some())
    }

    /// Where the entries of ancestors that may have to be moved begin.
    pub(super) fn unmoved_at_opening(has_ancestors: bool) -> Option<LogPosition> {
        has_ancestors.then(|| LogPosition::start_of(Lsn(0)))
    }
}

/// Counts some more keys of a tally. Returns whether there are more.
async fn count_some(store: &Store, tally: &mut Tally) -> Result<bool, Fault> {
    if tally.is_complete() {
        return Ok(false);
    }
    let view = store.view().await.map_err(read_fault)?;
    let start = tally.counted.end.clone().unwrap_or_default();
    let rest = KeyRange { start, end: tally.keys.end.clone() };
    let chunk = view.scan(RECORDS, rest.clone(), Direction::Forward, TALLY_STEP).await.map_err(read_fault)?;
    for (key, row) in &chunk.rows {
        tally.counts.documents += 1;
        tally.counts.bytes += (key.len() + row.len()) as u64;
    }
    tally.counted.end = match chunk.rows.last() {
        Some((last, _)) if chunk.more => Some(keyspace::after(&rest, last).start),
        Some(_) | None => tally.keys.end.clone(),
    };
    Ok(chunk.more)
}
