//! Inputs of an evaluation in addition to its row: time, randomness, results of user-defined functions, a budget.

use std::sync::Arc;

use model::Ambient;

use crate::meter::{ROW_STEPS, steps_of_bytes};
use crate::{Budget, EvalFault, Meter, Patterns, Steps, UserCalls};

/// Texts up to this size are not charged.
pub(crate) const FEW_BYTES: usize = 256;

/// When an evaluation must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The deadline, in milliseconds since 1970.
    pub at_ms: u64,
    /// The granted time, for the fault.
    pub granted_ms: u64,
}

/// State of one query, shared between its rows.
#[derive(Debug)]
pub struct Context<'a> {
    /// Time and randomness.
    pub ambient: &'a dyn Ambient,
    /// Milliseconds since 1970 for the `…Static` functions; the same for all pages of a query.
    pub now_static_ms: u64,
    /// The calls of user-defined functions; `None` if they cannot be called.
    pub user_calls: Option<UserCalls>,
    /// Limits of memory and rows.
    pub budget: Arc<Budget>,
    /// When the evaluation must end, if limited.
    pub deadline: Option<Deadline>,
    /// Cache of compiled patterns.
    pub patterns: Arc<Patterns>,
    /// Counts the work done, and stops it.
    pub meter: Arc<Meter>,
    /// Steps of this context not yet reported to the meter.
    pub steps: Steps,
}

impl<'a> Context<'a> {
    /// A context without user-defined functions, whose fixed time is now.
    pub fn new(ambient: &'a dyn Ambient, budget: impl Into<Arc<Budget>>) -> Context<'a> {
        Context {
            ambient,
            now_static_ms: ambient.now_ms(),
            user_calls: None,
            budget: budget.into(),
            deadline: None,
            patterns: Arc::default(),
            meter: Arc::default(),
            steps: Steps::default(),
        }
    }

    /// The same with another meter.
    pub fn with_meter(self, meter: impl Into<Arc<Meter>>) -> Context<'a> {
        Context { meter: meter.into(), ..self }
    }

    /// The current time; for all rows of a query that calls user-defined functions the same.
    pub(crate) fn now_ms(&self) -> u64 {
        self.user_calls.as_ref().map_or_else(|| self.ambient.now_ms(), UserCalls::now_ms)
    }

    /// Counts a row of a source.
    #[inline]
    pub(crate) fn count_row(&self) -> Result<(), EvalFault> {
        self.budget.count_row()?;
        self.charge(ROW_STEPS)
    }

    /// Counts steps that are about to be done, and checks the limits from time to time.
    #[inline]
    pub fn charge(&self, steps: usize) -> Result<(), EvalFault> {
        match self.steps.count(steps) {
            None => Ok(()),
            Some(steps) => self.look(steps),
        }
    }

    /// Counts the steps to process this many bytes. Few bytes are not counted: their row was.
    #[inline]
    pub(crate) fn charge_bytes(&self, bytes: usize) -> Result<(), EvalFault> {
        if bytes <= FEW_BYTES { Ok(()) } else { self.charge_many_bytes(bytes) }
    }

    /// A separate function, because most calls have few bytes.
    #[cold]
    fn charge_many_bytes(&self, bytes: usize) -> Result<(), EvalFault> {
        self.charge(steps_of_bytes(bytes))
    }

    #[cold]
    fn look(&self, steps: u64) -> Result<(), EvalFault> {
        self.meter.spend(steps)?;
        self.check_time()
    }

    /// Fails if the deadline has passed.
    pub fn check_time(&self) -> Result<(), EvalFault> {
        match self.deadline {
            Some(deadline) if self.ambient.now_ms() >= deadline.at_ms => {
                Err(EvalFault::TimeExceeded { milliseconds_max: deadline.granted_ms })
            }
            Some(_) | None => Ok(()),
        }
    }
}
