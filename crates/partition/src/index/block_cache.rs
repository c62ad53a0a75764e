//! Cache of decoded rows of runs, for all partitions of a store.
//!
//! A row of a run never changes and run numbers are never reused, so entries need no invalidation.

use crate::index::block::Block;
use crate::keyspace::PartitionId;
use foldhash::fast::FixedState;
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use roaring::RoaringBitmap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of shards, each with its own lock.
const SHARDS: usize = 8;
/// Overhead of an entry in addition to its row.
const ENTRY_BYTES: u64 = 128;
/// Expected size of a row, for the initial capacity.
const ROW_BYTES: usize = 16 * 1024;

/// Identifies a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowAddress {
    pub(crate) partition: PartitionId,
    pub(crate) run: u64,
    pub(crate) row: u32,
}

/// A decoded row.
#[derive(Clone, Debug)]
pub(crate) enum CachedRow {
    Block(Block),
    Bitmap(Arc<RoaringBitmap>),
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<RowAddress, CachedRow> for ByBytes {
    fn weight(&self, _address: &RowAddress, row: &CachedRow) -> u64 {
        let bytes = match row {
            CachedRow::Block(block) => block.size_bytes(),
            CachedRow::Bitmap(set) => set.serialized_size(),
        };
        ENTRY_BYTES + bytes as u64
    }
}

/// Decoded rows of runs by their address.
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Cache<RowAddress, CachedRow, ByBytes, FixedState>>>,
    hasher: FixedState,
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("BlockCache")
    }
}

impl BlockCache {
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).weight()).sum()
    }

    pub(crate) fn new(bytes_max: usize) -> BlockCache {
        let hasher = FixedState::default();
        let shard = || {
            let bytes = bytes_max / SHARDS;
            let lifecycle = DefaultLifecycle::default();
            Mutex::new(Cache::with(bytes / ROW_BYTES, bytes as u64, ByBytes, hasher.clone(), lifecycle))
        };
        BlockCache { shards: (0..SHARDS).map(|_| shard()).collect(), hasher: hasher.clone() }
    }

    pub(crate) fn get(&self, address: &RowAddress) -> Option<CachedRow> {
        self.shard(address)?.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned()
    }

    pub(crate) fn keep(&self, address: RowAddress, row: CachedRow) {
        if let Some(shard) = self.shard(&address) {
            shard.lock().unwrap_or_else(PoisonError::into_inner).insert(address, row);
        }
    }

    fn shard(
        &self,
        address: &RowAddress,
    ) -> Option<&Mutex<Cache<RowAddress, CachedRow, ByBytes, FixedState>>> {
        // The low bits are used by the cache itself.
        let index = (self.hasher.hash_one(address) >> 48) % SHARDS as u64;
        self.shards.get(usize::try_from(index).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ContainerNumber, PartitionOrdinal};

    #[test]
    fn what_is_kept_is_found_and_bounded() {
        let cache = BlockCache::new(SHARDS * 64 * 1024);
        let partition = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(2) };
        for row in 0..10_000 {
            let address = RowAddress { partition, run: 3, row };
            let set: RoaringBitmap = (0..row % 500).map(|rank| rank * 3).collect();
            cache.keep(address, CachedRow::Bitmap(Arc::new(set.clone())));
            if let Some(CachedRow::Bitmap(found)) = cache.get(&address) {
                assert_eq!(*found, set);
            }
        }
        let addresses = (0..10_000).map(|row| RowAddress { partition, run: 3, row });
        let kept = addresses.filter(|address| cache.get(address).is_some()).count();
        assert!(kept > 0 && kept < 10_000, "{kept}");
        assert!(cache.get(&RowAddress { partition, run: 4, row: 1 }).is_none());
    }
}
