//! Counts the documents of a value, without iterating over them where possible.

use crate::index::dead::DeadSet;
use crate::index::ranks::Posting;
use crate::index::universe::Universe;
use model::DocumentNumber;
use roaring::RoaringBitmap;

/// How much to return about the documents of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Their number.
    Count,
    /// Also the first and the last of them.
    Ends,
    /// All of them.
    Numbers,
}

/// One value and its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Key code of the value, or a prefix of it.
    pub code: Vec<u8>,
    /// Whether the code is truncated: the documents may have different values with this prefix.
    pub is_cut: bool,
    /// The number of documents.
    pub count: u64,
    /// The first and the last of them, if requested.
    pub ends: Option<(DocumentNumber, DocumentNumber)>,
    /// The documents, ascending, if requested.
    pub numbers: Vec<DocumentNumber>,
}

/// The documents of a piece that count.
pub(crate) struct Live<'a> {
    pub(crate) universe: Universe<'a>,
    pub(crate) dead: &'a DeadSet,
    /// The only ones that count; none of them is dead.
    pub(crate) within: Option<&'a RoaringBitmap>,
}

impl Live<'_> {
    /// Whether all documents of the piece count.
    pub(crate) fn is_everything(&self) -> bool {
        self.within.is_none() && self.dead.is_empty()
    }

    fn has(&self, rank: u32) -> bool {
        match self.within {
            Some(within) => within.contains(rank),
            None => !self.dead.contains(rank),
        }
    }

    pub(crate) fn count(&self, posting: &Posting<'_>) -> u64 {
        match (posting, self.within) {
            (Posting::Full, Some(within)) => within.len(),
            (Posting::Full, None) => self.universe.len() as u64 - self.dead.len(),
            (Posting::Set(set), Some(within)) => set.intersection_len(within),
            (Posting::Set(set), None) => set.len() - self.dead.count_in(set),
            (Posting::Short(ranks), None) if self.dead.is_empty() => ranks.len() as u64,
            (Posting::List(ranks), None) if self.dead.is_empty() => ranks.len() as u64,
            (Posting::Short(ranks), _) => {
                ranks.iter().filter(|rank| self.has(u32::from(**rank))).count() as u64
            }
            (Posting::List(ranks), _) => ranks.iter().filter(|rank| self.has(**rank)).count() as u64,
        }
    }

    /// The first and the last document of a posting.
    fn ends(&self, posting: &Posting<'_>) -> Option<(DocumentNumber, DocumentNumber)> {
        let is_live = |rank: &u32| self.has(*rank);
        let ranks = match (posting, self.within) {
            (Posting::Full, Some(within)) => (within.min(), within.max()),
            (Posting::Full, None) => {
                let mut all = 0..crate::index::ranks::count(self.universe.len());
                (all.clone().find(is_live), all.rfind(is_live))
            }
            (Posting::Set(set), Some(within)) => {
                let both = set & within;
                (both.min(), both.max())
            }
            (Posting::Set(set), None) => (set.iter().find(is_live), set.iter().rev().find(is_live)),
            (Posting::Short(ranks), _) => {
                let mut ranks = ranks.iter().map(|rank| u32::from(*rank));
                (ranks.clone().find(is_live), ranks.rfind(is_live))
            }
            (Posting::List(ranks), _) => {
                let mut ranks = ranks.iter().copied();
                (ranks.clone().find(is_live), ranks.rfind(is_live))
            }
        };
        let number = |rank: Option<u32>| self.universe.get(rank?);
        Some((number(ranks.0)?, number(ranks.1)?))
    }
}

impl Counted {
    pub(crate) fn new(code: Vec<u8>, is_cut: bool) -> Counted {
        Counted { code, is_cut, count: 0, ends: None, numbers: Vec::new() }
    }

    /// Adds the live documents of one piece.
    pub(crate) fn add(&mut self, posting: &Posting<'_>, live: &Live<'_>, detail: Detail) {
        match detail {
            Detail::Count => self.count += live.count(posting),
            Detail::Ends => {
                let Some((first, last)) = live.ends(posting) else { return };
                self.count += live.count(posting);
                self.ends = Some(match self.ends {
                    None => (first, last),
                    Some((known_first, known_last)) => (known_first.min(first), known_last.max(last)),
                });
            }
            Detail::Numbers => {
                let before = self.numbers.len();
                posting.for_each(live.universe.len(), |rank| {
                    if live.has(rank) {
                        self.numbers.extend(live.universe.get(rank));
                    }
                });
                self.count += (self.numbers.len() - before) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_posting_is_counted_alike() {
        let universe: Vec<DocumentNumber> = (1..=300).filter_map(DocumentNumber::from_raw).collect();
        let ranks: Vec<u32> = (0..300).filter(|rank| rank % 3 == 0).collect();
        let short: Vec<u16> = (0..300).filter(|rank| rank % 3 == 0).collect();
        let full: Vec<u32> = (0..300).collect();
        let mut dead = DeadSet::default();
        (0..90).for_each(|rank| {
            dead.insert(rank);
        });
        let within: RoaringBitmap = (100..250).filter(|rank| rank % 2 == 0).collect();
        let (none, nowhere) = (DeadSet::default(), RoaringBitmap::new());
        let postings = [
            (Posting::Full, &full),
            (Posting::Short(&short), &ranks),
            (Posting::List(ranks.clone()), &ranks),
            (Posting::Set(ranks.iter().copied().collect()), &ranks),
        ];
        for (dead, within) in [
            (&none, None),
            (&dead, None),
            (&dead, Some(&within)),
            (&none, Some(&nowhere)),
            (&none, Some(&within)),
        ] {
            let live = Live { universe: Universe::Listed(&universe), dead, within };
            for (posting, ranks) in &postings {
                let expected: Vec<DocumentNumber> = ranks
                    .iter()
                    .filter(|rank| live.has(**rank))
                    .map(|rank| universe[*rank as usize])
                    .collect();
                let counted = |detail| {
                    let mut counted = Counted::new(Vec::new(), false);
                    counted.add(posting, &live, detail);
                    assert_eq!(counted.count, expected.len() as u64);
                    counted
                };
                counted(Detail::Count);
                let ends = expected.first().copied().zip(expected.last().copied());
                assert_eq!(counted(Detail::Ends).ends, ends);
                assert_eq!(counted(Detail::Numbers).numbers, expected);
            }
        }
    }
}
