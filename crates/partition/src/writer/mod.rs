//! The one writer of a partition: gathers what waits, decides, commits, publishes, answers.
//!
//! While a batch is on its way to the disk the next one gathers. An answer, a refusal included, is sent when the
//! state it rests on is durable. If a batch fails, every later one of this writer fails too (the store's lane sees
//! to that), the writer reads its head again and goes on from what is really there. What is really there is known
//! only when the store was reopened: until then the writer refuses, since a batch whose outcome is unknown may
//! still come to light, with LSNs and numbers in it that must not be given twice.

mod consumers;
mod ending;
mod indexing;
mod recovery;

use self::recovery::Doubt;
use crate::cache::RecordCache;
use crate::carryover::Carryover;
use crate::clock::PartitionClock;
use crate::evaluate::evaluate;
use crate::head::Head;
use crate::index::{Changes, Home, IndexLife, IndexProgress, Keeper, Prepared, RunNumbers};
use crate::keyspace::{self, EXPIRY, META, PartitionId, RECORDS};
use crate::log::load_consumers;
use crate::owner::Claim;
use crate::partition::{Executed, IdleClose, PartitionSpec, Surroundings, Unexecuted};
use crate::published::Published;
use crate::record::Record;
use crate::shape::CurrentShape;
use crate::staging::{Context, TRANSACTION_BYTES_MAX};
use crate::state::{BatchNumber, Rows, State};
use crate::verdicts::{Decided, answer, full_fault, is_shrinking};
use arc_swap::ArcSwap;
use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, Lane, Store, View};
use model::{Ambient, Fault, Lsn, Ticks, Work};
use plan::{StepFault, Transaction};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Transactions of one batch.
const BATCH_TRANSACTIONS_MAX: usize = 256;
/// Bytes of rows after which a batch is closed.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
// A batch is closed only after the transaction that fills it, and the head comes on top.
const _: () = assert!(BATCH_BYTES_MAX + TRANSACTION_BYTES_MAX + HEAD_BYTES_MAX <= kv::BATCH_BYTES_MAX);
/// Bytes of the head row with its key, at most.
const HEAD_BYTES_MAX: usize = 1024;
/// Batches on their way to the disk.
const BATCHES_IN_FLIGHT_MAX: usize = 2;
/// Transactions that make a batch of their own worth while beside one on its way; fewer wait for that one, since every
/// batch costs a head row, a segment of the index and a publication.
const BESIDE_ANOTHER_MIN: usize = 16;
/// An idle writer gives its view back after this time: an open view stops version cleanup of the whole store.
const VIEW_IDLE_MAX: Duration = Duration::from_secs(1);

/// Where the answer to a transaction goes.
pub(crate) type Reply = oneshot::Sender<Result<Executed, Unexecuted>>;

/// What a writer can be asked.
pub(crate) enum Command {
    Execute {
        transaction: Transaction,
        reply: Reply,
    },
    /// A reader wants the latest durable state and none is published.
    Wake {
        reply: oneshot::Sender<Result<Arc<Published>, Fault>>,
    },
    SetConsumer {
        name: String,
        lsn: Lsn,
        reply: oneshot::Sender<Result<(), Fault>>,
    },
    Trim {
        reply: oneshot::Sender<Result<bool, Fault>>,
    },
    /// How far the expiry rows were written anew.
    Checkpoint {
        row: Bytes,
        reply: oneshot::Sender<Result<(), Fault>>,
    },
    /// The container's definition was replaced.
    Reshape,
    Close {
        reply: oneshot::Sender<Result<(), Fault>>,
    },
    /// Nobody has used the partition for a while.
    CloseIdle {
        reply: oneshot::Sender<Result<IdleClose, Fault>>,
    },
}

/// A batch on its way to the disk.
struct InFlight {
    number: BatchNumber,
    commit: Pin<Box<dyn Future<Output = Result<View, CommitFault>> + Send>>,
    head: Head,
    decided: Vec<Decided>,
    /// The records it changes, as it leaves them.
    records: Vec<(Bytes, Option<Bytes>)>,
    /// What it does to the index.
    indexed: Option<Prepared>,
    /// The first second at which something of it expires.
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
    state: State,
    /// What shows that the partition is this writer's.
    claim: Claim,
    /// The head as the last submitted batch leaves it in the store.
    head_row: Bytes,
    /// Whether the partition is not this writer's any more.
    has_ended: bool,
    /// The head with which this writer began, or began again after an unknown outcome.
    first_head: Head,
    /// The index that serves is at the position of the published view.
    index: IndexLife,
    consumers: BTreeMap<String, Lsn>,
    in_flight: VecDeque<InFlight>,
    /// What is known of a batch that failed, until the state was read again.
    doubt: Option<Doubt>,
    /// Records that a failed batch may or may not have changed: nobody may cache them before it is known.
    unsettled: Vec<Bytes>,
    batch_last: BatchNumber,
    /// Commands taken from the queue that must run again or wait for the batches in flight.
    backlog: VecDeque<Command>,
    /// Transactions at the front of the backlog that each get a batch of their own.
    alone: usize,
}

impl Writer {
    pub(crate) async fn new(
        surroundings: Surroundings,
        spec: PartitionSpec,
        shape: Arc<CurrentShape>,
        published: Arc<ArcSwap<Published>>,
        progress: Arc<IndexProgress>,
        carryover: Arc<Carryover>,
    ) -> Result<Writer, Fault> {
        let id = spec.id;
        let (claim, view) = Claim::take(&surroundings.store, id).await?;
        #[cfg(feature = "planted-faults")]
        crate::planted::stall_opening().await;
        let (head_row, head) = Head::load_row(&view, id).await?;
        let clock = Arc::clone(&carryover.clock);
        clock.begin_at(head.time.seconds());
        let consumers = load_consumers(&view, id).await?;
        let Surroundings { store, cache, ambient, durability, index: memory, metrics } = surroundings;
        let run_numbers = Arc::new(RunNumbers::of_epoch(claim.epoch()));
        let index_home = Home { store: store.clone(), partition: id, memory, run_numbers, metrics };
        let index = IndexLife::new(index_home, spec.range.clone(), progress);
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
            state: State::new(view.clone(), head.clone().reopened()),
            claim,
            head_row,
            has_ended: false,
            first_head: head.clone().reopened(),
            index,
            consumers,
            in_flight: VecDeque::new(),
            doubt: None,
            unsettled: Vec::new(),
            batch_last: 0,
            backlog: VecDeque::new(),
            alone: 0,
        };
        // What an earlier writer has committed and could not note any more.
        writer.shape.note_expiry(0);
        writer.open_index(&view, &head).await?;
        writer.publish(view, &writer.state.head.clone());
        Ok(writer)
    }

    /// Works until it is closed or nobody can ask any more.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        loop {
            if self.has_ended {
                return self.give_back_rest(&mut queue).await;
            }
            if let Some(command) = self.next_from_backlog() {
                if self.handle(command, &mut queue).await.is_break() {
                    return;
                }
                continue;
            }
            if self.in_flight.is_empty() && self.index.waits_for_rest() {
                self.take_over().await;
                continue;
            }
            let takes = self.takes_commands();
            tokio::select! {
                biased;
                result = first_commit(&mut self.in_flight), if !self.in_flight.is_empty() => self.complete(result).await,
                news = self.index.news(), if !self.index.has_install() => self.hear(news),
                command = queue.recv(), if takes => match command {
                    Some(command) => self.backlog.push_back(command),
                    None => { self.drain().await; if self.backlog.is_empty() { return } }
                },
                () = tokio::time::sleep(VIEW_IDLE_MAX), if self.in_flight.is_empty() && self.state.is_awake() && self.doubt.is_none() => {
                    self.rest();
                }
            }
        }
    }

    /// Whether another batch may be gathered.
    fn has_room(&self) -> bool {
        let is_enough = self.in_flight.is_empty() || self.backlog.len() >= BESIDE_ANOTHER_MIN;
        is_enough && self.may_gather()
    }

    fn may_gather(&self) -> bool {
        self.in_flight.len() < BATCHES_IN_FLIGHT_MAX
            && !self.index.waits_for_rest()
            && !self.index.keeper().is_some_and(Keeper::is_overfull)
    }

    /// Whether to take commands from the queue: not while one waits for the batches in flight.
    fn takes_commands(&self) -> bool {
        self.may_gather()
            && self.backlog.len() < BESIDE_ANOTHER_MIN
            && self.backlog.iter().all(|command| matches!(command, Command::Execute { .. }))
    }

    /// Commands that touch more than documents run alone, with nothing in flight.
    fn next_from_backlog(&mut self) -> Option<Command> {
        match self.backlog.front()? {
            Command::Execute { .. } if self.has_room() => self.backlog.pop_front(),
            Command::Execute { .. } => None,
            Command::Wake { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Close { .. }
            | Command::CloseIdle { .. } => {
                if self.in_flight.is_empty() {
                    self.backlog.pop_front()
                } else {
                    None
                }
            }
        }
    }

    async fn handle(
        &mut self,
        command: Command,
        queue: &mut mpsc::Receiver<Command>,
    ) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        match command {
            Command::Execute { transaction, reply } => self.gather(transaction, reply, queue).await,
            other if !self.in_flight.is_empty() => self.backlog.push_back(other),
            Command::Wake { reply } => {
                let _ = reply.send(self.wake().await);
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
            Command::Close { reply } => {
                let closed = self.close().await;
                self.give_back_rest(queue).await;
                let _ = reply.send(closed);
                return Break(());
            }
            Command::CloseIdle { reply } => {
                let closed = self.close_idle().await;
                let has_ended = closed.as_ref().is_ok_and(|closed| *closed == IdleClose::Closed);
                if has_ended {
                    self.give_back_rest(queue).await;
                }
                let _ = reply.send(closed);
                return if has_ended { Break(()) } else { Continue(()) };
            }
        }
        Continue(())
    }

    /// Decides `transaction` and what waits behind it, and submits the batch.
    async fn gather(&mut self, transaction: Transaction, reply: Reply, queue: &mut mpsc::Receiver<Command>) {
        if let Err(fault) = self.wake().await {
            if self.has_ended {
                // Given back, for who owns the partition now.
                self.backlog.push_front(Command::Execute { transaction, reply });
                return;
            }
            let _ = reply.send(Err(StepFault { index: 0, fault, work: Work::Free }.into()));
            return;
        }
        self.check_policy();
        let number = self.batch_last + 1;
        let now = self.clock.now_ticks();
        if self.state.head.time.seconds() > now.seconds() {
            // The partition was written under a wrong clock and has returned to the right one.
            self.state.head.time = Ticks::from_seconds(now.seconds());
        }
        let full = full_fault(&self.store);
        let mut batch_rows = Rows::new();
        let mut batch_bytes = 0;
        let mut changes = Changes::new();
        let mut decided = Vec::new();
        let transactions_max = if self.alone > 0 { 1 } else { BATCH_TRANSACTIONS_MAX };
        self.alone = self.alone.saturating_sub(1);
        let mut next = Some((transaction, reply));
        while let Some((transaction, reply)) = next {
            let verdict = match &full {
                Some(fault) if !is_shrinking(&transaction) => {
                    Err(StepFault { index: 0, fault: fault.clone(), work: Work::Free })
                }
                Some(_) | None => {
                    // For each transaction: once a replaced definition was answered, nothing is decided by the old.
                    let shape = Arc::clone(&self.shape.load());
                    let context = Context {
                        partition: self.id,
                        shape: &shape,
                        now,
                        lsn_consumed: self.lsn_consumed(),
                        ambient: &*self.ambient,
                    };
                    evaluate(context, &self.state, &transaction).await.map(|(accepted, outcomes)| {
                        batch_bytes += accepted.bytes;
                        self.state.head = accepted.head;
                        self.state.submitted(number, &accepted.rows);
                        batch_rows.extend(accepted.rows);
                        changes.extend(accepted.changes);
                        outcomes
                    })
                }
            };
            decided.push(Decided { transaction, verdict, reply });
            let room = decided.len() < transactions_max && batch_bytes < BATCH_BYTES_MAX;
            next = if room { self.next_waiting(queue) } else { None };
        }
        self.clock.reach(self.state.head.time.seconds());
        self.submit(number, batch_rows, changes, decided);
    }

    /// The next transaction that waits, if nothing else stands before it.
    fn next_waiting(&mut self, queue: &mut mpsc::Receiver<Command>) -> Option<(Transaction, Reply)> {
        let command = match self.backlog.pop_front() {
            Some(command) => command,
            None => queue.try_recv().ok()?,
        };
        match command {
            Command::Execute { transaction, reply } => Some((transaction, reply)),
            other @ (Command::Wake { .. }
            | Command::SetConsumer { .. }
            | Command::Trim { .. }
            | Command::Checkpoint { .. }
            | Command::Reshape
            | Command::Close { .. }
            | Command::CloseIdle { .. }) => {
                self.backlog.push_front(other);
                None
            }
        }
    }

    /// Hands the batch to the store. Refusals without any row ride with the batch before, whose state they rest on.
    fn submit(&mut self, number: BatchNumber, rows: Rows, changes: Changes, decided: Vec<Decided>) {
        if rows.is_empty() {
            match self.in_flight.back_mut() {
                Some(before) => before.decided.extend(decided),
                None => answer(decided, self.state.head.lsn),
            }
            return;
        }
        self.batch_last = number;
        let reserved = self.state.head.reserve();
        let mut batch = Batch::default();
        let mut grows = false;
        let mut records = Vec::new();
        let mut expiry: Option<u64> = None;
        for ((space, key), row) in rows {
            if space == EXPIRY && row.is_some() {
                let second = keyspace::parse_expiry_key(&key).map(|(second, _)| second);
                expiry = expiry.into_iter().chain(second).min();
            }
            if space == RECORDS {
                self.cache.shut(&key);
                records.push((key.clone(), row.clone()));
            }
            match row {
                Some(row) => batch.put(space, key, row),
                None => batch.delete(space, key),
            }
        }
        for one in &decided {
            grows |= one.verdict.is_ok() && !is_shrinking(&one.transaction);
        }
        if !grows {
            batch.mark_shrinking();
        }
        self.put_head(self.state.head.encode(), &mut batch);
        let durability = if reserved { Durability::Sync } else { self.durability };
        let commit = Box::pin(self.store.submit(&self.lane, batch, durability));
        self.index.home().metrics.batch_transactions.observe(decided.len() as f64);
        // The disk is busy with the batch meanwhile.
        self.index.keeper().into_iter().for_each(Keeper::settle);
        let indexed = self.index.keeper().map(|keeper| Prepared::new(keeper.rules(), changes));
        self.in_flight.push_back(InFlight {
            number,
            commit,
            head: self.state.head.clone(),
            decided,
            records,
            indexed,
            expiry,
        });
    }

    /// The first batch in flight has come back.
    async fn complete(&mut self, result: Result<View, CommitFault>) {
        let Some(batch) = self.in_flight.pop_front() else {
            return;
        };
        let mut view = match result {
            Ok(view) => view,
            Err(fault) => return self.recover(batch, fault).await,
        };
        // Batches of one engine commit share its view: what it shows of later ones must be in the index too.
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

    /// These batches are durable: readers see them from now on, and those who wait are told.
    async fn committed(&mut self, batches: Vec<InFlight>, view: View) {
        let Some(head) = batches.last().map(|batch| batch.head.clone()) else { return };
        let mut answers = Vec::with_capacity(batches.len());
        let mut records = Vec::new();
        for batch in batches {
            self.state.committed(batch.number, view.clone());
            if let (Some(keeper), Some(indexed)) = (self.index.keeper_mut(), batch.indexed) {
                keeper.apply(indexed, batch.head.lsn).await;
            }
            // Only when it is committed: a sweep that begins in between would miss it.
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

    /// Lets readers find these versions in the cache.
    fn cache_published(&self, records: Vec<(Bytes, Option<Bytes>)>) {
        for (key, row) in records {
            match row.map(|row| Record::decode(&row)) {
                Some(Ok(record)) => {
                    self.cache.keys.keep(self.id.container, record.number, key.clone());
                    self.cache.published(key, record);
                }
                Some(Err(_)) | None => self.cache.opened(&key),
            }
        }
    }

    fn rest(&mut self) {
        self.state.rest();
        self.rest_published();
        if let Some(keeper) = self.index.keeper_mut() {
            keeper.merge_at_rest();
        }
    }

    /// Makes `batch` apply only if the partition is this writer's and as it left it.
    fn require_ownership(&self, batch: &mut Batch) {
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_planted(crate::planted::PlantedFault::OpeningIsMissed) {
            return;
        }
        self.claim.require(batch);
        batch.require(META, keyspace::head_key(self.id), Some(self.head_row.clone()));
    }

    /// Adds a new head to `batch`, which takes the place of the one that this writer wrote last.
    fn put_head(&mut self, row: Bytes, batch: &mut Batch) {
        self.require_ownership(batch);
        batch.put(META, keyspace::head_key(self.id), row.clone());
        self.head_row = row;
    }

    /// Commits rows that stand alone, with nothing in flight, and with a new head if there is one.
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
                self.begin_doubt(Doubt::of(&fault)).await;
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
