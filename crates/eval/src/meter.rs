//! Counts the work of an evaluation on the thread that began it, and stops it.
//!
//! Work is counted in steps of about twenty nanoseconds and charged by size: a row, the elements of a list, the bytes
//! of a text. An evaluation that starts on a request thread has a limit of steps there. Above the first limit it is due
//! to be moved, which its caller does between two documents. Above the second one it is preempted inside a document,
//! and its caller restarts it on another thread. No result depends on either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::EvalFault;

/// Steps between two checks of the meter and the clock.
const STEPS_BETWEEN_CHECKS: u32 = 1024;
pub(crate) const ROW_STEPS: usize = 8;
/// Bytes of values processed per step.
const BYTES_PER_STEP: usize = 32;
/// Steps on the request thread after which an evaluation is due to be moved: those of 2,000 rows, about 300 µs.
const INLINE_STEPS_DUE: u64 = 2_000 * ROW_STEPS as u64;
/// Steps on the request thread after which an evaluation is preempted inside a document.
const INLINE_STEPS_MAX: u64 = 2 * INLINE_STEPS_DUE;

/// Counts the steps of all threads that work for one query, and stops them.
#[derive(Debug, Default)]
pub struct Meter {
    /// Whether the limits of the request thread apply.
    is_inline: AtomicBool,
    /// Steps counted on the request thread, or in total if these are limited.
    steps: AtomicU64,
    /// Most steps in total, if limited.
    steps_max: Option<u64>,
    is_due: AtomicBool,
    is_preempted: AtomicBool,
    is_stopped: AtomicBool,
    /// Set when all queries must stop.
    stop_all: Arc<AtomicBool>,
}

impl Meter {
    /// For work that starts on a request thread. `stop_all` stops all queries.
    pub fn inline(stop_all: Arc<AtomicBool>) -> Meter {
        Meter { is_inline: AtomicBool::new(true), stop_all, ..Meter::default() }
    }

    /// For work with a limit on its total steps.
    pub fn bounded(steps_max: u64) -> Meter {
        Meter { steps_max: Some(steps_max), ..Meter::default() }
    }

    /// Lifts the limits of the request thread: the work continues on another one.
    pub fn leave_inline(&self) {
        self.is_inline.store(false, Ordering::Relaxed);
        self.is_due.store(false, Ordering::Relaxed);
        self.is_preempted.store(false, Ordering::Relaxed);
    }

    /// Makes work due that will take this many steps at once, if these are too many for the request thread.
    pub fn expect(&self, steps: u64) {
        if self.is_inline() && self.steps.load(Ordering::Relaxed).saturating_add(steps) > INLINE_STEPS_DUE {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the limits of the request thread apply.
    pub fn is_inline(&self) -> bool {
        self.is_inline.load(Ordering::Relaxed)
    }

    /// Whether the work should be moved to another thread as soon as possible.
    pub fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Whether the work was preempted inside a document: its result must be discarded.
    pub fn is_preempted(&self) -> bool {
        self.is_preempted.load(Ordering::Relaxed)
    }

    /// Stops all work of the query.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the query was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.stop_all.load(Ordering::Relaxed)
    }

    /// Fails if the query was stopped or preempted.
    pub fn check(&self) -> Result<(), EvalFault> {
        if self.is_stopped() {
            return Err(EvalFault::Stopped);
        }
        if self.is_preempted() { Err(EvalFault::Preempted) } else { Ok(()) }
    }

    /// Counts steps that were done or are about to be.
    pub fn spend(&self, steps: u64) -> Result<(), EvalFault> {
        if self.is_inline() {
            let spent = self.steps.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
            if spent > INLINE_STEPS_DUE {
                self.is_due.store(true, Ordering::Relaxed);
            }
            if spent > INLINE_STEPS_MAX {
                self.is_preempted.store(true, Ordering::Relaxed);
            }
        } else if let Some(steps_max) = self.steps_max {
            let spent = self.steps.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
            if spent > steps_max {
                return Err(EvalFault::StepsExceeded { steps_max });
            }
        }
        self.check()
    }
}

/// Steps until the next check of the meter; one per context, so that counting is cheap.
#[derive(Debug)]
pub struct Steps {
    left: AtomicU32,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { left: AtomicU32::new(STEPS_BETWEEN_CHECKS) }
    }
}

impl Steps {
    /// Counts steps; returns the number since the last check if the next one is due.
    #[inline]
    pub(crate) fn count(&self, steps: usize) -> Option<u64> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        // One thread counts at a time; a lost count would only delay a check.
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(steps) {
            Some(left) => {
                self.left.store(left, Ordering::Relaxed);
                None
            }
            None => {
                self.left.store(STEPS_BETWEEN_CHECKS, Ordering::Relaxed);
                Some(u64::from(STEPS_BETWEEN_CHECKS - left) + u64::from(steps))
            }
        }
    }
}

/// Steps to process this many bytes.
#[inline]
pub(crate) fn steps_of_bytes(bytes: usize) -> usize {
    bytes / BYTES_PER_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_due_before_it_is_preempted() {
        let meter = Meter::inline(Arc::default());
        assert_eq!(meter.spend(INLINE_STEPS_DUE), Ok(()));
        assert!(!meter.is_due());
        assert_eq!(meter.spend(1), Ok(()));
        assert!(meter.is_due() && !meter.is_preempted());
        assert_eq!(meter.spend(INLINE_STEPS_DUE), Err(EvalFault::Preempted));
        meter.leave_inline();
        assert_eq!(meter.spend(u64::MAX), Ok(()));
        assert!(!meter.is_due());
    }

    #[test]
    fn everybody_stops_together_or_alone() {
        let all = Arc::new(AtomicBool::new(false));
        let (one, other) = (Meter::inline(Arc::clone(&all)), Meter::inline(Arc::clone(&all)));
        one.stop();
        assert_eq!(one.spend(1), Err(EvalFault::Stopped));
        assert_eq!(other.spend(1), Ok(()));
        all.store(true, Ordering::Relaxed);
        assert_eq!(other.spend(1), Err(EvalFault::Stopped));
    }

    #[test]
    fn steps_in_all_can_be_bounded() {
        let meter = Meter::bounded(10);
        assert_eq!(meter.spend(10), Ok(()));
        assert_eq!(meter.spend(1), Err(EvalFault::StepsExceeded { steps_max: 10 }));
    }

    #[test]
    fn looks_count_what_was_done_in_between() {
        let steps = Steps::default();
        assert_eq!(steps.count(1000), None);
        assert_eq!(steps.count(24), None);
        assert_eq!(steps.count(6), Some(1030));
        assert_eq!(steps.count(1 << 20), Some(1 << 20));
    }
}
