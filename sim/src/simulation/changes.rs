//! Waves that change the container itself: its definition, its existence, all documents of a key; and those in which
//! housekeeping works.

use super::{End, Simulation, default_of};
use crate::history::{Moment, quiescent};
use crate::naive::{DefaultTtl, Logical};
use crate::scenario::{KEYS, Request, Trouble};
use crate::trace::shown;
use crate::world::CheckFailure;
use kv::Survivors;
use model::{Fault, MissingFault, RequestFault, StorageFault};
use std::fmt::Write as _;
use std::sync::Arc;

/// Time in which the jobs run once.
const JOBS_ROUND_MS: u64 = 1_100;

impl Simulation<'_> {
    pub(super) fn define(
        &mut self,
        default_ttl: Option<DefaultTtl>,
        policy: usize,
        trouble: &Trouble,
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), CheckFailure> {
        let before = self.rules.clone();
        let old = Arc::clone(&self.world.container);
        self.world.plan(trouble);
        let result = self.world.replace_definition(default_ttl, policy, crash.map(|(turns, _)| turns))?;
        self.note(|trace| {
            let outcome = result.as_ref().map(|result| result.as_ref().map(|_| ()).err());
            write!(trace, "  definition: {outcome:?}")
        });
        let found = match crash {
            Some((_, survivors)) => {
                self.world.crash(survivors)?;
                self.world.stored_container()?.map(|stored| stored.container)
            }
            None => {
                self.resolve_catalog(trouble)?;
                self.world.find_container().ok()
            }
        };
        let found = found.ok_or("the container is gone")?;
        let is_old = found.definition() == old.definition();
        match &result {
            Some(Ok(new)) if found.definition() == new.definition() => {}
            None => {}
            Some(Err(Fault::Storage(StorageFault::Uncertain { .. }))) if self.world.may_fail() => {}
            Some(Err(Fault::Storage(_))) if (self.world.may_fail() || self.is_full) && is_old => {}
            Some(other) => return Err(format!("the definition is {:?} after {other:?}", found.definition())),
        }
        self.rules.default_ttl = default_of(&found);
        if before.default_ttl != self.rules.default_ttl {
            self.default_changed = true;
            self.swept_second = 0;
        }
        self.world.adopt_definition(found);
        if crash.is_some() {
            let end = self.crashed()?;
            self.rules_before = Some(before);
            self.check_wave(&[], &end)?;
            self.rules_before = None;
            return self.revive(&Trouble::default());
        }
        if let Some(Ok(_)) = result {
            self.all_is_durable();
        }
        self.check_idle_wave(&[before])
    }

    /// The next request for a document, or the jobs, resolve a change of unknown outcome.
    fn resolve_catalog(&self, trouble: &Trouble) -> Result<(), CheckFailure> {
        if trouble.faults.is_empty() {
            return self.world.recover();
        }
        // The jobs meet the faults too.
        self.world.rest(JOBS_ROUND_MS)?;
        self.world.recover()?;
        self.world.rest(JOBS_ROUND_MS)
    }

    /// Lets the jobs work. Those that a fault or the power has interrupted are continued.
    pub(super) fn rest(
        &mut self,
        milliseconds: u64,
        trouble: &Trouble,
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), CheckFailure> {
        self.world.plan(trouble);
        if let Some((calls, survivors)) = crash {
            self.world.rest_until_power_fails(milliseconds, calls)?;
            let end = self.crash(survivors)?;
            self.remainders.push(self.world.remainder()?);
            self.check_wave(&[], &end)?;
            return self.revive(&Trouble::default());
        }
        self.world.rest(milliseconds)?;
        if !trouble.is_none() {
            // A job that has met a fault is tried again.
            self.world.wait_for_reopen()?;
            self.resolve_catalog(trouble)?;
        } else if milliseconds > JOBS_ROUND_MS && self.rules.default_ttl != DefaultTtl::Off {
            self.swept_second = self.swept_second.max(self.rules.now);
        }
        self.check_idle_wave(&[])
    }

    pub(super) fn recreate(
        &mut self,
        lanes: &[Vec<Request>],
        trouble: &Trouble,
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), CheckFailure> {
        let old = self.world.container.number();
        let lanes = self.lanes(lanes);
        self.world.plan(trouble);
        let (dropped, late) = self.world.drop_container(lanes, crash.map(|(turns, _)| turns))?;
        self.note(|trace| {
            write!(trace, "  drop: {:?}", dropped.as_ref().map(|dropped| dropped.as_ref().err()))
        });
        for record in &late {
            self.note(|trace| write!(trace, "  {}", shown(record)));
        }
        if let Some((_, survivors)) = crash {
            self.world.crash(survivors)?;
            if self.world.stored_container()?.is_some() {
                if let Some(Ok(())) = dropped {
                    return Err("a dropped container came back".to_owned());
                }
                let end = self.crashed()?;
                self.check_wave(&late, &end)?;
                return self.revive(&Trouble::default());
            }
            self.crashes += 1;
            self.start(&Trouble::default())?;
        } else {
            self.resolve_catalog(trouble)?;
        }
        match (dropped, self.world.find_container()) {
            (None | Some(Ok(())), Err(Fault::Missing(MissingFault::Resource))) => {}
            (Some(Err(Fault::Storage(StorageFault::Uncertain { .. }))), Err(Fault::Missing(_)))
                if self.world.may_fail() => {}
            (Some(Err(Fault::Storage(_))), Ok(container))
                if self.world.may_fail() && container.number() == old =>
            {
                return self.check_wave(&late, &End::Quiet);
            }
            (dropped, found) => {
                return Err(format!("after a drop that gave {dropped:?} there is {found:?}"));
            }
        }
        self.create_again(trouble)
    }

    /// Creates the container again after it was dropped.
    fn create_again(&mut self, trouble: &Trouble) -> Result<(), CheckFailure> {
        let old = self.world.container.number();
        self.world.plan(trouble);
        let mut created = self.world.create_container(self.scenario)?;
        self.resolve_catalog(trouble)?;
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
        self.may_have_skipped = false;
        self.swept_second = 0;
        self.clocks.clear();
        self.logicals = vec![Logical::new(); KEYS.len()];
        self.all_is_durable();
        self.check_idle_wave(&[])
    }

    /// Splits the partition of a key, by documents or in the middle of its range, while clients use it.
    pub(super) fn split(
        &mut self,
        (key, in_middle): (usize, bool),
        lanes: &[Vec<Request>],
        trouble: &Trouble,
        crash: Option<(u64, Survivors)>,
    ) -> Result<(), CheckFailure> {
        let lanes = self.lanes(lanes);
        self.world.plan(trouble);
        let crash_after = crash.map(|(turns, _)| turns);
        let (split, records) = self.world.split((key, in_middle), lanes, &self.readers, crash_after)?;
        self.operations += records.len();
        self.note(|trace| write!(trace, "  split: {split:?}"));
        for record in &records {
            self.note(|trace| write!(trace, "  {}", shown(record)));
        }
        let end = match crash {
            Some((_, survivors)) => self.crash(survivors)?,
            None => {
                self.world.wait_for_reopen()?;
                self.resolve_catalog(trouble)?;
                End::Quiet
            }
        };
        self.world.refresh_specs()?;
        match split {
            None => {}
            Some(Ok(children)) => {
                self.splits += 1;
                if !children.iter().all(|child| self.world.ordinals().any(|it| it == child.0)) {
                    return Err(format!("{children:?} are lost after a split"));
                }
            }
            Some(Err(Fault::Request(RequestFault::Indivisible { .. }))) => {}
            Some(Err(Fault::Storage(_) | Fault::Missing(_)))
                if self.world.may_fail() || self.is_full || self.world.spoils() => {}
            Some(Err(fault)) => return Err(format!("an unexpected refusal of a split: {fault}")),
        }
        if let Some(sabotage) = self.planted.sabotage {
            sabotage(&self.world);
        }
        self.check_wave(&records, &end)?;
        if crash.is_some() {
            self.revive(&Trouble::default())?;
        }
        Ok(())
    }

    pub(super) fn empty(&mut self, key: usize, trouble: &Trouble) -> Result<(), CheckFailure> {
        self.world.plan(trouble);
        let result = self.world.empty(key)?;
        self.world.recover()?;
        self.note(|trace| write!(trace, "  empty {key}: {:?}", result.as_ref().err()));
        let found = self.world.read_documents()?;
        let rules = self.rules_of(key);
        if let Err(fault) = &result
            && !(matches!(fault, Fault::Storage(_)) && self.world.may_fail())
            && !self.world.is_spoiled(fault)
        {
            return Err(format!("an unexpected refusal: {fault}"));
        }
        // Missing documents were deleted; the others must be unchanged.
        let done = result.is_ok();
        let state = quiescent(&self.logicals[key], &found[key], |_, _| true);
        let state = state.ok_or_else(|| format!("key {key}: emptying has changed a document"))?;
        if done && state.values().any(|version| !rules.is_expired(version)) {
            return Err(format!("key {key}: a document outlived the end of its partition key"));
        }
        // Documents are deleted one by one, in the order of their ids; a crash may revert the last ones.
        let mut remaining = self.logicals[key].clone();
        for id in self.logicals[key].keys().filter(|id| !state.contains_key(*id)) {
            remaining.remove(id);
            self.past[key].push(Moment {
                lsn: None,
                expired: Vec::new(),
                span: (self.events, Some(self.events)),
                state: remaining.clone(),
            });
        }
        self.logicals[key] = state;
        self.check_idle_wave(&[])
    }
}
