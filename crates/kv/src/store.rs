//! The public interface: opens a store, accepts batches, returns views.
//!
//! Knows no engine: this file holds what is common to all backends (`backend`).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::backend::{AnyBackend, Backend, DiskSpace, StoreMemory};
use crate::batch::{Batch, Durability, IngestId, Space, SpaceOptions, check_key};
use crate::commit::{CommitMode, Grouped, WORK_TIMEOUT, block_on};
use crate::embedded::{self, Embedded, EmbeddedOptions};
use crate::fault::{Cause, CommitFault, Health, OpenFault, ReadFault};
use crate::ingest;
use crate::lane::{Lane, Lanes};
use crate::memory::Memory;
use crate::metrics::StoreMetrics;
#[cfg(feature = "round-trip")]
use crate::round_trip::{Link, RoundTrip};
use crate::rows::AnyRows;
use crate::script::FaultScript;
use crate::view::View;

/// Why creating a store without files cannot fail.
pub(crate) const THREAD_STARTS: &str = "the system has a thread left for a new store";

/// An ordered key-value store. Clones share it; it ends with [`Store::close`] or with the last clone.
///
/// Dropping the last clone commits waiting batches and closes the files, but does not flush: the next start has more to
/// recover. Views that are still held keep the files open.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    backend: AnyBackend,
    space_count: usize,
    announcements: Mutex<Announcements>,
}

/// The ingests so far. Held while one is announced: announcements are made in order, in one lane.
struct Announcements {
    /// Number of the last ingest.
    last_number: u64,
    lane: Lane,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Store")
    }
}

impl Store {
    /// A new store in memory.
    pub fn memory(spaces: &[SpaceOptions], mode: CommitMode) -> Store {
        Store::grouped(Memory::new(spaces.len()).into(), spaces.len(), 0, mode).expect(THREAD_STARTS)
    }

    /// Opens the store in a folder, or creates one. Removes ingests that were never named.
    ///
    /// Blocking: reads and writes files, so it should not run on an async worker.
    pub fn open(options: EmbeddedOptions) -> Result<Store, OpenFault> {
        let path = options.path.clone();
        let opened = Store::open_rows(options);
        if let Err(OpenFault::Engine { .. }) = &opened
            // The engine has read a part of every table and does not say which one is damaged.
            && let Some(fault) = embedded::damaged_table(&path)
        {
            return Err(fault);
        }
        opened
    }

    fn open_rows(options: EmbeddedOptions) -> Result<Store, OpenFault> {
        let path = options.path.clone();
        let space_count = options.spaces.len();
        let rows = AnyRows::from(Embedded::open(options)?);
        let prepared = block_on(async {
            ingest::remove_unnamed(&rows).await?;
            ingest::last_number(&rows).await
        });
        let last_ingest = prepared.map_err(|cause| OpenFault::Engine { path: path.clone(), cause })?;
        Store::grouped(rows, space_count, last_ingest, CommitMode::Thread)
            .map_err(|source| OpenFault::Io { path, source })
    }

    /// A store over the rows of `inner` that fails where the script says. `inner` itself ends: it should have no other
    /// clone, and its views no longer protect what they see.
    pub fn faulty(inner: Store, script: FaultScript) -> Store {
        let space_count = inner.shared.space_count;
        let last_ingest = inner.shared.announcements().last_number;
        let (rows, mode) = match &inner.shared.backend {
            AnyBackend::Grouped(grouped) => (grouped.rows(), grouped.mode()),
            #[cfg(feature = "round-trip")]
            AnyBackend::RoundTrip(remote) => (remote.rows(), CommitMode::Thread),
        };
        let rows = rows.under(script, space_count, mode);
        drop(inner);
        Store::grouped(rows, space_count, last_ingest, mode).expect(THREAD_STARTS)
    }

    /// A new store in memory over a connection on which every call takes a round trip. For tests: it needs a runtime,
    /// and its lanes are fully independent.
    #[cfg(feature = "round-trip")]
    pub fn round_trip(spaces: &[SpaceOptions], link: Link) -> Store {
        let rows = AnyRows::from(Memory::new(spaces.len()));
        let backend = AnyBackend::RoundTrip(RoundTrip::new(rows, spaces.len(), link));
        Store::over(backend, spaces.len(), 0)
    }

    /// A store that commits in groups.
    pub(crate) fn grouped(
        rows: AnyRows,
        space_count: usize,
        last_ingest: u64,
        mode: CommitMode,
    ) -> io::Result<Store> {
        let backend = AnyBackend::Grouped(Grouped::new(rows, space_count, mode, WORK_TIMEOUT)?);
        Ok(Store::over(backend, space_count, last_ingest))
    }

    pub(crate) fn over(backend: AnyBackend, space_count: usize, last_number: u64) -> Store {
        let announcements = Mutex::new(Announcements { last_number, lane: Lane::default() });
        Store { shared: Arc::new(Shared { backend, space_count, announcements }) }
    }

    /// A new chain of batches.
    pub fn lane(&self) -> Lane {
        Lane::default()
    }

    /// Submits a batch. The call fixes its position after all batches submitted before in this lane; the future only
    /// waits for the answer, so a submitter may send more batches meanwhile. Dropping the future does not cancel the
    /// batch.
    ///
    /// The view in the answer shows this batch and everything its lane has committed before.
    pub fn submit(
        &self,
        lane: &Lane,
        batch: Batch,
        durability: Durability,
    ) -> impl Future<Output = Result<View, CommitFault>> + Send + 'static + use<> {
        self.submit_lanes(&[lane], batch, durability)
    }

    /// Submits a batch that belongs to several lanes: it follows all earlier batches of each, and precedes all later
    /// ones. If a batch of any of them has failed it fails too, and if it fails all of them are broken.
    pub fn submit_lanes(
        &self,
        lanes: &[&Lane],
        batch: Batch,
        durability: Durability,
    ) -> impl Future<Output = Result<View, CommitFault>> + Send + 'static + use<> {
        let verdict = self.shared.backend.submit(Lanes::of(lanes), batch, durability);
        async move {
            // The sender is only lost if the committer panicked while it held the batch.
            let cause = || Cause::new("the commit thread ended");
            verdict.await.unwrap_or_else(|_| Err(CommitFault::Uncertain { cause: cause() }))
        }
    }

    /// Resolves the outcome of the batches of a lane after [`CommitFault::Uncertain`] or [`CommitFault::Poisoned`], and
    /// returns a new lane that continues after them.
    ///
    /// Fails, at once or after a bounded time, as long as the outcome is unknown; it may be called again. Once it
    /// succeeds, views taken afterwards show what the old lane has committed, and nothing of it is applied later.
    /// [`Lane::is_rewound`] of either lane, called after taking such a view, returns whether acknowledged batches may
    /// be lost; if so, neither lane can be used any more.
    pub async fn resolve_lane(&self, lane: &Lane) -> Result<Lane, CommitFault> {
        self.shared.backend.resolve_lane(lane).await.map(|()| lane.successor())
    }

    /// The newest committed state. Shows no commit that still waits for its requested sync. Async, because a remote
    /// backend needs a round trip; the embedded one answers at once.
    pub async fn view(&self) -> Result<View, ReadFault> {
        self.shared.backend.view().await
    }

    /// Writes rows without the commit queue; they are durable on return and kept if a later batch names them.
    ///
    /// Contract with the caller, since the rows are written at their final keys:
    /// * the rows come in strictly ascending order of their keys;
    /// * the range from the first to the last key belongs to this ingest alone: it never holds other rows, and no row
    ///   of it is overwritten (rows of a named ingest may be deleted);
    /// * readers access that range only through references in rows of the naming batch, which makes the ingest
    ///   invisible before.
    ///
    /// An ingest that no batch has named when the store is opened or reopened is removed; naming it later fails
    /// with [`CommitFault::UnknownIngest`].
    pub async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<IngestId, CommitFault> {
        self.check_ingest(space, &rows)?;
        let ingest = self.announce_ingest(space, &rows).await?;
        match self.shared.backend.ingest(space, rows).await {
            Ok(()) => Ok(ingest),
            Err(cause) => {
                // Remaining rows are removed here; if that fails the commit thread tries again.
                self.reopen().await.ok();
                Err(CommitFault::Uncertain { cause })
            }
        }
    }

    fn check_ingest(&self, space: Space, rows: &[(Bytes, Bytes)]) -> Result<(), CommitFault> {
        if usize::from(space.0) >= self.shared.space_count {
            return Err(CommitFault::UnknownSpace { space });
        }
        rows.iter().try_for_each(|(key, _)| check_key(space, key))?;
        ingest::check_order(rows)?;
        let size_bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        match self.shared.backend.disk_space() {
            Ok(Some(DiskSpace { free_bytes, reserve_bytes }))
                if free_bytes.saturating_sub(size_bytes as u64) < reserve_bytes =>
            {
                Err(CommitFault::Full { free_bytes, reserve_bytes })
            }
            Ok(_) => Ok(()),
            Err(cause) => Err(CommitFault::Poisoned { cause }),
        }
    }

    async fn announce_ingest(&self, space: Space, rows: &[(Bytes, Bytes)]) -> Result<IngestId, CommitFault> {
        let first = rows.first().map(|row| row.0.clone()).unwrap_or_default();
        let last = rows.last().map(|row| row.0.clone()).unwrap_or_default();
        let (ingest, announced) = {
            let mut announcements = self.shared.announcements();
            if announcements.lane.is_broken() {
                announcements.lane = Lane::default();
            }
            announcements.last_number += 1;
            let ingest = IngestId(announcements.last_number);
            let batch = Batch::of_store(ingest::announce(ingest, space, &first, &last));
            (ingest, self.submit(&announcements.lane, batch, Durability::Sync))
        };
        announced.await?;
        Ok(ingest)
    }

    /// State of the store.
    pub fn health(&self) -> Health {
        self.shared.backend.health()
    }

    /// Free space on the disk, if the last commit found it short and it still is. Faster than [`Store::health`], which
    /// queries the disk.
    pub fn shortage(&self) -> Option<DiskSpace> {
        self.shared.backend.shortage()
    }

    /// Commits the waiting batches as one group. Only for [`CommitMode::Stepped`]; does nothing in other modes.
    pub fn step(&self) {
        match &self.shared.backend {
            AnyBackend::Grouped(grouped) => grouped.step(),
            #[cfg(feature = "round-trip")]
            AnyBackend::RoundTrip(_) => {}
        }
    }

    /// Waits until a batch waits for a step. Never completes for a store that commits by itself.
    pub async fn step_is_due(&self) {
        match &self.shared.backend {
            AnyBackend::Grouped(grouped) => grouped.step_is_due().await,
            #[cfg(feature = "round-trip")]
            AnyBackend::RoundTrip(_) => std::future::pending().await,
        }
    }

    /// Closes the engine and opens it again, which recovers a poisoned store. A commit thread also does this by itself,
    /// with growing delays. Views taken before fail with [`ReadFault::Poisoned`].
    pub async fn reopen(&self) -> Result<(), CommitFault> {
        self.shared.backend.reopen().await
    }

    /// Commits waiting batches, makes them durable and closes the files. Other clones and views find the store closed.
    pub async fn close(self) -> Result<(), CommitFault> {
        self.shared.backend.close().await
    }

    /// Metrics of the store; `None` if its backend has no committer.
    pub fn metrics(&self) -> Option<&StoreMetrics> {
        match &self.shared.backend {
            AnyBackend::Grouped(grouped) => Some(grouped.metrics()),
            #[cfg(feature = "round-trip")]
            AnyBackend::RoundTrip(_) => None,
        }
    }

    /// Number of batches waiting to be committed.
    pub fn queue_depth(&self) -> usize {
        match &self.shared.backend {
            AnyBackend::Grouped(grouped) => grouped.queue_depth(),
            #[cfg(feature = "round-trip")]
            AnyBackend::RoundTrip(_) => 0,
        }
    }

    /// Free bytes on the disk and the reserve that must stay free; `None` without a disk.
    pub fn disk_space(&self) -> Option<DiskSpace> {
        self.shared.backend.disk_space().ok().flatten()
    }

    /// Bytes that the store takes in memory.
    pub fn memory_use(&self) -> StoreMemory {
        self.shared.backend.memory_use()
    }

    /// Bytes the store takes on disk or, without a disk, in memory.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.backend.disk_bytes()
    }
}

impl Shared {
    fn announcements(&self) -> std::sync::MutexGuard<'_, Announcements> {
        self.announcements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
