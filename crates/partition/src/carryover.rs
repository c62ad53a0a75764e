//! State that passes from one opening of a partition to the next in the same process.
//!
//! A partition is closed when it is idle and reopened at its next use, or reopened after its writer panicked. A writer
//! that panicked leaves keys shut in the record cache; they stay shut until the outcome of its batches is known.

use crate::cache::RecordCache;
use crate::clock::PartitionClock;
use crate::keyspace::PartitionId;
use bytes::Bytes;
use model::Ambient;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the file's head.
#[derive(Debug)]
pub struct Carryover {
    pub(crate) clock: Arc<PartitionClock>,
    /// Keys that an earlier writer has shut in the record cache.
    unresolved_keys: Mutex<Vec<Bytes>>,
    /// Whether the last writer closed in order, so that none of its batches is under way.
    is_closed: AtomicBool,
}

impl Carryover {
    /// The state of a partition that was not opened before.
    pub fn new(partition: PartitionId, ambient: Arc<dyn Ambient>) -> Carryover {
        Carryover {
            clock: Arc::new(PartitionClock::new(partition, ambient)),
            unresolved_keys: Mutex::default(),
            is_closed: AtomicBool::new(true),
        }
    }

    pub(crate) fn set_closed(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The writer ends while these keys are shut.
    pub(crate) fn keep_unresolved(&self, keys: impl IntoIterator<Item = Bytes>) {
        self.unresolved_keys.lock().unwrap_or_else(PoisonError::into_inner).extend(keys);
    }

    /// The outcome of all batches of the earlier writer is known: readers may cache their records again.
    pub(crate) fn release(&self, cache: &RecordCache) {
        let keys = std::mem::take(&mut *self.unresolved_keys.lock().unwrap_or_else(PoisonError::into_inner));
        keys.iter().for_each(|key| cache.end_write(key));
    }
}
