//! The inputs that a run cannot compute itself: time and randomness.
//!
//! They are passed in from the top, so that a simulation with the same seed replays the same run.

use crate::Ticks;
use std::time::Duration;

/// Source of time and randomness.
pub trait Ambient: Send + Sync + std::fmt::Debug {
    /// Milliseconds since 1970-01-01 UTC. The value may jump in either direction; do not rely on it to increase.
    fn now_ms(&self) -> u64;

    /// Fills `bytes` with unpredictable bytes (predictable ones in a simulation).
    fn fill_random(&self, bytes: &mut [u8]);

    /// The current time at the finest known resolution.
    fn now_ticks(&self) -> Ticks {
        Ticks::from_ms(self.now_ms())
    }

    /// Time since some moment in the past, which a running server's clock never takes back; for rates, not for dates.
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now_ms())
    }

    /// Whole seconds since 1970-01-01 UTC.
    fn now_seconds(&self) -> u64 {
        self.now_ms() / 1000
    }
}
