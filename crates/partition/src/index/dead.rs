//! The dead documents of a piece, as ranks in shared chunks.
//!
//! Readers and jobs keep the set as it was when they got it. When a document dies, only the list of chunks and the
//! chunk of the document are copied, whatever the size of the set, and only if they are shared.

use roaring::RoaringBitmap;
use std::sync::Arc;

/// Ranks per chunk; the set is stored as one row per chunk.
const CHUNK_RANKS: u32 = 1 << 16;
/// Up to this many documents per chunk, single lookups are cheaper than subtracting the chunks.
const LOOKED_UP_MAX: u64 = 16;

/// A set of dead ranks that is cheap to copy and to extend.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadSet {
    /// Chunks with absolute ranks; no chunk is empty.
    chunks: Vec<Option<Arc<RoaringBitmap>>>,
    len: u64,
}

impl DeadSet {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn contains(&self, rank: u32) -> bool {
        self.chunk(rank / CHUNK_RANKS).is_some_and(|chunk| chunk.contains(rank))
    }

    fn chunk(&self, index: u32) -> Option<&Arc<RoaringBitmap>> {
        self.chunks.get(index as usize)?.as_ref()
    }

    /// Adds a rank. Returns whether it is new.
    pub(crate) fn insert(&mut self, rank: u32) -> bool {
        let chunk = self.chunk_mut(rank / CHUNK_RANKS).get_or_insert_default();
        let is_new = Arc::make_mut(chunk).insert(rank);
        self.len += u64::from(is_new);
        is_new
    }

    /// Adds many ranks.
    pub(crate) fn insert_all(&mut self, ranks: &RoaringBitmap) {
        let (Some(first), Some(last)) = (ranks.min(), ranks.max()) else { return };
        for index in first / CHUNK_RANKS..=last / CHUNK_RANKS {
            let start = index * CHUNK_RANKS;
            let added: RoaringBitmap = ranks.range(start..=start + (CHUNK_RANKS - 1)).collect();
            if added.is_empty() {
                continue;
            }
            let chunk = Arc::make_mut(self.chunk_mut(index).get_or_insert_default());
            let before = chunk.len();
            *chunk |= added;
            let after = chunk.len();
            self.len += after - before;
        }
    }

    fn chunk_mut(&mut self, index: u32) -> &mut Option<Arc<RoaringBitmap>> {
        let index = index as usize;
        if self.chunks.len() <= index {
            self.chunks.resize(index + 1, None);
        }
        &mut self.chunks[index]
    }

    /// Adds a stored chunk. Returns whether it is valid and the only one of its ranks.
    pub(crate) fn add_chunk(&mut self, ranks: RoaringBitmap) -> bool {
        let index = |rank: u32| rank / CHUNK_RANKS;
        let (Some(index), Some(last)) = (ranks.min().map(index), ranks.max().map(index)) else {
            return false;
        };
        if index != last || self.chunk(index).is_some() {
            return false;
        }
        self.len += ranks.len();
        *self.chunk_mut(index) = Some(Arc::new(ranks));
        true
    }

    /// The greatest rank.
    pub(crate) fn max(&self) -> Option<u32> {
        self.chunks.iter().rev().flatten().next()?.max()
    }

    /// The chunks that differ from those of `earlier`, a state of the same set, with their indexes.
    pub(crate) fn changed_since(&self, earlier: &DeadSet) -> impl Iterator<Item = (u32, &RoaringBitmap)> {
        (0..).zip(&self.chunks).filter_map(|(index, chunk)| {
            let chunk = chunk.as_ref()?;
            let is_same = earlier.chunk(index).is_some_and(|before| Arc::ptr_eq(chunk, before));
            (!is_same).then_some((index, &**chunk))
        })
    }

    /// The ranks that were not in `earlier`, a state of the same set, ascending.
    pub(crate) fn added_since(&self, earlier: &DeadSet) -> impl Iterator<Item = u32> {
        let changed = self.changed_since(earlier);
        changed.flat_map(|(_, chunk)| chunk.iter().filter(|rank| !earlier.contains(*rank)))
    }

    /// The documents of a set that are not dead.
    pub(crate) fn live_of(&self, mut ranks: RoaringBitmap) -> RoaringBitmap {
        let chunks = self.chunks_around(&ranks);
        if ranks.len() <= LOOKED_UP_MAX * chunks.len() as u64 {
            let dead: Vec<u32> = ranks.iter().filter(|rank| self.contains(*rank)).collect();
            dead.into_iter().for_each(|rank| {
                ranks.remove(rank);
            });
        } else {
            chunks.iter().flatten().for_each(|chunk| ranks -= &**chunk);
        }
        ranks
    }

    /// How many documents of a set are dead.
    pub(crate) fn count_in(&self, ranks: &RoaringBitmap) -> u64 {
        let chunks = self.chunks_around(ranks);
        if ranks.len() <= LOOKED_UP_MAX * chunks.len() as u64 {
            ranks.iter().filter(|rank| self.contains(*rank)).count() as u64
        } else {
            chunks.iter().flatten().map(|chunk| ranks.intersection_len(chunk)).sum()
        }
    }

    /// The chunks from that of the first rank to that of the last.
    fn chunks_around(&self, ranks: &RoaringBitmap) -> &[Option<Arc<RoaringBitmap>>] {
        let (Some(first), Some(last), false) = (ranks.min(), ranks.max(), self.is_empty()) else {
            return &[];
        };
        let end = self.chunks.len().min((last / CHUNK_RANKS) as usize + 1);
        self.chunks.get((first / CHUNK_RANKS) as usize..end).unwrap_or_default()
    }
}

/// Number of chunks of a set of `ranks` ranks, including empty ones.
pub(crate) fn chunk_count(ranks: u32) -> u32 {
    ranks.div_ceil(CHUNK_RANKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks in several chunks, with empty chunks in between.
    fn some(step: usize) -> Vec<u32> {
        (0..6 * CHUNK_RANKS).filter(|rank| rank / CHUNK_RANKS % 3 != 1).step_by(step).collect()
    }

    fn dead(ranks: &[u32]) -> DeadSet {
        let mut set = DeadSet::default();
        ranks.iter().for_each(|rank| assert!(set.insert(*rank) && !set.insert(*rank)));
        set
    }

    #[test]
    fn a_set_in_chunks_equals_one_bitmap() {
        for step in [40, 1_000, 90_000] {
            let set = dead(&some(step));
            let expected: RoaringBitmap = some(step).into_iter().collect();
            assert_eq!((set.len(), set.max()), (expected.len(), expected.max()));
            for other_step in [3, 35, 70_000, 400_000] {
                let other: RoaringBitmap = (0..7 * CHUNK_RANKS).step_by(other_step).collect();
                assert_eq!(set.live_of(other.clone()), &other - &expected);
                assert_eq!(set.count_in(&other), other.intersection_len(&expected));
                assert!(other.iter().all(|rank| set.contains(rank) == expected.contains(rank)));
            }
        }
        let none = DeadSet::default();
        assert_eq!((none.len(), none.max(), none.is_empty()), (0, None, true));
        assert_eq!(none.live_of(RoaringBitmap::new()).len(), 0);
    }

    #[test]
    fn only_the_chunks_that_change_are_copied() {
        let before = Arc::new(dead(&some(1_000)));
        let mut now = Arc::clone(&before);
        let killed = [5, 2 * CHUNK_RANKS + 1];
        killed.iter().for_each(|rank| assert!(Arc::make_mut(&mut now).insert(*rank)));
        let changed: Vec<u32> = now.changed_since(&before).map(|(index, _)| index).collect();
        assert_eq!(changed, [0, 2]);
        let shared = |index| Arc::ptr_eq(now.chunk(index).unwrap(), before.chunk(index).unwrap());
        assert!([3, 5].into_iter().all(shared), "chunks without a new rank are those of before");
        assert!(now.added_since(&before).eq(killed));
        assert_eq!(before.len() + 2, now.len());
        assert!(killed.iter().all(|rank| !before.contains(*rank)));
        let mut many = DeadSet::clone(&before);
        many.insert_all(&some(700).into_iter().collect());
        let mut one_by_one = DeadSet::clone(&before);
        for rank in some(700) {
            one_by_one.insert(rank);
        }
        assert_eq!((many.len(), many.added_since(&one_by_one).next()), (one_by_one.len(), None));
        // A set that is not shared is changed without a copy.
        let mut own = dead(&[1]);
        let chunk = Arc::as_ptr(own.chunk(0).unwrap());
        own.insert(2);
        assert_eq!(Arc::as_ptr(own.chunk(0).unwrap()), chunk);
    }

    #[test]
    fn stored_chunks_come_back_and_damage_is_reported() {
        let set = dead(&some(500));
        let mut again = DeadSet::default();
        for (_, chunk) in set.changed_since(&DeadSet::default()) {
            assert!(again.add_chunk(chunk.clone()));
            assert!(!again.add_chunk(chunk.clone()));
        }
        assert!(!again.add_chunk(RoaringBitmap::new()));
        assert!(!again.add_chunk([CHUNK_RANKS, 2 * CHUNK_RANKS].into_iter().collect()));
        assert_eq!(again.len(), set.len());
        assert_eq!(again.added_since(&set).next(), None);
    }
}
