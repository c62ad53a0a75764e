//! Cache of record keys by document number, of recently read or written documents.
//!
//! An entry may not match the state of a reader: the document may be deleted or have another id, and another document
//! may have its key. A reader compares the number in the record it finds, and if it differs uses the number row of its
//! own state.

use bytes::Bytes;
use foldhash::fast::FixedState;
use model::{ContainerNumber, DocumentNumber};
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of shards, each with its own lock, so that readers rarely contend.
const SHARDS: usize = 16;
/// Overhead of an entry in addition to its key.
const ENTRY_BYTES: usize = 96;
/// Expected size of a key, for the initial capacity.
const KEY_BYTES_EXPECTED: usize = 64;
/// Limit of the initial capacity of a shard, in keys. A large cache grows to its size.
const SHARD_KEYS_EXPECTED_MAX: usize = 1024;

type ContainerDocument = (ContainerNumber, DocumentNumber);

/// Record keys by document number.
#[derive(Debug)]
pub(crate) struct KeyCache {
    shards: Vec<Mutex<Cache<ContainerDocument, Bytes, ByBytes, FixedState>>>,
    hasher: FixedState,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<ContainerDocument, Bytes> for ByBytes {
    fn weight(&self, _number: &ContainerDocument, key: &Bytes) -> u64 {
        (key.len() + ENTRY_BYTES) as u64
    }
}

impl KeyCache {
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).weight()).sum()
    }

    /// A cache of about `bytes_max` bytes; with 0 it caches nothing.
    pub(crate) fn new(bytes_max: usize, seed: u64) -> KeyCache {
        let hasher = FixedState::with_seed(seed);
        let shard_bytes = bytes_max / SHARDS;
        let expected = (shard_bytes / (KEY_BYTES_EXPECTED + ENTRY_BYTES)).min(SHARD_KEYS_EXPECTED_MAX);
        let shard = || {
            let lifecycle = DefaultLifecycle::default();
            Mutex::new(Cache::with(expected, shard_bytes as u64, ByBytes, hasher.clone(), lifecycle))
        };
        KeyCache { shards: (0..SHARDS).map(|_| shard()).collect(), hasher }
    }

    /// The record key that the document has or had.
    pub(crate) fn get(&self, container: ContainerNumber, number: DocumentNumber) -> Option<Bytes> {
        let number = (container, number);
        self.shard(&number).get(&number).cloned()
    }

    /// Caches a key, which must not share a larger allocation.
    pub(crate) fn keep(&self, container: ContainerNumber, number: DocumentNumber, key: Bytes) {
        let number = (container, number);
        self.shard(&number).insert(number, key);
    }

    fn shard(
        &self,
        number: &ContainerDocument,
    ) -> MutexGuard<'_, Cache<ContainerDocument, Bytes, ByBytes, FixedState>> {
        // The low bits are used by the cache itself.
        let [.., index] = self.hasher.hash_one(number).to_le_bytes();
        self.shards[usize::from(index) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[test]
fn keys_are_kept_within_their_bytes() {
    let container = ContainerNumber(7);
    for bytes_max in [0, 64 * 1024] {
        let cache = KeyCache::new(bytes_max, 7);
        let numbers = || (0..10_000).filter_map(DocumentNumber::from_raw);
        for number in numbers() {
            let key = Bytes::copy_from_slice(&number.raw().to_be_bytes());
            cache.keep(container, number, key.clone());
            assert!(cache.get(container, number).is_none_or(|kept| kept == key));
            assert!(cache.get(ContainerNumber(8), number).is_none());
        }
        let kept = numbers().filter(|number| cache.get(container, *number).is_some()).count();
        assert_eq!(kept > 0, bytes_max > 0);
        assert!(kept * ENTRY_BYTES <= bytes_max, "{kept} of {bytes_max} bytes");
    }
}
