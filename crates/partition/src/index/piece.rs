//! A piece of the index: a segment in memory or a run on disk, with its dead documents.
//!
//! A document version is in exactly one piece, and a number is live in at most one.

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
    /// Shared with readers.
    pub(crate) dead: Arc<DeadSet>,
}

impl SegmentPiece {
    pub(crate) fn new(segment: Segment) -> SegmentPiece {
        SegmentPiece { segment: Arc::new(segment), dead: Arc::default() }
    }

    /// Number of live documents.
    pub(crate) fn live_count(&self) -> u64 {
        self.segment.numbers().len() as u64 - self.dead.len()
    }

    /// Numbers of the live documents.
    pub(crate) fn live_numbers(&self) -> impl Iterator<Item = DocumentNumber> + '_ {
        let ranked = (0_u32..).zip(self.segment.numbers());
        ranked.filter(|(rank, _)| !self.dead.contains(*rank)).map(|(_, number)| *number)
    }

    /// Marks a document dead. Returns whether it was live in this piece.
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
    /// Shared with readers.
    pub(crate) dead: Arc<DeadSet>,
    /// The dead set as it is stored.
    pub(crate) saved: Arc<DeadSet>,
}

impl RunPiece {
    pub(crate) fn new(run: Run) -> RunPiece {
        RunPiece { run: Arc::new(run), dead: Arc::default(), saved: Arc::default() }
    }

    /// Number of live documents.
    pub(crate) fn live_count(&self) -> u64 {
        self.run.numbers.len() as u64 - self.dead.len()
    }

    /// Marks a document dead. Returns whether it was live in this piece.
    pub(crate) fn mark_dead(&mut self, number: DocumentNumber) -> bool {
        mark_dead(Universe::Packed(&self.run.numbers), &mut self.dead, number)
    }
}

/// A segment or a run.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Segment(SegmentPiece),
    Run(RunPiece),
}

impl Piece {
    /// The universe of the piece.
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

    /// Number of live documents.
    pub(crate) fn live_count(&self) -> u64 {
        self.universe().len() as u64 - self.dead().len()
    }
}
