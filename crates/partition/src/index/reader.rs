//! Reading the index: lookups and walks over all pieces of one consistent state.

use crate::index::code::CodeRange;
use crate::index::counts::Live;
use crate::index::dead::DeadSet;
use crate::index::documents::Documents;
use crate::index::leaf::Leaf;
use crate::index::lookup::Lookup;
use crate::index::manifest::Fingerprint;
use crate::index::memory::IndexMemory;
use crate::index::path::IndexPath;
use crate::index::piece::Piece;
use crate::index::ranks;
use crate::index::recovery::is_damage;
use crate::index::required_terms::RequiredTerms;
use crate::index::rules::Rules;
use crate::index::run_cursor::RunSource;
use crate::index::walk::TermWalk;
use kv::{Direction, View};
use model::policy::CompositeIndex;
use model::{DocumentNumber, Fault};
use plan::query::Expression;
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::Notify;

/// Whether the index covers a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every document with a value at the path has a term for it.
    Whole,
    /// The policy excludes the path.
    None,
}

/// The index of a partition, at the LSN of the view it was published with.
#[derive(Clone, Debug)]
pub struct IndexReader {
    pub(crate) pieces: Arc<[Piece]>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) view: View,
    pub(crate) memory: Arc<IndexMemory>,
    /// Notifies the writer that the index is damaged and must be rebuilt.
    pub(crate) damage_signal: Arc<Notify>,
}

impl IndexReader {
    /// Whether the index covers a path.
    pub fn covers(&self, path: &IndexPath) -> Coverage {
        if self.rules.covers(path) { Coverage::Whole } else { Coverage::None }
    }

    /// The fingerprint of the rules: equal for indexes with the same terms.
    pub fn fingerprint(&self) -> Fingerprint {
        self.rules.fingerprint()
    }

    /// The composite index whose tuples are at a path.
    pub fn composite(&self, path: &IndexPath) -> Option<CompositeIndex> {
        let known = self.rules.composites().iter().find(|composite| composite.path == *path)?;
        Some(CompositeIndex { paths: known.members.iter().map(|member| member.path.clone()).collect() })
    }

    /// The indexed computed property whose value an expression on documents is.
    pub fn computed_name(&self, expression: &Expression) -> Option<&str> {
        let known = self.rules.computed().iter().find(|(property, _)| property.value == *expression);
        known.map(|(property, _)| property.name.as_str())
    }

    /// Number of live documents, including expired ones until they are deleted.
    pub fn document_count(&self) -> u64 {
        self.pieces.iter().map(Piece::live_count).sum()
    }

    /// Whether a document is in the index and live.
    pub fn holds(&self, number: DocumentNumber) -> bool {
        let is_live = |piece: &Piece| {
            let universe = piece.universe();
            universe.spans(number) && universe.rank(number).is_some_and(|rank| !piece.dead().contains(rank))
        };
        self.pieces.iter().any(is_live)
    }

    /// The first live documents from `first` to `last`, ascending.
    pub(crate) fn live_numbers(
        &self,
        first: DocumentNumber,
        last: DocumentNumber,
        count_max: usize,
    ) -> Vec<DocumentNumber> {
        let mut numbers = Vec::new();
        for piece in &*self.pieces {
            let (universe, dead) = (piece.universe(), piece.dead());
            let ranks =
                (universe.rank_from(first)..universe.rank_after(last)).filter(|rank| !dead.contains(*rank));
            numbers.extend(ranks.filter_map(|rank| universe.get(rank)).take(count_max));
        }
        numbers.sort_unstable();
        numbers.truncate(count_max);
        numbers
    }

    /// Whether it is certain that every document has a value at a path.
    pub async fn is_everywhere(&self, path: &IndexPath) -> Result<bool, Fault> {
        report_damage(&self.damage_signal, self.is_everywhere_unwatched(path).await)
    }

    async fn is_everywhere_unwatched(&self, path: &IndexPath) -> Result<bool, Fault> {
        let present = Lookup::Present(path.clone());
        let mut leaf = Leaf::new(&present);
        let source = self.source();
        // Dead documents count on both sides.
        let none = DeadSet::default();
        for piece in &*self.pieces {
            let live = Live { universe: piece.universe(), dead: &none, within: None };
            if leaf.live_count(&source, piece, &live, u64::MAX).await? < piece.universe().len() as u64 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it is known without I/O that no document has all of the required terms.
    pub(crate) fn lacks(&self, required_terms: &mut RequiredTerms<'_>) -> bool {
        let cache = self.memory.blocks();
        self.pieces.iter().all(|piece| required_terms.are_absent(piece, cache))
    }

    /// A cheap, approximate upper bound of the terms that a lookup reads.
    pub fn work_bound(&self, lookup: &Lookup) -> Result<u64, Fault> {
        let mut leaves = lookup.leaves()?;
        let bound = |piece: &Piece| leaves.iter_mut().map(|leaf| leaf.work_bound(piece)).sum::<u64>();
        Ok(self.pieces.iter().map(bound).sum())
    }

    pub(crate) fn source(&self) -> RunSource {
        RunSource::Reader(self.view.clone(), Arc::clone(self.memory.blocks()))
    }

    /// The live documents that match a lookup. A path that the index does not cover has no documents.
    pub async fn documents(&self, lookup: &Lookup) -> Result<Documents, Fault> {
        report_damage(&self.damage_signal, self.documents_unwatched(lookup).await)
    }

    async fn documents_unwatched(&self, lookup: &Lookup) -> Result<Documents, Fault> {
        let mut leaves = lookup.leaves()?;
        if lookup.is_and_of_leaves() && leaves.iter().all(|leaf| leaf.as_point().is_some()) {
            return self.documents_of_points(&mut leaves).await;
        }
        let mut answers = Vec::with_capacity(leaves.len());
        let is_plain_and = lookup.is_and_of_leaves();
        let source = self.source();
        let (pieces, ranks) = (Arc::clone(&self.pieces), Vec::with_capacity(self.pieces.len()));
        let mut documents = Documents { pieces, ranks, exact: true };
        for piece in &*self.pieces {
            answers.clear();
            let mut is_over = false;
            for leaf in &mut leaves {
                let answer = leaf.matches(&source, piece).await?;
                // No later leaf can add a document; most pieces have none of a rare value.
                is_over = is_plain_and && answer.possible.is_empty();
                if is_over {
                    break;
                }
                answers.push(answer);
            }
            if is_over {
                documents.ranks.push(RoaringBitmap::new());
                continue;
            }
            let answer = lookup.combine(piece.universe().len(), &mut answers.drain(..));
            let live = |set: RoaringBitmap| piece.dead().live_of(set);
            let ranks = live(answer.possible);
            let certain = answer.certain.map(live);
            documents.exact &= certain.is_none_or(|certain| certain.len() == ranks.len());
            documents.ranks.push(ranks);
        }
        Ok(documents)
    }

    /// The live documents that have all of some codes, the most frequent kind of lookup. The longer postings are not
    /// converted to sets; only the documents of the shortest are looked up in them.
    async fn documents_of_points(&self, leaves: &mut [Leaf<'_>]) -> Result<Documents, Fault> {
        let is_inexact = leaves.iter().any(|leaf| leaf.as_point() == Some(true));
        let source = self.source();
        let mut ranks = Vec::with_capacity(self.pieces.len());
        let mut exact = true;
        for piece in &*self.pieces {
            let mut postings = Vec::new();
            for leaf in &mut *leaves {
                match leaf.posting(&source, piece).await? {
                    Some(posting) => postings.push(posting),
                    // Most pieces have none of a rare value.
                    None => break,
                }
            }
            if postings.len() < leaves.len() {
                ranks.push(RoaringBitmap::new());
                continue;
            }
            let found = piece.dead().live_of(ranks::common(&mut postings, piece.universe().len()));
            exact &= !is_inexact || found.is_empty();
            ranks.push(found);
        }
        Ok(Documents { pieces: Arc::clone(&self.pieces), ranks, exact })
    }

    /// Walks the values at a path in either direction, from a code on, with the documents of `within` only.
    pub async fn walk(
        &self,
        path: &IndexPath,
        direction: Direction,
        from: Option<Vec<u8>>,
        within: Option<&Documents>,
    ) -> Result<TermWalk, Fault> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let within = within.cloned();
        match direction {
            Direction::Forward => self.walk_between(path, direction, from, Bound::Unbounded, within).await,
            Direction::Backward => self.walk_between(path, direction, Bound::Unbounded, from, within).await,
        }
    }

    /// Walks the values at a path whose codes are within bounds.
    pub async fn walk_between(
        &self,
        path: &IndexPath,
        direction: Direction,
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
        within: Option<Documents>,
    ) -> Result<TermWalk, Fault> {
        let range = CodeRange::new(path, &low, &high);
        let walk = TermWalk::new(self, path.clone(), direction, range, within).await;
        report_damage(&self.damage_signal, walk)
    }
}

/// Notifies the writer if the index is damaged. The caller gets the fault and reads the records instead.
pub(crate) fn report_damage<T>(damage_signal: &Notify, result: Result<T, Fault>) -> Result<T, Fault> {
    if result.as_ref().is_err_and(is_damage) {
        damage_signal.notify_one();
    }
    result
}
