//! The folder of a store: its lock and its small files.
//!
//! Knows nothing of the engine except the name of its folder. `format` defines the content of the format file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::format::{FORMAT_VERSION, Format, FormatFault, JournalEntry};
use super::synced::{SYNCED_DRAFT_FILE, SYNCED_FILE, Synced};
use crate::batch::SpaceOptions;
use crate::fault::{Cause, OpenFault};

const LOCK_FILE: &str = "LOCK";
pub(super) const FORMAT_FILE: &str = "FORMAT";
const FORMAT_DRAFT_FILE: &str = "FORMAT.new";
pub(super) const ENGINE_FOLDER: &str = "engine";

/// A locked data folder.
pub(super) struct Folder {
    path: PathBuf,
    format: Mutex<Format>,
    /// Unlocked on drop, and by the system when the process ends. `None` if there is no lock file, and so no server.
    _lock: Option<File>,
}

impl Folder {
    /// Locks the folder, initialises a store if it is empty, and checks that it has the wanted spaces.
    pub(super) fn open(path: &Path, spaces: &[SpaceOptions]) -> Result<Folder, OpenFault> {
        let fault = |source| OpenFault::Io { path: path.to_path_buf(), source };
        fs::create_dir_all(path).map_err(fault)?;
        // Checked before the lock file is created: a folder with other content is not changed.
        let is_store = path.join(FORMAT_FILE).try_exists().map_err(fault)?;
        if !is_store && holds_other_things(path).map_err(fault)? {
            return Err(OpenFault::NotAStore { path: path.to_path_buf() });
        }
        let lock = Some(lock(path, OpenOptions::new().write(true).create(true).truncate(false))?);
        let found = match read_format(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Format::new(&[]).print(),
            Err(source) => return Err(OpenFault::Io { path: path.join(FORMAT_FILE), source }),
        };
        let mut format = parse(path, &found)?;
        if !format.fits(spaces) {
            let found = format.spaces.iter().map(|space| space.describe()).collect();
            let wanted = Format::new(spaces).spaces.iter().map(|space| space.describe()).collect();
            return Err(OpenFault::SpacesChanged { found, wanted });
        }
        format.extend(spaces);
        // New spaces, a new store, or one of the format before.
        if !is_store || found != format.print() {
            write_format(path, &format).map_err(fault)?;
        }
        Ok(Folder { path: path.to_path_buf(), format: Mutex::new(format), _lock: lock })
    }

    /// Locks a folder that holds a store, without changes.
    pub(super) fn open_existing(path: &Path) -> Result<Folder, OpenFault> {
        let format_path = path.join(FORMAT_FILE);
        let lock = match lock(path, OpenOptions::new().write(true)) {
            Ok(lock) => Some(lock),
            Err(OpenFault::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            Err(fault) => return Err(fault),
        };
        let format = match read_format(path) {
            Ok(text) => parse(path, &text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenFault::NotAStore { path: path.to_path_buf() });
            }
            Err(source) => return Err(OpenFault::Io { path: format_path, source }),
        };
        Ok(Folder { path: path.to_path_buf(), format: Mutex::new(format), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE_FOLDER)
    }

    pub(super) fn format(&self) -> Format {
        self.lock().clone()
    }

    /// Synced lengths of the journals. A store without any commit has none.
    pub(super) fn synced(&self) -> Result<Synced, OpenFault> {
        if self.lock().has_data() { Synced::read(&self.path) } else { Ok(Synced::default()) }
    }

    /// Durably changes the format file, if the change makes a difference.
    pub(super) fn record(&self, change: impl FnOnce(&mut Format)) -> io::Result<()> {
        let mut format = self.lock();
        let mut changed = format.clone();
        change(&mut changed);
        if changed != *format {
            write_format(&self.path, &changed)?;
            *format = changed;
        }
        Ok(())
    }

    /// Records the newest journal.
    pub(super) fn record_journal(&self, journal: JournalEntry) -> io::Result<()> {
        self.record(|format| format.journal = Some(journal))
    }

    /// Fails if the files of the store were removed externally. The engine itself would continue with its open files,
    /// and everything written to them would be lost at exit.
    pub(super) fn check_presence(&self) -> Result<(), Cause> {
        let gone = |path: &Path| path.try_exists().is_ok_and(|exists| !exists);
        let format = self.path.join(FORMAT_FILE);
        let mut wanted = vec![format, self.path.join(SYNCED_FILE), self.engine()];
        let keyspaces = self.engine().join(super::inspect::KEYSPACES_FOLDER);
        wanted.extend(self.lock().keyspaces().map(|number| keyspaces.join(number.to_string())));
        match wanted.iter().find(|path| gone(path)) {
            Some(path) => Err(Cause::new(format_args!("\"{}\" was removed", path.display()))),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Format> {
        self.format.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a folder that only its owner can read, as it holds documents.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The text of the format file; bytes that are no text remain to be refused as damaged.
fn read_format(path: &Path) -> io::Result<String> {
    fs::read(path.join(FORMAT_FILE)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn parse(path: &Path, text: &str) -> Result<Format, OpenFault> {
    Format::parse(text).map_err(|fault| match fault {
        // Another program may have a file of this name, but not next to the folder of the engine.
        FormatFault::NotAStore if path.join(ENGINE_FOLDER).is_dir() => OpenFault::DamagedFile {
            path: path.join(FORMAT_FILE),
            cause: Cause::new("it does not start like a format file"),
        },
        FormatFault::NotAStore => OpenFault::NotAStore { path: path.to_path_buf() },
        FormatFault::Newer { found } => OpenFault::NewerFormat { found, supported: FORMAT_VERSION },
        FormatFault::Older { found } => OpenFault::OlderFormat { found, supported: FORMAT_VERSION },
        FormatFault::Damaged(cause) => {
            OpenFault::DamagedFile { path: path.join(FORMAT_FILE), cause: Cause::new(cause) }
        }
    })
}

fn lock(path: &Path, options: &OpenOptions) -> Result<File, OpenFault> {
    let lock_path = path.join(LOCK_FILE);
    let fault = |source| OpenFault::Io { path: lock_path.clone(), source };
    let file = options.open(&lock_path).map_err(fault)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenFault::Locked { path: path.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(fault(error)),
    }
}

/// Whether a folder without a format file holds anything that an interrupted first open would not have left.
fn holds_other_things(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let is_ours =
            [LOCK_FILE, FORMAT_DRAFT_FILE, SYNCED_DRAFT_FILE, "lost+found"].iter().any(|ours| name == *ours);
        if !is_ours {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Replaces the format file atomically.
fn write_format(path: &Path, format: &Format) -> io::Result<()> {
    let draft_path = path.join(FORMAT_DRAFT_FILE);
    let mut draft = File::create(&draft_path)?;
    draft.write_all(format.print().as_bytes())?;
    draft.sync_all()?;
    fs::rename(&draft_path, path.join(FORMAT_FILE))?;
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::super::format::with_version;
    use super::*;

    #[test]
    fn a_store_of_the_format_before_is_upgraded_when_it_is_opened() {
        const SPACES: [SpaceOptions; 1] = [SpaceOptions { name: "records", compressed: false }];
        let folder = tempfile::tempdir().unwrap();
        drop(Folder::open(folder.path(), &SPACES).unwrap());
        let read = || fs::read_to_string(folder.path().join(FORMAT_FILE)).unwrap();
        let current = read();
        let before = with_version(&current, FORMAT_VERSION - 1);
        fs::write(folder.path().join(FORMAT_FILE), &before).unwrap();
        // Commands that only inspect it change nothing.
        drop(Folder::open_existing(folder.path()).unwrap());
        assert_eq!(read(), before);
        drop(Folder::open(folder.path(), &SPACES).unwrap());
        assert_eq!(read(), current);
    }
}
