//! Run numbers, which are never reused.
//!
//! ```text
//! number:8 = epoch of the partition's owner:4 · count:4
//! ```
//!
//! Every opening of a partition has its own epoch, so jobs of an earlier opening that still run write and delete only
//! rows of their own runs. The rows of a run that no manifest names can always be deleted.

use std::sync::atomic::{AtomicU64, Ordering};

const COUNT_BITS: u32 = 32;

/// Assigns run numbers. Shared by all indexes of one opening of a partition.
#[derive(Debug)]
pub(crate) struct RunNumbers {
    next: AtomicU64,
}

impl RunNumbers {
    /// The numbers of an epoch, from the first.
    pub(crate) fn of_epoch(epoch: u32) -> RunNumbers {
        RunNumbers { next: AtomicU64::new(u64::from(epoch) << COUNT_BITS) }
    }

    pub(crate) fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

#[test]
fn numbers_of_epochs_differ() {
    let (first, second) = (RunNumbers::of_epoch(1), RunNumbers::of_epoch(2));
    assert_eq!([first.take(), first.take(), second.take()], [1 << 32, (1 << 32) + 1, 2 << 32]);
}
