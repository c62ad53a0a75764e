//! The engine's journal files, seen from outside while it is closed.
//!
//! Knows their names and the frame of their entries; what the entries say is the engine's business.
//!
//! ```text
//! batch   start  1, number of items (4), number of the commit (8)
//!         item   2, kind (1), compression (1), keyspace (8), key length (2), value length (4),
//!                stored value length (4), key, stored value
//!         end    3, checksum of all items (8), "FJL" 3
//! ```
//! All numbers are little-endian. Behind the last batch come zeros, as the file is sized ahead.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Buf;
use xxhash_rust::xxh3::xxh3_64;

use crate::fault::OpenFault;

/// File that the engine writes when it has made the frame of a new database.
const ENGINE_MARKER_FILE: &str = "version";

const KEYSPACES_FOLDER: &str = "keyspaces";

/// Length of a journal that the engine has just made: it is sized ahead, without taking room on the disk.
const NEW_JOURNAL_BYTES: u64 = 64 << 20;

const START_TAG: u8 = 1;
const ITEM_TAG: u8 = 2;
const END_TAG: u8 = 3;
const BATCH_TRAILER: [u8; 4] = *b"FJL\x03";

/// Removes what an interrupted first opening left, which the engine refuses to open. The marker comes before the
/// first keyspace, so without either no commit can have been made.
pub(super) fn remove_stillborn(engine: &Path) -> io::Result<()> {
    let has_keyspace = || match fs::read_dir(engine.join(KEYSPACES_FOLDER)) {
        Ok(mut keyspaces) => Ok(keyspaces.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    if engine.try_exists()? && !engine.join(ENGINE_MARKER_FILE).try_exists()? && !has_keyspace()? {
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
    let lengths = list(engine)?.into_iter().map(|(_, path)| Ok(path.metadata()?.len()));
    let lengths = lengths.collect::<io::Result<Vec<_>>>()?;
    Ok(lengths.into_iter().filter(|length| *length < NEW_JOURNAL_BYTES).sum())
}

/// Checks all journals before the engine reads them, and cuts a torn batch off the end of the newest.
///
/// A loss of power may keep any pages of the last, unsynced batch and lose others; nobody was told that it is
/// there, so it is cut off. Left to itself the engine would refuse to open if the frame of the batch is whole,
/// and where the frame is broken it would drop everything behind, be it the torn end or, after damage in the
/// middle, commits that were acknowledged. The two are told apart by what comes after: a batch is only written
/// when those before it are synced, so a valid one behind a broken one means damage, which is reported.
///
/// (Buffered batches are written without a sync between them. After a loss of power the first of them may be
/// torn and the next whole; that is reported too, rather than guessed at.)
pub(super) fn check_all(engine: &Path) -> Result<(), OpenFault> {
    let fault = |source| OpenFault::Io { path: engine.to_path_buf(), source };
    let mut journals =
        if engine.try_exists().map_err(fault)? { list(engine).map_err(fault)? } else { Vec::new() };
    journals.sort();
    let newest = journals.pop();
    for (_, path) in journals {
        let bytes = fs::read(&path).map_err(fault)?;
        if let Some(position) = broken_at(&bytes) {
            return Err(OpenFault::Damaged { path, position });
        }
    }
    let Some((_, path)) = newest else { return Ok(()) };
    let bytes = fs::read(&path).map_err(fault)?;
    match broken_at(&bytes) {
        None => Ok(()),
        Some(position) if has_valid_batch(&bytes[position..]) => Err(OpenFault::Damaged { path, position }),
        Some(position) => cut_off(&path, position).map_err(fault),
    }
}

/// Where the first batch that is not valid starts, if there is anything but zeros from there on.
fn broken_at(journal: &[u8]) -> Option<usize> {
    let mut position = 0;
    while let Some(Frame { length, is_valid: true }) = read_frame(&journal[position..]) {
        position += length;
    }
    (!is_zero(&journal[position..])).then_some(position)
}

/// Whether bytes are all zeros; page by page, since a new journal has 16,384 pages of them.
fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|page| *page == ZEROS[..page.len()])
}

/// Whether a valid batch starts anywhere in some bytes.
fn has_valid_batch(bytes: &[u8]) -> bool {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == START_TAG);
    starts.into_iter().any(|(start, _)| read_frame(&bytes[start..]).is_some_and(|frame| frame.is_valid))
}

fn cut_off(path: &Path, position: usize) -> io::Result<()> {
    let journal = OpenOptions::new().write(true).open(path)?;
    journal.set_len(position as u64)?;
    journal.sync_all()?;
    tracing::warn!(path = %path.display(), position, "cut an unfinished commit off the journal");
    Ok(())
}

/// A batch whose frame is complete.
struct Frame {
    length: usize,
    is_valid: bool,
}

/// Reads the frame of the batch at the start of `bytes`; `None` if there is no complete one.
fn read_frame(bytes: &[u8]) -> Option<Frame> {
    let mut rest = bytes;
    (rest.try_get_u8().ok()? == START_TAG).then_some(())?;
    let item_count = rest.try_get_u32_le().ok()?;
    rest.try_get_u64_le().ok()?;
    let items = rest;
    let mut found_count = 0;
    loop {
        let items_length = items.len() - rest.len();
        match rest.try_get_u8().ok()? {
            ITEM_TAG => {
                let mut head = rest.get(10..)?;
                let key_length = usize::from(head.try_get_u16_le().ok()?);
                head.try_get_u32_le().ok()?;
                let value_length = usize::try_from(head.try_get_u32_le().ok()?).ok()?;
                rest = head.get(key_length.checked_add(value_length)?..)?;
                found_count += 1;
            }
            END_TAG => {
                let checksum = rest.try_get_u64_le().ok()?;
                let trailer = rest.split_off(..BATCH_TRAILER.len())?;
                let is_valid = trailer == BATCH_TRAILER
                    && found_count == item_count
                    && checksum == xxh3_64(&items[..items_length]);
                return Some(Frame { length: bytes.len() - rest.len(), is_valid });
            }
            _ => return None,
        }
    }
}

fn list(engine: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(engine)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (true, Some(number)) = (is_journal, number) {
            journals.push((number, path));
        }
    }
    Ok(journals)
}
