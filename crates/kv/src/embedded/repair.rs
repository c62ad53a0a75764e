//! Cuts what cannot be read off the journals of a store, on request, and says what was cut.
//!
//! A store whose journal is damaged in front of acknowledged commits is refused: whether to go on without them is not
//! ours to decide. The cut bytes are kept beside the store. Knows nothing of what the commits hold.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::folder::{Folder, make_private};
use super::format::JournalEntry;
use super::journal::{self, Breakage, Survey};
use super::synced::Synced;
use super::{frames, inspect};
use crate::fault::OpenFault;

/// Added to the name of the store's folder, with a number behind, for the folder of the cut bytes.
const CUT_SUFFIX: &str = ".cut-";

/// What a repair has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repair {
    /// The journals that were cut; none if the store was sound.
    pub cuts: Vec<JournalCut>,
    /// Commits behind the broken one that could be read, and are cut off with it.
    pub readable_commits: usize,
    /// Whether only commits were cut that were never synced, as after a loss of power.
    pub is_torn: bool,
    /// Up to where a journal that was shortened had been synced, if it was.
    pub shortened_from: Option<u64>,
    /// Whether the file was missing or damaged that says how far the journals were synced. It was made anew.
    pub is_synced_lost: bool,
}

/// What was cut off one journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCut {
    /// The journal.
    pub path: PathBuf,
    /// Where it ends now.
    pub position: u64,
    /// Bytes that were cut off, without the zeros at the end.
    pub cut_bytes: u64,
    /// File that holds them.
    pub saved: PathBuf,
}

/// Repairs the journals of a store that nobody has open. A sound store is left as it is.
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
    // Last: an interrupted repair is begun anew.
    if breakage.is_some() || is_synced_lost {
        ends.replace(folder.path()).map_err(fault)?;
    }
    Ok(repair)
}

/// Cuts the broken journal at its first broken commit, and all later journals as a whole: what they hold rests on
/// what is lost.
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
    // Before the cut: the newest journal may be empty then, and must not be missed.
    if let Some(JournalEntry { number, .. }) = journal::newest(&folder.engine())? {
        folder.record_journal(JournalEntry { number, first_commit: None })?;
    }
    // The newest first: after an interruption the breakage is still there to be found.
    for path in breakage.later.iter().rev() {
        journal::cut_off(path, 0)?;
    }
    journal::cut_off(&breakage.path, breakage.position)?;
    Ok(Repair {
        cuts,
        readable_commits: breakage.batches_behind,
        is_torn: breakage.is_torn,
        shortened_from: breakage.shortened_from(),
        is_synced_lost: false,
    })
}

/// Makes a folder with a name that is not taken, beside the store.
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
