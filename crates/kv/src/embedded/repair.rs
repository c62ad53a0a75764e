//! Truncates unreadable journals of a store, on request, and reports what was cut.
//!
//! A store whose journal is damaged before acknowledged commits is refused: the operator must decide to continue
//! without them. The cut bytes are saved next to the store.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::folder::{Folder, make_private};
use super::format::JournalEntry;
use super::journal::{self, Breakage, Survey};
use super::synced::Synced;
use super::{frames, inspect};
use crate::fault::OpenFault;

/// Suffix of the store's folder name, followed by a number, that makes the name of the folder with the cut bytes.
const CUT_SUFFIX: &str = ".cut-";

/// Result of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repair {
    /// The truncated journals; none if the store was intact.
    pub cuts: Vec<JournalCut>,
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
    /// The truncated journal.
    pub path: PathBuf,
    /// Its new length.
    pub position: u64,
    /// Bytes that were cut off, without the zero tail.
    pub cut_bytes: u64,
    /// File with the cut bytes.
    pub saved: PathBuf,
}

/// Repairs the journals of a store that nobody has open. An intact store is not changed.
pub fn repair(path: &Path) -> Result<Repair, OpenFault> {
    let folder = Folder::open_existing(path)?;
    let (synced, is_synced_lost) = match folder.synced() {
        Ok(synced) => (synced, false),
        Err(OpenFault::Missing { .. } | OpenFault::DamagedFile { .. }) => (Synced::default(), true),
        Err(fault) => return Err(fault),
    };
    inspect::check(&folder, &synced)?;
    let engine = folder.engine();
    let fault = |source| OpenFault::Io { path: engine.clone(), source };
    let Survey { ends, breakage } = journal::survey(&engine, &folder.format(), &synced).map_err(fault)?;
    let repair = match &breakage {
        None => Repair { is_synced_lost, ..Repair::default() },
        Some(breakage) => Repair { is_synced_lost, ..cut(&folder, breakage).map_err(fault)? },
    };
    // Last: an interrupted repair starts again.
    if breakage.is_some() || is_synced_lost {
        ends.replace(folder.path()).map_err(fault)?;
    }
    Ok(repair)
}

/// Truncates the broken journal at its first broken commit, and all later journals completely: their commits depend on
/// lost ones.
fn cut(folder: &Folder, breakage: &Breakage) -> io::Result<Repair> {
    let saved_in = make_cut_folder(folder.path())?;
    let first = (&breakage.path, breakage.position);
    let later = breakage.later.iter().map(|path| (path, 0));
    let mut cuts = Vec::new();
    // Everything is saved before anything is cut.
    for (path, position) in [first].into_iter().chain(later) {
        let bytes = fs::read(path)?;
        let bytes = &bytes[position..frames::content_length(&bytes).max(position)];
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let saved = saved_in.join(format!("{name}.from-{position}"));
        let mut file = File::create_new(&saved)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let cut_bytes = bytes.len() as u64;
        cuts.push(JournalCut { path: path.clone(), position: position as u64, cut_bytes, saved });
    }
    File::open(&saved_in)?.sync_all()?;
    // Before the cut: the newest journal may be empty afterwards, and must still be expected.
    if let Some(JournalEntry { number, .. }) = journal::newest(&folder.engine())? {
        folder.record_journal(JournalEntry { number, first_commit: None })?;
    }
    // The newest first: after an interruption the breakage can still be found.
    for path in breakage.later.iter().rev() {
        journal::cut_off(path, 0)?;
    }
    journal::cut_off(&breakage.path, breakage.position)?;
    Ok(Repair {
        cuts,
        readable_commits: breakage.batches_after,
        is_torn: breakage.is_torn,
        shortened_from: breakage.shortened_from(),
        is_synced_lost: false,
    })
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
