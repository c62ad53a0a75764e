//! Lookups: sets of documents described by terms, and their evaluation on one piece.
//!
//! The code of a long value is truncated, so a term may stand for wanted and unwanted values. Each result therefore
//! has an upper bound (`possible`) and a lower bound (`certain`), which are equal if nothing was truncated. NOT
//! complements and swaps them.

use crate::index::leaf::Leaf;
use crate::index::path::IndexPath;
use crate::index::ranks;
use bytes::Bytes;
use model::{EffectiveRange, Fault};
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;

/// Limit of the depth of a lookup.
const LOOKUP_DEPTH_MAX: usize = 512;

/// A set of documents, described by terms.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// All documents.
    All,
    /// Documents with any value at the path.
    Present(IndexPath),
    /// Documents with the value of this key code at the path.
    Term {
        /// The path.
        path: IndexPath,
        /// Key code of the value.
        code: Vec<u8>,
    },
    /// Documents with a value at the path whose key code is within the bounds.
    Range {
        /// The path.
        path: IndexPath,
        /// The lower bound.
        low: Bound<Vec<u8>>,
        /// The upper bound.
        high: Bound<Vec<u8>>,
    },
    /// Documents with a value at the path whose key code is within the bounds and passes a test.
    Tested {
        /// The path.
        path: IndexPath,
        /// The lower bound.
        low: Bound<Vec<u8>>,
        /// The upper bound.
        high: Bound<Vec<u8>>,
        /// The test of the value.
        test: ValueTest,
    },
    /// Documents of one logical partition: effective key and partition key code, see [`crate::keyspace::logical_key`].
    Logical(Bytes),
    /// Documents whose effective key is in the range.
    Effective(EffectiveRange),
    /// The intersection.
    And(Vec<Lookup>),
    /// The union.
    Or(Vec<Lookup>),
    /// The complement.
    Without(Box<Lookup>),
}

/// What a key code says about a condition on its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value satisfies it.
    Yes,
    /// The value does not satisfy it.
    No,
    /// The code does not decide; the document must be checked.
    Unknown,
}

/// Tests by its key code whether a value satisfies a condition.
#[derive(Clone)]
pub struct ValueTest(Arc<TestFunction>);

type TestFunction = dyn Fn(&[u8]) -> Verdict + Send + Sync;

impl ValueTest {
    /// A test by a function of the key code.
    pub fn new(test: impl Fn(&[u8]) -> Verdict + Send + Sync + 'static) -> ValueTest {
        ValueTest(Arc::new(test))
    }

    pub(crate) fn verdict(&self, code: &[u8]) -> Verdict {
        (self.0)(code)
    }
}

impl std::fmt::Debug for ValueTest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ValueTest")
    }
}

/// The matching documents of one piece: an upper and a lower bound.
#[derive(Clone, Debug)]
pub(crate) struct Matches {
    pub(crate) possible: RoaringBitmap,
    /// `None` if it is equal to `possible`.
    pub(crate) certain: Option<RoaringBitmap>,
}

impl Matches {
    pub(crate) fn exact(ranks: RoaringBitmap) -> Matches {
        Matches { possible: ranks, certain: None }
    }

    fn certain(&self) -> &RoaringBitmap {
        self.certain.as_ref().unwrap_or(&self.possible)
    }

    fn combine(mut self, other: &Matches, apply: fn(&mut RoaringBitmap, &RoaringBitmap)) -> Matches {
        if self.certain.is_some() || other.certain.is_some() {
            let mut certain = self.certain().clone();
            apply(&mut certain, other.certain());
            self.certain = Some(certain);
        }
        apply(&mut self.possible, &other.possible);
        self
    }

    fn inverted(self, universe: usize) -> Matches {
        let invert = |set: &RoaringBitmap| ranks::full(universe) - set;
        match &self.certain {
            None => Matches::exact(invert(&self.possible)),
            Some(certain) => Matches { possible: invert(certain), certain: Some(invert(&self.possible)) },
        }
    }
}

impl Lookup {
    /// The leaves of the lookup, in the order in which [`Lookup::combine`] takes their results.
    pub(crate) fn leaves(&self) -> Result<Vec<Leaf<'_>>, Fault> {
        let mut leaves = Vec::new();
        self.gather(LOOKUP_DEPTH_MAX, &mut leaves)?;
        Ok(leaves)
    }

    fn gather<'a>(&'a self, levels_left: usize, leaves: &mut Vec<Leaf<'a>>) -> Result<(), Fault> {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return Err(Fault::Internal("an index lookup is nested too deeply".to_owned()));
        };
        match self {
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Tested { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => leaves.push(Leaf::new(self)),
            Lookup::And(parts) | Lookup::Or(parts) => {
                parts.iter().try_for_each(|part| part.gather(levels_left, leaves))?;
            }
            Lookup::Without(part) => part.gather(levels_left, leaves)?,
        }
        Ok(())
    }

    /// Whether it is a conjunction of leaves, so that one leaf without documents decides the result.
    pub(crate) fn is_and_of_leaves(&self) -> bool {
        let is_leaf = |part: &Lookup| !matches!(part, Lookup::And(_) | Lookup::Or(_) | Lookup::Without(_));
        match self {
            Lookup::And(parts) => parts.iter().all(is_leaf),
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Tested { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => true,
            Lookup::Or(_) | Lookup::Without(_) => false,
        }
    }

    /// Combines the results of the leaves in a universe of `universe` documents.
    pub(crate) fn combine(&self, universe: usize, leaves: &mut impl Iterator<Item = Matches>) -> Matches {
        match self {
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Tested { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => leaves.next().unwrap_or_else(|| Matches::exact(RoaringBitmap::new())),
            Lookup::And(parts) => {
                let mut parts = parts.iter();
                let Some(first) = parts.next() else {
                    return Matches::exact(ranks::full(universe));
                };
                let first = first.combine(universe, leaves);
                parts.fold(first, |answer, part| {
                    answer.combine(&part.combine(universe, leaves), |left, right| *left &= right)
                })
            }
            Lookup::Or(parts) => {
                let nothing = Matches::exact(RoaringBitmap::new());
                parts.iter().fold(nothing, |answer, part| {
                    answer.combine(&part.combine(universe, leaves), |left, right| *left |= right)
                })
            }
            Lookup::Without(part) => part.combine(universe, leaves).inverted(universe),
        }
    }

    /// An upper bound, from upper bounds of the leaves.
    pub(crate) fn bound(&self, universe: u64, leaves: &mut impl Iterator<Item = u64>) -> u64 {
        match self {
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Tested { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => leaves.next().unwrap_or(0).min(universe),
            Lookup::And(parts) => {
                parts.iter().fold(universe, |least, part| least.min(part.bound(universe, leaves)))
            }
            Lookup::Or(parts) => {
                let sum = |sum: u64, part: &Lookup| sum.saturating_add(part.bound(universe, leaves));
                parts.iter().fold(0, sum).min(universe)
            }
            Lookup::Without(part) => {
                part.bound(universe, leaves);
                universe
            }
        }
    }
}
