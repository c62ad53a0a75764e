//! Searches an order of concurrent operations that explains every answer (linearizability check).
//!
//! One call checks the operations of one logical partition between two quiet moments. An order is valid if
//! * an operation that was answered before another began comes first,
//! * acknowledged versions are in the order of their LSNs,
//! * each answer, including refusals, is what the naive rules give at its position,
//! * an operation of unknown outcome occurs once as a whole or not at all,
//! * and the final state is the one that was found afterwards.
//!
//! Knows nothing of how operations are executed. The search is exact: operations without effect are placed as soon as
//! they fit, which never invalidates an order, so only deletions and unknown outcomes branch.

use crate::naive::{Body, Logical, Refusal, Rules, Stamp, Step, StepResult, Version};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Positions tried before a search gives up, which counts as a violation.
const PLACES_MAX: usize = 200_000;

/// Most transient states considered before a crash.
const TRANSIENT_MAX: usize = 1_000;

/// A version as returned by the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The document's number.
    pub number: u64,
    /// The partition that wrote the version.
    pub ordinal: u32,
    /// The position of its transaction there.
    pub lsn: u64,
    /// Its number among all versions there.
    pub stamp: u64,
    /// Its mark.
    pub etag: String,
    /// Its time.
    pub ts: u64,
    /// The document.
    pub body: Body,
}

/// The result of one step as returned to the client.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The names say it.
pub enum Seen {
    Created(Stored),
    Replaced(Stored),
    Deleted,
    Read(Stored),
    NotModified(String),
    /// All documents, by their ids.
    Listed(BTreeMap<String, Stored>),
}

/// The result of an operation as returned to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// All steps were executed.
    Done(Vec<Seen>),
    /// The step with this index was refused, and with it all steps.
    Refused(usize, Refusal),
    /// No answer, or the answer that the outcome is unknown.
    Unknown,
}

/// Steps of one transaction in one logical partition, and their answer.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When it was sent, in events of the simulation.
    pub invoked: u64,
    /// When the answer arrived.
    pub answered: Option<u64>,
    /// The requested steps.
    pub steps: Vec<Step>,
    /// The answer.
    pub verdict: Verdict,
}

/// A state of a logical partition, and the position of the operation that led to it.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The last LSN of the operation; `None` if it was not returned to a client.
    pub lsn: Option<u64>,
    /// Documents that had expired before it: each of them may have been swept at any time since.
    pub expired: Vec<Arc<Version>>,
    /// When the operation was sent and answered, in events of the simulation.
    pub span: (u64, Option<u64>),
    /// The state after it.
    pub state: Logical,
}

impl Moment {
    /// The moment before the first operation.
    pub fn initial(state: Logical) -> Moment {
        Moment { lsn: None, expired: Vec::new(), span: (0, Some(0)), state }
    }
}

/// Which moments decide whether an order is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The last one: of all orders of the same operations to the same state, one is tried.
    End,
    /// All of them, because a crash may have reverted to any.
    Path,
}

/// Searches an order of `operations` from `start` that `accept` accepts. The moments passed to it begin with the start.
/// Returns them, with the result of `accept`.
pub fn explain<T>(
    rules: &Rules,
    start: &Logical,
    operations: &[Operation],
    judged: Judged,
    accept: impl FnMut(&[Moment]) -> Option<T>,
) -> Result<(Vec<Moment>, T), Unexplained> {
    let mut search =
        Search { rules, operations, judged, accept, seen: HashSet::new(), places: 0, best: (0, Vec::new()) };
    let placed = vec![false; operations.len()];
    let mut moments = vec![Moment::initial(start.clone())];
    if let Some(made) = search.place(placed, &mut moments) {
        return Ok((moments, made));
    }
    Err(Unexplained { gave_up: search.places >= PLACES_MAX, stuck_on: search.best.1 })
}

/// `moments`, and the states that operations of unknown outcome may have caused for a while, before a crash reverted
/// them.
pub(crate) fn with_transient(rules: &Rules, moments: &[Moment], operations: &[Operation]) -> Vec<Moment> {
    let mut all = moments.to_vec();
    let mut seen: HashSet<String> = all.iter().map(|moment| fingerprint(&moment.state)).collect();
    let unknown: Vec<_> =
        operations.iter().filter(|operation| operation.verdict == Verdict::Unknown).collect();
    let mut from = 0;
    while from < all.len() && all.len() < TRANSIENT_MAX {
        let state = all[from].state.clone();
        for operation in &unknown {
            if let Some(state) = replay(rules, &state, operation)
                && seen.insert(fingerprint(&state))
            {
                let span = (operation.invoked, operation.answered);
                all.push(Moment { lsn: None, expired: Vec::new(), span, state });
            }
        }
        from += 1;
    }
    all
}

/// No order explains the answers.
#[derive(Clone, Debug)]
pub struct Unexplained {
    /// Whether the search ended early.
    pub gave_up: bool,
    /// Operations that could not be placed in the best attempt; empty if only the final state differs.
    pub stuck_on: Vec<usize>,
}

struct Search<'a, F> {
    rules: &'a Rules,
    operations: &'a [Operation],
    judged: Judged,
    accept: F,
    /// What was tried: the operations that were placed, and the states that are judged.
    seen: HashSet<(Vec<bool>, String)>,
    places: usize,
    best: (usize, Vec<usize>),
}

impl<F> Search<'_, F> {
    fn place<T>(&mut self, mut placed: Vec<bool>, moments: &mut Vec<Moment>) -> Option<T>
    where
        F: FnMut(&[Moment]) -> Option<T>,
    {
        let state = moments.last()?.state.clone();
        self.place_without_effect(&mut placed, &state);
        self.places += 1;
        if self.places >= PLACES_MAX || !self.seen.insert((placed.clone(), self.judged_in(moments))) {
            return None;
        }
        let waiting: Vec<usize> = (0..placed.len())
            .filter(|index| !placed[*index] && self.operations[*index].verdict != Verdict::Unknown)
            .collect();
        let count = placed.len() - waiting.len();
        if count > self.best.0 || self.best.1.is_empty() {
            self.best = (count, waiting.clone());
        }
        if waiting.is_empty()
            && let Some(made) = (self.accept)(moments)
        {
            return Some(made);
        }
        let lsn_next = waiting.iter().filter_map(|index| self.lsn(*index)).min();
        // Operations of unknown outcome last: an order without them leaves more possibilities for later findings.
        let is_unknown = |index: &usize| self.operations[*index].verdict == Verdict::Unknown;
        let (unknown, known): (Vec<usize>, Vec<usize>) = (0..placed.len()).partition(is_unknown);
        for index in known.into_iter().chain(unknown) {
            let out_of_turn = self.lsn(index).is_some_and(|lsn| Some(lsn) != lsn_next);
            if placed[index] || out_of_turn || !self.may_come(index, &placed) {
                continue;
            }
            let operation = &self.operations[index];
            let Some(after) = replay(self.rules, &state, operation) else {
                continue;
            };
            let mut placed = placed.clone();
            placed[index] = true;
            moments.push(Moment {
                lsn: self.lsn(index),
                expired: self.rules.expired_in(&state),
                span: (operation.invoked, operation.answered),
                state: after,
            });
            if let Some(made) = self.place(placed, moments) {
                return Some(made);
            }
            moments.pop();
        }
        None
    }

    /// Distinguishes what `accept` may judge differently.
    fn judged_in(&self, moments: &[Moment]) -> String {
        let first = match self.judged {
            Judged::End => moments.len().saturating_sub(1),
            Judged::Path => 0,
        };
        let judged = moments.iter().skip(first).map(|moment| fingerprint(&moment.state));
        judged.collect::<Vec<_>>().join("/")
    }

    /// Places reads and refusals that fit here. They change nothing, so placing them early excludes no order.
    fn place_without_effect(&self, placed: &mut [bool], state: &Logical) {
        loop {
            let fits = |index: &usize| {
                let operation = &self.operations[*index];
                !placed[*index]
                    && !has_effect(operation)
                    && self.may_come(*index, placed)
                    && replay(self.rules, state, operation).is_some()
            };
            match (0..placed.len()).find(fits) {
                Some(index) => placed[index] = true,
                None => return,
            }
        }
    }

    /// Whether all operations that were answered before this one began have been placed.
    fn may_come(&self, index: usize, placed: &[bool]) -> bool {
        let invoked = self.operations[index].invoked;
        self.operations.iter().zip(placed).all(|(other, placed)| {
            let required = other.verdict != Verdict::Unknown;
            *placed || !required || other.answered.is_none_or(|answered| answered >= invoked)
        })
    }

    /// The last LSN that was returned to the client.
    fn lsn(&self, index: usize) -> Option<u64> {
        let Verdict::Done(seen) = &self.operations[index].verdict else {
            return None;
        };
        let lsns = seen.iter().filter_map(|seen| match seen {
            Seen::Created(stored) | Seen::Replaced(stored) => Some(stored.lsn),
            Seen::Deleted | Seen::Read(_) | Seen::NotModified(_) | Seen::Listed(_) => None,
        });
        lsns.max()
    }
}

fn has_effect(operation: &Operation) -> bool {
    match &operation.verdict {
        Verdict::Done(seen) => seen.iter().any(|seen| match seen {
            Seen::Created(_) | Seen::Replaced(_) | Seen::Deleted => true,
            Seen::Read(_) | Seen::NotModified(_) | Seen::Listed(_) => false,
        }),
        Verdict::Refused(..) => false,
        Verdict::Unknown => true,
    }
}

/// The state after `operation` if the naive rules give the recorded answer.
fn replay(rules: &Rules, state: &Logical, operation: &Operation) -> Option<Logical> {
    let mut after = state.clone();
    match &operation.verdict {
        Verdict::Done(seen) => {
            if seen.len() != operation.steps.len() {
                return None;
            }
            for (step, seen) in operation.steps.iter().zip(seen) {
                let result = rules.apply(&mut after, step).ok()?;
                show(&mut after, state, &result, seen)?;
            }
            Some(after)
        }
        Verdict::Refused(index, refusal) => {
            for step in operation.steps.get(..*index)? {
                rules.apply(&mut after, step).ok()?;
            }
            let expected = rules.apply(&mut after, operation.steps.get(*index)?).err()?;
            expected.agrees_with(refusal).then(|| state.clone())
        }
        Verdict::Unknown => {
            for step in &operation.steps {
                rules.apply(&mut after, step).ok()?;
            }
            Some(after)
        }
    }
}

/// Compares the result of a step with the recorded one, and adopts values that only the store can choose.
fn show(after: &mut Logical, before: &Logical, result: &StepResult, seen: &Seen) -> Option<()> {
    match (result, seen) {
        (StepResult::Created(id), Seen::Created(stored)) => {
            // A new document has a new number, also in place of an expired one.
            let reused = before.values().any(|version| {
                let stamp = version.stamp.as_ref();
                stamp.is_some_and(|stamp| stamp.number == stored.number)
            });
            (!reused && same_body(after.get(id)?, stored)).then(|| take_over(after, id, stored))
        }
        (StepResult::Replaced(id), Seen::Replaced(stored)) => {
            let version = after.get(id)?;
            let same_number = version.stamp.as_ref().is_none_or(|stamp| stamp.number == stored.number);
            (same_number && same_body(version, stored)).then(|| take_over(after, id, stored))
        }
        (StepResult::Deleted, Seen::Deleted) => Some(()),
        (StepResult::Read(id), Seen::Read(stored)) => shows(after.get(id)?, stored).then_some(()),
        (StepResult::NotModified(expected), Seen::NotModified(etag)) => {
            let known = expected.as_ref().filter(|expected| !expected.is_empty());
            known.is_none_or(|expected| expected == etag).then_some(())
        }
        (StepResult::Listed(ids), Seen::Listed(listed)) => {
            let is_shown = |id: &String| {
                after
                    .get(id)
                    .is_some_and(|version| listed.get(id).is_some_and(|stored| shows(version, stored)))
            };
            (ids.len() == listed.len() && ids.iter().all(is_shown)).then_some(())
        }
        (
            StepResult::Created(_)
            | StepResult::Replaced(_)
            | StepResult::Deleted
            | StepResult::Read(_)
            | StepResult::NotModified(_)
            | StepResult::Listed(_),
            Seen::Created(_)
            | Seen::Replaced(_)
            | Seen::Deleted
            | Seen::Read(_)
            | Seen::NotModified(_)
            | Seen::Listed(_),
        ) => None,
    }
}

fn take_over(state: &mut Logical, id: &str, stored: &Stored) {
    state.insert(id.to_owned(), Arc::new(version_of(stored)));
}

/// Converts a version returned by the store.
pub fn version_of(stored: &Stored) -> Version {
    Version {
        body: stored.body.clone(),
        ts: stored.ts,
        stamp: Some(Stamp { number: stored.number, etag: stored.etag.clone() }),
    }
}

/// Members in the same order with the same values.
fn same_body(version: &Version, stored: &Stored) -> bool {
    version.body.iter().eq(stored.body.iter())
}

/// Whether a version may be the one returned by the store; values that only the store can choose match anything.
pub fn shows(version: &Version, stored: &Stored) -> bool {
    let stamp_agrees = match &version.stamp {
        None => true,
        Some(stamp) if stamp.etag.is_empty() => stamp.number == stored.number,
        Some(stamp) => (stamp.number, &stamp.etag, version.ts) == (stored.number, &stored.etag, stored.ts),
    };
    stamp_agrees && same_body(version, stored)
}

/// The state found after quiescence: the same documents, without those that may have been swept.
pub fn quiescent(
    state: &Logical,
    found: &BTreeMap<String, Stored>,
    may_be_gone: impl Fn(&str, &Version) -> bool,
) -> Option<Logical> {
    let mut after = Logical::new();
    for (id, version) in state {
        match found.get(id) {
            Some(stored) if shows(version, stored) => {
                after.insert(id.clone(), Arc::new(version_of(stored)));
            }
            None if may_be_gone(id, version) => {}
            Some(_) | None => return None,
        }
    }
    found.keys().all(|id| state.contains_key(id)).then_some(after)
}

/// Distinguishes states: every write has a unique mark in the document.
fn fingerprint(state: &Logical) -> String {
    let mut text = String::new();
    for (id, version) in state {
        let mark = version.body.get("w").map(ToString::to_string).unwrap_or_default();
        text.push_str(id);
        text.push('=');
        text.push_str(&mark);
        text.push(';');
    }
    text
}
