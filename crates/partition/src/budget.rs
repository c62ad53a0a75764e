//! How much of the store the work may take that nobody waits for: sweeps, walks, deletions, index builds.
//!
//! Such work goes in steps that read and write a bounded number of rows. Only so many steps of all partitions are under
//! way at the same time. A writer never waits for one, so a step may wait for writers.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Steps that are under way at the same time.
pub const STEPS_MAX: usize = 4;

/// See the file's head.
#[derive(Debug)]
pub struct StepBudget {
    steps: Semaphore,
}

/// A step under way; it ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Step<'a> {
    /// None only if the budget were closed, which it never is.
    _permit: Option<SemaphorePermit<'a>>,
}

impl StepBudget {
    pub(crate) fn new() -> StepBudget {
        StepBudget { steps: Semaphore::new(STEPS_MAX) }
    }

    /// Waits for its turn, in the order of asking.
    pub async fn step(&self) -> Step<'_> {
        Step { _permit: self.steps.acquire().await.ok() }
    }
}
