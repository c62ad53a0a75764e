//! What an evaluation needs beside its row: time, chance, functions of the user's, a budget.

use std::sync::Arc;

use model::Ambient;
use value::Value;

use crate::meter::{ROW_STEPS, steps_of_bytes};
use crate::{Budget, EvalFault, Meter, Patterns, Steps, UserFunctionFault};

/// Bytes that are not counted.
pub(crate) const FEW_BYTES: usize = 256;

/// When an evaluation must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// What was granted, for the fault.
    pub granted_ms: u64,
}

/// One per query: what is fixed for it and what it shares between rows.
#[derive(Debug)]
pub struct Context<'a> {
    /// Time and chance.
    pub ambient: &'a dyn Ambient,
    /// Milliseconds since 1970 that the `…Static` functions see; the same for all pages of a query.
    pub now_static_ms: u64,
    /// The functions behind `udf.`.
    pub user_functions: &'a dyn UserFunctions,
    /// What the query may hold and look at.
    pub budget: Arc<Budget>,
    /// When it must be done, if there is such a time.
    pub deadline: Option<Deadline>,
    /// The patterns that it has read.
    pub patterns: Arc<Patterns>,
    /// How much was done for it, and whether it must stop.
    pub meter: Arc<Meter>,
    /// Steps of this context that the meter does not know of yet.
    pub steps: Steps,
}

impl<'a> Context<'a> {
    /// A context without functions of the user's, whose fixed time is now.
    pub fn new(ambient: &'a dyn Ambient, budget: impl Into<Arc<Budget>>) -> Context<'a> {
        Context {
            ambient,
            now_static_ms: ambient.now_ms(),
            user_functions: &NoUserFunctions,
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

    /// The same with functions of the user's.
    pub fn with_user_functions(self, user_functions: &'a dyn UserFunctions) -> Context<'a> {
        Context { user_functions, ..self }
    }

    /// Counts a row that a source gave.
    #[inline]
    pub(crate) fn count_row(&self) -> Result<(), EvalFault> {
        self.budget.count_row()?;
        self.charge(ROW_STEPS)
    }

    /// Counts steps that are just about to be done, and looks now and then whether they may be.
    #[inline]
    pub fn charge(&self, steps: usize) -> Result<(), EvalFault> {
        match self.steps.count(steps) {
            None => Ok(()),
            Some(steps) => self.look(steps),
        }
    }

    /// Counts the steps that it takes to look at so many bytes. Few are not counted: the row that they are in was.
    #[inline]
    pub(crate) fn charge_bytes(&self, bytes: usize) -> Result<(), EvalFault> {
        if bytes <= FEW_BYTES { Ok(()) } else { self.charge_many_bytes(bytes) }
    }

    /// Out of the way of those who have few, which are most.
    #[cold]
    fn charge_many_bytes(&self, bytes: usize) -> Result<(), EvalFault> {
        self.charge(steps_of_bytes(bytes))
    }

    #[cold]
    fn look(&self, steps: u64) -> Result<(), EvalFault> {
        self.meter.spend(steps)?;
        self.check_time()
    }

    /// Whether there is time left.
    pub fn check_time(&self) -> Result<(), EvalFault> {
        match self.deadline {
            Some(deadline) if self.ambient.now_ms() >= deadline.at_ms => {
                Err(EvalFault::TimeExceeded { milliseconds_max: deadline.granted_ms })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The functions that users registered.
pub trait UserFunctions: std::fmt::Debug + Sync {
    /// Calls one. `None` is undefined, as an argument and as a result.
    fn call(&self, name: &str, arguments: Vec<Option<Value>>) -> Result<Option<Value>, UserFunctionFault>;
}

/// For containers without any.
#[derive(Debug, Clone, Copy)]
pub struct NoUserFunctions;

impl UserFunctions for NoUserFunctions {
    fn call(&self, _name: &str, _arguments: Vec<Option<Value>>) -> Result<Option<Value>, UserFunctionFault> {
        Err(UserFunctionFault::NotFound)
    }
}
