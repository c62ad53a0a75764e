//! Background work of the engine in several containers concurrently: sweeping, rescheduling expiry, building indexes,
//! trimming logs, while definitions are replaced and consumers of the logs advance.
//!
//! Writers panic, containers are dropped while their partitions are being opened, records are damaged.
//!
//! A course (`course`) is run on the real engine. The checker knows, for every document, whether any definition in
//! force has ever let it expire, and checks the rows of the store whenever all is quiet.

use crate::course::{CONTAINERS, Course, DOCUMENTS, Event};
use crate::hooks::Hooks;
use crate::naive::DefaultTtl;
use crate::scenario::Scenario;
use crate::world::{CheckFailure, DATABASE, World, defined_ttl, key_at_pk};
use engine::{Action, Container, DocumentAddress, Engine, Keyed, Principal, ReadOptions};
use kv::{Batch, Direction, Durability, KeyRange, ScanLimit, Space};
use model::policy::IndexingPolicy;
use model::{
    Ambient, ContainerDraft, ContainerNumber, Fault, Lsn, PartitionKeyKind, PartitionOrdinal, StorageFault,
    Throughput,
};
use partition::index::unnamed_runs;
use partition::keyspace::{self, CONTAINER_SPACES, PartitionId, RECORDS};
use partition::{AuditScope, ContainerShape, ExpiryRule, PartitionSpec};
use plan::{Condition, DocumentOperation, Item, Mutation, Outcome, StoredDocument, Target};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use value::Document;

/// A default TTL that lets documents expire soon, and one that does not within a course.
const SHORT_SECONDS: u64 = 5;
const LONG_SECONDS: u64 = 100_000;
/// Documents that are new when such a default is replaced.
const FLIPPED_DOCUMENTS: usize = 4;
/// Time in which the jobs finish everything, including trimming, which runs once in sixty rounds.
const QUIET_SECONDS: u32 = 65;
/// Time after which a partition without requests is closed, and in which the jobs find it.
const IDLE_SECONDS: u32 = 40;
const IDLE_CHECK_MS: u64 = 12_000;
/// Turns that the opening of a partition takes whose container is dropped meanwhile: longer than deleting its rows.
const OPENING_TURNS: u64 = 2_000;
/// The store's internal space, and the prefix of the marks of pending ingests.
const OWN_SPACE: Space = Space(u8::MAX);
const UNNAMED_INGESTS: &str = "pending";

/// Runs a course; without hooks nothing panics.
pub fn play(course: &Course, hooks: Option<Hooks>) -> Result<(), CheckFailure> {
    let mut housekeeping = Housekeeping::new(course, hooks)?;
    for (index, step) in course.steps.iter().enumerate() {
        let done = housekeeping.step(*step);
        done.map_err(|failure| format!("seed {}, step {index}, {step:?}: {failure}", course.seed))?;
    }
    housekeeping.world.close().map_err(|failure| format!("seed {}, at the end: {failure}", course.seed))
}

struct Housekeeping {
    world: World,
    tracked: Vec<TrackedContainer>,
    version_last: u64,
    hooks: Option<Hooks>,
    dropped: Vec<ContainerNumber>,
}

/// A container and its expected state.
struct TrackedContainer {
    container: Arc<Container>,
    default_ttl: DefaultTtl,
    documents: BTreeMap<usize, ExpectedDocument>,
    lsn_last: Lsn,
    /// Documents whose records were damaged.
    damaged: BTreeSet<usize>,
}

/// The expected state of a document.
#[derive(Clone, Copy, Debug)]
struct ExpectedDocument {
    ts: u64,
    lsn: Lsn,
    /// Whether any definition in force since has let it expire.
    may_be_gone: bool,
}

impl TrackedContainer {
    fn is_expired(&self, ts: u64, now: u64) -> bool {
        match self.default_ttl {
            DefaultTtl::Off | DefaultTtl::OnDemand => false,
            DefaultTtl::Seconds(seconds) => ts + seconds <= now,
        }
    }

    /// Records what the current definition lets expire.
    fn note_expired(&mut self, now: u64) {
        let default_ttl = self.default_ttl;
        for known in self.documents.values_mut() {
            if let DefaultTtl::Seconds(seconds) = default_ttl {
                known.may_be_gone |= known.ts + seconds <= now;
            }
        }
    }
}

impl Housekeeping {
    fn new(course: &Course, hooks: Option<Hooks>) -> Result<Housekeeping, CheckFailure> {
        let durability = if course.buffered { Durability::Buffered } else { Durability::Sync };
        let scenario = Scenario {
            seed: course.seed,
            buffered: course.buffered,
            kind: PartitionKeyKind::HashV2,
            partitions: 1,
            unique: Vec::new(),
            default_ttl: DefaultTtl::Off,
            waves: Vec::new(),
        };
        let world = World::new(&scenario, durability, hooks)?;
        let mut housekeeping =
            Housekeeping { world, tracked: Vec::new(), version_last: 0, hooks, dropped: Vec::new() };
        for number in 0..CONTAINERS {
            let tracked = housekeeping.begin(number)?;
            housekeeping.tracked.push(tracked);
            housekeeping.fill(number)?;
        }
        Ok(housekeeping)
    }

    /// A new container, without documents.
    fn begin(&self, number: usize) -> Result<TrackedContainer, CheckFailure> {
        Ok(TrackedContainer {
            container: self.create(number)?,
            default_ttl: DefaultTtl::Off,
            documents: BTreeMap::new(),
            lsn_last: Lsn(0),
            damaged: BTreeSet::new(),
        })
    }

    fn fill(&mut self, number: usize) -> Result<(), CheckFailure> {
        (0..DOCUMENTS).try_for_each(|id| self.write(number, id))
    }

    fn step(&mut self, step: Event) -> Result<(), CheckFailure> {
        match step {
            Event::Turns(turns) => self.world.run(async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }),
            Event::Quiet => {
                self.rest_quietly()?;
                self.open_all()?;
                self.rest_quietly()?;
                (0..CONTAINERS).try_for_each(|container| self.check_container(container))?;
                self.check_dropped()?;
                self.check_ingests()
            }
            Event::Clock(seconds) => {
                self.world.ambient.jump_seconds(i64::from(seconds));
                let now = self.now();
                self.tracked.iter_mut().for_each(|tracked| tracked.note_expired(now));
                Ok(())
            }
            Event::Define { container, default_ttl, unindexed } => {
                self.define(container, default_ttl, unindexed)
            }
            Event::Flip { container, turns } => self.flip(container, turns),
            Event::Write { container, id } => self.write(container, id),
            Event::Delete { container, id } => self.delete(container, id),
            Event::Panic { transactions } => {
                self.hooks.iter().for_each(|hooks| (hooks.panic_after)(transactions));
                Ok(())
            }
            Event::Drop { container, turns } => self.drop_while_opening(container, turns),
            Event::Damage { container, id } => self.damage(container, id),
            Event::Consume { container, to_end } => self.consume(container, to_end),
        }
    }

    /// New documents would be swept if the short default, which was replaced before they expired, came back.
    fn flip(&mut self, number: usize, turns: u64) -> Result<(), CheckFailure> {
        (0..FLIPPED_DOCUMENTS).try_for_each(|id| self.write(number, id))?;
        self.define(number, DefaultTtl::Seconds(SHORT_SECONDS), None)?;
        self.step(Event::Turns(turns))?;
        self.define(number, DefaultTtl::Seconds(LONG_SECONDS), None)?;
        self.step(Event::Turns(turns))?;
        self.step(Event::Clock(2 * u32::try_from(SHORT_SECONDS).unwrap_or(u32::MAX)))
    }

    /// Lets timers run, and the clock move by the same time: pauses after a failure end by the clock.
    fn rest_quietly(&mut self) -> Result<(), CheckFailure> {
        self.step(Event::Clock(QUIET_SECONDS))?;
        self.world.rest(u64::from(QUIET_SECONDS) * 1000)
    }

    /// Opens all partitions: one that was closed builds the index of a new policy when it is opened.
    fn open_all(&self) -> Result<(), CheckFailure> {
        for tracked in &self.tracked {
            let (engine, principal) = (self.world.engine(), self.world.principal());
            let container = Arc::clone(&tracked.container);
            let opened: Result<_, Fault> = self.world.run(async move {
                let pass = engine.access().read_catalog(&principal, &*container)?;
                engine.index_progress(&pass).await
            })?;
            opened.map_err(|fault| format!("a partition was not opened: {fault}"))?;
        }
        Ok(())
    }

    /// Closes a partition whose index then has an older policy, or makes its writer panic while its index is being
    /// saved: in both cases the next open has work to do.
    fn stop_partition(&mut self, number: usize, by_panic: bool) -> Result<(), CheckFailure> {
        let Some(hooks) = self.hooks.filter(|_| by_panic) else {
            self.step(Event::Clock(IDLE_SECONDS))?;
            self.world.rest(IDLE_CHECK_MS)?;
            return self.define(number, self.tracked[number].default_ttl, Some("dropped"));
        };
        self.fill(number)?;
        (hooks.panic_after)(0);
        let nobody = Mutation::Delete { target: Target::Id("nobody".to_owned()), condition: Condition::None };
        self.change(number, nobody)?.err().map(drop).ok_or_else(|| "a panic went unnoticed".to_owned())
    }

    /// Reads a document of a container whose partition has stopped, and drops the container while the partition is
    /// being opened.
    fn drop_while_opening(&mut self, number: usize, turns: u64) -> Result<(), CheckFailure> {
        self.stop_partition(number, turns.is_multiple_of(2))?;
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let container = Arc::clone(&self.tracked[number].container);
        self.hooks.iter().for_each(|hooks| (hooks.stall_openings)(OPENING_TURNS));
        let (reading, reader) = (Arc::clone(&engine), principal.clone());
        let read = Arc::clone(&container);
        let dropped: Result<_, Fault> = self.world.run(async move {
            let client = tokio::spawn(async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                read_one(&reading, &reader, &read, 0).await.map(drop)
            });
            let pass = engine.access().change_catalog(&principal, &*container)?;
            let dropped = engine.delete_container(pass, &Condition::None).await;
            // Answered or refused: it must end.
            client.await.map_err(|error| Fault::Internal(error.to_string()))?.ok();
            dropped
        })?;
        self.hooks.iter().for_each(|hooks| (hooks.stall_openings)(0));
        dropped.map_err(|fault| format!("refused: {fault}"))?;
        self.dropped.push(self.tracked[number].container.number());
        self.tracked[number] = self.begin(number)?;
        self.fill(number)
    }

    /// Truncates the record of a document in the store.
    fn damage(&mut self, number: usize, id: usize) -> Result<(), CheckFailure> {
        let store = self.world.store.clone();
        let range = keyspace::container_rows(self.tracked[number].container.number());
        let Some(known) = self.tracked[number].documents.get(&id).copied() else { return Ok(()) };
        let cut: Result<bool, CheckFailure> = self.world.run(async move {
            for (key, row) in all_rows(&store, RECORDS, range).await? {
                if partition::stored_document(&row).is_ok_and(|stored| stored.lsn == known.lsn) {
                    let mut batch = Batch::default();
                    batch.put(RECORDS, key, row.slice(..row.len() / 2));
                    let committed = store.submit(&store.lane(), batch, Durability::Sync).await;
                    return committed.map(|_| true).map_err(|fault| fault.to_string());
                }
            }
            Ok(false)
        })?;
        if cut? {
            let tracked = &mut self.tracked[number];
            tracked.documents.remove(&id);
            tracked.damaged.insert(id);
        }
        Ok(())
    }

    /// The state of a document after a write of unknown outcome.
    fn resolve(&mut self, number: usize, id: usize, version: u64) -> Result<(), CheckFailure> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let container = Arc::clone(&self.tracked[number].container);
        let read = self.world.run(async move { read_one(&engine, &principal, &container, id).await })?;
        match read {
            Ok(stored) if version_of(&stored) == Some(version) => {
                let tracked = &mut self.tracked[number];
                tracked.lsn_last = stored.lsn;
                let known = ExpectedDocument { ts: stored.ts(), lsn: stored.lsn, may_be_gone: false };
                tracked.documents.insert(id, known);
                Ok(())
            }
            Ok(_) | Err(Fault::Missing(_)) => Ok(()),
            Err(fault) => Err(format!("not served after an unknown outcome: {fault}")),
        }
    }

    fn now(&self) -> u64 {
        self.world.ambient.now_seconds()
    }

    fn create(&self, number: usize) -> Result<Arc<Container>, CheckFailure> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let created: Result<_, Fault> = self.world.run(async move {
            let definition =
                ContainerDraft::new(format!("kept {number}"), key_at_pk(PartitionKeyKind::HashV2)?)
                    .checked()?;
            let throughput = Throughput::manual(400)?;
            let database = engine.find_database(&principal, Action::ReadMetadata, DATABASE)?;
            let pass = engine.access().change_catalog(&principal, &*database)?;
            engine.create_container(pass, definition, Some(throughput)).await
        })?;
        created.map_err(|fault| format!("a container could not be created: {fault}"))
    }

    fn define(
        &mut self,
        number: usize,
        default_ttl: DefaultTtl,
        unindexed: Option<&str>,
    ) -> Result<(), CheckFailure> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let container = Arc::clone(&self.tracked[number].container);
        let mut wanted = container.definition().draft();
        wanted.default_ttl = defined_ttl(default_ttl);
        let excluded: Vec<String> = unindexed.iter().map(|path| format!("/{path}/?")).collect();
        let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
        wanted.policies.indexing =
            IndexingPolicy::by_texts(&[], &excluded).map_err(|fault| fault.to_string())?;
        let replaced: Result<_, Fault> = self.world.run(async move {
            let pass = engine.access().change_catalog(&principal, &*container)?;
            engine.replace_container(pass, wanted.into(), &Condition::None).await
        })?;
        let now = self.now();
        let tracked = &mut self.tracked[number];
        tracked.container = replaced.map_err(|fault| format!("refused: {fault}"))?;
        tracked.default_ttl = default_ttl;
        tracked.note_expired(now);
        Ok(())
    }

    fn write(&mut self, number: usize, id: usize) -> Result<(), CheckFailure> {
        self.version_last += 1;
        let text = json!({
            "id": id.to_string(), "pk": "a", "v": self.version_last, "mail": format!("m{id}"),
        });
        let document = Document::from_json(text.to_string().as_bytes()).map_err(|error| error.to_string())?;
        let item = Item::new(document).map_err(|fault| fault.to_string())?;
        let outcome = match self.change(number, Mutation::Upsert { item, condition: Condition::None })? {
            Err(Fault::Storage(StorageFault::Uncertain { .. })) => {
                return self.resolve(number, id, self.version_last);
            }
            Err(Fault::Storage(StorageFault::Damaged { .. }))
                if self.tracked[number].damaged.contains(&id) =>
            {
                return Ok(());
            }
            outcome => outcome,
        };
        let (Outcome::Created(stored) | Outcome::Replaced(stored)) =
            outcome.map_err(|fault| format!("refused: {fault}"))?
        else {
            return Err("an upsert wrote nothing".to_owned());
        };
        let tracked = &mut self.tracked[number];
        // The writer had the record before it was damaged.
        tracked.damaged.remove(&id);
        tracked.lsn_last = stored.lsn;
        tracked
            .documents
            .insert(id, ExpectedDocument { ts: stored.ts(), lsn: stored.lsn, may_be_gone: false });
        Ok(())
    }

    fn delete(&mut self, number: usize, id: usize) -> Result<(), CheckFailure> {
        let mutation = Mutation::Delete { target: Target::Id(id.to_string()), condition: Condition::None };
        let known = self.tracked[number].documents.get(&id).copied();
        let result = self.change(number, mutation)?;
        if self.tracked[number].damaged.contains(&id) {
            // Refused, or deleted with the version that the writer had before it was damaged.
            return Ok(());
        }
        match (result, known) {
            (Err(Fault::Storage(StorageFault::Uncertain { .. })), _) => {
                let documents = &mut self.tracked[number].documents;
                documents.entry(id).and_modify(|known| known.may_be_gone = true);
                Ok(())
            }
            (Ok(_), Some(_)) => {
                self.tracked[number].documents.remove(&id);
                Ok(())
            }
            (Err(Fault::Missing(_)), None) => Ok(()),
            // If it was not swept yet, another default may bring it back.
            (Err(Fault::Missing(_)), Some(known)) if known.may_be_gone => Ok(()),
            (result, known) => Err(format!("{known:?} was deleted with {result:?}")),
        }
    }

    fn change(&self, number: usize, mutation: Mutation) -> Result<Result<Outcome, Fault>, CheckFailure> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let container = Arc::clone(&self.tracked[number].container);
        self.world.run(async move {
            let key = container.definition().partition_key.key(vec!["a".into()])?;
            let keyed = Keyed::new(&container, Some(key), DocumentOperation::Write(mutation))?;
            let pass = engine.access().write(&principal, keyed)?;
            engine.write(pass).await.map(|receipt| receipt.outcome).map_err(|refusal| refusal.fault)
        })
    }

    fn consume(&self, number: usize, to_end: bool) -> Result<(), CheckFailure> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let tracked = &self.tracked[number];
        let (container, lsn) =
            (Arc::clone(&tracked.container), if to_end { tracked.lsn_last } else { Lsn(0) });
        let set: Result<_, Fault> = self.world.run(async move {
            let pass = engine.access().change_catalog(&principal, &*container)?;
            engine.set_log_consumer(&pass, PartitionOrdinal(0), "reader", lsn).await
        })?;
        set.map_err(|fault| format!("refused: {fault}"))
    }

    /// Compares the rows of a container with its expected state.
    fn check_container(&self, number: usize) -> Result<(), CheckFailure> {
        let tracked = &self.tracked[number];
        self.check_documents(tracked).map_err(|failure| format!("container {number}: {failure}"))?;
        if !tracked.damaged.is_empty() {
            // Its index cannot be built, and its rows contradict the damaged records.
            return Ok(());
        }
        self.check_rows(tracked).map_err(|failure| format!("container {number}: {failure}"))
    }

    /// Checks that no rows of dropped containers remain.
    fn check_dropped(&self) -> Result<(), CheckFailure> {
        for number in &self.dropped {
            for space in CONTAINER_SPACES {
                let (store, range) = (self.world.store.clone(), keyspace::container_rows(*number));
                let rows = self.world.run(async move { all_rows(&store, space, range).await })??;
                if let Some((key, _)) = rows.first() {
                    let count = rows.len();
                    return Err(format!(
                        "{count} rows of the dropped container {number:?}: {space:?} {key:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_documents(&self, tracked: &TrackedContainer) -> Result<(), CheckFailure> {
        let store = self.world.store.clone();
        let range = keyspace::container_rows(tracked.container.number());
        let rows = self.world.run(async move { all_rows(&store, RECORDS, range).await })??;
        let mut stored = BTreeMap::new();
        let mut unreadable = 0;
        for (_, row) in rows {
            match partition::stored_document(&row) {
                Ok(document) => drop(stored.insert(document.lsn, document.ts())),
                Err(_) => unreadable += 1,
            }
        }
        if unreadable > tracked.damaged.len() {
            return Err(format!("{unreadable} records are damaged, not {}", tracked.damaged.len()));
        }
        let now = self.now();
        for (id, known) in &tracked.documents {
            match stored.remove(&known.lsn) {
                Some(_) if tracked.is_expired(known.ts, now) => {
                    return Err(format!("document {id}, {known:?}, was not swept at {now}"));
                }
                Some(_) => {}
                None if known.may_be_gone => {}
                None => return Err(format!("document {id}, {known:?}, is gone before its time, at {now}")),
            }
        }
        match stored.first_key_value() {
            None => Ok(()),
            Some((lsn, _)) => Err(format!("the version {lsn} exists, but was never written or was replaced")),
        }
    }

    fn check_rows(&self, tracked: &TrackedContainer) -> Result<(), CheckFailure> {
        let (store, engine) = (self.world.store.clone(), self.world.engine());
        let (principal, container) = (self.world.principal(), Arc::clone(&tracked.container));
        let id = PartitionId { container: container.number(), ordinal: PartitionOrdinal(0) };
        let shape = ContainerShape::from(container.definition());
        let looked: Result<_, Fault> = self.world.run(async move {
            let view = store.view().await.map_err(partition::read_fault)?;
            let partitions =
                [PartitionSpec { id, range: model::EffectiveRange::full(), ancestors: Vec::new() }];
            let expiry = ExpiryRule::Rescheduled { swept_second: 0 };
            let scope =
                AuditScope { container: container.number(), shape: &shape, partitions: &partitions, expiry };
            let report = partition::audit(&view, &scope).await?;
            let runs = unnamed_runs(&view, id).await?;
            let pass = engine.access().read_catalog(&principal, &*container)?;
            let percent = engine.index_progress(&pass).await?;
            Ok((report, runs, percent, engine.audit_index(&pass).await?))
        })?;
        let (report, runs, percent, findings) = looked.map_err(|fault| fault.to_string())?;
        if let Some(finding) = report.findings.first() {
            return Err(format!("audit: {finding} (and {} more)", report.findings.len() - 1));
        }
        if !runs.is_empty() {
            return Err(format!("no manifest names the runs {runs:?}"));
        }
        if percent != 100 {
            return Err(format!("{percent} percent of the index are there"));
        }
        match findings.first() {
            None => Ok(()),
            Some(finding) => Err(format!("audit of the index: {finding}")),
        }
    }

    /// Checks that, when all is quiet, every ingest is named or removed.
    fn check_ingests(&self) -> Result<(), CheckFailure> {
        let store = self.world.store.clone();
        let range = KeyRange::prefix(UNNAMED_INGESTS);
        let marks = self.world.run(async move { all_rows(&store, OWN_SPACE, range).await })??;
        if marks.is_empty() { Ok(()) } else { Err(format!("{} ingests were never named", marks.len())) }
    }
}

async fn read_one(
    engine: &Engine,
    principal: &Principal,
    container: &Container,
    id: usize,
) -> Result<StoredDocument, Fault> {
    let key = container.definition().partition_key.key(vec!["a".into()])?;
    let address = DocumentAddress { key, target: Target::Id(id.to_string()) };
    let pass = engine.access().read_document(principal, container, address)?;
    let read = engine.read(pass, &ReadOptions::default()).await;
    match read.map_err(|refusal| refusal.fault)?.outcome {
        Outcome::Read(stored) => Ok(stored),
        Outcome::Created(_)
        | Outcome::Replaced(_)
        | Outcome::Deleted
        | Outcome::NotModified(_)
        | Outcome::Nothing => Err(Fault::Internal("a read gave no document".to_owned())),
    }
}

fn version_of(stored: &StoredDocument) -> Option<u64> {
    stored.document.root().to_value().member("v")?.as_ref().as_i64().and_then(|v| u64::try_from(v).ok())
}

async fn all_rows(
    store: &kv::Store,
    space: Space,
    range: KeyRange,
) -> Result<Vec<(bytes::Bytes, bytes::Bytes)>, CheckFailure> {
    let everything = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = store.view().await.map_err(|fault| fault.to_string())?;
    let chunk = view.scan(space, range, Direction::Forward, everything).await;
    chunk.map(|chunk| chunk.rows).map_err(|fault| fault.to_string())
}
