//! Operators on values: three-valued logic, equality, order, arithmetic. `None` is undefined.

use std::cmp::Ordering;

use plan::query::{BinaryOperator, UnaryOperator};
use value::{Kind, Value, ValueRef, compare};

use crate::Computed;
use crate::number::Number;

/// The kinds of the query language; all numbers are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    /// Kinds of other protocols that JSON does not have; comparable within a kind.
    Foreign(Kind),
}

/// The class of a kind.
pub(crate) fn class(kind: Kind) -> Class {
    match kind {
        Kind::Null => Class::Null,
        Kind::Bool => Class::Bool,
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => Class::Number,
        Kind::String => Class::String,
        Kind::Array => Class::Array,
        Kind::Object => Class::Object,
        Kind::Binary | Kind::Date | Kind::Ticks | Kind::Guid | Kind::ObjectId => Class::Foreign(kind),
    }
}

/// Deep equality of defined values: false between kinds, 1 equals 1.0, NaN equals nothing.
#[inline]
pub(crate) fn equal(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    compare(left, right) == Ordering::Equal && !holds_nan(left)
}

/// The order of two values of one primitive kind; `None` between kinds, for arrays, objects and NaN.
#[inline]
pub(crate) fn order(left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Ordering> {
    let kind = class(left.kind());
    if kind != class(right.kind()) || matches!(kind, Class::Array | Class::Object) {
        return None;
    }
    if is_nan(left) || is_nan(right) {
        return None;
    }
    Some(compare(left, right))
}

/// Whether this is NaN.
pub(crate) fn is_nan(value: ValueRef<'_>) -> bool {
    matches!(value.kind(), Kind::Double | Kind::Decimal) && value.as_f64().is_some_and(f64::is_nan)
}

/// Whether this is NaN or has one at any depth: such a value equals nothing, not even itself.
pub(crate) fn holds_nan(value: ValueRef<'_>) -> bool {
    match value.kind() {
        Kind::Array => value.elements().any(holds_nan),
        Kind::Object => value.members().any(|(_, member)| holds_nan(member)),
        Kind::Double | Kind::Decimal => is_nan(value),
        Kind::Null
        | Kind::Bool
        | Kind::Int32
        | Kind::Int64
        | Kind::String
        | Kind::Binary
        | Kind::Date
        | Kind::Ticks
        | Kind::Guid
        | Kind::ObjectId => false,
    }
}

/// Applies a binary operator; undefined on either side yields undefined.
#[inline]
pub(crate) fn binary(operator: BinaryOperator, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Value> {
    use BinaryOperator as Op;
    match operator {
        Op::Equal => Some(Value::Bool(equal(left, right))),
        Op::NotEqual => Some(Value::Bool(!equal(left, right))),
        Op::Less => order(left, right).map(|found| Value::Bool(found.is_lt())),
        Op::LessOrEqual => order(left, right).map(|found| Value::Bool(found.is_le())),
        Op::Greater => order(left, right).map(|found| Value::Bool(found.is_gt())),
        Op::GreaterOrEqual => order(left, right).map(|found| Value::Bool(found.is_ge())),
        Op::Add
        | Op::Subtract
        | Op::Multiply
        | Op::Divide
        | Op::Modulo
        | Op::BitAnd
        | Op::BitOr
        | Op::BitXor
        | Op::ShiftLeft
        | Op::ShiftRight
        | Op::ShiftRightUnsigned => {
            arithmetic(operator, Number::of(left)?, Number::of(right)?).map(Number::into_value)
        }
    }
}

/// The arithmetic operators, without comparisons.
fn arithmetic(operator: BinaryOperator, left: Number, right: Number) -> Option<Number> {
    use BinaryOperator as Op;
    let bits =
        |compute: fn(i32, i32) -> i32| Some(Number::Integer(i64::from(compute(left.bits(), right.bits()))));
    #[allow(clippy::cast_sign_loss)] // the bits of the operand are what is meant
    match operator {
        Op::Add => Some(left.add(right)),
        Op::Subtract => Some(left.subtract(right)),
        Op::Multiply => Some(left.multiply(right)),
        Op::Divide => Some(left.divide(right)),
        Op::Modulo => Some(left.modulo(right)),
        Op::BitAnd => bits(|left, right| left & right),
        Op::BitOr => bits(|left, right| left | right),
        Op::BitXor => bits(|left, right| left ^ right),
        // The shift count is modulo 32, as in JavaScript.
        Op::ShiftLeft => bits(|left, right| left.wrapping_shl(right as u32)),
        Op::ShiftRight => bits(|left, right| left.wrapping_shr(right as u32)),
        Op::ShiftRightUnsigned => {
            Some(Number::Integer(i64::from((left.bits() as u32).wrapping_shr(right.bits() as u32))))
        }
        Op::Equal | Op::NotEqual | Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual => None,
    }
}

/// Applies a unary operator.
pub(crate) fn unary<'a>(operator: UnaryOperator, operand: Computed<'a>) -> Option<Computed<'a>> {
    match operator {
        UnaryOperator::Not => operand.as_bool().map(|value| Computed::from(!value)),
        UnaryOperator::Plus => operand.kind().is_number().then_some(operand),
        UnaryOperator::Minus => {
            Number::of(operand.as_ref()).map(|number| number.negate().into_value().into())
        }
        UnaryOperator::BitNot => {
            Number::of(operand.as_ref()).map(|number| Value::Int64(i64::from(!number.bits())).into())
        }
    }
}

/// Three-valued `AND`.
pub(crate) fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

/// Three-valued `OR`.
pub(crate) fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        (None, _) | (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use value::Decimal128;

    #[test]
    fn logic_has_three_values() {
        const T: Option<bool> = Some(true);
        const F: Option<bool> = Some(false);
        const U: Option<bool> = None;
        let table = [(T, T, T, T), (T, F, F, T), (T, U, U, T), (F, F, F, F), (F, U, F, U), (U, U, U, U)];
        for (left, right, both, either) in table {
            assert_eq!((and(left, right), or(left, right)), (both, either), "{left:?} {right:?}");
            assert_eq!((and(right, left), or(right, left)), (both, either), "{right:?} {left:?}");
        }
    }

    #[test]
    fn nan_equals_nothing_and_has_no_order() {
        let nan = Value::Double(f64::NAN);
        assert!(!equal(nan.as_ref(), nan.as_ref()));
        assert_eq!(order(nan.as_ref(), Value::Int64(1).as_ref()), None);
    }

    #[test]
    fn numbers_compare_exactly_across_kinds() {
        let large = Value::Int64(9_007_199_254_740_993);
        let near = Value::Double(9_007_199_254_740_992.0);
        assert!(!equal(large.as_ref(), near.as_ref()));
        assert_eq!(order(large.as_ref(), near.as_ref()), Some(Ordering::Greater));
        let decimal = Value::Decimal(Decimal128::from_parts(false, 10, -1).unwrap());
        assert!(equal(decimal.as_ref(), Value::Int64(1).as_ref()));
    }

    #[test]
    fn foreign_kinds_compare_with_their_like_only() {
        let (early, late) = (Value::Date(1), Value::Date(2));
        assert_eq!(order(early.as_ref(), late.as_ref()), Some(Ordering::Less));
        assert_eq!(order(early.as_ref(), Value::Int64(2).as_ref()), None);
    }
}
