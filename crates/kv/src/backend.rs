//! The border to the storage engines: what each must do, and the enums that pick one.
//!
//! Knows no engine's inside. An enum, not a type parameter, carries the choice through the crate, so callers
//! never see it; the calls are async because a backend may be remote.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::batch::{Durability, Operation, Space};
use crate::embedded::{Embedded, EmbeddedPoint};
use crate::fault::{Cause, ReadFault};
use crate::faulty::Faulty;
use crate::memory::{Memory, MemoryPoint};
use crate::view::{Chunk, Direction, KeyRange, ScanLimit};

/// Free space of the disk under a store that is not spoken for, and how much of it must stay free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    pub(crate) free_bytes: u64,
    pub(crate) reserve_bytes: u64,
}

/// A storage engine under a store. Preconditions, lanes, naming of ingests and poison are the store's business
/// and stand above this border; a backend only keeps rows.
///
/// `commit`, `sync`, `reopen` and `close` are called by one caller at a time, reads and `ingest` by any number.
pub(crate) trait Backend: Send + Sync + 'static {
    /// A state that can be read. Cheap to clone.
    type Point: Clone + Send + Sync + 'static;

    /// The newest committed state. Never shows part of a commit, nor one that still waits for its sync.
    fn point(&self) -> impl Future<Output = Result<Self::Point, ReadFault>> + Send;

    /// The value of one row at a point.
    fn get(
        &self,
        point: &Self::Point,
        space: Space,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Bytes>, ReadFault>> + Send;

    /// The values of several rows at a point, in the order of `keys`.
    fn get_many(
        &self,
        point: &Self::Point,
        space: Space,
        keys: &[Bytes],
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, ReadFault>> + Send;

    /// One chunk of a range that is not empty.
    fn scan(
        &self,
        point: &Self::Point,
        space: Space,
        range: KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> impl Future<Output = Result<Chunk, ReadFault>> + Send;

    /// Applies the operations of several batches in order and makes them visible together.
    ///
    /// On success they are as durable as asked; `Sync` also covers everything committed before. An error leaves
    /// the outcome open: none of it is visible, and after [`Backend::reopen`] a prefix of the batches is, each
    /// whole. No further `commit` may come before that.
    fn commit(
        &self,
        batches: Vec<Vec<Operation>>,
        durability: Durability,
    ) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Makes everything committed so far durable. An error is as for `commit`.
    fn sync(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// When [`Backend::tend`] is next due, if nothing is committed before; `None` if there is nothing to do.
    fn tend_at(&self) -> Option<Instant>;

    /// Does small work of the backend's own that no commit waits for. Never called beside `commit` or `sync`.
    fn tend(&self);

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

    /// Closes the engine and opens it again, such that nothing rests on files whose sync failed. Points taken
    /// before stay valid or fail with [`ReadFault::Poisoned`].
    fn reopen(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Makes everything durable and lets go of the files. Every later call fails.
    fn close(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Bytes the store takes on its disk or, without one, in memory.
    fn disk_bytes(&self) -> u64;

    /// Bytes that the store takes in memory.
    fn memory_use(&self) -> StoreMemory;
}

/// What a store takes in memory. A store without a disk takes what [`Backend::disk_bytes`] says and nothing besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMemory {
    /// Rows that are not in tables yet.
    pub memtable_bytes: u64,
    /// Of these, the rows of the space that has most of them.
    pub memtable_bytes_largest: u64,
    /// Blocks that were read lately.
    pub blocks_bytes: u64,
}

/// A backend that keeps rows itself.
pub(crate) enum PlainBackend {
    Memory(Memory),
    Embedded(Embedded),
}

/// Any backend: one that keeps rows, or such a one under a script of faults. Two layers, since a backend that may
/// hold itself would have futures that hold themselves.
pub(crate) enum AnyBackend {
    Plain(Arc<PlainBackend>),
    Faulty(Faulty),
}

/// A point of one of the backends.
#[derive(Clone)]
pub(crate) enum AnyPoint {
    Memory(MemoryPoint),
    Embedded(EmbeddedPoint),
}

impl From<PlainBackend> for AnyBackend {
    fn from(backend: PlainBackend) -> AnyBackend {
        AnyBackend::Plain(Arc::new(backend))
    }
}

impl Backend for AnyBackend {
    type Point = AnyPoint;

    async fn point(&self) -> Result<AnyPoint, ReadFault> {
        match self {
            AnyBackend::Plain(plain) => plain.point().await,
            AnyBackend::Faulty(faulty) => faulty.point().await,
        }
    }

    async fn get(&self, point: &AnyPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        match self {
            AnyBackend::Plain(backend) => backend.get(point, space, key).await,
            AnyBackend::Faulty(backend) => backend.get(point, space, key).await,
        }
    }

    async fn get_many(
        &self,
        point: &AnyPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        match self {
            AnyBackend::Plain(backend) => backend.get_many(point, space, keys).await,
            AnyBackend::Faulty(backend) => backend.get_many(point, space, keys).await,
        }
    }

    async fn scan(
        &self,
        point: &AnyPoint,
        space: Space,
        range: KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, ReadFault> {
        match self {
            AnyBackend::Plain(backend) => backend.scan(point, space, range, direction, limit).await,
            AnyBackend::Faulty(backend) => backend.scan(point, space, range, direction, limit).await,
        }
    }

    async fn commit(&self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        match self {
            AnyBackend::Plain(backend) => backend.commit(batches, durability).await,
            AnyBackend::Faulty(backend) => backend.commit(batches, durability).await,
        }
    }

    async fn sync(&self) -> Result<(), Cause> {
        match self {
            AnyBackend::Plain(backend) => backend.sync().await,
            AnyBackend::Faulty(backend) => backend.sync().await,
        }
    }

    fn tend_at(&self) -> Option<Instant> {
        match self {
            AnyBackend::Plain(backend) => backend.tend_at(),
            AnyBackend::Faulty(backend) => backend.tend_at(),
        }
    }

    fn tend(&self) {
        match self {
            AnyBackend::Plain(backend) => backend.tend(),
            AnyBackend::Faulty(backend) => backend.tend(),
        }
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        match self {
            AnyBackend::Plain(backend) => backend.ingest(space, rows).await,
            AnyBackend::Faulty(backend) => backend.ingest(space, rows).await,
        }
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        match self {
            AnyBackend::Plain(backend) => backend.room(),
            AnyBackend::Faulty(backend) => backend.room(),
        }
    }

    async fn reopen(&self) -> Result<(), Cause> {
        match self {
            AnyBackend::Plain(backend) => backend.reopen().await,
            AnyBackend::Faulty(backend) => backend.reopen().await,
        }
    }

    async fn close(&self) -> Result<(), Cause> {
        match self {
            AnyBackend::Plain(backend) => backend.close().await,
            AnyBackend::Faulty(backend) => backend.close().await,
        }
    }

    fn disk_bytes(&self) -> u64 {
        match self {
            AnyBackend::Plain(backend) => backend.disk_bytes(),
            AnyBackend::Faulty(backend) => backend.disk_bytes(),
        }
    }

    fn memory_use(&self) -> StoreMemory {
        match self {
            AnyBackend::Plain(backend) => backend.memory_use(),
            AnyBackend::Faulty(backend) => backend.memory_use(),
        }
    }
}

/// Views carry the backend of their point, so the arms for a point of another one are never taken.
impl Backend for PlainBackend {
    type Point = AnyPoint;

    async fn point(&self) -> Result<AnyPoint, ReadFault> {
        match self {
            PlainBackend::Memory(memory) => memory.point().await.map(AnyPoint::Memory),
            PlainBackend::Embedded(embedded) => embedded.point().await.map(AnyPoint::Embedded),
        }
    }

    async fn get(&self, point: &AnyPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        match (self, point) {
            (PlainBackend::Memory(backend), AnyPoint::Memory(point)) => backend.get(point, space, key).await,
            (PlainBackend::Embedded(backend), AnyPoint::Embedded(point)) => {
                backend.get(point, space, key).await
            }
            (PlainBackend::Memory(_), AnyPoint::Embedded(_))
            | (PlainBackend::Embedded(_), AnyPoint::Memory(_)) => Err(ReadFault::Closed),
        }
    }

    async fn get_many(
        &self,
        point: &AnyPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        match (self, point) {
            (PlainBackend::Memory(backend), AnyPoint::Memory(point)) => {
                backend.get_many(point, space, keys).await
            }
            (PlainBackend::Embedded(backend), AnyPoint::Embedded(point)) => {
                backend.get_many(point, space, keys).await
            }
            (PlainBackend::Memory(_), AnyPoint::Embedded(_))
            | (PlainBackend::Embedded(_), AnyPoint::Memory(_)) => Err(ReadFault::Closed),
        }
    }

    async fn scan(
        &self,
        point: &AnyPoint,
        space: Space,
        range: KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, ReadFault> {
        match (self, point) {
            (PlainBackend::Memory(backend), AnyPoint::Memory(point)) => {
                backend.scan(point, space, range, direction, limit).await
            }
            (PlainBackend::Embedded(backend), AnyPoint::Embedded(point)) => {
                backend.scan(point, space, range, direction, limit).await
            }
            (PlainBackend::Memory(_), AnyPoint::Embedded(_))
            | (PlainBackend::Embedded(_), AnyPoint::Memory(_)) => Err(ReadFault::Closed),
        }
    }

    async fn commit(&self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        match self {
            PlainBackend::Memory(backend) => backend.commit(batches, durability).await,
            PlainBackend::Embedded(backend) => backend.commit(batches, durability).await,
        }
    }

    async fn sync(&self) -> Result<(), Cause> {
        match self {
            PlainBackend::Memory(backend) => backend.sync().await,
            PlainBackend::Embedded(backend) => backend.sync().await,
        }
    }

    fn tend_at(&self) -> Option<Instant> {
        match self {
            PlainBackend::Memory(backend) => backend.tend_at(),
            PlainBackend::Embedded(backend) => backend.tend_at(),
        }
    }

    fn tend(&self) {
        match self {
            PlainBackend::Memory(backend) => backend.tend(),
            PlainBackend::Embedded(backend) => backend.tend(),
        }
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        match self {
            PlainBackend::Memory(backend) => backend.ingest(space, rows).await,
            PlainBackend::Embedded(backend) => backend.ingest(space, rows).await,
        }
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        match self {
            PlainBackend::Memory(backend) => backend.room(),
            PlainBackend::Embedded(backend) => backend.room(),
        }
    }

    async fn reopen(&self) -> Result<(), Cause> {
        match self {
            PlainBackend::Memory(backend) => backend.reopen().await,
            PlainBackend::Embedded(backend) => backend.reopen().await,
        }
    }

    async fn close(&self) -> Result<(), Cause> {
        match self {
            PlainBackend::Memory(backend) => backend.close().await,
            PlainBackend::Embedded(backend) => backend.close().await,
        }
    }

    fn disk_bytes(&self) -> u64 {
        match self {
            PlainBackend::Memory(backend) => backend.disk_bytes(),
            PlainBackend::Embedded(backend) => backend.disk_bytes(),
        }
    }

    fn memory_use(&self) -> StoreMemory {
        match self {
            PlainBackend::Memory(backend) => backend.memory_use(),
            PlainBackend::Embedded(backend) => backend.memory_use(),
        }
    }
}
