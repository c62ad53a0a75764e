//! Type checks: always a boolean, also for undefined.

use value::ValueRef;

use super::Call;
use super::moment::Moment;
use crate::EvalFault;
use crate::expression::EvalResult;
use crate::operators::{Class, class};

/// Whether the argument is of a class.
pub(super) fn is(call: Call<'_>, wanted: Class) -> EvalResult<'_> {
    check(call, |value| class(value.kind()) == wanted)
}

pub(super) fn is_primitive(call: Call<'_>) -> EvalResult<'_> {
    check(call, |value| !matches!(class(value.kind()), Class::Array | Class::Object))
}

pub(super) fn is_defined(call: Call<'_>) -> EvalResult<'_> {
    check(call, |_| true)
}

pub(super) fn is_finite_number(call: Call<'_>) -> EvalResult<'_> {
    check(call, |value| value.as_f64().is_some_and(f64::is_finite))
}

/// Whole numbers of 64 bits, whatever their kind: 3.0 is one.
pub(super) fn is_integer(call: Call<'_>) -> EvalResult<'_> {
    check(call, |value| value.as_i64().is_some())
}

pub(super) fn is_date_time(call: Call<'_>) -> EvalResult<'_> {
    check(call, |value| value.as_str().is_some_and(|text| Moment::parse(text).is_some()))
}

fn check<'a>(call: Call<'a>, test: impl Fn(ValueRef<'_>) -> bool) -> EvalResult<'a> {
    let value: Result<_, EvalFault> = call.value(0);
    Ok(Some(value?.is_some_and(|value| test(value.as_ref())).into()))
}
