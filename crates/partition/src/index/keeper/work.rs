//! What an index has under way beside the writer: one thing at a time.

use crate::index::jobs::{Inputs, Install, Job, Output};
use crate::index::piece::SegmentPiece;
use model::Fault;
use tokio::task::JoinError;

/// See the file's head.
#[derive(Debug)]
pub(super) enum Work {
    /// Nothing may begin: not all changes up to the position are in it yet.
    Incomplete,
    Idle,
    Busy(Job),
    /// What a job has made waits for its manifest.
    Installing(Install),
}

impl Work {
    /// Segments that will be replaced by what is under way: nobody else may.
    pub(super) fn frozen(&self) -> &[SegmentPiece] {
        match self {
            Work::Busy(Job { inputs, .. }) | Work::Installing(Install { inputs, .. }) => match inputs {
                Inputs::Merged(inputs) | Inputs::Flushed(inputs) => inputs,
                Inputs::Runs(_) => &[],
            },
            Work::Incomplete | Work::Idle => &[],
        }
    }

    /// The job under way.
    pub(super) fn job(&self) -> Option<&Job> {
        match self {
            Work::Busy(job) => Some(job),
            Work::Incomplete | Work::Idle | Work::Installing(_) => None,
        }
    }

    /// Waits for the job under way; for ever without one.
    pub(super) async fn ended(&mut self) -> Result<Result<Output, Fault>, JoinError> {
        match self {
            Work::Busy(job) => (&mut job.task).await,
            Work::Incomplete | Work::Idle | Work::Installing(_) => std::future::pending().await,
        }
    }
}
