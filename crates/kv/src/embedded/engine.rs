//! The fjall database: its settings, its commits, and workarounds for its limits.
//!
//! Knows nothing of who reads or commits, nor of the store's folder outside the engine's.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use fjall::config::CompressionPolicy;
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode,
};

use super::folder::Folder;
use super::frames::UNSYNCED_KEY;
use super::rotation::Rotation;
use super::synced::SyncRecorder;
use super::write::EngineWrite;
use super::{EmbeddedOptions, OPEN_TABLES_MIN, inspect, journal, quiet};
use crate::backend::StoreMemory;
use crate::batch::{Durability, OWN_SPACE, RowChange, Space, SpaceOptions};
use crate::fault::{Cause, OpenFault, ReadFault};

/// Journal bytes after which all memtables are flushed and the journal is rotated. The engine rotates a journal only
/// above 64,000,000 bytes, and only during a flush.
pub(super) const JOURNAL_FLUSH_BYTES: u64 = 65_000_000;

/// Bound of all journals together. Usually there are two: a full one that is being flushed and its successor. The
/// engine switches to the successor only when a worker reaches the flush, so on a busy machine either may grow to twice
/// its size.
pub(super) const JOURNAL_BYTES_MAX: u64 = 4 * JOURNAL_FLUSH_BYTES;

/// Bytes that the largest ordinary merge of tables writes before it frees its inputs.
const MERGE_BYTES_MAX: u64 = 256 << 20;

/// The engine's own limit of the journals that wait for a flush. Above it the engine seals the memtables of all spaces
/// at once. A full journal is below it, so its spaces are flushed one after the other.
const ENGINE_JOURNAL_BYTES: u64 = JOURNAL_BYTES_MAX;

/// Size at which the engine flushes a memtable by itself. Full journals cause earlier flushes, unless rows are so small
/// that the memtable takes twice the space of the journal.
const MEMTABLE_BYTES: u64 = 128_000_000;

/// Threads that flush and merge. The engine reserves the first one for flushes: while all others merge, it takes every
/// merge request from the queue and puts it back at once, in a busy loop. With two threads that happened during every
/// merge and took a fifth of all profile samples; with three it takes 3 %, because one of the two merging threads is
/// nearly always free.
const WORKER_THREADS: usize = 3;

/// Concurrent merges: the flush thread does not merge.
const MERGES_MAX: u64 = WORKER_THREADS as u64 - 1;

/// Longest time a flush of all memtables may take before it counts as failed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest time commits wait for workers that make no progress. The engine's flush queue can stall after a crash; a
/// reopen fills it again.
const WORKERS_TIMEOUT: Duration = Duration::from_secs(60);

/// Worker threads of the engine and their timeouts.
#[derive(Clone, Copy)]
pub(super) struct Workers {
    count: usize,
    /// Longest time without progress.
    pub(super) timeout: Duration,
    /// Longest time a flush of all memtables may take.
    pub(super) flush_timeout: Duration,
}

impl Workers {
    const DEFAULT: Workers =
        Workers { count: WORKER_THREADS, timeout: WORKERS_TIMEOUT, flush_timeout: FLUSH_TIMEOUT };
}

/// Memory overhead of a row in a memtable: the node that links it, and the allocator's rounding.
const MEMTABLE_OVERHEAD_PERCENT: u64 = 30;

/// Memory overhead of a cached block: blocks are a little larger than a power of two, and rounded up.
const BLOCK_OVERHEAD_PERCENT: u64 = 20;

/// An open database with its accounting of journal and memtable bytes.
pub(super) struct StorageEngine {
    /// The spaces of the store, then the internal one.
    spaces: Arc<[EngineSpace]>,
    /// Bytes written to the journal since the last flush of all memtables began.
    pub(super) journal_bytes: AtomicU64,
    /// Bytes written to the memtables since the last flush of all of them began.
    pub(super) written_bytes: AtomicU64,
    pub(super) memtable_bytes_max: u64,
    /// Bytes of the memtables when that flush began.
    pub(super) flushing_bytes: AtomicU64,
    /// Bytes written to the journal since the last sync.
    unsynced_bytes: AtomicU64,
    recorder: Mutex<SyncRecorder>,
    /// Number of journals when the newest was last recorded.
    pub(super) journal_count: AtomicUsize,
    /// Whether the newest journal is recorded at the next sync.
    pub(super) journal_is_due: AtomicBool,
    /// Lowest number of the newest journal once the engine has rotated the last full one.
    pub(super) journal_awaited: AtomicU64,
    pub(super) workers: Workers,
    pub(super) folder: Arc<Folder>,
    pub(super) rotation: Rotation,
    /// Declared after everything that holds keyspaces, so that it is dropped last.
    pub(super) database: Database,
}

/// One space and its keyspace, once that exists. Creating a keyspace takes several syncs. To keep the start of a new
/// store fast, each is created on first use.
pub(super) struct EngineSpace {
    pub(super) name: String,
    compressed: bool,
    pub(super) keyspace: OnceLock<Keyspace>,
}

impl StorageEngine {
    pub(super) fn open(folder: &Arc<Folder>, options: &EmbeddedOptions) -> Result<StorageEngine, OpenFault> {
        StorageEngine::open_with(folder, options, Workers::DEFAULT)
    }

    fn open_with(
        folder: &Arc<Folder>,
        options: &EmbeddedOptions,
        workers: Workers,
    ) -> Result<StorageEngine, OpenFault> {
        let path = folder.engine();
        let fault = |source| OpenFault::Io { path: path.clone(), source };
        let format = folder.format();
        if !format.has_data() {
            journal::remove_incomplete(&path).map_err(fault)?;
        }
        let synced = folder.synced()?;
        let mut tables = inspect::check(folder, &synced)?;
        if options.accepts_torn {
            tables.clear();
        }
        let found = journal::check_all(&path, &format, &synced, &tables)?;
        let recorder = SyncRecorder::start(folder.path(), &path, found, options.sync_record_interval);
        let recorder = recorder.map_err(fault)?;
        let started =
            quiet::catch(|| StorageEngine::start(folder, options, workers, recorder).map_err(Cause::new));
        let engine = started.map_err(|cause| OpenFault::Engine { path: path.clone(), cause })?;
        engine.check_inventory()?;
        engine.record_inventory().map_err(fault)?;
        Ok(engine)
    }

    /// Opens the database after a failed sync. The readable rows of the journal are moved into new tables, then the
    /// journal is replaced by a new one. Nothing may depend on pages whose write failed once: the system may have
    /// dropped them while it still shows them to readers.
    pub(super) fn reopen_after_failed_sync(
        folder: &Arc<Folder>,
        options: &EmbeddedOptions,
    ) -> Result<StorageEngine, OpenFault> {
        let engine = StorageEngine::open(folder, options)?;
        let path = folder.engine();
        engine.flush_all().map_err(|cause| OpenFault::Engine { path: path.clone(), cause })?;
        drop(engine);
        journal::replace_all(&path).map_err(|source| OpenFault::Io { path, source })?;
        StorageEngine::open(folder, options)
    }

    fn start(
        folder: &Arc<Folder>,
        options: &EmbeddedOptions,
        workers: Workers,
        recorder: SyncRecorder,
    ) -> Result<StorageEngine, fjall::Error> {
        let path = folder.engine();
        let database = Database::builder(&path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(ENGINE_JOURNAL_BYTES)
            .max_cached_files(Some(options.open_tables_max.max(OPEN_TABLES_MIN)))
            .worker_threads_unchecked(workers.count)
            .journal_compression(CompressionType::None)
            .open()?;
        // Space names get a prefix, so that none can clash with the internal one.
        let space = |space: &SpaceOptions| EngineSpace::new(format!("s-{}", space.name), space.compressed);
        let own = EngineSpace::new("own".to_owned(), false);
        let live_bytes = journal::live_bytes(&path)?;
        let engine = StorageEngine {
            spaces: options.spaces.iter().map(space).chain([own]).collect(),
            journal_bytes: AtomicU64::new(live_bytes),
            written_bytes: AtomicU64::new(live_bytes),
            memtable_bytes_max: options.memtable_bytes,
            flushing_bytes: AtomicU64::new(0),
            unsynced_bytes: AtomicU64::new(0),
            recorder: Mutex::new(recorder),
            journal_count: AtomicUsize::new(0),
            journal_is_due: AtomicBool::new(true),
            journal_awaited: AtomicU64::new(0),
            workers,
            folder: Arc::clone(folder),
            rotation: Rotation::default(),
            database,
        };
        for space in engine.spaces.iter() {
            if engine.database.keyspace_exists(&space.name) {
                let keyspace = engine.database.keyspace(&space.name, || settings(space.compressed))?;
                space.keyspace.get_or_init(|| keyspace);
            }
        }
        Ok(engine)
    }

    /// Whether every space has its keyspace.
    pub(super) fn is_complete(&self) -> bool {
        self.spaces.iter().all(|space| space.keyspace.get().is_some())
    }

    /// Creates the missing keyspaces, so that no commit has to.
    pub(super) fn make_all(&self) -> Result<(), Cause> {
        self.spaces.iter().try_for_each(|space| self.make(space).map(drop)).map_err(Cause::new)
    }

    /// The keyspace of a space; `None` if nothing was ever written to it.
    pub(super) fn keyspace(&self, space: Space) -> Result<Option<&Keyspace>, ReadFault> {
        Ok(self.space(space)?.keyspace.get())
    }

    /// The keyspace of a space, created if necessary.
    pub(super) fn keyspace_to_write(&self, space: Space) -> Result<&Keyspace, Cause> {
        let space = self.space(space).map_err(Cause::new)?;
        self.make(space).map_err(Cause::new)
    }

    pub(super) fn snapshot(&self) -> fjall::Snapshot {
        self.database.snapshot()
    }

    /// One engine commit. The engine writes the journal, syncs it, and only then shows the rows. Of two changes of
    /// one key the later wins: both carry the number of the commit, and the memtable keeps the last.
    pub(super) fn commit(&self, batches: Vec<Vec<RowChange>>, durability: Durability) -> Result<(), Cause> {
        // All waits come before the first write: if one fails, nothing of the commit is visible.
        self.wait_for_workers()?;
        self.rotate_full_journal()?;
        self.flush_full_memtables()?;
        let mark = self.mark_unsynced(durability)?;
        let count = batches.iter().map(Vec::len).sum::<usize>() + usize::from(mark.is_some());
        // Both kinds of sync cover the file size, which is needed to find the data. fsync adds only timestamps, which
        // nobody reads.
        let persist = match durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Buffered => PersistMode::Buffer,
        };
        let mut write = EngineWrite::new(self, count, persist);
        batches.into_iter().flatten().chain(mark).try_for_each(|change| write.add(change))?;
        let is_marked = self.rotation.wants_markers();
        if is_marked {
            self.keyspaces().for_each(|keyspace| write.mark(keyspace));
        }
        let size_bytes = write.commit()?;
        if is_marked {
            self.rotation.markers_put();
        }
        self.journal_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        self.written_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        self.recorder().note_appended(size_bytes);
        match durability {
            Durability::Sync => self.record_synced(),
            Durability::Buffered => {
                self.unsynced_bytes.fetch_add(size_bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), Cause> {
        self.database.persist(PersistMode::SyncData).map_err(Cause::new)?;
        self.unsynced_bytes.store(0, Ordering::Relaxed);
        self.record_synced();
        Ok(())
    }

    /// Records the journals in the store's own files. Called when everything in them is synced.
    fn record_synced(&self) {
        self.record_journal();
        self.recorder().record_if_due(&self.folder.engine());
    }

    /// When [`StorageEngine::maintain`] is due if nothing is committed before.
    pub(super) fn maintenance_due_at(&self) -> Option<Instant> {
        let is_synced = self.unsynced_bytes.load(Ordering::Relaxed) == 0;
        self.recorder().due_at().filter(|_| is_synced)
    }

    /// Records the synced length of the journal when no commit has come for a while. Nothing may be written
    /// concurrently.
    pub(super) fn maintain(&self) {
        if self.unsynced_bytes.load(Ordering::Relaxed) == 0 {
            self.recorder().record_if_due(&self.folder.engine());
        }
    }

    fn recorder(&self) -> MutexGuard<'_, SyncRecorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a power failure the journal must show whether a broken commit was torn or damaged. A commit with sync
    /// first makes everything before it durable, so that no page of it can survive without theirs. A commit without
    /// sync stores how many bytes before it are unsynced.
    fn mark_unsynced(&self, durability: Durability) -> Result<Option<RowChange>, Cause> {
        let unsynced_bytes = self.unsynced_bytes.load(Ordering::Relaxed);
        match durability {
            _ if unsynced_bytes == 0 => Ok(None),
            Durability::Sync => self.sync().map(|()| None),
            Durability::Buffered => Ok(Some(RowChange {
                space: OWN_SPACE,
                key: Bytes::from_static(UNSYNCED_KEY),
                value: Some(Bytes::copy_from_slice(&unsynced_bytes.to_le_bytes())),
            })),
        }
    }

    /// Flushes every memtable into tables and waits for it. Afterwards the journals are no longer needed.
    pub(super) fn flush_all(&self) -> Result<(), Cause> {
        self.sync()?;
        self.rotation.stop();
        self.rotate_memtables()?;
        self.wait_for_flush()
    }

    /// Bytes of tables and of used journal space; the engine's own figure counts the allocated journal space.
    pub(super) fn disk_bytes(&self) -> u64 {
        let tables: u64 = self.keyspaces().map(|keyspace| keyspace.disk_space()).sum();
        tables + self.journal_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn memory_use(&self) -> StoreMemory {
        let sizes = self.keyspaces().map(|keyspace| keyspace.tree.active_memtable().size());
        StoreMemory {
            memtable_bytes: with_overhead(self.bytes_in_memtables(), MEMTABLE_OVERHEAD_PERCENT),
            memtable_bytes_largest: sizes.max().unwrap_or(0),
            blocks_bytes: with_overhead(self.database.cache_size(), BLOCK_OVERHEAD_PERCENT)
                + self.pinned_bytes(),
        }
    }

    /// Bytes that the engine has yet to write for committed data: memtables into tables, and the outputs of concurrent
    /// merges before their inputs are freed.
    pub(super) fn bytes_to_write(&self) -> u64 {
        let memtables = self.bytes_in_memtables();
        let tables: u64 = self.keyspaces().map(|keyspace| keyspace.disk_space()).sum();
        memtables + (tables + memtables).min(MERGES_MAX * MERGE_BYTES_MAX)
    }

    /// Bytes of filters and indexes that tables keep in memory outside the cache.
    fn pinned_bytes(&self) -> u64 {
        let pinned = |keyspace: &Keyspace| {
            keyspace.tree.pinned_filter_size() + keyspace.tree.pinned_block_index_size()
        };
        self.keyspaces().map(|keyspace| pinned(keyspace) as u64).sum()
    }

    /// Bytes of all memtables, including those waiting for a flush. While a flush of all is running, those that it has
    /// already written count too.
    pub(super) fn bytes_in_memtables(&self) -> u64 {
        let flushing_bytes = self.flushing_bytes.load(Ordering::Relaxed);
        if self.rotation.is_running() {
            flushing_bytes + self.written_bytes.load(Ordering::Relaxed)
        } else if self.is_flushing() {
            flushing_bytes + self.memtable_bytes()
        } else {
            self.memtable_bytes()
        }
    }

    pub(super) fn is_flushing(&self) -> bool {
        self.rotation.is_running() || self.keyspaces().any(|keyspace| keyspace.sealed_memtable_count() > 0)
    }

    /// Bytes of the active memtables. The engine's own count is not used: it keeps counting memtables that an ingest
    /// has flushed.
    pub(super) fn memtable_bytes(&self) -> u64 {
        self.keyspaces().map(|keyspace| keyspace.tree.active_memtable().size()).sum()
    }

    pub(super) fn all_spaces(&self) -> &Arc<[EngineSpace]> {
        &self.spaces
    }

    pub(super) fn keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.spaces.iter().filter_map(|space| space.keyspace.get())
    }

    fn space(&self, space: Space) -> Result<&EngineSpace, ReadFault> {
        let found = match (space, self.spaces.split_last()) {
            (OWN_SPACE, own) => own.map(|(own, _)| own),
            (Space(number), listed) => listed.and_then(|(_, listed)| listed.get(usize::from(number))),
        };
        found.ok_or(ReadFault::UnknownSpace { space })
    }

    /// Creates or opens the keyspace of a space. Concurrent callers get the same one from the engine.
    fn make<'a>(&self, space: &'a EngineSpace) -> Result<&'a Keyspace, fjall::Error> {
        match space.keyspace.get() {
            Some(keyspace) => Ok(keyspace),
            None => {
                let keyspace = self.database.keyspace(&space.name, || settings(space.compressed))?;
                // Recorded before anything is committed to it: from then on it must exist at every start.
                let number = keyspace.id();
                let index = self.spaces.iter().position(|other| std::ptr::eq(other, space));
                self.folder.record(|format| match index.and_then(|index| format.spaces.get_mut(index)) {
                    Some(entry) => entry.keyspace = Some(number),
                    None => format.own = Some(number),
                })?;
                Ok(space.keyspace.get_or_init(|| keyspace))
            }
        }
    }
}

/// Adds the overhead that the engine does not count.
fn with_overhead(bytes: u64, percent: u64) -> u64 {
    bytes + bytes * percent / 100
}

impl EngineSpace {
    fn new(name: String, compressed: bool) -> EngineSpace {
        EngineSpace { name, compressed, keyspace: OnceLock::new() }
    }
}

/// Settings of a space, fixed when it is created.
///
/// The engine's defaults are kept for filters (on every level, so that an absent row costs a fifth of a present one),
/// pinned blocks (the first levels) and block size. Pinning all filters and indexes, unpartitioned indexes, and hash
/// tables in blocks made point reads faster by no more than the measurement noise, and pinned blocks are not counted
/// against the cache.
fn settings(compressed: bool) -> KeyspaceCreateOptions {
    // The first two levels are rewritten soon and hold the most frequently read rows.
    let compression = if compressed {
        CompressionPolicy::new([CompressionType::None, CompressionType::None, CompressionType::Lz4])
    } else {
        CompressionPolicy::disabled()
    };
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_compression_policy(compression)
}

/// Classifies an engine error by what a reader can do about it.
pub(super) fn read_fault(space: Space, error: fjall::Error) -> ReadFault {
    if let fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) = &error {
        return ReadFault::Io { space, kind: error.kind(), cause: Cause::new(error) };
    }
    ReadFault::Damaged { space, cause: Cause::new(error) }
}

#[cfg(test)]
mod tests {
    use super::super::memtables::SEALED_MEMTABLES_MAX;
    use super::*;
    use std::path::Path;

    const SPACES: [SpaceOptions; 1] = [SpaceOptions { name: "records", compressed: false }];
    const RECORDS: Space = Space(0);

    /// Workers that never run a flush.
    const IDLE_WORKERS: Workers =
        Workers { count: 0, timeout: Duration::from_millis(20), flush_timeout: Duration::from_millis(20) };

    fn put(key: &str, length: usize) -> Vec<Vec<RowChange>> {
        let (key, value) = (Bytes::copy_from_slice(key.as_bytes()), Bytes::from(vec![b'x'; length]));
        vec![vec![RowChange { space: RECORDS, key, value: Some(value) }]]
    }

    fn open(path: &Path, workers: Workers) -> StorageEngine {
        let options = EmbeddedOptions::new(path, &SPACES);
        let folder = Arc::new(Folder::open(path, &SPACES).unwrap());
        StorageEngine::open_with(&folder, &options, workers).unwrap()
    }

    /// Workers that never run a flush, as after the engine has lost the message that requests it.
    #[test]
    fn commits_fail_when_the_workers_do_nothing_and_reopening_heals() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path(), IDLE_WORKERS);
        for number in 0..SEALED_MEMTABLES_MAX {
            engine.commit(put(&number.to_string(), 10), Durability::Sync).unwrap();
            engine.rotate_memtables().unwrap();
        }
        let cause = engine.commit(put("more", 10), Durability::Sync).unwrap_err();
        assert!(cause.to_string().contains("did not catch up"), "{cause}");
        drop(engine);
        let engine = open(folder.path(), Workers::DEFAULT);
        engine.commit(put("more", 10), Durability::Sync).unwrap();
        engine.flush_all().unwrap();
        let keyspace = engine.keyspace(RECORDS).unwrap().unwrap();
        assert_eq!(keyspace.len().unwrap(), SEALED_MEMTABLES_MAX + 1);
    }

    /// Memtables are sealed at three quarters of their memory, and commits continue until the rest is used.
    #[test]
    fn memtables_never_take_more_than_their_memory() {
        const ROW_BYTES: usize = 100_000;
        let folder = tempfile::tempdir().unwrap();
        let mut engine = open(folder.path(), IDLE_WORKERS);
        engine.memtable_bytes_max = 4_000_000;
        let mut sealed_at = None;
        let failed_at = (0..100).find(|number| {
            let failed = engine.commit(put(&number.to_string(), ROW_BYTES), Durability::Sync).is_err();
            if engine.is_flushing() && sealed_at.is_none() {
                sealed_at = Some(*number);
            }
            failed
        });
        // 30 rows are three quarters; the 31st commit seals them, and 10 more fit.
        assert_eq!((sealed_at, failed_at), (Some(30), Some(40)));
        let bytes = engine.bytes_in_memtables();
        assert!((4_000_000..4_200_000).contains(&bytes), "{bytes}");
        // A finished flush frees the same amount again.
        drop(engine);
        let mut engine = open(folder.path(), Workers::DEFAULT);
        engine.memtable_bytes_max = 4_000_000;
        for number in 0..100 {
            engine.commit(put(&number.to_string(), ROW_BYTES), Durability::Sync).unwrap();
            assert!(engine.bytes_in_memtables() < 4_400_000);
        }
    }

    #[test]
    fn memtables_and_merges_count_as_bytes_to_write() {
        const BYTES: u64 = 1 << 20;
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path(), Workers::DEFAULT);
        assert_eq!(engine.bytes_to_write(), 0);
        engine.commit(put("a", 1 << 20), Durability::Sync).unwrap();
        // Once into a table, and once more when that table is merged.
        let before = engine.bytes_to_write();
        assert!((2 * BYTES..3 * BYTES).contains(&before), "{before}");
        engine.flush_all().unwrap();
        let after = engine.bytes_to_write();
        assert!((BYTES..2 * BYTES).contains(&after), "{after}");
    }

    /// The recorded number of unsynced bytes is exact, so that the start of a torn commit is found.
    #[test]
    fn unsynced_bytes_are_those_of_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path(), Workers::DEFAULT);
        let content = || {
            let (_, path) =
                journal::list_if_exists(&engine.folder.engine()).unwrap().into_iter().max().unwrap();
            super::super::frames::content_length(&std::fs::read(path).unwrap()) as u64
        };
        engine.commit(put("synced", 10), Durability::Sync).unwrap();
        let synced = content();
        for length in [0, 1, 5000] {
            engine.commit(put("unsynced", length), Durability::Buffered).unwrap();
            assert_eq!(engine.unsynced_bytes.load(Ordering::Relaxed), content() - synced);
        }
        engine.rotation.want_markers();
        engine.commit(put("marked", 10), Durability::Buffered).unwrap();
        assert_eq!(engine.unsynced_bytes.load(Ordering::Relaxed), content() - synced);
        engine.commit(put("synced", 10), Durability::Sync).unwrap();
        assert_eq!(engine.unsynced_bytes.load(Ordering::Relaxed), 0);
    }
}
