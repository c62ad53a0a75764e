//! The values at some paths per document: the postings of one piece, transposed.

use crate::index::code::{CodeRange, is_cut};
use crate::index::documents::Documents;
use crate::index::path::IndexPath;
use crate::index::piece::Piece;
use crate::index::ranks;
use crate::index::reader::{IndexReader, report_damage};
use crate::index::walk::RunTerms;
use kv::Direction;
use model::{DocumentNumber, Fault};
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;

/// The values that the documents of one piece have at some paths.
#[derive(Debug)]
pub struct Columns {
    piece: Piece,
    /// Ranks of the requested documents.
    live: RoaringBitmap,
    columns: Vec<Column>,
}

/// The values at one path.
#[derive(Debug)]
pub struct Column {
    /// Key codes in order, and whether each is truncated.
    pub codes: Vec<(Vec<u8>, bool)>,
    /// For each rank, the index of its code plus 1; 0 if there is no value.
    places: Vec<u32>,
}

impl Column {
    fn new(universe: usize) -> Column {
        Column { codes: Vec::new(), places: vec![0; universe] }
    }

    fn push(&mut self, path: &IndexPath, code: &[u8], posting: &ranks::Posting<'_>) {
        self.codes.push((code.to_vec(), is_cut(path, code)));
        let place = ranks::count(self.codes.len());
        posting.for_each(self.places.len(), |rank| {
            if let Some(known) = self.places.get_mut(rank as usize) {
                *known = place;
            }
        });
    }
}

impl Columns {
    /// The columns, in the order of the requested paths.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Bytes of memory, roughly.
    pub fn size_bytes(&self) -> usize {
        let size = |column: &Column| {
            let codes: usize = column.codes.iter().map(|(code, _)| code.len() + size_of::<Vec<u8>>()).sum();
            codes + size_of_val(&*column.places)
        };
        self.columns.iter().map(size).sum()
    }

    /// Calls `visit` for every document, ascending, until it returns that it needs no more. It gets, for each column,
    /// the index of the document's code plus 1, or 0 if there is no value.
    pub fn for_each(&self, mut visit: impl FnMut(DocumentNumber, &[u32]) -> bool) {
        let universe = self.piece.universe();
        let mut places = vec![0; self.columns.len()];
        for rank in &self.live {
            for (place, column) in places.iter_mut().zip(&self.columns) {
                *place = column.places.get(rank as usize).copied().unwrap_or(0);
            }
            let Some(number) = universe.get(rank) else { return };
            if !visit(number, &places) {
                return;
            }
        }
    }
}

impl IndexReader {
    /// Number of pieces of the index.
    pub fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// The values of the documents of one piece that are in `within`.
    pub async fn columns(
        &self,
        piece: usize,
        paths: &[IndexPath],
        within: Option<&Documents>,
    ) -> Result<Option<Columns>, Fault> {
        let Some(piece) = self.pieces.get(piece).zip(Some(piece)) else { return Ok(None) };
        let live = match within.and_then(|within| within.ranks.get(piece.1)) {
            Some(ranks) => ranks.clone(),
            None => piece.0.dead().live_of(ranks::full(piece.0.universe().len())),
        };
        let mut columns = Columns { piece: piece.0.clone(), live, columns: Vec::with_capacity(paths.len()) };
        if !columns.live.is_empty() {
            for path in paths {
                let column = self.column(piece.0, path).await;
                columns.columns.push(report_damage(&self.damage_signal, column)?);
            }
        }
        Ok(Some(columns))
    }

    async fn column(&self, piece: &Piece, path: &IndexPath) -> Result<Column, Fault> {
        let range = CodeRange::new(path, &Bound::Unbounded, &Bound::Unbounded);
        let mut column = Column::new(piece.universe().len());
        match piece {
            Piece::Segment(piece) => {
                let segment = &piece.segment;
                for term in segment.find_range(path.code(), &range, &mut 0) {
                    column.push(path, segment.code(term), &segment.posting(term));
                }
            }
            Piece::Run(piece) => {
                let (source, range) = (self.source(), Arc::new(range));
                let mut terms = RunTerms::new(&source, piece, Direction::Forward, path, &range, None).await?;
                while let Some((code, posting)) = terms.next().await? {
                    column.push(path, &code, &posting);
                }
            }
        }
        Ok(column)
    }
}
