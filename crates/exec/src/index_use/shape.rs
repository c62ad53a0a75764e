//! Which paths the filter of a query compares, and how. Derived from the query alone, whatever indexes exist.

use eval::EXPRESSION_DEPTH_MAX;
use model::policy::IndexSegment;
use plan::query::{Comparison, Expression, Predicate, Query, Requirement};

use super::Impact;

/// A path that is compared with something that does not depend on the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) path: Vec<IndexSegment>,
    pub(super) kind: ComparisonKind,
    /// Whether every document that passes the filter meets this comparison.
    pub(super) is_needed: bool,
}

/// How a path is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonKind {
    /// With one value.
    Equality,
    /// With a range of values.
    Range,
    /// With several values, or by a part of the value.
    Search,
    /// For inequality or existence.
    Difference,
}

impl ComparisonKind {
    pub(super) fn impact(self) -> Impact {
        match self {
            ComparisonKind::Equality | ComparisonKind::Range | ComparisonKind::Search => Impact::High,
            ComparisonKind::Difference => Impact::Low,
        }
    }
}

/// All comparisons of a filter, in the order of the text.
pub(super) fn compared(query: &Query) -> Vec<Compared> {
    let (Some(filter), Some(root)) = (&query.filter, query.root_path()) else {
        return Vec::new();
    };
    let mut collector = ComparisonCollector { root, found: Vec::new() };
    collector.condition(Requirement::of_filter(filter), true, EXPRESSION_DEPTH_MAX);
    collector.found
}

struct ComparisonCollector<'q> {
    root: Vec<&'q str>,
    found: Vec<Compared>,
}

impl<'q> ComparisonCollector<'q> {
    /// Adds the comparisons of an expression with a required truth value.
    fn condition(&mut self, requirement: Requirement<'q>, is_needed: bool, levels_left: usize) {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return;
        };
        let (operand, kind) = match requirement.predicate() {
            Predicate::All(members) => {
                return members.iter().for_each(|member| self.condition(member, is_needed, levels_left));
            }
            Predicate::Any(members) => {
                return members.iter().for_each(|member| self.condition(member, false, levels_left));
            }
            Predicate::Contains { operand, truth, .. } => {
                if let Some(mut path) = self.path(operand) {
                    path.push(IndexSegment::Elements);
                    self.found.push(Compared { path, kind: search_unless_negated(truth), is_needed });
                }
                return;
            }
            Predicate::Truth { operand, .. } => (operand, ComparisonKind::Equality),
            Predicate::Compare { operand, comparison, .. } => (operand, comparison_kind(comparison)),
            Predicate::Listed { operand, truth, .. } | Predicate::Text { operand, truth, .. } => {
                (operand, search_unless_negated(truth))
            }
            Predicate::Between { operand, low: Some(_), high: Some(_) } => (operand, ComparisonKind::Range),
            Predicate::Defined { operand, .. } | Predicate::OfKind { operand, .. } => {
                (operand, ComparisonKind::Difference)
            }
            Predicate::CompareValues { .. }
            | Predicate::Between { .. }
            | Predicate::Meets { .. }
            | Predicate::Other => return,
        };
        if let Some(path) = self.path(operand) {
            self.found.push(Compared { path, kind, is_needed });
        }
    }

    /// The steps from the document to a value; `None` if the expression is not a path of the document.
    fn path(&self, expression: &Expression) -> Option<Vec<IndexSegment>> {
        let names = expression.document_path()?;
        let names = self.root.iter().copied().chain(names);
        Some(names.map(|name| IndexSegment::Name(name.to_owned())).collect())
    }
}

fn search_unless_negated(truth: bool) -> ComparisonKind {
    if truth { ComparisonKind::Search } else { ComparisonKind::Difference }
}

fn comparison_kind(comparison: Comparison) -> ComparisonKind {
    match comparison {
        Comparison::Equal => ComparisonKind::Equality,
        Comparison::NotEqual => ComparisonKind::Difference,
        Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
            ComparisonKind::Range
        }
    }
}
