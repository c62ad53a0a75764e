//! Derives the rows of a container from its records and reports where the store differs.
//!
//! Reads one view and changes nothing, so it is used by simulations and by the offline check. It states the rows of a
//! document from the records alone and shares no code with the writer for that.
//!
//! | space | rule |
//! |---|---|
//! | records | a row decodes, is under the key that its document implies, in a range that a partition owns |
//! | numbers, unique | exactly the rows that the records imply |
//! | expiry | every row that the records imply; others only as [`ExpiryRule`] allows |
//! | log | the last version of each record has its entry, under the prefix of its writer or of a later partition of the lineage; other entries are removals of numbers that no longer exist, with a key of the container, or are kept for a consumer; none is after the head, or after the last LSN of an ancestor |
//! | history | from the position in the head on, the last version of each record and each removal in the log has its entry; none is after the head or before the trimmed position |
//! | meta | one owner and one head per partition; its counts equal a recount, and no row has a later position |
//! | log, history, index, meta | rows only of partitions, and, except in meta, of ancestors that are not empty |
//!
//! The derived rows are held in memory, some hundred bytes per document.

use crate::audit_history::audit_history;
use crate::audit_log::{audit_logs, audit_prefixes};
use crate::expiry::expires_at;
use crate::head::Head;
use crate::keyspace::{self, EXPIRY, META, NUMBERS, PartitionId, RECORDS, UNIQUE};
use crate::lineage::Ancestor;
use crate::log::LogPosition;
use crate::owner::Owner;
use crate::partition::{PartitionCounts, PartitionSpec};
use crate::record::Record;
use crate::shape::ContainerShape;
use crate::storage::{damaged, read_fault};
use crate::unique;
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, Space, View};
use model::{ContainerNumber, DocumentNumber, EffectiveKey, Fault, Lsn, Ticks};
use plan::LogicalKey;
use std::collections::{BTreeMap, BTreeSet};
use value::Document;

/// Rows per scan.
const ROWS_AT_A_TIME: usize = 1024;
/// Bytes per scan.
const BYTES_AT_A_TIME: usize = 4 * 1024 * 1024;

/// What to audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditScope<'a> {
    /// The container.
    pub container: ContainerNumber,
    /// The part of its definition that rows depend on.
    pub shape: &'a ContainerShape,
    /// All its partitions.
    pub partitions: &'a [PartitionSpec],
    /// The expiry rows that are allowed.
    pub expiry: ExpiryRule,
}

/// The expiry rows that are allowed.
///
/// A row that no document implies is *stale*. It was written under another default and is harmless: the sweep reads
/// the document when the row's second has come, and deletes the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryRule {
    /// The default never changed: exactly the rows that the records imply.
    Exact,
    /// The default changed and all rows were rewritten: stale rows may remain if they are later than the second that
    /// the sweep has reached.
    Rescheduled {
        /// The last second that was swept.
        swept_second: u64,
    },
    /// Rows are being rewritten: some may still be missing.
    Pending,
}

/// The result of an audit.
#[derive(Clone, Debug, Default)]
pub struct AuditReport {
    /// Differences; empty if there are none.
    pub findings: Vec<Finding>,
    /// One entry per partition of the scope that has a head.
    pub partitions: Vec<AuditedPartition>,
    /// Expiry rows that no document implies.
    pub stale_expiry_rows: usize,
}

/// The stored head of a partition.
#[derive(Clone, Copy, Debug)]
pub struct AuditedPartition {
    /// The partition.
    pub id: PartitionId,
    /// The last LSN of a stored batch.
    pub lsn: Lsn,
    /// The time of the last stored batch.
    pub ts: u64,
    /// The counts in the head.
    pub counts: PartitionCounts,
}

/// A difference between rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// A row that does not decode.
    #[error("the row {key:?} of space {} cannot be read: {reason}", space.0)]
    Unreadable {
        /// Its space.
        space: Space,
        /// Its key.
        key: Bytes,
        /// The decoding error.
        reason: String,
    },
    /// A record under a wrong key.
    #[error("the record {key:?} belongs under {expected:?}")]
    Misplaced {
        /// The key of the row.
        key: Bytes,
        /// The key that its document implies.
        expected: Bytes,
    },
    /// A record that no partition of the container owns.
    #[error("no partition owns the record {key:?}")]
    Unowned {
        /// The record.
        key: Bytes,
    },
    /// Two records with the same number.
    #[error("the number {number:?} of the record {key:?} is taken twice")]
    NumberTwice {
        /// The second record.
        key: Bytes,
        /// The number.
        number: DocumentNumber,
    },
    /// A row that the records imply is missing or has another value.
    #[error("space {} holds {found:?} instead of {expected:?} under {key:?}", space.0)]
    Wrong {
        /// Its space.
        space: Space,
        /// The key.
        key: Bytes,
        /// The value that the records imply.
        expected: Bytes,
        /// The stored value.
        found: Option<Bytes>,
    },
    /// A row that no record implies.
    #[error("no record implies the row {key:?} of space {}", space.0)]
    Orphan {
        /// Its space.
        space: Space,
        /// Its key.
        key: Bytes,
    },
    /// A version whose log entry is missing or different.
    #[error("the version {at:?} of {number:?} is not in the log as it should be")]
    NotLogged {
        /// The document.
        number: DocumentNumber,
        /// The position of its version.
        at: LogPosition,
    },
    /// A log entry that contradicts the entries around it, the records or the head.
    #[error("the log entry {at:?} of {id:?} contradicts {what}")]
    LogBroken {
        /// The partition.
        id: PartitionId,
        /// The entry.
        at: LogPosition,
        /// What it contradicts.
        what: &'static str,
    },
    /// A history entry that is missing or contradicts the records, the log or the head.
    #[error("the history entry {at:?} of {id:?} contradicts {what}")]
    HistoryBroken {
        /// The partition.
        id: PartitionId,
        /// The entry.
        at: LogPosition,
        /// What it contradicts.
        what: &'static str,
    },
    /// A partition without a head.
    #[error("the partition {id:?} has no head")]
    NoHead {
        /// The partition.
        id: PartitionId,
    },
    /// A partition without an owner row.
    #[error("the partition {id:?} has no owner")]
    NoOwner {
        /// The partition.
        id: PartitionId,
    },
    /// A head whose counts differ from a recount.
    #[error("the partition {id:?} counts {counted:?} and holds {held:?}")]
    Miscounted {
        /// The partition.
        id: PartitionId,
        /// The counts in the head.
        counted: PartitionCounts,
        /// The counts of the records.
        held: PartitionCounts,
    },
    /// A record with a position after the head of its partition.
    #[error("the record {key:?} has a position after the head of its partition")]
    AheadOfHead {
        /// The record.
        key: Bytes,
    },
}

/// Compares all rows of a container with its records.
pub async fn audit(view: &View, scope: &AuditScope<'_>) -> Result<AuditReport, Fault> {
    let mut derived = ImpliedRows::default();
    let mut report = AuditReport::default();
    let heads = heads(view, scope, &mut report).await?;
    for (key, row) in rows(view, RECORDS, keyspace::container_rows(scope.container)).await? {
        if let Err(finding) = derived.take(scope, &heads, key, &row) {
            report.findings.push(finding);
        }
    }
    for spec in scope.partitions {
        let held = derived.counts.get(&spec.id.ordinal.0).copied().unwrap_or_default();
        if let Some(head) = heads.get(&spec.id.ordinal.0) {
            let counted = counts(head);
            if counted != held {
                let id = spec.id;
                report.findings.push(Finding::Miscounted { id, counted, held });
            }
        }
    }
    for (space, expected) in [(NUMBERS, &derived.numbers), (UNIQUE, &derived.unique)] {
        let found = rows(view, space, keyspace::container_rows(scope.container)).await?;
        compare(space, expected, found, &mut report.findings);
    }
    audit_expiry(view, scope, &derived, &mut report).await?;
    for spec in scope.partitions {
        if let Some(head) = heads.get(&spec.id.ordinal.0) {
            audit_history(view, spec, head, &derived.versions, &mut report).await?;
        }
    }
    audit_logs(view, scope, &heads, &mut derived, &mut report).await?;
    audit_prefixes(view, scope, &mut report).await?;
    let unlogged = derived.versions.into_iter().map(|((_, at), version)| {
        let number = version.number;
        Finding::NotLogged { number, at }
    });
    report.findings.extend(unlogged);
    Ok(report)
}

/// The containers that have rows in the store but are neither in the catalog nor among the dropped ones.
pub async fn stray_containers(view: &View) -> Result<Vec<ContainerNumber>, Fault> {
    let mut known = BTreeSet::new();
    for range in [keyspace::container_range(), keyspace::dropped_range()] {
        for (key, _) in rows(view, keyspace::CATALOG, range).await? {
            let number = keyspace::parse_catalog_number(&key);
            known.insert(number.ok_or_else(|| damaged("key of a catalog row"))?);
        }
    }
    let mut strays = BTreeSet::new();
    for space in keyspace::CONTAINER_SPACES {
        for (key, _) in rows(view, space, KeyRange::all()).await? {
            let number =
                keyspace::parse_container(&key).ok_or_else(|| damaged("key of a container's row"))?;
            if !known.contains(&number.0) {
                strays.insert(number);
            }
        }
    }
    Ok(strays.into_iter().collect())
}

/// The rows that the records imply.
#[derive(Default)]
pub(crate) struct ImpliedRows {
    pub(crate) numbers: BTreeMap<Bytes, Bytes>,
    unique: BTreeMap<Bytes, Bytes>,
    expiry: BTreeMap<Bytes, Bytes>,
    /// Counts by the ordinal of the partition that owns the records.
    counts: BTreeMap<u32, PartitionCounts>,
    /// Versions by the ordinal of the partition that wrote them, and position.
    pub(crate) versions: BTreeMap<(u32, LogPosition), WrittenVersion>,
}

pub(crate) struct WrittenVersion {
    pub(crate) number: DocumentNumber,
    pub(crate) time: Ticks,
    pub(crate) key: Bytes,
    pub(crate) document: Document,
}

impl ImpliedRows {
    fn take(
        &mut self,
        scope: &AuditScope<'_>,
        heads: &BTreeMap<u32, Head>,
        key: Bytes,
        row: &Bytes,
    ) -> Result<(), Finding> {
        let unreadable = |reason: String| Finding::Unreadable { space: RECORDS, key: key.clone(), reason };
        let record = Record::decode(row).map_err(|fault| unreadable(fault.to_string()))?;
        let whole = record.document.validate();
        whole.map_err(|damage| unreadable(damage.to_string()))?;
        let definition = &scope.shape.partition_key;
        let partition_key = definition.extract(&record.document);
        let partition_key = partition_key.map_err(|fault| unreadable(fault.to_string()))?;
        let effective = definition.effective_key(&partition_key);
        let owner = owner(scope, &effective).ok_or_else(|| Finding::Unowned { key: key.clone() })?;
        let effective_key = Bytes::copy_from_slice(effective.as_bytes());
        let logical = LogicalKey { partition_key, effective };
        let prefix = keyspace::logical_prefix(scope.container, &logical);
        let id = record.id().ok_or_else(|| unreadable("it has no id".to_owned()))?;
        let expected = keyspace::record_key(&prefix, id.into());
        if key != expected {
            return Err(Finding::Misplaced { key, expected });
        }
        let counts = self.counts.entry(owner.id.ordinal.0).or_default();
        counts.documents += 1;
        counts.bytes += (key.len() + row.len()) as u64;
        let number = Bytes::copy_from_slice(&record.number.raw().to_be_bytes());
        for row in unique::rows(&scope.shape.unique_keys, &prefix, &record.document) {
            // Of two holders the second one counts, so that the first is reported to lack its row.
            self.unique.insert(row, number.clone());
        }
        if let Some(second) = expires_at(record.ts(), record.ttl, scope.shape.default_ttl) {
            self.expiry.insert(keyspace::expiry_key(scope.container, second, record.number), effective_key);
        }
        let version = WrittenVersion {
            number: record.number,
            time: record.time,
            key: key.clone(),
            document: record.document.clone(),
        };
        self.versions.insert((record.ordinal.0, record.log_position()), version);
        let number_key = keyspace::number_key(scope.container, record.number);
        if self.numbers.insert(number_key, key.clone()).is_some() {
            let number = record.number;
            return Err(Finding::NumberTwice { key, number });
        }
        // The time is not compared: a partition that was written under a wrong clock returns to the right one.
        let is_ahead = |head: &Head| record.lsn > head.lsn || record.stamp > head.stamp;
        let written_by = |ancestor: &&Ancestor| ancestor.ordinal == record.ordinal;
        let ancestor = owner.ancestors.iter().find(written_by);
        let is_after_split = ancestor.is_some_and(|ancestor| record.lsn > ancestor.lsn_last);
        if is_after_split || heads.get(&record.ordinal.0).is_some_and(is_ahead) {
            return Err(Finding::AheadOfHead { key });
        }
        Ok(())
    }
}

fn owner<'a>(scope: &AuditScope<'a>, effective: &EffectiveKey) -> Option<&'a PartitionSpec> {
    scope.partitions.iter().find(|spec| spec.range.contains(effective))
}

async fn heads(
    view: &View,
    scope: &AuditScope<'_>,
    report: &mut AuditReport,
) -> Result<BTreeMap<u32, Head>, Fault> {
    let mut heads = BTreeMap::new();
    for spec in scope.partitions {
        audit_owner(view, spec.id, report).await?;
        let key = keyspace::head_key(spec.id);
        let Some(row) = view.get(META, &key).await.map_err(read_fault)? else {
            report.findings.push(Finding::NoHead { id: spec.id });
            continue;
        };
        match Head::decode(&row) {
            Ok(head) => {
                report.partitions.push(AuditedPartition {
                    id: spec.id,
                    lsn: head.lsn,
                    ts: head.time.seconds(),
                    counts: counts(&head),
                });
                heads.insert(spec.id.ordinal.0, head);
            }
            Err(fault) => {
                report.findings.push(Finding::Unreadable { space: META, key, reason: fault.to_string() })
            }
        }
    }
    Ok(heads)
}

async fn audit_owner(view: &View, id: PartitionId, report: &mut AuditReport) -> Result<(), Fault> {
    let key = keyspace::owner_key(id);
    match view.get(META, &key).await.map_err(read_fault)? {
        None => report.findings.push(Finding::NoOwner { id }),
        Some(row) => {
            if let Err(fault) = Owner::decode(&row) {
                report.findings.push(Finding::Unreadable { space: META, key, reason: fault.to_string() });
            }
        }
    }
    Ok(())
}

fn counts(head: &Head) -> PartitionCounts {
    PartitionCounts { documents: head.documents, bytes: head.bytes }
}

/// Reports every difference between expected and stored rows.
fn compare(
    space: Space,
    expected: &BTreeMap<Bytes, Bytes>,
    found: Vec<(Bytes, Bytes)>,
    findings: &mut Vec<Finding>,
) {
    let found: BTreeMap<Bytes, Bytes> = found.into_iter().collect();
    for (key, expected) in expected {
        if found.get(key) != Some(expected) {
            findings.push(Finding::Wrong {
                space,
                key: key.clone(),
                expected: expected.clone(),
                found: found.get(key).cloned(),
            });
        }
    }
    let orphans = found.into_keys().filter(|key| !expected.contains_key(key));
    findings.extend(orphans.map(|key| Finding::Orphan { space, key }));
}

async fn audit_expiry(
    view: &View,
    scope: &AuditScope<'_>,
    derived: &ImpliedRows,
    report: &mut AuditReport,
) -> Result<(), Fault> {
    let found = rows(view, EXPIRY, keyspace::container_rows(scope.container)).await?;
    let found: BTreeMap<Bytes, Bytes> = found.into_iter().collect();
    for (key, expected) in &derived.expiry {
        let is_missing_allowed = scope.expiry == ExpiryRule::Pending && !found.contains_key(key);
        if found.get(key) != Some(expected) && !is_missing_allowed {
            report.findings.push(Finding::Wrong {
                space: EXPIRY,
                key: key.clone(),
                expected: expected.clone(),
                found: found.get(key).cloned(),
            });
        }
    }
    for key in found.keys().filter(|key| !derived.expiry.contains_key(*key)) {
        report.stale_expiry_rows += 1;
        let second = keyspace::parse_expiry_key(key).map(|(second, _)| second);
        let allowed = match (scope.expiry, second) {
            (_, None) | (ExpiryRule::Exact, _) => false,
            (ExpiryRule::Rescheduled { swept_second }, Some(second)) => second > swept_second,
            (ExpiryRule::Pending, Some(_)) => true,
        };
        if !allowed {
            let key = key.clone();
            report.findings.push(Finding::Orphan { space: EXPIRY, key });
        }
    }
    Ok(())
}

pub(crate) async fn rows(
    view: &View,
    space: Space,
    mut range: KeyRange,
) -> Result<Vec<(Bytes, Bytes)>, Fault> {
    let mut found = Vec::new();
    loop {
        let limit = ScanLimit { rows: ROWS_AT_A_TIME, bytes: BYTES_AT_A_TIME };
        let chunk = view.scan(space, range.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
        found.extend(chunk.rows);
        match found.last() {
            Some((key, _)) if chunk.more => range = keyspace::after(&range, key),
            Some(_) | None => return Ok(found),
        }
    }
}
