//! What an index has under way beside the writer: one thing at a time.

use crate::index::jobs::{Inputs, Install, Job, Output};
use crate::index::piece::SegmentPiece;
use model::Fault;
use tokio::task::JoinError;

/// See the file's head.
#[derive(Debug)]
pub(super) enum JobState {
    /// Nothing may begin: not all changes up to the position are in it yet.
    Incomplete,
    Idle,
    Busy(Job),
    /// What a job has made waits for its manifest.
    Installing(Install),
}

impl JobState {
    /// Segments that will be replaced by what is under way: nobody else may.
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

    /// The job under way.
    pub(super) fn job(&self) -> Option<&Job> {
        match self {
            JobState::Busy(job) => Some(job),
            JobState::Incomplete | JobState::Idle | JobState::Installing(_) => None,
        }
    }

    /// Waits for the job under way; for ever without one.
    pub(super) async fn ended(&mut self) -> Result<Result<Output, Fault>, JoinError> {
        match self {
            JobState::Busy(job) => (&mut job.task).await,
            JobState::Incomplete | JobState::Idle | JobState::Installing(_) => std::future::pending().await,
        }
    }
}
