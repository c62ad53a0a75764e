//! When memtables are flushed, and how long commits wait for it.
//!
//! The engine flushes a memtable only when that one is full; journal and memory are bounded for all of them together.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fjall::{Keyspace, PersistMode};

use super::engine::{Engine, JOURNAL_FLUSH_BYTES};
use crate::fault::Cause;

/// Memtables waiting to be flushed, and tables of the first level waiting to be merged, at which commits wait.
/// Both stay below the figures (4 and 30) at which the engine waits itself: it would wait for ever if its workers
/// have died, we notice.
pub(super) const SEALED_MEMTABLES_MAX: usize = 3;
const FIRST_LEVEL_TABLES_MAX: usize = 24;
const STALL_LOOK_INTERVAL: Duration = Duration::from_millis(2);

impl Engine {
    /// Has all memtables flushed if the journal is full. The engine would only flush a memtable that is full by
    /// itself: a space with few writes would keep every journal since its first write, and many spaces with some
    /// writes each would let one journal grow without a bound.
    pub(super) fn turn_full_journal(&self) -> Result<(), Cause> {
        if self.journal_bytes.load(Ordering::Relaxed) < JOURNAL_FLUSH_BYTES {
            return Ok(());
        }
        // The journal before this one goes when its memtables are flushed; a third would break the bound.
        self.wait_for_flush()?;
        let number = self.folder.format().journal.map_or(0, |journal| journal.number);
        self.journal_awaited.store(number + 1, Ordering::Relaxed);
        self.journal_is_due.store(true, Ordering::Relaxed);
        self.rotate_memtables()
    }

    /// Has all memtables flushed if they use three quarters of their memory, and waits if they use all of it. The
    /// journal stays as it is: the engine replaces only a full one.
    ///
    /// At three quarters a flush writes half as much again as at a half, so rows that are overwritten meet more of
    /// their older versions in it, and fewer tables have to be merged. The last quarter is for what is committed while
    /// a flush runs, which is several times faster than commits are.
    pub(super) fn flush_full_memtables(&self) -> Result<(), Cause> {
        let written_bytes = self.written_bytes.load(Ordering::Relaxed);
        let is_full = written_bytes >= self.memtable_bytes_max / 4 * 3;
        // Of a flush that has ended, too, until somebody has looked.
        let sealed_bytes = self.sealed_bytes.load(Ordering::Relaxed);
        if !is_full && written_bytes + sealed_bytes < self.memtable_bytes_max {
            return Ok(());
        }
        if self.is_flushing() {
            if self.bytes_in_memtables() < self.memtable_bytes_max {
                return Ok(());
            }
            self.wait_for_flush()?;
        }
        self.sealed_bytes.store(0, Ordering::Relaxed);
        if is_full { self.seal_memtables() } else { Ok(()) }
    }

    pub(super) fn rotate_memtables(&self) -> Result<(), Cause> {
        self.journal_bytes.store(0, Ordering::Relaxed);
        self.seal_memtables()
    }

    fn seal_memtables(&self) -> Result<(), Cause> {
        self.sealed_bytes.store(self.memtable_bytes(), Ordering::Relaxed);
        self.written_bytes.store(0, Ordering::Relaxed);
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable().map_err(Cause::new)?;
        }
        Ok(())
    }

    /// Waits until no memtable waits to be flushed.
    pub(super) fn wait_for_flush(&self) -> Result<(), Cause> {
        let deadline = Instant::now() + self.workers.flush_timeout;
        while self.is_flushing() {
            self.check_workers()?;
            if Instant::now() > deadline {
                return Err(Cause::new("the engine did not flush its memtables in time"));
            }
            std::thread::sleep(STALL_LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Waits until the engine's workers have caught up. Fails if they get nothing done for too long: whoever commits
    /// then has the engine reopened.
    pub(super) fn wait_for_workers(&self) -> Result<(), Cause> {
        let is_behind = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
                || keyspace.l0_table_count() >= FIRST_LEVEL_TABLES_MAX
        };
        let mut seen = None;
        let mut deadline = Instant::now() + self.workers.timeout;
        while self.keyspaces().any(is_behind) {
            self.check_workers()?;
            let now = Instant::now();
            let progress = self.progress();
            if seen != Some(progress) {
                seen = Some(progress);
                deadline = now + self.workers.timeout;
            }
            if now > deadline {
                return Err(Cause::new("the engine's workers did not catch up in time"));
            }
            std::thread::sleep(STALL_LOOK_INTERVAL);
        }
        Ok(())
    }

    /// What changes whenever a worker has done something: memtables that wait, tables of the first level, merges.
    fn progress(&self) -> (usize, usize, usize) {
        let memtables = self.keyspaces().map(|keyspace| keyspace.sealed_memtable_count()).sum();
        let tables = self.keyspaces().map(|keyspace| keyspace.l0_table_count()).sum();
        (memtables, tables, self.database.compactions_completed())
    }

    /// Fails if a worker of the engine has died, for then it takes no commit any more.
    fn check_workers(&self) -> Result<(), Cause> {
        self.database.persist(PersistMode::Buffer).map_err(Cause::new)
    }
}
