//! The backend itself: hands batches to the one who commits, and reads from the rows.
//!
//! Knows who commits, but neither how (`group`) nor where the rows lie (`rows`).

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
use super::watch::{Watch, Work};
use crate::backend::{Backend, Room, StoreMemory};
use crate::batch::{Batch, Durability, Space};
use crate::fault::{Cause, CommitFault, Health, ReadFault};
use crate::lane::{Answer, Lane, Lanes, Submission};
use crate::metrics::StoreMetrics;
use crate::rows::{AnyRows, RowStore};
use crate::view::View;

/// Rows with one who commits to them.
pub(crate) struct Grouped {
    rows: Arc<AnyRows>,
    status: Arc<Status>,
    driver: Driver,
    metrics: StoreMetrics,
}

/// Who commits.
enum Driver {
    Thread(CommitThread),
    Inline(Mutex<Committer>),
    Stepped { steps: Steps, committer: Mutex<Committer> },
}

/// A thread that commits, and one that looks after it.
struct CommitThread {
    queue: Arc<Queue>,
    watch: Arc<Watch>,
    /// Disconnected when the thread has let go of the engine.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Grouped {
    /// A backend of rows. `work_timeout` bounds what a commit thread may have in hand.
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

    /// Batches that wait to be committed.
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

    /// Commits the batches that wait, as one group, if a director has to say when.
    pub(crate) fn step(&self) {
        if let Driver::Stepped { steps, committer } = &self.driver {
            steps.step(&mut lock(committer));
        }
    }

    /// Waits until a batch waits for a step. Never ends if nobody has to say when.
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

    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<Answer> {
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

    async fn settle(&self, lane: &Lane) -> Result<(), CommitFault> {
        if lane.is_busy() {
            // All batches are committed in one order, so this one comes after those of the lane.
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
        let Driver::Thread(CommitThread { watch, .. }) = &self.driver else {
            return self.rows.ingest(space, rows).await;
        };
        let (overdue, is_overdue) = oneshot::channel();
        let number = watch.begin(Work::Ingest(overdue));
        let outcome = tokio::select! {
            biased;
            outcome = self.rows.ingest(space, rows) => outcome,
            outcome = is_overdue => outcome.unwrap_or_else(|_| Err(watch.cause())),
        };
        watch.finish(number);
        outcome
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        self.rows.room()
    }

    fn health(&self) -> Health {
        let health = self.status.health();
        // The word of the last commit. Without another one nobody may have noticed that there is room again.
        match (&health, self.rows.room()) {
            (Health::Full { .. }, Ok(Some(room))) if room.free_bytes >= room.reserve_bytes => Health::Serving,
            (Health::Full { .. }, Ok(Some(Room { free_bytes, reserve_bytes }))) => {
                Health::Full { free_bytes, reserve_bytes }
            }
            (Health::Full { .. } | Health::Serving, Err(cause)) => Health::Poisoned { cause },
            (Health::Serving | Health::Full { .. } | Health::Poisoned { .. } | Health::Closed, _) => health,
        }
    }

    fn shortage(&self) -> Option<Room> {
        // Nearly always there is room, and then the disk is not looked at.
        if !matches!(self.status.health(), Health::Full { .. }) {
            return None;
        }
        match self.health() {
            Health::Full { free_bytes, reserve_bytes } => Some(Room { free_bytes, reserve_bytes }),
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
        let (queue, watch) = (Arc::new(Queue::new()), Arc::new(Watch::new(timeout)));
        let (alive, ended) = mpsc::channel();
        let (queue_there, watch_there) = (Arc::clone(&queue), Arc::clone(&watch));
        let thread = thread::Builder::new().name("kv-commit".to_owned());
        thread.spawn(move || {
            queue::run(&queue_there, &watch_there, committer);
            drop(alive);
        })?;
        let thread = CommitThread { queue, watch, ended: Mutex::new(ended) };
        let (queue, watch, status) =
            (Arc::clone(&thread.queue), Arc::clone(&thread.watch), Arc::clone(status));
        let watcher = thread::Builder::new().name("kv-watch".to_owned());
        watcher.spawn(move || watch.run(&queue, &status))?;
        Ok(thread)
    }
}

impl Drop for CommitThread {
    fn drop(&mut self) {
        self.queue.abandon();
        // Waited for, so that whoever dropped the store finds its folder unlocked; but not for a call that hangs.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(self.watch.timeout()).ok();
        self.watch.end();
    }
}

fn lock(committer: &Mutex<Committer>) -> MutexGuard<'_, Committer> {
    committer.lock().unwrap_or_else(PoisonError::into_inner)
}
