//! The writer's work for splits: tallies of one half, sealing, and separating a child from its ancestors.

use super::{Command, Writer};
use crate::checkpoint::RescheduleCheckpoint;
use crate::index::{IndexWriter, Manifest, RunSource};
use crate::keyspace::{self, META};
use crate::split::{PreparedSplit, SealedPartition, SplitOutcome};
use crate::staging::KeyChange;
use crate::storage::read_fault;
use crate::tally::{Tally, WeighedKey};
use bytes::Bytes;
use kv::{KeyRange, ScanLimit};
use model::{EffectiveKey, EffectiveRange, Fault, PartitionOrdinal, StorageFault};
use plan::Transaction;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, oneshot};

/// Logical partitions whose bytes one writer counts.
const WEIGHED_MAX: usize = 64;
/// Rows of the meta space of one partition that are read at a time.
const META_STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };

/// A request to seal the partition.
pub(crate) struct SplitCommand {
    pub(crate) prepared: PreparedSplit,
    pub(crate) reply: oneshot::Sender<Result<SealedPartition, Fault>>,
    pub(crate) outcome: oneshot::Receiver<SplitOutcome>,
}

impl Writer {
    /// Notes changes after a cut from now on, for a reader that counts them. Nothing is in flight.
    pub(super) async fn tally(&mut self, cut: &EffectiveKey) -> Result<Weak<Tally>, Fault> {
        self.ensure_view().await?;
        let second = EffectiveRange { min: cut.clone(), max: self.spec.range.max.clone() };
        let keys = keyspace::effective_range(self.id.container, &second);
        let tally = match &self.tally {
            Some(tally) if tally.keys == keys && !tally.is_incomplete() => tally,
            _ => self.tally.insert(Arc::new(Tally::new(keys))),
        };
        Ok(Arc::downgrade(tally))
    }

    /// Notes changes of a logical partition from now on. Nothing is in flight.
    pub(super) async fn weigh(&mut self, keys: KeyRange, limit: u64) -> Result<Weak<Tally>, Fault> {
        self.ensure_view().await?;
        self.weighed.retain(|weighed| !weighed.tally.is_incomplete());
        let place = match self.weighed.iter().position(|weighed| weighed.tally.keys == keys) {
            Some(place) => place,
            None => {
                if self.weighed.len() >= WEIGHED_MAX {
                    // The largest ones are named again by the next search.
                    self.weighed.clear();
                }
                self.weighed.push(WeighedKey::new(limit, keys));
                self.weighed.len() - 1
            }
        };
        self.weighed[place].limit = limit;
        Ok(Arc::downgrade(&self.weighed[place].tally))
    }

    /// The large logical partition that a transaction changes, if it is one.
    pub(super) fn weighed_place(&self, transaction: &Transaction) -> Option<usize> {
        if self.weighed.is_empty() {
            return None;
        }
        let prefix = keyspace::logical_prefix(self.id.container, &transaction.key);
        self.weighed.iter().position(|weighed| weighed.tally.keys.start == prefix)
    }

    /// Forgets a count that would refuse a change although housekeeping has deleted documents since: the next search for
    /// large logical partitions begins it again.
    pub(super) fn forget_outdated(&mut self, place: usize, changes: &[KeyChange]) -> Option<usize> {
        let weighed = &self.weighed[place];
        if !weighed.is_outdated || weighed.check(changes).is_ok() {
            return Some(place);
        }
        self.weighed.remove(place);
        None
    }

    /// Housekeeping has changed logical partitions in a transaction of another one.
    pub(super) fn note_entered(&mut self, prefixes: &[Bytes]) {
        for weighed in &mut self.weighed {
            weighed.is_outdated |= prefixes.contains(&weighed.tally.keys.start);
        }
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
        let tally = self.tally.as_ref().filter(|tally| tally.keys == cut_key);
        let not_counted = || StorageFault::Unavailable { cause: "a half is not counted".to_owned() };
        let second = tally.and_then(|tally| tally.counts()).ok_or_else(not_counted)?;
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

    /// Has the index rewrite the runs that ancestors have written, and returns the ancestors whose runs it still uses.
    pub(super) async fn separate(&mut self) -> Result<Vec<PartitionOrdinal>, Fault> {
        if !self.lineage.ancestors.iter().any(|ancestor| ancestor.remains.has_runs()) {
            return Ok(Vec::new());
        }
        if let Some(index_writer) = self.index.index_writer_mut() {
            index_writer.separate();
        }
        let view = self.store.view().await.map_err(read_fault)?;
        let manifest = Manifest::load(&view, self.id).await?;
        let runs = manifest.iter().flat_map(|manifest| &manifest.runs);
        let owners: BTreeSet<PartitionOrdinal> = runs.map(|run| run.owner).collect();
        Ok(owners.into_iter().filter(|owner| *owner != self.id.ordinal).collect())
    }
}
