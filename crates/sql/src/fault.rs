//! What can be wrong with a query, where, and the text the service has for it.
//!
//! Seen from the service, code and sentence: `SC1001` near a token, `SC2001`, `SC2005` (the suggestion is ours),
//! `SC2040`, `SC2050`, `SC2102` and `2206`. Of `SC2041`, `SC2060` to `SC2062`, `SC2101`, `SC2202` to `SC2204`, `SC2213`,
//! `SC2221`, `SC2223` to `SC2225`, `SC2228`, `SC2229`, `SC2240`, `SC2990` and `SC3005` the code and its meaning are
//! known, the sentences are unverified, and so is the range of `SC2213`. All other codes are unverified too.

use std::fmt;
use thiserror::Error;
use value::Value;

/// Where something stands in the text: offsets in UTF-16 units, the end exclusive, as the service counts them.
///
/// The place of a thing is no part of what it says: all places are equal, so that syntax trees compare by meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// First unit.
    pub start: u32,
    /// Behind the last unit.
    pub end: u32,
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Place {
    /// From the start of this place to the end of the other.
    pub fn to(self, other: Place) -> Place {
        Place { start: self.start, end: other.end }
    }
}

/// All that is wrong with a query; at least one fault.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlFaults(pub Vec<SqlFault>);

/// One thing that is wrong with a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlFault {
    /// What.
    pub kind: FaultKind,
    /// Where.
    pub place: Place,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FaultKind {
    /// A word or sign that cannot stand where it does.
    #[error("Syntax error, incorrect syntax near '{near}'.")]
    Syntax {
        /// The word or sign.
        near: String,
    },
    /// The text ends too early.
    #[error("Syntax error, unexpected end-of-file.")]
    UnexpectedEnd,
    /// A string that does not end, or with an escape that does not exist.
    #[error("Syntax error, invalid string literal token '{token}'.")]
    InvalidString {
        /// The string as written.
        token: String,
    },
    /// A number that no double can hold.
    #[error("Syntax error, invalid numeric value token '{token}'.")]
    InvalidNumber {
        /// The number as written.
        token: String,
    },
    /// A name that no source has.
    #[error("Identifier '{name}' could not be resolved.")]
    UnknownIdentifier {
        /// The name.
        name: String,
    },
    /// A parameter without a value.
    #[error("The query parameter '{name}' is used but no value was supplied for it.")]
    MissingParameter {
        /// Its name with the sign.
        name: String,
    },
    /// A function that does not exist.
    #[error("'{name}' is not a recognized built-in function name.{}", Suggestion(suggestion))]
    UnknownFunction {
        /// The name as written.
        name: String,
        /// The function with the most similar name.
        suggestion: Option<&'static str>,
    },
    /// Two sources of one FROM clause with the same name.
    #[error("The input alias '{name}' is specified more than once in the FROM clause.")]
    DuplicateAlias {
        /// The name.
        name: String,
    },
    /// `SELECT *` without a FROM clause.
    #[error("'SELECT *' is not valid if FROM clause is omitted.")]
    StarWithoutFrom,
    /// `SELECT *` over several sources.
    #[error("'SELECT *' is only valid with a single input set.")]
    StarWithManyInputs,
    /// `SELECT *` of groups.
    #[error("'SELECT *' is not valid with a GROUP BY clause.")]
    StarWithGroupBy,
    /// The wrong number of arguments.
    #[error("The {name} function requires {} argument(s).", ArgumentCount(*min, *max))]
    ArgumentCount {
        /// The function.
        name: String,
        /// Fewest.
        min: usize,
        /// Most; `None` for any number.
        max: Option<usize>,
    },
    /// A count of TOP, LIMIT or OFFSET that is no integer in its range.
    #[error("The {} count '{given}' is not an integer between 0 and {most}.", clause.word(), most = crate::limits::COUNT_MAX)]
    BadCount {
        /// Whose count.
        clause: CountClause,
        /// The count as JSON.
        given: String,
    },
    /// An aggregate of an aggregate or of a subquery.
    #[error("Cannot perform an aggregate function on an expression containing an aggregate or a subquery.")]
    NestedAggregate,
    /// An aggregate in a clause that sees single rows.
    #[error("Aggregate functions are not allowed in the {clause} clause.")]
    MisplacedAggregate {
        /// The clause.
        clause: &'static str,
    },
    /// A reference to single rows in the select list of groups.
    #[error(
        "Property reference '{reference}' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause."
    )]
    Ungrouped {
        /// The reference as text.
        reference: String,
    },
    /// A subquery as a key of groups.
    #[error("Subqueries are not allowed in the GROUP BY clause.")]
    SubqueryInGroupBy,
    /// An order of groups.
    #[error("'ORDER BY' is not supported with a GROUP BY clause.")]
    OrderByWithGroupBy,
    /// An order in a subquery.
    #[error("'ORDER BY' is not supported in subqueries.")]
    OrderByInSubquery,
    /// TOP in a subquery.
    #[error("'TOP' is not supported in subqueries.")]
    TopInSubquery,
    /// OFFSET LIMIT in a subquery.
    #[error("'OFFSET LIMIT' is not supported in subqueries.")]
    OffsetLimitInSubquery,
    /// An order by a source that is not the document.
    #[error("Order-by over correlated collections is not supported.")]
    OrderByCorrelated,
    /// An order by something that no index can hold.
    #[error("Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.")]
    OrderByExpression,
    /// An option of VectorDistance that is out of its range.
    #[error(
        "The 'searchListSizeMultiplier' option of the VectorDistance function must be an integer between 1 and 100."
    )]
    SearchListSize,
    /// An order by rank of something that is no score.
    #[error("The ORDER BY RANK clause must be a FullTextScore or an RRF function call.")]
    RankExpression,
    /// An order by rank in a query that cannot be ranked.
    #[error("The ORDER BY RANK clause is not supported {}.", with.words())]
    RankWith {
        /// What forbids it.
        with: RankBar,
    },
    /// Weights that do not fit the scores.
    #[error(
        "The weights of the RRF function must be an array with one number for each of its {scores} score(s)."
    )]
    RankWeights {
        /// How many scores there are.
        scores: usize,
    },
    /// A score where none is computed.
    #[error("The {name} function is only allowed in the ORDER BY RANK clause.")]
    MisplacedScore {
        /// The function.
        name: &'static str,
    },
    /// A path of a FROM clause with a computed step.
    #[error("The 'member indexer' is not supported in this context.")]
    MemberIndexer,
    /// The text is too long.
    #[error("The query text of {given} bytes exceeds the limit of {} bytes.", crate::limits::TEXT_BYTES_MAX)]
    TextTooLong {
        /// Its length in bytes.
        given: usize,
    },
    /// Too much of something.
    #[error("The query exceeds the maximum {}. The allowed limit is {}.", limit.words(), limit.value())]
    Limit {
        /// Of what.
        limit: Limit,
    },
}

/// The clauses that count rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named after their words
pub enum CountClause {
    Top,
    Limit,
    Offset,
}

impl CountClause {
    fn word(self) -> &'static str {
        match self {
            CountClause::Top => "TOP",
            CountClause::Limit => "LIMIT",
            CountClause::Offset => "OFFSET",
        }
    }
}

/// What keeps a query from being ordered by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `words` says what each is
pub enum RankBar {
    ElementSource,
    Join,
    SubquerySource,
    Grouping,
    Distinct,
    Subquery,
}

impl RankBar {
    fn words(self) -> &'static str {
        match self {
            RankBar::ElementSource => "with an IN source in the FROM clause",
            RankBar::Join => "with a JOIN",
            RankBar::SubquerySource => "with a subquery in the FROM clause",
            RankBar::Grouping => "with aggregates or a GROUP BY clause",
            RankBar::Distinct => "with DISTINCT",
            RankBar::Subquery => "in subqueries",
        }
    }
}

/// Bounds that a query can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `words` says what each is
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

impl Limit {
    fn words(self) -> &'static str {
        match self {
            Limit::Joins => "number of JOINs",
            Limit::Chain => "number of operands of AND, OR or ||",
            Limit::InValues => "number of values of an IN list",
            Limit::UserCalls => "number of user-defined function calls",
            Limit::Depth => "depth of an expression",
            Limit::Subqueries => "depth of nested subqueries",
            Limit::GroupKeys => "number of GROUP BY expressions",
            Limit::Aggregates => "number of aggregates",
        }
    }

    fn value(self) -> usize {
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

impl FaultKind {
    /// The service's code, or ours where it has none that is known.
    pub fn code(&self) -> &'static str {
        match self {
            FaultKind::Syntax { .. } | FaultKind::UnexpectedEnd => "SC1001",
            FaultKind::InvalidString { .. } => "SC1010",
            FaultKind::InvalidNumber { .. } => "SC1012",
            FaultKind::UnknownIdentifier { .. } => "SC2001",
            FaultKind::MissingParameter { .. } => "SC2003",
            FaultKind::UnknownFunction { .. } => "SC2005",
            FaultKind::DuplicateAlias { .. } => "SC2011",
            FaultKind::StarWithoutFrom => "SC2039",
            FaultKind::StarWithManyInputs => "SC2040",
            FaultKind::StarWithGroupBy => "SC2041",
            FaultKind::ArgumentCount { .. } => "SC2050",
            FaultKind::BadCount { clause: CountClause::Top, .. } => "SC2060",
            FaultKind::BadCount { clause: CountClause::Limit, .. } => "SC2061",
            FaultKind::BadCount { clause: CountClause::Offset, .. } => "SC2062",
            FaultKind::NestedAggregate | FaultKind::MisplacedAggregate { .. } => "SC2101",
            FaultKind::Ungrouped { .. } => "SC2102",
            FaultKind::SubqueryInGroupBy => "SC2103",
            FaultKind::OrderByWithGroupBy => "SC2104",
            FaultKind::OrderByInSubquery => "SC2202",
            FaultKind::TopInSubquery => "SC2203",
            FaultKind::OffsetLimitInSubquery => "SC2204",
            FaultKind::OrderByCorrelated => "SC2205",
            FaultKind::OrderByExpression => "2206",
            FaultKind::SearchListSize => "SC2213",
            FaultKind::RankExpression => "SC2221",
            FaultKind::RankWith { with } => match with {
                RankBar::ElementSource => "SC2223",
                RankBar::Join => "SC2224",
                RankBar::SubquerySource => "SC2225",
                RankBar::Grouping => "SC2226",
                RankBar::Distinct => "SC2227",
                RankBar::Subquery => "SC2228",
            },
            FaultKind::RankWeights { .. } => "SC2229",
            FaultKind::MisplacedScore { .. } => "SC2240",
            FaultKind::MemberIndexer => "SC2990",
            FaultKind::TextTooLong { .. } => "SC3001",
            FaultKind::Limit { limit } => match limit {
                Limit::Joins => "SC3002",
                Limit::Chain => "SC3003",
                Limit::InValues => "SC3004",
                Limit::UserCalls => "SC3005",
                Limit::Depth => "SC3006",
                Limit::Subqueries => "SC3007",
                Limit::GroupKeys => "SC3008",
                Limit::Aggregates => "SC3009",
            },
        }
    }
}

impl fmt::Display for SqlFaults {
    /// The list as the service puts it into the message of an answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"errors\":[")?;
        for (index, SqlFault { kind, place }) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let message = Value::String(kind.to_string()).to_json();
            write!(
                f,
                "{{\"severity\":\"Error\",\"location\":{{\"start\":{},\"end\":{}}},\"code\":\"{}\",\"message\":{message}}}",
                place.start,
                place.end,
                kind.code(),
            )?;
        }
        f.write_str("]}")
    }
}

impl std::error::Error for SqlFaults {}

impl From<SqlFault> for SqlFaults {
    fn from(fault: SqlFault) -> SqlFaults {
        SqlFaults(vec![fault])
    }
}

struct Suggestion<'a>(&'a Option<&'static str>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, " Did you mean '{name}'?"),
            None => Ok(()),
        }
    }
}

struct ArgumentCount(usize, Option<usize>);

impl fmt::Display for ArgumentCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ArgumentCount(min, Some(max)) if min == max => write!(f, "{min}"),
            ArgumentCount(min, Some(max)) => write!(f, "{min} to {max}"),
            ArgumentCount(min, None) => write!(f, "at least {min}"),
        }
    }
}
