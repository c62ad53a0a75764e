//! Reads of one consistent state of a partition, held for one page at most.
//!
//! Readers never block the writer, and a view, once obtained, never waits for it.

use crate::cache::RecordCache;
use crate::evaluate::read_outcome;
use crate::head::SetBack;
use crate::history::HistoryEntry;
use crate::index::{Fingerprint, IndexReader, RequiredTerms};
use crate::keyspace::{self, EXPIRY, NUMBERS, PartitionId, RECORDS};
use crate::lineage::{Lineage, LineageChunk};
use crate::log::{LogEntry, LogPosition};
use crate::overlay::RowsView;
use crate::partition::PartitionCounts;
use crate::record::Record;
use crate::shape::ContainerShape;
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::{KeyRange, ScanLimit};
use model::{DefaultTtl, DocumentNumber, Fault, Lsn, MissingFault, Ticks, Work};
use plan::{Condition, LogicalKey, Outcome, StoredDocument, Target};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows per log scan.
pub(crate) const LOG_ROWS_MAX: usize = 1024;
/// Bytes per log scan.
const LOG_BYTES_MAX: usize = 256 * 1024;

/// Maximum length of the list of expired documents. More of them mean that the sweep lags.
const EXPIRED_MAX: usize = 4096;

/// Records fetched by key in one call.
const FETCH_AT_A_TIME: usize = 16;

/// One consistent state of a partition.
#[derive(Clone, Debug)]
pub struct PartitionView {
    pub(crate) view: RowsView,
    pub(crate) cache: Arc<RecordCache>,
    pub(crate) index: Option<Arc<IndexReader>>,
    pub(crate) partition: PartitionId,
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) shape: Arc<ContainerShape>,
    pub(crate) lsn: Lsn,
    pub(crate) counts: PartitionCounts,
    /// The time of the last change.
    pub(crate) time: Ticks,
    /// When the time was last set back.
    pub(crate) set_back: SetBack,
    /// The history has every change from this position on.
    pub(crate) history_from: LogPosition,
    pub(crate) now: u64,
}

/// The documents that a page is read from.
#[derive(Clone, Debug)]
pub struct RecordScan {
    /// The keys; see [`keyspace::effective_range`] and [`keyspace::logical_range`].
    pub range: KeyRange,
    /// Limit of documents.
    pub items_max: usize,
    /// Bytes after which the page ends.
    pub bytes_max: usize,
}

/// A page of documents in key order.
#[derive(Debug)]
pub struct RecordPage {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// The key of the last row read, if there may be more after it.
    pub resume_after: Option<Bytes>,
}

/// The documents to read in number order.
#[derive(Clone, Debug)]
pub struct NumberScan {
    /// The first number.
    pub first: DocumentNumber,
    /// The last number.
    pub last: DocumentNumber,
    /// The keys of the documents. Documents of other partitions with numbers in the interval are skipped.
    pub keys: KeyRange,
    /// Limit of numbers to read.
    pub items_max: usize,
    /// Bytes after which no more documents are fetched.
    pub bytes_max: usize,
}

/// Documents in number order.
#[derive(Debug)]
pub struct NumberPage {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// The last number read, if there may be more after it.
    pub resume_after: Option<DocumentNumber>,
}

impl PartitionView {
    /// The same state at another time, which decides what has expired.
    #[must_use]
    pub fn at_seconds(self, now: u64) -> PartitionView {
        PartitionView { now, ..self }
    }

    /// The same state without its index, as during an index build.
    #[must_use]
    pub fn without_index(self) -> PartitionView {
        PartitionView { index: None, ..self }
    }

    /// The partition of this state.
    pub fn id(&self) -> PartitionId {
        self.partition
    }

    /// Counts of the partition in this state.
    pub fn counts(&self) -> PartitionCounts {
        self.counts
    }

    /// The LSN of this state.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The index of this state; `None` while it is being built.
    pub fn index(&self) -> Option<&IndexReader> {
        self.index.as_deref()
    }

    /// The LSN of this state if its index has these rules and shows, from memory alone, that no document has all of
    /// the required terms.
    pub fn lacks(&self, rules: Fingerprint, required_terms: &mut RequiredTerms<'_>) -> Option<Lsn> {
        let index = self.index().filter(|index| index.fingerprint() == rules)?;
        index.lacks(required_terms).then_some(self.lsn)
    }

    /// Numbers of indexed documents that have expired but are not deleted yet, ascending. Counts from the index alone
    /// must subtract them. Returns `None` if there is no index, if there are too many of them, or while the expiry
    /// rows are being rewritten after a change of the default time to live.
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
                // The row may be stale or belong to another partition of the container.
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

    /// Reads one document. An expired document is absent.
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

    /// Reads a page of documents in key order, without expired ones.
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

    /// Reads documents in number order, without expired ones.
    pub async fn numbered(&self, scan: &NumberScan) -> Result<NumberPage, Fault> {
        // Most numbers of an ancestor may belong to siblings. The index has only those of this partition.
        let own = [0, DocumentNumber::COUNTER_MAX]
            .map(|counter| DocumentNumber::new(self.partition.ordinal, counter));
        let is_ancestors = Some(scan.first) < own[0] || Some(scan.first) > own[1];
        if let Some(index) = self.index.as_deref().filter(|_| is_ancestors && scan.first != scan.last) {
            return self.numbered_by_index(index, scan).await;
        }
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

    async fn numbered_by_index(&self, index: &IndexReader, scan: &NumberScan) -> Result<NumberPage, Fault> {
        let mut numbers = index.live_numbers(scan.first, scan.last, scan.items_max.saturating_add(1));
        let mut has_more = numbers.len() > scan.items_max;
        numbers.truncate(scan.items_max);
        let mut documents = Vec::new();
        let (mut bytes, mut looked_at) = (0, 0);
        for some in numbers.chunks(FETCH_AT_A_TIME) {
            if bytes >= scan.bytes_max {
                has_more = true;
                break;
            }
            looked_at += some.len();
            let found = self.by_numbers(some, &scan.keys).await?;
            bytes += found.iter().map(|stored| stored.document.bytes().len()).sum::<usize>();
            documents.extend(found);
        }
        let last = numbers.get(..looked_at).and_then(<[_]>::last).copied();
        Ok(NumberPage { documents, resume_after: last.filter(|_| has_more) })
    }

    /// Reads documents by number, in the given order. Skips documents that are absent or expired or whose key is not
    /// in `keys`.
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
            let (some, rest) = left.split_at(left.len().min(FETCH_AT_A_TIME));
            // A document whose id changes stays in its logical partition, so its membership in `keys` does not change.
            let found = self.keys_of(some).await?;
            let found: Vec<_> = found.into_iter().filter(|(_, key)| keys.contains(key)).collect();
            for (record, (number, _)) in self.records(&found).await?.into_iter().zip(&found) {
                let record = match record.filter(|record| record.number == *number) {
                    Some(record) => Some(record),
                    // The cached key belongs to another state.
                    None => self.numbered_record(*number).await?,
                };
                documents.extend(record.and_then(|record| self.document(record)));
            }
            left = rest;
        }
    }

    /// Takes documents while the caches have them and returns how many numbers were processed. A cached key may belong
    /// to another state than this one.
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

    /// The record of a number, found through the number row of this state instead of the key cache.
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

    /// The keys of documents, in the order of their numbers. Absent documents are skipped.
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

    /// The records under `keys`, in the same order.
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

    /// The cached record under a key, if it is the version of this state.
    fn cached(&self, key: &Bytes) -> Option<Record> {
        if self.view.is_uncommitted(RECORDS, || key.clone()) {
            return None;
        }
        self.cache.current(key, self.lsn)
    }

    /// The cached key of a document, which may belong to another state than this one.
    fn cached_key(&self, number: DocumentNumber) -> Option<Bytes> {
        let container = self.partition.container;
        if self.view.is_uncommitted(NUMBERS, || keyspace::number_key(container, number)) {
            return None;
        }
        self.cache.keys.get(container, number)
    }

    /// Caches the key of a document, if it is committed.
    fn keep_key(&self, number: DocumentNumber, key: &Bytes) {
        let container = self.partition.container;
        if !self.view.is_uncommitted(NUMBERS, || keyspace::number_key(container, number)) {
            // The slice may share the memory of a whole block of the store.
            self.cache.keys.keep(container, number, Bytes::copy_from_slice(key));
        }
    }

    /// Whether no document of the container can expire under the current definition.
    fn never_expires(&self) -> bool {
        match self.shape.default_ttl {
            DefaultTtl::Off => true,
            DefaultTtl::OnDemand | DefaultTtl::Seconds(_) => false,
        }
    }

    /// Reads a document by its number. Returns `None` if it is absent or expired or if its key is not in `keys`.
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

    /// Reads a bounded number of log entries from `first` on, ascending; empty at the end. The last transaction may be
    /// incomplete. Entries that ancestors of the partition have written for its documents are included.
    pub async fn log(&self, mut first: LogPosition) -> Result<Vec<(LogPosition, LogEntry)>, Fault> {
        loop {
            let chunk = self.log_chunk(first, LOG_ROWS_MAX).await?;
            match chunk.reached {
                // All of them were entries of siblings.
                Some(reached) if chunk.entries.is_empty() => first = reached.next(),
                Some(_) | None => return Ok(chunk.positioned()),
            }
        }
    }

    /// Reads at most `rows_max` rows of the log of the partition and each ancestor, including those of siblings.
    pub(crate) async fn log_chunk(
        &self,
        first: LogPosition,
        rows_max: usize,
    ) -> Result<LineageChunk<LogEntry>, Fault> {
        let limit = ScanLimit { rows: rows_max.min(LOG_ROWS_MAX), bytes: LOG_BYTES_MAX };
        self.lineage.log(&self.view, self.index.as_deref(), first, Lsn(u64::MAX), limit).await
    }

    /// Reads a bounded number of history entries from `first` on, ascending; empty at the end. Entries that ancestors
    /// of the partition have written for its documents are included.
    pub async fn history(&self, mut first: LogPosition) -> Result<Vec<(LogPosition, HistoryEntry)>, Fault> {
        loop {
            let chunk = self.history_chunk(first).await?;
            match chunk.reached {
                Some(reached) if chunk.entries.is_empty() => first = reached.next(),
                Some(_) | None => return Ok(chunk.positioned()),
            }
        }
    }

    /// Reads some rows of the history of the partition and each ancestor, including those of siblings.
    pub(crate) async fn history_chunk(
        &self,
        first: LogPosition,
    ) -> Result<LineageChunk<HistoryEntry>, Fault> {
        let limit = ScanLimit { rows: LOG_ROWS_MAX, bytes: LOG_BYTES_MAX };
        self.lineage.history(&self.view, first, Lsn(u64::MAX), limit).await
    }

    fn is_expired(&self, record: &Record) -> bool {
        record.is_expired(self.shape.default_ttl, self.now)
    }
}
