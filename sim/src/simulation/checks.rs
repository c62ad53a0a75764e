//! The checks of a wave: answers, records, identities and feeds against the model.

use super::{End, Simulation, Survived};
use crate::clients::{Answer, Call, Record, stored_of};
use crate::feeds::Feed;
use crate::history::{Judged, Moment, Operation, Seen, Stored, Verdict, explain, quiescent, with_transient};
use crate::identity::Shown;
use crate::naive::{Refusal, Rules, Version};
use crate::scenario::KEYS;
use crate::trace::brief;
use crate::world::{CheckFailure, Found};
use model::{ConflictFault, Fault, LimitFault, MissingFault, PreconditionFault, RequestFault, StorageFault};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

/// Most orders of a wave that are considered when a crash reverts a part of it.
const ORDERS_MAX: usize = 500;

/// All orders that explain a wave, of which one is in the past. Its end does not show which one the store has taken, but
/// a crash that reverts a part of the wave does.
pub(super) struct OtherOrders {
    /// Where the moments of the wave are in the past.
    span: Range<usize>,
    orders: Vec<Vec<Moment>>,
}

/// The past, and the same with another order of one wave. A crash ends within one wave.
fn pasts<'a>(past: &'a [Moment], others: &'a [OtherOrders]) -> Vec<Vec<&'a Moment>> {
    let with = |span: &Range<usize>, order: &'a [Moment]| -> Vec<&'a Moment> {
        past[..span.start].iter().chain(order).chain(&past[span.end..]).collect()
    };
    let other = others
        .iter()
        .flat_map(|OtherOrders { span, orders }| orders.iter().map(move |order| with(span, order)));
    [past.iter().collect()].into_iter().chain(other).collect()
}

impl Simulation<'_> {
    /// Compares the answers and the final state of a wave with the model.
    pub(super) fn check_wave(&mut self, records: &[Record], end: &End) -> Result<(), CheckFailure> {
        self.check_spoiled(records)?;
        let mut operations: Vec<Vec<Operation>> = vec![Vec::new(); KEYS.len()];
        for record in records {
            if let Call::Steps { key, steps } | Call::Transaction { key, steps } = &record.call
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
        let found = self.world.read_documents()?;
        let mut moments = Vec::with_capacity(KEYS.len());
        for (key, operations) in operations.iter().enumerate() {
            moments.push(self.explain(key, operations, &found, end)?);
        }
        if let End::Crashed(survived) = end {
            self.check_prefix(&moments, survived)?;
        }
        match end {
            End::Quiet => self.check_feeds(records, &moments)?,
            End::Crashed(_) => {
                // Pages may have shown writes that were never acknowledged and that the crash has reverted.
                let of_key = |(key, moments): (usize, &Vec<Moment>)| {
                    with_transient(&self.rules_of(key), moments, &operations[key])
                };
                let shown: Vec<Vec<Moment>> = moments.iter().enumerate().map(of_key).collect();
                self.check_feeds(records, &shown)?;
            }
        }
        match end {
            End::Quiet => {
                for (past, moments) in self.past.iter_mut().zip(moments) {
                    past.extend(moments.into_iter().skip(1));
                }
            }
            End::Crashed(survived) => {
                self.clocks = survived.iter().map(|(ordinal, survived)| (*ordinal, survived.ts)).collect();
                self.all_is_durable();
            }
        }
        Ok(())
    }

    /// The store refuses one transaction: the others of its batch are executed.
    fn check_spoiled(&self, records: &[Record]) -> Result<(), CheckFailure> {
        let is_spoiled = |record: &&Record| match &record.answer {
            Some(Answer::Steps(Err((_, fault)))) => self.world.is_spoiled(fault),
            Some(Answer::Steps(Ok(_)) | Answer::Page(_)) | None => false,
        };
        // A transaction that is sent twice is spoiled twice.
        let spoiled = records.iter().filter(is_spoiled).map(|record| format!("{:?}", record.call));
        match spoiled.collect::<BTreeSet<_>>().len() {
            0 | 1 => Ok(()),
            count => Err(format!("{count} transactions were refused because of one")),
        }
    }

    /// Finds an order for the operations of one partition key and adopts the found state as the model's.
    fn explain(
        &mut self,
        key: usize,
        operations: &[Operation],
        found: &Found,
        end: &End,
    ) -> Result<Vec<Moment>, CheckFailure> {
        let (rules, past, found) = (&self.rules_of(key), &self.past[key], &found[key]);
        let before = self.rules_before.clone().map(|before| Rules { now: rules.now, ..before });
        let may_be_gone = |_: &str, version: &Version| {
            rules.is_expired(version) || before.as_ref().is_some_and(|before| before.is_expired(version))
        };
        let lsn_survived = match end {
            End::Quiet => None,
            End::Crashed(survived) => {
                let ordinal = self.world.ordinal_of(key).ok_or("nobody owns a key")?;
                Some(survived.get(&ordinal).copied().unwrap_or_default().lsn)
            }
        };
        let buffered = self.scenario.buffered;
        let pasts = pasts(past, &self.other_orders[key]);
        let accept = |moments: &[Moment]| match lsn_survived {
            None => quiescent(&moments.last()?.state, found, may_be_gone),
            Some(_) if !buffered => quiescent(&moments.last()?.state, found, may_be_gone),
            Some(lsn) => pasts.iter().find_map(|past| {
                let all: Vec<&Moment> = past.iter().copied().chain(moments.iter().skip(1)).collect();
                (1..=all.len()).rev().find_map(|cut| {
                    let kept = all[..cut].iter().all(|moment| moment.lsn.is_none_or(|at| at <= lsn));
                    let lost = all[cut..].iter().all(|moment| moment.lsn.is_none_or(|at| at > lsn));
                    // Documents that had expired for a while may have been swept then, each separately.
                    let swept_later = |version: &Version| {
                        let mut expired = all[cut - 1..].iter().flat_map(|moment| &moment.expired);
                        expired.any(|expired| **expired == *version)
                    };
                    let may_be_gone =
                        |id: &str, version: &Version| may_be_gone(id, version) || swept_later(version);
                    (kept && lost).then(|| quiescent(&all[cut - 1].state, found, may_be_gone))?
                })
            }),
        };
        let judged = if lsn_survived.is_some() && buffered { Judged::Path } else { Judged::End };
        let explained = explain(rules, &self.logicals[key], operations, judged, accept);
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
        let events = self.events;
        let end_of = |last: &Moment| Moment {
            lsn: None,
            expired: rules.expired_in(&last.state),
            span: (events, Some(events)),
            state: state.clone(),
        };
        moments.extend(moments.last().map(end_of));
        if buffered && lsn_survived.is_none() {
            let mut orders = Vec::new();
            // Refuses every order but the last that is wanted, to be shown the others.
            let _ = explain(rules, &self.logicals[key], operations, Judged::Path, |path| {
                let last = path.last()?;
                if quiescent(&last.state, found, may_be_gone).is_some() {
                    orders.push(path.iter().skip(1).cloned().chain([end_of(last)]).collect());
                }
                (orders.len() >= ORDERS_MAX).then_some(())
            });
            if orders.len() > 1 {
                let span = past.len()..past.len() + moments.len() - 1;
                self.other_orders[key].push(OtherOrders { span, orders });
            }
        }
        self.logicals[key] = state;
        Ok(moments)
    }

    /// With buffered writes a crash reverts the end of the store's history, whichever partition it belongs to.
    fn check_prefix(
        &self,
        moments: &[Vec<Moment>],
        survived: &BTreeMap<u32, Survived>,
    ) -> Result<(), CheckFailure> {
        let mut last_kept = 0;
        let mut lost = Vec::new();
        for (key, moments) in moments.iter().enumerate() {
            let ordinal = self.world.ordinal_of(key).ok_or("nobody owns a key")?;
            let lsn_survived = survived.get(&ordinal).copied().unwrap_or_default().lsn;
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

    fn check_identities(&mut self, operations: &[Vec<Operation>]) -> Result<(), CheckFailure> {
        let mut shown = Shown {
            container: self.world.container.number().0,
            written: Vec::new(),
            read: Vec::new(),
            times: self.world.ordinals().map(|it| (it, self.time_of(it))).collect(),
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
                    Seen::Listed(listed) => shown.read.extend(listed.values()),
                    Seen::Deleted | Seen::NotModified(_) => {}
                }
            }
        }
        self.identities.check(shown)
    }

    fn check_feeds(&mut self, records: &[Record], moments: &[Vec<Moment>]) -> Result<(), CheckFailure> {
        let container = self.world.container.number().0;
        let may_fail = self.world.may_fail();
        let rules = self.key_rules();
        for record in records {
            let Call::Page { scope, items_max, query, .. } = &record.call else {
                continue;
            };
            let Some(Answer::Page(page)) = &record.answer else {
                continue;
            };
            let place = &mut self.feeds[record.lane];
            let feed = place.get_or_insert_with(|| Feed::new(*scope, *query, container));
            match page {
                Ok(page) if feed.container == container => {
                    let stored: Result<Vec<Stored>, _> = page.documents.iter().map(stored_of).collect();
                    feed.take(&rules, page, &stored?, *items_max, moments)?;
                    if page.continuation.is_none() {
                        let ended = feed.on_quiet_moment(&rules, moments, |key, ordinal| {
                            self.world.is_in_range(key, ordinal)
                        })?;
                        debug_assert!(ended);
                        *place = None;
                    }
                }
                Ok(_) => return Err("a continuation of a dropped container was accepted".to_owned()),
                Err(Fault::Request(RequestFault::BadContinuation(_))) if feed.container != container => {
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
        self.check_feeds_at_quiet_moment(moments)
    }

    pub(super) fn check_feeds_at_quiet_moment(
        &mut self,
        moments: &[Vec<Moment>],
    ) -> Result<(), CheckFailure> {
        let container = self.world.container.number().0;
        let rules = self.key_rules();
        for feed in self.feeds.iter_mut().flatten() {
            if feed.container == container {
                feed.on_quiet_moment(&rules, moments, |key, ordinal| self.world.is_in_range(key, ordinal))?;
            }
        }
        Ok(())
    }

    /// The outcome for a client; `None` if it is certain that nothing happened.
    fn verdict(&self, record: &Record) -> Result<Option<Verdict>, CheckFailure> {
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
            Fault::Storage(StorageFault::Uncertain { .. }) if self.world.may_fail() => {
                return Ok(Some(Verdict::Unknown));
            }
            Fault::Storage(StorageFault::Full { .. }) if self.is_full => return Ok(None),
            Fault::Conflict(ConflictFault::ConcurrentChange | ConflictFault::Locked { .. }) => {
                return Ok(None);
            }
            Fault::Limit(LimitFault::TransactionTime { .. }) if self.world.may_fail() => return Ok(None),
            Fault::Storage(StorageFault::Unavailable { .. } | StorageFault::Damaged { .. })
                if self.world.may_fail() =>
            {
                return Ok(None);
            }
            Fault::Internal(_) if self.world.is_spoiled(fault) => return Ok(None),
            Fault::Query(_)
            | Fault::Conflict(ConflictFault::Permission { .. } | ConflictFault::ThroughputPending)
            | Fault::Precondition(PreconditionFault::Filter | PreconditionFault::OtherText { .. })
            | Fault::Missing(_)
            | Fault::Request(_)
            | Fault::Storage(_)
            | Fault::Access(_)
            | Fault::Limit(_)
            | Fault::Internal(_) => return Err(format!("an unexpected refusal: {fault}")),
        };
        Ok(Some(Verdict::Refused(index, refusal)))
    }
}
