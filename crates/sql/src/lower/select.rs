//! The SELECT clause: projection, output names, counts.

use super::Lowering;
use crate::ast::{self, Count, CountValue, ExpressionKind, NumberLiteral, SelectList};
use crate::fault::{CountClause, FaultKind, Span};
use crate::limits::COUNT_MAX;
use plan::query::{Expression, Projection};
use value::{Decimal128, Value};

impl<'query> Lowering<'query> {
    pub(super) fn projection(&mut self, query: &'query ast::Query) -> Projection {
        match &query.select.list {
            SelectList::Star(span) => self.star(query, *span),
            SelectList::Value(value) => Projection::Value(self.expression(value)),
            SelectList::Items(items) => {
                let names = output_names(items).into_iter();
                let members = names.zip(items).map(|(name, item)| (name, self.expression(&item.expression)));
                Projection::Object(last_of_each_name(members.collect()))
            }
        }
    }

    fn star(&mut self, query: &ast::Query, span: Span) -> Projection {
        if query.from.is_none() {
            self.fault(FaultKind::StarWithoutFrom, span);
        } else if self.frame().source_count() > 1 {
            self.fault(FaultKind::StarWithManyInputs, span);
        } else if !query.group_by.is_empty() {
            self.fault(FaultKind::StarWithGroupBy, span);
        }
        Projection::Row(self.frame().slot(0))
    }

    /// Offset and limit. TOP applies after OFFSET LIMIT.
    pub(super) fn counts(&mut self, query: &ast::Query) -> (u64, Option<u64>) {
        let top = query.select.top.as_ref().map(|top| self.count(top, CountClause::Top));
        let Some(offset_limit) = &query.offset_limit else {
            return (0, top);
        };
        let offset = self.count(&offset_limit.offset, CountClause::Offset);
        let limit = self.count(&offset_limit.limit, CountClause::Limit);
        (offset, Some(top.map_or(limit, |top| top.min(limit))))
    }

    fn count(&mut self, count: &Count, clause: CountClause) -> u64 {
        let given = match &count.value {
            CountValue::Number(NumberLiteral::Integer(integer)) => Value::Int64(*integer),
            CountValue::Number(NumberLiteral::Unsigned(integer)) => {
                Value::Decimal(Decimal128::from_u64(*integer))
            }
            CountValue::Number(NumberLiteral::Double(double)) => Value::Double(*double),
            CountValue::Parameter(name) => match self.parameters.get(name) {
                Some(value) => value.clone(),
                None => {
                    self.fault(FaultKind::MissingParameter { name: name.clone() }, count.span);
                    return 0;
                }
            },
        };
        whole_count(&given).unwrap_or_else(|| {
            let given = given.to_json().chars().take(100).collect();
            self.fault(FaultKind::BadCount { clause, given }, count.span);
            0
        })
    }
}

/// A count that is in range; `10.0` is accepted too, because clients send such numbers.
fn whole_count(value: &Value) -> Option<u64> {
    let count = match value {
        Value::Int32(integer) => u64::try_from(*integer).ok()?,
        Value::Int64(integer) => u64::try_from(*integer).ok()?,
        Value::Double(double) if double.fract() == 0.0 && (0.0..=COUNT_MAX as f64).contains(double) => {
            // An integer within 32 bits, so its text is an integer.
            format!("{double:.0}").parse().ok()?
        }
        Value::Double(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Decimal(_)
        | Value::String(_)
        | Value::Binary { .. }
        | Value::Date(_)
        | Value::Ticks(_)
        | Value::Guid(_)
        | Value::ObjectId(_)
        | Value::Array(_)
        | Value::Object(_) => return None,
    };
    (count <= COUNT_MAX).then_some(count)
}

/// The names of the members of a select list.
pub fn output_names(items: &[ast::SelectItem]) -> Vec<String> {
    let mut unnamed = 0;
    items.iter().map(|item| output_name(item, &mut unnamed)).collect()
}

/// The alias, or the last name of a path, or a number among the items that have neither.
fn output_name(item: &ast::SelectItem, unnamed: &mut usize) -> String {
    if let Some(alias) = &item.alias {
        return alias.clone();
    }
    if let ExpressionKind::Name(name) | ExpressionKind::Member(_, name) = &item.expression.kind {
        return name.clone();
    }
    *unnamed += 1;
    format!("${unnamed}")
}

fn last_of_each_name(mut members: Vec<(String, Expression)>) -> Vec<(String, Expression)> {
    let mut seen = std::collections::HashSet::new();
    let keep: Vec<bool> = members.iter().rev().map(|(name, _)| seen.insert(name.clone())).collect();
    let mut keep = keep.into_iter().rev();
    members.retain(|_| keep.next().unwrap_or(true));
    members
}
