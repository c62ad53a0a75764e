//! `_Rank`: the rank of a score among others.

use value::{Value, compare};

use super::Call;
use crate::expression::{EvalResult, defined};
use std::cmp::Ordering;

/// `_Rank(score, [distinct scores in ascending order], from the top)`: from 1 on; undefined for a score that is not in
/// the list.
pub(super) fn rank(call: Call<'_>) -> EvalResult<'_> {
    let score = defined!(call.value(0));
    let scores = defined!(call.array(1));
    let from_top = defined!(call.flag(2));
    let scores = scores.as_ref();
    let (mut low, mut high) = (0, scores.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(one) = scores.element(middle) else {
            return Ok(None);
        };
        match compare(one, score.as_ref()) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => {
                let rank = if from_top { scores.len() - middle } else { middle + 1 };
                return Ok(Some(Value::Int64(i64::try_from(rank).unwrap_or(i64::MAX)).into()));
            }
        }
    }
    Ok(None)
}
