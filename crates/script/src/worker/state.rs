//! What the native functions of a runtime share: time, randomness, log, and the queue of operations.

use super::peak;
use crate::limits::{
    LOG_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGE_OPERATIONS_MAX, PENDING_OPERATIONS_MAX, heap_bytes_max,
    pending_bytes_max,
};
use crate::wire::to_worker::Allowance;
use crate::{Clock, DocumentLink, Links, Operation, Quota};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The part of its time after which a script's operations are no longer accepted, in percent: it has the rest to set
/// its response and return.
const ACCEPTING_PERCENT: u32 = 80;

/// The state of one runtime and its call.
#[derive(Debug)]
pub(super) struct State {
    started: Cell<Instant>,
    deadline: Cell<Option<Instant>>,
    accepting: Cell<Option<Instant>>,
    memory_bytes: Cell<u64>,
    clock: Cell<Clock>,
    random: Cell<u64>,
    /// Whether the script was interrupted at its deadline.
    pub(super) was_interrupted: Cell<bool>,
    /// Whether operations of the call were sent to the server.
    pub(super) has_operated: Cell<bool>,
    /// Whether the script has read what a sealed runtime guards.
    pub(super) has_noticed: Cell<bool>,
    /// Whether an error was made, or has ended the call, that may be there only because the runtime is sealed.
    pub(super) may_be_of_sealing: Cell<bool>,
    /// Whether a rejected promise could not be recorded.
    pub(super) has_lost_rejection: Cell<bool>,
    pub(super) is_budget_low: Cell<bool>,
    pub(super) links: RefCell<Links>,
    pub(super) quota: RefCell<Quota>,
    pub(super) logs: Cell<bool>,
    log: RefCell<String>,
    queue: RefCell<VecDeque<Operation>>,
    queued_bytes: Cell<usize>,
}

impl Default for State {
    fn default() -> State {
        State {
            started: Cell::new(Instant::now()),
            deadline: Cell::default(),
            accepting: Cell::default(),
            memory_bytes: Cell::new(u64::MAX),
            clock: Cell::new(Clock::Fixed { at_ms: 0 }),
            random: Cell::default(),
            was_interrupted: Cell::default(),
            has_operated: Cell::default(),
            has_noticed: Cell::default(),
            may_be_of_sealing: Cell::default(),
            has_lost_rejection: Cell::default(),
            is_budget_low: Cell::default(),
            links: RefCell::default(),
            quota: RefCell::default(),
            logs: Cell::default(),
            log: RefCell::default(),
            queue: RefCell::default(),
            queued_bytes: Cell::default(),
        }
    }
}

impl State {
    /// Starts a call; nothing is left of one before.
    pub(super) fn start(&self, allowance: Allowance, clock: Clock, seed: u64) {
        let now = Instant::now();
        self.started.set(now);
        self.deadline.set(Some(now + allowance.time));
        self.accepting.set(Some(now + allowance.time * ACCEPTING_PERCENT / 100));
        self.clock.set(clock);
        self.random.set(seed);
        self.was_interrupted.set(false);
        self.has_operated.set(false);
        self.has_noticed.set(false);
        self.may_be_of_sealing.set(false);
        self.has_lost_rejection.set(false);
        self.is_budget_low.set(false);
        self.log.borrow_mut().clear();
        self.queue.borrow_mut().clear();
        self.queued_bytes.set(0);
        self.memory_bytes.set(allowance.memory_bytes);
    }

    /// Whether the call may have had another result than in a runtime of its own.
    pub(super) fn is_suspect(&self) -> bool {
        self.has_noticed.get() || self.may_be_of_sealing.get()
    }

    /// Whether the call may have filled its memory with small objects.
    pub(super) fn may_be_full(&self) -> bool {
        peak::may_have_filled(heap_bytes_max(self.memory_bytes.get()), self.started.get().elapsed())
    }

    /// How much of the time of the call is left.
    pub(super) fn time_left(&self) -> Duration {
        self.deadline
            .get()
            .map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Gives the next call of a batch all of its time.
    pub(super) fn restart(&self, now: Instant, time: Duration) {
        self.deadline.set(Some(now + time));
    }

    /// Bounds the time of what is done before the call.
    pub(super) fn start_preparation(&self, time: Duration) {
        self.deadline.set(Some(Instant::now() + time));
    }

    /// Whether the time of the call is over. Records it.
    pub(super) fn is_late(&self) -> bool {
        if self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            self.was_interrupted.set(true);
        }
        self.was_interrupted.get()
    }

    /// What `Date` shows, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> f64 {
        let ms = match self.clock.get() {
            Clock::Fixed { at_ms } => Duration::from_millis(at_ms),
            Clock::Running { start_ms } => Duration::from_millis(start_ms) + self.started.get().elapsed(),
        };
        #[allow(clippy::cast_precision_loss)] // Exact until the year 287396.
        let ms = ms.as_millis() as f64;
        ms
    }

    /// A clock that continues that of this call.
    pub(super) fn clock_now(&self) -> Clock {
        match self.clock.get() {
            clock @ Clock::Fixed { .. } => clock,
            Clock::Running { start_ms } => {
                let passed = u64::try_from(self.started.get().elapsed().as_millis()).unwrap_or(0);
                Clock::Running { start_ms: start_ms.saturating_add(passed) }
            }
        }
    }

    /// The next 64 random bits of the call (splitmix64).
    pub(super) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Appends a line to the log, as far as it has room.
    pub(super) fn log(&self, line: &str) {
        let mut log = self.log.borrow_mut();
        let room = LOG_BYTES_MAX.saturating_sub(log.len());
        log.push_str(&line[..line.floor_char_boundary(room)]);
        if log.len() < LOG_BYTES_MAX {
            log.push('\n');
        }
    }

    /// Takes the log.
    pub(super) fn take_log(&self) -> String {
        self.log.take()
    }

    /// Queues an operation, if there is time and room for it.
    pub(super) fn accept(&self, operation: Operation, bytes: usize) -> bool {
        let mut queue = self.queue.borrow_mut();
        let in_time = self.accepting.get().is_some_and(|until| Instant::now() < until);
        let queued_bytes = self.queued_bytes.get() + bytes;
        // A single one is bounded by itself.
        let fits = queue.is_empty() || queued_bytes <= pending_bytes_max(self.memory_bytes.get());
        let has_room = queue.len() < PENDING_OPERATIONS_MAX && fits;
        let is_accepted = in_time && has_room && !self.is_budget_low.get();
        if is_accepted {
            queue.push_back(operation);
            self.queued_bytes.set(queued_bytes);
        }
        is_accepted
    }

    /// Takes the operations of the next message; none if nothing is queued.
    pub(super) fn take_operations(&self) -> Vec<Operation> {
        let mut queue = self.queue.borrow_mut();
        let mut taken = Vec::new();
        let mut taken_bytes = 0;
        while taken.len() < MESSAGE_OPERATIONS_MAX && taken_bytes < MESSAGE_BYTES_MAX {
            let Some(operation) = queue.pop_front() else { break };
            taken_bytes += size_bytes(&operation);
            taken.push(operation);
        }
        self.queued_bytes.set(self.queued_bytes.get().saturating_sub(taken_bytes));
        taken
    }

    /// Puts operations that were not executed back to the front of the queue.
    pub(super) fn put_back(&self, operations: Vec<Operation>) {
        let mut queue = self.queue.borrow_mut();
        for operation in operations.into_iter().rev() {
            self.queued_bytes.set(self.queued_bytes.get() + size_bytes(&operation));
            queue.push_front(operation);
        }
    }
}

/// Bytes of the texts of an operation, all of which a script chooses.
pub(super) fn size_bytes(operation: &Operation) -> usize {
    let link = |document: &DocumentLink| match document {
        DocumentLink::Rid(text) | DocumentLink::Id(text) => text.len(),
    };
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match operation {
        Operation::Create { document, .. } => document.len(),
        Operation::Upsert { document, if_match, .. } => document.len() + text(if_match),
        Operation::Read { document, if_none_match } => link(document) + text(if_none_match),
        Operation::Replace { document, content, if_match, .. } => {
            link(document) + content.len() + text(if_match)
        }
        Operation::Delete { document, if_match } => link(document) + text(if_match),
        Operation::Patch { document, changes, if_match, .. } => {
            link(document) + changes.len() + text(if_match)
        }
        Operation::Query { text: query, parameters, page, enable_scan: _ } => {
            query.len() + parameters.len() + text(&page.continuation)
        }
        Operation::ReadAll { page } => text(&page.continuation),
    }
}
