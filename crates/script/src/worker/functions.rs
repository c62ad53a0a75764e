//! Calls of user-defined functions, and checks of scripts.

use super::compile;
use super::natives::Text;
use super::outcome::{self, check_result};
use super::realm::Realm;
use crate::limits::{FRAME_BYTES_MAX, RESPONSE_BYTES_MAX};
use crate::wire::Malformed;
use crate::wire::bytes::Fields;
use crate::wire::from_worker::Failure;
use crate::wire::to_worker::Allowance;
use crate::wire::values::{self, Scalar};
use crate::{Clock, FunctionBatch, ResultFault};
use bytes::Bytes;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function, Value};

/// Room in a message for what is not a result.
const MESSAGE_MARGIN_BYTES: usize = 1024;

/// Calls the functions; returns the encoded results.
pub(super) fn evaluate(
    realm: &Realm,
    allowance: Allowance,
    batch: &FunctionBatch,
) -> Result<Vec<u8>, Failure> {
    realm.state.start(allowance, batch.clock, batch.seed);
    realm.limit_memory(allowance.memory_bytes);
    realm.context.with(|ctx| {
        let mut functions = Vec::with_capacity(batch.functions.len());
        for function in &batch.functions {
            let compiled = compile::compile(&ctx, &function.name, &function.source)
                .and_then(|script| compile::function_of(realm, &ctx, &script))
                .map_err(|failure| named(failure, &function.name))?;
            functions.push(compiled);
        }
        let mut fields = Fields::new(Bytes::from(batch.calls.clone()));
        let mut results = Vec::with_capacity(batch.calls.len());
        for _ in 0..batch.count {
            let index = usize::from(fields.u16().map_err(malformed)?);
            let function = functions.get(index).ok_or(Malformed).map_err(malformed)?;
            let call = Caller { realm, ctx: &ctx };
            call.call(function, &mut fields, &mut results)
                .map_err(|failure| named(failure, &batch.functions[index].name))?;
        }
        Ok(results)
    })
}

/// Compiles a script and evaluates its text, but does not call its function.
pub(super) fn check(realm: &Realm, allowance: Allowance, source: &str) -> Result<(), Failure> {
    realm.state.start(allowance, Clock::Fixed { at_ms: 0 }, 0);
    realm.limit_memory(allowance.memory_bytes);
    realm.context.with(|ctx| {
        let script = compile::compile(&ctx, "script", source)?;
        compile::function_of(realm, &ctx, &script).map(|_| ())
    })
}

/// Executes single calls of a batch.
struct Caller<'a, 'js> {
    realm: &'a Realm,
    ctx: &'a Ctx<'js>,
}

impl<'js> Caller<'_, 'js> {
    fn call(
        &self,
        function: &Function<'js>,
        fields: &mut Fields,
        results: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let count = usize::from(fields.u16().map_err(malformed)?);
        let mut arguments = Args::new(self.ctx.clone(), count);
        for _ in 0..count {
            let scalar = values::scalar(fields).map_err(malformed)?;
            let value = self.value(&scalar).map_err(|error| self.failure(error))?;
            arguments.push_arg(value).map_err(|error| self.failure(error))?;
        }
        let result: Value = function.call_arg(arguments).map_err(|error| self.failure(error))?;
        self.put_result(&result, results)?;
        if results.len() > FRAME_BYTES_MAX - MESSAGE_MARGIN_BYTES {
            return Err(Failure::Result(ResultFault::TooLarge { bytes_max: FRAME_BYTES_MAX }));
        }
        Ok(())
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
            values::put_text(results, &text.0);
        } else {
            let text = self.ctx.json_stringify(result).map_err(|error| self.failure(error))?;
            match text {
                None => values::put_undefined(results),
                Some(text) => {
                    let text = text.to_string().map_err(|error| self.failure(error))?;
                    check_result(&text, RESPONSE_BYTES_MAX)?;
                    values::put_json(results, text.as_bytes());
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
