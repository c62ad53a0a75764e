//! GROUP BY and aggregates: when rows become groups, and which references to a group are valid.

use super::Lowering;
use super::scope::Clause;
use crate::ast::{self, ExpressionKind, SelectList};
use crate::fault::{FaultKind, Limit, Span};
use crate::limits::AGGREGATES_MAX;
use plan::query::{Aggregate, AggregateKind, Expression};

/// The aggregate with this name in the documented spelling.
pub fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    AggregateKind::ALL.into_iter().find(|kind| kind.name() == name)
}

impl<'query> Lowering<'query> {
    /// The keys of the groups; `None` if rows are not grouped.
    pub(super) fn group_keys(&mut self, query: &'query ast::Query) -> Option<Vec<Expression>> {
        self.frame().clause = Clause::GroupBy;
        for key in &query.group_by {
            if holds(key, &|kind| matches!(kind, ExpressionKind::Subquery(..))) {
                self.fault(FaultKind::SubqueryInGroupBy, key.span);
            }
        }
        let keys: Vec<Expression> = query.group_by.iter().map(|key| self.expression(key)).collect();
        (!keys.is_empty() || selects_aggregate(query)).then_some(keys)
    }

    /// The group key that an expression of the select list equals, if any.
    pub(super) fn group_key(&self, expression: &ast::Expression) -> Option<Expression> {
        let frame = self.frames.last()?;
        if frame.clause == Clause::Aggregate {
            return None;
        }
        let position = frame.grouped_by?.iter().position(|key| key == expression)?;
        Some(Expression::GroupKey(position))
    }

    /// An aggregate in the current clause. Equal ones are computed once.
    pub(super) fn aggregate(
        &mut self,
        kind: AggregateKind,
        argument: &'query ast::Expression,
        span: Span,
    ) -> Expression {
        let misplaced = match self.frame().clause {
            Clause::Select => None,
            Clause::Aggregate => Some(FaultKind::NestedAggregate),
            Clause::From => Some(FaultKind::MisplacedAggregate { clause: "FROM" }),
            Clause::Where => Some(FaultKind::MisplacedAggregate { clause: "WHERE" }),
            Clause::GroupBy => Some(FaultKind::MisplacedAggregate { clause: "GROUP BY" }),
            Clause::OrderBy | Clause::Rank => Some(FaultKind::MisplacedAggregate { clause: "ORDER BY" }),
        };
        if let Some(fault) = misplaced {
            self.fault(fault, span);
            return Expression::Undefined;
        }
        if holds(argument, &|kind| matches!(kind, ExpressionKind::Subquery(..))) {
            self.fault(FaultKind::NestedAggregate, span);
            return Expression::Undefined;
        }
        self.frame().clause = Clause::Aggregate;
        let argument = self.expression(argument);
        self.frame().clause = Clause::Select;
        let aggregate = Aggregate { kind, argument };
        let aggregates = &mut self.frame().aggregates;
        if let Some(position) = aggregates.iter().position(|known| *known == aggregate) {
            return Expression::Aggregate(position);
        }
        if aggregates.len() >= AGGREGATES_MAX {
            self.fault(FaultKind::Limit { limit: Limit::Aggregates }, span);
            return Expression::Undefined;
        }
        aggregates.push(aggregate);
        Expression::Aggregate(aggregates.len() - 1)
    }
}

/// Whether the select list computes an aggregate of this query's rows.
pub(super) fn selects_aggregate(query: &ast::Query) -> bool {
    match &query.select.list {
        SelectList::Star(_) => false,
        SelectList::Value(value) => holds_aggregate(value),
        SelectList::Items(items) => items.iter().any(|item| holds_aggregate(&item.expression)),
    }
}

/// Whether an expression contains an aggregate, outside of subqueries.
pub fn holds_aggregate(expression: &ast::Expression) -> bool {
    holds(expression, &|kind| matches!(kind, ExpressionKind::Call(name, _) if aggregate_kind(name).is_some()))
}

/// Whether an expression or a part of it matches; subqueries are tested, but not searched.
fn holds(expression: &ast::Expression, is_such: &dyn Fn(&ExpressionKind) -> bool) -> bool {
    let any = |parts: &[ast::Expression]| parts.iter().any(|part| holds(part, is_such));
    is_such(&expression.kind)
        || match &expression.kind {
            ExpressionKind::Undefined
            | ExpressionKind::Null
            | ExpressionKind::Boolean(_)
            | ExpressionKind::Number(_)
            | ExpressionKind::String(_)
            | ExpressionKind::Parameter(_)
            | ExpressionKind::Name(_)
            | ExpressionKind::Subquery(..)
            | ExpressionKind::Placeholder(_) => false,
            ExpressionKind::Member(base, _) | ExpressionKind::Unary(_, base) => holds(base, is_such),
            ExpressionKind::Index(one, other)
            | ExpressionKind::Binary(_, one, other)
            | ExpressionKind::Coalesce(one, other)
            | ExpressionKind::Like { operand: one, pattern: other, .. } => {
                holds(one, is_such) || holds(other, is_such)
            }
            ExpressionKind::Array(parts)
            | ExpressionKind::And(parts)
            | ExpressionKind::Or(parts)
            | ExpressionKind::Concatenation(parts)
            | ExpressionKind::Call(_, parts)
            | ExpressionKind::UserCall(_, parts) => any(parts),
            ExpressionKind::Object(members) => members.iter().any(|(_, member)| holds(member, is_such)),
            ExpressionKind::In { operand, list, .. } => holds(operand, is_such) || any(list),
            ExpressionKind::Between { operands, .. } => any(operands.as_slice()),
            ExpressionKind::Conditional(parts) => any(parts.as_slice()),
        }
}
