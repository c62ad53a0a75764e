//! A temporary copy of a store, for inspection without changes to the original.
//!
//! Opening a store changes files: journals are replayed and truncated, tables merged, incomplete files removed. That
//! happens in the copy instead. Tables are immutable, so they are hard-linked, not copied; everything else is small.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::folder::{Folder, make_private};
use super::journal::{self, Survey};
use super::{inspect, table};
use crate::fault::OpenFault;

/// Suffix of the store's folder name that makes the name of the copy next to it.
const COPY_SUFFIX: &str = ".copy";

/// Free bytes required in addition to the copy, for what the engine writes when it opens it.
const COPY_SLACK_BYTES: u64 = 64 << 20;

/// A copy of a store that nobody has open, next to it on the same disk. Deleted on drop; the store is locked until
/// then.
pub struct StoreCopy {
    path: PathBuf,
    _original: Folder,
}

impl std::fmt::Debug for StoreCopy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StoreCopy").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StoreCopy {
    /// Checks every file of a store that has a checksum, then copies the store. Changes nothing in its folder.
    pub fn of(path: &Path) -> Result<StoreCopy, OpenFault> {
        let original = Folder::open_existing(path)?;
        let synced = original.synced()?;
        for table in inspect::check(&original, &synced)? {
            table::check_whole(&table)?;
        }
        let engine = original.engine();
        let survey = journal::survey(&engine, &original.format(), &synced);
        let Survey { breakage, .. } = survey.map_err(|source| OpenFault::Io { path: engine, source })?;
        // A torn tail is truncated in the copy.
        if let Some(breakage) = breakage.filter(|breakage| !breakage.is_torn) {
            return Err(breakage.fault());
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(COPY_SUFFIX);
        let copy = StoreCopy { path: path.with_file_name(name), _original: original };
        let fault = |source| OpenFault::Io { path: copy.path.clone(), source };
        // Left by a killed process; the lock guarantees that nobody uses it.
        remove(&copy.path).map_err(fault)?;
        let files = list(path).map_err(|source| OpenFault::Io { path: path.to_path_buf(), source })?;
        copy.check_space(path, &files)?;
        copy.fill(path, &files).map_err(fault)?;
        Ok(copy)
    }

    /// Folder of the copy, which can be opened as a store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn check_space(&self, original: &Path, files: &[PathBuf]) -> Result<(), OpenFault> {
        let needed_bytes = || -> io::Result<u64> {
            let mut sum = 2 * journal::live_bytes(&self._original.engine())?;
            for file in files.iter().filter(|file| !inspect::is_immutable(file) && !is_journal(file)) {
                sum += original.join(file).metadata()?.len();
            }
            Ok(sum + COPY_SLACK_BYTES)
        };
        let fault = |source| OpenFault::Io { path: original.to_path_buf(), source };
        let (needed_bytes, free_bytes) =
            (needed_bytes().map_err(fault)?, fs4::available_space(original).map_err(fault)?);
        if free_bytes < needed_bytes {
            return Err(OpenFault::NoSpace { path: self.path.clone(), free_bytes, needed_bytes });
        }
        Ok(())
    }

    fn fill(&self, original: &Path, files: &[PathBuf]) -> io::Result<()> {
        make_private(&self.path)?;
        for folder in folders(original)? {
            fs::create_dir_all(self.path.join(folder))?;
        }
        for file in files {
            let (from, to) = (original.join(file).canonicalize()?, self.path.join(file));
            if is_journal(file) {
                copy_sparse(&from, &to)?;
            } else if !inspect::is_immutable(file) || fs::hard_link(&from, &to).is_err() {
                fs::copy(&from, &to)?;
            }
        }
        Ok(())
    }
}

impl Drop for StoreCopy {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            let path = self.path.display();
            tracing::warn!(event = "copy_left", %path, %error, "the temporary copy of the store could not be removed");
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}

/// Copies a file with a sparse tail of zeros and keeps it sparse.
fn copy_sparse(from: &Path, to: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    File::open(from)?.read_to_end(&mut bytes)?;
    let mut copy = File::create_new(to)?;
    copy.write_all(&bytes[..super::frames::content_length(&bytes)])?;
    copy.set_len(bytes.len() as u64)
}

/// All files of a store, as relative paths.
fn list(store: &Path) -> io::Result<Vec<PathBuf>> {
    walk(store, |kind| kind.is_file())
}

/// All folders of a store, as relative paths, outer ones first.
fn folders(store: &Path) -> io::Result<Vec<PathBuf>> {
    walk(store, |kind| kind.is_dir())
}

fn walk(store: &Path, is_wanted: impl Fn(fs::FileType) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(store.join(&folder))? {
            let entry = entry?;
            // Symbolic links are followed: their targets belong to the store.
            let (path, kind) = (folder.join(entry.file_name()), fs::metadata(entry.path())?.file_type());
            if is_wanted(kind) {
                found.push(path.clone());
            }
            if kind.is_dir() {
                waiting.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_files_and_folders_belong_to_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let (store, elsewhere) = (folder.path().join("store"), folder.path().join("elsewhere"));
        fs::create_dir_all(elsewhere.join("tables")).unwrap();
        fs::create_dir(&store).unwrap();
        fs::write(elsewhere.join("tables/1"), "one").unwrap();
        std::os::unix::fs::symlink(elsewhere.join("tables"), store.join("tables")).unwrap();
        std::os::unix::fs::symlink(elsewhere.join("tables/1"), store.join("2")).unwrap();
        let mut found = list(&store).unwrap();
        found.sort();
        assert_eq!(found, [PathBuf::from("2"), PathBuf::from("tables/1")]);
    }
}
