//! Reading the index: lookups and walks over all pieces of one consistent state.

use crate::index::code::{CodeRange, PRESENT};
use crate::index::documents::{Documents, Part};
use crate::index::lookup::{Answer, Lookup};
use crate::index::path::IndexPath;
use crate::index::piece::{Piece, SegmentPiece};
use crate::index::ranks::{self, Gathering};
use crate::index::rules::Rules;
use crate::index::walk::TermWalk;
use kv::{Direction, View};
use model::{EffectiveRange, Fault};
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;

/// What the index knows of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every document with a value at the path has a term for it.
    Whole,
    /// The policy leaves the path out.
    None,
}

/// The index of a partition, at the position of the view it came with.
#[derive(Clone, Debug)]
pub struct IndexReader {
    pub(crate) pieces: Arc<[Piece]>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) view: View,
}

/// A leaf of a lookup, made ready for all pieces.
enum Leaf {
    All,
    Codes { path: IndexPath, range: CodeRange },
    Present(IndexPath),
}

impl IndexReader {
    /// What the index knows of a path.
    pub fn covers(&self, path: &IndexPath) -> Coverage {
        if self.rules.covers(path) { Coverage::Whole } else { Coverage::None }
    }

    /// Live documents, expired ones included until they are swept.
    pub fn document_count(&self) -> u64 {
        self.pieces.iter().map(Piece::live_count).sum()
    }

    /// A cheap upper bound of the documents that a lookup finds.
    pub async fn estimate(&self, lookup: &Lookup) -> Result<u64, Fault> {
        let leaves: Vec<Leaf> = lookup.leaves()?.into_iter().map(Leaf::new).collect();
        let mut total = 0;
        for piece in &*self.pieces {
            let bounds: Vec<u64> = leaves.iter().map(|leaf| leaf.bound(piece)).collect();
            total += lookup.bound(piece.live_count(), &mut bounds.into_iter());
        }
        Ok(total)
    }

    /// The live documents that a lookup finds. A path that the index does not cover has no documents.
    pub async fn documents(&self, lookup: &Lookup) -> Result<Documents, Fault> {
        let leaves: Vec<Leaf> = lookup.leaves()?.into_iter().map(Leaf::new).collect();
        let mut documents = Documents { parts: Vec::with_capacity(self.pieces.len()), exact: true };
        for piece in &*self.pieces {
            let mut answers = Vec::with_capacity(leaves.len());
            for leaf in &leaves {
                answers.push(leaf.answer(&self.view, piece).await?);
            }
            let universe = piece.numbers().len();
            let answer = lookup.combine(universe, &mut answers.into_iter());
            let live = |set: RoaringBitmap| set - piece.dead();
            let ranks = live(answer.possible);
            let certain = answer.certain.map(live);
            documents.exact &= certain.is_none_or(|certain| certain.len() == ranks.len());
            documents.parts.push(Part { piece: piece.clone(), ranks });
        }
        Ok(documents)
    }

    /// Walks the values at a path in their order, or against it, from a code on; only documents of `within`.
    pub async fn walk(
        &self,
        path: &IndexPath,
        direction: Direction,
        from: Option<Vec<u8>>,
        within: Option<&Documents>,
    ) -> Result<TermWalk, Fault> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let range = match direction {
            Direction::Forward => CodeRange::new(path, &from, &Bound::Unbounded),
            Direction::Backward => CodeRange::new(path, &Bound::Unbounded, &from),
        };
        TermWalk::new(self, path.clone(), direction, &range, within).await
    }
}

impl Leaf {
    fn new(lookup: &Lookup) -> Leaf {
        match lookup {
            Lookup::Term { path, code } => {
                Leaf::Codes { path: path.clone(), range: CodeRange::point(path, code) }
            }
            Lookup::Range { path, low, high } => {
                Leaf::Codes { path: path.clone(), range: CodeRange::new(path, low, high) }
            }
            Lookup::Present(path) => Leaf::Present(path.clone()),
            Lookup::Logical(prefix) => {
                let path = IndexPath::logical();
                Leaf::Codes { range: CodeRange::point(&path, prefix), path }
            }
            Lookup::Effective(EffectiveRange { min, max }) => {
                let path = IndexPath::logical();
                let low = Bound::Included(min.as_bytes().to_vec());
                let high = Bound::Excluded(max.as_bytes().to_vec());
                Leaf::Codes { range: CodeRange::new(&path, &low, &high), path }
            }
            // The others are no leaves.
            Lookup::All | Lookup::And(_) | Lookup::Or(_) | Lookup::Without(_) => Leaf::All,
        }
    }

    async fn answer(&self, _view: &View, piece: &Piece) -> Result<Answer, Fault> {
        match piece {
            Piece::Segment(piece) => Ok(self.answer_segment(piece)),
        }
    }

    fn answer_segment(&self, piece: &SegmentPiece) -> Answer {
        let segment = &piece.segment;
        let universe = segment.numbers().len();
        match self {
            Leaf::All => Answer::exact(ranks::full(universe)),
            Leaf::Present(path) => {
                let term = segment.find_path(path.code()).next();
                let term = term.filter(|term| segment.code(*term) == PRESENT);
                Answer::exact(term.map(|term| segment.posting(term).to_set(universe)).unwrap_or_default())
            }
            Leaf::Codes { path, range } => {
                let mut certain = Gathering::new(universe);
                let mut doubtful = None;
                for term in segment.find_range(path.code(), range) {
                    let posting = segment.posting(term);
                    if range.is_doubtful(segment.code(term)) {
                        doubtful.get_or_insert_with(|| Gathering::new(universe)).add(&posting);
                    } else {
                        certain.add(&posting);
                    }
                }
                joined(certain, doubtful)
            }
        }
    }

    /// An upper bound of the documents in one piece.
    fn bound(&self, piece: &Piece) -> u64 {
        let Piece::Segment(SegmentPiece { segment, .. }) = piece;
        let count = |mut terms: std::ops::Range<usize>| -> u64 {
            let Some(first) = terms.next() else { return 0 };
            let first = segment.posting_count(first) as u64;
            terms.map(|term| segment.posting_count(term) as u64).fold(first, u64::saturating_add)
        };
        match self {
            Leaf::All => segment.numbers().len() as u64,
            Leaf::Present(path) => {
                let terms = segment.find_path(path.code());
                count(terms.start..terms.end.min(terms.start + 1))
            }
            Leaf::Codes { path, range } => count(segment.find_range(path.code(), range)),
        }
    }
}

/// What was found for certain and, if anything, in doubt.
pub(crate) fn joined(certain: Gathering, doubtful: Option<Gathering>) -> Answer {
    let certain = certain.finish();
    match doubtful {
        None => Answer::exact(certain),
        Some(doubtful) => Answer { possible: &certain | doubtful.finish(), certain: Some(certain) },
    }
}
