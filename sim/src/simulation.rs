//! Plays the course of a seed and holds the product against the naive model at every quiet moment.
//!
//! What is checked, and when:
//! * after each wave: all answers have an order that explains them (`history`), and the records in the store are
//!   exactly the documents of the model; nothing repeats or goes back (`identity`); feeds are complete (`feeds`);
//! * after a crash: what was acknowledged is there, with buffered writes a prefix of it; writes of unknown outcome
//!   are wholly there or wholly absent; and the container has the definition it had;
//! * now and then: every row of every space agrees with the records (`partition::audit`).

use crate::feeds::Feed;
use crate::history::{Moment, Operation, Seen, Stored, Verdict, explain, settled};
use crate::identity::{Identities, Shown};
use crate::naive::{Aim, DefaultTtl, Demand, Logical, Refusal, Rules, Step, Version};
use crate::scenario::{DemandWish, KEYS, LANES_MAX, Request, Scenario, Want, Wave, Wish, WishKind, id_text};
use crate::world::{Answer, Call, Complaint, Errand, ErrandKind, Found, Record, World, stored_of};
use kv::{FaultKind, Survivors};
use model::{Ambient, ConflictFault, Fault, MissingFault, PreconditionFault, RequestFault, StorageFault};
use partition::{ContainerShape, ExpiryRule};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Waves between two audits when nothing asks for one earlier.
const WAVES_PER_AUDIT: usize = 8;

/// Strings longer than this are left out of the trace.
const LONG_TEXT: usize = 80;

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

/// Plays a course.
pub fn run(scenario: &Scenario) -> Result<Summary, Violation> {
    let at_start = |complaint| Violation { wave: 0, complaint, trace: Vec::new() };
    let mut simulation = Simulation::new(scenario).map_err(at_start)?;
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
    })
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    world: World,
    rules: Rules,
    /// The documents of each partition key.
    logicals: Vec<Logical>,
    /// What each partition key went through since the last moment at which all was durable.
    past: Vec<Vec<Moment>>,
    identities: Identities,
    feeds: Vec<Option<Feed>>,
    now_max: u64,
    is_full: bool,
    default_changed: bool,
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
    /// The power failed. The last LSN of each partition that survived.
    Crashed(BTreeMap<u32, u64>),
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario) -> Result<Simulation<'a>, Complaint> {
        let world = World::new(scenario)?;
        let now = world.ambient.now_seconds();
        let rules = Rules { unique: scenario.unique.clone(), default_ttl: scenario.default_ttl, now };
        let mut simulation = Simulation {
            scenario,
            world,
            rules,
            logicals: vec![Logical::new(); KEYS.len()],
            past: Vec::new(),
            identities: Identities::default(),
            feeds: vec![None; LANES_MAX],
            now_max: now,
            is_full: false,
            default_changed: false,
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
        match wave {
            Wave::Clients { lanes, faults, crash } => self.clients(lanes, faults, *crash)?,
            Wave::Clock(seconds) => {
                self.world.ambient.jump_seconds(*seconds);
                self.rules.now = self.world.ambient.now_seconds();
                self.now_max = self.now_max.max(self.rules.now);
                self.settle(&[])?;
            }
            Wave::Rest(milliseconds) => {
                self.world.rest(*milliseconds)?;
                self.settle(&[])?;
                if *milliseconds > 1_000 && self.rules.default_ttl != DefaultTtl::Off {
                    self.swept_second = self.swept_second.max(self.rules.now);
                }
            }
            Wave::Default(default_ttl, faults) => self.change_default(*default_ttl, faults)?,
            Wave::Recreate(faults) => self.recreate(faults)?,
            Wave::Empty(key, faults) => self.empty(*key, faults)?,
            Wave::Restart => self.restart()?,
            Wave::Crash(survivors) => {
                let end = self.crash(*survivors)?;
                self.judge(&[], &end)?;
                self.revive()?;
            }
            Wave::Disk(full) => {
                self.is_full = *full;
                self.world.script.set_disk_full(*full);
            }
        }
        if index % WAVES_PER_AUDIT == WAVES_PER_AUDIT - 1 {
            self.audit()?;
        }
        Ok(())
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
        faults: &[(u64, FaultKind)],
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), Complaint> {
        let container = self.world.container.number().0;
        let errand = |request: &Request| Errand { pause: request.pause, kind: self.errand(&request.want) };
        let lanes: Vec<_> = lanes
            .iter()
            .zip(&self.feeds)
            .map(|(requests, feed)| {
                let open = feed.as_ref().and_then(Feed::open);
                (requests.iter().map(errand).collect::<Vec<_>>(), open)
            })
            .collect();
        self.plan(faults);
        let records = self.world.play(lanes, crash.map(|(turns, _)| turns))?;
        self.operations += records.len();
        for record in &records {
            self.note(|trace| write!(trace, "  {}", shown(record)));
        }
        let end = match crash {
            Some((_, survivors)) => self.crash(survivors)?,
            None => {
                self.world.heal()?;
                End::Quiet
            }
        };
        debug_assert_eq!(container, self.world.container.number().0);
        self.judge(&records, &end)?;
        if crash.is_some() {
            self.revive()?;
        }
        Ok(())
    }

    fn plan(&self, faults: &[(u64, FaultKind)]) {
        for (call, kind) in faults {
            self.world.script.fail_call(*call, *kind);
        }
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

    /// Holds a wave's answers and what it left behind against the model.
    fn judge(&mut self, records: &[Record], end: &End) -> Result<(), Complaint> {
        let mut operations: Vec<Vec<Operation>> = vec![Vec::new(); KEYS.len()];
        for record in records {
            if let Call::Steps { key, steps } = &record.call
                && let Some(verdict) = self.verdict(record)?
            {
                operations[*key].push(Operation {
                    invoked: self.events + record.invoked,
                    answered: record.answered.map(|event| self.events + event),
                    steps: steps.clone(),
                    verdict,
                });
            }
        }
        self.events += records.len() as u64 * 2 + 2;
        self.check_identities(&operations)?;
        let found = self.world.look()?;
        let mut moments = Vec::with_capacity(KEYS.len());
        for (key, operations) in operations.iter().enumerate() {
            moments.push(self.explain(key, operations, &found, end)?);
        }
        if let End::Crashed(survived) = end {
            self.check_prefix(&moments, survived)?;
        }
        self.judge_feeds(records, &moments)?;
        match end {
            End::Quiet => {
                for (past, moments) in self.past.iter_mut().zip(moments) {
                    past.extend(moments.into_iter().skip(1));
                }
            }
            End::Crashed(_) => self.all_is_durable(),
        }
        Ok(())
    }

    /// Finds an order for the operations of one partition key and makes the found state the model's.
    fn explain(
        &mut self,
        key: usize,
        operations: &[Operation],
        found: &Found,
        end: &End,
    ) -> Result<Vec<Moment>, Complaint> {
        let (rules, past, found) = (&self.rules, &self.past[key], &found[key]);
        let may_be_gone = |version: &Version| rules.is_expired(version);
        let lsn_survived = match end {
            End::Quiet => None,
            End::Crashed(survived) => {
                let ordinal = self.world.ordinal_of(key).ok_or("nobody owns a key")?;
                Some(survived.get(&ordinal).copied().unwrap_or(0))
            }
        };
        let buffered = self.scenario.buffered;
        let accept = |moments: &[Moment]| match lsn_survived {
            None => settled(&moments.last()?.state, found, may_be_gone),
            Some(_) if !buffered => settled(&moments.last()?.state, found, may_be_gone),
            Some(lsn) => {
                let all: Vec<&Moment> = past.iter().chain(moments.iter().skip(1)).collect();
                (1..=all.len()).rev().find_map(|cut| {
                    let kept = all[..cut].iter().all(|moment| moment.lsn.is_none_or(|at| at <= lsn));
                    let lost = all[cut..].iter().all(|moment| moment.lsn.is_none_or(|at| at > lsn));
                    (kept && lost).then(|| settled(&all[cut - 1].state, found, may_be_gone))?
                })
            }
        };
        let explained = explain(rules, &self.logicals[key], operations, accept);
        let (mut moments, state) = explained.map_err(|unexplained| {
            let mut text = format!("key {key}: ");
            if unexplained.gave_up {
                text.push_str("the search for an order gave up");
            } else if unexplained.stuck_on.is_empty() {
                text.push_str("the records are not what the answers say");
            } else {
                text.push_str("no order explains the answers");
            }
            for index in &unexplained.stuck_on {
                let _ = write!(text, "\n    {:?}", operations[*index]);
            }
            let _ = write!(text, "\n  model before: {:?}", brief(&self.logicals[key]));
            let records: Vec<_> = found
                .iter()
                .map(|(id, stored)| {
                    (id, &stored.etag, stored.ts, stored.body.get("w").map(ToString::to_string))
                })
                .collect();
            let _ =
                write!(text, "\n  records after: {records:?}\n  now {}, {:?}", rules.now, rules.default_ttl);
            text
        })?;
        moments.push(Moment {
            lsn: None,
            acknowledged: true,
            span: (self.events, Some(self.events)),
            state: state.clone(),
        });
        self.logicals[key] = state;
        Ok(moments)
    }

    /// With buffered writes a crash takes the end of the store's history, whichever partition it belongs to.
    fn check_prefix(&self, moments: &[Vec<Moment>], survived: &BTreeMap<u32, u64>) -> Result<(), Complaint> {
        let mut last_kept = 0;
        let mut lost = Vec::new();
        for (key, moments) in moments.iter().enumerate() {
            let ordinal = self.world.ordinal_of(key).ok_or("nobody owns a key")?;
            let lsn_survived = survived.get(&ordinal).copied().unwrap_or(0);
            for moment in self.past[key].iter().chain(moments.iter().skip(1)) {
                match moment.lsn {
                    Some(lsn) if lsn <= lsn_survived => last_kept = last_kept.max(moment.span.0),
                    Some(lsn) => lost.push((key, lsn, moment.span.1)),
                    None => {}
                }
            }
        }
        for (key, lsn, answered) in lost {
            if !self.scenario.buffered {
                return Err(format!("key {key}: the acknowledged write {lsn} is lost"));
            }
            if answered.is_some_and(|answered| answered < last_kept) {
                return Err(format!("key {key}: the write {lsn} is lost and a later one is not"));
            }
        }
        Ok(())
    }

    fn check_identities(&mut self, operations: &[Vec<Operation>]) -> Result<(), Complaint> {
        let mut shown = Shown {
            container: self.world.container.number().0,
            written: Vec::new(),
            read: Vec::new(),
            now: self.rules.now,
            now_max: self.now_max,
        };
        for operation in operations.iter().flatten() {
            let Verdict::Done(seen) = &operation.verdict else {
                continue;
            };
            for seen in seen {
                match seen {
                    Seen::Created(stored) => shown.written.push((stored, true)),
                    Seen::Replaced(stored) => shown.written.push((stored, false)),
                    Seen::Read(stored) => shown.read.push(stored),
                    Seen::Deleted | Seen::NotModified(_) => {}
                }
            }
        }
        self.identities.check(shown)
    }

    fn judge_feeds(&mut self, records: &[Record], moments: &[Vec<Moment>]) -> Result<(), Complaint> {
        let container = self.world.container.number().0;
        let may_fail = self.may_fail();
        for record in records {
            let Call::Page { scope, items_max, .. } = &record.call else {
                continue;
            };
            let Some(Answer::Page(page)) = &record.answer else {
                continue;
            };
            let place = &mut self.feeds[record.lane];
            let feed = place.get_or_insert_with(|| Feed::new(*scope, container));
            match page {
                Ok(page) if feed.container == container => {
                    let stored: Result<Vec<Stored>, _> = page.documents.iter().map(stored_of).collect();
                    feed.take(&self.rules, page, &stored?, *items_max, moments)?;
                    if page.continuation.is_none() {
                        let ended = feed.settle(&self.rules, moments, |key| self.world.ordinal_of(key))?;
                        debug_assert!(ended);
                        *place = None;
                    }
                }
                Ok(_) => return Err("a continuation of a dropped container was accepted".to_owned()),
                Err(Fault::Request(RequestFault::BadContinuation { .. })) if feed.container != container => {
                    *place = None;
                }
                // A feed whose first page failed was never opened.
                Err(Fault::Storage(_)) if may_fail => {
                    if feed.continuation.is_none() {
                        *place = None;
                    }
                }
                Err(fault) => return Err(format!("a page was refused: {fault}")),
            }
        }
        self.settle_feeds(moments)
    }

    fn settle_feeds(&mut self, moments: &[Vec<Moment>]) -> Result<(), Complaint> {
        let container = self.world.container.number().0;
        for feed in self.feeds.iter_mut().flatten() {
            if feed.container == container {
                feed.settle(&self.rules, moments, |key| self.world.ordinal_of(key))?;
            }
        }
        Ok(())
    }

    /// What a client learned; `None` if it is certain that nothing happened.
    fn verdict(&self, record: &Record) -> Result<Option<Verdict>, Complaint> {
        let (index, fault) = match &record.answer {
            None => return Ok(Some(Verdict::Unknown)),
            Some(Answer::Steps(Ok(seen))) => return Ok(Some(Verdict::Done(seen.clone()))),
            Some(Answer::Steps(Err((index, fault)))) => (*index, fault),
            Some(Answer::Page(_)) => return Ok(None),
        };
        let refusal = match fault {
            Fault::Conflict(ConflictFault::Id) => Refusal::IdTaken,
            Fault::Conflict(ConflictFault::UniqueKey { constraint }) => Refusal::Unique(*constraint),
            Fault::Missing(MissingFault::Resource) => Refusal::Missing,
            Fault::Precondition(PreconditionFault::EtagMismatch { current }) => {
                Refusal::Mismatch(Some(current.to_string()))
            }
            Fault::Precondition(PreconditionFault::Exists) => Refusal::Exists,
            Fault::Precondition(PreconditionFault::Absent) => Refusal::Absent,
            Fault::Request(RequestFault::ImmutableProperty { .. }) => Refusal::Immutable,
            Fault::Request(RequestFault::BadPatch { .. }) => Refusal::BadPatch,
            Fault::Storage(StorageFault::Uncertain { .. }) if self.may_fail() => {
                return Ok(Some(Verdict::Unknown));
            }
            Fault::Storage(StorageFault::Full { .. }) if self.is_full => return Ok(None),
            Fault::Storage(StorageFault::Unavailable { .. } | StorageFault::Damaged { .. })
                if self.may_fail() =>
            {
                return Ok(None);
            }
            other => return Err(format!("an unexpected refusal: {other}")),
        };
        Ok(Some(Verdict::Refused(index, refusal)))
    }

    /// Whether the storage gave reason to fail since the product was last well.
    fn may_fail(&self) -> bool {
        self.world.script.struck_count() > 0
    }

    /// Nothing was sent: the model may only have lost what had expired, by the rules now or those before.
    fn settle(&mut self, earlier: &[Rules]) -> Result<(), Complaint> {
        let found = self.world.look()?;
        let mut moments = Vec::with_capacity(KEYS.len());
        for (key, found) in found.iter().enumerate() {
            let may_be_gone = |version: &Version| {
                self.rules.is_expired(version) || earlier.iter().any(|rules| rules.is_expired(version))
            };
            let state = settled(&self.logicals[key], found, may_be_gone).ok_or_else(|| {
                format!("key {key}: records changed by themselves: {:?} became {found:?}", self.logicals[key])
            })?;
            let moment = Moment {
                lsn: None,
                acknowledged: true,
                span: (self.events, Some(self.events)),
                state: state.clone(),
            };
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
        self.crashes += 1;
        self.swept_second = 0;
        self.world.crash(survivors)?;
        let report = self.audit()?;
        let container = self.world.container.number().0;
        let mut survived = BTreeMap::new();
        for (ordinal, lsn, ts) in report {
            self.identities.set_back((container, ordinal), ts);
            survived.insert(ordinal, lsn);
        }
        Ok(End::Crashed(survived))
    }

    fn revive(&mut self) -> Result<(), Complaint> {
        self.world.revive()?;
        let container = self.world.find_container();
        let container = container.map_err(|fault| format!("the container is gone: {fault}"))?;
        if container.number() != self.world.container.number() {
            return Err("the container is another one".to_owned());
        }
        if default_of(&container) != self.rules.default_ttl {
            return Err("the container has another definition".to_owned());
        }
        self.world.adopt(container)
    }

    fn restart(&mut self) -> Result<(), Complaint> {
        self.world.close()?;
        self.world.crash(Survivors::Synced)?;
        self.audit()?;
        self.settle(&[])?;
        self.all_is_durable();
        self.revive()
    }

    fn change_default(&mut self, new: DefaultTtl, faults: &[(u64, FaultKind)]) -> Result<(), Complaint> {
        let before = self.rules.clone();
        self.plan(faults);
        let result = self.world.replace_default(new)?;
        self.world.heal()?;
        self.note(|trace| write!(trace, "  default {new:?}: {:?}", result.as_ref().map(|_| ()).err()));
        let found = self.world.find_container();
        let found = found.map_err(|fault| format!("the container is gone: {fault}"))?;
        let is_new = default_of(&found) == new;
        match result {
            Ok(_) if is_new => self.all_is_durable(),
            Err(Fault::Storage(StorageFault::Uncertain { .. })) if self.may_fail() => {}
            Err(Fault::Storage(_))
                if (self.may_fail() || self.is_full) && (!is_new || new == before.default_ttl) => {}
            other => {
                return Err(format!("the default changed to {:?} after {other:?}", default_of(&found)));
            }
        }
        self.rules.default_ttl = default_of(&found);
        if before.default_ttl != self.rules.default_ttl {
            self.default_changed = true;
            self.swept_second = 0;
        }
        self.world.adopt(found)?;
        self.settle(&[before])
    }

    fn recreate(&mut self, faults: &[(u64, FaultKind)]) -> Result<(), Complaint> {
        let old = self.world.container.number();
        self.plan(faults);
        let dropped = self.world.drop_container()?;
        self.world.heal()?;
        self.note(|trace| write!(trace, "  drop: {:?}", dropped.as_ref().err()));
        match (dropped, self.world.find_container()) {
            (Ok(()), Err(Fault::Missing(MissingFault::Resource))) => {}
            (Err(Fault::Storage(StorageFault::Uncertain { .. })), Err(Fault::Missing(_)))
                if self.may_fail() => {}
            (Err(Fault::Storage(_)), Ok(container)) if self.may_fail() && container.number() == old => {
                return self.settle(&[]);
            }
            (dropped, found) => {
                return Err(format!("after a drop that gave {dropped:?} there is {found:?}"));
            }
        }
        self.plan(faults);
        let mut created = self.world.create_container(self.scenario)?;
        self.world.heal()?;
        self.note(|trace| write!(trace, "  create: {:?}", created.as_ref().map(|_| ()).err()));
        if let Err(fault) = &created {
            let found = self.world.find_container();
            let is_certain = !matches!(fault, Fault::Storage(StorageFault::Uncertain { .. }));
            created = match found {
                Ok(_) if is_certain => return Err(format!("a container came of {fault}")),
                Ok(found) => Ok(found),
                Err(_) => {
                    self.is_full = false;
                    self.world.script.set_disk_full(false);
                    self.world.create_container(self.scenario)?
                }
            };
        }
        let created = created.map_err(|fault| format!("no container could be created: {fault}"))?;
        if created.number() == old {
            return Err("the number of a dropped container was given again".to_owned());
        }
        self.world.adopt(created)?;
        self.rules.default_ttl = self.scenario.default_ttl;
        self.default_changed = false;
        self.swept_second = 0;
        self.logicals = vec![Logical::new(); KEYS.len()];
        self.all_is_durable();
        self.settle(&[])
    }

    fn empty(&mut self, key: usize, faults: &[(u64, FaultKind)]) -> Result<(), Complaint> {
        self.plan(faults);
        let result = self.world.empty(key)?;
        self.world.heal()?;
        self.note(|trace| write!(trace, "  empty {key}: {:?}", result.as_ref().err()));
        let found = self.world.look()?;
        let rules = self.rules.clone();
        if let Err(fault) = &result
            && !(matches!(fault, Fault::Storage(_)) && self.may_fail())
        {
            return Err(format!("an unexpected refusal: {fault}"));
        }
        // What is gone was deleted; what is there must be as it was.
        let done = result.is_ok();
        let state = settled(&self.logicals[key], &found[key], |_| true);
        let state = state.ok_or_else(|| format!("key {key}: emptying has changed a document"))?;
        if done && state.values().any(|version| !rules.is_expired(version)) {
            return Err(format!("key {key}: a document outlived the end of its partition key"));
        }
        self.logicals[key] = state;
        self.settle(&[])
    }

    /// Compares all rows with the records; tells each partition's ordinal, last LSN and time.
    fn audit(&mut self) -> Result<Vec<(u32, u64, u64)>, Complaint> {
        let mut shape = ContainerShape::from(self.world.container.definition());
        shape.default_ttl = match self.rules.default_ttl {
            DefaultTtl::Off => model::DefaultTtl::Off,
            DefaultTtl::OnDemand => model::DefaultTtl::OnDemand,
            DefaultTtl::Seconds(seconds) => model::DefaultTtl::Seconds(u32::try_from(seconds).unwrap_or(1)),
        };
        let expiry = if !self.default_changed {
            ExpiryRule::Exact
        } else if self.world.expiry_is_pending()? {
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

fn title(wave: &Wave) -> String {
    match wave {
        Wave::Clients { faults, crash, .. } => format!("clients, faults {faults:?}, crash {crash:?}"),
        other => format!("{other:?}"),
    }
}

/// One line of the trace.
fn shown(record: &Record) -> String {
    let span = match record.answered {
        Some(answered) => format!("{}-{answered}", record.invoked),
        None => format!("{}-", record.invoked),
    };
    let call = match &record.call {
        Call::Steps { key, steps } => {
            format!("key {key} {}", steps.iter().map(brief_step).collect::<Vec<_>>().join(" + "))
        }
        Call::Page { scope, items_max, .. } => format!("page of {items_max} of {scope:?}"),
    };
    let answer = match &record.answer {
        None => "no answer".to_owned(),
        Some(Answer::Steps(Ok(seen))) => seen.iter().map(brief_seen).collect::<Vec<_>>().join(" + "),
        Some(Answer::Steps(Err((index, fault)))) => format!("step {index}: {fault}"),
        Some(Answer::Page(Ok(page))) => {
            let end = if page.continuation.is_some() { "more" } else { "end" };
            format!("{} documents, {end}", page.documents.len())
        }
        Some(Answer::Page(Err(fault))) => fault.to_string(),
    };
    format!("[{span}] lane {} {call} => {answer}", record.lane)
}

fn brief_step(step: &Step) -> String {
    let body = |body: &crate::naive::Body| {
        let mut body = body.clone();
        for text in body.values_mut() {
            if text.as_str().is_some_and(|text| text.len() > LONG_TEXT) {
                *text = "…".into();
            }
        }
        serde_json::Value::Object(body).to_string()
    };
    match step {
        Step::Create { body: new } => format!("create {}", body(new)),
        Step::Upsert { body: new, demand } => format!("upsert {} {demand:?}", body(new)),
        Step::Replace { aim, body: new, demand } => format!("replace {aim:?} {} {demand:?}", body(new)),
        Step::Patch { aim, edits, demand } => format!("patch {aim:?} {edits:?} {demand:?}"),
        Step::Delete { aim, demand } => format!("delete {aim:?} {demand:?}"),
        Step::Read { aim, demand } => format!("read {aim:?} {demand:?}"),
    }
}

fn brief_seen(seen: &Seen) -> String {
    let stored = |stored: &Stored| {
        let Stored { number, ordinal, lsn, ts, .. } = stored;
        let mark = stored.body.get("w").map(ToString::to_string).unwrap_or_default();
        format!("w {mark} number {number} lsn {ordinal}.{lsn} ts {ts}")
    };
    match seen {
        Seen::Created(new) => format!("created {}", stored(new)),
        Seen::Replaced(new) => format!("replaced {}", stored(new)),
        Seen::Deleted => "deleted".to_owned(),
        Seen::Read(read) => format!("read {}", stored(read)),
        Seen::NotModified(etag) => format!("not modified {etag}"),
    }
}

fn brief(logical: &Logical) -> Vec<String> {
    let one = |(id, version): (&String, &std::sync::Arc<Version>)| {
        let mark = version.body.get("w").map(ToString::to_string).unwrap_or_default();
        format!("{id}: w {mark} ts {} ttl {:?} {:?}", version.ts, version.body.get("ttl"), version.stamp)
    };
    logical.iter().map(one).collect()
}
