//! The meaning of a filter, written once more without the code that it checks: over the properties of a row, with
//! numbers as exact fractions of powers of two.

use super::generate::Row;
use crate::filter::Filter;
use plan::query::Comparison;
use std::cmp::Ordering;
use value::Value;

/// Whether the filter keeps the row.
pub(super) fn keeps(filter: &Filter, row: &Row) -> bool {
    truth(filter, row) == Truth::True
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    False,
    Unknown,
    True,
}

fn truth(filter: &Filter, row: &Row) -> Truth {
    match filter {
        Filter::And(members) => members.iter().map(|member| truth(member, row)).min().unwrap(),
        Filter::Or(members) => members.iter().map(|member| truth(member, row)).max().unwrap(),
        Filter::Not(inner) => match truth(inner, row) {
            Truth::True => Truth::False,
            Truth::Unknown => Truth::Unknown,
            Truth::False => Truth::True,
        },
        Filter::Compare { property, comparison, literal } => match property_of(row, property) {
            Some(found) => compare(&found, *comparison, literal),
            None => Truth::Unknown,
        },
        Filter::Property(property) => match property_of(row, property) {
            Some(Value::Bool(value)) => truth_of(value),
            Some(_) | None => Truth::Unknown,
        },
        Filter::Constant(value) => truth_of(*value),
    }
}

fn truth_of(value: bool) -> Truth {
    if value { Truth::True } else { Truth::False }
}

fn property_of(row: &Row, name: &str) -> Option<Value> {
    match name {
        "PartitionKey" => Some(Value::String(row.partition_key.clone())),
        "RowKey" => Some(Value::String(row.row_key.clone())),
        "Timestamp" => Some(Value::Ticks(i64::try_from(row.ticks).unwrap())),
        _ => row.properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()),
    }
}

fn compare(found: &Value, comparison: Comparison, literal: &Value) -> Truth {
    let order = match (found, literal) {
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::String(one), Value::String(other)) => Some(one.as_bytes().cmp(other.as_bytes())),
        (Value::Ticks(one), Value::Ticks(other)) => Some(one.cmp(other)),
        (Value::Guid(one), Value::Guid(other)) => Some(one.cmp(other)),
        (Value::Binary { bytes: one, .. }, Value::Binary { bytes: other, .. }) => Some(one.cmp(other)),
        (one, other) => match (number(one), number(other)) {
            (Some(one), Some(other)) => number_order(one, other),
            _ => return Truth::Unknown,
        },
    };
    match (order, comparison) {
        (None, Comparison::Equal) => Truth::False,
        (None, Comparison::NotEqual) => Truth::True,
        (None, _) => Truth::Unknown,
        (Some(order), Comparison::Equal) => truth_of(order == Ordering::Equal),
        (Some(order), Comparison::NotEqual) => truth_of(order != Ordering::Equal),
        (Some(order), Comparison::Less) => truth_of(order == Ordering::Less),
        (Some(order), Comparison::LessOrEqual) => truth_of(order != Ordering::Greater),
        (Some(order), Comparison::Greater) => truth_of(order == Ordering::Greater),
        (Some(order), Comparison::GreaterOrEqual) => truth_of(order != Ordering::Less),
    }
}

/// A number of the generator: twice its value, which is then whole, or what is no number.
#[derive(Clone, Copy)]
enum Number {
    Halves(i128),
    Other(f64),
}

fn number(value: &Value) -> Option<Number> {
    if let Value::Int32(integer) = value {
        return Some(Number::Halves(i128::from(*integer) * 2));
    }
    if let Value::Int64(integer) = value {
        return Some(Number::Halves(i128::from(*integer) * 2));
    }
    let Value::Double(double) = value else { return None };
    #[allow(clippy::cast_possible_truncation)] // whole after doubling
    let halves = (double * 2.0) as i128;
    Some(if double.is_finite() { Number::Halves(halves) } else { Number::Other(*double) })
}

fn number_order(one: Number, other: Number) -> Option<Ordering> {
    match (one, other) {
        (Number::Halves(one), Number::Halves(other)) => Some(one.cmp(&other)),
        (Number::Other(one), Number::Halves(_)) => one.partial_cmp(&0.0),
        (Number::Halves(_), Number::Other(other)) => 0.0.partial_cmp(&other),
        (Number::Other(one), Number::Other(other)) => one.partial_cmp(&other),
    }
}
