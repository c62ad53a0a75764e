//! The system clock and the operating system's random numbers.

use model::{Ambient, Ticks};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Random bytes fetched from the operating system at once: a request for sixteen costs as much as one for thousands.
const POOL_BYTES: usize = 4096;

const NANOSECONDS_PER_TICK: u128 = 100;

/// Clock and randomness of a running server.
pub(crate) struct SystemAmbient {
    /// Random bytes not yet used.
    pool: Mutex<Vec<u8>>,
    started: Instant,
}

impl SystemAmbient {
    pub(crate) fn new() -> SystemAmbient {
        SystemAmbient { pool: Mutex::new(Vec::new()), started: Instant::now() }
    }
}

impl std::fmt::Debug for SystemAmbient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SystemAmbient")
    }
}

impl Ambient for SystemAmbient {
    fn now_ms(&self) -> u64 {
        u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
    }

    fn now_ticks(&self) -> Ticks {
        Ticks(u64::try_from(since_1970().as_nanos() / NANOSECONDS_PER_TICK).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < bytes.len() {
            pool.resize(POOL_BYTES.max(bytes.len()), 0);
            getrandom::fill(&mut pool).expect("the operating system has randomness");
        }
        let left = pool.len() - bytes.len();
        bytes.copy_from_slice(&pool[left..]);
        pool.truncate(left);
    }
}

#[allow(clippy::disallowed_methods)] // the one place where the clock is read
fn since_1970() -> Duration {
    std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_random_byte_is_given_twice() {
        let ambient = SystemAmbient::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let mut bytes = [0; 16];
            ambient.fill_random(&mut bytes);
            assert!(seen.insert(bytes));
        }
        let mut many = vec![0; 3 * POOL_BYTES];
        ambient.fill_random(&mut many);
        assert!(many.windows(32).all(|window| window != [0; 32]));
    }
}
