//! Shared by the checks of all policies: the fault with its field, bounds of numbers, repeated items.

use crate::RequestFault;
use std::collections::HashSet;
use std::hash::Hash;

/// The fault of a policy.
pub(super) fn bad(policy: &str, reason: impl Into<String>) -> RequestFault {
    RequestFault::BadDefinition { field: policy.to_owned(), reason: reason.into() }
}

/// Refuses a number of the field `name` that is out of bounds.
pub(super) fn within(
    policy: &str,
    name: &str,
    number: u32,
    bounds: std::ops::RangeInclusive<u32>,
) -> Result<(), RequestFault> {
    if bounds.contains(&number) {
        return Ok(());
    }
    let (least, most) = (bounds.start(), bounds.end());
    Err(bad(policy, format!("\"{name}\" must be a whole number from {least} to {most}")))
}

/// The first item that occurs twice. A definition can list tens of thousands, so they are not compared pairwise.
pub(super) fn repeated<T: Eq + Hash>(items: &[T]) -> Option<&T> {
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().find(|item| !seen.insert(*item))
}
