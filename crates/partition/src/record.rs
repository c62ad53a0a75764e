//! The stored form of a document version.
//!
//! ```text
//! format:1 = 2 · number:8 · lsn:8 · position:4 · writer's ordinal:4 · stamp:8 · time:8 · own ttl:4 · encoded document
//! ```
//!
//! The position is that of the change in its transaction, the stamp is that of the ETag, the time is in ticks of 100
//! ns. Own ttl: 0 inherits the container's default, 0xFFFF_FFFF is never, else seconds. Numbers are big-endian.

use crate::expiry::expires_at;
use crate::log::LogPosition;
use crate::storage::damaged;
use bytes::{BufMut, Bytes, BytesMut};
use model::{DefaultTtl, DocumentNumber, Etag, Fault, Lsn, PartitionOrdinal, Ticks};
use plan::{StoredDocument, Ttl};
use value::Document;

const FORMAT: u8 = 2;
const HEADER_BYTES: usize = 45;
const TTL_INHERIT: u32 = 0;
const TTL_NEVER: u32 = u32::MAX;

/// A field of the header. Runs for every scanned record; the fixed length removes all bounds checks.
#[inline]
fn field<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|index| header[at + index])
}

/// A document version as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) number: DocumentNumber,
    pub(crate) lsn: Lsn,
    /// The position of the change in its transaction.
    pub(crate) position: u32,
    /// The partition that wrote this version; not always the one that holds it.
    pub(crate) ordinal: PartitionOrdinal,
    /// Distinguishes this version from all others that the partition wrote.
    pub(crate) stamp: u64,
    pub(crate) time: Ticks,
    pub(crate) ttl: Ttl,
    pub(crate) document: Document,
}

impl Record {
    pub(crate) fn etag(&self) -> Etag {
        Etag { ordinal: self.ordinal, stamp: self.stamp }
    }

    /// Its position in the log of the partition that wrote it.
    pub(crate) fn log_position(&self) -> LogPosition {
        LogPosition { lsn: self.lsn, position: self.position }
    }

    /// Time of the write, in seconds since 1970.
    pub(crate) fn ts(&self) -> u64 {
        self.time.seconds()
    }

    /// Length of the encoded row.
    pub(crate) fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.document.bytes().len()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let document = self.document.bytes();
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + document.len());
        bytes.put_u8(FORMAT);
        bytes.put_u64(self.number.raw());
        bytes.put_u64(self.lsn.0);
        bytes.put_u32(self.position);
        bytes.put_u32(self.ordinal.0);
        bytes.put_u64(self.stamp);
        bytes.put_u64(self.time.0);
        bytes.put_u32(match self.ttl {
            Ttl::Inherit => TTL_INHERIT,
            Ttl::Never => TTL_NEVER,
            Ttl::Seconds(seconds) => seconds,
        });
        bytes.extend_from_slice(document);
        bytes.freeze()
    }

    /// Decodes a row. The document shares the row's memory.
    pub(crate) fn decode(row: &Bytes) -> Result<Record, Fault> {
        let header = row.first_chunk::<HEADER_BYTES>().ok_or_else(|| damaged("record header"))?;
        if header[0] != FORMAT {
            return Err(damaged("record format"));
        }
        let ttl = match u32::from_be_bytes(field(header, 41)) {
            TTL_INHERIT => Ttl::Inherit,
            TTL_NEVER => Ttl::Never,
            seconds => Ttl::Seconds(seconds),
        };
        let number = DocumentNumber::from_raw(u64::from_be_bytes(field(header, 1)));
        let ordinal = PartitionOrdinal::from_raw(u32::from_be_bytes(field(header, 21)));
        Ok(Record {
            number: number.ok_or_else(|| damaged("document number"))?,
            lsn: Lsn(u64::from_be_bytes(field(header, 9))),
            position: u32::from_be_bytes(field(header, 17)),
            ordinal: ordinal.ok_or_else(|| damaged("writer of a record"))?,
            stamp: u64::from_be_bytes(field(header, 25)),
            time: Ticks(u64::from_be_bytes(field(header, 33))),
            ttl,
            document: Document::from_stored(row.slice(HEADER_BYTES..))
                .map_err(|cause| damaged(cause.to_string()))?,
        })
    }

    /// A copy that owns its bytes instead of sharing a larger allocation.
    pub(crate) fn detached(&self) -> Record {
        Record { document: self.document.detached(), ..self.clone() }
    }

    pub(crate) fn into_stored(self) -> StoredDocument {
        StoredDocument {
            number: self.number,
            etag: self.etag(),
            lsn: self.lsn,
            time: self.time,
            document: self.document,
        }
    }

    /// Whether it has expired at `now`.
    pub(crate) fn is_expired(&self, default_ttl: DefaultTtl, now: u64) -> bool {
        expires_at(self.ts(), self.ttl, default_ttl).is_some_and(|second| second <= now)
    }

    /// The id in the document.
    pub(crate) fn id(&self) -> Option<&str> {
        self.document.root().member("id").and_then(|id| id.as_str())
    }
}

/// Decodes a row of the records space.
pub fn stored_document(row: &Bytes) -> Result<StoredDocument, Fault> {
    Record::decode(row).map(Record::into_stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips_and_damage_is_reported() {
        let record = Record {
            number: DocumentNumber::new(PartitionOrdinal(1), 2).unwrap(),
            lsn: Lsn(3),
            position: 4,
            ordinal: PartitionOrdinal(5),
            stamp: 6,
            time: Ticks(7),
            ttl: Ttl::Seconds(8),
            document: Document::from_json(br#"{"id":"a"}"#).unwrap(),
        };
        let row = record.encode();
        let read = Record::decode(&row).unwrap();
        assert_eq!((read.number, read.log_position()), (record.number, record.log_position()));
        assert_eq!((read.etag(), read.time, read.ttl), (record.etag(), record.time, record.ttl));
        assert_eq!(read.id(), Some("a"));
        for length in 0..HEADER_BYTES {
            assert!(Record::decode(&row.slice(..length)).is_err());
        }
        assert!(Record::decode(&Bytes::from_static(&[9; 64])).is_err());
        let mut of_a_region = row.to_vec();
        of_a_region[21] = 1;
        assert!(Record::decode(&of_a_region.into()).is_err(), "bits that nothing may set yet");
    }
}
