//! Commits one group of batches, answers each, and looks after the store when a commit fails.
//!
//! Knows nothing of queues and threads: whoever calls it is the only one who commits.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::judge::Judge;
use super::{CommitMode, Lane, Waiting, block_on};
use crate::backend::{AnyBackend, Backend, Room};
use crate::batch::{Durability, Operation};
use crate::fault::{Cause, CommitFault, Health};
use crate::ingest;
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
pub(crate) struct Status(Mutex<Health>);

impl Status {
    pub(crate) fn serving() -> Status {
        Status(Mutex::new(Health::Serving))
    }

    pub(crate) fn health(&self) -> Health {
        self.lock().clone()
    }

    fn set(&self, health: Health) {
        *self.lock() = health;
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who commits.
pub(crate) struct Committer {
    backend: Arc<AnyBackend>,
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
}

/// Why nothing can be committed, and when reopening is tried next.
struct Poison {
    cause: Cause,
    retry_at: Instant,
    delay: Duration,
}

impl Committer {
    pub(crate) fn new(
        backend: Arc<AnyBackend>,
        status: Arc<Status>,
        space_count: usize,
        mode: CommitMode,
    ) -> Committer {
        Committer {
            backend,
            status,
            space_count,
            mode,
            poison: None,
            closed: false,
            unsynced_since: None,
            unsynced_lanes: HashMap::new(),
            room: None,
        }
    }

    /// Commits what applies of a group and answers every batch of it.
    ///
    /// Also refusals are answered only after the commit: they may rest on batches of the same group.
    pub(crate) fn commit(&mut self, mut group: Vec<Waiting>) {
        if let Some(fault) = self.refusal() {
            group.into_iter().for_each(|waiting| waiting.answer(Err(fault.clone())));
            return;
        }
        let shortage = match self.shortage() {
            Ok(shortage) => shortage,
            Err(cause) => {
                self.poison(cause.clone(), REOPEN_DELAY_FIRST);
                let fault = CommitFault::Poisoned { cause };
                group.into_iter().for_each(|waiting| waiting.answer(Err(fault.clone())));
                return;
            }
        };
        let mut judge = Judge::new(&self.backend, self.space_count, shortage, &group);
        let mut batches = Vec::with_capacity(group.len());
        let mut verdicts = Vec::with_capacity(group.len());
        for waiting in &mut group {
            let verdict = judge.admit(waiting).map(|operations| batches.push(operations));
            if verdict.is_err() {
                // At once, for the sake of later batches of this group in the same lane.
                waiting.break_chain();
            }
            verdicts.push(verdict);
        }
        let wants_sync =
            self.is_sync_overdue() || group.iter().any(|waiting| waiting.durability == Durability::Sync);
        let durability = if wants_sync { Durability::Sync } else { Durability::Buffered };
        let outcome = self.write(batches, durability);
        if self.unsynced_since.is_some() && outcome.is_ok() {
            let admitted = group.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
            let lanes = admitted.map(|(waiting, _)| (waiting.lane.identity(), waiting.lane.clone()));
            self.unsynced_lanes.extend(lanes);
        }
        self.answer(group, verdicts, outcome);
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
    pub(crate) fn tend_at(&self) -> Option<Instant> {
        if let Some(poison) = &self.poison {
            return Some(poison.retry_at);
        }
        let sync_at = self.unsynced_since.map(|since| since + BUFFERED_SYNC_DELAY);
        sync_at.into_iter().chain(self.backend.tend_at()).min()
    }

    /// Does what is due: syncs buffered commits, lets the backend do its own, or tries to reopen a poisoned store.
    pub(crate) fn tend(&mut self) {
        let now = Instant::now();
        if let Some(poison) = &self.poison {
            if poison.retry_at <= now {
                self.reopen().ok();
            }
        } else if self.unsynced_since.is_some_and(|since| since + BUFFERED_SYNC_DELAY <= now) {
            self.write(Vec::new(), Durability::Sync).ok();
        } else if self.backend.tend_at().is_some_and(|at| at <= now) {
            self.backend.tend();
        }
    }

    /// Reopens the engine, whether the store is poisoned or not.
    pub(crate) fn reopen(&mut self) -> Result<(), CommitFault> {
        if self.closed {
            return Err(CommitFault::Closed);
        }
        if self.poison.is_none() {
            // A store that is well loses nothing. If that fails it is as doubtful as any.
            self.write(Vec::new(), Durability::Sync).ok();
        }
        let backend = &self.backend;
        let reopened = guarded(|| {
            block_on(backend.reopen())?;
            block_on(ingest::remove_unnamed(backend))
        });
        match reopened {
            Ok(()) => {
                if let Some(poison) = self.poison.take() {
                    tracing::warn!(cause = %poison.cause, "store reopened after a failed commit");
                }
                self.unsynced_since = None;
                self.unsynced_lanes.drain().for_each(|(_, lane)| lane.rewind());
                self.status.set(Health::Serving);
                Ok(())
            }
            Err(cause) => {
                tracing::error!(%cause, "store could not be reopened");
                let delay = self.poison.as_ref().map_or(REOPEN_DELAY_FIRST, |poison| poison.delay * 2);
                self.poison(cause.clone(), delay.min(REOPEN_DELAY_MAX));
                Err(CommitFault::Poisoned { cause })
            }
        }
    }

    /// Makes everything durable and lets go of the engine.
    pub(crate) fn close(&mut self) -> Result<(), CommitFault> {
        if std::mem::replace(&mut self.closed, true) {
            return Err(CommitFault::Closed);
        }
        let poison = self.poison.take();
        let closed = guarded(|| block_on(self.backend.close()));
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
        let backend = &self.backend;
        let outcome = match durability {
            _ if !batches.is_empty() => guarded(|| block_on(backend.commit(batches, durability))),
            Durability::Sync if self.unsynced_since.is_some() => guarded(|| block_on(backend.sync())),
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
            (Err(cause), _) => self.poison(cause.clone(), REOPEN_DELAY_FIRST),
        }
        outcome
    }

    fn answer(
        &self,
        group: Vec<Waiting>,
        verdicts: Vec<Result<(), CommitFault>>,
        outcome: Result<(), Cause>,
    ) {
        // The snapshot belongs to this commit: taken before the next one can be made.
        let view = outcome.map_err(|cause| CommitFault::Uncertain { cause }).and_then(|()| {
            let point = block_on(self.backend.point())
                .map_err(|fault| CommitFault::Poisoned { cause: Cause::new(fault) })?;
            Ok(View::new(Arc::clone(&self.backend), point))
        });
        for (waiting, verdict) in group.into_iter().zip(verdicts) {
            let answer = match (&view, verdict) {
                (Ok(view), Ok(())) => Ok(view.clone()),
                (Err(fault), Ok(())) => Err(fault.clone()),
                // What this refusal rests on may not be there: it is as void as the commit.
                (Err(CommitFault::Uncertain { cause }), Err(CommitFault::PreconditionFailed { .. })) => {
                    Err(CommitFault::Poisoned { cause: cause.clone() })
                }
                (_, Err(refusal)) => Err(refusal),
            };
            waiting.answer(answer);
        }
    }

    fn poison(&mut self, cause: Cause, delay: Duration) {
        tracing::error!(%cause, "store takes no commit until it is reopened");
        self.status.set(Health::Poisoned { cause: cause.clone() });
        self.poison = Some(Poison { cause, retry_at: Instant::now() + delay, delay });
    }

    /// The room on the disk, if it is below the reserve. Fails if the store was removed. Looks again at every group when it is getting short, at a
    /// bounded rate otherwise.
    fn shortage(&mut self) -> Result<Option<Room>, Cause> {
        let room = match self.room {
            Some((seen_at, room)) if is_plenty(room) && seen_at.elapsed() < ROOM_LOOK_INTERVAL => room,
            Some(_) | None => {
                let Some(room) = self.backend.room()? else { return Ok(None) };
                self.room = Some((Instant::now(), room));
                room
            }
        };
        let Room { free_bytes, reserve_bytes } = room;
        let is_short = free_bytes < reserve_bytes;
        let was_short = matches!(self.status.health(), Health::Full { .. });
        if is_short {
            if !was_short {
                tracing::warn!(free_bytes, reserve_bytes, "disk is nearly full, growing commits are refused");
            }
            self.status.set(Health::Full { free_bytes, reserve_bytes });
        } else if was_short {
            tracing::info!(free_bytes, reserve_bytes, "disk has room again, all commits are admitted");
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
