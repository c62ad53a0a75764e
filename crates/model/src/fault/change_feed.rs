//! Change feeds that cannot be read as requested.

use crate::PartitionOrdinal;
use thiserror::Error;

/// A change feed cannot be read as requested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeFeedFault {
    /// The container does not keep all versions.
    #[error("the container keeps no versions: its change feed policy has no retention")]
    NoRetention,
    /// All versions can be read only from now on or from a position.
    #[error("all versions and deletes can be read from now on or after a position only")]
    Start,
    /// The changes after the position are not kept any more, or never were.
    #[error("the changes after the position are not retained any more")]
    NotRetained,
    /// The position is after the last change: it belongs to something else.
    #[error("the position is ahead of the change feed")]
    Ahead,
    /// The position names a range that the container never had.
    #[error("the position is for another container: there never was a range {range} here")]
    OtherContainer {
        /// The range.
        range: PartitionOrdinal,
    },
    /// The time to start at has not come.
    #[error("the time to start at is {seconds} seconds ahead")]
    Future {
        /// Seconds from now until then.
        seconds: u64,
    },
}
