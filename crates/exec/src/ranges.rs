//! The order of rows without ORDER BY: ranges by their lower bounds, inside a range documents by number.
//!
//! Ranges are read one after the other, so a range is not opened before all ranges in front of it are exhausted.
//!
//! A continuation names the bounds of the range it stopped in, not the partition. If that range was split meanwhile,
//! the parts of its children are merged by number until it is exhausted, which gives the rows that the undivided range
//! would have given. So a range is cut anew only where no row of it was given yet, and a resumed query repeats no row
//! and misses none.

use kv::KeyRange;
use model::{EffectiveKey, EffectiveRange};
use partition::keyspace;

use crate::task::{Part, PartScope};

/// Longest bound that a continuation carries. No hash of a partition key is that long, so a bound that is cut here
/// separates the same documents.
pub(crate) const BOUND_BYTES_MAX: usize = 250;

/// Parts that are read together, merged by number.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) parts: Vec<Part>,
    /// Whether the page before ended in it.
    pub(crate) is_resumed: bool,
}

impl Range {
    /// The keys of a range that consists of one part; nothing where the range needs no bounds in a continuation.
    pub(crate) fn keys(&self) -> Option<&KeyRange> {
        match &self.parts[..] {
            [part] => match part.scope {
                // A continuation is bound to the logical partition.
                PartScope::Logical(_) => None,
                PartScope::Whole | PartScope::Hashes(_) => Some(&part.keys),
            },
            _ => None,
        }
    }
}

/// The ranges of some parts in their order, without those that lie before the range where a continuation stopped.
pub(crate) fn in_order(parts: &[Part], resumed: Option<&EffectiveRange>) -> Vec<Range> {
    let one = |part: Part, is_resumed| Range { parts: vec![part], is_resumed };
    if let ([part], None) = (parts, resumed) {
        return vec![one(part.clone(), true)];
    }
    let mut sorted: Vec<&Part> = parts.iter().collect();
    sorted.sort_by(|left, right| left.keys.start.cmp(&right.keys.start));
    let Some(resumed) = resumed else {
        return sorted.into_iter().map(|part| one(part.clone(), false)).collect();
    };
    let behind = EffectiveRange { min: resumed.max.clone(), max: EffectiveKey::max() };
    let inside: Vec<Part> = sorted.iter().filter_map(|part| part.within(resumed)).collect();
    let mut ranges = Vec::with_capacity(sorted.len() + 1);
    if !inside.is_empty() {
        ranges.push(Range { parts: inside, is_resumed: true });
    }
    ranges.extend(sorted.iter().filter_map(|part| Some(one(part.within(&behind)?, false))));
    ranges
}

/// The bounds that a continuation carries for a range of keys.
pub(crate) fn bounds(keys: &KeyRange) -> EffectiveRange {
    let cut = |key: &[u8]| EffectiveKey::from_bytes(&key[..key.len().min(BOUND_BYTES_MAX)]);
    let EffectiveRange { min, max } = keyspace::hashes_of(keys);
    EffectiveRange { min: cut(min.as_bytes()), max: cut(max.as_bytes()) }
}

impl Part {
    /// What of the part lies in a range of hashes.
    fn within(&self, hashes: &EffectiveRange) -> Option<Part> {
        if let PartScope::Logical(_) = self.scope {
            return Some(self.clone());
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
