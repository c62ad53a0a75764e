//! Row stores: where a backend writes a group of batches, and the enum that selects one.
//!
//! Knows no engine internals, and nothing of lanes and requirements: `commit` handles those and makes a backend of a
//! row store. An enum, not a type parameter, carries the choice through the crate.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::backend::{DiskSpace, StoreMemory};
use crate::batch::{Durability, RowChange, Space};
use crate::commit::CommitMode;
use crate::embedded::{Embedded, EmbeddedPoint};
use crate::fault::{Cause, ReadFault};
use crate::faulty::Faulty;
use crate::memory::{Memory, MemoryPoint};
use crate::script::FaultScript;
use crate::view::{Chunk, Scan};

/// Rows under a backend that commits many batches at once. `commit` handles requirements, lanes and poisoning.
///
/// `commit`, `sync`, `maintain`, `reopen` and `close` are called by one caller at a time, reads and `ingest` by any number.
pub(crate) trait RowStore: Send + Sync + 'static {
    /// A readable snapshot. Cheap to clone.
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
        scan: Scan,
    ) -> impl Future<Output = Result<Chunk, ReadFault>> + Send;

    /// Applies the changes of several batches in order and makes them visible together.
    ///
    /// On success they are as durable as requested; `Sync` also covers everything committed before. After an error the
    /// outcome is unknown: none of it is visible, and after [`RowStore::reopen`] a prefix of the batches is, each
    /// complete. No further `commit` may come before that.
    fn commit(
        &self,
        batches: Vec<Vec<RowChange>>,
        durability: Durability,
    ) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Makes everything committed so far durable. An error is as for `commit`.
    fn sync(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// When [`RowStore::maintain`] is next due if nothing is committed before; `None` if there is nothing to do.
    fn maintenance_due_at(&self) -> Option<Instant>;

    /// Runs small maintenance work that no commit waits for. Never called concurrently with `commit` or `sync`.
    fn maintain(&self);

    /// Adds rows in strictly ascending key order, durable on return. They may be visible at once; callers must not read
    /// them before they are named (see [`crate::Store::ingest`]). After an error any of them may be present, and the
    /// store must be reopened.
    fn ingest(
        &self,
        space: Space,
        rows: Vec<(Bytes, Bytes)>,
    ) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Free space on the disk; `None` if there is no disk. Fails if the store was removed.
    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause>;

    /// Closes the engine and opens it again, such that nothing depends on files whose sync failed. Points taken before
    /// stay valid or fail with [`ReadFault::Poisoned`].
    fn reopen(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Makes everything durable and closes the files. Every later call fails.
    fn close(&self) -> impl Future<Output = Result<(), Cause>> + Send;

    /// Bytes the store takes on disk or, without a disk, in memory.
    fn disk_bytes(&self) -> u64;

    /// Bytes that the store takes in memory.
    fn memory_use(&self) -> StoreMemory;
}

/// Any row store, alone or under a fault script.
pub(crate) enum AnyRows {
    Memory(Arc<Memory>),
    Embedded(Arc<Embedded>),
    FaultyMemory(Faulty<Memory>),
    FaultyEmbedded(Faulty<Embedded>),
}

/// A snapshot of any row store.
#[derive(Clone)]
pub(crate) enum RowsPoint {
    Memory(MemoryPoint),
    Embedded(EmbeddedPoint),
}

impl RowsPoint {
    /// Whether its row store was neither reopened nor closed since.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            RowsPoint::Memory(point) => point.is_live(),
            RowsPoint::Embedded(point) => point.is_live(),
        }
    }
}

impl From<Memory> for AnyRows {
    fn from(memory: Memory) -> AnyRows {
        AnyRows::Memory(Arc::new(memory))
    }
}

impl From<Embedded> for AnyRows {
    fn from(embedded: Embedded) -> AnyRows {
        AnyRows::Embedded(Arc::new(embedded))
    }
}

impl AnyRows {
    /// The same rows under a fault script, which replaces an earlier one.
    pub(crate) fn under(&self, script: FaultScript, space_count: usize, mode: CommitMode) -> AnyRows {
        let over_memory =
            |memory: &Arc<Memory>| Faulty::over_memory(Arc::clone(memory), space_count, mode, script.clone());
        let over_disk = |embedded: &Arc<Embedded>| Faulty::over_disk(Arc::clone(embedded), script.clone());
        match self {
            AnyRows::Memory(memory) => AnyRows::FaultyMemory(over_memory(memory)),
            AnyRows::Embedded(embedded) => AnyRows::FaultyEmbedded(over_disk(embedded)),
            AnyRows::FaultyMemory(faulty) => AnyRows::FaultyMemory(over_memory(faulty.inner())),
            AnyRows::FaultyEmbedded(faulty) => AnyRows::FaultyEmbedded(over_disk(faulty.inner())),
        }
    }
}

/// Calls a method of the selected row store.
macro_rules! on_rows {
    ($self:expr, $rows:ident => $call:expr) => {
        match $self {
            AnyRows::Memory($rows) => $call,
            AnyRows::Embedded($rows) => $call,
            AnyRows::FaultyMemory($rows) => $call,
            AnyRows::FaultyEmbedded($rows) => $call,
        }
    };
}

/// The same for a method that reads at a point. A view holds the rows of its point, so the arms for mismatched points
/// are never taken.
macro_rules! at_point {
    ($self:expr, $point:expr, ($rows:ident, $at:ident) => $call:expr) => {
        match ($self, $point) {
            (AnyRows::Memory($rows), RowsPoint::Memory($at)) => $call,
            (AnyRows::Embedded($rows), RowsPoint::Embedded($at)) => $call,
            (AnyRows::FaultyMemory($rows), RowsPoint::Memory($at)) => $call,
            (AnyRows::FaultyEmbedded($rows), RowsPoint::Embedded($at)) => $call,
            (AnyRows::Memory(_) | AnyRows::FaultyMemory(_), RowsPoint::Embedded(_))
            | (AnyRows::Embedded(_) | AnyRows::FaultyEmbedded(_), RowsPoint::Memory(_)) => {
                Err(ReadFault::Closed)
            }
        }
    };
}

impl RowStore for AnyRows {
    type Point = RowsPoint;

    async fn point(&self) -> Result<RowsPoint, ReadFault> {
        match self {
            AnyRows::Memory(memory) => memory.point().await.map(RowsPoint::Memory),
            AnyRows::Embedded(embedded) => embedded.point().await.map(RowsPoint::Embedded),
            AnyRows::FaultyMemory(faulty) => faulty.point().await.map(RowsPoint::Memory),
            AnyRows::FaultyEmbedded(faulty) => faulty.point().await.map(RowsPoint::Embedded),
        }
    }

    async fn get(&self, point: &RowsPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        at_point!(self, point, (rows, at) => rows.get(at, space, key).await)
    }

    async fn get_many(
        &self,
        point: &RowsPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        at_point!(self, point, (rows, at) => rows.get_many(at, space, keys).await)
    }

    async fn scan(&self, point: &RowsPoint, space: Space, scan: Scan) -> Result<Chunk, ReadFault> {
        at_point!(self, point, (rows, at) => rows.scan(at, space, scan).await)
    }

    async fn commit(&self, batches: Vec<Vec<RowChange>>, durability: Durability) -> Result<(), Cause> {
        on_rows!(self, rows => rows.commit(batches, durability).await)
    }

    async fn sync(&self) -> Result<(), Cause> {
        on_rows!(self, rows => rows.sync().await)
    }

    fn maintenance_due_at(&self) -> Option<Instant> {
        on_rows!(self, rows => rows.maintenance_due_at())
    }

    fn maintain(&self) {
        on_rows!(self, rows => rows.maintain());
    }

    async fn ingest(&self, space: Space, new: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        on_rows!(self, rows => rows.ingest(space, new).await)
    }

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        on_rows!(self, rows => rows.disk_space())
    }

    async fn reopen(&self) -> Result<(), Cause> {
        on_rows!(self, rows => rows.reopen().await)
    }

    async fn close(&self) -> Result<(), Cause> {
        on_rows!(self, rows => rows.close().await)
    }

    fn disk_bytes(&self) -> u64 {
        on_rows!(self, rows => rows.disk_bytes())
    }

    fn memory_use(&self) -> StoreMemory {
        on_rows!(self, rows => rows.memory_use())
    }
}
