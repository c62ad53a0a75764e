//! Deletes documents whose time has come, and notes anew when documents expire after a default changed.
//!
//! Nobody waits for this: an expired document is absent for everybody at once. The writer checks each one again.

use crate::catalog::Container;
use crate::engine::Engine;
use bytes::Bytes;
use kv::{Direction, ScanLimit};
use model::limits::PAGE_BYTES_MAX;
use model::{ContainerNumber, DocumentNumber, EffectiveRange, Fault, PartitionKey};
use partition::keyspace::{self, EXPIRY, NUMBERS, RECORDS};
use partition::{PhysicalPartition, read_fault, stored_document};
use plan::{LogicalKey, Mutation, Operation, Returned, Transaction};
use std::sync::Arc;

/// Documents that one step looks at.
const AT_A_TIME: usize = 256;

impl Engine {
    /// Sweeps a container once.
    pub(super) async fn sweep_expired(&self, number: ContainerNumber) -> Result<(), Fault> {
        let Some(container) = self.catalog.state().container(number) else { return Ok(()) };
        while self.sweep_some(&container).await? && !self.jobs.is_stopping() {}
        Ok(())
    }

    /// Deletes a bounded number of expired documents; tells whether there are more.
    async fn sweep_some(&self, container: &Container) -> Result<bool, Fault> {
        let view = self.store().view().await.map_err(read_fault)?;
        let range = keyspace::expiry_range(container.number(), self.ambient().now_seconds());
        let limit = ScanLimit { rows: AT_A_TIME, bytes: PAGE_BYTES_MAX };
        let chunk = view.scan(EXPIRY, range, Direction::Forward, limit).await.map_err(read_fault)?;
        for (key, _) in &chunk.rows {
            let Some((second, number)) = keyspace::parse_expiry_key(key) else {
                continue;
            };
            self.to_writer(container, number, Mutation::Expire { number, second }).await?;
        }
        Ok(chunk.more)
    }

    /// Notes anew when the documents of a container with a changed default expire.
    pub(super) async fn reschedule_expiry(&self, number: ContainerNumber) -> Result<(), Fault> {
        let container = self.catalog.state().container(number);
        let Some(container) = container.filter(|container| container.expiry_pending) else { return Ok(()) };
        if self.reschedule_all(&container).await? {
            let mut change = self.catalog.begin(self).await?;
            // Only if no other change of the definition came in between.
            let current = change.state.container(number);
            if let Some(current) = current.filter(|current| current.etag() == container.etag()) {
                change.put_container(&Arc::new(current.settled()));
                change.commit().await?;
            }
        }
        Ok(())
    }

    /// Tells whether all documents were seen. The rows are written by the definition that is in force when the writer
    /// executes, which is `container`'s or a newer one; a newer one has the job run again.
    async fn reschedule_all(&self, container: &Container) -> Result<bool, Fault> {
        #[cfg(feature = "planted-faults")]
        if partition::planted::is_planted(partition::planted::PlantedFault::OldDefinitionReturns) {
            container.force_shape();
        }
        let whole = EffectiveRange::full();
        for entry in container.map.owners(&whole) {
            let partition = self.opened(container, entry).await?;
            pass_writer(container, &partition).await?;
            let mut range = keyspace::effective_range(container.number(), &entry.range);
            loop {
                if self.jobs.is_stopping() {
                    return Ok(false);
                }
                // Not through the partition's view: what the new default lets expire at once needs its row too.
                let view = self.store().view().await.map_err(read_fault)?;
                let limit = ScanLimit { rows: AT_A_TIME, bytes: PAGE_BYTES_MAX };
                let chunk =
                    view.scan(RECORDS, range.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
                for (_, row) in &chunk.rows {
                    let number = stored_document(row)?.number;
                    self.to_writer(container, number, Mutation::Reschedule { number }).await?;
                }
                match chunk.rows.last() {
                    Some((last, _)) if chunk.more => range = keyspace::after(&range, last),
                    Some(_) | None => break,
                }
            }
        }
        Ok(true)
    }

    /// Sends a mutation to the writer that owns the numbered document now.
    async fn to_writer(
        &self,
        container: &Container,
        number: DocumentNumber,
        mutation: Mutation,
    ) -> Result<(), Fault> {
        let view = self.store().view().await.map_err(read_fault)?;
        let number_key = keyspace::number_key(container.number(), number);
        let record_key: Option<Bytes> = view.get(NUMBERS, &number_key).await.map_err(read_fault)?;
        let record = match &record_key {
            Some(key) => view.get(RECORDS, key).await.map_err(read_fault)?,
            None => None,
        };
        let key = match record {
            Some(row) => container.definition().partition_key.extract(&stored_document(&row)?.document)?,
            // The document is gone; any writer may drop the stale expiry row.
            None => any_key(container)?,
        };
        let key = self.logical_key(container, key)?;
        let operations = vec![Operation::Write(mutation)];
        let (executed, _) = self.execute_at(container, key, operations, Returned::All).await?;
        executed.map(drop).map_err(|refusal| refusal.fault)
    }
}

/// Waits until everything that `partition` decided by an earlier definition is in the store. A transaction without
/// steps is answered behind all before it.
async fn pass_writer(container: &Container, partition: &PhysicalPartition) -> Result<(), Fault> {
    let partition_key = any_key(container)?;
    let effective = container.definition().partition_key.effective_key(&partition_key);
    let key = LogicalKey { partition_key, effective };
    let nothing = Transaction { key, operations: Vec::new(), returned: Returned::All };
    let passed = partition.execute(nothing).await;
    passed.map(drop).map_err(|refusal| refusal.fault)
}

/// Some complete key of the container.
fn any_key(container: &Container) -> Result<PartitionKey, Fault> {
    let definition = &container.definition().partition_key;
    Ok(definition.parse_header(ANY_KEY[definition.paths().len() - 1])?)
}

/// A key with as many components as the container has paths.
const ANY_KEY: [&str; 3] = ["[null]", "[null,null]", "[null,null,null]"];
