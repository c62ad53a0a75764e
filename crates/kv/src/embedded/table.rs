//! The frame of the engine's tables: enough to check that a table is complete, without reading its rows.
//!
//! ```text
//! sections, table of contents
//! trailer   "SFA!" 1 0, XXH3 of the table of contents (16), its position (8), its length (8)
//! ```
//! All numbers are little-endian. Knows nothing of the sections.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Buf;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::folder::Folder;
use super::inspect::{self, damaged};
use crate::fault::OpenFault;

pub(super) const TRAILER_LENGTH: usize = 38;
const TRAILER_HEAD: [u8; 6] = *b"SFA!\x01\x00";

/// Longest table of contents that is read: it lists a few sections.
const CONTENTS_BYTES_MAX: u64 = 64 << 10;

/// Buffer size for reading a table.
const READ_BYTES: usize = 1 << 20;

/// A table as listed in its manifest.
pub(super) struct TableEntry {
    pub(super) path: PathBuf,
    pub(super) checksum: u128,
}

/// The last bytes of a table or a manifest.
pub(super) struct Trailer {
    pub(super) contents_checksum: u128,
    pub(super) contents_position: u64,
}

impl Trailer {
    pub(super) fn parse(bytes: &[u8]) -> Option<Trailer> {
        let mut rest = bytes.strip_prefix(&TRAILER_HEAD)?;
        let contents_checksum = rest.try_get_u128_le().ok()?;
        Some(Trailer { contents_checksum, contents_position: rest.try_get_u64_le().ok()? })
    }
}

/// Compares the table of contents with its checksum. The engine does so too, but only after it has allocated memory for
/// the number of sections found in the file.
pub(super) fn check_tail(path: &Path, length: u64) -> Result<(), OpenFault> {
    let fault = |source| OpenFault::Io { path: path.to_path_buf(), source };
    match has_sound_tail(path, length).map_err(fault)? {
        true => Ok(()),
        false => Err(damaged(path, "its table of contents does not match its checksum")),
    }
}

fn has_sound_tail(path: &Path, length: u64) -> io::Result<bool> {
    let Some(end) = length.checked_sub(TRAILER_LENGTH as u64) else { return Ok(false) };
    let mut file = File::open(path)?;
    let mut trailer = [0; TRAILER_LENGTH];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut trailer)?;
    let Some(trailer) = Trailer::parse(&trailer) else { return Ok(false) };
    let Some(contents_length) = end.checked_sub(trailer.contents_position) else { return Ok(false) };
    if contents_length > CONTENTS_BYTES_MAX {
        return Ok(false);
    }
    let mut contents = Vec::new();
    file.seek(SeekFrom::Start(trailer.contents_position))?;
    file.take(contents_length).read_to_end(&mut contents)?;
    Ok(xxh3_128(&contents) == trailer.contents_checksum)
}

/// Reads a whole table and compares it with the checksum of its manifest.
pub(super) fn check_whole(table: &TableEntry) -> Result<(), OpenFault> {
    let fault = |source| OpenFault::Io { path: table.path.clone(), source };
    let mut file = File::open(&table.path).map_err(fault)?;
    let mut hasher = Xxh3Default::new();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match file.read(&mut bytes).map_err(fault)? {
            0 => break,
            count => hasher.update(&bytes[..count]),
        }
    }
    if hasher.digest128() == table.checksum {
        return Ok(());
    }
    Err(damaged(&table.path, "its checksum does not match the one in its manifest"))
}

/// The first table of a store whose bytes do not match its checksum. Reads all of them.
pub(crate) fn damaged_table(store: &Path) -> Option<OpenFault> {
    let folder = Folder::open_existing(store).ok()?;
    let tables = inspect::check(&folder, &folder.synced().ok()?).ok()?;
    let is_damage = |fault: &OpenFault| matches!(fault, OpenFault::DamagedFile { .. });
    tables.iter().filter_map(|table| check_whole(table).err()).find(is_damage)
}
