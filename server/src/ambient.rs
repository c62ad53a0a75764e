//! The real time and the operating system's randomness.

use model::Ambient;
use std::time::UNIX_EPOCH;

/// What a running server lives in.
#[derive(Debug)]
pub(crate) struct SystemAmbient;

impl Ambient for SystemAmbient {
    #[allow(clippy::disallowed_methods)] // the one place where the clock is read
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system has randomness");
    }
}
