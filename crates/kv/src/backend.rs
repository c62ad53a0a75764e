//! The interface to storage engines, and the enum that selects one.
//!
//! A backend commits batches that carry their requirements. Each batch is atomic, belongs to its lanes and gets its own
//! answer. How many batches become durable with one sync is up to the backend. The callers require neither an order
//! between lanes nor a state of the whole store that a failed batch could break for others.
//!
//! Knows no engine internals. An enum, not a type parameter, selects the backend, so callers never see it. The calls
//! are async because a backend may be remote.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::batch::{Batch, Durability, Space};
use crate::commit::Grouped;
use crate::fault::{Cause, CommitFault, Health, ReadFault};
use crate::lane::{CommitAnswer, Lane, Lanes};
#[cfg(feature = "round-trip")]
use crate::round_trip::RoundTrip;
use crate::view::View;

/// A storage engine under a store. Any number of callers may use it concurrently.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The newest committed state. Never shows part of a batch, nor a batch that still waits for its sync.
    fn view(&self) -> impl Future<Output = Result<View, ReadFault>> + Send;

    /// Submits a batch. The call fixes its position after all batches submitted before in any of its lanes. It is
    /// committed as a whole if no earlier batch of its lanes has failed, and if every row that it requires has the
    /// expected value when its turn comes. The answer arrives when the batch is as durable as requested.
    ///
    /// After [`CommitFault::Uncertain`] the outcome is unknown until [`Backend::resolve_lane`] has succeeded for its lanes.
    /// Every other fault means that nothing of the batch was or will be applied.
    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<CommitAnswer>;

    /// Fails as long as the outcome of a batch of this lane is unknown. Once it succeeds, views taken afterwards show
    /// the final outcome of all of them. A lane that may have lost acknowledged batches is marked as rewound before
    /// such a view can be taken.
    fn resolve_lane(&self, lane: &Lane) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Adds rows in strictly ascending key order, durable on return. They may be visible at once; callers must not read
    /// them before they are named (see [`crate::Store::ingest`]). After an error any of them may be present, and the
    /// store must be reopened.
    fn ingest(
        &self,
        space: Space,
        rows: Vec<(Bytes, Bytes)>,
    ) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Free space on the disk; `None` if the backend has no disk of its own. Fails if the store was removed.
    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause>;

    fn health(&self) -> Health;

    /// Free space on the disk, if the last commit found it short and it still is.
    fn shortage(&self) -> Option<DiskSpace>;

    /// Closes the engine, opens it again and removes ingests that were not named.
    fn reopen(&self) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Commits waiting batches, makes everything durable and closes the files. Every later call fails.
    fn close(&self) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Bytes the store takes on disk or, without a disk, in memory.
    fn disk_bytes(&self) -> u64;

    /// Bytes that the store takes in memory.
    fn memory_use(&self) -> StoreMemory;
}

/// Free space on the disk of a store that is not already reserved, and how much of it must stay free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskSpace {
    /// Free bytes.
    pub free_bytes: u64,
    /// Bytes that must stay free.
    pub reserve_bytes: u64,
}

/// Memory use of a store. A store without a disk uses [`crate::Store::disk_bytes`] and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMemory {
    /// Rows that are not in tables yet.
    pub memtable_bytes: u64,
    /// Of these, the rows of the space with the most.
    pub memtable_bytes_largest: u64,
    /// Recently read blocks.
    pub blocks_bytes: u64,
}

#[allow(clippy::large_enum_variant, reason = "there is one for a whole store")]
pub(crate) enum AnyBackend {
    Grouped(Grouped),
    #[cfg(feature = "round-trip")]
    RoundTrip(RoundTrip),
}

/// Calls a method of the selected backend.
macro_rules! on_backend {
    ($self:expr, $backend:ident => $call:expr) => {
        match $self {
            AnyBackend::Grouped($backend) => $call,
            #[cfg(feature = "round-trip")]
            AnyBackend::RoundTrip($backend) => $call,
        }
    };
}

impl Backend for AnyBackend {
    async fn view(&self) -> Result<View, ReadFault> {
        on_backend!(self, backend => backend.view().await)
    }

    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<CommitAnswer> {
        on_backend!(self, backend => backend.submit(lanes, batch, durability))
    }

    async fn resolve_lane(&self, lane: &Lane) -> Result<(), CommitFault> {
        on_backend!(self, backend => backend.resolve_lane(lane).await)
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        on_backend!(self, backend => backend.ingest(space, rows).await)
    }

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        on_backend!(self, backend => backend.disk_space())
    }

    fn health(&self) -> Health {
        on_backend!(self, backend => backend.health())
    }

    fn shortage(&self) -> Option<DiskSpace> {
        on_backend!(self, backend => backend.shortage())
    }

    async fn reopen(&self) -> Result<(), CommitFault> {
        on_backend!(self, backend => backend.reopen().await)
    }

    async fn close(&self) -> Result<(), CommitFault> {
        on_backend!(self, backend => backend.close().await)
    }

    fn disk_bytes(&self) -> u64 {
        on_backend!(self, backend => backend.disk_bytes())
    }

    fn memory_use(&self) -> StoreMemory {
        on_backend!(self, backend => backend.memory_use())
    }
}
