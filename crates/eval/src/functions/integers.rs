//! The `Int…` functions: 64 bits, wrapping.

use value::Value;

use super::Call;
use crate::expression::{EvalResult, defined};

/// Two whole numbers; fractions and numbers above 64 bits make the result undefined.
pub(super) fn binary(call: Call<'_>, compute: fn(i64, i64) -> Option<i64>) -> EvalResult<'_> {
    let left = defined!(call.integer(0));
    let right = defined!(call.integer(1));
    Ok(compute(left, right).map(|result| Value::Int64(result).into()))
}

pub(super) fn not(call: Call<'_>) -> EvalResult<'_> {
    let operand = defined!(call.integer(0));
    Ok(Some(Value::Int64(!operand).into()))
}

/// Rounds towards zero; division by zero is undefined.
pub(super) fn divide(left: i64, right: i64) -> Option<i64> {
    (right != 0).then(|| left.wrapping_div(right))
}

/// With the sign of the dividend; division by zero is undefined.
pub(super) fn modulo(left: i64, right: i64) -> Option<i64> {
    (right != 0).then(|| left.wrapping_rem(right))
}

/// Own decision: a shift by 64 or more moves all bits out, a negative one is undefined.
pub(super) fn shift_left(left: i64, right: i64) -> Option<i64> {
    let count = u32::try_from(right.min(64)).ok()?;
    Some(left.checked_shl(count).unwrap_or(0))
}

/// Keeps the sign.
pub(super) fn shift_right(left: i64, right: i64) -> Option<i64> {
    let count = u32::try_from(right.min(63)).ok()?;
    left.checked_shr(count)
}
