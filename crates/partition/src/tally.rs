//! Counts the documents under some keys, step by step, while the partition is written.
//!
//! A reader counts stored records outside the writer, each step from a new view, so that no view is open for long. The
//! writer notes what it changes: under keys that are counted it adds the change, under the others it keeps it with its
//! LSN. When the reader has counted more keys, the kept changes of those keys that its view did not show yet are added.
//! So the counts always include every change that the writer has evaluated.

use crate::keyspace::{self, RECORDS};
use crate::partition::PartitionCounts;
use crate::staging::{CountsChange, KeyChange};
use crate::storage::read_fault;
use crate::view::PartitionView;
use bytes::Bytes;
use kv::{KeyRange, ScanLimit};
use model::{Fault, LimitFault, Lsn, StorageFault};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Records that one step counts.
const TALLY_STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 1 << 20 };
/// Changes that are kept until the reader has counted their keys. It reads a few steps per second and then forgets those
/// that its view has shown.
const KEPT_MAX: usize = 1 << 18;

/// The counts of some keys.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The keys to count.
    pub(crate) keys: KeyRange,
    state: Mutex<TallyState>,
}

#[derive(Debug)]
struct TallyState {
    /// The keys that were counted.
    counted: KeyRange,
    counts: PartitionCounts,
    /// Changes of the other keys that a view may not show yet.
    kept: Vec<KeptChange>,
    /// Whether changes were lost because too many had to be kept.
    is_incomplete: bool,
}

#[derive(Debug)]
struct KeptChange {
    key: Bytes,
    lsn: Lsn,
    change: CountsChange,
}

impl Tally {
    /// Nothing may be in flight: changes before this are in every later view.
    pub(crate) fn new(keys: KeyRange) -> Tally {
        let counted = KeyRange { start: keys.start.clone(), end: Some(keys.start.clone()) };
        let state = TallyState {
            counted,
            counts: PartitionCounts::default(),
            kept: Vec::new(),
            is_incomplete: false,
        };
        Tally { keys, state: Mutex::new(state) }
    }

    /// The counts, if all keys were counted.
    pub(crate) fn counts(&self) -> Option<PartitionCounts> {
        let state = self.state();
        (state.counted == self.keys).then_some(state.counts)
    }

    /// Notes the changes of a transaction that the writer has accepted.
    pub(crate) fn note(&self, lsn: Lsn, changes: Vec<KeyChange>) {
        let mut state = self.state();
        for KeyChange { key, change } in changes {
            if state.counted.contains(&key) {
                state.counts.change(change);
            } else if state.kept.len() < KEPT_MAX {
                state.kept.push(KeptChange { key, lsn, change });
            } else {
                state.is_incomplete = true;
            }
        }
    }

    /// Whether changes are missing, so that it has to be replaced.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.state().is_incomplete
    }

    /// Counts some more keys in a view of the partition: such a view has exactly the changes up to its LSN. Returns
    /// whether there are more.
    async fn count_some(&self, view: &PartitionView) -> Result<bool, Fault> {
        let counted = {
            let state = self.state();
            if state.is_incomplete {
                return Err(abandoned());
            }
            state.counted.clone()
        };
        if counted == self.keys {
            return Ok(false);
        }
        let rest = KeyRange { start: counted.end.clone().unwrap_or_default(), end: self.keys.end.clone() };
        let chunk = view.view.scan(RECORDS, rest.clone(), TALLY_STEP).await;
        let chunk = chunk.map_err(read_fault)?;
        let mut found = CountsChange::default();
        for (key, row) in &chunk.rows {
            found.documents += 1;
            found.bytes += ((key.len() + row.len()) as u64).cast_signed();
        }
        let end = match chunk.rows.last() {
            Some((last, _)) if chunk.more => Some(keyspace::after(&rest, last).start),
            Some(_) | None => self.keys.end.clone(),
        };
        self.state().advance(&counted, end, found, view.lsn);
        Ok(chunk.more)
    }

    fn state(&self) -> MutexGuard<'_, TallyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TallyState {
    /// Adds the keys after `before` up to `end`, which had these documents at `lsn`.
    fn advance(&mut self, before: &KeyRange, end: Option<Bytes>, found: CountsChange, lsn: Lsn) {
        if self.counted != *before {
            // Another reader has counted them.
            return;
        }
        self.counted.end = end;
        self.counts.change(found);
        for kept in std::mem::take(&mut self.kept).into_iter().filter(|kept| kept.lsn > lsn) {
            if self.counted.contains(&kept.key) {
                self.counts.change(kept.change);
            } else {
                self.kept.push(kept);
            }
        }
    }
}

/// Counts some more keys of a tally. Returns whether there are more. Fails if the writer has discarded the tally, because
/// the outcome of a batch was not as it had noted.
pub(crate) async fn count_some(tally: &Weak<Tally>, view: &PartitionView) -> Result<bool, Fault> {
    tally.upgrade().ok_or_else(abandoned)?.count_some(view).await
}

fn abandoned() -> Fault {
    StorageFault::Unavailable { cause: "the count of documents was given up".to_owned() }.into()
}

/// A logical partition whose bytes are counted because it may be large.
#[derive(Debug)]
pub(crate) struct WeighedKey {
    /// The bytes above which writes that add to it are refused.
    pub(crate) limit: u64,
    pub(crate) tally: Arc<Tally>,
    /// Whether housekeeping has deleted documents that the tally still counts.
    pub(crate) is_outdated: bool,
}

impl WeighedKey {
    pub(crate) fn new(limit: u64, keys: KeyRange) -> WeighedKey {
        WeighedKey { limit, tally: Arc::new(Tally::new(keys)), is_outdated: false }
    }

    /// Refuses a change that adds bytes above the limit. A logical partition that is not counted to its end is not
    /// limited yet.
    pub(crate) fn check(&self, changes: &[KeyChange]) -> Result<(), LimitFault> {
        let Some(mut counts) = self.tally.counts() else { return Ok(()) };
        let change = changes.iter().fold(CountsChange::default(), |sum, KeyChange { change, .. }| {
            CountsChange { documents: sum.documents + change.documents, bytes: sum.bytes + change.bytes }
        });
        counts.change(change);
        if change.bytes > 0 && counts.bytes > self.limit {
            return Err(LimitFault::LogicalPartitionFull { bytes: counts.bytes, limit: self.limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: CountsChange = CountsChange { documents: 1, bytes: 10 };

    fn key(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn tally() -> Tally {
        Tally::new(KeyRange { start: key("b"), end: Some(key("y")) })
    }

    fn put(text: &str) -> Vec<KeyChange> {
        vec![KeyChange { key: key(text), change: DOCUMENT }]
    }

    /// The reader counts the keys up to `end`, in which its view has `documents` at `lsn`.
    fn count(tally: &Tally, end: &str, documents: i64, lsn: u64) {
        let mut state = tally.state();
        let before = state.counted.clone();
        let found = CountsChange { documents, bytes: 10 * documents };
        state.advance(&before, Some(key(end)), found, Lsn(lsn));
    }

    #[test]
    fn a_change_counts_once_whether_the_view_shows_it_or_not() {
        let tally = tally();
        // Shown by the view at 5, and not shown by it.
        tally.note(Lsn(5), put("c"));
        tally.note(Lsn(6), put("d"));
        count(&tally, "m", 1, 5);
        // Counted already, and not counted yet.
        tally.note(Lsn(7), put("e"));
        tally.note(Lsn(7), put("n"));
        tally.note(Lsn(8), put("o"));
        assert_eq!(tally.counts(), None);
        count(&tally, "y", 1, 7);
        tally.note(Lsn(9), put("p"));
        assert_eq!(tally.counts(), Some(PartitionCounts { documents: 6, bytes: 60 }));
    }

    /// Otherwise the changes of a long count would pile up.
    #[test]
    fn changes_that_a_view_has_shown_are_forgotten() {
        let tally = tally();
        (1..=100).for_each(|lsn| tally.note(Lsn(lsn), put("x")));
        count(&tally, "m", 0, 90);
        assert_eq!(tally.state().kept.len(), 10);
        count(&tally, "y", 90, 90);
        assert_eq!(tally.counts(), Some(PartitionCounts { documents: 100, bytes: 1000 }));
    }

    #[test]
    fn a_step_that_another_reader_has_made_counts_once() {
        let tally = tally();
        let before = tally.state().counted.clone();
        for _ in 0..2 {
            tally.state().advance(&before, Some(key("y")), DOCUMENT, Lsn(1));
        }
        assert_eq!(tally.counts(), Some(PartitionCounts { documents: 1, bytes: 10 }));
    }

    #[test]
    fn too_many_kept_changes_end_the_count() {
        let tally = tally();
        tally.note(Lsn(1), vec![KeyChange { key: key("x"), change: DOCUMENT }; KEPT_MAX]);
        assert!(!tally.state().is_incomplete);
        tally.note(Lsn(2), put("x"));
        assert!(tally.state().is_incomplete);
    }
}
