//! An index with uncommitted changes: one more segment for the new versions, in which the old ones are dead.

use crate::index::index_writer::Changes;
use crate::index::piece::{Piece, SegmentPiece};
use crate::index::reader::IndexReader;
use crate::index::segment::Segment;
use crate::index::terms::DocumentVersion;
use std::sync::Arc;

impl IndexReader {
    /// The index after `changes` of at most [`crate::TRANSACTION_DOCUMENTS_MAX`] documents. Pieces are shared; dead
    /// sets are copied where they change.
    pub(crate) fn with_changes(&self, changes: &Changes) -> IndexReader {
        let mut pieces = self.pieces.to_vec();
        for number in changes.keys() {
            // A number is live in at most one piece.
            let _ = pieces.iter_mut().any(|piece| match piece {
                Piece::Segment(piece) => piece.mark_dead(*number),
                Piece::Run(piece) => piece.mark_dead(*number),
            });
        }
        let versions: Vec<DocumentVersion> = changes.values().flatten().cloned().collect();
        if !versions.is_empty() {
            let segment = Segment::pending(Arc::clone(&self.rules), versions);
            pieces.push(Piece::Segment(SegmentPiece::new(segment)));
        }
        IndexReader { pieces: pieces.into(), ..self.clone() }
    }
}
