//! Several runs into one, without the documents that are dead.
//!
//! Reads one block of each at a time from the newest state of the store, so that no state is held open meanwhile.

use crate::index::block::Entry;
use crate::index::keeper::Home;
use crate::index::merge::TERMS_PER_TURN;
use crate::index::piece::RunPiece;
use crate::index::run_cursor::{RunCursor, Source};
use crate::index::run_writer::{NewRun, RunWriter};
use model::{DocumentNumber, Fault};
use std::sync::Arc;

/// Documents between two turns of others.
const DOCUMENTS_PER_TURN: usize = 1 << 16;
/// Rank of a document that is not taken over.
const GONE: u32 = u32::MAX;

struct Input {
    cursor: RunCursor,
    universe: usize,
    /// New rank of every old one.
    ranks: Vec<u32>,
    /// The next term.
    entry: Option<Entry>,
}

/// Writes the live documents of all inputs as one run.
pub(crate) async fn merge_runs(home: &Home, pieces: Vec<RunPiece>) -> Result<NewRun, Fault> {
    let (numbers, ranks) = merged_universe(&pieces).await;
    let mut inputs = Vec::with_capacity(pieces.len());
    for (piece, ranks) in pieces.iter().zip(ranks) {
        let mut cursor = RunCursor::whole(Arc::clone(&piece.run), Source::Store(home.store.clone())).await?;
        let entry = cursor.next().await?;
        inputs.push(Input { cursor, universe: piece.run.numbers.len(), ranks, entry });
    }
    let mut writer = RunWriter::new(home, numbers).await?;
    let mut found = Vec::new();
    let mut terms = 0;
    while let Some(key) = inputs.iter().filter_map(|input| Some(&input.entry.as_ref()?.key)).min().cloned() {
        found.clear();
        for input in &mut inputs {
            let Some(entry) = input.entry.take_if(|entry| entry.key == key) else { continue };
            let posting = input.cursor.posting(&entry).await?;
            posting.for_each(input.universe, |rank| {
                let rank = input.ranks.get(rank as usize).copied().unwrap_or(GONE);
                if rank != GONE {
                    found.push(rank);
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
            tokio::task::yield_now().await;
        }
    }
    writer.finish().await
}

/// The live numbers of all inputs, and for each input the new rank of every old one.
async fn merged_universe(pieces: &[RunPiece]) -> (Vec<DocumentNumber>, Vec<Vec<u32>>) {
    let mut heads: Vec<usize> = vec![0; pieces.len()];
    let mut ranks: Vec<Vec<u32>> = pieces.iter().map(|piece| vec![GONE; piece.run.numbers.len()]).collect();
    let mut numbers = Vec::new();
    loop {
        let candidates = pieces.iter().enumerate();
        let least =
            candidates.filter_map(|(index, piece)| Some((piece.run.numbers.get(heads[index])?, index)));
        let Some((number, index)) = least.min() else {
            return (numbers, ranks);
        };
        let old = heads[index];
        heads[index] += 1;
        if !pieces[index].dead.contains(u32::try_from(old).unwrap_or(GONE)) {
            ranks[index][old] = u32::try_from(numbers.len()).unwrap_or(GONE);
            numbers.push(*number);
            if numbers.len().is_multiple_of(DOCUMENTS_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
    }
}
