//! A leaf of a lookup, answered by the terms of one piece.

use crate::index::code::{CodeRange, PRESENT, is_cut};
use crate::index::lookup::{Answer, Lookup, ValueTest, Verdict};
use crate::index::path::IndexPath;
use crate::index::piece::{Piece, RunPiece, SegmentPiece};
use crate::index::ranks::{self, Gathering, Posting};
use crate::index::run_cursor::Source;
use crate::index::segment::Segment;
use crate::index::walk::RunTerms;
use kv::Direction;
use model::{EffectiveRange, Fault};
use roaring::RoaringBitmap;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// See the file's head.
pub(crate) enum Leaf {
    All,
    Present(IndexPath),
    Codes {
        path: IndexPath,
        range: Arc<CodeRange>,
        test: Option<ValueTest>,
    },
    /// One code, and the key of its term.
    Code {
        path: IndexPath,
        range: Arc<CodeRange>,
        key: Vec<u8>,
    },
}

impl Leaf {
    pub(crate) fn new(lookup: &Lookup) -> Leaf {
        match lookup {
            Lookup::Term { path, code } => Leaf::codes(path.clone(), CodeRange::point(path, code)),
            Lookup::Range { path, low, high } => Leaf::codes(path.clone(), CodeRange::new(path, low, high)),
            Lookup::Tested { path, low, high, test } => {
                let range = Arc::new(CodeRange::new(path, low, high));
                Leaf::Codes { path: path.clone(), range, test: Some(test.clone()) }
            }
            Lookup::Present(path) => Leaf::Present(path.clone()),
            Lookup::Logical(prefix) => {
                let path = IndexPath::logical();
                let range = CodeRange::point(&path, prefix);
                Leaf::codes(path, range)
            }
            Lookup::Effective(EffectiveRange { min, max }) => {
                let path = IndexPath::logical();
                let low = Bound::Included(min.as_bytes().to_vec());
                let high = Bound::Excluded(max.as_bytes().to_vec());
                let range = CodeRange::new(&path, &low, &high);
                Leaf::codes(path, range)
            }
            // The others are no leaves.
            Lookup::All | Lookup::And(_) | Lookup::Or(_) | Lookup::Without(_) => Leaf::All,
        }
    }

    fn codes(path: IndexPath, range: CodeRange) -> Leaf {
        if let Some(code) = range.as_point() {
            let key = [path.code(), code].concat();
            return Leaf::Code { path, range: Arc::new(range), key };
        }
        Leaf::Codes { path, range: Arc::new(range), test: None }
    }

    /// The documents of one piece, the dead ones among them.
    pub(crate) async fn answer(&self, source: &Source, piece: &Piece) -> Result<Answer, Fault> {
        match (self, piece) {
            (Leaf::All, piece) => Ok(Answer::exact(ranks::full(piece.numbers().len()))),
            (Leaf::Present(path), Piece::Segment(piece)) => Ok(present_in_segment(path, &piece.segment)),
            (Leaf::Present(path), Piece::Run(piece)) => present_in_run(path, source, piece).await,
            (Leaf::Codes { path, range, test }, Piece::Segment(piece)) => {
                Ok(codes_in_segment(path, range, test.as_ref(), &piece.segment))
            }
            (Leaf::Code { path, range, .. }, Piece::Segment(piece)) => {
                let segment = &piece.segment;
                let term = segment.find_range(path.code(), range).next();
                Ok(code_answer(range, term.map(|term| segment.posting(term)), segment.numbers().len()))
            }
            (Leaf::Code { range, key, .. }, Piece::Run(piece)) => {
                let posting = source.find(&piece.run, key).await?;
                Ok(code_answer(range, posting, piece.run.numbers.len()))
            }
            (Leaf::Codes { path, range, test }, Piece::Run(piece)) => {
                codes_in_run(path, range, test.as_ref(), source, piece).await
            }
        }
    }

    /// An upper bound of the documents in one piece.
    pub(crate) async fn bound(&self, source: &Source, piece: &Piece) -> Result<u64, Fault> {
        match (self, piece) {
            (Leaf::All, piece) => Ok(piece.live_count()),
            (Leaf::Present(path), Piece::Segment(SegmentPiece { segment, .. })) => {
                let first = segment.find_path(path.code()).next();
                Ok(first.map_or(0, |term| segment.posting_count(term) as u64))
            }
            (
                Leaf::Codes { path, range, .. } | Leaf::Code { path, range, .. },
                Piece::Segment(SegmentPiece { segment, .. }),
            ) => Ok(posting_sum(segment, segment.find_range(path.code(), range))),
            (Leaf::Present(path), Piece::Run(piece)) => {
                let terms = run_terms(source, piece, path, &Arc::new(present_range())).await?;
                Ok(terms.peek().map_or(0, |entry| entry.count))
            }
            (Leaf::Code { key, .. }, Piece::Run(piece)) => source.count(&piece.run, key).await,
            (Leaf::Codes { path, range, .. }, Piece::Run(piece)) => {
                Ok(range_bound_in_run(path, range, piece))
            }
        }
    }

    /// An upper bound of the values that are tested in one piece, roughly.
    pub(crate) fn test_bound(&self, piece: &Piece) -> u64 {
        match self {
            Leaf::Codes { path, range, test: Some(_) } => value_bound(path, range, piece),
            Leaf::Codes { .. } | Leaf::Code { .. } | Leaf::All | Leaf::Present(_) => 0,
        }
    }
}

/// The range of the mark of presence alone.
fn present_range() -> CodeRange {
    CodeRange::raw(Bound::Included(PRESENT.to_vec()), Bound::Included(PRESENT.to_vec()))
}

async fn run_terms(
    source: &Source,
    piece: &RunPiece,
    path: &IndexPath,
    range: &Arc<CodeRange>,
) -> Result<RunTerms, Fault> {
    RunTerms::new(source, piece, Direction::Forward, path, range).await
}

fn present_in_segment(path: &IndexPath, segment: &Segment) -> Answer {
    let term = segment.find_path(path.code()).next().filter(|term| segment.code(*term) == PRESENT);
    let universe = segment.numbers().len();
    Answer::exact(term.map(|term| segment.posting(term).to_set(universe)).unwrap_or_default())
}

async fn present_in_run(path: &IndexPath, source: &Source, piece: &RunPiece) -> Result<Answer, Fault> {
    let mut terms = run_terms(source, piece, path, &Arc::new(present_range())).await?;
    let universe = piece.run.numbers.len();
    let found = terms.next().await?.map(|(_, posting)| posting.to_set(universe));
    Ok(Answer::exact(found.unwrap_or_default()))
}

/// The documents of the one code of a range.
fn code_answer(range: &CodeRange, posting: Option<Posting<'_>>, universe: usize) -> Answer {
    let ranks = posting.map(|posting| posting.into_set(universe)).unwrap_or_default();
    let is_doubtful = range.as_point().is_some_and(|code| range.is_doubtful(code));
    if is_doubtful && !ranks.is_empty() {
        return Answer { possible: ranks, certain: Some(RoaringBitmap::new()) };
    }
    Answer::exact(ranks)
}

fn codes_in_segment(
    path: &IndexPath,
    range: &CodeRange,
    test: Option<&ValueTest>,
    segment: &Segment,
) -> Answer {
    let mut found = Found::new(segment.numbers().len());
    for term in segment.find_range(path.code(), range) {
        let verdict = verdict(path, range, test, segment.code(term));
        found.add(verdict, segment.posting(term));
    }
    found.finish()
}

/// What a term in a range says.
fn verdict(path: &IndexPath, range: &CodeRange, test: Option<&ValueTest>, code: &[u8]) -> Verdict {
    match test {
        Some(_) if is_cut(path, code) => Verdict::Unknown,
        Some(test) => test.verdict(code),
        None if range.is_doubtful(code) => Verdict::Unknown,
        None => Verdict::Yes,
    }
}

async fn codes_in_run(
    path: &IndexPath,
    range: &Arc<CodeRange>,
    test: Option<&ValueTest>,
    source: &Source,
    piece: &RunPiece,
) -> Result<Answer, Fault> {
    let mut found = Found::new(piece.run.numbers.len());
    let mut terms = run_terms(source, piece, path, range).await?;
    while let Some(entry) = terms.peek() {
        let code = entry.key.get(path.code().len()..).unwrap_or_default();
        match verdict(path, range, test, code) {
            Verdict::No => terms.pass().await.map(drop)?,
            verdict @ (Verdict::Yes | Verdict::Unknown) => {
                if let Some((_, posting)) = terms.next().await? {
                    found.add(verdict, posting);
                }
            }
        }
        // A test takes its time, and there may be many values.
        if test.is_some() {
            tokio::task::consume_budget().await;
        }
    }
    Ok(found.finish())
}

/// What is found for certain, and in doubt.
struct Found {
    universe: usize,
    certain: Gathering,
    doubtful: Option<Gathering>,
}

impl Found {
    fn new(universe: usize) -> Found {
        Found { universe, certain: Gathering::new(universe), doubtful: None }
    }

    fn add(&mut self, verdict: Verdict, posting: Posting<'_>) {
        match verdict {
            Verdict::Yes => self.certain.add(posting),
            Verdict::No => {}
            Verdict::Unknown => {
                self.doubtful.get_or_insert_with(|| Gathering::new(self.universe)).add(posting);
            }
        }
    }

    fn finish(self) -> Answer {
        let certain = self.certain.finish();
        match self.doubtful {
            None => Answer::exact(certain),
            Some(doubtful) => Answer { possible: &certain | doubtful.finish(), certain: Some(certain) },
        }
    }
}

fn posting_sum(segment: &Segment, terms: Range<usize>) -> u64 {
    terms.map(|term| segment.posting_count(term) as u64).sum()
}

/// Terms that a block has at most, roughly: the shortest take so many bytes.
const TERMS_PER_BLOCK: u64 = 1024;

/// An upper bound of the different codes in a range, roughly.
pub(crate) fn value_bound(path: &IndexPath, range: &CodeRange, piece: &Piece) -> u64 {
    match piece {
        Piece::Segment(piece) => piece.segment.find_range(path.code(), range).len() as u64,
        Piece::Run(piece) => {
            let (first, last) = blocks_of(path, range, piece);
            let blocks = (last - first + 1) as u64;
            blocks.saturating_mul(TERMS_PER_BLOCK).min(piece.run.fences.documents_between(first, last))
        }
    }
}

/// By whole blocks, without reading one.
fn range_bound_in_run(path: &IndexPath, range: &CodeRange, piece: &RunPiece) -> u64 {
    let (first, last) = blocks_of(path, range, piece);
    piece.run.fences.documents_between(first, last)
}

/// The first and the last block that may hold terms of a range.
fn blocks_of(path: &IndexPath, range: &CodeRange, piece: &RunPiece) -> (usize, usize) {
    let key = |code: &[u8]| [path.code(), code].concat();
    let fences = &piece.run.fences;
    let first = match &range.low {
        Bound::Included(code) | Bound::Excluded(code) => fences.block_of(&key(code)),
        Bound::Unbounded => fences.block_of(path.code()),
    };
    let last = match &range.high {
        Bound::Included(code) | Bound::Excluded(code) => fences.block_of(&key(code)),
        Bound::Unbounded => fences.block_of(&path.behind()),
    };
    (first, last.max(first))
}
