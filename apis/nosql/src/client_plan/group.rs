//! GROUP BY, and aggregates of all rows: each row contains the keys of its group and partial results.
//!
//! ```sql
//! SELECT [{"item": c.team}] AS groupByItems, {"team": c.team, "n": {"item": COUNT(1)}} AS payload
//! FROM c
//! GROUP BY c.team
//! ```
//!
//! Groups that are ordered by their keys are the payload of ordered rows: clients merge by the keys first and group then.

use super::{ClientPlan, Unmergeable, aggregate, count, order};
use sql::ast::{Expression, OrderBy, Query, SelectItem, SelectList, SortKey};
use sql::output_names;

pub(super) fn plan(query: &Query, counts: &count::Counts) -> Result<ClientPlan, Unmergeable> {
    let is_grouped = !query.group_by.is_empty();
    if is_grouped && query.select.distinct && !selects_all_keys(query) {
        return Err(Unmergeable::DistinctGroups);
    }
    let keys = match &query.order_by {
        Some(OrderBy::Keys(keys)) if is_grouped => keys.as_slice(),
        Some(OrderBy::Keys(_) | OrderBy::Rank(_)) | None => &[],
    };
    let mut plan = ClientPlan {
        group_keys: query.group_by.iter().map(sql::print_expression).collect(),
        ..ClientPlan::default()
    };
    counts.tell(&mut plan);
    let payload = payload(query, &mut plan)?;
    let mut text = query.clone();
    count::take_out(&mut text);
    // There are no duplicates: the result is one row, or each row has the keys of its group.
    text.select.distinct = false;
    if keys.is_empty() {
        text.order_by = None;
    }
    text.select.list = match (is_grouped, &query.select.list) {
        (false, SelectList::Value(_)) => SelectList::Value(payload),
        (false, SelectList::Star(_) | SelectList::Items(_)) => {
            SelectList::Items(vec![SelectItem::named(payload, "payload")])
        }
        (true, _) => {
            let group_keys = query.group_by.iter().map(|key| Expression::object([("item", key.clone())]));
            grouped_rows(Expression::array(group_keys.collect()), payload, keys)
        }
    };
    if !keys.is_empty() {
        plan.order = keys.iter().map(|key| order::merge_key(key, key.descending)).collect();
        text.filter = Some(order::with_placeholder(query.filter.clone()));
    }
    plan.rewritten = Some(text);
    Ok(plan)
}

/// The select list of groups; ordered ones are wrapped as ordered rows are. A group has no document, so its RID is empty.
fn grouped_rows(group_keys: Expression, payload: Expression, keys: &[SortKey]) -> SelectList {
    if keys.is_empty() {
        return SelectList::Items(vec![
            SelectItem::named(group_keys, "groupByItems"),
            SelectItem::named(payload, "payload"),
        ]);
    }
    let group = Expression::object([("groupByItems", group_keys), ("payload", payload)]);
    SelectList::Items(vec![
        SelectItem::named(Expression::string(""), "_rid"),
        SelectItem::named(order::sort_values(keys), "orderByItems"),
        SelectItem::named(group, "payload"),
    ])
}

/// Whether the rows of different groups differ because each has all its keys.
fn selects_all_keys(query: &Query) -> bool {
    match &query.select.list {
        SelectList::Star(_) => false,
        SelectList::Value(value) => query.group_by.iter().all(|key| key == value),
        SelectList::Items(items) => {
            query.group_by.iter().all(|key| items.iter().any(|item| item.expression == *key))
        }
    }
}

/// The partial results and how they are combined.
fn payload(query: &Query, plan: &mut ClientPlan) -> Result<Expression, Unmergeable> {
    match &query.select.list {
        SelectList::Value(value) => {
            plan.selects_value = true;
            Ok(match aggregate::fold(value)? {
                Some((fold, partial)) => {
                    plan.aggregates.push(fold);
                    Expression::array(vec![partial])
                }
                None => value.clone(),
            })
        }
        SelectList::Items(items) => {
            let mut members = Vec::with_capacity(items.len());
            for (name, item) in output_names(items).into_iter().zip(items) {
                let fold = aggregate::fold(&item.expression)?;
                plan.columns.push((name.clone(), fold.as_ref().map(|(fold, _)| *fold)));
                members.push((name, fold.map_or_else(|| item.expression.clone(), |(_, partial)| partial)));
            }
            Ok(Expression::object(members))
        }
        // A star is not allowed with groups, and contains no aggregates.
        SelectList::Star(_) => Err(Unmergeable::Composition),
    }
}
