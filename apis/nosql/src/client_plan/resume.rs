//! Resuming after a row of an ordered query: sent by clients that merge ranges, instead of their own filter.
//!
//! The client sends the sort values of the last row that it returned, and optionally its document. They become a
//! condition: later by the first key, or equal there and later by the next key, and so on up to the document.

use super::literal::literal;
use super::root_name;
use plan::query::{BinaryOperator, UnaryOperator};
use sql::ast::{Expression, ExpressionKind, OrderBy, Query, SortKey};
use value::{Kind, Value};

/// A position in an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResumePoint {
    /// The sort values; `None` for undefined.
    pub(crate) values: Vec<Option<Value>>,
    /// The number of the document among those with equal sort values; `None` for all of them.
    pub(crate) number: Option<u64>,
    /// Whether the row at the position itself is excluded.
    pub(crate) is_excluded: bool,
}

/// The functions that test the kind of a value, in the order of the kinds; undefined is before all of them.
const KINDS: [&str; 6] = ["IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"];

/// The query from a position on; `None` if the query has no order that fits the position.
pub(crate) fn resumed(query: &Query, point: &ResumePoint) -> Option<Query> {
    let Some(OrderBy::Keys(keys)) = &query.order_by else {
        return None;
    };
    if keys.len() != point.values.len() || keys.is_empty() {
        return None;
    }
    let mut alternatives = Vec::with_capacity(keys.len() + 1);
    let mut equal = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(&point.values) {
        let mut members: Vec<Expression> = equal.clone();
        members.push(later(key, value.as_ref())?);
        alternatives.push(all(members));
        equal.push(same(key, value.as_ref())?);
    }
    equal.push(at_place(query, keys, point)?);
    alternatives.push(all(equal));
    let place = Expression::new(ExpressionKind::Or(alternatives));
    let mut resumed = query.clone();
    resumed.filter = Some(match &query.filter {
        Some(filter) => all(vec![filter.clone(), place]),
        None => place,
    });
    Some(resumed)
}

fn all(mut members: Vec<Expression>) -> Expression {
    match members.pop() {
        Some(only) if members.is_empty() => only,
        Some(last) => {
            members.push(last);
            Expression::new(ExpressionKind::And(members))
        }
        None => Expression::new(ExpressionKind::Boolean(true)),
    }
}

/// Whether a row has this value for a key.
fn same(key: &SortKey, value: Option<&Value>) -> Option<Expression> {
    Some(match value {
        None => not_defined(key),
        Some(value) => compared(key, BinaryOperator::Equal, value)?,
    })
}

/// Whether a row comes after this value: later within its kind, or of a later kind.
fn later(key: &SortKey, value: Option<&Value>) -> Option<Expression> {
    let is = |function: &&str| Expression::call(*function, vec![key.expression.clone()]);
    let Some(value) = value else {
        return Some(match key.descending {
            true => Expression::new(ExpressionKind::Boolean(false)),
            false => Expression::call("IS_DEFINED", vec![key.expression.clone()]),
        });
    };
    let rank = rank(value)?;
    let mut alternatives: Vec<Expression> = match key.descending {
        true => std::iter::once(not_defined(key)).chain(KINDS[..rank].iter().map(is)).collect(),
        false => KINDS[rank + 1..].iter().map(is).collect(),
    };
    if *value != Value::Null {
        let operator = if key.descending { BinaryOperator::Less } else { BinaryOperator::Greater };
        alternatives.push(compared(key, operator, value)?);
    }
    Some(match alternatives.pop() {
        Some(only) if alternatives.is_empty() => only,
        Some(last) => {
            alternatives.push(last);
            Expression::new(ExpressionKind::Or(alternatives))
        }
        None => Expression::new(ExpressionKind::Boolean(false)),
    })
}

/// Whether a row with equal sort values is included. Documents are ordered by number, descending if the first key is.
fn at_place(query: &Query, keys: &[SortKey], point: &ResumePoint) -> Option<Expression> {
    let Some(number) = point.number else {
        return Some(Expression::new(ExpressionKind::Boolean(!point.is_excluded)));
    };
    let is_backwards = keys.first().is_some_and(|key| key.descending);
    let operator = match (is_backwards, point.is_excluded) {
        (false, false) => BinaryOperator::GreaterOrEqual,
        (false, true) => BinaryOperator::Greater,
        (true, false) => BinaryOperator::LessOrEqual,
        (true, true) => BinaryOperator::Less,
    };
    let document = Expression::call("DOCUMENTID", vec![Expression::name(root_name(query))]);
    let number = Expression::integer(i64::try_from(number).ok()?);
    Some(Expression::new(ExpressionKind::Binary(operator, Box::new(document), Box::new(number))))
}

fn not_defined(key: &SortKey) -> Expression {
    let defined = Expression::call("IS_DEFINED", vec![key.expression.clone()]);
    Expression::new(ExpressionKind::Unary(UnaryOperator::Not, Box::new(defined)))
}

fn compared(key: &SortKey, operator: BinaryOperator, value: &Value) -> Option<Expression> {
    let value = literal(value)?;
    Some(Expression::new(ExpressionKind::Binary(operator, Box::new(key.expression.clone()), Box::new(value))))
}

/// The index of a value's kind in [`KINDS`]. Arrays and objects are not supported: clients send a hash of them.
fn rank(value: &Value) -> Option<usize> {
    match value.kind() {
        Kind::Null => Some(0),
        Kind::Bool => Some(1),
        Kind::Int32 | Kind::Int64 | Kind::Double => Some(2),
        Kind::String => Some(3),
        Kind::Decimal
        | Kind::Binary
        | Kind::Date
        | Kind::Ticks
        | Kind::Guid
        | Kind::ObjectId
        | Kind::Array
        | Kind::Object => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, values: &str, number: Option<u64>, is_excluded: bool, expected: &str) {
        let Value::Array(values) = Value::from_json(values.as_bytes()).unwrap() else { panic!("{values}") };
        let values = values.into_iter().map(|value| (value != Value::Array(Vec::new())).then_some(value));
        let point = ResumePoint { values: values.collect(), number, is_excluded };
        let resumed = resumed(&sql::parse(query).unwrap(), &point);
        let text =
            resumed.map_or_else(|| "none".to_owned(), |query| sql::print_expression(&query.filter.unwrap()));
        assert_eq!(text, expected);
    }

    #[test]
    fn a_place_is_a_condition() {
        check(
            "SELECT * FROM c ORDER BY c.v",
            "[5]",
            None,
            true,
            "((IS_STRING(c.v) OR IS_ARRAY(c.v) OR IS_OBJECT(c.v) OR (c.v > 5)) OR ((c.v = 5) AND false))",
        );
        check(
            "SELECT * FROM c WHERE c.x ORDER BY c.v DESC",
            "[\"a\"]",
            Some(7),
            false,
            "(c.x AND (((NOT IS_DEFINED(c.v)) OR IS_NULL(c.v) OR IS_BOOL(c.v) OR IS_NUMBER(c.v) OR (c.v < \"a\")) OR \
             ((c.v = \"a\") AND (DOCUMENTID(c) <= 7))))",
        );
        check(
            "SELECT * FROM r ORDER BY r.a, r.b DESC",
            "[[], null]",
            None,
            false,
            "(IS_DEFINED(r.a) OR ((NOT IS_DEFINED(r.a)) AND (NOT IS_DEFINED(r.b))) OR \
             ((NOT IS_DEFINED(r.a)) AND (r.b = null) AND true))",
        );
    }

    #[test]
    fn a_place_must_fit_the_order() {
        check("SELECT * FROM c", "[5]", None, true, "none");
        check("SELECT * FROM c ORDER BY c.v", "[5, 6]", None, true, "none");
        check("SELECT * FROM c ORDER BY c.v", "[{\"type\":\"array\"}]", None, true, "none");
    }
}
