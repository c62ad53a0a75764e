//! The order of values: the same as that of key codes, without writing them.
//!
//! `keycode` describes the order; a property test keeps the two consistent.

use std::cmp::Ordering;

use crate::decoded::DecodedNumber;
use crate::numbercode::encode_number;
use crate::{Decoded, Members, ValueRef, WALK_DEPTH_MAX};

/// Compares two values. Numbers compare by size whatever their kind, exactly; NaN is below all numbers and equal to
/// itself; objects are equal if they have the same members in any order.
pub fn compare(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    compare_nested(left, right, WALK_DEPTH_MAX)
}

/// Members by name, each name once with its last value.
pub(crate) fn sorted_members(members: Members<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let mut members: Vec<_> = members.collect();
    // Stable, so that of equal names the last one stays last; reversed, the dedup below keeps it.
    members.reverse();
    members.sort_by(|left, right| left.0.cmp(right.0));
    members.dedup_by(|later, earlier| later.0 == earlier.0);
    members
}

fn compare_nested(left: ValueRef<'_>, right: ValueRef<'_>, levels_left: usize) -> Ordering {
    let (left, right) = (left.decode_within(levels_left), right.decode_within(levels_left));
    let by_class = class(&left).cmp(&class(&right));
    if by_class != Ordering::Equal {
        return by_class;
    }
    match (left, right) {
        (Decoded::Bool(left), Decoded::Bool(right)) => left.cmp(&right),
        (Decoded::String(left), Decoded::String(right)) => left.cmp(right),
        (Decoded::Date(left), Decoded::Date(right)) => left.cmp(&right),
        (Decoded::Ticks(left), Decoded::Ticks(right)) => left.cmp(&right),
        (Decoded::Guid(left), Decoded::Guid(right)) => left.cmp(&right),
        (Decoded::ObjectId(left), Decoded::ObjectId(right)) => left.cmp(&right),
        (
            Decoded::Binary { subtype, bytes },
            Decoded::Binary { subtype: right_subtype, bytes: right_bytes },
        ) => subtype.cmp(&right_subtype).then_with(|| bytes.cmp(right_bytes)),
        (Decoded::Array(left), Decoded::Array(right)) => {
            compare_sequences(left, right, |left, right| compare_nested(left, right, levels_left - 1))
        }
        (Decoded::Object(left), Decoded::Object(right)) => {
            let (left, right) = (sorted_members(left), sorted_members(right));
            compare_sequences(left.into_iter(), right.into_iter(), |left, right| {
                left.0.cmp(right.0).then_with(|| compare_nested(left.1, right.1, levels_left - 1))
            })
        }
        (left, right) => match (left.number(), right.number()) {
            (Some(left), Some(right)) => compare_numbers(left, right),
            // Of one class and no number: both are null.
            _ => Ordering::Equal,
        },
    }
}

/// Rank of a kind; all numbers share one.
fn class(value: &Decoded<'_>) -> u8 {
    match value {
        Decoded::Null => 0,
        Decoded::Bool(_) => 1,
        Decoded::Int32(_) | Decoded::Int64(_) | Decoded::Double(_) | Decoded::Decimal(_) => 2,
        Decoded::String(_) => 3,
        Decoded::Date(_) => 4,
        Decoded::Ticks(_) => 5,
        Decoded::Guid(_) => 6,
        Decoded::ObjectId(_) => 7,
        Decoded::Binary { .. } => 8,
        Decoded::Array(_) => 9,
        Decoded::Object(_) => 10,
    }
}

/// Compares entry by entry; a prefix comes before the longer sequence.
fn compare_sequences<T>(
    mut left: impl Iterator<Item = T>,
    mut right: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (left.next(), right.next()) {
            (Some(left), Some(right)) => match compare(left, right) {
                Ordering::Equal => {}
                decided @ (Ordering::Less | Ordering::Greater) => return decided,
            },
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        }
    }
}

fn compare_numbers(left: DecodedNumber, right: DecodedNumber) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => {}
        (left_nan, right_nan) => return right_nan.cmp(&left_nan),
    }
    match (left, right) {
        (DecodedNumber::Integer(left), DecodedNumber::Integer(right)) => left.cmp(&right),
        (DecodedNumber::Double(left), DecodedNumber::Double(right)) => {
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
        (DecodedNumber::Integer(left), DecodedNumber::Double(right)) => {
            compare_integer_with_double(left, right)
        }
        (DecodedNumber::Double(left), DecodedNumber::Integer(right)) => {
            compare_integer_with_double(right, left).reverse()
        }
        // Decimals are rare, so they are compared by their codes.
        (DecodedNumber::Decimal(_), _) | (_, DecodedNumber::Decimal(_)) => {
            let mut codes = [Vec::new(), Vec::new()];
            encode_number(left, &mut codes[0]);
            encode_number(right, &mut codes[1]);
            codes[0].cmp(&codes[1])
        }
    }
}

/// Exact where converting the integer to a double would round.
fn compare_integer_with_double(integer: i64, double: f64) -> Ordering {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if double >= TWO_TO_63 {
        return Ordering::Less;
    }
    if double < -TWO_TO_63 {
        return Ordering::Greater;
    }
    #[allow(clippy::cast_possible_truncation)] // In range, and the fraction is compared on its own.
    let whole = double.trunc() as i64;
    let fraction = double.fract();
    integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal))
}
