//! The budget of background work in the store: sweeps, walks, deletions, index builds.
//!
//! Such work runs in steps that read and write a bounded number of rows. The number of steps of all partitions that
//! run at the same time is limited. A writer never waits for a step, so a step may wait for writers.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Steps that run at the same time.
pub const STEPS_MAX: usize = 4;

/// Limits the steps of background work that run at the same time.
#[derive(Debug)]
pub struct StepBudget {
    steps: Semaphore,
}

/// A running step; it ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct BudgetStep<'a> {
    /// `None` only if the semaphore were closed, which never happens.
    _permit: Option<SemaphorePermit<'a>>,
}

impl StepBudget {
    pub(crate) fn new() -> StepBudget {
        StepBudget { steps: Semaphore::new(STEPS_MAX) }
    }

    /// Waits for a permit, first come, first served.
    pub async fn step(&self) -> BudgetStep<'_> {
        BudgetStep { _permit: self.steps.acquire().await.ok() }
    }
}
