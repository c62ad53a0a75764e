//! The batches in the bytes of a journal: their bounds, whether they are complete, and the first that is not.
//!
//! Pure: works on bytes, no files.
//!
//! ```text
//! batch   start  1, number of items (4), number of the commit (8)
//!         item   2, kind (1), compression (1), keyspace (8), key length (2), value length (4),
//!                stored value length (4), key, stored value
//!         end    3, checksum of all items (8), "FJL" 3
//! ```
//! All numbers are little-endian. The last batch is followed by zeros, as the file is preallocated.

use bytes::Buf;
use xxhash_rust::xxh3::xxh3_64;

const START_TAG: u8 = 1;
const ITEM_TAG: u8 = 2;
const END_TAG: u8 = 3;
const BATCH_TRAILER: [u8; 4] = *b"FJL\x03";

/// Bytes before the items of a batch.
pub(super) const START_BYTES: usize = 13;

/// Overhead of a batch in the journal, without its items.
pub(super) const BATCH_OVERHEAD_BYTES: usize = 26;

/// Overhead of an item, without its key and value.
pub(super) const ITEM_OVERHEAD_BYTES: usize = 21;

/// Key of the row in the internal space in which a commit stores how many bytes of commits directly before it were
/// unsynced when it was written: 8 bytes, little-endian. If the row is absent, everything before was synced.
pub(super) const UNSYNCED_KEY: &[u8] = b"unsynced";

/// Result of reading a journal.
pub(super) struct JournalScan {
    /// End of its last valid batch.
    pub(super) end: usize,
    /// Start of the first invalid batch, if anything but zeros follows.
    pub(super) broken_at: Option<usize>,
    /// Number of the last valid commit before that.
    pub(super) last_commit: Option<u64>,
}

/// Reads the batches of a journal up to the first invalid one. `after` is the last commit of the previous journal.
pub(super) fn scan(journal: &[u8], after: Option<u64>) -> JournalScan {
    let mut position = 0;
    let mut last_commit = after;
    while let Some(frame) = read_frame(&journal[position..], None) {
        // The checksum does not cover the commit number, but the numbers are strictly ascending.
        if !frame.is_valid || last_commit.is_some_and(|last| frame.commit <= last) {
            break;
        }
        position += frame.length;
        last_commit = Some(frame.commit);
    }
    JournalScan {
        end: position,
        broken_at: (content_length(&journal[position..]) > 0).then_some(position),
        last_commit,
    }
}

/// The valid batches after a broken one.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct ValidBatches {
    pub(super) count: usize,
    /// Whether one of them was written when the broken one was already synced: then it was damaged, not torn.
    pub(super) proves_damage: bool,
}

/// Finds valid batches after the broken one at `broken_at`. `own` is the keyspace of the internal rows.
pub(super) fn valid_after(journal: &[u8], broken_at: usize, own: Option<u64>) -> ValidBatches {
    let mut found = ValidBatches::default();
    for (position, frame) in valid_from(journal, broken_at + 1, own) {
        let unsynced = usize::try_from(frame.unsynced_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        found.count += 1;
        found.proves_damage |= broken_at < position.saturating_sub(unsynced);
    }
    found
}

/// The valid batches that start at `position` or later, with their positions.
fn valid_from(
    journal: &[u8],
    mut position: usize,
    own: Option<u64>,
) -> impl Iterator<Item = (usize, BatchFrame)> {
    let journal = &journal[..content_length(journal)];
    std::iter::from_fn(move || {
        while position < journal.len() {
            let rest = &journal[position..];
            if let Some(frame) = read_frame(rest, own).filter(|frame| frame.is_valid) {
                let found = position;
                position += frame.length;
                return Some((found, frame));
            }
            let distance = rest.iter().skip(1).position(|byte| *byte == START_TAG);
            position = distance.map_or(journal.len(), |distance| position + 1 + distance);
        }
        None
    })
}

/// The lowest number of a valid commit that starts at `position` or later.
pub(super) fn lowest_from(journal: &[u8], position: usize) -> Option<u64> {
    valid_from(journal, position, None).map(|(_, frame)| frame.commit).min()
}

/// Valid batches that follow each other without a gap up to the end of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Where the first one starts.
    pub(super) start: usize,
    /// The numbers of the first two.
    pub(super) first: Vec<u64>,
}

/// The longest such end. Bytes within a damaged batch may look like one, but something else follows them.
pub(super) fn ending(journal: &[u8]) -> Ending {
    let length = content_length(journal);
    let mut found = Ending { start: length, first: Vec::new() };
    let (mut end, mut last) = (0, None);
    for (position, frame) in valid_from(journal, 0, None) {
        if position != end || last.is_some_and(|last| frame.commit <= last) {
            found = Ending { start: position, first: Vec::new() };
        } else if last.is_none() {
            found.start = position;
        }
        if found.first.len() < 2 {
            found.first.push(frame.commit);
        }
        (end, last) = (position + frame.length, Some(frame.commit));
    }
    if end == length { found } else { Ending { start: length, first: Vec::new() } }
}

/// Number of the first commit of a journal; `None` if it does not start with one.
pub(super) fn first_commit(mut journal: &[u8]) -> Option<u64> {
    (journal.try_get_u8().ok()? == START_TAG).then_some(())?;
    journal.try_get_u32_le().ok()?;
    journal.try_get_u64_le().ok()
}

/// Number of valid batches in a journal.
pub(super) fn count_valid(journal: &[u8]) -> usize {
    let first = usize::from(read_frame(journal, None).is_some_and(|frame| frame.is_valid));
    first + valid_after(journal, 0, None).count
}

/// Length of a journal without its zero tail; checked page by page, since a new journal has 16,384 pages of zeros.
pub(super) fn content_length(journal: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let is_written = |page: &[u8]| *page != ZEROS[..page.len()];
    let Some(last) = journal.chunks(ZEROS.len()).rposition(is_written) else { return 0 };
    let page = &journal[last * ZEROS.len()..];
    last * ZEROS.len() + page.iter().take(ZEROS.len()).rposition(|byte| *byte != 0).map_or(0, |byte| byte + 1)
}

/// A complete batch frame.
struct BatchFrame {
    length: usize,
    is_valid: bool,
    commit: u64,
    /// The unsynced bytes before it, if requested.
    unsynced_bytes: Option<u64>,
}

/// Reads the batch frame at the start of `bytes`; `None` if it is incomplete.
fn read_frame(bytes: &[u8], own: Option<u64>) -> Option<BatchFrame> {
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
                return Some(BatchFrame {
                    length: bytes.len() - rest.len(),
                    is_valid,
                    commit,
                    unsynced_bytes,
                });
            }
            _ => return None,
        }
    }
}
