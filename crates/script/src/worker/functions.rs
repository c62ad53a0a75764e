//! Calls of user-defined functions, and checks of scripts.

use super::compile::{self, Strictness};
use super::natives::Text;
use super::outcome::{self, check_result, replace_surrogates};
use super::realm::{Kind, Prelude, Realm};
use super::sealing::is_sealable;
use super::state::State;
use crate::limits::{BATCH_TIME_MAX, REPEATED_TIME_MAX, RESPONSE_BYTES_MAX};
use crate::wire::Malformed;
use crate::wire::bytes::Fields;
use crate::wire::from_worker::{BatchEnd, Failure};
use crate::wire::to_worker::Allowance;
use crate::wire::values::{self, Scalar};
use crate::{Clock, FunctionBatch, ResultFault};
use bytes::Bytes;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function, Value};
use std::time::Instant;

/// The encoded results of the first calls of a batch.
#[derive(Debug)]
pub(super) struct Evaluated {
    pub(super) count: u32,
    pub(super) results: Vec<u8>,
    pub(super) end: BatchEnd,
}

/// Calls the functions in a sealed runtime.
///
/// No row sees what another one has left behind. Rows are called in a sealed runtime, each with functions of its own,
/// in strict mode, so that code which would change something shared throws (`sealing`). Code that throws, for this reason
/// or another, or reads what is guarded, is called again in a runtime of its own as it is written, and so are its calls
/// for the rows after it.
pub(super) fn evaluate(
    realm: &Realm,
    prelude: Prelude,
    allowance: Allowance,
    batch: &FunctionBatch,
) -> Evaluated {
    realm.state.start(allowance, batch.clock, batch.seed);
    realm.limit_memory(allowance.memory_bytes);
    realm.context.with(|ctx| {
        let sealed: Result<Vec<_>, _> = batch
            .functions
            .iter()
            .map(|function| sealed(&ctx, function).map_err(|failure| named(failure, &function.name)))
            .collect();
        let mut sealed = match sealed {
            Ok(sealed) => sealed,
            Err(failure) => {
                return Evaluated { count: 0, results: Vec::new(), end: BatchEnd::Failed(failure) };
            }
        };
        each(&realm.state, allowance, batch, |index, arguments, results| {
            let function = &batch.functions[index];
            let length = results.len();
            if let Some(script) = &sealed[index] {
                let caller = Caller { realm, ctx: &ctx, source: &function.source };
                match caller.call(script, arguments, results) {
                    Ok(()) if !realm.state.is_suspect() => return Ok(()),
                    Ok(()) | Err(Failure::Thrown(_) | Failure::Syntax(_)) => {
                        results.truncate(length);
                        sealed[index] = None;
                        if allowance.time.saturating_sub(realm.state.time_left()) > REPEATED_TIME_MAX {
                            return Err(BatchEnd::Again);
                        }
                    }
                    // The calls before may have left garbage.
                    Err(Failure::MemoryExceeded) => return Err(BatchEnd::Again),
                    Err(failure @ (Failure::TimeExceeded | Failure::Result(_))) => {
                        return Err(BatchEnd::Failed(failure));
                    }
                }
            }
            Alone::after(&realm.state, prelude, allowance).call(function, arguments, results)
        })
    })
}

/// Calls the functions of a batch each in a runtime of its own. For few calls this takes less than to seal one.
pub(super) fn evaluate_alone(prelude: Prelude, allowance: Allowance, batch: &FunctionBatch) -> Evaluated {
    let state = State::default();
    state.start(allowance, batch.clock, batch.seed);
    each(&state, allowance, batch, |index, arguments, results| {
        Alone::after(&state, prelude, allowance).call(&batch.functions[index], arguments, results)
    })
}

/// Makes the calls of a batch, each in its own time, until the batch has taken its time. `call` appends the result of the
/// function with an index.
fn each(
    state: &State,
    allowance: Allowance,
    batch: &FunctionBatch,
    mut call: impl FnMut(usize, &[Scalar], &mut Vec<u8>) -> Result<(), BatchEnd>,
) -> Evaluated {
    let mut fields = Fields::new(Bytes::from(batch.calls.clone()));
    let mut results = Vec::with_capacity(batch.calls.len());
    let end = Instant::now() + BATCH_TIME_MAX;
    for count in 0..batch.count {
        let now = Instant::now();
        if count > 0 && now >= end {
            return Evaluated { count, results, end: BatchEnd::Reached };
        }
        state.restart(now, allowance.time);
        let length = results.len();
        let called = match next(&mut fields, batch) {
            Ok((index, arguments)) => call(index, &arguments, &mut results),
            Err(malformed) => Err(BatchEnd::Failed(self::malformed(malformed))),
        };
        if let Err(end) = called {
            results.truncate(length);
            return Evaluated { count, results, end };
        }
        if results.len() >= RESPONSE_BYTES_MAX {
            return Evaluated { count: count + 1, results, end: BatchEnd::Reached };
        }
    }
    Evaluated { count: batch.count, results, end: BatchEnd::Reached }
}

/// The function and the arguments of the next call.
fn next(fields: &mut Fields, batch: &FunctionBatch) -> Result<(usize, Vec<Scalar>), Malformed> {
    let index = usize::from(fields.u16()?);
    if index >= batch.functions.len() {
        return Err(Malformed);
    }
    Ok((index, arguments(fields)?))
}

/// A function for many rows; `None` if it has to be called in runtimes of its own.
fn sealed<'js>(ctx: &Ctx<'js>, function: &crate::Function) -> Result<Option<Function<'js>>, Failure> {
    let crate::Function { name, source } = function;
    if is_sealable(source)
        && let Ok(script) = compile::compile_as(ctx, name, source, Strictness::Strict)
    {
        return Ok(Some(script));
    }
    compile::compile(ctx, name, source).map(|_| None)
}

fn arguments(fields: &mut Fields) -> Result<Vec<Scalar>, Malformed> {
    let count = usize::from(fields.u16()?);
    (0..count).map(|_| values::scalar(fields)).collect()
}

/// A call in a runtime of its own.
struct Alone {
    prelude: Prelude,
    allowance: Allowance,
    clock: Clock,
    seed: u64,
}

impl Alone {
    /// A call that continues the clock and the random numbers of a batch, with all of the time of a call.
    fn after(state: &State, prelude: Prelude, allowance: Allowance) -> Alone {
        Alone { prelude, allowance, clock: state.clock_now(), seed: state.random() }
    }

    /// Appends the result of the call.
    fn call(
        &self,
        function: &crate::Function,
        arguments: &[Scalar],
        results: &mut Vec<u8>,
    ) -> Result<(), BatchEnd> {
        let Ok(realm) = Realm::new(self.prelude, Kind::Functions) else {
            return Err(BatchEnd::Failed(Failure::MemoryExceeded));
        };
        realm.state.start(self.allowance, self.clock, self.seed);
        realm.limit_memory(self.allowance.memory_bytes);
        let called = realm.context.with(|ctx| {
            let script = compile::compile(&ctx, &function.name, &function.source)?;
            Caller { realm: &realm, ctx: &ctx, source: &function.source }.call(&script, arguments, results)
        });
        called.map_err(|failure| BatchEnd::Failed(named(failure, &function.name)))
    }
}

/// Compiles a script and evaluates its text, but does not call its function.
pub(super) fn check(realm: &Realm, allowance: Allowance, source: &str) -> Result<(), Failure> {
    realm.state.start(allowance, Clock::Fixed { at_ms: 0 }, 0);
    realm.limit_memory(allowance.memory_bytes);
    realm.context.with(|ctx| {
        // Made before the script can change what it uses.
        let is_class = || -> rquickjs::Result<Function> { ctx.eval(IS_CLASS) };
        let is_class = is_class().map_err(|error| outcome::failure(realm, &ctx, error))?;
        let script = compile::compile(&ctx, "script", source)?;
        let function = compile::function_of(realm, &ctx, &script, source)?;
        match is_class.call((function,)).map_err(|error| outcome::failure(realm, &ctx, error))? {
            true => Err(compile::no_function("a class", source)),
            false => Ok(()),
        }
    })
}

/// Whether a function is a class, which cannot be called.
const IS_CLASS: &str = "(({ apply }, { toString }, { test }, pattern) => (f) => \
    apply(test, pattern, [apply(toString, f, [])]))(Reflect, Function.prototype, RegExp.prototype, /^class[\\s{]/)";

/// Executes single calls of a batch.
struct Caller<'a, 'js> {
    realm: &'a Realm,
    ctx: &'a Ctx<'js>,
    source: &'a str,
}

impl<'js> Caller<'_, 'js> {
    /// Calls the function of a compiled script, which is made anew, and appends its result.
    fn call(
        &self,
        script: &Function<'js>,
        arguments: &[Scalar],
        results: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let function = compile::function_of(self.realm, self.ctx, script, self.source)?;
        let mut values = Args::new(self.ctx.clone(), arguments.len());
        for scalar in arguments {
            let value = self.value(scalar).map_err(|error| self.failure(error))?;
            values.push_arg(value).map_err(|error| self.failure(error))?;
        }
        let result: Value = function.call_arg(values).map_err(|error| self.failure(error))?;
        self.put_result(&result, results)
    }

    fn value(&self, scalar: &Scalar) -> rquickjs::Result<Value<'js>> {
        let ctx = || self.ctx.clone();
        Ok(match scalar {
            Scalar::Undefined => Value::new_undefined(ctx()),
            Scalar::Null => Value::new_null(ctx()),
            Scalar::Bool(flag) => Value::new_bool(ctx(), *flag),
            Scalar::Integer(integer) => Value::new_int(ctx(), *integer),
            Scalar::Double(double) => Value::new_float(ctx(), *double),
            Scalar::Text(text) => {
                let text = std::str::from_utf8(text)?;
                rquickjs::String::from_str(ctx(), text)?.into_value()
            }
            Scalar::Json(text) => self.ctx.json_parse(text.as_ref())?,
        })
    }

    /// Appends a result. What JSON leaves out of an object is undefined.
    fn put_result(&self, result: &Value<'js>, results: &mut Vec<u8>) -> Result<(), Failure> {
        if let Some(integer) = result.as_int() {
            values::put_integer(results, integer);
        } else if let Some(double) = result.as_float() {
            values::put_double(results, double);
        } else if let Some(flag) = result.as_bool() {
            values::put_bool(results, flag);
        } else if result.is_null() {
            values::put_null(results);
        } else if result.is_undefined() {
            values::put_undefined(results);
        } else if result.is_string() {
            let text: Text = result.get().map_err(|error| self.failure(error))?;
            if text.0.len() > RESPONSE_BYTES_MAX {
                return Err(Failure::Result(ResultFault::TooLarge { bytes_max: RESPONSE_BYTES_MAX }));
            }
            values::put_text(results, &text.0);
        } else {
            let text = self.ctx.json_stringify(result).map_err(|error| self.failure(error))?;
            match text {
                None => values::put_undefined(results),
                Some(text) => {
                    let text = text.to_string().map_err(|error| self.failure(error))?;
                    check_result(&text, RESPONSE_BYTES_MAX)?;
                    let mut json = text.into_bytes();
                    replace_surrogates(&mut json);
                    values::put_json(results, &json);
                }
            }
        }
        Ok(())
    }

    fn failure(&self, error: rquickjs::Error) -> Failure {
        outcome::failure(self.realm, self.ctx, error)
    }
}

/// A failure of a function in a batch says which one it was.
fn named(failure: Failure, name: &str) -> Failure {
    match failure {
        Failure::Thrown(mut thrown) => {
            thrown.function = Some(name.to_owned());
            Failure::Thrown(thrown)
        }
        Failure::Syntax(mut fault) => {
            fault.message = format!("{name}: {}", fault.message);
            Failure::Syntax(fault)
        }
        Failure::TimeExceeded | Failure::MemoryExceeded | Failure::Result(_) => failure,
    }
}

/// The server encodes batches itself, so one that cannot be read is a defect; the worker has no other answer.
fn malformed(_: Malformed) -> Failure {
    Failure::Thrown(crate::Thrown {
        text: "malformed batch".to_owned(),
        message: "malformed batch".to_owned(),
        ..crate::Thrown::default()
    })
}
