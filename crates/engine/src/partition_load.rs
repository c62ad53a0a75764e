//! The load of the partitions of a container as operators see it, and pauses of a partition for tests.

use crate::authorisation::AdminPass;
use crate::catalog::Container;
use crate::engine::Engine;
use crate::hot_keys::HotKey;
use crate::slot::PartitionSlot;
use model::{Charge, Fault, MissingFault, PartitionOrdinal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Partition keys that are listed for each partition.
const HOT_KEYS_LISTED: usize = 5;

/// What a partition is asked for.
#[derive(Clone, Debug)]
pub struct PartitionLoad {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// Request units of the last second.
    pub charged_last_second: Charge,
    /// Request units since the start of the server, or since the partition exists.
    pub charged: Charge,
    /// Requests since then that were refused because the throughput was used up.
    pub throttled: u64,
    /// The partition keys with most charges.
    pub hot_keys: Vec<HotKey>,
}

impl Engine {
    /// The load of the partitions of a container, in the order of their ranges. It contains values of partition keys, which
    /// are documents' contents.
    pub fn partition_loads(&self, pass: &AdminPass<&Container>) -> Vec<PartitionLoad> {
        let now = self.ambient.now_seconds();
        let load = |slot: &Arc<PartitionSlot>| {
            let totals = slot.ledger.totals();
            PartitionLoad {
                ordinal: slot.ordinal,
                charged_last_second: slot.ledger.used().last_second(now),
                charged: totals.charged,
                throttled: totals.throttled,
                hot_keys: slot.ledger.hot_keys(HOT_KEYS_LISTED),
            }
        };
        pass.resource.map.load().entries.iter().map(load).collect()
    }

    /// Refuses all requests on a partition for this time as if its throughput were used up: for tests of clients.
    pub fn pause_partition(
        &self,
        pass: &AdminPass<&Container>,
        ordinal: PartitionOrdinal,
        time: Duration,
    ) -> Result<(), Fault> {
        let map = pass.resource.map.load();
        let slot = map.by_ordinal(ordinal);
        let slot = slot.ok_or_else(|| MissingFault::Range { id: ordinal.to_string() })?;
        slot.ledger.pause(self.ambient.monotonic() + time);
        self.has_pauses.store(true, Ordering::Relaxed);
        Ok(())
    }
}
