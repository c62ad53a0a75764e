//! The whole store checked against itself, offline: every row is derived again from the documents.
//!
//! Knows nothing of how rows came to be written; what is compared is told in `partition::audit`.

use crate::catalog::{CatalogState, Container};
use kv::{Durability, Store, View};
use model::{Ambient, ContainerNumber, Fault};
use partition::index::{ComputedReader, IndexFinding, IndexMemory, IndexOptions};
use partition::keyspace::PartitionId;
use partition::{
    AuditScope, ExpiryRule, Finding, PartitionEnvironment, PartitionMetrics, PartitionSpec,
    PhysicalPartition, RecordCache, audit, read_fault, stray_containers,
};
use std::sync::Arc;

/// A container as the catalog in a store has it.
#[derive(Clone, Debug)]
pub struct StoredContainer {
    /// The container.
    pub container: Arc<Container>,
    /// Its partitions.
    pub partitions: Vec<PartitionSpec>,
    /// Whether expiry rows have still to be written anew, since its default changed.
    pub expiry_pending: bool,
}

/// All containers of a store that no engine need have open.
pub async fn stored_containers(
    view: &View,
    computed_reader: ComputedReader,
) -> Result<Vec<StoredContainer>, Fault> {
    let state = CatalogState::load(view, computed_reader).await?;
    let stored = |container: &Arc<Container>| StoredContainer {
        container: Arc::clone(container),
        partitions: partitions(container),
        expiry_pending: container.expiry_pending,
    };
    Ok(state.containers().map(stored).collect())
}

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
    /// Disagreements between rows; empty if all is well.
    pub findings: Vec<Finding>,
    /// Disagreements between index and documents; empty if all is well.
    pub index_findings: Vec<IndexFinding>,
    /// Partitions whose index is not finished, and was not looked at.
    pub unindexed: usize,
}

impl VerifiedContainer {
    /// Whether nothing contradicts anything.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.index_findings.is_empty()
    }
}

impl Verification {
    /// Whether nothing contradicts anything.
    pub fn is_sound(&self) -> bool {
        self.strays.is_empty() && self.containers.iter().all(VerifiedContainer::is_sound)
    }
}

/// Checks everything in a store that nobody else uses.
///
/// The queries of computed properties are read by `computed_reader`, which must be the server's: else it would be another
/// index that is checked. The rows are only read. The index is asked as a server would ask it: partitions are opened and closed, which may
/// make anew what the last server did not bring to the disk.
pub async fn verify(
    store: &Store,
    computed_reader: ComputedReader,
    ambient: Arc<dyn Ambient>,
) -> Result<Verification, Fault> {
    let environment = PartitionEnvironment {
        store: store.clone(),
        cache: Arc::new(RecordCache::new(0, 0)),
        ambient,
        durability: Durability::Sync,
        index: IndexMemory::new(IndexOptions::default()),
        metrics: PartitionMetrics::default(),
    };
    let view = store.view().await.map_err(read_fault)?;
    let mut verification = Verification { containers: Vec::new(), strays: stray_containers(&view).await? };
    for stored in stored_containers(&view, computed_reader).await? {
        let StoredContainer { container, partitions, expiry_pending } = &stored;
        let scope = AuditScope {
            container: container.number(),
            shape: &container.shape.load(),
            partitions,
            expiry: match expiry_pending {
                true => ExpiryRule::Pending,
                // How far the last sweep came is not kept: a stale row may be of any second.
                false => ExpiryRule::Settled { swept_second: 0 },
            },
        };
        let report = audit(&view, &scope).await?;
        let (index_findings, unindexed) = verify_index(&environment, container, partitions).await?;
        verification.containers.push(VerifiedContainer {
            database: container.database().id().to_owned(),
            name: container.definition().id.clone(),
            documents: report.partitions.iter().map(|partition| partition.counts.documents).sum(),
            findings: report.findings,
            index_findings,
            unindexed,
        });
    }
    Ok(verification)
}

/// What the indexes of a container say wrongly, and how many say nothing yet.
async fn verify_index(
    environment: &PartitionEnvironment,
    container: &Container,
    partitions: &[PartitionSpec],
) -> Result<(Vec<IndexFinding>, usize), Fault> {
    let mut findings = Vec::new();
    let mut unindexed = 0;
    for spec in partitions {
        let shape = Arc::clone(&container.shape);
        let partition = PhysicalPartition::open(environment.clone(), spec.clone(), shape).await?;
        match partition.index_progress() {
            100 => findings.extend(partition.audit_index().await?),
            _ => unindexed += 1,
        }
        partition.close().await?;
    }
    Ok((findings, unindexed))
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
