//! From a key to the partition that owns it. The only place that knows where partitions are.

use crate::catalog::{Container, PartitionEntry};
use crate::engine::Engine;
use kv::{Health, Store};
use model::{Fault, MissingFault, PartitionKey, PartitionOrdinal, RequestFault, SessionToken, StorageFault};
use partition::index::IndexFinding;
use partition::keyspace::PartitionId;
use partition::{PartitionSpec, PhysicalPartition, Surroundings};
use plan::LogicalKey;
use std::sync::Arc;

impl Engine {
    /// The logical partition that a complete `key` names, and the partition that owns it.
    pub(crate) async fn route(
        &self,
        container: &Container,
        key: PartitionKey,
    ) -> Result<(LogicalKey, Arc<PhysicalPartition>), Fault> {
        let definition = &container.definition().partition_key;
        if !definition.is_complete(&key) {
            let (given, expected) = (key.components.len(), definition.paths().len());
            return Err(RequestFault::PartitionKeyLength { given, expected }.into());
        }
        let effective = definition.effective_key(&key);
        let entry = container.map.owner(&effective);
        let entry = entry.ok_or_else(|| Fault::Internal("the partition map has a gap".to_owned()))?;
        let partition = self.opened(container, entry).await?;
        Ok((LogicalKey { partition_key: key, effective }, partition))
    }

    /// What all partitions live in.
    fn surroundings(&self) -> Surroundings {
        Surroundings {
            store: self.store.clone(),
            cache: Arc::clone(&self.record_cache),
            ambient: Arc::clone(&self.ambient),
            durability: self.options.durability,
            index: Arc::clone(&self.index_memory),
        }
    }

    /// How much of the index that a container's policy asks for is there, in percent: that of the partition that is
    /// furthest behind. Partitions that nobody has used yet are opened, which also sets those to work whose index is
    /// of an older policy.
    pub async fn index_progress(&self, container: &Container) -> Result<u8, Fault> {
        let mut opened = Vec::with_capacity(container.map.entries.len());
        for entry in &container.map.entries {
            opened.push(self.opened(container, entry).await?);
        }
        Ok(opened.iter().map(|partition| partition.index_progress()).min().unwrap_or(100))
    }

    /// Bytes of documents that the indexes of all containers hold in memory; the bound is among the options.
    pub fn index_memory_bytes(&self) -> usize {
        self.index_memory.held_bytes()
    }

    /// Compares the index of every partition of a container with its records; for checks, not for requests.
    pub async fn audit_index(&self, container: &Container) -> Result<Vec<IndexFinding>, Fault> {
        let mut findings = Vec::new();
        for entry in &container.map.entries {
            findings.extend(self.opened(container, entry).await?.audit_index().await?);
        }
        Ok(findings)
    }

    /// The partition behind an entry of the map, opened at its first use.
    pub(crate) async fn opened(
        &self,
        container: &Container,
        entry: &PartitionEntry,
    ) -> Result<Arc<PhysicalPartition>, Fault> {
        self.catalog.settle(&self.store).await?;
        if container.map.is_retired() {
            return Err(MissingFault::Owner.into());
        }
        if let Some(partition) = entry.opened.get() {
            return Ok(Arc::clone(partition));
        }
        let opened = self.open_partition(container, entry.ordinal).await;
        // Dropped meanwhile: whoever deletes the rows may not have seen this writer, so it must do nothing.
        if container.map.is_retired() {
            return Err(MissingFault::Owner.into());
        }
        opened
    }

    /// Opens a partition in a task of its own, where all writers run: a client that goes away does not stop it halfway, with work of its
    /// index under way that the next opening would not know of.
    fn open_partition(
        &self,
        container: &Container,
        ordinal: PartitionOrdinal,
    ) -> impl Future<Output = Result<Arc<PhysicalPartition>, Fault>> + use<> {
        let id = PartitionId { container: container.number(), ordinal };
        let (map, shape) = (Arc::clone(&container.map), Arc::clone(&container.shape));
        let surroundings = self.surroundings();
        let opening = self.runtime.spawn(async move {
            let entry =
                map.by_ordinal(ordinal).ok_or_else(|| Fault::Internal(format!("no partition {id:?}")))?;
            let spec = PartitionSpec { id, range: entry.range.clone() };
            let open = async || PhysicalPartition::open(surroundings, spec, shape).await.map(Arc::new);
            entry.opened.get_or_try_init(open).await.cloned()
        });
        async move {
            let opened = opening.await;
            opened
                .unwrap_or_else(|error| Err(Fault::Internal(format!("a partition was not opened: {error}"))))
        }
    }
}

/// Whether `partition` has what the client has seen.
pub(crate) fn check_session(partition: &PhysicalPartition, session: &[SessionToken]) -> Result<(), Fault> {
    let ordinal = partition.spec().id.ordinal;
    let seen = session.iter().filter(|token| token.ordinal == ordinal).map(|token| token.lsn).max();
    match seen {
        Some(lsn) if lsn > partition.lsn() => Err(MissingFault::Session.into()),
        Some(_) | None => Ok(()),
    }
}

/// The client's token after it has seen `partition` at `lsn`.
pub(crate) fn session_token(partition: &PhysicalPartition, lsn: model::Lsn) -> SessionToken {
    SessionToken { ordinal: partition.spec().id.ordinal, lsn }
}

pub(crate) fn health(store: &Store) -> Result<(), Fault> {
    match store.health() {
        Health::Serving => Ok(()),
        Health::Full { free_bytes, reserve_bytes } => {
            Err(StorageFault::Full { free_bytes, reserve_bytes }.into())
        }
        Health::Poisoned { cause } => Err(StorageFault::Unavailable { cause: cause.to_string() }.into()),
        Health::Closed => Err(StorageFault::Unavailable { cause: "the store is closed".to_owned() }.into()),
    }
}
