//! Audits the history of a partition: it has every change from the position in the head on.

use crate::audit::{AuditReport, Finding, WrittenVersion, rows};
use crate::head::Head;
use crate::history::HistoryEntry;
use crate::keyspace::{self, HISTORY, LOG, PartitionId};
use crate::lineage::Lineage;
use crate::log::{LogEntry, LogPosition};
use crate::partition::PartitionSpec;
use crate::storage::damaged;
use kv::View;
use model::{Fault, Lsn};
use plan::StoredDocument;
use std::collections::BTreeMap;

/// Compares the history of a partition with its last versions and with the removals in its log. Entries that its
/// ancestors have written for its documents count too.
pub(crate) async fn audit_history(
    view: &View,
    spec: &PartitionSpec,
    head: &Head,
    versions: &BTreeMap<(u32, LogPosition), WrittenVersion>,
    report: &mut AuditReport,
) -> Result<(), Fault> {
    let id = spec.id;
    let lineage = Lineage::of(spec);
    let mut found = BTreeMap::new();
    let ancestors = spec.ancestors.iter().filter(|ancestor| ancestor.remains.has_log());
    let ordinals = ancestors.map(|ancestor| ancestor.ordinal).chain([id.ordinal]);
    for source in ordinals.map(|ordinal| PartitionId { ordinal, ..id }) {
        for (key, row) in rows(view, HISTORY, keyspace::partition_rows(source)).await? {
            let at = keyspace::parse_history_key(&key).ok_or_else(|| damaged("key of the history"))?;
            match HistoryEntry::decode(&row) {
                Ok(entry) if source != id && !lineage.owns(&entry.key) => {}
                Ok(entry) => {
                    if let Some(what) = contradiction(id, head, at, &entry) {
                        report.findings.push(Finding::HistoryBroken { id, at, what });
                    }
                    found.insert(at, entry);
                }
                Err(fault) => {
                    let reason = fault.to_string();
                    report.findings.push(Finding::Unreadable { space: HISTORY, key, reason });
                }
            }
        }
    }
    let written =
        versions.iter().filter(|((_, at), version)| *at >= head.history_from && lineage.owns(&version.key));
    for ((_, at), version) in written {
        if !found.get(at).is_some_and(|entry| matches_version(entry, version)) {
            report.findings.push(Finding::HistoryBroken { id, at: *at, what: "the last version" });
        }
    }
    let log = keyspace::log_range(id, head.history_from, Lsn(u64::MAX));
    for (key, row) in rows(view, LOG, log).await? {
        let at = keyspace::parse_log_key(&key).ok_or_else(|| damaged("log key"))?;
        // Rows that do not decode are reported by the audit of the log.
        let Ok(entry) = LogEntry::decode(&row) else { continue };
        let is_same = |found: &HistoryEntry| found.number == entry.number && found.time == entry.time;
        if entry.is_removal() && !found.get(&at).is_some_and(is_same) {
            report.findings.push(Finding::HistoryBroken { id, at, what: "a removal" });
        }
    }
    Ok(())
}

/// What an entry contradicts, without comparing other entries.
fn contradiction(
    id: PartitionId,
    head: &Head,
    at: LogPosition,
    entry: &HistoryEntry,
) -> Option<&'static str> {
    let written_at = |stored: Option<&StoredDocument>| stored.map(|stored| stored.lsn);
    let is_of_container = keyspace::parse_container(&entry.key) == Some(id.container);
    if at.lsn > head.lsn || at < head.history_trimmed {
        Some("the head")
    } else if written_at(entry.previous.as_ref()).is_some_and(|previous| previous > at.lsn) {
        Some("the version before")
    } else if written_at(entry.current.as_ref()).is_some_and(|current| current != at.lsn) {
        Some("its version")
    } else if !is_of_container {
        Some("the container")
    } else {
        None
    }
}

fn matches_version(entry: &HistoryEntry, version: &WrittenVersion) -> bool {
    let is_same = (entry.number, entry.time) == (version.number, version.time);
    let has_document = |stored: &StoredDocument| *stored.document.bytes() == *version.document.bytes();
    is_same && entry.key == version.key && entry.current.as_ref().is_some_and(has_document)
}
