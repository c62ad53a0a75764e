//! The head of a partition: what its writer knows beyond the documents. Written with every batch.
//!
//! ```text
//! format:1 = 1 · lsn:8 · lsn reserved:8 · counter:8 · counter reserved:8 · ts:8 · documents:8 · bytes:8 · trimmed:8
//! ```
//!
//! LSNs and document counters are taken from ranges that were made durable ahead of their use. After a crash the
//! writer goes on behind the reserved range, so that no LSN, number or ETag that a client may have seen is given
//! twice, even when the last writes were acknowledged without waiting for the disk.

use crate::keyspace::{self, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::{BufMut, Bytes, BytesMut};
use kv::View;
use model::{ContainerNumber, Fault, Lsn};

const FORMAT: u8 = 1;
const FIELDS: usize = 8;

/// LSNs and counters are reserved so many at a time.
const RESERVE: u64 = 1 << 16;

/// Four thousand million changes lie between the first LSNs of two containers; what a client reads as a double
/// stays exact for the first two million containers.
const CONTAINER_LSN_BITS: u32 = 32;

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last LSN given.
    pub(crate) lsn: Lsn,
    /// LSNs up to here may have been given.
    lsn_reserved: Lsn,
    /// Count of the last document number given.
    pub(crate) counter: u64,
    /// Counts up to here may have been given.
    counter_reserved: u64,
    /// The last write's time in seconds.
    pub(crate) ts: u64,
    /// Documents, expired ones included until they are swept.
    pub(crate) documents: u64,
    /// Bytes of their records.
    pub(crate) bytes: u64,
    /// The log holds no entry of a deletion or of a replaced version below.
    pub(crate) trimmed: Lsn,
}

impl Head {
    /// The head of a new partition. LSNs begin where no older container's have come: a container that is created
    /// again under its name must satisfy the session tokens of the old one and repeat none of its ETags.
    pub(crate) fn first(container: ContainerNumber) -> Head {
        let lsn = Lsn(u64::from(container.0) << CONTAINER_LSN_BITS);
        Head { lsn, lsn_reserved: lsn, trimmed: lsn, ..Head::default() }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(1 + FIELDS * 8);
        bytes.put_u8(FORMAT);
        for field in [
            self.lsn.0,
            self.lsn_reserved.0,
            self.counter,
            self.counter_reserved,
            self.ts,
            self.documents,
            self.bytes,
            self.trimmed.0,
        ] {
            bytes.put_u64(field);
        }
        bytes.freeze()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Head, Fault> {
        let Some((&FORMAT, fields)) = row.split_first() else {
            return Err(damaged("format of a partition head"));
        };
        if fields.len() != FIELDS * 8 {
            return Err(damaged("length of a partition head"));
        }
        let field = |index: usize| {
            let bytes = fields.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            u64::from_be_bytes(bytes.unwrap_or_default())
        };
        Ok(Head {
            lsn: Lsn(field(0)),
            lsn_reserved: Lsn(field(1)),
            counter: field(2),
            counter_reserved: field(3),
            ts: field(4),
            documents: field(5),
            bytes: field(6),
            trimmed: Lsn(field(7)),
        })
    }

    /// The head as `view` shows it.
    pub(crate) async fn load(view: &View, id: PartitionId) -> Result<Head, Fault> {
        let row = view.get(META, &keyspace::head_key(id)).await.map_err(read_fault)?;
        Head::decode(&row.ok_or_else(|| damaged(format!("partition {id:?} has no head")))?)
    }

    /// The head a writer begins with: behind everything that may have been given.
    pub(crate) fn reopened(mut self) -> Head {
        self.lsn = self.lsn.max(self.lsn_reserved);
        self.counter = self.counter.max(self.counter_reserved);
        self
    }

    /// The stored head for a writer that began with `first` and whose last batches were refused: what it has given
    /// since is stored, but perhaps nothing was since it began.
    pub(crate) fn after_refusal(mut self, first: &Head) -> Head {
        self.lsn = self.lsn.max(first.lsn);
        self.counter = self.counter.max(first.counter);
        self
    }

    /// The head a writer leaves behind when it stops in order: nothing is reserved beyond what was given.
    pub(crate) fn closed(mut self) -> Head {
        self.lsn_reserved = self.lsn;
        self.counter_reserved = self.counter;
        self
    }

    /// Reserves ahead if the next batch may come near the bound. A batch that carries a new reservation must be
    /// made durable before it is answered; returns whether this is one.
    pub(crate) fn reserve(&mut self) -> bool {
        let near = |given: u64, reserved: u64| reserved.saturating_sub(given) < RESERVE / 2;
        let mut moved = false;
        if near(self.lsn.0, self.lsn_reserved.0) {
            self.lsn_reserved = Lsn(self.lsn.0 + RESERVE);
            moved = true;
        }
        if near(self.counter, self.counter_reserved) {
            self.counter_reserved = self.counter + RESERVE;
            moved = true;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_round_trips() {
        let head = Head {
            lsn: Lsn(1),
            counter: 3,
            ts: 5,
            documents: 6,
            bytes: 7,
            trimmed: Lsn(8),
            ..Head::default()
        };
        assert_eq!(Head::decode(&head.encode()).unwrap(), head);
        assert!(
            Head::decode(&[]).is_err() && Head::decode(&[1; 3]).is_err() && Head::decode(&[2; 65]).is_err()
        );
    }

    #[test]
    fn what_was_reserved_is_not_given_again_unless_the_writer_stopped_in_order() {
        let mut head = Head { lsn: Lsn(10), counter: 4, ..Head::default() };
        assert!(head.reserve());
        assert!(!head.reserve());
        let crashed = head.clone().reopened();
        assert_eq!((crashed.lsn, crashed.counter), (Lsn(10 + RESERVE), 4 + RESERVE));
        let stopped = head.closed().reopened();
        assert_eq!((stopped.lsn, stopped.counter), (Lsn(10), 4));
    }
}
