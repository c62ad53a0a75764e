//! The file `FLUSHED`: the commit before which all rows are in tables of every space.
//!
//! The tables of a space do not say that: a space that is written rarely has no table with a recent number. A repair
//! needs to know it, because damage in a part of a journal that nothing needs any more is harmless.
//!
//! It is written when all spaces were flushed. A missing, damaged or old file only says less, so it is neither synced
//! nor required. It is about the journals up to its own: later ones may count commits from a lower number.
//!
//! ```text
//! FLUSHED   "PHFLSH" 0 1, number of a journal (8), number of a commit (8), XXH3 of all before (8)
//! ```
//! All numbers are little-endian.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use bytes::{Buf, BufMut};
use xxhash_rust::xxh3::xxh3_64;

const FLUSHED_FILE: &str = "FLUSHED";
const HEAD: [u8; 8] = *b"PHFLSH\0\x01";
const CHECKSUM_BYTES: usize = 8;
const FILE_BYTES: usize = HEAD.len() + 16 + CHECKSUM_BYTES;

/// All rows of the commits before `commit` are in tables, if they are in this journal or an older one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flushed {
    pub(super) journal: u64,
    pub(super) commit: u64,
}

impl Flushed {
    /// What is known of a store; `None` if that is nothing.
    pub(super) fn read(store: &Path) -> io::Result<Option<Flushed>> {
        match fs::read(store.join(FLUSHED_FILE)) {
            Ok(bytes) => Ok(Flushed::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(self, store: &Path) -> io::Result<()> {
        fs::write(store.join(FLUSHED_FILE), self.encode())
    }

    /// Durably forgets what was known, before journals are cut: their numbers of commits may be assigned again.
    pub(super) fn forget(store: &Path) -> io::Result<()> {
        match fs::remove_file(store.join(FLUSHED_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| File::open(store)?.sync_all()),
        }
    }

    /// The first commit of a journal that may not be in tables; 0 if nothing is known.
    pub(super) fn until(flushed: Option<Flushed>, journal: u64) -> u64 {
        flushed.filter(|flushed| journal <= flushed.journal).map_or(0, |flushed| flushed.commit)
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        bytes.put_slice(&HEAD);
        bytes.put_u64_le(self.journal);
        bytes.put_u64_le(self.commit);
        let checksum = xxh3_64(&bytes);
        bytes.put_u64_le(checksum);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Flushed> {
        let (body, mut checksum) = bytes.split_at_checked(FILE_BYTES - CHECKSUM_BYTES)?;
        let mut numbers = body.strip_prefix(&HEAD)?;
        let is_whole = bytes.len() == FILE_BYTES && checksum.try_get_u64_le().ok()? == xxh3_64(body);
        is_whole.then_some(())?;
        Some(Flushed { journal: numbers.try_get_u64_le().ok()?, commit: numbers.try_get_u64_le().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_as_it_was_written_or_not_at_all() {
        let flushed = Flushed { journal: 7, commit: 871 };
        let bytes = flushed.encode();
        assert_eq!((Flushed::decode(&bytes), bytes.len()), (Some(flushed), FILE_BYTES));
        for position in 0..bytes.len() {
            assert_eq!(Flushed::decode(&bytes[..position]), None);
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[position] ^= 1 << bit;
                assert_eq!(Flushed::decode(&changed), None, "byte {position}, bit {bit}");
            }
        }
    }

    #[test]
    fn it_says_nothing_of_later_journals() {
        let flushed = Some(Flushed { journal: 7, commit: 871 });
        assert_eq!([6, 7, 8].map(|journal| Flushed::until(flushed, journal)), [871, 871, 0]);
        assert_eq!(Flushed::until(None, 0), 0);
    }
}
