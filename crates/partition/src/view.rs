//! Reading: one consistent state of the partition, for one page at most.
//!
//! Never blocks the writer and is never blocked by it.

use crate::cache::RecordCache;
use crate::evaluate::read_outcome;
use crate::history::HistoryEntry;
use crate::index::{Fingerprint, IndexReader, Needles};
use crate::keyspace::{self, EXPIRY, HISTORY, LOG, NUMBERS, PartitionId, RECORDS};
use crate::log::{LogEntry, LogPosition};
use crate::overlay::RowsView;
use crate::partition::PartitionCounts;
use crate::record::Record;
use crate::shape::ContainerShape;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{KeyRange, ScanLimit};
use model::{DefaultTtl, DocumentNumber, Fault, Lsn, MissingFault, Work};
use plan::{Condition, LogicalKey, Outcome, StoredDocument, Target};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that a log scan reads at a time.
const LOG_ROWS_MAX: usize = 1024;
/// Bytes that a log scan reads at a time.
const LOG_BYTES_MAX: usize = 256 * 1024;

/// Expired documents that are listed; the sweep is behind where there are more.
const EXPIRED_MAX: usize = 4096;

/// Records that are fetched by key at a time.
const FETCH_AT_A_TIME: usize = 16;

/// One consistent state of a partition.
#[derive(Clone, Debug)]
pub struct PartitionView {
    pub(crate) view: RowsView,
    pub(crate) cache: Arc<RecordCache>,
    pub(crate) index: Option<Arc<IndexReader>>,
    pub(crate) partition: PartitionId,
    pub(crate) shape: Arc<ContainerShape>,
    pub(crate) lsn: Lsn,
    pub(crate) counts: PartitionCounts,
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

/// Which documents are wanted in the order of their numbers.
#[derive(Clone, Debug)]
pub struct NumberScan {
    /// The first number.
    pub first: DocumentNumber,
    /// The last number.
    pub last: DocumentNumber,
    /// The keys of the documents; those of other partitions that share the numbers are passed over.
    pub keys: KeyRange,
    /// Most numbers that are looked at.
    pub items_max: usize,
    /// Bytes after which no further document is fetched.
    pub bytes_max: usize,
}

/// Documents in the order of their numbers.
#[derive(Debug)]
pub struct NumberPage {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// The last number looked at, if there may be more behind it.
    pub resume_after: Option<DocumentNumber>,
}

impl PartitionView {
    /// The same state as it is at another time: what has expired depends on it.
    #[must_use]
    pub fn at_seconds(self, now: u64) -> PartitionView {
        PartitionView { now, ..self }
    }

    /// The same state as if its index were still being made.
    #[must_use]
    pub fn without_index(self) -> PartitionView {
        PartitionView { index: None, ..self }
    }

    /// Which partition it is a state of.
    pub fn id(&self) -> PartitionId {
        self.partition
    }

    /// How much the partition holds in this state.
    pub fn counts(&self) -> PartitionCounts {
        self.counts
    }

    /// The position of this state in the partition's history.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The index of this state; `None` while it is being made.
    pub fn index(&self) -> Option<&IndexReader> {
        self.index.as_deref()
    }

    /// The position of this state, if its index is by these rules and knows from memory that it has no document with
    /// all of some values.
    pub fn lacks(&self, rules: Fingerprint, needles: &mut Needles<'_>) -> Option<Lsn> {
        let index = self.index().filter(|index| index.fingerprint() == rules)?;
        index.lacks(needles).then_some(self.lsn)
    }

    /// Documents in the index whose time has come and that were not swept yet, ascending: whoever counts by the index
    /// alone takes them off. Nothing without an index, where they are too many to be listed, or while the expiry rows
    /// are being written anew after a change of the container's default.
    pub async fn expired(&self) -> Result<Option<Vec<DocumentNumber>>, Fault> {
        let Some(index) = self.index() else { return Ok(None) };
        if self.never_expires() {
            return Ok(Some(Vec::new()));
        }
        if self.shape.is_expiry_pending {
            return Ok(None);
        }
        let mut numbers = BTreeSet::new();
        let mut looked_at = 0;
        let mut range = keyspace::expiry_range(self.partition.container, self.now);
        loop {
            let limit = ScanLimit { rows: LOG_ROWS_MAX, bytes: LOG_BYTES_MAX };
            let chunk = self.view.scan(EXPIRY, range.clone(), limit).await.map_err(read_fault)?;
            looked_at += chunk.rows.len();
            if looked_at > EXPIRED_MAX {
                return Ok(None);
            }
            for (key, _) in &chunk.rows {
                let (_, number) = keyspace::parse_expiry_key(key).ok_or_else(|| damaged("expiry key"))?;
                // A row may be stale, or of another partition of the container.
                if index.holds(number) && self.is_number_expired(number).await? {
                    numbers.insert(number);
                }
            }
            match chunk.rows.last() {
                Some((key, _)) if chunk.more => range = keyspace::after(&range, key),
                Some(_) | None => return Ok(Some(numbers.into_iter().collect())),
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
    ) -> Result<(Outcome, Work), Fault> {
        let prefix = keyspace::logical_prefix(self.partition.container, key);
        let key = match target {
            Target::Id(id) => Some(keyspace::record_key(&prefix, id.as_str().into())),
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
        let work = Work::Read { bytes: record.document.bytes().len() };
        Ok((read_outcome(record, condition)?, work))
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
        let chunk = self.view.scan(RECORDS, scan.range.clone(), limit).await.map_err(read_fault)?;
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

    /// Reads documents in the order of their numbers; expired ones are passed over.
    pub async fn numbered(&self, scan: &NumberScan) -> Result<NumberPage, Fault> {
        let range = keyspace::number_range(self.partition.container, scan.first, scan.last);
        let limit = ScanLimit { rows: scan.items_max, bytes: usize::MAX };
        let chunk = self.view.scan(NUMBERS, range, limit).await.map_err(read_fault)?;
        let mut documents = Vec::new();
        let mut bytes = 0;
        let mut looked_at = 0;
        for rows in chunk.rows.chunks(FETCH_AT_A_TIME) {
            if bytes >= scan.bytes_max {
                break;
            }
            looked_at += rows.len();
            let keys: Vec<Bytes> =
                rows.iter().map(|(_, key)| key.clone()).filter(|key| scan.keys.contains(key)).collect();
            let records = self.view.get_many(RECORDS, &keys).await.map_err(read_fault)?;
            for row in records.iter().flatten() {
                bytes += row.len();
                let record = Record::decode(row)?;
                if !self.is_expired(&record) {
                    documents.push(record.into_stored());
                }
            }
        }
        let is_all = !chunk.more && looked_at == chunk.rows.len();
        let last = chunk.rows.get(..looked_at).and_then(<[_]>::last).filter(|_| !is_all);
        let number = |key: &Bytes| keyspace::parse_number_key(key).ok_or_else(|| damaged("number key"));
        let resume_after = last.map(|(key, _)| number(key)).transpose()?;
        Ok(NumberPage { documents, resume_after })
    }

    /// Reads documents by their numbers, in the order of these; those are passed over that are not there, are expired
    /// or have no key among `keys`.
    pub async fn by_numbers(
        &self,
        numbers: &[DocumentNumber],
        keys: &KeyRange,
    ) -> Result<Vec<StoredDocument>, Fault> {
        let mut documents = Vec::with_capacity(numbers.len());
        let mut left = numbers;
        loop {
            left = &left[self.take_cached(left, keys, &mut documents)..];
            if left.is_empty() {
                return Ok(documents);
            }
            let (some, behind) = left.split_at(left.len().min(FETCH_AT_A_TIME));
            // A document that gets another id stays in its logical partition, and so among the keys or not.
            let found = self.keys_of(some).await?;
            let found: Vec<_> = found.into_iter().filter(|(_, key)| keys.contains(key)).collect();
            for (record, (number, _)) in self.records(&found).await?.into_iter().zip(&found) {
                let record = match record.filter(|record| record.number == *number) {
                    Some(record) => Some(record),
                    // The key is of another state.
                    None => self.numbered_record(*number).await?,
                };
                documents.extend(record.and_then(|record| self.document(record)));
            }
            left = behind;
        }
    }

    /// Takes documents as long as the caches have them; tells how many numbers were looked at. A key of the cache may be
    /// of another state than this one.
    fn take_cached(
        &self,
        numbers: &[DocumentNumber],
        keys: &KeyRange,
        documents: &mut Vec<StoredDocument>,
    ) -> usize {
        for (looked_at, number) in numbers.iter().enumerate() {
            let Some(key) = self.cached_key(*number) else {
                return looked_at;
            };
            if keys.contains(&key) {
                let record = self.cached(&key).filter(|record| record.number == *number);
                let Some(record) = record else {
                    return looked_at;
                };
                documents.extend(self.document(record));
            }
        }
        numbers.len()
    }

    fn document(&self, record: Record) -> Option<StoredDocument> {
        (!self.is_expired(&record)).then(|| record.into_stored())
    }

    /// The record of a number by the rows of this state, past the cache of keys.
    async fn numbered_record(&self, number: DocumentNumber) -> Result<Option<Record>, Fault> {
        let container = self.partition.container;
        let number_key = keyspace::number_key(container, number);
        let Some(key) = self.view.get(NUMBERS, &number_key).await.map_err(read_fault)? else {
            return Ok(None);
        };
        self.keep_key(number, &key);
        let row = self.view.get(RECORDS, &key).await.map_err(read_fault)?;
        let record = Record::decode(&row.ok_or_else(|| damaged("document number without its record"))?)?;
        if record.number == number { Ok(Some(record)) } else { Err(damaged("number of a record")) }
    }

    /// The keys of documents, in the order of their numbers; those that are not there are passed over.
    async fn keys_of(&self, numbers: &[DocumentNumber]) -> Result<Vec<(DocumentNumber, Bytes)>, Fault> {
        let container = self.partition.container;
        let known = numbers.iter().map(|number| (*number, self.cached_key(*number)));
        let mut found: Vec<(DocumentNumber, Option<Bytes>)> = known.collect();
        let wanted: Vec<DocumentNumber> =
            found.iter().filter(|(_, key)| key.is_none()).map(|(number, _)| *number).collect();
        if !wanted.is_empty() {
            let rows: Vec<Bytes> =
                wanted.iter().map(|number| keyspace::number_key(container, *number)).collect();
            let keys = self.view.get_many(NUMBERS, &rows).await.map_err(read_fault)?;
            let places = found.iter_mut().filter(|(_, key)| key.is_none());
            for ((number, place), key) in places.zip(keys) {
                if let Some(key) = &key {
                    self.keep_key(*number, key);
                }
                *place = key;
            }
        }
        Ok(found.into_iter().filter_map(|(number, key)| Some((number, key?))).collect())
    }

    /// The records under keys, in the order of these.
    async fn records(&self, keys: &[(DocumentNumber, Bytes)]) -> Result<Vec<Option<Record>>, Fault> {
        let mut records: Vec<Option<Record>> = keys.iter().map(|(_, key)| self.cached(key)).collect();
        let wanted: Vec<Bytes> = keys
            .iter()
            .zip(&records)
            .filter(|(_, record)| record.is_none())
            .map(|((_, key), _)| key.clone())
            .collect();
        if !wanted.is_empty() {
            let rows = self.view.get_many(RECORDS, &wanted).await.map_err(read_fault)?;
            let places = records.iter_mut().filter(|record| record.is_none());
            for (place, row) in places.zip(rows) {
                *place = row.map(|row| Record::decode(&row)).transpose()?;
            }
        }
        Ok(records)
    }

    /// The record under a key, if the cache has it as this state has it.
    fn cached(&self, key: &Bytes) -> Option<Record> {
        if self.view.is_uncommitted(RECORDS, || key.clone()) {
            return None;
        }
        self.cache.current(key, self.lsn)
    }

    /// The key of a document, if it is cached; it may be of another state than this one.
    fn cached_key(&self, number: DocumentNumber) -> Option<Bytes> {
        let container = self.partition.container;
        if self.view.is_uncommitted(NUMBERS, || keyspace::number_key(container, number)) {
            return None;
        }
        self.cache.keys.get(container, number)
    }

    /// Keeps the key of a document, if it is committed.
    fn keep_key(&self, number: DocumentNumber, key: &Bytes) {
        let container = self.partition.container;
        if !self.view.is_uncommitted(NUMBERS, || keyspace::number_key(container, number)) {
            // The key at hand may share the memory of a whole block of the store.
            self.cache.keys.keep(container, number, Bytes::copy_from_slice(key));
        }
    }

    /// Whether no document of the container ever expires, as things stand.
    fn never_expires(&self) -> bool {
        match self.shape.default_ttl {
            DefaultTtl::Off => true,
            DefaultTtl::OnDemand | DefaultTtl::Seconds(_) => false,
        }
    }

    /// Reads a document by its number, if it is there, is not expired and has a key among `keys`.
    pub async fn by_number(
        &self,
        number: DocumentNumber,
        keys: &KeyRange,
    ) -> Result<Option<StoredDocument>, Fault> {
        let scan = NumberScan {
            first: number,
            last: number,
            keys: keys.clone(),
            items_max: 1,
            bytes_max: usize::MAX,
        };
        Ok(self.numbered(&scan).await?.documents.pop())
    }

    /// Reads log entries from `first` on, at most a bounded number; empty at the end. The last transaction may be cut.
    pub async fn log(&self, first: LogPosition) -> Result<Vec<(LogPosition, LogEntry)>, Fault> {
        let range = keyspace::log_range(self.partition, first, Lsn(u64::MAX));
        let limit = ScanLimit { rows: LOG_ROWS_MAX, bytes: LOG_BYTES_MAX };
        let chunk = self.view.scan(LOG, range, limit).await.map_err(read_fault)?;
        let entry = |(key, row): &(Bytes, Bytes)| {
            let at = keyspace::parse_log_key(key).ok_or_else(|| damaged("log key"))?;
            Ok((at, LogEntry::decode(row)?))
        };
        chunk.rows.iter().map(entry).collect()
    }

    /// Reads the history from `first` on, at most a bounded number of entries; empty at the end.
    pub async fn history(&self, first: LogPosition) -> Result<Vec<(LogPosition, HistoryEntry)>, Fault> {
        let end = LogPosition::start_of(Lsn(u64::MAX));
        let range = keyspace::history_range(self.partition, first, end);
        let limit = ScanLimit { rows: LOG_ROWS_MAX, bytes: LOG_BYTES_MAX };
        let chunk = self.view.scan(HISTORY, range, limit).await.map_err(read_fault)?;
        let entry = |(key, row): &(Bytes, Bytes)| {
            let at = keyspace::parse_history_key(key).ok_or_else(|| damaged("key of the history"))?;
            Ok((at, HistoryEntry::decode(row)?))
        };
        chunk.rows.iter().map(entry).collect()
    }

    fn is_expired(&self, record: &Record) -> bool {
        record.is_expired(self.shape.default_ttl, self.now)
    }
}
