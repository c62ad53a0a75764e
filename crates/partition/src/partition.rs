//! The handle of a physical partition that the engine holds.
//!
//! Writes are queued for the writer; reads use the published view. Knows nothing of other partitions.

use crate::basis::Basis;
use crate::cache::{CacheProbe, RecordCache};
use crate::carryover::Carryover;
use crate::checkpoint::RescheduleCheckpoint;
use crate::clock::PartitionClock;
use crate::draft::Draft;
use crate::evaluate::{Outcomes, read_outcome};
use crate::head::Head;
use crate::index::{
    Fingerprint, IndexFinding, IndexMemory, IndexProgress, IndexReader, LargestKeys, Lookup, RequiredTerms,
    RunHalves, SplitPoint, audit_index,
};
use crate::keyspace::{self, META, PartitionId};
use crate::lineage::{Ancestor, Lineage};
use crate::metrics::PartitionMetrics;
use crate::numbering::Numbering;
use crate::owner::Owner;
use crate::published::Published;
use crate::shape::CurrentShape;
use crate::split::{PreparedSplit, Seal, SealedPartition};
use crate::staging::CountsChange;
use crate::storage::{commit_fault, read_fault};
use crate::tally::{self, Tally};
use crate::view::{PartitionView, RecordPage, RecordScan};
use crate::writer::{Command, Execution, KeyLock, SplitCommand, Writer};
use arc_swap::ArcSwap;
use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, Lane, Store, View};
use model::limits::ITEM_BYTES_MAX;
use model::{
    Ambient, ConflictFault, EffectiveKey, EffectiveRange, Fault, Lsn, MissingFault, PartitionOrdinal,
    StorageFault, Work,
};
use plan::{Condition, LogicalKey, Outcome, StepFault, Target, Transaction};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait in the queue of one writer; further ones wait for space in the queue.
const QUEUE_MAX: usize = 1024;
/// How often a split is prepared for runs that were flushed or merged meanwhile.
const HALVES_PASSES: usize = 4;

/// A partition and the part of the hash space that it owns.
#[derive(Clone, Debug)]
pub struct PartitionSpec {
    /// The partition.
    pub id: PartitionId,
    /// The effective keys of its documents.
    pub range: EffectiveRange,
    /// The partitions from which it was split, oldest first.
    pub ancestors: Vec<Ancestor>,
}

/// Resources that all partitions of a store share.
#[derive(Clone, Debug)]
pub struct PartitionEnvironment {
    /// The store.
    pub store: Store,
    /// The record cache.
    pub cache: Arc<RecordCache>,
    /// Time and randomness.
    pub ambient: Arc<dyn Ambient>,
    /// Whether a write is acknowledged after fsync or after the journal write.
    pub durability: Durability,
    /// The memory and caches of all indexes.
    pub index: Arc<IndexMemory>,
    /// Metrics of all partitions.
    pub metrics: PartitionMetrics,
}

/// The result of an accepted transaction.
#[derive(Debug)]
pub struct Executed {
    /// Outcome and work of each step.
    pub outcomes: Outcomes,
    /// The LSN of the partition when the transaction was durable.
    pub lsn: Lsn,
}

/// Why a transaction was not executed.
#[derive(Debug)]
pub enum Unexecuted {
    /// It was refused, or its outcome is unknown.
    Refused(Box<StepFault>),
    /// The partition stopped before it accepted the transaction. Nothing was done.
    Stopped(Box<Transaction>),
    /// Others have changed the logical partition since the draft began. Nothing was done.
    Changed,
}

impl From<StepFault> for Unexecuted {
    fn from(refusal: StepFault) -> Unexecuted {
        Unexecuted::Refused(Box::new(refusal))
    }
}

/// The result of a request to close an idle partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleClose {
    /// The partition is closed.
    Closed,
    /// The index has a job running, or too many changes in memory to replay, which are being flushed now.
    Busy,
}

/// Counts of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionCounts {
    /// Documents, expired ones included until they are swept.
    pub documents: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

impl PartitionCounts {
    /// Applies a change.
    pub(crate) fn change(&mut self, change: CountsChange) {
        self.documents = self.documents.saturating_add_signed(change.documents);
        self.bytes = self.bytes.saturating_add_signed(change.bytes);
    }
}

/// A physical partition: one hash range, one writer.
#[derive(Debug)]
pub struct PhysicalPartition {
    spec: PartitionSpec,
    lineage: Arc<Lineage>,
    shape: Arc<CurrentShape>,
    published: Arc<ArcSwap<Published>>,
    commands: mpsc::Sender<Command>,
    progress: Arc<IndexProgress>,
    clock: Arc<PartitionClock>,
    carryover: Arc<Carryover>,
    numbering: Arc<Numbering>,
    environment: PartitionEnvironment,
}

/// The rows of a new partition, for the catalog's batch that creates it. LSNs and stamps start above `floor`.
pub fn new_partition_rows(id: PartitionId, floor: u64, batch: &mut Batch) {
    batch.put(META, keyspace::owner_key(id), Owner::first().encode());
    batch.put(META, keyspace::head_key(id), Head::first(floor).encode());
}

/// The counts of a partition as they are stored, without opening it; `None` if it does not exist.
pub async fn stored_counts(view: &View, id: PartitionId) -> Result<Option<PartitionCounts>, Fault> {
    let row = view.get(META, &keyspace::head_key(id)).await.map_err(read_fault)?;
    let head = row.map(|row| Head::decode(&row)).transpose()?;
    Ok(head.map(|head| PartitionCounts { documents: head.documents, bytes: head.bytes }))
}

/// Deletes the owner row in the catalog's batch that drops the container. All batches of the partition's writer are
/// refused after that batch.
pub fn delete_owner_row(id: PartitionId, batch: &mut Batch) {
    batch.delete(META, keyspace::owner_key(id));
}

impl PhysicalPartition {
    /// Opens a partition and starts its writer on the current runtime. A previous writer of the partition can no
    /// longer commit.
    pub async fn open(
        environment: PartitionEnvironment,
        spec: PartitionSpec,
        shape: Arc<CurrentShape>,
    ) -> Result<PhysicalPartition, Fault> {
        let carryover = Carryover::new(spec.id, Arc::clone(&environment.ambient));
        PhysicalPartition::open_after(environment, spec, shape, Arc::new(carryover)).await
    }

    /// Opens a partition that was open before in this process; `carryover` is that of its last opening.
    pub async fn open_after(
        environment: PartitionEnvironment,
        spec: PartitionSpec,
        shape: Arc<CurrentShape>,
        carryover: Arc<Carryover>,
    ) -> Result<PhysicalPartition, Fault> {
        let published =
            Arc::new(ArcSwap::from_pointee(Published::without_view(&Head::default(), Lane::default())));
        let progress = Arc::new(IndexProgress::default());
        let clock = Arc::clone(&carryover.clock);
        let numbering = Arc::new(Numbering::default());
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let writer = Writer::new(
            environment.clone(),
            spec.clone(),
            Arc::clone(&shape),
            Arc::clone(&published),
            Arc::clone(&progress),
            Arc::clone(&carryover),
            Arc::clone(&numbering),
        )
        .await?;
        carryover.set_closed(false);
        tokio::spawn(writer.run(queue));
        let lineage = Arc::new(Lineage::of(&spec));
        Ok(PhysicalPartition {
            spec,
            lineage,
            shape,
            published,
            commands,
            progress,
            clock,
            carryover,
            numbering,
            environment,
        })
    }

    /// Waits until the outcome of every batch of a writer that has ended is known. The partition must not be opened
    /// again before that: a batch still in flight would change rows under the next writer.
    pub async fn await_outcomes(&self) -> Result<(), Fault> {
        if self.carryover.is_closed() {
            return Ok(());
        }
        let lane = self.published.load().lane.clone();
        // This batch comes after all batches of the lane; no more of them can be submitted.
        let resolved = self.environment.store.submit(&lane, Batch::default(), Durability::Sync).await;
        match resolved {
            Err(
                fault @ (CommitFault::Uncertain { .. } | CommitFault::Poisoned { .. } | CommitFault::Closed),
            ) => {
                return Err(commit_fault(fault));
            }
            // No batch of a broken lane is pending.
            Ok(_)
            | Err(
                CommitFault::PreconditionFailed { .. }
                | CommitFault::ChainBroken
                | CommitFault::LaneCrowded { .. }
                | CommitFault::Full { .. }
                | CommitFault::TooLarge { .. }
                | CommitFault::BadKey { .. }
                | CommitFault::ReservedKey { .. }
                | CommitFault::UnknownSpace { .. }
                | CommitFault::UnknownIngest { .. }
                | CommitFault::Unsorted { .. }
                | CommitFault::Unreadable(_),
            ) => {}
        }
        self.carryover.release(&self.environment.cache);
        Ok(())
    }

    /// The partition's id and range.
    pub fn spec(&self) -> &PartitionSpec {
        &self.spec
    }

    /// Executes a transaction: all of it durably, or nothing.
    pub async fn execute(&self, transaction: Transaction) -> Result<Executed, StepFault> {
        self.try_execute(transaction).await.map_err(|unexecuted| match unexecuted {
            Unexecuted::Refused(refusal) => *refusal,
            Unexecuted::Stopped(_) => StepFault { index: 0, fault: writer_stopped(), work: Work::Free },
            Unexecuted::Changed => {
                StepFault { index: 0, fault: ConflictFault::ConcurrentChange.into(), work: Work::Free }
            }
        })
    }

    /// As `execute`, but returns the transaction if the partition has stopped.
    pub async fn try_execute(&self, transaction: Transaction) -> Result<Executed, Unexecuted> {
        self.send_execution(transaction, None).await
    }

    async fn send_execution(
        &self,
        transaction: Transaction,
        basis: Option<Box<Basis>>,
    ) -> Result<Executed, Unexecuted> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Execute(Execution { transaction, basis, reply, waits_since: None });
        if let Err(mpsc::error::SendError(command)) = self.commands.send(command).await {
            return Err(command.into_unexecuted());
        }
        answer.await.unwrap_or_else(|_| {
            // The writer ended while it held the transaction and may have submitted it.
            let fault =
                StorageFault::Uncertain { cause: "the writer of the partition has failed".to_owned() };
            Err(StepFault { index: 0, fault: fault.into(), work: Work::Free }.into())
        })
    }

    /// The latest durable state.
    pub async fn view(&self) -> Result<PartitionView, Fault> {
        // Loaded before the state: if a shape says that all expiry rows are written, the state has them.
        let shape = Arc::clone(&self.shape.load());
        let mut published = self.published.load_full();
        if !published.view.as_ref().is_some_and(View::is_live) {
            published = self.send(|reply| Command::View { reply }).await??;
        }
        let view = published.view.clone().ok_or_else(writer_stopped)?;
        Ok(PartitionView {
            view: view.into(),
            cache: Arc::clone(&self.environment.cache),
            index: published.index.clone(),
            partition: self.spec.id,
            lineage: Arc::clone(&self.lineage),
            shape,
            lsn: published.lsn,
            counts: published.counts,
            time: published.time,
            set_back: published.set_back,
            history_from: published.history_from,
            now: self.clock.now(),
        })
    }

    /// The LSN of the latest durable state if its index has these rules and shows, from memory alone, that no document
    /// has all of the required terms.
    pub fn lacks(&self, rules: Fingerprint, required_terms: &mut RequiredTerms<'_>) -> Option<Lsn> {
        let published = self.published.load();
        let is_live = published.view.as_ref().is_some_and(View::is_live);
        let index = published.index.as_ref().filter(|index| is_live && index.fingerprint() == rules)?;
        index.lacks(required_terms).then_some(published.lsn)
    }

    /// Begins a draft in a logical partition on the latest durable state, under the lock of its owner if it has one.
    pub async fn begin(&self, key: LogicalKey, lock: Option<KeyLock>) -> Result<Draft, Fault> {
        let open = self.numbering.begin_draft();
        let ambient = Arc::clone(&self.environment.ambient);
        Ok(Draft::begin(self.view().await?, key, self.clock.now_ticks(), ambient, open, lock))
    }

    /// Commits a draft of this partition: all of it durably, or nothing.
    pub async fn commit(&self, draft: Draft) -> Result<Executed, Unexecuted> {
        let (transaction, basis, _lock) = draft.into_commit();
        self.send_execution(transaction, Some(Box::new(basis))).await
    }

    /// Locks a logical partition: the changes of others wait until the lock is dropped or its draft is committed, for
    /// [`LOCK_TIME_MAX`](crate::LOCK_TIME_MAX) at most. Waits for locks of others for `wait_max`.
    pub async fn lock(&self, key: &LogicalKey, wait_max: Duration) -> Result<KeyLock, Fault> {
        let prefix = keyspace::logical_prefix(self.spec.id.container, key);
        let locked = self.send(|reply| Command::Lock { prefix, reply });
        match tokio::time::timeout(wait_max, locked).await {
            Ok(locked) => locked?,
            Err(_) => Err(ConflictFault::Locked { waited: wait_max }.into()),
        }
    }

    /// Reads one document from the latest durable state and returns the LSN of that state too.
    pub async fn read(
        &self,
        key: &LogicalKey,
        target: &Target,
        condition: &Condition,
    ) -> Result<(Outcome, Work, Lsn), Fault> {
        let Target::Id(id) = target else {
            let view = self.view().await?;
            let (outcome, work) = view.read(key, target, condition).await?;
            return Ok((outcome, work, view.lsn()));
        };
        let record_key = keyspace::document_key(self.spec.id.container, key, id.as_str().into());
        let cache = &self.environment.cache;
        let (record, lsn) = match cache.probe(&record_key) {
            CacheProbe::Hit(record) => {
                let published = self.published.load();
                if published.lane.is_rewound() || published.has_ended {
                    // The version may be lost. The writer will notice and clear the cache.
                    let view = self.view().await?;
                    (view.record(&record_key).await?, view.lsn())
                } else {
                    // The client sees this version, which may be newer than the LSN loaded before.
                    let lsn = published.lsn.max(record.lsn);
                    (record, lsn)
                }
            }
            // The ticket is older than the view, as the cache requires.
            CacheProbe::Miss(leave) => {
                let view = self.view().await?;
                let record = view.record(&record_key).await?;
                if let Some(leave) = leave {
                    cache.keep(leave, record_key.into_boxed_slice().into(), &record);
                }
                (record, view.lsn())
            }
        };
        if record.is_expired(self.shape.load().default_ttl, self.clock.now()) {
            return Err(MissingFault::Resource.into());
        }
        let work = Work::Read { bytes: record.document.bytes().len() };
        Ok((read_outcome(record, condition)?, work, lsn))
    }

    /// Reads a page of documents in key order from the latest durable state.
    pub async fn page(&self, scan: &RecordScan) -> Result<RecordPage, Fault> {
        self.view().await?.page(scan).await
    }

    /// The LSN of the latest durable state.
    pub fn lsn(&self) -> Lsn {
        self.published.load().lsn
    }

    /// Whether the writer has ended: it was closed, it panicked, or it lost the ownership. The partition must be
    /// opened again.
    pub fn has_ended(&self) -> bool {
        self.commands.is_closed()
    }

    /// Counts of the latest durable state.
    pub fn counts(&self) -> PartitionCounts {
        self.published.load().counts
    }

    /// Registers or moves a consumer of the log. Entries after its position are kept.
    pub async fn set_consumer(&self, name: &str, lsn: Lsn) -> Result<(), Fault> {
        let name = name.to_owned();
        self.send(|reply| Command::SetConsumer { name, lsn, reply }).await?
    }

    /// Deletes a bounded number of log entries of deletions and replaced versions that every consumer has passed.
    /// Returns whether there are more.
    pub async fn trim_log(&self) -> Result<bool, Fault> {
        self.send(|reply| Command::Trim { reply }).await?
    }

    /// Saves the progress of rewriting the expiry rows of the partition.
    pub async fn save_reschedule(&self, checkpoint: &RescheduleCheckpoint) -> Result<(), Fault> {
        let row = checkpoint.encode();
        self.send(|reply| Command::Checkpoint { row, reply }).await?
    }

    /// The container's definition was replaced. The writer builds an index if the policy has changed. A writer with a
    /// full queue compares the policy anyway.
    pub fn reshape(&self) {
        let _ = self.commands.try_send(Command::Reshape);
    }

    /// Progress of the index for the container's policy, in percent; 100 when it is in use.
    pub fn index_progress(&self) -> u8 {
        let wanted = self.shape.load().rules.fingerprint();
        if self.published.load().policy == Some(wanted) { 100 } else { self.progress.percent() }
    }

    /// Segments and runs of the index; every lookup reads each of them.
    pub fn index_pieces(&self) -> usize {
        self.published.load().index_pieces
    }

    /// Commands in the queue of the writer.
    pub fn queue_depth(&self) -> usize {
        self.commands.max_capacity() - self.commands.capacity()
    }

    /// Compares the index with the records. Returns no findings if there is no index.
    pub async fn audit_index(&self) -> Result<Vec<IndexFinding>, Fault> {
        let view = self.view().await?;
        match view.index() {
            Some(reader) => audit_index(reader, self.spec.id.container, &self.spec.range).await,
            None => Ok(Vec::new()),
        }
    }

    /// The lower bound of the second half of the documents, by their number; `None` if they have one hash only, or if
    /// there is no index.
    pub async fn middle_by_documents(&self) -> Result<Option<EffectiveKey>, Fault> {
        let mut point = SplitPoint::default();
        loop {
            let _step = self.environment.index.steps().step().await;
            let view = self.view().await?;
            let Some(index) = view.index() else { return Ok(None) };
            let half = index.document_count().div_ceil(2);
            if point.search(index, half).await? {
                continue;
            }
            return self.nearest_cut(&view, index, half, &point).await;
        }
    }

    /// The effective key of the candidate that divides the documents most evenly, if both sides get some.
    async fn nearest_cut(
        &self,
        view: &PartitionView,
        index: &IndexReader,
        half: u64,
        point: &SplitPoint,
    ) -> Result<Option<EffectiveKey>, Fault> {
        let mut best: Option<(u64, EffectiveKey)> = None;
        let mut first = None;
        for (code, before) in &point.candidates {
            let lookup = Lookup::Logical(Bytes::copy_from_slice(code));
            let number = index.documents(&lookup).await?.iter().next();
            let Some(number) = number else { continue };
            let Some(stored) = view.by_number(number, &self.lineage.keys).await? else { continue };
            let definition = &view.shape.partition_key;
            let effective = definition.effective_key(&definition.extract(&stored.document)?);
            // Keys with the same hash stay together; the first of them has the fewest documents before it.
            if first.as_ref() == Some(&effective) {
                continue;
            }
            first = Some(effective.clone());
            let distance = before.abs_diff(half);
            let is_better = best.as_ref().is_none_or(|(least, _)| distance < *least);
            if *before > 0 && effective > self.spec.range.min && is_better {
                best = Some((distance, effective));
            }
        }
        Ok(best.map(|(_, cut)| cut))
    }

    /// Finds the logical partitions with the most documents and counts their bytes. From then on writes that would add
    /// to one of them above `limit` bytes are refused.
    pub async fn limit_logical_partitions(&self, limit: u64) -> Result<(), Fault> {
        // Smaller ones cannot have as many bytes, because a document has a limit too.
        let documents_min = limit / (2 * ITEM_BYTES_MAX as u64);
        let mut search = LargestKeys::new(documents_min);
        loop {
            let _step = self.environment.index.steps().step().await;
            let view = self.view().await?;
            let Some(index) = view.index() else { return Ok(()) };
            if !search.search(index).await? {
                break;
            }
        }
        for code in search.into_codes() {
            let prefix: Bytes = [&self.spec.id.container.0.to_be_bytes()[..], &code].concat().into();
            let keys = keyspace::logical_range(&prefix);
            let tally = self.send(|reply| Command::Weigh { keys, limit, reply }).await??;
            self.count(&tally).await?;
        }
        Ok(())
    }

    /// Prepares a split at `cut`, while the partition serves requests.
    pub async fn prepare_split(&self, cut: EffectiveKey) -> Result<PreparedSplit, Fault> {
        let counted = cut.clone();
        let tally = self.send(|reply| Command::Tally { cut: counted, reply }).await??;
        self.count(&tally).await?;
        self.send(|reply| Command::Flush { reply }).await?;
        let mut halves = Vec::new();
        // Runs that are flushed or merged meanwhile are looked at too, so that few are left for the pause.
        for _ in 0..HALVES_PASSES {
            let view = self.view().await?;
            let known = halves.len();
            if let Some(index) = view.index() {
                RunHalves::add_missing(&index.source(), &index.pieces, &cut, &mut halves).await?;
            }
            if halves.len() == known {
                break;
            }
        }
        Ok(PreparedSplit { cut, halves })
    }

    /// Counts the keys of a tally, slowly: clients share the processor.
    async fn count(&self, tally: &Weak<Tally>) -> Result<(), Fault> {
        loop {
            let step = self.environment.index.steps().slow_step().await;
            let has_more = tally::count_some(tally, &self.view().await?).await?;
            if !has_more {
                return Ok(());
            }
            step.end().await;
        }
    }

    /// Seals the partition: its writer waits until the caller says what became of the batch that replaces it.
    pub async fn seal(&self, prepared: PreparedSplit) -> Result<(SealedPartition, Seal), Fault> {
        let (sender, outcome) = oneshot::channel();
        let sealed =
            self.send(|reply| Command::Split(Box::new(SplitCommand { prepared, reply, outcome }))).await??;
        Ok((sealed, Seal { outcome: sender }))
    }

    /// Separates the partition from its ancestors in the background. Returns those whose index runs it still uses.
    pub async fn separate(&self) -> Result<Vec<PartitionOrdinal>, Fault> {
        self.send(|reply| Command::Separate { reply }).await?
    }

    /// Stops the writer: executes what is queued and gives unused reserved ranges back.
    pub async fn close(&self) -> Result<(), Fault> {
        self.send(|reply| Command::Close { reply }).await?
    }

    /// As `close`, unless the index has a job running or so many changes in memory that the next opening would take
    /// long.
    pub async fn close_idle(&self) -> Result<IdleClose, Fault> {
        self.send(|reply| Command::CloseIdle { reply }).await?
    }

    async fn send<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| writer_stopped())?;
        answer.await.map_err(|_| writer_stopped())
    }
}

fn writer_stopped() -> Fault {
    StorageFault::Unavailable { cause: "the partition has stopped".to_owned() }.into()
}
