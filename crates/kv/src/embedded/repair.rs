//! Makes the journals of a store readable again, on request, and reports what was removed.
//!
//! A store whose journal is damaged before acknowledged commits is refused: the operator must decide to continue
//! without them. Three cases:
//! - All rows of the damaged commit, and of all before it, are in tables (`flushed`): the start of the journal with the
//!   damage is removed, and nothing is lost.
//! - No table has a row of the damaged commit or a later one: the journal is cut there, and the store is as it was
//!   before that commit.
//! - Otherwise a cut would tear the store (`tear`): it is refused, and nothing is changed.
//!
//! The removed bytes are saved next to the store.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::flushed::Flushed;
use super::folder::{Folder, make_private};
use super::format::JournalEntry;
use super::journal::{self, Breakage, Fronts, Survey};
use super::synced::Synced;
use super::table::TableEntry;
use super::{frames, inspect, tear};
use crate::fault::OpenFault;

/// Suffix of the store's folder name, followed by a number, that makes the name of the folder with the cut bytes.
const CUT_SUFFIX: &str = ".cut-";

/// Result of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repair {
    /// The truncated journals; none if no commit was lost.
    pub cuts: Vec<JournalCut>,
    /// Starts of journals that were damaged and not needed any more. Their positions are 0.
    pub unneeded: Vec<JournalCut>,
    /// Readable commits after the broken one, which were cut off with it.
    pub readable_commits: usize,
    /// Whether only unsynced commits were cut, as after a power failure.
    pub is_torn: bool,
    /// The synced length of a truncated journal, if one was found.
    pub shortened_from: Option<u64>,
    /// Whether the record of synced journal lengths was missing or damaged. It was rebuilt.
    pub is_synced_lost: bool,
}

/// Bytes cut off one journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCut {
    /// The journal.
    pub path: PathBuf,
    /// Where the cut bytes were.
    pub position: u64,
    /// Bytes that were cut off, without the zero tail.
    pub cut_bytes: u64,
    /// File with the cut bytes.
    pub saved: PathBuf,
}

/// Repairs the journals of a store that nobody has open. An intact store is not changed, and one that a cut would tear
/// neither.
pub fn repair(path: &Path) -> Result<Repair, OpenFault> {
    let folder = Folder::open_existing(path)?;
    let (synced, is_synced_lost) = match folder.synced() {
        Ok(synced) => (synced, false),
        Err(OpenFault::Missing { .. } | OpenFault::DamagedFile { .. }) => (Synced::default(), true),
        Err(fault) => return Err(fault),
    };
    let tables = inspect::check(&folder, &synced)?;
    let fault = |source| OpenFault::Io { path: folder.engine(), source };
    let flushed = Flushed::read(folder.path()).map_err(fault)?;
    let plan = plan(&folder, &synced, flushed).map_err(fault)?;
    check_tear(&folder, &plan, &tables, flushed)?;
    let Plan { fronts, survey: Survey { ends, breakage, .. } } = plan;
    let mut repair = Repair { is_synced_lost, ..Repair::default() };
    if !fronts.is_empty() || breakage.is_some() {
        let saved_in = make_cut_folder(folder.path()).map_err(fault)?;
        repair.unneeded = remove_fronts(&folder, &fronts, &synced, &saved_in).map_err(fault)?;
        if let Some(breakage) = &breakage {
            repair.cuts = cut(&folder, breakage, &saved_in).map_err(fault)?;
            repair.readable_commits = breakage.batches_after;
            repair.is_torn = breakage.is_torn;
            repair.shortened_from = breakage.shortened_from();
        }
    }
    // Last: an interrupted repair starts again.
    if breakage.is_some() || is_synced_lost || !fronts.is_empty() {
        ends.replace(folder.path()).map_err(fault)?;
    }
    Ok(repair)
}

/// What is to be done.
struct Plan {
    /// The starts of journals that are damaged and not needed.
    fronts: Fronts,
    /// The journals without them.
    survey: Survey,
}

fn plan(folder: &Folder, synced: &Synced, flushed: Option<Flushed>) -> io::Result<Plan> {
    let (engine, format) = (folder.engine(), folder.format());
    let mut fronts = Fronts::new();
    loop {
        let survey = journal::survey_without(&fronts, &engine, &format, synced)?;
        let Some(breakage) = &survey.breakage else { return Ok(Plan { fronts, survey }) };
        let flushed = Flushed::until(flushed, breakage.number);
        let is_new = !fronts.contains_key(&breakage.number);
        if let Some(front) = journal::unneeded_front(breakage, flushed)?.filter(|_| is_new) {
            fronts.insert(breakage.number, front);
        } else if survey.last_commit.is_some_and(|last| last + 1 < flushed) {
            // The damaged commit is the last before `flushed`, or it is both before and after it. What is in front of
            // the damage is not needed either, and would look like the end of a store whose tables
            // have more.
            remove_before(breakage, &engine, &mut fronts)?;
        } else {
            return Ok(Plan { fronts, survey });
        }
    }
}

/// Adds everything in front of the breakage to what is removed.
fn remove_before(breakage: &Breakage, engine: &Path, fronts: &mut Fronts) -> io::Result<()> {
    for (number, path) in journal::list_if_exists(engine)? {
        if number < breakage.number {
            fronts.insert(number, frames::content_length(&fs::read(path)?));
        }
    }
    *fronts.entry(breakage.number).or_default() += breakage.position;
    Ok(())
}

/// Refuses a cut that would tear the store, and a store that is torn.
fn check_tear(
    folder: &Folder,
    Plan { fronts, survey }: &Plan,
    tables: &[TableEntry],
    flushed: Option<Flushed>,
) -> Result<(), OpenFault> {
    let format = folder.format();
    let Some(breakage) = &survey.breakage else {
        let spaces = tear::spaces_flushed_after(survey.last_commit, tables, &format)?;
        return if spaces.is_empty() {
            Ok(())
        } else {
            Err(OpenFault::Torn { path: folder.engine(), spaces })
        };
    };
    let flushed = Flushed::until(flushed, breakage.number).checked_sub(1);
    let spaces = match breakage.commit_before.max(flushed) {
        // What was never synced is not in tables.
        None if breakage.is_torn => return Ok(()),
        commit => tear::spaces_after(commit, tables, &format, |_| true)?,
    };
    if spaces.is_empty() {
        return Ok(());
    }
    let position = fronts.get(&breakage.number).copied().unwrap_or(0) + breakage.position;
    Err(OpenFault::CutTears { path: breakage.path.clone(), position, spaces })
}

/// Removes the starts of journals that nothing needs.
fn remove_fronts(
    folder: &Folder,
    fronts: &Fronts,
    synced: &Synced,
    saved_in: &Path,
) -> io::Result<Vec<JournalCut>> {
    let mut removed = Vec::new();
    let mut synced = synced.clone();
    let engine = folder.engine();
    for (number, path) in journal::list_if_exists(&engine)? {
        let Some(front) = fronts.get(&number) else { continue };
        let bytes = fs::read(&path)?;
        removed.push(save(&bytes[..*front], &path, 0, saved_in, "start")?);
        let kept = saved_in.join(format!("{number}.jnl.kept"));
        let mut file = File::create_new(&kept)?;
        file.write_all(&bytes[*front..frames::content_length(&bytes)])?;
        file.sync_all()?;
        // Before the journal is replaced by a shorter one with another first commit.
        forget_first_commit(folder)?;
        synced.remove_front(number, *front as u64);
        synced.replace(folder.path())?;
        fs::rename(&kept, &path)?;
        File::open(&engine)?.sync_all()?;
    }
    Ok(removed)
}

/// Truncates the broken journal at its first broken commit, and all later journals completely: their commits depend on
/// lost ones.
fn cut(folder: &Folder, breakage: &Breakage, saved_in: &Path) -> io::Result<Vec<JournalCut>> {
    let first = (&breakage.path, breakage.position);
    let later = breakage.later.iter().map(|path| (path, 0));
    let mut cuts = Vec::new();
    // Everything is saved before anything is cut.
    for (path, position) in [first].into_iter().chain(later) {
        let bytes = fs::read(path)?;
        let bytes = &bytes[position..frames::content_length(&bytes).max(position)];
        cuts.push(save(bytes, path, position, saved_in, &format!("from-{position}"))?);
    }
    File::open(saved_in)?.sync_all()?;
    Flushed::forget(folder.path())?;
    // Before the cut: the newest journal may be empty afterwards, and must still be expected.
    forget_first_commit(folder)?;
    // The newest first: after an interruption the breakage can still be found.
    for path in breakage.later.iter().rev() {
        journal::cut_off(path, 0)?;
    }
    journal::cut_off(&breakage.path, breakage.position)?;
    Ok(cuts)
}

/// Saves bytes of a journal before they are removed from it.
fn save(bytes: &[u8], path: &Path, position: usize, saved_in: &Path, suffix: &str) -> io::Result<JournalCut> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let saved = saved_in.join(format!("{name}.{suffix}"));
    let mut file = File::create_new(&saved)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let (position, cut_bytes) = (position as u64, bytes.len() as u64);
    Ok(JournalCut { path: path.to_path_buf(), position, cut_bytes, saved })
}

/// Lets the newest journal begin with any commit.
fn forget_first_commit(folder: &Folder) -> io::Result<()> {
    match journal::newest(&folder.engine())? {
        Some(newest) => folder.record_journal(JournalEntry { first_commit: None, ..newest }),
        None => Ok(()),
    }
}

/// Creates a folder with an unused name next to the store.
fn make_cut_folder(store: &Path) -> io::Result<PathBuf> {
    let name = store.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..=u32::MAX {
        let path = store.with_file_name(format!("{name}{CUT_SUFFIX}{number}"));
        match make_private(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
