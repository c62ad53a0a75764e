//! Which places of documents the filter of a query compares, and how. By the query alone, whatever indexes there are.

use eval::EXPRESSION_DEPTH_MAX;
use model::policy::IndexSegment;
use plan::query::{Comparison, Expression, Predicate, Query, Requirement};

use super::Impact;

/// A place of documents that is compared with something that no document changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) path: Vec<IndexSegment>,
    pub(super) manner: Manner,
    /// Whether no document passes that fails this comparison.
    pub(super) is_needed: bool,
}

/// How a place is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// With one value.
    Equality,
    /// With a stretch of values.
    Range,
    /// With several values, or by a part of it.
    Search,
    /// That it is something else, or is there at all.
    Difference,
}

impl Manner {
    pub(super) fn impact(self) -> Impact {
        match self {
            Manner::Equality | Manner::Range | Manner::Search => Impact::High,
            Manner::Difference => Impact::Low,
        }
    }
}

/// All comparisons of a filter, as they are written.
pub(super) fn compared(query: &Query) -> Vec<Compared> {
    let (Some(filter), Some(root)) = (&query.filter, query.root_path()) else {
        return Vec::new();
    };
    let mut reading = Reading { root, found: Vec::new() };
    reading.condition(Requirement::of_filter(filter), true, EXPRESSION_DEPTH_MAX);
    reading.found
}

struct Reading<'q> {
    root: Vec<&'q str>,
    found: Vec<Compared>,
}

impl<'q> Reading<'q> {
    /// Takes the comparisons of an expression that must have a truth value.
    fn condition(&mut self, requirement: Requirement<'q>, is_needed: bool, levels_left: usize) {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return;
        };
        let (operand, manner) = match requirement.predicate() {
            Predicate::All(members) => {
                return members.iter().for_each(|member| self.condition(member, is_needed, levels_left));
            }
            Predicate::Any(members) => {
                return members.iter().for_each(|member| self.condition(member, false, levels_left));
            }
            Predicate::Contains { operand, truth, .. } => {
                if let Some(mut path) = self.path(operand) {
                    path.push(IndexSegment::Elements);
                    self.found.push(Compared { path, manner: found_or_not(truth), is_needed });
                }
                return;
            }
            Predicate::Truth { operand, .. } => (operand, Manner::Equality),
            Predicate::Compare { operand, comparison, .. } => (operand, manner(comparison)),
            Predicate::Listed { operand, truth, .. } | Predicate::Text { operand, truth, .. } => {
                (operand, found_or_not(truth))
            }
            Predicate::Between { operand, low: Some(_), high: Some(_) } => (operand, Manner::Range),
            Predicate::Defined { operand, .. } | Predicate::OfKind { operand, .. } => {
                (operand, Manner::Difference)
            }
            Predicate::CompareValues { .. }
            | Predicate::Between { .. }
            | Predicate::Meets { .. }
            | Predicate::Other => return,
        };
        if let Some(path) = self.path(operand) {
            self.found.push(Compared { path, manner, is_needed });
        }
    }

    /// The steps from the document to a place; nothing for what is no place of the document.
    fn path(&self, expression: &Expression) -> Option<Vec<IndexSegment>> {
        let names = expression.document_path()?;
        let names = self.root.iter().copied().chain(names);
        Some(names.map(|name| IndexSegment::Name(name.to_owned())).collect())
    }
}

fn found_or_not(truth: bool) -> Manner {
    if truth { Manner::Search } else { Manner::Difference }
}

fn manner(comparison: Comparison) -> Manner {
    match comparison {
        Comparison::Equal => Manner::Equality,
        Comparison::NotEqual => Manner::Difference,
        Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
            Manner::Range
        }
    }
}
