//! Which queries an index answers by itself, and what it is asked for.
//!
//! Aggregates over everything are counts of documents, values of a path, or the first or last of them. Groups and
//! different results that look at one path of the document alone are made of the different values there, each with
//! the number of documents that have it; those that look at a few paths are made of the values there side by side. The
//! filter must be one that the index answers exactly.

use eval::EXPRESSION_DEPTH_MAX;
use kv::Direction;
use partition::index::{IndexPath, IndexReader, Lookup};
use plan::query::{Aggregate, AggregateKind, Expression, Family, Function, Order, Projection, Source};

use super::known::Known;
use super::lookup;
use crate::computed::is_document;
use crate::program::{Input, Layer, Shape};

/// What is asked of an index alone.
#[derive(Debug)]
pub(crate) enum Covered<'l> {
    /// The aggregates over everything, in their order.
    Folds(Vec<Fold>),
    /// Rows made of the values at one path.
    Values(Values<'l>),
    /// Rows made of the values at several paths side by side.
    Tuples(Vec<Values<'l>>),
}

/// Where an aggregate over everything comes from.
#[derive(Debug)]
pub(crate) enum Fold {
    /// The number of documents.
    All,
    /// The number of documents that have a value there.
    Present(IndexPath),
    /// The number of documents that meet a condition too.
    Matching(Known),
    /// All values there.
    Sum(IndexPath),
    /// The first value there in one direction.
    Extreme(IndexPath, Direction),
}

/// Rows made of the values at one path.
#[derive(Debug)]
pub(crate) struct Values<'l> {
    /// The names that lead there.
    pub(crate) names: Vec<&'l str>,
    pub(crate) path: IndexPath,
    /// Whether nothing is computed of the values, so that equal numbers of different kinds are as one.
    pub(crate) is_plain: bool,
    /// Whether it matters which documents are the first and the last with a value.
    pub(crate) needs_ends: bool,
}

/// What an index by itself can say of a layer, without regard to its filter.
pub(crate) fn covered<'l>(layer: &'l Layer, index: &IndexReader) -> Option<Covered<'l>> {
    let query = &layer.query;
    let is_plain = matches!(&query.sources[..], [Source::Container { path }] if path.is_empty());
    if !is_plain || layer.input != Input::Documents {
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

fn fold(aggregate: &Aggregate, index: &IndexReader) -> Option<Fold> {
    let argument = &aggregate.argument;
    match aggregate.kind {
        AggregateKind::Count if is_always_there(argument) => Some(Fold::All),
        AggregateKind::Count => Some(Fold::Present(lookup::path(argument, index)?)),
        AggregateKind::CountIf => {
            lookup::told_of_condition(argument, index).filter(|known| known.is_exact).map(Fold::Matching)
        }
        AggregateKind::Sum | AggregateKind::Avg => Some(Fold::Sum(lookup::path(argument, index)?)),
        AggregateKind::Min => Some(Fold::Extreme(lookup::path(argument, index)?, Direction::Forward)),
        AggregateKind::Max => Some(Fold::Extreme(lookup::path(argument, index)?, Direction::Backward)),
        AggregateKind::MakeList | AggregateKind::MakeSet => None,
    }
}

/// Whether an expression has a value for every document, and which one does not matter to a count.
fn is_always_there(expression: &Expression) -> bool {
    is_document(expression) || matches!(expression, Expression::Constant(_))
}

fn groups<'l>(
    keys: &'l [Expression],
    aggregates: &'l [Aggregate],
    index: &IndexReader,
) -> Option<Covered<'l>> {
    let mut look = Look::default();
    keys.iter().try_for_each(|key| look.at(key, EXPRESSION_DEPTH_MAX))?;
    for Aggregate { kind, argument } in aggregates {
        match kind {
            AggregateKind::Count if is_document(argument) => continue,
            AggregateKind::Min | AggregateKind::Max => look.has_extremes = true,
            // Of equal numbers sets prefer some kinds, so they must see the documents.
            AggregateKind::MakeSet | AggregateKind::CountIf => look.is_plain = false,
            AggregateKind::MakeList => return None,
            AggregateKind::Count | AggregateKind::Sum | AggregateKind::Avg => {}
        }
        look.at(argument, EXPRESSION_DEPTH_MAX)?;
    }
    look.covered(index, false)
}

fn distinct<'l>(layer: &'l Layer, index: &IndexReader) -> Option<Covered<'l>> {
    let mut look = Look::default();
    match &layer.query.projection {
        Projection::Row(_) => return None,
        Projection::Value(value) => look.at(value, EXPRESSION_DEPTH_MAX)?,
        Projection::Object(members) => {
            members.iter().try_for_each(|(_, member)| look.at(member, EXPRESSION_DEPTH_MAX))?;
        }
    }
    match &layer.query.order {
        Order::None => look.covered(index, false),
        Order::Keys(keys) => {
            keys.iter().try_for_each(|key| look.at(&key.expression, EXPRESSION_DEPTH_MAX))?;
            look.covered(index, true)
        }
        Order::Rank(_) => None,
    }
}

/// Most paths whose values are put side by side.
const PATHS_MAX: usize = 4;

/// Looks for the paths that expressions look at.
struct Look<'l> {
    paths: Vec<Vec<&'l str>>,
    is_plain: bool,
    /// Whether there are extremes, which prefer some kinds of equal numbers.
    has_extremes: bool,
    /// Whether expressions shall be tried on values, without time and without what is inside of them.
    is_for_tests: bool,
}

impl Default for Look<'_> {
    fn default() -> Self {
        Look { paths: Vec::new(), is_plain: true, has_extremes: false, is_for_tests: false }
    }
}

impl<'l> Look<'l> {
    /// A whole expression; nothing if it depends on more than the values at few paths.
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
                let is_out_of_reach = function.tells_fixed_time() || looks_inside(*function);
                let is_of_the_row = function.is_fickle() || *function == Function::DocumentId;
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
        // Side by side it is seen which documents decide.
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

/// The names that lead to the one value that an expression depends on; nothing if it depends on more, be it time, or
/// asks for something inside of the value, which an index does not know.
pub(crate) fn only_names(expression: &Expression) -> Option<Vec<&str>> {
    let mut look = Look { is_for_tests: true, ..Look::default() };
    look.below(expression, EXPRESSION_DEPTH_MAX)?;
    look.paths.pop().filter(|_| look.paths.is_empty())
}

/// Whether a function looks into its arguments.
fn looks_inside(function: Function) -> bool {
    match function.signature().family {
        Family::Array | Family::Spatial | Family::Search | Family::Item => true,
        Family::TypeCheck | Family::String | Family::Conditional | Family::Math | Family::DateTime => false,
    }
}

impl Covered<'_> {
    /// In words, for an explanation.
    pub(crate) fn text(&self) -> String {
        match self {
            Covered::Values(values) => format!("the values at {}", values.path),
            Covered::Tuples(paths) => {
                let texts: Vec<String> = paths.iter().map(|values| values.path.to_string()).collect();
                format!("the values at {} side by side", texts.join(", "))
            }
            Covered::Folds(folds) => {
                let texts: Vec<String> = folds.iter().map(Fold::text).collect();
                texts.join(", ")
            }
        }
    }

    /// What the index is asked for beside the filter.
    pub(crate) fn lookups(&self) -> Vec<Lookup> {
        let asked = |fold: &Fold| match fold {
            Fold::All => None,
            Fold::Present(path) | Fold::Sum(path) | Fold::Extreme(path, _) => {
                Some(Lookup::Present(path.clone()))
            }
            Fold::Matching(known) => Some(known.lookup.clone()),
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
            Covered::Folds(folds) => {
                folds.iter().all(|fold| matches!(fold, Fold::All | Fold::Present(_) | Fold::Matching(_)))
            }
        }
    }
}

impl Fold {
    fn text(&self) -> String {
        match self {
            Fold::All => "the count".to_owned(),
            Fold::Present(path) => format!("the count of {path}"),
            Fold::Matching(known) => {
                format!("the count where {}", known.text.as_deref().unwrap_or_default())
            }
            Fold::Sum(path) => format!("the values at {path}"),
            Fold::Extreme(path, Direction::Forward) => format!("the first value at {path}"),
            Fold::Extreme(path, Direction::Backward) => format!("the last value at {path}"),
        }
    }
}
