//! The rows that batches require, as the last group left them.
//!
//! Every batch of a partition requires the partition's owner and head, and the next one requires what this one wrote. The
//! committer is the only writer of its store, so it need not read them again. Knows nothing of groups and lanes.

use std::collections::HashMap;

use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::batch::{RowChange, Space};

/// Rows after which all are forgotten: two for each of two thousand partitions.
const ROWS_MAX: usize = 4096;

/// Values of required rows. A row whose value is not known yet is there without one, so that changes of it are noticed.
#[derive(Default)]
pub(crate) struct RequiredRows {
    values: HashMap<(Space, Bytes), Option<Option<Bytes>>, RandomState>,
    /// The spaces of these rows. Most changes are in others.
    spaces: Vec<Space>,
}

impl RequiredRows {
    /// A group of batches follows; nothing is known of rows that no batch of it may have announced.
    pub(super) fn begin_group(&mut self) {
        if self.values.len() > ROWS_MAX {
            self.forget();
        }
    }

    /// Announces that some batch of the group requires a row.
    pub(super) fn announce(&mut self, space: Space, key: &Bytes) {
        if !self.spaces.contains(&space) {
            self.spaces.push(space);
        }
        self.values.entry((space, key.clone())).or_default();
    }

    /// The value of a row (`None`: absent), if it is known.
    pub(super) fn value(&self, space: Space, key: &Bytes) -> Option<&Option<Bytes>> {
        self.values.get(&(space, key.clone()))?.as_ref()
    }

    /// Keeps what was read from the store. The value is copied: it may be a slice of a block.
    pub(super) fn keep(&mut self, space: Space, key: &Bytes, value: Option<&Bytes>) {
        if let Some(known) = self.values.get_mut(&(space, key.clone())) {
            *known = Some(value.map(|value| Bytes::copy_from_slice(value)));
        }
    }

    /// Notes what an admitted batch changes in required rows.
    pub(super) fn note(&mut self, changes: &[RowChange]) {
        for change in changes.iter().filter(|change| self.spaces.contains(&change.space)) {
            if let Some(known) = self.values.get_mut(&(change.space, change.key.clone())) {
                *known = Some(change.value.clone());
            }
        }
    }

    /// Forgets all rows: they may have changed otherwise.
    pub(super) fn forget(&mut self) {
        self.values.clear();
        self.spaces.clear();
    }
}
