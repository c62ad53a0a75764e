//! The single writer of a partition: gathers waiting transactions, evaluates, commits, publishes, answers.
//!
//! While a batch is in flight, the next one is gathered. An answer, also a refusal, is sent when the state it is based
//! on is durable. If a batch fails, every later batch of this writer fails too, because the store's lane is broken.
//! The writer then reads its head again and continues from the stored state. If the outcome of a batch is unknown, the
//! writer refuses requests until the store was reopened: the batch may still appear, with LSNs and numbers that must
//! not be assigned twice.

mod command;
mod company;
mod consumers;
mod ending;
mod gathering;
mod indexing;
mod locks;
mod recovery;
mod splitting;
mod validation;

pub(crate) use self::command::{Command, Execution};
pub(crate) use self::locks::LockId;
use self::locks::Locks;
pub use self::locks::{KeyLock, LOCK_TIME_MAX, LOCK_WAIT_MAX};
use self::recovery::BatchFailure;
pub(crate) use self::splitting::SplitCommand;
use crate::cache::RecordCache;
use crate::carryover::Carryover;
use crate::clock::PartitionClock;
use crate::head::Head;
use crate::index::{IndexEnvironment, IndexLife, IndexProgress, IndexWriter, Prepared, RunNumbers};
use crate::keyspace::{self, META, PartitionId};
use crate::last_writes::LastWrites;
use crate::lineage::Lineage;
use crate::log::{LogPosition, load_consumers};
use crate::numbering::Numbering;
use crate::owner::Claim;
use crate::partition::{IdleClose, PartitionEnvironment, PartitionSpec};
use crate::published::Published;
use crate::record::Record;
use crate::shape::CurrentShape;
use crate::staging::TRANSACTION_BYTES_MAX;
use crate::state::{BatchNumber, WriterState};
use crate::storage::read_fault;
use crate::tally::{Tally, WeighedKey};
use crate::verdicts::{Decided, answer};
use arc_swap::ArcSwap;
use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, Lane, Store, View};
use model::{Ambient, Fault, Lsn};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Bytes of rows after which a batch is closed.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
// A batch is closed after the transaction that fills it, and the head is added.
const _: () = assert!(BATCH_BYTES_MAX + TRANSACTION_BYTES_MAX + HEAD_BYTES_MAX <= kv::BATCH_BYTES_MAX);
/// Maximum size of the head row with its key.
const HEAD_BYTES_MAX: usize = 1024;
/// Limit of the batches in flight.
const BATCHES_IN_FLIGHT_MAX: usize = 2;
/// Waiting transactions that justify another batch while one is in flight. Fewer wait for it, because every batch
/// costs a head row, an index segment and a publication.
const CONCURRENT_BATCH_MIN: usize = 16;
/// An idle writer releases its view after this time, because an open view stops version cleanup of the whole store.
const VIEW_IDLE_MAX: Duration = Duration::from_secs(1);

/// A submitted batch that is not committed yet.
struct InFlight {
    number: BatchNumber,
    commit: Pin<Box<dyn Future<Output = Result<View, CommitFault>> + Send>>,
    head: Head,
    decided: Vec<Decided>,
    /// The record rows that it writes.
    records: Vec<(Bytes, Option<Bytes>)>,
    /// Its changes of the index.
    indexed: Option<Prepared>,
    /// The first second at which one of its documents expires.
    expiry: Option<u64>,
}

pub(crate) struct Writer {
    store: Store,
    lane: Lane,
    id: PartitionId,
    spec: PartitionSpec,
    shape: Arc<CurrentShape>,
    cache: Arc<RecordCache>,
    durability: Durability,
    ambient: Arc<dyn Ambient>,
    clock: Arc<PartitionClock>,
    carryover: Arc<Carryover>,
    published: Arc<ArcSwap<Published>>,
    state: WriterState,
    /// The proof that this writer owns the partition.
    claim: Claim,
    /// The head row after the last submitted batch.
    head_row: Bytes,
    /// Whether this writer has lost the ownership of the partition.
    has_ended: bool,
    /// The head with which this writer started, or continued after an unknown outcome.
    first_head: Head,
    /// The serving index has the LSN of the published view.
    index: IndexLife,
    consumers: BTreeMap<String, Lsn>,
    in_flight: VecDeque<InFlight>,
    /// The failure of a batch, until the state was read again.
    failure: Option<BatchFailure>,
    /// Records that a failed batch may have changed. They must not be cached before its outcome is known.
    unresolved_keys: Vec<Bytes>,
    batch_last: BatchNumber,
    /// Commands from the queue that must run again or wait for the batches in flight.
    backlog: VecDeque<Command>,
    /// Transactions at the front of the backlog that get a batch of their own each.
    alone: usize,
    /// Transactions of the batch that was gathered last.
    gathered_last: usize,
    /// Until when the transactions in the backlog wait for others.
    company_until: Option<Instant>,
    lineage: Arc<Lineage>,
    /// The counts after a cut, while a split is prepared.
    tally: Option<Arc<Tally>>,
    /// Large logical partitions, whose bytes are limited.
    weighed: Vec<WeighedKey>,
    /// What transactions outside the writer need to number their documents; of this opening.
    numbering: Arc<Numbering>,
    /// The last writes of logical partitions, while there are drafts.
    last_writes: Option<LastWrites>,
    /// Logical partitions that transactions have locked.
    locks: Locks,
    /// Those who wait until the index is flushed.
    flush_waiters: Vec<oneshot::Sender<()>>,
    /// There is no history of this partition before this position.
    history_searched: LogPosition,
    /// When the last command came or the last batch was committed.
    active_at: Instant,
}

impl Writer {
    pub(crate) async fn new(
        environment: PartitionEnvironment,
        spec: PartitionSpec,
        shape: Arc<CurrentShape>,
        published: Arc<ArcSwap<Published>>,
        progress: Arc<IndexProgress>,
        carryover: Arc<Carryover>,
        numbering: Arc<Numbering>,
    ) -> Result<Writer, Fault> {
        let id = spec.id;
        let inheritance = carryover.take_inheritance();
        let (claim, view) = match &inheritance {
            Some(inherited) => (inherited.claim.clone(), environment.store.view().await.map_err(read_fault)?),
            None => Claim::take(&environment.store, id).await?,
        };
        #[cfg(feature = "planted-faults")]
        crate::planted::stall_opening().await;
        let (head_row, head) = Head::load_row(&view, id).await?;
        let clock = Arc::clone(&carryover.clock);
        clock.begin_at(head.time.seconds());
        let consumers = load_consumers(&view, id).await?;
        let PartitionEnvironment { store, cache, ambient, durability, index: memory, metrics } = environment;
        let run_numbers = Arc::new(RunNumbers::of_epoch(claim.epoch()));
        let lineage = Arc::new(Lineage::of(&spec));
        let inherited_runs = inheritance.iter().flat_map(|inherited| &*inherited.runs);
        let index_environment = IndexEnvironment {
            store: store.clone(),
            partition: id,
            lineage: Arc::clone(&lineage),
            loaded: inherited_runs.map(Arc::downgrade).collect(),
            memory,
            run_numbers,
            metrics,
        };
        let index = IndexLife::new(index_environment, spec.range.clone(), progress);
        let mut writer = Writer {
            lane: store.lane(),
            store,
            id,
            spec,
            shape,
            cache,
            durability,
            ambient,
            clock,
            carryover,
            published,
            state: WriterState::new(view.clone(), head.clone().reopened()),
            claim,
            head_row,
            has_ended: false,
            first_head: head.clone().reopened(),
            index,
            consumers,
            in_flight: VecDeque::new(),
            failure: None,
            unresolved_keys: Vec::new(),
            batch_last: 0,
            backlog: VecDeque::new(),
            alone: 0,
            gathered_last: 0,
            company_until: None,
            history_searched: LogPosition::default(),
            lineage,
            tally: None,
            weighed: Vec::new(),
            numbering,
            last_writes: None,
            locks: Locks::default(),
            flush_waiters: Vec::new(),
            active_at: Instant::now(),
        };
        writer.numbering.raise_to(&writer.state.head);
        // Documents that an earlier writer has committed without noting their expiry.
        writer.shape.note_expiry(0);
        writer.open_index(&view, &head).await?;
        // The index has taken the runs it needs.
        drop(inheritance);
        writer.publish(view, &writer.state.head.clone());
        Ok(writer)
    }

    /// Runs until it is closed or all senders are gone.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        // One timer that looks once in a while: to set one for every batch costs more than the look.
        let mut idle_look = Box::pin(tokio::time::sleep(VIEW_IDLE_MAX));
        loop {
            if self.has_ended {
                return self.return_waiting(&mut queue).await;
            }
            self.answer_flush_waiters();
            let company_until = self.company_until();
            if company_until.is_none()
                && let Some(command) = self.next_from_backlog()
            {
                if self.handle(command, &mut queue).await.is_break() {
                    return;
                }
                continue;
            }
            if self.in_flight.is_empty() && self.index.waits_for_idle() {
                self.take_over().await;
                continue;
            }
            let takes = self.takes_commands();
            tokio::select! {
                biased;
                () = self.locks.next_event(), if !self.locks.is_empty() => self.end_locks(),
                result = first_commit(&mut self.in_flight), if !self.in_flight.is_empty() => self.complete(result).await,
                event = self.index.next_event(), if !self.index.has_install() => self.on_index_event(event),
                command = queue.recv(), if takes => match command {
                    Some(command) => self.backlog.push_back(command),
                    None => { self.drain().await; if self.backlog.is_empty() { return } }
                },
                () = company::wait(company_until) => {}
                () = &mut idle_look, if self.in_flight.is_empty() && self.state.has_view() && self.failure.is_none() => {
                    let now = Instant::now();
                    if self.active_at + VIEW_IDLE_MAX <= now {
                        self.on_idle();
                        self.active_at = now;
                    }
                    idle_look.as_mut().reset(self.active_at + VIEW_IDLE_MAX);
                }
            }
        }
    }

    /// Whether another batch may be gathered.
    fn has_room(&self) -> bool {
        let is_enough = self.in_flight.is_empty() || self.backlog.len() >= CONCURRENT_BATCH_MIN;
        is_enough && self.may_gather()
    }

    fn may_gather(&self) -> bool {
        self.in_flight.len() < BATCHES_IN_FLIGHT_MAX
            && !self.index.waits_for_idle()
            && !self.index.index_writer().is_some_and(IndexWriter::is_overfull)
    }

    /// Whether to take commands from the queue: not while one waits for the batches in flight.
    fn takes_commands(&self) -> bool {
        self.may_gather()
            && self.backlog.len() < CONCURRENT_BATCH_MIN
            && self.backlog.iter().all(|command| matches!(command, Command::Execute(_)))
    }

    /// Runs commands other than transactions, with nothing in flight.
    fn next_from_backlog(&mut self) -> Option<Command> {
        let is_transaction = matches!(self.backlog.front()?, Command::Execute(_));
        let is_due = if is_transaction { self.has_room() } else { self.in_flight.is_empty() };
        if is_due { self.backlog.pop_front() } else { None }
    }

    async fn handle(
        &mut self,
        command: Command,
        queue: &mut mpsc::Receiver<Command>,
    ) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        self.active_at = Instant::now();
        match command {
            Command::Execute(execution) => self.gather(execution, queue).await,
            other if !self.in_flight.is_empty() => self.backlog.push_back(other),
            // With nothing in flight, so that the holder finds all earlier changes in the published state.
            Command::Lock { prefix, reply } => self.locks.request(prefix, reply),
            Command::View { reply } => {
                let _ = reply.send(self.ensure_view().await);
                self.check_policy();
            }
            Command::SetConsumer { name, lsn, reply } => {
                let _ = reply.send(self.set_consumer(name, lsn).await);
            }
            Command::Trim { reply } => {
                let _ = reply.send(self.trim().await);
            }
            Command::Checkpoint { row, reply } => {
                let _ = reply.send(self.save_checkpoint(row).await);
            }
            Command::Reshape => self.check_policy(),
            Command::Tally { cut, reply } => {
                let _ = reply.send(self.tally(&cut).await);
            }
            Command::Weigh { keys, limit, reply } => {
                let _ = reply.send(self.weigh(keys, limit).await);
            }
            Command::Flush { reply } => self.flush_index(reply).await,
            Command::Split(command) => return self.split(*command, queue).await,
            Command::Separate { reply } => {
                let _ = reply.send(self.separate().await);
            }
            Command::Close { reply } => {
                let closed = self.close().await;
                self.return_waiting(queue).await;
                let _ = reply.send(closed);
                return Break(());
            }
            Command::CloseIdle { reply } => {
                let closed = self.close_idle().await;
                let has_ended = closed.as_ref().is_ok_and(|closed| *closed == IdleClose::Closed);
                if has_ended {
                    self.return_waiting(queue).await;
                }
                let _ = reply.send(closed);
                return if has_ended { Break(()) } else { Continue(()) };
            }
        }
        Continue(())
    }

    /// Handles the result of the oldest batch in flight.
    async fn complete(&mut self, result: Result<View, CommitFault>) {
        let Some(batch) = self.in_flight.pop_front() else {
            return;
        };
        let mut view = match result {
            Ok(view) => view,
            Err(fault) => return self.recover(batch, fault).await,
        };
        // Batches of one group commit share a view: later batches that it shows must be in the index too.
        let mut done = vec![batch];
        while let Some(lsn) = self.in_flight.front().map(|next| next.head.lsn)
            && Head::load(&view, self.id).await.is_ok_and(|head| head.lsn >= lsn)
        {
            match first_commit(&mut self.in_flight).await {
                Ok(later) => {
                    view = later;
                    done.extend(self.in_flight.pop_front());
                }
                Err(fault) => {
                    self.committed(done, view).await;
                    if let Some(failed) = self.in_flight.pop_front() {
                        self.recover(failed, fault).await;
                    }
                    return;
                }
            }
        }
        self.committed(done, view).await;
    }

    /// Publishes durable batches and answers their transactions.
    async fn committed(&mut self, batches: Vec<InFlight>, view: View) {
        let Some(head) = batches.last().map(|batch| batch.head.clone()) else { return };
        self.active_at = Instant::now();
        let mut answers = Vec::with_capacity(batches.len());
        let mut records = Vec::new();
        for batch in batches {
            self.state.committed(batch.number, view.clone());
            if let (Some(index_writer), Some(indexed)) = (self.index.index_writer_mut(), batch.indexed) {
                index_writer.apply(indexed, batch.head.lsn).await;
            }
            // Only after the commit: a sweep that starts in between would miss it.
            batch.expiry.into_iter().for_each(|second| self.shape.note_expiry(second));
            records.extend(batch.records);
            answers.push((batch.decided, batch.head.lsn));
        }
        self.publish(view, &head);
        self.cache_published(records);
        for (decided, lsn) in answers {
            answer(decided, lsn);
        }
    }

    /// Caches the published versions.
    fn cache_published(&self, records: Vec<(Bytes, Option<Bytes>)>) {
        for (key, row) in records {
            match row.map(|row| Record::decode(&row)) {
                Some(Ok(record)) => {
                    self.cache.keys.keep(self.id.container, record.number, key.clone());
                    self.cache.published(key, record);
                }
                Some(Err(_)) | None => self.cache.end_write(&key),
            }
        }
    }

    fn on_idle(&mut self) {
        if !self.numbering.has_drafts() {
            self.last_writes = None;
        }
        self.state.release_view();
        self.publish_without_view();
        if let Some(index_writer) = self.index.index_writer_mut() {
            index_writer.merge_when_idle();
        }
    }

    /// Makes `batch` apply only if this writer owns the partition and the head is as it wrote it.
    fn require_ownership(&self, batch: &mut Batch) {
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_planted(crate::planted::PlantedFault::OpeningIsMissed) {
            return;
        }
        self.claim.require(batch);
        batch.require(META, keyspace::head_key(self.id), Some(self.head_row.clone()));
    }

    /// Adds a new head to `batch`, which replaces the one that this writer wrote last.
    fn put_head(&mut self, row: Bytes, batch: &mut Batch) {
        self.require_ownership(batch);
        batch.put(META, keyspace::head_key(self.id), row.clone());
        self.head_row = row;
    }

    /// Commits `batch` with nothing in flight, with a new head if there is one.
    async fn commit_alone(&mut self, mut batch: Batch, head: Option<Head>) -> Result<(), CommitFault> {
        match head {
            Some(head) => self.put_head(head.encode(), &mut batch),
            None => self.require_ownership(&mut batch),
        }
        self.batch_last += 1;
        match self.store.submit(&self.lane, batch, Durability::Sync).await {
            Ok(view) => {
                self.state.committed(self.batch_last, view.clone());
                self.publish(view, &self.state.head);
                Ok(())
            }
            Err(fault) => {
                self.batch_failed(BatchFailure::of(&fault)).await;
                Err(fault)
            }
        }
    }

    async fn drain(&mut self) {
        while !self.in_flight.is_empty() {
            let result = first_commit(&mut self.in_flight).await;
            self.complete(result).await;
        }
    }
}

/// Waits for the oldest batch; only called while there is one.
async fn first_commit(in_flight: &mut VecDeque<InFlight>) -> Result<View, CommitFault> {
    match in_flight.front_mut() {
        Some(batch) => (&mut batch.commit).await,
        None => std::future::pending().await,
    }
}
