//! The batches in a journal's bytes: where they start and end, whether they are whole, and where the first is not.
//!
//! Pure: knows bytes, no files.
//!
//! ```text
//! batch   start  1, number of items (4), number of the commit (8)
//!         item   2, kind (1), compression (1), keyspace (8), key length (2), value length (4),
//!                stored value length (4), key, stored value
//!         end    3, checksum of all items (8), "FJL" 3
//! ```
//! All numbers are little-endian. Behind the last batch come zeros, as the file is sized ahead.

use bytes::Buf;
use xxhash_rust::xxh3::xxh3_64;

const START_TAG: u8 = 1;
const ITEM_TAG: u8 = 2;
const END_TAG: u8 = 3;
const BATCH_TRAILER: [u8; 4] = *b"FJL\x03";

/// Bytes in front of the items of a batch.
pub(super) const START_BYTES: usize = 13;

/// Bytes that a batch takes in the journal besides its items.
pub(super) const BATCH_OVERHEAD_BYTES: usize = 26;

/// Bytes that an item takes besides its key and value.
pub(super) const ITEM_OVERHEAD_BYTES: usize = 21;

/// Key of the row in the store's own space by which a commit says how many bytes of commits directly before it were
/// not synced when it was written: 8 bytes, little-endian. A commit without it found everything synced.
pub(super) const UNSYNCED_KEY: &[u8] = b"unsynced";

/// A journal as it was read.
pub(super) struct Scan {
    /// Where its last valid batch ends.
    pub(super) end: usize,
    /// Where the first batch that is not valid starts, if there is anything but zeros from there on.
    pub(super) broken_at: Option<usize>,
    /// Number of the last valid commit before that.
    pub(super) last_commit: Option<u64>,
}

/// Reads the batches of a journal up to the first that is not valid. `after` is the last commit of the journal before.
pub(super) fn scan(journal: &[u8], after: Option<u64>) -> Scan {
    let mut position = 0;
    let mut last_commit = after;
    while let Some(frame) = read_frame(&journal[position..], None) {
        // The number of a commit is not under its checksum, but it grows from each to the next.
        if !frame.is_valid || last_commit.is_some_and(|last| frame.commit <= last) {
            break;
        }
        position += frame.length;
        last_commit = Some(frame.commit);
    }
    Scan {
        end: position,
        broken_at: (content_length(&journal[position..]) > 0).then_some(position),
        last_commit,
    }
}

/// The valid batches behind a broken one.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// Their number.
    pub(super) count: usize,
    /// Whether one of them was written when the broken one was synced already: then it was damaged, not torn.
    pub(super) proves_damage: bool,
}

/// Looks for valid batches behind the broken one at `broken_at`. `own` is the keyspace of the store's own rows.
pub(super) fn behind(journal: &[u8], broken_at: usize, own: Option<u64>) -> Behind {
    let journal = &journal[..content_length(journal)];
    let mut found = Behind::default();
    let mut position = broken_at + 1;
    while position < journal.len() {
        let rest = &journal[position..];
        match read_frame(rest, own).filter(|frame| frame.is_valid) {
            Some(frame) => {
                let unsynced = usize::try_from(frame.unsynced_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
                found.count += 1;
                found.proves_damage |= broken_at < position.saturating_sub(unsynced);
                position += frame.length;
            }
            None => match rest.iter().skip(1).position(|byte| *byte == START_TAG) {
                Some(distance) => position += 1 + distance,
                None => break,
            },
        }
    }
    found
}

/// Number of the commit that starts a journal; `None` if none does.
pub(super) fn first_commit(mut journal: &[u8]) -> Option<u64> {
    (journal.try_get_u8().ok()? == START_TAG).then_some(())?;
    journal.try_get_u32_le().ok()?;
    journal.try_get_u64_le().ok()
}

/// Number of valid batches in a journal.
pub(super) fn count_valid(journal: &[u8]) -> usize {
    let first = usize::from(read_frame(journal, None).is_some_and(|frame| frame.is_valid));
    first + behind(journal, 0, None).count
}

/// Length of a journal without the zeros at its end; page by page, since a new journal has 16,384 pages of zeros.
pub(super) fn content_length(journal: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let is_written = |page: &[u8]| *page != ZEROS[..page.len()];
    let Some(last) = journal.chunks(ZEROS.len()).rposition(is_written) else { return 0 };
    let page = &journal[last * ZEROS.len()..];
    last * ZEROS.len() + page.iter().take(ZEROS.len()).rposition(|byte| *byte != 0).map_or(0, |byte| byte + 1)
}

/// A batch whose frame is complete.
struct Frame {
    length: usize,
    is_valid: bool,
    commit: u64,
    /// What it says of the bytes before it, if it was asked for.
    unsynced_bytes: Option<u64>,
}

/// Reads the frame of the batch at the start of `bytes`; `None` if there is no complete one.
fn read_frame(bytes: &[u8], own: Option<u64>) -> Option<Frame> {
    let mut rest = bytes;
    (rest.try_get_u8().ok()? == START_TAG).then_some(())?;
    let item_count = rest.try_get_u32_le().ok()?;
    let commit = rest.try_get_u64_le().ok()?;
    let items = rest;
    let mut found_count = 0;
    let mut unsynced_bytes = None;
    loop {
        let items_length = items.len() - rest.len();
        match rest.try_get_u8().ok()? {
            ITEM_TAG => {
                let mut head = rest.get(2..)?;
                let keyspace = head.try_get_u64_le().ok()?;
                let key_length = usize::from(head.try_get_u16_le().ok()?);
                head.try_get_u32_le().ok()?;
                let value_length = usize::try_from(head.try_get_u32_le().ok()?).ok()?;
                rest = head.get(key_length.checked_add(value_length)?..)?;
                found_count += 1;
                if own == Some(keyspace) && head.get(..key_length) == Some(UNSYNCED_KEY) {
                    unsynced_bytes = head.get(key_length..)?.try_get_u64_le().ok();
                }
            }
            END_TAG => {
                let checksum = rest.try_get_u64_le().ok()?;
                let trailer = rest.split_off(..BATCH_TRAILER.len())?;
                let is_valid = trailer == BATCH_TRAILER
                    && found_count == item_count
                    && checksum == xxh3_64(&items[..items_length]);
                return Some(Frame { length: bytes.len() - rest.len(), is_valid, commit, unsynced_bytes });
            }
            _ => return None,
        }
    }
}
