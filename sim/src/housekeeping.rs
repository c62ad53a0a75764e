//! What the engine does that nobody asks for, in several containers at once: sweeping, noting expiry anew, building
//! indexes, trimming logs, while an operator replaces definitions and consumers of the logs move on.
//!
//! A course is drawn from its seed and played on the real engine. The judge knows, for every document, whether any
//! definition that was in force has ever let it expire, and looks at the rows of the store whenever all is quiet.

use crate::naive::DefaultTtl;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::world::{Complaint, DATABASE, World, wire_ttl};
use engine::{Action, Container, Keyed, Place, Reach};
use kv::{Direction, Durability, KeyRange, ScanLimit, Space};
use model::{Ambient, ContainerDefinition, Fault, Lsn, PartitionOrdinal, Throughput};
use partition::index::unnamed_runs;
use partition::keyspace::{self, PartitionId, RECORDS};
use partition::{AuditScope, ContainerShape, ExpiryRule, PartitionSpec};
use plan::{Condition, Item, Mutation, Operation, Outcome, Target};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use value::Document;

/// Containers of a course.
const CONTAINERS: usize = 3;
/// Enough documents for runs of the index, and for a walk that takes a while.
const DOCUMENTS: usize = 24;
/// Time in which the jobs have done everything, trimming included, which comes once in sixty rounds.
const QUIET_MS: u64 = 65_000;
/// Where the store keeps its own rows, and the marks of ingests that no batch has named.
const OWN_SPACE: Space = Space(u8::MAX);
const UNNAMED_INGESTS: &str = "pending";

/// The course of one seed.
#[derive(Clone, Debug)]
pub struct Course {
    /// What it was drawn from.
    pub seed: u64,
    /// Whether writes are acknowledged before they are on the disk.
    pub buffered: bool,
    /// What happens, in order.
    pub steps: Vec<Event>,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Turns of the scheduler pass.
    Turns(u64),
    /// Time passes until the jobs have nothing left to do; then everything is looked at.
    Quiet,
    /// The clock goes forward by so many seconds.
    Clock(u32),
    /// A container gets another default and another indexing policy.
    Define {
        /// The container.
        container: usize,
        /// The default.
        default_ttl: DefaultTtl,
        /// The property that is not indexed, if any.
        unindexed: Option<&'static str>,
    },
    /// A document is written.
    Write {
        /// The container.
        container: usize,
        /// The document.
        id: usize,
    },
    /// A document is deleted, if it is there.
    Delete {
        /// The container.
        container: usize,
        /// The document.
        id: usize,
    },
    /// The consumer of a container's log is registered at its beginning, or has read everything.
    Consume {
        /// The container.
        container: usize,
        /// Whether it has read everything.
        to_end: bool,
    },
}

/// Draws the course of a seed.
pub fn draw(seed: u64) -> Course {
    let mut random = Random::seeded(seed);
    let buffered = random.chance(30);
    let mut steps = Vec::new();
    for _ in 0..random.between(2, 4) {
        for _ in 0..random.between(8, 30) {
            steps.push(event(&mut random));
        }
        steps.push(Event::Quiet);
    }
    Course { seed, buffered, steps }
}

fn event(random: &mut Random) -> Event {
    let container = random.index(CONTAINERS);
    let id = random.index(DOCUMENTS);
    match random.below(100) {
        0..=14 => Event::Turns(random.below(60)),
        15..=29 => Event::Clock(u32::try_from(random.between(5, 20)).unwrap_or(5)),
        30..=69 => {
            let default_ttl = match random.below(5) {
                0..=1 => DefaultTtl::Off,
                2..=3 => DefaultTtl::Seconds(random.between(5, 10)),
                _ => DefaultTtl::Seconds(100_000),
            };
            let unindexed = *random.pick(&[None, Some("v"), Some("mail")]);
            Event::Define { container, default_ttl, unindexed }
        }
        70..=85 => Event::Write { container, id },
        86..=90 => Event::Delete { container, id },
        _ => Event::Consume { container, to_end: random.chance(50) },
    }
}

/// Plays a course.
pub fn play(course: &Course) -> Result<(), Complaint> {
    let mut housekeeping = Housekeeping::new(course)?;
    for (index, step) in course.steps.iter().enumerate() {
        let done = housekeeping.step(*step);
        done.map_err(|complaint| format!("seed {}, step {index}, {step:?}: {complaint}", course.seed))?;
    }
    Ok(())
}

struct Housekeeping {
    world: World,
    tended: Vec<Tended>,
    version_last: u64,
}

/// A container and what is known of it.
struct Tended {
    container: Arc<Container>,
    default_ttl: DefaultTtl,
    documents: BTreeMap<usize, Known>,
    lsn_last: Lsn,
}

/// A document.
#[derive(Clone, Copy, Debug)]
struct Known {
    ts: u64,
    lsn: Lsn,
    /// Whether any definition that was in force since has let it expire.
    may_be_gone: bool,
}

impl Tended {
    fn is_expired(&self, ts: u64, now: u64) -> bool {
        match self.default_ttl {
            DefaultTtl::Off | DefaultTtl::OnDemand => false,
            DefaultTtl::Seconds(seconds) => ts + seconds <= now,
        }
    }

    /// Notes what the definition in force lets expire.
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
    fn new(course: &Course) -> Result<Housekeeping, Complaint> {
        let durability = if course.buffered { Durability::Buffered } else { Durability::Sync };
        let scenario = Scenario {
            seed: course.seed,
            buffered: course.buffered,
            partitions: 1,
            unique: Vec::new(),
            default_ttl: DefaultTtl::Off,
            waves: Vec::new(),
        };
        let world = World::new(&scenario, durability)?;
        let mut housekeeping = Housekeeping { world, tended: Vec::new(), version_last: 0 };
        for number in 0..CONTAINERS {
            let container = housekeeping.create(number)?;
            housekeeping.tended.push(Tended {
                container,
                default_ttl: DefaultTtl::Off,
                documents: BTreeMap::new(),
                lsn_last: Lsn(0),
            });
            for id in 0..DOCUMENTS {
                housekeeping.write(number, id)?;
            }
        }
        Ok(housekeeping)
    }

    fn step(&mut self, step: Event) -> Result<(), Complaint> {
        match step {
            Event::Turns(turns) => self.world.run(async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }),
            Event::Quiet => {
                self.world.rest(QUIET_MS)?;
                (0..CONTAINERS).try_for_each(|container| self.look(container))?;
                self.look_for_ingests()
            }
            Event::Clock(seconds) => {
                self.world.ambient.jump_seconds(i64::from(seconds));
                let now = self.now();
                self.tended.iter_mut().for_each(|tended| tended.note_expired(now));
                Ok(())
            }
            Event::Define { container, default_ttl, unindexed } => {
                self.define(container, default_ttl, unindexed)
            }
            Event::Write { container, id } => self.write(container, id),
            Event::Delete { container, id } => self.delete(container, id),
            Event::Consume { container, to_end } => self.consume(container, to_end),
        }
    }

    fn now(&self) -> u64 {
        self.world.ambient.now_seconds()
    }

    fn create(&self, number: usize) -> Result<Arc<Container>, Complaint> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let body = json!({
            "id": format!("kept {number}"),
            "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
        });
        let created: Result<_, Fault> = self.world.run(async move {
            let definition = ContainerDefinition::from_json(&body)?;
            let throughput = Throughput::manual(400)?;
            let database = engine.find_database(DATABASE)?.resource;
            let pass = engine.access().change_catalog(&principal, Action::ChangeMetadata, Place::Account)?;
            engine.create_container(pass, &database, definition, Some(throughput)).await
        })?;
        created.map_err(|fault| format!("a container could not be created: {fault}"))
    }

    fn define(
        &mut self,
        number: usize,
        default_ttl: DefaultTtl,
        unindexed: Option<&str>,
    ) -> Result<(), Complaint> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let container = Arc::clone(&self.tended[number].container);
        let mut body = container.definition().to_json();
        body.shift_remove("defaultTtl");
        if let Some(wire) = wire_ttl(default_ttl) {
            body.insert("defaultTtl".to_owned(), wire);
        }
        let excluded: Vec<Json> =
            unindexed.iter().map(|path| json!({ "path": format!("/{path}/?") })).collect();
        body.insert("indexingPolicy".to_owned(), json!({ "excludedPaths": excluded }));
        let replaced: Result<_, Fault> = self.world.run(async move {
            let pass = engine.access().change_catalog(&principal, Action::ChangeMetadata, Place::Account)?;
            engine.replace_container(pass, &container, &Json::Object(body), &Condition::None).await
        })?;
        let now = self.now();
        let tended = &mut self.tended[number];
        tended.container = replaced.map_err(|fault| format!("refused: {fault}"))?;
        tended.default_ttl = default_ttl;
        tended.note_expired(now);
        Ok(())
    }

    fn write(&mut self, number: usize, id: usize) -> Result<(), Complaint> {
        self.version_last += 1;
        let text = json!({
            "id": id.to_string(), "pk": "a", "v": self.version_last, "mail": format!("m{id}"),
        });
        let document = Document::from_json(text.to_string().as_bytes()).map_err(|error| error.to_string())?;
        let item = Item::new(document).map_err(|fault| fault.to_string())?;
        let outcome = self.change(number, Mutation::Upsert { item, condition: Condition::None })?;
        let (Outcome::Created(stored) | Outcome::Replaced(stored)) =
            outcome.map_err(|fault| format!("refused: {fault}"))?
        else {
            return Err("an upsert wrote nothing".to_owned());
        };
        let tended = &mut self.tended[number];
        tended.lsn_last = stored.lsn;
        tended.documents.insert(id, Known { ts: stored.ts(), lsn: stored.lsn, may_be_gone: false });
        Ok(())
    }

    fn delete(&mut self, number: usize, id: usize) -> Result<(), Complaint> {
        let mutation = Mutation::Delete { target: Target::Id(id.to_string()), condition: Condition::None };
        let known = self.tended[number].documents.get(&id).copied();
        match (self.change(number, mutation)?, known) {
            (Ok(_), Some(_)) => {
                self.tended[number].documents.remove(&id);
                Ok(())
            }
            (Err(Fault::Missing(_)), None) => Ok(()),
            // If it was not swept yet, another default may bring it back.
            (Err(Fault::Missing(_)), Some(known)) if known.may_be_gone => Ok(()),
            (told, known) => Err(format!("{known:?} was deleted with {told:?}")),
        }
    }

    fn change(&self, number: usize, mutation: Mutation) -> Result<Result<Outcome, Fault>, Complaint> {
        let (engine, principal) = (self.world.engine(), self.world.principal());
        let container = Arc::clone(&self.tended[number].container);
        self.world.run(async move {
            let key = container.definition().partition_key.parse_header(r#"["a"]"#)?;
            let keyed = Keyed::new(&container, Some(key), Operation::Write(mutation))?;
            let actions = [Action::UpsertDocument, Action::DeleteDocument];
            let pass = engine.access().write(&principal, &actions, &container, Reach::Whole)?;
            engine.write(pass, keyed).await.map(|receipt| receipt.outcome)
        })
    }

    fn consume(&self, number: usize, to_end: bool) -> Result<(), Complaint> {
        let engine = self.world.engine();
        let tended = &self.tended[number];
        let (container, lsn) = (Arc::clone(&tended.container), if to_end { tended.lsn_last } else { Lsn(0) });
        let set = self.world.run(async move {
            engine.set_log_consumer(&container, PartitionOrdinal(0), "reader", lsn).await
        })?;
        set.map_err(|fault| format!("refused: {fault}"))
    }

    /// Holds the rows of a container against what is known of it.
    fn look(&self, number: usize) -> Result<(), Complaint> {
        let tended = &self.tended[number];
        self.look_at_documents(tended).map_err(|complaint| format!("container {number}: {complaint}"))?;
        self.look_at_rows(tended).map_err(|complaint| format!("container {number}: {complaint}"))
    }

    fn look_at_documents(&self, tended: &Tended) -> Result<(), Complaint> {
        let store = self.world.store.clone();
        let range = keyspace::container_rows(tended.container.number());
        let rows = self.world.run(async move { all_rows(&store, RECORDS, range).await })??;
        let mut stored = BTreeMap::new();
        for (_, row) in rows {
            let document = partition::stored_document(&row).map_err(|fault| fault.to_string())?;
            stored.insert(document.lsn, document.ts());
        }
        let now = self.now();
        for (id, known) in &tended.documents {
            match stored.remove(&known.lsn) {
                Some(_) if tended.is_expired(known.ts, now) => {
                    return Err(format!("document {id}, {known:?}, was not swept at {now}"));
                }
                Some(_) => {}
                None if known.may_be_gone => {}
                None => return Err(format!("document {id}, {known:?}, is gone before its time, at {now}")),
            }
        }
        match stored.first_key_value() {
            None => Ok(()),
            Some((lsn, _)) => {
                Err(format!("the version {lsn} is there, which nobody wrote or which was replaced"))
            }
        }
    }

    fn look_at_rows(&self, tended: &Tended) -> Result<(), Complaint> {
        let (store, engine) = (self.world.store.clone(), self.world.engine());
        let container = Arc::clone(&tended.container);
        let id = PartitionId { container: container.number(), ordinal: PartitionOrdinal(0) };
        let shape = ContainerShape::from(container.definition());
        let looked: Result<_, Fault> = self.world.run(async move {
            let view = store.view().await.map_err(partition::read_fault)?;
            let partitions = [PartitionSpec { id, range: model::EffectiveRange::full() }];
            let expiry = ExpiryRule::Settled { swept_second: 0 };
            let scope =
                AuditScope { container: container.number(), shape: &shape, partitions: &partitions, expiry };
            let report = partition::audit(&view, &scope).await?;
            let runs = unnamed_runs(&view, id).await?;
            let percent = engine.index_progress(&container).await?;
            Ok((report, runs, percent, engine.audit_index(&container).await?))
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

    /// When all is quiet, every ingest is named or gone.
    fn look_for_ingests(&self) -> Result<(), Complaint> {
        let store = self.world.store.clone();
        let range = KeyRange::prefix(UNNAMED_INGESTS);
        let marks = self.world.run(async move { all_rows(&store, OWN_SPACE, range).await })??;
        if marks.is_empty() { Ok(()) } else { Err(format!("{} ingests were never named", marks.len())) }
    }
}

async fn all_rows(
    store: &kv::Store,
    space: Space,
    range: KeyRange,
) -> Result<Vec<(bytes::Bytes, bytes::Bytes)>, Complaint> {
    let everything = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = store.view().await.map_err(|fault| fault.to_string())?;
    let chunk = view.scan(space, range, Direction::Forward, everything).await;
    chunk.map(|chunk| chunk.rows).map_err(|fault| fault.to_string())
}
