//! Expressions as written. Chains of AND, OR and `||` and lists of IN are flat.

use super::Query;
use crate::Place;
use plan::query::{BinaryOperator, SubqueryKind, UnaryOperator};

/// An expression and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it says.
    pub kind: ExpressionKind,
    /// Where it stands.
    pub place: Place,
}

/// A number; integers are exact as far as 64 bits reach.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // named after what they hold
pub enum Number {
    Integer(i64),
    Double(f64),
}

/// What an expression says.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number, never negative when it was read.
    Number(Number),
    /// A string.
    String(String),
    /// `@name`, the name with the sign.
    Parameter(String),
    /// The name of a source.
    Name(String),
    /// `base.name` or `base["name"]`.
    Member(Box<Expression>, String),
    /// `base[index]`; an index that is a string literal is a member instead.
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
        /// What is looked for.
        operand: Box<Expression>,
        /// Where.
        list: Vec<Expression>,
        /// Whether NOT stands before IN.
        negated: bool,
    },
    /// `a [NOT] BETWEEN low AND high`
    Between {
        /// Operand, low and high.
        operands: Box<[Expression; 3]>,
        /// Whether NOT stands before BETWEEN.
        negated: bool,
    },
    /// `a [NOT] LIKE pattern [ESCAPE 'e']`
    Like {
        /// The string.
        operand: Box<Expression>,
        /// What it is compared with.
        pattern: Box<Expression>,
        /// The character that makes the next one literal.
        escape: Option<char>,
        /// Whether NOT stands before LIKE.
        negated: bool,
    },
    /// `a ?? b`
    Coalesce(Box<Expression>, Box<Expression>),
    /// `condition ? then : otherwise`
    Conditional(Box<[Expression; 3]>),
    /// A built-in function. The name is the documented spelling, or as written if there is no such function.
    Call(String, Vec<Expression>),
    /// `udf.name(…)`
    UserCall(String, Vec<Expression>),
    /// `(query)`, `EXISTS(query)` and their kin.
    Subquery(SubqueryKind, Box<Query>),
    /// `{name}`: what a client replaces by text before it sends a rewritten query. Printed, never read.
    Placeholder(String),
}
