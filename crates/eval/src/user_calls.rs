//! Calls of user-defined functions.
//!
//! Functions are not executed here, and a call takes long compared with a row; many calls at once do not. So the caller
//! evaluates rows in advance: an evaluation that needs an unknown result stops there with
//! [`EvalFault::CallPending`], the caller makes the calls of many rows together, and evaluates the rows that have
//! stopped again. The actual evaluation then finds all results. This needs the same calls in both: functions of the
//! current time return the time of the context, and the caller refuses queries with random numbers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use value::{Value, encode_key, encode_undefined};

use crate::{Context, EvalFault, Holding, UserFunctionFault, allocated, weigh};

/// A call of a user-defined function.
#[derive(Clone, Debug, PartialEq)]
pub struct UserCall {
    /// The name of the function.
    pub function: String,
    /// Its arguments; `None` is undefined.
    pub arguments: Vec<Option<Value>>,
}

/// The result of a call; `None` is undefined.
pub type UserCallResult = Result<Option<Value>, UserFunctionFault>;

/// The calls of some rows, and the results as far as they are known.
///
/// Results are kept per row: a function may return something else for the same arguments.
#[derive(Debug)]
pub struct UserCalls {
    state: Mutex<State>,
    /// What the functions of the current time return.
    now_ms: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The row that is evaluated.
    row: usize,
    results: HashMap<CallKey, UserCallResult>,
    /// The memory of the results.
    holding: Option<Holding>,
    wanted: Vec<UserCall>,
    /// The keys of the wanted calls.
    wanted_keys: Vec<CallKey>,
    /// Bytes of their arguments.
    wanted_bytes: usize,
}

/// The row, the function and the key code of the arguments.
type CallKey = Vec<u8>;

impl UserCalls {
    /// Without results, at a time.
    pub fn at(now_ms: u64) -> UserCalls {
        UserCalls { state: Mutex::default(), now_ms }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The state stays usable if a holder panics: calls and results are added as wholes.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns to other rows: forgets all results. Those to come are accounted in `holding`.
    pub fn begin(&self, holding: Holding) {
        *self.state() = State { holding: Some(holding), ..State::default() };
    }

    /// Turns to a row, by an index that the caller chooses.
    pub fn turn_to(&self, row: usize) {
        self.state().row = row;
    }

    /// Number of calls whose results are wanted, and the bytes of their arguments.
    pub fn wanted(&self) -> (usize, usize) {
        let state = self.state();
        (state.wanted.len(), state.wanted_bytes)
    }

    /// The calls whose results are wanted.
    pub fn take_wanted(&self) -> Vec<UserCall> {
        let mut state = self.state();
        state.wanted_bytes = 0;
        std::mem::take(&mut state.wanted)
    }

    /// Adds the results of the first calls that were taken and have none, in their order.
    pub fn add_results(&self, results: Vec<UserCallResult>) -> Result<(), EvalFault> {
        let mut state = self.state();
        let count = results.len().min(state.wanted_keys.len());
        let keys: Vec<CallKey> = state.wanted_keys.drain(..count).collect();
        for (key, result) in keys.into_iter().zip(results) {
            let value = result.as_ref().ok().and_then(Option::as_ref);
            let weight = value.map_or(Ok(0), |value| weigh(value.as_ref()))?;
            if let Some(holding) = &mut state.holding {
                holding.add(weight + allocated(key.len()) + size_of::<(CallKey, UserCallResult)>())?;
            }
            state.results.insert(key, result);
        }
        Ok(())
    }
}

impl State {
    fn key(&self, function: &str, arguments: &[Option<Value>]) -> CallKey {
        let mut key = Vec::with_capacity(size_of::<usize>() + function.len() + 1 + 16 * arguments.len());
        key.extend_from_slice(&self.row.to_be_bytes());
        key.extend_from_slice(function.as_bytes());
        key.push(0);
        for argument in arguments {
            match argument {
                Some(argument) => {
                    // Equal numbers of different kinds have the same code.
                    key.push(argument.kind() as u8);
                    encode_key(argument.as_ref(), &mut key);
                }
                None => encode_undefined(&mut key),
            }
        }
        key
    }
}

impl Context<'_> {
    /// The result of a call, if it is known; otherwise the call is wanted.
    pub(crate) fn call_user_function(
        &self,
        function: &str,
        arguments: Vec<Option<Value>>,
    ) -> Result<Option<Value>, EvalFault> {
        let named = |fault| EvalFault::UserFunction { name: function.to_owned(), fault };
        let Some(calls) = &self.user_calls else {
            return Err(named(UserFunctionFault::NotExecuted));
        };
        let mut bytes = 0;
        for argument in arguments.iter().flatten() {
            bytes += weigh(argument.as_ref())?;
        }
        self.charge_bytes(bytes)?;
        let mut state = calls.state();
        let key = state.key(function, &arguments);
        if let Some(result) = state.results.get(&key) {
            return result.clone().map_err(named);
        }
        state.wanted.push(UserCall { function: function.to_owned(), arguments });
        state.wanted_keys.push(key);
        state.wanted_bytes += bytes;
        Err(EvalFault::CallPending)
    }
}
