//! The border to the storage engines: what each must do, and the enum that picks one.
//!
//! A backend commits batches that carry their requirements, atomically and each for its lanes, and answers each with a
//! verdict. How many of them it makes durable at once is its own business. Nothing above needs more of it: neither an
//! order between lanes, nor a state of the whole store that a failed batch could spoil for others.
//!
//! Knows no engine's inside. An enum, not a type parameter, carries the choice, so callers never see it; the calls are
//! async because a backend may be remote.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::batch::{Batch, Durability, Space};
use crate::commit::Grouped;
use crate::fault::{Cause, CommitFault, Health, ReadFault};
use crate::lane::{Answer, Lane, Lanes};
#[cfg(feature = "round-trip")]
use crate::round_trip::RoundTrip;
use crate::view::View;

/// A storage engine under a store. Any number of callers may be in it at the same time.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The newest committed state. Never shows part of a batch, nor one that still waits for its sync.
    fn view(&self) -> impl Future<Output = Result<View, ReadFault>> + Send;

    /// Hands a batch over. Its place behind all batches that were handed over before for one of its lanes is fixed by
    /// the call. It is committed as a whole if no earlier batch of its lanes has failed, and if every row that it
    /// requires has the expected value when its turn comes; the answer comes when it is as durable as asked.
    ///
    /// [`CommitFault::Uncertain`] leaves the outcome open until [`Backend::settle`] has succeeded for its lanes. Every
    /// other fault means that nothing of the batch was or will be applied.
    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<Answer>;

    /// Fails as long as the outcome of a batch of this lane is open. Once it succeeds, views taken afterwards show
    /// what has become of all of them, for good. A lane from which acknowledged batches may be gone is marked as
    /// rewound before such a view can be had.
    fn settle(&self, lane: &Lane) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Adds rows, in strictly ascending order of their keys, durable on return. They may be visible at once; that
    /// nobody looks is the callers' contract (see [`crate::Store::ingest`]). After an error any of them may be
    /// there, and the store must be reopened.
    fn ingest(
        &self,
        space: Space,
        rows: Vec<(Bytes, Bytes)>,
    ) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Room on the disk; `None` if the backend has no disk of its own. Fails if the store is no longer there.
    fn room(&self) -> Result<Option<Room>, Cause>;

    fn health(&self) -> Health;

    /// The room on the disk, if the last commit found it short and it still is.
    fn shortage(&self) -> Option<Room>;

    /// Closes the engine and opens it again, and removes ingests that were not named.
    fn reopen(&self) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Commits what waits, makes everything durable and lets go of the files. Every later call fails.
    fn close(&self) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Bytes the store takes on its disk or, without one, in memory.
    fn disk_bytes(&self) -> u64;

    /// Bytes that the store takes in memory.
    fn memory_use(&self) -> StoreMemory;
}

/// Free space of the disk under a store that is not spoken for, and how much of it must stay free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Free bytes.
    pub free_bytes: u64,
    /// Bytes that must stay free.
    pub reserve_bytes: u64,
}

/// What a store takes in memory. A store without a disk takes what [`crate::Store::disk_bytes`] says and nothing
/// besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMemory {
    /// Rows that are not in tables yet.
    pub memtable_bytes: u64,
    /// Of these, the rows of the space that has most of them.
    pub memtable_bytes_largest: u64,
    /// Blocks that were read lately.
    pub blocks_bytes: u64,
}

/// Any of the backends.
#[allow(clippy::large_enum_variant, reason = "there is one for a whole store")]
pub(crate) enum AnyBackend {
    Grouped(Grouped),
    #[cfg(feature = "round-trip")]
    RoundTrip(RoundTrip),
}

/// Calls a method of whichever backend it is.
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

    fn submit(&self, lanes: Lanes, batch: Batch, durability: Durability) -> oneshot::Receiver<Answer> {
        on_backend!(self, backend => backend.submit(lanes, batch, durability))
    }

    async fn settle(&self, lane: &Lane) -> Result<(), CommitFault> {
        on_backend!(self, backend => backend.settle(lane).await)
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        on_backend!(self, backend => backend.ingest(space, rows).await)
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        on_backend!(self, backend => backend.room())
    }

    fn health(&self) -> Health {
        on_backend!(self, backend => backend.health())
    }

    fn shortage(&self) -> Option<Room> {
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
