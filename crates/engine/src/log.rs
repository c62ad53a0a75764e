//! Consumers of the change logs of a container. No request names them yet.

use crate::catalog::Container;
use crate::engine::Engine;
use model::{Fault, Lsn, MissingFault, PartitionOrdinal};

impl Engine {
    /// Registers a consumer of a partition's log, or moves it: what was written behind its position stays in the log.
    pub async fn set_log_consumer(
        &self,
        container: &Container,
        ordinal: PartitionOrdinal,
        name: &str,
        lsn: Lsn,
    ) -> Result<(), Fault> {
        let entry = container.map.by_ordinal(ordinal);
        let entry = entry.ok_or_else(|| MissingFault::Range { id: ordinal.0.to_string() })?;
        self.opened(container, entry).await?.set_consumer(name, lsn).await
    }
}
