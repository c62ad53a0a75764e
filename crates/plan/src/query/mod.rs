//! Queries: rows from sources, filtered, grouped, ordered, projected.
//!
//! Pure data, the same for all query languages. Names are resolved: a row is a list of slots, one for each source in
//! scope, outer queries first. Does not know text, indexes or partitions.

mod alternatives;
mod distances;
mod encode;
mod expression;
mod function;
mod path;
mod predicate;
mod show;
mod walk;

pub use alternatives::Alternatives;
pub use expression::{BinaryOperator, Expression, LikePattern, SlotId, SubqueryKind, UnaryOperator};
pub use function::{Family, Function, Signature};
pub use predicate::{Comparison, Constants, ElementMatch, Predicate, Requirement, Requirements, TextPattern};

use value::PropertyPath;

/// A query, or a subquery inside an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Where rows come from, left to right; each source fills the next slot. Without sources there is one empty row.
    pub sources: Vec<Source>,
    /// Keeps a row only if this is `true`.
    pub filter: Option<Expression>,
    /// How rows are grouped; `None` keeps single rows.
    pub grouping: Option<Grouping>,
    /// The order of the rows.
    pub order: Order,
    /// The result of a row.
    pub projection: Projection,
    /// Whether duplicate results are removed.
    pub distinct: bool,
    /// Number of results to skip.
    pub offset: u64,
    /// Most results.
    pub limit: Option<u64>,
}

impl Query {
    /// The expression of `SELECT VALUE expression FROM c`; `None` for any other query.
    pub fn plain_value(&self) -> Option<&Expression> {
        let is_plain = matches!(&self.sources[..], [Source::Container { path }] if path.is_empty())
            && self.filter.is_none()
            && self.grouping.is_none()
            && matches!(self.order, Order::None)
            && !self.distinct
            && self.offset == 0
            && self.limit.is_none();
        match &self.projection {
            Projection::Value(value) if is_plain => Some(value),
            Projection::Value(_) | Projection::Row(_) | Projection::Object(_) => None,
        }
    }
}

/// The source of the rows of one slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Each document of the container, or the value at `path` in it; no row if that is undefined.
    Container {
        /// Names and array positions below the document.
        path: Vec<PathStep>,
    },
    /// Each element of the array at `path` in each document of the container: `x IN c.items`.
    ContainerElements {
        /// Names and array positions below the document.
        path: Vec<PathStep>,
    },
    /// One row with this value; none if it is undefined.
    Value(Expression),
    /// One row for each element of this array; none for any other value.
    Elements(Expression),
    /// One row for each result of a subquery.
    Rows(Box<Query>),
    /// One row for each element of each result of a subquery.
    RowElements(Box<Query>),
}

/// A step of a path in a FROM clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A member of an object.
    Name(String),
    /// An element of an array.
    Position(u64),
}

/// Rows with equal keys are combined into one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    /// The keys; without any, all rows are one group, even if there are no rows.
    pub keys: Vec<Expression>,
    /// What is computed over the rows of a group. Projection and order refer to keys and aggregates by position.
    pub aggregates: Vec<Aggregate>,
}

/// A value computed over rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The aggregate function.
    pub kind: AggregateKind,
    /// Its argument, evaluated for each row.
    pub argument: Expression,
}

/// The aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the SQL function of the same name
pub enum AggregateKind {
    Count,
    CountIf,
    Sum,
    Avg,
    Min,
    Max,
    MakeList,
    MakeSet,
}

/// The order of results.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// By document number.
    None,
    /// By values in the row, then by document number (descending if the first key is, unless it is a score).
    Keys(Vec<SortKey>),
    /// By the fused ranks of scores: `ORDER BY RANK`.
    Rank(Ranking),
}

impl Order {
    /// Whether rows with equal keys are ordered by descending document number, as an index that is walked backwards
    /// returns them. No index orders by scores; the oldest of equally good documents comes first.
    pub fn turns_ties(&self) -> bool {
        match self {
            Order::None | Order::Rank(_) => false,
            Order::Keys(keys) => {
                keys.first().is_some_and(|first| first.is_backwards() && !is_score(&first.expression))
            }
        }
    }
}

/// Whether this is a score, or computed from scores.
fn is_score(expression: &Expression) -> bool {
    match expression {
        Expression::Call(function, _) => matches!(
            function,
            Function::VectorDistance
                | Function::InternalVectorScore
                | Function::InternalFullTextScore
                | Function::InternalRank
        ),
        Expression::Binary(_, left, right) => is_score(left) || is_score(right),
        Expression::Coalesce(score, _) => is_score(score),
        Expression::Undefined
        | Expression::Constant(_)
        | Expression::Slot(_)
        | Expression::Member(..)
        | Expression::Index(..)
        | Expression::Array(_)
        | Expression::Object(_)
        | Expression::Unary(..)
        | Expression::And(_)
        | Expression::Or(_)
        | Expression::Concatenation(_)
        | Expression::In(..)
        | Expression::Between(_)
        | Expression::Like(..)
        | Expression::Conditional(_)
        | Expression::UserCall(..)
        | Expression::Subquery(..)
        | Expression::GroupKey(_)
        | Expression::Aggregate(_) => false,
    }
}

/// Scores whose ranks are fused.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The scores, at least one; each is the call of a scoring function.
    pub scores: Vec<Expression>,
    /// The weight of each score; empty if all have the same.
    pub weights: Vec<f64>,
}

/// One key of an order: a path in the document or the distance of a vector.
///
/// Distances are ordered nearest first. Whether that is ascending depends on the distance function of the container, so
/// `descending` does not apply to them.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// The value.
    pub expression: Expression,
    /// Its path in the document, if it is one: what an index can serve.
    pub path: Option<PropertyPath>,
    /// Whether the largest comes first.
    pub descending: bool,
}

impl SortKey {
    /// Whether the largest value comes first, the nearest of vectors considered: cosine and dot product grow with
    /// nearness, the Euclidean distance shrinks.
    pub fn is_backwards(&self) -> bool {
        let Expression::Call(Function::VectorDistance, arguments) = &self.expression else {
            return self.descending;
        };
        let Some(Expression::Constant(options)) = arguments.get(3) else {
            return true;
        };
        let function = options.member("distanceFunction").and_then(|function| function.as_ref().as_str());
        !function.is_some_and(|function| function.eq_ignore_ascii_case("euclidean"))
    }
}

/// The result of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// The row's one value: `SELECT *`.
    Row(SlotId),
    /// A value; where it is undefined the row vanishes: `SELECT VALUE`.
    Value(Expression),
    /// An object; undefined members are absent.
    Object(Vec<(String, Expression)>),
}
