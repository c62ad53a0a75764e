//! Readers of the change feed of both modes: they read while clients write, keep a copy of the documents, and continue
//! after crashes, restarts and changes of the container.
//!
//! At a quiet moment a reader reads to the end. Then the copy of a reader of last versions has the current version of
//! every live document, and no version came twice. The copy of a reader of all versions is exactly the set of records,
//! and every change fitted the copy: it replaced or removed the version that the copy had. A history with a gap may be
//! refused, but only if it could have been trimmed or was not kept for a while. A document that had expired when a reader
//! of last versions passed it, and that is live again because the clock or the time to live has changed, was not
//! written and does not come again.

use crate::clients::stored_of;
use crate::history::Stored;
use crate::policies::HISTORY_MINUTES;
use crate::random::Random;
use crate::scenario::{KEYS, Scope};
use crate::world::{CheckFailure, Found, World, key_of, partition_key};
use engine::{
    ChangeFeedPage, ChangeMode, ChangePosition, ChangeRequest, ChangeStart, Changes, Container, Engine,
    HistoryEntry, HistoryKind, Principal,
};
use model::{Ambient as _, ChangeFeedFault, Fault, PartitionOrdinal};
use plan::StoredDocument;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pages that are read while clients run.
const PAGES_MEANWHILE: u64 = 8;
/// Pages after which a reader should have reached the end.
const PAGES_MAX: usize = 10_000;
/// Times that a reader reads to the end before its copy must agree: expired documents are deleted meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// Turns of the scheduler in which committed batches are published.
const PUBLISH_TURNS: usize = 32;

/// A document by index of its partition key and id.
type Name = (usize, String);

/// The readers of one simulation.
pub struct ChangeReaders {
    state: Mutex<State>,
}

struct State {
    random: Random,
    readers: Vec<Reader>,
    /// A violation that was found while clients ran.
    failure: Option<CheckFailure>,
}

struct Reader {
    scope: Scope,
    mode: ChangeMode,
    /// `None` for a reader of all versions before it starts or after it was refused.
    position: Option<ChangePosition>,
    /// ETags of the documents as the reader knows them.
    copy: BTreeMap<Name, String>,
    /// ETags of all versions that the reader of last versions has seen.
    seen: BTreeSet<String>,
    /// ETags of versions that had expired when the reader passed them.
    passed: BTreeSet<String>,
    /// Whether a reader of all versions has no copy yet: it ignores what it reads.
    is_starting: bool,
    /// Changes read since the last attempt began.
    taken: usize,
    /// The container that the copy is of.
    container: u32,
    /// The earliest and the latest time since the reader was last at the end.
    times: (u64, u64),
}

impl ChangeReaders {
    /// Readers of the scopes that a seed selects.
    pub(crate) fn seeded(seed: u64, partitions: u32) -> ChangeReaders {
        let mut random = Random::seeded(seed ^ 0x6665_6564);
        let part = u32::try_from(random.below(u64::from(partitions))).unwrap_or(0);
        let key = random.index(KEYS.len());
        let scopes = [Scope::Container, Scope::Partition(part), Scope::Key(key)];
        let reader = |mode| {
            move |scope| Reader {
                scope,
                mode,
                position: None,
                copy: BTreeMap::new(),
                seen: BTreeSet::new(),
                passed: BTreeSet::new(),
                is_starting: true,
                taken: 0,
                container: 0,
                times: (u64::MAX, 0),
            }
        };
        let latest = scopes.map(reader(ChangeMode::LatestVersion));
        let all = scopes.map(reader(ChangeMode::AllVersions));
        let readers = latest.into_iter().chain(all).collect();
        ChangeReaders { state: Mutex::new(State { random, readers, failure: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads some pages while clients run. Requests that fail are repeated later.
    pub(crate) async fn read_meanwhile(
        self: Arc<ChangeReaders>,
        engine: Arc<Engine>,
        principal: Principal,
        container: Arc<Container>,
    ) {
        for _ in 0..PAGES_MEANWHILE {
            let (index, pause) = {
                let mut state = self.state();
                let count = state.readers.len();
                (state.random.index(count), state.random.below(6))
            };
            for _ in 0..pause {
                tokio::task::yield_now().await;
            }
            // A reader that has not started does so at a quiet moment.
            if !self.state().readers[index].is_reading(&container) {
                continue;
            }
            let read = self.read_page(index, &engine, &principal, &container).await;
            if let Err(Failure::Violation(failure)) = read {
                self.state().failure = Some(failure);
            }
        }
    }

    /// Reads the next page of a reader; returns whether it has nothing more.
    async fn read_page(
        &self,
        index: usize,
        engine: &Engine,
        principal: &Principal,
        container: &Container,
    ) -> Result<bool, Failure> {
        let (scope, request) = {
            let mut state = self.state();
            let items_max = state.random.index(7) + 1;
            let reader = &state.readers[index];
            let start = match (&reader.position, reader.mode) {
                (Some(position), _) => ChangeStart::After(position.clone()),
                (None, ChangeMode::LatestVersion) => ChangeStart::Beginning,
                (None, ChangeMode::AllVersions) => ChangeStart::Now,
            };
            (reader.scope, ChangeRequest { mode: reader.mode, start, items_max, session: Vec::new() })
        };
        let scope = match scope {
            Scope::Container => engine::Scope::Container,
            Scope::Partition(ordinal) => engine::Scope::Range(PartitionOrdinal(ordinal), None),
            Scope::Key(key) => engine::Scope::Key(partition_key(container, key)),
        };
        let pass = engine.access().read_changes(principal, container, scope);
        let pass = pass.map_err(|fault| Failure::Violation(fault.to_string()))?;
        let page = engine.changes(pass, &request).await.map_err(Failure::Refused)?;
        let is_end = page.changes.is_empty();
        self.state().readers[index].take(page).map_err(Failure::Violation)?;
        Ok(is_end)
    }

    /// Called at a quiet moment: all readers read to the end and compare their copies with the records. `is_live` says
    /// whether a document has not expired.
    pub(crate) fn on_quiet_moment(
        &self,
        world: &World,
        is_live: impl Fn(usize, &Stored) -> bool,
    ) -> Result<(), CheckFailure> {
        if let Some(failure) = self.state().failure.take() {
            return Err(failure);
        }
        let now = world.ambient.now_seconds();
        let count = self.state().readers.len();
        for index in 0..count {
            self.state().readers[index].begin(world, now);
            self.check_reader(index, world, &is_live)?;
        }
        Ok(())
    }

    /// Forgets everything: acknowledged writes were lost, and readers may have seen them.
    pub(crate) fn forget(&self) {
        for reader in &mut self.state().readers {
            reader.container = 0;
        }
    }

    fn check_reader(
        &self,
        index: usize,
        world: &World,
        is_live: &impl Fn(usize, &Stored) -> bool,
    ) -> Result<(), CheckFailure> {
        let mut difference = None;
        for _ in 0..ATTEMPTS_MAX {
            let before = world.read_documents()?;
            // Reading the records commits what waits; writers publish it in their next turns.
            world.run(async {
                for _ in 0..PUBLISH_TURNS {
                    tokio::task::yield_now().await;
                }
            })?;
            self.state().readers[index].taken = 0;
            match self.drain(index, world)? {
                Ok(()) => {}
                Err(fault) => return self.state().readers[index].refused(&fault),
            }
            let found = world.read_documents()?;
            let mut state = self.state();
            let reader = &mut state.readers[index];
            if reader.is_starting && reader.mode == ChangeMode::AllVersions {
                if before != found || reader.taken > 0 {
                    continue;
                }
                reader.copy = reader.documents(world, &found);
                reader.is_starting = false;
            }
            difference = reader.difference(world, &found, is_live);
            if difference.is_none() {
                reader.reached_end(world);
                return Ok(());
            }
        }
        difference.map_or(Ok(()), Err)
    }

    /// Reads to the end.
    fn drain(&self, index: usize, world: &World) -> Result<Result<(), Fault>, CheckFailure> {
        for _ in 0..PAGES_MAX {
            let (engine, principal) = (world.engine(), world.principal());
            let page = self.read_page(index, &engine, &principal, &world.container);
            match world.run(page)? {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err(Failure::Refused(fault)) => return Ok(Err(fault)),
                Err(Failure::Violation(failure)) => return Err(failure),
            }
        }
        Err("a change feed does not end".to_owned())
    }
}

/// Why a page was not read.
enum Failure {
    Refused(Fault),
    Violation(CheckFailure),
}

impl Reader {
    fn is_reading(&self, container: &Container) -> bool {
        let is_started = self.mode == ChangeMode::LatestVersion || !self.is_starting;
        self.container == container.number().0 && self.position.is_some() && is_started
    }

    /// Starts again if the container is another one. Readers of last versions keep their position: a container that is
    /// created again under its name continues the LSNs.
    fn begin(&mut self, world: &World, now: u64) {
        self.times = (self.times.0.min(now), self.times.1.max(now));
        let container = world.container.number().0;
        if self.container == container {
            return;
        }
        let is_recreated = self.container != 0;
        self.container = container;
        self.copy.clear();
        self.seen.clear();
        self.passed.clear();
        self.is_starting = true;
        if self.mode == ChangeMode::AllVersions || !is_recreated {
            self.position = None;
        }
    }

    fn reached_end(&mut self, world: &World) {
        let now = world.ambient.now_seconds();
        self.times = (now, now);
    }

    fn take(&mut self, page: ChangeFeedPage) -> Result<(), CheckFailure> {
        self.position = Some(page.position);
        self.taken += page.changes.len();
        match page.changes {
            Changes::All(_) if self.is_starting => Ok(()),
            Changes::Latest(documents) => documents.iter().try_for_each(|stored| self.take_latest(stored)),
            Changes::All(entries) => entries.iter().try_for_each(|(_, entry)| self.take_change(entry)),
        }
    }

    fn take_latest(&mut self, stored: &StoredDocument) -> Result<(), CheckFailure> {
        let (name, etag) = named(stored)?;
        if !self.seen.insert(etag.clone()) {
            return Err(format!("a change feed shows {name:?} as {etag} twice"));
        }
        self.copy.insert(name, etag);
        Ok(())
    }

    fn take_change(&mut self, entry: &HistoryEntry) -> Result<(), CheckFailure> {
        let current = entry.current.as_ref().map(named).transpose()?;
        let previous = entry.previous.as_ref().map(named).transpose()?;
        if let Some((name, etag)) = &previous {
            let known = self.copy.remove(name);
            if known.as_ref() != Some(etag) {
                let kind = &entry.kind;
                return Err(format!("{kind:?} of {name:?} replaces {etag}, a reader has {known:?}"));
            }
        }
        let is_removal = matches!(entry.kind, HistoryKind::Delete | HistoryKind::Expire);
        match current {
            None if is_removal => Ok(()),
            Some((name, etag)) if !is_removal => match self.copy.insert(name.clone(), etag) {
                None => Ok(()),
                Some(known) => Err(format!("{name:?} is created, a reader has {known}")),
            },
            None | Some(_) => Err(format!("{:?} has the wrong versions", entry.kind)),
        }
    }

    /// The refusal must have a reason. The reader starts again.
    fn refused(&mut self, fault: &Fault) -> Result<(), CheckFailure> {
        let retention = u64::from(HISTORY_MINUTES) * 60;
        let may_be_trimmed = self.times.1.saturating_sub(self.times.0) >= retention;
        let is_refusal = |reason| *fault == Fault::from(reason);
        let may_have_gap = may_be_trimmed || self.is_starting;
        let is_allowed = is_refusal(ChangeFeedFault::NoRetention)
            || is_refusal(ChangeFeedFault::NotRetained) && may_have_gap;
        if self.mode == ChangeMode::LatestVersion || !is_allowed {
            return Err(format!("a change feed of {:?} is refused: {fault}", self.scope));
        }
        self.position = None;
        self.is_starting = true;
        self.copy.clear();
        Ok(())
    }

    fn covers(&self, world: &World, key: usize) -> bool {
        match self.scope {
            Scope::Container => true,
            Scope::Partition(ordinal) => world.is_in_range(key, ordinal),
            Scope::Key(wanted) => wanted == key,
        }
    }

    /// The documents of the scope, with their ETags.
    fn documents(&self, world: &World, found: &Found) -> BTreeMap<Name, String> {
        let keys = found.iter().enumerate().filter(|(key, _)| self.covers(world, *key));
        let documents =
            keys.flat_map(|(key, documents)| documents.iter().map(move |document| (key, document)));
        documents.map(|(key, (id, stored))| ((key, id.clone()), stored.etag.clone())).collect()
    }

    /// How the copy differs from the records.
    fn difference(
        &mut self,
        world: &World,
        found: &Found,
        is_live: impl Fn(usize, &Stored) -> bool,
    ) -> Option<CheckFailure> {
        let stored = self.documents(world, found);
        let expired = stored.iter().filter(|((key, id), _)| !is_live(*key, &found[*key][id]));
        self.passed.extend(expired.map(|(_, etag)| etag.clone()));
        let differs = |name: &Name| self.copy.get(name) != stored.get(name);
        let different = match self.mode {
            ChangeMode::AllVersions => stored.keys().chain(self.copy.keys()).find(|name| differs(name)),
            ChangeMode::LatestVersion => {
                let is_wanted = |name: &&Name| !self.passed.contains(&stored[*name]);
                stored.keys().filter(is_wanted).find(|name| differs(name))
            }
        };
        different.map(|name| {
            let (copy, stored) = (self.copy.get(name), stored.get(name));
            let (mode, scope) = (self.mode, self.scope);
            format!("a {mode:?} change feed of {scope:?} has {name:?} as {copy:?}, it is {stored:?}")
        })
    }
}

fn named(stored: &StoredDocument) -> Result<(Name, String), CheckFailure> {
    let stored = stored_of(stored)?;
    let key = key_of(&stored.body).ok_or("a change feed shows a partition key that nobody wrote")?;
    let id = stored.body.get("id").and_then(|id| id.as_str()).unwrap_or_default();
    Ok(((key, id.to_owned()), stored.etag))
}
