//! The syntax tree: what was written, names and parameters still open.
//!
//! Brackets are gone, so are the two ways to write a member and the letter case of keywords and built-in functions.
//! Trees compare by what they say; see [`Place`].

mod build;
mod expression;

pub use expression::{Expression, ExpressionKind, Number};

use crate::Place;

/// A query or subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// What is made of a row.
    pub select: Select,
    /// Where rows come from.
    pub from: Option<From>,
    /// Which rows stay.
    pub filter: Option<Expression>,
    /// What rows are grouped by; empty without a GROUP BY clause.
    pub group_by: Vec<Expression>,
    /// How rows are ordered.
    pub order_by: Option<OrderBy>,
    /// Which rows of the result are given.
    pub offset_limit: Option<OffsetLimit>,
}

/// The SELECT clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Whether equal results are given once.
    pub distinct: bool,
    /// Most results.
    pub top: Option<Count>,
    /// The results.
    pub list: SelectList,
    /// The whole clause.
    pub place: Place,
}

/// What a SELECT clause makes of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectList {
    /// `*`
    Star(Place),
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

/// A count of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The count.
    pub value: CountValue,
    /// Where it stands.
    pub place: Place,
}

/// A count as written.
#[derive(Clone, Debug, PartialEq)]
pub enum CountValue {
    /// A number.
    Number(Number),
    /// A parameter, its name with the sign.
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
    /// What it is made of.
    pub collection: Collection,
    /// Its name, if one is given.
    pub alias: Option<String>,
    /// Whether its elements are the rows: `alias IN collection`.
    pub elements: bool,
    /// Where its name stands, or the whole source.
    pub place: Place,
}

/// What a source is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A name and the steps behind it.
    Path {
        /// The container or another source.
        root: String,
        /// Steps below it.
        steps: Vec<Step>,
        /// Where the name stands.
        place: Place,
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
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// The value.
    pub expression: Expression,
    /// Whether the largest comes first.
    pub descending: bool,
}

/// The OFFSET LIMIT clause.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    /// Results that are left out at the beginning.
    pub offset: Count,
    /// Most results.
    pub limit: Count,
}
