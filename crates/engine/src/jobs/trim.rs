//! Drops log entries of deletions and of replaced versions that every consumer has passed.

use crate::catalog::Container;
use crate::engine::Engine;
use model::Fault;
use std::sync::Arc;

impl Engine {
    /// Trims the logs of all partitions in use.
    pub(super) async fn trim_logs(&self) -> Result<(), Fault> {
        let containers: Vec<Arc<Container>> = self.catalog.state().containers().cloned().collect();
        for entry in containers.iter().flat_map(|container| &container.map.entries) {
            let Some(partition) = entry.opened.get() else {
                continue;
            };
            while partition.trim_log().await? && !self.jobs.is_stopping() {}
        }
        Ok(())
    }
}
