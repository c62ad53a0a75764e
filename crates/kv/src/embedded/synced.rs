//! The file `SYNCED`: the length up to which each journal is known to be synced.
//!
//! A truncated journal, as in an interrupted copy of the folder, ends like one whose last write was torn by a power
//! failure. This file distinguishes the two: it is written after a sync, so no power failure can make a journal end
//! before the recorded length. It is neither written nor synced with every commit. It lags the journal by
//! [`super::EmbeddedOptions::sync_record_interval`], and after a power failure by what the system had not written yet.
//! A closed store has nothing in its journal that could be cut off.
//!
//! The file is overwritten in place. It is smaller than a disk sector, which is written atomically.
//!
//! ```text
//! SYNCED   "PHSYNC" 0 1, 8 × (number of a journal (8), bytes (8)), XXH3 of all before (8)
//! ```
//! All numbers are little-endian; an unused entry has the number 2⁶⁴ − 1.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut};
use xxhash_rust::xxh3::xxh3_64;

use super::{frames, inspect, journal};
use crate::fault::OpenFault;

pub(super) const SYNCED_FILE: &str = "SYNCED";
pub(super) const SYNCED_DRAFT_FILE: &str = "SYNCED.new";

const HEAD: [u8; 8] = *b"PHSYNC\0\x01";

/// Most journals in the file. There are usually at most four; of more, the newest are recorded.
const JOURNALS_MAX: usize = 8;

const UNUSED: u64 = u64::MAX;
const CHECKSUM_BYTES: usize = 8;
const FILE_BYTES: usize = HEAD.len() + JOURNALS_MAX * 16 + CHECKSUM_BYTES;

/// Synced bytes of the existing journals, by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Synced {
    journals: BTreeMap<u64, u64>,
}

impl Synced {
    pub(super) fn new(journals: impl IntoIterator<Item = (u64, u64)>) -> Synced {
        Synced { journals: journals.into_iter().collect() }
    }

    /// Synced bytes of a journal, 0 if unknown.
    pub(super) fn bytes_of(&self, number: u64) -> u64 {
        self.journals.get(&number).copied().unwrap_or(0)
    }

    /// The newest journal that is known to have existed.
    pub(super) fn newest(&self) -> Option<u64> {
        self.journals.keys().next_back().copied()
    }

    /// The start of a journal is removed.
    pub(super) fn remove_front(&mut self, number: u64, front: u64) {
        self.journals.entry(number).and_modify(|bytes| *bytes = bytes.saturating_sub(front));
    }

    /// Reads the file of a store that may have data.
    pub(super) fn read(store: &Path) -> Result<Synced, OpenFault> {
        let path = store.join(SYNCED_FILE);
        match fs::read(&path) {
            Ok(bytes) => {
                Synced::decode(&bytes).ok_or_else(|| inspect::damaged(&path, "its checksum does not match"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenFault::Missing { path: store.to_path_buf(), missing: vec![SYNCED_FILE.into()] })
            }
            Err(source) => Err(OpenFault::Io { path, source }),
        }
    }

    /// Replaces the file atomically and durably.
    pub(super) fn replace(&self, store: &Path) -> io::Result<()> {
        let draft_path = store.join(SYNCED_DRAFT_FILE);
        let mut draft = File::create(&draft_path)?;
        draft.write_all(&self.encode())?;
        draft.sync_all()?;
        fs::rename(&draft_path, store.join(SYNCED_FILE))?;
        File::open(store)?.sync_all()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        bytes.put_slice(&HEAD);
        let newest = self.journals.iter().rev().take(JOURNALS_MAX).map(|(number, length)| (*number, *length));
        for (number, length) in newest.chain(std::iter::repeat((UNUSED, 0))).take(JOURNALS_MAX) {
            bytes.put_u64_le(number);
            bytes.put_u64_le(length);
        }
        let checksum = xxh3_64(&bytes);
        bytes.put_u64_le(checksum);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Synced> {
        let (body, mut checksum) = bytes.split_at_checked(FILE_BYTES - CHECKSUM_BYTES)?;
        let mut entries = body.strip_prefix(&HEAD)?;
        let is_whole = bytes.len() == FILE_BYTES && checksum.try_get_u64_le().ok()? == xxh3_64(body);
        is_whole.then_some(())?;
        let mut synced = Synced::default();
        while let (Ok(number), Ok(length)) = (entries.try_get_u64_le(), entries.try_get_u64_le()) {
            if number != UNUSED {
                synced.journals.insert(number, length);
            }
        }
        Some(synced)
    }

    /// Adds `new_bytes` that were appended to the journals in `engine` since the last call.
    fn advance(&mut self, engine: &Path, new_bytes: u64) -> io::Result<()> {
        let mut journals = journal::list_if_exists(engine)?;
        journals.sort();
        let Some((newest, _)) = journals.last() else { return Ok(()) };
        if self.newest() == Some(*newest) {
            *self.journals.entry(*newest).or_default() += new_bytes;
        } else {
            // The engine has rotated the journal, at an unknown byte.
            let first = self.newest().unwrap_or(0);
            for (number, path) in journals.iter().filter(|(number, _)| *number >= first) {
                let length = self.bytes_of(*number);
                let added = match whole_batches(path, length, new_bytes) {
                    // It was flushed and removed concurrently.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    added => added?,
                };
                self.journals.insert(*number, length + added);
            }
        }
        self.journals.retain(|number, _| journals.iter().any(|(existing, _)| existing == number));
        Ok(())
    }
}

/// Bytes of complete batches in a journal from `position` on, at most `bytes_max`.
fn whole_batches(path: &Path, position: u64, bytes_max: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(position))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(frames::scan(&bytes, None).end as u64)
}

/// Keeps the file up to date while the engine is open.
pub(super) struct SyncRecorder {
    file: File,
    synced: Synced,
    interval: Duration,
    /// Bytes appended to the journals since the file was written.
    new_bytes: u64,
    /// When the file is next written, if anything changed.
    due_at: Option<Instant>,
}

impl SyncRecorder {
    /// Starts with the journals found in `engine` and syncs them: a killed process may not have done so.
    pub(super) fn start(store: &Path, engine: &Path, found: Synced, interval: Duration) -> io::Result<Self> {
        for (_, path) in journal::list_if_exists(engine)? {
            File::open(path)?.sync_data()?;
        }
        if Synced::read(store).ok().as_ref() != Some(&found) {
            found.replace(store)?;
        }
        let file = OpenOptions::new().write(true).open(store.join(SYNCED_FILE))?;
        Ok(SyncRecorder { file, synced: found, interval, new_bytes: 0, due_at: None })
    }

    pub(super) fn note_appended(&mut self, bytes: u64) {
        self.new_bytes += bytes;
    }

    /// When [`SyncRecorder::record_if_due`] is due without another commit.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Called when everything in the journals is synced. A failure is not fatal: it is tried again later.
    pub(super) fn record_if_due(&mut self, engine: &Path) {
        if self.new_bytes == 0 {
            return;
        }
        let now = Instant::now();
        if now < *self.due_at.get_or_insert(now + self.interval) {
            return;
        }
        match self.record(engine) {
            Ok(()) => self.due_at = None,
            Err(error) => {
                tracing::warn!(event = "sync_record_failed", %error, "the synced length of the journal could not be recorded");
                self.due_at = Some(now + self.interval);
            }
        }
    }

    fn record(&mut self, engine: &Path) -> io::Result<()> {
        let mut synced = self.synced.clone();
        synced.advance(engine, self.new_bytes)?;
        self.file.write_all_at(&synced.encode(), 0)?;
        self.synced = synced;
        self.new_bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_as_it_was_written() {
        for journals in [vec![], vec![(0, 0)], vec![(3, 871), (4, 12)], (0..8).map(|n| (n, n * 7)).collect()]
        {
            let synced = Synced::new(journals);
            assert_eq!(Synced::decode(&synced.encode()), Some(synced));
        }
        let many = Synced::new((0..20).map(|number| (number, 1)));
        let kept = Synced::decode(&many.encode()).unwrap();
        assert_eq!((kept.journals.len(), kept.bytes_of(11), kept.bytes_of(12)), (JOURNALS_MAX, 0, 1));
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_noticed() {
        let bytes = Synced::new([(3, 871)]).encode();
        assert_eq!(bytes.len(), FILE_BYTES);
        for position in 0..bytes.len() {
            assert_eq!(Synced::decode(&bytes[..position]), None);
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[position] ^= 1 << bit;
                assert_eq!(Synced::decode(&changed), None, "byte {position}, bit {bit}");
            }
        }
    }
}
