//! Mathematics in IEEE 754 doubles. Results out of range are infinities or NaN, which are values.

use value::Value;

use super::Call;
use crate::expression::{EvalResult, defined};
use crate::number::{Number, double_value};

/// Most digits that ROUND accepts; doubles have no more.
const DIGITS_MAX: i64 = 15;

pub(super) fn unary(call: Call<'_>, compute: fn(f64) -> f64) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    Ok(Some(double_value(compute(number.double())).into()))
}

pub(super) fn binary(call: Call<'_>, compute: fn(f64, f64) -> f64) -> EvalResult<'_> {
    let left = defined!(call.number(0));
    let right = defined!(call.number(1));
    Ok(Some(double_value(compute(left.double(), right.double())).into()))
}

/// Integers are returned unchanged, even above 2^53.
pub(super) fn rounding(call: Call<'_>, compute: fn(f64) -> f64) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    Ok(Some(round_with(number, compute).into_value().into()))
}

fn round_with(number: Number, compute: fn(f64) -> f64) -> Number {
    match number {
        Number::Integer(_) => number,
        Number::Double(value) => Number::Double(compute(value)),
    }
}

pub(super) fn abs(call: Call<'_>) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    let result = match number {
        Number::Integer(value) if value < 0 => number.negate(),
        Number::Integer(_) => number,
        Number::Double(value) => Number::Double(value.abs()),
    };
    Ok(Some(result.into_value().into()))
}

/// -1, 0 or 1; NaN stays NaN.
pub(super) fn sign(call: Call<'_>) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    let value = number.double();
    let sign = if value == 0.0 { 0.0 } else { value.signum() };
    Ok(Some(double_value(sign).into()))
}

pub(super) fn square(call: Call<'_>) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    Ok(Some(number.multiply(number).into_value().into()))
}

/// The natural logarithm, or that to a given base.
pub(super) fn log(call: Call<'_>) -> EvalResult<'_> {
    let number = defined!(call.number(0)).double();
    if !call.has(1) {
        return Ok(Some(double_value(number.ln()).into()));
    }
    let base = defined!(call.number(1)).double();
    // The two bases with exact functions give exact results: LOG(8, 2) is 3.
    let result = if base == 2.0 {
        number.log2()
    } else if base == 10.0 {
        number.log10()
    } else {
        number.ln() / base.ln()
    };
    Ok(Some(double_value(result).into()))
}

pub(super) fn constant<'a>(value: f64) -> EvalResult<'a> {
    Ok(Some(Value::Double(value).into()))
}

/// At least 0 and below 1.
pub(super) fn random(call: Call<'_>) -> EvalResult<'_> {
    const TWO_TO_53: f64 = 9_007_199_254_740_992.0;
    let mut bytes = [0; 8];
    call.frame.context.ambient.fill_random(&mut bytes);
    #[allow(clippy::cast_precision_loss)] // 53 bits are exact
    let value = (u64::from_le_bytes(bytes) >> 11) as f64 / TWO_TO_53;
    Ok(Some(Value::Double(value).into()))
}

/// Rounds half away from zero, to whole numbers or to a number of digits; negative digits round left of the point.
pub(super) fn round(call: Call<'_>) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    let digits = if call.has(1) { defined!(call.integer(1)) } else { 0 };
    if digits == 0 || (digits > 0 && matches!(number, Number::Integer(_))) {
        return Ok(Some(round_with(number, f64::round).into_value().into()));
    }
    let value = number.double();
    #[allow(clippy::cast_possible_truncation)] // clamped to a few digits
    let scale = 10f64.powi(digits.clamp(-400, DIGITS_MAX).unsigned_abs() as i32);
    let rounded = if digits > 0 { (value * scale).round() / scale } else { (value / scale).round() * scale };
    // If scaling overflows, there is nothing to round, or nothing is left.
    let result = match (rounded.is_finite(), digits > 0) {
        (true, _) => rounded,
        (false, true) => value,
        (false, false) if value.is_finite() => 0.0,
        (false, false) => value,
    };
    Ok(Some(double_value(result).into()))
}

/// The largest multiple of a size that does not exceed a number; undefined for size 0.
pub(super) fn number_bin(call: Call<'_>) -> EvalResult<'_> {
    let number = defined!(call.number(0));
    let size = if call.has(1) { defined!(call.number(1)) } else { Number::Integer(1) };
    if size.double() == 0.0 {
        return Ok(None);
    }
    let result = (number.double() / size.double()).floor() * size.double();
    Ok(Some(double_value(result).into()))
}
