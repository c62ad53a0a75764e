//! When memtables are flushed, and how long commits wait for it.
//!
//! The engine flushes a memtable only when that one is full. This file bounds the journal and the memory of all
//! memtables together.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fjall::{AbstractTree, Keyspace, PersistMode};

use super::engine::{JOURNAL_FLUSH_BYTES, StorageEngine};
use crate::fault::Cause;

/// Sealed memtables waiting for a flush, and first-level tables waiting for a merge, at which commits wait. Both are
/// below the limits (4 and 30) at which the engine itself waits: it would wait for ever if its workers have died, while
/// this code detects that.
pub(super) const SEALED_MEMTABLES_MAX: usize = 3;
const FIRST_LEVEL_TABLES_MAX: usize = 24;
/// How long commits wait for a merge of first-level tables before they do it themselves.
const MERGE_DELAY: Duration = Duration::from_millis(100);
pub(super) const STALL_CHECK_INTERVAL: Duration = Duration::from_millis(2);

impl StorageEngine {
    /// Begins to flush all memtables if the journal is full. The engine would only flush a memtable that is full by
    /// itself: a space with few writes would keep every journal since its first write, and many spaces with few writes
    /// each would let one journal grow without bound.
    pub(super) fn rotate_full_journal(&self) -> Result<(), Cause> {
        if self.journal_bytes.load(Ordering::Relaxed) < JOURNAL_FLUSH_BYTES {
            return Ok(());
        }
        // The previous journal is removed when its memtables are flushed; a third journal would break the bound.
        self.wait_for_flush()?;
        let number = self.folder.format().journal.map_or(0, |journal| journal.number);
        self.journal_awaited.store(number + 1, Ordering::Relaxed);
        self.journal_is_due.store(true, Ordering::Relaxed);
        self.journal_bytes.store(0, Ordering::Relaxed);
        self.begin_flush()
    }

    /// Begins to flush all memtables when they use three quarters of their memory, and waits when they use all of it.
    /// The journal is not rotated: the engine rotates only a full one.
    ///
    /// A flush at three quarters writes half as much again as one at a half. It drops more overwritten versions, and
    /// fewer tables have to be merged. The last quarter is for commits during a flush, which is several times faster
    /// than commits.
    pub(super) fn flush_full_memtables(&self) -> Result<(), Cause> {
        let written_bytes = self.written_bytes.load(Ordering::Relaxed);
        let is_full = written_bytes >= self.memtable_bytes_max / 4 * 3;
        // Includes a flush that has ended since the last check.
        let flushing_bytes = self.flushing_bytes.load(Ordering::Relaxed);
        if !is_full && written_bytes + flushing_bytes < self.memtable_bytes_max {
            return Ok(());
        }
        if self.is_flushing() {
            if self.bytes_in_memtables() < self.memtable_bytes_max {
                return Ok(());
            }
            self.wait_for_flush()?;
        }
        self.flushing_bytes.store(0, Ordering::Relaxed);
        if is_full { self.begin_flush() } else { Ok(()) }
    }

    /// Begins to flush all memtables, one space after the other. No flush is running.
    fn begin_flush(&self) -> Result<(), Cause> {
        self.note_flush();
        self.rotation.begin(Arc::clone(self.all_spaces()), self.folder.path().to_path_buf())
    }

    /// Seals all memtables at once, which takes long for commits: only for an engine that is about to be closed.
    pub(super) fn rotate_memtables(&self) -> Result<(), Cause> {
        self.journal_bytes.store(0, Ordering::Relaxed);
        self.note_flush();
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable().map_err(Cause::new)?;
        }
        Ok(())
    }

    /// From now on the rows in the memtables count as being flushed.
    fn note_flush(&self) {
        self.flushing_bytes.store(self.memtable_bytes(), Ordering::Relaxed);
        self.written_bytes.store(0, Ordering::Relaxed);
    }

    /// Waits until no memtable is waiting for a flush. Fails if the last flush of all has failed.
    pub(super) fn wait_for_flush(&self) -> Result<(), Cause> {
        let deadline = Instant::now() + self.workers.flush_timeout;
        while self.is_flushing() {
            self.check_workers()?;
            if Instant::now() > deadline {
                return Err(Cause::new("the engine did not flush its memtables in time"));
            }
            std::thread::sleep(STALL_CHECK_INTERVAL);
        }
        self.rotation.check()
    }

    /// Waits until the engine's workers have caught up. Fails if they make no progress for too long; the committer then
    /// reopens the engine.
    pub(super) fn wait_for_workers(&self) -> Result<(), Cause> {
        let is_behind = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
                || keyspace.l0_table_count() >= FIRST_LEVEL_TABLES_MAX
        };
        let mut seen = None;
        let mut deadline = Instant::now() + self.workers.timeout;
        let mut merge_at = Instant::now() + MERGE_DELAY;
        while self.keyspaces().any(is_behind) {
            self.check_workers()?;
            let now = Instant::now();
            let progress = self.progress();
            if seen != Some(progress) {
                seen = Some(progress);
                deadline = now + self.workers.timeout;
                merge_at = now + MERGE_DELAY;
            }
            if now > deadline {
                return Err(Cause::new("the engine's workers did not catch up in time"));
            }
            if now > merge_at {
                self.merge_first_levels()?;
                merge_at = Instant::now() + MERGE_DELAY;
            }
            std::thread::sleep(STALL_CHECK_INTERVAL);
        }
        Ok(())
    }

    /// Merges full first levels that no worker is merging. The workers merge only on request, and a request that finds
    /// the first level being merged is lost: nobody asks for a merge of the tables that were added meanwhile, since no
    /// flush and no ingest ends while a commit waits.
    fn merge_first_levels(&self) -> Result<(), Cause> {
        for keyspace in
            self.keyspaces().filter(|keyspace| keyspace.l0_table_count() >= FIRST_LEVEL_TABLES_MAX)
        {
            // Without a number up to which old versions could be dropped: later merges drop them.
            let strategy = Arc::clone(&keyspace.config.compaction_strategy);
            keyspace.tree.compact(strategy, 0).map_err(Cause::new)?;
        }
        Ok(())
    }

    /// Changes whenever a worker has made progress: sealed memtables, first-level tables, merges.
    fn progress(&self) -> (usize, usize, usize) {
        let memtables = self.keyspaces().map(|keyspace| keyspace.sealed_memtable_count()).sum();
        let tables = self.keyspaces().map(|keyspace| keyspace.l0_table_count()).sum();
        (memtables, tables, self.database.compactions_completed())
    }

    /// Fails if a worker of the engine has died, because the engine then accepts no commit.
    fn check_workers(&self) -> Result<(), Cause> {
        self.database.persist(PersistMode::Buffer).map_err(Cause::new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::EmbeddedOptions;
    use super::super::engine::StorageEngine;
    use super::super::folder::Folder;
    use super::*;
    use crate::batch::{Durability, RowChange, Space, SpaceOptions};
    use bytes::Bytes;

    const SPACES: [SpaceOptions; 2] = [
        SpaceOptions { name: "index", compressed: false },
        SpaceOptions { name: "other", compressed: false },
    ];

    /// The engine requests merges after each ingest. A worker that looks while another one merges the first level finds
    /// nothing to do, and nobody requests a merge of what was added meanwhile.
    #[test]
    fn commits_do_not_wait_for_a_merge_that_nobody_has_requested() {
        let folder = tempfile::tempdir().unwrap();
        let opened = Arc::new(Folder::open(folder.path(), &SPACES).unwrap());
        let options = EmbeddedOptions::new(folder.path(), &SPACES);
        let engine = StorageEngine::open(&opened, &options).unwrap();
        let keyspace = engine.keyspace_to_write(Space(0)).unwrap();
        for number in 0..FIRST_LEVEL_TABLES_MAX {
            // Ends the ingest as the engine does, but without its request for a merge.
            let mut ingestion = keyspace.tree.ingestion().unwrap();
            ingestion.write(format!("{number:03}"), "x").unwrap();
            ingestion.finish().unwrap();
        }
        assert_eq!(keyspace.l0_table_count(), FIRST_LEVEL_TABLES_MAX);
        let change = RowChange { space: Space(1), key: Bytes::from_static(b"k"), value: Some(Bytes::new()) };
        engine.commit(vec![vec![change]], Durability::Sync).unwrap();
        assert!(keyspace.l0_table_count() < FIRST_LEVEL_TABLES_MAX);
    }
}
