//! Statistics for the choice of an access path: how many documents a lookup finds, how many values a path has.
//!
//! They are the same for the same documents, whatever the pieces: dead documents are not counted, a value in several
//! pieces counts once, and counts of single terms are exact. Their cost is bounded by the largest number that matters
//! to the caller, where counting ends.

use crate::index::code::CodeRange;
use crate::index::counts::{Detail, Live};
use crate::index::documents::Documents;
use crate::index::leaf::Leaf;
use crate::index::lookup::Lookup;
use crate::index::path::IndexPath;
use crate::index::piece::Piece;
use crate::index::reader::{IndexReader, report_damage};
use kv::Direction;
use model::Fault;
use std::ops::Bound;

/// Values between two yields.
const VALUES_AT_A_TIME: u64 = 1024;

/// The values of one path, or those between two key codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// The path.
    pub path: IndexPath,
    /// The lower bound.
    pub low: Bound<Vec<u8>>,
    /// The upper bound.
    pub high: Bound<Vec<u8>>,
}

/// Some values of a path and the number of documents that have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSample {
    /// Distinct values.
    pub values: u64,
    /// Documents with one of them. A document counts once for each of its values.
    pub documents: u64,
    /// Values whose code is truncated: the index does not know them whole.
    pub truncated: u64,
}

impl ValueSample {
    /// Whether most values are truncated.
    pub fn is_truncated(&self) -> bool {
        self.truncated.saturating_mul(2) > self.values
    }
}

impl ValueRange {
    /// All values of a path.
    pub fn whole(path: IndexPath) -> ValueRange {
        ValueRange { path, low: Bound::Unbounded, high: Bound::Unbounded }
    }

    fn codes(&self) -> CodeRange {
        CodeRange::new(&self.path, &self.low, &self.high)
    }
}

impl Lookup {
    /// The values that a lookup tests, one range for each of its tests.
    pub fn tested_ranges(&self) -> Vec<ValueRange> {
        let mut found = Vec::new();
        self.add_tested(&mut found);
        found
    }

    /// Whether values are tested.
    pub fn has_tests(&self) -> bool {
        match self {
            Lookup::Tested { .. } => true,
            Lookup::And(parts) | Lookup::Or(parts) => parts.iter().any(Lookup::has_tests),
            Lookup::Without(part) => part.has_tests(),
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => false,
        }
    }

    fn add_tested(&self, found: &mut Vec<ValueRange>) {
        match self {
            Lookup::Tested { path, low, high, .. } => {
                found.push(ValueRange { path: path.clone(), low: low.clone(), high: high.clone() });
            }
            Lookup::And(parts) | Lookup::Or(parts) => parts.iter().for_each(|part| part.add_tested(found)),
            Lookup::Without(part) => part.add_tested(found),
            Lookup::All
            | Lookup::Present(_)
            | Lookup::Term { .. }
            | Lookup::Range { .. }
            | Lookup::Logical(_)
            | Lookup::Effective(_) => {}
        }
    }
}

impl IndexReader {
    /// An upper bound of the documents that a lookup finds, or `max` if there are more. It is exact for one term or
    /// one range of values, the minimum of the members for a conjunction, their sum for a disjunction. Only documents
    /// of `live` count, or all that are not dead.
    pub async fn count_bound(
        &self,
        lookup: &Lookup,
        live: Option<&Documents>,
        max: u64,
    ) -> Result<u64, Fault> {
        report_damage(&self.damage_signal, self.count_bound_unwatched(lookup, live, max).await)
    }

    async fn count_bound_unwatched(
        &self,
        lookup: &Lookup,
        live: Option<&Documents>,
        max: u64,
    ) -> Result<u64, Fault> {
        let mut leaves = lookup.leaves()?;
        // Of a conjunction no more than the smallest member matters.
        let is_conjunction = lookup.is_and_of_leaves();
        let mut counts = Vec::with_capacity(leaves.len());
        let mut most = max;
        for leaf in &mut leaves {
            let count = self.leaf_count(leaf, live, most).await?;
            if is_conjunction {
                most = most.min(count);
            }
            counts.push(count);
        }
        let total = live.map_or_else(|| self.document_count(), Documents::count);
        Ok(lookup.bound(total, &mut counts.into_iter()).min(max))
    }

    /// The documents of one leaf in all pieces, or `max` if there are more.
    async fn leaf_count(
        &self,
        leaf: &mut Leaf<'_>,
        live: Option<&Documents>,
        max: u64,
    ) -> Result<u64, Fault> {
        let source = self.source();
        let mut count = 0_u64;
        for (at, piece) in self.pieces.iter().enumerate() {
            let within = live.and_then(|live| live.ranks.get(at));
            let live = Live { universe: piece.universe(), dead: piece.dead(), within };
            let left = max.saturating_sub(count);
            count = count.saturating_add(leaf.live_count(&source, piece, &live, left).await?);
            if count >= max {
                return Ok(max);
            }
        }
        Ok(count)
    }

    /// The number of different values in some ranges, or `max` if there are more. Only values of documents of `live`
    /// count, or of all that are not dead.
    pub async fn value_count(
        &self,
        ranges: &[ValueRange],
        live: Option<&Documents>,
        max: u64,
    ) -> Result<u64, Fault> {
        let mut count = 0_u64;
        for range in ranges {
            let ValueRange { path, low, high } = range;
            let (low, high) = (low.clone(), high.clone());
            let mut walk = self.walk_between(path, Direction::Forward, low, high, live.cloned()).await?;
            while count < max && walk.next_counted(|_, _| Detail::Count).await?.is_some() {
                count += 1;
                if count.is_multiple_of(VALUES_AT_A_TIME) {
                    tokio::task::consume_budget().await;
                }
            }
        }
        Ok(count)
    }

    /// The first distinct values in some ranges, at most `values_max`, and the documents that have them.
    pub async fn value_sample(
        &self,
        ranges: &[ValueRange],
        live: Option<&Documents>,
        values_max: u64,
    ) -> Result<ValueSample, Fault> {
        let mut sample = ValueSample::default();
        for range in ranges {
            let ValueRange { path, low, high } = range;
            let (low, high) = (low.clone(), high.clone());
            let mut walk = self.walk_between(path, Direction::Forward, low, high, live.cloned()).await?;
            while sample.values < values_max
                && let Some(counted) = walk.next_counted(|_, _| Detail::Count).await?
            {
                sample.values += 1;
                sample.documents += counted.count;
                sample.truncated += u64::from(counted.is_truncated);
            }
        }
        Ok(sample)
    }

    /// A number that [`IndexReader::value_count`] never exceeds, without reading any value. It depends on the pieces,
    /// so it may save counting but must not decide by itself.
    pub fn value_bound(&self, ranges: &[ValueRange]) -> u64 {
        let of_range = |range: &ValueRange| {
            let (codes, mut field) = (range.codes(), 0);
            let values = |piece: &Piece| match piece {
                Piece::Segment(piece) => {
                    piece.segment.find_range(range.path.code(), &codes, &mut field).len() as u64
                }
                // Each value of a path without arrays has a document of its own.
                Piece::Run(piece) if !range.path.has_elements() => piece.run.numbers.len() as u64,
                Piece::Run(_) => u64::MAX,
            };
            self.pieces.iter().map(values).fold(0, u64::saturating_add)
        };
        ranges.iter().map(of_range).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
impl IndexReader {
    /// Checks the count of a lookup that finds `found` documents, and the same count up to `most`.
    pub(crate) async fn check_count(&self, lookup: &Lookup, found: u64, most: u64) {
        let bound = self.count_bound(lookup, None, u64::MAX).await.unwrap();
        assert!(bound >= found, "{lookup:?}");
        if matches!(lookup, Lookup::Term { .. } | Lookup::Present(_) | Lookup::All) {
            assert_eq!(bound, found, "a term is counted exactly: {lookup:?}");
        }
        assert_eq!(self.count_bound(lookup, None, most).await.unwrap(), bound.min(most), "{lookup:?}");
    }

    /// Checks the count of the values of a path, if it is known how many have a document.
    pub(crate) async fn check_values(
        &self,
        path: &IndexPath,
        within: Option<&Documents>,
        expected: Option<usize>,
    ) {
        let Some(expected) = expected.map(|expected| expected as u64) else { return };
        let ranges = [ValueRange::whole(path.clone())];
        assert_eq!(self.value_count(&ranges, within, u64::MAX).await.unwrap(), expected, "{path}");
        assert!(self.value_bound(&ranges) >= expected, "{path}");
    }
}
