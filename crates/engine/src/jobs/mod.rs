//! Work that nobody waits for: sweeping expired documents, deleting dropped containers, trimming logs.
//!
//! One task runs all jobs in turn. Each is a loop over what the store says is left to do, so a job that a crash
//! cut short goes on at the next start.

mod dropped;
mod expiry;
mod trim;

use crate::engine::Engine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Time between two rounds when nothing wakes the jobs earlier.
const ROUND: Duration = Duration::from_secs(1);
/// Rounds between two trims of the logs.
const ROUNDS_PER_TRIM: u64 = 60;

/// The jobs of an engine.
#[derive(Debug)]
pub(crate) struct Jobs {
    wake: Arc<Notify>,
    stopping: AtomicBool,
    /// Closed when the task has ended.
    running: mpsc::Sender<()>,
    ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl Default for Jobs {
    fn default() -> Jobs {
        let (running, ended) = mpsc::channel(1);
        Jobs {
            wake: Arc::new(Notify::new()),
            stopping: AtomicBool::new(false),
            running,
            ended: tokio::sync::Mutex::new(ended),
        }
    }
}

impl Jobs {
    /// Starts the task. It holds the engine only while it works, so that an engine nobody uses can go.
    pub(crate) fn start(engine: &Arc<Engine>) {
        let wake = Arc::clone(&engine.jobs.wake);
        let done = engine.jobs.running.clone();
        tokio::spawn(run(Arc::downgrade(engine), wake, done));
    }

    /// Begins the next round now.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until the round under way is over and no other will begin.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake.notify_one();
        self.ended.lock().await.recv().await;
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

async fn run(engine: Weak<Engine>, wake: Arc<Notify>, done: mpsc::Sender<()>) {
    let mut round: u64 = 0;
    loop {
        let _ = tokio::time::timeout(ROUND, wake.notified()).await;
        let Some(engine) = engine.upgrade() else { return };
        if engine.jobs.is_stopping() {
            let _ = done.send(()).await;
            return;
        }
        round += 1;
        let results = [
            ("settle the catalog", engine.catalog.settle(engine.store()).await),
            ("drop containers", engine.delete_dropped_rows().await),
            ("reschedule expiry", engine.reschedule_expiry().await),
            ("sweep expired documents", engine.sweep_expired().await),
            (
                "trim logs",
                if round.is_multiple_of(ROUNDS_PER_TRIM) { engine.trim_logs().await } else { Ok(()) },
            ),
        ];
        for (job, result) in results {
            if let Err(fault) = result {
                tracing::warn!(job, cause = %fault, "a job will be tried again");
            }
        }
    }
}
