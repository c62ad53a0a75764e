//! Division of the process memory: one total, and a share for everything that grows with load.
//!
//! The shares add up to less than the total: the rest is for connections, containers and threads.

use crate::machine::{self, MemoryLimit};
use std::fmt;

/// Smallest total: below it one body, one page and one query of the largest size would not fit.
pub(crate) const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// `auto` takes this fraction of the available memory: most machines run other programs and need a page cache.
const AUTO_DIVISOR: u64 = 4;

/// Parts of the total, in sixteenths.
const SIXTEENTHS: u64 = 16;
const CACHES: u64 = 5;
const INDEX_BLOCKS: u64 = 1;
const MEMTABLES: u64 = 2;
const INDEX_SEGMENTS: u64 = 2;
const QUERIES: u64 = 2;
const ANSWERS: u64 = 2;
const BODIES: u64 = 1;

/// Larger memtables showed no gain in measurements.
const MEMTABLES_MAX: u64 = 256 << 20;
const INDEX_SEGMENTS_MAX: u64 = 256 << 20;
const INDEX_BLOCKS_MAX: u64 = 64 << 20;

/// The total in bytes, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemoryTotal {
    /// Set by the operator.
    Set(u64),
    /// A fraction of the available memory.
    Auto(MemoryLimit),
}

impl MemoryTotal {
    /// A quarter of the available memory.
    pub(crate) fn auto() -> MemoryTotal {
        MemoryTotal::Auto(machine::memory_limit())
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            MemoryTotal::Set(bytes) => *bytes,
            MemoryTotal::Auto(limit) => (limit.bytes / AUTO_DIVISOR).max(MEMORY_BYTES_MIN),
        }
    }

    /// The shares; the size of the caches may be set separately.
    pub(crate) fn shares(&self, caches: Option<u64>) -> MemoryShares {
        let part = |sixteenths| self.bytes() / SIXTEENTHS * sixteenths;
        MemoryShares {
            caches: caches.unwrap_or(part(CACHES)),
            index_blocks: part(INDEX_BLOCKS).min(INDEX_BLOCKS_MAX),
            memtables: part(MEMTABLES).min(MEMTABLES_MAX),
            index_segments: part(INDEX_SEGMENTS).min(INDEX_SEGMENTS_MAX),
            queries: part(QUERIES),
            answers: part(ANSWERS),
            bodies: part(BODIES),
        }
    }
}

impl fmt::Display for MemoryTotal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryTotal::Set(bytes) => write!(formatter, "{bytes} bytes"),
            MemoryTotal::Auto(limit) => {
                let bytes = self.bytes();
                write!(formatter, "{bytes} bytes, a quarter of {} ({})", limit.bytes, limit.source)
            }
        }
    }
}

/// Bytes for everything that grows with load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryShares {
    /// Documents and blocks read from the store.
    pub(crate) caches: u64,
    /// Blocks of index runs.
    pub(crate) index_blocks: u64,
    /// Rows that the store has not flushed into tables yet.
    pub(crate) memtables: u64,
    /// Index entries that are not on disk yet.
    pub(crate) index_segments: u64,
    /// Values that running queries hold.
    pub(crate) queries: u64,
    /// Responses that clients have not read yet.
    pub(crate) answers: u64,
    pub(crate) bodies: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::LimitSource;

    #[test]
    fn the_parts_fit_into_the_total() {
        for total in [MEMORY_BYTES_MIN, 512 << 20, 6 << 30, 1 << 40] {
            let shares = MemoryTotal::Set(total).shares(None);
            let MemoryShares { caches, index_blocks, memtables, index_segments, queries, answers, bodies } =
                shares;
            let sum = caches + index_blocks + memtables + index_segments + queries + answers + bodies;
            assert!(sum < total, "{total}: {shares:?}");
            let largest = model::limits::REQUEST_BYTES_MAX as u64;
            assert!(answers >= largest && bodies >= largest, "{total}: {shares:?}");
        }
    }

    #[test]
    fn auto_is_a_quarter_and_never_too_small() {
        let limit = |bytes| MemoryTotal::Auto(MemoryLimit { bytes, source: LimitSource::Machine });
        assert_eq!(limit(8 << 30).bytes(), 2 << 30);
        assert_eq!(limit(100 << 20).bytes(), MEMORY_BYTES_MIN);
        assert_eq!(
            limit(8 << 30).to_string(),
            "2147483648 bytes, a quarter of 8589934592 (memory of the machine)"
        );
    }
}
