//! The index from what is stored: from the log behind a position, or from all records.
//!
//! An entry of the log names its document, whose older versions are dead; the version that counts is the one that
//! the view shows. So a change may be met twice, and entries of versions that were replaced since may be missing.

use crate::index::keeper::{Changes, Keeper, Prepared};
use crate::index::terms::Version;
use crate::keyspace::{self, LOG, NUMBERS, PartitionId, RECORDS};
use crate::log::LogEntry;
use crate::record::Record;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, View};
use model::{DocumentNumber, EffectiveRange, Fault, Lsn};

/// Rows that one step reads.
const STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };

/// Takes the changes that `view` shows behind the position of the index.
pub(crate) async fn catch_up(keeper: &mut Keeper, view: &View, partition: PartitionId) -> Result<(), Fault> {
    loop {
        let range = keyspace::log_range(partition, keeper.lsn.next(), Lsn(u64::MAX));
        let chunk = view.scan(LOG, range, Direction::Forward, STEP).await.map_err(read_fault)?;
        let Some((last, _)) = chunk.rows.last() else {
            return Ok(());
        };
        let lsn = keyspace::parse_log_key(last).ok_or_else(|| damaged("log key"))?;
        let mut numbers = Vec::with_capacity(chunk.rows.len());
        for (_, row) in &chunk.rows {
            numbers.push(LogEntry::decode(row)?.number);
        }
        let changes = current_versions(view, partition, &numbers).await?;
        let prepared = Prepared::new(keeper.rules(), changes);
        keeper.apply(prepared, lsn).await;
        if !chunk.more {
            return Ok(());
        }
    }
}

/// Documents as `view` shows them.
async fn current_versions(
    view: &View,
    partition: PartitionId,
    numbers: &[DocumentNumber],
) -> Result<Changes, Fault> {
    let container = partition.container;
    let keys: Vec<Bytes> = numbers.iter().map(|number| keyspace::number_key(container, *number)).collect();
    let keys = view.get_many(NUMBERS, &keys).await.map_err(read_fault)?;
    let mut changes = Changes::new();
    let mut wanted = Vec::new();
    for (number, key) in numbers.iter().zip(keys) {
        changes.insert(*number, None);
        wanted.extend(key);
    }
    wanted.sort_unstable();
    wanted.dedup();
    let rows = view.get_many(RECORDS, &wanted).await.map_err(read_fault)?;
    for (key, row) in wanted.iter().zip(rows) {
        let row = row.ok_or_else(|| damaged("document number without its record"))?;
        let version = version(key, &row)?;
        changes.insert(version.number, Some(version));
    }
    Ok(changes)
}

/// Takes all records of a range of hashes; the index must be empty.
pub(crate) async fn take_records(
    keeper: &mut Keeper,
    view: &View,
    partition: PartitionId,
    range: &EffectiveRange,
) -> Result<(), Fault> {
    let mut range = keyspace::effective_range(partition.container, range);
    while let Some(step) = next_records(view, &mut range).await? {
        let changes = step.into_iter().map(|version| (version.number, Some(version))).collect();
        let prepared = Prepared::new(keeper.rules(), changes);
        let lsn = keeper.lsn;
        keeper.apply(prepared, lsn).await;
    }
    Ok(())
}

/// The next documents of a range of keys, which shrinks to what is left; `None` at its end.
pub(crate) async fn next_records(view: &View, range: &mut KeyRange) -> Result<Option<Vec<Version>>, Fault> {
    let chunk = view.scan(RECORDS, range.clone(), Direction::Forward, STEP).await.map_err(read_fault)?;
    let Some((last, _)) = chunk.rows.last() else {
        return Ok(None);
    };
    *range = keyspace::after(range, last);
    chunk.rows.iter().map(|(key, row)| version(key, row)).collect::<Result<_, _>>().map(Some)
}

fn version(key: &Bytes, row: &Bytes) -> Result<Version, Fault> {
    let record = Record::decode(row)?;
    let id = record.id().ok_or_else(|| damaged("record without an id"))?;
    let logical = keyspace::logical_of_record(key, id).ok_or_else(|| damaged("key of a record"))?;
    Ok(Version { number: record.number, logical, ts: record.ts, document: record.document })
}
