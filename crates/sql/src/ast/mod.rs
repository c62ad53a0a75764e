//! The syntax tree: the query as written; names and parameters are not resolved.
//!
//! Brackets, the two notations of a member and the letter case of keywords and built-in functions are not preserved.
//! Trees compare by meaning; see [`Span`].

mod build;
mod expression;

pub use expression::{Expression, ExpressionKind, NumberLiteral};

use crate::Span;

/// A query or subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The SELECT clause.
    pub select: Select,
    /// The FROM clause.
    pub from: Option<From>,
    /// The WHERE clause.
    pub filter: Option<Expression>,
    /// The keys of the GROUP BY clause; empty without one.
    pub group_by: Vec<Expression>,
    /// The ORDER BY clause.
    pub order_by: Option<OrderBy>,
    /// The OFFSET LIMIT clause.
    pub offset_limit: Option<OffsetLimit>,
}

/// The SELECT clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Whether duplicate results are removed.
    pub distinct: bool,
    /// The count of TOP.
    pub top: Option<Count>,
    /// The select list.
    pub list: SelectList,
    /// The span of the whole clause.
    pub span: Span,
}

/// The select list of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectList {
    /// `*`
    Star(Span),
    /// `VALUE expression`
    Value(Expression),
    /// `expression [AS alias], …`, at least one.
    Items(Vec<SelectItem>),
}

/// One member of a select list.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// Its value.
    pub expression: Expression,
    /// Its name, if one is given.
    pub alias: Option<String>,
}

/// A number of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The count.
    pub value: CountValue,
    /// Its span in the text.
    pub span: Span,
}

/// A count as written.
#[derive(Clone, Debug, PartialEq)]
pub enum CountValue {
    /// A number.
    Number(NumberLiteral),
    /// A parameter; the name includes the `@`.
    Parameter(String),
}

/// The FROM clause.
#[derive(Clone, Debug, PartialEq)]
pub struct From {
    /// The sources, at least one; all but the first are joined.
    pub sources: Vec<Source>,
}

/// A source of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What its rows come from.
    pub collection: Collection,
    /// Its name, if one is given.
    pub alias: Option<String>,
    /// Whether its elements are the rows: `alias IN collection`.
    pub elements: bool,
    /// The span of its name, or of the whole source.
    pub span: Span,
}

/// What the rows of a source come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A name and the steps after it.
    Path {
        /// The container or another source.
        root: String,
        /// Steps below it.
        steps: Vec<Step>,
        /// The span of the name.
        span: Span,
    },
    /// The results of a subquery.
    Subquery(Box<Query>),
}

/// A step of a path in a FROM clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member.
    Name(String),
    /// An element.
    Position(u64),
}

/// The ORDER BY clause.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// By values.
    Keys(Vec<SortKey>),
    /// By rank, `ORDER BY RANK`.
    Rank(Vec<Expression>),
}

/// One key of an ORDER BY clause.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The value.
    pub expression: Expression,
    /// Whether the largest comes first.
    pub descending: bool,
    /// Whether ASC or DESC is written. Not part of the meaning: `c.a` and `c.a ASC` compare as equal.
    pub has_direction: bool,
}

impl PartialEq for SortKey {
    fn eq(&self, other: &SortKey) -> bool {
        self.expression == other.expression && self.descending == other.descending
    }
}

/// The OFFSET LIMIT clause.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    /// Number of results to skip.
    pub offset: Count,
    /// Maximum number of results.
    pub limit: Count,
}
