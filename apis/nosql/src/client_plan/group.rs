//! GROUP BY, and aggregates of all rows: each row contains the keys of its group and partial results.
//!
//! ```sql
//! SELECT [{"item": c.team}] AS groupByItems, {"team": c.team, "n": {"item": COUNT(1)}} AS payload
//! FROM c
//! GROUP BY c.team
//! ```

use super::{ClientPlan, Unmergeable, aggregate, count};
use sql::ast::{Expression, Query, SelectItem, SelectList};
use sql::output_names;

pub(super) fn plan(query: &Query, counts: &count::Counts) -> Result<ClientPlan, Unmergeable> {
    let is_grouped = !query.group_by.is_empty();
    if is_grouped && query.select.distinct {
        return Err(Unmergeable::DistinctGroups);
    }
    let mut plan = ClientPlan {
        group_keys: query.group_by.iter().map(sql::print_expression).collect(),
        ..ClientPlan::default()
    };
    counts.tell(&mut plan);
    let payload = payload(query, &mut plan)?;
    let mut text = query.clone();
    count::take_out(&mut text);
    // The result is one row then: there is nothing to order and there are no duplicates.
    text.order_by = None;
    text.select.distinct = false;
    text.select.list = match (is_grouped, &query.select.list) {
        (false, SelectList::Value(_)) => SelectList::Value(payload),
        (false, SelectList::Star(_) | SelectList::Items(_)) => {
            SelectList::Items(vec![SelectItem::named(payload, "payload")])
        }
        (true, _) => {
            let keys = query.group_by.iter().map(|key| Expression::object([("item", key.clone())]));
            SelectList::Items(vec![
                SelectItem::named(Expression::array(keys.collect()), "groupByItems"),
                SelectItem::named(payload, "payload"),
            ])
        }
    };
    plan.rewritten = Some(text);
    Ok(plan)
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
