//! One commit of the engine: the changes of its batches, and marker rows.
//!
//! Knows the overhead of a commit in the journal, but not when it is synced.

use fjall::{Keyspace, OwnedWriteBatch, PersistMode};

use super::engine::StorageEngine;
use super::frames::{BATCH_OVERHEAD_BYTES, ITEM_OVERHEAD_BYTES};
use crate::batch::{KEY_RESERVED, RowChange};
use crate::fault::Cause;

/// A commit that is being built.
pub(super) struct EngineWrite<'a> {
    engine: &'a StorageEngine,
    batch: OwnedWriteBatch,
    size_bytes: usize,
}

impl<'a> EngineWrite<'a> {
    pub(super) fn new(engine: &'a StorageEngine, row_count: usize, persist: PersistMode) -> EngineWrite<'a> {
        let batch = OwnedWriteBatch::with_capacity(engine.database.clone(), row_count);
        let batch = batch.durability(Some(persist));
        EngineWrite { engine, batch, size_bytes: BATCH_OVERHEAD_BYTES }
    }

    pub(super) fn add(&mut self, change: RowChange) -> Result<(), Cause> {
        self.size_bytes += change.size_bytes() + ITEM_OVERHEAD_BYTES;
        let keyspace = self.engine.keyspace_to_write(change.space)?;
        match change.value {
            Some(value) => self.batch.insert(keyspace, change.key, value),
            None => self.batch.remove(keyspace, change.key),
        }
        Ok(())
    }

    /// Puts the marker of a space.
    pub(super) fn mark(&mut self, keyspace: &Keyspace) {
        self.batch.insert(keyspace, KEY_RESERVED, []);
        self.size_bytes += KEY_RESERVED.len() + ITEM_OVERHEAD_BYTES;
    }

    /// Writes the commit and returns its bytes in the journal.
    pub(super) fn commit(self) -> Result<u64, Cause> {
        self.batch.commit().map_err(Cause::new)?;
        Ok(self.size_bytes as u64)
    }
}
