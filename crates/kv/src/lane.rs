//! Lanes and their batches in flight.
//!
//! Knows neither how batches are validated nor who commits them; every backend uses the same lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::oneshot;

use crate::batch::{Batch, Durability};
use crate::fault::CommitFault;
use crate::view::View;

/// Most batches of one lane in flight.
pub const LANE_BATCHES_MAX: usize = 256;

/// A chain of batches of one submitter: when one of them fails, every later one fails with
/// [`CommitFault::ChainBroken`], until the submitter takes a new lane. So a submitter may send batch n + 1, which
/// depends on n, before it knows the outcome of n. Batches of different lanes are independent: they are committed in
/// any order, and an unknown outcome in one lane does not affect another.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    state: Arc<LaneState>,
    /// Shared with the successors of this lane: a loss of acknowledged batches affects them too.
    rewound: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct LaneState {
    broken: AtomicBool,
    in_flight: AtomicUsize,
}

impl Lane {
    /// Whether the store was reopened while batches of this lane, or of a predecessor, were acknowledged and not
    /// synced: they may be lost. The lane accepts no further batch. Its submitter must read its state from the store
    /// again, drop cached rows that it wrote, and take a new lane.
    pub fn is_rewound(&self) -> bool {
        self.rewound.load(Ordering::Acquire)
    }

    /// A lane that continues after the batches of this one.
    pub(crate) fn successor(&self) -> Lane {
        if self.is_rewound() {
            Lane::default()
        } else {
            Lane { rewound: Arc::clone(&self.rewound), ..Lane::default() }
        }
    }

    /// Whether a batch of this lane has failed, so that it accepts no more.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.broken.load(Ordering::Acquire) || self.is_rewound()
    }

    /// Whether batches of this lane wait for their answers.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.in_flight.load(Ordering::Acquire) > 0
    }

    /// Unique among the lanes that exist at the same time.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    pub(crate) fn break_chain(&self) {
        self.state.broken.store(true, Ordering::Release);
    }

    pub(crate) fn rewind(&self) {
        self.rewound.store(true, Ordering::Release);
    }
}

/// The lanes of one batch, usually one.
#[derive(Clone)]
pub(crate) enum Lanes {
    One(Lane),
    Several(Vec<Lane>),
}

impl Lanes {
    /// Without any, a new lane of its own.
    pub(crate) fn of(lanes: &[&Lane]) -> Lanes {
        match lanes {
            [] => Lanes::One(Lane::default()),
            [lane] => Lanes::One((*lane).clone()),
            several => Lanes::Several(several.iter().map(|lane| (*lane).clone()).collect()),
        }
    }

    pub(crate) fn all(&self) -> &[Lane] {
        match self {
            Lanes::One(lane) => std::slice::from_ref(lane),
            Lanes::Several(lanes) => lanes,
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.all().iter().any(Lane::is_broken)
    }

    pub(crate) fn break_chains(&self) {
        self.all().iter().for_each(Lane::break_chain);
    }
}

/// The answer to a batch: a view directly after its commit.
pub(crate) type CommitAnswer = Result<View, CommitFault>;

/// A submitted batch with its lanes and its pending answer.
pub(crate) struct Submission {
    pub(crate) batch: Batch,
    durability: Durability,
    pub(crate) pending: PendingAnswer,
}

/// A batch to be validated.
pub(crate) struct Candidate {
    pub(crate) lanes: Lanes,
    pub(crate) batch: Batch,
    pub(crate) durability: Durability,
}

/// The answer that the submitter of a batch waits for.
pub(crate) struct PendingAnswer {
    lanes: Lanes,
    reply: oneshot::Sender<CommitAnswer>,
}

impl Submission {
    /// Creates a submission and the receiver of its answer.
    pub(crate) fn new(
        lanes: Lanes,
        batch: Batch,
        durability: Durability,
    ) -> (Submission, oneshot::Receiver<CommitAnswer>) {
        let (reply, verdict) = oneshot::channel();
        for lane in lanes.all() {
            lane.state.in_flight.fetch_add(1, Ordering::AcqRel);
        }
        (Submission { batch, durability, pending: PendingAnswer { lanes, reply } }, verdict)
    }

    /// Separates the batch from its pending answer.
    pub(crate) fn split(self) -> (Candidate, PendingAnswer) {
        let Submission { batch, durability, pending } = self;
        (Candidate { lanes: pending.lanes.clone(), batch, durability }, pending)
    }

    /// Whether one of its lanes has too many batches in flight, including this one.
    pub(crate) fn is_crowded(&self) -> bool {
        let in_flight = |lane: &Lane| lane.state.in_flight.load(Ordering::Acquire);
        self.pending.lanes.all().iter().any(|lane| in_flight(lane) > LANE_BATCHES_MAX)
    }
}

impl PendingAnswer {
    /// Sends the answer, and breaks the lanes if it is a fault.
    pub(crate) fn answer(self, answer: CommitAnswer) {
        if answer.is_err() {
            self.lanes.break_chains();
        }
        for lane in self.lanes.all() {
            lane.state.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        // The batch is committed even if the submitter has dropped the receiver.
        self.reply.send(answer).ok();
    }
}
