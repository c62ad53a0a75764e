//! Session tokens: the position of a partition that a client has seen.

use crate::{Lsn, PartitionOrdinal};

/// The state of one partition that a client has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// The latest LSN that the client has seen.
    pub lsn: Lsn,
}
