//! Rewrites the runs that a partition shares with its sibling after a split: slowly, since nobody waits for it.

use super::IndexWriter;
use crate::index::jobs::Job;
use crate::index::piece::RunPiece;
use crate::index::run_merge::MergePace;
use std::sync::atomic::Ordering;

/// With this many runs, a slow merge becomes a prompt one: others wait for it.
const SLOW_RUNS_MAX: usize = 32;
/// Runs of ancestors that are rewritten together.
const FOREIGN_RUNS_MAX: usize = 8;

impl IndexWriter {
    /// Rewrites runs of ancestors, as soon as no other job is due, until there are none.
    pub(crate) fn separate(&mut self) {
        self.separates = true;
        self.begin_job();
    }

    /// Runs that an ancestor has written, with documents of other partitions.
    pub(super) fn foreign_runs(&self) -> Option<Vec<RunPiece>> {
        self.lsn_saved.filter(|_| self.separates)?;
        let foreign: Vec<RunPiece> =
            self.runs.iter().filter(|piece| self.own_run(piece).is_none()).cloned().collect();
        let live: u64 = foreign.iter().map(|piece| piece.live_count()).sum();
        let count = if live < u64::from(u32::MAX) { FOREIGN_RUNS_MAX } else { 1 };
        (!foreign.is_empty()).then(|| foreign.into_iter().take(count).collect())
    }

    /// A slow merge must not hold up other merges for long.
    pub(super) fn hurry_slow_merge(&self) {
        let Some(Job { pace: MergePace::Slow { hurries }, .. }) = self.merge_state.job() else { return };
        if self.runs.len() >= SLOW_RUNS_MAX && self.due_runs().is_some() {
            hurries.store(true, Ordering::Relaxed);
        }
    }
}
