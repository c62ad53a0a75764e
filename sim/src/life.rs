//! The runtime in which the product lives between two crashes, with those that a store in memory needs around it.

use crate::random::Random;
use crate::world::Complaint;
use kv::{Health, Store};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Timers may move so far in one wave before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(3600);
/// How often somebody looks whether the store must be reopened.
pub(crate) const DOCTOR_PAUSE: Duration = Duration::from_millis(25);
/// Turns of the scheduler that a batch waits for its commit, at most.
const COMMIT_TURNS_MAX: u64 = 6;

/// The runtime of one life, with those that a store in memory needs around it.
pub(crate) struct Life {
    runtime: Runtime,
    /// Draws how many turns a batch waits.
    pub(crate) pace: Arc<Mutex<Random>>,
}

impl Life {
    pub(crate) fn new(pace: Arc<Mutex<Random>>) -> Result<Life, Complaint> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        Ok(Life { runtime: runtime.map_err(|error| error.to_string())?, pace })
    }

    /// Runs a future beside two who do what the thread of a store on disk does: a committer who lets batches wait for
    /// a while, and a doctor who reopens a poisoned store.
    pub(crate) fn run<F: Future>(&self, store: &Store, future: F) -> Result<F::Output, Complaint> {
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
            let doctor = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(DOCTOR_PAUSE).await;
                    if let Health::Poisoned { .. } = healed.health() {
                        healed.reopen().await.ok();
                    }
                }
            });
            let done = tokio::time::timeout(STUCK_AFTER, future).await;
            committer.abort();
            doctor.abort();
            done.map_err(|_| "the product is stuck".to_owned())
        })
    }
}

/// What a future gives, or nothing if the turns pass first; it goes on then.
pub(crate) async fn answered_within<T: Send + 'static>(
    turns: Option<u64>,
    future: impl Future<Output = T> + Send + 'static,
) -> Result<Option<T>, Complaint> {
    let panicked = |panic| format!("a call panicked: {panic}");
    let task = tokio::spawn(future);
    let Some(turns) = turns else { return task.await.map(Some).map_err(panicked) };
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    if task.is_finished() { task.await.map(Some).map_err(panicked) } else { Ok(None) }
}
