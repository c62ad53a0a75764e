//! The queue of waiting batches, and who empties it: a thread, the submitter, or the director of a simulation.
//!
//! Knows nothing of how batches are judged and written (`group`), nor of engines.
//!
//! [`Queue::submit`] must not block, as it runs on async workers, and must not wait either, as the place of a batch
//! is fixed by the call. So the queue itself has no bound of its own; each lane has: [`LANE_BATCHES_MAX`] batches
//! under way, the next is refused. A submitter that waits for its answers never gets near it, and the queue is
//! bounded by the number of lanes, that is of partitions.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::group::Committer;
use super::watch::{Watch, Work};
use crate::batch::{Batch, Durability};
use crate::fault::{Cause, CommitFault};
use crate::lane::{Answer, LANE_BATCHES_MAX, Lanes, Submission};

/// Most batches of one engine commit.
const GROUP_BATCHES_MAX: usize = 1024;

/// Bytes of keys and values after which no further batch joins an engine commit.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Rows of waiting batches that are enough for a commit of their own, about those of twenty documents. With fewer, others
/// on the same core are given a turn to add to them: every commit costs a sync, whatever its size.
const GROUP_ROWS_ENOUGH: usize = 64;

/// The waiting batches of all lanes, and the errands for the one who commits them.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    batches: VecDeque<Submission>,
    reopenings: Vec<oneshot::Sender<Result<(), CommitFault>>>,
    closing: Option<oneshot::Sender<Result<(), CommitFault>>>,
    /// Nothing is taken any more: the store was closed, or nobody holds it.
    ended: bool,
    /// Why nothing is taken for the moment: what is in hand is overdue.
    stuck: Option<Cause>,
    /// Whether the thread that commits sleeps. Only then it is notified, since that takes a system call.
    committer_sleeps: bool,
}

/// What there is to do next.
enum Errand {
    Commit(Vec<Submission>),
    Reopen(Vec<oneshot::Sender<Result<(), CommitFault>>>),
    Close(Option<oneshot::Sender<Result<(), CommitFault>>>),
    /// Nothing came within the time that was given.
    Tend,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue { state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Puts a batch behind those that wait. The returned receiver gets its verdict.
    pub(super) fn submit(
        &self,
        lanes: Lanes,
        batch: Batch,
        durability: Durability,
    ) -> oneshot::Receiver<Answer> {
        let (submission, verdict) = Submission::new(lanes, batch, durability);
        let is_crowded = submission.is_crowded();
        let mut state = self.lock();
        let refusal = match &state.stuck {
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
        submission.owed.answer(Err(refusal));
        verdict
    }

    /// Asks for the engine to be reopened. The sender is dropped if the queue has ended.
    pub(super) fn reopen(&self) -> oneshot::Receiver<Result<(), CommitFault>> {
        let (reply, done) = oneshot::channel();
        let mut state = self.lock();
        if let Some(cause) = state.stuck.clone() {
            drop(reply.send(Err(CommitFault::Poisoned { cause })));
        } else if !state.ended {
            state.reopenings.push(reply);
        }
        drop(state);
        self.arrived.notify_one();
        done
    }

    /// Asks for the store to be closed once the batches that wait are committed.
    pub(super) fn close(&self) -> oneshot::Receiver<Result<(), CommitFault>> {
        let (reply, done) = oneshot::channel();
        let mut state = self.lock();
        if !state.ended {
            state.ended = true;
            match state.stuck.clone() {
                Some(cause) => drop(reply.send(Err(CommitFault::Poisoned { cause }))),
                None => state.closing = Some(reply),
            }
        }
        drop(state);
        self.arrived.notify_one();
        done
    }

    /// Ends the queue because nobody holds the store any more.
    pub(super) fn abandon(&self) {
        self.lock().ended = true;
        self.arrived.notify_one();
    }

    /// The one who commits does not come back from a call: refuses everything that waits and that comes, until it
    /// does and the engine was reopened. Nothing of these batches was applied.
    pub(super) fn stick(&self, cause: &Cause) {
        let mut state = self.lock();
        state.stuck = Some(cause.clone());
        let batches = std::mem::take(&mut state.batches);
        let errands: Vec<_> = state.reopenings.drain(..).collect();
        let closing = state.closing.take();
        drop(state);
        let fault = CommitFault::Poisoned { cause: cause.clone() };
        batches.into_iter().for_each(|submission| submission.owed.answer(Err(fault.clone())));
        errands.into_iter().chain(closing).for_each(|reply| drop(reply.send(Err(fault.clone()))));
    }

    /// Batches that wait.
    pub(super) fn depth(&self) -> usize {
        self.lock().batches.len()
    }

    fn unstick(&self) {
        self.lock().stuck = None;
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do, until `deadline` if there is one.
    fn next(&self, deadline: Option<Instant>) -> Errand {
        let mut state = self.lock();
        let mut has_given_way = false;
        loop {
            if !state.reopenings.is_empty() {
                return Errand::Reopen(std::mem::take(&mut state.reopenings));
            }
            if !state.batches.is_empty() && !has_given_way && !is_enough(&state.batches) {
                // Returns at once where nobody else wants the core.
                drop(state);
                thread::yield_now();
                has_given_way = true;
                state = self.lock();
                continue;
            }
            if !state.batches.is_empty() {
                return Errand::Commit(take_group(&mut state.batches));
            }
            if state.ended {
                return Errand::Close(state.closing.take());
            }
            state.committer_sleeps = true;
            state = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Errand::Tend,
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
        rows += submission.batch.operations.len();
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

/// The life of a commit thread: commits what waits until the queue ends.
pub(super) fn run(queue: &Queue, watch: &Watch, mut committer: Committer) {
    let mut is_stuck = false;
    loop {
        let was_in_time = match queue.next(committer.tend_at()) {
            Errand::Commit(group) => commit_group(watch, &mut committer, group),
            Errand::Reopen(replies) => {
                let number = watch.begin(Work::Errand(replies));
                let outcome = committer.reopen();
                finish_errand(watch, number, &outcome)
            }
            Errand::Tend => {
                let number = watch.begin(Work::Errand(Vec::new()));
                committer.tend();
                finish_errand(watch, number, &Ok(()))
            }
            Errand::Close(None) => return,
            Errand::Close(Some(reply)) => {
                let number = watch.begin(Work::Errand(vec![reply]));
                let outcome = committer.close();
                // The committer's hold on the engine goes first: whoever hears of the end may open it again.
                drop(committer);
                finish_errand(watch, number, &outcome);
                return;
            }
        };
        if !was_in_time {
            committer.doubt(watch.cause());
            is_stuck = true;
        }
        if is_stuck && !committer.is_poisoned() {
            queue.unstick();
            is_stuck = false;
        }
    }
}

/// Commits a group and answers its submitters; returns whether they still waited for it.
fn commit_group(watch: &Watch, committer: &mut Committer, group: Vec<Submission>) -> bool {
    let (candidates, owed) = group.into_iter().map(Submission::split).unzip();
    let number = watch.begin(Work::Group(owed));
    let answers = committer.commit(candidates);
    let Some(Work::Group(owed)) = watch.finish(number) else { return false };
    owed.into_iter().zip(answers).for_each(|(owed, answer)| owed.answer(answer));
    true
}

/// Answers those who asked for an errand; returns whether they still waited for it.
fn finish_errand(watch: &Watch, number: u64, outcome: &Result<(), CommitFault>) -> bool {
    let Some(Work::Errand(replies)) = watch.finish(number) else { return false };
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
    ) -> oneshot::Receiver<Answer> {
        let (submission, verdict) = Submission::new(lanes, batch, durability);
        self.lock().push_back(submission);
        self.arrived.notify_one();
        verdict
    }

    /// Commits what waits, as one group.
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

/// Commits a group where it is submitted, without a deadline: a simulation must not depend on how fast a machine is.
pub(super) fn commit_at_once(committer: &mut Committer, group: Vec<Submission>) {
    let (candidates, owed): (_, Vec<_>) = group.into_iter().map(Submission::split).unzip();
    let answers = committer.commit(candidates);
    owed.into_iter().zip(answers).for_each(|(owed, answer)| owed.answer(answer));
}
