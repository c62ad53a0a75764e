//! The catalog's rows: how its entries are written to the store and read back.
//!
//! Every row begins with the version of its kind; the fields follow in the encoding of `model::Encoder`. The reader
//! checks the form only, not the rules for new definitions. Anything unknown is reported as damage of the row.
//!
//! ```text
//! counters    version · database, container, offer, resource, change: the last numbers assigned · two secrets:32
//! database    version · id · stamp
//! container   version · database number · definition · stamp · expiry pending · stamp of the map · partitions:
//!             ordinal · lower bound · upper bound · ancestors: ordinal · last LSN; stamp; then split partitions:
//!             ordinal · lower bound · upper bound · whether its rows are deleted
//!             (version 1, before splits: the partitions end with an empty list, and no split partitions follow)
//! offer       version · RID of the owner · throughput · highest rate · stamp
//! small       version · RID · id · definition · stamp
//! stamp       change · seconds
//! ```

use super::entries::{CatalogStamp, Container, ContainerParts, Database, Offer, OfferOwner};
use super::partition_map::{PartitionMap, RetiredPartition};
use super::shelf::{DefinitionCode, Entry};
use crate::slot::PartitionSlot;
use bytes::Bytes;
use model::{
    ContainerDefinition, ContainerNumber, DatabaseNumber, DecodeFault, Decoder, EffectiveKey, EffectiveRange,
    Encoder, Fault, Lsn, OfferNumber, PartitionOrdinal, ResourceNumber, Rid, StorageFault, Throughput,
};
use partition::index::{ComputedReader, parse_computed};
use partition::{Ancestor, Remains};
use std::sync::Arc;

/// Versions of the rows, one for each kind. A row of an unknown version is refused.
const META_VERSION: u8 = 2;
/// The version of the counters before stores could continue after a loss.
const META_VERSION_FIRST: u8 = 1;
const DATABASE_VERSION: u8 = 1;
const CONTAINER_VERSION: u8 = 2;
/// The version of containers that were written before partitions could be split.
const CONTAINER_VERSION_UNSPLIT: u8 = 1;
const OFFER_VERSION: u8 = 1;
const SMALL_RESOURCE_VERSION: u8 = 1;

/// Counters of the catalog. Numbers are never reused, so the last ones assigned are kept forever.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetaRow {
    pub(crate) database_last: u32,
    pub(crate) container_last: u32,
    pub(crate) offer_last: u32,
    pub(crate) resource_last: u32,
    pub(crate) change_last: u64,
    /// No partition of a dropped container has assigned a higher LSN or stamp.
    pub(crate) floor: u64,
    /// Partitions that a split makes get higher ordinals: these were perhaps assigned by writes that are lost.
    pub(crate) ordinal_floor: u32,
    pub(crate) secrets: StoreSecrets,
}

/// Secrets that belong to the store and do not change with the account's keys.
#[derive(Clone, Default)]
pub(crate) struct StoreSecrets {
    pub(crate) continuation: [u8; 32],
    pub(crate) token: [u8; 32],
}

impl StoreSecrets {
    /// Generates the secrets that do not exist yet; returns whether it generated any.
    pub(crate) fn fill(&mut self, fill_random: impl Fn(&mut [u8])) -> bool {
        let mut filled = false;
        for secret in [&mut self.continuation, &mut self.token] {
            if *secret == [0; 32] {
                fill_random(secret);
                filled = true;
            }
        }
        filled
    }
}

impl std::fmt::Debug for StoreSecrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StoreSecrets(…)")
    }
}

pub(crate) fn encode_meta(meta: &MetaRow) -> Bytes {
    encode(META_VERSION, |out| {
        for last in [meta.database_last, meta.container_last, meta.offer_last, meta.resource_last] {
            out.number(last);
        }
        out.number(meta.change_last);
        out.number(meta.floor);
        out.raw(&meta.secrets.continuation);
        out.raw(&meta.secrets.token);
        out.number(meta.ordinal_floor);
    })
}

pub(crate) fn decode_meta(row: &[u8]) -> Result<MetaRow, Fault> {
    let is_first = row.first() == Some(&META_VERSION_FIRST);
    let fields = |input: &mut Decoder<'_>| {
        let mut meta = MetaRow {
            database_last: input.number("last database number")?,
            container_last: input.number("last container number")?,
            offer_last: input.number("last offer number")?,
            resource_last: input.number("last resource number")?,
            change_last: input.number("last change")?,
            floor: input.number("floor of LSNs")?,
            secrets: StoreSecrets {
                continuation: input.raw("secret of continuations")?,
                token: input.raw("secret of tokens")?,
            },
            ordinal_floor: 0,
        };
        if !is_first {
            meta.ordinal_floor = input.number("floor of partition ordinals")?;
        }
        Ok(meta)
    };
    let version = if is_first { META_VERSION_FIRST } else { META_VERSION };
    decode(row, version, fields).map_err(|fault| damaged("counters", &fault))
}

pub(crate) fn encode_database(database: &Database) -> Bytes {
    encode(DATABASE_VERSION, |out| {
        out.text(database.id());
        database.stamp().encode(out);
    })
}

pub(crate) fn decode_database(number: DatabaseNumber, row: &[u8]) -> Result<Database, Fault> {
    let fields = |input: &mut Decoder<'_>| {
        Ok(Database::new(number, input.text("name of a database")?, CatalogStamp::decode(input)?))
    };
    decode(row, DATABASE_VERSION, fields).map_err(|fault| damaged(&format!("database {}", number.0), &fault))
}

/// The row of a container with this map of its partitions.
pub(crate) fn encode_container(container: &Container, map: &PartitionMap) -> Bytes {
    encode(CONTAINER_VERSION, |out| {
        out.number(container.database().number().0);
        container.definition().encode(out);
        container.stamp().encode(out);
        out.flag(container.expiry_pending);
        map.stamp.encode(out);
        out.list(&map.entries, encode_partition);
        out.list(&map.retired, encode_retired);
    })
}

pub(crate) fn decode_container(
    number: ContainerNumber,
    row: &[u8],
    database: impl FnOnce(DatabaseNumber) -> Option<Arc<Database>>,
    computed_reader: ComputedReader,
) -> Result<Container, Fault> {
    let is_unsplit = row.first() == Some(&CONTAINER_VERSION_UNSPLIT);
    let fields = |input: &mut Decoder<'_>| {
        let number_of_database = DatabaseNumber(input.number("database of a container")?);
        let database =
            database(number_of_database).ok_or_else(|| input.unknown("database", number_of_database.0))?;
        let definition = ContainerDefinition::decode(input)?;
        let stamp = CatalogStamp::decode(input)?;
        let expiry_pending = input.flag("whether expiry is pending")?;
        let map_stamp = CatalogStamp::decode(input)?;
        let map = if is_unsplit {
            let entries = input.list("partitions", |input| decode_unsplit(input, map_stamp))?;
            PartitionMap::new(entries, Vec::new(), map_stamp)
        } else {
            let entries = input.list("partitions", decode_partition)?;
            PartitionMap::new(entries, input.list("split partitions", decode_retired)?, map_stamp)
        };
        let computed = parse_computed(&definition.policies.computed, computed_reader);
        let parts = ContainerParts { number, database, definition, stamp, computed, computed_reader };
        Ok(Container::new(parts, expiry_pending, map))
    };
    let version = if is_unsplit { CONTAINER_VERSION_UNSPLIT } else { CONTAINER_VERSION };
    decode(row, version, fields).map_err(|fault| damaged(&format!("container {}", number.0), &fault))
}

fn encode_partition(out: &mut Encoder, entry: &Arc<PartitionSlot>) {
    out.number(entry.ordinal.0);
    encode_range(out, &entry.range);
    out.list(&entry.ancestors, |out, ancestor| {
        out.number(ancestor.ordinal.0);
        out.number(ancestor.lsn_last.0);
    });
    entry.since.encode(out);
}

fn decode_partition(input: &mut Decoder<'_>) -> Result<Arc<PartitionSlot>, DecodeFault> {
    let (number, range) = (decode_ordinal(input)?, decode_range(input)?);
    let ancestors = input.list("ancestors", |input| {
        let ordinal = decode_ordinal(input)?;
        let lsn_last = Lsn(input.number("last LSN of an ancestor")?);
        Ok(Ancestor { ordinal, lsn_last, remains: Remains::All })
    })?;
    Ok(Arc::new(PartitionSlot::new(number, range, ancestors, CatalogStamp::decode(input)?)))
}

fn decode_unsplit(input: &mut Decoder<'_>, since: CatalogStamp) -> Result<Arc<PartitionSlot>, DecodeFault> {
    let (number, range) = (decode_ordinal(input)?, decode_range(input)?);
    match input.list("parents", decode_ordinal)?.as_slice() {
        [] => Ok(Arc::new(PartitionSlot::new(number, range, Vec::new(), since))),
        [_, ..] => Err(input.invalid("parents")),
    }
}

fn encode_retired(out: &mut Encoder, retired: &RetiredPartition) {
    out.number(retired.ordinal.0);
    encode_range(out, &retired.range);
    out.byte(match retired.remains {
        Remains::All => 0,
        Remains::Nothing => 1,
        Remains::Log => 2,
    });
}

fn decode_retired(input: &mut Decoder<'_>) -> Result<RetiredPartition, DecodeFault> {
    let (ordinal, range) = (decode_ordinal(input)?, decode_range(input)?);
    let remains = match input.byte("rows of a split partition")? {
        0 => Remains::All,
        1 => Remains::Nothing,
        2 => Remains::Log,
        tag => return Err(input.unknown("rows of a split partition", tag)),
    };
    Ok(RetiredPartition { ordinal, range, remains })
}

fn decode_ordinal(input: &mut Decoder<'_>) -> Result<PartitionOrdinal, DecodeFault> {
    let ordinal = PartitionOrdinal::from_raw(input.number("partition ordinal")?);
    ordinal.ok_or_else(|| input.invalid("partition ordinal"))
}

fn encode_range(out: &mut Encoder, range: &EffectiveRange) {
    out.bytes(range.min.as_bytes());
    out.bytes(range.max.as_bytes());
}

fn decode_range(input: &mut Decoder<'_>) -> Result<EffectiveRange, DecodeFault> {
    let bound = |input: &mut Decoder<'_>| input.bytes("bound of a range").map(EffectiveKey::from_bytes);
    Ok(EffectiveRange { min: bound(input)?, max: bound(input)? })
}

pub(crate) fn encode_offer(offer: &Offer) -> Bytes {
    encode(OFFER_VERSION, |out| {
        out.text(&offer.owner().rid.to_string());
        offer.throughput().encode(out);
        out.number(offer.highest());
        offer.stamp().encode(out);
    })
}

pub(crate) fn decode_offer(number: OfferNumber, row: &[u8]) -> Result<Offer, Fault> {
    let fields = |input: &mut Decoder<'_>| {
        let owner = OfferOwner { rid: decode_rid(input)? };
        let throughput = Throughput::decode(input)?;
        let highest = input.number("highest rate")?;
        Ok(Offer::new(number, owner, throughput, CatalogStamp::decode(input)?).with_highest(highest))
    };
    decode(row, OFFER_VERSION, fields).map_err(|fault| damaged(&format!("offer {}", number.0), &fault))
}

pub(crate) fn encode_entry<D>(entry: &Entry<D>, code: DefinitionCode<D>) -> Bytes {
    encode(SMALL_RESOURCE_VERSION, |out| {
        out.text(&entry.rid().to_string());
        out.text(entry.id());
        (code.encode)(entry.definition(), out);
        entry.stamp().encode(out);
    })
}

pub(crate) fn decode_entry<D>(
    number: ResourceNumber,
    row: &[u8],
    code: DefinitionCode<D>,
) -> Result<Entry<D>, Fault> {
    let fields = |input: &mut Decoder<'_>| {
        let rid = decode_rid(input)?;
        if rid.resource_number() != Some(number) {
            return Err(input.invalid("RID"));
        }
        let id = input.text("name")?;
        let definition = (code.decode)(input)?;
        Ok(Entry::new(number, rid, id, definition, CatalogStamp::decode(input)?))
    };
    decode(row, SMALL_RESOURCE_VERSION, fields)
        .map_err(|fault| damaged(&format!("{} {}", code.name, number.0), &fault))
}

impl CatalogStamp {
    fn encode(self, out: &mut Encoder) {
        out.number(self.change);
        out.number(self.ts);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<CatalogStamp, DecodeFault> {
        Ok(CatalogStamp { change: input.number("change of a stamp")?, ts: input.number("time of a stamp")? })
    }
}

fn decode_rid(input: &mut Decoder<'_>) -> Result<Rid, DecodeFault> {
    let rid = Rid::parse(input.borrowed_text("RID")?);
    rid.ok_or_else(|| input.invalid("RID"))
}

fn encode(version: u8, fields: impl FnOnce(&mut Encoder)) -> Bytes {
    let mut out = Encoder::default();
    out.byte(version);
    fields(&mut out);
    out.finish().into()
}

fn decode<'a, T>(
    row: &'a [u8],
    version: u8,
    fields: impl FnOnce(&mut Decoder<'a>) -> Result<T, DecodeFault>,
) -> Result<T, DecodeFault> {
    let mut input = Decoder::new(row);
    input.version(version)?;
    let entry = fields(&mut input)?;
    input.finish()?;
    Ok(entry)
}

fn damaged(row: &str, fault: &DecodeFault) -> Fault {
    StorageFault::Damaged { what: format!("catalog row of {row}: {fault}") }.into()
}

#[cfg(test)]
mod tests {
    use super::super::partition_map::PlannedSplit;
    use super::*;
    use model::{ContainerDraft, PartitionKeyDefinition, PartitionKeyKind};

    const STAMP: CatalogStamp = CatalogStamp { change: 3, ts: 4 };

    fn container() -> (Arc<Database>, Container) {
        let database = Arc::new(Database::new(DatabaseNumber(1), "d".to_owned(), STAMP));
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let definition = ContainerDraft::new("c", key).checked().unwrap();
        let map = PartitionMap::initial(&definition.partition_key, 2, STAMP);
        let parts = ContainerParts {
            number: ContainerNumber(7),
            database: Arc::clone(&database),
            definition,
            stamp: STAMP,
            computed: Arc::new([]),
            computed_reader: |_| None,
        };
        (database, Container::new(parts, true, map))
    }

    fn decoded(row: &[u8], database: &Arc<Database>) -> Result<Container, Fault> {
        decode_container(ContainerNumber(7), row, |_| Some(Arc::clone(database)), |_| None)
    }

    #[test]
    fn a_container_with_split_partitions_comes_back() {
        let (database, container) = container();
        let map = Arc::clone(&container.map.load());
        let parent = Arc::clone(&map.entries[1]);
        let cut = EffectiveKey::from_bytes(&[0x30]);
        let planned = PlannedSplit { parent, cut, lsn_last: Lsn(99) };
        let (split, _) = map.split(&planned, CatalogStamp { change: 5, ts: 6 }, 0).unwrap();
        let split = split.with_remains(PartitionOrdinal(1), Remains::Log);
        let row = encode_container(&container, &split);
        let again = decoded(&row, &database).unwrap();
        let again = again.map.load();
        assert_eq!((again.stamp, &again.retired), (split.stamp, &split.retired));
        for (found, expected) in again.entries.iter().zip(&split.entries) {
            assert_eq!((found.ordinal, &found.range), (expected.ordinal, &expected.range));
            assert_eq!((&found.ancestors, found.since), (&expected.ancestors, expected.since));
        }
        assert!((0..row.len()).all(|length| decoded(&row[..length], &database).is_err()));
    }

    #[test]
    fn a_container_of_a_store_without_splits_is_read() {
        let (database, container) = container();
        let map = container.map.load();
        let row = encode(CONTAINER_VERSION_UNSPLIT, |out| {
            out.number(container.database().number().0);
            container.definition().encode(out);
            container.stamp().encode(out);
            out.flag(true);
            map.stamp.encode(out);
            out.list(&map.entries, |out, entry| {
                out.number(entry.ordinal.0);
                encode_range(out, &entry.range);
                out.list(&[] as &[PartitionOrdinal], |out, parent| out.number(parent.0));
            });
        });
        let again = decoded(&row, &database).unwrap();
        assert_eq!(again.definition(), container.definition());
        let again = again.map.load();
        assert_eq!((again.entries.len(), again.stamp, again.entries[1].since), (2, STAMP, STAMP));
        let mut unknown = row.to_vec();
        unknown[0] = 9;
        assert!(decoded(&unknown, &database).is_err());
    }
}
