//! Lanes, and the batches that are on their way in them.
//!
//! Knows neither how batches are judged nor who commits them; every backend uses the same lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::oneshot;

use crate::batch::{Batch, Durability};
use crate::fault::CommitFault;
use crate::view::View;

/// Most batches one lane may have under way.
pub const LANE_BATCHES_MAX: usize = 256;

/// A chain of batches of one submitter: when one of them fails, every later one fails with
/// [`CommitFault::ChainBroken`], until the submitter takes a new lane. So a submitter may send batch n + 1, which
/// rests on n, before it knows the fate of n. Batches of different lanes are independent: they are committed in any
/// order, and a doubt about one is no doubt about another.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    state: Arc<LaneState>,
    /// Shared with the lanes that came after: what was acknowledged in one is known in the next.
    rewound: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct LaneState {
    broken: AtomicBool,
    under_way: AtomicUsize,
}

impl Lane {
    /// Whether the store was reopened while batches of this lane, or of one that it comes after, were acknowledged and
    /// not synced: they may be gone. The lane takes no batch any more. Its submitter must read again what it knows of the store, forget what it has
    /// cached of rows that it wrote, and take a new lane.
    pub fn is_rewound(&self) -> bool {
        self.rewound.load(Ordering::Acquire)
    }

    /// A lane for what comes after the batches of this one.
    pub(crate) fn successor(&self) -> Lane {
        if self.is_rewound() {
            Lane::default()
        } else {
            Lane { rewound: Arc::clone(&self.rewound), ..Lane::default() }
        }
    }

    /// Whether a batch of this lane has failed, so that it takes none any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.broken.load(Ordering::Acquire) || self.is_rewound()
    }

    /// Whether batches of this lane wait for their verdict.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.under_way.load(Ordering::Acquire) > 0
    }

    /// Differs between lanes that exist at the same time.
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

/// The lanes of one batch: one as a rule.
#[derive(Clone)]
pub(crate) enum Lanes {
    One(Lane),
    Several(Vec<Lane>),
}

impl Lanes {
    /// Without any, a lane that nobody else is in.
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

/// The answer to a batch: a state right behind its commit.
pub(crate) type Answer = Result<View, CommitFault>;

/// A batch that was handed over.
pub(crate) struct Submission {
    pub(crate) batch: Batch,
    durability: Durability,
    pub(crate) owed: Owed,
}

/// A batch that is to be judged.
pub(crate) struct Candidate {
    pub(crate) lanes: Lanes,
    pub(crate) batch: Batch,
    pub(crate) durability: Durability,
}

/// The answer that the submitter of a batch waits for.
pub(crate) struct Owed {
    lanes: Lanes,
    reply: oneshot::Sender<Answer>,
}

impl Submission {
    /// The batch on its way, and what its submitter waits for.
    pub(crate) fn new(
        lanes: Lanes,
        batch: Batch,
        durability: Durability,
    ) -> (Submission, oneshot::Receiver<Answer>) {
        let (reply, verdict) = oneshot::channel();
        for lane in lanes.all() {
            lane.state.under_way.fetch_add(1, Ordering::AcqRel);
        }
        (Submission { batch, durability, owed: Owed { lanes, reply } }, verdict)
    }

    /// What is to be judged, and who waits for the verdict.
    pub(crate) fn split(self) -> (Candidate, Owed) {
        let Submission { batch, durability, owed } = self;
        (Candidate { lanes: owed.lanes.clone(), batch, durability }, owed)
    }

    /// Whether one of its lanes has too many batches under way, this one included.
    pub(crate) fn is_crowded(&self) -> bool {
        let under_way = |lane: &Lane| lane.state.under_way.load(Ordering::Acquire);
        self.owed.lanes.all().iter().any(|lane| under_way(lane) > LANE_BATCHES_MAX)
    }
}

impl Owed {
    /// Sends the verdict, and breaks the lanes if it is a fault.
    pub(crate) fn answer(self, answer: Answer) {
        if answer.is_err() {
            self.lanes.break_chains();
        }
        for lane in self.lanes.all() {
            lane.state.under_way.fetch_sub(1, Ordering::AcqRel);
        }
        // A submitter that no longer listens has its batch committed all the same.
        self.reply.send(answer).ok();
    }
}
