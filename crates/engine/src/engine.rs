//! The engine itself: what it is made of, how it starts and stops.

use crate::access::{Access, AccountKey};
use crate::catalog::Catalog;
use crate::jobs::Jobs;
use exec::QueryBounds;
use kv::{Durability, SpaceOptions, Store};
use model::{Ambient, ContinuationKey, Fault};
use partition::index::{ComputedReader, IndexMemory, IndexOptions};
use partition::{RecordCache, commit_fault};
use std::sync::Arc;

/// The spaces that a store must have to carry an engine.
pub const STORE_SPACES: [SpaceOptions; 8] = partition::keyspace::SPACES;

/// Memory for documents that were read lately, if not set otherwise.
const RECORD_CACHE_BYTES_DEFAULT: usize = 64 << 20;

/// How an engine works.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The account's keys.
    pub keys: Vec<AccountKey>,
    /// Request units per second that one partition serves: decides how many a new container gets.
    pub partition_throughput_max: u64,
    /// Whether a write is answered only when it is on the disk.
    pub durability: Durability,
    /// Memory for documents that were read lately.
    pub record_cache_bytes: usize,
    /// What a page of a query may take.
    pub query_bounds: QueryBounds,
    /// Sizes of the index.
    pub index: IndexOptions,
    /// Who reads the queries of computed properties, so that their values can be indexed: the engine knows no query
    /// text. What is not read is not indexed.
    pub computed_reader: ComputedReader,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            keys: Vec::new(),
            partition_throughput_max: 10_000,
            durability: Durability::Sync,
            record_cache_bytes: RECORD_CACHE_BYTES_DEFAULT,
            query_bounds: QueryBounds::default(),
            index: IndexOptions::default(),
            computed_reader: |_| None,
        }
    }
}

/// The façade over catalog, partitions and jobs of one store.
pub struct Engine {
    pub(crate) store: Store,
    /// Where writers and jobs run, whatever thread a request is on that opens a partition.
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) options: EngineOptions,
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) access: Access,
    pub(crate) record_cache: Arc<RecordCache>,
    pub(crate) index_memory: Arc<IndexMemory>,
    pub(crate) catalog: Catalog,
    pub(crate) continuation_key: ContinuationKey,
    pub(crate) jobs: Jobs,
}

impl Engine {
    /// Opens the engine on a store and starts its jobs on the current runtime.
    pub async fn open(
        store: Store,
        options: EngineOptions,
        ambient: Arc<dyn Ambient>,
    ) -> Result<Arc<Engine>, Fault> {
        let catalog =
            Catalog::open(&store, options.computed_reader, |bytes| ambient.fill_random(bytes)).await?;
        let secrets = catalog.secrets();
        let continuation_key = ContinuationKey::new(secrets.continuation);
        let access = Access::new(options.keys.clone(), secrets.token);
        let mut seed = [0; 8];
        ambient.fill_random(&mut seed);
        let record_cache = RecordCache::new(options.record_cache_bytes, u64::from_le_bytes(seed));
        let engine = Arc::new(Engine {
            store,
            runtime: tokio::runtime::Handle::current(),
            index_memory: IndexMemory::new(options.index),
            options,
            ambient,
            access,
            record_cache: Arc::new(record_cache),
            catalog,
            continuation_key,
            jobs: Jobs::default(),
        });
        Jobs::start(&engine);
        Ok(engine)
    }

    /// Stops jobs and writers in order and closes the store. Requests that come later are refused. A partition that
    /// cannot be closed does not keep the others and the store open; the first failure is returned.
    pub async fn close(&self) -> Result<(), Fault> {
        self.jobs.stop().await;
        let containers: Vec<_> = self.catalog.state().containers().cloned().collect();
        let mut closed = Ok(());
        for entry in containers.iter().flat_map(|container| &container.map.entries) {
            if let Some(partition) = entry.opened.get() {
                closed = closed.and(partition.close().await);
            }
        }
        closed.and(self.store.clone().close().await.map_err(commit_fault))
    }

    /// Who may do what.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Time and randomness.
    pub fn ambient(&self) -> &dyn Ambient {
        &*self.ambient
    }

    /// How the store is; `Ok` while it takes writes.
    pub fn health(&self) -> Result<(), Fault> {
        crate::router::health(&self.store)
    }

    /// Bytes of the store on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.store.disk_bytes()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}
