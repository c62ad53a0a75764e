//! Checks the engine's small files before the engine opens them: presence and checksums.
//!
//! The engine treats a missing file as one that was never created: it deletes a keyspace without its `current`, starts
//! an empty database if its version file is missing, and ignores a keyspace whose folder is gone. So the format file
//! records which files must exist, and nothing is opened unless they do.
//!
//! Knows the layout of the engine's folder; never changes a file.
//!
//! ```text
//! engine/  version            "FJL" 3
//!          N.jnl              journals, numbered in their order
//!          keyspaces/N/       0 is the engine's own list of keyspaces
//!            current          number of the manifest (8), its XXH3 (16), kind of checksum (1)
//!            vN               manifest: sections, table of contents, trailer
//!            tables/N         immutable tables
//!
//! section "tables" of a manifest   number of levels (1), for each the number of runs (1), for each the number of
//!                                  tables (4), for each: number (8), kind of checksum (1), XXH3 (16), ingest (8)
//! table of contents, trailer       as of a table
//! ```
//! All numbers are little-endian.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Buf;
use xxhash_rust::xxh3::xxh3_128;

use super::folder::{ENGINE_FOLDER, Folder};
use super::format::Format;
use super::journal;
use super::synced::Synced;
use super::table::{self, TRAILER_LENGTH, TableEntry, Trailer};
use crate::fault::{Cause, OpenFault};

pub(super) const KEYSPACES_FOLDER: &str = "keyspaces";
pub(super) const TABLES_FOLDER: &str = "tables";
pub(super) const VERSION_FILE: &str = "version";
const CURRENT_FILE: &str = "current";

const VERSION_BYTES: [u8; 4] = *b"FJL\x03";
const CURRENT_LENGTH: usize = 25;
const TABLES_SECTION: &[u8] = b"tables";
const CHECKSUM_KIND: u8 = 0;

/// The keyspace in which the engine lists all keyspaces.
const LIST_KEYSPACE: u64 = 0;

/// Checks that everything named by the format file and the engine's manifests exists and is plausible without reading
/// tables. Returns the tables.
pub(super) fn check(folder: &Folder, synced: &Synced) -> Result<Vec<TableEntry>, OpenFault> {
    let (format, engine) = (folder.format(), folder.engine());
    if !format.has_data() {
        // Nothing was ever committed: the first open may have been interrupted at any point.
        return Ok(Vec::new());
    }
    let mut missing = Vec::new();
    check_version(&engine, &mut missing)?;
    check_journals(&engine, &format, synced, &mut missing)?;
    let tables = check_keyspaces(&engine, &format, &mut missing)?;
    if missing.is_empty() {
        return Ok(tables);
    }
    let relative = |path: PathBuf| path.strip_prefix(folder.path()).map(Path::to_path_buf).unwrap_or(path);
    Err(OpenFault::Missing {
        path: folder.path().to_path_buf(),
        missing: missing.into_iter().map(relative).collect(),
    })
}

fn check_version(engine: &Path, missing: &mut Vec<PathBuf>) -> Result<(), OpenFault> {
    let path = engine.join(VERSION_FILE);
    match read(&path)? {
        None => missing.push(path),
        Some(bytes) if bytes != VERSION_BYTES => {
            return Err(damaged(&path, "it does not name the version of the engine"));
        }
        Some(_) => {}
    }
    Ok(())
}

/// Journals are removed in order, the oldest first, and never the newest.
fn check_journals(
    engine: &Path,
    format: &Format,
    synced: &Synced,
    missing: &mut Vec<PathBuf>,
) -> Result<(), OpenFault> {
    let path_of = |number: u64| engine.join(format!("{number}.jnl"));
    let mut journals = journal::list_if_exists(engine)
        .map_err(|source| OpenFault::Io { path: engine.to_path_buf(), source })?;
    journals.sort();
    let newest_known = format.journal.map(|journal| journal.number).max(synced.newest());
    let Some((newest, _)) = journals.last() else {
        missing.push(path_of(newest_known.unwrap_or(0)));
        return Ok(());
    };
    for (pair, next) in journals.iter().zip(journals.iter().skip(1)) {
        missing.extend((pair.0 + 1..next.0).map(path_of));
    }
    missing.extend(newest_known.filter(|number| number > newest).map(path_of));
    Ok(())
}

fn check_keyspaces(
    engine: &Path,
    format: &Format,
    missing: &mut Vec<PathBuf>,
) -> Result<Vec<TableEntry>, OpenFault> {
    let folder = engine.join(KEYSPACES_FOLDER);
    let mut known: Vec<u64> = format.keyspaces().chain([LIST_KEYSPACE]).collect();
    let found = numbered_folders(&folder)?;
    // An unknown folder was being created when the process ended. Without its `current` it is no keyspace yet.
    let is_complete = |number: &&u64| folder.join(number.to_string()).join(CURRENT_FILE).exists();
    known.extend(found.iter().filter(is_complete));
    known.sort_unstable();
    known.dedup();
    let mut tables = Vec::new();
    for number in known {
        check_keyspace(&folder, number, missing, &mut tables)?;
    }
    Ok(tables)
}

/// Folders of `path` whose names are numbers. The engine does not create others.
fn numbered_folders(path: &Path) -> Result<Vec<u64>, OpenFault> {
    let fault = |source| OpenFault::Io { path: path.to_path_buf(), source };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fault(error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fault)?;
        if entry.file_type().map_err(fault)?.is_dir() {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            numbers.push(number.ok_or_else(|| damaged(&entry.path(), "it is not a folder of the engine"))?);
        }
    }
    Ok(numbers)
}

fn check_keyspace(
    keyspaces: &Path,
    keyspace_number: u64,
    missing: &mut Vec<PathBuf>,
    tables: &mut Vec<TableEntry>,
) -> Result<(), OpenFault> {
    let keyspace = keyspaces.join(keyspace_number.to_string());
    let current_path = keyspace.join(CURRENT_FILE);
    let Some(current) = read(&current_path)? else {
        missing.push(current_path);
        return Ok(());
    };
    let (number, checksum) =
        parse_current(&current).ok_or_else(|| damaged(&current_path, "it does not name a manifest"))?;
    let manifest_path = keyspace.join(format!("v{number}"));
    let Some(manifest) = read(&manifest_path)? else {
        // Either the file is missing or `current` names a wrong one.
        missing.push(manifest_path);
        return Ok(());
    };
    if xxh3_128(&manifest) != checksum {
        return Err(damaged(&manifest_path, "its checksum does not match the one in \"current\""));
    }
    let named = parse_manifest(&manifest)
        .ok_or_else(|| damaged(&manifest_path, "its list of tables cannot be read"))?;
    let folder = keyspace.join(TABLES_FOLDER);
    check_table_names(&folder)?;
    for NamedTable { number, checksum, ingest } in named {
        let path = folder.join(number.to_string());
        match fs::metadata(&path) {
            Ok(metadata) => {
                table::check_tail(&path, metadata.len())?;
                tables.push(TableEntry { path, checksum, keyspace: keyspace_number, ingest });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(path),
            Err(source) => return Err(OpenFault::Io { path, source }),
        }
    }
    Ok(())
}

/// The engine panics if it finds a folder among the tables.
fn check_table_names(folder: &Path) -> Result<(), OpenFault> {
    match numbered_folders(folder)?.first() {
        Some(number) => Err(damaged(&folder.join(number.to_string()), "it is a folder, not a table")),
        None => Ok(()),
    }
}

/// Number and checksum of the manifest that `current` names.
fn parse_current(mut bytes: &[u8]) -> Option<(u64, u128)> {
    let is_whole = bytes.len() == CURRENT_LENGTH;
    let (number, checksum) = (bytes.try_get_u64_le().ok()?, bytes.try_get_u128_le().ok()?);
    (is_whole && bytes.first() == Some(&CHECKSUM_KIND)).then_some((number, checksum))
}

/// A table in a manifest.
struct NamedTable {
    number: u64,
    checksum: u128,
    ingest: u64,
}

/// The tables in a manifest.
fn parse_manifest(manifest: &[u8]) -> Option<Vec<NamedTable>> {
    let mut tables = section(manifest, TABLES_SECTION)?;
    let mut found = Vec::new();
    for _ in 0..tables.try_get_u8().ok()? {
        for _ in 0..tables.try_get_u8().ok()? {
            for _ in 0..tables.try_get_u32_le().ok()? {
                let number = tables.try_get_u64_le().ok()?;
                (tables.try_get_u8().ok()? == CHECKSUM_KIND).then_some(())?;
                let checksum = tables.try_get_u128_le().ok()?;
                found.push(NamedTable { number, checksum, ingest: tables.try_get_u64_le().ok()? });
            }
        }
    }
    tables.is_empty().then_some(found)
}

/// A section of a manifest, by its name.
fn section<'a>(manifest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let trailer = Trailer::parse(manifest.get(manifest.len().checked_sub(TRAILER_LENGTH)?..)?)?;
    let contents = manifest.get(usize::try_from(trailer.contents_position).ok()?..)?;
    let (position, length) = table::find_section(contents, wanted)?;
    let position = usize::try_from(position).ok()?;
    manifest.get(position..position.checked_add(usize::try_from(length).ok()?)?)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, OpenFault> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(OpenFault::Io { path: path.to_path_buf(), source }),
    }
}

pub(super) fn damaged(path: &Path, cause: &str) -> OpenFault {
    OpenFault::DamagedFile { path: path.to_path_buf(), cause: Cause::new(cause) }
}

/// Whether a path is in the engine's folder and names a file that the engine never changes once it is complete.
pub(super) fn is_immutable(relative: &Path) -> bool {
    let mut parts = relative.iter();
    parts.next().is_some_and(|part| part == ENGINE_FOLDER)
        && parts.next().is_some_and(|part| part == KEYSPACES_FOLDER)
        && parts.nth(1).is_some_and(|part| part == TABLES_FOLDER)
}
