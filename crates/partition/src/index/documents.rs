//! The answer to a lookup: live documents of all pieces, in the order of their numbers.

use crate::index::piece::Piece;
use crate::index::ranks;
use model::DocumentNumber;
use roaring::RoaringBitmap;

/// Documents that a lookup found.
#[derive(Clone, Debug)]
pub struct Documents {
    /// One per piece of the reader, in its order.
    pub(crate) parts: Vec<Part>,
    pub(crate) exact: bool,
}

/// The documents of one piece.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) piece: Piece,
    pub(crate) ranks: RoaringBitmap,
}

impl Documents {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.ranks.len()).sum()
    }

    /// Takes documents off.
    pub fn remove(&mut self, numbers: &[DocumentNumber]) {
        for part in &mut self.parts {
            let universe = part.piece.numbers();
            for rank in numbers.iter().filter_map(|number| universe.binary_search(number).ok()) {
                part.ranks.remove(ranks::count(rank));
            }
        }
    }

    /// How many of them are also among `others`, which came from the same reader.
    pub fn count_in(&self, others: &Documents) -> u64 {
        let pairs = self.parts.iter().zip(&others.parts);
        pairs.map(|(part, other)| part.ranks.intersection_len(&other.ranks)).sum()
    }

    /// Whether every one of them is wanted. If not, some may have another value than the one asked for, and the
    /// document must be looked at.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether a document is among them.
    pub fn contains(&self, number: DocumentNumber) -> bool {
        self.parts.iter().any(|part| {
            let rank = part.piece.numbers().binary_search(&number);
            rank.is_ok_and(|rank| part.ranks.contains(ranks::count(rank)))
        })
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = DocumentNumber> + '_ {
        self.iter_from(None)
    }

    /// The numbers, ascending, from `first` on or from the beginning.
    pub fn iter_from(&self, first: Option<DocumentNumber>) -> impl Iterator<Item = DocumentNumber> + '_ {
        let heads = self.parts.iter().filter(|part| !part.ranks.is_empty()).filter_map(|part| {
            let numbers = part.piece.numbers();
            let mut ranks = part.ranks.iter();
            let is_begun = |first: &DocumentNumber| numbers.first().is_some_and(|number| number < first);
            if let Some(first) = first.filter(is_begun) {
                ranks.advance_to(ranks::count(numbers.partition_point(|number| *number < first)));
            }
            Head::new(numbers, ranks)
        });
        let mut heads: Vec<_> = heads.collect();
        std::iter::from_fn(move || {
            let next = heads.iter().enumerate().min_by_key(|(_, head)| head.number)?.0;
            Some(take(&mut heads, next))
        })
    }

    /// The numbers, descending, from `last` on or from the end.
    pub fn iter_back_from(&self, last: Option<DocumentNumber>) -> impl Iterator<Item = DocumentNumber> + '_ {
        let heads = self.parts.iter().filter_map(|part| {
            let numbers = part.piece.numbers();
            let end = last.map_or(numbers.len(), |last| numbers.partition_point(|number| *number <= last));
            Head::new(numbers, part.ranks.range(..ranks::count(end)).rev())
        });
        let mut heads: Vec<_> = heads.collect();
        std::iter::from_fn(move || {
            let next = heads.iter().enumerate().max_by_key(|(_, head)| head.number)?.0;
            Some(take(&mut heads, next))
        })
    }
}

/// The documents of one piece that are still to come.
struct Head<'a, I> {
    number: DocumentNumber,
    numbers: &'a [DocumentNumber],
    ranks: I,
}

impl<'a, I: Iterator<Item = u32>> Head<'a, I> {
    fn new(numbers: &'a [DocumentNumber], mut ranks: I) -> Option<Head<'a, I>> {
        let number = *numbers.get(ranks.next()? as usize)?;
        Some(Head { number, numbers, ranks })
    }
}

/// The number at the head of a piece; the piece leaves when it was its last.
fn take<I: Iterator<Item = u32>>(heads: &mut Vec<Head<'_, I>>, index: usize) -> DocumentNumber {
    let head = &mut heads[index];
    let number = head.number;
    match head.ranks.next().and_then(|rank| head.numbers.get(rank as usize)) {
        Some(next) => head.number = *next,
        None => {
            heads.swap_remove(index);
        }
    }
    number
}
