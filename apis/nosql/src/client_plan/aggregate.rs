//! Aggregates: the partial results of a range, so that the client can combine those of all ranges.
//!
//! `AVG` becomes sum and count. `MIN` and `MAX` are returned twice: alone, and with a count that distinguishes a range
//! without any value from one whose least value is undefined.

use super::{Fold, Unmergeable};
use plan::query::AggregateKind;
use sql::ast::{Expression, ExpressionKind};
use sql::{aggregate_kind, holds_aggregate};

/// How an expression of the select list is combined; `None` if it contains no aggregate.
pub(super) fn fold(expression: &Expression) -> Result<Option<(Fold, Expression)>, Unmergeable> {
    if let ExpressionKind::Call(name, arguments) = &expression.kind
        && let (Some(kind), [argument]) = (aggregate_kind(name), arguments.as_slice())
    {
        return Ok(Some((fold_of(kind), partial(kind, argument))));
    }
    if holds_aggregate(expression) { Err(Unmergeable::Composition) } else { Ok(None) }
}

fn fold_of(kind: AggregateKind) -> Fold {
    match kind {
        AggregateKind::Count => Fold::Count,
        AggregateKind::CountIf => Fold::CountIf,
        AggregateKind::Sum => Fold::Sum,
        AggregateKind::Avg => Fold::Average,
        AggregateKind::Min => Fold::Min,
        AggregateKind::Max => Fold::Max,
        AggregateKind::MakeList => Fold::MakeList,
        AggregateKind::MakeSet => Fold::MakeSet,
    }
}

/// `{"item": …}`
fn partial(kind: AggregateKind, argument: &Expression) -> Expression {
    let of = |kind: AggregateKind| Expression::call(kind.name(), vec![argument.clone()]);
    let counted = |name: &str, kind: AggregateKind| {
        Expression::object([(name, of(kind)), ("count", of(AggregateKind::Count))])
    };
    match kind {
        AggregateKind::Count
        | AggregateKind::CountIf
        | AggregateKind::Sum
        | AggregateKind::MakeList
        | AggregateKind::MakeSet => Expression::object([("item", of(kind))]),
        AggregateKind::Avg => Expression::object([("item", counted("sum", AggregateKind::Sum))]),
        AggregateKind::Min => Expression::object([("item", of(kind)), ("item2", counted("min", kind))]),
        AggregateKind::Max => Expression::object([("item", of(kind)), ("item2", counted("max", kind))]),
    }
}
