//! The fjall database: its settings, its commits, and what it must be spared.
//!
//! Knows nothing of who reads or commits, nor of the folder around the engine's own.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, LsmError, OwnedWriteBatch, PersistMode,
};

use super::folder::Folder;
use super::{EmbeddedOptions, journal};
use crate::backend::StoreMemory;
use crate::batch::{Durability, OWN_SPACE, Operation, Space, SpaceOptions};
use crate::fault::{Cause, OpenFault, ReadFault};

/// Bytes of journal after which all memtables are flushed and the journal is replaced. The engine replaces a
/// journal only above 64,000,000 bytes, and only while it flushes.
const JOURNAL_FLUSH_BYTES: u64 = 65_000_000;

/// Bound of all journals together. As a rule there are two: a full one that is being flushed, and its successor
/// filling up. But the engine turns to the successor only when a worker gets to the flush, so on a busy machine
/// either may grow to twice its size.
pub(super) const JOURNAL_BYTES_MAX: u64 = 4 * JOURNAL_FLUSH_BYTES;

/// Bytes that the largest ordinary merge of tables writes before it frees what it read.
pub(super) const MERGE_BYTES_MAX: u64 = 256 << 20;

/// The engine's own bound of all journals; it takes no smaller one.
const ENGINE_JOURNAL_BYTES: u64 = 64 << 20;

/// Size at which the engine flushes a memtable by itself. Full journals flush them earlier, unless rows are so
/// small that the memtable takes twice the room of the journal.
const MEMTABLE_BYTES: u64 = 128_000_000;

const WORKER_THREADS: usize = 2;

/// Bytes that a journal adds to an operation's key and value.
const JOURNAL_OVERHEAD_BYTES: usize = 21;

/// Memtables waiting to be flushed, and tables of the first level waiting to be merged, at which commits wait.
/// Both stay below the figures (4 and 30) at which the engine waits itself: it would wait for ever if its workers
/// have died, we notice.
const SEALED_MEMTABLES_MAX: usize = 3;
const FIRST_LEVEL_TABLES_MAX: usize = 24;
const STALL_LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How long a flush of all memtables may take before it counts as failed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// An open database.
pub(super) struct Engine {
    spaces: Vec<EngineSpace>,
    own: EngineSpace,
    /// Bytes written to the journal since all memtables were flushed.
    journal_bytes: AtomicU64,
    memtable_bytes_max: u64,
    /// Behind the keyspaces, so that it is dropped last.
    database: Database,
}

/// One space and its keyspace, once that exists. Making a keyspace takes several syncs; a new store would be
/// slow to start if it waited for all of them, so each is made by whoever needs it first.
struct EngineSpace {
    name: String,
    compressed: bool,
    keyspace: OnceLock<Keyspace>,
}

impl Engine {
    pub(super) fn open(folder: &Folder, options: &EmbeddedOptions) -> Result<Engine, OpenFault> {
        let path = folder.engine();
        journal::remove_stillborn(&path).map_err(|source| OpenFault::Io { path: path.clone(), source })?;
        journal::check_all(&path)?;
        let started = Engine::start(&path, options);
        started.map_err(|error| OpenFault::Engine { path, cause: Cause::new(error) })
    }

    /// Opens the database after a failed sync. Whatever the journal still yields is moved into new tables, then
    /// the journal is replaced by a new one: nothing rests on pages whose writing failed once, since the system
    /// may have dropped them while it still shows them to readers.
    pub(super) fn reopen_past_doubt(folder: &Folder, options: &EmbeddedOptions) -> Result<Engine, OpenFault> {
        let engine = Engine::open(folder, options)?;
        let path = folder.engine();
        engine.flush_all().map_err(|cause| OpenFault::Engine { path: path.clone(), cause })?;
        drop(engine);
        journal::replace_all(&path).map_err(|source| OpenFault::Io { path, source })?;
        Engine::open(folder, options)
    }

    fn start(path: &Path, options: &EmbeddedOptions) -> Result<Engine, fjall::Error> {
        let database = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(ENGINE_JOURNAL_BYTES)
            .worker_threads(WORKER_THREADS)
            .journal_compression(CompressionType::None)
            .open()?;
        // Names of spaces stand behind a letter, so that none can clash with the store's own.
        let space = |space: &SpaceOptions| EngineSpace::new(format!("s-{}", space.name), space.compressed);
        let engine = Engine {
            spaces: options.spaces.iter().map(space).collect(),
            own: EngineSpace::new("own".to_owned(), false),
            journal_bytes: AtomicU64::new(journal::live_bytes(path)?),
            memtable_bytes_max: options.memtable_bytes,
            database,
        };
        for space in engine.all_spaces() {
            if engine.database.keyspace_exists(&space.name) {
                engine.make(space)?;
            }
        }
        Ok(engine)
    }

    /// Whether every space has its keyspace.
    pub(super) fn is_complete(&self) -> bool {
        self.all_spaces().all(|space| space.keyspace.get().is_some())
    }

    /// Makes the keyspaces that do not exist yet, so that no commit has to.
    pub(super) fn make_all(&self) -> Result<(), Cause> {
        self.all_spaces().try_for_each(|space| self.make(space).map(drop)).map_err(Cause::new)
    }

    /// The keyspace of a space; `None` if nothing was ever written to it.
    pub(super) fn keyspace(&self, space: Space) -> Result<Option<&Keyspace>, ReadFault> {
        Ok(self.space(space)?.keyspace.get())
    }

    /// The keyspace of a space, made if need be.
    pub(super) fn keyspace_to_write(&self, space: Space) -> Result<&Keyspace, Cause> {
        let space = self.space(space).map_err(Cause::new)?;
        self.make(space).map_err(Cause::new)
    }

    pub(super) fn snapshot(&self) -> fjall::Snapshot {
        self.database.snapshot()
    }

    /// One engine commit. The engine writes the journal, syncs it, and only then shows the rows. Of two operations
    /// on one key the later wins: both carry the number of the commit, and the memtable keeps the last.
    pub(super) fn commit(&self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        // Both before anything is written: if they fail, nothing of the commit can be seen.
        self.wait_for_workers()?;
        self.turn_full_journal()?;
        self.flush_full_memtables()?;
        let count = batches.iter().map(Vec::len).sum();
        // The size of the file is covered by either kind of sync, as it is needed to find the data; what fsync
        // adds, times and such, nobody reads.
        let persist = match durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Buffered => PersistMode::Buffer,
        };
        let commit = OwnedWriteBatch::with_capacity(self.database.clone(), count);
        let mut commit = commit.durability(Some(persist));
        let mut size_bytes = 0;
        for operation in batches.into_iter().flatten() {
            size_bytes += operation.size_bytes() + JOURNAL_OVERHEAD_BYTES;
            let keyspace = self.keyspace_to_write(operation.space)?;
            match operation.value {
                Some(value) => commit.insert(keyspace, operation.key, value),
                None => commit.remove(keyspace, operation.key),
            }
        }
        commit.commit().map_err(Cause::new)?;
        self.journal_bytes.fetch_add(size_bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), Cause> {
        self.database.persist(PersistMode::SyncData).map_err(Cause::new)
    }

    /// Flushes every memtable into tables and waits for it. Afterwards the journals hold nothing that matters.
    pub(super) fn flush_all(&self) -> Result<(), Cause> {
        self.sync()?;
        self.rotate_memtables()?;
        self.wait_for_flush()
    }

    /// Bytes of tables and of what the journal holds; the engine's own figure counts what journals may hold.
    pub(super) fn disk_bytes(&self) -> u64 {
        let tables: u64 = self.keyspaces().map(|keyspace| keyspace.disk_space()).sum();
        tables + self.journal_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn memory_use(&self) -> StoreMemory {
        StoreMemory {
            memtable_bytes: self.database.write_buffer_size(),
            blocks_bytes: self.database.cache_size(),
        }
    }

    fn all_spaces(&self) -> impl Iterator<Item = &EngineSpace> {
        self.spaces.iter().chain([&self.own])
    }

    fn keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.all_spaces().filter_map(|space| space.keyspace.get())
    }

    fn space(&self, space: Space) -> Result<&EngineSpace, ReadFault> {
        match space {
            OWN_SPACE => Ok(&self.own),
            Space(number) => self.spaces.get(usize::from(number)).ok_or(ReadFault::UnknownSpace { space }),
        }
    }

    /// Makes or opens the keyspace of a space. Two who do so at once get the same one from the engine.
    fn make<'a>(&self, space: &'a EngineSpace) -> Result<&'a Keyspace, fjall::Error> {
        match space.keyspace.get() {
            Some(keyspace) => Ok(keyspace),
            None => {
                let keyspace = self.database.keyspace(&space.name, || settings(space.compressed))?;
                Ok(space.keyspace.get_or_init(|| keyspace))
            }
        }
    }

    /// Has all memtables flushed if the journal is full. The engine would only flush a memtable that is full by
    /// itself: a space with few writes would keep every journal since its first write, and many spaces with some
    /// writes each would let one journal grow without a bound.
    fn turn_full_journal(&self) -> Result<(), Cause> {
        if self.journal_bytes.load(Ordering::Relaxed) < JOURNAL_FLUSH_BYTES {
            return Ok(());
        }
        // The journal before this one goes when its memtables are flushed; a third would break the bound.
        self.wait_for_flush()?;
        self.rotate_memtables()
    }

    /// Has all memtables flushed if they use half of their memory, and waits if they use all of it. The journal stays
    /// as it is: the engine replaces only a full one.
    fn flush_full_memtables(&self) -> Result<(), Cause> {
        let used = self.database.write_buffer_size();
        if used < self.memtable_bytes_max / 2 {
            return Ok(());
        }
        let is_flushing = self.keyspaces().any(|keyspace| keyspace.sealed_memtable_count() > 0);
        if is_flushing && used < self.memtable_bytes_max {
            return Ok(());
        }
        self.wait_for_flush()?;
        self.seal_memtables()
    }

    fn rotate_memtables(&self) -> Result<(), Cause> {
        self.journal_bytes.store(0, Ordering::Relaxed);
        self.seal_memtables()
    }

    fn seal_memtables(&self) -> Result<(), Cause> {
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable().map_err(Cause::new)?;
        }
        Ok(())
    }

    /// Waits until no memtable waits to be flushed.
    fn wait_for_flush(&self) -> Result<(), Cause> {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        while self.keyspaces().any(|keyspace| keyspace.sealed_memtable_count() > 0) {
            self.check_workers()?;
            if Instant::now() > deadline {
                return Err(Cause::new("the engine did not flush its memtables in time"));
            }
            std::thread::sleep(STALL_LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Waits until the engine's workers have caught up.
    fn wait_for_workers(&self) -> Result<(), Cause> {
        let is_behind = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
                || keyspace.l0_table_count() >= FIRST_LEVEL_TABLES_MAX
        };
        while self.keyspaces().any(is_behind) {
            self.check_workers()?;
            std::thread::sleep(STALL_LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Fails if a worker of the engine has died, for then it takes no commit any more.
    fn check_workers(&self) -> Result<(), Cause> {
        self.database.persist(PersistMode::Buffer).map_err(Cause::new)
    }
}

impl EngineSpace {
    fn new(name: String, compressed: bool) -> EngineSpace {
        EngineSpace { name, compressed, keyspace: OnceLock::new() }
    }
}

/// Settings of a space. They are fixed when it is created.
///
/// The engine's own choice of filters (on every level, so that an absent row costs a fifth of a present one), of
/// pinned blocks (the first levels) and of block size stand: with all filters and indexes pinned, unpartitioned,
/// or with hash tables in the blocks, point reads were faster by no more than two measurements of the same differ,
/// and pinned blocks are not counted against the cache.
fn settings(compressed: bool) -> KeyspaceCreateOptions {
    // The first two levels are rewritten soon, and hold what is read most.
    let compression = if compressed {
        CompressionPolicy::new([CompressionType::None, CompressionType::None, CompressionType::Lz4])
    } else {
        CompressionPolicy::disabled()
    };
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_compression_policy(compression)
}

/// Sorts an engine's error by what a reader can do about it.
pub(super) fn read_fault(space: Space, error: fjall::Error) -> ReadFault {
    if let fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) = &error {
        return ReadFault::Io { space, kind: error.kind(), cause: Cause::new(error) };
    }
    ReadFault::Damaged { space, cause: Cause::new(error) }
}
