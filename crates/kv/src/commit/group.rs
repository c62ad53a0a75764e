//! Commits one group of batches, with an answer for each, and looks after the store when a commit fails.
//!
//! Knows nothing of queues and threads: whoever calls it is the only one who commits.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::judge::Judge;
use super::{CommitMode, block_on};
use crate::backend::Room;
use crate::batch::{Durability, Operation};
use crate::fault::{Cause, CommitFault, Health};
use crate::ingest;
use crate::lane::{Answer, Candidate, Lane};
use crate::metrics::StoreMetrics;
use crate::rows::{AnyRows, RowStore};
use crate::view::View;

/// How long buffered commits may wait for a sync when no later commit asks for one.
const BUFFERED_SYNC_DELAY: Duration = Duration::from_secs(1);

/// Waiting times between attempts to reopen a poisoned store: the first, and the longest, reached by doubling.
const REOPEN_DELAY_FIRST: Duration = Duration::from_millis(20);
const REOPEN_DELAY_MAX: Duration = Duration::from_secs(30);

/// How long a look at the free space of the disk is good for while there is plenty.
const ROOM_LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Free space is plenty as long as it is this many bytes more than the reserve: more than can be written, to journal,
/// tables and merged tables, between two looks.
const ROOM_PLENTY_BYTES: u64 = 1 << 30;

/// How the store is, as others may ask for it.
pub(super) struct Status(Mutex<Health>);

impl Status {
    pub(super) fn serving() -> Status {
        Status(Mutex::new(Health::Serving))
    }

    pub(super) fn health(&self) -> Health {
        self.lock().clone()
    }

    pub(super) fn set(&self, health: Health) {
        *self.lock() = health;
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who commits.
pub(super) struct Committer {
    rows: Arc<AnyRows>,
    status: Arc<Status>,
    space_count: usize,
    mode: CommitMode,
    poison: Option<Poison>,
    closed: bool,
    /// When the oldest buffered commit that waits for a sync was made.
    unsynced_since: Option<Instant>,
    /// Lanes with acknowledged batches that wait for a sync, by their identity.
    unsynced_lanes: HashMap<usize, Lane>,
    /// The last look at the free space, if there is a disk.
    room: Option<(Instant, Room)>,
    metrics: StoreMetrics,
}

/// Why nothing can be committed, and when reopening is tried next.
struct Poison {
    cause: Cause,
    retry_at: Instant,
    delay: Duration,
}

impl Committer {
    pub(super) fn new(
        rows: Arc<AnyRows>,
        status: Arc<Status>,
        space_count: usize,
        mode: CommitMode,
        metrics: StoreMetrics,
    ) -> Committer {
        Committer {
            rows,
            status,
            space_count,
            mode,
            poison: None,
            closed: false,
            unsynced_since: None,
            unsynced_lanes: HashMap::new(),
            room: None,
            metrics,
        }
    }

    /// Commits what applies of a group, and returns the answer to every batch of it.
    ///
    /// Also refusals are answered only after the commit: they may rest on batches of the same group.
    pub(super) fn commit(&mut self, mut group: Vec<Candidate>) -> Vec<Answer> {
        if let Some(fault) = self.refusal() {
            return group.iter().map(|_| Err(fault.clone())).collect();
        }
        let shortage = match self.shortage() {
            Ok(shortage) => shortage,
            Err(cause) => {
                self.poison(cause.clone(), REOPEN_DELAY_FIRST);
                return group.iter().map(|_| Err(CommitFault::Poisoned { cause: cause.clone() })).collect();
            }
        };
        let mut judge = Judge::new(&self.rows, self.space_count, shortage, &group);
        let mut batches = Vec::with_capacity(group.len());
        let mut verdicts = Vec::with_capacity(group.len());
        for candidate in &mut group {
            let verdict = judge.admit(candidate).map(|operations| batches.push(operations));
            if verdict.is_err() {
                // At once, for the sake of later batches of this group in the same lanes.
                candidate.lanes.break_chains();
            }
            verdicts.push(verdict);
        }
        let wants_sync =
            self.is_sync_overdue() || group.iter().any(|candidate| candidate.durability == Durability::Sync);
        let durability = if wants_sync { Durability::Sync } else { Durability::Buffered };
        let outcome = self.write(batches, durability);
        if self.unsynced_since.is_some() && outcome.is_ok() {
            let admitted = group.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
            let lanes = admitted.flat_map(|(candidate, _)| candidate.lanes.all());
            self.unsynced_lanes.extend(lanes.map(|lane| (lane.identity(), lane.clone())));
        }
        self.answers(verdicts, outcome)
    }

    /// Under a steady stream of buffered commits there is never the time to tend to them. A simulation must not
    /// depend on how fast the machine is, and nobody tends to its commits either.
    fn is_sync_overdue(&self) -> bool {
        let is_old = |since: Instant| since.elapsed() >= BUFFERED_SYNC_DELAY;
        match self.mode {
            CommitMode::Thread => self.unsynced_since.is_some_and(is_old),
            CommitMode::Inline | CommitMode::Stepped => false,
        }
    }

    /// Why no batch is taken at all, if so.
    fn refusal(&self) -> Option<CommitFault> {
        if self.closed {
            return Some(CommitFault::Closed);
        }
        self.poison.as_ref().map(|poison| CommitFault::Poisoned { cause: poison.cause.clone() })
    }

    /// The next time [`Committer::tend`] has something to do.
    pub(super) fn tend_at(&self) -> Option<Instant> {
        if let Some(poison) = &self.poison {
            return Some(poison.retry_at);
        }
        let sync_at = self.unsynced_since.map(|since| since + BUFFERED_SYNC_DELAY);
        sync_at.into_iter().chain(self.rows.tend_at()).min()
    }

    /// Does what is due: syncs buffered commits, lets the backend do its own, or tries to reopen a poisoned store.
    pub(super) fn tend(&mut self) {
        let now = Instant::now();
        if let Some(poison) = &self.poison {
            if poison.retry_at <= now {
                self.reopen().ok();
            }
        } else if self.unsynced_since.is_some_and(|since| since + BUFFERED_SYNC_DELAY <= now) {
            self.write(Vec::new(), Durability::Sync).ok();
        } else if self.rows.tend_at().is_some_and(|at| at <= now) {
            self.rows.tend();
        }
    }

    /// Reopens the engine, whether the store is poisoned or not.
    pub(super) fn reopen(&mut self) -> Result<(), CommitFault> {
        if self.closed {
            return Err(CommitFault::Closed);
        }
        if self.poison.is_none() {
            // A store that is well loses nothing. If that fails it is as doubtful as any.
            self.write(Vec::new(), Durability::Sync).ok();
        }
        let rows = &self.rows;
        // Before the reopened engine can be read: who finds its lane as it was has lost nothing.
        self.unsynced_lanes.drain().for_each(|(_, lane)| lane.rewind());
        let reopened = guarded(|| {
            block_on(rows.reopen())?;
            block_on(ingest::remove_unnamed(rows))
        });
        match reopened {
            Ok(()) => {
                if let Some(poison) = self.poison.take() {
                    self.metrics.reopened();
                    tracing::warn!(event = "store_reopened", cause = %poison.cause, "the store was reopened after a failed commit");
                }
                self.unsynced_since = None;
                self.status.set(Health::Serving);
                Ok(())
            }
            Err(cause) => {
                tracing::error!(event = "store_reopen_failed", %cause, "the store could not be reopened; it is tried again");
                let delay = self.poison.as_ref().map_or(REOPEN_DELAY_FIRST, |poison| poison.delay * 2);
                self.poison(cause.clone(), delay.min(REOPEN_DELAY_MAX));
                Err(CommitFault::Poisoned { cause })
            }
        }
    }

    /// Makes everything durable and lets go of the engine.
    pub(super) fn close(&mut self) -> Result<(), CommitFault> {
        if std::mem::replace(&mut self.closed, true) {
            return Err(CommitFault::Closed);
        }
        let poison = self.poison.take();
        let closed = guarded(|| block_on(self.rows.close()));
        self.status.set(Health::Closed);
        match (poison, closed) {
            (Some(Poison { cause, .. }), _) => Err(CommitFault::Poisoned { cause }),
            (None, Err(cause)) => Err(CommitFault::Uncertain { cause }),
            (None, Ok(())) => Ok(()),
        }
    }

    /// Writes the admitted batches, if there is anything to write or to sync.
    fn write(&mut self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        let batches: Vec<_> = batches.into_iter().filter(|operations| !operations.is_empty()).collect();
        let rows = &self.rows;
        let outcome = match durability {
            _ if !batches.is_empty() => {
                let (count, row_count) = (batches.len(), batches.iter().map(Vec::len).sum());
                let begun = Instant::now();
                let outcome = guarded(|| block_on(rows.commit(batches, durability)));
                self.metrics.committed(count, row_count, durability, begun.elapsed());
                outcome
            }
            Durability::Sync if self.unsynced_since.is_some() => guarded(|| block_on(rows.sync())),
            Durability::Sync | Durability::Buffered => return Ok(()),
        };
        match (&outcome, durability) {
            (Ok(()), Durability::Sync) => {
                self.unsynced_since = None;
                self.unsynced_lanes.clear();
            }
            (Ok(()), Durability::Buffered) => {
                self.unsynced_since.get_or_insert_with(Instant::now);
            }
            (Err(cause), _) => {
                self.metrics.failed();
                self.poison(cause.clone(), REOPEN_DELAY_FIRST);
            }
        }
        outcome
    }

    fn answers(&self, verdicts: Vec<Result<(), CommitFault>>, outcome: Result<(), Cause>) -> Vec<Answer> {
        // The snapshot belongs to this commit: taken before the next one can be made.
        let view = outcome.map_err(|cause| CommitFault::Uncertain { cause }).and_then(|()| {
            let point = block_on(self.rows.point())
                .map_err(|fault| CommitFault::Poisoned { cause: Cause::new(fault) })?;
            Ok(View::of_rows(Arc::clone(&self.rows), point))
        });
        let answer = |verdict: Result<(), CommitFault>| match (&view, verdict) {
            (Ok(view), Ok(())) => Ok(view.clone()),
            (Err(fault), Ok(())) => Err(fault.clone()),
            // What this refusal rests on may not be there: it is as void as the commit.
            (Err(CommitFault::Uncertain { cause }), Err(CommitFault::PreconditionFailed { .. })) => {
                Err(CommitFault::Poisoned { cause: cause.clone() })
            }
            (_, Err(refusal)) => Err(refusal),
        };
        verdicts.into_iter().map(answer).collect()
    }

    /// Whether nothing is committed until the engine was reopened.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// Others were told that the outcome of a call is unknown, which has ended since.
    pub(super) fn doubt(&mut self, cause: Cause) {
        self.poison(cause, REOPEN_DELAY_FIRST);
    }

    fn poison(&mut self, cause: Cause, delay: Duration) {
        tracing::error!(event = "store_poisoned", %cause, "commits are rejected until the store is reopened");
        self.status.set(Health::Poisoned { cause: cause.clone() });
        self.poison = Some(Poison { cause, retry_at: Instant::now() + delay, delay });
    }

    /// The room on the disk, if it is below the reserve. Fails if the store was removed. Looks again at every group when it is getting short, at a
    /// bounded rate otherwise.
    fn shortage(&mut self) -> Result<Option<Room>, Cause> {
        let room = match self.room {
            Some((seen_at, room)) if is_plenty(room) && seen_at.elapsed() < ROOM_LOOK_INTERVAL => room,
            Some(_) | None => {
                let Some(room) = self.rows.room()? else { return Ok(None) };
                self.room = Some((Instant::now(), room));
                room
            }
        };
        let Room { free_bytes, reserve_bytes } = room;
        let is_short = free_bytes < reserve_bytes;
        let was_short = matches!(self.status.health(), Health::Full { .. });
        if is_short {
            if !was_short {
                tracing::warn!(
                    event = "disk_full",
                    free_bytes,
                    reserve_bytes,
                    "the disk is nearly full; writes that grow the store are refused"
                );
            }
            self.status.set(Health::Full { free_bytes, reserve_bytes });
        } else if was_short {
            tracing::info!(
                event = "disk_has_room",
                free_bytes,
                reserve_bytes,
                "the disk has room again; all writes are accepted"
            );
            self.status.set(Health::Serving);
        }
        Ok(is_short.then_some(room))
    }
}

fn is_plenty(room: Room) -> bool {
    room.free_bytes.saturating_sub(room.reserve_bytes) >= ROOM_PLENTY_BYTES
}

/// Turns a panic of the engine into a failure of the call: the store must outlive it, and reopening heals both.
fn guarded(call: impl FnOnce() -> Result<(), Cause>) -> Result<(), Cause> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Cause::new(format_args!("the engine panicked: {text}")))
    })
}
