//! Flushes the memtables one space at a time, on a thread of its own.
//!
//! For every memtable that is sealed, the engine syncs the journal under its lock, and it syncs the new list of tables
//! under a lock that every write of the space needs. If all memtables are sealed at once, these waits follow each other
//! and a commit has to wait for all of them. One after the other, a commit waits for one at most.
//!
//! A crash between two spaces leaves some of them flushed and the old journal, which the engine deletes when the last
//! one is flushed. The rows of the flushed spaces are then replayed from it again, which changes nothing.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fjall::{AbstractTree, Keyspace};

use super::memtables::STALL_CHECK_INTERVAL;
use crate::fault::Cause;

/// Time between two looks whether flushed memtables can be freed.
const RELEASE_INTERVAL: Duration = Duration::from_millis(50);

/// A memtable that is kept alive.
type KeptMemtable = Arc<dyn Any + Send + Sync>;

/// The thread that flushes, if there is one. It ends before this is dropped.
#[derive(Default)]
pub(super) struct Rotation {
    progress: Arc<Progress>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How far the thread is.
#[derive(Default)]
pub(super) struct Progress {
    is_running: AtomicBool,
    /// Whether the thread has to end: the engine is closed, or another flush begins.
    is_stopping: AtomicBool,
    failure: Mutex<Option<Cause>>,
    /// Memtables that were flushed and that old versions of their spaces may still name.
    flushed: Mutex<Vec<KeptMemtable>>,
}

impl Rotation {
    /// Starts to flush the memtables of these spaces. Called when no other flush is running.
    pub(super) fn begin(&self, keyspaces: Vec<Keyspace>) -> Result<(), Cause> {
        self.stop();
        self.progress.is_stopping.store(false, Ordering::Relaxed);
        self.progress.is_running.store(true, Ordering::Release);
        let progress = Arc::clone(&self.progress);
        let flush = move || {
            progress.flush_all(keyspaces);
            progress.release_flushed();
        };
        match thread::Builder::new().name("kv-flush".to_owned()).spawn(flush) {
            Ok(thread) => {
                *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
                Ok(())
            }
            Err(error) => {
                self.progress.is_running.store(false, Ordering::Release);
                Err(Cause::new(error))
            }
        }
    }

    /// Whether some spaces are still to be flushed.
    pub(super) fn is_running(&self) -> bool {
        self.progress.is_running.load(Ordering::Acquire)
    }

    /// Fails if the last flush has failed.
    pub(super) fn check(&self) -> Result<(), Cause> {
        let failure = self.progress.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failure.map_or(Ok(()), Err)
    }

    fn stop(&self) {
        self.progress.is_stopping.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for Rotation {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Progress {
    fn flush_all(&self, keyspaces: Vec<Keyspace>) {
        if let Err(cause) = keyspaces.iter().try_for_each(|keyspace| self.flush(keyspace)) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
        }
        // Handles of the engine are gone when the flush counts as ended.
        drop(keyspaces);
        self.is_running.store(false, Ordering::Release);
    }

    /// Seals the memtable of a space and waits until it is flushed, or until the engine is closed.
    pub(super) fn flush(&self, keyspace: &Keyspace) -> Result<(), Cause> {
        if self.is_stopping() {
            return Ok(());
        }
        let memtable = keyspace.tree.active_memtable();
        if keyspace.rotate_memtable().map_err(Cause::new)? {
            self.flushed().push(memtable);
        }
        while keyspace.sealed_memtable_count() > 0 && !self.is_stopping() {
            thread::sleep(STALL_CHECK_INTERVAL);
        }
        Ok(())
    }

    /// Frees the flushed memtables when nothing else refers to them. The engine would do that under the lock that every
    /// write of the space needs, and to free the rows of a large memtable takes longer than many commits.
    fn release_flushed(&self) {
        loop {
            let mut flushed = self.flushed();
            let unused: Vec<_> =
                flushed.extract_if(.., |memtable| Arc::strong_count(memtable) == 1).collect();
            let is_done = flushed.is_empty();
            drop(flushed);
            drop(unused);
            if is_done || self.is_stopping() {
                return;
            }
            thread::park_timeout(RELEASE_INTERVAL);
        }
    }

    fn flushed(&self) -> MutexGuard<'_, Vec<KeptMemtable>> {
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::EmbeddedOptions;
    use super::super::engine::{JOURNAL_FLUSH_BYTES, StorageEngine};
    use super::super::folder::Folder;
    use super::super::journal;
    use super::*;
    use crate::batch::{Durability, RowChange, Space, SpaceOptions};
    use bytes::Bytes;
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::{Command, Stdio};

    const SPACES: [SpaceOptions; 3] = [
        SpaceOptions { name: "records", compressed: false },
        SpaceOptions { name: "log", compressed: false },
        SpaceOptions { name: "meta", compressed: false },
    ];
    /// Rows of a round; with them the journal is nearly full.
    const ROWS: usize = 129;
    const ROW_BYTES: usize = 500_000;
    /// Set for the child only: the folder, and how many spaces it flushes.
    const FOLDER_VARIABLE: &str = "KV_ROTATION_FOLDER";
    const FLUSHED_VARIABLE: &str = "KV_ROTATION_FLUSHED";

    fn open(path: &Path) -> StorageEngine {
        let folder = Arc::new(Folder::open(path, &SPACES).unwrap());
        StorageEngine::open(&folder, &EmbeddedOptions::new(path, &SPACES)).unwrap()
    }

    fn counts(engine: &StorageEngine) -> [usize; 3] {
        [0, 1, 2].map(|space| engine.keyspace(Space(space)).unwrap().map_or(0, |rows| rows.len().unwrap()))
    }

    /// Writes a row into every space.
    fn commit(engine: &StorageEngine, number: usize) {
        let row = |space: u8| RowChange {
            space: Space(space),
            key: Bytes::from(format!("{number:06}")),
            value: Some(Bytes::from(vec![b'x'; if space == 0 { ROW_BYTES } else { 10 }])),
        };
        engine.commit(vec![vec![row(0), row(1), row(2)]], Durability::Sync).unwrap();
    }

    /// Not a test by itself: the child process of the next one. Fills the journal, flushes some of the spaces, commits
    /// once more and waits until it is killed.
    #[test]
    fn child_that_is_killed_between_two_spaces() {
        let (Ok(path), Ok(flushed)) = (std::env::var(FOLDER_VARIABLE), std::env::var(FLUSHED_VARIABLE))
        else {
            return;
        };
        let engine = open(Path::new(&path));
        let first = counts(&engine)[0];
        (first..first + ROWS).for_each(|number| commit(&engine, number));
        let progress = Progress::default();
        let flushed = flushed.parse().unwrap();
        engine.keyspaces().take(flushed).for_each(|keyspace| progress.flush(keyspace).unwrap());
        commit(&engine, first + ROWS);
        let journals = journal::list_if_exists(&engine.folder.engine()).unwrap();
        println!("flushed, {} journals", journals.len());
        loop {
            thread::park();
        }
    }

    /// Runs the child until it has flushed some spaces, kills it and returns how many journals there are.
    fn run_until_killed(folder: &Path, flushed: usize) -> usize {
        let name = "embedded::rotation::tests::child_that_is_killed_between_two_spaces";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(FOLDER_VARIABLE, folder)
            .env(FLUSHED_VARIABLE, flushed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let journals =
            lines.find_map(|line| line.split_once("flushed, ")?.1.strip_suffix(" journals")?.parse().ok());
        child.kill().unwrap();
        child.wait().unwrap();
        journals.expect("the child should have written")
    }

    /// The old journal exists until the last space is flushed, and whatever is flushed, every commit is there.
    #[test]
    fn a_process_killed_between_two_spaces_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (round, flushed) in [1, 2].into_iter().enumerate() {
            let journals = run_until_killed(folder.path(), flushed);
            assert_eq!(journals, 2, "{flushed} flushed");
            let engine = open(folder.path());
            assert_eq!(counts(&engine), [(round + 1) * (ROWS + 1); 3], "{flushed} flushed");
            engine.flush_all().unwrap();
            drop(engine);
            journal::replace_all(&folder.path().join("engine")).unwrap();
            drop(open(folder.path()));
        }
        // Shows that the rows of the other spaces are only in the old journal.
        run_until_killed(folder.path(), 1);
        let oldest =
            journal::list_if_exists(&folder.path().join("engine")).unwrap().into_iter().min().unwrap();
        std::fs::remove_file(oldest.1).unwrap();
        let found = counts(&open(folder.path()));
        assert_eq!(found[0], 3 * (ROWS + 1));
        assert!(found[1] < found[0] && found[2] < found[0], "{found:?}");
    }

    /// The engine would free them while commits wait.
    #[test]
    fn flushed_memtables_are_kept_until_nothing_else_refers_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        (0..3).for_each(|number| commit(&engine, number));
        let progress = Progress::default();
        let records = engine.keyspaces().next().unwrap();
        progress.flush(records).unwrap();
        assert_eq!(progress.flushed().len(), 1);
        // Nothing to flush: nothing to keep.
        progress.flush(records).unwrap();
        assert_eq!(progress.flushed().len(), 1);
        drop(engine);
        progress.release_flushed();
        assert!(progress.flushed().is_empty());
    }

    /// A commit that finds the journal full begins a flush and does not wait for it.
    #[test]
    fn a_full_journal_is_flushed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        let rows = usize::try_from(JOURNAL_FLUSH_BYTES).unwrap() / ROW_BYTES + 2;
        (0..rows).for_each(|number| commit(&engine, number));
        engine.wait_for_flush().unwrap();
        // The engine looks for journals to remove before it seals a memtable.
        commit(&engine, rows);
        engine.rotate_memtables().unwrap();
        let journals = journal::list_if_exists(&engine.folder.engine()).unwrap();
        assert_eq!(journals.len(), 1);
        assert_eq!(counts(&engine), [rows + 1; 3]);
    }
}
