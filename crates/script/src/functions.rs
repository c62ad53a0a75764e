//! Calls of user-defined functions, in batches: one message to a worker for many rows.
//!
//! Arguments are encoded when they are added, so a batch costs no tree of values. Scalars have a binary form; arrays
//! and objects cross as JSON text, which the engine parses in native code.

use crate::wire::values;
use crate::{Clock, ScriptFault};
use std::sync::Arc;
use std::time::Duration;
use value::{Value, ValueRef};

/// The text of a user-defined function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, for errors and stack traces.
    pub name: String,
    /// One function.
    pub source: Arc<str>,
}

/// Calls of some functions, to be evaluated in one go. Each has the time of a script. They share one JavaScript context, which no other batch sees.
#[derive(Debug, Clone)]
pub struct FunctionBatch {
    pub(crate) functions: Vec<Function>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    /// Whether each call must have a runtime that no other call has.
    pub(crate) needs_own_runtimes: bool,
    pub(crate) calls: Vec<u8>,
    /// Where each of the calls ends.
    pub(crate) ends: Vec<usize>,
    pub(crate) count: u32,
}

/// Odd, with as many ones as zeros: every bit of a seed changes about half of the others.
const SEED_FACTOR: u64 = 0xd134_2543_de82_ef95;

/// How a batch ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The results of the calls before the fault, `None` for undefined; of the first calls without one.
    pub results: Vec<Option<Value>>,
    /// Why the next call has no result. Calls after it may have been made. Without [`ScriptFault::TimeExceeded`] of a
    /// worker that had to be killed it is the fault of that call alone.
    pub fault: Option<ScriptFault>,
}

impl Evaluated {
    /// The results of the first calls, or the fault.
    pub fn into_result(self) -> Result<Vec<Option<Value>>, ScriptFault> {
        match self.fault {
            None => Ok(self.results),
            Some(fault) => Err(fault),
        }
    }
}

/// Who calls a script: callers that wait for workers get them in rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerId(pub u64);

/// Whose turn a batch of functions uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Its own, as one of this caller: it waits until a worker is free.
    Own(CallerId),
    /// That of the script whose operation needs the functions: its worker waits meanwhile, so no other one has to.
    OfScript,
}

impl FunctionBatch {
    /// An empty batch.
    pub fn new(functions: Vec<Function>, clock: Clock, seed: u64) -> FunctionBatch {
        let (calls, ends) = (Vec::new(), Vec::new());
        FunctionBatch { functions, clock, seed, needs_own_runtimes: false, calls, ends, count: 0 }
    }

    /// Adds a call of the function at this position of the list. `None` is undefined.
    ///
    /// A function that is not in the list makes the whole batch fail.
    pub fn push<'a>(
        &mut self,
        function: u16,
        arguments: impl ExactSizeIterator<Item = Option<ValueRef<'a>>>,
    ) {
        self.calls.extend_from_slice(&function.to_le_bytes());
        let count = u16::try_from(arguments.len()).unwrap_or(u16::MAX);
        self.calls.extend_from_slice(&count.to_le_bytes());
        for argument in arguments.take(usize::from(count)) {
            values::encode(argument, &mut self.calls);
        }
        self.ends.push(self.calls.len());
        self.count += 1;
    }

    /// The calls after the first `done`, to be evaluated this much later.
    pub(crate) fn rest(&self, done: usize, later: Duration) -> FunctionBatch {
        let start = if done == 0 { 0 } else { self.ends[done - 1] };
        let clock = match self.clock {
            clock @ Clock::Fixed { .. } => clock,
            Clock::Running { start_ms } => {
                let later_ms = u64::try_from(later.as_millis()).unwrap_or(0);
                Clock::Running { start_ms: start_ms.saturating_add(later_ms) }
            }
        };
        FunctionBatch {
            functions: self.functions.clone(),
            clock,
            // Other random numbers than those of the calls before.
            seed: (self.seed ^ done as u64).wrapping_mul(SEED_FACTOR),
            needs_own_runtimes: self.needs_own_runtimes,
            calls: self.calls[start..].to_vec(),
            ends: self.ends[done..].iter().map(|end| end - start).collect(),
            count: self.count - u32::try_from(done).unwrap_or(self.count),
        }
    }

    /// Calls added so far.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no call.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the encoded calls, by which a caller bounds a batch.
    pub fn size_bytes(&self) -> usize {
        self.calls.len()
    }
}
