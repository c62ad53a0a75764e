//! Consumers of the change logs of a container. No request uses them yet.

use crate::authorisation::AdminPass;
use crate::catalog::Container;
use crate::engine::Engine;
use crate::router::Attempts;
use model::{Fault, Lsn, MissingFault, PartitionOrdinal};

impl Engine {
    /// Registers a consumer of a partition's log, or moves it: entries after its position stay in the log.
    pub async fn set_log_consumer(
        &self,
        pass: &AdminPass<&Container>,
        ordinal: PartitionOrdinal,
        name: &str,
        lsn: Lsn,
    ) -> Result<(), Fault> {
        let container = pass.resource;
        let mut attempts = Attempts::default();
        loop {
            let slot = container.map.load().by_ordinal(ordinal).cloned();
            let slot = slot.ok_or_else(|| MissingFault::Range { id: ordinal.0.to_string() })?;
            let partition = self.opened(container, &slot).await?;
            match partition.set_consumer(name, lsn).await {
                Err(_) if attempts.again(std::iter::once(&partition)) => {}
                set => return set,
            }
        }
    }
}
