//! Deadlines for the work of a commit thread and for ingests.
//!
//! A call of the engine or the operating system may never return. Its callers are answered anyway: the outcome is
//! unknown and the store refuses commits. When the call returns, the engine is reopened.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::group::Status;
use super::queue::Queue;
use crate::fault::{Cause, CommitFault, Health};
use crate::lane::PendingAnswer;

/// Deadline of one piece of work: a group commit, a reopen, a close, an ingest. Longer than the sum of the timeouts of
/// the engine's steps.
pub(crate) const WORK_TIMEOUT: Duration = Duration::from_secs(300);

/// Checks per deadline.
const CHECKS_PER_TIMEOUT: u32 = 10;

/// One piece of work, with the senders of its answers.
pub(super) enum WatchedWork {
    /// Submitters of a group.
    Group(Vec<PendingAnswer>),
    /// Callers of a reopen or a close.
    Control(Vec<oneshot::Sender<Result<(), CommitFault>>>),
    /// Caller of an ingest.
    Ingest(oneshot::Sender<Result<(), Cause>>),
}

/// The work in progress, with its start times.
pub(super) struct Watchdog {
    timeout: Duration,
    state: Mutex<WatchdogState>,
    ended: Condvar,
}

#[derive(Default)]
struct WatchdogState {
    last_number: u64,
    /// With their numbers. There are few: the current work of the thread, and the ingests.
    works: Vec<(u64, Instant, WatchedWork)>,
    has_ended: bool,
}

impl WatchdogState {
    /// Removes the first work that matches.
    fn take(&mut self, is_wanted: impl FnMut(&(u64, Instant, WatchedWork)) -> bool) -> Option<WatchedWork> {
        let position = self.works.iter().position(is_wanted)?;
        Some(self.works.swap_remove(position).2)
    }
}

impl Watchdog {
    pub(super) fn new(timeout: Duration) -> Watchdog {
        Watchdog { timeout, state: Mutex::default(), ended: Condvar::new() }
    }

    /// How long a piece of work may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Registers work and returns its number.
    pub(super) fn begin(&self, work: WatchedWork) -> u64 {
        let mut state = self.lock();
        state.last_number += 1;
        let number = state.last_number;
        state.works.push((number, Instant::now(), work));
        number
    }

    /// Removes finished work; `None` if its callers were already answered because it was overdue.
    pub(super) fn finish(&self, number: u64) -> Option<WatchedWork> {
        self.lock().take(|(other, _, _)| *other == number)
    }

    /// The cause reported for overdue work.
    pub(super) fn cause(&self) -> Cause {
        Cause::new(format_args!("the engine did not answer within {:?}", self.timeout))
    }

    /// Ends the watchdog thread.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.ended.notify_all();
    }

    /// Main loop of the watchdog thread.
    pub(super) fn run(&self, queue: &Queue, status: &Arc<Status>) {
        let mut state = self.lock();
        while !state.has_ended {
            if let Some(work) = state.take(|(_, begun, _)| begun.elapsed() > self.timeout) {
                drop(state);
                self.give_up(work, queue, status);
                state = self.lock();
                continue;
            }
            let interval = self.timeout / CHECKS_PER_TIMEOUT;
            state = self.ended.wait_timeout(state, interval).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Answers all callers of overdue work.
    fn give_up(&self, work: WatchedWork, queue: &Queue, status: &Arc<Status>) {
        let cause = self.cause();
        match work {
            // The caller of the ingest reopens the store.
            WatchedWork::Ingest(reply) => {
                reply.send(Err(cause)).ok();
                return;
            }
            WatchedWork::Group(pending) => {
                // First: a caller that gets this answer must not see a healthy store.
                status.set(Health::Poisoned { cause: cause.clone() });
                queue.stall(&cause);
                for pending in pending {
                    pending.answer(Err(CommitFault::Uncertain { cause: cause.clone() }));
                }
            }
            WatchedWork::Control(replies) => {
                status.set(Health::Poisoned { cause: cause.clone() });
                queue.stall(&cause);
                for reply in replies {
                    drop(reply.send(Err(CommitFault::Poisoned { cause: cause.clone() })));
                }
            }
        }
        tracing::error!(event = "store_poisoned", %cause, "a storage call does not return; commits are rejected until the store is reopened");
    }

    fn lock(&self) -> MutexGuard<'_, WatchdogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{AnyBackend, Backend};
    use crate::batch::{Batch, Durability, Space};
    use crate::commit::{CommitMode, Grouped};
    use crate::memory::Memory;
    use crate::rows::AnyRows;
    use crate::script::{FaultScript, StorageCall};
    use crate::store::Store;

    /// Short to keep the test fast, and long enough for any call that does not hang.
    const SHORT_TIMEOUT: Duration = Duration::from_secs(1);

    /// Polls for a healthy store, each with a round trip to another thread.
    const POLLS_MAX: usize = 10_000_000;

    fn put(key: &'static str) -> Batch {
        let mut batch = Batch::default();
        batch.put(Space(0), key, "x");
        batch
    }

    /// A call of the engine does not return: nobody waits for ever, and the store recovers when it returns.
    #[test]
    fn work_that_does_not_end_is_given_up() {
        let script = FaultScript::seeded(1);
        let rows = AnyRows::from(Memory::new(1)).under(script.clone(), 1, CommitMode::Thread);
        let grouped = Grouped::new(rows, 1, CommitMode::Thread, SHORT_TIMEOUT).unwrap();
        let store = Store::over(AnyBackend::Grouped(grouped), 1, 0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            script.stall_next(StorageCall::Commit);
            let (stalled_lane, waiting_lane) = (store.lane(), store.lane());
            let stalled = store.submit(&stalled_lane, put("stalled"), Durability::Sync);
            let waiting = store.submit(&waiting_lane, put("waiting"), Durability::Sync);
            let fault = stalled.await.unwrap_err();
            assert!(matches!(fault, CommitFault::Uncertain { .. }), "{fault}");
            // It may have been in the same group.
            let fault = waiting.await.unwrap_err();
            assert!(matches!(fault, CommitFault::Poisoned { .. } | CommitFault::Uncertain { .. }), "{fault}");
            assert!(matches!(store.health(), Health::Poisoned { .. }));
            let later = store.submit(&store.lane(), put("later"), Durability::Sync).await.unwrap_err();
            assert!(matches!(later, CommitFault::Poisoned { .. }), "{later}");
            assert!(matches!(store.resolve_lane(&stalled_lane).await, Err(CommitFault::Poisoned { .. })));
            assert!(matches!(store.reopen().await, Err(CommitFault::Poisoned { .. })));

            script.release();
            let mut is_well = false;
            for _ in 0..POLLS_MAX {
                is_well = store.resolve_lane(&stalled_lane).await.is_ok() && store.reopen().await.is_ok();
                if is_well {
                    break;
                }
                std::thread::yield_now();
            }
            assert!(is_well, "{:?}", store.health());
            let view = store.submit(&store.lane(), put("after"), Durability::Sync).await.unwrap();
            for (key, expected) in [("stalled", false), ("waiting", false), ("after", true)] {
                let found = view.get(Space(0), key.as_bytes()).await.unwrap();
                assert_eq!(found.is_some(), expected, "{key}");
            }
        });
    }

    /// A close that hangs is reported, and dropping the store does not wait for ever either.
    #[test]
    fn a_reopening_that_does_not_end_is_given_up() {
        let script = FaultScript::seeded(1);
        let rows = AnyRows::from(Memory::new(1)).under(script.clone(), 1, CommitMode::Thread);
        let grouped = Grouped::new(rows, 1, CommitMode::Thread, SHORT_TIMEOUT).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            script.stall_next(StorageCall::Reopen);
            assert!(matches!(grouped.reopen().await, Err(CommitFault::Poisoned { .. })));
            assert!(matches!(grouped.close().await, Err(CommitFault::Poisoned { .. })));
        });
        drop(grouped);
        script.release();
    }
}
