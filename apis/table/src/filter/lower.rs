//! A filter as a query over the documents of the table, in the order of the keys.
//!
//! Negations are pushed down to the comparisons, which are then written so that they are true exactly for the
//! properties that have the literal's type. The time of a document is known to queries only by the second, so a
//! comparison of Timestamp becomes a necessary condition on that second, and the caller checks the rows it gets.

use super::Filter;
use crate::edm::{PARTITION_KEY, ROW_KEY, TIMESTAMP, member_name};
use plan::query::{
    BinaryOperator, Comparison, Expression, Function, Order, Projection, Query, SlotId, SortKey, Source,
};
use value::{PropertyPath, Value};

/// The member with the second of the last change.
const SECOND: &str = "_ts";
const TICKS_PER_SECOND: i64 = 10_000_000;

/// A query, and whether its rows are exactly those of the filter.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredFilter {
    /// All entities that the filter may keep, ordered by PartitionKey and RowKey.
    pub query: Query,
    /// Whether each row must still be checked with [`Filter::matches`], because the filter compares Timestamp.
    pub needs_check: bool,
}

/// Lowers a filter, or the absence of one, to a query that returns whole documents.
pub fn lower(filter: Option<&Filter>) -> LoweredFilter {
    let mut lowering = Lowering { needs_check: false };
    let filter = filter.map(|filter| lowering.required(filter, true));
    let query = Query {
        sources: vec![Source::Container { path: Vec::new() }],
        filter,
        grouping: None,
        order: Order::Keys(vec![sort_key(PARTITION_KEY), sort_key(ROW_KEY)]),
        projection: Projection::Row(SlotId::DOCUMENT),
        distinct: false,
        offset: 0,
        limit: None,
    };
    LoweredFilter { query, needs_check: lowering.needs_check }
}

fn sort_key(name: &str) -> SortKey {
    SortKey { expression: member(name), path: PropertyPath::from_names([name]), descending: false }
}

fn member(name: &str) -> Expression {
    Expression::path(SlotId::DOCUMENT, [name.to_owned()])
}

struct Lowering {
    needs_check: bool,
}

impl Lowering {
    /// An expression that is true exactly where the filter has the required truth value.
    fn required(&mut self, filter: &Filter, truth: bool) -> Expression {
        match filter {
            Filter::Not(inner) => self.required(inner, !truth),
            Filter::And(_) | Filter::Or(_) => {
                let is_conjunction = matches!(filter, Filter::And(_)) == truth;
                let mut members = Vec::new();
                self.gather(filter, truth, is_conjunction, &mut members);
                if is_conjunction { Expression::And(members) } else { Expression::Or(members.into()) }
            }
            Filter::Compare { property, comparison, literal } => {
                let comparison = if truth { *comparison } else { negated(*comparison) };
                self.compare(property, comparison, literal)
            }
            Filter::Property(property) => self.compare(property, Comparison::Equal, &Value::Bool(truth)),
            Filter::Constant(value) => constant(Value::Bool(*value == truth)),
        }
    }

    /// Appends the members of a chain, and those of the same kind of chain in brackets inside it.
    fn gather(&mut self, filter: &Filter, truth: bool, is_conjunction: bool, members: &mut Vec<Expression>) {
        match filter {
            Filter::And(inner) if truth == is_conjunction => {
                inner.iter().for_each(|member| self.gather(member, truth, is_conjunction, members));
            }
            Filter::Or(inner) if truth != is_conjunction => {
                inner.iter().for_each(|member| self.gather(member, truth, is_conjunction, members));
            }
            Filter::Not(inner) => self.gather(inner, !truth, is_conjunction, members),
            Filter::And(_)
            | Filter::Or(_)
            | Filter::Compare { .. }
            | Filter::Property(_)
            | Filter::Constant(_) => {
                members.push(self.required(filter, truth));
            }
        }
    }

    fn compare(&mut self, property: &str, comparison: Comparison, literal: &Value) -> Expression {
        if property == TIMESTAMP {
            return self.compare_time(comparison, literal);
        }
        let path = || member(&member_name(property));
        let is_nan = matches!(literal, Value::Double(double) if double.is_nan());
        match comparison {
            Comparison::NotEqual if is_nan => call(Function::IsNumber, path()),
            _ if is_nan => constant(Value::Bool(false)),
            Comparison::NotEqual => not_equal(path, literal),
            Comparison::Equal => binary(BinaryOperator::Equal, path(), literal),
            Comparison::Less => binary(BinaryOperator::Less, path(), literal),
            Comparison::LessOrEqual => binary(BinaryOperator::LessOrEqual, path(), literal),
            Comparison::Greater => binary(BinaryOperator::Greater, path(), literal),
            Comparison::GreaterOrEqual => binary(BinaryOperator::GreaterOrEqual, path(), literal),
        }
    }

    fn compare_time(&mut self, comparison: Comparison, literal: &Value) -> Expression {
        let Value::Ticks(ticks) = literal else {
            return constant(Value::Bool(false));
        };
        self.needs_check = true;
        let second = Value::Int64(ticks.div_euclid(TICKS_PER_SECOND));
        match comparison {
            Comparison::Equal => binary(BinaryOperator::Equal, member(SECOND), &second),
            Comparison::NotEqual => constant(Value::Bool(true)),
            Comparison::Less | Comparison::LessOrEqual => {
                binary(BinaryOperator::LessOrEqual, member(SECOND), &second)
            }
            Comparison::Greater | Comparison::GreaterOrEqual => {
                binary(BinaryOperator::GreaterOrEqual, member(SECOND), &second)
            }
        }
    }
}

/// True for values of the literal's type that differ from it.
fn not_equal(path: impl Fn() -> Expression, literal: &Value) -> Expression {
    let of_type = match literal {
        Value::Bool(value) => return binary(BinaryOperator::Equal, path(), &Value::Bool(!value)),
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) => Function::IsNumber,
        Value::String(_) => Function::IsString,
        Value::Null
        | Value::Decimal(_)
        | Value::Binary { .. }
        | Value::Date(_)
        | Value::Ticks(_)
        | Value::Guid(_)
        | Value::ObjectId(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let sides = [BinaryOperator::Less, BinaryOperator::Greater];
            return Expression::Or(sides.map(|operator| binary(operator, path(), literal)).to_vec().into());
        }
    };
    Expression::And(vec![binary(BinaryOperator::NotEqual, path(), literal), call(of_type, path())])
}

fn constant(value: Value) -> Expression {
    Expression::Constant(value)
}

fn binary(operator: BinaryOperator, left: Expression, literal: &Value) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(constant(literal.clone())))
}

fn call(function: Function, argument: Expression) -> Expression {
    Expression::Call(function, vec![argument])
}

/// The comparison that is true where this one is false.
pub(super) fn negated(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
    }
}
