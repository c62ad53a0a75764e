//! Shared by the checks of all policies: bounds of numbers, repeated items.

use crate::{DefinitionNumber, DefinitionPart, DefinitionRule, RequestFault};
use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;

/// Refuses a number that is out of bounds.
pub(super) fn within(
    part: DefinitionPart,
    number: DefinitionNumber,
    given: u32,
    bounds: RangeInclusive<u32>,
) -> Result<(), RequestFault> {
    if bounds.contains(&given) {
        return Ok(());
    }
    Err(part.violates(DefinitionRule::Bounds {
        number,
        given: given.into(),
        min: *bounds.start(),
        max: *bounds.end(),
    }))
}

/// The first item that occurs twice. A definition can list tens of thousands, so they are not compared pairwise.
pub(super) fn repeated<T: Eq + Hash>(items: &[T]) -> Option<&T> {
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().find(|item| !seen.insert(*item))
}
