//! Arrays, CHOOSE and objects as arrays.

use std::cmp::Ordering;

use plan::query::AggregateKind;
use value::{Kind, Value, ValueRef};

use super::Call;
use super::strings::count_value;
use crate::aggregate::{Accumulator, mean};
use crate::budget::WeightSum;
use crate::expression::{EvalResult, defined};
use crate::number::Number;
use crate::{EvalFault, operators};

pub(super) fn concat(call: Call<'_>) -> EvalResult<'_> {
    let mut joined = Vec::new();
    let mut scale = WeightSum::default();
    for index in 0..call.arguments.len() {
        let array = defined!(call.array(index));
        for element in array.as_ref().elements() {
            scale.add_value(element)?;
            joined.push(element.to_value());
        }
    }
    Ok(Some(Value::Array(joined).into()))
}

/// Whether an element equals the value; with `partial`, whether an object holds all its members.
pub(super) fn contains(call: Call<'_>) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    let wanted = defined!(call.value(1));
    let test = if defined!(call.flag(2)) { holds_members } else { operators::equal };
    Ok(Some(array.as_ref().elements().any(|element| test(element, wanted.as_ref())).into()))
}

/// Partial equality is one level deep: the values of the members must be equal as a whole.
fn holds_members(element: ValueRef<'_>, wanted: ValueRef<'_>) -> bool {
    if element.kind() != Kind::Object || wanted.kind() != Kind::Object {
        return operators::equal(element, wanted);
    }
    wanted
        .members()
        .all(|(name, value)| element.member(name).is_some_and(|found| operators::equal(found, value)))
}

/// Three-valued OR over the candidates.
pub(super) fn contains_any(call: Call<'_>) -> EvalResult<'_> {
    contains_each(call, Some(false), operators::or)
}

/// Three-valued AND over the candidates.
pub(super) fn contains_all(call: Call<'_>) -> EvalResult<'_> {
    contains_each(call, Some(true), operators::and)
}

fn contains_each(
    call: Call<'_>,
    start: Option<bool>,
    join: fn(Option<bool>, Option<bool>) -> Option<bool>,
) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    let mut known = start;
    for index in 1..call.arguments.len() {
        let candidate = call.value(index)?;
        call.charge(array.as_ref().len())?;
        let found = candidate.map(|candidate| {
            array.as_ref().elements().any(|element| operators::equal(element, candidate.as_ref()))
        });
        known = join(known, found);
    }
    Ok(known.map(Into::into))
}

pub(super) fn length(call: Call<'_>) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    Ok(Some(count_value(array.as_ref().len()).into()))
}

/// A slice of an array; a negative start counts from the end.
pub(super) fn slice(call: Call<'_>) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    let start = defined!(call.integer(1));
    let count = if call.has(2) { defined!(call.integer(2)) } else { i64::MAX };
    let length = array.as_ref().len();
    let start = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => length.saturating_sub(usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    let part = array.as_ref().elements().skip(start).take(count).map(ValueRef::to_value).collect();
    Ok(Some(Value::Array(part).into()))
}

/// The n-th of the other arguments, counted from 1. Only that one is evaluated.
pub(super) fn choose(call: Call<'_>) -> EvalResult<'_> {
    let index = defined!(call.integer(0));
    match usize::try_from(index) {
        Ok(index @ 1..) => call.value(index),
        Ok(0) | Err(_) => Ok(None),
    }
}

/// `{"k": name, "v": value}` for each member, with other names if given.
pub(super) fn object_to_array(call: Call<'_>) -> EvalResult<'_> {
    let object = defined!(call.value(0));
    if object.kind() != Kind::Object {
        return Ok(None);
    }
    let name_key = if call.has(1) { defined!(call.text(1)) } else { "k".into() };
    let value_key = if call.has(2) { defined!(call.text(2)) } else { "v".into() };
    let mut entries = Vec::new();
    let mut scale = WeightSum::default();
    for (name, member) in object.as_ref().members() {
        scale.add(name.len() + name_key.len() + value_key.len())?;
        scale.add_value(member)?;
        entries.push(Value::Object(vec![
            (name_key.to_string(), Value::from(name)),
            (value_key.to_string(), member.to_value()),
        ]));
    }
    Ok(Some(Value::Array(entries).into()))
}

/// An aggregate over the elements, with the rules of the aggregate over rows, except that the sum of no elements is 0
/// and all others are undefined.
pub(super) fn aggregate(call: Call<'_>, kind: AggregateKind) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    let mut accumulator = Accumulator::new(kind);
    array.as_ref().elements().for_each(|element| accumulator.add(Some(element)));
    Ok(accumulator.finish().map(Into::into))
}

/// The middle number, or the mean of the two middle ones; undefined for anything but numbers.
pub(super) fn median(call: Call<'_>) -> EvalResult<'_> {
    let array = defined!(call.array(0));
    let array = array.as_ref();
    let mut numbers = Vec::with_capacity(array.len());
    for element in array.elements() {
        match Number::of(element) {
            Some(number) => numbers.push((element, number)),
            None => return Ok(None),
        }
    }
    call.charge(numbers.len().saturating_mul(SORT_STEPS))?;
    numbers.sort_by(|left, right| value::compare(left.0, right.0));
    Ok(middle(&numbers).map(|number| number.into_value().into()))
}

fn middle(numbers: &[(ValueRef<'_>, Number)]) -> Option<Number> {
    let half = numbers.len() / 2;
    let upper = numbers.get(half)?.1;
    if numbers.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = numbers.get(half.checked_sub(1)?)?.1;
    Some(mean([lower, upper]))
}

/// The distinct elements in the order of values.
pub(super) fn sorted_distinct(array: ValueRef<'_>) -> Vec<ValueRef<'_>> {
    let mut elements: Vec<_> = array.elements().collect();
    elements.sort_by(|left, right| value::compare(*left, *right));
    elements.dedup_by(|later, earlier| value::compare(*later, *earlier) == Ordering::Equal);
    elements
}

/// Steps per element of a sorted array.
pub(super) const SORT_STEPS: usize = 16;

/// An array of copies.
pub(super) fn array_of<'v>(elements: impl Iterator<Item = ValueRef<'v>>) -> Result<Value, EvalFault> {
    let mut array = Vec::new();
    let mut scale = WeightSum::default();
    for element in elements {
        scale.add_value(element)?;
        array.push(element.to_value());
    }
    Ok(Value::Array(array))
}
