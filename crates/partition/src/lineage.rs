//! The partitions from which a partition was split, and the entries of log and history that they have left.
//!
//! A split moves no row. Entries of the log and the history stay under the prefix of the partition that has written them,
//! until the version is replaced or the entry is trimmed. A child assigns only LSNs above the last one of its parent, so
//! the entries of all ancestors and its own have one order. An entry under the prefix of an ancestor belongs to the
//! descendant that owns its key. No other partition uses or deletes it.

use crate::history::HistoryEntry;
use crate::index::IndexReader;
use crate::keyspace::{self, HISTORY, LOG, NUMBERS, PartitionId};
use crate::log::{LogEntry, LogKind, LogPosition};
use crate::overlay::RowsView;
use crate::partition::PartitionSpec;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{KeyRange, ScanLimit, Space};
use model::{Fault, Lsn, PartitionOrdinal};

/// A partition from which another one was split, directly or over several generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number in the container.
    pub ordinal: PartitionOrdinal,
    /// The highest LSN that it has assigned. Its descendants assign higher ones.
    pub lsn_last: Lsn,
    /// Which of its rows its descendants may need.
    pub remains: Remains,
}

/// The rows that a split partition has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// Entries of log and history, and index runs.
    All,
    /// Entries of log and history. No descendant uses its index runs any more, and they are deleted.
    Log,
    /// None.
    Nothing,
}

impl Remains {
    /// Whether there may be index runs.
    pub fn has_runs(self) -> bool {
        match self {
            Remains::All => true,
            Remains::Log | Remains::Nothing => false,
        }
    }

    /// Whether there may be entries of log and history.
    pub fn has_log(self) -> bool {
        match self {
            Remains::All | Remains::Log => true,
            Remains::Nothing => false,
        }
    }
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
    /// Rows that were read, of other partitions too.
    pub(crate) scanned: usize,
}

/// An entry and the key of its row, which may have the prefix of an ancestor.
#[derive(Debug)]
pub(crate) struct LineageEntry<E> {
    pub(crate) at: LogPosition,
    pub(crate) key: Bytes,
    pub(crate) entry: E,
}

impl<E> LineageChunk<E> {
    /// The entries with their positions.
    pub(crate) fn positioned<C: FromIterator<(LogPosition, E)>>(self) -> C {
        self.entries.into_iter().map(|found| (found.at, found.entry)).collect()
    }
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

    /// The ancestors that may have entries from `first` on.
    fn ancestors_from(&self, first: LogPosition) -> impl Iterator<Item = PartitionId> {
        #[cfg(feature = "planted-faults")]
        let is_forgotten = crate::planted::is_planted(crate::planted::PlantedFault::AncestorsAreForgotten);
        #[cfg(not(feature = "planted-faults"))]
        let is_forgotten = false;
        let from = move |ancestor: &&Ancestor| {
            ancestor.remains.has_log() && ancestor.lsn_last >= first.lsn && !is_forgotten
        };
        let ancestors = self.ancestors.iter().filter(from);
        ancestors.map(|ancestor| PartitionId { ordinal: ancestor.ordinal, ..self.id })
    }

    /// Reads log entries of the partition and its ancestors, in the range of the partition, from `first` up to the
    /// transaction `end`, exclusive. An index of the same state, if there is one, tells the documents of the partition
    /// from those of its siblings.
    pub(crate) async fn log(
        &self,
        view: &RowsView,
        index: Option<&IndexReader>,
        first: LogPosition,
        end: Lsn,
        limit: ScanLimit,
    ) -> Result<LineageChunk<LogEntry>, Fault> {
        let sources: Vec<PartitionId> = self.ancestors_from(first).chain([self.id]).collect();
        let merged = self.merged(LOG, &sources, view, first, end, limit).await?;
        let scanned = merged.rows.len();
        let mut entries = Vec::with_capacity(scanned);
        let mut unknown = Vec::new();
        for MergedRow { at, key, row, is_own } in merged.rows {
            let entry = LogEntry::decode(&row)?;
            let is_kept = match (is_own, &entry.kind) {
                (true, _) => true,
                (false, LogKind::Delete { key } | LogKind::Expire { key }) => self.owns(key),
                (false, LogKind::Rename { to, .. }) => self.owns(to),
                (false, LogKind::Create | LogKind::Replace) if let Some(index) = index => {
                    index.holds(entry.number)
                }
                (false, LogKind::Create | LogKind::Replace) => {
                    unknown.push((entries.len(), keyspace::number_key(self.id.container, entry.number)));
                    true
                }
            };
            if is_kept {
                entries.push(Some(LineageEntry { at, key, entry }));
            }
        }
        // The entry of a version has no key. If the document exists no more, the entry says nothing.
        if !unknown.is_empty() {
            let numbers: Vec<Bytes> = unknown.iter().map(|(_, number)| number.clone()).collect();
            let keys = view.get_many(NUMBERS, &numbers).await.map_err(read_fault)?;
            for ((index, _), key) in unknown.into_iter().zip(keys) {
                if !key.is_some_and(|key| self.owns(&key)) {
                    entries[index] = None;
                }
            }
        }
        let entries = entries.into_iter().flatten().collect();
        Ok(LineageChunk { entries, reached: merged.reached, scanned })
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
        let scanned = merged.rows.len();
        let mut entries = Vec::with_capacity(scanned);
        for MergedRow { at, key, row, is_own } in merged.rows {
            let entry = HistoryEntry::decode(&row)?;
            if is_own || self.owns(&entry.key) {
                entries.push(LineageEntry { at, key, entry });
            }
        }
        Ok(LineageChunk { entries, reached: merged.reached, scanned })
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
