//! The one way into a store: lanes, the queue of waiting batches, and who empties it.
//!
//! Knows nothing of how batches are judged and written (`group`), nor of engines.
//!
//! One thread per store takes the waiting batches of all lanes and makes one engine commit with one sync of
//! them. The engine holds its journal lock through a sync, so committers that sync for themselves would queue up
//! behind each other; one thread turns that queue into larger groups instead.
//!
//! [`Queue::submit`] must not block, as it runs on async workers, and must not wait either, as the place of a batch
//! is fixed by the call. So the queue itself has no bound of its own; each lane has: [`LANE_BATCHES_MAX`] batches
//! under way, the next is refused. A submitter that waits for its answers never gets near it, and the queue is
//! bounded by the number of lanes, that is of partitions.

mod group;
mod judge;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use crate::batch::{Batch, Durability};
use crate::fault::CommitFault;
use crate::view::View;

pub(crate) use group::{Committer, Status};

/// Most batches one lane may have under way.
pub const LANE_BATCHES_MAX: usize = 256;

/// Most batches of one engine commit.
const GROUP_BATCHES_MAX: usize = 1024;

/// Bytes of keys and values after which no further batch joins an engine commit.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Who makes the commits of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitMode {
    /// A thread of the store's own.
    Thread,
    /// The submitter, inside the call: every batch is a group of its own, and the future is ready at once. For
    /// deterministic simulations over memory.
    Inline,
    /// Whoever directs the simulation, by [`crate::Store::step`]: batches wait until then and are committed as one
    /// group, so that submitters have several under way and a failure meets them in the middle.
    Stepped,
}

/// A chain of batches of one submitter: when one of them fails, every later one fails with
/// [`CommitFault::ChainBroken`], until the submitter takes a new lane. So a submitter may send batch n + 1, which
/// rests on n, before it knows the fate of n.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    state: Arc<LaneState>,
}

#[derive(Debug, Default)]
struct LaneState {
    broken: AtomicBool,
    rewound: AtomicBool,
    under_way: AtomicUsize,
}

impl Lane {
    /// Whether the store was reopened while batches of this lane were acknowledged and not synced: they may be gone.
    /// The lane takes no batch any more. Its submitter must read again what it knows of the store, forget what it has
    /// cached of rows that it wrote, and take a new lane.
    pub fn is_rewound(&self) -> bool {
        self.state.rewound.load(Ordering::Acquire)
    }

    /// Differs between lanes that exist at the same time.
    fn identity(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    fn rewind(&self) {
        self.state.rewound.store(true, Ordering::Release);
        self.state.broken.store(true, Ordering::Release);
    }
}

/// The answer to a batch: the state right behind its commit.
pub(crate) type Answer = Result<View, CommitFault>;

/// A batch in the queue.
pub(crate) struct Waiting {
    lane: Lane,
    batch: Batch,
    durability: Durability,
    reply: oneshot::Sender<Answer>,
}

impl Waiting {
    /// Sends the verdict, and breaks the lane if it is a fault.
    fn answer(self, answer: Answer) {
        if answer.is_err() {
            self.break_chain();
        }
        self.lane.state.under_way.fetch_sub(1, Ordering::AcqRel);
        // A submitter that no longer listens has its batch committed all the same.
        self.reply.send(answer).ok();
    }

    fn break_chain(&self) {
        self.lane.state.broken.store(true, Ordering::Release);
    }

    fn is_chain_broken(&self) -> bool {
        self.lane.state.broken.load(Ordering::Acquire)
    }
}

/// The waiting batches of all lanes, and the errands for the one who commits them.
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    batches: VecDeque<Waiting>,
    reopenings: Vec<oneshot::Sender<Result<(), CommitFault>>>,
    closing: Option<oneshot::Sender<Result<(), CommitFault>>>,
    /// Nothing is taken any more: the store was closed, or nobody holds it.
    ended: bool,
}

/// What there is to do next.
enum Work {
    Commit(Vec<Waiting>),
    Reopen(Vec<oneshot::Sender<Result<(), CommitFault>>>),
    Close(Option<oneshot::Sender<Result<(), CommitFault>>>),
    /// Nothing came within the time that was given.
    Tend,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Puts a batch behind those that wait. The returned receiver gets its verdict.
    pub(crate) fn submit(
        &self,
        lane: &Lane,
        batch: Batch,
        durability: Durability,
    ) -> oneshot::Receiver<Answer> {
        let (waiting, verdict) = waiting(lane, batch, durability);
        let under_way = lane.state.under_way.load(Ordering::Acquire);
        let mut state = self.lock();
        if state.ended {
            drop(state);
            waiting.answer(Err(CommitFault::Closed));
        } else if under_way > LANE_BATCHES_MAX {
            drop(state);
            waiting.answer(Err(CommitFault::LaneCrowded { limit: LANE_BATCHES_MAX }));
        } else {
            state.batches.push_back(waiting);
            drop(state);
            self.arrived.notify_one();
        }
        verdict
    }

    /// Asks for the engine to be reopened. The sender is dropped if the queue has ended.
    pub(crate) fn reopen(&self) -> oneshot::Receiver<Result<(), CommitFault>> {
        let (reply, done) = oneshot::channel();
        let mut state = self.lock();
        if !state.ended {
            state.reopenings.push(reply);
        }
        drop(state);
        self.arrived.notify_one();
        done
    }

    /// Asks for the store to be closed once the batches that wait are committed.
    pub(crate) fn close(&self) -> oneshot::Receiver<Result<(), CommitFault>> {
        let (reply, done) = oneshot::channel();
        let mut state = self.lock();
        if !state.ended {
            state.ended = true;
            state.closing = Some(reply);
        }
        drop(state);
        self.arrived.notify_one();
        done
    }

    /// Ends the queue because nobody holds the store any more.
    pub(crate) fn abandon(&self) {
        self.lock().ended = true;
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do, until `deadline` if there is one.
    fn next(&self, deadline: Option<Instant>) -> Work {
        let mut state = self.lock();
        let mut has_rested = false;
        loop {
            if !state.reopenings.is_empty() {
                return Work::Reopen(std::mem::take(&mut state.reopenings));
            }
            if !state.batches.is_empty() && std::mem::take(&mut has_rested) {
                // The first batch of several has come: others that are ready on this core may join it.
                drop(state);
                thread::yield_now();
                state = self.lock();
                continue;
            }
            if !state.batches.is_empty() {
                return Work::Commit(take_group(&mut state.batches));
            }
            if state.ended {
                return Work::Close(state.closing.take());
            }
            has_rested = true;
            state = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Work::Tend,
                Some(left) => {
                    self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn waiting(lane: &Lane, batch: Batch, durability: Durability) -> (Waiting, oneshot::Receiver<Answer>) {
    let (reply, verdict) = oneshot::channel();
    lane.state.under_way.fetch_add(1, Ordering::AcqRel);
    (Waiting { lane: lane.clone(), batch, durability, reply }, verdict)
}

/// Takes the batches of the next engine commit: at least one, then as many as the bounds allow.
fn take_group(batches: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let mut size_bytes = 0;
    let fits = |waiting: &Waiting| {
        let before = size_bytes;
        size_bytes += waiting.batch.size_bytes();
        before < GROUP_BYTES_MAX
    };
    let count = batches.iter().take(GROUP_BATCHES_MAX).map(fits).take_while(|fits| *fits).count();
    batches.drain(..count.max(1)).collect()
}

/// The life of a commit thread: commits what waits until the queue ends.
pub(crate) fn run(queue: &Queue, mut committer: Committer) {
    loop {
        match queue.next(committer.tend_at()) {
            Work::Commit(batches) => committer.commit(batches),
            Work::Reopen(replies) => {
                let outcome = committer.reopen();
                replies.into_iter().for_each(|reply| drop(reply.send(outcome.clone())));
            }
            Work::Tend => committer.tend(),
            Work::Close(reply) => {
                let outcome = if reply.is_some() { committer.close() } else { Ok(()) };
                if let Some(reply) = reply {
                    // The committer's hold on the engine goes first: whoever hears of the end may open it again.
                    drop(committer);
                    reply.send(outcome).ok();
                }
                return;
            }
        }
    }
}

/// Batches that wait for a step, for [`CommitMode::Stepped`].
#[derive(Default)]
pub(crate) struct Steps {
    waiting: Mutex<VecDeque<Waiting>>,
    arrived: Notify,
}

impl Steps {
    pub(crate) fn submit(
        &self,
        lane: &Lane,
        batch: Batch,
        durability: Durability,
    ) -> oneshot::Receiver<Answer> {
        let (waiting, verdict) = waiting(lane, batch, durability);
        self.lock().push_back(waiting);
        self.arrived.notify_one();
        verdict
    }

    /// Commits what waits, as one group.
    pub(crate) fn step(&self, committer: &mut Committer) {
        let group: Vec<Waiting> = self.lock().drain(..).collect();
        if !group.is_empty() {
            committer.commit(group);
        }
    }

    /// Waits until a batch waits.
    pub(crate) async fn arrival(&self) {
        while self.lock().is_empty() {
            self.arrived.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits one batch at once, for [`CommitMode::Inline`].
pub(crate) fn commit_inline(
    committer: &mut Committer,
    lane: &Lane,
    batch: Batch,
    durability: Durability,
) -> oneshot::Receiver<Answer> {
    let (waiting, verdict) = waiting(lane, batch, durability);
    committer.commit(vec![waiting]);
    verdict
}

/// Runs a future on this thread, which must not be an async worker unless the future is ready at once.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
