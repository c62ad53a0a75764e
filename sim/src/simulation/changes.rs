//! Waves that change the container itself: its default, its existence, all documents of a key.

use super::{End, Simulation, default_of};
use crate::history::{Moment, settled};
use crate::naive::{DefaultTtl, Logical};
use crate::scenario::{KEYS, Request};
use crate::world::Complaint;
use kv::FaultKind;
use model::{Fault, MissingFault, StorageFault};
use std::fmt::Write as _;

/// Time in which the jobs get their turn once.
const JOBS_ROUND_MS: u64 = 1_100;

impl Simulation<'_> {
    pub(super) fn change_default(
        &mut self,
        new: DefaultTtl,
        faults: &[(u64, FaultKind)],
    ) -> Result<(), Complaint> {
        let before = self.rules.clone();
        self.plan(faults);
        let result = self.world.replace_default(new)?;
        self.settle_catalog(faults)?;
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

    /// What came of a change in doubt is found out by the next request for a document, or by the jobs.
    fn settle_catalog(&self, faults: &[(u64, FaultKind)]) -> Result<(), Complaint> {
        if faults.is_empty() {
            return self.world.heal();
        }
        // The jobs meet the faults too.
        self.world.rest(JOBS_ROUND_MS)?;
        self.world.heal()?;
        self.world.rest(JOBS_ROUND_MS)
    }

    pub(super) fn recreate(
        &mut self,
        lanes: &[Vec<Request>],
        faults: &[(u64, FaultKind)],
    ) -> Result<(), Complaint> {
        let old = self.world.container.number();
        let lanes = self.lanes(lanes);
        self.plan(faults);
        let (dropped, late) = self.world.drop_container(lanes)?;
        self.settle_catalog(faults)?;
        self.note(|trace| write!(trace, "  drop: {:?}", dropped.as_ref().err()));
        match (dropped, self.world.find_container()) {
            (Ok(()), Err(Fault::Missing(MissingFault::Resource))) => {}
            (Err(Fault::Storage(StorageFault::Uncertain { .. })), Err(Fault::Missing(_)))
                if self.may_fail() => {}
            (Err(Fault::Storage(_)), Ok(container)) if self.may_fail() && container.number() == old => {
                return self.judge(&late, &End::Quiet);
            }
            (dropped, found) => {
                return Err(format!("after a drop that gave {dropped:?} there is {found:?}"));
            }
        }
        self.plan(faults);
        let mut created = self.world.create_container(self.scenario)?;
        self.settle_catalog(faults)?;
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
        self.clocks.clear();
        self.logicals = vec![Logical::new(); KEYS.len()];
        self.all_is_durable();
        self.settle(&[])
    }

    pub(super) fn empty(&mut self, key: usize, faults: &[(u64, FaultKind)]) -> Result<(), Complaint> {
        self.plan(faults);
        let result = self.world.empty(key)?;
        self.world.heal()?;
        self.note(|trace| write!(trace, "  empty {key}: {:?}", result.as_ref().err()));
        let found = self.world.look()?;
        let rules = self.rules_of(key);
        if let Err(fault) = &result
            && !(matches!(fault, Fault::Storage(_)) && self.may_fail())
        {
            return Err(format!("an unexpected refusal: {fault}"));
        }
        // What is gone was deleted; what is there must be as it was.
        let done = result.is_ok();
        let state = settled(&self.logicals[key], &found[key], |_, _| true);
        let state = state.ok_or_else(|| format!("key {key}: emptying has changed a document"))?;
        if done && state.values().any(|version| !rules.is_expired(version)) {
            return Err(format!("key {key}: a document outlived the end of its partition key"));
        }
        // It goes document by document, in the order of their ids; a crash may take the end of it back.
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
        self.settle(&[])
    }
}
