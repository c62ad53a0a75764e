//! String construction. Lengths and positions count characters (Unicode scalar values), never bytes.
//!
//! Own decision: the service counts UTF-16 units, which would split characters outside the basic plane into halves that
//! have no UTF-8 form; here such a character counts as one.

use plan::query::Expression;
use value::Value;

use super::Call;
use crate::EvalFault;
use crate::budget::WeightSum;
use crate::expression::{EvalResult, Frame, defined};
use crate::meter::steps_of_bytes;

/// Most characters that REPLICATE creates; above, its result is undefined.
const REPLICATED_MAX: usize = 10_000;

/// Joins strings; any other value makes the result undefined. For CONCAT and `||`.
pub(crate) fn concatenate<'a>(frame: Frame<'a>, parts: &'a [Expression]) -> EvalResult<'a> {
    let mut joined = String::new();
    let mut scale = WeightSum::default();
    for part in parts {
        let part = defined!(frame.evaluate(part));
        let Some(text) = part.as_ref().as_str() else {
            return Ok(None);
        };
        frame.context.charge_bytes(text.len())?;
        scale.add(text.len())?;
        joined.push_str(text);
    }
    Ok(Some(Value::String(joined).into()))
}

pub(super) fn map(call: Call<'_>, compute: fn(&str) -> String) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    text_of(compute(&text))
}

pub(super) fn length(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    Ok(Some(count_value(text.chars().count()).into()))
}

/// The first n characters; none for a negative n.
pub(super) fn left(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let count = defined!(call.integer(1));
    text_of(text[..byte_offset(&text, count)].to_owned())
}

/// The last n characters; none for a negative n.
pub(super) fn right(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let count = usize::try_from(defined!(call.integer(1))).unwrap_or(0);
    let start = match count.checked_sub(1) {
        Some(nth) => text.char_indices().nth_back(nth).map_or(0, |(at, _)| at),
        None => text.len(),
    };
    text_of(text[start..].to_owned())
}

/// A number of characters from a position on; empty if the position is outside.
pub(super) fn substring(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let start = defined!(call.integer(1));
    let count = defined!(call.integer(2));
    if start < 0 || count <= 0 {
        return text_of(String::new());
    }
    let rest = &text[byte_offset(&text, start)..];
    text_of(rest[..byte_offset(rest, count)].to_owned())
}

/// Removes characters of a set, white space by default, from either end.
pub(super) fn trim(call: Call<'_>, at_start: bool, at_end: bool) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let set = if call.has(1) { Some(defined!(call.text(1))) } else { None };
    call.charge(steps_of_bytes(text.len().saturating_mul(set.as_ref().map_or(1, |set| set.len()))))?;
    let is_trimmed = |character: char| match &set {
        Some(set) => set.contains(character),
        None => character.is_whitespace(),
    };
    let mut rest = &*text;
    if at_start {
        rest = rest.trim_start_matches(is_trimmed);
    }
    if at_end {
        rest = rest.trim_end_matches(is_trimmed);
    }
    text_of(rest.to_owned())
}

/// Replaces all occurrences; an empty search text makes the result undefined.
pub(super) fn replace(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let find = defined!(call.text(1));
    let with = defined!(call.text(2));
    if find.is_empty() {
        return Ok(None);
    }
    let occurrences = text.matches(&*find).count();
    let mut scale = WeightSum::default();
    scale.add(text.len().saturating_add(occurrences.saturating_mul(with.len())))?;
    text_of(text.replace(&*find, &with))
}

pub(super) fn replicate(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let count = defined!(call.integer(1));
    let Ok(count) = usize::try_from(count) else {
        return Ok(None);
    };
    let is_allowed =
        text.chars().count().checked_mul(count).is_some_and(|characters| characters <= REPLICATED_MAX);
    if is_allowed { text_of(text.repeat(count)) } else { Ok(None) }
}

/// Joins the strings of an array; an element of another kind makes the result undefined.
pub(super) fn join(call: Call<'_>) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    let separator = defined!(call.text(1));
    let mut joined = String::new();
    let mut scale = WeightSum::default();
    for (index, element) in array.as_ref().elements().enumerate() {
        let Some(text) = element.as_str() else {
            return Ok(None);
        };
        scale.add(text.len() + separator.len())?;
        if index > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(text);
    }
    text_of(joined)
}

/// Splits a string at every separator; an empty separator does not split.
pub(super) fn split(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let separator = defined!(call.text(1));
    if separator.is_empty() {
        return Ok(Some(Value::Array(vec![Value::from(&*text)]).into()));
    }
    let mut parts = Vec::new();
    let mut scale = WeightSum::default();
    for part in text.split(&*separator) {
        let part = Value::from(part);
        scale.add_value(part.as_ref())?;
        parts.push(part);
    }
    Ok(Some(Value::Array(parts).into()))
}

/// Byte offset of the end of the first `count` characters; 0 for a negative count.
fn byte_offset(text: &str, count: i64) -> usize {
    let Ok(count) = usize::try_from(count.max(0)) else {
        return text.len();
    };
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

/// A length or position as a value.
pub(super) fn count_value(count: usize) -> Value {
    Value::Int64(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) fn text_of<'a>(text: String) -> Result<Option<crate::Computed<'a>>, EvalFault> {
    Ok(Some(Value::String(text).into()))
}
