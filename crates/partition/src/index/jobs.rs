//! Background jobs of the index: merges and flushes, one at a time.
//!
//! The inputs of a job stay in use until its result replaces them. Documents that die in them meanwhile are marked
//! dead in the result.

use crate::index::index_writer::IndexEnvironment;
use crate::index::merge::merge_all;
use crate::index::piece::{RunPiece, SegmentPiece};
use crate::index::run_merge::{MergePace, merge_runs};
use crate::index::run_writer::{NewRun, write_segment};
use crate::index::segment::{SEGMENT_DOCUMENTS_MAX, Segment};
use crate::keyspace::{self, INDEX, PartitionId};
use crate::owner::{self, Claim};
use crate::storage::{commit_fault, read_fault};
use kv::{Batch, CommitFault, Direction, Durability, ScanLimit, Store};
use model::{Fault, Lsn};
use tokio::task::JoinHandle;

/// Rows of a replaced run that are deleted in one batch.
const DROPPED_TOGETHER: ScanLimit = ScanLimit { rows: 256, bytes: 4 << 20 };

/// Limit of the owner changes that a deletion of rows survives by retrying.
const OWNER_CHANGES_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) inputs: Inputs,
    /// All changes up to here are in its result or in pieces that it does not replace.
    pub(crate) lsn: Lsn,
    pub(crate) pace: MergePace,
    pub(crate) task: JoinHandle<Result<JobOutput, Fault>>,
}

/// The pieces that a job replaces, as they were when it started.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Segments that are merged into one segment.
    Merged(Vec<SegmentPiece>),
    /// All segments, which are flushed to runs.
    Flushed(Vec<SegmentPiece>),
    /// Runs that are merged into one.
    Runs(Vec<RunPiece>),
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum JobOutput {
    Segment(Segment),
    Runs(Vec<NewRun>),
}

/// Runs whose rows are durable and that wait for the manifest that names them.
#[derive(Debug)]
pub(crate) struct Install {
    pub(crate) inputs: Inputs,
    pub(crate) runs: Vec<NewRun>,
    pub(crate) lsn: Lsn,
}

pub(crate) fn merge_job(inputs: Vec<SegmentPiece>, lsn: Lsn) -> Job {
    let pieces = inputs.clone();
    let task = tokio::spawn(async move { Ok(JobOutput::Segment(merge_all(pieces).await)) });
    Job { inputs: Inputs::Merged(inputs), lsn, pace: MergePace::Prompt, task }
}

/// Starts to flush segments to runs.
pub(crate) fn flush_job(environment: IndexEnvironment, inputs: Vec<SegmentPiece>, lsn: Lsn) -> Job {
    let pieces = inputs.clone();
    let task = tokio::spawn(async move { flush(&environment, &pieces).await.map(JobOutput::Runs) });
    Job { inputs: Inputs::Flushed(inputs), lsn, pace: MergePace::Prompt, task }
}

/// Writes segments as runs.
pub(crate) async fn flush(
    environment: &IndexEnvironment,
    inputs: &[SegmentPiece],
) -> Result<Vec<NewRun>, Fault> {
    let mut runs = Vec::new();
    for group in groups(inputs) {
        let merged = merge_all(group).await;
        if !merged.numbers().is_empty() {
            runs.push(write_segment(environment, &merged).await?);
        }
    }
    Ok(runs)
}

/// Divides segments into groups that each fit in one segment.
fn groups(inputs: &[SegmentPiece]) -> Vec<Vec<SegmentPiece>> {
    let mut groups: Vec<Vec<SegmentPiece>> = Vec::new();
    let mut room = 0;
    for input in inputs {
        let live = input.live_count();
        match groups.last_mut() {
            Some(group) if live <= room => {
                group.push(input.clone());
                room -= live;
            }
            Some(_) | None => {
                groups.push(vec![input.clone()]);
                room = (SEGMENT_DOCUMENTS_MAX as u64).saturating_sub(live);
            }
        }
    }
    groups
}

pub(crate) fn run_merge_job(
    environment: IndexEnvironment,
    inputs: Vec<RunPiece>,
    lsn: Lsn,
    pace: MergePace,
) -> Job {
    let (pieces, of_merge) = (inputs.clone(), pace.clone());
    let task = tokio::spawn(async move {
        merge_runs(&environment, pieces, of_merge).await.map(|merged| JobOutput::Runs(vec![merged]))
    });
    Job { inputs: Inputs::Runs(inputs), lsn, pace, task }
}

/// Deletes the rows of a run that no manifest names any more. Readers that still use it see them in their own view.
/// Rows that remain after a crash are deleted when the partition is opened.
pub(crate) async fn drop_run(store: Store, partition: PartitionId, claim: Claim, run: u64) {
    if let Err(fault) = delete_rows(&store, partition, run, Some(&claim)).await {
        tracing::warn!(event = "index_rows_left", ?partition, run, cause = %fault, "rows of a replaced index run stay until the next start");
    }
}

/// Deletes all rows of a run in small batches, while `claim` is valid, or without a claim whoever owns the partition.
pub(crate) async fn delete_rows(
    store: &Store,
    partition: PartitionId,
    run: u64,
    claim: Option<&Claim>,
) -> Result<(), Fault> {
    let range = keyspace::run_range(partition, run);
    let mut refusals = 0;
    loop {
        let view = store.view().await.map_err(read_fault)?;
        let chunk = view.scan(INDEX, range.clone(), Direction::Forward, DROPPED_TOGETHER).await;
        let chunk = chunk.map_err(read_fault)?;
        let mut batch = Batch::default();
        batch.mark_shrinking();
        match claim {
            Some(claim) => claim.require(&mut batch),
            None => owner::require_unchanged(&view, partition, &mut batch).await?,
        }
        drop(view);
        chunk.rows.into_iter().for_each(|(key, _)| batch.delete(INDEX, key));
        if !batch.is_empty() {
            match store.submit(&store.lane(), batch, Durability::Buffered).await {
                Ok(_) => {}
                // The owner of the partition has changed meanwhile.
                Err(CommitFault::PreconditionFailed { .. })
                    if claim.is_none() && refusals < OWNER_CHANGES_MAX =>
                {
                    refusals += 1;
                    continue;
                }
                Err(fault) => return Err(commit_fault(fault)),
            }
        }
        if !chunk.more {
            return Ok(());
        }
    }
}
