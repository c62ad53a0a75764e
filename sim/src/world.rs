//! One life of the product after the other: a store that outlives crashes, an engine on it, clients that call it.
//!
//! Each life has a runtime of its own, so that a crash ends every task as the death of a process would. Knows how
//! to call and to look; what is right is judged elsewhere.

use crate::ambient::SeededAmbient;
use crate::desk::{Desk, Lane, Record, stored_of};
use crate::history::Stored;
use crate::naive::{Body, DefaultTtl};
use crate::random::Random;
use crate::scenario::{KEYS, Scenario};
use bytes::Bytes;
use engine::{
    AccountKey, Action, Container, Engine, EngineOptions, PartitionBounds, Place, Principal, Reach,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Direction, Durability, FaultScript, Health, ScanLimit, Store, Survivors};
use model::{Fault, PartitionKey};
use partition::index::IndexOptions;
use partition::keyspace::{self, CATALOG, PartitionId, RECORDS, SPACES};
use partition::{AuditReport, AuditScope, ContainerShape, ExpiryRule, PartitionSpec};
use plan::Condition;
use serde_json::{Value as Json, json};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Timers may move so far in one wave before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(3600);
/// How often somebody looks whether the store must be reopened.
const DOCTOR_PAUSE: Duration = Duration::from_millis(25);
/// Turns of the scheduler that a batch waits for its commit, at most.
const COMMIT_TURNS_MAX: u64 = 6;
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
    life: Option<Life>,
}

/// All documents by index of their partition key and id.
pub type Found = Vec<BTreeMap<String, Stored>>;

/// Something that must never happen; the text says what.
pub type Complaint = String;

impl World {
    /// A new store with an engine and an empty container on it.
    pub fn new(scenario: &Scenario, durability: Durability) -> Result<World, Complaint> {
        let script = FaultScript::seeded(scenario.seed);
        let ambient = Arc::new(SeededAmbient::seeded(scenario.seed));
        let store = Store::faulty(Store::memory(&SPACES, CommitMode::Stepped), script.clone());
        let life = Life::new(Arc::new(Mutex::new(Random::seeded(scenario.seed))))?;
        let (engine, principal) = open(&life, &store, durability, &ambient)?;
        let created = life.run(&store, async {
            let pass = engine.access().change_catalog(&principal, Action::ChangeMetadata, Place::Account)?;
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
            life: Some(life),
        };
        world.adopt(Arc::clone(&world.container))?;
        Ok(world)
    }

    /// Ends this life as a loss of power would, and prepares the next. The engine is opened by [`World::revive`], so
    /// that the store can be looked at before.
    pub fn crash(&mut self, survivors: Survivors) -> Result<(), Complaint> {
        self.script.calm();
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
        let pass = self.engine.access().read_catalog(&self.principal, Action::ReadMetadata, Place::Account);
        let pass = pass.map_err(|fault| fault.to_string())?;
        let spec = |range: engine::PartitionRange| PartitionSpec {
            id: PartitionId { container: container.number(), ordinal: range.ordinal },
            range: range.range,
        };
        let ranges = self.engine.ranges(pass, &container).ranges;
        self.specs = ranges.into_iter().map(spec).collect();
        container.keep_history(history_of(container.definition().default_ttl));
        self.container = container;
        Ok(())
    }

    /// The container as the engine has it now.
    pub fn find_container(&self) -> Result<Arc<Container>, Fault> {
        self.engine.find_container(DATABASE, CONTAINER).map(|found| found.resource)
    }

    /// Creates the container anew.
    pub fn create_container(&self, scenario: &Scenario) -> Result<Result<Arc<Container>, Fault>, Complaint> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let scenario = scenario.clone();
        self.run(async move { create_container(&engine, &principal, &scenario).await })
    }

    /// Drops the container while the lanes are at work on it.
    pub fn drop_container(&self, lanes: Vec<Lane>) -> Result<(Result<(), Fault>, Vec<Record>), Complaint> {
        let desk = self.desk();
        let at_work = Arc::clone(&desk);
        let dropped = self.run(async move {
            let drop = Arc::clone(&at_work);
            let drop = tokio::spawn(async move {
                tokio::task::yield_now().await;
                let pass = drop.engine.access().change_catalog(
                    &drop.principal,
                    Action::ChangeMetadata,
                    Place::Account,
                )?;
                drop.engine.delete_container(pass, &drop.container, &Condition::None).await
            });
            at_work.play(lanes).await?;
            drop.await.map_err(|panic| format!("a drop panicked: {panic}"))
        })??;
        let records = desk.records().clone();
        Ok((dropped, records))
    }

    fn desk(&self) -> Arc<Desk> {
        Arc::new(Desk::new(Arc::clone(&self.engine), self.principal.clone(), Arc::clone(&self.container)))
    }

    /// Changes the container's default.
    pub fn replace_default(
        &self,
        default_ttl: DefaultTtl,
    ) -> Result<Result<Arc<Container>, Fault>, Complaint> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        let mut body = Json::Object(container.definition().to_json());
        if let Some(members) = body.as_object_mut() {
            members.shift_remove("defaultTtl");
            if let Some(wire) = wire_ttl(default_ttl) {
                members.insert("defaultTtl".to_owned(), wire);
            }
            // Comes along, so that indexes are made anew beside all that happens.
            members.insert("indexingPolicy".to_owned(), policy_of(default_ttl));
            members.insert("computedProperties".to_owned(), computed_of(default_ttl));
        }
        self.run(async move {
            let pass = engine.access().change_catalog(&principal, Action::ChangeMetadata, Place::Account)?;
            engine.replace_container(pass, &container, &body, &Condition::None).await
        })
    }

    /// Deletes all documents of a partition key.
    pub fn empty(&self, key: usize) -> Result<Result<(), Fault>, Complaint> {
        let (engine, principal) = (Arc::clone(&self.engine), self.principal.clone());
        let container = Arc::clone(&self.container);
        self.run(async move {
            let pass =
                engine.access().write(&principal, &[Action::DeleteDocument], &container, Reach::Whole)?;
            let key = partition_key(&container, key);
            engine.delete_logical_partition(pass, key).await.map(drop)
        })
    }

    /// Lets timers run.
    pub fn rest(&self, milliseconds: u64) -> Result<(), Complaint> {
        self.run(async move { tokio::time::sleep(Duration::from_millis(milliseconds)).await })
    }

    /// Ends all planned faults and makes the store serve again.
    pub fn heal(&self) -> Result<(), Complaint> {
        self.script.calm();
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
        self.run(async move {
            match crash_after {
                None => at_work.play(lanes).await,
                Some(turns) => {
                    let play = tokio::spawn(at_work.play(lanes));
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    // Whatever is not answered by now will never be.
                    drop(play);
                    Ok(())
                }
            }
        })??;
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
        let (engine, container) = (Arc::clone(&self.engine), Arc::clone(&self.container));
        let findings = self.run(async move { engine.audit_index(&container).await })?;
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

    /// Whether the job that writes expiry rows anew has still to run.
    pub fn expiry_is_pending(&self) -> Result<bool, Complaint> {
        let store = self.store.clone();
        let number = self.container.number();
        let key = keyspace::container_key(number);
        let row: Option<Bytes> = self
            .run(async move { store.view().await?.get(CATALOG, &key).await })?
            .map_err(|fault| fault.to_string())?;
        let row = row.ok_or("the container has no row")?;
        engine::expiry_is_pending(number, &row).map_err(|fault| fault.to_string())
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

/// The runtime of one life, with those that a store in memory needs around it.
struct Life {
    runtime: Runtime,
    /// Draws how many turns a batch waits.
    pace: Arc<Mutex<Random>>,
}

impl Life {
    fn new(pace: Arc<Mutex<Random>>) -> Result<Life, Complaint> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        Ok(Life { runtime: runtime.map_err(|error| error.to_string())?, pace })
    }

    /// Runs a future beside two who do what the thread of a store on disk does: a committer who lets batches wait for
    /// a while, and a doctor who reopens a poisoned store.
    fn run<F: Future>(&self, store: &Store, future: F) -> Result<F::Output, Complaint> {
        let (committed, healed) = (store.clone(), store.clone());
        let pace = Arc::clone(&self.pace);
        self.runtime.block_on(async move {
            let committer = tokio::spawn(async move {
                loop {
                    committed.step_is_due().await;
                    let turns = pace.lock().unwrap_or_else(PoisonError::into_inner).below(COMMIT_TURNS_MAX);
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    committed.step();
                }
            });
            let doctor = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(DOCTOR_PAUSE).await;
                    if let Health::Poisoned { .. } = healed.health() {
                        healed.reopen().await.ok();
                    }
                }
            });
            let done = tokio::time::timeout(STUCK_AFTER, future).await;
            committer.abort();
            doctor.abort();
            done.map_err(|_| "the product is stuck".to_owned())
        })
    }
}

async fn reopen(store: Store) -> Result<(), kv::CommitFault> {
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

/// Each kind of default has an indexing policy of its own.
fn policy_of(default_ttl: DefaultTtl) -> Json {
    match default_ttl {
        DefaultTtl::Off => json!({
            "includedPaths": [{ "path": "/*" }, { "path": "/next/?" }],
            "spatialIndexes": [{ "path": "/at/*" }],
        }),
        DefaultTtl::OnDemand => json!({ "excludedPaths": [{ "path": "/first/?" }, { "path": "/pad/*" }] }),
        DefaultTtl::Seconds(seconds) if seconds % 2 == 0 => json!({ "indexingMode": "none" }),
        DefaultTtl::Seconds(_) => json!({
            "includedPaths": [{ "path": "/last/?" }],
            "excludedPaths": [{ "path": "/*" }],
            "compositeIndexes": [[{ "path": "/mail" }, { "path": "/next", "order": "descending" }]],
            "spatialIndexes": [{ "path": "/at/?", "types": ["Point"] }],
        }),
    }
}

/// And a computed property.
fn computed_of(default_ttl: DefaultTtl) -> Json {
    let step = match default_ttl {
        DefaultTtl::Off | DefaultTtl::OnDemand => 1,
        DefaultTtl::Seconds(_) => 2,
    };
    json!([{ "name": "next", "query": format!("SELECT VALUE c.n + {step} FROM c") }])
}

/// Seconds for which the history is kept; like the index policy it comes and goes with the default.
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
        json!({ "paths": paths })
    };
    let mut body = json!({
        "id": CONTAINER,
        "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
        "uniqueKeyPolicy": { "uniqueKeys": scenario.unique.iter().map(unique).collect::<Vec<_>>() },
        "indexingPolicy": policy_of(DefaultTtl::Off),
        "computedProperties": computed_of(DefaultTtl::Off),
    });
    if let Some(wire) = wire_ttl(scenario.default_ttl) {
        body["defaultTtl"] = wire;
    }
    let definition = model::ContainerDefinition::from_json(&body)?;
    let throughput = model::Throughput::manual(u64::from(scenario.partitions) * 10_000)?;
    let database = engine.find_database(DATABASE)?.resource;
    let pass = engine.access().change_catalog(principal, Action::ChangeMetadata, Place::Account)?;
    engine.create_container(pass, &database, definition, Some(throughput)).await
}

pub(crate) fn wire_ttl(default_ttl: DefaultTtl) -> Option<Json> {
    match default_ttl {
        DefaultTtl::Off => None,
        DefaultTtl::OnDemand => Some((-1).into()),
        DefaultTtl::Seconds(seconds) => Some(seconds.into()),
    }
}

/// The partition key with an index.
pub(crate) fn partition_key(container: &Container, key: usize) -> PartitionKey {
    let definition = &container.definition().partition_key;
    definition.parse_header(KEYS[key].1).expect("the keys of the simulation are headers")
}

/// The index of a document's partition key.
pub fn key_of(body: &Body) -> Option<usize> {
    let text = body.get("pk").map(ToString::to_string);
    KEYS.iter().position(|(value, _)| *value == text.as_deref())
}
