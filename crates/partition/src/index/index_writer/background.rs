//! Starts the background jobs of an index and takes their results.

use super::job_state::{JobState, MergeState};
use super::{IndexWriter, RETRY_PART};
use crate::index::jobs::{Inputs, Install, Job, JobOutput, flush_job, run_merge_job};
use crate::index::piece::SegmentPiece;
use crate::index::run_merge::MergePace;
use model::Fault;
use std::sync::Arc;
use tokio::task::JoinError;

impl IndexWriter {
    /// Starts the jobs that are due.
    pub(super) fn begin_job(&mut self) {
        if self.may_begin() && self.is_flush_due() {
            self.begin_flush();
        }
        match self.merge_state {
            MergeState::None if self.changes >= self.pause => self.begin_run_merge(),
            MergeState::None | MergeState::Ended(_) => {}
            MergeState::Running(_) => self.hurry_slow_merge(),
        }
    }

    fn begin_run_merge(&mut self) {
        let (inputs, pace) = match (&self.job_state, self.due_runs()) {
            // Runs that wait for their manifest may replace some of those that would be merged.
            (JobState::Incomplete | JobState::Installing(_), _) => return,
            (JobState::Idle | JobState::Busy(_), Some(inputs)) => (inputs, MergePace::Prompt),
            (JobState::Idle | JobState::Busy(_), None) => match self.foreign_runs() {
                Some(inputs) => (inputs, MergePace::Slow { hurries: Arc::default() }),
                None => return,
            },
        };
        let job = run_merge_job(self.environment.clone(), inputs, self.lsn, pace);
        self.merge_state = MergeState::Running(job);
    }

    /// Has merged runs wait for their manifest, unless others do.
    pub(super) fn install_merged(&mut self) {
        if !matches!(self.job_state, JobState::Idle) {
            return;
        }
        match std::mem::replace(&mut self.merge_state, MergeState::None) {
            MergeState::Ended(install) => self.job_state = JobState::Installing(install),
            other @ (MergeState::None | MergeState::Running(_)) => self.merge_state = other,
        }
    }

    fn begin_flush(&mut self) {
        self.flush_wanted = false;
        self.changes = 0;
        let inputs = self.segments.clone();
        self.job_state = JobState::Busy(flush_job(self.environment.clone(), inputs, self.lsn));
    }

    pub(super) async fn on_job_ended(&mut self, result: Result<Result<JobOutput, Fault>, JoinError>) {
        let (inputs, lsn) = match std::mem::replace(&mut self.job_state, JobState::Idle) {
            JobState::Busy(Job { inputs, lsn, .. }) => (inputs, lsn),
            other @ (JobState::Incomplete | JobState::Idle | JobState::Installing(_)) => {
                self.job_state = other;
                return;
            }
        };
        match (result, inputs) {
            (Ok(Ok(JobOutput::Segment(merged))), Inputs::Merged(inputs)) => {
                self.replace_inputs(&inputs, SegmentPiece::new(merged));
                self.merge_due().await;
            }
            (Ok(Ok(JobOutput::Runs(runs))), inputs) => {
                self.job_state = JobState::Installing(Install { inputs, runs, lsn })
            }
            (Ok(Ok(JobOutput::Segment(_))), Inputs::Flushed(_) | Inputs::Runs(_)) => {}
            (Ok(Err(fault)), _) => self.job_failed(&fault),
            (Err(error), _) => self.job_panicked(&error),
        }
        self.install_merged();
    }

    pub(super) async fn on_merge_ended(&mut self, result: Result<Result<JobOutput, Fault>, JoinError>) {
        let (inputs, lsn) = match std::mem::replace(&mut self.merge_state, MergeState::None) {
            MergeState::Running(Job { inputs, lsn, .. }) => (inputs, lsn),
            other @ (MergeState::None | MergeState::Ended(_)) => {
                self.merge_state = other;
                return;
            }
        };
        match result {
            Ok(Ok(JobOutput::Runs(runs))) => {
                self.merge_state = MergeState::Ended(Install { inputs, runs, lsn });
            }
            Ok(Ok(JobOutput::Segment(_))) => {}
            Ok(Err(fault)) => self.job_failed(&fault),
            Err(error) => self.job_panicked(&error),
        }
        self.install_merged();
    }

    fn job_failed(&mut self, fault: &Fault) {
        self.share.failed();
        self.pause = self.environment.memory.options().flush_documents / RETRY_PART;
        tracing::warn!(event = "index_flush_failed", partition = ?self.environment.partition, cause = %fault, "an index run could not be written; it is tried again");
    }

    fn job_panicked(&mut self, error: &JoinError) {
        self.share.failed();
        tracing::error!(event = "index_job_panicked", partition = ?self.environment.partition, %error, "a merge or flush of the index panicked");
    }
}
