//! The simulated world: a store that survives crashes, an engine on it, and clients that call it.
//!
//! The product gets a new runtime after each crash, so that a crash ends every task like the end of a process. Runs
//! calls and reads state; other files check them.

use crate::ambient::SeededAmbient;
use crate::change_readers::ChangeReaders;
use crate::clients::{Clients, Lane, Record, stored_of};
use crate::history::Stored;
use crate::hooks::Hooks;
use crate::life::{Life, REOPEN_CHECK_INTERVAL, answered_within};
use crate::naive::{Body, DefaultTtl};
use crate::policies::{computed_of, history_of, policy_of};
use crate::random::Random;
use crate::scenario::{KEYS, Scenario, Trouble};
use bytes::Bytes;
use engine::{
    Account, AccountKey, Action, Container, Engine, EngineOptions, PartitionBounds, Principal,
    StoredContainer,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{
    Batch, CommitFault, CommitMode, Direction, Durability, FaultScript, Health, InjectedFault, ScanLimit,
    StorageCall, Store, Survivors,
};
use model::{
    ContainerDraft, Fault, KeyComponent, PartitionKey, PartitionKeyDefinition, PartitionKeyKind,
    RequestFault, UniqueKey,
};
use partition::index::IndexOptions;
use partition::keyspace::{self, CATALOG, META, PartitionId, RECORDS, SPACES};
use partition::{AuditReport, AuditScope, ContainerShape, ExpiryRule, PartitionSpec};
use plan::Condition;
use serde_json::Value as Json;
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use value::Value;

const ACCOUNT_KEY: &[u8] = b"key of the simulation";
/// Small limits, so that a few documents already become runs, and runs are merged.
const SMALL_INDEX: IndexOptions = IndexOptions {
    inline_documents_max: 12,
    flush_documents: 16,
    flush_bytes: 1 << 20,
    run_fan_in: 2,
    memory_bytes_max: 64 << 10,
    cache_bytes: 64 << 10,
};
/// A short idle time, so that partitions are closed while all is quiet, and opened again.
const SHORT_LIVED: PartitionBounds = PartitionBounds { idle_seconds: 30, open_max: 64 };
/// Interval between checks whether the power has failed.
const POWER_CHECK_MS: u64 = 200;
/// Name of the only container.
const CONTAINER: &str = "c";
pub(crate) const DATABASE: &str = "d";

/// The store, the engine and the clients of one simulation.
pub struct World {
    /// The planned storage faults.
    pub script: FaultScript,
    /// Time and randomness.
    pub ambient: Arc<SeededAmbient>,
    /// The store, which survives crashes.
    pub store: Store,
    /// The container in use.
    pub container: Arc<Container>,
    /// The partitions of the container.
    pub specs: Vec<PartitionSpec>,
    engine: Arc<Engine>,
    principal: Principal,
    durability: Durability,
    hooks: Option<Hooks>,
    /// Number of failed storage calls when the product was last healthy.
    faults_before: u64,
    /// Whether a writer was made to panic since then.
    panics: bool,
    /// Whether the store was made to refuse a transaction since then.
    spoils: bool,
    life: Option<Life>,
}

/// All documents by index of their partition key and id.
pub type Found = Vec<BTreeMap<String, Stored>>;

/// Result of a drop.
type Dropped = Result<(), Fault>;

/// The description of a violation.
pub type CheckFailure = String;

impl World {
    /// A new store with an engine and an empty container on it.
    pub fn new(
        scenario: &Scenario,
        durability: Durability,
        hooks: Option<Hooks>,
    ) -> Result<World, CheckFailure> {
        // Removes faults of the previous scenario.
        hooks.iter().for_each(|hooks| hooks.reset());
        let script = FaultScript::seeded(scenario.seed);
        let ambient = Arc::new(SeededAmbient::seeded(scenario.seed));
        let store = Store::faulty(Store::memory(&SPACES, CommitMode::Stepped), script.clone());
        let life = Life::new(Arc::new(Mutex::new(Random::seeded(scenario.seed))))?;
        let (engine, principal) = open(&life, &store, durability, &ambient)?;
        let created = life.run(&store, async {
            let pass = engine.access().change_catalog(&principal, Account)?;
            engine.create_database(pass, DATABASE, None).await?;
            create_container(&engine, &principal, scenario).await
        })?;
        let container = created.map_err(|fault| format!("the container could not be created: {fault}"))?;
        let mut world = World {
            script,
            ambient,
            store,
            specs: Vec::new(),
            container,
            engine,
            principal,
            durability,
            hooks,
            faults_before: 0,
            panics: false,
            spoils: false,
            life: Some(life),
        };
        world.adopt(Arc::clone(&world.container))?;
        Ok(world)
    }

    /// Simulates a power failure and prepares the next start. [`World::revive`] opens the engine, so that the store can
    /// be inspected before.
    pub fn crash(&mut self, survivors: Survivors) -> Result<(), CheckFailure> {
        self.remove_faults();
        let store = self.script.crash(survivors);
        self.store = store.ok_or("the script has no store")?;
        // Dropped after the crash: nothing that an ending task still does may reach the disk.
        let pace = self.life.take().map(|life| Arc::clone(&life.pace));
        self.life = Some(Life::new(pace.ok_or("no life")?)?);
        Ok(())
    }

    /// Opens the engine on the store; the container must be the expected one, if there is one.
    pub(crate) fn revive(&mut self) -> Result<(), CheckFailure> {
        let life = self.life.as_ref().ok_or("no life")?;
        let (engine, principal) = open(life, &self.store, self.durability, &self.ambient)?;
        self.engine = engine;
        self.principal = principal;
        Ok(())
    }

    /// Closes the engine cleanly.
    pub fn close(&mut self) -> Result<(), CheckFailure> {
        let engine = Arc::clone(&self.engine);
        let closed = self.run(async move { engine.close().await })?;
        closed.map_err(|fault| format!("the engine could not be closed: {fault}"))
    }

    /// Takes a container as the one in use.
    pub fn adopt(&mut self, container: Arc<Container>) -> Result<(), CheckFailure> {
        let pass = self.engine.access().read_catalog(&self.principal, &*container);
        let pass = pass.map_err(|fault| fault.to_string())?;
        let spec = |range: engine::PartitionRange| PartitionSpec {
            id: PartitionId { container: container.number(), ordinal: range.ordinal },
            range: range.range,
            ancestors: Vec::new(),
        };
        let ranges = self.engine.ranges(&pass).ranges;
        self.specs = ranges.into_iter().map(spec).collect();
        self.adopt_definition(container);
        Ok(())
    }

    /// Takes another definition of the container in use.
    pub fn adopt_definition(&mut self, container: Arc<Container>) {
        self.container = container;
    }

    /// The current container as the engine returns it.
    pub fn find_container(&self) -> Result<Arc<Container>, Fault> {
        let action = Action::ReadMetadata;
        let found = self.engine.find_container(&self.principal, action, DATABASE, CONTAINER);
        found.map(|found| found.resource)
    }

    /// Creates the container.
    pub fn create_container(
        &self,
        scenario: &Scenario,
    ) -> Result<Result<Arc<Container>, Fault>, CheckFailure> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let scenario = scenario.clone();
        self.run(async move { create_container(&engine, &principal, &scenario).await })
    }

    /// Drops the container while the lanes use it; with a `crash_after`, answers are awaited for that many turns only.
    pub fn drop_container(
        &self,
        lanes: Vec<Lane>,
        crash_after: Option<u64>,
    ) -> Result<(Option<Dropped>, Vec<Record>), CheckFailure> {
        let desk = self.desk();
        let at_work = Arc::clone(&desk);
        let dropped = self.run(answered_within(crash_after, async move {
            let drop = Arc::clone(&at_work);
            let drop = tokio::spawn(async move {
                tokio::task::yield_now().await;
                let pass = drop.engine.access().change_catalog(&drop.principal, &*drop.container)?;
                drop.engine.delete_container(pass, &Condition::None).await
            });
            at_work.play(lanes).await?;
            drop.await.map_err(|panic| format!("a drop panicked: {panic}"))
        }))??;
        let records = desk.records().clone();
        Ok((dropped.transpose()?, records))
    }

    /// Whether the store was made to refuse a transaction.
    pub(crate) fn spoils(&self) -> bool {
        self.spoils
    }

    pub(crate) fn desk(&self) -> Arc<Clients> {
        Arc::new(Clients::new(Arc::clone(&self.engine), self.principal.clone(), Arc::clone(&self.container)))
    }

    /// Changes the container's definition; with a `crash_after`, the answer is awaited for that many turns only.
    pub(crate) fn replace_definition(
        &self,
        default_ttl: Option<DefaultTtl>,
        policy: usize,
        crash_after: Option<u64>,
    ) -> Result<Option<Result<Arc<Container>, Fault>>, CheckFailure> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        let mut wanted = container.definition().draft();
        if let Some(default_ttl) = default_ttl {
            wanted.default_ttl = defined_ttl(default_ttl);
            wanted.policies.change_feed = history_of(default_ttl);
        }
        wanted.policies.indexing = policy_of(policy).map_err(|fault| fault.to_string())?;
        wanted.policies.computed = computed_of(policy);
        self.run(answered_within(crash_after, async move {
            let pass = engine.access().change_catalog(&principal, &*container)?;
            engine.replace_container(pass, wanted.into(), &Condition::None).await
        }))?
    }

    /// Deletes all documents of a partition key.
    pub fn empty(&self, key: usize) -> Result<Result<(), Fault>, CheckFailure> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        self.run(async move {
            let key = partition_key(&container, key);
            let pass = engine.access().delete_logical_partition(&principal, &container, key)?;
            engine.delete_logical_partition(pass).await.map(drop)
        })
    }

    /// Lets timers run.
    pub fn rest(&self, milliseconds: u64) -> Result<(), CheckFailure> {
        self.run(async move { tokio::time::sleep(Duration::from_millis(milliseconds)).await })
    }

    /// Lets timers run, until the power fails after some storage calls.
    pub(crate) fn rest_until_power_fails(&self, milliseconds: u64, calls: u64) -> Result<(), CheckFailure> {
        self.script.fail_power_after(calls);
        let mut rested = 0;
        while rested < milliseconds && !self.script.has_lost_power() {
            let step = POWER_CHECK_MS.min(milliseconds - rested);
            self.rest(step)?;
            rested += step;
        }
        Ok(())
    }

    /// Marks the product as healthy: later refusals need another reason.
    pub(crate) fn begin_wave(&mut self) {
        self.faults_before = self.script.fault_count();
        self.panics = false;
        self.spoils = false;
    }

    /// Whether this is the refusal of a spoiled transaction, and there may be one.
    pub fn is_spoiled(&self, fault: &Fault) -> bool {
        let refused = CommitFault::BadKey { space: META, length: 0 };
        self.spoils && *fault == partition::commit_fault(refused)
    }

    /// Whether storage faults or a panic may have caused a failure since the product was last healthy.
    pub(crate) fn may_fail(&self) -> bool {
        self.panics || self.script.fault_count() > self.faults_before
    }

    /// Plans the faults of a wave.
    pub fn plan(&mut self, trouble: &Trouble) {
        for (call, kind) in &trouble.faults {
            match kind {
                // Acknowledged writes are lost then, which is checked in a separate wave.
                InjectedFault::DropUnsynced if self.durability == Durability::Buffered => {}
                InjectedFault::DropUnsynced => self.script.fail_next(StorageCall::Reopen, *kind),
                InjectedFault::Fail
                | InjectedFault::FailSync
                | InjectedFault::Tear { .. }
                | InjectedFault::Damage => {
                    self.script.fail_call(*call, *kind);
                }
            }
        }
        if let (Some(hooks), Some(transactions)) = (self.hooks, trouble.panic) {
            self.panics = true;
            (hooks.panic_after)(transactions);
        }
        if let (Some(hooks), Some(transactions)) = (self.hooks, trouble.spoil) {
            self.spoils = true;
            (hooks.spoil_after)(transactions);
        }
    }

    /// Makes the opening of partitions take N turns longer, until all faults are removed.
    pub fn stall_openings(&self, turns: u64) {
        self.hooks.iter().for_each(|hooks| (hooks.stall_openings)(turns));
    }

    /// Makes a commit fail, and the store lose everything that was not synced when it is reopened.
    pub fn rewind(&self) -> Result<(), CheckFailure> {
        self.script.fail_next(StorageCall::Commit, InjectedFault::Fail);
        self.script.fail_next(StorageCall::Reopen, InjectedFault::DropUnsynced);
        let store = self.store.clone();
        let reopened = self.run(async move {
            let mut nothing = Batch::default();
            nothing.delete(CATALOG, Bytes::from_static(b"nothing"));
            let submitted = store.submit(&store.lane(), nothing, Durability::Buffered).await;
            match submitted {
                Ok(_) => Err("a commit that was to fail went well".to_owned()),
                Err(_) => store.reopen().await.map_err(|fault| format!("not reopened: {fault}")),
            }
        })?;
        self.remove_faults();
        reopened
    }

    fn remove_faults(&self) {
        self.script.clear_faults();
        self.hooks.iter().for_each(|hooks| hooks.reset());
    }

    /// Waits until a poisoned store was reopened as planned.
    pub(crate) fn wait_for_reopen(&self) -> Result<(), CheckFailure> {
        match self.store.health() {
            Health::Poisoned { .. } => {
                self.run(async { tokio::time::sleep(2 * REOPEN_CHECK_INTERVAL).await })
            }
            Health::Serving | Health::Full { .. } | Health::Closed => Ok(()),
        }
    }

    /// Removes all planned faults and makes the store serve again.
    pub(crate) fn recover(&self) -> Result<(), CheckFailure> {
        self.remove_faults();
        match self.store.health() {
            Health::Poisoned { .. } => {
                let reopened = self.run(reopen(self.store.clone()))?;
                reopened.map_err(|fault| format!("the store could not be reopened: {fault}"))
            }
            Health::Serving | Health::Full { .. } | Health::Closed => Ok(()),
        }
    }

    /// Runs the lanes; with a `crash_after` for that many scheduler turns only. Returns all requests.
    pub fn play(
        &self,
        lanes: Vec<Lane>,
        readers: &Arc<ChangeReaders>,
        crash_after: Option<u64>,
    ) -> Result<Vec<Record>, CheckFailure> {
        let desk = self.desk();
        let at_work = Arc::clone(&desk);
        let reading = self.reading(readers);
        // Requests not answered by then will never be.
        let played = self.run(answered_within(crash_after, async move {
            let reading = tokio::spawn(reading);
            at_work.play(lanes).await?;
            reading.await.map_err(|panic| format!("a reader panicked: {panic}"))
        }))??;
        played.transpose()?;
        let records = desk.records().clone();
        Ok(records)
    }

    /// Readers of the change feed at work.
    pub(crate) fn reading(&self, readers: &Arc<ChangeReaders>) -> impl Future<Output = ()> + Send + use<> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        Arc::clone(readers).read_meanwhile(engine, principal, Arc::clone(&self.container))
    }

    /// All documents of the container as stored, after all pending batches are decided.
    pub fn read_documents(&self) -> Result<Found, CheckFailure> {
        self.store.step();
        let container = self.container.number();
        let store = self.store.clone();
        let rows = self.run(async move {
            let view = store.view().await?;
            let everything = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
            let range = keyspace::container_rows(container);
            view.scan(RECORDS, range, Direction::Forward, everything).await
        })?;
        let rows = rows.map_err(|fault| format!("the records cannot be read: {fault}"))?.rows;
        let mut found: Found = vec![BTreeMap::new(); KEYS.len()];
        for (_, row) in rows {
            let stored = partition::stored_document(&row).map_err(|fault| fault.to_string())?;
            let stored = stored_of(&stored)?;
            let key = key_of(&stored.body).ok_or("a record has a partition key that nobody wrote")?;
            let id = stored.body.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
            if found[key].insert(id, stored).is_some() {
                return Err("two records have one id".to_owned());
            }
        }
        Ok(found)
    }

    /// Checks all rows of the container against its records.
    pub fn audit(&self, shape: &ContainerShape, expiry: ExpiryRule) -> Result<AuditReport, CheckFailure> {
        let store = self.store.clone();
        let container = self.container.number();
        let (shape, specs) = (shape.clone(), self.specs.clone());
        let report = self.run(async move {
            let view = store.view().await.map_err(partition::read_fault)?;
            let scope = AuditScope { container, shape: &shape, partitions: &specs, expiry };
            partition::audit(&view, &scope).await
        })?;
        report.map_err(|fault| format!("the audit failed: {fault}"))
    }

    /// Checks the index of the container, as the engine has it now, against the records.
    pub fn audit_index(&self) -> Result<(), CheckFailure> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        let findings: Result<_, Fault> = self.run(async move {
            let pass = engine.access().read_catalog(&principal, &*container)?;
            engine.audit_index(&pass).await
        })?;
        let findings = findings.map_err(|fault| format!("the audit of the index failed: {fault}"))?;
        match findings.first() {
            None => Ok(()),
            Some(finding) => Err(format!("audit of the index: {finding} (and {} more)", findings.len() - 1)),
        }
    }

    /// Number of containers with rows but without a catalog entry.
    pub fn orphaned_containers(&self) -> Result<usize, CheckFailure> {
        let store = self.store.clone();
        let orphaned_containers = self.run(async move {
            let view = store.view().await.map_err(partition::read_fault)?;
            partition::stray_containers(&view).await
        })?;
        orphaned_containers
            .map(|orphaned_containers| orphaned_containers.len())
            .map_err(|fault| fault.to_string())
    }

    /// The current container as stored in the catalog, if it is.
    pub(crate) fn stored_container(&self) -> Result<Option<StoredContainer>, CheckFailure> {
        let store = self.store.clone();
        let stored = self.run(async move {
            let view = store.view().await.map_err(partition::read_fault)?;
            engine::stored_containers(&view, crate::queries::lowered).await
        })?;
        let stored = stored.map_err(|fault| format!("the catalog cannot be read: {fault}"))?;
        let number = self.container.number();
        Ok(stored.into_iter().find(|stored| stored.container.number() == number))
    }

    /// The partition that owns a partition key.
    pub(crate) fn ordinal_of(&self, key: usize) -> Option<u32> {
        let key = partition_key(&self.container, key);
        let effective = self.container.definition().partition_key.effective_key(&key);
        let owner = self.specs.iter().find(|spec| spec.range.contains(&effective));
        owner.map(|spec| spec.id.ordinal.0)
    }

    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }

    /// The caller of all requests.
    pub(crate) fn principal(&self) -> Principal {
        self.principal.clone()
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output, CheckFailure> {
        let life = self.life.as_ref().ok_or("no life")?;
        life.run(&self.store, future)
    }
}

async fn reopen(store: Store) -> Result<(), CommitFault> {
    store.reopen().await
}

fn open(
    life: &Life,
    store: &Store,
    durability: Durability,
    ambient: &Arc<SeededAmbient>,
) -> Result<(Arc<Engine>, Principal), CheckFailure> {
    let keys = vec![AccountKey::new(ACCOUNT_KEY)];
    let computed_reader = crate::queries::lowered;
    let options = EngineOptions {
        keys,
        durability,
        index: SMALL_INDEX,
        computed_reader,
        partitions: SHORT_LIVED,
        ..EngineOptions::default()
    };
    let opening = Engine::open(store.clone(), options, Arc::clone(ambient) as Arc<_>);
    let engine = life.run(store, opening)?;
    let engine = engine.map_err(|fault| format!("the engine could not be opened: {fault}"))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(ACCOUNT_KEY).map_err(|error| error.to_string())?;
    mac.update(b"payload");
    let signature = mac.finalize().into_bytes();
    let principal = engine.access().verify_signature(b"payload", &signature, 1);
    Ok((engine, principal.ok_or("the signature was refused")?))
}

async fn create_container(
    engine: &Engine,
    principal: &Principal,
    scenario: &Scenario,
) -> Result<Arc<Container>, Fault> {
    let unique = |paths: &Vec<&str>| {
        let paths: Vec<String> = paths.iter().map(|path| format!("/{path}")).collect();
        UniqueKey::over(&paths.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut draft = ContainerDraft::new(CONTAINER, key_at_pk(scenario.kind)?);
    draft.unique_keys.keys = scenario.unique.iter().map(unique).collect::<Result<_, _>>()?;
    draft.policies.indexing = policy_of(0)?;
    draft.policies.computed = computed_of(0);
    draft.default_ttl = defined_ttl(scenario.default_ttl);
    draft.policies.change_feed = history_of(scenario.default_ttl);
    let definition = draft.checked()?;
    let throughput = model::Throughput::manual(u64::from(scenario.partitions) * 6_000)?;
    let database = engine.find_database(principal, Action::ReadMetadata, DATABASE)?;
    let pass = engine.access().change_catalog(principal, &*database)?;
    engine.create_container(pass, definition, Some(throughput)).await
}

/// The partition key of all containers. A hierarchical one has a first level that no document has, so that every cut by
/// documents falls into one prefix.
pub(crate) fn key_at_pk(kind: PartitionKeyKind) -> Result<PartitionKeyDefinition, RequestFault> {
    match kind {
        PartitionKeyKind::HashV1 | PartitionKeyKind::HashV2 => PartitionKeyDefinition::new(kind, ["/pk"]),
        PartitionKeyKind::MultiHash => PartitionKeyDefinition::new(kind, ["/nowhere", "/pk"]),
    }
}

/// Converts a default TTL into the product's type.
pub(crate) fn defined_ttl(default_ttl: DefaultTtl) -> model::DefaultTtl {
    match default_ttl {
        DefaultTtl::Off => model::DefaultTtl::Off,
        DefaultTtl::OnDemand => model::DefaultTtl::OnDemand,
        DefaultTtl::Seconds(seconds) => {
            model::DefaultTtl::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX))
        }
    }
}

/// The partition key with an index.
pub(crate) fn partition_key(container: &Container, key: usize) -> PartitionKey {
    let definition = &container.definition().partition_key;
    let component = match KEYS[key] {
        None => KeyComponent::Undefined,
        Some(text) => {
            let value = Value::from_json(text.as_bytes()).expect("the keys of the simulation are JSON");
            KeyComponent::from_value(value.as_ref()).expect("the keys of the simulation are scalars")
        }
    };
    let mut components = vec![KeyComponent::Undefined; definition.paths().len() - 1];
    components.push(component);
    definition.key(components).expect("the keys of the simulation are short")
}

/// The index of a document's partition key.
pub fn key_of(body: &Body) -> Option<usize> {
    let text = body.get("pk").map(ToString::to_string);
    KEYS.iter().position(|value| *value == text.as_deref())
}
