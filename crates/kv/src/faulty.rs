//! A wrapper of a row store that fails where its script says.
//!
//! Over memory it also tracks what a disk would hold: the durable rows, and the commits after them that are not synced
//! yet. A crash creates a new store from these.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Instant;

use bytes::Bytes;

use crate::backend::{DiskSpace, StoreMemory};
use crate::batch::{Durability, OWN_SPACE, RowChange, Space};
use crate::commit::{CommitMode, block_on};
use crate::embedded::Embedded;
use crate::fault::{Cause, ReadFault};
use crate::ingest;
use crate::memory::Memory;
use crate::rows::{AnyRows, RowStore};
use crate::script::{FaultScript, InjectedFault, StorageCall};
use crate::store::{Store, THREAD_STARTS};
use crate::view::{Chunk, Direction, KeyRange, Parts, Scan, ScanLimit};

/// Free-space reserve of a disk whose free space the script decides.
const SCRIPTED_RESERVE_BYTES: u64 = 1 << 20;

/// A row store under a fault script.
pub(crate) struct Faulty<R> {
    inner: Arc<R>,
    script: FaultScript,
    image: Option<Arc<DurableImage>>,
    /// Batches of a failed commit that a reopen will make visible.
    uncertain: Mutex<Vec<Vec<RowChange>>>,
}

/// Content of the simulated disk of a store in memory.
pub(crate) struct DurableImage {
    mode: CommitMode,
    disk: Mutex<Disk>,
    crashed: AtomicBool,
}

struct Disk {
    /// Durable rows: one map per space, the internal one last.
    spaces: Vec<BTreeMap<Bytes, Bytes>>,
    /// Batches that are committed and not yet synced, in order.
    unsynced: Vec<Vec<RowChange>>,
}

impl Faulty<Memory> {
    /// Over memory, with a simulated disk.
    pub(crate) fn over_memory(
        inner: Arc<Memory>,
        space_count: usize,
        mode: CommitMode,
        script: FaultScript,
    ) -> Faulty<Memory> {
        let image = Arc::new(DurableImage::of(&inner, space_count, mode));
        script.watch(Arc::clone(&image));
        Faulty { inner, script, image: Some(image), uncertain: Mutex::default() }
    }
}

impl Faulty<Embedded> {
    /// Over a disk. Crashes cannot be simulated there.
    pub(crate) fn over_disk(inner: Arc<Embedded>, script: FaultScript) -> Faulty<Embedded> {
        Faulty { inner, script, image: None, uncertain: Mutex::default() }
    }
}

impl<R: RowStore> Faulty<R> {
    /// The wrapped row store.
    pub(crate) fn inner(&self) -> &Arc<R> {
        &self.inner
    }

    fn has_crashed(&self) -> bool {
        self.image.as_ref().is_some_and(|image| image.crashed.load(Ordering::Acquire))
    }

    fn strike_read(&self, space: Space) -> Result<(), ReadFault> {
        if self.has_crashed() {
            return Err(ReadFault::Closed);
        }
        let cause = Cause::new("the script says so");
        match self.script.next_fault(StorageCall::Read) {
            None => Ok(()),
            Some(InjectedFault::Damage) => Err(ReadFault::Damaged { space, cause }),
            Some(
                InjectedFault::Fail
                | InjectedFault::FailSync
                | InjectedFault::Tear { .. }
                | InjectedFault::DropUnsynced,
            ) => Err(ReadFault::Io { space, kind: io::ErrorKind::Other, cause }),
        }
    }

    /// The fault of a writing call. Fails if the store has crashed.
    fn write_fault(&self, call: StorageCall) -> Result<Option<InjectedFault>, Cause> {
        if self.has_crashed() {
            return Err(Cause::new("the store has crashed"));
        }
        Ok(self.script.next_fault(call))
    }

    fn uncertain(&self) -> MutexGuard<'_, Vec<Vec<RowChange>>> {
        self.uncertain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reopens the inner row store with the durable rows only.
    async fn reopen_without_unsynced(&self, image: &DurableImage) -> Result<(), Cause> {
        self.uncertain().clear();
        self.inner.reopen().await?;
        self.inner.commit(vec![image.drop_unsynced()], Durability::Sync).await
    }

    /// Applies batches to the inner row store and to the simulated disk.
    async fn apply(&self, batches: Vec<Vec<RowChange>>, durability: Durability) -> Result<(), Cause> {
        if let Some(image) = &self.image {
            image.commit(&batches, durability);
        }
        self.inner.commit(batches, durability).await
    }
}

impl<R: RowStore> RowStore for Faulty<R> {
    type Point = R::Point;

    async fn point(&self) -> Result<R::Point, ReadFault> {
        if self.has_crashed() {
            return Err(ReadFault::Closed);
        }
        self.inner.point().await
    }

    async fn get(&self, point: &R::Point, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        self.strike_read(space)?;
        self.inner.get(point, space, key).await
    }

    async fn get_many(
        &self,
        point: &R::Point,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        self.strike_read(space)?;
        self.inner.get_many(point, space, keys).await
    }

    async fn scan(&self, point: &R::Point, space: Space, scan: Scan) -> Result<Chunk, ReadFault> {
        self.strike_read(space)?;
        self.inner.scan(point, space, scan).await
    }

    async fn commit(&self, mut batches: Vec<Vec<RowChange>>, durability: Durability) -> Result<(), Cause> {
        let survive = match self.write_fault(StorageCall::Commit)? {
            None => return self.apply(batches, durability).await,
            Some(InjectedFault::Fail | InjectedFault::Damage | InjectedFault::DropUnsynced) => 0,
            Some(InjectedFault::FailSync) => batches.len(),
            Some(InjectedFault::Tear { survive }) => survive,
        };
        batches.truncate(survive);
        if let Some(image) = &self.image {
            image.commit(&batches, Durability::Buffered);
        }
        *self.uncertain() = batches;
        Err(Cause::new(format_args!("the script says so, {survive} batches survive")))
    }

    async fn sync(&self) -> Result<(), Cause> {
        if self.write_fault(StorageCall::Commit)?.is_some() {
            return Err(Cause::new("the script says so"));
        }
        if let Some(image) = &self.image {
            image.commit(&[], Durability::Sync);
        }
        self.inner.sync().await
    }

    fn maintenance_due_at(&self) -> Option<Instant> {
        self.inner.maintenance_due_at()
    }

    fn maintain(&self) {
        self.inner.maintain();
    }

    async fn ingest(&self, space: Space, mut rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        let fault = self.write_fault(StorageCall::Ingest)?;
        match fault {
            None => {}
            Some(
                InjectedFault::Fail
                | InjectedFault::FailSync
                | InjectedFault::Damage
                | InjectedFault::DropUnsynced,
            ) => {
                rows.clear();
            }
            Some(InjectedFault::Tear { survive }) => rows.truncate(survive),
        }
        if let Some(image) = &self.image {
            image.ingest(space, &rows);
        }
        self.inner.ingest(space, rows).await?;
        if fault.is_some() { Err(Cause::new("the script says so")) } else { Ok(()) }
    }

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        // Never ample, so that the next commit checks again and follows the script at once.
        let scripted = self.script.disk_full().map(|full| DiskSpace {
            free_bytes: if full { 0 } else { SCRIPTED_RESERVE_BYTES },
            reserve_bytes: SCRIPTED_RESERVE_BYTES,
        });
        if scripted.is_some() { Ok(scripted) } else { self.inner.disk_space() }
    }

    async fn reopen(&self) -> Result<(), Cause> {
        match (self.write_fault(StorageCall::Reopen)?, &self.image) {
            (None, _) => {}
            (Some(InjectedFault::DropUnsynced), Some(image)) => {
                return self.reopen_without_unsynced(image).await;
            }
            (Some(_), _) => return Err(Cause::new("the script says so")),
        }
        self.inner.reopen().await?;
        let survivors = std::mem::take(&mut *self.uncertain());
        if let Some(image) = &self.image {
            // The surviving batches are in the image since their commit; the reopen rewrites and syncs them.
            image.commit(&[], Durability::Sync);
        }
        if survivors.is_empty() {
            return Ok(());
        }
        self.inner.commit(survivors, Durability::Sync).await
    }

    async fn close(&self) -> Result<(), Cause> {
        if let Some(image) = &self.image {
            image.commit(&[], Durability::Sync);
        }
        self.inner.close().await
    }

    fn disk_bytes(&self) -> u64 {
        self.inner.disk_bytes()
    }

    fn memory_use(&self) -> StoreMemory {
        self.inner.memory_use()
    }
}

impl DurableImage {
    /// The image of a store in memory in its current state, all of it durable.
    fn of(backend: &Memory, space_count: usize, mode: CommitMode) -> DurableImage {
        let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let everything =
            Scan { range: KeyRange::all(), direction: Direction::Forward, limit, parts: Parts::Rows };
        let rows = |space| {
            let point = block_on(backend.point()).ok()?;
            let scan = backend.scan(&point, space, everything.clone());
            block_on(scan).ok().map(|chunk| chunk.rows.into_iter().collect())
        };
        let numbers = (0..u8::MAX).take(space_count).map(Space).chain([OWN_SPACE]);
        let spaces = numbers.map(|space| rows(space).unwrap_or_default()).collect();
        let disk = Mutex::new(Disk { spaces, unsynced: Vec::new() });
        DurableImage { mode, disk, crashed: AtomicBool::new(false) }
    }

    pub(crate) fn unsynced_count(&self) -> usize {
        self.lock().unsynced.len()
    }

    /// Drops the unsynced batches and returns the changes that restore the durable values of their rows.
    fn drop_unsynced(&self) -> Vec<RowChange> {
        let mut disk = self.lock();
        let unsynced = std::mem::take(&mut disk.unsynced);
        let undo = |change: RowChange| {
            let value = disk.spaces[disk.index(change.space)].get(&change.key).cloned();
            RowChange { value, ..change }
        };
        unsynced.into_iter().flatten().map(undo).collect()
    }

    /// Creates a new store from the durable rows and the first `kept` unsynced batches.
    pub(crate) fn restart(&self, kept: usize, script: &FaultScript) -> Store {
        self.crashed.store(true, Ordering::Release);
        let mut disk = self.lock();
        let unsynced = std::mem::take(&mut disk.unsynced);
        disk.apply(unsynced.into_iter().take(kept));
        let spaces = std::mem::take(&mut disk.spaces);
        let space_count = spaces.len() - 1;
        let memory = AnyRows::from(Memory::with_rows(spaces));
        let prepared = block_on(async {
            ingest::remove_unnamed(&memory).await?;
            ingest::last_number(&memory).await
        });
        let last_ingest = prepared.expect("memory without a script does not fail");
        let store = Store::grouped(memory, space_count, last_ingest, self.mode).expect(THREAD_STARTS);
        Store::faulty(store, script.clone())
    }

    fn commit(&self, batches: &[Vec<RowChange>], durability: Durability) {
        let mut disk = self.lock();
        disk.unsynced.extend_from_slice(batches);
        if durability == Durability::Sync {
            let synced = std::mem::take(&mut disk.unsynced);
            disk.apply(synced);
        }
    }

    fn ingest(&self, space: Space, rows: &[(Bytes, Bytes)]) {
        let put =
            |(key, value): &(Bytes, Bytes)| RowChange { space, key: key.clone(), value: Some(value.clone()) };
        self.lock().apply([rows.iter().map(put).collect()]);
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    fn index(&self, space: Space) -> usize {
        if space == OWN_SPACE { self.spaces.len() - 1 } else { usize::from(space.0) }
    }

    fn apply(&mut self, batches: impl IntoIterator<Item = Vec<RowChange>>) {
        for change in batches.into_iter().flatten() {
            let index = self.index(change.space);
            let rows = &mut self.spaces[index];
            match change.value {
                Some(value) => rows.insert(change.key, value),
                None => rows.remove(&change.key),
            };
        }
    }
}
