//! Ranges of later sort keys, checked on the codes of the tuples that a walk visits.
//!
//! A range of the second key leaves out values everywhere in the order of both keys, so it is no bound of a walk. A
//! lookup of it costs as much as it has values, however few rows a page has. The codes that the walk visits anyway tell
//! what is outside. If many values in a row are, the walk continues at the next one that may be inside. Only a walk that
//! has passed very many values does the lookup after all.

use kv::Direction;
use partition::index::{IndexPath, Lookup};
use std::ops::Bound;
use value::{decode_key_descending, decode_key_optional};

use super::walk_bounds::{OrderedMember, RangeEnds, Stretch, after_prefix};

/// Values outside the ranges that a walk passes before it looks the ranges up.
const PASSED_VALUES_MAX: usize = 512;
/// Such values with the same values of the keys before that a walk passes before it skips the others.
const PASSED_ALIKE_MAX: usize = 16;

/// The ranges that are checked on tuples.
#[derive(Debug)]
pub(crate) struct CodeChecks {
    /// For each member whether its codes are inverted, up to the last one that is checked.
    are_turned: Vec<bool>,
    /// The codes from a member on that are within its range, by the place of the member.
    stretches: Vec<Option<Stretch>>,
}

/// A tuple that is outside a range.
struct Outside<'c> {
    /// The codes of the members before.
    prefix: &'c [u8],
    stretch: &'c Stretch,
    /// Whether it comes before those within the range.
    is_before: bool,
}

impl CodeChecks {
    /// The checks on terms with these members; `None` unless all lookups are ranges of members.
    pub(crate) fn of(lookups: &[&Lookup], members: &[OrderedMember]) -> Option<CodeChecks> {
        let place_of = |wanted: &IndexPath| members.iter().position(|member| member.path == *wanted);
        let place = |lookup: &&Lookup| match lookup {
            Lookup::Range { path, .. } => place_of(path),
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Tested { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_)
            | Lookup::And(_)
            | Lookup::Or(_)
            | Lookup::Without(_) => None,
        };
        let places: Vec<usize> = lookups.iter().map(place).collect::<Option<_>>()?;
        let last = *places.iter().max()?;
        let mut stretches = Vec::with_capacity(last + 1);
        for (place, member) in members.iter().enumerate().take(last + 1) {
            let is_checked = places.contains(&place);
            let stretch = || RangeEnds::of(lookups, &member.path)?.0.stretch(&[], member);
            stretches.push(if is_checked { Some(stretch()?) } else { None });
        }
        let are_turned = members.iter().take(last + 1).map(|member| member.is_turned).collect();
        Some(CodeChecks { are_turned, stretches })
    }

    /// The range that a tuple with whole values is outside of. One that cannot be read is in none: its document is
    /// checked.
    fn outside<'c>(&'c self, code: &'c [u8]) -> Option<Outside<'c>> {
        let mut rest = code;
        for (is_turned, stretch) in self.are_turned.iter().zip(&self.stretches) {
            if let Some(stretch) = stretch
                && !stretch.contains(rest)
            {
                let prefix = &code[..code.len() - rest.len()];
                return Some(Outside { prefix, stretch, is_before: rest < stretch.low.as_slice() });
            }
            let decoded = if *is_turned { decode_key_descending(rest) } else { decode_key_optional(rest) };
            rest = decoded.ok()?.1;
        }
        None
    }
}

impl Outside<'_> {
    /// Where a walk continues; `None` if nothing follows.
    fn next(&self, direction: Direction) -> Option<Bound<Vec<u8>>> {
        let joined = |code: &[u8]| [self.prefix, code].concat();
        match (direction, self.is_before) {
            (Direction::Forward, true) => Some(Bound::Included(joined(&self.stretch.low))),
            (Direction::Forward, false) => after_prefix(self.prefix).map(Bound::Included),
            (Direction::Backward, true) => Some(Bound::Excluded(self.prefix.to_vec())),
            (Direction::Backward, false) => {
                self.stretch.high.as_ref().map(|high| Bound::Excluded(joined(high)))
            }
        }
    }
}

/// What a walk has passed.
#[derive(Debug, Default)]
pub(crate) struct PassedValues {
    count: usize,
    /// Those at last with this prefix.
    alike: usize,
    prefix: Vec<u8>,
}

/// What becomes of a value that a walk visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Its documents may be wanted.
    Take,
    /// They are not wanted.
    Pass,
    /// They are not wanted, nor are those of the next values: the walk continues here, or ends.
    Skip(Option<Bound<Vec<u8>>>),
    /// They are not wanted, and the walk does the lookup before it continues.
    LookUp,
}

impl PassedValues {
    /// Decides about a value.
    pub(crate) fn visit(
        &mut self,
        checks: &CodeChecks,
        code: &[u8],
        is_truncated: bool,
        direction: Direction,
    ) -> Visit {
        if is_truncated {
            return Visit::Take;
        }
        let Some(outside) = checks.outside(code) else { return Visit::Take };
        self.count += 1;
        if self.count >= PASSED_VALUES_MAX {
            return Visit::LookUp;
        }
        if self.prefix != outside.prefix {
            self.alike = 0;
            self.prefix.clear();
            self.prefix.extend_from_slice(outside.prefix);
        }
        self.alike += 1;
        if self.alike < PASSED_ALIKE_MAX {
            return Visit::Pass;
        }
        self.alike = 0;
        Visit::Skip(outside.next(direction))
    }
}
