//! The handle of a physical partition: what the engine holds and calls.
//!
//! Writes go to the writer's queue; reads take the published view. Knows nothing of other partitions.

use crate::cache::{Probe, RecordCache};
use crate::clock::PartitionClock;
use crate::draft::Draft;
use crate::evaluate::{Outcomes, read_outcome};
use crate::head::Head;
use crate::index::{IndexFinding, IndexMemory, audit_index};
use crate::keyspace::{self, META, PartitionId};
use crate::owner::Owner;
use crate::published::Published;
use crate::shape::CurrentShape;
use crate::storage::read_fault;
use crate::view::{PartitionView, RecordPage, RecordScan};
use crate::writer::{Command, IndexProgress, Writer};
use arc_swap::ArcSwap;
use kv::{Batch, Durability, Lane, Store, View};
use model::{Ambient, Charge, EffectiveRange, Fault, Lsn, MissingFault, StorageFault};
use plan::{Condition, LogicalKey, Outcome, StepFault, Target, Transaction};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait for one writer; the next ones wait at the door of the queue.
const QUEUE_MAX: usize = 1024;

/// Which partition, and which part of the hash space it owns.
#[derive(Clone, Debug)]
pub struct PartitionSpec {
    /// The partition.
    pub id: PartitionId,
    /// The hashes of its documents.
    pub range: EffectiveRange,
}

/// What a partition lives in, the same for all of a store.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The store.
    pub store: Store,
    /// Records that were read lately.
    pub cache: Arc<RecordCache>,
    /// Time and randomness.
    pub ambient: Arc<dyn Ambient>,
    /// Whether a write is answered only when it is on the disk.
    pub durability: Durability,
    /// What the indexes of all partitions share.
    pub index: Arc<IndexMemory>,
}

/// What an accepted transaction answers.
#[derive(Debug)]
pub struct Executed {
    /// One outcome and charge per step.
    pub outcomes: Outcomes,
    /// The partition's position when the transaction was durable.
    pub lsn: Lsn,
}

/// Counts of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionCounts {
    /// Documents, expired ones included until they are swept.
    pub documents: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// A physical partition: one hash range, one writer.
#[derive(Debug)]
pub struct PhysicalPartition {
    spec: PartitionSpec,
    shape: Arc<CurrentShape>,
    published: Arc<ArcSwap<Published>>,
    commands: mpsc::Sender<Command>,
    progress: Arc<IndexProgress>,
    clock: Arc<PartitionClock>,
    surroundings: Surroundings,
}

/// The rows that a new partition consists of; they ride in the catalog's batch that creates it. LSNs and stamps begin
/// above `floor`.
pub fn new_partition_rows(id: PartitionId, floor: u64, batch: &mut Batch) {
    batch.put(META, keyspace::owner_key(id), Owner::first().encode());
    batch.put(META, keyspace::head_key(id), Head::first(floor).encode());
}

/// Takes a partition from its writer for good: what it has under way is refused once `batch` is committed. Rides in
/// the catalog's batch that drops the container.
pub fn delete_owner_row(id: PartitionId, batch: &mut Batch) {
    batch.delete(META, keyspace::owner_key(id));
}

impl PhysicalPartition {
    /// Opens a partition and starts its writer on the current runtime.
    pub async fn open(
        surroundings: Surroundings,
        spec: PartitionSpec,
        shape: Arc<CurrentShape>,
    ) -> Result<PhysicalPartition, Fault> {
        let view = surroundings.store.view().await.map_err(read_fault)?;
        let published =
            Arc::new(ArcSwap::from_pointee(Published::resting(&Head::default(), Lane::default())));
        let progress = Arc::new(IndexProgress::default());
        let clock = Arc::new(PartitionClock::new(spec.id, Arc::clone(&surroundings.ambient)));
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let writer = Writer::new(
            surroundings.clone(),
            spec.clone(),
            Arc::clone(&shape),
            Arc::clone(&published),
            Arc::clone(&progress),
            Arc::clone(&clock),
            view,
        )
        .await?;
        tokio::spawn(writer.run(queue));
        Ok(PhysicalPartition { spec, shape, published, commands, progress, clock, surroundings })
    }

    /// Which partition this is.
    pub fn spec(&self) -> &PartitionSpec {
        &self.spec
    }

    /// Carries out a transaction: all of it, durable, or nothing.
    pub async fn execute(&self, transaction: Transaction) -> Result<Executed, StepFault> {
        let stopped = || StepFault { index: 0, fault: writer_stopped(), charge: Charge::NONE };
        let (reply, answer) = oneshot::channel();
        let command = Command::Execute { transaction, reply };
        self.commands.send(command).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// The latest durable state.
    pub async fn view(&self) -> Result<PartitionView, Fault> {
        // Before the state: when a shape says that all expiry rows are written, the state has them.
        let shape = Arc::clone(&self.shape.load());
        let mut published = self.published.load_full();
        if !published.view.as_ref().is_some_and(View::is_live) {
            published = self.ask(|reply| Command::Wake { reply }).await??;
        }
        let view = published.view.clone().ok_or_else(writer_stopped)?;
        Ok(PartitionView {
            view: view.into(),
            cache: Arc::clone(&self.surroundings.cache),
            index: published.index.clone(),
            partition: self.spec.id,
            shape,
            lsn: published.lsn,
            counts: published.counts,
            now: self.clock.now(),
        })
    }

    /// Begins changes on the latest durable state that are not committed.
    pub async fn draft(&self) -> Result<Draft, Fault> {
        let ambient = Arc::clone(&self.surroundings.ambient);
        Draft::begin(self.view().await?, Arc::clone(&self.clock), ambient).await
    }

    /// Reads one document from the latest durable state; tells that state's position too.
    pub async fn read(
        &self,
        key: &LogicalKey,
        target: &Target,
        condition: &Condition,
    ) -> Result<(Outcome, Charge, Lsn), Fault> {
        let Target::Id(id) = target else {
            let view = self.view().await?;
            let (outcome, charge) = view.read(key, target, condition).await?;
            return Ok((outcome, charge, view.lsn()));
        };
        let record_key = keyspace::document_key(self.spec.id.container, key, id.as_str().into());
        let cache = &self.surroundings.cache;
        let (record, lsn) = match cache.probe(&record_key) {
            Probe::Hit(record) => {
                let published = self.published.load();
                if published.lane.is_rewound() || published.has_ended {
                    // The version may be gone. The writer finds out, and clears the cache.
                    let view = self.view().await?;
                    (view.record(&record_key).await?, view.lsn())
                } else {
                    // The client has seen this version, which may be newer than the position read a moment ago.
                    let lsn = published.lsn.max(record.lsn);
                    (record, lsn)
                }
            }
            // The leave is older than the view, as the cache wants it.
            Probe::Miss(leave) => {
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
        let charge = Charge::read(record.document.bytes().len());
        Ok((read_outcome(record, condition)?, charge, lsn))
    }

    /// Reads a page of documents in key order from the latest durable state.
    pub async fn page(&self, scan: &RecordScan) -> Result<RecordPage, Fault> {
        self.view().await?.page(scan).await
    }

    /// The partition's position.
    pub fn lsn(&self) -> Lsn {
        self.published.load().lsn
    }

    /// Whether its writer has ended: it was closed, or another one has written the partition. It must be opened again.
    pub fn has_ended(&self) -> bool {
        self.commands.is_closed()
    }

    /// How much it holds.
    pub fn counts(&self) -> PartitionCounts {
        self.published.load().counts
    }

    /// Registers or moves a consumer of the log: entries above its position stay.
    pub async fn set_consumer(&self, name: &str, lsn: Lsn) -> Result<(), Fault> {
        let name = name.to_owned();
        self.ask(|reply| Command::SetConsumer { name, lsn, reply }).await?
    }

    /// Drops entries of deletions and of replaced versions that every consumer has passed, a bounded number; returns
    /// whether there are more.
    pub async fn trim_log(&self) -> Result<bool, Fault> {
        self.ask(|reply| Command::Trim { reply }).await?
    }

    /// The container's definition was replaced: an index for another policy is made, if it asks for one. A writer
    /// with a full queue sees it anyway.
    pub fn reshape(&self) {
        let _ = self.commands.try_send(Command::Reshape);
    }

    /// How much of the index for the container's policy is there, in percent; 100 when it is in use.
    pub fn index_progress(&self) -> u8 {
        let wanted = self.shape.load().rules.fingerprint();
        if self.published.load().policy == Some(wanted) { 100 } else { self.progress.percent() }
    }

    /// Compares the index with the records; finds nothing while there is no index.
    pub async fn audit_index(&self) -> Result<Vec<IndexFinding>, Fault> {
        let view = self.view().await?;
        match view.index() {
            Some(reader) => audit_index(reader, self.spec.id.container, &self.spec.range).await,
            None => Ok(Vec::new()),
        }
    }

    /// Stops the writer in order: what waits is carried out, reserved ranges are given back.
    pub async fn close(&self) -> Result<(), Fault> {
        self.ask(|reply| Command::Close { reply }).await?
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| writer_stopped())?;
        answer.await.map_err(|_| writer_stopped())
    }
}

fn writer_stopped() -> Fault {
    StorageFault::Unavailable { cause: "the partition has stopped".to_owned() }.into()
}
