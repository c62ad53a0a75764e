//! Loads the catalog from the store, at start and after a change whose outcome was unknown.

use super::rows;
use super::shelf::Shelf;
use super::state::{CatalogState, Dropped};
use bytes::Bytes;
use kv::{Direction, KeyRange, ScanLimit, View};
use model::{ContainerNumber, DatabaseNumber, Fault, OfferNumber, ResourceNumber, StorageFault};
use partition::index::ComputedReader;
use partition::keyspace::{self, CATALOG};
use partition::read_fault;
use std::sync::Arc;

/// Catalog rows read in one call.
const ROWS_AT_A_TIME: usize = 1000;

impl CatalogState {
    /// `computed_reader` parses the queries of computed properties.
    pub(crate) async fn load(view: &View, computed_reader: ComputedReader) -> Result<CatalogState, Fault> {
        let mut state = CatalogState::default();
        if let Some(row) = view.get(CATALOG, &keyspace::catalog_meta_key()).await.map_err(read_fault)? {
            state.meta = rows::decode_meta(&row)?;
        }
        for (number, row) in load_rows(view, keyspace::database_range()).await? {
            state.insert_database(Arc::new(rows::decode_database(DatabaseNumber(number), &row)?));
        }
        for (number, row) in load_rows(view, keyspace::container_range()).await? {
            let database = |number| state.database(number);
            let container = rows::decode_container(ContainerNumber(number), &row, database, computed_reader)?;
            state.insert_container(Arc::new(container));
        }
        for (number, row) in load_rows(view, keyspace::offer_range()).await? {
            let offer = rows::decode_offer(OfferNumber(number), &row)?;
            state.offers.insert(offer.number(), Arc::new(offer));
        }
        let shelves = &mut state.shelves;
        load_shelf(view, Arc::make_mut(&mut shelves.users)).await?;
        load_shelf(view, Arc::make_mut(&mut shelves.permissions)).await?;
        load_shelf(view, Arc::make_mut(&mut shelves.procedures)).await?;
        load_shelf(view, Arc::make_mut(&mut shelves.triggers)).await?;
        load_shelf(view, Arc::make_mut(&mut shelves.functions)).await?;
        load_shelf(view, Arc::make_mut(&mut shelves.encryption_keys)).await?;
        load_shelf(view, Arc::make_mut(&mut shelves.annotations)).await?;
        for (number, _) in load_rows(view, keyspace::dropped_range()).await? {
            state.dropped.push(Dropped { number: ContainerNumber(number), map: None, is_below_floor: false });
        }
        Ok(state)
    }
}

async fn load_shelf<D>(view: &View, shelf: &mut Shelf<D>) -> Result<(), Fault> {
    for (number, row) in load_rows(view, keyspace::entry_range(shelf.kind())).await? {
        shelf.insert(Arc::new(rows::decode_entry(ResourceNumber(number), &row, shelf.code())?));
    }
    Ok(())
}

async fn load_rows(view: &View, mut range: KeyRange) -> Result<Vec<(u32, Bytes)>, Fault> {
    let mut found = Vec::new();
    loop {
        let limit = ScanLimit { rows: ROWS_AT_A_TIME, bytes: usize::MAX };
        let chunk = view.scan(CATALOG, range.clone(), Direction::Forward, limit).await.map_err(read_fault)?;
        for (key, row) in &chunk.rows {
            let number = keyspace::parse_catalog_number(key);
            let number =
                number.ok_or_else(|| StorageFault::Damaged { what: "key of a catalog row".to_owned() })?;
            found.push((number, row.clone()));
        }
        match chunk.rows.last() {
            Some((key, _)) if chunk.more => range = keyspace::after(&range, key),
            Some(_) | None => return Ok(found),
        }
    }
}
