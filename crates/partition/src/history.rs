//! The history of a partition: every version and every removal, for as long as the container keeps them.
//!
//! ```text
//! format:1 = 2 · kind:1 · number:8 · time:8 · then each with its length:4: record key · record key before, empty unless
//! the id changed · record of the new version, empty for removals · record of the version before, empty for creations
//! ```
//!
//! Unlike the log, it keeps replaced versions. An entry contains the version before too, so that it is complete when
//! older entries are trimmed, and for documents that were written before the container kept a history. It is written in
//! the batch of the change and trimmed by time from its low end, so that a scan never crosses trimmed entries.

use crate::log::LogKind;
use crate::record::Record;
use crate::storage::damaged;
use bytes::{BufMut, Bytes, BytesMut};
use model::{DocumentNumber, Fault, Ticks};
use plan::StoredDocument;

const FORMAT: u8 = 2;
/// Bytes before the first key.
const HEADER_BYTES: usize = 18;
/// Bytes of the length field of a key or record.
const LENGTH_BYTES: usize = 4;

/// One change of one document.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    /// The kind of change.
    pub kind: HistoryKind,
    /// The changed document.
    pub number: DocumentNumber,
    /// The time of the change.
    pub time: Ticks,
    /// The record key of the document, or its last one if it was removed.
    pub key: Bytes,
    /// The version that the change wrote; `None` for removals.
    pub current: Option<StoredDocument>,
    /// The version before the change; `None` for creations.
    pub previous: Option<StoredDocument>,
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

/// The row of a change: `new` is the version under `key` that it wrote, `old` the version before.
pub(crate) fn encode_change(
    kind: &LogKind,
    key: &Bytes,
    time: Ticks,
    new: Option<&Record>,
    old: Option<&Record>,
) -> Bytes {
    let kind = HistoryKind::of(kind);
    // Both versions have the number of the document, and every change has one of them.
    let number = new.or(old).map_or(0, |record| record.number.raw());
    let [new, old] = [new, old].map(|record| record.map_or_else(Bytes::new, Record::encode));
    let parts = [key, kind.from(), &new, &old];
    let length = parts.iter().map(|part| LENGTH_BYTES + part.len()).sum::<usize>();
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + length);
    bytes.put_u8(FORMAT);
    bytes.put_u8(kind.code());
    bytes.put_u64(number);
    bytes.put_u64(time.0);
    for part in parts {
        // Rows of the store are shorter than 4 GiB.
        bytes.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
        bytes.put_slice(part);
    }
    bytes.freeze()
}

impl HistoryEntry {
    /// Decodes a row of the history. The documents share the row's memory.
    pub fn decode(row: &Bytes) -> Result<HistoryEntry, Fault> {
        let bad = || damaged("history entry");
        let (header, _) = row.split_at_checked(HEADER_BYTES).ok_or_else(bad)?;
        let [FORMAT, kind, fields @ ..] = header else { return Err(bad()) };
        let (number, time) = fields.split_at(8);
        let field = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).map_err(|_| bad());
        let mut rest = row.slice(HEADER_BYTES..);
        let mut part = || take_part(&mut rest).ok_or_else(bad);
        let (key, from, new, old) = (part()?, part()?, part()?, part()?);
        if key.is_empty() || !rest.is_empty() {
            return Err(bad());
        }
        let kind = match (kind, from.is_empty(), new.is_empty(), old.is_empty()) {
            (1, true, false, true) => HistoryKind::Create,
            (2, true, false, false) => HistoryKind::Replace,
            (3, true, true, false) => HistoryKind::Delete,
            (4, true, true, false) => HistoryKind::Expire,
            (5, false, false, false) => HistoryKind::Rename { from },
            (_, _, _, _) => return Err(bad()),
        };
        let number = DocumentNumber::from_raw(field(number)?).ok_or_else(bad)?;
        let version = |row: Bytes| {
            if row.is_empty() {
                return Ok(None);
            }
            let record = Record::decode(&row)?;
            if record.number == number { Ok(Some(record.into_stored())) } else { Err(bad()) }
        };
        let (current, previous) = (version(new)?, version(old)?);
        Ok(HistoryEntry { kind, number, time: Ticks(field(time)?), key, current, previous })
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

fn take_part(bytes: &mut Bytes) -> Option<Bytes> {
    let length = u32::from_be_bytes(*bytes.first_chunk::<LENGTH_BYTES>()?);
    let end = LENGTH_BYTES.checked_add(usize::try_from(length).ok()?)?;
    if bytes.len() < end {
        return None;
    }
    let part = bytes.split_to(end);
    Some(part.slice(LENGTH_BYTES..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Lsn, PartitionOrdinal};
    use plan::Ttl;
    use value::Document;

    fn record(lsn: u64, json: &str) -> Record {
        Record {
            number: DocumentNumber::from_raw(7).unwrap(),
            lsn: Lsn(lsn),
            position: 1,
            ordinal: PartitionOrdinal(2),
            stamp: lsn,
            time: Ticks(lsn),
            ttl: Ttl::Inherit,
            document: Document::from_json(json.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn an_entry_round_trips_and_damage_is_reported() {
        let (key, from) = (Bytes::from_static(b"key"), Bytes::from_static(b"old key"));
        let (new, old) = (record(9, r#"{"id":"b"}"#), record(8, r#"{"id":"a"}"#));
        let rename = LogKind::Rename { from: from.clone(), to: key.clone() };
        for (kind, expected, new, old) in [
            (LogKind::Create, HistoryKind::Create, Some(&new), None),
            (LogKind::Replace, HistoryKind::Replace, Some(&new), Some(&old)),
            (rename, HistoryKind::Rename { from }, Some(&new), Some(&old)),
            (LogKind::Delete { key: key.clone() }, HistoryKind::Delete, None, Some(&old)),
            (LogKind::Expire { key: key.clone() }, HistoryKind::Expire, None, Some(&old)),
        ] {
            let row = encode_change(&kind, &key, Ticks(9), new, old);
            let entry = HistoryEntry::decode(&row).unwrap();
            assert_eq!((entry.kind, entry.number.raw(), entry.time), (expected, 7, Ticks(9)));
            assert_eq!(entry.key, key);
            for (found, written) in [(entry.current, new), (entry.previous, old)] {
                let version =
                    |stored: &StoredDocument| (stored.lsn, stored.etag, stored.document.bytes().clone());
                let written = written.map(|record| version(&record.clone().into_stored()));
                assert_eq!(found.as_ref().map(version), written);
            }
            for length in 0..row.len() {
                assert!(HistoryEntry::decode(&row.slice(..length)).is_err(), "{kind:?} of {length} bytes");
            }
            for byte in [0, 1] {
                let mut other = row.to_vec();
                other[byte] = 9;
                assert!(HistoryEntry::decode(&other.into()).is_err());
            }
        }
    }
}
