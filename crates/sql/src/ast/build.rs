//! Constructors for trees that are built by programs, such as rewritten queries.

use super::{
    Collection, Count, CountValue, Expression, ExpressionKind, From, NumberLiteral, Query, Select,
    SelectItem, SelectList, Source,
};
use crate::Span;
use plan::query::UnaryOperator;

impl Expression {
    /// An expression without a span in a text.
    pub fn new(kind: ExpressionKind) -> Expression {
        Expression { kind, span: Span::default() }
    }

    /// The name of a source.
    pub fn name(name: impl Into<String>) -> Expression {
        Expression::new(ExpressionKind::Name(name.into()))
    }

    /// A string.
    pub fn string(string: impl Into<String>) -> Expression {
        Expression::new(ExpressionKind::String(string.into()))
    }

    /// An integer. A negative one is a sign and a number, as in a parsed text.
    pub fn integer(integer: i64) -> Expression {
        let size = match i64::try_from(integer.unsigned_abs()) {
            Ok(size) => NumberLiteral::Integer(size),
            Err(_) => NumberLiteral::Unsigned(integer.unsigned_abs()),
        };
        let number = Expression::new(ExpressionKind::Number(size));
        match integer < 0 {
            true => Expression::new(ExpressionKind::Unary(UnaryOperator::Minus, Box::new(number))),
            false => number,
        }
    }

    /// A member access on this expression.
    pub fn member(self, name: impl Into<String>) -> Expression {
        Expression::new(ExpressionKind::Member(Box::new(self), name.into()))
    }

    /// A call of a built-in function; the name is in the documented spelling.
    pub fn call(name: impl Into<String>, arguments: Vec<Expression>) -> Expression {
        Expression::new(ExpressionKind::Call(name.into(), arguments))
    }

    /// An array.
    pub fn array(elements: Vec<Expression>) -> Expression {
        Expression::new(ExpressionKind::Array(elements))
    }

    /// An object.
    pub fn object<N: Into<String>>(members: impl IntoIterator<Item = (N, Expression)>) -> Expression {
        let members = members.into_iter().map(|(name, member)| (name.into(), member)).collect();
        Expression::new(ExpressionKind::Object(members))
    }

    /// `first AND second`; chains stay flat.
    pub fn and(self, other: Expression) -> Expression {
        let mut members = vec![self];
        if let [Expression { kind: ExpressionKind::And(inner), .. }] = members.as_mut_slice() {
            members = std::mem::take(inner);
        }
        members.push(other);
        Expression::new(ExpressionKind::And(members))
    }

    /// `{name}`, which the client replaces.
    pub fn placeholder(name: impl Into<String>) -> Expression {
        Expression::new(ExpressionKind::Placeholder(name.into()))
    }
}

impl SelectItem {
    /// `expression AS alias`
    pub fn named(expression: Expression, alias: impl Into<String>) -> SelectItem {
        SelectItem { expression, alias: Some(alias.into()) }
    }

    /// An expression without an alias.
    pub fn plain(expression: Expression) -> SelectItem {
        SelectItem { expression, alias: None }
    }
}

impl Count {
    /// A constant count.
    pub fn of(count: u32) -> Count {
        let value = CountValue::Number(NumberLiteral::Integer(i64::from(count)));
        Count { value, span: Span::default() }
    }
}

impl Query {
    /// `SELECT …` over one source, the container, named `alias`.
    pub fn over_container(alias: impl Into<String>, list: SelectList) -> Query {
        let span = Span::default();
        let collection = Collection::Path { root: alias.into(), steps: Vec::new(), span };
        let source = Source { collection, alias: None, elements: false, span };
        Query {
            select: Select { distinct: false, top: None, list, span },
            from: Some(From { sources: vec![source] }),
            filter: None,
            group_by: Vec::new(),
            order_by: None,
            offset_limit: None,
        }
    }
}
