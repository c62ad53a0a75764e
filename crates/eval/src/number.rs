//! Numbers of the query language: doubles and exact 64-bit integers.
//!
//! Own decisions: sums, differences and products of two integers are exact if they fit 64 bits, everything else is
//! computed in doubles. A computed double that is a whole number up to 2^53 becomes an integer, so that `1 + 0.0`
//! prints as `1` and not as `1.0`; the sign of a computed zero is lost.

use value::{Decoded, Value, ValueRef};

/// Whole numbers up to this size are exact both as integer and as double.
const EXACT_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A number in a computation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Integer(i64),
    Double(f64),
}

impl Number {
    /// The number of a value of a numeric kind; decimals are rounded to doubles.
    #[inline]
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Number> {
        match value.decode() {
            Decoded::Int32(value) => Some(Number::Integer(i64::from(value))),
            Decoded::Int64(value) => Some(Number::Integer(value)),
            Decoded::Double(value) => Some(Number::Double(value)),
            Decoded::Decimal(value) => Some(Number::Double(value.to_f64())),
            Decoded::Null
            | Decoded::Bool(_)
            | Decoded::String(_)
            | Decoded::Binary { .. }
            | Decoded::Date(_)
            | Decoded::Ticks(_)
            | Decoded::Guid(_)
            | Decoded::ObjectId(_)
            | Decoded::Array(_)
            | Decoded::Object(_) => None,
        }
    }

    /// The nearest double.
    #[inline]
    pub(crate) fn double(self) -> f64 {
        match self {
            #[allow(clippy::cast_precision_loss)] // the nearest double is what was asked for
            Number::Integer(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// The result of a computation as a value.
    #[inline]
    pub(crate) fn into_value(self) -> Value {
        match self {
            Number::Integer(value) => Value::Int64(value),
            #[allow(clippy::cast_possible_truncation)] // whole and small
            Number::Double(value) if value.fract() == 0.0 && value.abs() <= EXACT_DOUBLE_MAX => {
                Value::Int64(value as i64)
            }
            Number::Double(value) => Value::Double(value),
        }
    }

    pub(crate) fn add(self, other: Number) -> Number {
        self.exact_or(other, i64::checked_add, |left, right| left + right)
    }

    pub(crate) fn subtract(self, other: Number) -> Number {
        self.exact_or(other, i64::checked_sub, |left, right| left - right)
    }

    pub(crate) fn multiply(self, other: Number) -> Number {
        self.exact_or(other, i64::checked_mul, |left, right| left * right)
    }

    /// `self / other`; division by zero gives an infinity or NaN.
    pub(crate) fn divide(self, other: Number) -> Number {
        let exact = |left: i64, right: i64| {
            (left.checked_rem(right) == Some(0)).then(|| left.checked_div(right)).flatten()
        };
        self.exact_or(other, exact, |left, right| left / right)
    }

    /// `self % other`, with the sign of `self`, also for fractions.
    pub(crate) fn modulo(self, other: Number) -> Number {
        self.exact_or(other, i64::checked_rem, |left, right| left % right)
    }

    pub(crate) fn negate(self) -> Number {
        match self {
            Number::Integer(value) => {
                value.checked_neg().map_or_else(|| Number::Double(-self.double()), Number::Integer)
            }
            Number::Double(value) => Number::Double(-value),
        }
    }

    fn exact_or(
        self,
        other: Number,
        exact: impl Fn(i64, i64) -> Option<i64>,
        rounded: impl Fn(f64, f64) -> f64,
    ) -> Number {
        if let (Number::Integer(left), Number::Integer(right)) = (self, other)
            && let Some(result) = exact(left, right)
        {
            return Number::Integer(result);
        }
        Number::Double(rounded(self.double(), other.double()))
    }

    /// The 32 bits that bitwise operators work on: truncated and wrapped, as in JavaScript; NaN and infinities are 0.
    pub(crate) fn bits(self) -> i32 {
        const TWO_TO_32: f64 = 4_294_967_296.0;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // wrapping is the rule
        match self {
            Number::Integer(value) => value as i32,
            Number::Double(value) if value.is_finite() => value.trunc().rem_euclid(TWO_TO_32) as u32 as i32,
            Number::Double(_) => 0,
        }
    }
}

/// The value of a computed double.
#[inline]
pub(crate) fn double_value(value: f64) -> Value {
    Number::Double(value).into_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Number::{Double, Integer};

    #[test]
    fn integers_stay_exact_while_they_fit() {
        assert_eq!(Integer(i64::MAX - 1).add(Integer(1)), Integer(i64::MAX));
        assert_eq!(Integer(i64::MAX).add(Integer(1)), Double(9_223_372_036_854_775_808.0));
        assert_eq!(Integer(i64::MIN).negate(), Double(9_223_372_036_854_775_808.0));
        assert_eq!(Integer(6).divide(Integer(3)), Integer(2));
        assert_eq!(Integer(7).divide(Integer(2)), Double(3.5));
        assert_eq!(Integer(1).divide(Integer(0)), Double(f64::INFINITY));
        assert_eq!(Integer(i64::MIN).divide(Integer(-1)), Double(9_223_372_036_854_775_808.0));
        assert_eq!(Integer(i64::MIN).modulo(Integer(-1)), Double(-0.0));
        assert!(Integer(1).modulo(Integer(0)).double().is_nan());
        assert_eq!(Integer(-7).modulo(Integer(3)), Integer(-1));
        assert_eq!(Double(5.5).modulo(Integer(2)), Double(1.5));
    }

    #[test]
    fn bits_wrap_to_32() {
        assert_eq!(Integer(6_442_450_944).bits(), i32::MIN);
        assert_eq!(Double(6_442_450_944.0).bits(), i32::MIN);
        assert_eq!(Double(-1.9).bits(), -1);
        assert_eq!(Double(f64::NAN).bits(), 0);
        assert_eq!(Double(1e300).bits(), 0);
    }

    #[test]
    fn whole_results_print_without_a_point() {
        assert_eq!(double_value(3.0), Value::Int64(3));
        assert_eq!(double_value(-0.0), Value::Int64(0));
        assert_eq!(double_value(3.5), Value::Double(3.5));
        assert_eq!(double_value(1e300), Value::Double(1e300));
    }
}
