//! Whether equal rows of an ordered query come one behind the other.

use super::Distinct;
use sql::ast::{Expression, Query, SelectList, SortKey};

/// They do if the order is by exactly what is selected; else the client must remember all rows.
pub(super) fn kind(query: &Query, keys: &[SortKey]) -> Distinct {
    if !query.select.distinct {
        return Distinct::None;
    }
    let selected: Vec<&Expression> = match &query.select.list {
        SelectList::Star(_) => Vec::new(),
        SelectList::Value(value) => vec![value],
        SelectList::Items(items) => items.iter().map(|item| &item.expression).collect(),
    };
    let is_selected = |key: &SortKey| selected.contains(&&key.expression);
    let is_key = |selected: &Expression| keys.iter().any(|key| key.expression == *selected);
    let is_same =
        !selected.is_empty() && keys.iter().all(is_selected) && selected.iter().copied().all(is_key);
    if is_same { Distinct::Ordered } else { Distinct::Unordered }
}
