//! Constant folding: signed literals, arrays and objects of literals.
//!
//! A query vector is an array of a thousand numbers; it becomes one value here, once.

use plan::query::{Expression, UnaryOperator};
use value::{Decimal128, Value};

/// A unary operator; the sign of a number becomes part of it.
pub(super) fn unary(operator: UnaryOperator, operand: Expression) -> Expression {
    let signed = match (operator, &operand) {
        // Negating the integer zero is left to the evaluator.
        (UnaryOperator::Minus, Expression::Constant(Value::Int64(integer))) if *integer != 0 => {
            integer.checked_neg().map(Value::Int64)
        }
        // The least integer is written as the negative of a number that does not fit into an i64.
        // Negative integers below the signed ones are doubles, as in JSON.
        (UnaryOperator::Minus, Expression::Constant(Value::Decimal(unsigned))) => {
            let negative = -unsigned.to_f64();
            Some(if *unsigned == Decimal128::from_u64(i64::MIN.unsigned_abs()) {
                Value::Int64(i64::MIN)
            } else {
                Value::Double(negative)
            })
        }
        (UnaryOperator::Minus, Expression::Constant(Value::Double(double))) => Some(Value::Double(-double)),
        (UnaryOperator::Plus, Expression::Constant(number @ (Value::Int64(_) | Value::Double(_)))) => {
            Some(number.clone())
        }
        _ => None,
    };
    match signed {
        Some(value) => Expression::Constant(value),
        None => Expression::Unary(operator, Box::new(operand)),
    }
}

/// An array, constant if all its elements are. Undefined elements are omitted.
pub(super) fn array(mut elements: Vec<Expression>) -> Expression {
    elements.retain(|element| *element != Expression::Undefined);
    if !elements.iter().all(is_constant) {
        return Expression::Array(elements);
    }
    Expression::Constant(Value::Array(elements.into_iter().filter_map(into_value).collect()))
}

/// An object, constant if all its members are. Of equal names the last counts.
pub(super) fn object(members: Vec<(String, Expression)>) -> Expression {
    let mut kept: Vec<(String, Expression)> = Vec::with_capacity(members.len());
    let mut positions = std::collections::HashMap::new();
    for (name, member) in members {
        match positions.get(&name) {
            Some(&position) => kept[position] = (name, member),
            None => {
                positions.insert(name.clone(), kept.len());
                kept.push((name, member));
            }
        }
    }
    kept.retain(|(_, member)| *member != Expression::Undefined);
    if !kept.iter().all(|(_, member)| is_constant(member)) {
        return Expression::Object(kept);
    }
    let values = kept.into_iter().filter_map(|(name, member)| Some((name, into_value(member)?)));
    Expression::Constant(Value::Object(values.collect()))
}

/// The members of a chain of AND, flattened: clients put brackets around inner chains.
pub(super) fn flat_and(members: Vec<Expression>) -> Vec<Expression> {
    let mut flat = Vec::with_capacity(members.len());
    for member in members {
        if let Expression::And(inner) = member {
            flat.extend(inner);
        } else {
            flat.push(member);
        }
    }
    flat
}

/// The same for OR.
pub(super) fn flat_or(members: Vec<Expression>) -> Vec<Expression> {
    let mut flat = Vec::with_capacity(members.len());
    for member in members {
        if let Expression::Or(inner) = member {
            flat.extend(inner);
        } else {
            flat.push(member);
        }
    }
    flat
}

fn is_constant(expression: &Expression) -> bool {
    matches!(expression, Expression::Constant(_))
}

fn into_value(expression: Expression) -> Option<Value> {
    if let Expression::Constant(value) = expression { Some(value) } else { None }
}
