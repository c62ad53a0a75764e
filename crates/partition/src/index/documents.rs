//! The result of a lookup: live documents of all pieces, in number order.

use crate::index::piece::Piece;
use crate::index::ranks;
use crate::index::universe::Universe;
use model::DocumentNumber;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Documents that a lookup found.
#[derive(Clone, Debug)]
pub struct Documents {
    /// The pieces of the reader.
    pub(crate) pieces: Arc<[Piece]>,
    /// The documents of each piece.
    pub(crate) ranks: Vec<RoaringBitmap>,
    pub(crate) exact: bool,
}

impl Documents {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.ranks.iter().map(RoaringBitmap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranks.iter().all(RoaringBitmap::is_empty)
    }

    /// Removes documents.
    pub fn remove(&mut self, numbers: &[DocumentNumber]) {
        for (piece, set) in self.pieces.iter().zip(&mut self.ranks) {
            for rank in numbers.iter().filter_map(|number| piece.universe().rank(*number)) {
                set.remove(rank);
            }
        }
    }

    /// The number of them that are also in `others`, which came from the same reader.
    pub fn count_in(&self, others: &Documents) -> u64 {
        self.ranks.iter().zip(&others.ranks).map(|(set, other)| set.intersection_len(other)).sum()
    }

    /// Whether all documents match. If not, some may have another value than the requested one, and each must be
    /// checked.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether it contains a document.
    pub fn contains(&self, number: DocumentNumber) -> bool {
        self.parts().any(|(universe, set)| universe.rank(number).is_some_and(|rank| set.contains(rank)))
    }

    /// The universes of the pieces that have some of the documents, and their ranks.
    fn parts(&self) -> impl Iterator<Item = (Universe<'_>, &RoaringBitmap)> {
        let parts = self.pieces.iter().zip(&self.ranks).filter(|(_, set)| !set.is_empty());
        parts.map(|(piece, set)| (piece.universe(), set))
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = DocumentNumber> + '_ {
        self.iter_from(None)
    }

    /// The numbers, ascending, from `first` on or from the start.
    pub fn iter_from(&self, first: Option<DocumentNumber>) -> impl Iterator<Item = DocumentNumber> + '_ {
        let pieces = self.parts().filter_map(|(universe, set)| {
            let mut ranks = set.iter();
            let is_begun = |first: &DocumentNumber| universe.get(0).is_some_and(|number| number < *first);
            if let Some(first) = first.filter(is_begun) {
                ranks.advance_to(universe.rank_from(first));
            }
            PieceDocuments::new(universe, ranks)
        });
        let mut pieces: Vec<_> = pieces.collect();
        std::iter::from_fn(move || {
            let next = pieces.iter().enumerate().min_by_key(|(_, head)| head.number)?.0;
            Some(take(&mut pieces, next))
        })
    }

    /// The numbers, descending, from `last` on or from the end.
    pub fn iter_back_from(&self, last: Option<DocumentNumber>) -> impl Iterator<Item = DocumentNumber> + '_ {
        let pieces = self.parts().filter_map(|(universe, set)| {
            let end = last.map_or(ranks::count(universe.len()), |last| universe.rank_after(last));
            PieceDocuments::new(universe, set.range(..end).rev())
        });
        let mut pieces: Vec<_> = pieces.collect();
        std::iter::from_fn(move || {
            let next = pieces.iter().enumerate().max_by_key(|(_, head)| head.number)?.0;
            Some(take(&mut pieces, next))
        })
    }
}

/// The remaining documents of one piece.
struct PieceDocuments<'a, I> {
    number: DocumentNumber,
    universe: Universe<'a>,
    ranks: I,
}

impl<'a, I: Iterator<Item = u32>> PieceDocuments<'a, I> {
    fn new(universe: Universe<'a>, mut ranks: I) -> Option<PieceDocuments<'a, I>> {
        let number = universe.get(ranks.next()?)?;
        Some(PieceDocuments { number, universe, ranks })
    }
}

/// Takes the next number of a piece, and removes the piece after its last number.
fn take<I: Iterator<Item = u32>>(pieces: &mut Vec<PieceDocuments<'_, I>>, index: usize) -> DocumentNumber {
    let head = &mut pieces[index];
    let number = head.number;
    match head.ranks.next().and_then(|rank| head.universe.get(rank)) {
        Some(next) => head.number = next,
        None => {
            pieces.swap_remove(index);
        }
    }
    number
}
