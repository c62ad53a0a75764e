//! The order of rows without ORDER BY: ranges by their lower bounds, inside a range documents by number.
//!
//! Ranges are read one after the other; a range is opened only after all previous ranges are exhausted.
//!
//! A continuation names the bounds of the range it stopped in, not the partition. If that range was split meanwhile,
//! the parts of its children are merged by number until it is exhausted, which gives the rows that the unsplit range
//! would have given. So new bounds apply only to ranges of which no row was returned yet, and a resumed query repeats
//! and misses no row.

use kv::KeyRange;
use model::{EffectiveKey, EffectiveRange};
use partition::keyspace;
use std::borrow::Cow;

use crate::task::{Part, PartScope};

/// Longest bound that a continuation contains. No hash of a partition key is that long, so a bound that is truncated
/// here separates the same documents.
pub(crate) const BOUND_BYTES_MAX: usize = 250;

/// Parts that are read together, merged by number.
#[derive(Debug)]
pub(crate) struct Range<'p> {
    pub(crate) parts: Cow<'p, [Part]>,
    /// Whether the previous page ended in it.
    pub(crate) is_resumed: bool,
}

impl<'p> Range<'p> {
    fn of(part: &'p Part) -> Range<'p> {
        Range { parts: Cow::Borrowed(std::slice::from_ref(part)), is_resumed: false }
    }

    /// The keys that a continuation names; `None` if the range is that of the previous continuation.
    pub(crate) fn keys(&self) -> Option<KeyRange> {
        if self.is_resumed { None } else { self.parts.first().and_then(keys) }
    }
}

/// The keys that a continuation names for a range of one part; `None` for a logical partition, which is in one range.
pub(crate) fn keys(part: &Part) -> Option<KeyRange> {
    match part.scope {
        PartScope::Logical(_) => None,
        PartScope::Whole | PartScope::Hashes(_) => Some(part.keys.clone()),
    }
}

/// The ranges of some parts in their order, without those before the range where a continuation stopped.
pub(crate) fn in_order<'p>(parts: &'p [Part], resumed: Option<&EffectiveRange>) -> Vec<Range<'p>> {
    let mut sorted: Vec<&Part> = parts.iter().collect();
    sorted.sort_by(|left, right| left.keys.start.cmp(&right.keys.start));
    let Some(resumed) = resumed else {
        return sorted.into_iter().map(Range::of).collect();
    };
    let rest = EffectiveRange { min: resumed.max.clone(), max: EffectiveKey::max() };
    let inside: Vec<Part> = sorted.iter().filter_map(|part| part.within(resumed)).collect();
    let mut ranges = Vec::with_capacity(sorted.len() + 1);
    if !inside.is_empty() {
        ranges.push(Range { parts: Cow::Owned(inside), is_resumed: true });
    }
    let after = sorted.iter().filter_map(|part| part.within(&rest));
    ranges.extend(after.map(|part| Range { parts: Cow::Owned(vec![part]), is_resumed: false }));
    ranges
}

/// The bounds that a continuation contains for a range of keys.
pub(crate) fn bounds(keys: &KeyRange) -> EffectiveRange {
    let cut = |key: &[u8]| EffectiveKey::from_bytes(&key[..key.len().min(BOUND_BYTES_MAX)]);
    let EffectiveRange { min, max } = keyspace::hashes_of(keys);
    EffectiveRange { min: cut(min.as_bytes()), max: cut(max.as_bytes()) }
}

impl Part {
    /// The section of the part inside a range of hashes.
    fn within(&self, hashes: &EffectiveRange) -> Option<Part> {
        if let PartScope::Logical(_) = self.scope {
            let is_inside = hashes.contains(&keyspace::hashes_of(&self.keys).min);
            return is_inside.then(|| self.clone());
        }
        let container = self.source.id().container;
        let keys = self.keys.intersection(&keyspace::effective_range(container, hashes))?;
        let scope = if keys == self.keys {
            self.scope.clone()
        } else {
            PartScope::Hashes(keyspace::hashes_of(&keys))
        };
        Some(Part { keys, scope, ..self.clone() })
    }
}
