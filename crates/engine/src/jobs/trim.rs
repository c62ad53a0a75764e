//! Drops log entries of deletions and of replaced versions that every consumer has passed.

use crate::catalog::Container;
use crate::engine::Engine;
use model::Fault;
use std::sync::Arc;

impl Engine {
    /// Trims the logs of all partitions in use.
    pub(super) async fn trim_logs(&self) -> Result<(), Fault> {
        let containers: Vec<Arc<Container>> = self.catalog.state().containers().cloned().collect();
        for slot in containers.iter().flat_map(|container| &container.map.entries) {
            let Some(partition) = slot.current() else {
                continue;
            };
            loop {
                let _step = self.housekeeping_step().await?;
                match partition.trim_log().await {
                    Ok(true) if !self.jobs.is_stopping() => {}
                    Ok(_) => break,
                    Err(fault) => {
                        tracing::warn!(partition = ?partition.spec().id, cause = %fault, "trim_failed");
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
