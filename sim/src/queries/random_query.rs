//! Random queries as a small tree, and their SQL text.

use serde_json::Value as Json;
use std::fmt::Write;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    /// Path of members in the document.
    Path(Vec<&'static str>),
    /// The element of the joined array.
    Element,
}

/// A condition on a row.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    Compare(Term, &'static str, Json),
    In(Term, Vec<Json>),
    Between(Term, Json, Json),
    Test(&'static str, Term),
    StartsWith(Term, String),
    Contains(Term, Json),
    /// Whether any, or all, of some elements are in an array.
    ContainsEach(Term, Vec<Json>, bool),
    /// A function of two texts, and whether it ignores case.
    Text(&'static str, Term, String, bool),
    Like(Term, String),
    /// A comparison of the sum of the value and a number.
    Plus(Term, i64, &'static str, Json),
    Truth(Term),
    /// A comparison with the time N seconds before now, in seconds.
    Since(Term, &'static str, Now, u64),
    /// Of the geometry at `loc` and a constant one.
    Spatial(Spatial, Json),
    Not(Box<Filter>),
    And(Vec<Filter>),
    Or(Vec<Filter>),
}

/// The current time in milliseconds, as users can write it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Now {
    /// Time of the page.
    Page,
    /// Time of the first page, in this notation.
    Query(&'static str),
}

impl Now {
    fn sql(self) -> &'static str {
        match self {
            Now::Page => "GetCurrentTimestamp()",
            Now::Query(text) => text,
        }
    }
}

/// A spatial relation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spatial {
    Distance(&'static str, f64),
    Meets,
    LiesIn,
    LiesAround,
}

/// An aggregate over rows.
#[derive(Clone, Debug)]
pub(super) enum Fold {
    Count,
    CountOf(Term),
    Sum(Term),
    Min(Term),
    Max(Term),
    Average(Term),
}

/// The projection of a row.
#[derive(Clone, Debug)]
pub(super) enum Projection {
    Star,
    Value(Term),
    Named(Vec<Term>),
}

/// What the query does with the rows.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Rows { projection: Projection, order: Vec<(Term, bool)>, distinct: bool },
    Folds(Vec<Fold>),
    Groups { keys: Vec<Term>, folds: Vec<Fold> },
}

/// The scope of a query.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    All,
    Key(String),
    Partition(u32),
}

/// A random query as a tree.
#[derive(Clone, Debug)]
pub(super) struct RandomQuery {
    pub(super) reach: Reach,
    /// Whether the elements of `tags` are joined.
    pub(super) joins: bool,
    pub(super) filter: Option<Filter>,
    pub(super) shape: Shape,
    pub(super) bounds: Option<(u64, u64)>,
}

impl RandomQuery {
    pub(super) fn sql(&self) -> String {
        let (select, suffix) = match &self.shape {
            Shape::Rows { projection, order, distinct } => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                let projected = match projection {
                    Projection::Star => "*".to_owned(),
                    Projection::Value(term) => format!("VALUE {}", term.sql()),
                    Projection::Named(terms) => named(terms),
                };
                let keys = order.iter().map(|(term, down)| {
                    let direction = if *down { " DESC" } else { "" };
                    format!("{}{direction}", term.sql())
                });
                let keys: Vec<String> = keys.collect();
                let order =
                    if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", keys.join(", ")) };
                (format!("{distinct}{projected}"), order)
            }
            Shape::Folds(folds) => (folded(folds), String::new()),
            Shape::Groups { keys, folds } => {
                let by: Vec<String> = keys.iter().map(Term::sql).collect();
                (format!("{}, {}", named(keys), folded(folds)), format!(" GROUP BY {}", by.join(", ")))
            }
        };
        let mut text = format!("SELECT {select} FROM c");
        if self.joins {
            text.push_str(" JOIN t IN c.tags");
        }
        if let Some(filter) = &self.filter {
            // Writing to a string cannot fail.
            let _ = write!(text, " WHERE {}", filter.sql());
        }
        text.push_str(&suffix);
        if let Some((offset, limit)) = self.bounds {
            let _ = write!(text, " OFFSET {offset} LIMIT {limit}");
        }
        text
    }
}

fn named(terms: &[Term]) -> String {
    let named = terms.iter().enumerate().map(|(index, term)| format!("{} AS k{index}", term.sql()));
    named.collect::<Vec<_>>().join(", ")
}

fn folded(folds: &[Fold]) -> String {
    let named = folds.iter().enumerate().map(|(index, fold)| format!("{} AS f{index}", fold.sql()));
    named.collect::<Vec<_>>().join(", ")
}

impl Term {
    fn sql(&self) -> String {
        match self {
            Term::Path(names) => format!("c.{}", names.join(".")),
            Term::Element => "t".to_owned(),
        }
    }
}

impl Fold {
    fn sql(&self) -> String {
        match self {
            Fold::Count => "COUNT(1)".to_owned(),
            Fold::CountOf(term) => format!("COUNT({})", term.sql()),
            Fold::Sum(term) => format!("SUM({})", term.sql()),
            Fold::Min(term) => format!("MIN({})", term.sql()),
            Fold::Max(term) => format!("MAX({})", term.sql()),
            Fold::Average(term) => format!("AVG({})", term.sql()),
        }
    }
}

impl Filter {
    pub(super) fn sql(&self) -> String {
        let chain = |parts: &[Filter], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| format!("({})", part.sql())).collect();
            parts.join(word)
        };
        match self {
            Filter::Compare(term, operator, constant) => format!("{} {operator} {constant}", term.sql()),
            Filter::In(term, constants) => {
                let constants: Vec<String> = constants.iter().map(Json::to_string).collect();
                format!("{} IN ({})", term.sql(), constants.join(", "))
            }
            Filter::Between(term, low, high) => format!("{} BETWEEN {low} AND {high}", term.sql()),
            Filter::Test(function, term) => format!("{function}({})", term.sql()),
            Filter::StartsWith(term, text) => {
                format!("STARTSWITH({}, {})", term.sql(), Json::from(text.as_str()))
            }
            Filter::Contains(term, constant) => format!("ARRAY_CONTAINS({}, {constant})", term.sql()),
            Filter::ContainsEach(term, constants, needs_all) => {
                let function = if *needs_all { "ARRAY_CONTAINS_ALL" } else { "ARRAY_CONTAINS_ANY" };
                let constants: Vec<String> = constants.iter().map(Json::to_string).collect();
                format!("{function}({}, {})", term.sql(), constants.join(", "))
            }
            Filter::Text(function, term, text, is_blind) => {
                let blind = if *is_blind { ", true" } else { "" };
                format!("{function}({}, {}{blind})", term.sql(), Json::from(text.as_str()))
            }
            Filter::Like(term, pattern) => format!("{} LIKE {}", term.sql(), Json::from(pattern.as_str())),
            Filter::Plus(term, number, operator, constant) => {
                format!("{} + {number} {operator} {constant}", term.sql())
            }
            Filter::Truth(term) => term.sql(),
            Filter::Since(term, operator, now, seconds) => {
                format!("{} {operator} {} / 1000 - {seconds}", term.sql(), now.sql())
            }
            Filter::Spatial(Spatial::Distance(operator, metres), geometry) => {
                format!("ST_DISTANCE(c.loc, {geometry}) {operator} {metres}")
            }
            Filter::Spatial(Spatial::Meets, geometry) => format!("ST_INTERSECTS(c.loc, {geometry})"),
            Filter::Spatial(Spatial::LiesIn, geometry) => format!("ST_WITHIN(c.loc, {geometry})"),
            Filter::Spatial(Spatial::LiesAround, geometry) => format!("ST_WITHIN({geometry}, c.loc)"),
            Filter::Not(part) => format!("NOT ({})", part.sql()),
            Filter::And(parts) => chain(parts, " AND "),
            Filter::Or(parts) => chain(parts, " OR "),
        }
    }
}
