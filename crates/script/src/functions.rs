//! Calls of user-defined functions, in batches: one message to a worker for many rows.
//!
//! Arguments are encoded when they are added, so a batch costs no tree of values. Scalars have a binary form; arrays
//! and objects cross as JSON text, which the engine parses in native code.

use crate::Clock;
use crate::wire::values;
use std::sync::Arc;
use value::ValueRef;

/// The text of a user-defined function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, for errors and stack traces.
    pub name: String,
    /// One function.
    pub source: Arc<str>,
}

/// Calls of some functions, to be evaluated in one go. They share one JavaScript context, which no other batch sees.
#[derive(Debug, Clone)]
pub struct FunctionBatch {
    pub(crate) functions: Vec<Function>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) calls: Vec<u8>,
    pub(crate) count: u32,
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
        FunctionBatch { functions, clock, seed, calls: Vec::new(), count: 0 }
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
        self.count += 1;
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
