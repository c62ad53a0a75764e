//! A clock that only the simulation moves, and random numbers derived from the seed.

use crate::random::Random;
use model::Ambient;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Start time of every simulated clock.
pub(crate) const START_SECONDS: u64 = 1_700_000_000;

/// Deterministic time and randomness of one simulation.
#[derive(Debug)]
pub struct SeededAmbient {
    now_ms: AtomicU64,
    random: Mutex<Random>,
}

impl SeededAmbient {
    /// The ambient of one seed.
    pub fn seeded(seed: u64) -> SeededAmbient {
        SeededAmbient {
            now_ms: AtomicU64::new(START_SECONDS * 1000),
            random: Mutex::new(Random::seeded(seed)),
        }
    }

    /// Moves the clock forwards or backwards.
    pub fn jump_seconds(&self, seconds: i64) {
        let milliseconds = seconds.unsigned_abs() * 1000;
        if seconds < 0 {
            self.now_ms.fetch_sub(milliseconds, Ordering::SeqCst);
        } else {
            self.now_ms.fetch_add(milliseconds, Ordering::SeqCst);
        }
    }
}

impl Ambient for SeededAmbient {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in bytes {
            *byte = random.number().to_le_bytes()[0];
        }
    }
}

#[test]
fn the_clock_stands_until_it_is_moved() {
    let ambient = SeededAmbient::seeded(1);
    assert_eq!(ambient.now_seconds(), START_SECONDS);
    ambient.jump_seconds(90);
    ambient.jump_seconds(-100);
    assert_eq!(ambient.now_seconds(), START_SECONDS - 10);
}
