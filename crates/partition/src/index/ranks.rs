//! Sets of ranks: positions of documents in the universe of one piece.

use roaring::RoaringBitmap;

/// Ranks that are collected as a list; more are collected as bits.
const LIST_MAX: usize = 4096;

/// Collects ranks in any order, with duplicates, into a set.
pub(crate) struct RankCollector {
    universe: usize,
    list: Vec<u32>,
    bits: Vec<u64>,
    sets: RoaringBitmap,
    everything: bool,
}

impl RankCollector {
    pub(crate) fn new(universe: usize) -> RankCollector {
        RankCollector {
            universe,
            list: Vec::new(),
            bits: Vec::new(),
            sets: RoaringBitmap::new(),
            everything: false,
        }
    }

    pub(crate) fn add(&mut self, posting: Posting<'_>) {
        match posting {
            Posting::Full => self.everything = true,
            Posting::Short(ranks) => self.add_all(ranks.iter().map(|rank| u32::from(*rank))),
            Posting::List(ranks) => self.add_all(ranks.into_iter()),
            Posting::Set(set) if self.sets.is_empty() => self.sets = set,
            Posting::Set(set) => self.sets |= set,
        }
    }

    fn add_all(&mut self, ranks: impl Iterator<Item = u32>) {
        if self.bits.is_empty() {
            self.list.extend(ranks);
            if self.list.len() > LIST_MAX {
                self.bits = vec![0; self.universe.div_ceil(64)];
                let list = std::mem::take(&mut self.list);
                list.into_iter().for_each(|rank| self.set(rank));
            }
        } else {
            ranks.for_each(|rank| self.set(rank));
        }
    }

    fn set(&mut self, rank: u32) {
        if let Some(word) = self.bits.get_mut(rank as usize / 64) {
            *word |= 1 << (rank % 64);
        }
    }

    pub(crate) fn finish(mut self) -> RoaringBitmap {
        if self.everything {
            return full(self.universe);
        }
        let gathered = if self.bits.is_empty() {
            self.list.sort_unstable();
            self.list.dedup();
            sorted(self.list.iter().copied())
        } else {
            let bytes: Vec<u8> = self.bits.iter().flat_map(|word| word.to_le_bytes()).collect();
            RoaringBitmap::from_lsb0_bytes(0, &bytes)
        };
        if self.sets.is_empty() { gathered } else { self.sets | gathered }
    }
}

/// The documents of a term in one piece, as the piece stores them.
#[derive(Clone, Debug)]
pub(crate) enum Posting<'a> {
    /// All documents of the piece.
    Full,
    /// Ranks, ascending.
    Short(&'a [u16]),
    /// Ranks, ascending.
    List(Vec<u32>),
    /// Ranks.
    Set(RoaringBitmap),
}

impl Posting<'_> {
    /// The documents as a set, without copying it if it is one.
    pub(crate) fn into_set(self, universe: usize) -> RoaringBitmap {
        match self {
            Posting::Set(set) => set,
            Posting::Full | Posting::Short(_) | Posting::List(_) => self.to_set(universe),
        }
    }

    /// The documents as a set.
    pub(crate) fn to_set(&self, universe: usize) -> RoaringBitmap {
        match self {
            Posting::Full => full(universe),
            Posting::Short(ranks) => short(ranks),
            Posting::List(ranks) => sorted(ranks.iter().copied()),
            Posting::Set(set) => set.clone(),
        }
    }

    /// The number of its documents in the universe.
    fn len(&self, universe: usize) -> usize {
        match self {
            Posting::Full => universe,
            Posting::Short(ranks) => ranks.len(),
            Posting::List(ranks) => ranks.len(),
            Posting::Set(set) => usize::try_from(set.len()).unwrap_or(usize::MAX),
        }
    }

    /// The documents as a list, ascending.
    fn to_list(&self, universe: usize) -> Vec<u32> {
        let mut list = Vec::with_capacity(self.len(universe));
        self.for_each(universe, |rank| list.push(rank));
        list
    }

    /// Removes from `ranks`, ascending, those that it does not have.
    fn keep_common(&self, ranks: &mut Vec<u32>) {
        match self {
            Posting::Full => {}
            Posting::Short(own) => {
                ranks.retain(|rank| u16::try_from(*rank).is_ok_and(|rank| own.binary_search(&rank).is_ok()))
            }
            Posting::List(own) => ranks.retain(|rank| own.binary_search(rank).is_ok()),
            Posting::Set(set) => {
                let [Some(first), Some(last)] = [ranks.first(), ranks.last()] else { return };
                // Ranks close together, as those of a logical partition often are: the set has few between them.
                let between: Vec<u32> = set.range(*first..=*last).take(ranks.len() + 1).collect();
                if between.len() <= ranks.len() {
                    let is_common = |rank: &u32| ranks.binary_search(rank).is_ok();
                    *ranks = between.into_iter().filter(is_common).collect();
                } else {
                    ranks.retain(|rank| set.contains(*rank));
                }
            }
        }
    }

    /// Calls `take` with every rank, ascending.
    pub(crate) fn for_each(&self, universe: usize, mut take: impl FnMut(u32)) {
        match self {
            Posting::Full => (0..count(universe)).for_each(take),
            Posting::Short(ranks) => ranks.iter().for_each(|rank| take(u32::from(*rank))),
            Posting::List(ranks) => ranks.iter().for_each(|rank| take(*rank)),
            Posting::Set(set) => set.iter().for_each(take),
        }
    }
}

/// Maximum length of a posting whose ranks are looked up in the others one by one; longer ones become sets.
const LOOKED_FOR_MAX: usize = 1024;

/// The intersection of postings.
pub(crate) fn common(postings: &mut [Posting<'_>], universe: usize) -> RoaringBitmap {
    postings.sort_by_key(|posting| posting.len(universe));
    match postings {
        [] => full(universe),
        [only] => std::mem::replace(only, Posting::Full).into_set(universe),
        [first, others @ ..] if first.len(universe) <= LOOKED_FOR_MAX => {
            let mut common = first.to_list(universe);
            others.iter().for_each(|other| other.keep_common(&mut common));
            sorted(common.into_iter())
        }
        [first, others @ ..] => {
            others.iter().fold(first.to_set(universe), |set, other| set & other.to_set(universe))
        }
    }
}

/// All ranks of a universe.
pub(crate) fn full(universe: usize) -> RoaringBitmap {
    let mut all = RoaringBitmap::new();
    all.insert_range(0..count(universe));
    all
}

/// A universe never has more documents than a rank can count.
pub(crate) fn count(universe: usize) -> u32 {
    u32::try_from(universe).unwrap_or(u32::MAX)
}

/// Ranks from which on a set is read from its serialised form, and the maximum that this form stores as a list.
const STORED_MIN: usize = 8;
const STORED_MAX: usize = 4096;
/// First bytes of the serialised form of a set without run containers.
const STORED_COOKIE: u32 = 12_346;
/// Bytes of the serialised form before the list of the first container: cookie, count of containers, key and size of
/// the container, and this offset itself.
const STORED_HEAD: u32 = 16;

/// A set from ascending 16-bit ranks. Reading it from its serialised form is far cheaper than adding them one by one.
fn short(ranks: &[u16]) -> RoaringBitmap {
    let one_by_one = || sorted(ranks.iter().map(|rank| u32::from(*rank)));
    let Some(last) = u16::try_from(ranks.len()).ok().and_then(|count| count.checked_sub(1)) else {
        return one_by_one();
    };
    if !(STORED_MIN..=STORED_MAX).contains(&ranks.len()) {
        return one_by_one();
    }
    let mut stored = Vec::with_capacity(STORED_HEAD as usize + size_of_val(ranks));
    stored.extend_from_slice(&STORED_COOKIE.to_le_bytes());
    stored.extend_from_slice(&1_u32.to_le_bytes());
    stored.extend_from_slice(&0_u16.to_le_bytes());
    stored.extend_from_slice(&last.to_le_bytes());
    stored.extend_from_slice(&STORED_HEAD.to_le_bytes());
    ranks.iter().for_each(|rank| stored.extend_from_slice(&rank.to_le_bytes()));
    RoaringBitmap::deserialize_from(&*stored).unwrap_or_else(|_| one_by_one())
}

/// A set from ranks, which are usually ascending; others are added one by one.
pub(crate) fn sorted(ranks: impl Iterator<Item = u32> + Clone) -> RoaringBitmap {
    RoaringBitmap::from_sorted_iter(ranks.clone()).unwrap_or_else(|_| ranks.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_posting_has_the_same_in_common() {
        for step in [1, 3] {
            let short: Vec<u16> = (0..6000).step_by(step).collect();
            let list: Vec<u32> = (0..6000).step_by(step).collect();
            let set: RoaringBitmap = list.iter().copied().collect();
            let all = [Posting::Full, Posting::Short(&short), Posting::List(list), Posting::Set(set)];
            let some: Vec<u32> = (5..5000).step_by(7 * step).collect();
            for one in &all {
                for other in [Posting::List(some.clone()), Posting::Set(some.iter().copied().collect())] {
                    let expected = &one.to_set(6000) & &other.to_set(6000);
                    assert_eq!(common(&mut [one.clone(), other.clone()], 6000), expected);
                    assert_eq!(common(&mut [other, one.clone(), one.clone()], 6000), expected);
                }
                for other in &all {
                    let expected = &one.to_set(6000) & &other.to_set(6000);
                    assert_eq!(common(&mut [one.clone(), other.clone()], 6000), expected);
                }
            }
        }
        assert_eq!(common(&mut [], 7).len(), 7);
    }

    #[test]
    fn short_ranks_make_the_same_set_however_many_they_are() {
        for count in [0, 1, STORED_MIN - 1, STORED_MIN, 500, STORED_MAX, STORED_MAX + 1, 20_000] {
            let ranks: Vec<u16> = (0..u16::MAX).step_by(3).take(count).collect();
            assert_eq!(short(&ranks), ranks.iter().map(|rank| u32::from(*rank)).collect());
        }
        let in_disorder: Vec<u16> = (0..100).rev().collect();
        assert_eq!(short(&in_disorder).len(), 100);
    }

    #[test]
    fn many_ranks_and_few_are_collected_alike() {
        for step in [1_usize, 3, 700] {
            let ranks: Vec<u32> = (0..20_000_u32).rev().step_by(step).collect();
            let mut gathering = RankCollector::new(20_000);
            gathering.add(Posting::List(ranks.clone()));
            gathering.add(Posting::Short(&[5, 6]));
            gathering.add(Posting::Set([9, 10].into_iter().collect()));
            gathering.add(Posting::Set([19_999].into_iter().collect()));
            let expected: RoaringBitmap = ranks.into_iter().chain([5, 6, 9, 10, 19_999]).collect();
            assert_eq!(gathering.finish(), expected);
        }
        let mut everything = RankCollector::new(7);
        everything.add(Posting::Full);
        assert_eq!(everything.finish().len(), 7);
    }
}
