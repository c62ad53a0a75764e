//! Closes idle partitions to free their memory. The next request opens them again.

use crate::catalog::Container;
use crate::engine::Engine;
use crate::join::join_all;
use crate::slot::{CLOSING_MAX, PartitionSlot};
use model::Fault;
use std::sync::Arc;

impl Engine {
    /// Closes the partitions that exceed the idle time, and beyond the limit the least recently used ones.
    pub(super) async fn close_idle_partitions(&self) -> Result<(), Fault> {
        let bounds = self.options.partitions;
        let now = self.slots.tick();
        let containers: Vec<Arc<Container>> = self.catalog.state().containers().cloned().collect();
        let maps: Vec<_> = containers.iter().map(|container| container.map.load()).collect();
        let slots = maps.iter().flat_map(|map| &map.entries);
        let mut open: Vec<&Arc<PartitionSlot>> = slots.filter(|slot| slot.current().is_some()).collect();
        open.sort_by_key(|slot| slot.used_at());
        let surplus = open.len().saturating_sub(bounds.open_max);
        let is_idle = |slot: &PartitionSlot| now.saturating_sub(slot.used_at()) >= bounds.idle_seconds;
        let due: Vec<_> = open
            .into_iter()
            .enumerate()
            .filter(|(place, slot)| *place < surplus || is_idle(slot))
            .map(|(_, slot)| slot)
            .collect();
        for chunk in due.chunks(CLOSING_MAX) {
            let _step = self.housekeeping_step().await;
            let closing = chunk.iter().map(|slot| slot.close_idle(&self.slots)).collect();
            for (slot, closed) in chunk.iter().zip(join_all(closing).await) {
                if let Err(fault) = closed {
                    tracing::warn!(event = "idle_close_failed", ordinal = slot.ordinal.0, cause = %fault, "an idle partition could not be closed");
                }
            }
        }
        Ok(())
    }
}
