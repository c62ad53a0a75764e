//! Every key of the store, and the only code that builds or parses one.
//!
//! ```text
//! space    key                                                             value
//! -------  --------------------------------------------------------------  ---------------------------------
//! records  container:4 · effective key · partition key code · id code      record: header + document
//! numbers  container:4 · number:8                                          record key
//! unique   container:4 · effective key · partition key code · constraint:1 number:8
//!          · code of the values, or its digest when long
//! expiry   container:4 · second:8 · number:8                               effective key
//! log      container:4 · ordinal:4 · lsn:8 · position:4                    log entry
//! history  container:4 · ordinal:4 · lsn:8 · position:4                    history entry
//! index    container:4 · ordinal:4 · run:8 · row:4                         row of a run of the index
//! meta     container:4 · ordinal:4 · 'h'                                   head of the partition
//!          container:4 · ordinal:4 · 'o'                                   owner of the partition
//!          container:4 · ordinal:4 · 'c' · name                            consumer of the log: lsn:8
//!          container:4 · ordinal:4 · 'e'                                   progress of rewriting expiry rows
//!          container:4 · ordinal:4 · 'i'                                   manifest of the index
//!          container:4 · ordinal:4 · 'd' · owner:4 · run:8 · part:4        dead documents of a run of that owner
//! catalog  'm'                                                             counters and secrets of the store
//!          'd' · database:4                                                database
//!          'c' · container:4                                               container with its partition map
//!          'o' · offer:4                                                   offer
//!          'u' 'p' 's' 't' 'f' 'k' 'a' · number:4                          user, permission, stored procedure,
//!                                                                          trigger, function, encryption key,
//!                                                                          annotation
//!          'x' · container:4                                               dropped container whose rows are deleted
//! ```
//!
//! Numbers are big-endian, so byte order is numeric order. Effective keys and partition key codes are self-delimiting,
//! so no key is a prefix of a key of another logical partition. The unique key contains the partition key code because
//! hashes can collide and constraints must not.

use crate::log::LogPosition;
use bytes::Bytes;
use kv::{KeyRange, Space, SpaceOptions};
use model::{
    ContainerNumber, DatabaseNumber, DocumentNumber, EffectiveKey, EffectiveRange, IdCode, Lsn, OfferNumber,
    PartitionOrdinal, ResourceNumber,
};
use plan::LogicalKey;

/// Documents.
pub const RECORDS: Space = Space(0);
/// Document numbers, each with its record key.
pub const NUMBERS: Space = Space(1);
/// Holders of unique keys.
pub const UNIQUE: Space = Space(2);
/// Documents by the second at which they expire.
pub const EXPIRY: Space = Space(3);
/// The change log, in LSN order.
pub const LOG: Space = Space(4);
/// Rows of index runs.
pub const INDEX: Space = Space(5);
/// Heads, owners, consumers and index manifests of partitions.
pub const META: Space = Space(6);
/// Databases, containers, offers and other catalog entries.
pub const CATALOG: Space = Space(7);

/// All versions and removals, for containers that keep a history.
pub const HISTORY: Space = Space(8);

/// The spaces of a store by their numbers. The order is part of the format; new spaces are added at the end.
pub const SPACES: [SpaceOptions; 9] = [
    SpaceOptions { name: "records", compressed: true },
    SpaceOptions { name: "numbers", compressed: true },
    SpaceOptions { name: "unique", compressed: true },
    SpaceOptions { name: "expiry", compressed: true },
    SpaceOptions { name: "log", compressed: true },
    SpaceOptions { name: "index", compressed: false },
    SpaceOptions { name: "meta", compressed: false },
    SpaceOptions { name: "catalog", compressed: false },
    SpaceOptions { name: "history", compressed: true },
];

/// Spaces whose keys start with the container number. The rows of a dropped container are deleted in all of them.
pub const CONTAINER_SPACES: [Space; 8] = [RECORDS, NUMBERS, UNIQUE, EXPIRY, LOG, INDEX, META, HISTORY];

/// Initial capacity for the logical prefix of a key: container number, hash and the code of a short string.
const LOGICAL_BYTES_USUAL: usize = 64;

/// Identifies a physical partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionId {
    /// The container.
    pub container: ContainerNumber,
    /// Its number in the container.
    pub ordinal: PartitionOrdinal,
}

/// The prefix of all record keys of one logical partition.
pub fn logical_prefix(container: ContainerNumber, key: &LogicalKey) -> Bytes {
    let mut prefix = Vec::with_capacity(LOGICAL_BYTES_USUAL);
    push_logical_prefix(container, key, &mut prefix);
    prefix.into()
}

/// The record key of a document, built in one allocation: logical prefix and id.
pub fn document_key(container: ContainerNumber, key: &LogicalKey, id: IdCode<'_>) -> Vec<u8> {
    let mut document_key = Vec::with_capacity(LOGICAL_BYTES_USUAL + id.encoded_len());
    push_logical_prefix(container, key, &mut document_key);
    id.encode(&mut document_key);
    document_key
}

fn push_logical_prefix(container: ContainerNumber, key: &LogicalKey, out: &mut Vec<u8>) {
    out.extend_from_slice(&container.0.to_be_bytes());
    out.extend_from_slice(key.effective.as_bytes());
    key.partition_key.encode_key(out);
}

/// The logical key in a logical prefix, or in a record key without its id. Index terms contain it.
pub fn logical_key(logical_prefix: &Bytes) -> Bytes {
    logical_prefix.slice(4.min(logical_prefix.len())..)
}

/// The effective key in the logical prefix of `key`, sharing its memory.
pub(crate) fn effective_key(logical_prefix: &Bytes, key: &LogicalKey) -> Bytes {
    let end = (4 + key.effective.as_bytes().len()).min(logical_prefix.len());
    logical_prefix.slice(4.min(end)..end)
}

/// The logical key in the record key of a document with this id.
pub(crate) fn logical_of_record(key: &Bytes, id: IdCode<'_>) -> Option<Bytes> {
    let end = id.strip_from(key)?.len();
    (end >= 4).then(|| key.slice(4..end))
}

/// The record key of a document.
pub fn record_key(logical_prefix: &[u8], id: IdCode<'_>) -> Bytes {
    let mut key = Vec::with_capacity(logical_prefix.len() + id.encoded_len());
    key.extend_from_slice(logical_prefix);
    id.encode(&mut key);
    key.into()
}

/// The record keys of one logical partition.
pub fn logical_range(logical_prefix: &Bytes) -> KeyRange {
    KeyRange::prefix(logical_prefix.clone())
}

/// The record keys whose effective key is in `range`.
pub fn effective_range(container: ContainerNumber, range: &EffectiveRange) -> KeyRange {
    let bound = |bytes: &[u8]| -> Bytes { [&container.0.to_be_bytes(), bytes].concat().into() };
    KeyRange { start: bound(range.min.as_bytes()), end: Some(bound(range.max.as_bytes())) }
}

/// The hash range of a key range that [`effective_range`] returned, or of an intersection of such ranges.
pub fn hashes_of(keys: &KeyRange) -> EffectiveRange {
    let hash = |key: &Bytes| EffectiveKey::from_bytes(key.get(4..).unwrap_or_default());
    EffectiveRange { min: hash(&keys.start), max: keys.end.as_ref().map_or_else(EffectiveKey::max, hash) }
}

/// The key of a number row.
pub fn number_key(container: ContainerNumber, number: DocumentNumber) -> Bytes {
    join(&[&container.0.to_be_bytes(), &number.raw().to_be_bytes()])
}

/// The number rows from `first` to `last`, inclusive.
pub(crate) fn number_range(
    container: ContainerNumber,
    first: DocumentNumber,
    last: DocumentNumber,
) -> KeyRange {
    // Numbers have 60 bits, so the addition cannot overflow.
    let end = join(&[&container.0.to_be_bytes(), &(last.raw() + 1).to_be_bytes()]);
    KeyRange { start: number_key(container, first), end: Some(end) }
}

/// Parses the key of a number row.
pub(crate) fn parse_number_key(key: &[u8]) -> Option<DocumentNumber> {
    let number = u64::from_be_bytes(key.get(4..12)?.try_into().ok()?);
    if key.len() == 12 { DocumentNumber::from_raw(number) } else { None }
}

/// The key of the row that holds a combination of values under a constraint.
pub(crate) fn unique_key(logical_prefix: &[u8], constraint: u8, code: &[u8]) -> Bytes {
    join(&[logical_prefix, &[constraint], code])
}

/// The key of the expiry row of a document.
pub fn expiry_key(container: ContainerNumber, second: u64, number: DocumentNumber) -> Bytes {
    join(&[&container.0.to_be_bytes(), &second.to_be_bytes(), &number.raw().to_be_bytes()])
}

/// The expiry rows of `container` up to `second`, inclusive.
pub fn expiry_range(container: ContainerNumber, second: u64) -> KeyRange {
    let start = Bytes::copy_from_slice(&container.0.to_be_bytes());
    let end = join(&[&container.0.to_be_bytes(), &second.saturating_add(1).to_be_bytes()]);
    KeyRange { start, end: Some(end) }
}

/// Parses an expiry key into second and document number.
pub fn parse_expiry_key(key: &[u8]) -> Option<(u64, DocumentNumber)> {
    let second = u64::from_be_bytes(key.get(4..12)?.try_into().ok()?);
    let number = u64::from_be_bytes(key.get(12..20)?.try_into().ok()?);
    (key.len() == 20).then_some((second, DocumentNumber::from_raw(number)?))
}

/// Length of a log key.
pub(crate) const LOG_KEY_BYTES: usize = 20;

/// The key of a log entry.
pub(crate) fn log_key(partition: PartitionId, at: LogPosition) -> Bytes {
    join(&[&partition_prefix(partition), &at.lsn.0.to_be_bytes(), &at.position.to_be_bytes()])
}

/// The log entries from `first` up to the transaction `end`, exclusive.
pub(crate) fn log_range(partition: PartitionId, first: LogPosition, end: Lsn) -> KeyRange {
    let end = log_key(partition, LogPosition::start_of(end));
    KeyRange { start: log_key(partition, first), end: Some(end) }
}

/// Parses a log key.
pub fn parse_log_key(key: &[u8]) -> Option<LogPosition> {
    let lsn = u64::from_be_bytes(key.get(8..16)?.try_into().ok()?);
    let position = u32::from_be_bytes(key.get(16..20)?.try_into().ok()?);
    (key.len() == LOG_KEY_BYTES).then_some(LogPosition { lsn: Lsn(lsn), position })
}

/// The key of a history entry.
pub(crate) fn history_key(partition: PartitionId, at: LogPosition) -> Bytes {
    log_key(partition, at)
}

/// Parses a history key.
pub(crate) fn parse_history_key(key: &[u8]) -> Option<LogPosition> {
    parse_log_key(key)
}

/// The key of the head row.
pub fn head_key(partition: PartitionId) -> Bytes {
    join(&[&partition_prefix(partition), b"h"])
}

/// The key of the owner row.
pub(crate) fn owner_key(partition: PartitionId) -> Bytes {
    join(&[&partition_prefix(partition), b"o"])
}

/// The key of the row with a log consumer's position.
pub(crate) fn consumer_key(partition: PartitionId, name: &str) -> Bytes {
    join(&[&partition_prefix(partition), b"c", name.as_bytes()])
}

/// The consumer rows of a partition.
pub(crate) fn consumer_range(partition: PartitionId) -> KeyRange {
    KeyRange::prefix(join(&[&partition_prefix(partition), b"c"]))
}

/// Parses the name in a consumer key.
pub fn parse_consumer_key(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(9..)?).ok()
}

/// The key of the row that records the progress of rewriting expiry rows.
pub fn reschedule_key(partition: PartitionId) -> Bytes {
    join(&[&partition_prefix(partition), b"e"])
}

/// The key of the index manifest.
pub fn manifest_key(partition: PartitionId) -> Bytes {
    join(&[&partition_prefix(partition), b"i"])
}

/// The key of one part of the dead set of a run.
pub(crate) fn dead_key(partition: PartitionId, owner: PartitionOrdinal, run: u64, part: u32) -> Bytes {
    let (owner, run, part) = (owner.0.to_be_bytes(), run.to_be_bytes(), part.to_be_bytes());
    join(&[&partition_prefix(partition), b"d", &owner, &run, &part])
}

/// All parts of the dead set of a run that `owner` wrote.
pub(crate) fn dead_range(partition: PartitionId, owner: PartitionOrdinal, run: u64) -> KeyRange {
    let (owner, run) = (owner.0.to_be_bytes(), run.to_be_bytes());
    KeyRange::prefix(join(&[&partition_prefix(partition), b"d", &owner, &run]))
}

/// The dead sets of all runs.
pub(crate) fn all_dead_range(partition: PartitionId) -> KeyRange {
    KeyRange::prefix(join(&[&partition_prefix(partition), b"d"]))
}

/// The key of a row of a run.
pub(crate) fn run_row_key(partition: PartitionId, run: u64, row: u32) -> Bytes {
    join(&[&partition_prefix(partition), &run.to_be_bytes(), &row.to_be_bytes()])
}

/// All rows of a run.
pub(crate) fn run_range(partition: PartitionId, run: u64) -> KeyRange {
    KeyRange::prefix(join(&[&partition_prefix(partition), &run.to_be_bytes()]))
}

/// The rows of all runs of a partition.
pub(crate) fn runs_range(partition: PartitionId) -> KeyRange {
    KeyRange::prefix(Bytes::copy_from_slice(&partition_prefix(partition)))
}

/// Parses the run number in the key of a run row.
pub(crate) fn parse_run(key: &[u8]) -> Option<u64> {
    let run = u64::from_be_bytes(key.get(8..16)?.try_into().ok()?);
    (key.len() == 20).then_some(run)
}

/// The key of the store's counters and secrets.
pub fn catalog_meta_key() -> Bytes {
    Bytes::from_static(b"m")
}

/// The key of a database.
pub fn database_key(number: DatabaseNumber) -> Bytes {
    join(&[b"d", &number.0.to_be_bytes()])
}

/// The keys of all databases.
pub fn database_range() -> KeyRange {
    KeyRange::prefix(Bytes::from_static(b"d"))
}

/// The key of a container.
pub fn container_key(number: ContainerNumber) -> Bytes {
    join(&[b"c", &number.0.to_be_bytes()])
}

/// The keys of all containers.
pub fn container_range() -> KeyRange {
    KeyRange::prefix(Bytes::from_static(b"c"))
}

/// The key of an offer.
pub fn offer_key(number: OfferNumber) -> Bytes {
    join(&[b"o", &number.0.to_be_bytes()])
}

/// The keys of all offers.
pub fn offer_range() -> KeyRange {
    KeyRange::prefix(Bytes::from_static(b"o"))
}

/// Kinds of small resources; each has a letter in the catalog's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Users of a database.
    User,
    /// Permissions of a user.
    Permission,
    /// Stored procedures of a container.
    StoredProcedure,
    /// Triggers of a container.
    Trigger,
    /// User-defined functions of a container.
    UserDefinedFunction,
    /// Client encryption keys of a database.
    ClientEncryptionKey,
    /// Annotations of databases and containers.
    Annotation,
}

impl EntryKind {
    fn letter(self) -> &'static [u8] {
        match self {
            EntryKind::User => b"u",
            EntryKind::Permission => b"p",
            EntryKind::StoredProcedure => b"s",
            EntryKind::Trigger => b"t",
            EntryKind::UserDefinedFunction => b"f",
            EntryKind::ClientEncryptionKey => b"k",
            EntryKind::Annotation => b"a",
        }
    }
}

/// The key of a small resource.
pub fn entry_key(kind: EntryKind, number: ResourceNumber) -> Bytes {
    join(&[kind.letter(), &number.0.to_be_bytes()])
}

/// The keys of all small resources of a kind.
pub fn entry_range(kind: EntryKind) -> KeyRange {
    KeyRange::prefix(Bytes::from_static(kind.letter()))
}

/// The key of a dropped container whose rows are not deleted yet.
pub fn dropped_key(number: ContainerNumber) -> Bytes {
    join(&[b"x", &number.0.to_be_bytes()])
}

/// The keys of all dropped containers.
pub fn dropped_range() -> KeyRange {
    KeyRange::prefix(Bytes::from_static(b"x"))
}

/// Parses the number at the end of a catalog key.
pub fn parse_catalog_number(key: &[u8]) -> Option<u32> {
    let number = u32::from_be_bytes(key.get(1..5)?.try_into().ok()?);
    (key.len() == 5).then_some(number)
}

/// All rows of a container in one of [`CONTAINER_SPACES`].
pub fn container_rows(container: ContainerNumber) -> KeyRange {
    KeyRange::prefix(Bytes::copy_from_slice(&container.0.to_be_bytes()))
}

/// Parses the container number of a row in one of [`CONTAINER_SPACES`].
pub fn parse_container(key: &[u8]) -> Option<ContainerNumber> {
    let number = u32::from_be_bytes(key.get(..4)?.try_into().ok()?);
    Some(ContainerNumber(number))
}

/// All rows of a partition in a space whose keys start with container and ordinal.
pub fn partition_rows(partition: PartitionId) -> KeyRange {
    KeyRange::prefix(Bytes::copy_from_slice(&partition_prefix(partition)))
}

/// Parses the partition of such a row.
pub(crate) fn parse_partition(key: &[u8]) -> Option<PartitionId> {
    let ordinal = u32::from_be_bytes(key.get(4..8)?.try_into().ok()?);
    Some(PartitionId { container: parse_container(key)?, ordinal: PartitionOrdinal::from_raw(ordinal)? })
}

/// The keys of `range` after `key`, where a scan continues.
pub fn after(range: &KeyRange, key: &[u8]) -> KeyRange {
    KeyRange { start: join(&[key, &[0]]), end: range.end.clone() }
}

fn partition_prefix(partition: PartitionId) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix[..4].copy_from_slice(&partition.container.0.to_be_bytes());
    prefix[4..].copy_from_slice(&partition.ordinal.0.to_be_bytes());
    prefix
}

fn join(parts: &[&[u8]]) -> Bytes {
    parts.concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EffectiveKey, KeyComponent, PartitionKey};

    #[test]
    fn keys_with_numbers_can_be_read_back() {
        let container = ContainerNumber(7);
        let number = DocumentNumber::new(PartitionOrdinal(2), 9).unwrap();
        assert_eq!(parse_expiry_key(&expiry_key(container, 1234, number)), Some((1234, number)));
        let partition = PartitionId { container, ordinal: PartitionOrdinal(2) };
        let at = LogPosition { lsn: Lsn(5), position: 6 };
        assert_eq!(parse_log_key(&log_key(partition, at)), Some(at));
        assert!(
            log_range(partition, at, Lsn(6)).contains(&log_key(partition, LogPosition { position: 7, ..at }))
        );
        assert_eq!(parse_partition(&head_key(partition)), Some(partition));
        assert_eq!(parse_consumer_key(&consumer_key(partition, "index")), Some("index"));
        assert_eq!(parse_catalog_number(&container_key(container)), Some(7));
        assert_eq!(parse_expiry_key(b"short"), None);
        assert_eq!(parse_number_key(&number_key(container, number)), Some(number));
        assert_eq!(parse_number_key(b"short"), None);
        let last = DocumentNumber::from_raw((1 << 60) - 1).unwrap();
        let range = number_range(container, number, last);
        assert!(range.start <= number_key(container, number));
        assert!(range.end.unwrap() > number_key(container, last));
        assert_eq!(parse_run(&run_row_key(partition, 8, 9)), Some(8));
        let dead = dead_key(partition, PartitionOrdinal(3), 8, 9);
        assert!(dead_range(partition, PartitionOrdinal(3), 8).contains(&dead));
        assert!(all_dead_range(partition).contains(&dead));
        assert_eq!(parse_history_key(&history_key(partition, at)), Some(at));
        let logical = LogicalKey {
            partition_key: PartitionKey { components: vec![KeyComponent::String("p".to_owned())] },
            effective: EffectiveKey::from_bytes(&[1; 16]),
        };
        let id = IdCode::from("id");
        let apart = record_key(&logical_prefix(container, &logical), id);
        assert_eq!(document_key(container, &logical, id), apart);
        let effective = effective_key(&logical_prefix(container, &logical), &logical);
        assert_eq!(effective, logical.effective.as_bytes());
        let key = record_key(b"logical", id);
        assert_eq!(logical_of_record(&key, id).unwrap(), logical_key(&Bytes::from_static(b"logical")));
    }
}
