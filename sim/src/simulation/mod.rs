//! Plays the course of a seed and holds the product against the naive model at every quiet moment.
//!
//! What is checked, and when:
//! * after each wave: all answers have an order that explains them (`history`), and the records in the store are
//!   exactly the documents of the model; nothing repeats or goes back (`identity`); feeds are complete (`feeds`);
//! * after a crash: what was acknowledged is there, with buffered writes a prefix of it; writes of unknown outcome
//!   are wholly there or wholly absent; and the container has the definition it had;
//! * now and then: every row of every space agrees with the records (`partition::audit`).

mod changes;
mod judge;

use crate::desk::{Errand, ErrandKind, Lane};
use crate::feeds::Feed;
use crate::history::{Moment, settled};
use crate::hooks::Hooks;
use crate::identity::Identities;
use crate::naive::{Aim, DefaultTtl, Demand, Logical, Rules, Step, Version};
use crate::scenario::{
    DemandWish, KEYS, LANES_MAX, Request, Scenario, Trouble, Want, Wave, Wish, WishKind, id_text,
};
use crate::trace::{shown, title};
use crate::world::{Complaint, World};
use kv::{Durability, Survivors};
use model::Ambient;
use partition::{ContainerShape, ExpiryRule};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Waves between two audits when nothing asks for one earlier.
const WAVES_PER_AUDIT: usize = 8;
/// Seconds that a partition may be ahead of the clock.
const CLOCK_AHEAD_MAX: u64 = 60;

/// A course that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Digest of everything that was sent and told, in order.
    pub trace_hash: u64,
    /// Operations sent.
    pub operations: usize,
    /// Storage calls that were made to fail.
    pub faults: u64,
    /// Crashes.
    pub crashes: usize,
    /// Storage calls in all.
    pub calls: u64,
}

/// A course on which something happened that must not.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The wave in which it was noticed, from 0; the number of waves if at the end.
    pub wave: usize,
    /// What happened.
    pub complaint: Complaint,
    /// What was sent and told up to then.
    pub trace: Vec<String>,
}

/// What is wrong with the product on purpose, to see whether the judges notice.
#[derive(Clone, Copy, Default)]
pub struct Planted<'a> {
    /// How durable acknowledged writes are, whatever the scenario says.
    pub durability: Option<Durability>,
    /// What is done to the product from within; nothing panics without it.
    pub hooks: Option<Hooks>,
    /// Done to the world at the end of each wave with clients, before it is judged.
    pub sabotage: Option<&'a dyn Fn(&World)>,
}

/// Plays a course.
pub fn run(scenario: &Scenario) -> Result<Summary, Violation> {
    run_planted(scenario, Planted::default())
}

/// Plays a course with something wrong on purpose.
pub fn run_planted(scenario: &Scenario, planted: Planted<'_>) -> Result<Summary, Violation> {
    let at_start = |complaint| Violation { wave: 0, complaint, trace: Vec::new() };
    let mut simulation = Simulation::new(scenario, planted).map_err(at_start)?;
    for (index, wave) in scenario.waves.iter().enumerate() {
        simulation.note(|trace| write!(trace, "wave {index}: {}", title(wave)));
        simulation.play(index, wave).map_err(|complaint| simulation.violation(index, complaint))?;
    }
    let index = scenario.waves.len();
    simulation.finish().map_err(|complaint| simulation.violation(index, complaint))?;
    Ok(Summary {
        trace_hash: simulation.trace_hash,
        operations: simulation.operations,
        faults: simulation.world.script.struck_count(),
        crashes: simulation.crashes,
        calls: simulation.world.script.call_count(),
    })
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    planted: Planted<'a>,
    world: World,
    rules: Rules,
    /// The documents of each partition key.
    logicals: Vec<Logical>,
    /// What each partition key went through since the last moment at which all was durable.
    past: Vec<Vec<Moment>>,
    identities: Identities,
    feeds: Vec<Option<Feed>>,
    /// The latest time that each partition has shown, by its ordinal.
    clocks: BTreeMap<u32, u64>,
    is_full: bool,
    default_changed: bool,
    /// Whether a planted refusal may have made housekeeping leave a document out.
    may_have_skipped: bool,
    /// The rules before a change of the definition that the power has cut off: what had expired by them may be gone.
    rules_before: Option<Rules>,
    /// The last second up to which stale expiry rows must be gone.
    swept_second: u64,
    events: u64,
    trace: Vec<String>,
    trace_hash: u64,
    operations: usize,
    crashes: usize,
}

/// How a wave ended.
enum End {
    /// All answers came.
    Quiet,
    /// The power failed. What survived of each partition.
    Crashed(BTreeMap<u32, Survived>),
}

/// How far a partition's history survived a crash.
#[derive(Clone, Copy, Default)]
struct Survived {
    lsn: u64,
    ts: u64,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, planted: Planted<'a>) -> Result<Simulation<'a>, Complaint> {
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
            identities: Identities::default(),
            feeds: vec![None; LANES_MAX],
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
        };
        simulation.all_is_durable();
        Ok(simulation)
    }

    fn play(&mut self, index: usize, wave: &Wave) -> Result<(), Complaint> {
        self.world.begin_wave();
        match wave {
            Wave::Clients { lanes, trouble, crash } => self.clients(lanes, trouble, *crash)?,
            Wave::Clock(seconds) => {
                self.world.ambient.jump_seconds(*seconds);
                self.rules.now = self.world.ambient.now_seconds();
                self.settle(&[])?;
            }
            Wave::Rest(milliseconds) => {
                self.world.rest(*milliseconds)?;
                self.settle(&[])?;
                if *milliseconds > 1_000 && self.rules.default_ttl != DefaultTtl::Off {
                    self.swept_second = self.swept_second.max(self.rules.now);
                }
            }
            Wave::Define { default_ttl, policy, trouble, crash } => {
                self.define(*default_ttl, *policy, trouble, *crash)?;
            }
            Wave::Recreate { lanes, opening_turns, trouble, crash } => {
                self.world.stall_openings(*opening_turns);
                self.recreate(lanes, trouble, *crash)?;
            }
            Wave::Empty(key, trouble) => self.empty(*key, trouble)?,
            Wave::Restart => self.restart()?,
            Wave::Crash(survivors, trouble) => {
                let end = self.crash(*survivors)?;
                self.judge(&[], &end)?;
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
        // That has looked into every partition.
        for spec in &self.world.specs {
            let ordinal = spec.id.ordinal.0;
            self.clocks.insert(ordinal, self.time_of(ordinal));
        }
        Ok(())
    }

    /// The time of a partition: the clock's, unless that was set back a little since the partition was last looked at.
    fn time_of(&self, ordinal: u32) -> u64 {
        let latest = self.clocks.get(&ordinal).copied().unwrap_or(0);
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

    fn finish(&mut self) -> Result<(), Complaint> {
        self.audit()?;
        self.restart()?;
        self.is_full = false;
        self.world.script.set_disk_full(false);
        // Two rounds of the jobs: what a dropped container left must be gone, and noted as gone.
        self.world.rest(2_500)?;
        self.settle(&[])?;
        match self.world.strays()? {
            0 => Ok(()),
            count => Err(format!("{count} dropped containers have left rows behind")),
        }
    }

    fn clients(
        &mut self,
        lanes: &[Vec<Request>],
        trouble: &Trouble,
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), Complaint> {
        let lanes = self.lanes(lanes);
        self.world.plan(trouble);
        let records = self.world.play(lanes, crash.map(|(turns, _)| turns))?;
        self.operations += records.len();
        for record in &records {
            self.note(|trace| write!(trace, "  {}", shown(record)));
        }
        let end = match crash {
            Some((_, survivors)) => self.crash(survivors)?,
            None => {
                self.world.wait_for_doctor()?;
                self.world.heal()?;
                End::Quiet
            }
        };
        if let Some(sabotage) = self.planted.sabotage {
            sabotage(&self.world);
        }
        self.judge(&records, &end)?;
        if crash.is_some() {
            self.revive(&Trouble::default())?;
        }
        Ok(())
    }

    fn lanes(&self, lanes: &[Vec<Request>]) -> Vec<Lane> {
        let errand = |request: &Request| Errand { pause: request.pause, kind: self.errand(&request.want) };
        let lane = |(requests, feed): (&Vec<Request>, &Option<Feed>)| {
            let open = feed.as_ref().and_then(Feed::open);
            (requests.iter().map(errand).collect(), open)
        };
        lanes.iter().zip(&self.feeds).map(lane).collect()
    }

    /// Fills in what only the model knows: current ETags and numbers.
    fn errand(&self, want: &Want) -> ErrandKind {
        match want {
            Want::Single { key, wish } => ErrandKind::Single(*key, self.step(*key, wish)),
            Want::Batch { key, wishes } => {
                let steps = wishes.iter().map(|wish| self.step(*key, wish));
                ErrandKind::Batch(*key, steps.collect())
            }
            Want::Bulk(parts) => {
                let part = |(key, wish): &(usize, Wish)| (*key, self.step(*key, wish));
                ErrandKind::Bulk(parts.iter().map(part).collect())
            }
            Want::Page { scope, items_max } => ErrandKind::Page { scope: *scope, items_max: *items_max },
        }
    }

    fn step(&self, key: usize, wish: &Wish) -> Step {
        let id = id_text(wish.id);
        let stamp = self.logicals[key].get(&id).and_then(|version| version.stamp.as_ref());
        let etag = stamp.map_or_else(|| "\"none\"".to_owned(), |stamp| stamp.etag.clone());
        let aim = match stamp {
            Some(stamp) if wish.by_number => Aim::Number(stamp.number),
            Some(_) | None => Aim::Id(id),
        };
        let demand = match wish.demand {
            DemandWish::None => Demand::None,
            DemandWish::MatchCurrent => Demand::Match(etag),
            DemandWish::MatchOther => Demand::Match("\"00000000-0000-0000-0000-000000000001\"".to_owned()),
            DemandWish::Exists => Demand::Exists,
            DemandWish::NoneMatchCurrent => Demand::NoneMatch(etag),
            DemandWish::Absent => Demand::Absent,
        };
        let body = wish.body.clone();
        match wish.kind {
            WishKind::Create => Step::Create { body },
            WishKind::Upsert => Step::Upsert { body, demand },
            WishKind::Replace => Step::Replace { aim, body, demand },
            WishKind::Patch => Step::Patch { aim, edits: wish.edits.clone(), demand },
            WishKind::Delete => Step::Delete { aim, demand },
            WishKind::Read => Step::Read { aim, demand },
        }
    }

    /// Nothing was sent: the model may only have lost what had expired, by the rules now or those before.
    fn settle(&mut self, earlier: &[Rules]) -> Result<(), Complaint> {
        let found = self.world.look()?;
        let mut moments = Vec::with_capacity(KEYS.len());
        for (key, found) in found.iter().enumerate() {
            let rules = self.rules_of(key);
            let now = rules.now;
            let earlier = earlier.iter().map(|earlier| Rules { now, ..earlier.clone() });
            let all: Vec<Rules> = earlier.chain([rules]).collect();
            let may_be_gone = |_: &str, version: &Version| all.iter().any(|rules| rules.is_expired(version));
            let state = settled(&self.logicals[key], found, may_be_gone).ok_or_else(|| {
                format!("key {key}: records changed by themselves: {:?} became {found:?}", self.logicals[key])
            })?;
            let expired = all.iter().flat_map(|rules| rules.expired_in(&self.logicals[key])).collect();
            let moment =
                Moment { lsn: None, expired, span: (self.events, Some(self.events)), state: state.clone() };
            moments.push(vec![Moment::initial(self.logicals[key].clone()), moment.clone()]);
            self.past[key].push(moment);
            self.logicals[key] = state;
        }
        self.settle_feeds(&moments)
    }

    /// Everything acknowledged up to now survives any crash from now on.
    fn all_is_durable(&mut self) {
        self.past = self.logicals.iter().map(|logical| vec![Moment::initial(logical.clone())]).collect();
    }

    /// Cuts the power and tells how far each partition's history survived.
    fn crash(&mut self, survivors: Survivors) -> Result<End, Complaint> {
        self.world.crash(survivors)?;
        self.crashed()
    }

    /// How far each partition's history survived a crash that has just been.
    fn crashed(&mut self) -> Result<End, Complaint> {
        self.crashes += 1;
        self.swept_second = 0;
        let heads = self.audit()?;
        let survived = heads.into_iter().map(|(ordinal, lsn, ts)| (ordinal, Survived { lsn, ts })).collect();
        Ok(End::Crashed(survived))
    }

    /// Lets the store forget what was not synced while nothing is under way: the engine has to notice.
    fn rewind(&mut self) -> Result<(), Complaint> {
        let clocks = self.clocks.clone();
        self.world.rewind()?;
        self.swept_second = 0;
        let heads = self.audit()?;
        let survived = heads.into_iter().map(|(ordinal, lsn, ts)| (ordinal, Survived { lsn, ts })).collect();
        self.judge(&[], &End::Crashed(survived))?;
        // A writer that goes on keeps its time.
        self.clocks = clocks;
        Ok(())
    }

    /// Starts the engine, on which the container must be the one that is known.
    fn revive(&mut self, trouble: &Trouble) -> Result<(), Complaint> {
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

    /// Starts the engine; a start that fails because of the storage must leave the next one all it needs.
    fn start(&mut self, trouble: &Trouble) -> Result<(), Complaint> {
        self.world.plan(trouble);
        let struck_before = self.world.script.struck_count();
        let started = self.world.revive();
        let struck = self.world.script.struck_count() > struck_before;
        self.world.heal()?;
        match started {
            Err(_) if struck => self.world.revive(),
            other => other,
        }
    }

    fn restart(&mut self) -> Result<(), Complaint> {
        self.world.close()?;
        self.world.crash(Survivors::Synced)?;
        let heads = self.audit()?;
        self.clocks = heads.into_iter().map(|(ordinal, _, ts)| (ordinal, ts)).collect();
        self.settle(&[])?;
        self.all_is_durable();
        self.revive(&Trouble::default())
    }

    /// Compares all rows with the records; tells each partition's ordinal, last LSN and time.
    fn audit(&mut self) -> Result<Vec<(u32, u64, u64)>, Complaint> {
        let mut shape = ContainerShape::from(self.world.container.definition());
        shape.default_ttl = match self.rules.default_ttl {
            DefaultTtl::Off => model::DefaultTtl::Off,
            DefaultTtl::OnDemand => model::DefaultTtl::OnDemand,
            DefaultTtl::Seconds(seconds) => model::DefaultTtl::Seconds(u32::try_from(seconds).unwrap_or(1)),
        };
        // A document that is left out gets no expiry row, which is counted and logged and harms nothing else.
        self.may_have_skipped |= self.world.engine().skipped_documents() > 0;
        let expiry = if !self.default_changed {
            ExpiryRule::Exact
        } else if self.may_have_skipped
            || self.world.stored_container()?.ok_or("the container is gone")?.expiry_pending
        {
            ExpiryRule::Pending
        } else {
            ExpiryRule::Settled { swept_second: self.swept_second }
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

    fn violation(&self, wave: usize, complaint: Complaint) -> Violation {
        Violation { wave, complaint, trace: self.trace.clone() }
    }
}

fn default_of(container: &engine::Container) -> DefaultTtl {
    match container.definition().default_ttl {
        model::DefaultTtl::Off => DefaultTtl::Off,
        model::DefaultTtl::OnDemand => DefaultTtl::OnDemand,
        model::DefaultTtl::Seconds(seconds) => DefaultTtl::Seconds(u64::from(seconds)),
    }
}
