//! One transaction being evaluated: its rows, LSN and counters. If a step is refused, all of it is dropped.
//!
//! Knows the rows of a document version. Which version is written is decided in `evaluate`.

use crate::expiry::expires_at;
use crate::head::Head;
use crate::history;
use crate::index::{Changes, DocumentVersion};
use crate::keyspace::{self, EXPIRY, HISTORY, LOG, NUMBERS, PartitionId, RECORDS, UNIQUE};
use crate::lineage::Lineage;
use crate::log::{LogEntry, LogKind, LogPosition};
use crate::numbering::Identity;
use crate::record::Record;
use crate::shape::ContainerShape;
use crate::state::{Rows, WriterState};
use crate::storage::damaged;
use crate::unique::{self, UNIQUE_CODE_BYTES_MAX};
use bytes::Bytes;
use kv::{KeyRange, Space};
use model::{Ambient, ConflictFault, DocumentNumber, Fault, IdCode, LimitFault, Lsn, StorageFault, Ticks};
use plan::{Item, LogicalKey};
use value::Document;

/// Limit of the bytes of rows that one transaction writes.
pub const TRANSACTION_BYTES_MAX: usize = 32 << 20;
/// Limit of the documents that one transaction changes.
pub const TRANSACTION_DOCUMENTS_MAX: usize = 65_535;

/// Limit of the length of a record key. A unique key of the same logical partition may be longer than the id.
pub(crate) const RECORD_KEY_BYTES_MAX: usize = kv::KEY_BYTES_MAX - UNIQUE_CODE_BYTES_MAX;

/// What is constant while a transaction is evaluated.
#[derive(Clone, Copy)]
pub(crate) struct StagingContext<'a> {
    pub(crate) partition: PartitionId,
    pub(crate) lineage: &'a Lineage,
    /// Keys whose documents and bytes are counted separately: those after a cut, and those of the logical partition.
    pub(crate) counted: [Option<&'a KeyRange>; 2],
    pub(crate) shape: &'a ContainerShape,
    /// The earliest time of a new version. Its second decides what has expired.
    pub(crate) now: Ticks,
    /// Log entries up to this LSN were read by every consumer.
    pub(crate) lsn_consumed: Lsn,
    /// Time and randomness, for filters that use them.
    pub(crate) ambient: &'a dyn Ambient,
}

/// A change of the counts of some keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CountsChange {
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
}

/// The change of the counts by one key.
#[derive(Clone, Debug)]
pub(crate) struct KeyChange {
    pub(crate) key: Bytes,
    pub(crate) change: CountsChange,
}

/// The state of the record under a key.
pub(crate) enum RecordState {
    Absent,
    /// It exists but has expired. Readers see it as absent; a new document must delete it first.
    Expired(Record),
    Live(Record),
}

/// The rows, LSN and counters of one transaction.
pub(crate) struct Staging<'a> {
    pub(crate) context: StagingContext<'a>,
    state: &'a WriterState,
    pub(crate) logical_prefix: Bytes,
    /// The prefixes of the logical partitions before it.
    entered_prefixes: Vec<Bytes>,
    effective_key: Bytes,
    rows: Rows,
    /// Bytes of the rows, keys included.
    bytes: usize,
    /// The LSN of all changes of the transaction.
    lsn: Lsn,
    /// Log entries of the changes by position; `None` where a later change of the transaction replaced the version.
    log: Vec<Option<LogEntry>>,
    log_bytes: usize,
    changes: Changes,
    head: Head,
    /// The changes of the counts of the keys that are counted separately.
    counted: [Vec<KeyChange>; 2],
}

/// A transaction whose steps were all accepted.
pub(crate) struct Accepted {
    pub(crate) rows: Rows,
    /// Bytes of the rows, keys included.
    pub(crate) bytes: usize,
    /// The changes for the index.
    pub(crate) changes: Changes,
    pub(crate) head: Head,
    /// The changes of the counts of the keys that are counted separately.
    pub(crate) counted: [Vec<KeyChange>; 2],
    /// The prefix of the logical partition.
    pub(crate) logical_prefix: Bytes,
    /// Those of other logical partitions that housekeeping has changed in the same transaction.
    pub(crate) entered_prefixes: Vec<Bytes>,
}

impl<'a> Staging<'a> {
    pub(crate) fn new(context: StagingContext<'a>, state: &'a WriterState, key: &LogicalKey) -> Staging<'a> {
        let head = state.head.clone();
        let logical_prefix = keyspace::logical_prefix(context.partition.container, key);
        Staging {
            context,
            state,
            effective_key: keyspace::effective_key(&logical_prefix, key),
            logical_prefix,
            entered_prefixes: Vec::new(),
            rows: Rows::new(),
            bytes: 0,
            lsn: head.lsn.next(),
            log: Vec::new(),
            log_bytes: 0,
            changes: Changes::new(),
            head,
            counted: <[Vec<KeyChange>; 2]>::default(),
        }
    }

    /// Ends the transaction. A transaction without changes takes no LSN.
    pub(crate) fn accept(mut self) -> Accepted {
        if !self.log.is_empty() {
            self.head.lsn = self.lsn;
            if self.context.shape.history_seconds.is_none() {
                self.head.history_from = LogPosition::start_of(self.lsn.next());
            }
        }
        for (position, entry) in (0..).zip(std::mem::take(&mut self.log)) {
            if let Some(entry) = entry {
                let at = LogPosition { lsn: self.lsn, position };
                self.put(LOG, keyspace::log_key(self.context.partition, at), entry.encode());
            }
        }
        let Staging { rows, bytes, changes, head, counted, logical_prefix, entered_prefixes, .. } = self;
        Accepted { rows, bytes, changes, head, counted, logical_prefix, entered_prefixes }
    }

    /// The next document number and ETag are those after `identity`.
    pub(crate) fn assign_after(&mut self, identity: Identity) {
        self.head.counter = identity.counter;
        self.head.stamp = identity.stamp;
    }

    /// Refuses a transaction that is larger than one batch of the store can be.
    pub(crate) fn check_bounds(&self) -> Result<(), LimitFault> {
        let bytes = self.bytes + self.log_bytes;
        let documents = self.changes.len();
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(LimitFault::TransactionBytes { bytes, limit: TRANSACTION_BYTES_MAX });
        }
        if documents > TRANSACTION_DOCUMENTS_MAX {
            return Err(LimitFault::TransactionDocuments { documents, limit: TRANSACTION_DOCUMENTS_MAX });
        }
        Ok(())
    }

    /// The document under `key` as the previous steps left it.
    pub(crate) async fn find(&self, key: &Bytes) -> Result<RecordState, Fault> {
        let Some(row) = self.get(RECORDS, key).await? else {
            return Ok(RecordState::Absent);
        };
        let record = Record::decode(&row)?;
        let expired = self.expires_at(&record).is_some_and(|second| second <= self.context.now.seconds());
        Ok(if expired { RecordState::Expired(record) } else { RecordState::Live(record) })
    }

    /// Switches to the logical partition of `record`: a housekeeping transaction contains documents of many.
    pub(crate) fn enter_partition_of(&mut self, record: &Record) -> Result<(), Fault> {
        let definition = &self.context.shape.partition_key;
        let partition_key = definition.extract(&record.document)?;
        let effective = definition.effective_key(&partition_key);
        self.effective_key = Bytes::copy_from_slice(effective.as_bytes());
        let key = LogicalKey { partition_key, effective };
        let prefix = keyspace::logical_prefix(self.context.partition.container, &key);
        self.entered_prefixes.push(std::mem::replace(&mut self.logical_prefix, prefix));
        Ok(())
    }

    /// The record key of a document number in any logical partition. Refused if another partition owns it: the
    /// partition was split since the caller has looked.
    pub(crate) async fn any_key_of(&self, number: DocumentNumber) -> Result<Option<Bytes>, Fault> {
        let key = self.get(NUMBERS, &keyspace::number_key(self.context.partition.container, number)).await?;
        if key.as_ref().is_some_and(|key| !self.context.lineage.owns(key)) {
            let cause = "the document belongs to another partition".to_owned();
            return Err(StorageFault::Unavailable { cause }.into());
        }
        Ok(key)
    }

    /// Counts a change of documents and bytes under `key`.
    fn count(&mut self, key: &[u8], documents: i64, bytes: i64) {
        for (keys, changes) in self.context.counted.iter().zip(&mut self.counted) {
            if keys.is_some_and(|keys| keys.contains(key)) {
                let change = CountsChange { documents, bytes };
                changes.push(KeyChange { key: Bytes::copy_from_slice(key), change });
            }
        }
    }

    /// The record key of an id in this logical partition.
    pub(crate) fn record_key(&self, id: IdCode<'_>) -> Result<Bytes, LimitFault> {
        let bytes = self.logical_prefix.len() + id.encoded_len();
        // All other keys of the document are shorter, except unique keys.
        if bytes > RECORD_KEY_BYTES_MAX {
            return Err(LimitFault::KeyBytes { bytes, limit: RECORD_KEY_BYTES_MAX });
        }
        Ok(keyspace::record_key(&self.logical_prefix, id))
    }

    /// The record key of a document number, if it is in this logical partition.
    pub(crate) async fn key_of(&self, number: DocumentNumber) -> Result<Option<Bytes>, Fault> {
        let key = self.get(NUMBERS, &keyspace::number_key(self.context.partition.container, number)).await?;
        Ok(key.filter(|key| key.starts_with(&self.logical_prefix)))
    }

    /// Stores a new document; an expired one under its key is removed first.
    pub(crate) async fn insert(
        &mut self,
        key: Bytes,
        item: &Item,
        expired: Option<Record>,
    ) -> Result<Record, Fault> {
        if let Some(expired) = expired {
            self.remove(&key, &expired, LogKind::Expire { key: key.clone() })?;
        }
        self.head.counter += 1;
        let number = DocumentNumber::new(self.context.partition.ordinal, self.head.counter)
            .ok_or(LimitFault::Exhausted { what: "document numbers" })?;
        // Before the version is created: an expired holder that must be removed comes first in the log.
        self.claim_unique(number, item.document(), &[]).await?;
        let record = self.stamp(number, item);
        self.put(NUMBERS, keyspace::number_key(self.context.partition.container, number), key.clone());
        self.head.documents += 1;
        self.count(&key, 1, 0);
        self.write(key, LogKind::Create, &record, None);
        Ok(record)
    }

    /// Stores a new version of `old`.
    pub(crate) async fn replace(&mut self, key: Bytes, old: &Record, item: &Item) -> Result<Record, Fault> {
        self.replace_unique(old, item).await?;
        let record = self.stamp(old.number, item);
        let before = self.remove_version_rows(&key, old);
        self.write(key, LogKind::Replace, &record, Some((old, before)));
        Ok(record)
    }

    /// Stores a new version of `old`, which is under `from`, under the key `to`, with the same number. An expired
    /// document under `to` is removed first.
    pub(crate) async fn rename(
        &mut self,
        from: Bytes,
        to: Bytes,
        old: &Record,
        item: &Item,
        expired: Option<Record>,
    ) -> Result<Record, Fault> {
        if let Some(expired) = expired {
            self.remove(&to, &expired, LogKind::Expire { key: to.clone() })?;
        }
        self.replace_unique(old, item).await?;
        let record = self.stamp(old.number, item);
        let before = self.remove_version_rows(&from, old);
        self.count(&from, -1, 0);
        self.count(&to, 1, 0);
        self.delete(RECORDS, from.clone());
        self.put(NUMBERS, keyspace::number_key(self.context.partition.container, old.number), to.clone());
        let kind = LogKind::Rename { from, to: to.clone() };
        self.write(to, kind, &record, Some((old, before)));
        Ok(record)
    }

    /// Claims the unique rows of a new version of `old` and releases those that only the old version had.
    async fn replace_unique(&mut self, old: &Record, item: &Item) -> Result<(), Fault> {
        let held = self.unique_rows(&old.document);
        let kept = self.claim_unique(old.number, item.document(), &held).await?;
        for row in held.into_iter().filter(|row| !kept.contains(row)) {
            self.delete(UNIQUE, row);
        }
        Ok(())
    }

    /// Removes a document with all its rows.
    pub(crate) fn remove(&mut self, key: &Bytes, old: &Record, kind: LogKind) -> Result<(), Fault> {
        let container = self.context.partition.container;
        let before = self.remove_version_rows(key, old);
        for row in self.unique_rows(&old.document) {
            self.delete(UNIQUE, row);
        }
        self.delete(RECORDS, key.clone());
        self.delete(NUMBERS, keyspace::number_key(container, old.number));
        self.changes.insert(old.number, None);
        self.head.documents =
            self.head.documents.checked_sub(1).ok_or_else(|| damaged("count of documents"))?;
        self.count(key, -1, 0);
        let time = self.next_time();
        if self.context.shape.history_seconds.is_some() {
            self.put_history(history::encode_change(&kind, key, time, None, Some(old)));
        }
        self.note(LogEntry { kind: kind.combined_with(before), number: old.number, time });
        Ok(())
    }

    /// Writes the expiry row that the current default requires.
    pub(crate) fn reschedule(&mut self, record: &Record) {
        if let Some(second) = self.expires_at(record) {
            self.put(
                EXPIRY,
                keyspace::expiry_key(self.context.partition.container, second, record.number),
                self.effective_key.clone(),
            );
        }
    }

    /// Deletes an expiry row.
    pub(crate) fn unschedule(&mut self, second: u64, number: DocumentNumber) {
        self.delete(EXPIRY, keyspace::expiry_key(self.context.partition.container, second, number));
    }

    fn stamp(&mut self, number: DocumentNumber, item: &Item) -> Record {
        self.head.stamp += 1;
        Record {
            number,
            lsn: self.lsn,
            position: self.next_position(),
            ordinal: self.context.partition.ordinal,
            stamp: self.head.stamp,
            time: self.next_time(),
            ttl: item.ttl(),
            document: item.document().clone(),
        }
    }

    /// The position of the next change in the transaction.
    fn next_position(&self) -> u32 {
        // A transaction has far fewer changes than that.
        u32::try_from(self.log.len()).unwrap_or(u32::MAX)
    }

    /// The time of the next change, later than all earlier ones.
    fn next_time(&mut self) -> Ticks {
        self.head.time = self.context.now.max(self.head.time.next());
        self.head.time
    }

    /// `previous` is the previous version, and its log entry if it was written by this transaction.
    fn write(
        &mut self,
        key: Bytes,
        kind: LogKind,
        record: &Record,
        previous: Option<(&Record, Option<LogKind>)>,
    ) {
        let (old, before) = previous.map_or((None, None), |(old, before)| (Some(old), before));
        if self.context.shape.history_seconds.is_some() {
            self.put_history(history::encode_change(&kind, &key, record.time, Some(record), old));
        }
        let row = record.encode();
        let size = (key.len() + row.len()) as u64;
        self.head.bytes += size;
        self.count(&key, 0, size.cast_signed());
        self.put(RECORDS, key, row);
        let version = DocumentVersion {
            number: record.number,
            logical: keyspace::logical_key(&self.logical_prefix),
            ts: record.ts(),
            document: record.document.clone(),
        };
        self.changes.insert(record.number, Some(version));
        self.reschedule(record);
        self.note(LogEntry { kind: kind.combined_with(before), number: record.number, time: record.time });
    }

    /// Removes what only the old version had: its size, its expiry row and its log entry. Returns the kind of that
    /// entry if this transaction wrote it.
    fn remove_version_rows(&mut self, key: &Bytes, old: &Record) -> Option<LogKind> {
        let size = key.len() + old.encoded_len();
        self.head.bytes = self.head.bytes.saturating_sub(size as u64);
        self.count(key, 0, -(size as u64).cast_signed());
        if let Some(second) = self.expires_at(old) {
            self.unschedule(second, old.number);
        }
        if old.ordinal == self.context.partition.ordinal && old.lsn == self.lsn {
            // The version was written by this transaction.
            let entry = self.log.get_mut(old.position as usize).and_then(Option::take)?;
            self.log_bytes -= entry.row_len();
            return Some(entry.kind);
        }
        if old.lsn <= self.context.lsn_consumed {
            // Under the prefix of the partition that wrote it, which may be an ancestor.
            let place = PartitionId { ordinal: old.ordinal, ..self.context.partition };
            self.delete(LOG, keyspace::log_key(place, old.log_position()));
        }
        None
    }

    /// Adds the next change to the history.
    fn put_history(&mut self, row: Bytes) {
        let at = LogPosition { lsn: self.lsn, position: self.next_position() };
        self.put(HISTORY, keyspace::history_key(self.context.partition, at), row);
    }

    fn note(&mut self, entry: LogEntry) {
        self.log_bytes += entry.row_len();
        self.log.push(Some(entry));
    }

    fn unique_rows(&self, document: &Document) -> Vec<Bytes> {
        unique::rows(&self.context.shape.unique_keys, &self.logical_prefix, document)
    }

    /// Claims the rows of all constraints for a document, except those in `held`, which it has already. Returns all of
    /// them.
    async fn claim_unique(
        &mut self,
        number: DocumentNumber,
        document: &Document,
        held: &[Bytes],
    ) -> Result<Vec<Bytes>, Fault> {
        let rows = self.unique_rows(document);
        for (constraint, row) in rows.iter().enumerate() {
            if held.contains(row) {
                continue;
            }
            if let Some(holder) = self.get(UNIQUE, row).await? {
                self.evict_expired_holder(&holder, constraint).await?;
            }
            self.put(UNIQUE, row.clone(), Bytes::copy_from_slice(&number.raw().to_be_bytes()));
        }
        Ok(rows)
    }

    /// Deletes an expired holder in the same batch. A live holder is a conflict.
    async fn evict_expired_holder(&mut self, holder: &[u8], constraint: usize) -> Result<(), Fault> {
        let raw = holder.try_into().map(u64::from_be_bytes).map_err(|_| damaged("holder of a unique key"))?;
        let number = DocumentNumber::from_raw(raw).ok_or_else(|| damaged("holder of a unique key"))?;
        let Some(key) = self.key_of(number).await? else {
            return Err(damaged("unique key without its document"));
        };
        match self.find(&key).await? {
            RecordState::Live(_) => Err(ConflictFault::UniqueKey { constraint }.into()),
            RecordState::Expired(record) => self.remove(&key, &record, LogKind::Expire { key: key.clone() }),
            RecordState::Absent => Err(damaged("unique key without its document")),
        }
    }

    fn expires_at(&self, record: &Record) -> Option<u64> {
        expires_at(record.ts(), record.ttl, self.context.shape.default_ttl)
    }

    async fn get(&self, space: Space, key: &Bytes) -> Result<Option<Bytes>, Fault> {
        match self.rows.get(&(space, key.clone())) {
            Some(row) => Ok(row.clone()),
            None => self.state.get(space, key).await,
        }
    }

    fn put(&mut self, space: Space, key: Bytes, row: Bytes) {
        self.set(space, key, Some(row));
    }

    fn delete(&mut self, space: Space, key: Bytes) {
        self.set(space, key, None);
    }

    fn set(&mut self, space: Space, key: Bytes, row: Option<Bytes>) {
        let key_bytes = key.len();
        self.bytes += key_bytes + row.as_ref().map_or(0, Bytes::len);
        if let Some(before) = self.rows.insert((space, key), row) {
            self.bytes -= key_bytes + before.as_ref().map_or(0, Bytes::len);
        }
    }
}
