//! The index from what is stored: from the log behind a position, or from all records.
//!
//! An entry of the log names its document, whose older versions are dead; the version that counts is the one that
//! the view shows. So a change may be met twice, and entries of versions that were replaced since may be missing.

use crate::head::Head;
use crate::index::keeper::{Changes, Home, Keeper, Prepared};
use crate::index::manifest::{Manifest, load_piece, stored_runs};
use crate::index::rules::Rules;
use crate::index::terms::Version;
use crate::keyspace::{self, LOG, NUMBERS, PartitionId, RECORDS};
use crate::log::{LogEntry, LogPosition};
use crate::record::Record;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, View};
use model::{DocumentNumber, EffectiveRange, Fault, Lsn, StorageFault};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that one step reads.
const STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };

/// An index as it was found or made.
#[derive(Debug)]
pub(crate) struct Opened {
    /// `None` if it has to be made anew from so many records that this takes a while. Begins no job before it is
    /// completed.
    pub(crate) keeper: Option<Keeper>,
    /// Runs with rows in the store that are no part of it.
    pub(crate) strays: BTreeSet<u64>,
    /// Whether there is a manifest that does not describe it.
    pub(crate) is_manifest_stale: bool,
}

/// Opens the index that is stored and takes what happened since, or makes it anew from the records if they are few.
/// The one that is stored may be of another policy. `at` is the head that the view shows.
pub(crate) async fn open(
    home: Home,
    rules: Arc<Rules>,
    view: &View,
    at: &Head,
    range: &EffectiveRange,
) -> Result<Opened, Fault> {
    let partition = home.partition;
    let mut strays = stored_runs(view, partition).await?;
    let are_few = at.documents <= home.memory.options().inline_documents_max as u64;
    let saved = match open_saved(&home, &rules, view, are_few).await {
        Err(fault) if is_damage(&fault) => {
            tracing::error!(event = "index_damaged", ?partition, cause = %fault, "the stored index is damaged and is rebuilt");
            Saved::Unusable
        }
        other => other?,
    };
    let is_manifest_stale = matches!(saved, Saved::Unusable);
    let keeper = match saved {
        Saved::Usable(keeper) => Some(*keeper),
        Saved::None | Saved::Unusable if are_few => {
            let mut keeper = Keeper::new(home, rules, at.lsn);
            take_records(&mut keeper, view, partition, range).await?;
            Some(keeper)
        }
        Saved::None | Saved::Unusable => None,
    };
    if let Some(keeper) = &keeper {
        keeper.own_runs().for_each(|run| {
            strays.remove(&run);
        });
    }
    Ok(Opened { keeper, strays, is_manifest_stale })
}

enum Saved {
    Usable(Box<Keeper>),
    Unusable,
    None,
}

/// The index that is stored, by the rules it was made by. One of another policy is of no use if documents `are_few`: the
/// new one is there as soon.
async fn open_saved(home: &Home, rules: &Arc<Rules>, view: &View, are_few: bool) -> Result<Saved, Fault> {
    let Some(manifest) = Manifest::load(view, home.partition).await? else {
        return Ok(Saved::None);
    };
    let rules = if manifest.fingerprint == rules.fingerprint() {
        Some(Arc::clone(rules))
    } else if are_few {
        None
    } else {
        rules.stored(&manifest.definition, manifest.fingerprint).map(Arc::new)
    };
    let Some(rules) = rules else { return Ok(Saved::Unusable) };
    let mut runs = Vec::with_capacity(manifest.runs.len());
    for meta in &manifest.runs {
        runs.push(load_piece(&home.memory, view, home.partition, meta.clone()).await?);
    }
    let mut keeper = Keeper::saved(home.clone(), rules, &manifest, runs);
    catch_up(&mut keeper, view, home.partition).await?;
    Ok(Saved::Usable(Box::new(keeper)))
}

/// Whether stored bytes are to blame.
pub fn is_damage(fault: &Fault) -> bool {
    matches!(fault, Fault::Storage(StorageFault::Damaged { .. }))
}

/// Takes the changes that `view` shows behind the position of the index; tells how many.
pub(crate) async fn catch_up(
    keeper: &mut Keeper,
    view: &View,
    partition: PartitionId,
) -> Result<usize, Fault> {
    let mut taken = 0;
    let first = LogPosition::start_of(keeper.lsn.next());
    let mut range = keyspace::log_range(partition, first, Lsn(u64::MAX));
    loop {
        let chunk = view.scan(LOG, range.clone(), Direction::Forward, STEP).await.map_err(read_fault)?;
        let Some((last, _)) = chunk.rows.last() else {
            return Ok(taken);
        };
        taken += chunk.rows.len();
        let lsn = keyspace::parse_log_key(last).ok_or_else(|| damaged("log key"))?.lsn;
        // The rest of the last transaction may be still to come.
        let lsn = if chunk.more { keeper.lsn.max(Lsn(lsn.0.saturating_sub(1))) } else { lsn };
        let mut numbers = Vec::with_capacity(chunk.rows.len());
        for (_, row) in &chunk.rows {
            numbers.push(LogEntry::decode(row)?.number);
        }
        let changes = current_versions(view, partition, &numbers).await?;
        let prepared = Prepared::new(keeper.rules(), changes);
        keeper.apply(prepared, lsn).await;
        if !chunk.more {
            return Ok(taken);
        }
        range = keyspace::after(&range, last);
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
async fn take_records(
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
    let logical = keyspace::logical_of_record(key, id.into()).ok_or_else(|| damaged("key of a record"))?;
    Ok(Version { number: record.number, logical, ts: record.ts(), document: record.document })
}
