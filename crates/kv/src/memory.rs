//! Rows in memory: every row keeps the versions that some reader can still see.
//!
//! Knows nothing of durability. Every call completes without waiting, which deterministic simulations need.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use std::time::Instant;

use bytes::Bytes;

use crate::backend::{DiskSpace, StoreMemory};
use crate::batch::{Durability, OWN_SPACE, RowChange, Space};
use crate::fault::{Cause, ReadFault};
use crate::rows::RowStore;
use crate::view::{Chunk, ChunkBuilder, Direction, Parts, Scan};

/// Approximate bytes of one version in addition to its key and value.
const VERSION_OVERHEAD_BYTES: u64 = 64;

pub(crate) struct Memory {
    state: RwLock<VersionedRows>,
    points: Arc<OpenPoints>,
    /// Number of reopens.
    generation: Arc<AtomicU64>,
}

/// All versions of all rows.
struct VersionedRows {
    /// The spaces in order, the internal one last.
    spaces: Vec<BTreeMap<Bytes, Vec<RowVersion>>>,
    /// Number of the newest commit.
    sequence: u64,
    /// Rows with a version that can be dropped once no reader is older than the given commit, oldest first.
    stale: VecDeque<(u64, usize, Bytes)>,
    size_bytes: u64,
    closed: bool,
}

/// Value of a row after one commit; `None` is its absence.
struct RowVersion {
    sequence: u64,
    value: Option<Bytes>,
}

/// The commits that readers use, with the number of readers.
#[derive(Default)]
struct OpenPoints(Mutex<BTreeMap<u64, usize>>);

/// The commit of a reader.
#[derive(Clone)]
pub(crate) struct MemoryPoint(Arc<HeldPoint>);

struct HeldPoint {
    sequence: u64,
    points: Arc<OpenPoints>,
    generation: u64,
    generation_now: Arc<AtomicU64>,
}

impl MemoryPoint {
    /// Whether the store was not reopened since. The rows still exist after a reopen, but a reader that continued with
    /// them would never see the outcome of an uncertain commit.
    pub(crate) fn is_live(&self) -> bool {
        self.0.generation == self.0.generation_now.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<(), ReadFault> {
        if self.is_live() { Ok(()) } else { Err(ReadFault::Poisoned) }
    }
}

impl Memory {
    /// An empty store with `space_count` spaces.
    pub(crate) fn new(space_count: usize) -> Memory {
        Memory::with_rows(vec![BTreeMap::new(); space_count + 1])
    }

    /// A store with the given rows: one map per space, the internal one last.
    pub(crate) fn with_rows(spaces: Vec<BTreeMap<Bytes, Bytes>>) -> Memory {
        let mut state = VersionedRows {
            spaces: spaces.iter().map(|_| BTreeMap::new()).collect(),
            sequence: 0,
            stale: VecDeque::new(),
            size_bytes: 0,
            closed: false,
        };
        for (index, rows) in spaces.into_iter().enumerate() {
            for (key, value) in rows {
                state.apply_at(index, key, Some(value));
            }
        }
        Memory { state: RwLock::new(state), points: Arc::default(), generation: Arc::default() }
    }

    fn read(&self) -> RwLockReadGuard<'_, VersionedRows> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, VersionedRows> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowStore for Memory {
    type Point = MemoryPoint;

    async fn point(&self) -> Result<MemoryPoint, ReadFault> {
        let state = self.read();
        if state.closed {
            return Err(ReadFault::Closed);
        }
        // Registered while the state is locked, so that no commit can drop versions that the point sees.
        *self.points.lock().entry(state.sequence).or_default() += 1;
        let points = Arc::clone(&self.points);
        Ok(MemoryPoint(Arc::new(HeldPoint {
            sequence: state.sequence,
            points,
            generation: self.generation.load(Ordering::Acquire),
            generation_now: Arc::clone(&self.generation),
        })))
    }

    async fn get(&self, point: &MemoryPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        point.check()?;
        let state = self.read();
        let rows = state.rows(space)?;
        Ok(rows.get(key).and_then(|versions| value_at(versions, point.0.sequence)))
    }

    async fn get_many(
        &self,
        point: &MemoryPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        point.check()?;
        let state = self.read();
        let rows = state.rows(space)?;
        let value = |key| rows.get(key).and_then(|versions| value_at(versions, point.0.sequence));
        Ok(keys.iter().map(value).collect())
    }

    async fn scan(
        &self,
        point: &MemoryPoint,
        space: Space,
        Scan { range, direction, limit, parts }: Scan,
    ) -> Result<Chunk, ReadFault> {
        point.check()?;
        let state = self.read();
        let end = range.end.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = state.rows(space)?.range((Bound::Included(range.start), end));
        let visible = rows.filter_map(|(key, versions)| {
            let value = value_at(versions, point.0.sequence)?;
            Some((key.clone(), if parts == Parts::Keys { Bytes::new() } else { value }))
        });
        let mut builder = ChunkBuilder::new(limit);
        match direction {
            Direction::Forward => fill(&mut builder, visible),
            Direction::Backward => fill(&mut builder, visible.rev()),
        }
        Ok(builder.finish())
    }

    async fn commit(&self, batches: Vec<Vec<RowChange>>, _durability: Durability) -> Result<(), Cause> {
        let mut state = self.write();
        if state.closed {
            return Err(Cause::new("the store is closed"));
        }
        state.sequence += 1;
        for change in batches.into_iter().flatten() {
            state.apply(change);
        }
        let oldest_seen = self.points.oldest().unwrap_or(state.sequence);
        state.drop_stale(oldest_seen);
        Ok(())
    }

    async fn sync(&self) -> Result<(), Cause> {
        Ok(())
    }

    fn maintenance_due_at(&self) -> Option<Instant> {
        None
    }

    fn maintain(&self) {}

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        let put = |(key, value)| RowChange { space, key, value: Some(value) };
        self.commit(vec![rows.into_iter().map(put).collect()], Durability::Sync).await
    }

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        Ok(None)
    }

    async fn reopen(&self) -> Result<(), Cause> {
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    async fn close(&self) -> Result<(), Cause> {
        self.write().closed = true;
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        self.read().size_bytes
    }

    fn memory_use(&self) -> StoreMemory {
        StoreMemory::default()
    }
}

impl VersionedRows {
    fn rows(&self, space: Space) -> Result<&BTreeMap<Bytes, Vec<RowVersion>>, ReadFault> {
        if self.closed {
            return Err(ReadFault::Closed);
        }
        self.index(space).map(|index| &self.spaces[index]).ok_or(ReadFault::UnknownSpace { space })
    }

    fn index(&self, space: Space) -> Option<usize> {
        let own = self.spaces.len() - 1;
        match space {
            OWN_SPACE => Some(own),
            Space(number) => Some(usize::from(number)).filter(|index| *index < own),
        }
    }

    /// Applies one change. Unknown spaces are refused earlier.
    fn apply(&mut self, change: RowChange) {
        let index = self.index(change.space);
        debug_assert!(index.is_some(), "space {:?} should have been refused", change.space);
        if let Some(index) = index {
            self.apply_at(index, change.key, change.value);
        }
    }

    /// Appends a version to a row.
    fn apply_at(&mut self, index: usize, key: Bytes, value: Option<Bytes>) {
        let sequence = self.sequence;
        let versions = self.spaces[index].entry(key.clone()).or_default();
        self.size_bytes += version_bytes(&key, &value);
        match versions.last_mut() {
            Some(last) if last.sequence == sequence => {
                self.size_bytes -= version_bytes(&key, &last.value);
                last.value = value;
            }
            Some(_) | None => versions.push(RowVersion { sequence, value }),
        }
        // A first version with a value supersedes nothing.
        let is_stale = versions.len() > 1 || versions.first().is_some_and(|version| version.value.is_none());
        if is_stale {
            self.stale.push_back((sequence, index, key));
        }
    }

    /// Drops the versions that no reader at `oldest_seen` or later can see.
    fn drop_stale(&mut self, oldest_seen: u64) {
        while let Some((sequence, index, key)) = self.stale.pop_front() {
            if sequence > oldest_seen {
                self.stale.push_front((sequence, index, key));
                return;
            }
            let Some(versions) = self.spaces[index].get_mut(&key) else {
                continue;
            };
            let seen = versions.partition_point(|version| version.sequence <= oldest_seen);
            for dropped in versions.drain(..seen.saturating_sub(1)) {
                self.size_bytes -= version_bytes(&key, &dropped.value);
            }
            if let [RowVersion { value: None, .. }] = versions.as_slice() {
                self.size_bytes -= version_bytes(&key, &None);
                self.spaces[index].remove(&key);
            }
        }
    }
}

fn version_bytes(key: &Bytes, value: &Option<Bytes>) -> u64 {
    (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64 + VERSION_OVERHEAD_BYTES
}

fn value_at(versions: &[RowVersion], sequence: u64) -> Option<Bytes> {
    let version = versions.iter().rev().find(|version| version.sequence <= sequence)?;
    version.value.clone()
}

fn fill(builder: &mut ChunkBuilder, rows: impl Iterator<Item = (Bytes, Bytes)>) {
    for (key, value) in rows {
        if !builder.push(key, value) {
            return;
        }
    }
}

impl OpenPoints {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn oldest(&self) -> Option<u64> {
        self.lock().keys().next().copied()
    }
}

impl Drop for HeldPoint {
    fn drop(&mut self) {
        let mut points = self.points.lock();
        if let Some(readers) = points.get_mut(&self.sequence) {
            *readers -= 1;
            if *readers == 0 {
                points.remove(&self.sequence);
            }
        }
    }
}
