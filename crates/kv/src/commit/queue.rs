//! The queue of waiting batches, and what drains it: a thread, the submitter, or a simulation.
//!
//! Knows nothing of how batches are validated and written (`group`), nor of engines.
//!
//! [`Queue::submit`] must not block because it runs on async workers, and must not await because the call fixes the
//! position of a batch. So the queue has no bound of its own. Each lane has one: with [`LANE_BATCHES_MAX`] batches in
//! flight the next is refused. A submitter that waits for its answers never reaches it, and the queue is bounded by the
//! number of lanes, that is of partitions.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::group::Committer;
use super::watchdog::{Watchdog, WatchedWork};
use crate::batch::{Batch, Durability};
use crate::fault::{Cause, CommitFault};
use crate::lane::{CommitAnswer, LANE_BATCHES_MAX, Lanes, Submission};

/// Most batches of one engine commit.
const GROUP_BATCHES_MAX: usize = 1024;

/// Bytes of keys and values after which no further batch joins an engine commit.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Rows of waiting batches that are worth a commit of their own, about twenty documents. With fewer, the thread yields
/// once so that others on the same core can add batches: every commit costs a sync, whatever its size.
const GROUP_ROWS_ENOUGH: usize = 64;

/// The waiting batches of all lanes, and control requests for the committer.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    batches: VecDeque<Submission>,
    reopens: Vec<oneshot::Sender<Result<(), CommitFault>>>,
    closing: Option<oneshot::Sender<Result<(), CommitFault>>>,
    /// The queue accepts nothing: the store was closed or dropped.
    ended: bool,
    /// Why the queue refuses batches for now: the current work is past its deadline.
    stalled: Option<Cause>,
    /// Whether the commit thread sleeps. It is notified only then, because that takes a system call.
    committer_sleeps: bool,
}

/// The next task of the commit thread.
enum CommitTask {
    Commit(Vec<Submission>),
    Reopen(Vec<oneshot::Sender<Result<(), CommitFault>>>),
    Close(Option<oneshot::Sender<Result<(), CommitFault>>>),
    /// The deadline passed without a request.
    Maintain,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue { state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Appends a batch. The returned receiver gets its answer.
    pub(super) fn submit(
        &self,
        lanes: Lanes,
        batch: Batch,
        durability: Durability,
    ) -> oneshot::Receiver<CommitAnswer> {
        let (submission, verdict) = Submission::new(lanes, batch, durability);
        let is_crowded = submission.is_crowded();
        let mut state = self.lock();
        let refusal = match &state.stalled {
            _ if state.ended => CommitFault::Closed,
            Some(cause) => CommitFault::Poisoned { cause: cause.clone() },
            None if is_crowded => CommitFault::LaneCrowded { limit: LANE_BATCHES_MAX },
            None => {
                state.batches.push_back(submission);
                let committer_slept = std::mem::take(&mut state.committer_sleeps);
                drop(state);
                if committer_slept {
                    self.arrived.notify_one();
                }
                return verdict;
            }
        };
        drop(state);
        submission.pending.answer(Err(refusal));
        verdict
    }

    /// Requests a reopen of the engine. The sender is dropped if the queue has ended.
    pub(super) fn reopen(&self) -> oneshot::Receiver<Result<(), CommitFault>> {
        let (reply, done) = oneshot::channel();
        let mut state = self.lock();
        if let Some(cause) = state.stalled.clone() {
            drop(reply.send(Err(CommitFault::Poisoned { cause })));
        } else if !state.ended {
            state.reopens.push(reply);
        }
        drop(state);
        self.arrived.notify_one();
        done
    }

    /// Requests a close after the waiting batches are committed.
    pub(super) fn close(&self) -> oneshot::Receiver<Result<(), CommitFault>> {
        let (reply, done) = oneshot::channel();
        let mut state = self.lock();
        if !state.ended {
            state.ended = true;
            match state.stalled.clone() {
                Some(cause) => drop(reply.send(Err(CommitFault::Poisoned { cause }))),
                None => state.closing = Some(reply),
            }
        }
        drop(state);
        self.arrived.notify_one();
        done
    }

    /// Ends the queue because the last handle of the store was dropped.
    pub(super) fn abandon(&self) {
        self.lock().ended = true;
        self.arrived.notify_one();
    }

    /// Called when the committer does not return from a call: refuses all waiting and new batches until it returns and
    /// the engine is reopened. Nothing of these batches was applied.
    pub(super) fn stall(&self, cause: &Cause) {
        let mut state = self.lock();
        state.stalled = Some(cause.clone());
        let batches = std::mem::take(&mut state.batches);
        let requests: Vec<_> = state.reopens.drain(..).collect();
        let closing = state.closing.take();
        drop(state);
        let fault = CommitFault::Poisoned { cause: cause.clone() };
        batches.into_iter().for_each(|submission| submission.pending.answer(Err(fault.clone())));
        requests.into_iter().chain(closing).for_each(|reply| drop(reply.send(Err(fault.clone()))));
    }

    /// Number of waiting batches.
    pub(super) fn depth(&self) -> usize {
        self.lock().batches.len()
    }

    fn resume(&self) {
        self.lock().stalled = None;
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a task, until `deadline` if there is one.
    fn next(&self, deadline: Option<Instant>) -> CommitTask {
        let mut state = self.lock();
        let mut has_yielded = false;
        loop {
            if !state.reopens.is_empty() {
                return CommitTask::Reopen(std::mem::take(&mut state.reopens));
            }
            if !state.batches.is_empty() && !has_yielded && !is_enough(&state.batches) {
                // Returns at once if no other thread wants the core.
                drop(state);
                thread::yield_now();
                has_yielded = true;
                state = self.lock();
                continue;
            }
            if !state.batches.is_empty() {
                return CommitTask::Commit(take_group(&mut state.batches));
            }
            if state.ended {
                return CommitTask::Close(state.closing.take());
            }
            state.committer_sleeps = true;
            state = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return CommitTask::Maintain,
                Some(left) => {
                    self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Whether a commit of these batches is worth its sync.
fn is_enough(batches: &VecDeque<Submission>) -> bool {
    let mut rows = 0;
    batches.iter().any(|submission| {
        rows += submission.batch.changes.len();
        rows >= GROUP_ROWS_ENOUGH
    })
}

/// Takes the batches of the next engine commit: at least one, then as many as the bounds allow.
fn take_group(batches: &mut VecDeque<Submission>) -> Vec<Submission> {
    let mut size_bytes = 0;
    let fits = |submission: &Submission| {
        let before = size_bytes;
        size_bytes += submission.batch.size_bytes();
        before < GROUP_BYTES_MAX
    };
    let count = batches.iter().take(GROUP_BATCHES_MAX).map(fits).take_while(|fits| *fits).count();
    batches.drain(..count.max(1)).collect()
}

/// Main loop of the commit thread: commits waiting batches until the queue ends.
pub(super) fn run(queue: &Queue, watchdog: &Watchdog, mut committer: Committer) {
    let mut is_stalled = false;
    loop {
        let was_in_time = match queue.next(committer.maintenance_due_at()) {
            CommitTask::Commit(group) => commit_group(watchdog, &mut committer, group),
            CommitTask::Reopen(replies) => {
                let number = watchdog.begin(WatchedWork::Control(replies));
                let outcome = committer.reopen();
                finish_control(watchdog, number, &outcome)
            }
            CommitTask::Maintain => {
                let number = watchdog.begin(WatchedWork::Control(Vec::new()));
                committer.maintain();
                finish_control(watchdog, number, &Ok(()))
            }
            CommitTask::Close(None) => return,
            CommitTask::Close(Some(reply)) => {
                let number = watchdog.begin(WatchedWork::Control(vec![reply]));
                let outcome = committer.close();
                // Closes the engine first: a caller that learns of the end may open the store again.
                drop(committer);
                finish_control(watchdog, number, &outcome);
                return;
            }
        };
        if !was_in_time {
            committer.mark_uncertain(watchdog.cause());
            is_stalled = true;
        }
        if is_stalled && !committer.is_poisoned() {
            queue.resume();
            is_stalled = false;
        }
    }
}

/// Commits a group and answers its submitters. Returns false if the watchdog has already answered them.
fn commit_group(watchdog: &Watchdog, committer: &mut Committer, group: Vec<Submission>) -> bool {
    let (candidates, pending) = group.into_iter().map(Submission::split).unzip();
    let number = watchdog.begin(WatchedWork::Group(pending));
    let answers = committer.commit(candidates);
    let Some(WatchedWork::Group(pending)) = watchdog.finish(number) else { return false };
    pending.into_iter().zip(answers).for_each(|(pending, answer)| pending.answer(answer));
    true
}

/// Answers the callers of a control request. Returns false if the watchdog has already answered them.
fn finish_control(watchdog: &Watchdog, number: u64, outcome: &Result<(), CommitFault>) -> bool {
    let Some(WatchedWork::Control(replies)) = watchdog.finish(number) else { return false };
    replies.into_iter().for_each(|reply| drop(reply.send(outcome.clone())));
    true
}

/// Batches that wait for a step, for [`super::CommitMode::Stepped`].
#[derive(Default)]
pub(super) struct Steps {
    waiting: Mutex<VecDeque<Submission>>,
    arrived: Notify,
}

impl Steps {
    pub(super) fn submit(
        &self,
        lanes: Lanes,
        batch: Batch,
        durability: Durability,
    ) -> oneshot::Receiver<CommitAnswer> {
        let (submission, verdict) = Submission::new(lanes, batch, durability);
        self.lock().push_back(submission);
        self.arrived.notify_one();
        verdict
    }

    /// Commits the waiting batches as one group.
    pub(super) fn step(&self, committer: &mut Committer) {
        let group: Vec<Submission> = self.lock().drain(..).collect();
        if !group.is_empty() {
            commit_at_once(committer, group);
        }
    }

    /// Waits until a batch waits.
    pub(super) async fn arrival(&self) {
        while self.lock().is_empty() {
            self.arrived.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Submission>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits a group in the submitting call, without a deadline: a simulation must not depend on the speed of the
/// machine.
pub(super) fn commit_at_once(committer: &mut Committer, group: Vec<Submission>) {
    let (candidates, pending): (_, Vec<_>) = group.into_iter().map(Submission::split).unzip();
    let answers = committer.commit(candidates);
    pending.into_iter().zip(answers).for_each(|(pending, answer)| pending.answer(answer));
}
