//! Searching strings in strings.

use value::Value;

use super::Call;
use super::strings::{count_value, text_of};
use crate::EvalFault;
use crate::expression::{EvalResult, defined};
use crate::meter::steps_of_bytes;
use crate::operators;

/// Whether letter case is significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterCase {
    PatternCache,
    Ignored,
}

/// The text for a comparison without letter case: each character in lower case, on its own.
fn folded(text: &str, case: LetterCase) -> String {
    match case {
        LetterCase::PatternCache => text.to_owned(),
        LetterCase::Ignored => text.chars().flat_map(char::to_lowercase).collect(),
    }
}

/// `CONTAINS(text, part[, ignore case])` and similar functions.
pub(super) fn compare(call: Call<'_>, test: fn(&str, &str) -> bool) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let part = defined!(call.text(1));
    let found = if defined!(call.flag(2)) {
        test(&folded(&text, LetterCase::Ignored), &folded(&part, LetterCase::Ignored))
    } else {
        test(&text, &part)
    };
    Ok(Some(found.into()))
}

/// Position of the first occurrence from a start position on, or -1.
pub(super) fn index_of(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let part = defined!(call.text(1));
    let start = if call.has(2) { defined!(call.integer(2)) } else { 0 };
    // A start outside the text finds nothing, a negative one counts as 0.
    let start = usize::try_from(start.max(0)).unwrap_or(usize::MAX);
    let offset = if start == 0 { Some(0) } else { offset_of(&text, start) };
    let found = offset.and_then(|offset| text[offset..].find(&*part).map(|at| offset + at));
    Ok(Some(position(&text, found).into()))
}

/// Position of the last occurrence that begins at or before a start position, or -1.
pub(super) fn last_index_of(call: Call<'_>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let part = defined!(call.text(1));
    if !call.has(2) {
        return Ok(Some(position(&text, text.rfind(&*part)).into()));
    }
    let start = defined!(call.integer(2));
    let Ok(start) = usize::try_from(start) else {
        return Ok(Some(Value::Int64(-1).into()));
    };
    let end = offset_of(&text, start).unwrap_or(text.len()).saturating_add(part.len()).min(text.len());
    // The end may be inside a character of the text; then no match can end there, and moving back is correct.
    let end = (0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Ok(Some(position(&text, text[..end].rfind(&*part)).into()))
}

/// The text before or after a delimiter.
///
/// Own decision: if the text does not contain the delimiter, all four forms yield an empty string.
pub(super) fn cut(call: Call<'_>, keep: for<'t> fn(&'t str, &str) -> Option<&'t str>) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let delimiter = defined!(call.text(1));
    text_of(keep(&text, &delimiter).unwrap_or_default().to_owned())
}

/// Three-valued AND over the candidates.
pub(super) fn contains_all(call: Call<'_>, case: LetterCase) -> EvalResult<'_> {
    fold(call, case, Some(true), operators::and)
}

/// Three-valued OR over the candidates.
pub(super) fn contains_any(call: Call<'_>, case: LetterCase) -> EvalResult<'_> {
    fold(call, case, Some(false), operators::or)
}

fn fold(
    call: Call<'_>,
    case: LetterCase,
    start: Option<bool>,
    join: fn(Option<bool>, Option<bool>) -> Option<bool>,
) -> EvalResult<'_> {
    let text = folded(&defined!(call.text(0)), case);
    let mut known = start;
    for index in 1..call.arguments.len() {
        let part: Result<_, EvalFault> = call.text(index);
        call.charge(steps_of_bytes(text.len()))?;
        known = join(known, part?.map(|part| text.contains(&folded(&part, case))));
    }
    Ok(known.map(Into::into))
}

/// Byte offset of the character with this index, if the text is that long.
fn offset_of(text: &str, index: usize) -> Option<usize> {
    text.char_indices().nth(index).map(|(at, _)| at)
}

fn position(text: &str, offset: Option<usize>) -> Value {
    match offset {
        Some(offset) => count_value(text[..offset].chars().count()),
        None => Value::Int64(-1),
    }
}
