//! Calls: resolves the function and checks the number of arguments and where it is allowed.

use super::Lowering;
use super::group::aggregate_kind;
use super::scope::Clause;
use crate::ast;
use crate::fault::{ArgumentRange, FaultKind, Limit, Span};
use crate::limits::USER_CALLS_MAX;
use plan::query::{AggregateKind, Expression, Function};
use value::Value;

/// The documented spelling of a function or aggregate, or the name itself if it is unknown.
pub(crate) fn canonical_function_name(name: &str) -> String {
    let aggregate = AggregateKind::ALL
        .into_iter()
        .map(AggregateKind::name)
        .find(|known| known.eq_ignore_ascii_case(name));
    let function = || Function::find(name).map(|function| function.signature().name);
    aggregate.or_else(function).unwrap_or(name).to_owned()
}

fn known_names() -> impl Iterator<Item = &'static str> {
    let functions = Function::ALL.iter().map(|function| function.signature().name);
    AggregateKind::ALL.into_iter().map(AggregateKind::name).chain(functions)
}

impl<'query> Lowering<'query> {
    /// A built-in function or an aggregate.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &'query [ast::Expression],
        span: Span,
    ) -> Expression {
        if let Some(kind) = aggregate_kind(name) {
            return match arguments {
                [argument] => self.aggregate(kind, argument, span),
                _ => {
                    let name = name.to_owned();
                    self.fault(
                        FaultKind::ArgumentCount { name, range: ArgumentRange { min: 1, max: Some(1) } },
                        span,
                    );
                    Expression::Undefined
                }
            };
        }
        let Some(function) = Function::find(name) else {
            if self.has_room() {
                let fault = FaultKind::UnknownFunction { name: name.to_owned(), suggestion: nearest(name) };
                self.fault(fault, name_span(name, span));
            }
            return Expression::Undefined;
        };
        let signature = function.signature();
        let range = ArgumentRange { min: signature.arguments_min, max: signature.arguments_max };
        if arguments.len() < range.min || range.max.is_some_and(|max| arguments.len() > max) {
            let name = signature.name.to_owned();
            self.fault(FaultKind::ArgumentCount { name, range }, span);
            return Expression::Undefined;
        }
        self.refuse_misplaced_score(function, span);
        let arguments = self.all(arguments);
        self.refuse_search_list_size(function, &arguments, span);
        Expression::Call(function, arguments)
    }

    fn refuse_misplaced_score(&mut self, function: Function, span: Span) {
        let is_score = matches!(function, Function::FullTextScore | Function::Rrf);
        if is_score && self.frame().clause != Clause::Rank {
            self.fault(FaultKind::MisplacedScore { name: function.signature().name }, span);
        }
    }

    fn refuse_search_list_size(&mut self, function: Function, arguments: &[Expression], span: Span) {
        let options = match (function, arguments.get(3)) {
            (Function::VectorDistance, Some(Expression::Constant(options))) => options,
            _ => return,
        };
        if let Some(size) = options.member("searchListSizeMultiplier")
            && !is_search_list_size(size)
        {
            self.fault(FaultKind::SearchListSize, span);
        }
    }

    /// A user-defined function.
    pub(super) fn user_call(
        &mut self,
        name: &str,
        arguments: &'query [ast::Expression],
        span: Span,
    ) -> Expression {
        self.user_calls += 1;
        if self.user_calls == USER_CALLS_MAX + 1 {
            self.fault(FaultKind::Limit { limit: Limit::UserCalls }, span);
        }
        Expression::UserCall(name.to_owned(), self.all(arguments))
    }
}

/// Whether this is an integer from 1 to 100.
fn is_search_list_size(size: &Value) -> bool {
    let range = Value::Int64(1)..=Value::Int64(100);
    let is_at_least = |low: &Value| value::compare(low.as_ref(), size.as_ref()).is_le();
    let is_at_most = |high: &Value| value::compare(size.as_ref(), high.as_ref()).is_le();
    let is_fraction = matches!(size, Value::Double(double) if double.fract() != 0.0);
    !is_fraction && is_at_least(range.start()) && is_at_most(range.end())
}

/// The span of the name: a call starts with it.
fn name_span(name: &str, call: Span) -> Span {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    Span { start: call.start, end: call.start.saturating_add(length) }
}

/// The most similar known name, if any is similar enough.
fn nearest(name: &str) -> Option<&'static str> {
    let tolerated = ((name.len() + 1) / 3).clamp(1, 3);
    // Long names are not similar to any of ours, and computing the distance takes time.
    if name.len() > 40 {
        return None;
    }
    known_names()
        .map(|known| (distance(&name.to_ascii_lowercase(), &known.to_ascii_lowercase()), known))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The edit distance: letters to insert, remove or replace.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other_letter) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != other_letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn names_that_are_near() {
        assert_eq!(nearest("LOWR"), Some("LOWER"));
        assert_eq!(nearest("starts_with"), Some("STARTSWITH"));
        assert_eq!(nearest("CUONT"), Some("COUNT"));
        assert_eq!(nearest("BADFUNC"), None);
        assert_eq!(nearest("x"), None);
    }
}
