//! The marker file that records that a data folder has a store: if the whole store is deleted, nothing else shows it.
//!

use crate::failure::Failure;
use crate::files;
use std::path::Path;

/// Folder of the store in a data folder.
pub(crate) const STORE_FOLDER: &str = "store";

const MARKER_FILE: &str = "store.made";
const MARKER_TEXT: &str = "The documents of this data folder are in the folder \"store\".\n\
    The server refuses to start without it. Delete this file to start with an empty store.\n";

/// A file of every store.
const STORE_FILE: &str = "FORMAT";

/// Refuses a data folder whose store is missing.
pub(crate) fn check(data: &Path) -> Result<(), Failure> {
    let store = data.join(STORE_FOLDER);
    if !data.join(MARKER_FILE).exists() || store.join(STORE_FILE).exists() {
        return Ok(());
    }
    Err(Failure::Io {
        what: format!("cannot use the data folder \"{}\"", data.display()),
        cause: format!(
            "it had a store, but \"{}\" is missing; restore \"{STORE_FOLDER}\" from a backup, or delete \"{MARKER_FILE}\" \
             to start with an empty store",
            store.join(STORE_FILE).display()
        ),
    })
}

/// Writes the marker of a data folder whose store is open.
pub(crate) fn make(data: &Path) -> Result<(), Failure> {
    let marker = data.join(MARKER_FILE);
    if marker.exists() { Ok(()) } else { files::write_private(&marker, MARKER_TEXT) }
}

/// Refuses a data folder without a store, for a command that does not create one.
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
