//! Audits the logs of the partitions of a container and of their ancestors, and under which prefixes there are rows.

use crate::audit::{AuditReport, AuditScope, Finding, ImpliedRows, WrittenVersion, rows};
use crate::head::Head;
use crate::keyspace::{self, HISTORY, INDEX, LOG, META, PartitionId};
use crate::lineage::{Ancestor, Remains};
use crate::log::{LogEntry, LogKind, LogPosition, load_consumers};
use crate::storage::damaged;
use bytes::Bytes;
use kv::View;
use model::{Fault, Lsn};
use std::collections::{BTreeMap, BTreeSet};

/// Compares all logs with the last versions, and removes those that it finds from `derived`.
pub(crate) async fn audit_logs(
    view: &View,
    scope: &AuditScope<'_>,
    heads: &BTreeMap<u32, Head>,
    derived: &mut ImpliedRows,
    report: &mut AuditReport,
) -> Result<(), Fault> {
    for source in log_sources(view, scope, heads).await? {
        audit_log(view, scope, &source, derived, report).await?;
    }
    Ok(())
}

/// The log under one prefix.
struct LogSource {
    id: PartitionId,
    lsn_last: Lsn,
    /// From here on there may be entries that are kept for a consumer.
    kept_from: Option<LogPosition>,
}

/// The logs of all partitions and of their ancestors.
async fn log_sources(
    view: &View,
    scope: &AuditScope<'_>,
    heads: &BTreeMap<u32, Head>,
) -> Result<Vec<LogSource>, Fault> {
    let mut sources: BTreeMap<u32, LogSource> = BTreeMap::new();
    for spec in scope.partitions {
        let Some(head) = heads.get(&spec.id.ordinal.0) else { continue };
        let has_consumers = !load_consumers(view, spec.id).await?.is_empty();
        let kept_from = has_consumers.then_some(head.trimmed);
        let own = Ancestor { ordinal: spec.id.ordinal, lsn_last: head.lsn, remains: Remains::All };
        for Ancestor { ordinal, lsn_last, remains } in spec.ancestors.iter().copied().chain([own]) {
            if !remains.has_log() {
                continue;
            }
            let id = PartitionId { ordinal, ..spec.id };
            let source = sources.entry(ordinal.0).or_insert(LogSource { id, lsn_last, kept_from });
            source.kept_from = source.kept_from.into_iter().chain(kept_from).min();
        }
    }
    Ok(sources.into_values().collect())
}

/// Reports rows under the prefixes of partitions that do not exist, or of ancestors whose rows should be deleted.
pub(crate) async fn audit_prefixes(
    view: &View,
    scope: &AuditScope<'_>,
    report: &mut AuditReport,
) -> Result<(), Fault> {
    let live: BTreeSet<u32> = scope.partitions.iter().map(|spec| spec.id.ordinal.0).collect();
    let ancestors: BTreeMap<u32, Remains> = scope
        .partitions
        .iter()
        .flat_map(|spec| &spec.ancestors)
        .map(|ancestor| (ancestor.ordinal.0, ancestor.remains))
        .collect();
    for space in [LOG, HISTORY, INDEX, META] {
        for (key, _) in rows(view, space, keyspace::container_rows(scope.container)).await? {
            let id = keyspace::parse_partition(&key).ok_or_else(|| damaged("key of a partition's row"))?;
            let remains = ancestors.get(&id.ordinal.0).copied().unwrap_or(Remains::Nothing);
            let is_left = match space {
                META => false,
                INDEX => remains.has_runs(),
                _ => remains.has_log(),
            };
            if !live.contains(&id.ordinal.0) && !is_left {
                report.findings.push(Finding::Orphan { space, key });
            }
        }
    }
    Ok(())
}

/// Walks the log under one prefix and removes the versions it finds from `derived`.
async fn audit_log(
    view: &View,
    scope: &AuditScope<'_>,
    source: &LogSource,
    derived: &mut ImpliedRows,
    report: &mut AuditReport,
) -> Result<(), Fault> {
    let id = source.id;
    let all = keyspace::log_range(id, LogPosition::default(), Lsn(u64::MAX));
    for (key, row) in rows(view, LOG, all).await? {
        let at = keyspace::parse_log_key(&key).ok_or_else(|| damaged("log key"))?;
        let entry = match LogEntry::decode(&row) {
            Ok(entry) => entry,
            Err(fault) => {
                let reason = fault.to_string();
                let space = LOG;
                report.findings.push(Finding::Unreadable { space, key, reason });
                continue;
            }
        };
        let mut broken = |what| report.findings.push(Finding::LogBroken { id, at, what });
        if at.lsn > source.lsn_last {
            broken("the head");
        }
        if !keys_of(&entry).all(|key| keyspace::parse_container(key) == Some(scope.container)) {
            broken("the container");
        }
        let version = derived.versions.remove(&(id.ordinal.0, at));
        let number_key = keyspace::number_key(scope.container, entry.number);
        match version {
            Some(version) if entry.is_removal() => broken_version(version, at, report),
            Some(version)
                if version.number != entry.number
                    || version.time != entry.time
                    || entry.renamed_to().is_some_and(|key| *key != version.key) =>
            {
                broken_version(version, at, report);
            }
            Some(_) => {}
            // A number is never reused, so a removed document stays absent.
            None if entry.is_removal() && derived.numbers.contains_key(&number_key) => {
                broken("a document that is there");
            }
            // Kept for a consumer and not trimmed since.
            None if source.kept_from.is_some_and(|first| at >= first) => {}
            None if !entry.is_removal() => broken("the last versions"),
            None => {}
        }
    }
    Ok(())
}

fn broken_version(version: WrittenVersion, at: LogPosition, report: &mut AuditReport) {
    let number = version.number;
    report.findings.push(Finding::NotLogged { number, at });
}

/// The record keys in an entry.
fn keys_of(entry: &LogEntry) -> impl Iterator<Item = &Bytes> {
    let keys = match &entry.kind {
        LogKind::Create | LogKind::Replace => [None, None],
        LogKind::Delete { key } | LogKind::Expire { key } => [Some(key), None],
        LogKind::Rename { from, to } => [Some(from), Some(to)],
    };
    keys.into_iter().flatten()
}
