//! One life of the product after the other: a store that outlives crashes, an engine on it, clients that call it.
//!
//! Each life has a runtime of its own, so that a crash ends every task as the death of a process would. Knows how
//! to call and to look; what is right is judged elsewhere.

use crate::ambient::SeededAmbient;
use crate::desk::{Desk, Lane, Record, stored_of};
use crate::history::Stored;
use crate::hooks::Hooks;
use crate::life::{DOCTOR_PAUSE, Life, answered_within};
use crate::naive::{Body, DefaultTtl};
use crate::random::Random;
use crate::scenario::{KEYS, Scenario, Trouble};
use bytes::Bytes;
use engine::{
    Account, AccountKey, Action, Container, Engine, EngineOptions, PartitionBounds, Principal,
    StoredContainer,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{
    Batch, CommitFault, CommitMode, Direction, Durability, FaultKind, FaultScript, Health, ScanLimit,
    StorageCall, Store, Survivors,
};
use model::policy::{CompositeIndex, ComputedProperty, IndexingPolicy, SpatialIndex, SpatialType};
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
/// So that a few documents already become runs, and runs are merged.
const SMALL_INDEX: IndexOptions = IndexOptions {
    inline_documents_max: 12,
    flush_documents: 16,
    flush_bytes: 1 << 20,
    run_fan_in: 2,
    memory_bytes_max: 64 << 10,
    cache_bytes: 64 << 10,
};
/// So that partitions are closed while all is quiet, and opened again.
const SHORT_LIVED: PartitionBounds = PartitionBounds { idle_seconds: 30, open_max: 64 };
/// How long the history is kept, where it is.
const HISTORY_SECONDS: u64 = 60;
/// Name of the one container.
const CONTAINER: &str = "c";
pub(crate) const DATABASE: &str = "d";

/// See the file's head.
pub struct World {
    /// What shall go wrong.
    pub script: FaultScript,
    /// Time and chance.
    pub ambient: Arc<SeededAmbient>,
    /// What lies on the disk.
    pub store: Store,
    /// The container in use.
    pub container: Arc<Container>,
    /// The partitions of the container.
    pub specs: Vec<PartitionSpec>,
    engine: Arc<Engine>,
    principal: Principal,
    durability: Durability,
    hooks: Option<Hooks>,
    /// Storage calls that had failed when the product was last well.
    struck_before: u64,
    /// Whether a writer was to panic since then.
    panics: bool,
    /// Whether the store was to refuse a transaction since then.
    spoils: bool,
    life: Option<Life>,
}

/// All documents by index of their partition key and id.
pub type Found = Vec<BTreeMap<String, Stored>>;

/// What came of a drop.
type Dropped = Result<(), Fault>;

/// Something that must never happen; the text says what.
pub type Complaint = String;

impl World {
    /// A new store with an engine and an empty container on it.
    pub fn new(
        scenario: &Scenario,
        durability: Durability,
        hooks: Option<Hooks>,
    ) -> Result<World, Complaint> {
        // Nothing is left over from the course before.
        hooks.iter().for_each(|hooks| hooks.calm());
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
            struck_before: 0,
            panics: false,
            spoils: false,
            life: Some(life),
        };
        world.adopt(Arc::clone(&world.container))?;
        Ok(world)
    }

    /// Ends this life as a loss of power would, and prepares the next. The engine is opened by [`World::revive`], so
    /// that the store can be looked at before.
    pub fn crash(&mut self, survivors: Survivors) -> Result<(), Complaint> {
        self.calm();
        let store = self.script.crash(survivors);
        self.store = store.ok_or("the script has no store")?;
        // Dropped after the crash: nothing that a dying task still does may reach the disk.
        let pace = self.life.take().map(|life| Arc::clone(&life.pace));
        self.life = Some(Life::new(pace.ok_or("no life")?)?);
        Ok(())
    }

    /// Opens the engine on the store; the container must be the one that is known, if one is expected.
    pub fn revive(&mut self) -> Result<(), Complaint> {
        let life = self.life.as_ref().ok_or("no life")?;
        let (engine, principal) = open(life, &self.store, self.durability, &self.ambient)?;
        self.engine = engine;
        self.principal = principal;
        Ok(())
    }

    /// Closes the engine in order.
    pub fn close(&mut self) -> Result<(), Complaint> {
        let engine = Arc::clone(&self.engine);
        let closed = self.run(async move { engine.close().await })?;
        closed.map_err(|fault| format!("the engine could not be closed: {fault}"))
    }

    /// Takes a container as the one in use.
    pub fn adopt(&mut self, container: Arc<Container>) -> Result<(), Complaint> {
        let pass = self.engine.access().read_catalog(&self.principal, &*container);
        let pass = pass.map_err(|fault| fault.to_string())?;
        let spec = |range: engine::PartitionRange| PartitionSpec {
            id: PartitionId { container: container.number(), ordinal: range.ordinal },
            range: range.range,
        };
        let ranges = self.engine.ranges(&pass).ranges;
        self.specs = ranges.into_iter().map(spec).collect();
        self.adopt_definition(container)
    }

    /// Takes another definition of the container in use.
    pub fn adopt_definition(&mut self, container: Arc<Container>) -> Result<(), Complaint> {
        let pass = self.engine.access().change_catalog(&self.principal, &*container);
        let pass = pass.map_err(|fault| fault.to_string())?;
        self.engine.keep_history(&pass, history_of(container.definition().default_ttl));
        self.container = container;
        Ok(())
    }

    /// The container as the engine has it now.
    pub fn find_container(&self) -> Result<Arc<Container>, Fault> {
        let action = Action::ReadMetadata;
        let found = self.engine.find_container(&self.principal, action, DATABASE, CONTAINER);
        found.map(|found| found.resource)
    }

    /// Creates the container anew.
    pub fn create_container(&self, scenario: &Scenario) -> Result<Result<Arc<Container>, Fault>, Complaint> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let scenario = scenario.clone();
        self.run(async move { create_container(&engine, &principal, &scenario).await })
    }

    /// Drops the container while the lanes are at work on it; with a `crash_after` only so many turns are waited for
    /// answers.
    pub fn drop_container(
        &self,
        lanes: Vec<Lane>,
        crash_after: Option<u64>,
    ) -> Result<(Option<Dropped>, Vec<Record>), Complaint> {
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

    fn desk(&self) -> Arc<Desk> {
        Arc::new(Desk::new(Arc::clone(&self.engine), self.principal.clone(), Arc::clone(&self.container)))
    }

    /// Changes the container's definition; with a `crash_after` only so many turns are waited for an answer.
    pub fn replace_definition(
        &self,
        default_ttl: Option<DefaultTtl>,
        policy: usize,
        crash_after: Option<u64>,
    ) -> Result<Option<Result<Arc<Container>, Fault>>, Complaint> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        let mut wanted = container.definition().draft();
        if let Some(default_ttl) = default_ttl {
            wanted.default_ttl = defined_ttl(default_ttl);
        }
        wanted.policies.indexing = policy_of(policy).map_err(|fault| fault.to_string())?;
        wanted.policies.computed = computed_of(policy);
        self.run(answered_within(crash_after, async move {
            let pass = engine.access().change_catalog(&principal, &*container)?;
            engine.replace_container(pass, wanted.into(), &Condition::None).await
        }))?
    }

    /// Deletes all documents of a partition key.
    pub fn empty(&self, key: usize) -> Result<Result<(), Fault>, Complaint> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        self.run(async move {
            let key = partition_key(&container, key);
            let pass = engine.access().delete_logical_partition(&principal, &container, key)?;
            engine.delete_logical_partition(pass).await.map(drop)
        })
    }

    /// Lets timers run.
    pub fn rest(&self, milliseconds: u64) -> Result<(), Complaint> {
        self.run(async move { tokio::time::sleep(Duration::from_millis(milliseconds)).await })
    }

    /// The product is well: what it refuses from now on needs a reason of its own.
    pub fn begin_wave(&mut self) {
        self.struck_before = self.script.struck_count();
        self.panics = false;
        self.spoils = false;
    }

    /// Whether this is how a spoiled transaction is refused, and there may be one.
    pub fn is_spoiled(&self, fault: &Fault) -> bool {
        let refused = CommitFault::BadKey { space: META, length: 0 };
        self.spoils && *fault == partition::commit_fault(refused)
    }

    /// Whether the storage or a panic gave reason to fail since the product was last well.
    pub fn may_fail(&self) -> bool {
        self.panics || self.script.struck_count() > self.struck_before
    }

    /// Plans what shall go wrong.
    pub fn plan(&mut self, trouble: &Trouble) {
        for (call, kind) in &trouble.faults {
            match kind {
                // What was acknowledged is gone then, which is judged when nothing else is under way.
                FaultKind::DropUnsynced if self.durability == Durability::Buffered => {}
                FaultKind::DropUnsynced => self.script.fail_next(StorageCall::Reopen, *kind),
                FaultKind::Fail | FaultKind::FailSync | FaultKind::Tear { .. } | FaultKind::Damage => {
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

    /// Lets openings of partitions take so many turns longer, until all is calm again.
    pub fn stall_openings(&self, turns: u64) {
        self.hooks.iter().for_each(|hooks| (hooks.stall_openings)(turns));
    }

    /// Lets a commit fail, and the store forget all that was not synced when it is reopened.
    pub fn rewind(&self) -> Result<(), Complaint> {
        self.script.fail_next(StorageCall::Commit, FaultKind::Fail);
        self.script.fail_next(StorageCall::Reopen, FaultKind::DropUnsynced);
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
        self.calm();
        reopened
    }

    fn calm(&self) {
        self.script.calm();
        self.hooks.iter().for_each(|hooks| hooks.calm());
    }

    /// Lets a poisoned store be reopened as planned.
    pub fn wait_for_doctor(&self) -> Result<(), Complaint> {
        match self.store.health() {
            Health::Poisoned { .. } => self.run(async { tokio::time::sleep(2 * DOCTOR_PAUSE).await }),
            Health::Serving | Health::Full { .. } | Health::Closed => Ok(()),
        }
    }

    /// Ends all planned faults and makes the store serve again.
    pub fn heal(&self) -> Result<(), Complaint> {
        self.calm();
        match self.store.health() {
            Health::Poisoned { .. } => {
                let reopened = self.run(reopen(self.store.clone()))?;
                reopened.map_err(|fault| format!("the store could not be reopened: {fault}"))
            }
            Health::Serving | Health::Full { .. } | Health::Closed => Ok(()),
        }
    }

    /// Plays the lanes; with a `crash_after` only so many turns of the scheduler. Tells all that was sent.
    pub fn play(&self, lanes: Vec<Lane>, crash_after: Option<u64>) -> Result<Vec<Record>, Complaint> {
        let desk = self.desk();
        let at_work = Arc::clone(&desk);
        // Whatever is not answered by then will never be.
        let played = self.run(answered_within(crash_after, at_work.play(lanes)))??;
        played.transpose()?;
        let records = desk.records().clone();
        Ok(records)
    }

    /// All documents of the container as they lie in the store, with everything that was decided by now.
    pub fn look(&self) -> Result<Found, Complaint> {
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
    pub fn audit(&self, shape: &ContainerShape, expiry: ExpiryRule) -> Result<AuditReport, Complaint> {
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
    pub fn audit_index(&self) -> Result<(), Complaint> {
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

    /// The containers with rows that no catalog entry accounts for.
    pub fn strays(&self) -> Result<usize, Complaint> {
        let store = self.store.clone();
        let strays = self.run(async move {
            let view = store.view().await.map_err(partition::read_fault)?;
            partition::stray_containers(&view).await
        })?;
        strays.map(|strays| strays.len()).map_err(|fault| fault.to_string())
    }

    /// The container in use as the catalog in the store has it, if it does.
    pub fn stored_container(&self) -> Result<Option<StoredContainer>, Complaint> {
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
    pub fn ordinal_of(&self, key: usize) -> Option<u32> {
        let key = partition_key(&self.container, key);
        let effective = self.container.definition().partition_key.effective_key(&key);
        let owner = self.specs.iter().find(|spec| spec.range.contains(&effective));
        owner.map(|spec| spec.id.ordinal.0)
    }

    /// The engine of this life.
    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }

    /// Who calls it.
    pub(crate) fn principal(&self) -> Principal {
        self.principal.clone()
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output, Complaint> {
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
) -> Result<(Arc<Engine>, Principal), Complaint> {
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

/// The indexing policy with an index below [`POLICIES`](crate::scenario::POLICIES).
fn policy_of(policy: usize) -> Result<IndexingPolicy, RequestFault> {
    Ok(match policy {
        0 => IndexingPolicy {
            spatial: vec![SpatialIndex::at("/at/*", &[])?],
            ..IndexingPolicy::by_texts(&["/*", "/next/?"], &[])?
        },
        1 => IndexingPolicy::by_texts(&[], &["/first/?", "/pad/*"])?,
        2 => IndexingPolicy::none(),
        _ => IndexingPolicy {
            composite: vec![CompositeIndex::over(&[("/mail", false), ("/next", true)])?],
            spatial: vec![SpatialIndex::at("/at/?", &[SpatialType::Point])?],
            ..IndexingPolicy::by_texts(&["/last/?"], &["/*"])?
        },
    })
}

/// And its computed property.
fn computed_of(policy: usize) -> Vec<ComputedProperty> {
    let step = if policy < 2 { 1 } else { 2 };
    vec![ComputedProperty::new("next", format!("SELECT VALUE c.n + {step} FROM c"))]
}

/// Seconds for which the history is kept; it comes and goes with the default.
fn history_of(default_ttl: model::DefaultTtl) -> Option<u64> {
    match default_ttl {
        model::DefaultTtl::Off | model::DefaultTtl::Seconds(_) => Some(HISTORY_SECONDS),
        model::DefaultTtl::OnDemand => None,
    }
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
    let mut draft = ContainerDraft::new(CONTAINER, key_at_pk()?);
    draft.unique_keys.keys = scenario.unique.iter().map(unique).collect::<Result<_, _>>()?;
    draft.policies.indexing = policy_of(0)?;
    draft.policies.computed = computed_of(0);
    draft.default_ttl = defined_ttl(scenario.default_ttl);
    let definition = draft.checked()?;
    let throughput = model::Throughput::manual(u64::from(scenario.partitions) * 10_000)?;
    let database = engine.find_database(principal, Action::ReadMetadata, DATABASE)?;
    let pass = engine.access().change_catalog(principal, &*database)?;
    engine.create_container(pass, definition, Some(throughput)).await
}

/// The partition key of all containers.
pub(crate) fn key_at_pk() -> Result<PartitionKeyDefinition, RequestFault> {
    PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"])
}

/// A default as definitions have it.
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
    definition.key(vec![component]).expect("the keys of the simulation are short")
}

/// The index of a document's partition key.
pub fn key_of(body: &Body) -> Option<usize> {
    let text = body.get("pk").map(ToString::to_string);
    KEYS.iter().position(|value| *value == text.as_deref())
}
