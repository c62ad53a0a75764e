//! The history of a partition: every version and every removal, for as long as the container keeps them.
//!
//! ```text
//! format:1 = 1 · kind:1 · number:8 · time:8 · LSN of the version before, or 0:8 · length:4 · record key
//! · length:4 · record key before, empty unless the id changed · document, empty for removals
//! ```
//!
//! Unlike the log, it keeps replaced versions. It is written in the batch of the change and trimmed by time from its
//! low end, so that a scan never crosses trimmed entries.

use crate::log::LogKind;
use crate::record::Record;
use crate::storage::damaged;
use bytes::{BufMut, Bytes, BytesMut};
use model::{DocumentNumber, Fault, Lsn, Ticks};

const FORMAT: u8 = 1;
/// Bytes before the first key.
const HEADER_BYTES: usize = 26;
/// Bytes of the length field of a key.
const LENGTH_BYTES: usize = 4;

/// One change of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The kind of change.
    pub kind: HistoryKind,
    /// The changed document.
    pub number: DocumentNumber,
    /// The time of the change.
    pub time: Ticks,
    /// The LSN of the previous version, if there was one.
    pub previous: Option<Lsn>,
    /// The record key of the document, or its last one if it was removed.
    pub key: Bytes,
    /// The encoded document; empty for removals.
    pub image: Bytes,
}

/// The kind of a change in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    /// The document was created.
    Create,
    /// The document has a new version.
    Replace,
    /// The document has a new version under another id.
    Rename {
        /// The previous record key.
        from: Bytes,
    },
    /// The document was deleted.
    Delete,
    /// The document expired and was deleted.
    Expire,
}

impl HistoryKind {
    fn code(&self) -> u8 {
        match self {
            HistoryKind::Create => 1,
            HistoryKind::Replace => 2,
            HistoryKind::Delete => 3,
            HistoryKind::Expire => 4,
            HistoryKind::Rename { .. } => 5,
        }
    }

    fn from(&self) -> &[u8] {
        match self {
            HistoryKind::Rename { from } => from,
            HistoryKind::Create | HistoryKind::Replace | HistoryKind::Delete | HistoryKind::Expire => &[],
        }
    }
}

impl HistoryEntry {
    /// A new version under `key` that replaces the version of `previous`.
    pub(crate) fn version(
        kind: &LogKind,
        key: Bytes,
        record: &Record,
        previous: Option<Lsn>,
    ) -> HistoryEntry {
        HistoryEntry {
            kind: HistoryKind::of(kind),
            number: record.number,
            time: record.time,
            previous,
            key,
            image: record.document.bytes().clone(),
        }
    }

    /// The removal of `old`, which was under `key`.
    pub(crate) fn removal(kind: &LogKind, key: Bytes, old: &Record, time: Ticks) -> HistoryEntry {
        let previous = Some(old.lsn);
        HistoryEntry {
            kind: HistoryKind::of(kind),
            number: old.number,
            time,
            previous,
            key,
            image: Bytes::new(),
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let from = self.kind.from();
        let length = HEADER_BYTES + 2 * LENGTH_BYTES + self.key.len() + from.len() + self.image.len();
        let mut bytes = BytesMut::with_capacity(length);
        bytes.put_u8(FORMAT);
        bytes.put_u8(self.kind.code());
        bytes.put_u64(self.number.raw());
        bytes.put_u64(self.time.0);
        bytes.put_u64(self.previous.map_or(0, |lsn| lsn.0));
        for key in [&self.key, from] {
            // Keys of the store are shorter than 64 KiB.
            bytes.put_u32(u32::try_from(key.len()).unwrap_or(u32::MAX));
            bytes.put_slice(key);
        }
        bytes.put_slice(&self.image);
        bytes.freeze()
    }

    /// Decodes a row of the history.
    pub fn decode(row: &[u8]) -> Result<HistoryEntry, Fault> {
        let bad = || damaged("history entry");
        let (header, rest) = row.split_at_checked(HEADER_BYTES).ok_or_else(bad)?;
        let [FORMAT, kind, fields @ ..] = header else { return Err(bad()) };
        let field = |index: usize| {
            let bytes = fields.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_be_bytes).ok_or_else(bad)
        };
        let (key, rest) = take_key(rest).ok_or_else(bad)?;
        let (from, image) = take_key(rest).ok_or_else(bad)?;
        let kind = match (kind, from.is_empty(), image.is_empty()) {
            (1, true, false) => HistoryKind::Create,
            (2, true, false) => HistoryKind::Replace,
            (3, true, true) => HistoryKind::Delete,
            (4, true, true) => HistoryKind::Expire,
            (5, false, false) => HistoryKind::Rename { from: Bytes::copy_from_slice(from) },
            (_, _, _) => return Err(bad()),
        };
        if key.is_empty() {
            return Err(bad());
        }
        Ok(HistoryEntry {
            kind,
            number: DocumentNumber::from_raw(field(0)?).ok_or_else(bad)?,
            time: Ticks(field(1)?),
            previous: Some(Lsn(field(2)?)).filter(|lsn| lsn.0 != 0),
            key: Bytes::copy_from_slice(key),
            image: Bytes::copy_from_slice(image),
        })
    }
}

impl HistoryKind {
    fn of(kind: &LogKind) -> HistoryKind {
        match kind {
            LogKind::Create => HistoryKind::Create,
            LogKind::Replace => HistoryKind::Replace,
            LogKind::Rename { from, .. } => HistoryKind::Rename { from: from.clone() },
            LogKind::Delete { .. } => HistoryKind::Delete,
            LogKind::Expire { .. } => HistoryKind::Expire,
        }
    }
}

fn take_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[test]
fn an_entry_round_trips_and_damage_is_reported() {
    let image = Bytes::from_static(b"document");
    let from = Bytes::from_static(b"old key");
    for (kind, image) in [
        (HistoryKind::Create, image.clone()),
        (HistoryKind::Replace, image.clone()),
        (HistoryKind::Rename { from }, image),
        (HistoryKind::Delete, Bytes::new()),
        (HistoryKind::Expire, Bytes::new()),
    ] {
        let number = DocumentNumber::from_raw(7).unwrap();
        let previous = (kind != HistoryKind::Create).then_some(Lsn(8));
        let key = Bytes::from_static(b"key");
        let entry = HistoryEntry { kind, number, time: Ticks(9), previous, key, image };
        let row = entry.encode();
        assert_eq!(HistoryEntry::decode(&row).unwrap(), entry);
        for length in 0..row.len() - entry.image.len() {
            assert!(HistoryEntry::decode(&row[..length]).is_err(), "{entry:?}");
        }
        for byte in [0, 1] {
            let mut other = row.to_vec();
            other[byte] = 9;
            assert!(HistoryEntry::decode(&other).is_err());
        }
    }
}
