//! The current time of the context, in milliseconds.

use value::Value;

use super::Call;
use super::date_time::{part_named, shift, text_of_moment};
use super::moment::{Moment, TICKS_PER_MS};
use crate::expression::{EvalResult, defined};

fn moment(now_ms: u64) -> Option<Moment> {
    Moment::from_ms(i64::try_from(now_ms).ok()?)
}

pub(super) fn date_time<'a>(now_ms: u64) -> EvalResult<'a> {
    text_of_moment(moment(now_ms))
}

pub(super) fn ticks<'a>(now_ms: u64) -> EvalResult<'a> {
    let ticks = i64::try_from(now_ms).ok().and_then(|now_ms| now_ms.checked_mul(TICKS_PER_MS));
    Ok(ticks.map(|ticks| Value::Int64(ticks).into()))
}

pub(super) fn timestamp<'a>(now_ms: u64) -> EvalResult<'a> {
    Ok(i64::try_from(now_ms).ok().map(|now_ms| Value::Int64(now_ms).into()))
}

/// The time `count` parts before now.
///
/// Own decision: Ago and Now use the query's fixed time, so that all rows see the same time.
pub(super) fn ago(call: Call<'_>) -> EvalResult<'_> {
    let part = defined!(part_named(call, 0));
    let count = defined!(call.integer(1));
    let earlier = moment(call.now_static_ms()).and_then(|now| shift(now, part, count.checked_neg()?));
    text_of_moment(earlier)
}
