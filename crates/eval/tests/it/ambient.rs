//! Time and randomness of the cases: the time is constant, the random numbers count up.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Ambient;

/// 2024-10-14T14:20:30.666Z
pub(crate) const NOW_MS: u64 = 1_728_915_630_666;

#[derive(Debug, Default)]
pub(crate) struct Still {
    next: AtomicU64,
}

impl Ambient for Still {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let next = self.next.fetch_add(0x9d, Ordering::Relaxed);
            *byte = u8::try_from(next % 256).unwrap_or(0);
        }
    }
}
