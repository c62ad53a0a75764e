//! The head of a partition: the state of its writer in addition to the documents. Written with every batch.
//!
//! ```text
//! format:1 = 2 · lsn:8 · lsn reserved:8 · counter:8 · counter reserved:8 · stamp:8 · stamp reserved:8 · time:8
//! · documents:8 · bytes:8 · then LSN:8 and position:8 of: log trimmed, history trimmed, history whole
//! ```
//!
//! Format 3 is the same with "set back after":8 and "highest time":8 at its end. It is written when the time of the
//! partition has gone back, which is rare.
//!
//! LSNs, document counters and ETag stamps are assigned from ranges that were reserved durably before. After a crash
//! the writer continues after the reserved range, so that no LSN, number or ETag that a client may have seen is
//! assigned twice, even if the last writes were acknowledged before they were synced.

use crate::keyspace::{self, META, PartitionId};
use crate::log::LogPosition;
use crate::partition::PartitionCounts;
use crate::storage::{commit_fault, damaged, read_fault};
use bytes::{BufMut, Bytes, BytesMut};
use kv::{Batch, Direction, Durability, KeyRange, ScanLimit, Store, View};
use model::{ContainerNumber, Fault, Lsn, PartitionOrdinal, Ticks};

const FORMAT: u8 = 2;
const FIELDS: usize = 15;
const FORMAT_SET_BACK: u8 = 3;
const FIELDS_SET_BACK: usize = FIELDS + 2;

/// LSNs, counters and stamps that are reserved at a time.
const RESERVE: u64 = 1 << 16;

/// LSNs and stamps that are skipped when an older copy of a store is used again: more than any store assigns between two
/// backups. Clients read LSNs as numbers of 53 bits.
const SKIPPED: u64 = 1 << 40;
/// Counters that are skipped then. They have 40 bits.
const COUNTERS_SKIPPED: u64 = 1 << 28;

/// The LSN, counters and reserved ranges of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last LSN assigned.
    pub(crate) lsn: Lsn,
    /// LSNs up to here may have been assigned.
    lsn_reserved: Lsn,
    /// The counter of the last document number assigned.
    pub(crate) counter: u64,
    /// Counters up to here may have been assigned.
    counter_reserved: u64,
    /// The last stamp assigned.
    pub(crate) stamp: u64,
    /// Stamps up to here may have been assigned.
    stamp_reserved: u64,
    /// The time of the last change.
    pub(crate) time: Ticks,
    /// Documents, expired ones included until they are deleted.
    pub(crate) documents: u64,
    /// Bytes of their records.
    pub(crate) bytes: u64,
    /// The log has no entries of deletions or replaced versions before this position.
    pub(crate) trimmed: LogPosition,
    /// There is no history before this position.
    pub(crate) history_trimmed: LogPosition,
    /// The history has every change from this position on.
    pub(crate) history_from: LogPosition,
    /// When the time was last set back.
    pub(crate) set_back: SetBack,
}

/// The time of a partition that was written under a wrong clock goes back when the clock is right again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetBack {
    /// Times ascend with the LSNs after this one.
    pub(crate) after: Lsn,
    /// No time up to there is higher; 0 if the time never went back.
    pub(crate) highest: Ticks,
}

impl Head {
    /// Returns to an earlier time.
    pub(crate) fn set_time_back(&mut self, time: Ticks) {
        self.set_back = SetBack { after: self.lsn, highest: self.set_back.highest.max(self.time) };
        self.time = time;
    }

    /// The head of a new partition; its creation is its first change. LSNs and stamps start above `floor`, which no
    /// partition of a dropped container has reached: a container that is created again under its name must satisfy the
    /// session tokens of the old one and repeat none of its ETags.
    pub(crate) fn first(floor: u64) -> Head {
        let lsn = Lsn(floor).next();
        let trimmed = LogPosition::start_of(lsn);
        Head {
            lsn,
            lsn_reserved: lsn,
            stamp: floor,
            stamp_reserved: floor,
            trimmed,
            history_trimmed: trimmed,
            history_from: trimmed,
            ..Head::default()
        }
    }

    /// The head of a partition that is split from the one with this head: it continues its LSNs, stamps and time. Its
    /// document numbers have another ordinal.
    pub(crate) fn of_child(&self, documents: u64, bytes: u64) -> Head {
        let (counter, counter_reserved) = (0, 0);
        Head { counter, counter_reserved, documents, bytes, ..self.clone().closed() }
    }

    /// The head on which a draft is based: it is never stored.
    pub(crate) fn of_draft(lsn: Lsn, time: Ticks, counts: PartitionCounts) -> Head {
        let PartitionCounts { documents, bytes } = counts;
        Head { lsn, time, documents, bytes, ..Head::default() }
    }

    /// An upper bound of all LSNs and stamps that were assigned.
    fn highest_assigned(&self) -> u64 {
        self.lsn.max(self.lsn_reserved).0.max(self.stamp).max(self.stamp_reserved)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let is_set_back = self.set_back != SetBack::default();
        let mut bytes = BytesMut::with_capacity(1 + FIELDS_SET_BACK * 8);
        bytes.put_u8(if is_set_back { FORMAT_SET_BACK } else { FORMAT });
        for field in [
            self.lsn.0,
            self.lsn_reserved.0,
            self.counter,
            self.counter_reserved,
            self.stamp,
            self.stamp_reserved,
            self.time.0,
            self.documents,
            self.bytes,
            self.trimmed.lsn.0,
            self.trimmed.position.into(),
            self.history_trimmed.lsn.0,
            self.history_trimmed.position.into(),
            self.history_from.lsn.0,
            self.history_from.position.into(),
        ] {
            bytes.put_u64(field);
        }
        if is_set_back {
            bytes.put_u64(self.set_back.after.0);
            bytes.put_u64(self.set_back.highest.0);
        }
        bytes.freeze()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Head, Fault> {
        let (fields, count) = match row.split_first() {
            Some((&FORMAT, fields)) => (fields, FIELDS),
            Some((&FORMAT_SET_BACK, fields)) => (fields, FIELDS_SET_BACK),
            _ => return Err(damaged("format of a partition head")),
        };
        if fields.len() != count * 8 {
            return Err(damaged("length of a partition head"));
        }
        let field = |index: usize| {
            let bytes = fields.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            u64::from_be_bytes(bytes.unwrap_or_default())
        };
        let position = |index: usize| {
            let position =
                u32::try_from(field(index + 1)).map_err(|_| damaged("position in a partition head"))?;
            Ok::<_, Fault>(LogPosition { lsn: Lsn(field(index)), position })
        };
        Ok(Head {
            lsn: Lsn(field(0)),
            lsn_reserved: Lsn(field(1)),
            counter: field(2),
            counter_reserved: field(3),
            stamp: field(4),
            stamp_reserved: field(5),
            time: Ticks(field(6)),
            documents: field(7),
            bytes: field(8),
            trimmed: position(9)?,
            history_trimmed: position(11)?,
            history_from: position(13)?,
            // Zeros if they are absent.
            set_back: SetBack { after: Lsn(field(FIELDS)), highest: Ticks(field(FIELDS + 1)) },
        })
    }

    /// Loads the head from `view`.
    pub(crate) async fn load(view: &View, id: PartitionId) -> Result<Head, Fault> {
        Head::load_row(view, id).await.map(|(_, head)| head)
    }

    /// Loads the head and the row it was decoded from, which owns its memory.
    pub(crate) async fn load_row(view: &View, id: PartitionId) -> Result<(Bytes, Head), Fault> {
        let row = view.get(META, &keyspace::head_key(id)).await.map_err(read_fault)?;
        let row = row.ok_or_else(|| damaged(format!("partition {id:?} has no head")))?;
        let head = Head::decode(&row)?;
        Ok((Bytes::copy_from_slice(&row), head))
    }

    /// The head that a writer starts with: after everything that may have been assigned.
    pub(crate) fn reopened(mut self) -> Head {
        self.lsn = self.lsn.max(self.lsn_reserved);
        self.counter = self.counter.max(self.counter_reserved);
        self.stamp = self.stamp.max(self.stamp_reserved);
        self
    }

    /// The stored head for a writer that started with `first` and whose last batches were refused. What it has
    /// assigned since then is stored, unless nothing was.
    pub(crate) fn after_refusal(mut self, first: &Head) -> Head {
        self.lsn = self.lsn.max(first.lsn);
        self.counter = self.counter.max(first.counter);
        self.stamp = self.stamp.max(first.stamp);
        self
    }

    /// The head that a writer stores when it is closed: nothing is reserved beyond what was assigned.
    pub(crate) fn closed(mut self) -> Head {
        self.lsn_reserved = self.lsn;
        self.counter_reserved = self.counter;
        self.stamp_reserved = self.stamp;
        self
    }

    /// The head of a store that has lost its last writes. What they were assigned is not assigned again.
    fn skipped_ahead(mut self) -> Head {
        self.lsn_reserved = Lsn(self.lsn.max(self.lsn_reserved).0 + SKIPPED);
        self.stamp_reserved = self.stamp.max(self.stamp_reserved) + SKIPPED;
        self.counter_reserved = self.counter.max(self.counter_reserved) + COUNTERS_SKIPPED;
        self
    }

    /// Reserves in advance if the next batch may come near the limit. Returns whether it did: a batch with a new
    /// reservation must be durable before it is answered.
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
        if near(self.stamp, self.stamp_reserved) {
            self.stamp_reserved = self.stamp + RESERVE;
            moved = true;
        }
        moved
    }
}

/// The highest LSN or stamp that any partition of `container` may have assigned, by the heads in `view`; 0 if there
/// are none. LSNs of a container that is created later must start above it.
pub async fn highest_assigned(view: &View, container: ContainerNumber) -> Result<u64, Fault> {
    let mut highest = 0;
    for id in partitions_in(view, keyspace::container_rows(container)).await? {
        if let Some(row) = view.get(META, &keyspace::head_key(id)).await.map_err(read_fault)? {
            highest = highest.max(Head::decode(&row)?.highest_assigned());
        }
    }
    Ok(highest)
}

/// What was skipped in a store, and its highest ordinal.
#[derive(Clone, Copy, Debug)]
pub struct Skipped {
    /// LSNs, and stamps of ETags, of each partition.
    pub lsns: u64,
    /// No partition of any container has a higher ordinal.
    pub ordinal_highest: PartitionOrdinal,
}

/// Prepares the partitions of a store that has lost its last writes, because it is an older copy or its journal was
/// cut: LSNs, ETags and document numbers that clients may have seen are not assigned again, and positions and session
/// tokens of the lost writes are not in the future.
pub async fn skip_ahead(store: &Store) -> Result<Skipped, Fault> {
    let view = store.view().await.map_err(read_fault)?;
    let mut skipped = Skipped { lsns: SKIPPED, ordinal_highest: PartitionOrdinal(0) };
    for id in partitions_in(&view, KeyRange::all()).await? {
        skipped.ordinal_highest = skipped.ordinal_highest.max(id.ordinal);
        let key = keyspace::head_key(id);
        let Some(row) = view.get(META, &key).await.map_err(read_fault)? else { continue };
        let mut batch = Batch::default();
        batch.put(META, key.clone(), Head::decode(&row)?.skipped_ahead().encode());
        batch.require(META, key, Some(row));
        store.submit(&store.lane(), batch, Durability::Sync).await.map_err(commit_fault)?;
    }
    Ok(skipped)
}

/// The partitions that have rows in a range of META.
async fn partitions_in(view: &View, all: KeyRange) -> Result<Vec<PartitionId>, Fault> {
    let mut found = Vec::new();
    let mut start = all.start.clone();
    loop {
        let range = KeyRange { start, end: all.end.clone() };
        let first = ScanLimit { rows: 1, bytes: usize::MAX };
        let chunk = view.scan(META, range, Direction::Forward, first).await.map_err(read_fault)?;
        let Some((key, _)) = chunk.rows.first() else { return Ok(found) };
        let id = keyspace::parse_partition(key).ok_or_else(|| damaged("key of a partition's row"))?;
        found.push(id);
        // A partition may have many rows; those of the next one start after its ordinal.
        let Some(next) = id.ordinal.0.checked_add(1) else { return Ok(found) };
        let ordinal = PartitionOrdinal(next);
        start = keyspace::partition_rows(PartitionId { ordinal, ..id }).start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_round_trips() {
        let head = Head {
            lsn: Lsn(1),
            lsn_reserved: Lsn(2),
            counter: 3,
            counter_reserved: 4,
            stamp: 5,
            stamp_reserved: 6,
            time: Ticks(7),
            documents: 8,
            bytes: 9,
            trimmed: LogPosition { lsn: Lsn(10), position: 11 },
            history_trimmed: LogPosition { lsn: Lsn(12), position: 13 },
            history_from: LogPosition { lsn: Lsn(14), position: 15 },
            set_back: SetBack::default(),
        };
        let row = head.encode();
        assert_eq!(Head::decode(&row).unwrap(), head);
        assert!((0..row.len()).all(|length| Head::decode(&row[..length]).is_err()));
        let mut unknown = row.to_vec();
        unknown[0] = 1;
        assert!(Head::decode(&unknown).is_err());
    }

    #[test]
    fn a_head_remembers_that_its_time_went_back() {
        let mut head = Head { lsn: Lsn(10), time: Ticks::from_seconds(900), ..Head::default() };
        assert_eq!(head.encode().len(), 1 + FIELDS * 8);
        head.set_time_back(Ticks::from_seconds(500));
        head.lsn = Lsn(20);
        head.set_time_back(Ticks::from_seconds(400));
        let set_back = SetBack { after: Lsn(20), highest: Ticks::from_seconds(900) };
        assert_eq!((head.time, head.set_back), (Ticks::from_seconds(400), set_back));
        assert_eq!(Head::decode(&head.encode()).unwrap(), head);
        assert_eq!(head.of_child(1, 1).set_back, set_back);
    }

    #[test]
    fn reserved_ranges_are_skipped_unless_the_writer_was_closed() {
        let mut head = Head { lsn: Lsn(10), counter: 4, stamp: 7, ..Head::default() };
        assert!(head.reserve());
        assert!(!head.reserve());
        let given = |head: &Head| (head.lsn, head.counter, head.stamp);
        assert_eq!(given(&head.clone().reopened()), (Lsn(10 + RESERVE), 4 + RESERVE, 7 + RESERVE));
        assert_eq!(given(&head.clone().closed().reopened()), (Lsn(10), 4, 7));
        // Many versions in few transactions consume stamps, not LSNs.
        head.stamp += RESERVE * 3 / 4;
        assert!(head.reserve() && !head.reserve());
        assert_eq!(head.reopened().stamp, 7 + RESERVE * 3 / 4 + RESERVE);
    }

    #[test]
    fn a_restored_partition_continues_far_after_what_it_knows() {
        let mut head = Head { lsn: Lsn(10), counter: 4, stamp: 7, ..Head::default() };
        assert!(head.reserve());
        let reopened = head.clone().skipped_ahead().reopened();
        assert_eq!(reopened.lsn, Lsn(10 + RESERVE + SKIPPED));
        assert_eq!(
            (reopened.stamp, reopened.counter),
            (7 + RESERVE + SKIPPED, 4 + RESERVE + COUNTERS_SKIPPED)
        );
        // The copy of a server that was stopped.
        assert_eq!(head.closed().skipped_ahead().reopened().lsn, Lsn(10 + SKIPPED));
    }

    #[test]
    fn a_new_partition_begins_above_everything_assigned() {
        let mut old = Head::first(41);
        assert_eq!((old.lsn, old.stamp), (Lsn(42), 41));
        old.reserve();
        let new = Head::first(old.highest_assigned());
        assert!(new.lsn > old.clone().reopened().lsn && new.stamp >= old.reopened().stamp);
    }
}
