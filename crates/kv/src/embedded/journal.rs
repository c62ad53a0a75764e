//! The engine's journal files, accessed while the engine is closed.
//!
//! Knows their names and which of their bytes are used; `frames` knows the layout of batches.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::format::{Format, JournalEntry};
use super::frames::{self, JournalScan};
use super::inspect::{KEYSPACES_FOLDER, VERSION_FILE};
use super::synced::Synced;
use super::table::TableEntry;
use super::tear;
use crate::fault::OpenFault;

/// Length of a new journal: it is preallocated as a sparse file.
const NEW_JOURNAL_BYTES: u64 = 64 << 20;

/// Removes the files of an interrupted first open, which the engine refuses to open. Only for a store whose format file
/// names no keyspace. The engine writes its version file before the first keyspace, so without either no commit can
/// have been made.
pub(super) fn remove_incomplete(engine: &Path) -> io::Result<()> {
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

/// Replaces all journals by one empty journal and returns its number. All their rows must be in tables.
///
/// The engine needs a journal to continue its commit numbers, so the new one is created before the old ones are
/// removed.
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

/// Bytes of all non-empty journals. A new journal has its preallocated length.
pub(super) fn live_bytes(engine: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for (_, path) in list(engine)? {
        let length = path.metadata()?.len();
        let is_new = length == NEW_JOURNAL_BYTES && first_commit(&path)?.is_none();
        sum += if is_new { 0 } else { length };
    }
    Ok(sum)
}

/// Number of the first commit stored in a journal.
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

/// The position from which on the journals cannot be used.
pub(super) struct Breakage {
    /// Number of the broken journal.
    pub(super) number: u64,
    /// The broken journal.
    pub(super) path: PathBuf,
    /// Start of its first broken batch.
    pub(super) position: usize,
    /// No commit before that has a higher number, and those that were lost do; `None` if that is not known.
    pub(super) commit_before: Option<u64>,
    /// Valid batches after that position, in this journal and in later ones.
    pub(super) batches_after: usize,
    /// Whether only unsynced commits were lost: a power failure tore the last write.
    pub(super) is_torn: bool,
    /// Bytes of the journal known to have been synced.
    synced_bytes: u64,
    /// Whether nothing readable follows in this journal.
    is_at_end: bool,
    /// Later journals, in order.
    pub(super) later: Vec<PathBuf>,
}

impl Breakage {
    /// The fault with which the store is refused.
    pub(super) fn fault(self) -> OpenFault {
        let (shortened_from, Breakage { path, position, .. }) = (self.shortened_from(), self);
        match shortened_from {
            Some(synced_bytes) => OpenFault::Shortened { path, position, synced_bytes },
            None => OpenFault::Damaged { path, position },
        }
    }

    /// The synced length of the journal, if it ends before that.
    pub(super) fn shortened_from(&self) -> Option<u64> {
        let is_short = self.is_at_end && (self.position as u64) < self.synced_bytes;
        is_short.then_some(self.synced_bytes)
    }
}

/// Result of reading all journals.
pub(super) struct Survey {
    /// End of the last valid batch of each journal, up to the broken one.
    pub(super) ends: Synced,
    /// The last valid commit before the broken one.
    pub(super) last_commit: Option<u64>,
    pub(super) breakage: Option<Breakage>,
}

/// Bytes at the start of journals that nothing needs, by the number of the journal.
pub(super) type Fronts = BTreeMap<u64, usize>;

/// Reads all journals and finds the first broken batch.
///
/// A power failure may keep any pages of the unsynced batches and lose others; these were never acknowledged as
/// durable. The engine itself would refuse to open if the frame of a batch is complete. If the frame is broken, it
/// would drop everything after it: the torn tail or, after damage in the middle, acknowledged commits. The batches that
/// follow distinguish the two cases: a batch is written when those before it are synced, or stores how many bytes
/// before it are not. So a valid batch that was written when the broken one was synced proves damage. Older journals
/// are synced before the engine rotates. If nothing follows, `synced` says what must be there.
pub(super) fn survey(engine: &Path, format: &Format, synced: &Synced) -> io::Result<Survey> {
    survey_without(&Fronts::new(), engine, format, synced)
}

/// The same for journals without these parts. Positions are those without them.
pub(super) fn survey_without(
    fronts: &Fronts,
    engine: &Path,
    format: &Format,
    synced: &Synced,
) -> io::Result<Survey> {
    let mut journals = list_if_exists(engine)?;
    journals.sort();
    let mut last_commit = None;
    let mut ends = Vec::new();
    for (index, (number, path)) in journals.iter().enumerate() {
        let mut bytes = fs::read(path)?;
        let front = fronts.get(number).copied().unwrap_or(0);
        bytes.drain(..front.min(bytes.len()));
        let before = last_commit;
        let JournalScan { end, broken_at, last_commit: last } = frames::scan(&bytes, before);
        let synced_bytes = synced.bytes_of(*number).saturating_sub(front as u64);
        let is_short = (end as u64) < synced_bytes;
        let newest = format.journal.filter(|journal| journal.number == *number && front == 0);
        let first = newest.and_then(|journal| journal.first_commit);
        // The first commit was synced and is missing or has another number.
        let has_lost_first = first.is_some() && first != frames::first_commit(&bytes);
        last_commit = if has_lost_first { before } else { last };
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
        let after = frames::valid_after(&bytes, position, format.own);
        let later: Vec<PathBuf> = journals.iter().skip(index + 1).map(|(_, path)| path.clone()).collect();
        let mut batches_after = after.count;
        let mut lowest_after = frames::lowest_from(&bytes, position);
        for path in &later {
            let bytes = fs::read(path)?;
            batches_after += frames::count_valid(&bytes);
            lowest_after = lowest_after.into_iter().chain(frames::lowest_from(&bytes, 0)).min();
        }
        // No checksum covers the number of a commit: the last one may be too high.
        let highest_before = lowest_after.map_or(u64::MAX, |lowest| lowest.saturating_sub(1));
        let commit_before = match last_commit {
            Some(last) => Some(last.min(highest_before)),
            None => first.map(|first| first.saturating_sub(1)),
        };
        let is_torn = later.is_empty() && !after.proves_damage && !has_lost_first && !is_short;
        let breakage = Breakage {
            number: *number,
            path: path.clone(),
            position,
            commit_before,
            batches_after,
            is_torn,
            synced_bytes,
            is_at_end: after.count == 0,
            later,
        };
        return Ok(Survey { ends: Synced::new(ends), last_commit, breakage: Some(breakage) });
    }
    Ok(Survey { ends: Synced::new(ends), last_commit, breakage: None })
}

/// Length of the start of a broken journal that nothing needs, up to and with the damage: all its commits are before
/// `flushed`, and so in tables. `None` if that is not certain.
pub(super) fn unneeded_front(breakage: &Breakage, flushed: u64) -> io::Result<Option<usize>> {
    let frames::Ending { start, mut first } = frames::ending(&fs::read(&breakage.path)?);
    for path in &breakage.later {
        if first.len() < 2 {
            first.extend(frames::ending(&fs::read(path)?).first);
        }
    }
    // The second: no checksum covers the numbers, and that of the first one may be damaged with what is before it.
    let is_unneeded = first.get(1).is_some_and(|second| *second <= flushed);
    Ok(Some(start).filter(|start| is_unneeded && *start > 0))
}

/// Checks all journals before the engine reads them, and truncates torn batches at the end of the newest. Returns the
/// end of each. `tables` are those of the store.
pub(super) fn check_all(
    engine: &Path,
    format: &Format,
    synced: &Synced,
    tables: &[TableEntry],
) -> Result<Synced, OpenFault> {
    let fault = |source| OpenFault::Io { path: engine.to_path_buf(), source };
    let Survey { ends, last_commit, breakage } = survey(engine, format, synced).map_err(fault)?;
    let spaces = tear::spaces_flushed_after(last_commit, tables, format)?;
    match breakage {
        None if spaces.is_empty() => Ok(ends),
        None => Err(OpenFault::Torn { path: engine.to_path_buf(), spaces }),
        // What is in tables was synced before.
        Some(breakage) if !breakage.is_torn || !spaces.is_empty() => Err(breakage.fault()),
        Some(Breakage { path, position, batches_after, .. }) => {
            cut_off(&path, position).map_err(fault)?;
            let path = path.display();
            tracing::warn!(event = "journal_cut", %path, position, batches_after, "unfinished commits were cut off the journal");
            Ok(ends)
        }
    }
}

/// Durably truncates a journal.
pub(super) fn cut_off(path: &Path, position: usize) -> io::Result<()> {
    let journal = OpenOptions::new().write(true).open(path)?;
    journal.set_len(position as u64)?;
    journal.sync_all()
}

/// Journals of an engine's folder with their numbers, unordered; none if the folder does not exist.
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
        // Preallocated, and still empty.
        make("6.jnl", 0, NEW_JOURNAL_BYTES);
        assert_eq!(live_bytes(folder.path()).unwrap(), 2 * NEW_JOURNAL_BYTES + 1_001_000);
    }
}
