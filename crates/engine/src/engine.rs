//! The engine itself: its parts, start and stop.

use crate::admission::AdmissionBounds;
use crate::authorisation::{Access, AccountKey};
use crate::catalog::Catalog;
use crate::isolation::Isolation;
use crate::jobs::Jobs;
use crate::join::join_all;
use crate::metrics::EngineMetrics;
use crate::request_memory::{MemoryKind, RequestMemory, RequestMemoryOptions};
use crate::scripts::{ScriptOptions, ScriptOrder};
use crate::slot::{CLOSING_MAX, Slots};
use crate::split::SplitRequests;
use eval::QueryMemory;
use exec::QueryBounds;
use kv::{Durability, SpaceOptions, Store};
use model::{Ambient, ContinuationKey, Fault};
use partition::index::{ComputedReader, IndexMemory, IndexOptions};
use partition::{PartitionEnvironment, PartitionMetrics, RecordCache, commit_fault};
use plan::DocumentLink;
use script::Workers;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::runtime::Handle;

/// The spaces that the store of an engine must have.
pub const STORE_SPACES: [SpaceOptions; 9] = partition::keyspace::SPACES;

/// Default size of the record cache.
const RECORD_CACHE_BYTES_DEFAULT: usize = 64 << 20;

/// Default limit of the bytes that all queries hold together.
const QUERY_MEMORY_BYTES_DEFAULT: usize = 1 << 30;

/// Default idle time in seconds after which a partition is closed.
const PARTITION_IDLE_SECONDS: u64 = 300;

/// Default size of the documents of a partition above which it is split.
const PARTITION_BYTES_MAX: u64 = 50 << 30;

/// As published: one request unit per second for each gigabyte.
pub const STORED_BYTES_PER_UNIT: u64 = 1 << 30;

/// Default limit of the documents of one partition key.
const LOGICAL_PARTITION_BYTES_MAX: u64 = 20 << 30;

/// Default maximum number of open partitions.
const OPEN_PARTITIONS_MAX: usize = 4096;

/// Options of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The account's keys.
    pub keys: Vec<AccountKey>,
    /// Request units per second that one partition serves at most.
    pub partition_throughput_max: u64,
    /// Request units per second of each partition of a new container that needs more than one.
    pub partition_throughput_new: u64,
    /// Whether requests beyond the provisioned throughput are refused.
    pub throughput: ThroughputMode,
    /// Bytes of documents for which the lowest manual throughput has one request unit per second.
    pub stored_bytes_per_unit: u64,
    /// Bytes of documents above which a partition is split.
    pub partition_bytes_max: u64,
    /// Bytes of the documents of one partition key above which writes that add to them are refused.
    pub logical_partition_bytes_max: u64,
    /// Whether a write is acknowledged only after it was synced to disk.
    pub durability: Durability,
    /// Size of the record cache.
    pub record_cache_bytes: usize,
    /// Limits of a page of a query.
    pub query_bounds: QueryBounds,
    /// The runtime with the threads to which long queries are moved; without one they stay where they are, as
    /// simulations and tests require.
    pub query_threads: Option<Handle>,
    /// Limits of concurrent work there.
    pub admission: AdmissionBounds,
    /// Sizes of the index.
    pub index: IndexOptions,
    /// Bytes that all queries may hold together.
    pub query_memory_bytes: usize,
    /// Memory for bodies and answers of requests in progress.
    pub request_memory: RequestMemoryOptions,
    /// How long and how many partitions stay open.
    pub partitions: PartitionBounds,
    /// Parses the queries of computed properties, once for each definition: the engine does not know query text. A
    /// container with a property that cannot be parsed cannot be queried.
    pub computed_reader: ComputedReader,
    /// How queries see the links of documents; the RID alone by default.
    pub document_link: DocumentLink,
    /// How scripts are executed; without it they are only stored.
    pub scripts: Option<ScriptOptions>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            keys: Vec::new(),
            partition_throughput_max: 10_000,
            partition_throughput_new: 6_000,
            throughput: ThroughputMode::Measure,
            stored_bytes_per_unit: STORED_BYTES_PER_UNIT,
            partition_bytes_max: PARTITION_BYTES_MAX,
            logical_partition_bytes_max: LOGICAL_PARTITION_BYTES_MAX,
            durability: Durability::Sync,
            record_cache_bytes: RECORD_CACHE_BYTES_DEFAULT,
            query_bounds: QueryBounds::default(),
            query_threads: None,
            admission: AdmissionBounds::default(),
            index: IndexOptions::default(),
            query_memory_bytes: QUERY_MEMORY_BYTES_DEFAULT,
            request_memory: RequestMemoryOptions::default(),
            partitions: PartitionBounds::default(),
            computed_reader: |_| None,
            document_link: |rid| rid.to_string(),
            scripts: None,
        }
    }
}

/// What happens to requests beyond the provisioned throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThroughputMode {
    /// They are counted.
    Measure,
    /// They are refused with a delay.
    Enforce,
}

/// How long and how many partitions stay open. A closed one is opened again by the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionBounds {
    /// Seconds without a request after which a partition is closed.
    pub idle_seconds: u64,
    /// Maximum number of open partitions; beyond it, the least recently used ones are closed.
    pub open_max: usize,
}

impl Default for PartitionBounds {
    fn default() -> PartitionBounds {
        PartitionBounds { idle_seconds: PARTITION_IDLE_SECONDS, open_max: OPEN_PARTITIONS_MAX }
    }
}

/// Memory in bytes of everything that grows with load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Recently read or written documents.
    pub records: u64,
    /// Blocks read from the store.
    pub blocks: u64,
    /// Blocks of index runs.
    pub index_blocks: u64,
    /// Rows that the store has not written to tables yet.
    pub memtables: u64,
    /// Index entries that are not on disk yet.
    pub index_segments: u64,
    /// Memory of index runs: their document numbers, and where their blocks begin.
    pub index_runs: u64,
    /// Values that queries hold.
    pub queries: u64,
    /// Answers that clients have not read yet.
    pub answers: u64,
    /// Request bodies.
    pub bodies: u64,
}

impl MemoryUse {
    /// Every figure with its name.
    pub(crate) fn named(self) -> [(&'static str, u64); 9] {
        [
            ("records", self.records),
            ("blocks", self.blocks),
            ("index_blocks", self.index_blocks),
            ("memtables", self.memtables),
            ("index_segments", self.index_segments),
            ("index_runs", self.index_runs),
            ("queries", self.queries),
            ("answers", self.answers),
            ("bodies", self.bodies),
        ]
    }
}

/// The façade over catalog, partitions and jobs of one store.
pub struct Engine {
    pub(crate) store: Store,
    pub(crate) slots: Arc<Slots>,
    pub(crate) options: EngineOptions,
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) access: Access,
    pub(crate) record_cache: Arc<RecordCache>,
    pub(crate) index_memory: Arc<IndexMemory>,
    pub(crate) partition_metrics: PartitionMetrics,
    pub(crate) metrics: EngineMetrics,
    pub(crate) query_memory: Arc<QueryMemory>,
    pub(crate) request_memory: Arc<RequestMemory>,
    pub(crate) catalog: Catalog,
    pub(crate) continuation_key: ContinuationKey,
    pub(crate) jobs: Jobs,
    pub(crate) split_requests: SplitRequests,
    pub(crate) isolation: Isolation,
    pub(crate) workers: Option<Workers>,
    pub(crate) script_order: ScriptOrder,
    /// Whether a partition was ever paused; otherwise queries need not look.
    pub(crate) has_pauses: AtomicBool,
}

impl Engine {
    /// Opens the engine on a store and starts its jobs on the current runtime.
    pub async fn open(
        store: Store,
        options: EngineOptions,
        ambient: Arc<dyn Ambient>,
    ) -> Result<Arc<Engine>, Fault> {
        let fill_random = |bytes: &mut [u8]| ambient.fill_random(bytes);
        let catalog = Catalog::open(&store, options.computed_reader, options.throughput, fill_random).await?;
        let secrets = catalog.secrets();
        let continuation_key = ContinuationKey::new(secrets.continuation);
        let access = Access::new(options.keys.clone(), secrets.token);
        let mut seed = [0; 8];
        ambient.fill_random(&mut seed);
        let record_cache = Arc::new(RecordCache::new(options.record_cache_bytes, u64::from_le_bytes(seed)));
        let index_memory = IndexMemory::new(options.index);
        let partition_metrics = PartitionMetrics::default();
        let environment = PartitionEnvironment {
            store: store.clone(),
            cache: Arc::clone(&record_cache),
            ambient: Arc::clone(&ambient),
            durability: options.durability,
            index: Arc::clone(&index_memory),
            metrics: partition_metrics.clone(),
        };
        let engine = Arc::new(Engine {
            isolation: Isolation::new(&options, Arc::clone(&ambient)),
            workers: options.scripts.as_ref().map(ScriptOptions::workers),
            script_order: ScriptOrder::default(),
            store,
            slots: Slots::new(environment, Handle::current()),
            index_memory,
            partition_metrics,
            metrics: EngineMetrics::default(),
            query_memory: Arc::new(QueryMemory::new(options.query_memory_bytes)),
            request_memory: RequestMemory::new(options.request_memory),
            options,
            ambient,
            access,
            record_cache,
            catalog,
            continuation_key,
            jobs: Jobs::default(),
            has_pauses: AtomicBool::new(false),
            split_requests: SplitRequests::default(),
        });
        Jobs::start(&engine);
        Ok(engine)
    }

    /// The number of long queries that run separately from other requests, and of those that wait for this.
    pub(crate) fn long_queries(&self) -> (usize, usize) {
        self.isolation.running_and_waiting()
    }

    /// Stops all running queries, which are refused with a retry delay, and starts no more long ones: for a server that
    /// stops.
    pub fn stop_queries(&self) {
        self.isolation.stop();
    }

    /// Stops jobs and writers in order and closes the store. Later requests are refused. A partition that cannot be
    /// closed does not prevent the closing of the others and of the store; the first failure is returned.
    pub async fn close(&self) -> Result<(), Fault> {
        self.jobs.stop().await;
        self.split_requests.clear();
        self.slots.stop_opening();
        let containers: Vec<_> = self.catalog.state().containers().cloned().collect();
        let maps: Vec<_> = containers.iter().map(|container| container.map.load()).collect();
        let slots: Vec<_> = maps.iter().flat_map(|map| &map.entries).collect();
        let mut closed = Ok(());
        // The heads of all partitions of a chunk are written by few group commits.
        for chunk in slots.chunks(CLOSING_MAX) {
            let closing = chunk.iter().map(|slot| slot.close(&self.slots)).collect();
            closed = join_all(closing).await.into_iter().fold(closed, Result::and);
        }
        closed.and(self.store.clone().close().await.map_err(commit_fault))
    }

    /// Stops housekeeping and waits until the running steps have ended, for callers that need an unchanging store.
    pub async fn stop_jobs(&self) {
        self.jobs.stop().await;
    }

    /// Number of open partitions.
    pub fn open_partitions(&self) -> usize {
        self.slots.open_count()
    }

    /// Authorisation.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Memory of bodies and answers.
    pub fn request_memory(&self) -> &Arc<RequestMemory> {
        &self.request_memory
    }

    /// The current memory use of everything that grows with load.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        let store = self.store.memory_use();
        let records = self.record_cache.memory_bytes();
        // A recently written document is in the cache and in a memtable, but in memory only once.
        let shared = store.memtable_bytes_largest.min(records);
        MemoryUse {
            records: records - shared,
            blocks: store.blocks_bytes,
            index_blocks: self.index_memory.block_bytes(),
            memtables: store.memtable_bytes,
            index_segments: self.index_memory.held_bytes() as u64,
            index_runs: self.index_memory.run_bytes() as u64,
            queries: self.query_memory.bytes_drawn() as u64,
            answers: self.request_memory.reserved_bytes(MemoryKind::Answer) as u64,
            bodies: self.request_memory.reserved_bytes(MemoryKind::Body) as u64,
        }
    }

    /// Time and randomness.
    pub fn ambient(&self) -> &dyn Ambient {
        &*self.ambient
    }

    /// The health of the store; `Ok` while it accepts writes.
    pub fn health(&self) -> Result<(), Fault> {
        crate::router::health(&self.store)
    }

    /// Bytes of the store on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.store.disk_bytes()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}
