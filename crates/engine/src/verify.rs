//! The whole store checked against itself, offline: every row is derived again from the documents.
//!
//! Knows nothing of how rows came to be written; what is compared is told in `partition::audit`.

use crate::catalog::{CatalogState, Container};
use kv::Store;
use model::{ContainerNumber, Fault};
use partition::keyspace::PartitionId;
use partition::{AuditScope, ExpiryRule, Finding, PartitionSpec, audit, read_fault, stray_containers};

/// What was found in a store.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// One entry per container of the catalog.
    pub containers: Vec<VerifiedContainer>,
    /// Containers that have rows and are neither in the catalog nor being deleted.
    pub strays: Vec<ContainerNumber>,
}

/// What was found in a container.
#[derive(Clone, Debug)]
pub struct VerifiedContainer {
    /// Name of its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Documents, by the word of its partitions.
    pub documents: u64,
    /// Disagreements; empty if all is well.
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Whether nothing contradicts anything.
    pub fn is_sound(&self) -> bool {
        self.strays.is_empty() && self.containers.iter().all(|container| container.findings.is_empty())
    }
}

/// Checks everything in a store that nobody else uses.
pub async fn verify(store: &Store) -> Result<Verification, Fault> {
    let view = store.view().map_err(read_fault)?;
    let state = CatalogState::load(&view).await?;
    let mut verification = Verification { containers: Vec::new(), strays: stray_containers(&view).await? };
    for container in state.containers() {
        let partitions = partitions(container);
        let scope = AuditScope {
            container: container.number(),
            shape: &container.shape.load(),
            partitions: &partitions,
            expiry: match container.expiry_pending {
                true => ExpiryRule::Pending,
                // How far the last sweep came is not kept: a stale row may be of any second.
                false => ExpiryRule::Settled { swept_second: 0 },
            },
        };
        let report = audit(&view, &scope).await?;
        verification.containers.push(VerifiedContainer {
            database: container.database().id().to_owned(),
            name: container.definition().id.clone(),
            documents: report.partitions.iter().map(|partition| partition.counts.documents).sum(),
            findings: report.findings,
        });
    }
    Ok(verification)
}

fn partitions(container: &Container) -> Vec<PartitionSpec> {
    let entries = container.map.entries.iter();
    entries
        .map(|entry| PartitionSpec {
            id: PartitionId { container: container.number(), ordinal: entry.ordinal },
            range: entry.range.clone(),
        })
        .collect()
}
