//! The backend on disk: one fjall database with one keyspace per space.
//!
//! Knows the engine's behaviour, but nothing of lanes, requirements or pending ingests.
//!
//! ```text
//! data folder   LOCK     held while a process has the store open
//!               FORMAT   version, list of spaces, which files must exist (format.rs)
//!               SYNCED   how far the journals were synced (synced.rs)
//!               engine/  files of the engine
//! ```

mod copy;
mod engine;
mod flushed;
mod folder;
mod format;
mod frames;
mod ingest;
mod inspect;
mod inventory;
mod journal;
mod marker;
mod memtables;
mod quiet;
mod repair;
mod rotation;
mod synced;
mod table;
mod tear;
mod write;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use fjall::Readable;
use tokio::sync::Semaphore;

use crate::backend::{DiskSpace, StoreMemory};
use crate::batch::{Durability, RowChange, SPACES_MAX, Space, SpaceOptions};
use crate::commit::WORK_TIMEOUT;
use crate::fault::{Cause, OpenFault, ReadFault};
use crate::rows::RowStore;
use crate::view::{Chunk, ChunkBuilder, Direction, Parts, Scan, ScanLimit};

pub use copy::StoreCopy;
pub use repair::{JournalCut, Repair, repair};
pub(crate) use table::damaged_table;

use engine::StorageEngine;
use folder::Folder;
use format::JournalEntry;
use ingest::ingest_now;
use synced::Synced;

/// Default size of the block cache, in bytes.
const CACHE_BYTES_DEFAULT: u64 = 128 << 20;

/// Default limit of memtable bytes: as many as the journals hold.
const MEMTABLE_BYTES_DEFAULT: u64 = 256 << 20;

/// Default free-space reserve that growing commits must leave: twice the bound of the journals. Bytes that memtables
/// and merges have yet to write are counted in addition.
const FREE_SPACE_RESERVE_BYTES_DEFAULT: u64 = 2 * engine::JOURNAL_BYTES_MAX;

/// Default number of tables whose files are kept open: within the usual system limit of open files.
const OPEN_TABLES_DEFAULT: usize = 900;

/// Default delay after a sync until the synced length of the journal is recorded.
const SYNC_RECORD_INTERVAL_DEFAULT: Duration = Duration::from_millis(100);

/// Lowest accepted number of open tables.
const OPEN_TABLES_MIN: usize = 10;

/// A scan up to this limit runs on its caller: it costs less than a switch to another thread, and no more than the
/// point reads that run there anyway.
const INLINE_SCAN: ScanLimit = ScanLimit { rows: 128, bytes: 64 << 10 };

/// Concurrent scans on other threads; further ones wait.
const SCANS_AT_ONCE: usize = 8;

/// How long a check of the store's files is reused.
const PRESENCE_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Longest time a reopen waits for running reads.
const READERS_TIMEOUT: Duration = Duration::from_secs(5);

/// Where and how to open a store on disk.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Folder of the store; created if absent.
    pub path: PathBuf,
    /// The spaces, in their fixed order.
    pub spaces: Vec<SpaceOptions>,
    /// Size of the block cache, in bytes.
    pub cache_bytes: u64,
    /// Bytes of rows in memtables. At three quarters they are flushed into tables; at the limit commits wait for the
    /// flush.
    pub memtable_bytes: u64,
    /// Free bytes of the disk that growing commits must leave.
    pub free_space_reserve_bytes: u64,
    /// Tables whose files are kept open; others are opened for each read.
    pub open_tables_max: usize,
    /// Delay after a sync until the synced length of the journal is recorded in a separate file. A journal that is
    /// truncated after that is not mistaken for one with a torn last write.
    pub sync_record_interval: Duration,
    /// Whether a torn store ([`OpenFault::Torn`]) is opened too: to inspect a copy of it, not to serve it.
    pub accepts_torn: bool,
}

impl EmbeddedOptions {
    /// Options with the default bounds.
    pub fn new(path: impl Into<PathBuf>, spaces: &[SpaceOptions]) -> EmbeddedOptions {
        EmbeddedOptions {
            path: path.into(),
            spaces: spaces.to_vec(),
            cache_bytes: CACHE_BYTES_DEFAULT,
            memtable_bytes: MEMTABLE_BYTES_DEFAULT,
            free_space_reserve_bytes: FREE_SPACE_RESERVE_BYTES_DEFAULT,
            open_tables_max: OPEN_TABLES_DEFAULT,
            sync_record_interval: SYNC_RECORD_INTERVAL_DEFAULT,
            accepts_torn: false,
        }
    }
}

/// A store on disk.
pub(crate) struct Embedded {
    options: EmbeddedOptions,
    /// The open engine; a reopen replaces it.
    opened: ArcSwap<Opened>,
    /// Held by writers to the engine's tables or journal, so that the bytes an ingest flushes are never ahead of the
    /// journal. Not held while the engine is retired, which waits for ingests.
    writing: Arc<Mutex<()>>,
    scans: Arc<Semaphore>,
    /// The thread that creates the keyspaces of a new store, from its start until it is joined.
    preparation: Mutex<Option<JoinHandle<()>>>,
    /// Whether that thread was started or is not needed.
    is_prepared: AtomicBool,
    /// When the store's files were last checked.
    presence_seen_at: Mutex<Option<Instant>>,
    folder: Arc<Folder>,
}

/// One open engine. Points hold this, not the engine itself: the engine closes its files only when its last handle is
/// dropped, and a reopen cannot wait for idle readers.
struct Opened {
    engine: ArcSwapOption<StorageEngine>,
    /// Whether the engine was closed for good rather than reopened.
    closed: AtomicBool,
}

/// A snapshot of the engine.
#[derive(Clone)]
pub(crate) struct EmbeddedPoint {
    held: Arc<HeldPoint>,
}

struct HeldPoint {
    opened: Arc<Opened>,
    snapshot: fjall::Snapshot,
}

impl Embedded {
    pub(crate) fn open(options: EmbeddedOptions) -> Result<Embedded, OpenFault> {
        let count = options.spaces.len();
        if count > SPACES_MAX {
            return Err(OpenFault::TooManySpaces { count, limit: SPACES_MAX });
        }
        let folder = Arc::new(Folder::open(&options.path, &options.spaces)?);
        let engine = Arc::new(StorageEngine::open(&folder, &options)?);
        Ok(Embedded {
            options,
            preparation: Mutex::default(),
            is_prepared: AtomicBool::new(engine.is_complete()),
            opened: ArcSwap::from_pointee(Opened::new(engine)),
            writing: Arc::default(),
            scans: Arc::new(Semaphore::new(SCANS_AT_ONCE)),
            presence_seen_at: Mutex::default(),
            folder,
        })
    }

    /// Fails if the store's files were removed. Checked at a bounded rate.
    fn check_presence(&self) -> Result<(), Cause> {
        let mut seen_at = self.presence_seen_at.lock().unwrap_or_else(PoisonError::into_inner);
        if seen_at.is_none_or(|seen_at| seen_at.elapsed() >= PRESENCE_CHECK_INTERVAL) {
            self.folder.check_presence()?;
            *seen_at = Some(Instant::now());
        }
        Ok(())
    }

    fn engine(&self) -> Result<Arc<StorageEngine>, Cause> {
        self.opened.load().engine().map_err(Cause::new)
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the keyspaces of a new store on a separate thread, concurrently with the first commits; if that fails,
    /// later commits create them. Started after the first commit, which would otherwise wait for all of them: the
    /// engine creates one at a time, and the start of a server waits for that commit.
    fn prepare(&self, engine: &Arc<StorageEngine>) {
        if self.is_prepared.swap(true, Ordering::Relaxed) {
            return;
        }
        let engine = Arc::clone(engine);
        let make = move || {
            if let Err(cause) = engine.make_all() {
                tracing::warn!(event = "keyspaces_delayed", %cause, "keyspaces could not be created ahead of their first use");
            }
        };
        let thread = thread::Builder::new().name("kv-spaces".to_owned()).spawn(make).ok();
        *self.preparation.lock().unwrap_or_else(PoisonError::into_inner) = thread;
    }

    fn finish_preparation(&self) {
        let preparation = self.preparation.lock().unwrap_or_else(PoisonError::into_inner).take();
        preparation.map(JoinHandle::join);
    }

    /// Takes the engine from the readers and waits for running reads.
    fn retire_engine(&self) -> Result<(), Cause> {
        self.finish_preparation();
        let Some(mut engine) = self.opened.load().engine.swap(None) else {
            return Ok(());
        };
        let deadline = Instant::now() + READERS_TIMEOUT;
        loop {
            match Arc::try_unwrap(engine) {
                Ok(engine) => {
                    drop(engine);
                    return Ok(());
                }
                Err(_) if Instant::now() > deadline => {
                    // Its files are closed by the last reader; until then the engine's lock blocks a new open.
                    return Err(Cause::new("running reads did not end in time"));
                }
                Err(shared) => {
                    engine = shared;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    fn reopen_now(&self) -> Result<(), Cause> {
        self.retire_engine()?;
        let engine =
            StorageEngine::reopen_after_failed_sync(&self.folder, &self.options).map_err(Cause::new)?;
        self.opened.store(Arc::new(Opened::new(Arc::new(engine))));
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.finish_preparation();
    }
}

impl Opened {
    fn new(engine: Arc<StorageEngine>) -> Opened {
        Opened { engine: ArcSwapOption::new(Some(engine)), closed: AtomicBool::new(false) }
    }

    fn engine(&self) -> Result<Arc<StorageEngine>, ReadFault> {
        self.engine.load_full().ok_or_else(|| self.why_gone())
    }

    fn why_gone(&self) -> ReadFault {
        if self.closed.load(Ordering::Acquire) { ReadFault::Closed } else { ReadFault::Poisoned }
    }
}

impl EmbeddedPoint {
    /// Whether the engine it was taken from is still open.
    pub(crate) fn is_live(&self) -> bool {
        self.held.opened.engine.load().is_some()
    }

    /// Runs a read if the engine is still open. A space without a keyspace is empty.
    fn read<T: Default>(
        &self,
        space: Space,
        read: impl FnOnce(&fjall::Snapshot, &fjall::Keyspace) -> Result<T, fjall::Error>,
    ) -> Result<T, ReadFault> {
        let opened = &self.held.opened;
        let engine = opened.engine.load();
        let engine = engine.as_ref().ok_or_else(|| opened.why_gone())?;
        let Some(keyspace) = engine.keyspace(space)? else {
            return Ok(T::default());
        };
        read(&self.held.snapshot, keyspace).map_err(|error| engine::read_fault(space, error))
    }

    fn scan_now(&self, space: Space, scan: Scan) -> Result<Chunk, ReadFault> {
        let Scan { range, direction, limit, parts } = scan;
        let range = marker::hide(range);
        self.read(space, |snapshot, keyspace| {
            if range.is_empty() {
                return Ok(Chunk::default());
            }
            let mut rows = match range.end {
                Some(end) => snapshot.range(keyspace, range.start..end),
                None => snapshot.range(keyspace, range.start..),
            };
            let mut builder = ChunkBuilder::new(limit);
            loop {
                let row = match direction {
                    Direction::Forward => rows.next(),
                    Direction::Backward => rows.next_back(),
                };
                let Some(row) = row else {
                    return Ok(builder.finish());
                };
                let (key, value) = match parts {
                    Parts::Rows => row.into_inner()?,
                    Parts::Keys => (row.key()?, Default::default()),
                };
                if !builder.push(key.into(), value.into()) {
                    return Ok(builder.finish());
                }
            }
        })
    }
}

fn get_now(
    snapshot: &fjall::Snapshot,
    keyspace: &fjall::Keyspace,
    key: &[u8],
) -> Result<Option<Bytes>, fjall::Error> {
    if marker::is_hidden(key) {
        return Ok(None);
    }
    Ok(snapshot.get(keyspace, key)?.map(Bytes::from))
}

impl RowStore for Embedded {
    type Point = EmbeddedPoint;

    async fn point(&self) -> Result<EmbeddedPoint, ReadFault> {
        let opened = self.opened.load_full();
        let snapshot = opened.engine()?.snapshot();
        Ok(EmbeddedPoint { held: Arc::new(HeldPoint { opened, snapshot }) })
    }

    async fn get(&self, point: &EmbeddedPoint, space: Space, key: &[u8]) -> Result<Option<Bytes>, ReadFault> {
        point.read(space, |snapshot, keyspace| get_now(snapshot, keyspace, key))
    }

    async fn get_many(
        &self,
        point: &EmbeddedPoint,
        space: Space,
        keys: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, ReadFault> {
        let mut values: Vec<_> = point.read(space, |snapshot, keyspace| {
            keys.iter().map(|key| get_now(snapshot, keyspace, key)).collect()
        })?;
        // Nothing was ever written to this space.
        values.resize(keys.len(), None);
        Ok(values)
    }

    async fn scan(&self, point: &EmbeddedPoint, space: Space, scan: Scan) -> Result<Chunk, ReadFault> {
        let limit = scan.limit;
        let is_small = limit.rows <= INLINE_SCAN.rows && limit.bytes <= INLINE_SCAN.bytes;
        // Without a runtime, as on the commit thread, blocking is fine.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return point.scan_now(space, scan);
        };
        if is_small {
            return point.scan_now(space, scan);
        }
        let (scans, point) = (Arc::clone(&self.scans), point.clone());
        let scanned = async move {
            let permit = scans.acquire_owned().await;
            let scan = runtime.spawn_blocking(move || {
                let _permit = permit;
                point.scan_now(space, scan)
            });
            scan.await.unwrap_or(Err(ReadFault::Closed))
        };
        // A disk that does not answer keeps the thread and its scan permit, but does not block the caller.
        tokio::time::timeout(WORK_TIMEOUT, scanned).await.unwrap_or_else(|_| {
            let cause = Cause::new(format_args!("no answer within {} seconds", WORK_TIMEOUT.as_secs()));
            Err(ReadFault::Io { space, kind: io::ErrorKind::TimedOut, cause })
        })
    }

    async fn commit(&self, batches: Vec<Vec<RowChange>>, durability: Durability) -> Result<(), Cause> {
        let _writing = self.write();
        let engine = self.engine()?;
        engine.commit(batches, durability)?;
        self.prepare(&engine);
        Ok(())
    }

    async fn sync(&self) -> Result<(), Cause> {
        let _writing = self.write();
        self.engine()?.sync()
    }

    fn maintenance_due_at(&self) -> Option<Instant> {
        self.engine().ok().and_then(|engine| engine.maintenance_due_at())
    }

    fn maintain(&self) {
        let _writing = self.write();
        if let Ok(engine) = self.engine() {
            engine.maintain();
        }
    }

    async fn ingest(&self, space: Space, rows: Vec<(Bytes, Bytes)>) -> Result<(), Cause> {
        let (engine, writing) = (self.engine()?, Arc::clone(&self.writing));
        let ingest = tokio::task::spawn_blocking(move || ingest_now(&engine, &writing, space, rows));
        ingest.await.unwrap_or_else(|error| Err(Cause::new(error)))
    }

    fn disk_space(&self) -> Result<Option<DiskSpace>, Cause> {
        self.check_presence()?;
        let reserve_bytes = self.options.free_space_reserve_bytes;
        match fs4::available_space(&self.options.path) {
            Ok(free_bytes) => {
                let promised_bytes = self.engine().map_or(0, |engine| engine.bytes_to_write());
                Ok(Some(DiskSpace { free_bytes: free_bytes.saturating_sub(promised_bytes), reserve_bytes }))
            }
            Err(error) => {
                tracing::warn!(event = "free_space_unknown", %error, "the free space of the disk cannot be read");
                Ok(None)
            }
        }
    }

    async fn reopen(&self) -> Result<(), Cause> {
        self.reopen_now()
    }

    async fn close(&self) -> Result<(), Cause> {
        let flushed = self.engine().and_then(|engine| engine.flush_all());
        self.opened.load().closed.store(true, Ordering::Release);
        self.retire_engine()?;
        flushed?;
        // Everything is in tables, so the next start need not read the journals.
        let number = journal::replace_all(&self.folder.engine()).map_err(Cause::new)?;
        Synced::new([(number, 0)]).replace(self.folder.path()).map_err(Cause::new)?;
        self.folder.record_journal(JournalEntry { number, first_commit: None }).map_err(Cause::new)
    }

    fn disk_bytes(&self) -> u64 {
        self.engine().map_or(0, |engine| engine.disk_bytes())
    }

    fn memory_use(&self) -> StoreMemory {
        self.engine().map(|engine| engine.memory_use()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::KeyRange;

    /// Hanging scans hold all permits; later scans used to wait for ever.
    #[tokio::test(start_paused = true)]
    #[allow(clippy::unwrap_used)] // a failed expectation ends the test
    async fn a_scan_that_gets_no_answer_ends() {
        let folder = tempfile::TempDir::new().unwrap();
        let options =
            EmbeddedOptions::new(folder.path(), &[SpaceOptions { name: "records", compressed: false }]);
        let embedded = Embedded::open(options).unwrap();
        let places = u32::try_from(SCANS_AT_ONCE).unwrap();
        let hanging = Arc::clone(&embedded.scans).acquire_many_owned(places).await.unwrap();
        let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let range = KeyRange::all();
        let scan = Scan { range, direction: Direction::Forward, limit, parts: Parts::Rows };
        let point = embedded.point().await.unwrap();
        let ended =
            tokio::time::timeout(2 * WORK_TIMEOUT, embedded.scan(&point, Space(0), scan.clone())).await;
        let ended = ended.expect("the scan waits on").unwrap_err();
        assert!(matches!(ended, ReadFault::Io { kind: io::ErrorKind::TimedOut, .. }), "{ended}");
        drop(hanging);
        assert_eq!(embedded.scan(&point, Space(0), scan).await, Ok(Chunk::default()));
    }
}
