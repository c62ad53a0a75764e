//! Faults of query texts, with their span.
//!
//! A fault contains data. Its message here is for logs and for callers without texts of their own; codes and texts of a
//! wire format belong to its API.

use std::fmt;
use thiserror::Error;

/// A span in the text: offsets in UTF-16 units, the end exclusive.
///
/// The span is not part of the meaning: all spans compare as equal, so that syntax trees compare by meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// First unit.
    pub start: u32,
    /// After the last unit.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Span {
    /// From the start of this span to the end of the other.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }
}

/// All faults of a query; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlFaults(pub Vec<SqlFault>);

/// One fault of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlFault {
    /// The kind, with its data.
    pub kind: FaultKind,
    /// Its span in the text.
    pub span: Span,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FaultKind {
    /// An unexpected token.
    #[error("the text cannot be read near '{near}'")]
    Syntax {
        /// The token.
        near: String,
    },
    /// The text ends too early.
    #[error("the text ends too early")]
    UnexpectedEnd,
    /// A string without an end, or with an invalid escape.
    #[error("{token} is not a string")]
    InvalidString {
        /// The string as written.
        token: String,
    },
    /// A number that a double cannot represent.
    #[error("{token} is not a number that a double can hold")]
    InvalidNumber {
        /// The number as written.
        token: String,
    },
    /// A name without a source.
    #[error("no source is called '{name}'")]
    UnknownIdentifier {
        /// The name.
        name: String,
    },
    /// A parameter without a value.
    #[error("the parameter {name} has no value")]
    MissingParameter {
        /// Its name with the `@`.
        name: String,
    },
    /// A function that does not exist.
    #[error("no function is called '{name}'")]
    UnknownFunction {
        /// The name as written.
        name: String,
        /// The function with the most similar name.
        suggestion: Option<&'static str>,
    },
    /// Two sources of one FROM clause with the same name.
    #[error("two sources are called '{name}'")]
    DuplicateAlias {
        /// The name.
        name: String,
    },
    /// `SELECT *` without a FROM clause.
    #[error("'SELECT *' needs a FROM clause")]
    StarWithoutFrom,
    /// `SELECT *` over several sources.
    #[error("'SELECT *' needs a single source")]
    StarWithManyInputs,
    /// `SELECT *` of groups.
    #[error("'SELECT *' cannot select groups")]
    StarWithGroupBy,
    /// The wrong number of arguments.
    #[error("{name} takes {range} arguments")]
    ArgumentCount {
        /// The function.
        name: String,
        /// The allowed number of arguments.
        range: ArgumentRange,
    },
    /// A count of TOP, LIMIT or OFFSET that is not an integer in its range.
    #[error("the {clause} count {given} is not a whole number from 0 to {}", crate::limits::COUNT_MAX)]
    BadCount {
        /// The clause of the count.
        clause: CountClause,
        /// The count as JSON.
        given: String,
    },
    /// An aggregate of an aggregate or of a subquery.
    #[error("the argument of an aggregate has an aggregate or a subquery in it")]
    NestedAggregate,
    /// An aggregate in a clause that sees single rows.
    #[error("an aggregate in the {clause} clause")]
    MisplacedAggregate {
        /// The clause.
        clause: &'static str,
    },
    /// A reference to single rows in the select list of a grouped query.
    #[error("'{reference}' is neither in an aggregate nor in the GROUP BY clause")]
    Ungrouped {
        /// The reference as text.
        reference: String,
    },
    /// A subquery as a group key.
    #[error("a subquery in the GROUP BY clause")]
    SubqueryInGroupBy,
    /// ORDER BY in a grouped query.
    #[error("groups cannot be ordered")]
    OrderByWithGroupBy,
    /// ORDER BY in a subquery.
    #[error("ORDER BY in a subquery")]
    OrderByInSubquery,
    /// TOP in a subquery.
    #[error("TOP in a subquery")]
    TopInSubquery,
    /// OFFSET LIMIT in a subquery.
    #[error("OFFSET LIMIT in a subquery")]
    OffsetLimitInSubquery,
    /// ORDER BY over a source that is not the document.
    #[error("ORDER BY over a source that is not the document")]
    OrderByCorrelated,
    /// ORDER BY an expression that no index supports.
    #[error("ORDER BY needs a path of the document")]
    OrderByExpression,
    /// An option of VectorDistance out of its range.
    #[error("searchListSizeMultiplier must be a whole number from 1 to 100")]
    SearchListSize,
    /// ORDER BY RANK of an expression that is not a score.
    #[error("ORDER BY RANK needs a score or a fusion of scores")]
    RankExpression,
    /// ORDER BY RANK with ASC or DESC.
    #[error("ORDER BY RANK has no direction")]
    RankDirection,
    /// ORDER BY RANK in a query that cannot be ranked.
    #[error("ORDER BY RANK {with}")]
    RankWith {
        /// The reason.
        with: RankBar,
    },
    /// Weights that do not match the scores.
    #[error("the weights must be an array with one number for each of the {scores} scores")]
    RankWeights {
        /// The number of scores.
        scores: usize,
    },
    /// A score outside ORDER BY RANK.
    #[error("{name} outside of ORDER BY RANK")]
    MisplacedScore {
        /// The function.
        name: &'static str,
    },
    /// A computed step in a path of the FROM clause.
    #[error("a path of a FROM clause has a computed step")]
    MemberIndexer,
    /// The text is too long.
    #[error("the text has {given} bytes, {} allowed", crate::limits::TEXT_BYTES_MAX)]
    TextTooLong {
        /// Its length in bytes.
        given: usize,
    },
    /// A limit is exceeded.
    #[error("the {limit} is more than {}", limit.most())]
    Limit {
        /// The limit.
        limit: Limit,
    },
}

/// The clauses with a number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named after their words
pub enum CountClause {
    Top,
    Limit,
    Offset,
}

impl fmt::Display for CountClause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CountClause::Top => "TOP",
            CountClause::Limit => "LIMIT",
            CountClause::Offset => "OFFSET",
        })
    }
}

/// Why a query cannot be ordered by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `Display` says what each is
pub enum RankBar {
    ElementSource,
    Join,
    SubquerySource,
    Grouping,
    Distinct,
    Subquery,
}

impl fmt::Display for RankBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RankBar::ElementSource => "with an IN source in the FROM clause",
            RankBar::Join => "with a JOIN",
            RankBar::SubquerySource => "with a subquery in the FROM clause",
            RankBar::Grouping => "with aggregates or a GROUP BY clause",
            RankBar::Distinct => "with DISTINCT",
            RankBar::Subquery => "in subqueries",
        })
    }
}

/// Limits of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `Display` says what each is
pub enum Limit {
    Joins,
    Chain,
    InValues,
    UserCalls,
    Depth,
    Subqueries,
    GroupKeys,
    Aggregates,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Joins => "number of JOINs",
            Limit::Chain => "number of operands of AND, OR or ||",
            Limit::InValues => "number of values of an IN list",
            Limit::UserCalls => "number of user-defined function calls",
            Limit::Depth => "depth of an expression",
            Limit::Subqueries => "depth of nested subqueries",
            Limit::GroupKeys => "number of GROUP BY expressions",
            Limit::Aggregates => "number of aggregates",
        })
    }
}

impl Limit {
    /// The maximum.
    pub fn most(self) -> usize {
        match self {
            Limit::Joins => crate::limits::JOINS_MAX,
            Limit::Chain => crate::limits::CHAIN_MEMBERS_MAX,
            Limit::InValues => crate::limits::IN_VALUES_MAX,
            Limit::UserCalls => crate::limits::USER_CALLS_MAX,
            Limit::Depth => crate::limits::EXPRESSION_DEPTH_MAX,
            Limit::Subqueries => crate::limits::SUBQUERY_DEPTH_MAX,
            Limit::GroupKeys => crate::limits::GROUP_KEYS_MAX,
            Limit::Aggregates => crate::limits::AGGREGATES_MAX,
        }
    }
}

impl fmt::Display for SqlFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, SqlFault { kind, span }) in self.0.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{kind} (at {} to {})", span.start, span.end)?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlFaults {}

impl From<SqlFault> for SqlFaults {
    fn from(fault: SqlFault) -> SqlFaults {
        SqlFaults(vec![fault])
    }
}

/// The number of arguments of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentRange {
    /// Minimum.
    pub min: usize,
    /// Maximum; `None` for any number.
    pub max: Option<usize>,
}

impl fmt::Display for ArgumentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArgumentRange { min, max } = self;
        match max {
            Some(max) if min == max => write!(f, "{min}"),
            Some(max) => write!(f, "{min} to {max}"),
            None => write!(f, "at least {min}"),
        }
    }
}
