//! Flushes the memtables one space after the other, on a thread of its own, and frees them.
//!
//! For every memtable that is sealed, the engine syncs the journal under its lock, and it syncs the new list of tables
//! under a lock that every write of the space needs. If all memtables are sealed at once, these waits follow each other
//! and a commit has to wait for all of them. One after the other, a commit waits for one at most.
//!
//! The engine rotates a full journal when it begins the next flush of any space. It removes the old one when every space
//! is flushed up to its last row in there. So the smallest memtable is flushed first, only to have the journal rotated,
//! and then those of all spaces: none of them can have a later row in the old journal. If it is not removed all the same,
//! the engine has forgotten how far a space was flushed; `marker` explains why, and how the next flush removes it.
//!
//! A crash between two spaces leaves some of them flushed, and the old journal. The rows of the others are replayed from
//! it.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fjall::{AbstractTree, Keyspace};

use super::engine::EngineSpace;
use super::flushed::Flushed;
use super::folder::ENGINE_FOLDER;
use super::journal;
use super::memtables::STALL_CHECK_INTERVAL;
use crate::fault::Cause;

/// How often all spaces are flushed until the old journal is removed. Once is enough, unless a flush that the engine
/// began by itself made it rotate the journal late.
const PASSES_MAX: usize = 2;

/// How often the thread looks whether the old journal is removed: the engine does that just after the last flush.
const REMOVAL_CHECKS: usize = 50;

/// Time until the second look whether flushed memtables can be freed; it doubles with each further one.
const RELEASE_INTERVAL: Duration = Duration::from_millis(50);

/// How often the thread looks, within 25 seconds. Memtables that a reader or an old list of tables still needs after
/// that are freed with those of the next flush.
const RELEASE_CHECKS: usize = 10;

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
    /// Whether the next commit puts the marker of every space.
    wants_markers: AtomicBool,
    /// Memtables that were flushed and that old versions of their spaces may still name.
    flushed: Mutex<Vec<KeptMemtable>>,
}

impl Rotation {
    /// Begins to flush the memtables of these spaces. `store` is the store's folder. No flush is running.
    pub(super) fn begin(&self, spaces: Arc<[EngineSpace]>, store: PathBuf) -> Result<(), Cause> {
        self.stop();
        self.progress.is_stopping.store(false, Ordering::Relaxed);
        self.progress.is_running.store(true, Ordering::Release);
        let progress = Arc::clone(&self.progress);
        let flush = move || {
            progress.run(spaces, &store);
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

    /// Whether an old journal was kept, so that the next commit has to put the marker of every space.
    pub(super) fn wants_markers(&self) -> bool {
        self.progress.wants_markers.load(Ordering::Relaxed)
    }

    pub(super) fn markers_put(&self) {
        self.progress.wants_markers.store(false, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn want_markers(&self) {
        self.progress.wants_markers.store(true, Ordering::Relaxed);
    }

    /// Fails if a flush has failed.
    pub(super) fn check(&self) -> Result<(), Cause> {
        let failure = self.progress.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failure.map_or(Ok(()), Err)
    }

    /// Ends the thread. Spaces that it has not reached stay as they are.
    pub(super) fn stop(&self) {
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
    fn run(&self, spaces: Arc<[EngineSpace]>, store: &Path) {
        if let Err(cause) = self.flush_all(&spaces, store) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
        }
        // Handles of the engine are gone when the flush counts as ended.
        drop(spaces);
        self.is_running.store(false, Ordering::Release);
    }

    fn flush_all(&self, spaces: &[EngineSpace], store: &Path) -> Result<(), Cause> {
        let engine = &store.join(ENGINE_FOLDER);
        let newest = journal::newest(engine).map_err(Cause::new)?.map(|journal| journal.number);
        // Not listed before: a space may get its keyspace meanwhile.
        let keyspaces = || spaces.iter().filter_map(|space| space.keyspace.get());
        if let Some(smallest) = smallest(keyspaces()) {
            self.flush(smallest)?;
        }
        for _ in 0..PASSES_MAX {
            // Whoever has written one of these rows holds the lock that sealing a memtable needs until all rows of the
            // commit are in memtables, and so have the commits before.
            let highest = keyspaces().filter_map(|keyspace| keyspace.tree.get_highest_seqno()).max();
            keyspaces().try_for_each(|keyspace| self.flush(keyspace))?;
            if let (Some(journal), Some(highest)) = (newest, highest) {
                self.record_flushed(Flushed { journal, commit: highest + 1 }, store);
            }
            if !newest.is_some_and(|newest| self.is_kept(newest, engine)) {
                return Ok(());
            }
        }
        self.wants_markers.store(true, Ordering::Relaxed);
        tracing::debug!(event = "journal_kept", "an old journal was not removed; the next flush removes it");
        Ok(())
    }

    /// Records how far all spaces are flushed, if they are. A failure is not fatal: less is known of the store then.
    fn record_flushed(&self, flushed: Flushed, store: &Path) {
        if self.is_stopping() {
            return;
        }
        if let Err(error) = flushed.write(store) {
            tracing::warn!(event = "flush_record_failed", %error, "how far the tables are written could not be recorded");
        }
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

    /// Whether the engine has rotated this journal and does not remove it.
    fn is_kept(&self, number: u64, engine: &Path) -> bool {
        for _ in 0..REMOVAL_CHECKS {
            // Unreadable: the next commit notices it.
            let journals = journal::list_if_exists(engine).unwrap_or_default();
            let is_rotated = journals.iter().any(|(other, _)| *other > number);
            let exists = journals.iter().any(|(other, _)| *other == number);
            if !is_rotated || !exists || self.is_stopping() {
                return false;
            }
            thread::sleep(STALL_CHECK_INTERVAL);
        }
        true
    }

    /// Frees the flushed memtables when nothing else refers to them. The engine would do that under the lock that every
    /// write of the space needs, and to free the rows of a large memtable takes longer than many commits.
    fn release_flushed(&self) {
        let mut pause = RELEASE_INTERVAL;
        for _ in 0..RELEASE_CHECKS {
            let mut flushed = self.flushed();
            let unused: Vec<_> =
                flushed.extract_if(.., |memtable| Arc::strong_count(memtable) == 1).collect();
            let is_done = flushed.is_empty();
            drop(flushed);
            drop(unused);
            if is_done || self.is_stopping() {
                return;
            }
            thread::park_timeout(pause);
            pause *= 2;
        }
    }

    fn flushed(&self) -> MutexGuard<'_, Vec<KeptMemtable>> {
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

/// The keyspace with the smallest memtable that has any rows.
fn smallest<'a>(keyspaces: impl Iterator<Item = &'a Keyspace>) -> Option<&'a Keyspace> {
    let sized = keyspaces.map(|keyspace| (keyspace.tree.active_memtable().size(), keyspace));
    sized.filter(|(size, _)| *size > 0).min_by_key(|(size, _)| *size).map(|(_, keyspace)| keyspace)
}

#[cfg(test)]
mod tests {
    use super::super::EmbeddedOptions;
    use super::super::engine::{JOURNAL_FLUSH_BYTES, StorageEngine};
    use super::super::folder::Folder;
    use super::super::journal;
    use super::*;
    use crate::batch::{Durability, KEY_RESERVED, RowChange, Space, SpaceOptions};
    use bytes::Bytes;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::MetadataExt;
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
    /// Rows that fill a journal and a part of the next.
    const ROWS_OF_A_ROUND: usize = 150;
    /// Set for the child only: the folder, and how many spaces it flushes.
    const FOLDER_VARIABLE: &str = "KV_ROTATION_FOLDER";
    const FLUSHED_VARIABLE: &str = "KV_ROTATION_FLUSHED";

    fn open(path: &Path) -> StorageEngine {
        let folder = Arc::new(Folder::open(path, &SPACES).unwrap());
        StorageEngine::open(&folder, &EmbeddedOptions::new(path, &SPACES)).unwrap()
    }

    fn counts(engine: &StorageEngine) -> [usize; 3] {
        let is_row = |row: fjall::Guard| *row.key().unwrap() != *KEY_RESERVED;
        let count = |rows: &Keyspace| rows.iter().filter_map(|row| is_row(row).then_some(())).count();
        [0, 1, 2].map(|space| engine.keyspace(Space(space)).unwrap().map_or(0, count))
    }

    fn row(space: u8, key: impl Into<Bytes>, value: Option<Bytes>) -> RowChange {
        RowChange { space: Space(space), key: key.into(), value }
    }

    /// Numbers of the journals.
    fn journals(engine: &StorageEngine) -> Vec<u64> {
        let journals = journal::list_if_exists(&engine.folder.engine()).unwrap();
        journals.into_iter().map(|(number, _)| number).collect()
    }

    /// Writes a row into every space.
    fn commit(engine: &StorageEngine, number: usize) {
        let rows = [ROW_BYTES, 10, 10]
            .into_iter()
            .zip(0..)
            .map(|(length, space)| row(space, format!("{number:06}"), Some(Bytes::from(vec![b'x'; length]))));
        engine.commit(vec![rows.collect()], Durability::Sync).unwrap();
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
        println!("flushed, {} journals", journals(&engine).len());
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
        assert_eq!(journals(&engine), [1]);
        assert_eq!(counts(&engine), [rows; 3]);
    }

    /// The merge in the fifth round evicts all that was written to the emptied space before its journal is removed.
    /// Without markers no journal would be removed any more, since nothing is written to that space.
    #[test]
    fn an_emptied_space_does_not_keep_journals() {
        const EMPTIED_ROUNDS: usize = 5;
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        for round in 0..EMPTIED_ROUNDS + 2 {
            if round < EMPTIED_ROUNDS {
                for value in [Some(Bytes::from_static(b"x")), None] {
                    let rows = (0..20_u8).map(|key| row(0, vec![b'k', key], value.clone())).collect();
                    engine.commit(vec![rows], Durability::Sync).unwrap();
                }
            }
            for number in 0..ROWS_OF_A_ROUND {
                let key = format!("{round:03}-{number:06}");
                let large = row(1, key, Some(Bytes::from(vec![b'x'; ROW_BYTES])));
                engine.commit(vec![vec![large]], Durability::Buffered).unwrap();
            }
            engine.wait_for_flush().unwrap();
            // One that is kept, one that is full, and its successor.
            assert!(journals(&engine).len() <= 3, "round {round}: {:?}", journals(&engine));
        }
        assert!(journals(&engine).len() <= 2, "{:?}", journals(&engine));
        assert_eq!(counts(&engine), [0, (EMPTIED_ROUNDS + 2) * ROWS_OF_A_ROUND, 0]);
    }

    /// Four threads put and delete in all spaces. The journals that are full or sealed when a flush begins are gone when
    /// it ends, with all that is written to them meanwhile.
    #[test]
    fn full_journals_are_removed_whatever_is_written_meanwhile() {
        const THREADS: u8 = 4;
        const COMMITS: usize = 8000;
        // So small that some commits are made between the sealing of a memtable and the rotation of the journal.
        const ROW_BYTES: usize = 12_000;
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        // Held by the thread that commits: for each flush the journals that it lets the engine remove.
        let flushes = Mutex::new(Vec::<Vec<u64>>::new());
        let write = |thread: u8, number: usize| {
            let key = |number: usize| vec![thread, u8::try_from(number % 250).unwrap() + 1];
            let value = Some(Bytes::from(vec![thread; ROW_BYTES]));
            let rows = vec![
                row(thread % 3, key(number), value),
                row((thread + 1) % 3, key(number + 1), Some(Bytes::new())),
                row((thread + 2) % 3, key(number + 2), None),
            ];
            let mut flushes = flushes.lock().unwrap();
            let is_due = engine.journal_bytes.load(Ordering::Relaxed) >= JOURNAL_FLUSH_BYTES;
            let full = is_due.then(|| full_journals(&engine));
            engine.commit(vec![rows], Durability::Buffered).unwrap();
            if let Some(full) = full {
                // The flush before has ended.
                check_removed(&engine, flushes.last());
                flushes.push(full);
            }
        };
        thread::scope(|scope| {
            let write = &write;
            for thread in 0..THREADS {
                scope.spawn(move || (0..COMMITS).for_each(|number| write(thread, number)));
            }
        });
        engine.wait_for_flush().unwrap();
        let flushes = flushes.into_inner().unwrap();
        check_removed(&engine, flushes.last());
        assert_eq!(flushes.len(), 5, "{flushes:?}");
        assert_eq!(flushes[0], [0]);
        let before = counts(&engine);
        drop(engine);
        assert_eq!(counts(&open(folder.path())), before);
    }

    #[track_caller]
    fn check_removed(engine: &StorageEngine, removed: Option<&Vec<u64>>) {
        let (removed, left) = (removed.into_iter().flatten(), journals(engine));
        removed.for_each(|journal| assert!(!left.contains(journal), "{journal} of {left:?}"));
    }

    /// All journals, but the newest only if the engine rotates it in the next flush. It is preallocated, so its length
    /// does not show that.
    fn full_journals(engine: &StorageEngine) -> Vec<u64> {
        let mut found = journal::list_if_exists(&engine.folder.engine()).unwrap();
        found.sort();
        let is_full = |path: &Path| path.metadata().unwrap().blocks() * 512 > 64_000_000;
        found.pop_if(|(_, path)| !is_full(path));
        found.into_iter().map(|(number, _)| number).collect()
    }
}
