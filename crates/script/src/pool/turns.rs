//! Who may keep a worker busy, and who waits.
//!
//! There is one usual turn per worker that may be busy, so that one core is left to the server. Calls get them in the
//! order they came. With few cores a single slow script would hold up all others for its whole time. So a call that has
//! waited for [`EXTRA_AFTER`] may also take one of [`EXTRA_TURNS`] extra turns: its worker then shares the processor
//! with the slow one. All workers have the lowest priority, so this takes nothing from the server but memory, which the
//! number of extra turns bounds.

use crate::ScriptFault;
use crate::limits::{EXTRA_AFTER, EXTRA_TURNS, Limits};
use crate::metrics::PoolMetrics;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The turns of a pool.
#[derive(Debug)]
pub(super) struct Turns {
    usual: Semaphore,
    extra: Semaphore,
    waiting: AtomicUsize,
}

impl Turns {
    pub(super) fn new(limits: &Limits) -> Turns {
        Turns {
            usual: Semaphore::new(limits.busy_max.clamp(1, Semaphore::MAX_PERMITS)),
            extra: Semaphore::new(EXTRA_TURNS),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for the permission to keep a worker busy.
    pub(super) async fn take(
        &self,
        limits: &Limits,
        metrics: &PoolMetrics,
    ) -> Result<SemaphorePermit<'_>, ScriptFault> {
        if let Ok(turn) = self.usual.try_acquire() {
            return Ok(turn);
        }
        let _place = Place::take(&self.waiting, limits, metrics)?;
        match timeout(limits.wait_max, self.wait()).await {
            Ok(Ok(turn)) => Ok(turn),
            // The semaphores are never closed.
            Ok(Err(_)) | Err(_) => Err(ScriptFault::Busy),
        }
    }

    async fn wait(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        let usual = self.usual.acquire();
        tokio::pin!(usual);
        match timeout(EXTRA_AFTER, &mut usual).await {
            Ok(turn) => turn,
            // It keeps its place among those that wait for a usual turn.
            Err(_) => tokio::select! {
                biased;
                turn = &mut usual => turn,
                turn = self.extra.acquire() => turn,
            },
        }
    }
}

/// A place among the waiting calls.
struct Place<'a> {
    waiting: &'a AtomicUsize,
    metrics: &'a PoolMetrics,
}

impl<'a> Place<'a> {
    fn take(
        waiting: &'a AtomicUsize,
        limits: &Limits,
        metrics: &'a PoolMetrics,
    ) -> Result<Place<'a>, ScriptFault> {
        let place = Place { waiting, metrics };
        metrics.waiting.inc();
        if waiting.fetch_add(1, Ordering::Relaxed) >= limits.waiting_max {
            return Err(ScriptFault::Busy);
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.metrics.waiting.dec();
    }
}
