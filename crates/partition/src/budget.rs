//! The budget of background work in the store: sweeps, walks, deletions, index builds.
//!
//! Such work runs in steps that read and write a bounded number of rows. The number of steps of all partitions that
//! run at the same time is limited. A writer never waits for a step, so a step may wait for writers.
//!
//! Work that nobody waits for is slow on purpose: one such step runs at a time, and a rest follows that is longer than
//! the step was. So it takes a fixed part of a processor, and less of it on a busy machine, where steps take longer.

use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Steps that run at the same time.
pub const STEPS_MAX: usize = 4;
/// Rest after a slow step, as a multiple of its time.
const REST_FACTOR: u32 = 5;
/// Longest rest.
const REST_MAX: Duration = Duration::from_millis(250);

/// Limits the steps of background work that run at the same time.
#[derive(Debug)]
pub struct StepBudget {
    steps: Semaphore,
    slow_steps: Semaphore,
}

/// A running step; it ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct BudgetStep<'a> {
    /// `None` only if the semaphore were closed, which never happens.
    _permit: Option<SemaphorePermit<'a>>,
}

/// A running step of work that nobody waits for.
#[derive(Debug)]
#[must_use]
pub struct SlowStep<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    begun: Instant,
}

impl SlowStep<'_> {
    /// Ends the step with its rest.
    pub async fn end(self) {
        tokio::time::sleep((self.begun.elapsed() * REST_FACTOR).min(REST_MAX)).await;
    }
}

impl StepBudget {
    pub(crate) fn new() -> StepBudget {
        StepBudget { steps: Semaphore::new(STEPS_MAX), slow_steps: Semaphore::new(1) }
    }

    /// Waits for the end and the rest of another slow step, first come, first served.
    pub async fn slow_step(&self) -> SlowStep<'_> {
        let permit = self.slow_steps.acquire().await.ok();
        SlowStep { _permit: permit, begun: Instant::now() }
    }

    /// Waits for a permit, first come, first served.
    pub async fn step(&self) -> BudgetStep<'_> {
        BudgetStep { _permit: self.steps.acquire().await.ok() }
    }
}
