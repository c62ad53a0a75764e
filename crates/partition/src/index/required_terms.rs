//! Terms that a lookup requires: if a partition lacks one of them, the lookup finds nothing there.

use crate::index::block_cache::BlockCache;
use crate::index::leaf::Leaf;
use crate::index::lookup::Lookup;
use crate::index::piece::Piece;

/// Terms that a lookup requires, prepared once for the indexes of many partitions.
pub struct RequiredTerms<'l> {
    /// Each requires one code.
    leaves: Vec<Leaf<'l>>,
}

impl<'l> RequiredTerms<'l> {
    /// `None` if the lookup requires no single term.
    pub fn of(lookup: &'l Lookup) -> Option<RequiredTerms<'l>> {
        if !lookup.is_and_of_leaves() {
            return None;
        }
        let mut leaves = lookup.leaves().ok()?;
        leaves.retain(|leaf| leaf.as_point().is_some());
        (!leaves.is_empty()).then_some(RequiredTerms { leaves })
    }

    /// Whether a piece has no document with all of the terms, as far as memory and caches show.
    pub(crate) fn are_absent(&mut self, piece: &Piece, cache: &BlockCache) -> bool {
        self.leaves.iter_mut().any(|leaf| leaf.is_absent(piece, cache))
    }
}
