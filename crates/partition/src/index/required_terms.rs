//! Values that a lookup needs: where one of them is missing, it finds nothing.

use crate::index::block_cache::BlockCache;
use crate::index::leaf::Leaf;
use crate::index::lookup::Lookup;
use crate::index::piece::Piece;

/// See the file's head. Made once for the indexes of many partitions.
pub struct RequiredTerms<'l> {
    /// Each wants one code.
    leaves: Vec<Leaf<'l>>,
}

impl<'l> RequiredTerms<'l> {
    /// Nothing if the lookup needs no single value.
    pub fn of(lookup: &'l Lookup) -> Option<RequiredTerms<'l>> {
        if !lookup.is_and_of_leaves() {
            return None;
        }
        let mut leaves = lookup.leaves().ok()?;
        leaves.retain(|leaf| leaf.as_point().is_some());
        (!leaves.is_empty()).then_some(RequiredTerms { leaves })
    }

    /// Whether a piece has no document with all of the values, as far as memory tells.
    pub(crate) fn are_absent(&mut self, piece: &Piece, cache: &BlockCache) -> bool {
        self.leaves.iter_mut().any(|leaf| leaf.is_absent(piece, cache))
    }
}
