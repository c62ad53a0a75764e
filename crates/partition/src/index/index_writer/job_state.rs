//! The background job of an index; there is at most one.

use crate::index::jobs::{Inputs, Install, Job, JobOutput};
use crate::index::piece::SegmentPiece;
use model::Fault;
use tokio::task::JoinError;

/// Whether a job may start, runs, or waits for its manifest.
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
