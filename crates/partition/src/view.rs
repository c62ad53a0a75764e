//! Reading: one consistent state of the partition, for one page at most.
//!
//! Never blocks the writer and is never blocked by it.

use crate::evaluate::read_outcome;
use crate::index::IndexReader;
use crate::keyspace::{self, EXPIRY, LOG, NUMBERS, PartitionId, RECORDS};
use crate::log::LogEntry;
use crate::record::Record;
use crate::shape::ContainerShape;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, View};
use model::{Charge, DocumentNumber, Fault, Lsn, MissingFault};
use plan::{Condition, LogicalKey, Outcome, StoredDocument, Target};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that a log scan reads at a time.
const LOG_ROWS_MAX: usize = 1024;
/// Bytes that a log scan reads at a time.
const LOG_BYTES_MAX: usize = 256 * 1024;

/// One consistent state of a partition.
#[derive(Clone, Debug)]
pub struct PartitionView {
    pub(crate) view: View,
    pub(crate) index: Option<Arc<IndexReader>>,
    pub(crate) partition: PartitionId,
    pub(crate) shape: Arc<ContainerShape>,
    pub(crate) lsn: Lsn,
    pub(crate) now: u64,
}

/// Which documents a page is wanted from.
#[derive(Clone, Debug)]
pub struct RecordScan {
    /// The keys; see [`keyspace::effective_range`] and [`keyspace::logical_range`].
    pub range: KeyRange,
    /// Most documents.
    pub items_max: usize,
    /// Bytes after which the page ends.
    pub bytes_max: usize,
}

/// A page of documents in key order.
#[derive(Debug)]
pub struct RecordPage {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// The key of the last row looked at, if there may be more behind it.
    pub resume_after: Option<Bytes>,
}

impl PartitionView {
    /// The position of this state in the partition's history.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The index of this state; `None` while it is being made.
    pub fn index(&self) -> Option<&IndexReader> {
        self.index.as_deref()
    }

    /// Documents in the index whose time has come and that were not swept yet, ascending: whoever counts by the index
    /// alone takes them off. After a change of the container's default some are missing until the expiry rows were
    /// written anew. Nothing without an index.
    pub async fn expired(&self) -> Result<Vec<DocumentNumber>, Fault> {
        let mut numbers = BTreeSet::new();
        let Some(index) = self.index() else { return Ok(Vec::new()) };
        let mut range = keyspace::expiry_range(self.partition.container, self.now);
        loop {
            let limit = ScanLimit { rows: LOG_ROWS_MAX, bytes: LOG_BYTES_MAX };
            let chunk =
                self.view.scan(EXPIRY, range.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
            for (key, _) in &chunk.rows {
                let (_, number) = keyspace::parse_expiry_key(key).ok_or_else(|| damaged("expiry key"))?;
                // A row may be stale, or of another partition of the container.
                if index.holds(number) && self.is_number_expired(number).await? {
                    numbers.insert(number);
                }
            }
            match chunk.rows.last() {
                Some((key, _)) if chunk.more => range = keyspace::after(&range, key),
                Some(_) | None => return Ok(numbers.into_iter().collect()),
            }
        }
    }

    async fn is_number_expired(&self, number: DocumentNumber) -> Result<bool, Fault> {
        let number_key = keyspace::number_key(self.partition.container, number);
        match self.view.get(NUMBERS, &number_key).await.map_err(read_fault)? {
            Some(key) => Ok(self.is_expired(&self.record(&key).await?)),
            None => Ok(false),
        }
    }

    /// Reads one document; an expired one is absent.
    pub async fn read(
        &self,
        key: &LogicalKey,
        target: &Target,
        condition: &Condition,
    ) -> Result<(Outcome, Charge), Fault> {
        let prefix = keyspace::logical_prefix(self.partition.container, key);
        let key = match target {
            Target::Id(id) => Some(keyspace::record_key(&prefix, id)),
            Target::Number(number) => {
                let number_key = keyspace::number_key(self.partition.container, *number);
                let key = self.view.get(NUMBERS, &number_key).await.map_err(read_fault)?;
                key.filter(|key| key.starts_with(&prefix))
            }
        };
        let Some(key) = key else {
            return Err(MissingFault::Resource.into());
        };
        let record = self.record(&key).await?;
        if self.is_expired(&record) {
            return Err(MissingFault::Resource.into());
        }
        let charge = Charge::read(record.document.bytes().len());
        Ok((read_outcome(record, condition)?, charge))
    }

    /// The record under a key, expired or not.
    pub(crate) async fn record(&self, key: &[u8]) -> Result<Record, Fault> {
        match self.view.get(RECORDS, key).await.map_err(read_fault)? {
            Some(row) => Record::decode(&row),
            None => Err(MissingFault::Resource.into()),
        }
    }

    /// Reads a page of documents in key order; expired ones are passed over.
    pub async fn page(&self, scan: &RecordScan) -> Result<RecordPage, Fault> {
        let limit = ScanLimit { rows: scan.items_max, bytes: scan.bytes_max };
        let chunk = self
            .view
            .scan(RECORDS, scan.range.clone(), Direction::Forward, limit)
            .await
            .map_err(read_fault)?;
        let resume_after = chunk.rows.last().filter(|_| chunk.more).map(|(key, _)| key.clone());
        let mut documents = Vec::with_capacity(chunk.rows.len());
        for (_, row) in &chunk.rows {
            let record = Record::decode(row)?;
            if !self.is_expired(&record) {
                documents.push(record.into_stored());
            }
        }
        Ok(RecordPage { documents, resume_after })
    }

    /// Reads log entries from `first` on, at most a bounded number; empty at the end.
    pub async fn log(&self, first: Lsn) -> Result<Vec<(Lsn, LogEntry)>, Fault> {
        let range = keyspace::log_range(self.partition, first, Lsn(u64::MAX));
        let limit = ScanLimit { rows: LOG_ROWS_MAX, bytes: LOG_BYTES_MAX };
        let chunk = self.view.scan(LOG, range, Direction::Forward, limit).await.map_err(read_fault)?;
        let entry = |(key, row): &(Bytes, Bytes)| {
            let lsn = keyspace::parse_log_key(key).ok_or_else(|| damaged("log key"))?;
            Ok((lsn, LogEntry::decode(row)?))
        };
        chunk.rows.iter().map(entry).collect()
    }

    fn is_expired(&self, record: &Record) -> bool {
        record.is_expired(self.shape.default_ttl, self.now)
    }
}
