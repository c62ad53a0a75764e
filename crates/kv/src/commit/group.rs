//! Commits one group of batches, answers each of them, and reopens the store after a failed commit.
//!
//! Knows nothing of queues and threads. Its caller is the only committer.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::required::RequiredRows;
use super::validator::BatchValidator;
use super::{CommitMode, block_on};
use crate::backend::DiskSpace;
use crate::batch::{Durability, RowChange};
use crate::fault::{Cause, CommitFault, Health};
use crate::ingest;
use crate::lane::{Candidate, CommitAnswer, Lane};
use crate::metrics::StoreMetrics;
use crate::rows::{AnyRows, RowStore};
use crate::view::View;

/// Longest time buffered commits wait for a sync when no later commit requests one.
const BUFFERED_SYNC_DELAY: Duration = Duration::from_secs(1);

/// Delay before the first attempt to reopen a poisoned store, and the longest delay, reached by doubling.
const REOPEN_DELAY_FIRST: Duration = Duration::from_millis(20);
const REOPEN_DELAY_MAX: Duration = Duration::from_secs(30);

/// How long a measured amount of free disk space is reused while it is ample.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Free space is ample if it exceeds the reserve by this many bytes: more than can be written to journals, tables and
/// merged tables between two checks.
const SPACE_AMPLE_BYTES: u64 = 1 << 30;

/// Health of the store, shared with readers.
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

/// The only writer of a store: validates groups, commits them and handles failures.
pub(super) struct Committer {
    rows: Arc<AnyRows>,
    status: Arc<Status>,
    space_count: usize,
    mode: CommitMode,
    poison: Option<Poison>,
    closed: bool,
    /// Time of the oldest buffered commit that waits for a sync.
    unsynced_since: Option<Instant>,
    /// Lanes with acknowledged batches that wait for a sync, by their identity.
    unsynced_lanes: HashMap<usize, Lane>,
    /// The last measured free space, if there is a disk.
    room: Option<(Instant, DiskSpace)>,
    /// Required rows, as the last commit left them.
    required: RequiredRows,
    metrics: StoreMetrics,
}

/// Why nothing can be committed, and when the next reopen is due.
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
            required: RequiredRows::default(),
            metrics,
        }
    }

    /// Commits the admissible batches of a group and returns the answer to every batch.
    ///
    /// Refusals are answered only after the commit too: they may depend on batches of the same group.
    pub(super) fn commit(&mut self, mut group: Vec<Candidate>) -> Vec<CommitAnswer> {
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
        let mut validator =
            BatchValidator::new(&self.rows, self.space_count, shortage, &mut self.required, &group);
        let mut batches = Vec::with_capacity(group.len());
        let mut verdicts = Vec::with_capacity(group.len());
        for candidate in &mut group {
            let verdict = validator.admit(candidate).map(|changes| batches.push(changes));
            if verdict.is_err() {
                // Immediately, because later batches of this group may be in the same lanes.
                candidate.lanes.break_chains();
            }
            verdicts.push(verdict);
        }
        let wants_sync =
            self.is_sync_overdue() || group.iter().any(|candidate| candidate.durability == Durability::Sync);
        let durability = if wants_sync { Durability::Sync } else { Durability::Buffered };
        let outcome = self.write(batches, durability);
        if group.iter().any(|candidate| !candidate.batch.ingests.is_empty()) {
            // Ingested rows did not pass here, and are visible from now on.
            self.required.forget();
        }
        if self.unsynced_since.is_some() && outcome.is_ok() {
            let admitted = group.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
            let lanes = admitted.flat_map(|(candidate, _)| candidate.lanes.all());
            self.unsynced_lanes.extend(lanes.map(|lane| (lane.identity(), lane.clone())));
        }
        self.answers(verdicts, outcome)
    }

    /// Under a steady stream of buffered commits, maintenance never runs. A simulation must not depend on the speed of
    /// the machine, so this applies to the commit thread only.
    fn is_sync_overdue(&self) -> bool {
        let is_old = |since: Instant| since.elapsed() >= BUFFERED_SYNC_DELAY;
        match self.mode {
            CommitMode::Thread => self.unsynced_since.is_some_and(is_old),
            CommitMode::Inline | CommitMode::Stepped => false,
        }
    }

    /// The fault with which every batch is refused at present, if any.
    fn refusal(&self) -> Option<CommitFault> {
        if self.closed {
            return Some(CommitFault::Closed);
        }
        self.poison.as_ref().map(|poison| CommitFault::Poisoned { cause: poison.cause.clone() })
    }

    /// When [`Committer::maintain`] is next due.
    pub(super) fn maintenance_due_at(&self) -> Option<Instant> {
        if let Some(poison) = &self.poison {
            return Some(poison.retry_at);
        }
        let sync_at = self.unsynced_since.map(|since| since + BUFFERED_SYNC_DELAY);
        sync_at.into_iter().chain(self.rows.maintenance_due_at()).min()
    }

    /// Does the work that is due: syncs buffered commits, runs the backend's maintenance, or tries to reopen a poisoned
    /// store.
    pub(super) fn maintain(&mut self) {
        let now = Instant::now();
        if let Some(poison) = &self.poison {
            if poison.retry_at <= now {
                self.reopen().ok();
            }
        } else if self.unsynced_since.is_some_and(|since| since + BUFFERED_SYNC_DELAY <= now) {
            self.write(Vec::new(), Durability::Sync).ok();
        } else if self.rows.maintenance_due_at().is_some_and(|at| at <= now) {
            self.rows.maintain();
        }
    }

    /// Reopens the engine, whether the store is poisoned or not.
    pub(super) fn reopen(&mut self) -> Result<(), CommitFault> {
        if self.closed {
            return Err(CommitFault::Closed);
        }
        if self.poison.is_none() {
            // A healthy store must lose nothing. If this sync fails, the store is treated as poisoned.
            self.write(Vec::new(), Durability::Sync).ok();
        }
        self.required.forget();
        let rows = &self.rows;
        // Before the reopened engine can be read: a reader whose lane is not rewound has lost nothing.
        self.unsynced_lanes.drain().for_each(|(_, lane)| lane.rewind());
        let reopened = catch_panic(|| {
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

    /// Makes everything durable and closes the engine.
    pub(super) fn close(&mut self) -> Result<(), CommitFault> {
        if std::mem::replace(&mut self.closed, true) {
            return Err(CommitFault::Closed);
        }
        let poison = self.poison.take();
        let closed = catch_panic(|| block_on(self.rows.close()));
        self.status.set(Health::Closed);
        match (poison, closed) {
            (Some(Poison { cause, .. }), _) => Err(CommitFault::Poisoned { cause }),
            (None, Err(cause)) => Err(CommitFault::Uncertain { cause }),
            (None, Ok(())) => Ok(()),
        }
    }

    /// Writes the admitted batches, if there is anything to write or to sync.
    fn write(&mut self, batches: Vec<Vec<RowChange>>, durability: Durability) -> Result<(), Cause> {
        let batches: Vec<_> = batches.into_iter().filter(|changes| !changes.is_empty()).collect();
        let rows = &self.rows;
        let outcome = match durability {
            _ if !batches.is_empty() => {
                let (count, row_count) = (batches.len(), batches.iter().map(Vec::len).sum());
                let begun = Instant::now();
                let outcome = catch_panic(|| block_on(rows.commit(batches, durability)));
                self.metrics.committed(count, row_count, durability, begun.elapsed());
                outcome
            }
            Durability::Sync if self.unsynced_since.is_some() => catch_panic(|| block_on(rows.sync())),
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

    fn answers(
        &self,
        verdicts: Vec<Result<(), CommitFault>>,
        outcome: Result<(), Cause>,
    ) -> Vec<CommitAnswer> {
        // The snapshot belongs to this commit, so it is taken before the next one.
        let view = outcome.map_err(|cause| CommitFault::Uncertain { cause }).and_then(|()| {
            let point = block_on(self.rows.point())
                .map_err(|fault| CommitFault::Poisoned { cause: Cause::new(fault) })?;
            Ok(View::of_rows(Arc::clone(&self.rows), point))
        });
        let answer = |verdict: Result<(), CommitFault>| match (&view, verdict) {
            (Ok(view), Ok(())) => Ok(view.clone()),
            (Err(fault), Ok(())) => Err(fault.clone()),
            // The refusal may depend on batches that were lost, so it is void too.
            (Err(CommitFault::Uncertain { cause }), Err(CommitFault::PreconditionFailed { .. })) => {
                Err(CommitFault::Poisoned { cause: cause.clone() })
            }
            (_, Err(refusal)) => Err(refusal),
        };
        verdicts.into_iter().map(answer).collect()
    }

    /// Whether commits are refused until the engine is reopened.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// Poisons the store after a call that ended past its deadline: its callers were already answered "outcome
    /// unknown".
    pub(super) fn mark_uncertain(&mut self, cause: Cause) {
        self.poison(cause, REOPEN_DELAY_FIRST);
    }

    fn poison(&mut self, cause: Cause, delay: Duration) {
        tracing::error!(event = "store_poisoned", %cause, "commits are rejected until the store is reopened");
        self.status.set(Health::Poisoned { cause: cause.clone() });
        // Of a commit with an unknown outcome.
        self.required.forget();
        self.poison = Some(Poison { cause, retry_at: Instant::now() + delay, delay });
    }

    /// The free space, if it is below the reserve. Fails if the store was removed. Measured for every group when space
    /// is short, at a bounded rate otherwise.
    fn shortage(&mut self) -> Result<Option<DiskSpace>, Cause> {
        let room = match self.room {
            Some((seen_at, room)) if is_ample(room) && seen_at.elapsed() < SPACE_CHECK_INTERVAL => room,
            Some(_) | None => {
                let Some(room) = self.rows.disk_space()? else { return Ok(None) };
                self.room = Some((Instant::now(), room));
                room
            }
        };
        let DiskSpace { free_bytes, reserve_bytes } = room;
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

fn is_ample(room: DiskSpace) -> bool {
    room.free_bytes.saturating_sub(room.reserve_bytes) >= SPACE_AMPLE_BYTES
}

/// Turns a panic of the engine into an error of the call: the store must survive it, and a reopen recovers from both.
fn catch_panic(call: impl FnOnce() -> Result<(), Cause>) -> Result<(), Cause> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Cause::new(format_args!("the engine panicked: {text}")))
    })
}
