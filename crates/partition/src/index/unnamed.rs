//! A run whose rows are in the store and that no manifest names yet.
//!
//! If it is dropped before it is named, its rows are deleted, and with them the marks by which the store would delete
//! them at the next start. An index build that is abandoned or fails therefore leaves no rows, whenever it is stopped.

use crate::index::jobs::delete_rows;
use crate::keyspace::{INDEX, PartitionId};
use crate::storage::commit_fault;
use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, IngestId, Store};
use model::Fault;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A run that deletes its rows when it is dropped, unless a manifest has named it.
#[derive(Debug)]
pub(crate) struct UnnamedRun {
    store: Store,
    partition: PartitionId,
    run: u64,
    ingests: Vec<IngestId>,
    ingest_task: Option<JoinHandle<Result<IngestId, CommitFault>>>,
}

impl UnnamedRun {
    /// A run without rows.
    pub(crate) fn new(store: Store, partition: PartitionId, run: u64) -> UnnamedRun {
        UnnamedRun { store, partition, run, ingests: Vec::new(), ingest_task: None }
    }

    /// Stores some of its rows.
    pub(crate) async fn ingest(&mut self, rows: Vec<(Bytes, Bytes)>) -> Result<(), Fault> {
        let store = self.store.clone();
        // In a separate task: if the caller is stopped, the ingest still ends, and its rows can be deleted.
        let task = self.ingest_task.insert(tokio::spawn(async move { store.ingest(INDEX, rows).await }));
        let ended = task.await;
        self.ingest_task = None;
        match ended {
            Ok(Ok(ingest)) => {
                self.ingests.push(ingest);
                Ok(())
            }
            Ok(Err(fault)) => Err(commit_fault(fault)),
            Err(error) => Err(Fault::Internal(format!("an ingest task failed: {error}"))),
        }
    }

    /// Adds to `batch` that the rows are kept.
    pub(crate) fn name_in(&self, batch: &mut Batch) {
        self.ingests.iter().for_each(|ingest| batch.name_ingest(*ingest));
    }

    /// The rows are named, or the store will decide whether they are: nothing is deleted here.
    pub(crate) fn keep(mut self) {
        self.ingests.clear();
    }
}

impl Drop for UnnamedRun {
    fn drop(&mut self) {
        let (ingests, ingest_task) = (std::mem::take(&mut self.ingests), self.ingest_task.take());
        if ingests.is_empty() && ingest_task.is_none() {
            return;
        }
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_planted(crate::planted::PlantedFault::UnnamedRunsStay) {
            return;
        }
        // Without a runtime the process is ending, and the next start deletes the rows.
        if let Ok(runtime) = Handle::try_current() {
            let (store, partition, run) = (self.store.clone(), self.partition, self.run);
            runtime.spawn(async move {
                if let Err(fault) = discard(&store, partition, run, ingests, ingest_task).await {
                    // For example because the store was closed meanwhile.
                    tracing::info!(event = "index_rows_left", ?partition, run, cause = %fault, "rows of an unreferenced index run stay until the next start");
                }
            });
        }
    }
}

/// Deletes the rows first and then the marks: after a crash in between, the next start deletes the rest.
async fn discard(
    store: &Store,
    partition: PartitionId,
    run: u64,
    mut ingests: Vec<IngestId>,
    ingest_task: Option<JoinHandle<Result<IngestId, CommitFault>>>,
) -> Result<(), Fault> {
    if let Some(task) = ingest_task
        && let Ok(Ok(ingest)) = task.await
    {
        ingests.push(ingest);
    }
    // Also if the container was dropped meanwhile: otherwise the rows would stay until the next start.
    delete_rows(store, partition, run, None).await?;
    for ingest in ingests {
        let mut batch = Batch::default();
        batch.mark_shrinking();
        batch.name_ingest(ingest);
        match store.submit(&store.lane(), batch, Durability::Buffered).await {
            // The store was reopened meanwhile and has removed the ingest itself.
            Ok(_) | Err(CommitFault::UnknownIngest { .. }) => {}
            Err(fault) => return Err(commit_fault(fault)),
        }
    }
    Ok(())
}
