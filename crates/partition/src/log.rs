//! The change log: one entry per change of a document, ordered by LSN and position in the transaction.
//!
//! ```text
//! format:1 = 2 · kind:1 · number:8 · time:8                                    created, replaced
//! format:1 = 2 · kind:1 · number:8 · time:8 · record key                       deleted, expired
//! format:1 = 2 · kind:1 · number:8 · time:8 · length:4 · old key · new key     renamed
//! ```
//!
//! The entry of a removal contains the record key, because no other row does any more. The entry of a replaced version
//! is deleted at once, and that of a removal when the log is trimmed, but only up to the lowest position of all
//! registered consumers. Entries kept for a consumer are deleted by a trim after the consumer has passed them.

use crate::keyspace::{self, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::{BufMut, Bytes, BytesMut};
use kv::{Direction, ScanLimit, View};
use model::{DocumentNumber, Fault, Lsn, Ticks};
use std::collections::BTreeMap;

const FORMAT: u8 = 2;
/// Bytes before the keys.
const HEADER_BYTES: usize = 18;
/// Bytes of the length field of the first of two keys.
const LENGTH_BYTES: usize = 4;

/// The position of a change in the log of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The transaction.
    pub lsn: Lsn,
    /// The change in the transaction, from 0.
    pub position: u32,
}

impl LogPosition {
    /// The first change of a transaction.
    pub fn start_of(lsn: Lsn) -> LogPosition {
        LogPosition { lsn, position: 0 }
    }
}

/// The kind of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// The document was created.
    Create,
    /// The document has a new version.
    Replace,
    /// The document has a new version under another id.
    Rename {
        /// The previous record key.
        from: Bytes,
        /// The new record key.
        to: Bytes,
    },
    /// The document was deleted.
    Delete {
        /// Its last record key.
        key: Bytes,
    },
    /// The document expired and was deleted.
    Expire {
        /// Its last record key.
        key: Bytes,
    },
}

impl LogKind {
    fn code(&self) -> u8 {
        match self {
            LogKind::Create => 1,
            LogKind::Replace => 2,
            LogKind::Delete { .. } => 3,
            LogKind::Expire { .. } => 4,
            LogKind::Rename { .. } => 5,
        }
    }

    /// The kind of this change combined with a change `before` of the same document in the same transaction, which
    /// gets no entry of its own. The result is relative to the state before the transaction.
    pub(crate) fn combined_with(self, before: Option<LogKind>) -> LogKind {
        match (before, self) {
            (Some(LogKind::Create), LogKind::Replace | LogKind::Rename { .. }) => LogKind::Create,
            (Some(LogKind::Rename { from, to }), LogKind::Replace) => LogKind::Rename { from, to },
            (Some(LogKind::Rename { from, .. }), LogKind::Rename { to, .. }) if from == to => {
                LogKind::Replace
            }
            (Some(LogKind::Rename { from, .. }), LogKind::Rename { to, .. }) => LogKind::Rename { from, to },
            (Some(LogKind::Rename { from: key, .. }), LogKind::Delete { .. }) => LogKind::Delete { key },
            (Some(LogKind::Rename { from: key, .. }), LogKind::Expire { .. }) => LogKind::Expire { key },
            // The other combinations need nothing from the earlier change or cannot occur.
            (None | Some(LogKind::Replace | LogKind::Delete { .. } | LogKind::Expire { .. }), kind)
            | (
                Some(LogKind::Create),
                kind @ (LogKind::Create | LogKind::Delete { .. } | LogKind::Expire { .. }),
            )
            | (Some(LogKind::Rename { .. }), kind @ LogKind::Create) => kind,
        }
    }

    /// Bytes of the keys in an entry.
    fn keys_len(&self) -> usize {
        match self {
            LogKind::Create | LogKind::Replace => 0,
            LogKind::Delete { key } | LogKind::Expire { key } => key.len(),
            LogKind::Rename { from, to } => LENGTH_BYTES + from.len() + to.len(),
        }
    }
}

/// One change of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The kind of change.
    pub kind: LogKind,
    /// The changed document.
    pub number: DocumentNumber,
    /// The time of the change.
    pub time: Ticks,
}

impl LogEntry {
    /// Bytes of the log row, including its key.
    pub(crate) fn row_len(&self) -> usize {
        keyspace::LOG_KEY_BYTES + HEADER_BYTES + self.kind.keys_len()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + self.kind.keys_len());
        bytes.put_u8(FORMAT);
        bytes.put_u8(self.kind.code());
        bytes.put_u64(self.number.raw());
        bytes.put_u64(self.time.0);
        match &self.kind {
            LogKind::Create | LogKind::Replace => {}
            LogKind::Delete { key } | LogKind::Expire { key } => bytes.put_slice(key),
            LogKind::Rename { from, to } => {
                // Keys of the store are shorter than 64 KiB.
                bytes.put_u32(u32::try_from(from.len()).unwrap_or(u32::MAX));
                bytes.put_slice(from);
                bytes.put_slice(to);
            }
        }
        bytes.freeze()
    }

    /// Decodes a row of the log.
    pub fn decode(row: &[u8]) -> Result<LogEntry, Fault> {
        let bad = || damaged("log entry");
        let (header, keys) = row.split_at_checked(HEADER_BYTES).ok_or_else(bad)?;
        let [FORMAT, kind, fields @ ..] = header else { return Err(bad()) };
        let (number, time) = fields.split_at(8);
        let field = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).map_err(|_| bad());
        let number = DocumentNumber::from_raw(field(number)?).ok_or_else(bad)?;
        let kind = match (kind, keys) {
            (1, []) => LogKind::Create,
            (2, []) => LogKind::Replace,
            (3, [_, ..]) => LogKind::Delete { key: Bytes::copy_from_slice(keys) },
            (4, [_, ..]) => LogKind::Expire { key: Bytes::copy_from_slice(keys) },
            (5, keys) => decode_rename(keys).ok_or_else(bad)?,
            (_, _) => return Err(bad()),
        };
        Ok(LogEntry { kind, number, time: Ticks(field(time)?) })
    }

    /// The new record key, if the id has changed.
    pub(crate) fn renamed_to(&self) -> Option<&Bytes> {
        match &self.kind {
            LogKind::Rename { to, .. } => Some(to),
            LogKind::Create | LogKind::Replace | LogKind::Delete { .. } | LogKind::Expire { .. } => None,
        }
    }

    /// Whether the document was removed.
    pub(crate) fn is_removal(&self) -> bool {
        match self.kind {
            LogKind::Delete { .. } | LogKind::Expire { .. } => true,
            LogKind::Create | LogKind::Replace | LogKind::Rename { .. } => false,
        }
    }
}

fn decode_rename(keys: &[u8]) -> Option<LogKind> {
    let (length, keys) = keys.split_first_chunk::<LENGTH_BYTES>()?;
    let (from, to) = keys.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let is_whole = !from.is_empty() && !to.is_empty();
    is_whole.then(|| LogKind::Rename { from: Bytes::copy_from_slice(from), to: Bytes::copy_from_slice(to) })
}

/// The registered consumers of a partition's log and their positions.
pub(crate) async fn load_consumers(view: &View, id: PartitionId) -> Result<BTreeMap<String, Lsn>, Fault> {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let range = keyspace::consumer_range(id);
    let chunk = view.scan(META, range, Direction::Forward, limit).await.map_err(read_fault)?;
    let consumer = |(key, row): &(Bytes, Bytes)| {
        let name = keyspace::parse_consumer_key(key)?;
        let lsn = u64::from_be_bytes(row.as_ref().try_into().ok()?);
        Some((name.to_owned(), Lsn(lsn)))
    };
    chunk.rows.iter().map(|row| consumer(row).ok_or_else(|| damaged("consumer of the log"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionOrdinal;

    #[test]
    fn changes_of_one_transaction_come_to_one() {
        let key = |name: &'static str| Bytes::from_static(name.as_bytes());
        let rename = |from, to| LogKind::Rename { from: key(from), to: key(to) };
        let delete = |name| LogKind::Delete { key: key(name) };
        assert_eq!(LogKind::Replace.combined_with(None), LogKind::Replace);
        assert_eq!(LogKind::Replace.combined_with(Some(LogKind::Create)), LogKind::Create);
        assert_eq!(rename("a", "b").combined_with(Some(LogKind::Create)), LogKind::Create);
        assert_eq!(rename("a", "b").combined_with(Some(LogKind::Replace)), rename("a", "b"));
        assert_eq!(LogKind::Replace.combined_with(Some(rename("a", "b"))), rename("a", "b"));
        assert_eq!(rename("b", "c").combined_with(Some(rename("a", "b"))), rename("a", "c"));
        assert_eq!(rename("b", "a").combined_with(Some(rename("a", "b"))), LogKind::Replace);
        assert_eq!(delete("b").combined_with(Some(rename("a", "b"))), delete("a"));
        assert_eq!(delete("a").combined_with(Some(LogKind::Create)), delete("a"));
    }

    #[test]
    fn an_entry_round_trips_and_damage_is_reported() {
        let (from, to) = (Bytes::from_static(b"old key"), Bytes::from_static(b"new"));
        let kinds = [
            LogKind::Create,
            LogKind::Replace,
            LogKind::Delete { key: from.clone() },
            LogKind::Expire { key: from.clone() },
            LogKind::Rename { from, to },
        ];
        for kind in kinds {
            let number = DocumentNumber::new(PartitionOrdinal(1), 2).unwrap();
            let entry = LogEntry { kind, number, time: Ticks(3) };
            let row = entry.encode();
            assert_eq!(row.len() + keyspace::LOG_KEY_BYTES, entry.row_len());
            assert_eq!(LogEntry::decode(&row).unwrap(), entry);
            for length in 0..=HEADER_BYTES {
                assert!(length == row.len() || LogEntry::decode(&row[..length]).is_err(), "{entry:?}");
            }
            for byte in [0, 1] {
                let mut other = row.to_vec();
                other[byte] = 9;
                assert!(LogEntry::decode(&other).is_err());
            }
        }
        let of_nothing = [&[2, 1][..], &[0; 17]].concat();
        assert!(LogEntry::decode(&of_nothing).is_err(), "a creation has no key");
    }
}
