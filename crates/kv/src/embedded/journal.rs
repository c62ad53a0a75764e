//! The engine's journal files, seen from outside while it is closed.
//!
//! Knows their names and that an empty one is a valid one; nothing of their inside.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// File that the engine writes last when it makes a new database.
const ENGINE_MARKER_FILE: &str = "version";

/// Removes what an interrupted first opening left, which the engine refuses to open: without its marker no commit
/// can have been made.
pub(super) fn remove_stillborn(engine: &Path) -> io::Result<()> {
    if engine.try_exists()? && !engine.join(ENGINE_MARKER_FILE).try_exists()? {
        fs::remove_dir_all(engine)?;
    }
    Ok(())
}

/// Puts one empty journal in the place of all others. Everything in them must be in tables.
///
/// The engine needs a journal to find its place in the count of commits, so the new one comes before the old go.
pub(super) fn replace_all(engine: &Path) -> io::Result<()> {
    let journals = list(engine)?;
    let next = journals.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    File::create_new(engine.join(format!("{next}.jnl")))?.sync_all()?;
    File::open(engine)?.sync_all()?;
    for (_, path) in journals {
        fs::remove_file(path)?;
    }
    File::open(engine)?.sync_all()
}

/// Bytes of all journals that hold something. One that was just made is as long as it may get.
pub(super) fn live_bytes(engine: &Path) -> io::Result<u64> {
    let lengths = list(engine)?
        .into_iter()
        .map(|(_, path)| Ok(path.metadata()?.len()));
    let lengths = lengths.collect::<io::Result<Vec<_>>>()?;
    Ok(lengths
        .into_iter()
        .filter(|length| *length < super::engine::NEW_JOURNAL_BYTES)
        .sum())
}

fn list(engine: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(engine)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.parse().ok());
        if let (true, Some(number)) = (is_journal, number) {
            journals.push((number, path));
        }
    }
    Ok(journals)
}
