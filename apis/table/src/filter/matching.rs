//! Evaluates a filter on one entity: for rows of queries that compare Timestamp, and for point reads.

use super::Filter;
use crate::edm::{TIMESTAMP, member_name};
use model::Ticks;
use plan::query::Comparison;
use std::cmp::Ordering;
use value::{Kind, Value, ValueRef, compare};

impl Filter {
    /// Whether the filter keeps the entity with this document and time.
    pub fn matches(&self, document: ValueRef<'_>, time: Ticks) -> bool {
        self.truth(document, time) == Some(true)
    }

    /// True, false or unknown.
    fn truth(&self, document: ValueRef<'_>, time: Ticks) -> Option<bool> {
        match self {
            Filter::And(members) => decided(members, document, time, false),
            Filter::Or(members) => decided(members, document, time, true),
            Filter::Not(inner) => inner.truth(document, time).map(|truth| !truth),
            Filter::Compare { property, comparison, literal } if property == TIMESTAMP => {
                let time = Value::Ticks(i64::try_from(time.0).unwrap_or(i64::MAX));
                compared(time.as_ref(), *comparison, literal)
            }
            Filter::Compare { property, comparison, literal } => {
                compared(document.member(&member_name(property))?, *comparison, literal)
            }
            Filter::Property(property) => document.member(&member_name(property))?.as_bool(),
            Filter::Constant(value) => Some(*value),
        }
    }
}

/// The value that decides a chain if one of its members has it, otherwise unknown if one is unknown.
fn decided(members: &[Filter], document: ValueRef<'_>, time: Ticks, deciding: bool) -> Option<bool> {
    let mut result = Some(!deciding);
    for member in members {
        match member.truth(document, time) {
            Some(truth) if truth == deciding => return Some(deciding),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

fn compared(found: ValueRef<'_>, comparison: Comparison, literal: &Value) -> Option<bool> {
    let literal = literal.as_ref();
    let is_same_type =
        found.kind() == literal.kind() || (found.kind().is_number() && literal.kind().is_number());
    if !is_same_type || matches!(found.kind(), Kind::Null | Kind::Array | Kind::Object) {
        return None;
    }
    let is_nan = |value: ValueRef<'_>| value.as_f64().is_some_and(f64::is_nan);
    if is_nan(found) || is_nan(literal) {
        return match comparison {
            Comparison::Equal => Some(false),
            Comparison::NotEqual => Some(true),
            Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
                None
            }
        };
    }
    let order = compare(found, literal);
    Some(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}
