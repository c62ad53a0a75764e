//! Checks the whole store for consistency, offline: every row is derived again from the documents.
//!
//! The writing of rows is not known here; `partition::audit` describes what is compared.

use crate::catalog::{CatalogState, Container};
use kv::{Durability, Store, View};
use model::{Ambient, ContainerNumber, Fault};
use partition::index::{ComputedReader, IndexFinding, IndexMemory, IndexOptions};
use partition::{
    AuditScope, ExpiryRule, Finding, PartitionEnvironment, PartitionMetrics, PartitionSpec,
    PhysicalPartition, RecordCache, audit, read_fault, stray_containers,
};
use std::sync::Arc;

/// A container in the catalog of a store.
#[derive(Clone, Debug)]
pub struct StoredContainer {
    /// The container.
    pub container: Arc<Container>,
    /// Its partitions.
    pub partitions: Vec<PartitionSpec>,
    /// Whether expiry rows are still to be rewritten, since its default changed.
    pub expiry_pending: bool,
}

/// All containers of a store, which need not be open in an engine.
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

/// The findings in a store.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// One entry per container of the catalog.
    pub containers: Vec<VerifiedContainer>,
    /// Containers that have rows and are neither in the catalog nor being deleted.
    pub strays: Vec<ContainerNumber>,
}

/// The findings in a container.
#[derive(Clone, Debug)]
pub struct VerifiedContainer {
    /// Name of its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Documents, as counted by its partitions.
    pub documents: u64,
    /// Contradictions between rows; empty if there are none.
    pub findings: Vec<Finding>,
    /// Contradictions between index and documents; empty if there are none.
    pub index_findings: Vec<IndexFinding>,
    /// Partitions whose index is not complete, and was not checked.
    pub unindexed: usize,
}

impl VerifiedContainer {
    /// Whether there are no contradictions.
    pub(crate) fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.index_findings.is_empty()
    }
}

impl Verification {
    /// Whether there are no contradictions.
    pub fn is_sound(&self) -> bool {
        self.strays.is_empty() && self.containers.iter().all(VerifiedContainer::is_sound)
    }
}

/// Checks everything in a store that nobody else uses.
///
/// `computed_reader` parses the queries of computed properties; it must be the server's, otherwise another index would
/// be checked. The rows are only read. The index is checked through partitions that are opened and closed as by a
/// server, which may rebuild what the last server did not write to disk.
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
                // The progress of the last sweep is not stored: an outdated row may have any second.
                false => ExpiryRule::Rescheduled { swept_second: 0 },
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

/// The errors in the indexes of a container, and the number of incomplete indexes.
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
    container.map.load().entries.iter().map(|slot| container.spec(slot)).collect()
}
