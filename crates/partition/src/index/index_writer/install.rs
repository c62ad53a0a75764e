//! Adding new runs to the index: the batch that names them, and the index after its commit.

use super::{IndexWriter, JobState};
use crate::index::jobs::Inputs;
use crate::index::manifest::{Manifest, delete_dead, put_dead};
use crate::index::piece::RunPiece;
use crate::index::universe::Universe;
use crate::index::unnamed::UnnamedRun;
use kv::Batch;
use model::Lsn;
use std::sync::Arc;

/// The index after an install.
#[derive(Debug)]
pub(crate) struct Installed {
    runs: Vec<RunPiece>,
    lsn: Lsn,
    /// Runs whose rows can be deleted.
    replaced: Vec<u64>,
}

/// The batch of an install.
#[derive(Debug)]
pub(crate) struct InstallBatch {
    pub(crate) batch: Batch,
    /// The runs that the batch names.
    pub(crate) named: Vec<UnnamedRun>,
    pub(crate) installed: Installed,
}

impl IndexWriter {
    /// The batch that names the waiting runs, to be committed before [`IndexWriter::installed`].
    pub(crate) fn install_batch(&mut self) -> Option<InstallBatch> {
        let new_runs = match &mut self.job_state {
            JobState::Installing(install) => std::mem::take(&mut install.runs),
            JobState::Incomplete | JobState::Idle | JobState::Busy(_) => return None,
        };
        let JobState::Installing(install) = &self.job_state else { return None };
        let mut batch = Batch::default();
        let mut runs: Vec<RunPiece> = self.runs.clone();
        let mut died = Vec::new();
        let mut replaced = Vec::new();
        let mut named = Vec::with_capacity(new_runs.len());
        match &install.inputs {
            Inputs::Merged(inputs) | Inputs::Flushed(inputs) => died = self.died_since(inputs),
            Inputs::Runs(inputs) => {
                for input in inputs {
                    let same = |piece: &RunPiece| Arc::ptr_eq(&piece.run, &input.run);
                    let Some(index) = runs.iter().position(same) else { continue };
                    let now = runs.remove(index);
                    let ranks = now.dead.added_since(&input.dead);
                    died.extend(ranks.filter_map(|rank| Universe::Packed(&now.run.numbers).get(rank)));
                    delete_dead(self.environment.partition, &now, &mut batch);
                    replaced.extend(self.own_run(&now));
                }
            }
        }
        for new in new_runs {
            let mut piece = RunPiece::new(new.run);
            new.unnamed.name_in(&mut batch);
            named.push(new.unnamed);
            died.iter().for_each(|number| {
                piece.mark_dead(*number);
            });
            runs.push(piece);
        }
        runs.retain(|piece| {
            // A merge still reads its inputs.
            let is_kept = piece.live_count() > 0 || self.merge_state.replaces(piece);
            if !is_kept {
                delete_dead(self.environment.partition, piece, &mut batch);
                replaced.extend(self.own_run(piece));
            }
            is_kept
        });
        for piece in &mut runs {
            put_dead(self.environment.partition, piece, &mut batch);
            piece.saved = Arc::clone(&piece.dead);
        }
        let lsn = match (&install.inputs, self.lsn_saved) {
            // Only a flush moves the position; changes in memory are after it.
            (Inputs::Runs(_), Some(saved)) => saved,
            (Inputs::Merged(_) | Inputs::Flushed(_) | Inputs::Runs(_), _) => install.lsn,
        };
        manifest(self, lsn, &runs).put(self.environment.partition, &mut batch);
        Some(InstallBatch { batch, named, installed: Installed { runs, lsn, replaced } })
    }

    /// The batch of an install is durable. Returns the runs whose rows can be deleted.
    pub(crate) async fn installed(&mut self, installed: Installed) -> Vec<u64> {
        self.pause = 0;
        self.runs = installed.runs;
        self.lsn_saved = Some(installed.lsn);
        let inputs = self.job_state.frozen().to_vec();
        self.take_out(&inputs);
        self.job_state = JobState::Idle;
        self.install_merged();
        self.merge_due().await;
        installed.replaced
    }
}

/// The manifest of an index that consists of `runs`.
pub(super) fn manifest(index_writer: &IndexWriter, lsn: Lsn, runs: &[RunPiece]) -> Manifest {
    let runs = runs.iter().map(|piece| piece.run.meta.clone()).collect();
    let rules = &index_writer.rules;
    Manifest { fingerprint: rules.fingerprint(), definition: rules.definition().clone(), lsn, runs }
}
