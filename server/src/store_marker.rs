//! The mark in a data folder that says that it has a store: a store that is gone as a whole leaves no other trace.
//!
//! Knows nothing of what a store holds.

use crate::failure::Failure;
use crate::files;
use std::path::Path;

/// Folder of the store in a data folder.
pub(crate) const STORE_FOLDER: &str = "store";

const MARKER_FILE: &str = "store.made";
const MARKER_TEXT: &str = "The documents of this data folder are in the folder \"store\".\n\
    The server refuses to start without it. Delete this file to begin with an empty store.\n";

/// A file that every store has.
const STORE_FILE: &str = "FORMAT";

/// Refuses a data folder whose store is gone.
pub(crate) fn check(data: &Path) -> Result<(), Failure> {
    let store = data.join(STORE_FOLDER);
    if !data.join(MARKER_FILE).exists() || store.join(STORE_FILE).exists() {
        return Ok(());
    }
    Err(Failure::Io {
        what: format!("cannot use the data folder \"{}\"", data.display()),
        cause: format!(
            "it had a store, but \"{}\" is gone; restore \"{STORE_FOLDER}\" from a backup, or delete \"{MARKER_FILE}\" \
             to begin with an empty store",
            store.join(STORE_FILE).display()
        ),
    })
}

/// Marks a data folder whose store is open.
pub(crate) fn make(data: &Path) -> Result<(), Failure> {
    let marker = data.join(MARKER_FILE);
    if marker.exists() { Ok(()) } else { files::write_private(&marker, MARKER_TEXT) }
}

/// Refuses a data folder without a store, for a command that does not make one.
pub(crate) fn check_store(data: &Path, command: &str) -> Result<(), Failure> {
    check(data)?;
    if data.join(STORE_FOLDER).is_dir() {
        return Ok(());
    }
    Err(Failure::Io {
        what: format!("cannot {command} \"{}\"", data.display()),
        cause: "there is no store in it; name the right folder with --data DIR".to_owned(),
    })
}
