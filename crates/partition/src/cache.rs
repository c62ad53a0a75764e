//! Record cache in front of the store, one for all partitions of a store.
//!
//! A cached record is always the current version. The writer removes a key when it submits a new version of it, and
//! keeps the key's slot closed until that version is published. A reader that misses gets a ticket *before* it takes
//! its view. The record it reads is cached only if nothing was written in that slot since: the record is then the same
//! in every later view. Knows nothing of the contents of records.
//!
//! A record that is found in the cache keeps the JSON text of its document too, while there is plenty of room.
//!
//! Keys with the same hash bits share a slot, so slots need no memory per key. A reader whose slot is closed because
//! of another key reads from the store and caches nothing, which is always correct.

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

/// Number of shards, each with its own lock, so that readers rarely contend.
const SHARDS: usize = 16;
/// The key cache gets one part in this many of the bytes: a key is about a sixteenth of a document.
const KEYS_SHARE: usize = 16;
/// Slots per shard.
const SLOTS: usize = 256;
/// Overhead of an entry: two `Bytes` handles, the record's header, the links of the cache.
const ENTRY_BYTES: u64 = 200;
/// Expected size of a record, for the initial capacity.
const RECORD_BYTES_EXPECTED: usize = 1024;

/// Limit of the initial capacity of a shard, in records. A large cache grows to its size.
const SHARD_RECORDS_EXPECTED_MAX: usize = 4096;

/// Current versions of recently read or written records.
#[derive(Debug)]
pub struct RecordCache {
    /// Record keys by document number.
    pub(crate) keys: KeyCache,
    shards: Vec<Mutex<Shard>>,
    hasher: FixedState,
    hits: Counter,
    misses: Counter,
}

#[derive(Debug)]
struct Shard {
    records: Cache<Bytes, Record, ByBytes, FixedState>,
    slots: Vec<CacheSlot>,
}

/// Writes to the keys of one slot.
#[derive(Clone, Copy, Debug, Default)]
struct CacheSlot {
    /// Versions submitted and not published yet.
    pending: u32,
    /// Count of all versions ever submitted; may wrap around.
    writes: u32,
}

/// Allows a reader to cache what a view taken after it shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillTicket {
    shard: usize,
    slot: usize,
    writes: u32,
}

/// The result of a cache lookup.
pub(crate) enum CacheProbe {
    Hit(Record),
    /// Not cached. With a ticket, unless a write of the slot is pending.
    Miss(Option<FillTicket>),
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<Bytes, Record> for ByBytes {
    fn weight(&self, key: &Bytes, record: &Record) -> u64 {
        (key.len() + record.document.bytes_with_text_max()) as u64 + ENTRY_BYTES
    }
}

impl Shard {
    /// The cached record under `key`, unless `is_wanted` refuses it.
    ///
    /// Its text is kept from now on while the shard is at most half full: texts must not displace records, since
    /// reading a record from the store takes many times longer than writing its text.
    fn find(&mut self, key: &[u8], is_wanted: impl FnOnce(&Record) -> bool) -> Option<Record> {
        let record = self.records.get(key)?;
        if !is_wanted(record) {
            return None;
        }
        if record.document.keeps_text() || self.records.weight() > self.records.capacity() / 2 {
            return Some(record.clone());
        }
        let mut record = self.records.peek_mut(key)?;
        record.document.keep_text();
        Some(record.clone())
    }
}

impl RecordCache {
    /// A cache of about `bytes_max` bytes; with 0 it caches nothing. `seed` is secret, so that clients cannot choose
    /// ids with colliding hashes.
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
            Mutex::new(Shard { records, slots: vec![CacheSlot::default(); SLOTS] })
        };
        let keys = KeyCache::new(keys_bytes, seed);
        let (hits, misses) = (Counter::default(), Counter::default());
        RecordCache { keys, shards: (0..SHARDS).map(|_| shard()).collect(), hasher, hits, misses }
    }

    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let hits = "Documents that were found in the record cache";
        registry.register("record_cache_hits", hits, self.hits.clone());
        let misses = "Documents that were not found in the record cache and were read from the store";
        registry.register("record_cache_misses", misses, self.misses.clone());
    }

    /// Bytes in use.
    pub fn memory_bytes(&self) -> u64 {
        let records = (0..self.shards.len()).map(|shard| self.shard(shard).records.weight()).sum::<u64>();
        records + self.keys.memory_bytes()
    }

    /// Looks up the record under `key`.
    pub(crate) fn probe(&self, key: &[u8]) -> CacheProbe {
        let (shard_index, slot_index) = self.slot_of(key);
        let mut shard = self.shard(shard_index);
        if let Some(record) = shard.find(key, |_| true) {
            self.hits.inc();
            return CacheProbe::Hit(record);
        }
        self.misses.inc();
        let CacheSlot { pending, writes } = shard.slots[slot_index];
        CacheProbe::Miss((pending == 0).then_some(FillTicket {
            shard: shard_index,
            slot: slot_index,
            writes,
        }))
    }

    /// The cached record under `key` if a view at `lsn` has the same version. A newer record was written after that
    /// view.
    pub(crate) fn current(&self, key: &[u8], lsn: Lsn) -> Option<Record> {
        let (shard, _) = self.slot_of(key);
        let found = self.shard(shard).find(key, |record| record.lsn <= lsn);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.inc();
        found
    }

    /// Caches a record that was read after `ticket` was issued, unless its slot was written since.
    pub(crate) fn keep(&self, ticket: FillTicket, key: Bytes, record: &Record) {
        let mut shard = self.shard(ticket.shard);
        if shard.slots[ticket.slot].writes == ticket.writes {
            // The record shares the memory of a whole block of the store; the copy holds only its own bytes.
            shard.records.insert(key, record.detached());
        }
    }

    /// A new version under `key` is submitted: nothing is cached in its slot until [`RecordCache::end_write`].
    pub(crate) fn begin_write(&self, key: &[u8]) {
        let (shard, slot) = self.slot_of(key);
        let mut shard = self.shard(shard);
        let slot = &mut shard.slots[slot];
        slot.pending += 1;
        slot.writes = slot.writes.wrapping_add(1);
        shard.records.remove(key);
    }

    /// The outcome of the write is known: readers may cache the key again.
    pub(crate) fn end_write(&self, key: &[u8]) {
        let (shard, slot) = self.slot_of(key);
        let slot = &mut self.shard(shard).slots[slot];
        slot.pending = slot.pending.saturating_sub(1);
    }

    /// The version is published and cached, because recently written documents are likely to be read. It is not cached
    /// if another write of the slot is pending, which may be of the same key.
    pub(crate) fn published(&self, key: Bytes, record: Record) {
        let (shard, slot) = self.slot_of(&key);
        let mut shard = self.shard(shard);
        let slot = &mut shard.slots[slot];
        slot.pending = slot.pending.saturating_sub(1);
        if slot.pending == 0 {
            shard.records.insert(key, record);
        }
    }

    /// Removes everything, because acknowledged versions may be lost. Tickets issued before become invalid.
    pub(crate) fn clear(&self) {
        for index in 0..self.shards.len() {
            let mut shard = self.shard(index);
            shard.records.clear();
            shard.slots.iter_mut().for_each(|slot| slot.writes = slot.writes.wrapping_add(1));
        }
    }

    fn slot_of(&self, key: &[u8]) -> (usize, usize) {
        let hash = self.hasher.hash_one(key);
        let [shard, slot, ..] = hash.to_le_bytes();
        (usize::from(shard) % SHARDS, usize::from(slot) % SLOTS)
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

    fn ticket(cache: &RecordCache, key: &[u8]) -> Option<FillTicket> {
        match cache.probe(key) {
            CacheProbe::Hit(_) => panic!("{key:?} is cached"),
            CacheProbe::Miss(ticket) => ticket,
        }
    }

    fn cached_lsn(cache: &RecordCache, key: &[u8]) -> Option<u64> {
        match cache.probe(key) {
            CacheProbe::Hit(record) => Some(record.lsn.0),
            CacheProbe::Miss(_) => None,
        }
    }

    #[test]
    fn a_read_record_is_found_again_until_it_is_written() {
        let cache = RecordCache::new(1 << 20, 7);
        let ticket = ticket(&cache, b"k").unwrap();
        cache.keep(ticket, Bytes::from_static(b"k"), &record(1));
        assert_eq!(cached_lsn(&cache, b"k"), Some(1));
        cache.begin_write(b"k");
        assert_eq!(cached_lsn(&cache, b"k"), None);
    }

    #[test]
    fn nothing_from_before_a_clearing_is_found_or_kept() {
        let cache = RecordCache::new(1 << 20, 7);
        let (early, late) = (ticket(&cache, b"k").unwrap(), ticket(&cache, b"j").unwrap());
        cache.keep(early, Bytes::from_static(b"k"), &record(1));
        cache.clear();
        cache.keep(late, Bytes::from_static(b"j"), &record(1));
        assert_eq!([cached_lsn(&cache, b"k"), cached_lsn(&cache, b"j")], [None, None]);
    }

    #[test]
    fn a_view_from_before_the_record_does_not_get_it() {
        let cache = RecordCache::new(1 << 20, 7);
        let ticket = ticket(&cache, b"k").unwrap();
        cache.keep(ticket, Bytes::from_static(b"k"), &record(5));
        assert!(cache.current(b"k", Lsn(4)).is_none() && cache.current(b"j", Lsn(5)).is_none());
        assert_eq!(cache.current(b"k", Lsn(5)).unwrap().lsn, Lsn(5));
    }

    #[test]
    fn a_view_from_before_a_write_caches_nothing() {
        let cache = RecordCache::new(1 << 20, 7);
        let before = ticket(&cache, b"k").unwrap();
        cache.begin_write(b"k");
        cache.keep(before, Bytes::from_static(b"k"), &record(1));
        assert_eq!(cached_lsn(&cache, b"k"), None);
        cache.end_write(b"k");
        cache.keep(before, Bytes::from_static(b"k"), &record(1));
        assert_eq!(cached_lsn(&cache, b"k"), None);
    }

    #[test]
    fn a_slot_is_closed_until_its_last_version_is_published() {
        let cache = RecordCache::new(1 << 20, 7);
        cache.begin_write(b"k");
        cache.begin_write(b"k");
        assert!(ticket(&cache, b"k").is_none());
        cache.end_write(b"k");
        assert!(ticket(&cache, b"k").is_none());
        cache.end_write(b"k");
        let ticket = ticket(&cache, b"k").unwrap();
        cache.keep(ticket, Bytes::from_static(b"k"), &record(3));
        assert_eq!(cached_lsn(&cache, b"k"), Some(3));
    }

    #[test]
    fn a_published_version_is_kept_unless_another_is_pending() {
        let cache = RecordCache::new(1 << 20, 7);
        cache.begin_write(b"k");
        cache.begin_write(b"k");
        cache.published(Bytes::from_static(b"k"), record(1));
        assert_eq!(cached_lsn(&cache, b"k"), None);
        cache.published(Bytes::from_static(b"k"), record(2));
        assert_eq!(cached_lsn(&cache, b"k"), Some(2));
    }

    #[test]
    fn records_that_are_found_keep_their_texts_until_the_cache_is_half_full() {
        let cache = RecordCache::new(1 << 20, 7);
        let mut with_text = 0;
        for number in 0..10_000_u32 {
            let key = Bytes::copy_from_slice(&number.to_be_bytes());
            let ticket = ticket(&cache, &key).unwrap();
            cache.keep(ticket, key.clone(), &record(1));
            if let CacheProbe::Hit(record) = cache.probe(&key) {
                with_text += u32::from(record.document.keeps_text());
            }
            if number == 10 {
                assert_eq!(with_text, 11);
            }
        }
        let kept = (0..SHARDS).map(|index| cache.shard(index).records.len()).sum::<usize>();
        assert!((11..5_000).contains(&with_text) && kept > 3_000, "{with_text} of {kept}");
        let weight: u64 = (0..SHARDS).map(|index| cache.shard(index).records.weight()).sum();
        assert!(weight <= 1 << 20, "{weight}");
    }

    #[test]
    fn its_bytes_are_bounded_and_a_cache_of_none_keeps_none() {
        for bytes_max in [0, 64 * 1024] {
            let cache = RecordCache::new(bytes_max, 7);
            for number in 0..10_000_u32 {
                let key = Bytes::copy_from_slice(&number.to_be_bytes());
                let ticket = ticket(&cache, &key).unwrap();
                cache.keep(ticket, key, &record(1));
            }
            let weight: u64 = (0..SHARDS).map(|index| cache.shard(index).records.weight()).sum();
            assert!(weight <= bytes_max as u64, "{weight} of {bytes_max}");
        }
    }
}
