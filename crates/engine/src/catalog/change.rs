//! A change of the catalog: a copy of the state is changed, its rows are committed, then it replaces the old state.

use super::CONTAINERS_MAX;
use super::entries::{CatalogStamp, Container, Database, Offer, OfferOwner};
use super::partition_map::{PartitionMap, PlannedSplit};
use super::rows;
use super::shelf::{Entry, Shelf};
use super::state::{Catalog, CatalogState, Dropped, Shelves};
use crate::slot::PartitionSlot;
use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, Store};
use model::{
    ContainerNumber, DatabaseNumber, Fault, LimitFault, OfferNumber, ResourceNumber, Rid, ScriptDefinition,
    ScriptKind, Throughput,
};
use partition::keyspace::{self, CATALOG, PartitionId};
use partition::{
    SealedPartition, commit_fault, delete_owner_row, highest_assigned, new_partition_rows, read_fault,
};
use std::sync::Arc;
use tokio::sync::MutexGuard;

/// Maximum number of offers: their number has 24 bits.
pub(super) const OFFERS_MAX: u32 = (1 << 24) - 1;

/// A change of the catalog in progress.
pub(crate) struct Change<'a> {
    catalog: &'a Catalog,
    store: &'a Store,
    /// The entries after the change.
    pub(crate) state: CatalogState,
    batch: Batch,
    /// Containers with a new definition.
    defined: Vec<Arc<Container>>,
    /// Containers with a new map of their partitions.
    mapped: Vec<(Arc<Container>, Arc<PartitionMap>)>,
    stamp: CatalogStamp,
    shrinking: bool,
    _turn: MutexGuard<'a, ()>,
}

/// Selects the entries of one kind in a state.
pub(super) type ShelfOf<D> = fn(&mut Shelves) -> &mut Arc<Shelf<D>>;

impl<'a> Change<'a> {
    pub(super) fn new(
        catalog: &'a Catalog,
        store: &'a Store,
        state: CatalogState,
        stamp: CatalogStamp,
        turn: MutexGuard<'a, ()>,
    ) -> Change<'a> {
        Change {
            catalog,
            store,
            state,
            batch: Batch::default(),
            defined: Vec::new(),
            mapped: Vec::new(),
            stamp,
            shrinking: true,
            _turn: turn,
        }
    }

    pub(crate) fn stamp(&self) -> CatalogStamp {
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
        for user in self.state.shelves.users.children(database.rid()) {
            self.drop_user(&user);
        }
        self.drop_entries(|shelves| &mut shelves.encryption_keys, database.rid());
        self.drop_entries(|shelves| &mut shelves.annotations, database.rid());
        self.state.databases.remove(&database.number());
        self.state.database_names.remove(database.id());
        self.state.container_names.remove(&database.number());
    }

    /// Raises the floor of LSNs above those of all dropped containers whose rows still exist. Nobody writes these any
    /// more, so their heads are final.
    pub(crate) async fn raise_floor(&mut self) -> Result<(), Fault> {
        let CatalogState { dropped, meta, .. } = &mut self.state;
        if dropped.iter().all(|dropped| dropped.is_below_floor) {
            return Ok(());
        }
        let view = self.store.view().await.map_err(read_fault)?;
        // Each one only once: otherwise every new container would read the heads of all dropped ones.
        for dropped in dropped.iter_mut().filter(|dropped| !dropped.is_below_floor) {
            meta.floor = meta.floor.max(highest_assigned(&view, dropped.number).await?);
            dropped.is_below_floor = true;
        }
        Ok(())
    }

    /// A new container with the heads of its partitions.
    pub(crate) async fn put_new_container(&mut self, container: &Arc<Container>) -> Result<(), Fault> {
        self.raise_floor().await?;
        for entry in &container.map.load().entries {
            let id = PartitionId { container: container.number(), ordinal: entry.ordinal };
            new_partition_rows(id, self.state.meta.floor, &mut self.batch);
        }
        self.put_container(container);
        Ok(())
    }

    pub(crate) fn put_container(&mut self, container: &Arc<Container>) {
        self.shrinking = false;
        self.batch.put(
            CATALOG,
            keyspace::container_key(container.number()),
            rows::encode_container(container, &container.map.load()),
        );
        self.state.insert_container(Arc::clone(container));
        self.defined.push(Arc::clone(container));
    }

    /// Changes the map of a container's partitions.
    pub(crate) fn put_map(&mut self, container: &Arc<Container>, map: PartitionMap) {
        let row = rows::encode_container(container, &map);
        self.batch.put(CATALOG, keyspace::container_key(container.number()), row);
        self.mapped.push((Arc::clone(container), Arc::new(map)));
    }

    /// Replaces a sealed partition by two others, in the rows of the partitions and in the map of the container. Returns
    /// the new partitions.
    pub(crate) fn put_split(
        &mut self,
        container: &Arc<Container>,
        planned: &PlannedSplit,
        sealed: &SealedPartition,
    ) -> Result<[Arc<PartitionSlot>; 2], Fault> {
        let (map, children) =
            container.map.load().split(planned, self.stamp, self.state.meta.ordinal_floor)?;
        let number = container.number();
        let ids = [&children[0], &children[1]]
            .map(|child| PartitionId { container: number, ordinal: child.ordinal });
        sealed.add_to(ids, &mut self.batch);
        container.map.expect(&children);
        self.shrinking = false;
        self.put_map(container, map);
        Ok(children)
    }

    /// Removes a container; its number is kept until its rows are deleted.
    pub(crate) fn drop_container(&mut self, container: &Container) {
        let number = container.number();
        self.batch.delete(CATALOG, keyspace::container_key(number));
        self.batch.put(CATALOG, keyspace::dropped_key(number), Bytes::new());
        // After this batch nobody writes its partitions, not even writers that have them open or are opening them.
        #[cfg(feature = "planted-faults")]
        let is_missed = partition::planted::is_planted(partition::planted::PlantedFault::OpeningIsMissed);
        #[cfg(not(feature = "planted-faults"))]
        let is_missed = false;
        for entry in container.map.load().entries.iter().filter(|_| !is_missed) {
            delete_owner_row(PartitionId { container: number, ordinal: entry.ordinal }, &mut self.batch);
        }
        self.drop_offer(&container.rid());
        for kind in ScriptKind::ALL {
            self.drop_entries(script_shelf(kind), container.rid());
        }
        self.drop_annotations(container);
        self.state.containers.remove(&number);
        if let Some(names) = self.state.container_names.get_mut(&container.database().number()) {
            names.remove(container.id());
        }
        self.state.dropped.push(Dropped {
            number,
            map: Some(Arc::clone(&container.map)),
            is_below_floor: false,
        });
    }

    /// Removes a dropped container after its rows were deleted.
    pub(crate) fn forget_dropped(&mut self, number: ContainerNumber) {
        self.batch.delete(CATALOG, keyspace::dropped_key(number));
        self.state.dropped.retain(|dropped| dropped.number != number);
    }

    pub(crate) fn put_offer(&mut self, owner: OfferOwner, throughput: Throughput) -> Result<(), Fault> {
        let meta = &mut self.state.meta;
        meta.offer_last = next(meta.offer_last, OFFERS_MAX, "offer numbers")?;
        let number = OfferNumber(meta.offer_last);
        self.write_offer(Offer::new(number, owner, throughput, self.stamp));
        Ok(())
    }

    /// Replaces an offer by one with another rate.
    pub(super) fn replace_offer(&mut self, old: &Offer, throughput: Throughput) -> Arc<Offer> {
        let offer = Offer::new(old.number(), old.owner().clone(), throughput, self.stamp);
        self.write_offer(offer.with_highest(old.highest()))
    }

    fn write_offer(&mut self, offer: Offer) -> Arc<Offer> {
        self.shrinking = false;
        self.batch.put(CATALOG, keyspace::offer_key(offer.number()), rows::encode_offer(&offer));
        let offer = Arc::new(offer);
        self.state.offers.insert(offer.number(), Arc::clone(&offer));
        offer
    }

    fn drop_offer(&mut self, owner: &Rid) {
        if let Some(offer) = self.state.offer_of(owner) {
            self.batch.delete(CATALOG, keyspace::offer_key(offer.number()));
            self.state.offers.remove(&offer.number());
        }
    }

    /// Adds a small resource.
    pub(super) fn add_entry<D: Clone>(
        &mut self,
        shelf: ShelfOf<D>,
        rid: impl FnOnce(ResourceNumber) -> Rid,
        id: &str,
        definition: D,
    ) -> Result<Arc<Entry<D>>, Fault> {
        let meta = &mut self.state.meta;
        meta.resource_last = next(meta.resource_last, ResourceNumber::MAX.0, "resource numbers")?;
        let number = ResourceNumber(meta.resource_last);
        let entry = Entry::new(number, rid(number), id.to_owned(), definition, self.stamp);
        Ok(self.put_entry(shelf, entry))
    }

    /// Replaces a small resource by one with another name or definition.
    pub(super) fn replace_entry<D: Clone>(
        &mut self,
        shelf: ShelfOf<D>,
        old: &Entry<D>,
        id: &str,
        definition: D,
    ) -> Arc<Entry<D>> {
        let entry = Entry::new(old.number(), old.rid(), id.to_owned(), definition, self.stamp);
        self.put_entry(shelf, entry)
    }

    fn put_entry<D: Clone>(&mut self, shelf: ShelfOf<D>, entry: Entry<D>) -> Arc<Entry<D>> {
        self.shrinking = false;
        let shelf = Arc::make_mut(shelf(&mut self.state.shelves));
        let key = keyspace::entry_key(shelf.kind(), entry.number());
        self.batch.put(CATALOG, key, rows::encode_entry(&entry, shelf.code()));
        let entry = Arc::new(entry);
        shelf.insert(Arc::clone(&entry));
        entry
    }

    pub(super) fn drop_entry<D: Clone>(&mut self, shelf: ShelfOf<D>, entry: &Entry<D>) {
        let shelf = Arc::make_mut(shelf(&mut self.state.shelves));
        self.batch.delete(CATALOG, keyspace::entry_key(shelf.kind(), entry.number()));
        shelf.remove(entry.number());
    }

    /// Removes a user with all permissions.
    pub(super) fn drop_user(&mut self, user: &Entry<()>) {
        self.drop_entries(|shelves| &mut shelves.permissions, user.rid());
        self.drop_entry(|shelves| &mut shelves.users, user);
    }

    fn drop_entries<D: Clone>(&mut self, shelf: ShelfOf<D>, parent: Rid) {
        for entry in shelf(&mut self.state.shelves).children(parent) {
            self.drop_entry(shelf, &entry);
        }
    }

    /// Makes the change durable and visible.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.state.meta.change_last = self.stamp.change;
        self.batch.put(CATALOG, keyspace::catalog_meta_key(), rows::encode_meta(&self.state.meta));
        if self.shrinking {
            self.batch.mark_shrinking();
        }
        // Also covers a caller that goes away while the batch is being committed.
        let mut doubt = Doubt { catalog: self.catalog, is_open: true };
        let committed = self.store.submit(&self.store.lane(), self.batch, Durability::Sync).await;
        doubt.is_open = matches!(committed, Err(CommitFault::Uncertain { .. }));
        committed.map_err(commit_fault)?;
        // Before it is visible: callers that find a definition in the catalog may rely on the partitions using it.
        self.defined.iter().for_each(|container| container.adopt_shape());
        self.mapped.into_iter().for_each(|(container, map)| container.map.replace(map));
        self.catalog.publish(self.state);
        Ok(())
    }
}

/// Marks the outcome of a change as unknown when dropped, unless it became known before.
struct Doubt<'a> {
    catalog: &'a Catalog,
    is_open: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.catalog.doubt();
        }
    }
}

/// Selects the scripts of a kind.
pub(super) fn script_shelf(kind: ScriptKind) -> ShelfOf<ScriptDefinition> {
    match kind {
        ScriptKind::StoredProcedure => |shelves| &mut shelves.procedures,
        ScriptKind::Trigger => |shelves| &mut shelves.triggers,
        ScriptKind::UserDefinedFunction => |shelves| &mut shelves.functions,
    }
}

fn next(last: u32, max: u32, what: &'static str) -> Result<u32, Fault> {
    if last < max { Ok(last + 1) } else { Err(LimitFault::Exhausted { what }.into()) }
}
