//! The fjall database: its settings, its commits, and what it must be spared.
//!
//! Knows nothing of who reads or commits, nor of the folder around the engine's own.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};

use super::folder::Folder;
use super::{EmbeddedOptions, journal};
use crate::batch::{Durability, OWN_SPACE, Operation, Space, SpaceOptions};
use crate::fault::{Cause, OpenFault, ReadFault};

/// Bytes of journal after which all memtables are flushed and the journal is replaced. The engine replaces a
/// journal only above 64,000,000 bytes, and only while it flushes.
const JOURNAL_FLUSH_BYTES: u64 = 65_000_000;

/// Bound of all journals together: a full one, and its successor filling up while the first is flushed.
pub(super) const JOURNAL_BYTES_MAX: u64 = 2 * JOURNAL_FLUSH_BYTES;

/// Bytes that the largest ordinary merge of tables writes before it frees what it read.
pub(super) const MERGE_BYTES_MAX: u64 = 256 << 20;

/// The engine's own bound of all journals; it takes no smaller one.
const ENGINE_JOURNAL_BYTES: u64 = 64 << 20;

/// Length of a journal that the engine has just made: it is sized ahead, without taking room on the disk.
pub(super) const NEW_JOURNAL_BYTES: u64 = 64 << 20;

const MEMTABLE_BYTES: u64 = 64_000_000;
const WORKER_THREADS: usize = 2;

/// Bytes that a journal adds to an operation's key and value.
const JOURNAL_OVERHEAD_BYTES: usize = 21;

/// Memtables waiting to be flushed, and runs of the first level waiting to be merged, at which commits wait. Both
/// stay below the figures (4 and 30) at which the engine waits itself: it would wait for ever if its workers have
/// died, we notice.
const SEALED_MEMTABLES_MAX: usize = 3;
const FIRST_LEVEL_TABLES_MAX: usize = 24;
const STALL_LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How long a flush of all memtables may take before it counts as failed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// Name of the store's own keyspace; those of spaces carry their names behind a letter, so they cannot clash.
const OWN_KEYSPACE: &str = "own";

/// An open database.
pub(super) struct Engine {
    keyspaces: Vec<Keyspace>,
    own: Keyspace,
    /// Bytes written to the journal since all memtables were flushed.
    journal_bytes: AtomicU64,
    /// Behind the keyspaces, so that it is dropped last.
    database: Database,
}

impl Engine {
    pub(super) fn open(folder: &Folder, options: &EmbeddedOptions) -> Result<Engine, OpenFault> {
        let path = folder.engine();
        journal::remove_stillborn(&path).map_err(|source| OpenFault::Io {
            path: path.clone(),
            source,
        })?;
        Engine::start(&path, options).map_err(|error| OpenFault::Engine {
            path,
            cause: Cause::new(error),
        })
    }

    /// Opens the database after a failed sync. Whatever the journal still yields is moved into new tables, then
    /// the journal is replaced by a new one: nothing rests on pages whose writing failed once, since the system
    /// may have dropped them while it still shows them to readers.
    pub(super) fn reopen_past_doubt(folder: &Folder, options: &EmbeddedOptions) -> Result<Engine, OpenFault> {
        let engine = Engine::open(folder, options)?;
        let path = folder.engine();
        engine.flush_all().map_err(|cause| OpenFault::Engine {
            path: path.clone(),
            cause,
        })?;
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
        let own = database.keyspace(OWN_KEYSPACE, || settings(false))?;
        let open = |space: &SpaceOptions| {
            database.keyspace(&format!("s-{}", space.name), || settings(space.compressed))
        };
        let keyspaces = options.spaces.iter().map(open).collect::<Result<_, _>>()?;
        let journal_bytes = AtomicU64::new(journal::live_bytes(path)?);
        Ok(Engine {
            keyspaces,
            own,
            journal_bytes,
            database,
        })
    }

    pub(super) fn keyspace(&self, space: Space) -> Result<&Keyspace, ReadFault> {
        match space {
            OWN_SPACE => Ok(&self.own),
            Space(number) => self
                .keyspaces
                .get(usize::from(number))
                .ok_or(ReadFault::UnknownSpace { space }),
        }
    }

    pub(super) fn snapshot(&self) -> fjall::Snapshot {
        self.database.snapshot()
    }

    /// One engine commit. The engine writes the journal, syncs it, and only then shows the rows. Of two operations
    /// on one key the later wins: both carry the number of the commit, and the memtable keeps the last.
    pub(super) fn commit(&self, batches: Vec<Vec<Operation>>, durability: Durability) -> Result<(), Cause> {
        self.wait_for_workers()?;
        let count = batches.iter().map(Vec::len).sum();
        // The size of the file is covered by either kind of sync, as it is needed to find the data; what fsync
        // adds, times and such, nobody reads.
        let persist = match durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Buffered => PersistMode::Buffer,
        };
        let mut commit =
            fjall::OwnedWriteBatch::with_capacity(self.database.clone(), count).durability(Some(persist));
        let mut size_bytes = 0;
        for operation in batches.into_iter().flatten() {
            size_bytes += operation.size_bytes() + JOURNAL_OVERHEAD_BYTES;
            let keyspace = self.keyspace(operation.space).map_err(Cause::new)?;
            match operation.value {
                Some(value) => commit.insert(keyspace, operation.key, value),
                None => commit.remove(keyspace, operation.key),
            }
        }
        commit.commit().map_err(Cause::new)?;
        self.count_journal(size_bytes as u64)
    }

    pub(super) fn sync(&self) -> Result<(), Cause> {
        self.database.persist(PersistMode::SyncData).map_err(Cause::new)
    }

    /// Flushes every memtable into tables and waits for it. Afterwards the journals hold nothing that matters.
    pub(super) fn flush_all(&self) -> Result<(), Cause> {
        self.sync()?;
        self.rotate_memtables()?;
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        while self
            .all_keyspaces()
            .any(|keyspace| keyspace.sealed_memtable_count() > 0)
        {
            self.check_workers()?;
            if Instant::now() > deadline {
                return Err(Cause::new("the engine did not flush its memtables in time"));
            }
            std::thread::sleep(STALL_LOOK_INTERVAL);
        }
        Ok(())
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.database.disk_space().unwrap_or(0)
    }

    fn all_keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.keyspaces.iter().chain([&self.own])
    }

    /// Counts what went into the journal and has all memtables flushed when it is full. The engine would only
    /// flush a memtable that is full by itself: a space with few writes would keep every journal since its first
    /// write, and many spaces with some writes each would let one journal grow without a bound.
    fn count_journal(&self, size_bytes: u64) -> Result<(), Cause> {
        let total = self.journal_bytes.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes;
        if total < JOURNAL_FLUSH_BYTES {
            return Ok(());
        }
        self.rotate_memtables()
    }

    fn rotate_memtables(&self) -> Result<(), Cause> {
        self.journal_bytes.store(0, Ordering::Relaxed);
        for keyspace in self.all_keyspaces() {
            keyspace.rotate_memtable().map_err(Cause::new)?;
        }
        Ok(())
    }

    /// Waits until the engine's workers have caught up.
    fn wait_for_workers(&self) -> Result<(), Cause> {
        let is_behind = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
                || keyspace.l0_table_count() >= FIRST_LEVEL_TABLES_MAX
        };
        while self.all_keyspaces().any(is_behind) {
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

/// Settings of a space. They are fixed when it is created.
fn settings(compressed: bool) -> KeyspaceCreateOptions {
    // The first two levels are rewritten soon, and hold what is read most.
    let compression = if compressed {
        CompressionPolicy::new([CompressionType::None, CompressionType::None, CompressionType::Lz4])
    } else {
        CompressionPolicy::disabled()
    };
    let filter = |policy| FilterPolicyEntry::Bloom(policy);
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_compression_policy(compression)
        .filter_policy(FilterPolicy::new([
            filter(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
            filter(BloomConstructionPolicy::BitsPerKey(10.0)),
        ]))
        .index_block_pinning_policy(PinningPolicy::new([true, true, false]))
        .filter_block_pinning_policy(PinningPolicy::new([true, false]))
}

/// Sorts an engine's error by what a reader can do about it.
pub(super) fn read_fault(space: Space, error: fjall::Error) -> ReadFault {
    if let fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) = &error {
        return ReadFault::Io {
            space,
            kind: error.kind(),
            cause: Cause::new(error),
        };
    }
    ReadFault::Damaged {
        space,
        cause: Cause::new(error),
    }
}
