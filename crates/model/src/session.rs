//! Session tokens: which position of which partition a client has seen.

use crate::{Lsn, PartitionOrdinal};

/// What a client has seen of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// What the client has seen of it.
    pub lsn: Lsn,
}
