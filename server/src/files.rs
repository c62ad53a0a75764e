//! Small files of the data folder: private from the first byte and replaced atomically.

use crate::failure::Failure;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Permissions of everyone but the owner.
const OTHERS_PERMISSIONS: u32 = 0o077;

/// Sets the umask so that every file and folder of this process is private to its owner, including those of the storage
/// engine.
pub(crate) fn make_new_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(OTHERS_PERMISSIONS));
}

/// Creates a folder if it is missing, for its owner only.
pub(crate) fn make_private_folder(folder: &Path) -> Result<(), Failure> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|cause| failed("create the folder", folder, &cause))
}

/// The same, and removes the permissions of others from an existing folder: packages, volumes and service managers
/// create folders that anybody may read.
pub(crate) fn make_folder_private(folder: &Path) -> Result<(), Failure> {
    make_private_folder(folder)?;
    let restrict = || -> std::io::Result<()> {
        let mut permissions = std::fs::metadata(folder)?.permissions();
        if permissions.mode() & OTHERS_PERMISSIONS != 0 {
            permissions.set_mode(permissions.mode() & !OTHERS_PERMISSIONS);
            std::fs::set_permissions(folder, permissions)?;
        }
        Ok(())
    };
    restrict().map_err(|cause| failed("remove the permissions of others from", folder, &cause))
}

/// Replaces a file atomically: after a crash it has either its old or its new content. Only its owner can read it.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let next = path.with_extension("next");
    let write = || -> std::io::Result<()> {
        // A file left by a crash may have other permissions; a new file has the right ones.
        match std::fs::remove_file(&next) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(cause),
            Ok(()) | Err(_) => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&next, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    };
    write().map_err(|cause| failed("write", path, &cause))
}

/// Reads a file that holds a secret; refuses one that others can read.
pub(crate) fn read_private(path: &Path) -> Result<Option<String>, Failure> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(failed("read", path, &cause)),
    };
    if metadata.mode() & OTHERS_PERMISSIONS != 0 {
        let path = path.display();
        return Err(Failure::Configuration(format!(
            "others can read the secrets in \"{path}\"; remove their permissions: chmod 600 \"{path}\""
        )));
    }
    std::fs::read_to_string(path).map(Some).map_err(|cause| failed("read", path, &cause))
}

/// Identifies the content of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    bytes: u64,
    modified_ns: (i64, i64),
}

impl Stamp {
    /// `None` if the file does not exist or cannot be queried.
    pub(crate) fn of(path: &Path) -> Option<Stamp> {
        let metadata = std::fs::metadata(path).ok()?;
        let modified_ns = (metadata.mtime(), metadata.mtime_nsec());
        Some(Stamp { inode: metadata.ino(), bytes: metadata.size(), modified_ns })
    }
}

/// Files that may change while the server runs. Create it before reading them, so that no change is missed.
#[derive(Clone, Debug)]
pub(crate) struct WatchedFiles {
    files: Vec<(PathBuf, Option<Stamp>)>,
}

impl WatchedFiles {
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> WatchedFiles {
        WatchedFiles { files: paths.into_iter().map(|path| (path.clone(), Stamp::of(&path))).collect() }
    }

    pub(crate) fn and(mut self, path: PathBuf) -> WatchedFiles {
        let stamp = Stamp::of(&path);
        self.files.push((path, stamp));
        self
    }

    /// Whether any of them has changed since the last call.
    pub(crate) fn changed(&mut self) -> bool {
        let mut changed = false;
        for (path, seen) in &mut self.files {
            let now = Stamp::of(path);
            changed |= now != *seen;
            *seen = now;
        }
        changed
    }
}

/// The failure of an operation on a file.
pub(crate) fn failed(attempt: &str, path: &Path, cause: &std::io::Error) -> Failure {
    Failure::Io { what: format!("cannot {attempt} \"{}\"", path.display()), cause: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_replaced_whole_and_read_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.toml");
        assert!(read_private(&path).unwrap().is_none());
        std::fs::write(path.with_extension("next"), "left over").unwrap();
        for text in ["one", "two"] {
            write_private(&path, text).unwrap();
            assert_eq!(read_private(&path).unwrap().unwrap(), text);
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(
            matches!(read_private(&path), Err(Failure::Configuration(text)) if text.contains("chmod 600"))
        );
    }

    #[test]
    fn a_replaced_file_has_changed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut watched = WatchedFiles::new([path.clone()]);
        assert!(!watched.changed());
        for text in ["same size", "size same"] {
            write_private(&path, text).unwrap();
            assert!(watched.changed());
            assert!(!watched.changed());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(watched.changed());
    }
}
