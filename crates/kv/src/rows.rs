//! What keeps rows: the part of a backend that a group of batches is written to, and the enums that pick one.
//!
//! Knows no engine's inside, and nothing of lanes and requirements: those are judged by `commit`, which stands above and
//! makes a backend of it. An enum, not a type parameter, carries the choice through the crate.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::backend::{Room, StoreMemory};
use crate::batch::{Durability, Operation, Space};
use crate::embedded::{Embedded, EmbeddedPoint};
use crate::fault::{Cause, ReadFault};
use crate::faulty::Faulty;
use crate::memory::{Memory, MemoryPoint};
use crate::view::{Chunk, Direction, KeyRange, ScanLimit};

/// Rows under a backend that commits many batches at once. Requirements, lanes and poison are the business of
/// `commit`.
///
/// `commit`, `sync`, `tend`, `reopen` and `close` are called by one caller at a time, reads and `ingest` by any number.
pub(crate) trait RowStore: Send + Sync + 'static {
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
    /// the outcome open: none of it is visible, and after [`RowStore::reopen`] a prefix of the batches is, each
    /// whole. No further `commit` may come before that.
    fn commit(
        &self,
        batches: Vec<Vec<Operation>>,
        durability: Durability,
    ) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Makes everything committed so far durable. An error is as for `commit`.
    fn sync(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// When [`RowStore::tend`] is next due, if nothing is committed before; `None` if there is nothing to do.
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

    /// Room on the disk; `None` if there is no disk. Fails if the store is no longer there.
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

/// What keeps rows itself.
pub(crate) enum PlainRows {
    Memory(Memory),
    Embedded(Embedded),
}

/// Any of them: one that keeps rows, or such a one under a script of faults. Two layers, since one that may hold
/// itself would have futures that hold themselves.
pub(crate) enum AnyRows {
    Plain(Arc<PlainRows>),
    Faulty(Faulty),
}

/// A point of one of them.
#[derive(Clone)]
pub(crate) enum RowsPoint {
    Memory(MemoryPoint),
    Embedded(EmbeddedPoint),
}

impl RowsPoint {
    /// Whether what it was taken from was neither reopened nor closed since.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            RowsPoint::Memory(point) => point.is_live(),
            RowsPoint::Embedded(point) => point.is_live(),
        }
    }
}

impl From<PlainRows> for AnyRows {
    fn from(backend: PlainRows) -> AnyRows {
        AnyRows::Plain(Arc::new(backend))
    }
}

impl RowStore for AnyRows {
    type Point = RowsPoint;

    async fn point(&self) -> Result<RowsPoint, ReadFault> {
        match self {
            AnyRows::Plain(plain) => plain.point().await,
            AnyRows::Faulty(faulty) => faulty.point().await,
        }
    }

    async fn get(&self, point: &RowsPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        match self {
            AnyRows::Plain(backend) => backend.get(point, space, key).await,
            AnyRows::Faulty(backend) => backend.get(point, space, key).await,
        }
    }

    async fn get_many(
        &self,
        point: &RowsPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        match self {
            AnyRows::Plain(backend) => backend.get_many(point, space, keys).await,
            AnyRows::Faulty(backend) => backend.get_many(point, space, keys).await,
        }
    }

    async fn scan(
        &self,
        point: &RowsPoint,
        space: Space,
        range: KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, ReadFault> {
        match self {
            AnyRows::Plain(backend) => backend.scan(point, space, range, direction, limit).await,
            AnyRows::Faulty(backend) => backend.scan(point, space, range, direction, limit).await,
        }
    }

    async fn commit(&self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        match self {
            AnyRows::Plain(backend) => backend.commit(batches, durability).await,
            AnyRows::Faulty(backend) => backend.commit(batches, durability).await,
        }
    }

    async fn sync(&self) -> Result<(), Cause> {
        match self {
            AnyRows::Plain(backend) => backend.sync().await,
            AnyRows::Faulty(backend) => backend.sync().await,
        }
    }

    fn tend_at(&self) -> Option<Instant> {
        match self {
            AnyRows::Plain(backend) => backend.tend_at(),
            AnyRows::Faulty(backend) => backend.tend_at(),
        }
    }

    fn tend(&self) {
        match self {
            AnyRows::Plain(backend) => backend.tend(),
            AnyRows::Faulty(backend) => backend.tend(),
        }
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        match self {
            AnyRows::Plain(backend) => backend.ingest(space, rows).await,
            AnyRows::Faulty(backend) => backend.ingest(space, rows).await,
        }
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        match self {
            AnyRows::Plain(backend) => backend.room(),
            AnyRows::Faulty(backend) => backend.room(),
        }
    }

    async fn reopen(&self) -> Result<(), Cause> {
        match self {
            AnyRows::Plain(backend) => backend.reopen().await,
            AnyRows::Faulty(backend) => backend.reopen().await,
        }
    }

    async fn close(&self) -> Result<(), Cause> {
        match self {
            AnyRows::Plain(backend) => backend.close().await,
            AnyRows::Faulty(backend) => backend.close().await,
        }
    }

    fn disk_bytes(&self) -> u64 {
        match self {
            AnyRows::Plain(backend) => backend.disk_bytes(),
            AnyRows::Faulty(backend) => backend.disk_bytes(),
        }
    }

    fn memory_use(&self) -> StoreMemory {
        match self {
            AnyRows::Plain(backend) => backend.memory_use(),
            AnyRows::Faulty(backend) => backend.memory_use(),
        }
    }
}

/// Views carry the rows of their point, so the arms for a point of another one are never taken.
impl RowStore for PlainRows {
    type Point = RowsPoint;

    async fn point(&self) -> Result<RowsPoint, ReadFault> {
        match self {
            PlainRows::Memory(memory) => memory.point().await.map(RowsPoint::Memory),
            PlainRows::Embedded(embedded) => embedded.point().await.map(RowsPoint::Embedded),
        }
    }

    async fn get(&self, point: &RowsPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        match (self, point) {
            (PlainRows::Memory(backend), RowsPoint::Memory(point)) => backend.get(point, space, key).await,
            (PlainRows::Embedded(backend), RowsPoint::Embedded(point)) => {
                backend.get(point, space, key).await
            }
            (PlainRows::Memory(_), RowsPoint::Embedded(_))
            | (PlainRows::Embedded(_), RowsPoint::Memory(_)) => Err(ReadFault::Closed),
        }
    }

    async fn get_many(
        &self,
        point: &RowsPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        match (self, point) {
            (PlainRows::Memory(backend), RowsPoint::Memory(point)) => {
                backend.get_many(point, space, keys).await
            }
            (PlainRows::Embedded(backend), RowsPoint::Embedded(point)) => {
                backend.get_many(point, space, keys).await
            }
            (PlainRows::Memory(_), RowsPoint::Embedded(_))
            | (PlainRows::Embedded(_), RowsPoint::Memory(_)) => Err(ReadFault::Closed),
        }
    }

    async fn scan(
        &self,
        point: &RowsPoint,
        space: Space,
        range: KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, ReadFault> {
        match (self, point) {
            (PlainRows::Memory(backend), RowsPoint::Memory(point)) => {
                backend.scan(point, space, range, direction, limit).await
            }
            (PlainRows::Embedded(backend), RowsPoint::Embedded(point)) => {
                backend.scan(point, space, range, direction, limit).await
            }
            (PlainRows::Memory(_), RowsPoint::Embedded(_))
            | (PlainRows::Embedded(_), RowsPoint::Memory(_)) => Err(ReadFault::Closed),
        }
    }

    async fn commit(&self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        match self {
            PlainRows::Memory(backend) => backend.commit(batches, durability).await,
            PlainRows::Embedded(backend) => backend.commit(batches, durability).await,
        }
    }

    async fn sync(&self) -> Result<(), Cause> {
        match self {
            PlainRows::Memory(backend) => backend.sync().await,
            PlainRows::Embedded(backend) => backend.sync().await,
        }
    }

    fn tend_at(&self) -> Option<Instant> {
        match self {
            PlainRows::Memory(backend) => backend.tend_at(),
            PlainRows::Embedded(backend) => backend.tend_at(),
        }
    }

    fn tend(&self) {
        match self {
            PlainRows::Memory(backend) => backend.tend(),
            PlainRows::Embedded(backend) => backend.tend(),
        }
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        match self {
            PlainRows::Memory(backend) => backend.ingest(space, rows).await,
            PlainRows::Embedded(backend) => backend.ingest(space, rows).await,
        }
    }

    fn room(&self) -> Result<Option<Room>, Cause> {
        match self {
            PlainRows::Memory(backend) => backend.room(),
            PlainRows::Embedded(backend) => backend.room(),
        }
    }

    async fn reopen(&self) -> Result<(), Cause> {
        match self {
            PlainRows::Memory(backend) => backend.reopen().await,
            PlainRows::Embedded(backend) => backend.reopen().await,
        }
    }

    async fn close(&self) -> Result<(), Cause> {
        match self {
            PlainRows::Memory(backend) => backend.close().await,
            PlainRows::Embedded(backend) => backend.close().await,
        }
    }

    fn disk_bytes(&self) -> u64 {
        match self {
            PlainRows::Memory(backend) => backend.disk_bytes(),
            PlainRows::Embedded(backend) => backend.disk_bytes(),
        }
    }

    fn memory_use(&self) -> StoreMemory {
        match self {
            PlainRows::Memory(backend) => backend.memory_use(),
            PlainRows::Embedded(backend) => backend.memory_use(),
        }
    }
}
