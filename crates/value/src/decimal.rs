//! Decimal128: the sixteen bytes of BSON, parsed and printed.
//!
//! Does no arithmetic; `numbercode` orders decimals and other numbers.

use std::fmt;

/// Smallest and largest power of ten of the scale.
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;

/// Largest coefficient, 34 nines; larger bit patterns count as zero, as IEEE 754 specifies.
const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;

/// An IEEE 754 decimal of 128 bits in binary-integer form, bytes little endian as in BSON.
///
/// Equality is bytewise: 1.0 and 1.00 differ here and are equal in the order of values.
///
/// ```text
/// bit 127   sign
/// bits 126..113   exponent + 6176, when they do not begin with 11
/// bits 112..0     coefficient
/// 11110 at bits 126..122: infinity      11111: not a number
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

/// The components of a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalParts {
    /// Not a number, quiet or signalling.
    NaN,
    /// Positive or negative infinity.
    Infinite {
        /// True for negative infinity.
        negative: bool,
    },
    /// `coefficient` × 10 ^ `exponent`.
    Finite {
        /// Whether the sign bit is set, also for zero.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// From -6176 to 6111.
        exponent: i32,
    },
}

impl Decimal128 {
    /// The decimal with these parts, or `None` if they exceed its digits or exponents.
    pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Option<Decimal128> {
        if coefficient > COEFFICIENT_MAX || !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
            return None;
        }
        let biased = u128::from((exponent - EXPONENT_MIN).unsigned_abs());
        let bits = (u128::from(negative) << 127) | (biased << 113) | coefficient;
        Some(Decimal128(bits.to_le_bytes()))
    }

    /// An integer, exactly.
    pub fn from_u64(integer: u64) -> Decimal128 {
        let bits = (u128::from(EXPONENT_MIN.unsigned_abs()) << 113) | u128::from(integer);
        Decimal128(bits.to_le_bytes())
    }

    /// Decodes the bits.
    pub fn parts(self) -> DecimalParts {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0b11111 {
            0b11111 => return DecimalParts::NaN,
            0b11110 => return DecimalParts::Infinite { negative },
            _ => {}
        }
        // A leading 11 marks the long coefficient form, which always exceeds 34 digits and counts as zero.
        let long_form = (bits >> 125) & 0b11 == 0b11;
        let exponent_bits = if long_form { bits >> 111 } else { bits >> 113 } & 0x3fff;
        let coefficient = if long_form { 0 } else { bits & ((1 << 113) - 1) };
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        let exponent = i32::try_from(exponent_bits).unwrap_or(0) + EXPONENT_MIN;
        DecimalParts::Finite { negative, coefficient, exponent: exponent.min(EXPONENT_MAX) }
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            DecimalParts::NaN => f64::NAN,
            DecimalParts::Infinite { negative: true } => f64::NEG_INFINITY,
            DecimalParts::Infinite { negative: false } => f64::INFINITY,
            DecimalParts::Finite { negative, coefficient, exponent } => {
                let sign = if negative { "-" } else { "" };
                // Every text of this form parses; the standard parser rounds correctly.
                format!("{sign}{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
            }
        }
    }

    /// The value as a signed integer, if it is one and fits.
    pub(crate) fn to_i64_exact(self) -> Option<i64> {
        i64::try_from(self.to_integer()?).ok()
    }

    /// The value as an unsigned integer, if it is one and fits.
    pub fn to_u64_exact(self) -> Option<u64> {
        u64::try_from(self.to_integer()?).ok()
    }

    fn to_integer(self) -> Option<i128> {
        let DecimalParts::Finite { negative, mut coefficient, mut exponent } = self.parts() else {
            return None;
        };
        if coefficient == 0 {
            return Some(0);
        }
        while exponent < 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        let scale = 10u128.checked_pow(u32::try_from(exponent).ok()?)?;
        let magnitude = i128::try_from(coefficient.checked_mul(scale)?).ok()?;
        Some(if negative { -magnitude } else { magnitude })
    }
}

impl fmt::Display for Decimal128 {
    /// The text of the decimal as MongoDB prints it: plain digits while the exponent is small and not positive,
    /// otherwise with an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            DecimalParts::NaN => return f.write_str("NaN"),
            DecimalParts::Infinite { negative: true } => return f.write_str("-Infinity"),
            DecimalParts::Infinite { negative: false } => return f.write_str("Infinity"),
            DecimalParts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if negative {
            f.write_str("-")?;
        }
        let digits = coefficient.to_string();
        let digit_count = i32::try_from(digits.len()).unwrap_or(0);
        let scientific_exponent = exponent + digit_count - 1;
        if exponent > 0 || scientific_exponent < -6 {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{point}{rest}E{scientific_exponent:+}");
        }
        let fraction_count = exponent.unsigned_abs() as usize;
        if fraction_count == 0 {
            return f.write_str(&digits);
        }
        // At least one digit comes before the point.
        let padded = format!("{digits:0>width$}", width = fraction_count + 1);
        let (whole, fraction) = padded.split_at(padded.len() - fraction_count);
        write!(f, "{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(negative: bool, coefficient: u128, exponent: i32, text: &str) {
        let decimal = Decimal128::from_parts(negative, coefficient, exponent).unwrap();
        assert_eq!(decimal.parts(), DecimalParts::Finite { negative, coefficient, exponent });
        assert_eq!(decimal.to_string(), text);
    }

    #[test]
    fn text_follows_the_exponent() {
        check(false, 0, 0, "0");
        check(true, 0, 0, "-0");
        check(false, 110, -2, "1.10");
        check(true, 5, -3, "-0.005");
        check(false, 1, 3, "1E+3");
        check(false, 12345, -15, "1.2345E-11");
        check(false, COEFFICIENT_MAX, EXPONENT_MAX, "9.999999999999999999999999999999999E+6144");
        check(false, 1, EXPONENT_MIN, "1E-6176");
    }

    #[test]
    fn known_bytes_of_one() {
        let mut bytes = [0; 16];
        bytes[0] = 1;
        bytes[14] = 0x40;
        bytes[15] = 0x30;
        assert_eq!(Decimal128::from_parts(false, 1, 0), Some(Decimal128(bytes)));
    }

    #[test]
    fn special_patterns_are_recognised() {
        let special = |top: u8| {
            let mut bytes = [0xab; 16];
            bytes[15] = top;
            Decimal128(bytes)
        };
        assert_eq!(special(0x7c).to_string(), "NaN");
        assert_eq!(special(0x78).to_string(), "Infinity");
        assert_eq!(special(0xf8).to_string(), "-Infinity");
        let long_form = special(0x60).parts();
        assert!(matches!(long_form, DecimalParts::Finite { coefficient: 0, .. }), "{long_form:?}");
        assert_eq!(Decimal128::from_parts(false, COEFFICIENT_MAX + 1, 0), None);
    }

    #[test]
    fn exact_integers_are_found_behind_any_scale() {
        let exact = |coefficient, exponent| {
            Decimal128::from_parts(true, coefficient, exponent).unwrap().to_i64_exact()
        };
        assert_eq!(exact(9_223_372_036_854_775_808, 0), Some(i64::MIN));
        assert_eq!(exact(9_223_372_036_854_775_809, 0), None);
        assert_eq!(exact(1200, -2), Some(-12));
        assert_eq!(exact(12, 2), Some(-1200));
        assert_eq!(exact(12, -1), None);
        assert_eq!(exact(1, 6000), None);
    }
}
