//! Exact sums of integers and doubles: partial sums are kept and rounded once for the total.
//!
//! Doubles are kept as a list of non-overlapping doubles that add up to the exact sum (J. R. Shewchuk, Adaptive
//! Precision Floating-Point Arithmetic, 1997). Very large ones have a separate, scaled-down list, so that no
//! intermediate sum overflows.

use std::cmp::Ordering;
use std::num::NonZeroU64;

use crate::number::Number;

/// Doubles from this size on go to the list of large ones.
const LARGE_MIN: f64 = 8.452_712_498_170_644e270; // 2^900
/// WeightSum factor of the large ones.
const LARGE_SCALE: f64 = 1.606_938_044_258_990_3e60; // 2^200

/// Whole numbers up to this size are exact both as integer and as double.
const EXACT_MAX: u128 = 1 << 53;

/// Steps from the first quotient to the nearest one; one is enough, and a bound ends the loop in any case.
const QUOTIENT_STEPS_MAX: usize = 4;

/// A running sum.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ExactSum {
    /// Sum of all integers; 128 bits hold 2^64 of them.
    pub(super) integers: i128,
    pub(super) doubles: Expansion,
    pub(super) large: Expansion,
    pub(super) unbounded: Unbounded,
    /// Whether any double was added.
    pub(super) has_double: bool,
    /// Whether whole numbers were added that may be integers or doubles.
    pub(super) has_unknown: bool,
}

/// Which values that are not finite numbers were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Unbounded {
    pub(super) positive: bool,
    pub(super) negative: bool,
    pub(super) nan: bool,
}

impl Unbounded {
    fn total(self) -> Option<f64> {
        match self {
            Unbounded { nan: true, .. } | Unbounded { positive: true, negative: true, .. } => Some(f64::NAN),
            Unbounded { positive: true, .. } => Some(f64::INFINITY),
            Unbounded { negative: true, .. } => Some(f64::NEG_INFINITY),
            Unbounded { .. } => None,
        }
    }
}

impl ExactSum {
    pub(super) fn add(&mut self, number: Number) {
        match number {
            Number::Integer(value) => self.integers = self.integers.saturating_add(i128::from(value)),
            Number::Double(value) => {
                self.has_double = true;
                if value.is_nan() {
                    self.unbounded.nan = true;
                } else if value.is_infinite() {
                    self.unbounded.positive |= value > 0.0;
                    self.unbounded.negative |= value < 0.0;
                } else if value.abs() < LARGE_MIN {
                    self.doubles.add(value);
                } else {
                    self.large.add(value / LARGE_SCALE);
                }
            }
        }
    }

    /// Adds a number `times` times that may be an integer or a double.
    pub(super) fn add_times(&mut self, number: Number, times: u64) {
        match number {
            Number::Integer(value) => {
                let product = i128::from(value).saturating_mul(i128::from(times));
                self.integers = self.integers.saturating_add(product);
                self.has_unknown = true;
            }
            Number::Double(value) if value.is_finite() => {
                self.has_double = true;
                let is_small = value.abs() < LARGE_MIN;
                let (list, mut power) = if is_small {
                    (&mut self.doubles, value)
                } else {
                    (&mut self.large, value / LARGE_SCALE)
                };
                // Multiplying by a power of two is exact, and both lists have room for 64 parts.
                for bit in 0..u64::BITS {
                    if times >> bit & 1 == 1 {
                        list.add(power);
                    }
                    power *= 2.0;
                }
            }
            Number::Double(_) => self.add(number),
        }
    }

    /// Whether the total depends on unknown number kinds: whole numbers up to 2^53 are the same either way, and
    /// together with a double everything is rounded in the end.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.has_unknown && !self.has_double && self.integers.unsigned_abs() > EXACT_MAX
    }

    pub(super) fn merge(&mut self, other: &ExactSum) {
        self.integers = self.integers.saturating_add(other.integers);
        other.doubles.parts.iter().for_each(|part| self.doubles.add(*part));
        other.large.parts.iter().for_each(|part| self.large.add(*part));
        self.unbounded.positive |= other.unbounded.positive;
        self.unbounded.negative |= other.unbounded.negative;
        self.unbounded.nan |= other.unbounded.nan;
        self.has_double |= other.has_double;
        self.has_unknown |= other.has_unknown;
    }

    /// The sum, rounded once.
    pub(super) fn total(&self) -> Number {
        if let Some(total) = self.unbounded.total() {
            return Number::Double(total);
        }
        if !self.has_double
            && let Ok(total) = i64::try_from(self.integers)
        {
            return Number::Integer(total);
        }
        let (parts, scale) = self.parts();
        Number::Double(parts.rounded() * scale)
    }

    /// The sum divided by a count, rounded once.
    pub(super) fn mean(&self, count: NonZeroU64) -> Number {
        if let Some(total) = self.unbounded.total() {
            return Number::Double(total);
        }
        let whole = i128::from(count.get());
        if !self.has_double
            && self.integers % whole == 0
            && let Ok(mean) = i64::try_from(self.integers / whole)
        {
            return Number::Integer(mean);
        }
        let (parts, scale) = self.parts();
        Number::Double(parts.divided(count) * scale)
    }

    /// The sum as one expansion and the factor by which it was scaled down.
    fn parts(&self) -> (Expansion, f64) {
        let mut small = self.doubles.clone();
        integer_parts(self.integers).into_iter().for_each(|part| small.add(part));
        let mut large = self.large.clone();
        // Large ones may have cancelled each other out, so their remainder is moved back where it loses nothing.
        if large.parts.iter().all(|part| part.abs() < LARGE_MIN / LARGE_SCALE) {
            large.parts.iter().for_each(|part| small.add(part * LARGE_SCALE));
            return (small, 1.0);
        }
        small.parts.iter().for_each(|part| large.add(part / LARGE_SCALE));
        (large, LARGE_SCALE)
    }
}

/// An integer as doubles that add up to it exactly.
fn integer_parts(mut value: i128) -> [f64; 4] {
    const BITS: u32 = 40;
    let mut parts = [0.0; 4];
    let mut scale = 1.0;
    for part in &mut parts {
        let low = value.rem_euclid(1 << BITS);
        value = value.div_euclid(1 << BITS);
        #[allow(clippy::cast_precision_loss)] // 40 bits are exact
        let exact = low as f64 * scale;
        *part = exact;
        scale *= 1_099_511_627_776.0; // 2^40
    }
    if value < 0 {
        // The remainder of a negative number above 160 bits is -1.
        parts[3] -= scale;
    }
    parts
}

/// Non-overlapping doubles, smallest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Expansion {
    pub(super) parts: Vec<f64>,
}

impl Expansion {
    fn add(&mut self, value: f64) {
        let mut carried = value;
        let mut kept = 0;
        for index in 0..self.parts.len() {
            let (sum, error) = sum_with_error(carried, self.parts[index]);
            if error != 0.0 {
                self.parts[kept] = error;
                kept += 1;
            }
            carried = sum;
        }
        self.parts.truncate(kept);
        if carried != 0.0 {
            self.parts.push(carried);
        }
    }

    /// The double nearest to the exact sum, ties to even.
    fn rounded(&self) -> f64 {
        let mut parts = self.parts.iter().rev().copied();
        let mut total = parts.next().unwrap_or(0.0);
        for part in parts.by_ref() {
            let (sum, error) = sum_with_error(total, part);
            total = sum;
            if error != 0.0 {
                // The parts below are less than half a unit, unless the error is exactly half and more of its sign
                // follows.
                if let Some(next) = parts.next()
                    && (next < 0.0) == (error < 0.0)
                {
                    let doubled = error * 2.0;
                    let raised = total + doubled;
                    if raised - total == doubled {
                        total = raised;
                    }
                }
                break;
            }
        }
        total
    }
}

impl Expansion {
    /// The double nearest to the exact sum divided by `count`, ties to even.
    fn divided(&self, count: NonZeroU64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // exact up to 2^53 rows
        let count = count.get() as f64;
        let mut quotient = self.rounded() / count;
        // The first quotient was rounded twice, so it may be one step away from the nearest.
        for _ in 0..QUOTIENT_STEPS_MAX {
            let rest = self.less_product(quotient, count);
            let next = match rest.rounded().total_cmp(&0.0) {
                _ if rest.parts.is_empty() => return quotient,
                Ordering::Less => quotient.next_down(),
                Ordering::Equal | Ordering::Greater => quotient.next_up(),
            };
            // Twice the rest against the step times the count: less is nearer to the quotient, more to the next.
            let doubled = Expansion { parts: rest.parts.iter().map(|part| part * 2.0).collect() };
            let over = doubled.less_product(next - quotient, count).rounded();
            let is_past_half = if next > quotient { over > 0.0 } else { over < 0.0 };
            let is_half = over == 0.0;
            if !(is_past_half || is_half && quotient.to_bits() & 1 == 1) {
                return quotient;
            }
            quotient = next;
        }
        quotient
    }

    /// This sum less a product, exactly.
    fn less_product(&self, left: f64, right: f64) -> Expansion {
        let product = left * right;
        let error = left.mul_add(right, -product);
        let mut rest = self.clone();
        rest.add(-product);
        rest.add(-error);
        rest
    }
}

/// A rounded sum and its rounding error; exact for any two doubles whose sum is finite.
fn sum_with_error(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let right_in_sum = sum - left;
    let left_in_sum = sum - right_in_sum;
    (sum, (left - left_in_sum) + (right - right_in_sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_cut_exactly() {
        for value in
            [0, 1, -1, i128::from(i64::MAX) * 7, i128::from(i64::MIN) * 9, (1 << 100) + 1, -(1 << 100)]
        {
            let mut expansion = Expansion::default();
            integer_parts(value).into_iter().for_each(|part| expansion.add(part));
            #[allow(clippy::cast_precision_loss)]
            let expected = value as f64;
            assert_eq!(expansion.rounded(), expected, "{value}");
        }
    }

    #[test]
    fn means_are_rounded_once() {
        let mean = |numbers: &[Number]| {
            let mut sum = ExactSum::default();
            numbers.iter().for_each(|number| sum.add(*number));
            sum.mean(NonZeroU64::new(numbers.len() as u64).unwrap())
        };
        let (integer, double) = (Number::Integer, Number::Double);
        assert_eq!(mean(&[integer(9_007_199_254_740_993), integer(0)]), double(4_503_599_627_370_496.0));
        assert_eq!(mean(&[integer(9_007_199_254_740_993), integer(2)]), double(4_503_599_627_370_498.0));
        assert_eq!(mean(&[integer(i64::MAX), integer(i64::MAX)]), integer(i64::MAX));
        assert_eq!(mean(&[double(1e308), double(1e308)]), double(1e308));
        assert_eq!(mean(&[double(f64::MAX), double(f64::MAX), double(f64::MAX)]), double(f64::MAX));
        assert_eq!(mean(&[double(-1e308), double(1e308), double(3.0)]), double(1.0));
        assert_eq!(mean(&[double(5e-324), double(5e-324)]), double(5e-324));
        // Half of the smallest step: to even.
        assert_eq!(mean(&[double(5e-324), double(0.0)]), double(0.0));
        assert_eq!(mean(&[double(0.1), double(0.2), double(0.3)]), double(0.2));
        assert_eq!(mean(&[integer(1), integer(2)]), double(1.5));
    }

    /// Against fractions of 128-bit integers: every mean is nearest to the exact one.
    #[test]
    fn means_of_integers_are_nearest() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut next = || {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed
            };
            #[allow(clippy::cast_possible_wrap)]
            let numbers: Vec<i64> = (0..next() % 6 + 1).map(|_| next() as i64 >> (next() % 40)).collect();
            let mut sum = ExactSum::default();
            numbers.iter().for_each(|number| sum.add(Number::Integer(*number)));
            let count = numbers.len() as i128;
            let exact: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
            let Number::Double(mean) = sum.mean(NonZeroU64::new(numbers.len() as u64).unwrap()) else {
                continue;
            };
            // Distances in units of 2^-20: below 2^63 + 6 numbers everything fits 128 bits.
            #[allow(clippy::cast_possible_truncation)]
            let distance = |mean: f64| ((mean * 1_048_576.0) as i128 * count - exact * 1_048_576).abs();
            if (mean * 1_048_576.0).fract() == 0.0 && mean.abs() > 1024.0 {
                assert!(distance(mean) <= distance(mean.next_up()), "{numbers:?}");
                assert!(distance(mean) <= distance(mean.next_down()), "{numbers:?}");
            }
        }
    }

    #[test]
    fn halves_round_to_even_unless_more_follows() {
        let sum = |values: &[f64]| {
            let mut expansion = Expansion::default();
            values.iter().for_each(|value| expansion.add(*value));
            expansion.rounded()
        };
        let half = f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, half]), 1.0);
        assert_eq!(sum(&[1.0, half, 1e-40]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0, half, -1e-40]), 1.0);
        assert_eq!(sum(&[]), 0.0);
    }
}
