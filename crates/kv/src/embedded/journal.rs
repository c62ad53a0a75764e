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

/// File that the engine writes last when it makes a new database.
const ENGINE_MARKER_FILE: &str = "version";

/// Length of a journal that the engine has just made: it is sized ahead, without taking room on the disk.
const NEW_JOURNAL_BYTES: u64 = 64 << 20;

const BATCH_TRAILER: [u8; 4] = *b"FJL\x03";

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
        .filter(|length| *length < NEW_JOURNAL_BYTES)
        .sum())
}

/// Cuts a torn batch off the end of the newest journal and returns whether there was one.
///
/// A loss of power may keep any pages of an unsynced batch and lose others. If what is left still has the frame
/// of a batch, the engine takes it for damage and refuses to open for ever. Without a valid batch behind it,
/// though, it was the last one and nobody was told that it is there: cutting it off is right. With one behind it,
/// it had been synced, so this is damage indeed, and the journal is left as it is.
pub(super) fn cut_torn_tail(engine: &Path) -> io::Result<bool> {
    let Some((_, path)) = list(engine)?.into_iter().max() else {
        return Ok(false);
    };
    let bytes = fs::read(&path)?;
    let mut position = 0;
    let mut torn_at = None;
    while let Some(frame) = read_frame(&bytes[position..]) {
        match (frame.is_valid, torn_at) {
            (true, Some(_)) => return Ok(false),
            (false, None) => torn_at = Some(position),
            (true, None) | (false, Some(_)) => {}
        }
        position += frame.length;
    }
    let valid_end = torn_at.unwrap_or(position);
    if bytes[valid_end..].iter().all(|byte| *byte == 0) {
        return Ok(false);
    }
    let journal = OpenOptions::new().write(true).open(&path)?;
    journal.set_len(valid_end as u64)?;
    journal.sync_all()?;
    tracing::warn!(path = %path.display(), valid_end, "cut an unfinished commit off the journal");
    Ok(true)
}

/// A batch whose frame is complete.
struct Frame {
    length: usize,
    is_valid: bool,
}

/// Reads the frame of the batch at the start of `bytes`; `None` if there is no complete one.
fn read_frame(bytes: &[u8]) -> Option<Frame> {
    let mut rest = bytes;
    (rest.try_get_u8().ok()? == 1).then_some(())?;
    let item_count = rest.try_get_u32_le().ok()?;
    rest.try_get_u64_le().ok()?;
    let items = rest;
    let mut found_count = 0;
    loop {
        let items_length = items.len() - rest.len();
        match rest.try_get_u8().ok()? {
            2 => {
                let mut head = rest.get(10..)?;
                let key_length = usize::from(head.try_get_u16_le().ok()?);
                head.try_get_u32_le().ok()?;
                let value_length = usize::try_from(head.try_get_u32_le().ok()?).ok()?;
                rest = head.get(key_length.checked_add(value_length)?..)?;
                found_count += 1;
            }
            3 => {
                let checksum = rest.try_get_u64_le().ok()?;
                let trailer = rest.split_off(..BATCH_TRAILER.len())?;
                let is_valid = trailer == BATCH_TRAILER
                    && found_count == item_count
                    && checksum == xxh3_64(&items[..items_length]);
                return Some(Frame {
                    length: bytes.len() - rest.len(),
                    is_valid,
                });
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
