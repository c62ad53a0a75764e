//! A walk over the values at a path, merged over all pieces by code.

use crate::index::code::{CodeRange, is_cut};
use crate::index::documents::Documents;
use crate::index::path::IndexPath;
use crate::index::piece::{Piece, SegmentPiece};
use crate::index::reader::IndexReader;
use kv::Direction;
use model::{DocumentNumber, Fault};
use roaring::RoaringBitmap;
use std::ops::Range;

/// See the file's head.
pub struct TermWalk {
    path: IndexPath,
    direction: Direction,
    cursors: Vec<Cursor>,
}

/// One value and the documents that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkStep {
    /// Key code of the value, or the beginning of it.
    pub code: Vec<u8>,
    /// Whether the code is only the beginning: the documents then have different values that begin with it.
    pub is_cut: bool,
    /// The documents, ascending.
    pub numbers: Vec<DocumentNumber>,
}

/// The terms of one piece that are still to come.
struct Cursor {
    piece: SegmentPiece,
    terms: Range<usize>,
    within: Option<RoaringBitmap>,
}

impl TermWalk {
    pub(crate) async fn new(
        reader: &IndexReader,
        path: IndexPath,
        direction: Direction,
        range: &CodeRange,
        within: Option<&Documents>,
    ) -> Result<TermWalk, Fault> {
        let mut cursors = Vec::with_capacity(reader.pieces.len());
        for (index, piece) in reader.pieces.iter().enumerate() {
            let within = within.and_then(|within| within.parts.get(index)).map(|part| part.ranks.clone());
            if within.as_ref().is_some_and(RoaringBitmap::is_empty) {
                continue;
            }
            let Piece::Segment(piece) = piece;
            let terms = piece.segment.find_range(path.code(), range);
            if !terms.is_empty() {
                cursors.push(Cursor { piece: piece.clone(), terms, within });
            }
        }
        Ok(TermWalk { path, direction, cursors })
    }

    /// The next value that has documents.
    pub async fn next(&mut self) -> Result<Option<WalkStep>, Fault> {
        while let Some(code) = self.next_code() {
            let mut numbers = Vec::new();
            for cursor in &mut self.cursors {
                if cursor.code(self.direction) == Some(&code) {
                    cursor.take(self.direction, &mut numbers);
                }
            }
            self.cursors.retain(|cursor| !cursor.terms.is_empty());
            if !numbers.is_empty() {
                numbers.sort_unstable();
                let is_cut = is_cut(&self.path, &code);
                return Ok(Some(WalkStep { code, is_cut, numbers }));
            }
        }
        Ok(None)
    }

    fn next_code(&self) -> Option<Vec<u8>> {
        let codes = self.cursors.iter().filter_map(|cursor| cursor.code(self.direction));
        match self.direction {
            Direction::Forward => codes.min().map(<[u8]>::to_vec),
            Direction::Backward => codes.max().map(<[u8]>::to_vec),
        }
    }
}

impl Cursor {
    fn term(&self, direction: Direction) -> Option<usize> {
        match direction {
            Direction::Forward => self.terms.clone().next(),
            Direction::Backward => self.terms.clone().next_back(),
        }
    }

    fn code(&self, direction: Direction) -> Option<&[u8]> {
        self.term(direction).map(|term| self.piece.segment.code(term))
    }

    /// Adds the live documents of the next term, and goes on.
    fn take(&mut self, direction: Direction, numbers: &mut Vec<DocumentNumber>) {
        let Some(term) = self.term(direction) else { return };
        let segment = &self.piece.segment;
        let universe = segment.numbers();
        segment.posting(term).for_each(universe.len(), |rank| {
            let is_wanted = self.within.as_ref().is_none_or(|within| within.contains(rank));
            if is_wanted && !self.piece.dead.contains(rank) {
                numbers.extend(universe.get(rank as usize));
            }
        });
        match direction {
            Direction::Forward => self.terms.start += 1,
            Direction::Backward => self.terms.end -= 1,
        }
    }
}
