//! Which queries an index answers alone, and what is requested from it.
//!
//! Aggregates over all rows are counts of documents, values of a path, or the first or last value. GROUP BY and
//! DISTINCT on one path are computed from the distinct values at the path, each with its number of documents; on a few
//! paths, from the tuples of values per document. The index must answer the filter exactly.

use eval::EXPRESSION_DEPTH_MAX;
use kv::Direction;
use partition::index::{IndexPath, IndexReader, Lookup};
use plan::query::{Aggregate, AggregateKind, Expression, Family, Function, Order, Projection, Source};

use super::index_condition::IndexCondition;
use super::lookup;
use crate::computed::is_document;
use crate::program::{Layer, LayerInput, Shape};

/// What is requested from an index alone.
#[derive(Debug)]
pub(crate) enum Covered<'l> {
    /// Aggregates over all rows, in their order.
    Folds(Vec<IndexFold>),
    /// Rows made of the values at one path.
    Values(Values<'l>),
    /// Rows made of tuples of the values at several paths.
    Tuples(Vec<Values<'l>>),
}

/// The source of an aggregate over all rows.
#[derive(Debug)]
pub(crate) enum IndexFold {
    /// The number of documents.
    All,
    /// The number of documents that have a value at the path.
    Present(IndexPath),
    /// The number of documents that also meet a condition.
    Matching(IndexCondition),
    /// All values at the path.
    Sum(IndexPath),
    /// The first value at the path in one direction.
    Extreme(IndexPath, Direction),
}

/// Rows made of the values at one path.
#[derive(Debug)]
pub(crate) struct Values<'l> {
    /// The names from the document to the value.
    pub(crate) names: Vec<&'l str>,
    pub(crate) path: IndexPath,
    /// Whether nothing is computed from the values, so that equal numbers of different kinds are treated as one.
    pub(crate) is_plain: bool,
    /// Whether the first and the last document with a value are needed.
    pub(crate) needs_ends: bool,
}

/// What an index alone can answer for a layer, regardless of its filter.
pub(crate) fn covered<'l>(layer: &'l Layer, index: &IndexReader) -> Option<Covered<'l>> {
    let query = &layer.query;
    let is_plain = matches!(&query.sources[..], [Source::Container { path }] if path.is_empty());
    if !is_plain || layer.input != LayerInput::Documents {
        return None;
    }
    match layer.shape {
        Shape::Rows => None,
        Shape::Distinct | Shape::DistinctOrdered => distinct(layer, index),
        Shape::Groups | Shape::AllGroups => {
            let grouping = query.grouping.as_ref()?;
            if !grouping.keys.is_empty() {
                return groups(&grouping.keys, &grouping.aggregates, index);
            }
            let folds = grouping.aggregates.iter().map(|aggregate| fold(aggregate, index));
            folds.collect::<Option<_>>().map(Covered::Folds)
        }
    }
}

fn fold(aggregate: &Aggregate, index: &IndexReader) -> Option<IndexFold> {
    let argument = &aggregate.argument;
    match aggregate.kind {
        AggregateKind::Count if is_always_there(argument) => Some(IndexFold::All),
        AggregateKind::Count => Some(IndexFold::Present(lookup::path(argument, index)?)),
        AggregateKind::CountIf => lookup::explained_condition(argument, index)
            .filter(|known| known.is_exact)
            .map(IndexFold::Matching),
        AggregateKind::Sum | AggregateKind::Avg => Some(IndexFold::Sum(lookup::path(argument, index)?)),
        AggregateKind::Min => Some(IndexFold::Extreme(lookup::path(argument, index)?, Direction::Forward)),
        AggregateKind::Max => Some(IndexFold::Extreme(lookup::path(argument, index)?, Direction::Backward)),
        AggregateKind::MakeList | AggregateKind::MakeSet => None,
    }
}

/// Whether an expression has a value for every document, and a count does not depend on which one.
fn is_always_there(expression: &Expression) -> bool {
    is_document(expression) || matches!(expression, Expression::Constant(_))
}

fn groups<'l>(
    keys: &'l [Expression],
    aggregates: &'l [Aggregate],
    index: &IndexReader,
) -> Option<Covered<'l>> {
    let mut collector = PathCollector::default();
    keys.iter().try_for_each(|key| collector.at(key, EXPRESSION_DEPTH_MAX))?;
    for Aggregate { kind, argument } in aggregates {
        match kind {
            AggregateKind::Count if is_document(argument) => continue,
            AggregateKind::Min | AggregateKind::Max => collector.has_extremes = true,
            // Sets prefer some kinds among equal numbers, so the documents must be read.
            AggregateKind::MakeSet | AggregateKind::CountIf => collector.is_plain = false,
            AggregateKind::MakeList => return None,
            AggregateKind::Count | AggregateKind::Sum | AggregateKind::Avg => {}
        }
        collector.at(argument, EXPRESSION_DEPTH_MAX)?;
    }
    collector.covered(index, false)
}

fn distinct<'l>(layer: &'l Layer, index: &IndexReader) -> Option<Covered<'l>> {
    let mut collector = PathCollector::default();
    match &layer.query.projection {
        Projection::Row(_) => return None,
        Projection::Value(value) => collector.at(value, EXPRESSION_DEPTH_MAX)?,
        Projection::Object(members) => {
            members.iter().try_for_each(|(_, member)| collector.at(member, EXPRESSION_DEPTH_MAX))?;
        }
    }
    match &layer.query.order {
        Order::None => collector.covered(index, false),
        Order::Keys(keys) => {
            keys.iter().try_for_each(|key| collector.at(&key.expression, EXPRESSION_DEPTH_MAX))?;
            collector.covered(index, true)
        }
        Order::Rank(_) => None,
    }
}

/// Maximum number of paths whose values are combined into tuples.
const PATHS_MAX: usize = 4;

/// Finds the paths that expressions refer to.
struct PathCollector<'l> {
    paths: Vec<Vec<&'l str>>,
    is_plain: bool,
    /// Whether there are extremes, which prefer some kinds among equal numbers.
    has_extremes: bool,
    /// Whether the expressions will be tested on values; these may not use the time or members of the values.
    is_for_tests: bool,
}

impl Default for PathCollector<'_> {
    fn default() -> Self {
        PathCollector { paths: Vec::new(), is_plain: true, has_extremes: false, is_for_tests: false }
    }
}

impl<'l> PathCollector<'l> {
    /// A whole expression; `None` if it depends on more than the values at a few paths.
    fn at(&mut self, expression: &'l Expression, levels_left: usize) -> Option<()> {
        let is_bare = expression.document_path().is_some() || matches!(expression, Expression::Constant(_));
        self.is_plain &= is_bare;
        self.below(expression, levels_left)
    }

    fn below(&mut self, expression: &'l Expression, levels_left: usize) -> Option<()> {
        let levels_left = levels_left.checked_sub(1)?;
        if let Some(names) = expression.document_path() {
            if !self.paths.contains(&names) {
                self.paths.push(names);
            }
            return (self.paths.len() <= PATHS_MAX).then_some(());
        }
        let is_settled = match expression {
            Expression::Slot(_) | Expression::Subquery(..) | Expression::UserCall(..) => false,
            Expression::Call(function, _) => {
                let is_out_of_reach = function.depends_on_query_time() || looks_inside(*function);
                let is_of_the_row = function.is_volatile() || *function == Function::DocumentId;
                !(is_of_the_row || self.is_for_tests && is_out_of_reach)
            }
            Expression::Index(..) => !self.is_for_tests,
            Expression::Undefined
            | Expression::Constant(_)
            | Expression::Member(..)
            | Expression::Array(_)
            | Expression::Object(_)
            | Expression::Unary(..)
            | Expression::Binary(..)
            | Expression::And(_)
            | Expression::Or(_)
            | Expression::Concatenation(_)
            | Expression::In(..)
            | Expression::Between(_)
            | Expression::Like(..)
            | Expression::Coalesce(..)
            | Expression::Conditional(_)
            | Expression::GroupKey(_)
            | Expression::Aggregate(_) => true,
        };
        let mut children = expression.children().into_iter();
        is_settled.then(|| children.try_for_each(|child| self.below(child, levels_left)))?
    }

    fn covered(self, index: &IndexReader, is_ordered: bool) -> Option<Covered<'l>> {
        // With tuples it is known which documents decide.
        let is_plain = self.is_plain && !(self.has_extremes && self.paths.len() == 1);
        let values = |names: Vec<&'l str>| {
            let path = lookup::path_of(&names, index)?;
            Some(Values { names, path, is_plain, needs_ends: is_ordered || !is_plain })
        };
        let mut paths = self.paths.into_iter().map(values).collect::<Option<Vec<_>>>()?;
        match paths.len() {
            0 => None,
            1 => paths.pop().map(Covered::Values),
            _ => Some(Covered::Tuples(paths)),
        }
    }
}

/// The names that lead to the only value that an expression depends on; `None` if it depends on more (also on the
/// time), or on something inside the value, which an index does not know.
pub(crate) fn only_names(expression: &Expression) -> Option<Vec<&str>> {
    let mut collector = PathCollector { is_for_tests: true, ..PathCollector::default() };
    collector.below(expression, EXPRESSION_DEPTH_MAX)?;
    collector.paths.pop().filter(|_| collector.paths.is_empty())
}

/// Whether a function reads members or elements of its arguments.
fn looks_inside(function: Function) -> bool {
    match function.signature().family {
        Family::Array | Family::Spatial | Family::Search | Family::Item => true,
        Family::TypeCheck | Family::String | Family::Conditional | Family::Math | Family::DateTime => false,
    }
}

impl Covered<'_> {
    /// As text, for an explanation.
    pub(crate) fn text(&self) -> String {
        match self {
            Covered::Values(values) => format!("the values at {}", values.path),
            Covered::Tuples(paths) => {
                let texts: Vec<String> = paths.iter().map(|values| values.path.to_string()).collect();
                format!("the values at {} side by side", texts.join(", "))
            }
            Covered::Folds(folds) => {
                let texts: Vec<String> = folds.iter().map(IndexFold::text).collect();
                texts.join(", ")
            }
        }
    }

    /// What is requested from the index in addition to the filter.
    pub(crate) fn lookups(&self) -> Vec<Lookup> {
        let asked = |fold: &IndexFold| match fold {
            IndexFold::All => None,
            IndexFold::Present(path) | IndexFold::Sum(path) | IndexFold::Extreme(path, _) => {
                Some(Lookup::Present(path.clone()))
            }
            IndexFold::Matching(known) => Some(known.lookup.clone()),
        };
        match self {
            Covered::Values(values) => vec![Lookup::Present(values.path.clone())],
            Covered::Tuples(paths) => {
                paths.iter().map(|values| Lookup::Present(values.path.clone())).collect()
            }
            Covered::Folds(folds) => folds.iter().filter_map(asked).collect(),
        }
    }

    /// Whether no other way can be cheaper.
    pub(crate) fn is_always_cheapest(&self) -> bool {
        match self {
            Covered::Values(_) | Covered::Tuples(_) => false,
            Covered::Folds(folds) => folds
                .iter()
                .all(|fold| matches!(fold, IndexFold::All | IndexFold::Present(_) | IndexFold::Matching(_))),
        }
    }
}

impl IndexFold {
    fn text(&self) -> String {
        match self {
            IndexFold::All => "the count".to_owned(),
            IndexFold::Present(path) => format!("the count of {path}"),
            IndexFold::Matching(known) => {
                format!("the count where {}", known.text.as_deref().unwrap_or_default())
            }
            IndexFold::Sum(path) => format!("the values at {path}"),
            IndexFold::Extreme(path, Direction::Forward) => format!("the first value at {path}"),
            IndexFold::Extreme(path, Direction::Backward) => format!("the last value at {path}"),
        }
    }
}
