//! Blocks of a run: sorted terms with their documents, checked by a checksum.
//!
//! ```text
//! row      checksum:8 · payload
//! block    entry … · offset of each restart:4 … · count of restarts:4
//! entry    shared · length · rest of the key · posting
//! posting  count · 0                                 all documents of the run
//!          count · 1 · differences of ranks
//!          count · 2 · length · roaring bitmap
//!          count · 3 · row of the run with the roaring bitmap
//!          count · 4 · length · differences of ranks  for many ranks, so that a reader can skip them
//! ```
//!
//! A key is a path and a code. It is stored without the prefix that it shares with the previous key, except at a
//! restart, every sixteenth entry, where it is complete. Numbers without a size are variable-length: seven bits per
//! byte, lowest first. The checksum covers the payload; a reader checks every length in addition.

use crate::index::ranks::Posting;
use crate::storage::damaged;
use bytes::{Buf, BufMut, Bytes};
use model::Fault;
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use xxhash_rust::xxh3::xxh3_64;

/// Size at which a block is closed.
const BLOCK_BYTES: usize = 16 * 1024;
/// Entries from one complete key to the next.
const RESTART_INTERVAL: usize = 16;
/// Maximum number of documents of a posting list; longer postings are bitmaps.
const LIST_MAX: u64 = 128;
/// Maximum number of documents of a list without a length.
const SHORT_LIST_MAX: usize = 4;
/// Maximum size of a bitmap that is stored inside a block.
const BITMAP_INLINE_MAX: usize = 4096;

const FULL: u8 = 0;
const LIST: u8 = 1;
const BITMAP: u8 = 2;
const ELSEWHERE: u8 = 3;
const LONG_LIST: u8 = 4;

/// A row with its checksum.
pub(crate) fn seal(payload: &[u8]) -> Bytes {
    let mut row = Vec::with_capacity(8 + payload.len());
    row.put_u64(xxh3_64(payload));
    row.put_slice(payload);
    row.into()
}

/// The payload of a row, if its checksum matches.
pub(crate) fn unseal(mut row: Bytes) -> Result<Bytes, Fault> {
    let sum = row.try_get_u64().map_err(|_| bad())?;
    if xxh3_64(&row) == sum { Ok(row) } else { Err(bad()) }
}

fn bad() -> Fault {
    damaged("row of the index")
}

pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

#[inline]
pub(crate) fn take_number(bytes: &mut &[u8]) -> Result<u64, Fault> {
    // Most are counts and differences of one byte.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    take_long_number(bytes)
}

fn take_long_number(bytes: &mut &[u8]) -> Result<u64, Fault> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(bad)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(bad())
}

/// As [`take_number`], for lengths and counts.
pub(crate) fn take_count(bytes: &mut &[u8]) -> Result<usize, Fault> {
    usize::try_from(take_number(bytes)?).map_err(|_| bad())
}

pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Fault> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(bad)?;
    *bytes = rest;
    Ok(taken)
}

pub(crate) fn write_bitmap(set: &RoaringBitmap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(set.serialized_size());
    // Writing to memory does not fail.
    set.serialize_into(&mut bytes).ok();
    bytes
}

pub(crate) fn read_bitmap(bytes: &[u8]) -> Result<RoaringBitmap, Fault> {
    RoaringBitmap::deserialize_from(bytes).map_err(|_| bad())
}

/// The posting of a term, ready to be written.
pub(crate) enum StoredPosting {
    Full { count: u64 },
    List(Vec<u32>),
    Bitmap { count: u64, bytes: Vec<u8> },
}

impl StoredPosting {
    /// Ranks, ascending.
    pub(crate) fn new(ranks: &[u32], universe: usize) -> StoredPosting {
        let count = ranks.len() as u64;
        if ranks.len() == universe {
            StoredPosting::Full { count }
        } else if count <= LIST_MAX {
            StoredPosting::List(ranks.to_vec())
        } else {
            let mut set: RoaringBitmap = ranks.iter().copied().collect();
            set.optimize();
            StoredPosting::Bitmap { count, bytes: write_bitmap(&set) }
        }
    }

    /// A bitmap that is too large for a block and needs a row of its own.
    pub(crate) fn large(&self) -> Option<&[u8]> {
        match self {
            StoredPosting::Bitmap { bytes, .. } if bytes.len() > BITMAP_INLINE_MAX => Some(bytes),
            StoredPosting::Full { .. } | StoredPosting::List(_) | StoredPosting::Bitmap { .. } => None,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        match self {
            StoredPosting::Full { count } | StoredPosting::Bitmap { count, .. } => *count,
            StoredPosting::List(ranks) => ranks.len() as u64,
        }
    }

    fn write(&self, elsewhere: Option<u32>, out: &mut Vec<u8>) {
        put_number(self.count(), out);
        match (self, elsewhere) {
            (_, Some(row)) => {
                out.push(ELSEWHERE);
                put_number(u64::from(row), out);
            }
            (StoredPosting::Full { .. }, None) => out.push(FULL),
            (StoredPosting::List(ranks), None) if ranks.len() <= SHORT_LIST_MAX => {
                out.push(LIST);
                write_differences(ranks, out);
            }
            (StoredPosting::List(ranks), None) => {
                let mut differences = Vec::with_capacity(ranks.len() * 2);
                write_differences(ranks, &mut differences);
                out.push(LONG_LIST);
                put_number(differences.len() as u64, out);
                out.extend_from_slice(&differences);
            }
            (StoredPosting::Bitmap { bytes, .. }, None) => {
                out.push(BITMAP);
                put_number(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
        }
    }
}

fn write_differences(ranks: &[u32], out: &mut Vec<u8>) {
    let mut before = 0;
    for rank in ranks {
        put_number(u64::from(rank - before), out);
        before = *rank;
    }
}

#[derive(Default)]
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    entries: usize,
}

impl BlockBuilder {
    /// Adds a term. `elsewhere` is the row of its bitmap, if it has one.
    pub(crate) fn push(&mut self, key: &[u8], posting: &StoredPosting, elsewhere: Option<u32>) {
        let is_restart = self.entries.is_multiple_of(RESTART_INTERVAL);
        if is_restart {
            self.restarts.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        }
        if self.entries == 0 {
            self.first_key = key.to_vec();
        }
        let shared = if is_restart { 0 } else { shared_length(&self.last_key, key) };
        put_number(shared as u64, &mut self.bytes);
        put_number((key.len() - shared) as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&key[shared..]);
        posting.write(elsewhere, &mut self.bytes);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.entries += 1;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns the first key and the payload, and starts a new block.
    pub(crate) fn finish(&mut self) -> (Vec<u8>, Vec<u8>) {
        let BlockBuilder { mut bytes, restarts, first_key, .. } = std::mem::take(self);
        restarts.iter().for_each(|restart| bytes.put_u32(*restart));
        bytes.put_u32(u32::try_from(restarts.len()).unwrap_or(u32::MAX));
        (first_key, bytes)
    }
}

fn shared_length(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// A decoded block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    entries: Bytes,
    restarts: Bytes,
}

/// A term of a block.
#[derive(Clone, Debug)]
pub(crate) struct TermEntry {
    pub(crate) key: Vec<u8>,
    /// Documents of the term.
    pub(crate) count: u64,
    location: PostingLocation,
}

#[derive(Clone, Debug)]
enum PostingLocation {
    Full,
    List(Bytes),
    Bitmap(Bytes),
    Elsewhere(u32),
}

impl Block {
    pub(crate) fn new(payload: Bytes) -> Result<Block, Fault> {
        let end = payload.len().checked_sub(4).ok_or_else(bad)?;
        let count = payload.slice(end..).get_u32() as usize;
        let start = count.checked_mul(4).and_then(|length| end.checked_sub(length)).ok_or_else(bad)?;
        Ok(Block { entries: payload.slice(..start), restarts: payload.slice(start..end) })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.entries.len() + self.restarts.len()
    }

    /// Number of groups; a group is the entries from one restart to the next.
    pub(crate) fn group_count(&self) -> usize {
        self.restarts.len() / 4
    }

    fn group_start(&self, group: usize) -> usize {
        let offset = self.restarts.get(group * 4..group * 4 + 4).and_then(|bytes| bytes.try_into().ok());
        offset.map_or(self.entries.len(), |bytes| u32::from_be_bytes(bytes) as usize)
    }

    /// The last group that starts at or before `key`.
    pub(crate) fn group_of(&self, key: &[u8]) -> Result<usize, Fault> {
        let (mut low, mut high) = (0, self.group_count());
        while low < high {
            let middle = low.midpoint(high);
            let mut bytes = self.entries.get(self.group_start(middle)..).ok_or_else(bad)?;
            take_number(&mut bytes)?;
            let length = take_count(&mut bytes)?;
            if take_bytes(&mut bytes, length)? <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(1))
    }

    /// The terms of a group.
    pub(crate) fn group(&self, group: usize) -> Result<Vec<TermEntry>, Fault> {
        let (start, end) = (self.group_start(group), self.group_start(group + 1));
        let whole = self.entries.get(start..end).ok_or_else(bad)?;
        let mut rest = whole;
        let mut entries: Vec<TermEntry> = Vec::with_capacity(RESTART_INTERVAL);
        while !rest.is_empty() {
            let shared = take_count(&mut rest)?;
            let length = take_count(&mut rest)?;
            let before = entries.last().map_or(&[][..], |entry| &entry.key);
            let mut key = Vec::with_capacity(shared.min(before.len()) + length.min(rest.len()));
            key.extend_from_slice(before.get(..shared).ok_or_else(bad)?);
            key.extend_from_slice(take_bytes(&mut rest, length)?);
            let (count, posting) = take_posting(&mut rest)?;
            let location = self.location(posting);
            entries.push(TermEntry { key, count, location });
        }
        Ok(entries)
    }

    /// The terms of a group, except those with few documents none of which `is_wanted` by its rank. Only terms whose
    /// key `may_pass` are left out.
    pub(crate) fn group_of_wanted(
        &self,
        group: usize,
        may_pass: impl Fn(&[u8]) -> bool,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<Vec<TermEntry>, Fault> {
        let (start, end) = (self.group_start(group), self.group_start(group + 1));
        let mut rest = self.entries.get(start..end).ok_or_else(bad)?;
        let mut entries = Vec::new();
        let mut key = Vec::new();
        while !rest.is_empty() {
            take_key(&mut rest, &mut key)?;
            let (count, posting) = take_posting(&mut rest)?;
            if count > TESTED_DOCUMENTS_MAX || has_wanted(&posting, &is_wanted)? || !may_pass(&key) {
                entries.push(TermEntry { key: key.clone(), count, location: self.location(posting) });
            }
        }
        Ok(entries)
    }

    /// The term with this key, if it is in the block.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<TermEntry>, Fault> {
        let group = self.group_of(key)?;
        let mut rest =
            self.entries.get(self.group_start(group)..self.group_start(group + 1)).ok_or_else(bad)?;
        let mut before = Vec::with_capacity(key.len() + 16);
        while !rest.is_empty() {
            take_key(&mut rest, &mut before)?;
            match before.as_slice().cmp(key) {
                Ordering::Less => take_posting(&mut rest)?,
                Ordering::Equal => {
                    let (count, posting) = take_posting(&mut rest)?;
                    return Ok(Some(TermEntry { key: before, count, location: self.location(posting) }));
                }
                Ordering::Greater => return Ok(None),
            };
        }
        Ok(None)
    }

    /// The location of a posting of this block, to be kept.
    fn location(&self, posting: PostingBytes<'_>) -> PostingLocation {
        match posting {
            PostingBytes::Full => PostingLocation::Full,
            PostingBytes::List(bytes) => PostingLocation::List(self.entries.slice_ref(bytes)),
            PostingBytes::Bitmap(bytes) => PostingLocation::Bitmap(self.entries.slice_ref(bytes)),
            PostingBytes::Elsewhere(row) => PostingLocation::Elsewhere(row),
        }
    }
}

/// The posting of a term as it is stored in a block.
enum PostingBytes<'a> {
    Full,
    List(&'a [u8]),
    Bitmap(&'a [u8]),
    Elsewhere(u32),
}

/// Maximum number of documents that are tested to decide whether a term is left out.
const TESTED_DOCUMENTS_MAX: u64 = 8;

/// Whether a posting has a wanted document; true if that is not known.
fn has_wanted(posting: &PostingBytes<'_>, is_wanted: impl Fn(u32) -> bool) -> Result<bool, Fault> {
    let PostingBytes::List(mut rest) = *posting else {
        return Ok(true);
    };
    let mut rank = 0_u32;
    while !rest.is_empty() {
        let step = u32::try_from(take_number(&mut rest)?).map_err(|_| bad())?;
        rank = rank.checked_add(step).ok_or_else(bad)?;
        if is_wanted(rank) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Decodes the next key, which is stored without the prefix it shares with the previous one.
#[inline]
fn take_key(rest: &mut &[u8], key: &mut Vec<u8>) -> Result<(), Fault> {
    let shared = take_count(rest)?;
    let length = take_count(rest)?;
    if shared > key.len() {
        return Err(bad());
    }
    key.truncate(shared);
    key.extend_from_slice(take_bytes(rest, length)?);
    Ok(())
}

/// Decodes a posting and its document count.
fn take_posting<'a>(rest: &mut &'a [u8]) -> Result<(u64, PostingBytes<'a>), Fault> {
    let count = take_number(rest)?;
    let posting = match take_bytes(rest, 1)? {
        [FULL] => PostingBytes::Full,
        [LIST] => {
            let list = *rest;
            for _ in 0..count {
                take_number(rest)?;
            }
            PostingBytes::List(&list[..list.len() - rest.len()])
        }
        [LONG_LIST] => {
            let length = take_count(rest)?;
            PostingBytes::List(take_bytes(rest, length)?)
        }
        [BITMAP] => {
            let length = take_count(rest)?;
            PostingBytes::Bitmap(take_bytes(rest, length)?)
        }
        [ELSEWHERE] => PostingBytes::Elsewhere(u32::try_from(take_number(rest)?).map_err(|_| bad())?),
        _ => return Err(bad()),
    };
    Ok((count, posting))
}

impl TermEntry {
    /// The row with the bitmap, if it is not in the block.
    pub(crate) fn elsewhere(&self) -> Option<u32> {
        match &self.location {
            PostingLocation::Elsewhere(row) => Some(*row),
            PostingLocation::Full | PostingLocation::List(_) | PostingLocation::Bitmap(_) => None,
        }
    }

    /// The documents, unless they are in the row that [`TermEntry::elsewhere`] returns.
    pub(crate) fn posting(&self) -> Result<Posting<'static>, Fault> {
        match &self.location {
            PostingLocation::Full => Ok(Posting::Full),
            PostingLocation::List(bytes) => {
                let mut rest = bytes.as_ref();
                let mut rank = 0_u32;
                // Each takes at least one byte.
                let mut ranks = Vec::with_capacity(rest.len());
                while !rest.is_empty() {
                    let step = u32::try_from(take_number(&mut rest)?).map_err(|_| bad())?;
                    rank = rank.checked_add(step).ok_or_else(bad)?;
                    ranks.push(rank);
                }
                Ok(Posting::List(ranks))
            }
            PostingLocation::Bitmap(bytes) => read_bitmap(bytes).map(Posting::Set),
            PostingLocation::Elsewhere(_) => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u32) -> Vec<u8> {
        format!("path {:05}", index * 2).into_bytes()
    }

    fn ranks(index: u32) -> Vec<u32> {
        (0..1000).filter(|rank| rank % (index % 7 + 1) == 0).take(index as usize * 3 + 1).collect()
    }

    #[test]
    fn terms_come_back_and_are_found() {
        let mut builder = BlockBuilder::default();
        for index in 0..100 {
            builder.push(&key(index), &StoredPosting::new(&ranks(index), 1000), None);
        }
        let (first, payload) = builder.finish();
        assert!(first == key(0) && builder.is_empty());
        let block = Block::new(unseal(seal(&payload)).unwrap()).unwrap();
        let entries: Vec<TermEntry> =
            (0..block.group_count()).flat_map(|group| block.group(group).unwrap()).collect();
        assert_eq!(entries.len(), 100);
        for (index, entry) in (0..).zip(&entries) {
            assert_eq!((&entry.key, entry.count), (&key(index), ranks(index).len() as u64));
            let expected: RoaringBitmap = ranks(index).into_iter().collect();
            assert_eq!(entry.posting().unwrap().to_set(1000), expected);
            let mut between = key(index);
            between.push(b'x');
            let found = block.find(&key(index)).unwrap().unwrap();
            assert_eq!((&found.key, found.count), (&entry.key, entry.count));
            assert_eq!(found.posting().unwrap().to_set(1000), expected);
            assert!(block.find(&between).unwrap().is_none());
            assert_eq!(block.group_of(&key(index)).unwrap(), index as usize / 16);
            assert_eq!(block.group_of(&between).unwrap(), index as usize / 16);
        }
        assert_eq!(block.group_of(b"a").unwrap(), 0);
        assert!(block.find(b"a").unwrap().is_none() && block.find(b"z").unwrap().is_none());
    }

    #[test]
    fn damage_is_reported() {
        let sealed = seal(b"payload");
        for at in 0..sealed.len() {
            let mut row = sealed.to_vec();
            row[at] ^= 1;
            assert!(unseal(row.into()).is_err());
        }
        for length in 0..sealed.len() {
            assert!(unseal(sealed.slice(..length)).is_err());
        }
        let mut builder = BlockBuilder::default();
        (0..40).for_each(|index| builder.push(&key(index), &StoredPosting::new(&ranks(index), 9), None));
        let payload = builder.finish().1;
        for at in 0..payload.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = payload.clone();
                bytes[at] ^= flip;
                // Any result is fine, because damaged bytes do not pass the checksum; the decoder must only end.
                if let Ok(block) = Block::new(bytes.into()) {
                    for group in 0..block.group_count() {
                        if let Ok(entries) = block.group(group) {
                            entries.iter().for_each(|entry| drop(entry.posting()));
                        }
                    }
                    block.find(b"path 00030").ok();
                }
            }
        }
    }
}
