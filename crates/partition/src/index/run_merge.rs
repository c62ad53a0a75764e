//! Merges runs into one, without dead documents.
//!
//! Reads one block of each input at a time, each time with a new view, so that no view is held open.

use crate::budget::{SlowStep, StepBudget};
use crate::index::block::TermEntry;
use crate::index::dead::DeadSet;
use crate::index::index_writer::IndexEnvironment;
use crate::index::memory::HeldBytes;
use crate::index::merge::TERMS_PER_TURN;
use crate::index::packed::{Packed, Packer};
use crate::index::piece::RunPiece;
use crate::index::run_cursor::{RunCursor, RunSource};
use crate::index::run_writer::{NewRun, RunWriter};
use crate::index::universe::{NumberPacker, PackedNumbers};
use crate::storage::damaged;
use model::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How fast runs are merged.
#[derive(Clone, Debug)]
pub(crate) enum MergePace {
    /// As fast as possible: the writer needs fewer runs.
    Prompt,
    /// Slowly, until this is set: nobody waits for the result.
    Slow { hurries: Arc<AtomicBool> },
}

/// Documents between two yields.
const DOCUMENTS_PER_TURN: usize = 1 << 16;

struct RunInput {
    cursor: RunCursor,
    universe: usize,
    /// The new rank of every old one that is live; for a dead one, the new rank of the next.
    ranks: Packed<0>,
    dead: Arc<DeadSet>,
    entry: Option<TermEntry>,
}

/// Writes the live documents of all inputs as one run.
pub(crate) async fn merge_runs(
    environment: &IndexEnvironment,
    pieces: Vec<RunPiece>,
    pace: MergePace,
) -> Result<NewRun, Fault> {
    let mut turn = Turn { budget: environment.memory.steps(), pace, step: None };
    turn.end().await;
    let Merged { numbers, ranks } = merged_universe(&pieces).await?;
    let bytes = ranks.iter().map(Packed::size_bytes).sum::<usize>() + numbers.size_bytes();
    let _held = HeldBytes::new(&environment.memory, bytes, 0);
    let mut inputs = Vec::with_capacity(pieces.len());
    for (piece, ranks) in pieces.iter().zip(ranks) {
        let mut cursor =
            RunCursor::whole(Arc::clone(&piece.run), RunSource::Store(environment.store.clone())).await?;
        let entry = cursor.next().await?;
        let (universe, dead) = (piece.run.numbers.len(), Arc::clone(&piece.dead));
        inputs.push(RunInput { cursor, universe, ranks, dead, entry });
    }
    let mut writer = RunWriter::new(environment, numbers).await?;
    let mut found = Vec::new();
    let mut terms = 0;
    while let Some(key) = inputs.iter().filter_map(|input| Some(&input.entry.as_ref()?.key)).min().cloned() {
        found.clear();
        for input in &mut inputs {
            let Some(entry) = input.entry.take_if(|entry| entry.key == key) else { continue };
            let posting = input.cursor.posting(&entry).await?;
            posting.for_each(input.universe, |rank| {
                if !input.dead.contains(rank) {
                    found.extend(input.ranks.get(rank as usize).and_then(|rank| u32::try_from(rank).ok()));
                }
            });
            input.entry = input.cursor.next().await?;
        }
        if !found.is_sorted() {
            found.sort_unstable();
        }
        writer.term(&key, &found).await?;
        terms += 1;
        if terms % TERMS_PER_TURN == 0 {
            turn.end().await;
        }
    }
    writer.finish().await
}

/// The part of a merge between two yields.
struct Turn<'a> {
    budget: &'a StepBudget,
    pace: MergePace,
    step: Option<SlowStep<'a>>,
}

impl Turn<'_> {
    /// Lets others run, and rests if the merge is slow.
    async fn end(&mut self) {
        if let Some(step) = self.step.take() {
            step.end().await;
        }
        match &self.pace {
            MergePace::Slow { hurries } if !hurries.load(Ordering::Relaxed) => {
                self.step = Some(self.budget.slow_step().await);
            }
            MergePace::Slow { .. } | MergePace::Prompt => tokio::task::yield_now().await,
        }
    }
}

/// The documents of a merged run.
struct Merged {
    numbers: PackedNumbers,
    /// For each input, the new rank of every old one that is live; for a dead one, the new rank of the next.
    ranks: Vec<Packed<0>>,
}

async fn merged_universe(pieces: &[RunPiece]) -> Result<Merged, Fault> {
    let mut heads: Vec<(Option<u64>, u32)> =
        pieces.iter().map(|piece| (piece.run.numbers.first(), 0)).collect();
    let mut ranks: Vec<Packer<0>> = pieces.iter().map(|_| Packer::default()).collect();
    let mut numbers = NumberPacker::default();
    let mut passed = 0_usize;
    loop {
        let candidates =
            heads.iter().enumerate().filter_map(|(index, (number, _))| Some(((*number)?, index)));
        let Some((number, index)) = candidates.min() else {
            let ranks = ranks.into_iter().map(Packer::finish).collect();
            return Ok(Merged { numbers: numbers.finish(), ranks });
        };
        let old = heads[index].1;
        heads[index] = (pieces[index].run.numbers.get(old as usize + 1), old + 1);
        ranks[index].push(numbers.len() as u64);
        if !pieces[index].dead.contains(old) && !numbers.push(number) {
            return Err(damaged("document that is live in two runs"));
        }
        passed += 1;
        if passed.is_multiple_of(DOCUMENTS_PER_TURN) {
            tokio::task::yield_now().await;
        }
    }
}
