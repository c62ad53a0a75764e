//! Which places of documents the filter of a query compares, and how. By the query alone, whatever indexes there are.

use eval::EXPRESSION_DEPTH_MAX;
use model::policy::IndexSegment;
use plan::query::{BinaryOperator, Expression, Function, PathStep, Query, Source, UnaryOperator};

use super::Impact;
use crate::computed::DOCUMENT;

/// A place of documents that is compared with something that no document changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) path: Vec<IndexSegment>,
    pub(super) comparison: Comparison,
    /// Whether no document passes that fails this comparison.
    pub(super) is_needed: bool,
}

/// How a place is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// With one value.
    Equality,
    /// With a stretch of values.
    Range,
    /// With several values, or by a part of it.
    Search,
    /// That it is something else, or is there at all.
    Difference,
}

impl Comparison {
    pub(super) fn impact(self) -> Impact {
        match self {
            Comparison::Equality | Comparison::Range | Comparison::Search => Impact::High,
            Comparison::Difference => Impact::Low,
        }
    }
}

/// All comparisons of a filter, as they are written.
pub(super) fn compared(query: &Query) -> Vec<Compared> {
    let (Some(filter), Some(root)) = (&query.filter, root(query)) else {
        return Vec::new();
    };
    let mut reading = Reading { root, found: Vec::new() };
    reading.condition(filter, true, true, EXPRESSION_DEPTH_MAX);
    reading.found
}

/// The steps that lead from the document to the first source.
fn root(query: &Query) -> Option<Vec<IndexSegment>> {
    let Some(Source::Container { path }) = query.sources.first() else {
        return None;
    };
    let steps = path.iter().map(|step| match step {
        PathStep::Name(name) => Some(IndexSegment::Name(name.clone())),
        PathStep::Position(_) => None,
    });
    steps.collect()
}

/// Functions that look for a text in a text.
const SEARCHES: [Function; 5] = [
    Function::StartsWith,
    Function::EndsWith,
    Function::Contains,
    Function::StringEquals,
    Function::RegexMatch,
];
/// Functions that ask what a value is, or whether there is one.
const TESTS: [Function; 7] = [
    Function::IsDefined,
    Function::IsNull,
    Function::IsBool,
    Function::IsNumber,
    Function::IsString,
    Function::IsArray,
    Function::IsObject,
];

struct Reading {
    root: Vec<IndexSegment>,
    found: Vec<Compared>,
}

impl Reading {
    /// Takes the comparisons of an expression that is to be true, or false if `wanted` says so.
    fn condition(&mut self, expression: &Expression, wanted: bool, is_needed: bool, levels_left: usize) {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return;
        };
        match (expression, wanted) {
            (Expression::And(parts), _) => {
                parts.iter().for_each(|part| self.condition(part, wanted, is_needed && wanted, levels_left));
            }
            (Expression::Or(parts), _) => {
                parts.iter().for_each(|part| self.condition(part, wanted, is_needed && !wanted, levels_left));
            }
            (Expression::Unary(UnaryOperator::Not, part), _) => {
                self.condition(part, !wanted, is_needed, levels_left);
            }
            (Expression::Binary(operator, left, right), _) => {
                if let Some(comparison) = comparison(*operator, wanted) {
                    self.between(left, right, comparison, is_needed);
                    self.between(right, left, comparison, is_needed);
                }
            }
            (Expression::In(operand, list), _) if list.iter().all(is_constant) => {
                self.add(operand, found_or_not(wanted), is_needed);
            }
            (Expression::Between(parts), true) if parts[1..].iter().all(is_constant) => {
                self.add(&parts[0], Comparison::Range, is_needed);
            }
            (Expression::Like(operand, pattern), _) if is_constant(&pattern.pattern) => {
                self.add(operand, found_or_not(wanted), is_needed);
            }
            (Expression::Call(function, arguments), _) => self.call(*function, arguments, wanted, is_needed),
            (Expression::Member(..), _) => self.add(expression, Comparison::Equality, is_needed),
            _ => {}
        }
    }

    fn between(&mut self, place: &Expression, with: &Expression, comparison: Comparison, is_needed: bool) {
        if is_constant(with) {
            self.add(place, comparison, is_needed);
        }
    }

    fn call(&mut self, function: Function, arguments: &[Expression], wanted: bool, is_needed: bool) {
        let [place, others @ ..] = arguments else {
            return;
        };
        if !others.iter().all(is_constant) {
            return;
        }
        if function == Function::ArrayContains {
            if let Some(mut path) = self.path(place) {
                path.push(IndexSegment::Elements);
                self.found.push(Compared { path, comparison: found_or_not(wanted), is_needed });
            }
        } else if SEARCHES.contains(&function) {
            self.add(place, found_or_not(wanted), is_needed);
        } else if TESTS.contains(&function) {
            self.add(place, Comparison::Difference, is_needed);
        }
    }

    fn add(&mut self, place: &Expression, comparison: Comparison, is_needed: bool) {
        if let Some(path) = self.path(place) {
            self.found.push(Compared { path, comparison, is_needed });
        }
    }

    /// The steps from the document to a place; nothing for what is no place of the document.
    fn path(&self, expression: &Expression) -> Option<Vec<IndexSegment>> {
        let mut names = Vec::new();
        let mut base = expression;
        while let Expression::Member(inner, name) = base {
            names.push(IndexSegment::Name(name.clone()));
            base = inner;
        }
        if *base != Expression::Slot(DOCUMENT) || names.is_empty() {
            return None;
        }
        names.extend(self.root.iter().rev().cloned());
        names.reverse();
        Some(names)
    }
}

fn is_constant(expression: &Expression) -> bool {
    matches!(expression, Expression::Constant(_))
}

fn found_or_not(wanted: bool) -> Comparison {
    if wanted { Comparison::Search } else { Comparison::Difference }
}

/// What a comparison with an operator is, or with its opposite; nothing for operators that compare nothing.
fn comparison(operator: BinaryOperator, wanted: bool) -> Option<Comparison> {
    match operator {
        BinaryOperator::Equal if wanted => Some(Comparison::Equality),
        BinaryOperator::NotEqual if !wanted => Some(Comparison::Equality),
        BinaryOperator::Equal | BinaryOperator::NotEqual => Some(Comparison::Difference),
        BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => Some(Comparison::Range),
        BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::BitAnd
        | BinaryOperator::BitOr
        | BinaryOperator::BitXor
        | BinaryOperator::ShiftLeft
        | BinaryOperator::ShiftRight
        | BinaryOperator::ShiftRightUnsigned => None,
    }
}
