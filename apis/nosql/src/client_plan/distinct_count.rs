//! The number of distinct rows: `SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)`.
//!
//! Counts of ranges cannot be added, because a row may be in several ranges. So the ranges return the distinct rows and
//! the client counts them after removing duplicates.

use super::{ClientPlan, Distinct, count, selects_value};
use sql::ast::{Collection, Expression, ExpressionKind, Query, SelectList};
use sql::output_names;

pub(super) fn plan(query: &Query, counts: &count::Counts) -> Option<ClientPlan> {
    let source = match query.from.as_ref()?.sources.as_slice() {
        [source] if !source.elements => source,
        _ => return None,
    };
    let inner = match &source.collection {
        Collection::Subquery(inner) if inner.select.distinct && inner.group_by.is_empty() => inner,
        Collection::Subquery(_) | Collection::Path { .. } => return None,
    };
    if query.filter.is_some() || !query.group_by.is_empty() || query.select.distinct {
        return None;
    }
    let (counted, alias) = match &query.select.list {
        SelectList::Value(value) => (value, String::new()),
        SelectList::Items(items) => match items.as_slice() {
            [item] => (&item.expression, output_names(items).pop()?),
            _ => return None,
        },
        SelectList::Star(_) => return None,
    };
    if !counts_rows(counted) {
        return None;
    }
    let mut plan = ClientPlan {
        rewritten: Some(inner.as_ref().clone()),
        distinct: Distinct::Unordered,
        selects_value: selects_value(query),
        distinct_count: Some(alias),
        ..ClientPlan::default()
    };
    counts.tell(&mut plan);
    Some(plan)
}

/// Whether this counts something that every row has.
fn counts_rows(expression: &Expression) -> bool {
    let ExpressionKind::Call(name, arguments) = &expression.kind else {
        return false;
    };
    let is_constant = |argument: &Expression| {
        matches!(
            argument.kind,
            ExpressionKind::Null
                | ExpressionKind::Boolean(_)
                | ExpressionKind::Number(_)
                | ExpressionKind::String(_)
        )
    };
    name == "COUNT" && arguments.iter().all(is_constant)
}
