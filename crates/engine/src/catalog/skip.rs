//! The counters of the catalog when an older copy of a store is used again.

use super::CONTAINERS_MAX;
use super::change::OFFERS_MAX;
use super::rows::{MetaRow, decode_meta, encode_meta};
use kv::{Batch, Durability, Store};
use model::{Fault, ResourceNumber};
use partition::keyspace::{self, CATALOG};
use partition::{Skipped, commit_fault, read_fault};

/// Numbers of each kind of resource that are skipped: clients know containers by resource ids made of them.
const NUMBERS_SKIPPED: u32 = 1 << 12;
/// Ordinals of partitions that are skipped after the highest of the store. There are 2²⁰.
const ORDINALS_SKIPPED: u32 = 1 << 12;

/// Skips numbers that may have been assigned in the lost part of the store, and LSNs below the first ones of new
/// containers.
pub(crate) async fn skip_numbers(store: &Store, skipped: Skipped) -> Result<(), Fault> {
    let key = keyspace::catalog_meta_key();
    let view = store.view().await.map_err(read_fault)?;
    let Some(row) = view.get(CATALOG, &key).await.map_err(read_fault)? else { return Ok(()) };
    let mut batch = Batch::default();
    batch.put(CATALOG, key.clone(), encode_meta(&skipped_ahead(decode_meta(&row)?, skipped)));
    batch.require(CATALOG, key, Some(row));
    store.submit(&store.lane(), batch, Durability::Sync).await.map_err(commit_fault)?;
    Ok(())
}

fn skipped_ahead(meta: MetaRow, Skipped { lsns, ordinal_highest }: Skipped) -> MetaRow {
    let skip = |last: u32, most: u32| last.saturating_add(NUMBERS_SKIPPED).min(most).max(last);
    MetaRow {
        database_last: skip(meta.database_last, u32::MAX - 1),
        container_last: skip(meta.container_last, CONTAINERS_MAX),
        offer_last: skip(meta.offer_last, OFFERS_MAX),
        resource_last: skip(meta.resource_last, ResourceNumber::MAX.0),
        change_last: meta.change_last + lsns,
        floor: meta.floor + lsns,
        ordinal_floor: meta.ordinal_floor.max(ordinal_highest.0) + ORDINALS_SKIPPED,
        ..meta
    }
}

#[cfg(test)]
use model::PartitionOrdinal;

#[test]
fn numbers_are_skipped_and_never_go_back() {
    let meta = MetaRow { container_last: CONTAINERS_MAX - 1, database_last: 7, ..MetaRow::default() };
    let lost = Skipped { lsns: 1 << 40, ordinal_highest: PartitionOrdinal(6) };
    let skipped = skipped_ahead(meta, lost);
    assert_eq!((skipped.container_last, skipped.database_last), (CONTAINERS_MAX, 7 + NUMBERS_SKIPPED));
    assert_eq!((skipped.change_last, skipped.floor), (1 << 40, 1 << 40));
    assert_eq!(skipped.ordinal_floor, 6 + ORDINALS_SKIPPED);
    let again = skipped_ahead(skipped, lost);
    assert_eq!(again.ordinal_floor, 6 + 2 * ORDINALS_SKIPPED);
    assert_eq!(decode_meta(&encode_meta(&again)).unwrap().ordinal_floor, again.ordinal_floor);
}
