//! How much work an evaluation has done on the thread that began it, and whether it must stop.
//!
//! Work is counted in steps, about twenty nanoseconds each, and charged by its size: a row, the elements of a list,
//! the bytes of a text. An evaluation that was begun on a thread which others need has a bound of steps there. Beyond
//! the first bound it is due to be moved, which its caller does between two documents; beyond the second one it is
//! broken off inside of a document, and its caller begins it anew elsewhere. No result depends on either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::EvalFault;

/// Steps between two looks at the meter and the clock.
const STEPS_BETWEEN_LOOKS: u32 = 1024;
/// What a row counts for.
pub(crate) const ROW_STEPS: usize = 8;
/// Bytes of values that are looked at in a step.
const BYTES_PER_STEP: usize = 32;
/// Steps on the first thread after which an evaluation is due to be moved: those of 2,000 rows, about 300 µs.
const INLINE_STEPS_DUE: u64 = 2_000 * ROW_STEPS as u64;
/// Steps on the first thread after which an evaluation is broken off inside of a document.
const INLINE_STEPS_MAX: u64 = 2 * INLINE_STEPS_DUE;

/// Counts the steps of all who work for one query, and tells them to stop.
#[derive(Debug, Default)]
pub struct Meter {
    /// Whether the bounds of the first thread hold.
    is_inline: AtomicBool,
    /// Steps that were looked at on the first thread, or in all where these are bounded.
    steps: AtomicU64,
    /// Most steps in all, if they are bounded.
    steps_max: Option<u64>,
    is_due: AtomicBool,
    is_broken_off: AtomicBool,
    is_stopped: AtomicBool,
    /// Set when nothing shall be computed any more, for anybody.
    stop_all: Arc<AtomicBool>,
}

impl Meter {
    /// For work that begins on a thread which others need. `stop_all` stops it together with all others.
    pub fn inline(stop_all: Arc<AtomicBool>) -> Meter {
        Meter { is_inline: AtomicBool::new(true), stop_all, ..Meter::default() }
    }

    /// For work that may take no more than so many steps in all.
    pub fn bounded(steps_max: u64) -> Meter {
        Meter { steps_max: Some(steps_max), ..Meter::default() }
    }

    /// Lifts the bounds of the first thread: the work goes on elsewhere.
    pub fn leave_inline(&self) {
        self.is_inline.store(false, Ordering::Relaxed);
        self.is_due.store(false, Ordering::Relaxed);
        self.is_broken_off.store(false, Ordering::Relaxed);
    }

    /// Makes work due that will take so many steps at once, if these are too many for the first thread.
    pub fn expect(&self, steps: u64) {
        if self.is_inline() && self.steps.load(Ordering::Relaxed).saturating_add(steps) > INLINE_STEPS_DUE {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the bounds of the first thread hold.
    pub fn is_inline(&self) -> bool {
        self.is_inline.load(Ordering::Relaxed)
    }

    /// Whether the work should be moved to another thread as soon as it can be.
    pub fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Whether the work was broken off inside of a document: whatever it gave is worth nothing.
    pub fn is_broken_off(&self) -> bool {
        self.is_broken_off.load(Ordering::Relaxed)
    }

    /// Tells all who work for the query to stop.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the query was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.stop_all.load(Ordering::Relaxed)
    }

    /// Refuses to go on where nobody wants the result any more, or not from this thread.
    pub fn check(&self) -> Result<(), EvalFault> {
        if self.is_stopped() {
            return Err(EvalFault::Stopped);
        }
        if self.is_broken_off() { Err(EvalFault::BrokenOff) } else { Ok(()) }
    }

    /// Counts steps that were done, or are just about to be.
    pub fn spend(&self, steps: u64) -> Result<(), EvalFault> {
        if self.is_inline() {
            let spent = self.steps.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
            if spent > INLINE_STEPS_DUE {
                self.is_due.store(true, Ordering::Relaxed);
            }
            if spent > INLINE_STEPS_MAX {
                self.is_broken_off.store(true, Ordering::Relaxed);
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

/// Steps until the next look at the meter; one for each context, so that counting is cheap.
#[derive(Debug)]
pub struct Steps {
    left: AtomicU32,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { left: AtomicU32::new(STEPS_BETWEEN_LOOKS) }
    }
}

impl Steps {
    /// Counts steps; tells how many there were since the last look if it is time for one.
    #[inline]
    pub(crate) fn count(&self, steps: usize) -> Option<u64> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        // One thread counts at a time; a lost count would only put a look off.
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(steps) {
            Some(left) => {
                self.left.store(left, Ordering::Relaxed);
                None
            }
            None => {
                self.left.store(STEPS_BETWEEN_LOOKS, Ordering::Relaxed);
                Some(u64::from(STEPS_BETWEEN_LOOKS - left) + u64::from(steps))
            }
        }
    }
}

/// The steps that it takes to look at so many bytes.
#[inline]
pub(crate) fn steps_of_bytes(bytes: usize) -> usize {
    bytes / BYTES_PER_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_due_before_it_is_broken_off() {
        let meter = Meter::inline(Arc::default());
        assert_eq!(meter.spend(INLINE_STEPS_DUE), Ok(()));
        assert!(!meter.is_due());
        assert_eq!(meter.spend(1), Ok(()));
        assert!(meter.is_due() && !meter.is_broken_off());
        assert_eq!(meter.spend(INLINE_STEPS_DUE), Err(EvalFault::BrokenOff));
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
