//! New runs become a part of the index: the batch that names them, and what the index is when it is committed.

use super::{Keeper, Work};
use crate::index::jobs::Inputs;
use crate::index::manifest::{Manifest, delete_dead, put_dead};
use crate::index::piece::RunPiece;
use crate::index::universe::Universe;
use crate::index::unnamed::UnnamedRun;
use kv::Batch;
use model::Lsn;
use std::sync::Arc;

/// What an install makes of the index.
#[derive(Debug)]
pub(crate) struct Installed {
    runs: Vec<RunPiece>,
    lsn: Lsn,
    /// Runs whose rows may go.
    replaced: Vec<u64>,
}

/// What makes an install durable.
#[derive(Debug)]
pub(crate) struct InstallBatch {
    pub(crate) batch: Batch,
    /// The runs that the batch names.
    pub(crate) named: Vec<UnnamedRun>,
    pub(crate) installed: Installed,
}

impl Keeper {
    /// The batch that makes the runs that wait durable, to be committed before [`Keeper::installed`].
    pub(crate) fn install_batch(&mut self) -> Option<InstallBatch> {
        let new_runs = match &mut self.work {
            Work::Installing(install) => std::mem::take(&mut install.runs),
            Work::Incomplete | Work::Idle | Work::Busy(_) => return None,
        };
        let Work::Installing(install) = &self.work else { return None };
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
                    let Some(place) = runs.iter().position(same) else { continue };
                    let now = runs.remove(place);
                    let ranks = now.dead.added_since(&input.dead);
                    died.extend(ranks.filter_map(|rank| Universe::Packed(&now.run.numbers).get(rank)));
                    delete_dead(self.home.partition, &now, &mut batch);
                    replaced.extend(self.own_run(&now));
                }
            }
        }
        for new in new_runs {
            let mut piece = RunPiece::new(new.run);
            new.unnamed.name_in(&mut batch);
            named.push(new.unnamed);
            died.iter().for_each(|number| {
                piece.kill(*number);
            });
            runs.push(piece);
        }
        runs.retain(|piece| {
            if piece.live_count() == 0 {
                delete_dead(self.home.partition, piece, &mut batch);
                replaced.extend(self.own_run(piece));
            }
            piece.live_count() > 0
        });
        for piece in &mut runs {
            put_dead(self.home.partition, piece, &mut batch);
            piece.saved = Arc::clone(&piece.dead);
        }
        let lsn = match (&install.inputs, self.lsn_saved) {
            // Only a flush moves the position; what is in memory is behind it.
            (Inputs::Runs(_), Some(saved)) => saved,
            (Inputs::Merged(_) | Inputs::Flushed(_) | Inputs::Runs(_), _) => install.lsn,
        };
        manifest(self, lsn, &runs).put(self.home.partition, &mut batch);
        Some(InstallBatch { batch, named, installed: Installed { runs, lsn, replaced } })
    }

    /// The batch of an install is durable. Returns the runs whose rows may go.
    pub(crate) async fn installed(&mut self, installed: Installed) -> Vec<u64> {
        self.pause = 0;
        self.runs = installed.runs;
        self.lsn_saved = Some(installed.lsn);
        let inputs = self.work.frozen().to_vec();
        self.take_out(&inputs);
        self.work = Work::Idle;
        self.tidy().await;
        installed.replaced
    }
}

/// What is stored of an index that consists of `runs`.
pub(super) fn manifest(keeper: &Keeper, lsn: Lsn, runs: &[RunPiece]) -> Manifest {
    let runs = runs.iter().map(|piece| piece.run.meta.clone()).collect();
    let rules = &keeper.rules;
    Manifest { fingerprint: rules.fingerprint(), definition: rules.definition().clone(), lsn, runs }
}
