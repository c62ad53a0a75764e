//! A piece of the index: a segment in memory or a run on disk, with the set of its documents that are dead.
//!
//! A document version lives wholly in one piece, and a number is alive in at most one.

use crate::index::dead::DeadSet;
use crate::index::run::Run;
use crate::index::segment::Segment;
use crate::index::universe::Universe;
use model::DocumentNumber;
use std::sync::Arc;

/// A segment and its dead documents.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPiece {
    pub(crate) segment: Arc<Segment>,
    /// Readers share it.
    pub(crate) dead: Arc<DeadSet>,
}

impl SegmentPiece {
    pub(crate) fn new(segment: Segment) -> SegmentPiece {
        SegmentPiece { segment: Arc::new(segment), dead: Arc::default() }
    }

    /// Documents that are alive.
    pub(crate) fn live_count(&self) -> u64 {
        self.segment.numbers().len() as u64 - self.dead.len()
    }

    /// Numbers of the documents that are alive.
    pub(crate) fn live_numbers(&self) -> impl Iterator<Item = DocumentNumber> + '_ {
        let ranked = (0_u32..).zip(self.segment.numbers());
        ranked.filter(|(rank, _)| !self.dead.contains(*rank)).map(|(_, number)| *number)
    }

    /// Marks a document dead; tells whether it was alive here.
    pub(crate) fn mark_dead(&mut self, number: DocumentNumber) -> bool {
        mark_dead(Universe::Listed(self.segment.numbers()), &mut self.dead, number)
    }
}

fn mark_dead(universe: Universe<'_>, dead: &mut Arc<DeadSet>, number: DocumentNumber) -> bool {
    if !universe.spans(number) {
        return false;
    }
    match universe.rank(number) {
        Some(rank) => !dead.contains(rank) && Arc::make_mut(dead).insert(rank),
        None => false,
    }
}

/// A run and its dead documents.
#[derive(Clone, Debug)]
pub(crate) struct RunPiece {
    pub(crate) run: Arc<Run>,
    /// Readers share it.
    pub(crate) dead: Arc<DeadSet>,
    /// Those that are dead on disk too.
    pub(crate) saved: Arc<DeadSet>,
}

impl RunPiece {
    pub(crate) fn new(run: Run) -> RunPiece {
        RunPiece { run: Arc::new(run), dead: Arc::default(), saved: Arc::default() }
    }

    /// Documents that are alive.
    pub(crate) fn live_count(&self) -> u64 {
        self.run.numbers.len() as u64 - self.dead.len()
    }

    /// Marks a document dead; tells whether it was alive here.
    pub(crate) fn mark_dead(&mut self, number: DocumentNumber) -> bool {
        mark_dead(Universe::Packed(&self.run.numbers), &mut self.dead, number)
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Segment(SegmentPiece),
    Run(RunPiece),
}

impl Piece {
    /// Its documents.
    pub(crate) fn universe(&self) -> Universe<'_> {
        match self {
            Piece::Segment(piece) => Universe::Listed(piece.segment.numbers()),
            Piece::Run(piece) => Universe::Packed(&piece.run.numbers),
        }
    }

    pub(crate) fn dead(&self) -> &DeadSet {
        match self {
            Piece::Segment(piece) => &piece.dead,
            Piece::Run(piece) => &piece.dead,
        }
    }

    /// Documents that are alive.
    pub(crate) fn live_count(&self) -> u64 {
        self.universe().len() as u64 - self.dead().len()
    }
}
