//! The partitions from which a partition was split, and the entries of log and history that they have left.
//!
//! A split moves no row. Entries of the log and the history that an ancestor has written stay under its prefix until
//! they are moved or trimmed, and so do its index runs. A child assigns only LSNs above the last one of its parent, so
//! the entries of all ancestors and its own have one order. An entry under the prefix of an ancestor belongs to the
//! descendant that owns its key. No other partition reads or deletes it.

use crate::history::HistoryEntry;
use crate::keyspace::{self, HISTORY, LOG, NUMBERS, PartitionId};
use crate::log::{LogEntry, LogKind, LogPosition};
use crate::overlay::RowsView;
use crate::partition::PartitionSpec;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{KeyRange, ScanLimit, Space};
use model::{Fault, Lsn, PartitionOrdinal};

/// History that is read at a time, and how often, to find out whether a partition has any.
const HISTORY_STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };
const HISTORY_CHUNKS_MAX: usize = 16;

/// A partition from which another one was split, directly or over several generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number in the container.
    pub ordinal: PartitionOrdinal,
    /// The highest LSN that it has assigned. Its descendants assign higher ones.
    pub lsn_last: Lsn,
    /// Whether all its rows are deleted, because no descendant needs them any more.
    pub is_empty: bool,
}

/// A partition, its keys and its ancestors.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(crate) id: PartitionId,
    /// The keys of its records.
    pub(crate) keys: KeyRange,
    /// Oldest first.
    pub(crate) ancestors: Vec<Ancestor>,
}

/// Some entries of the log or the history, in their order.
#[derive(Debug)]
pub(crate) struct LineageChunk<E> {
    pub(crate) entries: Vec<LineageEntry<E>>,
    /// All entries up to here were read; `None` at the end.
    pub(crate) reached: Option<LogPosition>,
}

/// An entry and the key of its row, which may have the prefix of an ancestor.
#[derive(Debug)]
pub(crate) struct LineageEntry<E> {
    pub(crate) at: LogPosition,
    pub(crate) key: Bytes,
    pub(crate) row: Bytes,
    pub(crate) entry: E,
}

/// Rows of the log or the history of some partitions in one order.
struct MergedRows {
    rows: Vec<MergedRow>,
    reached: Option<LogPosition>,
}

struct MergedRow {
    at: LogPosition,
    key: Bytes,
    row: Bytes,
    is_own: bool,
}

impl LogPosition {
    /// The next position, in the same transaction.
    pub(crate) fn next(self) -> LogPosition {
        LogPosition { position: self.position.saturating_add(1), ..self }
    }
}

impl Lineage {
    pub(crate) fn of(spec: &PartitionSpec) -> Lineage {
        Lineage {
            id: spec.id,
            keys: keyspace::effective_range(spec.id.container, &spec.range),
            ancestors: spec.ancestors.clone(),
        }
    }

    /// A partition without ancestors that owns all keys.
    #[cfg(test)]
    pub(crate) fn whole(id: PartitionId) -> Lineage {
        Lineage::of(&PartitionSpec { id, range: model::EffectiveRange::full(), ancestors: Vec::new() })
    }

    /// Whether a record key is in the range of the partition.
    pub(crate) fn owns(&self, key: &[u8]) -> bool {
        self.keys.contains(key)
    }

    /// The partitions under whose prefixes the entry of a version may be that `writer` has written: its own, and those
    /// of the later partitions to which it may have been moved.
    pub(crate) fn places_of(&self, writer: PartitionOrdinal) -> impl Iterator<Item = PartitionId> {
        let later = self.ancestors.iter().map(|ancestor| ancestor.ordinal);
        let later = later.skip_while(move |ordinal| *ordinal != writer);
        later.chain([self.id.ordinal]).map(|ordinal| PartitionId { ordinal, ..self.id })
    }

    /// Whether the partition has ancestors that may still have rows.
    pub(crate) fn has_ancestors(&self) -> bool {
        self.ancestors.iter().any(|ancestor| !ancestor.is_empty)
    }

    /// The ancestors that may have entries from `first` on.
    fn ancestors_from(&self, first: LogPosition) -> impl Iterator<Item = PartitionId> {
        #[cfg(feature = "planted-faults")]
        let is_forgotten = crate::planted::is_planted(crate::planted::PlantedFault::AncestorsAreForgotten);
        #[cfg(not(feature = "planted-faults"))]
        let is_forgotten = false;
        let from =
            move |ancestor: &&Ancestor| !ancestor.is_empty && ancestor.lsn_last >= first.lsn && !is_forgotten;
        let ancestors = self.ancestors.iter().filter(from);
        ancestors.map(|ancestor| PartitionId { ordinal: ancestor.ordinal, ..self.id })
    }

    /// Reads log entries of the partition and its ancestors, in the range of the partition, from `first` up to the
    /// transaction `end`, exclusive.
    pub(crate) async fn log(
        &self,
        view: &RowsView,
        first: LogPosition,
        end: Lsn,
        limit: ScanLimit,
    ) -> Result<LineageChunk<LogEntry>, Fault> {
        let sources: Vec<PartitionId> = self.ancestors_from(first).chain([self.id]).collect();
        self.log_of(&sources, view, first, end, limit).await
    }

    /// Reads log entries under the prefix of the partition only.
    pub(crate) async fn own_log(
        &self,
        view: &RowsView,
        first: LogPosition,
        end: Lsn,
        limit: ScanLimit,
    ) -> Result<LineageChunk<LogEntry>, Fault> {
        self.log_of(&[self.id], view, first, end, limit).await
    }

    /// Reads log entries of the ancestors only.
    pub(crate) async fn log_of_ancestors(
        &self,
        view: &RowsView,
        first: LogPosition,
        limit: ScanLimit,
    ) -> Result<LineageChunk<LogEntry>, Fault> {
        let sources: Vec<PartitionId> = self.ancestors_from(first).collect();
        self.log_of(&sources, view, first, Lsn(u64::MAX), limit).await
    }

    async fn log_of(
        &self,
        sources: &[PartitionId],
        view: &RowsView,
        first: LogPosition,
        end: Lsn,
        limit: ScanLimit,
    ) -> Result<LineageChunk<LogEntry>, Fault> {
        let merged = self.merged(LOG, sources, view, first, end, limit).await?;
        let mut entries = Vec::with_capacity(merged.rows.len());
        let mut unknown = Vec::new();
        for MergedRow { at, key, row, is_own } in merged.rows {
            let entry = LogEntry::decode(&row)?;
            let is_kept = match (is_own, &entry.kind) {
                (true, _) => true,
                (false, LogKind::Delete { key } | LogKind::Expire { key }) => self.owns(key),
                (false, LogKind::Rename { to, .. }) => self.owns(to),
                (false, LogKind::Create | LogKind::Replace) => {
                    unknown.push((entries.len(), keyspace::number_key(self.id.container, entry.number)));
                    true
                }
            };
            if is_kept {
                entries.push(Some(LineageEntry { at, key, row, entry }));
            }
        }
        // The entry of a version has no key. If the document exists no more, the entry says nothing.
        let numbers: Vec<Bytes> = unknown.iter().map(|(_, number)| number.clone()).collect();
        let keys = view.get_many(NUMBERS, &numbers).await.map_err(read_fault)?;
        for ((index, _), key) in unknown.into_iter().zip(keys) {
            if !key.is_some_and(|key| self.owns(&key)) {
                entries[index] = None;
            }
        }
        Ok(LineageChunk { entries: entries.into_iter().flatten().collect(), reached: merged.reached })
    }

    /// Reads history entries of the partition and its ancestors, in the range of the partition, from `first` up to the
    /// transaction `end`, exclusive.
    pub(crate) async fn history(
        &self,
        view: &RowsView,
        first: LogPosition,
        end: Lsn,
        limit: ScanLimit,
    ) -> Result<LineageChunk<HistoryEntry>, Fault> {
        let sources: Vec<PartitionId> = self.ancestors_from(first).chain([self.id]).collect();
        let merged = self.merged(HISTORY, &sources, view, first, end, limit).await?;
        let mut entries = Vec::with_capacity(merged.rows.len());
        for MergedRow { at, key, row, is_own } in merged.rows {
            let entry = HistoryEntry::decode(&row)?;
            if is_own || self.owns(&entry.key) {
                entries.push(LineageEntry { at, key, row, entry });
            }
        }
        Ok(LineageChunk { entries, reached: merged.reached })
    }

    /// Whether the partition may have history from `first` up to `lsn`. Gives up where siblings have much.
    pub(crate) async fn may_have_history(
        &self,
        view: &RowsView,
        mut first: LogPosition,
        lsn: Lsn,
    ) -> Result<bool, Fault> {
        for _ in 0..HISTORY_CHUNKS_MAX {
            let chunk = self.history(view, first, lsn.next(), HISTORY_STEP).await?;
            match chunk.reached {
                _ if !chunk.entries.is_empty() => return Ok(true),
                Some(reached) => first = reached.next(),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The rows of some partitions, merged up to the position that all of them have reached.
    async fn merged(
        &self,
        space: Space,
        sources: &[PartitionId],
        view: &RowsView,
        first: LogPosition,
        end: Lsn,
        limit: ScanLimit,
    ) -> Result<MergedRows, Fault> {
        let mut rows = Vec::new();
        let mut reached: Option<LogPosition> = None;
        for source in sources {
            // Keys of the history are those of the log.
            let range = keyspace::log_range(*source, first, end);
            let chunk = view.scan(space, range, limit).await.map_err(read_fault)?;
            let mut last = None;
            for (key, row) in chunk.rows {
                let at = keyspace::parse_log_key(&key).ok_or_else(|| damaged("log key"))?;
                last = Some(at);
                rows.push(MergedRow { at, key, row, is_own: *source == self.id });
            }
            if chunk.more {
                reached = reached.into_iter().chain(last).min();
            }
        }
        if sources.len() > 1 {
            rows.sort_by_key(|row| row.at);
            rows.retain(|row| reached.is_none_or(|reached| row.at <= reached));
        }
        Ok(MergedRows { rows, reached })
    }
}
