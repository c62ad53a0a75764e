//! The order of numbers against plain decimal expansions, and their text against the standard library.

use std::cmp::Ordering;

use proptest::prelude::*;
use value::{Decimal128, DecimalParts, Kind, Value, ValueRef, compare, encode_key_value};

use crate::generate;

/// Digits on each side of the point that hold every number exactly.
const PLACES: usize = 6200;

/// Sort key of a number: first NaN, then -infinity, negatives, zero, positives, infinity; within, by all digits.
fn expansion(value: &Value) -> (i8, String) {
    let double = ValueRef::from(value).as_f64().unwrap();
    let (negative, plain) = match value {
        Value::Int32(integer) => (*integer < 0, integer.unsigned_abs().to_string()),
        Value::Int64(integer) => (*integer < 0, integer.unsigned_abs().to_string()),
        Value::Double(double) if !double.is_finite() => return special(*double),
        Value::Double(double) => (*double < 0.0, format!("{:.1080}", double.abs())),
        Value::Decimal(decimal) => match decimal.parts() {
            DecimalParts::Finite { negative, coefficient, exponent } => {
                (negative, plain(coefficient, exponent))
            }
            DecimalParts::NaN | DecimalParts::Infinite { .. } => return special(double),
        },
        _ => unreachable!("numbers only"),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let digits = format!("{whole:0>PLACES$}{fraction:0<PLACES$}");
    if digits.bytes().all(|digit| digit == b'0') {
        return (0, digits);
    }
    if !negative {
        return (1, digits);
    }
    (-1, digits.bytes().map(|digit| char::from(b'9' - (digit - b'0'))).collect())
}

fn special(double: f64) -> (i8, String) {
    (
        if double.is_nan() {
            -3
        } else if double < 0.0 {
            -2
        } else {
            2
        },
        String::new(),
    )
}

fn plain(coefficient: u128, exponent: i32) -> String {
    let zeros = exponent.unsigned_abs() as usize;
    if exponent >= 0 {
        return format!("{coefficient}{}", "0".repeat(zeros));
    }
    let padded = format!("{coefficient:0>width$}", width = zeros + 1);
    let (whole, fraction) = padded.split_at(padded.len() - zeros);
    format!("{whole}.{fraction}")
}

fn key(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_value(value, &mut out);
    out
}

#[track_caller]
fn check(left: &Value, right: &Value) {
    let expected = expansion(left).cmp(&expansion(right));
    assert_eq!(key(left).cmp(&key(right)), expected, "keys of {left:?} and {right:?}");
    assert_eq!(compare(left.into(), right.into()), expected, "{left:?} and {right:?}");
    assert_eq!(compare(right.into(), left.into()), expected.reverse(), "{right:?} and {left:?}");
}

/// The same number in other kinds, and its closest neighbours there.
fn relatives(value: &Value) -> Vec<Value> {
    let value = ValueRef::from(value);
    let mut relatives = vec![value.to_value()];
    if let Some(double) = value.as_f64().filter(|double| double.is_finite()) {
        relatives.extend([double, double.next_up(), double.next_down()].map(Value::Double));
        #[allow(clippy::cast_possible_truncation)]
        relatives.extend([double as i64, (double as i64).saturating_add(1)].map(Value::Int64));
    }
    if let Some(integer) = value.as_i64() {
        relatives.extend([integer.saturating_sub(1), integer, integer.saturating_add(1)].map(Value::Int64));
        let tenths = u128::from(integer.unsigned_abs()) * 10;
        let decimals = [tenths, tenths + 1, tenths.saturating_sub(1)];
        relatives.extend(
            decimals.map(|tenths| Value::Decimal(Decimal128::from_parts(integer < 0, tenths, -1).unwrap())),
        );
    }
    relatives
}

proptest! {
    #[test]
    fn any_two_numbers(left in generate::number(), right in generate::number()) {
        check(&left, &right);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn close_numbers(number in generate::number()) {
        for relative in relatives(&number) {
            check(&number, &relative);
        }
    }
}

proptest! {
    #[test]
    fn exact_integers_are_those_that_compare_equal(number in generate::number()) {
        if let Some(integer) = ValueRef::from(&number).as_i64() {
            prop_assert_eq!(compare((&number).into(), (&Value::Int64(integer)).into()), Ordering::Equal);
        } else if let Some(double) = ValueRef::from(&number).as_f64() {
            #[allow(clippy::cast_possible_truncation)]
            let integer = Value::Int64(double as i64);
            prop_assert_ne!(compare((&number).into(), (&integer).into()), Ordering::Equal);
        }
    }
}

/// A plain generator, since a million cases need no shrinking.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn doubles_survive_text_to_the_bit() {
    let mut random = Random(0x5eed);
    for _ in 0..6_000 {
        let doubles: Vec<f64> =
            (0..16).map(|_| f64::from_bits(random.next())).filter(|double| double.is_finite()).collect();
        let written = Value::Array(doubles.iter().copied().map(Value::Double).collect());
        let read = Value::from_json(written.to_json().as_bytes()).unwrap();
        let read_bits: Vec<u64> =
            ValueRef::from(&read).elements().map(|element| element.as_f64().unwrap().to_bits()).collect();
        assert_eq!(read_bits, doubles.iter().map(|double| double.to_bits()).collect::<Vec<_>>());
        assert!(ValueRef::from(&read).elements().all(|element| element.kind() == Kind::Double));
    }
}

#[test]
fn numbers_of_any_length_are_read_as_the_standard_library_does() {
    let mut random = Random(0xfeed);
    for _ in 0..40_000 {
        let whole = (random.next() >> (random.next() % 64)).max(1);
        let fraction = random.next() >> (random.next() % 64);
        let exponent = i64::try_from(random.next() % 700).unwrap() - 350;
        let text = match random.next() % 4 {
            0 => format!("-{whole}.{fraction}e{exponent}"),
            1 => format!("{whole}{fraction}"),
            2 => format!("{whole}E{exponent}"),
            _ => format!("-{whole}"),
        };
        let expected: f64 = text.parse().unwrap();
        match Value::from_json(text.as_bytes()) {
            Ok(Value::Int64(integer)) => assert_eq!(text, integer.to_string()),
            Ok(Value::Decimal(unsigned)) => assert_eq!(text, unsigned.to_string()),
            Ok(Value::Double(double)) => assert_eq!(double.to_bits(), expected.to_bits(), "{text}"),
            Ok(other) => panic!("{text} became {other:?}"),
            Err(_) => assert!(expected.is_infinite(), "{text}"),
        }
    }
}
