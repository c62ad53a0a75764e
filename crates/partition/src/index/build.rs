//! Builds an index in a background task: for a new policy, after damage, or if there was none.
//!
//! Walks all records in steps, each with a new view, so that no view is held open. Changes made meanwhile are taken
//! from the log at the end, and the last of them by the writer when it swaps the index in. Runs are written during the
//! walk and kept if the manifest is committed. The steps count against the budget of all housekeeping.

use crate::index::index_writer::{IndexEnvironment, IndexWriter, Prepared};
use crate::index::recovery::{catch_up, next_records};
use crate::index::rules::Rules;
use crate::keyspace;
use crate::storage::read_fault;
use model::{EffectiveRange, Fault, Lsn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::{JoinError, JoinHandle};

/// Rounds in which the log is followed; the writer applies the rest.
const ROUNDS_MAX: usize = 16;
/// Changes that may be left to the writer.
const REMAINDER_MAX: usize = 256;

/// A running index build.
#[derive(Debug)]
pub(crate) struct Build {
    pub(crate) rules: Arc<Rules>,
    /// Log entries after this position are needed.
    pub(crate) lsn: Lsn,
    task: JoinHandle<Result<IndexWriter, Fault>>,
}

/// The inputs of a build.
pub(crate) struct BuildInput {
    pub(crate) environment: IndexEnvironment,
    pub(crate) rules: Arc<Rules>,
    /// A position that every state from now on has reached.
    pub(crate) lsn: Lsn,
    pub(crate) range: EffectiveRange,
    /// Counts the processed documents.
    pub(crate) walked: Arc<AtomicU64>,
}

impl Build {
    pub(crate) fn begin(input: BuildInput) -> Build {
        input.walked.store(0, Ordering::Relaxed);
        let (rules, lsn) = (Arc::clone(&input.rules), input.lsn);
        Build { rules, lsn, task: tokio::spawn(build(input)) }
    }

    /// Waits for the end of the build.
    pub(crate) async fn ended(&mut self) -> Result<Result<IndexWriter, Fault>, JoinError> {
        (&mut self.task).await
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn build(input: BuildInput) -> Result<IndexWriter, Fault> {
    let IndexEnvironment { store, partition, lineage, memory, .. } = input.environment.clone();
    let mut index_writer = IndexWriter::new(input.environment, input.rules, input.lsn);
    let mut range = keyspace::effective_range(partition.container, &input.range);
    loop {
        let step = memory.steps().step().await;
        let view = store.view().await.map_err(read_fault)?;
        let Some(versions) = next_records(&view, &mut range).await? else { break };
        drop(view);
        input.walked.fetch_add(versions.len() as u64, Ordering::Relaxed);
        let changes = versions.into_iter().map(|version| (version.number, Some(version))).collect();
        let prepared = Prepared::new(index_writer.rules(), changes);
        index_writer.apply(prepared, input.lsn).await;
        index_writer.spill().await?;
        drop(step);
        tokio::task::yield_now().await;
    }
    for _ in 0..ROUNDS_MAX {
        let _step = memory.steps().step().await;
        let view = store.view().await.map_err(read_fault)?;
        let taken = catch_up(&mut index_writer, &view, &lineage).await?;
        drop(view);
        index_writer.spill().await?;
        if taken <= REMAINDER_MAX {
            break;
        }
        tokio::task::yield_now().await;
    }
    let _step = memory.steps().step().await;
    index_writer.spill_remainder().await?;
    Ok(index_writer)
}
