//! The face of the crate: opens a store, takes batches, hands out views.
//!
//! Knows who commits, but neither how (`commit`) nor where the rows lie (`backend`).

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::backend::{AnyBackend, Backend, PlainBackend, Room, StoreMemory};
use crate::batch::{Batch, Durability, IngestId, KEY_BYTES_MAX, Space, SpaceOptions};
use crate::commit::{self, Answer, CommitMode, Committer, Lane, Queue, Status, Steps, block_on};
use crate::embedded::{Embedded, EmbeddedOptions};
use crate::fault::{Cause, CommitFault, Health, OpenFault, ReadFault};
use crate::faulty::Faulty;
use crate::ingest;
use crate::memory::Memory;
use crate::script::FaultScript;
use crate::view::View;

/// Why a store without files cannot fail to be made.
pub(crate) const THREAD_STARTS: &str = "the system has a thread left for a new store";

/// An ordered store of bytes. Clones share it; it ends with [`Store::close`] or with the last clone.
///
/// Dropping the last clone commits what waits and lets go of the files, but does not flush: the next start has
/// more to recover. Views that are still held keep the files open.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    backend: Arc<AnyBackend>,
    status: Arc<Status>,
    space_count: usize,
    /// Number of the last ingest. Held while an announcement is submitted, so that they come in order.
    last_ingest: Mutex<u64>,
    driver: Driver,
}

/// Who commits.
enum Driver {
    Thread { queue: Arc<Queue>, thread: Mutex<Option<JoinHandle<()>>> },
    Inline(Mutex<Committer>),
    Stepped { steps: Steps, committer: Mutex<Committer> },
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Store")
    }
}

impl Store {
    /// A new store that lives in memory only.
    pub fn memory(spaces: &[SpaceOptions], mode: CommitMode) -> Store {
        Store::over(PlainBackend::Memory(Memory::new(spaces.len())).into(), spaces.len(), 0, mode)
            .expect(THREAD_STARTS)
    }

    /// Opens the store in a folder, or makes a new one there. Removes ingests that were never named.
    ///
    /// Reads and writes files, so it should not run on an async worker that others wait for.
    pub fn open(options: EmbeddedOptions) -> Result<Store, OpenFault> {
        let path = options.path.clone();
        let space_count = options.spaces.len();
        let backend = AnyBackend::from(PlainBackend::Embedded(Embedded::open(options)?));
        let prepared = block_on(async {
            ingest::remove_unnamed(&backend).await?;
            ingest::last_number(&backend).await
        });
        let last_ingest = prepared.map_err(|cause| OpenFault::Engine { path: path.clone(), cause })?;
        Store::over(backend, space_count, last_ingest, CommitMode::Thread)
            .map_err(|source| OpenFault::Io { path, source })
    }

    /// A store over the backend of `inner` that fails where the script says. `inner` itself ends here: it should
    /// have no other clone, and its views no longer keep what they see.
    pub fn faulty(inner: Store, script: FaultScript) -> Store {
        let space_count = inner.shared.space_count;
        let mode = match inner.shared.driver {
            Driver::Thread { .. } => CommitMode::Thread,
            Driver::Inline(_) => CommitMode::Inline,
            Driver::Stepped { .. } => CommitMode::Stepped,
        };
        let last_ingest = *inner.shared.last_ingest.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = match &*inner.shared.backend {
            AnyBackend::Plain(plain) => Arc::clone(plain),
            AnyBackend::Faulty(faulty) => Arc::clone(faulty.inner()),
        };
        drop(inner);
        let faulty = Faulty::new(backend, space_count, mode, script);
        Store::over(AnyBackend::Faulty(faulty), space_count, last_ingest, mode).expect(THREAD_STARTS)
    }

    pub(crate) fn over(
        backend: AnyBackend,
        space_count: usize,
        last_ingest: u64,
        mode: CommitMode,
    ) -> io::Result<Store> {
        let backend = Arc::new(backend);
        let status = Arc::new(Status::serving());
        let committer = Committer::new(Arc::clone(&backend), Arc::clone(&status), space_count, mode);
        let driver = match mode {
            CommitMode::Inline => Driver::Inline(Mutex::new(committer)),
            CommitMode::Stepped => {
                Driver::Stepped { steps: Steps::default(), committer: Mutex::new(committer) }
            }
            CommitMode::Thread => Driver::start(committer)?,
        };
        let last_ingest = Mutex::new(last_ingest);
        Ok(Store { shared: Arc::new(Shared { backend, status, space_count, last_ingest, driver }) })
    }

    /// A new chain of batches.
    pub fn lane(&self) -> Lane {
        Lane::default()
    }

    /// Hands a batch over. Its place behind all batches submitted before, of this lane or another, is fixed by
    /// the call; the future only waits for the verdict, so a submitter may send more batches meanwhile. Dropping
    /// the future does not take the batch back.
    ///
    /// The view in the answer shows this batch and no batch of a later engine commit.
    pub fn submit(
        &self,
        lane: &Lane,
        batch: Batch,
        durability: Durability,
    ) -> impl Future<Output = Result<View, CommitFault>> + Send + 'static + use<> {
        let verdict = self.shared.driver.submit(lane, batch, durability);
        async move {
            // The sender is only lost if the commit thread died with the batch in its hands.
            let cause = || Cause::new("the commit thread ended");
            verdict.await.unwrap_or_else(|_| Err(CommitFault::Uncertain { cause: cause() }))
        }
    }

    /// The newest committed state. Shows no commit that still waits for the sync it asked for. Asynchronous, since a
    /// remote backend needs a round trip to fix one; the embedded one answers at once.
    pub async fn view(&self) -> Result<View, ReadFault> {
        let point = self.shared.backend.point().await?;
        Ok(View::new(Arc::clone(&self.shared.backend), point))
    }

    /// Writes rows past the commit queue; they are durable on return and kept if a later batch names them.
    ///
    /// The contract with the caller, since the rows lie at their final keys from the start:
    /// * the rows come in strictly ascending order of their keys;
    /// * the range from the first to the last key belongs to this ingest alone: nothing else ever lies in it, and no
    ///   row of it is overwritten (rows of a named ingest may be deleted);
    /// * readers look into that range only when led there by rows of the naming batch, which is what makes the
    ///   ingest invisible before.
    ///
    /// An ingest that no batch has named when the store is opened or reopened is removed; naming it later fails
    /// with [`CommitFault::UnknownIngest`].
    pub async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<IngestId, CommitFault> {
        self.check_ingest(space, &rows)?;
        let ingest = self.announce_ingest(space, &rows).await?;
        match self.shared.backend.ingest(space, rows).await {
            Ok(()) => Ok(ingest),
            Err(cause) => {
                // What is left of the rows is removed here; if that fails the commit thread tries again.
                self.reopen().await.ok();
                Err(CommitFault::Uncertain { cause })
            }
        }
    }

    fn check_ingest(&self, space: Space, rows: &[(Bytes, Bytes)]) -> Result<(), CommitFault> {
        if usize::from(space.0) >= self.shared.space_count {
            return Err(CommitFault::UnknownSpace { space });
        }
        let mut lengths = rows.iter().map(|(key, _)| key.len());
        if let Some(length) = lengths.find(|length| *length == 0 || *length > KEY_BYTES_MAX) {
            return Err(CommitFault::BadKey { space, length });
        }
        ingest::check_order(rows)?;
        let size_bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        match self.shared.backend.room() {
            Ok(Some(Room { free_bytes, reserve_bytes }))
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
            let mut last_ingest = self.shared.last_ingest.lock().unwrap_or_else(PoisonError::into_inner);
            *last_ingest += 1;
            let ingest = IngestId(*last_ingest);
            let batch = Batch::of_store(ingest::announce(ingest, space, &first, &last));
            (ingest, self.submit(&self.lane(), batch, Durability::Sync))
        };
        announced.await?;
        Ok(ingest)
    }

    /// How the store is.
    pub fn health(&self) -> Health {
        let health = self.shared.status.health();
        // The word of the last commit. Without another one nobody may have noticed that there is room again.
        match (&health, self.shared.backend.room()) {
            (Health::Full { .. }, Ok(Some(room))) if room.free_bytes >= room.reserve_bytes => Health::Serving,
            (Health::Full { .. } | Health::Serving, Err(cause)) => Health::Poisoned { cause },
            (Health::Serving | Health::Full { .. } | Health::Poisoned { .. } | Health::Closed, _) => health,
        }
    }

    /// Commits the batches that wait, as one group. Only for [`CommitMode::Stepped`]; others do it by themselves.
    pub fn step(&self) {
        if let Driver::Stepped { steps, committer } = &self.shared.driver {
            steps.step(&mut lock(committer));
        }
    }

    /// Waits until a batch waits for a step. Never ends for a store that commits by itself.
    pub async fn step_is_due(&self) {
        match &self.shared.driver {
            Driver::Stepped { steps, .. } => steps.arrival().await,
            Driver::Thread { .. } | Driver::Inline(_) => std::future::pending().await,
        }
    }

    /// Closes the engine and opens it again: heals a poisoned store. With a commit thread this is also tried
    /// without being asked, after growing waiting times. Views taken before fail with [`ReadFault::Poisoned`].
    pub async fn reopen(&self) -> Result<(), CommitFault> {
        match &self.shared.driver {
            Driver::Thread { queue, .. } => queue.reopen().await.unwrap_or(Err(CommitFault::Closed)),
            Driver::Inline(committer) => lock(committer).reopen(),
            Driver::Stepped { steps, committer } => {
                let mut committer = lock(committer);
                steps.step(&mut committer);
                committer.reopen()
            }
        }
    }

    /// Commits what waits, makes it durable and lets go of the files. Other clones and views find the store
    /// closed.
    pub async fn close(self) -> Result<(), CommitFault> {
        match &self.shared.driver {
            Driver::Thread { queue, .. } => queue.close().await.unwrap_or(Err(CommitFault::Closed)),
            Driver::Inline(committer) => lock(committer).close(),
            Driver::Stepped { steps, committer } => {
                let mut committer = lock(committer);
                steps.step(&mut committer);
                committer.close()
            }
        }
    }

    /// Bytes that the store takes in memory.
    pub fn memory_use(&self) -> StoreMemory {
        self.shared.backend.memory_use()
    }

    /// Bytes the store takes on its disk or, without one, in memory.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.backend.disk_bytes()
    }
}

fn lock(committer: &Mutex<Committer>) -> MutexGuard<'_, Committer> {
    committer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Driver {
    fn start(committer: Committer) -> io::Result<Driver> {
        let queue = Arc::new(Queue::new());
        let queue_there = Arc::clone(&queue);
        let thread = thread::Builder::new().name("kv-commit".to_owned());
        let thread = thread.spawn(move || commit::run(&queue_there, committer))?;
        Ok(Driver::Thread { queue, thread: Mutex::new(Some(thread)) })
    }

    fn submit(&self, lane: &Lane, batch: Batch, durability: Durability) -> oneshot::Receiver<Answer> {
        match self {
            Driver::Thread { queue, .. } => queue.submit(lane, batch, durability),
            Driver::Inline(committer) => commit::commit_inline(&mut lock(committer), lane, batch, durability),
            Driver::Stepped { steps, .. } => steps.submit(lane, batch, durability),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Driver::Thread { queue, thread } = &self.driver {
            queue.abandon();
            let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Waited for, so that whoever dropped the store finds its folder unlocked.
            thread.map(JoinHandle::join);
        }
    }
}
