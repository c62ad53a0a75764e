//! The catalog's rows: how its entries are written to the store and read back.

use super::entries::{
    Container, ContainerParts, Database, Offer, OfferOwner, PartitionEntry, PartitionMap, Stamp,
};
use super::shelf::Entry;
use bytes::Bytes;
use model::{
    ContainerDefinition, ContainerNumber, DatabaseNumber, EffectiveKey, EffectiveRange, Fault, OfferNumber,
    PartitionOrdinal, ResourceNumber, Rid, StorageFault, Throughput,
};
use partition::index::ComputedReader;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Counters of the catalog. Numbers are never reused, so the last ones given are kept for ever.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MetaRow {
    pub(crate) database_last: u32,
    pub(crate) container_last: u32,
    pub(crate) offer_last: u32,
    #[serde(default)]
    pub(crate) resource_last: u32,
    pub(crate) change_last: u64,
    /// No partition of a dropped container has given an LSN or a stamp above.
    #[serde(default)]
    pub(crate) floor: u64,
    pub(crate) secrets: StoreSecrets,
}

/// Secrets that belong to the store and do not change with the account's keys.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct StoreSecrets {
    pub(crate) continuation: [u8; 32],
    #[serde(default)]
    pub(crate) token: [u8; 32],
}

impl StoreSecrets {
    /// Makes up the secrets that are not there yet; answers whether there were any.
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

#[derive(Serialize, Deserialize)]
struct StampRow {
    change: u64,
    ts: u64,
}

impl From<Stamp> for StampRow {
    fn from(stamp: Stamp) -> StampRow {
        StampRow { change: stamp.change, ts: stamp.ts }
    }
}

impl From<StampRow> for Stamp {
    fn from(row: StampRow) -> Stamp {
        Stamp { change: row.change, ts: row.ts }
    }
}

#[derive(Serialize, Deserialize)]
struct DatabaseRow {
    id: String,
    stamp: StampRow,
}

#[derive(Serialize, Deserialize)]
struct ContainerRow {
    database: DatabaseNumber,
    definition: serde_json::Value,
    stamp: StampRow,
    expiry_pending: bool,
    map_stamp: StampRow,
    partitions: Vec<PartitionRow>,
}

#[derive(Serialize, Deserialize)]
struct PartitionRow {
    ordinal: PartitionOrdinal,
    min: String,
    max: String,
    parents: Vec<PartitionOrdinal>,
}

#[derive(Serialize, Deserialize)]
struct OfferRow {
    owner: String,
    throughput: Throughput,
    /// The highest rate ever; absent in rows from before it was counted.
    #[serde(default)]
    highest: u64,
    stamp: StampRow,
}

pub(crate) fn encode_meta(meta: &MetaRow) -> Bytes {
    encode(meta)
}

pub(crate) fn decode_meta(row: &[u8]) -> Result<MetaRow, Fault> {
    decode("counters", row)
}

pub(crate) fn encode_database(database: &Database) -> Bytes {
    encode(&DatabaseRow { id: database.id().to_owned(), stamp: database.stamp().into() })
}

pub(crate) fn decode_database(number: DatabaseNumber, row: &[u8]) -> Result<Database, Fault> {
    let row: DatabaseRow = decode("database", row)?;
    Ok(Database::new(number, row.id, row.stamp.into()))
}

pub(crate) fn encode_container(container: &Container) -> Bytes {
    let partition = |entry: &PartitionEntry| PartitionRow {
        ordinal: entry.ordinal,
        min: entry.range.min.to_hex(),
        max: entry.range.max.to_hex(),
        parents: entry.parents.clone(),
    };
    encode(&ContainerRow {
        database: container.database().number(),
        definition: container.definition().to_json().into(),
        stamp: container.stamp().into(),
        expiry_pending: container.expiry_pending,
        map_stamp: container.map.stamp.into(),
        partitions: container.map.entries.iter().map(partition).collect(),
    })
}

pub(crate) fn decode_container(
    number: ContainerNumber,
    row: &[u8],
    database: impl FnOnce(DatabaseNumber) -> Option<Arc<Database>>,
    computed_reader: ComputedReader,
) -> Result<Container, Fault> {
    let row: ContainerRow = decode("container", row)?;
    let database = database(row.database).ok_or_else(|| damaged("container", "its database is missing"))?;
    let definition = ContainerDefinition::from_json(&row.definition)
        .map_err(|error| damaged("container", &error.to_string()))?;
    let entries = row.partitions.into_iter().map(decode_partition).collect::<Result<_, _>>()?;
    let map = PartitionMap::new(entries, row.map_stamp.into());
    let parts = ContainerParts { number, database, definition, stamp: row.stamp.into(), computed_reader };
    Ok(Container::new(parts, row.expiry_pending, map))
}

fn decode_partition(row: PartitionRow) -> Result<PartitionEntry, Fault> {
    let bound =
        |text: &str| EffectiveKey::from_hex(text).ok_or_else(|| damaged("partition", "its range is no hash"));
    let range = EffectiveRange { min: bound(&row.min)?, max: bound(&row.max)? };
    Ok(PartitionEntry::new(row.ordinal, range, row.parents))
}

pub(crate) fn encode_offer(offer: &Offer) -> Bytes {
    let owner = offer.owner().rid.to_string();
    encode(&OfferRow {
        owner,
        throughput: offer.throughput(),
        highest: offer.highest(),
        stamp: offer.stamp().into(),
    })
}

pub(crate) fn decode_offer(number: OfferNumber, row: &[u8]) -> Result<Offer, Fault> {
    let row: OfferRow = decode("offer", row)?;
    let rid = Rid::parse(&row.owner).ok_or_else(|| damaged("offer", "its owner is no RID"))?;
    Ok(Offer::new(number, OfferOwner { rid }, row.throughput, row.stamp.into()).with_highest(row.highest))
}

/// A small resource. What it is below stands in its RID.
#[derive(Serialize, Deserialize)]
struct EntryRow<D> {
    rid: String,
    id: String,
    definition: D,
    stamp: StampRow,
}

pub(crate) fn encode_entry<D: Clone + Serialize>(entry: &Entry<D>) -> Bytes {
    encode(&EntryRow {
        rid: entry.rid().to_string(),
        id: entry.id().to_owned(),
        definition: entry.definition().clone(),
        stamp: entry.stamp().into(),
    })
}

pub(crate) fn decode_entry<D: DeserializeOwned>(
    number: ResourceNumber,
    row: &[u8],
) -> Result<Entry<D>, Fault> {
    let row: EntryRow<D> = decode("small resource", row)?;
    let rid = Rid::parse(&row.rid).filter(|rid| rid.resource_number() == Some(number));
    let rid = rid.ok_or_else(|| damaged("small resource", "its RID is not one"))?;
    Ok(Entry::new(number, rid, row.id, row.definition, row.stamp.into()))
}

fn encode(row: &impl Serialize) -> Bytes {
    serde_json::to_vec(row).expect("rows have string keys and finite numbers").into()
}

fn decode<T: DeserializeOwned>(what: &str, row: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(row).map_err(|error| damaged(what, &error.to_string()))
}

fn damaged(what: &str, reason: &str) -> Fault {
    StorageFault::Damaged { what: format!("catalog row of a {what}: {reason}") }.into()
}
