//! The usage of a container: numbers of documents, bytes, partitions and scripts.

use super::entries::Container;
use crate::authorisation::{CatalogPass, TransactionPass};
use crate::engine::Engine;
use model::{Fault, PartitionOrdinal, ScriptKind};

/// The usage of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerUsage {
    /// Documents, including expired ones that were not deleted yet.
    pub documents: u64,
    /// Bytes of the documents.
    pub document_bytes: u64,
    /// Its partitions.
    pub partitions: usize,
    /// Its stored procedures.
    pub stored_procedures: usize,
    /// Its triggers.
    pub triggers: usize,
    /// Its user-defined functions.
    pub functions: usize,
}

/// The usage of one partition of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionUsage {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// Documents, including expired ones that were not deleted yet.
    pub documents: u64,
    /// Bytes of the documents.
    pub document_bytes: u64,
}

impl Engine {
    /// Counts the documents of each partition of a container.
    pub async fn partition_usage(
        &self,
        pass: &CatalogPass<&Container>,
    ) -> Result<Vec<PartitionUsage>, Fault> {
        self.counts_by_partition(pass.resource).await
    }

    /// Counts the content of a container.
    pub async fn container_usage(&self, pass: &CatalogPass<&Container>) -> Result<ContainerUsage, Fault> {
        self.usage_of(pass.resource).await
    }

    /// Counts the content of the container of a transaction, whose scripts may read it.
    pub async fn usage_around(&self, pass: &TransactionPass<'_>) -> Result<ContainerUsage, Fault> {
        self.usage_of(pass.container).await
    }

    async fn usage_of(&self, container: &Container) -> Result<ContainerUsage, Fault> {
        let scripts = |kind| self.catalog.state().shelves.scripts(kind).count(container.rid());
        let partitions = self.counts_by_partition(container).await?;
        Ok(ContainerUsage {
            documents: partitions.iter().map(|partition| partition.documents).sum(),
            document_bytes: partitions.iter().map(|partition| partition.document_bytes).sum(),
            partitions: container.map.load().entries.len(),
            stored_procedures: scripts(ScriptKind::StoredProcedure),
            triggers: scripts(ScriptKind::Trigger),
            functions: scripts(ScriptKind::UserDefinedFunction),
        })
    }
}
