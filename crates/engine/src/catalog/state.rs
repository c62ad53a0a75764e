//! The catalog's state and how it changes: a copy is altered, its rows are committed, then it is swapped in.

use super::CONTAINERS_MAX;
use super::entries::{Addressed, Container, Database, Offer, OfferOwner, PartitionMap, Stamp};
use super::rows::{self, MetaRow, StoreSecrets};
use crate::engine::Engine;
use arc_swap::ArcSwap;
use bytes::Bytes;
use kv::{Batch, CommitFault, Direction, Durability, KeyRange, ScanLimit, Store, View};
use model::{ContainerNumber, DatabaseNumber, Fault, LimitFault, OfferNumber, Rid, StorageFault, Throughput};
use partition::keyspace::{self, CATALOG, PartitionId};
use partition::{commit_fault, new_partition_rows, read_fault};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, MutexGuard};

/// Most offers: their number has 24 bits.
const OFFERS_MAX: u32 = (1 << 24) - 1;
/// Catalog rows read at a time at start.
const ROWS_AT_A_TIME: usize = 1000;

/// All entries at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogState {
    meta: MetaRow,
    databases: BTreeMap<DatabaseNumber, Arc<Database>>,
    database_names: HashMap<String, DatabaseNumber>,
    containers: BTreeMap<ContainerNumber, Arc<Container>>,
    container_names: HashMap<DatabaseNumber, HashMap<String, ContainerNumber>>,
    offers: BTreeMap<OfferNumber, Arc<Offer>>,
    dropped: Vec<Dropped>,
}

/// A container whose rows are still to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Dropped {
    pub(crate) number: ContainerNumber,
    /// Its partitions, if it was in use since the start: their writers must have ended before the rows go.
    pub(crate) map: Option<Arc<PartitionMap>>,
}

/// The catalog of a store.
#[derive(Debug)]
pub(crate) struct Catalog {
    state: ArcSwap<CatalogState>,
    changing: Mutex<()>,
    /// A change has failed in a way that leaves open whether it is in the store.
    doubtful: AtomicBool,
}

impl Catalog {
    /// Reads the catalog; a new store gets its secrets here.
    pub(crate) async fn open(store: &Store, fill_random: impl Fn(&mut [u8])) -> Result<Catalog, Fault> {
        let view = store.view().map_err(read_fault)?;
        let mut state = CatalogState::load(&view).await?;
        if state.meta.secrets.continuation == [0; 32] {
            fill_random(&mut state.meta.secrets.continuation);
            let mut batch = Batch::default();
            batch.put(CATALOG, keyspace::catalog_meta_key(), rows::encode_meta(&state.meta));
            store.submit(&store.lane(), batch, Durability::Sync).await.map_err(commit_fault)?;
        }
        Ok(Catalog {
            state: ArcSwap::from_pointee(state),
            changing: Mutex::new(()),
            doubtful: AtomicBool::new(false),
        })
    }

    /// The entries now.
    pub(crate) fn state(&self) -> arc_swap::Guard<Arc<CatalogState>> {
        self.state.load()
    }

    pub(crate) fn secrets(&self) -> StoreSecrets {
        self.state.load().meta.secrets.clone()
    }

    /// Finds out what came of a change whose outcome was unknown: nothing may rest on either answer before.
    pub(crate) async fn settle(&self, store: &Store) -> Result<(), Fault> {
        if !self.doubtful.load(Ordering::Acquire) {
            return Ok(());
        }
        let _turn = self.changing.lock().await;
        self.settle_in_turn(store).await
    }

    async fn settle_in_turn(&self, store: &Store) -> Result<(), Fault> {
        if !self.doubtful.load(Ordering::Acquire) {
            return Ok(());
        }
        // An empty batch behind all others: its answer says that the change is decided, and fails as long as the
        // store must be reopened.
        let view =
            store.submit(&store.lane(), Batch::default(), Durability::Sync).await.map_err(commit_fault)?;
        let mut found = CatalogState::load(&view).await?;
        found.take_over(&self.state.load());
        self.state.store(Arc::new(found));
        self.doubtful.store(false, Ordering::Release);
        Ok(())
    }

    /// Begins a change; others wait until it is committed or dropped.
    pub(crate) async fn begin<'a>(&'a self, engine: &'a Engine) -> Result<Change<'a>, Fault> {
        let turn = self.changing.lock().await;
        self.settle_in_turn(engine.store()).await?;
        let state = CatalogState::clone(&self.state.load());
        let change = state.meta.change_last + 1;
        let stamp = Stamp { change, ts: engine.ambient().now_seconds() };
        Ok(Change {
            catalog: self,
            store: engine.store(),
            state,
            batch: Batch::default(),
            stamp,
            shrinking: true,
            _turn: turn,
        })
    }
}

/// A change of the catalog in the making.
pub(crate) struct Change<'a> {
    catalog: &'a Catalog,
    store: &'a Store,
    /// The entries as the change leaves them.
    pub(crate) state: CatalogState,
    batch: Batch,
    stamp: Stamp,
    shrinking: bool,
    _turn: MutexGuard<'a, ()>,
}

impl Change<'_> {
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub(crate) fn next_database(&mut self) -> Result<DatabaseNumber, Fault> {
        let meta = &mut self.state.meta;
        meta.database_last = next(meta.database_last, u32::MAX - 1, "database numbers")?;
        Ok(DatabaseNumber(meta.database_last))
    }

    pub(crate) fn next_container(&mut self) -> Result<ContainerNumber, Fault> {
        let meta = &mut self.state.meta;
        meta.container_last = next(meta.container_last, CONTAINERS_MAX, "container numbers")?;
        Ok(ContainerNumber(meta.container_last))
    }

    pub(crate) fn put_database(&mut self, database: Arc<Database>) {
        self.shrinking = false;
        self.batch.put(CATALOG, keyspace::database_key(database.number()), rows::encode_database(&database));
        self.state.insert_database(database);
    }

    pub(crate) fn drop_database(&mut self, database: &Database) {
        self.batch.delete(CATALOG, keyspace::database_key(database.number()));
        self.drop_offer(&database.rid());
        self.state.databases.remove(&database.number());
        self.state.database_names.remove(database.id());
        self.state.container_names.remove(&database.number());
    }

    /// A new container with the heads of its partitions.
    pub(crate) fn put_new_container(&mut self, container: &Arc<Container>) {
        for entry in &container.map.entries {
            let id = PartitionId { container: container.number(), ordinal: entry.ordinal };
            new_partition_rows(id, &mut self.batch);
        }
        self.put_container(container);
    }

    pub(crate) fn put_container(&mut self, container: &Arc<Container>) {
        self.shrinking = false;
        self.batch.put(
            CATALOG,
            keyspace::container_key(container.number()),
            rows::encode_container(container),
        );
        self.state.insert_container(Arc::clone(container));
    }

    /// Takes a container out; its number stays noted until its rows are deleted.
    pub(crate) fn drop_container(&mut self, container: &Container) {
        let number = container.number();
        self.batch.delete(CATALOG, keyspace::container_key(number));
        self.batch.put(CATALOG, keyspace::dropped_key(number), Bytes::new());
        self.drop_offer(&container.rid());
        self.state.containers.remove(&number);
        if let Some(names) = self.state.container_names.get_mut(&container.database().number()) {
            names.remove(container.id());
        }
        self.state.dropped.push(Dropped { number, map: Some(Arc::clone(&container.map)) });
    }

    /// The rows of a dropped container are gone.
    pub(crate) fn forget_dropped(&mut self, number: ContainerNumber) {
        self.batch.delete(CATALOG, keyspace::dropped_key(number));
        self.state.dropped.retain(|dropped| dropped.number != number);
    }

    pub(crate) fn put_offer(&mut self, owner: OfferOwner, throughput: Throughput) -> Result<(), Fault> {
        self.shrinking = false;
        let meta = &mut self.state.meta;
        meta.offer_last = next(meta.offer_last, OFFERS_MAX, "offer numbers")?;
        let offer = Arc::new(Offer::new(OfferNumber(meta.offer_last), owner, throughput, self.stamp));
        self.batch.put(CATALOG, keyspace::offer_key(offer.number()), rows::encode_offer(&offer));
        self.state.offers.insert(offer.number(), offer);
        Ok(())
    }

    fn drop_offer(&mut self, owner: &Rid) {
        if let Some(offer) = self.state.offer_of(owner) {
            self.batch.delete(CATALOG, keyspace::offer_key(offer.number()));
            self.state.offers.remove(&offer.number());
        }
    }

    /// Makes the change durable and visible.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.state.meta.change_last = self.stamp.change;
        self.batch.put(CATALOG, keyspace::catalog_meta_key(), rows::encode_meta(&self.state.meta));
        if self.shrinking {
            self.batch.mark_shrinking();
        }
        // Also for a caller who goes away while the batch is under way.
        let mut doubt = Doubt { catalog: self.catalog, is_open: true };
        let committed = self.store.submit(&self.store.lane(), self.batch, Durability::Sync).await;
        doubt.is_open = matches!(committed, Err(CommitFault::Uncertain { .. }));
        committed.map_err(commit_fault)?;
        self.state.retire_dropped();
        self.catalog.state.store(Arc::new(self.state));
        Ok(())
    }
}

/// Notes that the catalog is in doubt, unless the question was answered before.
struct Doubt<'a> {
    catalog: &'a Catalog,
    is_open: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.catalog.doubtful.store(true, Ordering::Release);
        }
    }
}

fn next(last: u32, max: u32, what: &'static str) -> Result<u32, Fault> {
    if last < max { Ok(last + 1) } else { Err(LimitFault::Exhausted { what }.into()) }
}

impl CatalogState {
    pub(crate) fn find_database(&self, segment: &str) -> Option<Addressed<Arc<Database>>> {
        if let Some(database) = self.find_database_by_name(segment) {
            return Some(Addressed { resource: database, by_rid: false });
        }
        match Rid::parse(segment)? {
            Rid::Database(number) => Some(Addressed { resource: self.database(number)?, by_rid: true }),
            Rid::Container(..) | Rid::Document(..) | Rid::Range(..) | Rid::Offer(_) => None,
        }
    }

    pub(crate) fn find_database_by_name(&self, name: &str) -> Option<Arc<Database>> {
        self.database(*self.database_names.get(name)?)
    }

    pub(crate) fn find_container(
        &self,
        database: &Database,
        segment: &str,
    ) -> Option<Addressed<Arc<Container>>> {
        if let Some(container) = self.find_container_by_name(database, segment) {
            return Some(Addressed { resource: container, by_rid: false });
        }
        match Rid::parse(segment)? {
            Rid::Container(of, number) if of == database.number() => {
                let resource =
                    self.container(number).filter(|container| container.database().number() == of)?;
                Some(Addressed { resource, by_rid: true })
            }
            Rid::Container(..) | Rid::Database(_) | Rid::Document(..) | Rid::Range(..) | Rid::Offer(_) => {
                None
            }
        }
    }

    pub(crate) fn find_container_by_name(&self, database: &Database, name: &str) -> Option<Arc<Container>> {
        self.container(*self.container_names.get(&database.number())?.get(name)?)
    }

    pub(crate) fn find_offer(&self, rid: &str) -> Option<Arc<Offer>> {
        match Rid::parse(rid)? {
            Rid::Offer(number) => self.offers.get(&number).cloned(),
            Rid::Container(..) | Rid::Database(_) | Rid::Document(..) | Rid::Range(..) => None,
        }
    }

    pub(crate) fn database(&self, number: DatabaseNumber) -> Option<Arc<Database>> {
        self.databases.get(&number).cloned()
    }

    pub(crate) fn container(&self, number: ContainerNumber) -> Option<Arc<Container>> {
        self.containers.get(&number).cloned()
    }

    pub(crate) fn databases(&self) -> Vec<Arc<Database>> {
        self.databases.values().cloned().collect()
    }

    pub(crate) fn containers(&self) -> impl Iterator<Item = &Arc<Container>> {
        self.containers.values()
    }

    pub(crate) fn containers_of(&self, database: &Database) -> Vec<Arc<Container>> {
        let of = |container: &&Arc<Container>| container.database().number() == database.number();
        self.containers.values().filter(of).cloned().collect()
    }

    pub(crate) fn offers(&self) -> Vec<Arc<Offer>> {
        self.offers.values().cloned().collect()
    }

    pub(crate) fn offer_of(&self, owner: &Rid) -> Option<Arc<Offer>> {
        self.offers.values().find(|offer| offer.owner().rid == *owner).cloned()
    }

    pub(crate) fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Makes a state that was read from the store go on with the partitions of the one before: a partition must
    /// never have two writers.
    fn take_over(&mut self, before: &CatalogState) {
        for container in self.containers.values_mut() {
            if let Some(old) = before.containers.get(&container.number()) {
                *container = Arc::new(container.with_partitions_of(old));
                container.adopt_shape();
            }
        }
        for dropped in &mut self.dropped {
            let still_known = before.dropped.iter().find(|old| old.number == dropped.number);
            let known = before.containers.get(&dropped.number);
            dropped.map = known
                .map(|container| Arc::clone(&container.map))
                .or_else(|| still_known.and_then(|old| old.map.clone()));
        }
        self.retire_dropped();
    }

    /// Ends the use of the partitions of dropped containers.
    fn retire_dropped(&self) {
        for map in self.dropped.iter().filter_map(|dropped| dropped.map.as_ref()) {
            map.retire();
        }
    }

    fn insert_database(&mut self, database: Arc<Database>) {
        self.database_names.insert(database.id().to_owned(), database.number());
        self.databases.insert(database.number(), database);
    }

    fn insert_container(&mut self, container: Arc<Container>) {
        let names = self.container_names.entry(container.database().number()).or_default();
        names.insert(container.id().to_owned(), container.number());
        self.containers.insert(container.number(), container);
    }

    async fn load(view: &View) -> Result<CatalogState, Fault> {
        let mut state = CatalogState::default();
        if let Some(row) = view.get(CATALOG, &keyspace::catalog_meta_key()).await.map_err(read_fault)? {
            state.meta = rows::decode_meta(&row)?;
        }
        for (number, row) in load_rows(view, keyspace::database_range()).await? {
            state.insert_database(Arc::new(rows::decode_database(DatabaseNumber(number), &row)?));
        }
        for (number, row) in load_rows(view, keyspace::container_range()).await? {
            let container =
                rows::decode_container(ContainerNumber(number), &row, |number| state.database(number))?;
            state.insert_container(Arc::new(container));
        }
        for (number, row) in load_rows(view, keyspace::offer_range()).await? {
            let offer = rows::decode_offer(OfferNumber(number), &row)?;
            state.offers.insert(offer.number(), Arc::new(offer));
        }
        for (number, _) in load_rows(view, keyspace::dropped_range()).await? {
            state.dropped.push(Dropped { number: ContainerNumber(number), map: None });
        }
        Ok(state)
    }
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
