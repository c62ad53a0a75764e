//! The folder of a store: its lock, its format version and its list of spaces.
//!
//! Knows nothing of the engine but the name of its folder.
//!
//! `FORMAT` is text, for people who look into the folder:
//!
//! ```text
//! perihelion store 1
//! records compressed
//! index plain
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::batch::SpaceOptions;
use crate::fault::OpenFault;

/// Newest format this version reads, and the one it writes.
pub(super) const FORMAT_VERSION: u32 = 1;

const LOCK_FILE: &str = "LOCK";
const FORMAT_FILE: &str = "FORMAT";
const FORMAT_DRAFT_FILE: &str = "FORMAT.new";
const ENGINE_FOLDER: &str = "engine";
const FORMAT_HEAD: &str = "perihelion store ";

/// A data folder that is ours alone.
pub(super) struct Folder {
    path: PathBuf,
    /// Unlocked when it is dropped, and by the system when the process dies.
    _lock: File,
}

impl Folder {
    /// Locks the folder, makes it a store if it is empty, and checks that it holds the wanted spaces.
    pub(super) fn open(path: &Path, spaces: &[SpaceOptions]) -> Result<Folder, OpenFault> {
        let fault = |source| OpenFault::Io { path: path.to_path_buf(), source };
        fs::create_dir_all(path).map_err(fault)?;
        // Looked at before the lock file is made: a folder of somebody else is left as it is.
        let is_store = path.join(FORMAT_FILE).try_exists().map_err(fault)?;
        if !is_store && holds_other_things(path).map_err(fault)? {
            return Err(OpenFault::NotAStore { path: path.to_path_buf() });
        }
        let lock = lock(path)?;
        let found = match fs::read_to_string(path.join(FORMAT_FILE)) {
            Ok(text) => parse_format(path, &text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(fault(error)),
        };
        let wanted: Vec<String> = spaces.iter().map(space_line).collect();
        if !wanted.starts_with(&found) {
            return Err(OpenFault::SpacesChanged { found, wanted });
        }
        if found.len() < wanted.len() || !is_store {
            write_format(path, &wanted).map_err(fault)?;
        }
        Ok(Folder { path: path.to_path_buf(), _lock: lock })
    }

    pub(super) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE_FOLDER)
    }
}

fn lock(path: &Path) -> Result<File, OpenFault> {
    let lock_path = path.join(LOCK_FILE);
    let fault = |source| OpenFault::Io { path: lock_path.clone(), source };
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&lock_path).map_err(fault)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenFault::Locked { path: path.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(fault(error)),
    }
}

/// Whether a folder without a format file holds anything that an interrupted first opening would not have left.
fn holds_other_things(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let is_ours = [LOCK_FILE, FORMAT_DRAFT_FILE, "lost+found"].iter().any(|ours| name == *ours);
        if !is_ours {
            return Ok(true);
        }
    }
    Ok(false)
}

fn space_line(space: &SpaceOptions) -> String {
    let nature = if space.compressed { "compressed" } else { "plain" };
    format!("{} {nature}", space.name)
}

/// The lines of the spaces, if the version is one of ours.
fn parse_format(path: &Path, text: &str) -> Result<Vec<String>, OpenFault> {
    let not_a_store = || OpenFault::NotAStore { path: path.to_path_buf() };
    let mut lines = text.lines();
    let version = lines.next().and_then(|head| head.strip_prefix(FORMAT_HEAD)).ok_or_else(not_a_store)?;
    let found: u32 = version.parse().map_err(|_| not_a_store())?;
    if found > FORMAT_VERSION {
        return Err(OpenFault::NewerFormat { found, supported: FORMAT_VERSION });
    }
    Ok(lines.map(str::to_owned).collect())
}

/// Replaces the format file as a whole: it is never seen half written.
fn write_format(path: &Path, spaces: &[String]) -> io::Result<()> {
    let draft_path = path.join(FORMAT_DRAFT_FILE);
    let mut draft = File::create(&draft_path)?;
    writeln!(draft, "{FORMAT_HEAD}{FORMAT_VERSION}")?;
    for line in spaces {
        writeln!(draft, "{line}")?;
    }
    draft.sync_all()?;
    fs::rename(&draft_path, path.join(FORMAT_FILE))?;
    File::open(path)?.sync_all()
}
