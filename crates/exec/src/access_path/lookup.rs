//! From a filter to a lookup that finds every document that passes the filter, and perhaps others, which are
//! re-checked.
//!
//! The filter is read in its normal form, [`Predicate`].

use eval::{EXPRESSION_DEPTH_MAX, LikeRest, Meter, like_prefix};
use partition::index::{Coverage, IndexPath, IndexReader, IndexStep, Lookup, ValueRange};
use plan::query::{
    Comparison, Constants, ElementMatch, Expression, Predicate, Query, Requirement, SortKey, TextPattern,
};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use value::{Kind, Value};

use super::covered::only_names;
use super::index_condition::{
    ConditionPath, IndexCondition, bounds_of, conjunction, different, equal, joined, of_kind, one_sided,
    starting_with, without,
};
use super::tested::tested;
use super::{computed, spatial};
use crate::task::OpenPart;

/// What an index reports about a filter.
pub(crate) struct FilterAnalysis {
    /// `None` if the index cannot help.
    pub(crate) known: Option<IndexCondition>,
    /// Whether every index with the same rules gives the same answer, whatever values it has.
    pub(crate) is_by_rules: bool,
}

/// Which values may be tested.
#[derive(Clone, Copy)]
pub(crate) enum Tests<'t> {
    None,
    /// Only those in these ranges.
    Of(&'t [ValueRange]),
    All,
}

/// What the index of a part knows about the filter of a query; with text if the part is explained.
pub(crate) fn of_filter(
    query: &Query,
    index: &IndexReader,
    tests: Tests<'_>,
    open: &OpenPart,
) -> FilterAnalysis {
    let (Some(root), Some(filter)) = (query.root_path(), query.filter.as_ref()) else {
        return FilterAnalysis { known: None, is_by_rules: true };
    };
    let (is_explained, is_by_rules, meter) = (open.is_explained, Cell::new(true), &open.meter);
    let reader = FilterReader { index, root, tests, is_explained, is_by_rules, meter };
    let known = reader.condition(Requirement::of_filter(filter), EXPRESSION_DEPTH_MAX);
    FilterAnalysis { known, is_by_rules: reader.is_by_rules.get() }
}

/// What an index knows about any condition on a document, without tests; with text.
pub(crate) fn explained_condition(condition: &Expression, index: &IndexReader) -> Option<IndexCondition> {
    // Without tests of values nothing is counted.
    let meter = &Arc::default();
    let (root, is_by_rules) = (Vec::new(), Cell::new(true));
    let reader = FilterReader { index, root, tests: Tests::None, is_explained: true, is_by_rules, meter };
    reader.condition(Requirement::of_filter(condition), EXPRESSION_DEPTH_MAX)
}

/// The path of an expression in a document, if the index knows every document there.
pub(crate) fn path(expression: &Expression, index: &IndexReader) -> Option<IndexPath> {
    path_of(&expression.document_path()?, index)
}

/// The path with these names, if the index knows every document there.
pub(crate) fn path_of(names: &[&str], index: &IndexReader) -> Option<IndexPath> {
    covered(index, IndexPath::property(names.iter().map(|name| IndexStep::Name(name))))
}

fn covered(index: &IndexReader, path: IndexPath) -> Option<IndexPath> {
    (index.covers(&path) == Coverage::Whole).then_some(path)
}

/// The index path of a sort key, if the index knows every document there.
pub(crate) fn sort_path(key: &SortKey, query: &Query, index: &IndexReader) -> Option<IndexPath> {
    covered(index, key_path(key, query, index)?)
}

fn key_path(key: &SortKey, query: &Query, index: &IndexReader) -> Option<IndexPath> {
    match &key.path {
        Some(path) => Some(IndexPath::property(path.segments().map(IndexStep::Name))),
        None if query.root_path()?.is_empty() => {
            Some(IndexPath::property(computed::steps(index, &key.expression)?))
        }
        None => None,
    }
}

/// The path of a composite index that has the order of these keys, and whether it must be walked backwards.
pub(crate) fn composite_path(
    keys: &[SortKey],
    query: &Query,
    index: &IndexReader,
) -> Option<(IndexPath, bool)> {
    let path_of = |is_turned: bool| {
        let member = |key: &SortKey| Some((key_path(key, query, index)?, key.is_backwards() != is_turned));
        let members: Option<Vec<_>> = keys.iter().map(member).collect();
        Some((covered(index, IndexPath::composite(members?))?, is_turned))
    };
    path_of(false).or_else(|| path_of(true))
}

struct FilterReader<'a> {
    index: &'a IndexReader,
    root: Vec<&'a str>,
    tests: Tests<'a>,
    /// Whether texts are produced for an explanation.
    is_explained: bool,
    /// Whether the answer so far is independent of the values in the index.
    is_by_rules: Cell<bool>,
    /// Counts the steps of tests.
    meter: &'a Arc<Meter>,
}

impl FilterReader<'_> {
    /// The documents where an expression has the required truth value.
    fn condition(&self, requirement: Requirement<'_>, levels_left: usize) -> Option<IndexCondition> {
        let levels_left = levels_left.checked_sub(1)?;
        let Requirement { expression, truth } = requirement.without_negations();
        let known = match requirement.predicate() {
            Predicate::All(members) => {
                // Each member that an index knows narrows the documents.
                conjunction(members.iter().map(|member| self.condition(member, levels_left)).collect())
            }
            Predicate::Any(members) => {
                // Every member must be known.
                let known = members.iter().map(|member| self.condition(member, levels_left));
                known.collect::<Option<Vec<IndexCondition>>>().map(|known| joined(known, " or ", Lookup::Or))
            }
            Predicate::Truth { operand, truth } => {
                self.target(operand).map(|target| equal(&target, &Value::Bool(truth)))
            }
            Predicate::Compare { operand, comparison, constant } => {
                self.comparison(operand, comparison, constant)
            }
            Predicate::Listed { operand, constants, truth } => self.listed(operand, constants, truth),
            Predicate::Between { operand, low, high } => {
                let low = low.and_then(|low| self.comparison(operand, Comparison::GreaterOrEqual, low));
                let high = high.and_then(|high| self.comparison(operand, Comparison::LessOrEqual, high));
                conjunction(vec![low, high])
            }
            Predicate::Defined { operand, truth } => {
                self.target(operand).map(|target| target.present()).map(|present| unless(truth, present))
            }
            Predicate::OfKind { operand, kind, truth } => {
                self.target(operand).map(|target| unless(truth, of_kind(&target, kind)))
            }
            Predicate::Text { operand, pattern, truth: true } => self.text(expression, operand, pattern),
            Predicate::Contains { operand, elements, matching, truth } => {
                self.containing(operand, elements, matching, truth)
            }
            Predicate::Meets { operand, constant } => {
                let names = self.names(operand);
                names.and_then(|names| spatial::of_meeting(self.index, &names, constant, self.is_explained))
            }
            Predicate::CompareValues { .. } | Predicate::Text { truth: false, .. } | Predicate::Other => None,
        };
        let is_computed = |requirement: Requirement<'_>| {
            let target = self.computed_target(requirement.expression, None)?;
            Some(equal(&target, &Value::Bool(requirement.truth)))
        };
        known
            .or_else(|| is_computed(Requirement { expression, truth }))
            .or_else(|| is_computed(requirement))
            .or_else(|| self.tested(expression, truth, (Bound::Unbounded, Bound::Unbounded)))
    }

    /// Tests the condition on the distinct values of the only path that it depends on.
    fn tested(
        &self,
        condition: &Expression,
        wanted: bool,
        bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Option<IndexCondition> {
        self.is_by_rules.set(false);
        if matches!(self.tests, Tests::None) {
            return None;
        }
        let names = only_names(condition)?;
        let whole: Vec<&str> = self.root.iter().copied().chain(names.iter().copied()).collect();
        let target = self.condition_path(path_of(&whole, self.index)?);
        let (low, high) = bounds;
        let range = ValueRange { path: target.path.clone(), low, high };
        let is_allowed = match self.tests {
            Tests::None => false,
            Tests::Of(ranges) => ranges.contains(&range),
            Tests::All => true,
        };
        let ValueRange { low, high, .. } = range;
        is_allowed.then(|| tested(&target, &names, condition, wanted, (low, high), self.meter))
    }

    /// A string that starts with a constant, equals it, or matches a pattern: then it starts with the pattern's prefix.
    fn text(
        &self,
        expression: &Expression,
        operand: &Expression,
        pattern: TextPattern<'_>,
    ) -> Option<IndexCondition> {
        let (text, escape) = match pattern {
            TextPattern::Start(start) => return Some(starting_with(&self.target(operand)?, start)),
            TextPattern::Whole(text) => return Some(equal(&self.target(operand)?, text)),
            TextPattern::Like(text, escape) => (text, escape),
            TextPattern::Search => return None,
        };
        let (letters, rest) = like_prefix(text, escape)?;
        let target = self.target(operand)?;
        match rest {
            LikeRest::Nothing => Some(equal(&target, &Value::String(letters))),
            LikeRest::Anything => Some(starting_with(&target, &letters)),
            LikeRest::Pattern => {
                let beginning = starting_with(&target, &letters);
                let bounds = bounds_of(&letters);
                let tested = self.tested(expression, true, bounds);
                let has_letters = !letters.is_empty();
                tested.or_else(|| has_letters.then_some(IndexCondition { is_exact: false, ..beginning }))
            }
        }
    }

    fn comparison(
        &self,
        operand: &Expression,
        comparison: Comparison,
        constant: &Value,
    ) -> Option<IndexCondition> {
        let names = |part| self.names(part);
        let compared = (operand, comparison, constant);
        let distance = spatial::of_comparison(self.index, names, compared, self.is_explained);
        if distance.is_some() {
            return distance;
        }
        let target = self.target(operand)?;
        match comparison {
            Comparison::Equal => Some(equal(&target, constant)),
            Comparison::NotEqual => Some(different(&target, vec![equal(&target, constant)])),
            Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
                one_sided(&target, comparison, constant)
            }
        }
    }

    fn listed(&self, operand: &Expression, constants: Constants<'_>, truth: bool) -> Option<IndexCondition> {
        let target = self.target(operand)?;
        let equals = constants.iter().map(|constant| equal(&target, constant)).collect();
        Some(if truth { joined(equals, " or ", Lookup::Or) } else { different(&target, equals) })
    }

    /// Arrays that contain one or all of these elements, or arrays that do not.
    fn containing(
        &self,
        array: &Expression,
        elements: &[Expression],
        matching: ElementMatch,
        truth: bool,
    ) -> Option<IndexCondition> {
        let (word, join): (_, fn(Vec<Lookup>) -> Lookup) = match matching {
            ElementMatch::Any => (" or ", Lookup::Or),
            ElementMatch::All => (" and ", Lookup::And),
            ElementMatch::Partial => return None,
        };
        let named = || {
            let names = self.names(array)?;
            let steps = names.iter().map(|name| IndexStep::Name(name)).chain([IndexStep::Elements]);
            covered(self.index, IndexPath::property(steps)).map(|path| self.condition_path(path))
        };
        let target = named().or_else(|| self.computed_target(array, Some(IndexStep::Elements)))?;
        let equals = elements.iter().map(|element| {
            let Expression::Constant(element) = element else { return None };
            Some(equal(&target, element))
        });
        let containing = joined(equals.collect::<Option<Vec<IndexCondition>>>()?, word, join);
        if truth {
            return Some(containing);
        }
        let arrays = of_kind(&self.target(array)?, Kind::Array);
        Some(joined(vec![arrays, without(containing)], " and ", Lookup::And))
    }

    /// The path of an expression, if the index knows every document there.
    fn target(&self, expression: &Expression) -> Option<ConditionPath> {
        let named = || path_of(&self.names(expression)?, self.index).map(|path| self.condition_path(path));
        named().or_else(|| self.computed_target(expression, None))
    }

    /// The path in a computed property whose value an expression is, optionally one step further.
    fn computed_target(
        &self,
        expression: &Expression,
        further: Option<IndexStep<'_>>,
    ) -> Option<ConditionPath> {
        if !self.root.is_empty() {
            return None;
        }
        let mut steps = computed::steps(self.index, expression)?;
        steps.extend(further);
        covered(self.index, IndexPath::property(steps)).map(|path| self.condition_path(path))
    }

    fn condition_path(&self, path: IndexPath) -> ConditionPath {
        ConditionPath { path, is_explained: self.is_explained }
    }

    /// The names from the document to a value.
    fn names<'e>(&'e self, expression: &'e Expression) -> Option<Vec<&'e str>> {
        let names = expression.document_path()?;
        if self.root.is_empty() {
            return Some(names);
        }
        Some(self.root.iter().copied().chain(names).collect())
    }
}

/// What is known, or its complement.
fn unless(truth: bool, known: IndexCondition) -> IndexCondition {
    if truth { known } else { without(known) }
}
