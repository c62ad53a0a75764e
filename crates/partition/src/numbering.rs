//! Document counters and ETag stamps of one opening of a partition, assigned by its writer and by drafts.
//!
//! A draft assigns the numbers and ETags that its changes keep when it is committed, so they are final for its owner.
//! Each value is assigned once. Values of a draft that is not committed are not used again, except by a later opening:
//! nobody has seen them, and a draft of an earlier opening cannot be committed.

use crate::head::Head;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The counter and the stamp after which those of one step follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) counter: u64,
    pub(crate) stamp: u64,
}

/// Assigns counters and stamps.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    counter: AtomicU64,
    stamp: AtomicU64,
    /// Drafts that may still be committed.
    drafts: AtomicUsize,
}

/// A draft that may still be committed: the writer remembers the last writes meanwhile.
#[derive(Debug)]
pub(crate) struct OpenDraft {
    numbering: Arc<Numbering>,
}

impl Numbering {
    /// Continues after what a head has assigned.
    pub(crate) fn raise_to(&self, head: &Head) {
        self.counter.fetch_max(head.counter, Ordering::Relaxed);
        self.stamp.fetch_max(head.stamp, Ordering::Relaxed);
    }

    /// Everything that was assigned so far becomes part of the head.
    pub(crate) fn store_in(&self, head: &mut Head) {
        head.counter = self.counter.load(Ordering::Relaxed);
        head.stamp = self.stamp.load(Ordering::Relaxed);
    }

    /// Takes one counter and one stamp for each of `steps`. Returns the last ones assigned before them.
    pub(crate) fn take(&self, steps: usize) -> Identity {
        let steps = steps as u64;
        let counter = self.counter.fetch_add(steps, Ordering::Relaxed);
        Identity { counter, stamp: self.stamp.fetch_add(steps, Ordering::Relaxed) }
    }

    /// Returns what was taken for `steps` but not used, unless others were taken since.
    pub(crate) fn give_back(&self, taken: Identity, steps: usize, used: Identity) {
        let steps = steps as u64;
        let give_back = |last: &AtomicU64, taken: u64, used: u64| {
            if used != taken + steps {
                let _ = last.compare_exchange(taken + steps, used, Ordering::Relaxed, Ordering::Relaxed);
            }
        };
        give_back(&self.counter, taken.counter, used.counter);
        give_back(&self.stamp, taken.stamp, used.stamp);
    }

    /// Begins a draft. Must be called before the state on which it is based is loaded.
    pub(crate) fn begin_draft(self: &Arc<Numbering>) -> OpenDraft {
        self.drafts.fetch_add(1, Ordering::SeqCst);
        OpenDraft { numbering: Arc::clone(self) }
    }

    /// Whether there are drafts that may still be committed.
    pub(crate) fn has_drafts(&self) -> bool {
        self.drafts.load(Ordering::SeqCst) > 0
    }
}

impl OpenDraft {
    pub(crate) fn numbering(&self) -> &Arc<Numbering> {
        &self.numbering
    }
}

impl Drop for OpenDraft {
    fn drop(&mut self) {
        self.numbering.drafts.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_is_assigned_again_unless_others_follow_it() {
        let numbering = Numbering::default();
        let mut head = Head::default();
        (head.counter, head.stamp) = (10, 20);
        numbering.raise_to(&head);
        let taken = numbering.take(3);
        assert_eq!(taken, Identity { counter: 10, stamp: 20 });
        numbering.give_back(taken, 3, Identity { counter: 10, stamp: 22 });
        let next = numbering.take(1);
        assert_eq!(next, Identity { counter: 10, stamp: 22 });
        let after = numbering.take(1);
        numbering.give_back(next, 1, next);
        assert_eq!(numbering.take(1), Identity { counter: after.counter + 1, stamp: after.stamp + 1 });
        numbering.store_in(&mut head);
        assert_eq!((head.counter, head.stamp), (13, 25));
        numbering.raise_to(&Head::default());
        assert_eq!(numbering.take(1).counter, 13);
    }

    #[test]
    fn drafts_are_counted_until_they_are_dropped() {
        let numbering = Arc::new(Numbering::default());
        let (first, second) = (numbering.begin_draft(), numbering.begin_draft());
        drop(first);
        assert!(numbering.has_drafts());
        drop(second);
        assert!(!numbering.has_drafts());
    }
}
