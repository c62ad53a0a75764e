//! The change log: one entry per change of a document, in LSN order.
//!
//! ```text
//! kind:1 · number:8 · ts:8 · last LSN of the transaction:8
//! ```
//!
//! An entry of a version that was replaced since is dropped at once, and an entry of a deletion when the log is
//! trimmed, but only below the least position of all registered consumers. What was kept for a consumer is dropped
//! when the log is trimmed after the consumer has passed it.

use crate::keyspace::{self, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::{BufMut, Bytes, BytesMut};
use kv::{Direction, ScanLimit, View};
use model::{DocumentNumber, Fault, Lsn};
use std::collections::BTreeMap;

const ENTRY_BYTES: usize = 25;
/// Bytes of a row of the log, its key included.
pub(crate) const LOG_ROW_BYTES: usize = keyspace::LOG_KEY_BYTES + ENTRY_BYTES;

/// What happened to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// It is new.
    Create,
    /// It has a new version.
    Replace,
    /// It was deleted.
    Delete,
    /// It was deleted because its time had come.
    Expire,
}

/// One change of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// What happened.
    pub kind: LogKind,
    /// To which document.
    pub number: DocumentNumber,
    /// When, in seconds since 1970.
    pub ts: u64,
    /// The last LSN of the transaction it belongs to.
    pub lsn_last: Lsn,
}

impl LogEntry {
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(ENTRY_BYTES);
        bytes.put_u8(match self.kind {
            LogKind::Create => 1,
            LogKind::Replace => 2,
            LogKind::Delete => 3,
            LogKind::Expire => 4,
        });
        bytes.put_u64(self.number.raw());
        bytes.put_u64(self.ts);
        bytes.put_u64(self.lsn_last.0);
        bytes.freeze()
    }

    /// Reads a row of the log.
    pub fn decode(row: &[u8]) -> Result<LogEntry, Fault> {
        let bad = || damaged("log entry");
        let field = |at: usize| {
            let bytes = row.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_be_bytes).ok_or_else(bad)
        };
        if row.len() != ENTRY_BYTES {
            return Err(bad());
        }
        let kind = match row.first() {
            Some(1) => LogKind::Create,
            Some(2) => LogKind::Replace,
            Some(3) => LogKind::Delete,
            Some(4) => LogKind::Expire,
            Some(_) | None => return Err(bad()),
        };
        let number = DocumentNumber::from_raw(field(1)?).ok_or_else(bad)?;
        Ok(LogEntry { kind, number, ts: field(9)?, lsn_last: Lsn(field(17)?) })
    }

    /// Whether the entry tells of a document that is no more.
    pub fn is_removal(&self) -> bool {
        match self.kind {
            LogKind::Delete | LogKind::Expire => true,
            LogKind::Create | LogKind::Replace => false,
        }
    }
}

/// The registered consumers of a partition's log and how far they have come.
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
    fn an_entry_round_trips_and_damage_is_told() {
        for kind in [LogKind::Create, LogKind::Replace, LogKind::Delete, LogKind::Expire] {
            let number = DocumentNumber::new(PartitionOrdinal(1), 2).unwrap();
            let entry = LogEntry { kind, number, ts: 3, lsn_last: Lsn(4) };
            assert_eq!(LogEntry::decode(&entry.encode()).unwrap(), entry);
        }
        assert!(LogEntry::decode(&[1; 24]).is_err() && LogEntry::decode(&[9; 25]).is_err());
    }
}
