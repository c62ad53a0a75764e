//! A walk over the values at a path, merged over all pieces by code.

use crate::index::block::TermEntry;
use crate::index::code::{CodeRange, is_truncated};
use crate::index::counts::{Counted, Detail, Live};
use crate::index::dead::DeadSet;
use crate::index::documents::Documents;
use crate::index::path::IndexPath;
use crate::index::piece::{Piece, RunPiece, SegmentPiece};
use crate::index::ranks::Posting;
use crate::index::reader::{IndexReader, report_damage};
use crate::index::run_cursor::{RunCursor, RunSource, TermFilter};
use crate::index::segment::head;
use crate::index::universe::Universe;
use kv::Direction;
use model::{DocumentNumber, Fault};
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::Notify;

/// Returns the values at a path in order, with their documents.
pub struct TermWalk {
    path: IndexPath,
    direction: Direction,
    /// Length of the common prefix of all codes of the walk.
    prefix_len: usize,
    cursors: Vec<PieceCursor>,
    damage_signal: Arc<Notify>,
}

/// One value and the documents that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkStep {
    /// Key code of the value, or a prefix of it.
    pub code: Vec<u8>,
    /// Whether the code is truncated: the documents may have different values with this prefix.
    pub is_truncated: bool,
    /// The documents, ascending.
    pub numbers: Vec<DocumentNumber>,
}

/// The remaining terms of one piece.
struct PieceCursor {
    terms: WalkTerms,
    within: Option<Arc<RoaringBitmap>>,
    /// The first bytes of the next code after the common prefix; they decide most comparisons.
    head: u64,
}

enum WalkTerms {
    Segment { piece: SegmentPiece, terms: Range<usize> },
    Run { piece: RunPiece, terms: Box<RunTerms> },
}

impl TermWalk {
    pub(crate) async fn new(
        reader: &IndexReader,
        path: IndexPath,
        direction: Direction,
        range: CodeRange,
        within: Option<Documents>,
    ) -> Result<TermWalk, Fault> {
        let range = Arc::new(range);
        let prefix_len = range.prefix_len();
        let mut field = 0;
        let mut cursors = Vec::with_capacity(reader.pieces.len());
        let mut ranks = within.map(|within| within.ranks.into_iter());
        for piece in &*reader.pieces {
            let within = ranks.as_mut().map(|ranks| ranks.next().unwrap_or_default());
            if within.as_ref().is_some_and(RoaringBitmap::is_empty) {
                continue;
            }
            let within = within.map(Arc::new);
            let terms = match piece {
                Piece::Segment(piece) => {
                    let terms = piece.segment.find_range(path.code(), &range, &mut field);
                    WalkTerms::Segment { piece: piece.clone(), terms }
                }
                Piece::Run(piece) => {
                    let source = &reader.source();
                    let terms =
                        RunTerms::new(source, piece, direction, &path, &range, within.as_ref()).await?;
                    WalkTerms::Run { piece: piece.clone(), terms: Box::new(terms) }
                }
            };
            let mut cursor = PieceCursor { terms, within, head: 0 };
            cursor.look(&path, direction, prefix_len);
            if !cursor.is_at_end() {
                cursors.push(cursor);
            }
        }
        Ok(TermWalk {
            path,
            direction,
            prefix_len,
            cursors,
            damage_signal: Arc::clone(&reader.damage_signal),
        })
    }

    /// The next value that has documents.
    pub async fn next(&mut self) -> Result<Option<WalkStep>, Fault> {
        let step = self.next_unwatched().await;
        report_damage(&self.damage_signal, step)
    }

    async fn next_unwatched(&mut self) -> Result<Option<WalkStep>, Fault> {
        let (path, direction, prefix_len) = (&self.path, self.direction, self.prefix_len);
        let mut passed = 0_usize;
        while let Some((head, code)) = next_code(&self.cursors, path, direction) {
            let mut numbers = Vec::new();
            let mut has_ended = false;
            for cursor in &mut self.cursors {
                if cursor.head == head && cursor.code(path, direction) == Some(&code) {
                    cursor.take(direction, &mut numbers).await?;
                    cursor.look(path, direction, prefix_len);
                    has_ended |= cursor.is_at_end();
                }
            }
            if has_ended {
                self.cursors.retain(|cursor| !cursor.is_at_end());
            }
            if !numbers.is_empty() {
                numbers.sort_unstable();
                let is_truncated = is_truncated(path, &code);
                return Ok(Some(WalkStep { code, is_truncated, numbers }));
            }
            // If few documents are wanted, most values have none of them.
            passed += 1;
            if passed.is_multiple_of(PASSED_AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
        Ok(None)
    }

    /// The next value that has documents, with the detail that `detail` returns for its code; its second argument is
    /// whether the code is truncated.
    pub async fn next_counted(
        &mut self,
        detail: impl Fn(&[u8], bool) -> Detail,
    ) -> Result<Option<Counted>, Fault> {
        let step = self.next_counted_unwatched(detail).await;
        report_damage(&self.damage_signal, step)
    }

    async fn next_counted_unwatched(
        &mut self,
        detail: impl Fn(&[u8], bool) -> Detail,
    ) -> Result<Option<Counted>, Fault> {
        let (path, direction, prefix_len) = (&self.path, self.direction, self.prefix_len);
        let mut passed = 0_usize;
        while let Some((head, code)) = next_code(&self.cursors, path, direction) {
            let is_truncated = is_truncated(path, &code);
            let mut counted = Counted::new(code, is_truncated);
            let detail = detail(&counted.code, is_truncated);
            let mut has_ended = false;
            for cursor in &mut self.cursors {
                if cursor.head == head && cursor.code(path, direction) == Some(&counted.code) {
                    cursor.count(direction, detail, &mut counted).await?;
                    cursor.look(path, direction, prefix_len);
                    has_ended |= cursor.is_at_end();
                }
            }
            if has_ended {
                self.cursors.retain(|cursor| !cursor.is_at_end());
            }
            if counted.count > 0 {
                counted.numbers.sort_unstable();
                return Ok(Some(counted));
            }
            // If few documents are wanted, most values have none of them.
            passed += 1;
            if passed.is_multiple_of(PASSED_AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
        Ok(None)
    }
}

/// Values without documents that are skipped before the task yields.
const PASSED_AT_A_TIME: usize = 1024;
/// Maximum number of documents of a term that are tested to decide whether it is skipped.
const TESTED_DOCUMENTS_MAX: usize = 8;

/// The smallest next code and its head.
fn next_code(cursors: &[PieceCursor], path: &IndexPath, direction: Direction) -> Option<(u64, Vec<u8>)> {
    let first = cursors.iter().min_by(|left, right| {
        let codes = || left.code(path, direction).cmp(&right.code(path, direction));
        let order = left.head.cmp(&right.head).then_with(codes);
        match direction {
            Direction::Forward => order,
            Direction::Backward => order.reverse(),
        }
    })?;
    Some((first.head, first.code(path, direction)?.to_vec()))
}

impl PieceCursor {
    fn is_at_end(&self) -> bool {
        match &self.terms {
            WalkTerms::Segment { terms, .. } => terms.is_empty(),
            WalkTerms::Run { terms, .. } => terms.entry.is_none(),
        }
    }

    /// Sets the head of the next code.
    #[inline]
    fn look(&mut self, path: &IndexPath, direction: Direction, prefix_len: usize) {
        if self.within.is_some() {
            self.skip_unwanted(direction);
        }
        let code = self.code(path, direction);
        self.head = code.and_then(|code| code.get(prefix_len..)).map_or(0, head);
    }

    /// Skips a bounded number of terms of a segment that have no wanted documents. Those of a run are left out when
    /// they are read.
    fn skip_unwanted(&mut self, direction: Direction) {
        let (WalkTerms::Segment { piece, terms }, Some(within)) = (&mut self.terms, &self.within) else {
            return;
        };
        for _ in 0..PASSED_AT_A_TIME {
            let Some(term) = next_term(terms, direction) else { return };
            let Posting::Short(ranks) = piece.segment.posting(term) else { return };
            if ranks.len() > TESTED_DOCUMENTS_MAX
                || ranks.iter().any(|rank| within.contains(u32::from(*rank)))
            {
                return;
            }
            pass_term(terms, direction);
        }
    }

    /// The code of the next term.
    fn code(&self, path: &IndexPath, direction: Direction) -> Option<&[u8]> {
        match &self.terms {
            WalkTerms::Segment { piece, terms } => {
                next_term(terms, direction).map(|term| piece.segment.code(term))
            }
            WalkTerms::Run { terms, .. } => terms.entry.as_ref().map(|entry| &entry.key[path.code().len()..]),
        }
    }

    /// Adds the live documents of the next term and advances.
    async fn take(&mut self, direction: Direction, numbers: &mut Vec<DocumentNumber>) -> Result<(), Fault> {
        let within = self.within.as_deref();
        match &mut self.terms {
            WalkTerms::Segment { piece, terms } => {
                let Some(term) = next_term(terms, direction) else { return Ok(()) };
                let posting = piece.segment.posting(term);
                take_posting(
                    &posting,
                    Universe::Listed(piece.segment.numbers()),
                    &piece.dead,
                    within,
                    numbers,
                );
                pass_term(terms, direction);
            }
            WalkTerms::Run { piece, terms } => {
                if let Some((_, posting)) = terms.next().await? {
                    take_posting(
                        &posting,
                        Universe::Packed(&piece.run.numbers),
                        &piece.dead,
                        within,
                        numbers,
                    );
                }
            }
        }
        Ok(())
    }

    /// Counts the live documents of the next term and advances.
    async fn count(
        &mut self,
        direction: Direction,
        detail: Detail,
        counted: &mut Counted,
    ) -> Result<(), Fault> {
        let within = self.within.as_deref();
        match &mut self.terms {
            WalkTerms::Segment { piece, terms } => {
                let Some(term) = next_term(terms, direction) else { return Ok(()) };
                let live =
                    Live { universe: Universe::Listed(piece.segment.numbers()), dead: &piece.dead, within };
                counted.add(&piece.segment.posting(term), &live, detail);
                pass_term(terms, direction);
            }
            WalkTerms::Run { piece, terms } => {
                let live = Live { universe: Universe::Packed(&piece.run.numbers), dead: &piece.dead, within };
                if detail == Detail::Count && live.is_everything() {
                    counted.count += terms.pass().await?;
                } else if let Some((_, posting)) = terms.next().await? {
                    counted.add(&posting, &live, detail);
                }
            }
        }
        Ok(())
    }
}

fn pass_term(terms: &mut Range<usize>, direction: Direction) {
    match direction {
        Direction::Forward => terms.start += 1,
        Direction::Backward => terms.end -= 1,
    }
}

fn next_term(terms: &Range<usize>, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Forward => terms.clone().next(),
        Direction::Backward => terms.clone().next_back(),
    }
}

fn take_posting(
    posting: &Posting<'_>,
    universe: Universe<'_>,
    dead: &DeadSet,
    within: Option<&RoaringBitmap>,
    numbers: &mut Vec<DocumentNumber>,
) {
    posting.for_each(universe.len(), |rank| {
        if within.is_none_or(|within| within.contains(rank)) && !dead.contains(rank) {
            numbers.extend(universe.get(rank));
        }
    });
}

/// The terms of a path in a run, within a range of codes.
pub(crate) struct RunTerms {
    cursor: RunCursor,
    direction: Direction,
    path: IndexPath,
    range: Arc<CodeRange>,
    entry: Option<TermEntry>,
}

impl RunTerms {
    /// Terms without a document of `within` may be left out.
    pub(crate) async fn new(
        source: &RunSource,
        piece: &RunPiece,
        direction: Direction,
        path: &IndexPath,
        range: &Arc<CodeRange>,
        within: Option<&Arc<RoaringBitmap>>,
    ) -> Result<RunTerms, Fault> {
        let (run, source) = (Arc::clone(&piece.run), source.clone());
        let filter = within.map(|within| TermFilter {
            path: path.clone(),
            range: Arc::clone(range),
            within: Arc::clone(within),
        });
        let cursor = RunCursor::seek(run, source, direction, path, range, filter).await?;
        let (path, range) = (path.clone(), Arc::clone(range));
        let mut terms = RunTerms { cursor, direction, path, range, entry: None };
        terms.advance().await?;
        Ok(terms)
    }

    /// The next term, without its documents.
    pub(crate) fn peek(&self) -> Option<&TermEntry> {
        self.entry.as_ref()
    }

    /// The code of the next term and its documents.
    pub(crate) async fn next(&mut self) -> Result<Option<(Vec<u8>, Posting<'static>)>, Fault> {
        let Some(entry) = self.entry.take() else { return Ok(None) };
        let posting = self.cursor.posting(&entry).await?;
        let code = entry.key[self.path.code().len()..].to_vec();
        self.advance().await?;
        Ok(Some((code, posting)))
    }

    /// Skips the next term. Returns the number of its documents, including dead ones.
    pub(crate) async fn pass(&mut self) -> Result<u64, Fault> {
        let Some(entry) = self.entry.take() else { return Ok(0) };
        self.advance().await?;
        Ok(entry.count)
    }

    /// Advances to the next entry within the range.
    async fn advance(&mut self) -> Result<(), Fault> {
        while let Some(entry) = self.cursor.next().await? {
            match (entry.key.strip_prefix(self.path.code()), self.direction) {
                (Some(code), Direction::Forward) if self.range.is_before(code) => {}
                (Some(code), Direction::Backward) if self.range.is_after(code) => {}
                (Some(code), _) if self.range.is_before(code) || self.range.is_after(code) => return Ok(()),
                (Some(_), _) => {
                    self.entry = Some(entry);
                    return Ok(());
                }
                (None, Direction::Forward) if entry.key.as_slice() < self.path.code() => {}
                (None, Direction::Backward) if entry.key.as_slice() > self.path.code() => {}
                (None, _) => return Ok(()),
            }
        }
        Ok(())
    }
}
