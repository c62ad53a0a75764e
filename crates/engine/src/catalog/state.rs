//! The catalog's state at one moment, how it is loaded, and how changes are serialised.

use super::annotations::AnnotationDefinition;
use super::change::Change;
use super::entries::{Addressed, CatalogStamp, Container, Database, Offer};
use super::partition_map::CurrentMap;
use super::permissions::Permission;
use super::rows::{self, MetaRow, StoreSecrets};
use super::shelf::{DefinitionCode, Shelf};
use crate::authorisation::Grant;
use crate::engine::{Engine, ThroughputMode};
use arc_swap::ArcSwap;
use kv::{Batch, Durability, Store};
use model::{
    ClientEncryptionKeyDefinition, ContainerNumber, DatabaseNumber, Fault, Lsn, OfferNumber, ResourceNumber,
    Rid, ScriptDefinition, ScriptKind,
};
use partition::index::ComputedReader;
use partition::keyspace::{self, CATALOG, EntryKind};
use partition::{commit_fault, read_fault};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;

/// Numbers by name. Every request looks up two names, and only callers who may create resources choose them, so a fast
/// hash is sufficient.
type Names<N> = HashMap<String, N, foldhash::fast::RandomState>;

/// All entries at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogState {
    pub(super) meta: MetaRow,
    pub(super) databases: BTreeMap<DatabaseNumber, Arc<Database>>,
    pub(super) database_names: Names<DatabaseNumber>,
    pub(super) containers: BTreeMap<ContainerNumber, Arc<Container>>,
    pub(super) container_names: BTreeMap<DatabaseNumber, Names<ContainerNumber>>,
    pub(super) offers: BTreeMap<OfferNumber, Arc<Offer>>,
    pub(super) shelves: Shelves,
    pub(super) dropped: Vec<Dropped>,
}

/// The small resources. Shared between states, so that a change copies only the shelf it changes.
#[derive(Clone, Debug)]
pub(crate) struct Shelves {
    pub(super) users: Arc<Shelf<()>>,
    pub(super) permissions: Arc<Shelf<Grant>>,
    pub(super) procedures: Arc<Shelf<ScriptDefinition>>,
    pub(super) triggers: Arc<Shelf<ScriptDefinition>>,
    pub(super) functions: Arc<Shelf<ScriptDefinition>>,
    pub(super) encryption_keys: Arc<Shelf<ClientEncryptionKeyDefinition>>,
    pub(super) annotations: Arc<Shelf<AnnotationDefinition>>,
}

impl Default for Shelves {
    fn default() -> Shelves {
        let script = |name| DefinitionCode {
            name,
            encode: ScriptDefinition::encode,
            decode: ScriptDefinition::decode,
        };
        let user = DefinitionCode { name: "user", encode: |(), _| {}, decode: |_| Ok(()) };
        let permission = DefinitionCode { name: "permission", encode: Grant::encode, decode: Grant::decode };
        let encryption_key = DefinitionCode {
            name: "client encryption key",
            encode: ClientEncryptionKeyDefinition::encode,
            decode: ClientEncryptionKeyDefinition::decode,
        };
        let annotation = DefinitionCode {
            name: "annotation",
            encode: AnnotationDefinition::encode,
            decode: AnnotationDefinition::decode,
        };
        let procedure = Shelf::new(EntryKind::StoredProcedure, script("stored procedure"));
        let function = Shelf::new(EntryKind::UserDefinedFunction, script("user-defined function"));
        Shelves {
            users: Arc::new(Shelf::new(EntryKind::User, user)),
            permissions: Arc::new(Shelf::new(EntryKind::Permission, permission)),
            procedures: Arc::new(procedure),
            triggers: Arc::new(Shelf::new(EntryKind::Trigger, script("trigger"))),
            functions: Arc::new(function),
            encryption_keys: Arc::new(Shelf::new(EntryKind::ClientEncryptionKey, encryption_key)),
            annotations: Arc::new(Shelf::new(EntryKind::Annotation, annotation)),
        }
    }
}

impl Shelves {
    pub(super) fn scripts(&self, kind: ScriptKind) -> &Shelf<ScriptDefinition> {
        match kind {
            ScriptKind::StoredProcedure => &self.procedures,
            ScriptKind::Trigger => &self.triggers,
            ScriptKind::UserDefinedFunction => &self.functions,
        }
    }
}

/// A container whose rows are still to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Dropped {
    pub(crate) number: ContainerNumber,
    /// Its partitions, if it was in use since the start: their writers must have ended before the rows are deleted.
    pub(crate) map: Option<Arc<CurrentMap>>,
    /// Whether the floor of LSNs is above all of its LSNs.
    pub(crate) is_below_floor: bool,
}

/// The catalog of a store.
#[derive(Debug)]
pub(crate) struct Catalog {
    state: ArcSwap<CatalogState>,
    changing: Mutex<()>,
    /// A change has failed and it is unknown whether it is in the store.
    doubtful: AtomicBool,
    computed_reader: ComputedReader,
    throughput: ThroughputMode,
}

impl Catalog {
    /// Reads the catalog; generates the secrets of a new store.
    pub(crate) async fn open(
        store: &Store,
        computed_reader: ComputedReader,
        throughput: ThroughputMode,
        fill_random: impl Fn(&mut [u8]),
    ) -> Result<Catalog, Fault> {
        let view = store.view().await.map_err(read_fault)?;
        let mut state = CatalogState::load(&view, computed_reader).await?;
        if state.meta.secrets.fill(fill_random) {
            let mut batch = Batch::default();
            batch.put(CATALOG, keyspace::catalog_meta_key(), rows::encode_meta(&state.meta));
            store.submit(&store.lane(), batch, Durability::Sync).await.map_err(commit_fault)?;
        }
        let catalog = Catalog {
            state: ArcSwap::default(),
            changing: Mutex::new(()),
            doubtful: AtomicBool::new(false),
            computed_reader,
            throughput,
        };
        catalog.show(state);
        Ok(catalog)
    }

    /// Makes a state visible.
    fn show(&self, state: CatalogState) {
        state.assign_rates(self.throughput);
        self.state.store(Arc::new(state));
    }

    /// The current entries.
    pub(crate) fn state(&self) -> arc_swap::Guard<Arc<CatalogState>> {
        self.state.load()
    }

    pub(crate) fn permission(&self, number: ResourceNumber) -> Option<Arc<Permission>> {
        self.state.load().shelves.permissions.get(number).cloned()
    }

    pub(crate) fn secrets(&self) -> StoreSecrets {
        self.state.load().meta.secrets.clone()
    }

    /// Resolves a change whose outcome is unknown: nothing may depend on either outcome before.
    pub(crate) async fn resolve_unknown_change(&self, store: &Store) -> Result<(), Fault> {
        if !self.doubtful.load(Ordering::Acquire) {
            return Ok(());
        }
        Box::pin(self.await_change(store)).await
    }

    /// Waits until the change in progress is visible, if there is one: the store may have it already.
    pub(crate) async fn await_change(&self, store: &Store) -> Result<(), Fault> {
        let _turn = self.changing.lock().await;
        self.resolve_in_turn(store).await
    }

    async fn resolve_in_turn(&self, store: &Store) -> Result<(), Fault> {
        if !self.doubtful.load(Ordering::Acquire) {
            return Ok(());
        }
        // An empty batch after all others: its result means that the change is decided, and it fails as long as the
        // store must be reopened.
        let view =
            store.submit(&store.lane(), Batch::default(), Durability::Sync).await.map_err(commit_fault)?;
        let mut found = CatalogState::load(&view, self.computed_reader).await?;
        found.take_over(&self.state.load());
        self.show(found);
        self.doubtful.store(false, Ordering::Release);
        Ok(())
    }

    /// Starts a change; others wait until it is committed or dropped.
    pub(crate) async fn begin<'a>(&'a self, engine: &'a Engine) -> Result<Change<'a>, Fault> {
        let turn = self.changing.lock().await;
        self.resolve_in_turn(engine.store()).await?;
        let state = CatalogState::clone(&self.state.load());
        let change = state.meta.change_last + 1;
        let stamp = CatalogStamp { change, ts: engine.ambient().now_seconds() };
        Ok(Change::new(self, engine.store(), state, stamp, turn))
    }

    /// Makes the result of a change visible.
    pub(super) fn publish(&self, state: CatalogState) {
        state.retire_dropped();
        self.show(state);
    }

    /// Whether the outcome of a change is unknown.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    /// Records that a change has failed and that it is unknown whether it is in the store.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }
}

impl CatalogState {
    pub(crate) fn find_database(&self, segment: &str) -> Option<Addressed<&Arc<Database>>> {
        if let Some(database) = self.find_database_by_name(segment) {
            return Some(Addressed { resource: database, by_rid: false });
        }
        let Rid::Database(number) = Rid::parse(segment)? else { return None };
        Some(Addressed { resource: self.databases.get(&number)?, by_rid: true })
    }

    pub(crate) fn find_database_by_name(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(self.database_names.get(name)?)
    }

    pub(crate) fn find_container(
        &self,
        database: &Database,
        segment: &str,
    ) -> Option<Addressed<Arc<Container>>> {
        if let Some(container) = self.find_container_by_name(database, segment) {
            return Some(Addressed { resource: container, by_rid: false });
        }
        let rid = Rid::parse(segment)?;
        let Rid::Container(_, number) = rid else { return None };
        let of_database = rid.parent() == Some(database.rid());
        let resource = self.container(number).filter(|container| of_database && container.rid() == rid)?;
        Some(Addressed { resource, by_rid: true })
    }

    pub(crate) fn find_container_by_name(&self, database: &Database, name: &str) -> Option<Arc<Container>> {
        self.container(*self.container_names.get(&database.number())?.get(name)?)
    }

    pub(crate) fn find_offer(&self, rid: &str) -> Option<Arc<Offer>> {
        let Rid::Offer(number) = Rid::parse(rid)? else { return None };
        self.offers.get(&number).cloned()
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

    /// No partition of a dropped container has assigned a higher LSN, once another was created.
    pub(crate) fn floor(&self) -> Lsn {
        Lsn(self.meta.floor)
    }

    pub(crate) fn offer(&self, number: OfferNumber) -> Option<Arc<Offer>> {
        self.offers.get(&number).cloned()
    }

    pub(crate) fn offer_of(&self, owner: &Rid) -> Option<Arc<Offer>> {
        self.offers.values().find(|offer| offer.owner().rid == *owner).cloned()
    }

    pub(crate) fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Makes a state that was read from the store use the partitions of the previous one: a partition must never have
    /// two writers.
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

    pub(super) fn insert_database(&mut self, database: Arc<Database>) {
        self.database_names.insert(database.id().to_owned(), database.number());
        self.databases.insert(database.number(), database);
    }

    pub(super) fn insert_container(&mut self, container: Arc<Container>) {
        let names = self.container_names.entry(container.database().number()).or_default();
        names.insert(container.id().to_owned(), container.number());
        self.containers.insert(container.number(), container);
    }
}
