//! The order of results.

use std::cmp::Ordering;

use plan::query::{Order, SortKey};
use value::{Value, compare};

use super::hash::KeyHash;
use crate::expression::Frame;
use crate::{Computed, EvalFault};

/// A result and its sort keys.
pub(super) struct Ordered {
    pub(super) result: Value,
    pub(super) keys: Vec<Option<Value>>,
    pub(super) number: Option<u64>,
    pub(super) hash: Option<KeyHash>,
}

/// The sort keys of a row.
pub(super) fn keys(frame: Frame<'_>, order: &Order) -> Result<Vec<Option<Value>>, EvalFault> {
    match order {
        Order::None => Ok(Vec::new()),
        Order::Keys(keys) => {
            keys.iter().map(|key| Ok(frame.evaluate(&key.expression)?.map(Computed::into_value))).collect()
        }
        Order::Rank(_) => Err(EvalFault::RankWithoutStatistics),
    }
}

/// Sorts by the keys, then by document number (`Order::turns_ties`). Rows of one document keep the
/// order of their sources.
pub(super) fn sort(rows: &mut [Ordered], order: &Order) {
    match order {
        Order::Keys(keys) => {
            let is_backwards = order.turns_ties();
            rows.sort_by(|left, right| {
                compare_keys(keys, left, right)
                    .then_with(|| directed(left.number.cmp(&right.number), is_backwards))
            });
        }
        Order::None | Order::Rank(_) => {}
    }
}

fn compare_keys(keys: &[SortKey], left: &Ordered, right: &Ordered) -> Ordering {
    let pairs = keys.iter().zip(left.keys.iter().zip(&right.keys));
    pairs
        .map(|(key, (left, right))| {
            directed(compare_optional(left.as_ref(), right.as_ref()), key.is_backwards())
        })
        .find(|found| found.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Undefined comes before everything.
fn compare_optional(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => compare(left.as_ref(), right.as_ref()),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

fn directed(ordering: Ordering, is_backwards: bool) -> Ordering {
    if is_backwards { ordering.reverse() } else { ordering }
}
