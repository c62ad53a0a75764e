//! The runtime of the product between two crashes, with the tasks that a store in memory needs.

use crate::random::Random;
use crate::world::CheckFailure;
use kv::{Health, Store};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Timers may advance this far in one wave before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(3600);
/// Interval between checks whether the store must be reopened.
pub(crate) const REOPEN_CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// Most scheduler turns that a batch waits for its commit.
const COMMIT_TURNS_MAX: u64 = 6;

/// The runtime of the product between two crashes.
pub(crate) struct Life {
    runtime: Runtime,
    /// Draws how many turns a batch waits.
    pub(crate) pace: Arc<Mutex<Random>>,
}

impl Life {
    pub(crate) fn new(pace: Arc<Mutex<Random>>) -> Result<Life, CheckFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        Ok(Life { runtime: runtime.map_err(|error| error.to_string())?, pace })
    }

    /// Runs a future together with two tasks that replace the thread of a store on disk: a committer that delays
    /// batches for a while, and one that reopens a poisoned store.
    pub(crate) fn run<F: Future>(&self, store: &Store, future: F) -> Result<F::Output, CheckFailure> {
        let (committed, healed) = (store.clone(), store.clone());
        let pace = Arc::clone(&self.pace);
        self.runtime.block_on(async move {
            let committer = tokio::spawn(async move {
                loop {
                    committed.step_is_due().await;
                    let turns = pace.lock().unwrap_or_else(PoisonError::into_inner).below(COMMIT_TURNS_MAX);
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    committed.step();
                }
            });
            let reopener = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(REOPEN_CHECK_INTERVAL).await;
                    if let Health::Poisoned { .. } = healed.health() {
                        healed.reopen().await.ok();
                    }
                }
            });
            let done = tokio::time::timeout(STUCK_AFTER, future).await;
            committer.abort();
            reopener.abort();
            done.map_err(|_| "the product is stuck".to_owned())
        })
    }
}

/// The result of a future, or `None` if the turns pass first; it continues in the background then.
pub(crate) async fn answered_within<T: Send + 'static>(
    turns: Option<u64>,
    future: impl Future<Output = T> + Send + 'static,
) -> Result<Option<T>, CheckFailure> {
    let panicked = |panic| format!("a call panicked: {panic}");
    let task = tokio::spawn(future);
    let Some(turns) = turns else { return task.await.map(Some).map_err(panicked) };
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    if task.is_finished() { task.await.map(Some).map_err(panicked) } else { Ok(None) }
}
