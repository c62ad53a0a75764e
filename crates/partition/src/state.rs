//! The state that the writer evaluates transactions on: the committed state plus its own uncommitted batches.
//!
//! The overlay consists of rows of the store, so a change is described once, by the rows it writes.

use crate::head::Head;
use crate::storage::read_fault;
use bytes::Bytes;
use kv::{Space, View};
use model::Fault;
use std::collections::{BTreeMap, HashMap};

/// Serial number of a batch of this writer.
pub(crate) type BatchNumber = u64;

/// Rows as a batch leaves them: a value, or `None` if absent.
pub(crate) type Rows = BTreeMap<(Space, Bytes), Option<Bytes>>;

/// The committed view with the uncommitted rows of the writer on top.
#[derive(Debug)]
pub(crate) struct WriterState {
    /// `None` while the writer is idle: an open view stops version cleanup of the whole store.
    base: Option<View>,
    overlay: HashMap<(Space, Bytes), (BatchNumber, Option<Bytes>), foldhash::fast::RandomState>,
    /// The head after the last submitted batch.
    pub(crate) head: Head,
}

impl WriterState {
    pub(crate) fn new(base: View, head: Head) -> WriterState {
        WriterState { base: Some(base), overlay: HashMap::default(), head }
    }

    /// The row after all batches so far.
    pub(crate) async fn get(&self, space: Space, key: &Bytes) -> Result<Option<Bytes>, Fault> {
        if !self.overlay.is_empty()
            && let Some((_, row)) = self.overlay.get(&(space, key.clone()))
        {
            return Ok(row.clone());
        }
        let base = self.base.as_ref().ok_or_else(|| Fault::Internal("the writer has no view".to_owned()))?;
        base.get(space, key).await.map_err(read_fault)
    }

    /// Adds the rows of a submitted batch to the overlay.
    pub(crate) fn submitted(&mut self, batch: BatchNumber, rows: &Rows) {
        self.overlay.extend(rows.iter().map(|(key, row)| (key.clone(), (batch, row.clone()))));
    }

    /// The batch is in `base` now. Its rows leave the overlay unless a later batch has written them.
    pub(crate) fn committed(&mut self, batch: BatchNumber, base: View) {
        self.overlay.retain(|_, (writer, _)| *writer > batch);
        self.base = Some(base);
    }

    /// Whether there is a view to evaluate transactions on.
    pub(crate) fn has_view(&self) -> bool {
        self.base.is_some()
    }

    /// Sets a new view after idle time or a reopen. Nothing was written meanwhile, because this writer is the only
    /// one.
    pub(crate) fn set_view(&mut self, base: View) {
        self.base = Some(base);
    }

    /// Releases the view. Only allowed while nothing is uncommitted.
    pub(crate) fn release_view(&mut self) {
        debug_assert!(self.overlay.is_empty(), "uncommitted rows need their view");
        self.base = None;
    }
}
