//! Deletes the rows of dropped containers. The store cannot delete ranges, so this is done in steps of limited size.

use crate::catalog::Dropped;
use crate::engine::Engine;
use kv::{Batch, Durability, ScanLimit, Space};
use model::{ContainerNumber, Fault};
use partition::keyspace::{self, CONTAINER_SPACES};
use partition::{commit_fault, read_fault};

/// Rows that one step deletes.
const ROWS_AT_A_TIME: usize = 1000;
/// Bytes of keys that one step reads.
const BYTES_AT_A_TIME: usize = 4 * 1024 * 1024;

impl Engine {
    /// Deletes all rows of a dropped container.
    pub(super) async fn delete_dropped(&self, number: ContainerNumber) -> Result<(), Fault> {
        let Some(Dropped { map, .. }) = self.dropped(number) else { return Ok(()) };
        // A writer that is still running would write rows that nobody ever deletes.
        for map in map.iter().map(|map| map.load()) {
            for slot in &map.entries {
                slot.seal(&self.slots).await;
            }
        }
        // Its heads are deleted with its rows: their LSNs are saved in the floor before.
        if self.dropped(number).is_some_and(|dropped| !dropped.is_below_floor) {
            let mut change = self.catalog.begin(self).await?;
            change.raise_floor().await?;
            change.commit().await?;
        }
        for space in CONTAINER_SPACES {
            while self.delete_some_rows(space, number).await? {
                if self.jobs.is_stopping() {
                    return Ok(());
                }
            }
        }
        let mut change = self.catalog.begin(self).await?;
        change.forget_dropped(number);
        change.commit().await
    }

    fn dropped(&self, number: ContainerNumber) -> Option<Dropped> {
        self.catalog.state().dropped().iter().find(|dropped| dropped.number == number).cloned()
    }

    /// Deletes a limited number of rows; returns whether it found any. The last ones are deleted durably: the container
    /// must not be forgotten while the store may still lose deletions.
    async fn delete_some_rows(&self, space: Space, number: ContainerNumber) -> Result<bool, Fault> {
        let _step = self.housekeeping_step().await;
        let view = self.store().view().await.map_err(read_fault)?;
        let limit = ScanLimit { rows: ROWS_AT_A_TIME, bytes: BYTES_AT_A_TIME };
        let range = keyspace::container_rows(number);
        let chunk = view.scan_keys(space, range, limit).await.map_err(read_fault)?;
        if chunk.keys.is_empty() {
            return Ok(false);
        }
        let mut batch = Batch::default();
        batch.mark_shrinking();
        for key in chunk.keys {
            batch.delete(space, key);
        }
        let durability = if chunk.more { Durability::Buffered } else { Durability::Sync };
        self.store().submit(&self.store().lane(), batch, durability).await.map_err(commit_fault)?;
        // Also after the last ones: rows of an earlier step have returned if the store lost its deletions.
        Ok(true)
    }
}
