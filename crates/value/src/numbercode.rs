//! Numbers of every kind as bytes in one order.
//!
//! ```text
//! floor (8 bytes)  0                                     the number is this double
//! floor (8 bytes)  1  scale (2 bytes)  digits … end      the number lies above it and below the next double
//!                     └── all complemented when the number is negative ──┘
//! ```
//!
//! `floor` is the largest double that is not greater than the number, its bits transformed so that they sort as
//! unsigned big-endian bytes. A 64-bit integer or a decimal that is no double is distinguished from its neighbours by
//! its exact decimal form 0.d₁d₂… × 10^scale, d₁ ≠ 0: first the scale, then two digits per byte as 1 to 100, then an
//! end mark of 0. Equal numbers have equal codes whatever their kind: the form has no trailing zeros.
//!
//! NaN has no code here; `keycode` defines one.

use std::cmp::Ordering;

use crate::decoded::{DecodedNumber, double_to_i64_exact};
use crate::{Damaged, Decimal128, DecimalParts, Value};

const EXACT: u8 = 0;
const ABOVE: u8 = 1;

/// Added to the scale so that it sorts as an unsigned number; scales are within ±6,200.
const SCALE_BIAS: i32 = 0x4000;

/// Pairs of digits in the longest decimal.
const DIGIT_PAIRS_MAX: usize = 17;

/// Digits after the first that represent any double exactly.
const DOUBLE_DIGITS_MAX: usize = 766;

/// Appends the code of a number that is not NaN.
pub(crate) fn encode_number(number: DecodedNumber, out: &mut Vec<u8>) {
    match number {
        DecodedNumber::Integer(integer) => encode_integer(integer, out),
        DecodedNumber::Double(double) => encode_floor(double, EXACT, out),
        DecodedNumber::Decimal(decimal) => encode_decimal(decimal, out),
    }
}

/// Decodes a number: as an integer if it fits 64 bits, else as a double if it is one, else as a decimal. The original
/// kind is not part of the code.
pub(crate) fn decode_number(code: &[u8]) -> Result<(Value, &[u8]), Damaged> {
    let (floor, rest) = code.split_first_chunk::<8>().ok_or(Damaged)?;
    let (relation, rest) = rest.split_first().ok_or(Damaged)?;
    let floor = double_from_sortable(u64::from_be_bytes(*floor));
    match *relation {
        _ if floor.is_nan() => Err(Damaged),
        EXACT => Ok((double_to_i64_exact(floor).map_or(Value::Double(floor), Value::Int64), rest)),
        ABOVE => decode_tail(rest, floor.is_sign_negative()),
        _ => Err(Damaged),
    }
}

fn encode_integer(integer: i64, out: &mut Vec<u8>) {
    #[allow(clippy::cast_precision_loss)] // What is lost is made good below.
    let nearest = integer as f64;
    #[allow(clippy::cast_possible_truncation)]
    // Doubles near 64-bit integers are far from the limits of i128.
    match (nearest as i128).cmp(&i128::from(integer)) {
        Ordering::Equal => encode_floor(nearest, EXACT, out),
        order @ (Ordering::Less | Ordering::Greater) => {
            let floor = if order == Ordering::Greater { nearest.next_down() } else { nearest };
            encode_floor(floor, ABOVE, out);
            let digits = integer.unsigned_abs().to_string();
            encode_tail(&ExactDecimal::new(&digits, 0), integer < 0, out);
        }
    }
}

fn encode_decimal(decimal: Decimal128, out: &mut Vec<u8>) {
    if let Some(integer) = decimal.to_i64_exact() {
        return encode_integer(integer, out);
    }
    let DecimalParts::Finite { negative, coefficient, exponent } = decimal.parts() else {
        return encode_floor(decimal.to_f64(), EXACT, out);
    };
    let exact = ExactDecimal::new(&coefficient.to_string(), exponent);
    let nearest = decimal.to_f64();
    let order = compare_with_double(&exact, negative, nearest);
    match order {
        Ordering::Equal => encode_floor(nearest, EXACT, out),
        Ordering::Greater => encode_floor(nearest, ABOVE, out),
        Ordering::Less => encode_floor(nearest.next_down(), ABOVE, out),
    }
    if order != Ordering::Equal {
        encode_tail(&exact, negative, out);
    }
}

/// Compares a finite number that is not zero with a double near it.
fn compare_with_double(exact: &ExactDecimal, negative: bool, double: f64) -> Ordering {
    // A tiny number may have been rounded to a zero of either sign, a huge one to an infinity.
    let magnitude = if double.is_infinite() {
        Ordering::Less
    } else if double == 0.0 {
        Ordering::Greater
    } else {
        exact.cmp_magnitude(&ExactDecimal::of_double(double))
    };
    if negative { magnitude.reverse() } else { magnitude }
}

fn encode_floor(floor: f64, relation: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&sortable_from_double(floor).to_be_bytes());
    out.push(relation);
}

fn encode_tail(exact: &ExactDecimal, negative: bool, out: &mut Vec<u8>) {
    let tail_start = out.len();
    let scale = u16::try_from(exact.scale + SCALE_BIAS).unwrap_or(0);
    out.extend_from_slice(&scale.to_be_bytes());
    for pair in exact.digits.as_bytes().chunks(2) {
        let tens = pair[0] - b'0';
        let ones = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push(tens * 10 + ones + 1);
    }
    out.push(0);
    if negative {
        complement(&mut out[tail_start..]);
    }
}

fn decode_tail(tail: &[u8], negative: bool) -> Result<(Value, &[u8]), Damaged> {
    let mask = if negative { 0xff } else { 0x00 };
    let (scale, rest) = tail.split_first_chunk::<2>().ok_or(Damaged)?;
    let scale = i32::from(u16::from_be_bytes(scale.map(|byte| byte ^ mask))) - SCALE_BIAS;
    let pair_count = rest.iter().position(|byte| byte ^ mask == 0).ok_or(Damaged)?;
    let (pairs, rest) = rest.split_at(pair_count);
    if pair_count == 0 || pair_count > DIGIT_PAIRS_MAX {
        return Err(Damaged);
    }
    let mut coefficient = pairs.iter().try_fold(0u128, |acc, byte| match byte ^ mask {
        pair @ 1..=100 => Ok(acc * 100 + u128::from(pair - 1)),
        _ => Err(Damaged),
    })?;
    let mut exponent = scale - i32::try_from(pair_count * 2).map_err(|_| Damaged)?;
    if coefficient == 0 {
        return Err(Damaged);
    }
    while coefficient.is_multiple_of(10) {
        coefficient /= 10;
        exponent += 1;
    }
    let decimal = decimal_with_exponent(negative, coefficient, exponent).ok_or(Damaged)?;
    // Integers have one form, whatever zeros their digits end with.
    let decimal = decimal.to_u64_exact().map_or(decimal, Decimal128::from_u64);
    let value = decimal.to_i64_exact().map_or(Value::Decimal(decimal), Value::Int64);
    Ok((value, rest.get(1..).unwrap_or_default()))
}

/// A decimal whose exponent may exceed the largest; zeros are then moved into the coefficient.
fn decimal_with_exponent(negative: bool, mut coefficient: u128, mut exponent: i32) -> Option<Decimal128> {
    loop {
        if let Some(decimal) = Decimal128::from_parts(negative, coefficient, exponent) {
            return Some(decimal);
        }
        if exponent <= 0 {
            return None;
        }
        // Ends soon: the coefficient grows tenfold each time and overflows.
        coefficient = coefficient.checked_mul(10)?;
        exponent -= 1;
    }
}

/// The exact decimal form of a magnitude above zero: 0.digits × 10^scale.
struct ExactDecimal {
    /// ASCII, with neither leading nor trailing zeros.
    digits: String,
    scale: i32,
}

impl ExactDecimal {
    /// The magnitude `digits` × 10^`exponent`.
    fn new(digits: &str, exponent: i32) -> ExactDecimal {
        let digits = digits.trim_start_matches('0');
        let scale = exponent + i32::try_from(digits.len()).unwrap_or(0);
        ExactDecimal { digits: digits.trim_end_matches('0').to_owned(), scale }
    }

    /// The magnitude of a finite double other than zero.
    fn of_double(double: f64) -> ExactDecimal {
        // The standard library prints any number of digits exactly: `d.ddd…e±x`.
        let text = format!("{:.*e}", DOUBLE_DIGITS_MAX, double.abs());
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction_count = i32::try_from(DOUBLE_DIGITS_MAX).unwrap_or(0);
        ExactDecimal::new(&digits.replace('.', ""), exponent.parse().unwrap_or(0) - fraction_count)
    }

    fn cmp_magnitude(&self, other: &ExactDecimal) -> Ordering {
        self.scale.cmp(&other.scale).then_with(|| self.digits.cmp(&other.digits))
    }
}

/// The bits of a double transformed so that they sort like it; both zeros are equal.
fn sortable_from_double(double: f64) -> u64 {
    let bits = if double == 0.0 { 0 } else { double.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn double_from_sortable(sortable: u64) -> f64 {
    f64::from_bits(if sortable >> 63 == 1 { sortable & !(1 << 63) } else { !sortable })
}

/// Inverts every bit, which reverses the order of byte strings none of which is a prefix of another.
pub(crate) fn complement(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(number: DecodedNumber) -> Vec<u8> {
        let mut out = Vec::new();
        encode_number(number, &mut out);
        out
    }

    fn decimal(negative: bool, coefficient: u128, exponent: i32) -> DecodedNumber {
        DecodedNumber::Decimal(Decimal128::from_parts(negative, coefficient, exponent).unwrap())
    }

    /// Numbers in ascending order, each with all its representations.
    fn ladder() -> Vec<Vec<DecodedNumber>> {
        let largest_digits = 9_999_999_999_999_999_999_999_999_999_999_999;
        let (double, integer) = (DecodedNumber::Double, DecodedNumber::Integer);
        vec![
            vec![double(f64::NEG_INFINITY)],
            vec![decimal(true, largest_digits, 6111)],
            vec![decimal(true, 1, 400)],
            vec![double(f64::MIN)],
            vec![double(-9_223_372_036_854_777_856.0)],
            vec![decimal(true, 9_223_372_036_854_775_809, 0)],
            vec![
                integer(i64::MIN),
                double(-9_223_372_036_854_775_808.0),
                decimal(true, 9_223_372_036_854_775_808, 0),
            ],
            vec![integer(i64::MIN + 1), decimal(true, 92_233_720_368_547_758_070, -1)],
            vec![integer(-9_007_199_254_740_994), double(-9_007_199_254_740_994.0)],
            vec![decimal(true, 90_071_992_547_409_935, -1)],
            vec![integer(-9_007_199_254_740_993), decimal(true, 9_007_199_254_740_993, 0)],
            vec![integer(-9_007_199_254_740_992), double(-9_007_199_254_740_992.0)],
            vec![integer(-1), double(-1.0), decimal(true, 10, -1)],
            vec![double(-0.1)],
            vec![decimal(true, 1, -1)],
            vec![double(-f64::from_bits(1))],
            vec![decimal(true, 1, -400)],
            vec![decimal(true, 1, -6176)],
            vec![integer(0), double(-0.0), double(0.0), decimal(true, 0, 5), decimal(false, 0, -6176)],
            vec![decimal(false, 1, -6176)],
            vec![decimal(false, 2, -6176)],
            vec![decimal(false, 1, -400)],
            vec![double(f64::from_bits(1))],
            vec![double(f64::MIN_POSITIVE)],
            vec![decimal(false, 1, -1)],
            vec![double(0.1)],
            vec![double(0.5), decimal(false, 5, -1), decimal(false, 500, -3)],
            vec![integer(1), double(1.0), decimal(false, 1, 0), decimal(false, 1000, -3)],
            vec![integer(9_007_199_254_740_992), double(9_007_199_254_740_992.0)],
            vec![integer(9_007_199_254_740_993), decimal(false, 90_071_992_547_409_930, -1)],
            vec![decimal(false, 90_071_992_547_409_935, -1)],
            vec![double(9_007_199_254_740_994.0)],
            vec![integer(i64::MAX - 1)],
            vec![integer(i64::MAX), decimal(false, 9_223_372_036_854_775_807, 0)],
            vec![double(9_223_372_036_854_775_808.0), decimal(false, 9_223_372_036_854_775_808, 0)],
            vec![double(1e22), decimal(false, 1, 22)],
            vec![decimal(false, 1, 23)],
            vec![double(1.000_000_000_000_000_1e23)],
            vec![double(f64::MAX)],
            vec![decimal(false, 1, 400)],
            vec![decimal(false, largest_digits, 6111)],
            vec![double(f64::INFINITY)],
        ]
    }

    #[test]
    fn codes_climb_with_the_numbers() {
        let ladder = ladder();
        for pair in ladder.windows(2) {
            assert!(code(pair[0][0]) < code(pair[1][0]), "{:?} {:?}", pair[0], pair[1]);
        }
        for equals in &ladder {
            assert!(equals.iter().all(|number| code(*number) == code(equals[0])), "{equals:?}");
        }
    }

    #[test]
    fn decoded_numbers_have_the_same_code() {
        for number in ladder().into_iter().flatten() {
            let mut bytes = code(number);
            bytes.push(7);
            let (value, rest) = decode_number(&bytes).unwrap();
            assert_eq!(rest, [7]);
            let again = crate::ValueRef::from(&value).number().unwrap();
            assert_eq!(code(again), bytes[..bytes.len() - 1], "{number:?} {value:?}");
        }
    }
}
