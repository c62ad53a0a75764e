//! Records that were read lately, in front of the store: one cache for all partitions of a store.
//!
//! A cached record is always the current one. The writer takes a key out when it hands a new version of it to the
//! store, and holds the key's place shut until that version is published. A reader that did not find the record
//! asks for leave *before* it takes its view, and its find is kept only if nothing was written at that place since:
//! then its view holds what every later view holds too. Knows nothing of what a record means.
//!
//! Places are shared by the keys whose hashes end alike, so that they cost no memory per key; a reader that meets a
//! place shut for another key's sake reads from the store and keeps nothing, which is always right.

use crate::key_cache::KeyCache;
use crate::record::Record;
use bytes::Bytes;
use foldhash::fast::FixedState;
use model::Lsn;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts with a lock each, so that readers seldom meet.
const SHARDS: usize = 16;
/// The part of its bytes that is given to keys by number: a key is to a document about as one to sixteen.
const KEYS_SHARE: usize = 16;
/// Places of one shard.
const PLACES: usize = 256;
/// What an entry takes besides its bytes: two handles of bytes, the record's header, the cache's own links.
const ENTRY_BYTES: u64 = 200;
/// Size that the cache expects of a record when it makes its tables.
const RECORD_BYTES_EXPECTED: usize = 1024;

/// Records of a shard that room is made for at once; a large cache grows into its size.
const SHARD_RECORDS_EXPECTED_MAX: usize = 4096;

/// See the file's head.
#[derive(Debug)]
pub struct RecordCache {
    /// Under which keys documents are kept, for readers that know numbers.
    pub(crate) keys: KeyCache,
    shards: Vec<Mutex<Shard>>,
    hasher: FixedState,
    hits: Counter,
    misses: Counter,
}

#[derive(Debug)]
struct Shard {
    records: Cache<Bytes, Record, ByBytes, FixedState>,
    places: Vec<Place>,
}

/// What has happened to the keys of one place.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Versions handed to the store and not published yet.
    pending: u32,
    /// Counts all versions ever handed to the store; may wrap around.
    writes: u32,
}

/// Leave to keep what a view taken from now on shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    shard: usize,
    place: usize,
    writes: u32,
}

/// What looking for a record gives.
pub(crate) enum Probe {
    Hit(Record),
    /// Not here; with leave to keep what is found, unless a writer is at it.
    Miss(Option<Leave>),
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<Bytes, Record> for ByBytes {
    fn weight(&self, key: &Bytes, record: &Record) -> u64 {
        (key.len() + record.document.bytes().len()) as u64 + ENTRY_BYTES
    }
}

impl RecordCache {
    /// A cache of about so many bytes; with none it keeps nothing. `seed` is secret, lest clients choose ids whose
    /// hashes are alike.
    pub fn new(bytes_max: usize, seed: u64) -> RecordCache {
        let hasher = FixedState::with_seed(seed);
        let keys_bytes = bytes_max / KEYS_SHARE;
        let shard_bytes = (bytes_max - keys_bytes) / SHARDS;
        let shard = || {
            let records = Cache::with(
                (shard_bytes / RECORD_BYTES_EXPECTED).min(SHARD_RECORDS_EXPECTED_MAX),
                shard_bytes as u64,
                ByBytes,
                hasher.clone(),
                DefaultLifecycle::default(),
            );
            Mutex::new(Shard { records, places: vec![Place::default(); PLACES] })
        };
        let keys = KeyCache::new(keys_bytes, seed);
        let (hits, misses) = (Counter::default(), Counter::default());
        RecordCache { keys, shards: (0..SHARDS).map(|_| shard()).collect(), hasher, hits, misses }
    }

    /// Registers what it counts.
    pub fn register(&self, registry: &mut Registry) {
        let hits = "Documents that were found in the record cache";
        registry.register("record_cache_hits", hits, self.hits.clone());
        let misses = "Documents that were not found in the record cache and were read from the store";
        registry.register("record_cache_misses", misses, self.misses.clone());
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> u64 {
        let records = (0..self.shards.len()).map(|shard| self.shard(shard).records.weight()).sum::<u64>();
        records + self.keys.memory_bytes()
    }

    /// Looks for the record under `key`.
    pub(crate) fn probe(&self, key: &[u8]) -> Probe {
        let (shard_index, place_index) = self.place_of(key);
        let shard = self.shard(shard_index);
        if let Some(record) = shard.records.get(key) {
            self.hits.inc();
            return Probe::Hit(record.clone());
        }
        self.misses.inc();
        let Place { pending, writes } = shard.places[place_index];
        Probe::Miss((pending == 0).then_some(Leave { shard: shard_index, place: place_index, writes }))
    }

    /// The record under `key` as a view at `lsn` has it, if that is the current one and here: what a view is too old
    /// for was written behind it.
    pub(crate) fn current(&self, key: &[u8], lsn: Lsn) -> Option<Record> {
        let (shard, _) = self.place_of(key);
        let found = self.shard(shard).records.get(key).filter(|record| record.lsn <= lsn).cloned();
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.inc();
        found
    }

    /// Keeps a record that was found after `leave` was given.
    pub(crate) fn keep(&self, leave: Leave, key: Bytes, record: &Record) {
        let mut shard = self.shard(leave.shard);
        if shard.places[leave.place].writes == leave.writes {
            // The record shares the memory of a whole block of the store; a copy holds its own bytes only.
            shard.records.insert(key, record.detached());
        }
    }

    /// A new version under `key` is on its way to the store: nothing may be kept until [`RecordCache::opened`].
    pub(crate) fn shut(&self, key: &[u8]) {
        let (shard, place) = self.place_of(key);
        let mut shard = self.shard(shard);
        let place = &mut shard.places[place];
        place.pending += 1;
        place.writes = place.writes.wrapping_add(1);
        shard.records.remove(key);
    }

    /// It is certain whether the version was published; readers will find out.
    pub(crate) fn opened(&self, key: &[u8]) {
        let (shard, place) = self.place_of(key);
        let place = &mut self.shard(shard).places[place];
        place.pending = place.pending.saturating_sub(1);
    }

    /// The version is published, and kept: what was just written is likely to be read. Not if another version
    /// at this place is under way, for that may be of the same key.
    pub(crate) fn published(&self, key: Bytes, record: Record) {
        let (shard, place) = self.place_of(&key);
        let mut shard = self.shard(shard);
        let place = &mut shard.places[place];
        place.pending = place.pending.saturating_sub(1);
        if place.pending == 0 {
            shard.records.insert(key, record);
        }
    }

    /// Forgets everything: acknowledged versions may be gone from the store. What was read before is not kept either.
    pub(crate) fn clear(&self) {
        for index in 0..self.shards.len() {
            let mut shard = self.shard(index);
            shard.records.clear();
            shard.places.iter_mut().for_each(|place| place.writes = place.writes.wrapping_add(1));
        }
    }

    fn place_of(&self, key: &[u8]) -> (usize, usize) {
        let hash = self.hasher.hash_one(key);
        let [shard, place, ..] = hash.to_le_bytes();
        (usize::from(shard) % SHARDS, usize::from(place) % PLACES)
    }

    fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DocumentNumber, PartitionOrdinal, Ticks};
    use plan::Ttl;
    use value::Document;

    fn record(lsn: u64) -> Record {
        Record {
            number: DocumentNumber::new(PartitionOrdinal(0), 1).unwrap(),
            lsn: Lsn(lsn),
            position: 0,
            ordinal: PartitionOrdinal(0),
            stamp: lsn,
            time: Ticks(0),
            ttl: Ttl::Inherit,
            document: Document::from_json(br#"{"id":"a"}"#).unwrap(),
        }
    }

    fn leave(cache: &RecordCache, key: &[u8]) -> Option<Leave> {
        match cache.probe(key) {
            Probe::Hit(_) => panic!("{key:?} is cached"),
            Probe::Miss(leave) => leave,
        }
    }

    fn cached_lsn(cache: &RecordCache, key: &[u8]) -> Option<u64> {
        match cache.probe(key) {
            Probe::Hit(record) => Some(record.lsn.0),
            Probe::Miss(_) => None,
        }
    }

    #[test]
    fn a_read_record_is_found_again_until_it_is_written() {
        let cache = RecordCache::new(1 << 20, 7);
        let given = leave(&cache, b"k").unwrap();
        cache.keep(given, Bytes::from_static(b"k"), &record(1));
        assert_eq!(cached_lsn(&cache, b"k"), Some(1));
        cache.shut(b"k");
        assert_eq!(cached_lsn(&cache, b"k"), None);
    }

    #[test]
    fn nothing_from_before_a_clearing_is_found_or_kept() {
        let cache = RecordCache::new(1 << 20, 7);
        let (given, late) = (leave(&cache, b"k").unwrap(), leave(&cache, b"j").unwrap());
        cache.keep(given, Bytes::from_static(b"k"), &record(1));
        cache.clear();
        cache.keep(late, Bytes::from_static(b"j"), &record(1));
        assert_eq!([cached_lsn(&cache, b"k"), cached_lsn(&cache, b"j")], [None, None]);
    }

    #[test]
    fn a_view_from_before_the_record_does_not_get_it() {
        let cache = RecordCache::new(1 << 20, 7);
        let given = leave(&cache, b"k").unwrap();
        cache.keep(given, Bytes::from_static(b"k"), &record(5));
        assert!(cache.current(b"k", Lsn(4)).is_none() && cache.current(b"j", Lsn(5)).is_none());
        assert_eq!(cache.current(b"k", Lsn(5)).unwrap().lsn, Lsn(5));
    }

    #[test]
    fn a_view_from_before_a_write_leaves_nothing_behind() {
        let cache = RecordCache::new(1 << 20, 7);
        let before = leave(&cache, b"k").unwrap();
        cache.shut(b"k");
        cache.keep(before, Bytes::from_static(b"k"), &record(1));
        assert_eq!(cached_lsn(&cache, b"k"), None);
        cache.opened(b"k");
        cache.keep(before, Bytes::from_static(b"k"), &record(1));
        assert_eq!(cached_lsn(&cache, b"k"), None);
    }

    #[test]
    fn a_place_is_shut_until_its_last_version_is_published() {
        let cache = RecordCache::new(1 << 20, 7);
        cache.shut(b"k");
        cache.shut(b"k");
        assert!(leave(&cache, b"k").is_none());
        cache.opened(b"k");
        assert!(leave(&cache, b"k").is_none());
        cache.opened(b"k");
        let given = leave(&cache, b"k").unwrap();
        cache.keep(given, Bytes::from_static(b"k"), &record(3));
        assert_eq!(cached_lsn(&cache, b"k"), Some(3));
    }

    #[test]
    fn a_published_version_is_kept_unless_another_is_under_way() {
        let cache = RecordCache::new(1 << 20, 7);
        cache.shut(b"k");
        cache.shut(b"k");
        cache.published(Bytes::from_static(b"k"), record(1));
        assert_eq!(cached_lsn(&cache, b"k"), None);
        cache.published(Bytes::from_static(b"k"), record(2));
        assert_eq!(cached_lsn(&cache, b"k"), Some(2));
    }

    #[test]
    fn its_bytes_are_bounded_and_a_cache_of_none_keeps_none() {
        for bytes_max in [0, 64 * 1024] {
            let cache = RecordCache::new(bytes_max, 7);
            for number in 0..10_000_u32 {
                let key = Bytes::copy_from_slice(&number.to_be_bytes());
                let given = leave(&cache, &key).unwrap();
                cache.keep(given, key, &record(1));
            }
            let weight: u64 = (0..SHARDS).map(|index| cache.shard(index).records.weight()).sum();
            assert!(weight <= bytes_max as u64, "{weight} of {bytes_max}");
        }
    }
}
