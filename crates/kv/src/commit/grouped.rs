//! The backend: passes batches to the committer and reads from the row store.
//!
//! Knows who commits, but neither how (`group`) nor where the rows are stored (`rows`).

use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::CommitMode;
use super::group::{Committer, Status};
use super::queue::{self, Queue, Steps};
use super::watchdog::{Watchdog, WatchedWork};
use crate::backend::{Backend, DiskSpace, StoreMemory};
use crate::batch::{Batch, Durability, Space};
use crate::fault::{Cause, CommitFault, Health, ReadFault};
use crate::lane::{CommitAnswer, Lane, Lanes, Submission};
use crate::metrics::StoreMetrics;
use crate::rows::{AnyRows, RowStore};
use crate::view::View;

/// A row store with its committer.
pub(crate) struct Grouped {
    rows: Arc<AnyRows>,
    status: Arc<Status>,
    driver: Driver,
    metrics: StoreMetrics,
}

/// Who runs the committer.
enum Driver {
    Thread(CommitThread),
    Inline(Mutex<Committer>),
    Stepped { steps: Steps, committer: Mutex<Committer> },
}

/// The commit thread and its watchdog thread.
struct CommitThread {
    queue: Arc<Queue>,
    watchdog: Arc<Watchdog>,
    /// Disconnected when the thread has closed the engine.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Grouped {
    /// Creates a backend over rows. `work_timeout` bounds one piece of work of the commit thread.
    pub(crate) fn new(
        rows: AnyRows,
        space_count: usize,
        mode: CommitMode,
        work_timeout: Duration,
    ) -> io::Result<Grouped> {
        let rows = Arc::new(rows);
        let status = Arc::new(Status::serving());
        let metrics = StoreMetrics::default();
        let committer =
            Committer::new(Arc::clone(&rows), Arc::clone(&status), space_count, mode, metrics.clone());
        let driver = match mode {
            CommitMode::Inline => Driver::Inline(Mutex::new(committer)),
            CommitMode::Stepped => {
                Driver::Stepped { steps: Steps::default(), committer: Mutex::new(committer) }
            }
            CommitMode::Thread => Driver::Thread(CommitThread::start(committer, &status, work_timeout)?),
        };
        Ok(Grouped { rows, status, driver, metrics })
    }

    pub(crate) fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    /// Number of batches waiting to be committed.
    pub(crate) fn queue_depth(&self) -> usize {
        match &self.driver {
            Driver::Thread(thread) => thread.queue.depth(),
            Driver::Inline(_) | Driver::Stepped { .. } => 0,
        }
    }

    pub(crate) fn rows(&self) -> &AnyRows {
        &self.rows
    }

    pub(crate) fn mode(&self) -> CommitMode {
        match self.driver {
            Driver::Thread(_) => CommitMode::Thread,
            Driver::Inline(_) => CommitMode::Inline,
            Driver::Stepped { .. } => CommitMode::Stepped,
        }
    }

    /// Commits the waiting batches as one group in [`CommitMode::Stepped`]; does nothing in other modes.
    pub(crate) fn step(&self) {
        if let Driver::Stepped { steps, committer } = &self.driver {
            steps.step(&mut lock(committer));
        }
    }

    /// Waits until a batch waits for a step. Never completes in other modes.
    pub(crate) async fn step_is_due(&self) {
        match &self.driver {
            Driver::Stepped { steps, .. } => steps.arrival().await,
            Driver::Thread(_) | Driver::Inline(_) => std::future::pending().await,
        }
    }
}

impl Backend for Grouped {
    async fn view(&self) -> Result<View, ReadFault> {
        let point = self.rows.point().await?;
        Ok(View::of_rows(Arc::clone(&self.rows), point))
    }

    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<CommitAnswer> {
        match &self.driver {
            Driver::Thread(thread) => thread.queue.submit(lanes, batch, durability),
            Driver::Inline(committer) => {
                let (submission, verdict) = Submission::new(lanes, batch, durability);
                queue::commit_at_once(&mut lock(committer), vec![submission]);
                verdict
            }
            Driver::Stepped { steps, .. } => steps.submit(lanes, batch, durability),
        }
    }

    async fn resolve_lane(&self, lane: &Lane) -> Result<(), CommitFault> {
        if lane.is_busy() {
            // All batches are committed in one order, so this one follows those of the lane.
            let verdict = self.submit(Lanes::of(&[]), Batch::default(), Durability::Buffered);
            verdict.await.unwrap_or(Err(CommitFault::Closed))?;
        }
        match self.status.health() {
            Health::Serving | Health::Full { .. } => Ok(()),
            Health::Poisoned { cause } => Err(CommitFault::Poisoned { cause }),
            Health::Closed => Err(CommitFault::Closed),
        }
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        let Driver::Thread(CommitThread { watchdog, .. }) = &self.driver else {
            return self.rows.ingest(space, rows).await;
        };
        let (overdue, is_overdue) = oneshot::channel();
        let number = watchdog.begin(WatchedWork::Ingest(overdue));
        let outcome = tokio::select! {
            biased;
            outcome = self.rows.ingest(space, rows) => outcome,
            outcome = is_overdue => outcome.unwrap_or_else(|_| Err(watchdog.cause())),
        };
        watchdog.finish(number);
        outcome
    }

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        self.rows.disk_space()
    }

    fn health(&self) -> Health {
        let health = self.status.health();
        // This is the state of the last commit. Without another commit, freed space may have gone unnoticed.
        match (&health, self.rows.disk_space()) {
            (Health::Full { .. }, Ok(Some(room))) if room.free_bytes >= room.reserve_bytes => Health::Serving,
            (Health::Full { .. }, Ok(Some(DiskSpace { free_bytes, reserve_bytes }))) => {
                Health::Full { free_bytes, reserve_bytes }
            }
            (Health::Full { .. } | Health::Serving, Err(cause)) => Health::Poisoned { cause },
            (Health::Serving | Health::Full { .. } | Health::Poisoned { .. } | Health::Closed, _) => health,
        }
    }

    fn shortage(&self) -> Option<DiskSpace> {
        // Usually there is enough space, and then the disk is not queried.
        if !matches!(self.status.health(), Health::Full { .. }) {
            return None;
        }
        match self.health() {
            Health::Full { free_bytes, reserve_bytes } => Some(DiskSpace { free_bytes, reserve_bytes }),
            Health::Serving | Health::Poisoned { .. } | Health::Closed => None,
        }
    }

    async fn reopen(&self) -> Result<(), CommitFault> {
        match &self.driver {
            Driver::Thread(thread) => thread.queue.reopen().await.unwrap_or(Err(CommitFault::Closed)),
            Driver::Inline(committer) => lock(committer).reopen(),
            Driver::Stepped { steps, committer } => {
                let mut committer = lock(committer);
                steps.step(&mut committer);
                committer.reopen()
            }
        }
    }

    async fn close(&self) -> Result<(), CommitFault> {
        match &self.driver {
            Driver::Thread(thread) => thread.queue.close().await.unwrap_or(Err(CommitFault::Closed)),
            Driver::Inline(committer) => lock(committer).close(),
            Driver::Stepped { steps, committer } => {
                let mut committer = lock(committer);
                steps.step(&mut committer);
                committer.close()
            }
        }
    }

    fn disk_bytes(&self) -> u64 {
        self.rows.disk_bytes()
    }

    fn memory_use(&self) -> StoreMemory {
        self.rows.memory_use()
    }
}

impl CommitThread {
    fn start(committer: Committer, status: &Arc<Status>, timeout: Duration) -> io::Result<CommitThread> {
        let (queue, watchdog) = (Arc::new(Queue::new()), Arc::new(Watchdog::new(timeout)));
        let (alive, ended) = mpsc::channel();
        let (queue_there, watchdog_there) = (Arc::clone(&queue), Arc::clone(&watchdog));
        let committing = thread::Builder::new().name("kv-commit".to_owned());
        committing.spawn(move || {
            queue::run(&queue_there, &watchdog_there, committer);
            drop(alive);
        })?;
        let thread = CommitThread { queue, watchdog, ended: Mutex::new(ended) };
        let (queue, watchdog, status) =
            (Arc::clone(&thread.queue), Arc::clone(&thread.watchdog), Arc::clone(status));
        let watching = thread::Builder::new().name("kv-watchdog".to_owned());
        watching.spawn(move || watchdog.run(&queue, &status))?;
        Ok(thread)
    }
}

impl Drop for CommitThread {
    fn drop(&mut self) {
        self.queue.abandon();
        // Waited for, so that the folder is unlocked after the drop; but not for a call that hangs.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(self.watchdog.timeout()).ok();
        self.watchdog.end();
    }
}

fn lock(committer: &Mutex<Committer>) -> MutexGuard<'_, Committer> {
    committer.lock().unwrap_or_else(PoisonError::into_inner)
}
