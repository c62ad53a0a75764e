//! The partitions from which a partition was split, and where their rows are.
//!
//! A split moves no row. Entries of the log and the history that an ancestor has written stay under its prefix until
//! they are moved or trimmed, and so do its index runs. A child assigns only LSNs above the last one of its parent, so
//! the entries of all ancestors and its own have one order.

use model::{Lsn, PartitionOrdinal};

/// A partition from which another one was split, directly or over several generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number in the container.
    pub ordinal: PartitionOrdinal,
    /// The highest LSN that it has assigned. Its descendants assign higher ones.
    pub lsn_last: Lsn,
    /// Whether all its rows are deleted, because no descendant needs them any more.
    pub is_empty: bool,
}
