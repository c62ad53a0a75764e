//! Runs the scenario of a seed and compares the product with the naive model at every quiet moment.
//!
//! The checks:
//! * after each wave: an order explains all answers (`history`), and the records in the store are exactly the documents
//!   of the model; nothing repeats or goes back (`identity`); feeds are complete (`feeds`);
//! * after a crash: acknowledged writes are present, with buffered writes a prefix of them; writes of unknown outcome
//!   are completely present or absent; and the container has its definition;
//! * from time to time: every row of every space is consistent with the records (`partition::audit`).

mod changes;
mod checks;

use crate::change_readers::ChangeReaders;
use crate::clients::{Lane, PreparedKind, PreparedRequest, PreparedTransaction};
use crate::feeds::Feed;
use crate::history::{Moment, quiescent};
use crate::hooks::Hooks;
use crate::identity::Identities;
use crate::naive::{DefaultTtl, Logical, Precondition, Rules, Selector, Step, Version};
use crate::scenario::{
    KEYS, LANES_MAX, PreconditionTemplate, Request, RequestKind, Scenario, StepKind, StepTemplate,
    TransactionTemplate, Trouble, Wave, id_text,
};
use crate::splits::Remainder;
use crate::trace::{shown, title};
use crate::world::{CheckFailure, World};
use kv::{Durability, Survivors};
use model::Ambient;
use partition::{ContainerShape, ExpiryRule};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Waves between two audits when nothing requires one earlier.
const WAVES_PER_AUDIT: usize = 8;
/// Seconds that a partition may be ahead of the clock.
const CLOCK_AHEAD_MAX: u64 = 60;

/// Result of a scenario without violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Digest of all requests and answers, in order.
    pub trace_hash: u64,
    /// Operations sent.
    pub operations: usize,
    /// Injected storage faults.
    pub faults: u64,
    /// Crashes.
    pub crashes: usize,
    /// Splits of partitions.
    pub splits: usize,
    /// All storage calls.
    pub calls: u64,
    /// What housekeeping had still to do whenever the power failed while it worked.
    pub remainders: Vec<Remainder>,
}

/// A violation found in a scenario.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The wave in which it was found, from 0; the number of waves if at the end.
    pub wave: usize,
    /// The violation.
    pub failure: CheckFailure,
    /// The requests and answers up to then.
    pub trace: Vec<String>,
}

/// Intentional defects of the product, to test the checkers.
#[derive(Clone, Copy, Default)]
pub struct Planted<'a> {
    /// Durability of acknowledged writes, whatever the scenario says.
    pub durability: Option<Durability>,
    /// Fault injection inside the product; nothing panics without it.
    pub hooks: Option<Hooks>,
    /// Applied to the world at the end of each wave with clients, before the checks.
    pub sabotage: Option<&'a dyn Fn(&World)>,
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Result<Summary, Violation> {
    run_planted(scenario, Planted::default())
}

/// Runs a scenario with intentional defects.
pub fn run_planted(scenario: &Scenario, planted: Planted<'_>) -> Result<Summary, Violation> {
    let at_start = |failure| Violation { wave: 0, failure, trace: Vec::new() };
    let mut simulation = Simulation::new(scenario, planted).map_err(at_start)?;
    for (index, wave) in scenario.waves.iter().enumerate() {
        simulation.note(|trace| write!(trace, "wave {index}: {}", title(wave)));
        simulation.play(index, wave).map_err(|failure| simulation.violation(index, failure))?;
    }
    let index = scenario.waves.len();
    simulation.finish().map_err(|failure| simulation.violation(index, failure))?;
    Ok(Summary {
        trace_hash: simulation.trace_hash,
        operations: simulation.operations,
        faults: simulation.world.script.fault_count(),
        crashes: simulation.crashes,
        splits: simulation.splits,
        calls: simulation.world.script.call_count(),
        remainders: simulation.remainders,
    })
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    planted: Planted<'a>,
    world: World,
    rules: Rules,
    /// The documents of each partition key.
    logicals: Vec<Logical>,
    /// The states of each partition key since the last moment at which everything was durable.
    past: Vec<Vec<Moment>>,
    /// Other orders of its waves, per key.
    other_orders: Vec<Vec<checks::OtherOrders>>,
    identities: Identities,
    feeds: Vec<Option<Feed>>,
    readers: Arc<ChangeReaders>,
    /// The latest time that each partition has returned, by its ordinal.
    clocks: BTreeMap<u32, u64>,
    is_full: bool,
    default_changed: bool,
    /// Whether a planted refusal may have made housekeeping skip a document.
    may_have_skipped: bool,
    /// The rules before a change of the definition that a power failure interrupted: documents that had expired by them
    /// may be gone.
    rules_before: Option<Rules>,
    /// The last second up to which stale expiry rows must be gone.
    swept_second: u64,
    events: u64,
    trace: Vec<String>,
    trace_hash: u64,
    operations: usize,
    crashes: usize,
    splits: usize,
    remainders: Vec<Remainder>,
}

/// How a wave ended.
enum End {
    /// All answers arrived.
    Quiet,
    /// The power failed. What survived of each partition.
    Crashed(BTreeMap<u32, Survived>),
}

/// How much of a partition's history survived a crash.
#[derive(Clone, Copy, Default)]
struct Survived {
    lsn: u64,
    ts: u64,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, planted: Planted<'a>) -> Result<Simulation<'a>, CheckFailure> {
        let durability = if scenario.buffered { Durability::Buffered } else { Durability::Sync };
        let world = World::new(scenario, planted.durability.unwrap_or(durability), planted.hooks)?;
        let now = world.ambient.now_seconds();
        let rules = Rules { unique: scenario.unique.clone(), default_ttl: scenario.default_ttl, now };
        let mut simulation = Simulation {
            scenario,
            planted,
            world,
            rules,
            logicals: vec![Logical::new(); KEYS.len()],
            past: Vec::new(),
            other_orders: Vec::new(),
            identities: Identities::default(),
            feeds: vec![None; LANES_MAX],
            readers: Arc::new(ChangeReaders::seeded(scenario.seed, scenario.partitions)),
            clocks: BTreeMap::new(),
            is_full: false,
            default_changed: false,
            may_have_skipped: false,
            rules_before: None,
            swept_second: 0,
            events: 0,
            trace: Vec::new(),
            trace_hash: 0xcbf2_9ce4_8422_2325,
            operations: 0,
            crashes: 0,
            splits: 0,
            remainders: Vec::new(),
        };
        simulation.all_is_durable();
        Ok(simulation)
    }

    fn play(&mut self, index: usize, wave: &Wave) -> Result<(), CheckFailure> {
        self.world.begin_wave();
        match wave {
            Wave::Clients { lanes, trouble, crash } => self.clients(lanes, trouble, *crash)?,
            Wave::Clock(seconds) => {
                self.world.ambient.jump_seconds(*seconds);
                self.rules.now = self.world.ambient.now_seconds();
                self.check_idle_wave(&[])?;
            }
            Wave::Rest { milliseconds, trouble, crash } => {
                self.rest(*milliseconds, trouble, *crash)?;
            }
            Wave::Define { default_ttl, policy, trouble, crash } => {
                self.define(*default_ttl, *policy, trouble, *crash)?;
            }
            Wave::Recreate { lanes, opening_turns, trouble, crash } => {
                self.world.stall_openings(*opening_turns);
                self.recreate(lanes, trouble, *crash)?;
            }
            Wave::Split { key, in_middle, lanes, trouble, crash } => {
                self.split((*key, *in_middle), lanes, trouble, *crash)?;
            }
            Wave::Empty(key, trouble) => self.empty(*key, trouble)?,
            Wave::Restart => self.restart()?,
            Wave::Crash(survivors, trouble) => {
                let end = self.crash(*survivors)?;
                self.check_wave(&[], &end)?;
                self.revive(trouble)?;
            }
            Wave::Rewind => self.rewind()?,
            Wave::Disk(full) => {
                self.is_full = *full;
                self.world.script.set_disk_full(*full);
            }
        }
        if index % WAVES_PER_AUDIT == WAVES_PER_AUDIT - 1 {
            self.audit()?;
        }
        self.world.audit_index()?;
        self.check_readers()?;
        // The audit has read every partition.
        for spec in &self.world.specs {
            let ordinal = spec.id.ordinal.0;
            self.clocks.insert(ordinal, self.time_of(ordinal));
        }
        Ok(())
    }

    /// The time of a partition: the clock, unless that was set back a little since the partition was last read.
    fn time_of(&self, ordinal: u32) -> u64 {
        // A new partition takes over the time of the one that it was split from.
        let known = |ordinal: &u32| self.clocks.get(ordinal).copied();
        let latest = known(&ordinal).or_else(|| self.world.parents_of(ordinal).iter().find_map(known));
        let latest = latest.unwrap_or(0);
        let now = self.rules.now;
        if latest > now + CLOCK_AHEAD_MAX { now } else { latest.max(now) }
    }

    /// The rules for the documents of a partition key.
    fn rules_of(&self, key: usize) -> Rules {
        let now = self.world.ordinal_of(key).map_or(self.rules.now, |ordinal| self.time_of(ordinal));
        Rules { now, ..self.rules.clone() }
    }

    fn key_rules(&self) -> Vec<Rules> {
        (0..KEYS.len()).map(|key| self.rules_of(key)).collect()
    }

    fn finish(&mut self) -> Result<(), CheckFailure> {
        self.audit()?;
        self.restart()?;
        self.is_full = false;
        self.world.script.set_disk_full(false);
        // Two rounds of the jobs: the rows of a dropped container must be deleted, and this recorded.
        self.world.rest(2_500)?;
        self.check_idle_wave(&[])?;
        self.check_readers()?;
        match self.world.orphaned_containers()? {
            0 => Ok(()),
            count => Err(format!("{count} dropped containers still have rows")),
        }
    }

    fn clients(
        &mut self,
        lanes: &[Vec<Request>],
        trouble: &Trouble,
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), CheckFailure> {
        let lanes = self.lanes(lanes);
        self.world.plan(trouble);
        let records = self.world.play(lanes, &self.readers, crash.map(|(turns, _)| turns))?;
        self.operations += records.len();
        for record in &records {
            self.note(|trace| write!(trace, "  {}", shown(record)));
        }
        let end = match crash {
            Some((_, survivors)) => self.crash(survivors)?,
            None => {
                self.world.wait_for_reopen()?;
                self.world.recover()?;
                End::Quiet
            }
        };
        if let Some(sabotage) = self.planted.sabotage {
            sabotage(&self.world);
        }
        self.check_wave(&records, &end)?;
        if crash.is_some() {
            self.revive(&Trouble::default())?;
        }
        Ok(())
    }

    fn lanes(&self, lanes: &[Vec<Request>]) -> Vec<Lane> {
        let request =
            |request: &Request| PreparedRequest { pause: request.pause, kind: self.prepare(&request.want) };
        let lane = |(requests, feed): (&Vec<Request>, &Option<Feed>)| {
            let open = feed.as_ref().and_then(Feed::open);
            (requests.iter().map(request).collect(), open)
        };
        lanes.iter().zip(&self.feeds).map(lane).collect()
    }

    /// Fills in values that only the model knows: current ETags and numbers.
    fn prepare(&self, want: &RequestKind) -> PreparedKind {
        match want {
            RequestKind::Single { key, template } => PreparedKind::Single(*key, self.step(*key, template)),
            RequestKind::Batch { key, templates } => {
                let steps = templates.iter().map(|template| self.step(*key, template));
                PreparedKind::Batch(*key, steps.collect())
            }
            RequestKind::Transaction { key, templates, turns, is_locked } => {
                let steps = templates.iter().map(|template| match template {
                    TransactionTemplate::Step(template) => self.step(*key, template),
                    TransactionTemplate::List { by_query } => Step::List { by_query: *by_query },
                });
                PreparedKind::Transaction(PreparedTransaction {
                    key: *key,
                    steps: steps.collect(),
                    turns: *turns,
                    is_locked: *is_locked,
                })
            }
            RequestKind::Bulk(parts) => {
                let part = |(key, template): &(usize, StepTemplate)| (*key, self.step(*key, template));
                PreparedKind::Bulk(parts.iter().map(part).collect())
            }
            RequestKind::Page { scope, items_max, query } => {
                PreparedKind::Page { scope: *scope, items_max: *items_max, query: *query }
            }
        }
    }

    fn step(&self, key: usize, template: &StepTemplate) -> Step {
        let id = id_text(template.id);
        let stamp = self.logicals[key].get(&id).and_then(|version| version.stamp.as_ref());
        let etag = stamp.map_or_else(|| "\"none\"".to_owned(), |stamp| stamp.etag.clone());
        let selector = match stamp {
            Some(stamp) if template.by_number => Selector::Number(stamp.number),
            Some(_) | None => Selector::Id(id),
        };
        let precondition = match template.precondition {
            PreconditionTemplate::None => Precondition::None,
            PreconditionTemplate::MatchCurrent => Precondition::Match(etag),
            PreconditionTemplate::MatchOther => {
                Precondition::Match("\"00000000-0000-0000-0000-000000000001\"".to_owned())
            }
            PreconditionTemplate::Exists => Precondition::Exists,
            PreconditionTemplate::NoneMatchCurrent => Precondition::NoneMatch(etag),
            PreconditionTemplate::Absent => Precondition::Absent,
        };
        let body = template.body.clone();
        match template.kind {
            StepKind::Create => Step::Create { body },
            StepKind::Upsert => Step::Upsert { body, precondition },
            StepKind::Replace => Step::Replace { selector, body, precondition },
            StepKind::Patch => Step::Patch { selector, edits: template.edits.clone(), precondition },
            StepKind::Delete => Step::Delete { selector, precondition },
            StepKind::Read => Step::Read { selector, precondition },
        }
    }

    /// Checks the state after a wave without requests: the model may only have lost documents that had expired by the
    /// current or the earlier rules.
    fn check_idle_wave(&mut self, earlier: &[Rules]) -> Result<(), CheckFailure> {
        let found = self.world.read_documents()?;
        let mut moments = Vec::with_capacity(KEYS.len());
        for (key, found) in found.iter().enumerate() {
            let rules = self.rules_of(key);
            let now = rules.now;
            let earlier = earlier.iter().map(|earlier| Rules { now, ..earlier.clone() });
            let all: Vec<Rules> = earlier.chain([rules]).collect();
            let may_be_gone = |_: &str, version: &Version| all.iter().any(|rules| rules.is_expired(version));
            let state = quiescent(&self.logicals[key], found, may_be_gone).ok_or_else(|| {
                format!("key {key}: records changed by themselves: {:?} became {found:?}", self.logicals[key])
            })?;
            let expired = all.iter().flat_map(|rules| rules.expired_in(&self.logicals[key])).collect();
            let moment =
                Moment { lsn: None, expired, span: (self.events, Some(self.events)), state: state.clone() };
            moments.push(vec![Moment::initial(self.logicals[key].clone()), moment.clone()]);
            self.past[key].push(moment);
            self.logicals[key] = state;
        }
        self.check_feeds_at_quiet_moment(&moments)
    }

    /// Everything acknowledged so far survives any later crash.
    fn all_is_durable(&mut self) {
        self.past = self.logicals.iter().map(|logical| vec![Moment::initial(logical.clone())]).collect();
        self.other_orders = self.logicals.iter().map(|_| Vec::new()).collect();
    }

    /// Simulates a power failure and returns how much of each partition's history survived.
    fn crash(&mut self, survivors: Survivors) -> Result<End, CheckFailure> {
        self.world.crash(survivors)?;
        self.crashed()
    }

    /// Readers of the change feed read to the end and have a copy of the documents.
    fn check_readers(&self) -> Result<(), CheckFailure> {
        self.readers.on_quiet_moment(&self.world, |key, stored| {
            let version =
                self.logicals[key].get(stored.body.get("id").and_then(|id| id.as_str()).unwrap_or_default());
            version.is_some_and(|version| !self.rules_of(key).is_expired(version))
        })
    }

    /// How much of each partition's history survived the last crash.
    fn crashed(&mut self) -> Result<End, CheckFailure> {
        if self.scenario.buffered {
            self.readers.forget();
        }
        self.crashes += 1;
        self.swept_second = 0;
        let heads = self.audit()?;
        let survived = heads.into_iter().map(|(ordinal, lsn, ts)| (ordinal, Survived { lsn, ts })).collect();
        Ok(End::Crashed(survived))
    }

    /// Makes the store lose unsynced commits while no request is running: the engine must detect it.
    fn rewind(&mut self) -> Result<(), CheckFailure> {
        let clocks = self.clocks.clone();
        self.world.rewind()?;
        if self.scenario.buffered {
            self.readers.forget();
        }
        self.swept_second = 0;
        let heads = self.audit()?;
        let survived = heads.into_iter().map(|(ordinal, lsn, ts)| (ordinal, Survived { lsn, ts })).collect();
        self.check_wave(&[], &End::Crashed(survived))?;
        // A writer that continues keeps its time.
        self.clocks = clocks;
        Ok(())
    }

    /// Starts the engine and checks that the container is the expected one.
    fn revive(&mut self, trouble: &Trouble) -> Result<(), CheckFailure> {
        self.start(trouble)?;
        let container = self.world.find_container();
        let container = container.map_err(|fault| format!("the container is gone: {fault}"))?;
        if container.number() != self.world.container.number() {
            return Err("the container is another one".to_owned());
        }
        if container.definition() != self.world.container.definition() {
            return Err("the container has another definition".to_owned());
        }
        self.world.adopt(container)
    }

    /// Starts the engine; a start that fails because of storage faults must not prevent the next one.
    fn start(&mut self, trouble: &Trouble) -> Result<(), CheckFailure> {
        self.world.plan(trouble);
        let faults_before = self.world.script.fault_count();
        let started = self.world.revive();
        let has_failed = self.world.script.fault_count() > faults_before;
        self.world.recover()?;
        match started {
            Err(_) if has_failed => self.world.revive(),
            other => other,
        }
    }

    fn restart(&mut self) -> Result<(), CheckFailure> {
        self.world.close()?;
        self.world.crash(Survivors::Synced)?;
        let heads = self.audit()?;
        self.clocks = heads.into_iter().map(|(ordinal, _, ts)| (ordinal, ts)).collect();
        self.check_idle_wave(&[])?;
        self.all_is_durable();
        self.revive(&Trouble::default())
    }

    /// Compares all rows with the records; returns each partition's ordinal, last LSN and time.
    fn audit(&mut self) -> Result<Vec<(u32, u64, u64)>, CheckFailure> {
        self.world.refresh_specs()?;
        let mut shape = ContainerShape::from(self.world.container.definition());
        shape.default_ttl = match self.rules.default_ttl {
            DefaultTtl::Off => model::DefaultTtl::Off,
            DefaultTtl::OnDemand => model::DefaultTtl::OnDemand,
            DefaultTtl::Seconds(seconds) => model::DefaultTtl::Seconds(u32::try_from(seconds).unwrap_or(1)),
        };
        // A skipped document gets no expiry row, which is counted and logged and has no other effect.
        self.may_have_skipped |= self.world.engine().skipped_documents() > 0;
        let expiry = if !self.default_changed {
            ExpiryRule::Exact
        } else if self.may_have_skipped
            || self.world.stored_container()?.ok_or("the container is gone")?.expiry_pending
        {
            ExpiryRule::Pending
        } else {
            ExpiryRule::Rescheduled { swept_second: self.swept_second }
        };
        let report = self.world.audit(&shape, expiry)?;
        match report.findings.first() {
            None => {
                let partition = |partition: &partition::AuditedPartition| {
                    (partition.id.ordinal.0, partition.lsn.0, partition.ts)
                };
                Ok(report.partitions.iter().map(partition).collect())
            }
            Some(finding) => {
                Err(format!("audit ({expiry:?}): {finding} (and {} more)", report.findings.len() - 1))
            }
        }
    }

    fn note(&mut self, write: impl FnOnce(&mut String) -> std::fmt::Result) {
        let mut line = String::new();
        if write(&mut line).is_ok() {
            for byte in line.bytes() {
                self.trace_hash = (self.trace_hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            self.trace.push(line);
        }
    }

    fn violation(&self, wave: usize, failure: CheckFailure) -> Violation {
        Violation { wave, failure, trace: self.trace.clone() }
    }
}

fn default_of(container: &engine::Container) -> DefaultTtl {
    match container.definition().default_ttl {
        model::DefaultTtl::Off => DefaultTtl::Off,
        model::DefaultTtl::OnDemand => DefaultTtl::OnDemand,
        model::DefaultTtl::Seconds(seconds) => DefaultTtl::Seconds(u64::from(seconds)),
    }
}
