//! Values as literals of a query.

use plan::query::UnaryOperator;
use sql::ast::{Expression, ExpressionKind, NumberLiteral};
use value::Value;

/// A value as a literal; `None` if JSON cannot represent it.
pub(super) fn literal(value: &Value) -> Option<Expression> {
    let kind = match value {
        Value::Null => ExpressionKind::Null,
        Value::Bool(boolean) => ExpressionKind::Boolean(*boolean),
        Value::Int32(integer) => return Some(Expression::integer(i64::from(*integer))),
        Value::Int64(integer) => return Some(Expression::integer(*integer)),
        Value::Double(double) => {
            let size = Expression::new(ExpressionKind::Number(NumberLiteral::Double(double.abs())));
            match double.is_sign_negative() {
                true => ExpressionKind::Unary(UnaryOperator::Minus, Box::new(size)),
                false => size.kind,
            }
        }
        Value::String(string) => ExpressionKind::String(string.clone()),
        Value::Array(elements) => ExpressionKind::Array(elements.iter().map(literal).collect::<Option<_>>()?),
        Value::Object(members) => ExpressionKind::Object(
            members
                .iter()
                .map(|(name, member)| Some((name.clone(), literal(member)?)))
                .collect::<Option<_>>()?,
        ),
        // Of decimals JSON makes only integers above the signed ones.
        Value::Decimal(decimal) => ExpressionKind::Number(NumberLiteral::Unsigned(decimal.to_u64_exact()?)),
        Value::Binary { .. } | Value::Date(_) | Value::Ticks(_) | Value::Guid(_) | Value::ObjectId(_) => {
            return None;
        }
    };
    Some(Expression::new(kind))
}
