//! A run whose rows are in the store and that no manifest names yet.
//!
//! If it is dropped before, its rows are deleted, and with them the marks by which the store would delete them at the
//! next start: an index build that is given up or fails leaves nothing behind, whenever it is stopped.

use crate::index::jobs::delete_rows;
use crate::keyspace::{INDEX, PartitionId};
use crate::storage::commit_fault;
use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, IngestId, Store};
use model::Fault;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct UnnamedRun {
    store: Store,
    partition: PartitionId,
    run: u64,
    ingests: Vec<IngestId>,
    under_way: Option<JoinHandle<Result<IngestId, CommitFault>>>,
}

impl UnnamedRun {
    /// A run without rows.
    pub(crate) fn new(store: Store, partition: PartitionId, run: u64) -> UnnamedRun {
        UnnamedRun { store, partition, run, ingests: Vec::new(), under_way: None }
    }

    /// Stores some of its rows.
    pub(crate) async fn ingest(&mut self, rows: Vec<(Bytes, Bytes)>) -> Result<(), Fault> {
        let store = self.store.clone();
        // A task of its own: if the caller is stopped, the ingest still ends, and what came of it can be deleted.
        let task = self.under_way.insert(tokio::spawn(async move { store.ingest(INDEX, rows).await }));
        let ended = task.await;
        self.under_way = None;
        match ended {
            Ok(Ok(ingest)) => {
                self.ingests.push(ingest);
                Ok(())
            }
            Ok(Err(fault)) => Err(commit_fault(fault)),
            Err(error) => Err(Fault::Internal(format!("an ingest ended early: {error}"))),
        }
    }

    /// Adds to `batch` that the rows stay.
    pub(crate) fn name_in(&self, batch: &mut Batch) {
        self.ingests.iter().for_each(|ingest| batch.name_ingest(*ingest));
    }

    /// The rows are named, or the store will find out whether they are: nothing is deleted here.
    pub(crate) fn keep(mut self) {
        self.ingests.clear();
    }
}

impl Drop for UnnamedRun {
    fn drop(&mut self) {
        let (ingests, under_way) = (std::mem::take(&mut self.ingests), self.under_way.take());
        if ingests.is_empty() && under_way.is_none() {
            return;
        }
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_planted(crate::planted::PlantedFault::UnnamedRunsStay) {
            return;
        }
        // Without a runtime the process ends, and the next start deletes the rows.
        if let Ok(runtime) = Handle::try_current() {
            let (store, partition, run) = (self.store.clone(), self.partition, self.run);
            runtime.spawn(async move {
                if let Err(fault) = discard(&store, partition, run, ingests, under_way).await {
                    // As when the store is closed meanwhile.
                    tracing::info!(event = "index_rows_left", ?partition, run, cause = %fault, "rows of an unreferenced index run stay until the next start");
                }
            });
        }
    }
}

/// Deletes the rows first and then the marks: a crash in between leaves the rest to the next start.
async fn discard(
    store: &Store,
    partition: PartitionId,
    run: u64,
    mut ingests: Vec<IngestId>,
    under_way: Option<JoinHandle<Result<IngestId, CommitFault>>>,
) -> Result<(), Fault> {
    if let Some(task) = under_way
        && let Ok(Ok(ingest)) = task.await
    {
        ingests.push(ingest);
    }
    // Also where the container was dropped meanwhile: nobody else would delete them before the next start.
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
