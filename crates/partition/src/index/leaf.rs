//! A leaf of a lookup, evaluated on the terms of one piece.

use crate::index::block_cache::BlockCache;
use crate::index::code::{CodeRange, PRESENT, is_truncated, term_code};
use crate::index::counts::Live;
use crate::index::lookup::{Lookup, Matches, ValueTest, Verdict};
use crate::index::path::{IndexPath, LOGICAL_KEYS};
use crate::index::piece::{Piece, RunPiece, SegmentPiece};
use crate::index::ranks::{self, Posting, RankCollector};
use crate::index::run_cursor::{RunSource, cached_block};
use crate::index::segment::Segment;
use crate::index::walk::RunTerms;
use kv::Direction;
use model::{EffectiveRange, Fault};
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;

/// One condition of a lookup on the terms of a path.
pub(crate) struct Leaf<'l> {
    path: &'l IndexPath,
    condition: LeafCondition<'l>,
    /// The field of the path in the segment that was read last.
    field: usize,
}

/// The condition on the values at the path.
enum LeafCondition<'l> {
    /// All documents, whatever they have there.
    All,
    /// Any value.
    Present,
    /// A code in a range.
    Codes { range: Arc<CodeRange>, test: Option<&'l ValueTest> },
    /// One code, stored as the key of its term: path and code.
    Code { key: Vec<u8>, is_inexact: bool },
}

impl<'l> Leaf<'l> {
    pub(crate) fn new(lookup: &'l Lookup) -> Leaf<'l> {
        match lookup {
            Lookup::Term { path, code } => Leaf::point(path, code),
            Lookup::Range { path, low, high } => Leaf::codes(path, CodeRange::new(path, low, high)),
            Lookup::Tested { path, low, high, test } => {
                let range = Arc::new(CodeRange::new(path, low, high));
                Leaf::with_condition(path, LeafCondition::Codes { range, test: Some(test) })
            }
            Lookup::Present(path) => Leaf::with_condition(path, LeafCondition::Present),
            Lookup::Logical(prefix) => Leaf::point(&LOGICAL_KEYS, prefix),
            Lookup::Effective(EffectiveRange { min, max }) => {
                let low = Bound::Included(min.as_bytes().to_vec());
                let high = Bound::Excluded(max.as_bytes().to_vec());
                Leaf::codes(&LOGICAL_KEYS, CodeRange::new(&LOGICAL_KEYS, &low, &high))
            }
            // The others are not leaves.
            Lookup::All | Lookup::And(_) | Lookup::Or(_) | Lookup::Without(_) => {
                Leaf::with_condition(&LOGICAL_KEYS, LeafCondition::All)
            }
        }
    }

    fn with_condition(path: &'l IndexPath, condition: LeafCondition<'l>) -> Leaf<'l> {
        Leaf { path, condition, field: 0 }
    }

    fn point(path: &'l IndexPath, code: &[u8]) -> Leaf<'l> {
        let (code, is_inexact) = term_code(path, code);
        Leaf::with_condition(path, LeafCondition::Code { key: [path.code(), &code].concat(), is_inexact })
    }

    fn codes(path: &'l IndexPath, range: CodeRange) -> Leaf<'l> {
        if let Some(code) = range.as_point() {
            let is_inexact = range.is_inexact(code);
            return Leaf::with_condition(
                path,
                LeafCondition::Code { key: [path.code(), code].concat(), is_inexact },
            );
        }
        Leaf::with_condition(path, LeafCondition::Codes { range: Arc::new(range), test: None })
    }

    /// Whether one code is wanted, so that [`Leaf::posting`] returns all its documents; if so, whether the match is
    /// inexact.
    pub(crate) fn as_point(&self) -> Option<bool> {
        match &self.condition {
            LeafCondition::Code { is_inexact, .. } => Some(*is_inexact),
            LeafCondition::All | LeafCondition::Present | LeafCondition::Codes { .. } => None,
        }
    }

    /// The posting of the one wanted code in a piece, including dead documents.
    pub(crate) async fn posting<'p>(
        &mut self,
        source: &RunSource,
        piece: &'p Piece,
    ) -> Result<Option<Posting<'p>>, Fault> {
        let LeafCondition::Code { key, .. } = &self.condition else {
            return Ok(None);
        };
        match piece {
            Piece::Segment(SegmentPiece { segment, .. }) => {
                let term = find_in_segment(self.path, key, segment, &mut self.field);
                Ok(term.map(|term| segment.posting(term)))
            }
            Piece::Run(piece) => source.find(&piece.run, key).await,
        }
    }

    /// Whether a piece does not have the one wanted code, as far as memory and caches show.
    pub(crate) fn is_absent(&mut self, piece: &Piece, cache: &BlockCache) -> bool {
        let LeafCondition::Code { key, .. } = &self.condition else {
            return false;
        };
        match piece {
            Piece::Segment(SegmentPiece { segment, .. }) => {
                find_in_segment(self.path, key, segment, &mut self.field).is_none()
            }
            Piece::Run(piece) => {
                let block = cached_block(cache, &piece.run, key);
                block.is_some_and(|block| matches!(block.find(key), Ok(None)))
            }
        }
    }

    /// The matching documents of one piece, including dead ones.
    pub(crate) async fn matches(&mut self, source: &RunSource, piece: &Piece) -> Result<Matches, Fault> {
        match piece {
            Piece::Segment(piece) => Ok(self.matches_in_segment(&piece.segment)),
            Piece::Run(piece) => self.matches_in_run(source, piece).await,
        }
    }

    fn matches_in_segment(&mut self, segment: &Segment) -> Matches {
        let universe = segment.numbers().len();
        match &self.condition {
            LeafCondition::All => Matches::exact(ranks::full(universe)),
            LeafCondition::Present => present_in_segment(self.path, segment, &mut self.field),
            LeafCondition::Codes { range, test } => {
                codes_in_segment(self.path, range, *test, segment, &mut self.field)
            }
            LeafCondition::Code { key, is_inexact } => {
                let term = find_in_segment(self.path, key, segment, &mut self.field);
                code_matches(*is_inexact, term.map(|term| segment.posting(term)), universe)
            }
        }
    }

    async fn matches_in_run(&self, source: &RunSource, piece: &RunPiece) -> Result<Matches, Fault> {
        let universe = piece.run.numbers.len();
        match &self.condition {
            LeafCondition::All => Ok(Matches::exact(ranks::full(universe))),
            LeafCondition::Present => present_in_run(self.path, source, piece).await,
            LeafCondition::Codes { range, test } => {
                codes_in_run(self.path, range, *test, source, piece).await
            }
            LeafCondition::Code { key, is_inexact } => {
                let posting = source.find(&piece.run, key).await?;
                Ok(code_matches(*is_inexact, posting, universe))
            }
        }
    }

    /// How many live documents of one piece have a wanted term, counted once per such term. If there are more than
    /// `max`, returns some number above it.
    pub(crate) async fn live_count(
        &mut self,
        source: &RunSource,
        piece: &Piece,
        live: &Live<'_>,
        max: u64,
    ) -> Result<u64, Fault> {
        match piece {
            Piece::Segment(piece) => Ok(self.live_count_in_segment(&piece.segment, live, max)),
            Piece::Run(piece) => self.live_count_in_run(source, piece, live, max).await,
        }
    }

    fn live_count_in_segment(&mut self, segment: &Segment, live: &Live<'_>, max: u64) -> u64 {
        let count = |term: usize| match live.is_everything() {
            true => segment.posting_count(term) as u64,
            false => live.count(&segment.posting(term)),
        };
        let (path, field) = (self.path, &mut self.field);
        match &self.condition {
            LeafCondition::All => live.count(&Posting::Full),
            LeafCondition::Present => present_term(path, segment, field).map_or(0, count),
            LeafCondition::Code { key, .. } => find_in_segment(path, key, segment, field).map_or(0, count),
            LeafCondition::Codes { range, .. } => {
                let (mut terms, mut sum) = (segment.find_range(path.code(), range, field), 0);
                while sum <= max
                    && let Some(term) = terms.next()
                {
                    sum += count(term);
                }
                sum
            }
        }
    }

    async fn live_count_in_run(
        &self,
        source: &RunSource,
        piece: &RunPiece,
        live: &Live<'_>,
        max: u64,
    ) -> Result<u64, Fault> {
        let present;
        let range = match &self.condition {
            LeafCondition::All => return Ok(live.count(&Posting::Full)),
            LeafCondition::Code { key, .. } if live.is_everything() => {
                return source.count(&piece.run, key).await;
            }
            LeafCondition::Code { key, .. } => {
                let posting = source.find(&piece.run, key).await?;
                return Ok(posting.map_or(0, |posting| live.count(&posting)));
            }
            LeafCondition::Codes { range, .. } => range,
            LeafCondition::Present => {
                present = Arc::new(present_range());
                &present
            }
        };
        if let Some(least) = least_in_run(self.path, range, piece, live)
            && least > max
        {
            return Ok(least);
        }
        let mut terms = run_terms(source, piece, self.path, range).await?;
        let mut sum = 0;
        while sum <= max && terms.peek().is_some() {
            if live.is_everything() {
                sum += terms.pass().await?;
            } else if let Some((_, posting)) = terms.next().await? {
                sum += live.count(&posting);
            }
        }
        Ok(sum)
    }

    /// An approximate upper bound of the terms that are read in one piece.
    pub(crate) fn work_bound(&mut self, piece: &Piece) -> u64 {
        match &self.condition {
            LeafCondition::Codes { range, .. } => term_bound(self.path, range, piece, &mut self.field),
            LeafCondition::Code { .. } | LeafCondition::All | LeafCondition::Present => 1,
        }
    }
}

/// The term with a key, which is a path and a code.
fn find_in_segment(path: &IndexPath, key: &[u8], segment: &Segment, field: &mut usize) -> Option<usize> {
    let code = key.get(path.code().len()..).filter(|code| !code.is_empty())?;
    segment.find_term(path.code(), code, field)
}

/// The range of the presence mark alone.
fn present_range() -> CodeRange {
    CodeRange::raw(Bound::Included(PRESENT.to_vec()), Bound::Included(PRESENT.to_vec()))
}

async fn run_terms(
    source: &RunSource,
    piece: &RunPiece,
    path: &IndexPath,
    range: &Arc<CodeRange>,
) -> Result<RunTerms, Fault> {
    RunTerms::new(source, piece, Direction::Forward, path, range, None).await
}

/// The posting of the presence mark of a path.
fn present_term(path: &IndexPath, segment: &Segment, field: &mut usize) -> Option<usize> {
    segment.find_path(path.code(), field).next().filter(|term| segment.code(*term) == PRESENT)
}

fn present_in_segment(path: &IndexPath, segment: &Segment, field: &mut usize) -> Matches {
    let term = present_term(path, segment, field);
    let universe = segment.numbers().len();
    Matches::exact(term.map(|term| segment.posting(term).to_set(universe)).unwrap_or_default())
}

async fn present_in_run(path: &IndexPath, source: &RunSource, piece: &RunPiece) -> Result<Matches, Fault> {
    let mut terms = run_terms(source, piece, path, &Arc::new(present_range())).await?;
    let universe = piece.run.numbers.len();
    let found = terms.next().await?.map(|(_, posting)| posting.to_set(universe));
    Ok(Matches::exact(found.unwrap_or_default()))
}

/// The matches of one code.
fn code_matches(is_inexact: bool, posting: Option<Posting<'_>>, universe: usize) -> Matches {
    let ranks = posting.map(|posting| posting.into_set(universe)).unwrap_or_default();
    if is_inexact && !ranks.is_empty() {
        return Matches { possible: ranks, certain: Some(RoaringBitmap::new()) };
    }
    Matches::exact(ranks)
}

fn codes_in_segment(
    path: &IndexPath,
    range: &CodeRange,
    test: Option<&ValueTest>,
    segment: &Segment,
    field: &mut usize,
) -> Matches {
    let mut found = RangeMatches::new(segment.numbers().len());
    for term in segment.find_range(path.code(), range, field) {
        let verdict = verdict(path, range, test, segment.code(term));
        found.add(verdict, segment.posting(term));
    }
    found.finish()
}

/// What a term in a range says about the condition.
fn verdict(path: &IndexPath, range: &CodeRange, test: Option<&ValueTest>, code: &[u8]) -> Verdict {
    match test {
        Some(_) if is_truncated(path, code) => Verdict::Unknown,
        Some(test) => test.verdict(code),
        None if range.is_inexact(code) => Verdict::Unknown,
        None => Verdict::Yes,
    }
}

async fn codes_in_run(
    path: &IndexPath,
    range: &Arc<CodeRange>,
    test: Option<&ValueTest>,
    source: &RunSource,
    piece: &RunPiece,
) -> Result<Matches, Fault> {
    let mut found = RangeMatches::new(piece.run.numbers.len());
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
        // A test takes time, and there may be many values.
        if test.is_some() {
            tokio::task::consume_budget().await;
        }
    }
    Ok(found.finish())
}

/// The certain and the inexact matches in a range.
struct RangeMatches {
    universe: usize,
    certain: RankCollector,
    inexact: Option<RankCollector>,
}

impl RangeMatches {
    fn new(universe: usize) -> RangeMatches {
        RangeMatches { universe, certain: RankCollector::new(universe), inexact: None }
    }

    fn add(&mut self, verdict: Verdict, posting: Posting<'_>) {
        match verdict {
            Verdict::Yes => self.certain.add(posting),
            Verdict::No => {}
            Verdict::Unknown => {
                self.inexact.get_or_insert_with(|| RankCollector::new(self.universe)).add(posting);
            }
        }
    }

    fn finish(self) -> Matches {
        let certain = self.certain.finish();
        match self.inexact {
            None => Matches::exact(certain),
            Some(inexact) => Matches { possible: &certain | inexact.finish(), certain: Some(certain) },
        }
    }
}

/// Approximate maximum number of terms in a block, from the size of the shortest.
const TERMS_PER_BLOCK: u64 = 1024;

/// An approximate upper bound of the different codes in a range; `field` as in [`Segment::find_path`].
fn term_bound(path: &IndexPath, range: &CodeRange, piece: &Piece, field: &mut usize) -> u64 {
    match piece {
        Piece::Segment(piece) => piece.segment.find_range(path.code(), range, field).len() as u64,
        Piece::Run(piece) => {
            let (first, last) = blocks_of(path, range, piece);
            let blocks = (last - first + 1) as u64;
            blocks.saturating_mul(TERMS_PER_BLOCK).min(piece.run.fences.documents_between(first, last))
        }
    }
}

/// A lower bound of the live documents with a term in a range, by the blocks that lie wholly in it: no term is read.
/// `None` if the fences do not say it.
fn least_in_run(path: &IndexPath, range: &CodeRange, piece: &RunPiece, live: &Live<'_>) -> Option<u64> {
    // A dead document may have several of the terms, unless its path has one value.
    let has_one_value = !path.has_elements() && !path.is_spatial() && !path.is_logical();
    if live.within.is_some() || !(live.dead.is_empty() || has_one_value) {
        return None;
    }
    let (first, last) = blocks_of(path, range, piece);
    let inner = last.checked_sub(1).filter(|inner| *inner > first)?;
    Some(piece.run.fences.documents_between(first + 1, inner).saturating_sub(live.dead.len()))
}

/// The first and the last block that may have terms of a range.
fn blocks_of(path: &IndexPath, range: &CodeRange, piece: &RunPiece) -> (usize, usize) {
    let key = |code: &[u8]| [path.code(), code].concat();
    let fences = &piece.run.fences;
    let first = match &range.low {
        Bound::Included(code) | Bound::Excluded(code) => fences.block_of(&key(code)),
        Bound::Unbounded => fences.block_of(path.code()),
    };
    let last = match &range.high {
        Bound::Included(code) | Bound::Excluded(code) => fences.block_of(&key(code)),
        Bound::Unbounded => fences.block_of(&path.end_code()),
    };
    (first, last.max(first))
}
