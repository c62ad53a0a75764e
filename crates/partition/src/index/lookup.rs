//! What documents are wanted, said by terms, and how sets of one piece answer it.
//!
//! The code of a long value is cut, so a term may stand for wanted and unwanted values. An answer therefore has two
//! ends: what is possible and what is certain; they are one where nothing was cut. "Not" turns them round.

use crate::index::leaf::Leaf;
use crate::index::path::IndexPath;
use crate::index::ranks;
use bytes::Bytes;
use model::{EffectiveRange, Fault};
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;

/// Levels of a lookup.
const LOOKUP_DEPTH_MAX: usize = 512;

/// Which documents are wanted.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// All.
    All,
    /// Those with any value at the path.
    Present(IndexPath),
    /// Those with the value of this key code at the path.
    Term {
        /// Where.
        path: IndexPath,
        /// Key code of the value.
        code: Vec<u8>,
    },
    /// Those with a value at the path whose key code lies between the bounds.
    Range {
        /// Where.
        path: IndexPath,
        /// From here.
        low: Bound<Vec<u8>>,
        /// Up to here.
        high: Bound<Vec<u8>>,
    },
    /// Those with a value at the path whose key code lies between the bounds and passes a test.
    Tested {
        /// Where.
        path: IndexPath,
        /// From here.
        low: Bound<Vec<u8>>,
        /// Up to here.
        high: Bound<Vec<u8>>,
        /// What the value must be like.
        test: ValueTest,
    },
    /// Those of one logical partition: effective key and partition key code, see
    /// [`crate::keyspace::logical_key`].
    Logical(Bytes),
    /// Those whose effective key is in the range.
    Effective(EffectiveRange),
    /// Those in all of these.
    And(Vec<Lookup>),
    /// Those in any of these.
    Or(Vec<Lookup>),
    /// Those that are not in this.
    Without(Box<Lookup>),
}

/// What a key code says of a condition on its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value meets it.
    Yes,
    /// The value does not meet it.
    No,
    /// The document must be looked at.
    Unknown,
}

/// Tells by the key code of a value whether it meets a condition.
#[derive(Clone)]
pub struct ValueTest(Arc<Judge>);

type Judge = dyn Fn(&[u8]) -> Verdict + Send + Sync;

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

/// Documents of one piece: possible and certain.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) possible: RoaringBitmap,
    /// `None` if all that is possible is certain.
    pub(crate) certain: Option<RoaringBitmap>,
}

impl Answer {
    pub(crate) fn exact(ranks: RoaringBitmap) -> Answer {
        Answer { possible: ranks, certain: None }
    }

    fn certain(&self) -> &RoaringBitmap {
        self.certain.as_ref().unwrap_or(&self.possible)
    }

    fn combine(mut self, other: &Answer, apply: fn(&mut RoaringBitmap, &RoaringBitmap)) -> Answer {
        if self.certain.is_some() || other.certain.is_some() {
            let mut certain = self.certain().clone();
            apply(&mut certain, other.certain());
            self.certain = Some(certain);
        }
        apply(&mut self.possible, &other.possible);
        self
    }

    fn inverted(self, universe: usize) -> Answer {
        let invert = |set: &RoaringBitmap| ranks::full(universe) - set;
        match &self.certain {
            None => Answer::exact(invert(&self.possible)),
            Some(certain) => Answer { possible: invert(certain), certain: Some(invert(&self.possible)) },
        }
    }
}

impl Lookup {
    /// The lookups that terms answer, in the order in which [`Lookup::combine`] takes their answers.
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

    /// Whether all its leaves must agree, so that one without documents settles it.
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

    /// Joins the answers to the leaves in a universe of so many documents.
    pub(crate) fn combine(&self, universe: usize, leaves: &mut impl Iterator<Item = Answer>) -> Answer {
        match self {
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Tested { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => leaves.next().unwrap_or_else(|| Answer::exact(RoaringBitmap::new())),
            Lookup::And(parts) => {
                let mut parts = parts.iter();
                let Some(first) = parts.next() else {
                    return Answer::exact(ranks::full(universe));
                };
                let first = first.combine(universe, leaves);
                parts.fold(first, |answer, part| {
                    answer.combine(&part.combine(universe, leaves), |left, right| *left &= right)
                })
            }
            Lookup::Or(parts) => {
                let nothing = Answer::exact(RoaringBitmap::new());
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
