//! The universe of a piece: its document numbers, ascending. The index of a number is its rank.
//!
//! Segments list them, runs have them packed.

use crate::index::packed::{Packed, Packer};
use crate::index::ranks;
use model::DocumentNumber;

pub(crate) type PackedNumbers = Packed<1>;
pub(crate) type NumberPacker = Packer<1>;

/// The document numbers of a piece, listed or packed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Universe<'a> {
    Listed(&'a [DocumentNumber]),
    Packed(&'a PackedNumbers),
}

impl<'a> Universe<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Universe::Listed(numbers) => numbers.len(),
            Universe::Packed(numbers) => numbers.len(),
        }
    }

    /// The document number of a rank.
    pub(crate) fn get(self, rank: u32) -> Option<DocumentNumber> {
        match self {
            Universe::Listed(numbers) => numbers.get(rank as usize).copied(),
            Universe::Packed(numbers) => numbers.get(rank as usize).and_then(DocumentNumber::from_raw),
        }
    }

    /// The rank of a document number.
    pub(crate) fn rank(self, number: DocumentNumber) -> Option<u32> {
        let rank = match self {
            Universe::Listed(numbers) => numbers.binary_search(&number).ok(),
            Universe::Packed(numbers) => numbers.find(number.raw()),
        };
        rank.map(ranks::count)
    }

    /// The first rank with this number or a greater one.
    pub(crate) fn rank_from(self, number: DocumentNumber) -> u32 {
        ranks::count(match self {
            Universe::Listed(numbers) => numbers.partition_point(|known| *known < number),
            Universe::Packed(numbers) => numbers.first_from(number.raw()),
        })
    }

    /// The first rank with a greater number.
    pub(crate) fn rank_after(self, number: DocumentNumber) -> u32 {
        ranks::count(match self {
            Universe::Listed(numbers) => numbers.partition_point(|known| *known <= number),
            Universe::Packed(numbers) => numbers.first_from(number.raw() + 1),
        })
    }

    /// Whether a number is between the first and the last.
    pub(crate) fn spans(self, number: DocumentNumber) -> bool {
        match self {
            Universe::Listed(numbers) => {
                numbers.first().is_some_and(|first| *first <= number)
                    && numbers.last().is_some_and(|last| *last >= number)
            }
            Universe::Packed(numbers) => {
                numbers.first().is_some_and(|first| first <= number.raw())
                    && numbers.last().is_some_and(|last| last >= number.raw())
            }
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = DocumentNumber> + 'a {
        (0..ranks::count(self.len())).filter_map(move |rank| self.get(rank))
    }
}
