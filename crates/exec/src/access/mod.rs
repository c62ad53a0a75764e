//! How a partition's documents are reached. One file per way; which one is taken never changes a result.

mod numbers;
mod records;

pub(crate) use numbers::NumberWalk;
pub(crate) use records::RecordWalk;

use plan::query::Order;
use std::fmt;

use crate::program::{Input, Layer, Shape};

/// A way to a partition's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessPath {
    /// In the order of numbers, which is the order of unordered results: reading ends when the page is full. Each
    /// document is fetched by its key.
    Numbers,
    /// In the order of keys, as they lie: the fastest way to look at all of them, and no other order but by selection.
    Records,
}

/// The way to take for a layer that reads documents. `is_whole` tells whether all documents of the partitions are
/// asked for, or those of some keys alone.
pub(crate) fn choose(layer: &Layer, is_last: bool, is_whole: bool) -> AccessPath {
    let comes_by_number = layer.shape == Shape::Rows && matches!(layer.query.order, Order::None);
    if layer.input == Input::Documents && is_last && is_whole && comes_by_number {
        AccessPath::Numbers
    } else {
        AccessPath::Records
    }
}

/// What reading by number costs against reading as records lie, for each document.
const FETCH_COST: u64 = 4;

/// Whether it is cheaper to look at all records of a partition than to go on by number. `seen` documents gave `found`
/// rows, `wanted` more are needed, and there are `total` documents of which `seen` are behind us.
pub(crate) fn is_scan_cheaper(layer: &Layer, seen: u64, found: u64, wanted: u64, total: u64) -> bool {
    if layer.query.filter.is_none() && layer.has_one_row() {
        return false;
    }
    let left = total.saturating_sub(seen);
    let needed = wanted.saturating_mul(seen) / found.max(1);
    needed.min(left).saturating_mul(FETCH_COST) > total
}

impl fmt::Display for AccessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessPath::Numbers => "documents by number, until the page is full",
            AccessPath::Records => "all records",
        })
    }
}
