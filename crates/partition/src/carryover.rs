//! State that is passed from one opening of a partition to the next in the same process.
//!
//! A partition is closed when it is idle and reopened at its next use, or reopened after its writer panicked. A writer
//! that panicked leaves slots of the record cache closed; they stay closed until the outcome of its batches is known.

use crate::cache::RecordCache;
use crate::clock::PartitionClock;
use crate::index::Run;
use crate::keyspace::PartitionId;
use crate::owner::Claim;
use bytes::Bytes;
use model::Ambient;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// State that outlives the writer of a partition.
#[derive(Debug)]
pub struct Carryover {
    pub(crate) clock: Arc<PartitionClock>,
    /// Keys whose writes an earlier writer began in the record cache and did not end.
    unresolved_keys: Mutex<Vec<Bytes>>,
    /// Whether the last writer was closed, so that none of its batches is in flight.
    is_closed: AtomicBool,
    /// What the parent of a new partition leaves to its first opening.
    inheritance: Mutex<Option<Inheritance>>,
}

/// What a partition takes over from the one that it was split from, if it is opened in the same process.
#[derive(Debug)]
pub(crate) struct Inheritance {
    /// The claim on the new partition.
    pub(crate) claim: Claim,
    /// The index runs, which are in memory.
    pub(crate) runs: Arc<[Arc<Run>]>,
}

impl Carryover {
    /// The state of a partition that was not opened before.
    pub fn new(partition: PartitionId, ambient: Arc<dyn Ambient>) -> Carryover {
        Carryover {
            clock: Arc::new(PartitionClock::new(partition, ambient)),
            unresolved_keys: Mutex::default(),
            is_closed: AtomicBool::new(true),
            inheritance: Mutex::default(),
        }
    }

    /// The state of a new partition that was split from one whose time is `seconds`.
    pub(crate) fn of_child(
        partition: PartitionId,
        ambient: Arc<dyn Ambient>,
        seconds: u64,
        inheritance: Inheritance,
    ) -> Carryover {
        let carryover = Carryover::new(partition, ambient);
        carryover.clock.reach(seconds);
        Carryover { inheritance: Mutex::new(Some(inheritance)), ..carryover }
    }

    /// What the parent has left, once.
    pub(crate) fn take_inheritance(&self) -> Option<Inheritance> {
        self.inheritance.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set_closed(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The writer ends while the outcome of writes to these keys is unknown.
    pub(crate) fn keep_unresolved(&self, keys: impl IntoIterator<Item = Bytes>) {
        self.unresolved_keys.lock().unwrap_or_else(PoisonError::into_inner).extend(keys);
    }

    /// The outcome of all batches of the earlier writer is known: the cache slots of their records are opened.
    pub(crate) fn release(&self, cache: &RecordCache) {
        let keys = std::mem::take(&mut *self.unresolved_keys.lock().unwrap_or_else(PoisonError::into_inner));
        keys.iter().for_each(|key| cache.end_write(key));
    }
}
