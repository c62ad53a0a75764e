//! Expressions over one row.
//!
//! Chains of AND, OR and `||` and lists of IN are flat, so that the thousand terms that some clients send are one level
//! of depth.

use super::{Alternatives, Function, Query};
use value::Value;

/// A variable of the row: the n-th source in scope, counted from the outermost query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u16);

/// Computes a value, or `undefined`, from a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// No value at all.
    Undefined,
    /// A literal or the value of a parameter.
    Constant(Value),
    /// The value of a source.
    Slot(SlotId),
    /// `base.name` or `base["name"]`.
    Member(Box<Expression>, String),
    /// `base[index]` with a computed index: a string selects a member, a number an element.
    Index(Box<Expression>, Box<Expression>),
    /// `[a, b]`; undefined elements are omitted.
    Array(Vec<Expression>),
    /// `{"a": b}`; undefined members are omitted, of equal names the last counts.
    Object(Vec<(String, Expression)>),
    /// An operator before its operand.
    Unary(UnaryOperator, Box<Expression>),
    /// An operator between two operands.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `a AND b AND …`, at least two.
    And(Vec<Expression>),
    /// `a OR b OR …`, at least two.
    Or(Alternatives),
    /// `a || b || …`, at least two.
    Concatenation(Vec<Expression>),
    /// `a IN (b, c, …)`, at least one.
    In(Box<Expression>, Alternatives),
    /// `a BETWEEN low AND high`.
    Between(Box<[Expression; 3]>),
    /// `a LIKE pattern`.
    Like(Box<Expression>, LikePattern),
    /// `a ?? b`.
    Coalesce(Box<Expression>, Box<Expression>),
    /// `condition ? then : otherwise`.
    Conditional(Box<[Expression; 3]>),
    /// A built-in function.
    Call(Function, Vec<Expression>),
    /// A user-defined function, by name.
    UserCall(String, Vec<Expression>),
    /// A query inside an expression; it sees all slots of the row.
    Subquery(SubqueryKind, Box<Query>),
    /// The n-th key of the group.
    GroupKey(usize),
    /// The n-th aggregate of the group.
    Aggregate(usize),
}

/// The pattern of a LIKE.
#[derive(Clone, Debug, PartialEq)]
pub struct LikePattern {
    /// The pattern; usually a constant.
    pub pattern: Box<Expression>,
    /// The character that makes the next one literal.
    pub escape: Option<char>,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    /// `NOT`
    Not,
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is named after its sign
pub enum BinaryOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
}

/// How the rows of a subquery become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubqueryKind {
    /// The value of the only row; undefined without a row, a fault with more than one.
    Scalar,
    /// Whether there is any row.
    Exists,
    /// All rows.
    Array,
    /// The first row's value.
    First,
    /// The last row's value.
    Last,
    /// Whether the filter removes no row.
    All,
}

impl Expression {
    /// A member of a slot, by names: `c.a.b`.
    pub fn path(slot: SlotId, names: impl IntoIterator<Item = String>) -> Expression {
        names.into_iter().fold(Expression::Slot(slot), |base, name| Expression::Member(Box::new(base), name))
    }
}
