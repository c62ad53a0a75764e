//! One bound on the memory of all segments of a store: when it is passed, the partition with the most flushes first.

use crate::index::options::IndexOptions;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What the indexes of a store share.
#[derive(Debug)]
pub struct IndexMemory {
    options: IndexOptions,
    holders: Mutex<Holders>,
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
    is_asked: Arc<Notify>,
}

impl IndexMemory {
    /// Nothing is held yet.
    pub fn new(options: IndexOptions) -> Arc<IndexMemory> {
        Arc::new(IndexMemory { options, holders: Mutex::default() })
    }

    /// The sizes that all indexes work by.
    pub fn options(&self) -> &IndexOptions {
        &self.options
    }

    /// Bytes of all segments.
    pub fn held_bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of one index; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Arc<IndexMemory>,
    id: u64,
    is_asked: Arc<Notify>,
}

impl Share {
    pub(crate) fn new(memory: Arc<IndexMemory>) -> Share {
        let is_asked = Arc::new(Notify::new());
        let holder = Holder { bytes: 0, is_asked: Arc::clone(&is_asked) };
        let id = {
            let mut holders = memory.lock();
            holders.share_last += 1;
            let id = holders.share_last;
            holders.by_share.insert(id, holder);
            id
        };
        Share { memory, id, is_asked }
    }

    /// Says how much the index holds now. If all together hold too much, the one with the most is asked to
    /// flush.
    pub(crate) fn set(&self, bytes: usize) {
        let holders = &mut *self.memory.lock();
        if let Some(holder) = holders.by_share.get_mut(&self.id) {
            holders.bytes = holders.bytes - holder.bytes + bytes;
            holder.bytes = bytes;
        }
        if holders.bytes > self.memory.options.memory_bytes_max
            && let Some(largest) = holders.by_share.values().max_by_key(|holder| holder.bytes)
        {
            largest.is_asked.notify_one();
        }
    }

    /// Waits until this index is asked to flush.
    pub(crate) async fn asked(&self) {
        self.is_asked.notified().await;
    }
}

impl Drop for Share {
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
    async fn the_largest_is_asked_first() {
        let memory = IndexMemory::new(IndexOptions { memory_bytes_max: 100, ..IndexOptions::default() });
        let (small, large) = (Share::new(Arc::clone(&memory)), Share::new(Arc::clone(&memory)));
        large.set(70);
        small.set(30);
        let mut asked = is_asked(&large);
        assert!(!asked);
        small.set(40);
        asked = is_asked(&large);
        assert!(asked && !is_asked(&small));
        drop(large);
        assert_eq!(memory.held_bytes(), 40);
    }

    /// Whether the share is asked by now.
    fn is_asked(share: &Share) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(share.asked()).poll(&mut context).is_ready()
    }
}
