//! Recovers the index from the stored rows: from the log after a position, or from all records.
//!
//! A log entry names a document, whose older versions are dead; the current version is read from the view. A change
//! may therefore be applied twice, and entries of versions that were replaced since may be missing.

use crate::head::Head;
use crate::index::index_writer::{Changes, IndexEnvironment, IndexWriter, Prepared};
use crate::index::manifest::{Manifest, load_piece, stored_runs};
use crate::index::rules::Rules;
use crate::index::terms::DocumentVersion;
use crate::keyspace::{self, NUMBERS, PartitionId, RECORDS};
use crate::lineage::Lineage;
use crate::log::LogPosition;
use crate::overlay::RowsView;
use crate::record::Record;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, View};
use model::{DocumentNumber, EffectiveRange, Fault, Lsn, StorageFault};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

/// Rows and bytes per step.
const STEP: ScanLimit = ScanLimit { rows: 1024, bytes: 4 << 20 };

/// An index that was opened or rebuilt.
#[derive(Debug)]
pub(crate) struct OpenedIndex {
    /// `None` if it must be rebuilt from so many records that this takes a while. It starts no job before `complete`
    /// is called.
    pub(crate) index_writer: Option<IndexWriter>,
    /// Runs with rows in the store that are not part of it.
    pub(crate) strays: BTreeSet<u64>,
    /// Whether there is a manifest that does not describe it.
    pub(crate) is_manifest_stale: bool,
}

/// Opens the stored index and replays the log after it, or rebuilds it from the records if they are few. The stored
/// index may have another policy. `at` is the head in the view.
pub(crate) async fn open(
    environment: IndexEnvironment,
    rules: Arc<Rules>,
    view: &View,
    at: &Head,
    range: &EffectiveRange,
) -> Result<OpenedIndex, Fault> {
    let partition = environment.partition;
    let mut strays = stored_runs(view, partition).await?;
    let options = environment.memory.options();
    let are_few = at.documents <= options.inline_documents_max as u64;
    // Before the first flush has ended. The opening waits for them as it would for so many changes in the log: a query
    // costs the same as before a crash. Bytes of documents are more than those of their terms, hence four flushes.
    let were_in_memory = at.documents <= (options.flush_documents as u64).saturating_mul(2)
        && at.bytes <= (options.flush_bytes as u64).saturating_mul(4);
    let saved = match open_saved(&environment, &rules, view, are_few).await {
        Err(fault) if is_damage(&fault) => {
            tracing::error!(event = "index_damaged", ?partition, cause = %fault, "the stored index is damaged and is rebuilt");
            Saved::Unusable
        }
        other => other?,
    };
    let is_manifest_stale = matches!(saved, Saved::Unusable);
    let index_writer = match saved {
        Saved::Usable(index_writer) => Some(*index_writer),
        Saved::None if were_in_memory => rebuilt(environment, rules, view, at, range).await?,
        Saved::Unusable if are_few => rebuilt(environment, rules, view, at, range).await?,
        Saved::None | Saved::Unusable => None,
    };
    if let Some(index_writer) = &index_writer {
        index_writer.own_runs().for_each(|run| {
            strays.remove(&run);
        });
    }
    Ok(OpenedIndex { index_writer, strays, is_manifest_stale })
}

/// An index of the records in the view; `None` if they are not few and all indexes together use up their memory: only a
/// background build writes what does not fit.
async fn rebuilt(
    environment: IndexEnvironment,
    rules: Arc<Rules>,
    view: &View,
    at: &Head,
    range: &EffectiveRange,
) -> Result<Option<IndexWriter>, Fault> {
    let (partition, memory) = (environment.partition, Arc::clone(&environment.memory));
    let are_few = at.documents <= memory.options().inline_documents_max as u64;
    let mut index_writer = IndexWriter::new(environment, rules, at.lsn);
    let mut range = keyspace::effective_range(partition.container, range);
    while let Some(step) = next_records(view, &mut range).await? {
        if !are_few && memory.is_tight() {
            return Ok(None);
        }
        let changes = step.into_iter().map(|version| (version.number, Some(version))).collect();
        let prepared = Prepared::new(index_writer.rules(), changes);
        let lsn = index_writer.lsn;
        index_writer.apply(prepared, lsn).await;
    }
    Ok(Some(index_writer))
}

enum Saved {
    Usable(Box<IndexWriter>),
    Unusable,
    None,
}

/// The stored index, with the rules it was built by. One of another policy is not used if documents `are_few`, because
/// the new one is built as fast.
async fn open_saved(
    environment: &IndexEnvironment,
    rules: &Arc<Rules>,
    view: &View,
    are_few: bool,
) -> Result<Saved, Fault> {
    let Some(manifest) = Manifest::load(view, environment.partition).await? else {
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
        let loaded = environment.loaded.iter().filter_map(Weak::upgrade).find(|run| run.meta == *meta);
        runs.push(load_piece(&environment.memory, view, environment.partition, meta.clone(), loaded).await?);
    }
    let mut index_writer = IndexWriter::saved(environment.clone(), rules, &manifest, runs);
    catch_up(&mut index_writer, view, &environment.lineage).await?;
    Ok(Saved::Usable(Box::new(index_writer)))
}

/// Whether the fault is damage of stored bytes.
pub fn is_damage(fault: &Fault) -> bool {
    matches!(fault, Fault::Storage(StorageFault::Damaged { .. }))
}

/// Applies the changes in `view` after the position of the index. Returns their number.
pub(crate) async fn catch_up(
    index_writer: &mut IndexWriter,
    view: &View,
    lineage: &Lineage,
) -> Result<usize, Fault> {
    let mut taken = 0;
    let mut first = LogPosition::start_of(index_writer.lsn.next());
    let rows = RowsView::from(view.clone());
    loop {
        let chunk = lineage.log(&rows, None, first, Lsn(u64::MAX), STEP).await?;
        let lsn = match (chunk.reached, chunk.entries.last()) {
            // The rest of the last transaction may be in the next chunk.
            (Some(reached), _) => index_writer.lsn.max(Lsn(reached.lsn.0.saturating_sub(1))),
            (None, Some(last)) => last.at.lsn,
            (None, None) => return Ok(taken),
        };
        taken += chunk.entries.len();
        let numbers: Vec<DocumentNumber> = chunk.entries.iter().map(|found| found.entry.number).collect();
        let changes = current_versions(view, lineage.id, &numbers).await?;
        let prepared = Prepared::new(index_writer.rules(), changes);
        index_writer.apply(prepared, lsn).await;
        match chunk.reached {
            Some(reached) => first = reached.next(),
            None => return Ok(taken),
        }
    }
}

/// Documents as they are in `view`.
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

/// The next documents of a key range, which is shortened to the rest; `None` at its end.
pub(crate) async fn next_records(
    view: &View,
    range: &mut KeyRange,
) -> Result<Option<Vec<DocumentVersion>>, Fault> {
    let chunk = view.scan(RECORDS, range.clone(), Direction::Forward, STEP).await.map_err(read_fault)?;
    let Some((last, _)) = chunk.rows.last() else {
        return Ok(None);
    };
    *range = keyspace::after(range, last);
    chunk.rows.iter().map(|(key, row)| version(key, row)).collect::<Result<_, _>>().map(Some)
}

fn version(key: &Bytes, row: &Bytes) -> Result<DocumentVersion, Fault> {
    let record = Record::decode(row)?;
    let id = record.id().ok_or_else(|| damaged("record without an id"))?;
    let logical = keyspace::logical_of_record(key, id.into()).ok_or_else(|| damaged("key of a record"))?;
    Ok(DocumentVersion { number: record.number, logical, ts: record.ts(), document: record.document })
}
