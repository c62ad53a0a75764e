//! Expressions as written. Chains of AND, OR and `||` and lists of IN are flat.

use super::Query;
use crate::Span;
use plan::query::{BinaryOperator, SubqueryKind, UnaryOperator};

/// An expression and its span in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// The kind, with its operands.
    pub kind: ExpressionKind,
    /// Its span in the text.
    pub span: Span,
}

/// A number; integers are exact up to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // named after what they hold
pub enum NumberLiteral {
    Integer(i64),
    /// Above the largest signed integer.
    Unsigned(u64),
    Double(f64),
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number, never negative in a parsed tree.
    Number(NumberLiteral),
    /// A string.
    String(String),
    /// `@name`; the name includes the `@`.
    Parameter(String),
    /// The name of a source.
    Name(String),
    /// `base.name` or `base["name"]`.
    Member(Box<Expression>, String),
    /// `base[index]`; a string literal as index makes it a member instead.
    Index(Box<Expression>, Box<Expression>),
    /// `[a, b]`
    Array(Vec<Expression>),
    /// `{"a": b}`
    Object(Vec<(String, Expression)>),
    /// An operator before its operand.
    Unary(UnaryOperator, Box<Expression>),
    /// An operator between two operands.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `a AND b AND …`, at least two.
    And(Vec<Expression>),
    /// `a OR b OR …`, at least two.
    Or(Vec<Expression>),
    /// `a || b || …`, at least two.
    Concatenation(Vec<Expression>),
    /// `a [NOT] IN (b, …)`, at least one.
    In {
        /// The searched value.
        operand: Box<Expression>,
        /// The candidates.
        list: Vec<Expression>,
        /// Whether NOT precedes IN.
        negated: bool,
    },
    /// `a [NOT] BETWEEN low AND high`
    Between {
        /// Operand, low and high.
        operands: Box<[Expression; 3]>,
        /// Whether NOT precedes BETWEEN.
        negated: bool,
    },
    /// `a [NOT] LIKE pattern [ESCAPE 'e']`
    Like {
        /// The string.
        operand: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// The escape character.
        escape: Option<char>,
        /// Whether NOT precedes LIKE.
        negated: bool,
    },
    /// `a ?? b`
    Coalesce(Box<Expression>, Box<Expression>),
    /// `condition ? then : otherwise`
    Conditional(Box<[Expression; 3]>),
    /// A built-in function. The name is in the documented spelling, or as written if there is no such function.
    Call(String, Vec<Expression>),
    /// `udf.name(…)`
    UserCall(String, Vec<Expression>),
    /// `(query)`, `EXISTS(query)` and the other subquery forms.
    Subquery(SubqueryKind, Box<Query>),
    /// `{name}`: replaced by the client before it sends a rewritten query. Printed, never parsed.
    Placeholder(String),
}
