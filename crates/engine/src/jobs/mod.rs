//! Housekeeping: sweeping expired documents, deleting dropped containers, trimming logs, closing idle partitions,
//! splitting partitions, raising autoscale.
//!
//! Each piece of work is a separate task that processes what the store says is left to do, so work that a crash
//! interrupts continues at the next start. A piece that fails or panics is logged and tried again in a later round; the
//! others continue. Steps of all pieces share one budget, so housekeeping as a whole takes a limited share of the
//! store.

mod dropped;
mod expiry;
mod idle;
mod poison;
mod reschedule;
mod separate;
mod split;
mod trim;
mod weigh;

use crate::engine::Engine;
use model::{ContainerNumber, Fault, MissingFault, OfferNumber, PartitionOrdinal, StorageFault, Throughput};
use partition::BudgetStep;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};

/// Time between two rounds when nothing wakes the jobs earlier.
const ROUND: Duration = Duration::from_secs(1);
/// Rounds between two searches for idle partitions.
const ROUNDS_PER_IDLE_CHECK: u64 = 10;
/// Rounds between two checks whether autoscale allows what is stored.
const ROUNDS_PER_RAISE: u64 = 60;
/// Pieces of work of one kind that run concurrently. Long ones of one kind delay no other kind.
const JOBS_PER_KIND_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Jobs {
    wake: Arc<Notify>,
    stopping: AtomicBool,
    task: Mutex<Option<JoinHandle<()>>>,
    round: AtomicU64,
    /// Number of times that work was started.
    rotation: AtomicU64,
    /// Documents that were skipped because they could not be read.
    skipped: AtomicU64,
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs {
            wake: Arc::new(Notify::new()),
            stopping: AtomicBool::new(false),
            task: Mutex::new(None),
            round: AtomicU64::new(0),
            rotation: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        }
    }
}

/// A piece of work; the same piece never runs twice concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HousekeepingJob {
    /// Resolve a catalog change whose outcome is unknown.
    ResolveCatalog,
    /// Delete the rows of a dropped container.
    Drop(ContainerNumber),
    /// Write the expiry rows of a container whose default time to live changed.
    Reschedule(ContainerNumber),
    /// Delete the expired documents of a container.
    Sweep(ContainerNumber),
    /// Trim the log of a partition.
    Trim(ContainerNumber, PartitionOrdinal),
    /// Close idle partitions.
    CloseIdle,
    /// Split a partition.
    Split(ContainerNumber, PartitionOrdinal),
    /// Separate a partition from those that it was split from.
    Separate(ContainerNumber, PartitionOrdinal),
    /// Count the largest logical partitions of a partition.
    Weigh(ContainerNumber, PartitionOrdinal),
    /// Raise the maximum of autoscale if more is stored than it allows.
    Raise(OfferNumber),
    /// Delete the rows of a split partition that its descendants do not need any more.
    DeleteSplit(ContainerNumber, PartitionOrdinal),
}

impl HousekeepingJob {
    fn name(self) -> &'static str {
        match self {
            HousekeepingJob::ResolveCatalog => "resolve the catalog",
            HousekeepingJob::Drop(_) => "drop a container",
            HousekeepingJob::Reschedule(_) => "reschedule expiry",
            HousekeepingJob::Sweep(_) => "sweep expired documents",
            HousekeepingJob::Trim(..) => "trim logs",
            HousekeepingJob::CloseIdle => "close idle partitions",
            HousekeepingJob::Split(..) => "split a partition",
            HousekeepingJob::Separate(..) => "separate a partition",
            HousekeepingJob::Weigh(..) => "count large logical partitions",
            HousekeepingJob::Raise(_) => "raise autoscale",
            HousekeepingJob::DeleteSplit(..) => "delete a split partition",
        }
    }

    async fn carry_out(self, engine: Arc<Engine>) -> Result<(), Fault> {
        #[cfg(feature = "planted-faults")]
        partition::planted::panic_if_job_is(self.name());
        let result = match self {
            HousekeepingJob::ResolveCatalog => engine.catalog.resolve_unknown_change(engine.store()).await,
            HousekeepingJob::Drop(number) => engine.delete_dropped(number).await,
            HousekeepingJob::Reschedule(number) => engine.reschedule_expiry(number).await,
            HousekeepingJob::Sweep(number) => engine.sweep_expired(number).await,
            HousekeepingJob::Trim(number, ordinal) => engine.trim_log(number, ordinal).await,
            HousekeepingJob::CloseIdle => engine.close_idle_partitions().await,
            HousekeepingJob::Split(number, ordinal) => engine.split_due(number, ordinal).await,
            HousekeepingJob::Separate(number, ordinal) => engine.separate(number, ordinal).await,
            HousekeepingJob::Weigh(number, ordinal) => engine.weigh(number, ordinal).await,
            HousekeepingJob::Raise(number) => engine.raise_offer(number).await,
            HousekeepingJob::DeleteSplit(number, ordinal) => engine.delete_split(number, ordinal).await,
        };
        let is_dropped = |number| engine.catalog.state().container(number).is_none();
        unless_dropped(result, self.container().is_some_and(is_dropped))
    }

    /// The container that the job is for, if it is in the catalog.
    fn container(self) -> Option<ContainerNumber> {
        match self {
            HousekeepingJob::Reschedule(number)
            | HousekeepingJob::Sweep(number)
            | HousekeepingJob::Trim(number, _)
            | HousekeepingJob::Split(number, _)
            | HousekeepingJob::Separate(number, _)
            | HousekeepingJob::Weigh(number, _)
            | HousekeepingJob::DeleteSplit(number, _) => Some(number),
            HousekeepingJob::ResolveCatalog
            | HousekeepingJob::Drop(_)
            | HousekeepingJob::CloseIdle
            | HousekeepingJob::Raise(_) => None,
        }
    }
}

/// The result of a job for a container that may have been dropped meanwhile: then its absence and the end of its writers
/// are no failures and nothing is left to do.
fn unless_dropped(result: Result<(), Fault>, is_dropped: bool) -> Result<(), Fault> {
    match result {
        Err(Fault::Missing(MissingFault::Owner) | Fault::Storage(StorageFault::Unavailable { .. }))
            if is_dropped =>
        {
            Ok(())
        }
        result => result,
    }
}

impl Jobs {
    /// Starts the task. It holds the engine only while it works, so that an unused engine can be dropped.
    pub(crate) fn start(engine: &Arc<Engine>) {
        let wake = Arc::clone(&engine.jobs.wake);
        let task = tokio::spawn(run(Arc::downgrade(engine), wake));
        *engine.jobs.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Starts the next round now.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until the running work has ended and no more will start.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake.notify_one();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(event = "housekeeping_stopped", %error, "housekeeping ended early and is started again");
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

impl Engine {
    /// Waits for its turn in the budget that all housekeeping shares, index builds included.
    async fn housekeeping_step(&self) -> BudgetStep<'_> {
        self.index_memory.steps().step().await
    }

    /// The work that is due now; `round` is the number of a new round, if one has started.
    fn due_jobs(&self, round: Option<u64>) -> Vec<HousekeepingJob> {
        let now = self.slots.tick();
        round.into_iter().for_each(|round| self.jobs.round.store(round, Ordering::Relaxed));
        let is_due = |rounds: u64| round.is_some_and(|round| round.is_multiple_of(rounds));
        let state = self.catalog.state();
        let mut due = Vec::new();
        if self.catalog.is_doubtful() {
            due.push(HousekeepingJob::ResolveCatalog);
        }
        if is_due(ROUNDS_PER_IDLE_CHECK) || self.slots.open_count() > self.options.partitions.open_max {
            due.push(HousekeepingJob::CloseIdle);
        }
        due.extend(self.due_trims());
        due.extend(self.due_splits());
        due.extend(self.due_separations());
        due.extend(self.due_weighings());
        if is_due(ROUNDS_PER_RAISE) {
            let offers = state.offers();
            let autoscale =
                offers.iter().filter(|offer| matches!(offer.throughput(), Throughput::Autoscale { .. }));
            due.extend(autoscale.map(|offer| HousekeepingJob::Raise(offer.number())));
        }
        due.extend(state.dropped().iter().map(|dropped| HousekeepingJob::Drop(dropped.number)));
        let mut of_containers = Vec::new();
        for container in state.containers() {
            if container.expiry_pending {
                of_containers.push(HousekeepingJob::Reschedule(container.number()));
            }
            if container.is_sweep_due(now) {
                of_containers.push(HousekeepingJob::Sweep(container.number()));
            }
        }
        // Rotates the containers, so that all get their turn if there is more work than is started at once.
        let count = of_containers.len().max(1) as u64;
        let first = self.jobs.rotation.fetch_add(1, Ordering::Relaxed) % count;
        of_containers.rotate_left(usize::try_from(first).unwrap_or(0));
        due.extend(of_containers);
        due
    }
}

/// Running work.
#[derive(Default)]
struct RunningJobs {
    tasks: JoinSet<Result<(), Fault>>,
    work: BTreeMap<Id, HousekeepingJob>,
    /// Pieces that have ended in this round: they are started again only in the next, so that one that fails
    /// immediately is not repeated without a pause.
    ended: BTreeSet<HousekeepingJob>,
    /// Whether work waits for other work of its kind.
    has_waiting: bool,
}

impl RunningJobs {
    /// Starts the work that is due, up to the limit of each kind.
    fn begin(&mut self, engine: &Arc<Engine>, due: Vec<HousekeepingJob>) {
        self.has_waiting = false;
        for work in due {
            let same_kind =
                |other: &&HousekeepingJob| std::mem::discriminant(*other) == std::mem::discriminant(&work);
            if self.ended.contains(&work) || self.work.values().any(|other| *other == work) {
                continue;
            }
            if self.work.values().filter(same_kind).count() >= JOBS_PER_KIND_MAX {
                self.has_waiting = true;
                continue;
            }
            let task = self.tasks.spawn(work.carry_out(Arc::clone(engine)));
            self.work.insert(task.id(), work);
        }
    }

    /// Waits until a piece has ended; forever if there is none.
    async fn ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => self.note(ended),
            None => std::future::pending().await,
        }
    }

    fn note(&mut self, ended: Result<(Id, Result<(), Fault>), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let work = self.work.remove(&id);
        self.ended.extend(work);
        let name = work.map_or("unknown", HousekeepingJob::name);
        match ended {
            Ok((_, Ok(()))) => {}
            Ok((_, Err(fault))) => {
                tracing::warn!(event = "job_failed", job = name, ?work, cause = %fault, "a housekeeping job failed and is tried again")
            }
            Err(error) => {
                tracing::error!(event = "job_panicked", job = name, %error, "a housekeeping job panicked and is tried again")
            }
        }
    }

    async fn wait_for_all(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.note(ended);
        }
    }
}

async fn run(engine: Weak<Engine>, wake: Arc<Notify>) {
    let mut round: u64 = 0;
    let mut running = RunningJobs::default();
    let mut next_round = tokio::time::interval(ROUND);
    next_round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    next_round.tick().await;
    loop {
        let begun = tokio::select! {
            biased;
            () = running.ended() => {
                if !running.has_waiting {
                    continue;
                }
                None
            }
            () = wake.notified() => None,
            _ = next_round.tick() => {
                round += 1;
                running.ended.clear();
                Some(round)
            }
        };
        let Some(engine) = engine.upgrade() else { return };
        if engine.jobs.is_stopping() {
            return running.wait_for_all().await;
        }
        running.begin(&engine, engine.due_jobs(begun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_for_a_dropped_container_does_not_fail() {
        let absent = || Err(Fault::Missing(MissingFault::Owner));
        assert_eq!(unless_dropped(absent(), true), Ok(()));
        assert_eq!(unless_dropped(absent(), false), absent());
        let ended =
            || Err(StorageFault::Unavailable { cause: "the container was deleted".to_owned() }.into());
        assert_eq!(unless_dropped(ended(), true), Ok(()));
        assert_eq!(unless_dropped(ended(), false), ended());
        let internal = || Err(Fault::Internal("x".to_owned()));
        assert_eq!(unless_dropped(internal(), true), internal());
    }
}
