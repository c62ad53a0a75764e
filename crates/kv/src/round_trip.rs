//! A backend on which every call takes a round trip and lanes have nothing in common: it shows, in tests, that the border
//! asks for nothing more.
//!
//! Rows lie in memory, behind a connection. A call is a request that travels, is carried out there as one atomic step,
//! and an answer that travels back; meanwhile calls of others overtake it. Batches of one lane keep their order, those
//! of different lanes do not. A lost request or answer leaves a doubt about the lanes of that batch alone.
//!
//! Knows nothing of groups, syncs and poison.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot, watch};

use crate::backend::{Backend, Room, StoreMemory};
use crate::batch::{Batch, Durability, Space};
use crate::commit::{Judge, block_on};
use crate::fault::{Cause, CommitFault, Health, ReadFault};
use crate::ingest;
use crate::lane::{Answer, Candidate, LANE_BATCHES_MAX, Lane, Lanes, Submission};
use crate::rows::{AnyRows, RowStore, RowsPoint};
use crate::view::{Chunk, Scan, View};

/// How long an answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Most times that a request or an answer lets others overtake it.
const HOPS_MAX: u64 = 3;

/// A seeded connection to the rows, shared with whoever directs it. Clones are handles of the same one.
#[derive(Clone)]
pub struct Link {
    shared: Arc<LinkShared>,
}

struct LinkShared {
    state: Mutex<LinkState>,
    delivered: Notify,
}

struct LinkState {
    random: u64,
    next_fate: Fate,
}

/// What becomes of a batch on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// The request never arrives.
    RequestLost,
    /// The request arrives, its answer does not.
    AnswerLost,
    /// The request arrives when the link is told to deliver it.
    Delayed,
}

impl Link {
    /// A link without faults. How long each call takes follows from the seed.
    pub fn seeded(seed: u64) -> Link {
        let state = Mutex::new(LinkState { random: seed, next_fate: Fate::Arrives });
        Link { shared: Arc::new(LinkShared { state, delivered: Notify::new() }) }
    }

    /// Loses the next batch before it is carried out.
    pub fn lose_next_request(&self) {
        self.lock().next_fate = Fate::RequestLost;
    }

    /// Loses the answer to the next batch, which is carried out.
    pub fn lose_next_answer(&self) {
        self.lock().next_fate = Fate::AnswerLost;
    }

    /// Holds the next batch back until [`Link::deliver`], however long its submitter waits.
    pub fn delay_next_request(&self) {
        self.lock().next_fate = Fate::Delayed;
    }

    /// Lets a batch arrive that was held back.
    pub fn deliver(&self) {
        self.shared.delivered.notify_one();
    }

    fn take_fate(&self) -> Fate {
        std::mem::replace(&mut self.lock().next_fate, Fate::Arrives)
    }

    /// The way of a request or an answer.
    async fn travel(&self) {
        let hops = {
            let mut state = self.lock();
            // An odd multiplier and an odd increment: the upper bits run through all numbers.
            state.random =
                state.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            1 + (state.random >> 33) % HOPS_MAX
        };
        for _ in 0..hops {
            tokio::task::yield_now().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Link")
    }
}

/// The near end of the connection.
pub(crate) struct RoundTrip {
    remote: Arc<Remote>,
    /// The newest batch of each lane, by the identity of the lane. Its sender goes when the batch is decided.
    lanes: Mutex<HashMap<usize, watch::Receiver<()>>>,
}

/// The far end.
struct Remote {
    rows: Arc<AnyRows>,
    space_count: usize,
    link: Link,
    /// Held while a batch is judged and applied.
    applying: Mutex<()>,
    is_closed: AtomicBool,
}

/// A state at the far end.
#[derive(Clone)]
pub(crate) struct RemotePoint {
    remote: Arc<Remote>,
    point: RowsPoint,
}

impl RoundTrip {
    pub(crate) fn new(rows: AnyRows, space_count: usize, link: Link) -> RoundTrip {
        let rows = Arc::new(rows);
        let is_closed = AtomicBool::new(false);
        let remote = Arc::new(Remote { rows, space_count, link, applying: Mutex::default(), is_closed });
        RoundTrip { remote, lanes: Mutex::default() }
    }

    pub(crate) fn rows(&self) -> &AnyRows {
        &self.remote.rows
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<usize, watch::Receiver<()>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place behind the batches of `lanes`; returns these, and what to drop when the batch is decided.
    fn enter(&self, lanes: &Lanes) -> (Vec<watch::Receiver<()>>, watch::Sender<()>) {
        let (undecided, decided) = watch::channel(());
        let mut newest = self.lanes();
        newest.retain(|_, batch| batch.has_changed().is_ok());
        let before = lanes.all().iter().filter_map(|lane| newest.insert(lane.identity(), decided.clone()));
        (before.collect(), undecided)
    }
}

/// Waits until a batch is decided.
async fn is_decided(mut batch: watch::Receiver<()>) {
    while batch.changed().await.is_ok() {}
}

impl Remote {
    fn check_open(&self) -> Result<(), CommitFault> {
        if self.is_closed.load(Ordering::Acquire) { Err(CommitFault::Closed) } else { Ok(()) }
    }

    /// The way of one batch. `_undecided` goes when its outcome is final.
    async fn carry(
        self: Arc<Remote>,
        submission: Submission,
        before: Vec<watch::Receiver<()>>,
        _undecided: watch::Sender<()>,
    ) {
        for batch in before {
            is_decided(batch).await;
        }
        let (candidate, owed) = submission.split();
        // Behind a batch that failed nothing is sent at all.
        if candidate.lanes.is_broken() {
            return owed.answer(Err(CommitFault::ChainBroken));
        }
        let lost = || Cause::new(format_args!("there was no answer within {ANSWER_TIMEOUT:?}"));
        match self.link.take_fate() {
            Fate::Arrives => {
                self.link.travel().await;
                let answer = self.apply(candidate);
                self.link.travel().await;
                owed.answer(answer);
            }
            Fate::RequestLost => {
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                owed.answer(Err(CommitFault::Uncertain { cause: lost() }));
            }
            Fate::AnswerLost => {
                drop(self.apply(candidate));
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                owed.answer(Err(CommitFault::Uncertain { cause: lost() }));
            }
            Fate::Delayed => {
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                // What is judged at the far end does not know that nobody waits any more.
                let late = Candidate { lanes: Lanes::of(&[]), ..candidate };
                owed.answer(Err(CommitFault::Uncertain { cause: lost() }));
                self.link.shared.delivered.notified().await;
                drop(self.apply(late));
            }
        }
    }

    /// Judges a batch and applies it, as one step.
    fn apply(self: &Arc<Remote>, candidate: Candidate) -> Answer {
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_open()?;
        let mut group = [candidate];
        let mut judge = Judge::new(&self.rows, self.space_count, None, &group);
        let operations =
            group.iter_mut().map(|candidate| judge.admit(candidate)).collect::<Result<Vec<_>, _>>()?;
        // Memory answers at once.
        let committed = block_on(self.rows.commit(operations, Durability::Sync));
        committed.map_err(|cause| CommitFault::Poisoned { cause })?;
        let point = block_on(self.rows.point()).map_err(CommitFault::Unreadable)?;
        Ok(View::remote(RemotePoint { remote: Arc::clone(self), point }))
    }
}

impl Backend for RoundTrip {
    async fn view(&self) -> Result<View, ReadFault> {
        self.remote.link.travel().await;
        let point = self.remote.rows.point().await?;
        self.remote.link.travel().await;
        Ok(View::remote(RemotePoint { remote: Arc::clone(&self.remote), point }))
    }

    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<Answer> {
        let (before, undecided) = self.enter(&lanes);
        let (submission, verdict) = Submission::new(lanes, batch, durability);
        if let Err(fault) = self.remote.check_open() {
            submission.owed.answer(Err(fault));
        } else if submission.is_crowded() {
            submission.owed.answer(Err(CommitFault::LaneCrowded { limit: LANE_BATCHES_MAX }));
        } else {
            tokio::spawn(Arc::clone(&self.remote).carry(submission, before, undecided));
        }
        verdict
    }

    async fn settle(&self, lane: &Lane) -> Result<(), CommitFault> {
        self.remote.check_open()?;
        let newest = self.lanes().get(&lane.identity()).cloned();
        let Some(newest) = newest else { return Ok(()) };
        let decided = tokio::time::timeout(ANSWER_TIMEOUT, is_decided(newest)).await;
        let cause = || Cause::new("a batch of the lane is still on its way");
        decided.map_err(|_| CommitFault::Uncertain { cause: cause() })
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        self.remote.link.travel().await;
        self.remote.rows.ingest(space, rows).await?;
        self.remote.link.travel().await;
        Ok(())
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        Ok(None)
    }

    fn health(&self) -> Health {
        if self.remote.check_open().is_ok() { Health::Serving } else { Health::Closed }
    }

    fn shortage(&self) -> Option<Room> {
        None
    }

    async fn reopen(&self) -> Result<(), CommitFault> {
        self.remote.link.travel().await;
        self.remote.check_open()?;
        let reopened = async {
            self.remote.rows.reopen().await?;
            ingest::remove_unnamed(&self.remote.rows).await
        };
        reopened.await.map_err(|cause| CommitFault::Poisoned { cause })
    }

    async fn close(&self) -> Result<(), CommitFault> {
        let under_way: Vec<_> = self.lanes().drain().map(|(_, newest)| newest).collect();
        for batch in under_way {
            // One that is lost is not waited for.
            tokio::time::timeout(ANSWER_TIMEOUT, is_decided(batch)).await.ok();
        }
        if self.remote.is_closed.swap(true, Ordering::AcqRel) {
            return Err(CommitFault::Closed);
        }
        self.remote.rows.close().await.map_err(|cause| CommitFault::Uncertain { cause })
    }

    fn disk_bytes(&self) -> u64 {
        self.remote.rows.disk_bytes()
    }

    fn memory_use(&self) -> StoreMemory {
        self.remote.rows.memory_use()
    }
}

impl RemotePoint {
    pub(crate) fn is_live(&self) -> bool {
        self.point.is_live()
    }

    pub(crate) async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        self.remote.link.travel().await;
        let value = self.remote.rows.get(&self.point, space, key).await;
        self.remote.link.travel().await;
        value
    }

    pub(crate) async fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        self.remote.link.travel().await;
        let values = self.remote.rows.get_many(&self.point, space, keys).await;
        self.remote.link.travel().await;
        values
    }

    pub(crate) async fn scan(&self, space: Space, scan: Scan) -> Result<Chunk, ReadFault> {
        self.remote.link.travel().await;
        let chunk = self.remote.rows.scan(&self.point, space, scan).await;
        self.remote.link.travel().await;
        chunk
    }
}
