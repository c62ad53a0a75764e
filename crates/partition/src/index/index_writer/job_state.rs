//! The background jobs of an index: at most one for segments, and one that merges runs. A merge of runs may take long,
//! so flushes do not wait for it.

use crate::index::jobs::{Inputs, Install, Job, JobOutput};
use crate::index::piece::{RunPiece, SegmentPiece};
use crate::index::run_merge::MergePace;
use model::Fault;
use std::sync::Arc;
use tokio::task::JoinError;

/// Whether a job for segments may start, runs, or waits for its manifest. A merge of runs joins it to be installed.
#[derive(Debug)]
pub(super) enum JobState {
    /// No job may start: not all changes up to the position are applied.
    Incomplete,
    Idle,
    Busy(Job),
    /// The runs of a job wait for their manifest.
    Installing(Install),
}

impl JobState {
    /// Segments that the job will replace; nothing else may replace them.
    pub(super) fn frozen(&self) -> &[SegmentPiece] {
        match self {
            JobState::Busy(Job { inputs, .. }) | JobState::Installing(Install { inputs, .. }) => match inputs
            {
                Inputs::Merged(inputs) | Inputs::Flushed(inputs) => inputs,
                Inputs::Runs(_) => &[],
            },
            JobState::Incomplete | JobState::Idle => &[],
        }
    }

    pub(super) fn job(&self) -> Option<&Job> {
        match self {
            JobState::Busy(job) => Some(job),
            JobState::Incomplete | JobState::Idle | JobState::Installing(_) => None,
        }
    }

    /// Waits for the running job; forever without one.
    pub(super) async fn ended(&mut self) -> Result<Result<JobOutput, Fault>, JoinError> {
        match self {
            JobState::Busy(job) => (&mut job.task).await,
            JobState::Incomplete | JobState::Idle | JobState::Installing(_) => std::future::pending().await,
        }
    }
}

/// Whether runs are being merged.
#[derive(Debug)]
pub(super) enum MergeState {
    None,
    Running(Job),
    /// The result waits until no other runs are installed.
    Ended(Install),
}

impl MergeState {
    /// The running merge.
    pub(super) fn job(&self) -> Option<&Job> {
        match self {
            MergeState::Running(job) => Some(job),
            MergeState::None | MergeState::Ended(_) => None,
        }
    }

    /// Whether a merge runs that should end soon.
    pub(super) fn is_prompt(&self) -> bool {
        self.job().is_some_and(|job| match job.pace {
            MergePace::Prompt => true,
            MergePace::Slow { .. } => false,
        })
    }

    /// Whether a merge replaces this run.
    pub(super) fn replaces(&self, piece: &RunPiece) -> bool {
        let inputs = match self {
            MergeState::None => return false,
            MergeState::Running(Job { inputs, .. }) | MergeState::Ended(Install { inputs, .. }) => inputs,
        };
        match inputs {
            Inputs::Runs(inputs) => inputs.iter().any(|input| Arc::ptr_eq(&input.run, &piece.run)),
            Inputs::Merged(_) | Inputs::Flushed(_) => false,
        }
    }

    /// Waits for the running merge; forever without one.
    pub(super) async fn ended(&mut self) -> Result<Result<JobOutput, Fault>, JoinError> {
        match self {
            MergeState::Running(job) => (&mut job.task).await,
            MergeState::None | MergeState::Ended(_) => std::future::pending().await,
        }
    }
}
