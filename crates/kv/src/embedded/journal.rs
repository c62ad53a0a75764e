//! The engine's journal files, seen from outside while it is closed.
//!
//! Knows their names and which of their bytes count; how batches lie in them stands in `frames`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::format::{Format, JournalEntry};
use super::frames::{self, Scan};
use super::inspect::{KEYSPACES_FOLDER, VERSION_FILE};
use super::synced::Synced;
use crate::fault::OpenFault;

/// Length of a journal that the engine has just made: it is sized ahead, without taking room on the disk.
const NEW_JOURNAL_BYTES: u64 = 64 << 20;

/// Removes what an interrupted first opening left, which the engine refuses to open. Only for a store that has no
/// keyspace by the word of its format file. The engine's version file comes before the first keyspace, so without
/// either no commit can have been made.
pub(super) fn remove_stillborn(engine: &Path) -> io::Result<()> {
    let has_keyspace = || match fs::read_dir(engine.join(KEYSPACES_FOLDER)) {
        Ok(mut keyspaces) => Ok(keyspaces.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    if engine.try_exists()? && !engine.join(VERSION_FILE).try_exists()? && !has_keyspace()? {
        fs::remove_dir_all(engine)?;
    }
    Ok(())
}

/// Puts one empty journal in the place of all others, and returns its number. Everything in them must be in tables.
///
/// The engine needs a journal to find its place in the count of commits, so the new one comes before the old go.
pub(super) fn replace_all(engine: &Path) -> io::Result<u64> {
    let journals = list(engine)?;
    let next = journals.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    File::create_new(engine.join(format!("{next}.jnl")))?.sync_all()?;
    File::open(engine)?.sync_all()?;
    for (_, path) in journals {
        fs::remove_file(path)?;
    }
    File::open(engine)?.sync_all()?;
    Ok(next)
}

/// Bytes of all journals that hold something. One that was just made has the length that it may get to.
pub(super) fn live_bytes(engine: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for (_, path) in list(engine)? {
        let length = path.metadata()?.len();
        let is_new = length == NEW_JOURNAL_BYTES && first_commit(&path)?.is_none();
        sum += if is_new { 0 } else { length };
    }
    Ok(sum)
}

/// Number of the first commit in a journal, as it stands there.
pub(super) fn first_commit(path: &Path) -> io::Result<Option<u64>> {
    let mut head = Vec::with_capacity(frames::START_BYTES);
    File::open(path)?.take(frames::START_BYTES as u64).read_to_end(&mut head)?;
    Ok(frames::first_commit(&head))
}

/// The newest journal, with its first commit.
pub(super) fn newest(engine: &Path) -> io::Result<Option<JournalEntry>> {
    let Some((number, path)) = list_if_exists(engine)?.into_iter().max() else { return Ok(None) };
    Ok(Some(JournalEntry { number, first_commit: first_commit(&path)? }))
}

/// A place from which on the journals cannot be used.
pub(super) struct Breakage {
    /// The journal.
    pub(super) path: PathBuf,
    /// Where its first broken batch starts.
    pub(super) position: usize,
    /// Valid batches behind that place, in this journal and in those after it.
    pub(super) batches_behind: usize,
    /// Whether no commit was lost that was ever synced: a loss of power tore what was being written.
    pub(super) is_torn: bool,
    /// Bytes of the journal that are known to have been synced.
    synced_bytes: u64,
    /// Whether nothing readable follows in this journal.
    is_at_end: bool,
    /// Journals after it, in their order.
    pub(super) later: Vec<PathBuf>,
}

impl Breakage {
    /// Why the store is not opened.
    pub(super) fn fault(self) -> OpenFault {
        let (shortened_from, Breakage { path, position, .. }) = (self.shortened_from(), self);
        match shortened_from {
            Some(synced_bytes) => OpenFault::Shortened { path, position, synced_bytes },
            None => OpenFault::Damaged { path, position },
        }
    }

    /// Up to where the journal had been synced, if it ends before that.
    pub(super) fn shortened_from(&self) -> Option<u64> {
        let is_short = self.is_at_end && (self.position as u64) < self.synced_bytes;
        is_short.then_some(self.synced_bytes)
    }
}

/// What was found in the journals.
pub(super) struct Survey {
    /// Where the last valid batch of each journal ends, up to the broken one.
    pub(super) ends: Synced,
    pub(super) breakage: Option<Breakage>,
}

/// Reads all journals and finds the first broken batch.
///
/// A loss of power may keep any pages of the unsynced batches and lose others; nobody was told that they are durable.
/// Left to itself the engine would refuse to open if the frame of a batch is whole, and where the frame is broken it
/// would drop everything behind, be it the torn end or, after damage in the middle, commits that were acknowledged.
/// The two are told apart by what comes after: a batch is written when those before it are synced, or says how many
/// bytes before it are not. So a valid one that found the broken one synced means damage. Older journals are synced
/// when the engine turns to the next. Where nothing comes after, `synced` says what must be there.
pub(super) fn survey(engine: &Path, format: &Format, synced: &Synced) -> io::Result<Survey> {
    let mut journals = list_if_exists(engine)?;
    journals.sort();
    let mut last_commit = None;
    let mut ends = Vec::new();
    for (index, (number, path)) in journals.iter().enumerate() {
        let bytes = fs::read(path)?;
        let Scan { end, broken_at, last_commit: last } = frames::scan(&bytes, last_commit);
        last_commit = last;
        let synced_bytes = synced.bytes_of(*number);
        let is_short = (end as u64) < synced_bytes;
        // A first commit that was synced and is not there, or has another number.
        let has_lost_first = format.journal.is_some_and(|journal| {
            journal.number == *number
                && journal.first_commit.is_some()
                && journal.first_commit != frames::first_commit(&bytes)
        });
        let position = match broken_at {
            _ if has_lost_first => 0,
            Some(position) => position,
            None if is_short => end,
            None => {
                ends.push((*number, end as u64));
                continue;
            }
        };
        ends.push((*number, position as u64));
        let behind = frames::behind(&bytes, position, format.own);
        let later: Vec<PathBuf> = journals.iter().skip(index + 1).map(|(_, path)| path.clone()).collect();
        let mut batches_behind = behind.count;
        for path in &later {
            let bytes = fs::read(path)?;
            batches_behind += frames::count_valid(&bytes);
        }
        let is_torn = later.is_empty() && !behind.proves_damage && !has_lost_first && !is_short;
        let (path, is_at_end) = (path.clone(), behind.count == 0);
        let breakage = Breakage { path, position, batches_behind, is_torn, synced_bytes, is_at_end, later };
        return Ok(Survey { ends: Synced::new(ends), breakage: Some(breakage) });
    }
    Ok(Survey { ends: Synced::new(ends), breakage: None })
}

/// Checks all journals before the engine reads them, and cuts torn batches off the end of the newest. Returns where
/// each of them ends.
pub(super) fn check_all(engine: &Path, format: &Format, synced: &Synced) -> Result<Synced, OpenFault> {
    let fault = |source| OpenFault::Io { path: engine.to_path_buf(), source };
    let Survey { ends, breakage } = survey(engine, format, synced).map_err(fault)?;
    match breakage {
        None => Ok(ends),
        Some(breakage) if !breakage.is_torn => Err(breakage.fault()),
        Some(Breakage { path, position, batches_behind, .. }) => {
            cut_off(&path, position).map_err(fault)?;
            let path = path.display();
            tracing::warn!(event = "journal_cut", %path, position, batches_behind, "unfinished commits were cut off the journal");
            Ok(ends)
        }
    }
}

/// Shortens a journal, durably.
pub(super) fn cut_off(path: &Path, position: usize) -> io::Result<()> {
    let journal = OpenOptions::new().write(true).open(path)?;
    journal.set_len(position as u64)?;
    journal.sync_all()
}

/// Journals of an engine's folder, with their numbers, in no order; none if the folder does not exist.
pub(super) fn list_if_exists(engine: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    if engine.try_exists()? { list(engine) } else { Ok(Vec::new()) }
}

fn list(engine: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(engine)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (true, Some(number)) = (is_journal, number) {
            journals.push((number, path));
        }
    }
    Ok(journals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_beyond_their_first_length_count() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, first: u8, length: u64| {
            let path = folder.path().join(name);
            let mut head = vec![first];
            head.resize(frames::START_BYTES, 0);
            fs::write(&path, head).unwrap();
            OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        };
        assert_eq!(live_bytes(folder.path()).unwrap(), 0);
        make("3.jnl", 1, NEW_JOURNAL_BYTES + 1_000_000);
        make("4.jnl", 1, NEW_JOURNAL_BYTES);
        make("5.jnl", 1, 1_000);
        assert_eq!(live_bytes(folder.path()).unwrap(), 2 * NEW_JOURNAL_BYTES + 1_001_000);
        // Sized ahead, and nothing in it yet.
        make("6.jnl", 0, NEW_JOURNAL_BYTES);
        assert_eq!(live_bytes(folder.path()).unwrap(), 2 * NEW_JOURNAL_BYTES + 1_001_000);
    }
}
