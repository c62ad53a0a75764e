//! The frame of the engine's tables: enough to check that a table is complete and which commits it holds, without
//! reading its rows.
//!
//! ```text
//! sections, table of contents
//! trailer    "SFA!" 1 0, XXH3 of the table of contents (16), its position (8), its length (8)
//! contents   "TOC!", count (4), for each: position (8), length (8), name length (2), name
//!
//! section "meta"   head (33) with the XXH3 of the rest (16) at byte 5, then the properties
//! property         0, 0, name length, name, value length, value; lengths in groups of 7 bits, the lowest first
//! ```
//! All other numbers are little-endian.

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

const CONTENTS_HEAD: [u8; 4] = *b"TOC!";
const META_SECTION: &[u8] = b"meta";
/// Longest section with properties that is read: two keys and some numbers.
const META_BYTES_MAX: u64 = 1 << 20;
const META_HEAD_BYTES: usize = 33;
const META_CHECKSUM_AT: usize = 5;
/// Highest number of a commit in the table.
const HIGHEST_PROPERTY: &[u8] = b"seqno#max";
/// Level for which the table was written; a flush writes for the first one, and nothing else does.
const LEVEL_PROPERTY: &[u8] = b"initial_level";

/// Buffer size for reading a table.
const READ_BYTES: usize = 1 << 20;

/// A table as listed in its manifest.
pub(super) struct TableEntry {
    pub(super) path: PathBuf,
    pub(super) checksum: u128,
    /// The keyspace that it belongs to.
    pub(super) keyspace: u64,
    /// Number of the ingest that wrote it; 0 if none did.
    pub(super) ingest: u64,
}

/// Which commits a table holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TableCommits {
    /// The highest number of its rows.
    pub(super) highest: u64,
    /// Whether it was written from a memtable, so that all its rows are of commits. Others may be of an ingest.
    pub(super) is_flushed: bool,
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
    Ok(read_contents(&mut File::open(path)?, length)?.is_some())
}

/// The table of contents of a file with this length; `None` if it does not match its checksum.
fn read_contents(file: &mut File, length: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(end) = length.checked_sub(TRAILER_LENGTH as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER_LENGTH];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut trailer)?;
    let Some(trailer) = Trailer::parse(&trailer) else { return Ok(None) };
    let Some(contents_length) = end.checked_sub(trailer.contents_position) else { return Ok(None) };
    if contents_length > CONTENTS_BYTES_MAX {
        return Ok(None);
    }
    let contents = read_at(file, trailer.contents_position, contents_length)?;
    Ok(Some(contents).filter(|contents| xxh3_128(contents) == trailer.contents_checksum))
}

fn read_at(file: &mut File, position: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(position))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Position and length of a section, by its name.
pub(super) fn find_section(contents: &[u8], wanted: &[u8]) -> Option<(u64, u64)> {
    let mut contents = contents.strip_prefix(&CONTENTS_HEAD)?;
    for _ in 0..contents.try_get_u32_le().ok()? {
        let (position, length) = (contents.try_get_u64_le().ok()?, contents.try_get_u64_le().ok()?);
        let name_length = usize::from(contents.try_get_u16_le().ok()?);
        let name = contents.get(..name_length)?;
        contents.advance(name_length);
        if name == wanted {
            return Some((position, length));
        }
    }
    None
}

/// Reads which commits a table holds.
pub(super) fn commits(table: &TableEntry) -> Result<TableCommits, OpenFault> {
    let fault = |source| OpenFault::Io { path: table.path.clone(), source };
    let found = read_commits(table).map_err(fault)?;
    found.ok_or_else(|| damaged(&table.path, "its properties cannot be read"))
}

fn read_commits(table: &TableEntry) -> io::Result<Option<TableCommits>> {
    let mut file = File::open(&table.path)?;
    let length = file.metadata()?.len();
    let Some(contents) = read_contents(&mut file, length)? else { return Ok(None) };
    let meta = find_section(&contents, META_SECTION).filter(|(_, length)| *length <= META_BYTES_MAX);
    let Some((position, length)) = meta else { return Ok(None) };
    let meta = read_at(&mut file, position, length)?;
    Ok(parse_commits(&meta, table.ingest))
}

fn parse_commits(meta: &[u8], ingest: u64) -> Option<TableCommits> {
    let (head, properties) = meta.split_at_checked(META_HEAD_BYTES)?;
    let checksum = head.get(META_CHECKSUM_AT..)?.try_get_u128_le().ok()?;
    (checksum == xxh3_128(properties)).then_some(())?;
    let highest = property(properties, HIGHEST_PROPERTY)?.try_get_u64_le().ok()?;
    let level = property(properties, LEVEL_PROPERTY)?.try_get_u8().ok()?;
    Some(TableCommits { highest: highest.checked_add(ingest)?, is_flushed: level == 0 && ingest == 0 })
}

/// The value of a property, by its name. They are in ascending order.
fn property<'a>(mut properties: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    loop {
        (properties.try_get_u16_le().ok()? == 0).then_some(())?;
        let name = take_counted(&mut properties)?;
        let value = take_counted(&mut properties)?;
        if name == wanted {
            return Some(value);
        }
    }
}

/// Bytes with their length in front of them.
fn take_counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0_usize;
    for shift in [0, 7, 14, 21] {
        let group = bytes.try_get_u8().ok()?;
        length |= usize::from(group & 0x7f) << shift;
        if group & 0x80 == 0 {
            return bytes.split_off(..length);
        }
    }
    None
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
