//! The two things a run cannot compute for itself: what time it is, and what chance says.
//!
//! Handed in from the top, so that a simulation with the same seed replays the same run.

use crate::Ticks;

/// Source of time and randomness.
pub trait Ambient: Send + Sync + std::fmt::Debug {
    /// Milliseconds since 1970-01-01 UTC. May jump either way; nobody may rely on it going forward.
    fn now_ms(&self) -> u64;

    /// Fills `bytes` with unpredictable bytes (predictable ones in a simulation).
    fn fill_random(&self, bytes: &mut [u8]);

    /// The same time as finely as it is known.
    fn now_ticks(&self) -> Ticks {
        Ticks::from_ms(self.now_ms())
    }

    /// Whole seconds since 1970-01-01 UTC.
    fn now_seconds(&self) -> u64 {
        self.now_ms() / 1000
    }
}
