//! The partitions of a container as operators see them: what they have and what they are asked for.

use crate::authorisation::{AdminPass, CatalogPass};
use crate::catalog::Container;
use crate::engine::Engine;
use crate::hot_keys::HotKey;
use model::{Charge, EffectiveRange, Fault, MissingFault, PartitionOrdinal};
use std::time::Duration;

/// Partition keys that are listed for each partition.
const HOT_KEYS_LISTED: usize = 5;

/// A partition with its size and load.
#[derive(Clone, Debug)]
pub struct PartitionStatus {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// The hashes it owns.
    pub range: EffectiveRange,
    /// The partitions from which it was split, oldest first.
    pub parents: Vec<PartitionOrdinal>,
    /// Its documents, expired ones included until they are deleted.
    pub documents: u64,
    /// Their encoded size.
    pub document_bytes: u64,
    /// Request units of the last second.
    pub charged_last_second: Charge,
    /// Request units since the start of the server.
    pub charged: Charge,
    /// Requests since then that were refused because the throughput was used up.
    pub throttled: u64,
    /// The partition keys with most charges.
    pub hot_keys: Vec<HotKey>,
}

impl Engine {
    /// The partitions of a container in the order of their ranges. Closed ones are opened.
    pub async fn partition_statuses(
        &self,
        pass: &CatalogPass<&Container>,
    ) -> Result<Vec<PartitionStatus>, Fault> {
        let now = self.ambient.now_seconds();
        let routed = self.owners_of(pass.resource, &EffectiveRange::full(), &[]).await?;
        let status = |routed: &crate::router::Routed| {
            let (slot, counts) = (&routed.slot, routed.partition.counts());
            let totals = slot.ledger.totals();
            PartitionStatus {
                ordinal: slot.ordinal,
                range: slot.range.clone(),
                parents: slot.ancestors.iter().map(|ancestor| ancestor.ordinal).collect(),
                documents: counts.documents,
                document_bytes: counts.bytes,
                charged_last_second: slot.ledger.recent_rate(now),
                charged: totals.charged,
                throttled: totals.throttled,
                hot_keys: slot.ledger.hot_keys(HOT_KEYS_LISTED),
            }
        };
        Ok(routed.iter().map(status).collect())
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
        Ok(())
    }
}
