//! Whether equal rows of an ordered query are adjacent.

use super::Distinct;
use sql::ast::{Expression, Query, SelectList, SortKey};

/// They are if the order is by exactly the selected values; otherwise the client must remember all rows.
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
