//! The slot of a partition: whether it is open, and how it is opened and closed.
//!
//! ```text
//! closed ──> opening ──> open ──> closed        idle, or its writer has panicked: the next request opens it again
//!               └──────> failed ──> opening     the next request tries again
//! any ─────────────────> sealed                 the container was dropped; it is never opened again
//! ```
//!
//! At most one writer of a partition exists at a time. Opening runs in a separate task: a client that goes away does
//! not interrupt it. Sealing waits for an opening in progress, so no writer exists or is started afterwards.

use crate::catalog::CatalogStamp;
use crate::ledger::Ledger;
use arc_swap::ArcSwapOption;
use kv::KeyRange;
use model::{ContainerNumber, EffectiveRange, Fault, MissingFault, PartitionOrdinal, StorageFault};
use partition::keyspace;
use partition::{
    Ancestor, Carryover, CurrentShape, IdleClose, PartitionEnvironment, PartitionSpec, PhysicalPartition,
};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};

/// Partitions that are opened concurrently.
const OPENING_MAX: usize = 64;
/// Partitions that are closed concurrently. All their heads fit into a few group commits.
pub(crate) const CLOSING_MAX: usize = 512;
/// A partition that could not be divided is tried again when it has grown by this part.
const INDIVISIBLE_PART: u64 = 8;
/// Maximum number of times that a request waits for an opening.
const OPEN_ATTEMPTS_MAX: usize = 3;

/// One partition of a container.
#[derive(Debug)]
pub(crate) struct PartitionSlot {
    pub(crate) ordinal: PartitionOrdinal,
    pub(crate) range: EffectiveRange,
    /// The partitions from which it was split, oldest first.
    pub(crate) ancestors: Vec<Ancestor>,
    /// When it came into being.
    pub(crate) since: CatalogStamp,
    /// Charges of the requests on it.
    pub(crate) ledger: Ledger,
    /// The keys of its records, computed once.
    keys: OnceLock<KeyRange>,
    /// The partition while it is open: sufficient for most requests.
    open: ArcSwapOption<PhysicalPartition>,
    state: Watched,
    carryover: OnceLock<Arc<Carryover>>,
    /// Counts openings.
    generation: AtomicU64,
    /// Second of the last request, by the slots' clock.
    used_at: AtomicU64,
    /// The round of housekeeping in which its log was last trimmed.
    trimmed_in: AtomicU64,
    /// Progress of a split or of the separation after one.
    pub(crate) division: Division,
}

/// How far a partition is divided from others: its own split, and its separation from the partitions that it was split
/// from.
#[derive(Debug, Default)]
pub(crate) struct Division {
    is_splitting: AtomicBool,
    /// No split is tried before this round of housekeeping.
    split_after: AtomicU64,
    /// The bytes with which the partition could not be divided.
    indivisible_bytes: AtomicU64,
    /// No search for large logical partitions before this round of housekeeping.
    weighed_until: AtomicU64,
    /// The round of housekeeping in which it was last separated from its ancestors.
    separated_in: AtomicU64,
    /// The ancestors whose rows it still needs, if that is known.
    needs: Mutex<Option<Vec<PartitionOrdinal>>>,
}

impl Division {
    /// Whether the partition is being split.
    pub(crate) fn is_splitting(&self) -> bool {
        self.is_splitting.load(Ordering::Relaxed)
    }

    pub(crate) fn set_splitting(&self, is_splitting: bool) {
        self.is_splitting.store(is_splitting, Ordering::Relaxed);
    }

    /// Whether a split may be tried in this round.
    pub(crate) fn may_split(&self, round: u64) -> bool {
        self.split_after.load(Ordering::Relaxed) <= round
    }

    /// Whether large logical partitions are searched in this round.
    pub(crate) fn may_weigh(&self, round: u64) -> bool {
        self.weighed_until.load(Ordering::Relaxed) <= round
    }

    /// No search for large logical partitions before this round.
    pub(crate) fn weigh_after(&self, round: u64) {
        self.weighed_until.store(round, Ordering::Relaxed);
    }

    /// No split is tried before this round.
    pub(crate) fn pause_until(&self, round: u64) {
        self.split_after.store(round, Ordering::Relaxed);
    }

    /// The partition has one logical partition with this many bytes and cannot be divided by documents.
    pub(crate) fn set_indivisible(&self, bytes: u64) {
        self.indivisible_bytes.store(bytes.max(1), Ordering::Relaxed);
    }

    /// Whether the partition could not be divided with about as many bytes.
    pub(crate) fn is_indivisible(&self, bytes: u64) -> bool {
        let known = self.indivisible_bytes.load(Ordering::Relaxed);
        known != 0 && bytes <= known.saturating_add(known / INDIVISIBLE_PART)
    }

    /// The round in which the partition was last separated from its ancestors; 0 if it was not.
    pub(crate) fn separated_in(&self) -> u64 {
        self.separated_in.load(Ordering::Relaxed)
    }

    pub(crate) fn separation_begins(&self, round: u64) {
        self.separated_in.store(round, Ordering::Relaxed);
    }

    pub(crate) fn set_needs(&self, needs: Vec<PartitionOrdinal>) {
        *self.needs.lock().unwrap_or_else(PoisonError::into_inner) = Some(needs);
    }

    /// Whether the partition may need rows of an ancestor.
    pub(crate) fn may_need(&self, ancestor: PartitionOrdinal) -> bool {
        let needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
        needs.as_ref().is_none_or(|needs| needs.contains(&ancestor))
    }
}

/// Whether a partition is open; the head of this file shows the transitions.
#[derive(Clone, Debug)]
enum SlotState {
    Closed,
    Opening,
    Open(Arc<PhysicalPartition>),
    Sealed,
    Failed {
        fault: Fault,
        /// The last writer, if the outcome of its batches is not known yet.
        stopped: Option<Arc<PhysicalPartition>>,
    },
}

/// A state that can be waited for. Waiters are woken in the order of waiting, so that simulations replay: the watch
/// channel of the runtime wakes in random order.
#[derive(Debug)]
struct Watched {
    state: Mutex<SlotState>,
    changed: Notify,
}

impl Watched {
    fn new(state: SlotState) -> Watched {
        Watched { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Applies `change` to the state; it returns whether it changed it.
    fn modify(&self, change: impl FnOnce(&mut SlotState) -> bool) -> bool {
        let is_changed = change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        if is_changed {
            self.changed.notify_waiters();
        }
        is_changed
    }

    /// The state when no opening is in progress.
    async fn after_opening(&self) -> SlotState {
        loop {
            let changed = self.changed.notified();
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !matches!(state, SlotState::Opening) {
                return state;
            }
            changed.await;
        }
    }
}

/// State shared by all slots of an engine.
#[derive(Debug)]
pub(crate) struct Slots {
    environment: PartitionEnvironment,
    /// Where writers run, independent of the thread of the request that opens a partition.
    runtime: Handle,
    openings: Semaphore,
    open_count: AtomicUsize,
    /// The second of the last round of housekeeping.
    clock: AtomicU64,
    is_closing: AtomicBool,
}

impl Slots {
    pub(crate) fn new(environment: PartitionEnvironment, runtime: Handle) -> Arc<Slots> {
        let clock = AtomicU64::new(environment.ambient.now_seconds());
        Arc::new(Slots {
            environment,
            runtime,
            openings: Semaphore::new(OPENING_MAX),
            open_count: AtomicUsize::new(0),
            clock,
            is_closing: AtomicBool::new(false),
        })
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open_count.load(Ordering::Relaxed)
    }

    /// Advances the clock that determines idle partitions.
    pub(crate) fn tick(&self) -> u64 {
        let now = self.environment.ambient.now_seconds();
        self.clock.store(now, Ordering::Relaxed);
        now
    }

    /// Prevents any further opening of partitions.
    pub(crate) fn stop_opening(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }
}

/// A partition to be opened, and the definition to use.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) spec: PartitionSpec,
    pub(crate) shape: Arc<CurrentShape>,
}

impl PartitionSlot {
    pub(crate) fn new(
        ordinal: PartitionOrdinal,
        range: EffectiveRange,
        ancestors: Vec<Ancestor>,
        since: CatalogStamp,
    ) -> PartitionSlot {
        PartitionSlot {
            ordinal,
            range,
            ancestors,
            since,
            ledger: Ledger::default(),
            keys: OnceLock::new(),
            open: ArcSwapOption::empty(),
            state: Watched::new(SlotState::Closed),
            carryover: OnceLock::new(),
            generation: AtomicU64::new(0),
            used_at: AtomicU64::new(0),
            trimmed_in: AtomicU64::new(0),
            division: Division::default(),
        }
    }

    /// The keys of its records in its container.
    pub(crate) fn keys(&self, container: ContainerNumber) -> &KeyRange {
        self.keys.get_or_init(|| keyspace::effective_range(container, &self.range))
    }

    /// Sets what the first opening of a new partition takes over from its parent.
    pub(crate) fn inherit(&self, carryover: Carryover) {
        // A slot that was opened before has its own.
        let _ = self.carryover.set(Arc::new(carryover));
    }

    /// The partition if it is open.
    pub(crate) fn current(&self) -> Option<Arc<PhysicalPartition>> {
        self.open.load_full().filter(|partition| !partition.has_ended())
    }

    /// The partition for a request, if it is open; records the use.
    pub(crate) fn used(&self, slots: &Slots) -> Option<Arc<PhysicalPartition>> {
        let now = slots.clock.load(Ordering::Relaxed);
        if self.used_at.load(Ordering::Relaxed) != now {
            self.used_at.store(now, Ordering::Relaxed);
            self.ledger.begin_second(now);
        }
        self.current()
    }

    /// The second of the last request.
    pub(crate) fn used_at(&self) -> u64 {
        self.used_at.load(Ordering::Relaxed)
    }

    /// The round of housekeeping in which its log was last trimmed; 0 if it was not.
    pub(crate) fn trimmed_in(&self) -> u64 {
        self.trimmed_in.load(Ordering::Relaxed)
    }

    /// Records that its log is trimmed in this round, successfully or not.
    pub(crate) fn trim_begins(&self, round: u64) {
        self.trimmed_in.store(round, Ordering::Relaxed);
    }

    /// Opens the partition, or waits for the opening in progress.
    pub(crate) async fn opened(
        self: &Arc<Self>,
        slots: &Arc<Slots>,
        opening: &Opening,
    ) -> Result<Arc<PhysicalPartition>, Fault> {
        for _ in 0..OPEN_ATTEMPTS_MAX {
            self.begin_opening(slots, opening)?;
            match self.state.after_opening().await {
                SlotState::Open(partition) if !partition.has_ended() => return Ok(partition),
                SlotState::Failed { fault, .. } => return Err(fault),
                SlotState::Sealed => return Err(MissingFault::Owner.into()),
                SlotState::Open(_) | SlotState::Closed | SlotState::Opening => {}
            }
        }
        Err(stopped())
    }

    /// Starts to open the partition unless it is open, being opened or sealed.
    pub(crate) fn begin_opening(
        self: &Arc<Self>,
        slots: &Arc<Slots>,
        opening: &Opening,
    ) -> Result<(), Fault> {
        if slots.is_closing.load(Ordering::SeqCst) {
            return Err(stopped());
        }
        let mut last = None;
        let begins = self.state.modify(|state| {
            let begins = match state {
                SlotState::Closed => true,
                SlotState::Failed { stopped, .. } => {
                    last = stopped.take();
                    true
                }
                SlotState::Open(partition) if is_reopened(partition) => {
                    last = Some(Arc::clone(partition));
                    true
                }
                SlotState::Open(_) | SlotState::Opening | SlotState::Sealed => false,
            };
            if begins {
                *state = SlotState::Opening;
            }
            begins
        });
        if begins {
            if last.is_some() && self.open.swap(None).is_some() {
                slots.open_count.fetch_sub(1, Ordering::Relaxed);
            }
            let partition_opening =
                PartitionOpening { slot: Arc::clone(self), slots: Arc::clone(slots), last, ended: None };
            slots.runtime.spawn(partition_opening.run(opening.clone()));
        }
        Ok(())
    }

    /// Closes the partition if it is open; waits for an opening in progress first.
    pub(crate) async fn close(&self, slots: &Slots) -> Result<(), Fault> {
        let SlotState::Open(partition) = self.state.after_opening().await else { return Ok(()) };
        let closed = if partition.has_ended() { Ok(()) } else { partition.close().await };
        let next = match &closed {
            Ok(()) => SlotState::Closed,
            Err(fault) => SlotState::Failed { fault: fault.clone(), stopped: Some(Arc::clone(&partition)) },
        };
        self.leave_open(slots, &partition, next);
        closed
    }

    /// Closes the partition if its index is idle; returns whether it did.
    pub(crate) async fn close_idle(&self, slots: &Slots) -> Result<bool, Fault> {
        let Some(partition) = self.current() else { return Ok(false) };
        match partition.close_idle().await? {
            IdleClose::Busy => Ok(false),
            IdleClose::Closed => {
                self.leave_open(slots, &partition, SlotState::Closed);
                Ok(true)
            }
        }
    }

    /// Ends the use of the partition permanently. When this returns it has no writer, and none will be opened.
    pub(crate) async fn seal(&self, slots: &Slots) {
        #[cfg(feature = "planted-faults")]
        if partition::planted::is_planted(partition::planted::PlantedFault::OpeningIsMissed) {
            if let Some(partition) = self.current() {
                partition.close().await.ok();
            }
            return;
        }
        // Terminates: an opening ends, and each of them is started by a request that saw the container before it was
        // dropped.
        loop {
            self.state.after_opening().await;
            let mut last = None;
            self.state.modify(|state| {
                if matches!(state, SlotState::Opening) {
                    return false;
                }
                last = Some(std::mem::replace(state, SlotState::Sealed));
                true
            });
            let Some(last) = last else { continue };
            if self.open.swap(None).is_some() {
                slots.open_count.fetch_sub(1, Ordering::Relaxed);
            }
            match last {
                // Whatever the result, the writer has ended then.
                SlotState::Open(partition) => drop(partition.close().await),
                SlotState::Closed | SlotState::Opening | SlotState::Sealed | SlotState::Failed { .. } => {}
            }
            return;
        }
    }

    /// Sets the slot to `next` after `partition` has ended, unless it was opened or sealed meanwhile.
    fn leave_open(&self, slots: &Slots, partition: &Arc<PhysicalPartition>, next: SlotState) {
        self.state.modify(|state| {
            let is_current = matches!(state, SlotState::Open(open) if Arc::ptr_eq(open, partition));
            if is_current {
                if self.open.swap(None).is_some() {
                    slots.open_count.fetch_sub(1, Ordering::Relaxed);
                }
                *state = next;
            }
            is_current
        });
    }
}

/// Whether an open partition must be opened again.
fn is_reopened(partition: &PhysicalPartition) -> bool {
    #[cfg(feature = "planted-faults")]
    if partition::planted::is_planted(partition::planted::PlantedFault::PanickedStaysStopped) {
        return false;
    }
    partition.has_ended()
}

/// An opening in progress. If it panics, the slot has failed.
struct PartitionOpening {
    slot: Arc<PartitionSlot>,
    slots: Arc<Slots>,
    /// The last writer, if it did not close.
    last: Option<Arc<PhysicalPartition>>,
    ended: Option<Result<PhysicalPartition, Fault>>,
}

impl PartitionOpening {
    async fn run(mut self, opening: Opening) {
        self.ended = Some(self.open(opening).await);
    }

    async fn open(&mut self, opening: Opening) -> Result<PhysicalPartition, Fault> {
        let _turn = self.slots.openings.acquire().await.map_err(|_| stopped())?;
        if let Some(last) = &self.last {
            last.await_outcomes().await?;
            self.last = None;
        }
        let environment = self.slots.environment.clone();
        let carryover = self
            .slot
            .carryover
            .get_or_init(|| Arc::new(Carryover::new(opening.spec.id, Arc::clone(&environment.ambient))));
        let Opening { spec, shape } = opening;
        PhysicalPartition::open_after(environment, spec, shape, Arc::clone(carryover)).await
    }
}

impl Drop for PartitionOpening {
    fn drop(&mut self) {
        let state = match self.ended.take() {
            Some(Ok(partition)) => {
                let partition = Arc::new(partition);
                let generation = self.slot.generation.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::debug!(event = "partition_opened", partition = ?partition.spec().id, generation, "partition opened");
                self.slot.open.store(Some(Arc::clone(&partition)));
                self.slots.open_count.fetch_add(1, Ordering::Relaxed);
                SlotState::Open(partition)
            }
            Some(Err(fault)) => SlotState::Failed { fault, stopped: self.last.take() },
            None => {
                let fault = Fault::Internal("the opening of a partition ended early".to_owned());
                SlotState::Failed { fault, stopped: self.last.take() }
            }
        };
        self.slot.state.modify(|current| {
            *current = state;
            true
        });
    }
}

fn stopped() -> Fault {
    StorageFault::Unavailable { cause: "the partition has stopped".to_owned() }.into()
}
