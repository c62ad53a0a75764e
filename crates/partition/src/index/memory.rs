//! The limit on the memory of all indexes of a store. Shortly before it is reached, partitions flush their segments,
//! largest first.
//!
//! What runs keep in memory counts too, but cannot be flushed. It reduces the memory for segments, but never below a
//! quarter.

use crate::budget::StepBudget;
use crate::index::block_cache::BlockCache;
use crate::index::options::IndexOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Flushing starts when less than this part of the memory is free, so that there is room for concurrent writes, and
/// continues until twice as much is free, so that many small partitions flush at once.
const FREE_PART: usize = 8;
/// Segments get at least this part of the memory, whatever runs use.
const SEGMENTS_PART_MIN: usize = 4;

/// Memory, caches and budget that the indexes of a store share.
#[derive(Debug)]
pub struct IndexMemory {
    options: IndexOptions,
    blocks: Arc<BlockCache>,
    holders: Mutex<Holders>,
    universe_bytes: AtomicUsize,
    fence_bytes: AtomicUsize,
    steps: StepBudget,
}

#[derive(Debug, Default)]
struct Holders {
    by_share: BTreeMap<u64, Holder>,
    share_last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Holder {
    bytes: usize,
    /// The bytes it had when it was asked to flush, until that is done; `None` if it is not asked.
    bytes_requested: Option<usize>,
    flush_request: Arc<Notify>,
}

impl Holders {
    /// Asks enough indexes to flush.
    fn request_flushes(&mut self, bytes_max: usize) {
        let part = bytes_max / FREE_PART;
        if self.bytes <= bytes_max - part {
            return;
        }
        let mut going: usize = self.by_share.values().filter_map(|holder| holder.bytes_requested).sum();
        if self.bytes.saturating_sub(going) <= bytes_max - part {
            return;
        }
        let idle =
            self.by_share.values_mut().filter(|holder| holder.bytes_requested.is_none() && holder.bytes > 0);
        let mut idle: Vec<&mut Holder> = idle.collect();
        idle.sort_unstable_by_key(|holder| std::cmp::Reverse(holder.bytes));
        for holder in idle {
            if self.bytes.saturating_sub(going) <= bytes_max - 2 * part {
                return;
            }
            going += holder.bytes;
            holder.bytes_requested = Some(holder.bytes);
            holder.flush_request.notify_one();
        }
    }
}

impl IndexMemory {
    /// Nothing is held yet.
    pub fn new(options: IndexOptions) -> Arc<IndexMemory> {
        let blocks = Arc::new(BlockCache::new(options.cache_bytes));
        Arc::new(IndexMemory {
            options,
            blocks,
            holders: Mutex::default(),
            universe_bytes: AtomicUsize::new(0),
            fence_bytes: AtomicUsize::new(0),
            steps: StepBudget::new(),
        })
    }

    /// The options of all indexes.
    pub fn options(&self) -> &IndexOptions {
        &self.options
    }

    /// The budget that builds share with all other background work.
    pub fn steps(&self) -> &StepBudget {
        &self.steps
    }

    /// The cache of rows of runs.
    pub(crate) fn blocks(&self) -> &Arc<BlockCache> {
        &self.blocks
    }

    /// Bytes of the cache of rows of runs.
    pub fn block_bytes(&self) -> u64 {
        self.blocks.memory_bytes()
    }

    /// Bytes of all segments.
    pub fn held_bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Bytes that runs and their merges keep in memory.
    pub fn run_bytes(&self) -> usize {
        self.universe_bytes() + self.fence_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the universes of runs and their merges.
    pub fn universe_bytes(&self) -> usize {
        self.universe_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that segments may use.
    fn segment_bytes_max(&self) -> usize {
        let bytes_max = self.options.memory_bytes_max;
        bytes_max.saturating_sub(self.run_bytes()).max(bytes_max / SEGMENTS_PART_MIN)
    }

    /// Whether so little is free that indexes flush before more is written. Only batches in flight, one per partition,
    /// can exceed the limit then.
    pub(crate) fn is_tight(&self) -> bool {
        let bytes_max = self.segment_bytes_max();
        self.held_bytes() > bytes_max - bytes_max / FREE_PART
    }

    fn lock(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that a run, or a merge of runs, keeps in memory; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    memory: Arc<IndexMemory>,
    universe: usize,
    fences: usize,
}

impl HeldBytes {
    pub(crate) fn new(memory: &Arc<IndexMemory>, universe: usize, fences: usize) -> HeldBytes {
        memory.universe_bytes.fetch_add(universe, Ordering::Relaxed);
        memory.fence_bytes.fetch_add(fences, Ordering::Relaxed);
        HeldBytes { memory: Arc::clone(memory), universe, fences }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.memory.universe_bytes.fetch_sub(self.universe, Ordering::Relaxed);
        self.memory.fence_bytes.fetch_sub(self.fences, Ordering::Relaxed);
    }
}

/// The memory of one index; released when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    memory: Arc<IndexMemory>,
    id: u64,
    flush_request: Arc<Notify>,
}

impl MemoryShare {
    pub(crate) fn new(memory: Arc<IndexMemory>) -> MemoryShare {
        let flush_request = Arc::new(Notify::new());
        let holder = Holder { bytes: 0, bytes_requested: None, flush_request: Arc::clone(&flush_request) };
        let id = {
            let mut holders = memory.lock();
            holders.share_last += 1;
            let id = holders.share_last;
            holders.by_share.insert(id, holder);
            id
        };
        MemoryShare { memory, id, flush_request }
    }

    /// Sets the bytes of the index. If all indexes together use too much, the largest are asked to flush.
    pub(crate) fn set(&self, bytes: usize) {
        let holders = &mut *self.memory.lock();
        if let Some(holder) = holders.by_share.get_mut(&self.id) {
            holders.bytes = holders.bytes - holder.bytes + bytes;
            holder.bytes = bytes;
            holder.bytes_requested = holder.bytes_requested.filter(|requested| *requested <= bytes);
        }
        holders.request_flushes(self.memory.segment_bytes_max());
    }

    /// The requested flush failed: others may be asked instead, or this one again.
    pub(crate) fn failed(&self) {
        if let Some(holder) = self.memory.lock().by_share.get_mut(&self.id) {
            holder.bytes_requested = None;
        }
    }

    /// Waits until this index is asked to flush.
    pub(crate) async fn flush_requested(&self) {
        self.flush_request.notified().await;
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let mut holders = self.memory.lock();
        if let Some(holder) = holders.by_share.remove(&self.id) {
            holders.bytes -= holder.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_largest_is_flushed_first() {
        let memory = IndexMemory::new(IndexOptions { memory_bytes_max: 100, ..IndexOptions::default() });
        let (small, large) = (MemoryShare::new(Arc::clone(&memory)), MemoryShare::new(Arc::clone(&memory)));
        large.set(60);
        small.set(28);
        assert!(!is_flush_requested(&large) && !is_flush_requested(&small));
        small.set(40);
        assert!(is_flush_requested(&large) && !is_flush_requested(&small));
        // An index is asked once, and no other is asked while its flush will be enough.
        small.set(45);
        assert!(!is_flush_requested(&large) && !is_flush_requested(&small));
        small.set(95);
        assert!(!is_flush_requested(&large) && is_flush_requested(&small));
        large.set(0);
        small.set(0);
        assert_eq!(memory.held_bytes(), 0);
        small.set(90);
        assert!(is_flush_requested(&small));
        small.failed();
        small.set(90);
        assert!(is_flush_requested(&small));
        drop(small);
        assert_eq!(memory.held_bytes(), 0);
    }

    #[tokio::test]
    async fn runs_reduce_the_memory_of_segments_but_not_below_their_part() {
        let memory = IndexMemory::new(IndexOptions { memory_bytes_max: 100, ..IndexOptions::default() });
        let share = MemoryShare::new(Arc::clone(&memory));
        share.set(40);
        assert!(!is_flush_requested(&share) && !memory.is_tight());
        let held = HeldBytes::new(&memory, 50, 10);
        assert_eq!(memory.run_bytes(), 60);
        share.set(40);
        assert!(is_flush_requested(&share) && memory.is_tight());
        // More than everything: segments keep a quarter.
        let more = HeldBytes::new(&memory, 1_000, 0);
        share.set(20);
        assert!(!memory.is_tight());
        drop((held, more));
        assert_eq!(memory.run_bytes(), 0);
        share.set(80);
        assert!(!is_flush_requested(&share) && !memory.is_tight());
    }

    /// Whether the share was asked to flush.
    fn is_flush_requested(share: &MemoryShare) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(share.flush_requested()).poll(&mut context).is_ready()
    }
}
