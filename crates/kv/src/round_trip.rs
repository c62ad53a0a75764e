//! A test backend on which every call takes a round trip and lanes are fully independent. It shows that the callers
//! rely on nothing more.
//!
//! Rows are in memory on the other side of a simulated connection. A call sends a request, which is executed as one
//! atomic step, and receives an answer; other calls may overtake it. Batches of one lane keep their order, those of
//! different lanes do not. A lost request or answer makes only the lanes of that batch uncertain.
//!
//! Knows nothing of groups, syncs and poison.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot, watch};

use crate::backend::{Backend, DiskSpace, StoreMemory};
use crate::batch::{Batch, Durability, Space};
use crate::commit::{BatchValidator, RequiredRows, block_on};
use crate::fault::{Cause, CommitFault, Health, ReadFault};
use crate::ingest;
use crate::lane::{Candidate, CommitAnswer, LANE_BATCHES_MAX, Lane, Lanes, Submission};
use crate::rows::{AnyRows, RowStore, RowsPoint};
use crate::view::{Chunk, Scan, View};

/// How long a call waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Most times that a request or an answer yields to others.
const HOPS_MAX: u64 = 3;

/// A seeded connection to the rows, shared with the test that controls it. Clones are handles of the same one.
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

/// What happens to a batch in transit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// The request never arrives.
    RequestLost,
    /// The request arrives, its answer does not.
    AnswerLost,
    /// The request arrives when [`Link::deliver`] is called.
    Delayed,
}

impl Link {
    /// A link without faults. The seed determines how long each call takes.
    pub fn seeded(seed: u64) -> Link {
        let state = Mutex::new(LinkState { random: seed, next_fate: Fate::Arrives });
        Link { shared: Arc::new(LinkShared { state, delivered: Notify::new() }) }
    }

    /// Loses the next batch before it is executed.
    pub fn lose_next_request(&self) {
        self.lock().next_fate = Fate::RequestLost;
    }

    /// Loses the answer to the next batch, which is executed.
    pub fn lose_next_answer(&self) {
        self.lock().next_fate = Fate::AnswerLost;
    }

    /// Delays the next batch until [`Link::deliver`], however long its submitter waits.
    pub fn delay_next_request(&self) {
        self.lock().next_fate = Fate::Delayed;
    }

    /// Delivers a delayed batch.
    pub fn deliver(&self) {
        self.shared.delivered.notify_one();
    }

    fn take_fate(&self) -> Fate {
        std::mem::replace(&mut self.lock().next_fate, Fate::Arrives)
    }

    /// Transmits a request or an answer.
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

/// The client side of the connection.
pub(crate) struct RoundTrip {
    remote: Arc<Remote>,
    /// The newest batch of each lane, by lane identity. Its sender is dropped when the batch is decided.
    lanes: Mutex<HashMap<usize, watch::Receiver<()>>>,
}

/// The server side of the connection.
struct Remote {
    rows: Arc<AnyRows>,
    space_count: usize,
    link: Link,
    /// Held while a batch is validated and applied.
    applying: Mutex<()>,
    is_closed: AtomicBool,
}

/// A snapshot on the server side.
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

    /// Queues a batch after the batches of `lanes`; returns these, and the sender to drop when the batch is decided.
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

    /// Transports one batch. `_undecided` is dropped when its outcome is final.
    async fn carry(
        self: Arc<Remote>,
        submission: Submission,
        before: Vec<watch::Receiver<()>>,
        _undecided: watch::Sender<()>,
    ) {
        for batch in before {
            is_decided(batch).await;
        }
        let (candidate, pending) = submission.split();
        // Nothing is sent after a failed batch.
        if candidate.lanes.is_broken() {
            return pending.answer(Err(CommitFault::ChainBroken));
        }
        let lost = || Cause::new(format_args!("there was no answer within {ANSWER_TIMEOUT:?}"));
        match self.link.take_fate() {
            Fate::Arrives => {
                self.link.travel().await;
                let answer = self.apply(candidate);
                self.link.travel().await;
                pending.answer(answer);
            }
            Fate::RequestLost => {
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                pending.answer(Err(CommitFault::Uncertain { cause: lost() }));
            }
            Fate::AnswerLost => {
                drop(self.apply(candidate));
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                pending.answer(Err(CommitFault::Uncertain { cause: lost() }));
            }
            Fate::Delayed => {
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                // The server side does not know that the client no longer waits.
                let late = Candidate { lanes: Lanes::of(&[]), ..candidate };
                pending.answer(Err(CommitFault::Uncertain { cause: lost() }));
                self.link.shared.delivered.notified().await;
                drop(self.apply(late));
            }
        }
    }

    /// Validates and applies a batch in one step.
    fn apply(self: &Arc<Remote>, candidate: Candidate) -> CommitAnswer {
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_open()?;
        let mut group = [candidate];
        // Other clients may have written since the last batch.
        let mut required = RequiredRows::default();
        let mut validator = BatchValidator::new(&self.rows, self.space_count, None, &mut required, &group);
        let changes =
            group.iter_mut().map(|candidate| validator.admit(candidate)).collect::<Result<Vec<_>, _>>()?;
        // Memory answers without waiting.
        let committed = block_on(self.rows.commit(changes, Durability::Sync));
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

    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<CommitAnswer> {
        let (before, undecided) = self.enter(&lanes);
        let (submission, verdict) = Submission::new(lanes, batch, durability);
        if let Err(fault) = self.remote.check_open() {
            submission.pending.answer(Err(fault));
        } else if submission.is_crowded() {
            submission.pending.answer(Err(CommitFault::LaneCrowded { limit: LANE_BATCHES_MAX }));
        } else {
            tokio::spawn(Arc::clone(&self.remote).carry(submission, before, undecided));
        }
        verdict
    }

    async fn resolve_lane(&self, lane: &Lane) -> Result<(), CommitFault> {
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

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        Ok(None)
    }

    fn health(&self) -> Health {
        if self.remote.check_open().is_ok() { Health::Serving } else { Health::Closed }
    }

    fn shortage(&self) -> Option<DiskSpace> {
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
        let in_flight: Vec<_> = self.lanes().drain().map(|(_, newest)| newest).collect();
        for batch in in_flight {
            // A lost batch is not waited for.
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
