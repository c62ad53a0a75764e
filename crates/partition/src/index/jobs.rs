//! What the index has under way beside the writer: merges and flushes, one at a time.
//!
//! The inputs of a job stay in use until its result takes their place; what dies in them meanwhile is carried over.

use crate::index::merge::merge_all;
use crate::index::piece::{RunPiece, SegmentPiece};
use crate::index::run_merge::merge_runs;
use crate::index::run_writer::{NewRun, write_segment};
use crate::index::segment::{SEGMENT_DOCUMENTS_MAX, Segment};
use crate::keyspace::{self, INDEX, PartitionId};
use crate::owner::{self, Claim};
use crate::storage::{commit_fault, read_fault};
use kv::{Batch, Direction, Durability, ScanLimit, Store};
use model::{Fault, Lsn};
use tokio::task::JoinHandle;

/// Rows of a replaced run that are deleted together.
const DROPPED_TOGETHER: ScanLimit = ScanLimit { rows: 256, bytes: 4 << 20 };

/// A job under way.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) inputs: Inputs,
    /// All changes up to here are in its result or in pieces that it leaves alone.
    pub(crate) lsn: Lsn,
    pub(crate) task: JoinHandle<Result<Output, Fault>>,
}

/// The pieces a job works on, as they were when it began.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Segments that become one segment.
    Merged(Vec<SegmentPiece>),
    /// All segments: they become runs.
    Flushed(Vec<SegmentPiece>),
    /// Runs that become one.
    Runs(Vec<RunPiece>),
}

/// What a job has made.
#[derive(Debug)]
pub(crate) enum Output {
    Segment(Segment),
    Runs(Vec<NewRun>),
}

/// Runs that are durable and wait for the manifest that names them.
#[derive(Debug)]
pub(crate) struct Install {
    pub(crate) inputs: Inputs,
    pub(crate) runs: Vec<NewRun>,
    pub(crate) lsn: Lsn,
}

pub(crate) fn merge_job(inputs: Vec<SegmentPiece>, lsn: Lsn) -> Job {
    let pieces = inputs.clone();
    let task = tokio::spawn(async move { Ok(Output::Segment(merge_all(pieces).await)) });
    Job { inputs: Inputs::Merged(inputs), lsn, task }
}

/// Writes segments as runs with numbers from `run_first` on; see [`flush_runs_max`] for how many.
pub(crate) fn flush_job(
    store: Store,
    partition: PartitionId,
    run_first: u64,
    inputs: Vec<SegmentPiece>,
    lsn: Lsn,
) -> Job {
    let pieces = inputs.clone();
    let task =
        tokio::spawn(async move { flush(&store, partition, run_first, &pieces).await.map(Output::Runs) });
    Job { inputs: Inputs::Flushed(inputs), lsn, task }
}

/// See [`flush_job`].
pub(crate) async fn flush(
    store: &Store,
    partition: PartitionId,
    run_first: u64,
    inputs: &[SegmentPiece],
) -> Result<Vec<NewRun>, Fault> {
    let mut runs = Vec::new();
    for (id, group) in (run_first..).zip(groups(inputs)) {
        let merged = merge_all(group).await;
        if !merged.numbers().is_empty() {
            runs.push(write_segment(store, partition, id, &merged).await?);
        }
    }
    Ok(runs)
}

/// Most runs that a flush makes.
pub(crate) fn flush_runs_max(inputs: &[SegmentPiece]) -> u64 {
    groups(inputs).len() as u64
}

/// Segments in groups that each fit one segment.
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
    store: Store,
    partition: PartitionId,
    id: u64,
    inputs: Vec<RunPiece>,
    lsn: Lsn,
) -> Job {
    let pieces = inputs.clone();
    let task = tokio::spawn(async move {
        let merged = merge_runs(store, partition, id, pieces).await?;
        Ok(Output::Runs(vec![merged]))
    });
    Job { inputs: Inputs::Runs(inputs), lsn, task }
}

/// Deletes the rows of a run that no manifest names any more. Readers that still use it see them in their own view.
/// What a crash leaves of them is deleted when the partition is opened.
pub(crate) async fn drop_run(store: Store, partition: PartitionId, claim: Claim, run: u64) {
    if let Err(fault) = delete_rows(&store, partition, run, Some(&claim)).await {
        tracing::warn!(?partition, run, cause = %fault, "rows of a replaced run stay until the next start");
    }
}

/// Deletes all rows of a run, a few at a time: as long as `claim` holds, or without one whoever owns the partition.
pub(crate) async fn delete_rows(
    store: &Store,
    partition: PartitionId,
    run: u64,
    claim: Option<&Claim>,
) -> Result<(), Fault> {
    let range = keyspace::run_range(partition, run);
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
            store.submit(&store.lane(), batch, Durability::Buffered).await.map_err(commit_fault)?;
        }
        if !chunk.more {
            return Ok(());
        }
    }
}
