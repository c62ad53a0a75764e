//! ORDER BY: each row contains its sort values and the RID of its document in addition to the selected value.
//!
//! ```sql
//! SELECT c._rid, [{"item": c.v}] AS orderByItems, c AS payload
//! FROM c
//! WHERE ({documentdb-formattableorderbyquery-filter})
//! ORDER BY c.v
//! ```
//!
//! The client replaces the placeholder by `true`, or by the condition for the rows where it resumes.

use super::{ClientPlan, OrderKey, count, distinct, root_name, selects_value};
use sql::ast::{Expression, ExpressionKind, OrderBy, Query, SelectItem, SelectList, SortKey};
use sql::output_names;

/// The placeholder that clients replace by a condition.
const FILTER: &str = "documentdb-formattableorderbyquery-filter";

pub(super) fn plan(
    query: &Query,
    counts: &count::Counts,
    is_similarity: &dyn Fn(usize) -> bool,
) -> ClientPlan {
    let keys = match &query.order_by {
        Some(OrderBy::Keys(keys)) => keys.as_slice(),
        Some(OrderBy::Rank(_)) | None => &[],
    };
    let mut plan = ClientPlan {
        distinct: distinct::kind(query, keys),
        selects_value: selects_value(query),
        is_order_unstable: keys.iter().any(|key| is_distance(&key.expression)),
        ..ClientPlan::default()
    };
    counts.tell(&mut plan);
    plan.order = keys
        .iter()
        .enumerate()
        .map(|(position, key)| {
            let is_distance = is_distance(&key.expression);
            merge_key(key, if is_distance { is_similarity(position) } else { key.descending })
        })
        .collect();
    let mut text = rewritten(query, keys);
    if query.select.distinct {
        text.select.distinct = false;
        count::take_out(&mut text);
    } else {
        counts.widen(&mut text);
    }
    plan.rewritten = Some(text);
    plan
}

pub(super) fn rewritten(query: &Query, keys: &[SortKey]) -> Query {
    let root = Expression::name(root_name(query));
    let items = sort_values(keys);
    let mut filter = with_placeholder(query.filter.clone());
    let payload = match &query.select.list {
        SelectList::Star(_) => root.clone(),
        SelectList::Value(value) => {
            // A row without a value is not part of the result.
            filter = both(filter, Expression::call("IS_DEFINED", vec![value.clone()]));
            value.clone()
        }
        SelectList::Items(items) => {
            let names = output_names(items).into_iter();
            Expression::object(names.zip(items.iter().map(|item| item.expression.clone())))
        }
    };
    let mut text = query.clone();
    text.select.list = SelectList::Items(vec![
        SelectItem::plain(root.member("_rid")),
        SelectItem::named(items, "orderByItems"),
        SelectItem::named(payload, "payload"),
    ]);
    text.filter = Some(filter);
    text
}

/// The sort values of a row.
pub(super) fn sort_values(keys: &[SortKey]) -> Expression {
    let items = keys.iter().map(|key| Expression::object([("item", key.expression.clone())]));
    Expression::array(items.collect())
}

/// The filter of a query and the placeholder.
pub(super) fn with_placeholder(filter: Option<Expression>) -> Expression {
    let placeholder = Expression::placeholder(FILTER);
    filter.map_or(placeholder.clone(), |filter| both(filter, placeholder))
}

/// A key by which clients merge.
pub(super) fn merge_key(key: &SortKey, descending: bool) -> OrderKey {
    OrderKey { expression: sql::print_expression(&key.expression), descending }
}

/// `first AND second` as a chain of its own: each part may already be a chain of the maximum length.
fn both(first: Expression, second: Expression) -> Expression {
    Expression::new(ExpressionKind::And(vec![first, second]))
}

fn is_distance(expression: &Expression) -> bool {
    matches!(&expression.kind, ExpressionKind::Call(name, _) if name == "VectorDistance")
}
