//! The ledger: the charges of requests are recorded for the partition that did the work.
//!
//! What is recorded is taken from the budget of the partition, or from that of the database if its containers share
//! throughput. Refused requests are recorded too. Metrics show the totals since the start; they do not survive a restart.

use crate::budget::Budget;
use crate::hot_keys::{HotKey, HotKeys};
use crate::used_rate::UsedRate;
use arc_swap::ArcSwapOption;
use model::{Charge, Fault, LimitFault, PartitionKey, Priority, StorageFault};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Totals of the requests on one partition.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    requests: AtomicU64,
    refused: AtomicU64,
    damaged: AtomicU64,
    throttled: AtomicU64,
    used: UsedRate,
    /// The partition's part of the throughput of its container.
    budget: Budget,
    /// The throughput of the database, if the container has none of its own.
    shared: ArcSwapOption<SharedThroughput>,
    hot_keys: HotKeys,
    /// Until then all requests are refused, in nanoseconds of the engine's monotonic time: for tests of clients.
    paused_until: AtomicU64,
}

/// Throughput that containers of a database share.
#[derive(Debug, Default)]
pub(crate) struct SharedThroughput {
    pub(crate) budget: Budget,
    pub(crate) used: UsedRate,
}

/// The content of a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTotals {
    /// Requests, including refused ones.
    pub requests: u64,
    /// Refused requests.
    pub refused: u64,
    /// Refused requests that found damaged data.
    pub damaged: u64,
    /// Requests that were refused because the throughput was used up.
    pub throttled: u64,
    /// The total charge.
    pub charged: Charge,
}

impl Ledger {
    /// Limits the partition to its part of the container's throughput, which has this number of equal parts.
    pub(crate) fn limit(&self, per_second: Option<Charge>, parts: u64) {
        self.budget.set_rate(per_second);
        self.used.set_parts(parts);
        self.shared.store(None);
    }

    /// Makes requests draw on the throughput of the database.
    pub(crate) fn share(&self, shared: &Arc<SharedThroughput>) {
        self.budget.set_rate(None);
        self.shared.store(Some(Arc::clone(shared)));
    }

    /// Takes over the debt and the highest rate of the partition that this one was split from.
    pub(crate) fn inherit(&self, parent: &Ledger) {
        self.budget.owe_as(&parent.budget);
        self.used.inherit(&parent.used);
    }

    /// The request units that the partition uses.
    pub(crate) fn used(&self) -> &UsedRate {
        &self.used
    }

    /// Refuses all requests until the time `until`.
    pub(crate) fn pause(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.paused_until.store(nanos, Ordering::Relaxed);
    }

    /// Refuses a request while the partition is paused.
    fn check_pause(&self, now: Duration) -> Result<(), LimitFault> {
        let until = Duration::from_nanos(self.paused_until.load(Ordering::Relaxed));
        match until.checked_sub(now).filter(|left| !left.is_zero()) {
            Some(left) => {
                let retry_after_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
                Err(LimitFault::Throughput { retry_after_ms })
            }
            None => {
                self.paused_until.store(0, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Admits a request, or refuses it because the throughput is used up. `now` is called only if it is limited.
    pub(crate) fn admit(&self, priority: Priority, now: impl FnOnce() -> Duration) -> Result<(), LimitFault> {
        let shared = self.shared.load();
        let budget = shared.as_deref().map_or(&self.budget, |shared| &shared.budget);
        let is_paused = self.paused_until.load(Ordering::Relaxed) != 0;
        if !budget.is_limited() && !is_paused {
            return Ok(());
        }
        let now = now();
        let admitted = match is_paused {
            true => self.check_pause(now).and_then(|()| budget.admit(now, priority)),
            false => budget.admit(now, priority),
        };
        if admitted.is_err() {
            self.throttled.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// The key of a request, if the request is one of those that are counted by key.
    pub(crate) fn sampled(&self, key: &PartitionKey) -> Option<PartitionKey> {
        HotKeys::is_sampled(self.requests.load(Ordering::Relaxed)).then(|| key.clone())
    }

    /// Counts a request by its key.
    pub(crate) fn count_key(&self, key: Option<PartitionKey>, charge: Charge) {
        if let Some(key) = key {
            self.hot_keys.count(&key, charge);
        }
    }

    /// The partition keys with the greatest parts of the charges.
    pub(crate) fn hot_keys(&self, count: usize) -> Vec<HotKey> {
        self.hot_keys.greatest(count)
    }

    /// Notes the first request of a second.
    pub(crate) fn begin_second(&self, second: u64) {
        self.used.begin_second(second);
        if let Some(shared) = &*self.shared.load() {
            shared.used.begin_second(second);
        }
    }

    /// Records a request with this charge. Housekeeping is not charged and is not a request.
    pub(crate) fn add(&self, charge: Charge) {
        if charge == Charge::NONE {
            return;
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.used.add(charge);
        match &*self.shared.load() {
            Some(shared) => {
                shared.used.add(charge);
                shared.budget.spend(charge);
            }
            None => self.budget.spend(charge),
        }
    }

    pub(crate) fn refuse(&self, fault: &Fault, charge: Charge) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let is_damage = matches!(fault, Fault::Storage(StorageFault::Damaged { .. }));
        self.damaged.fetch_add(u64::from(is_damage), Ordering::Relaxed);
        self.add(charge);
    }

    pub(crate) fn totals(&self) -> LedgerTotals {
        LedgerTotals {
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            damaged: self.damaged.load(Ordering::Relaxed),
            throttled: self.throttled.load(Ordering::Relaxed),
            charged: self.used.total(),
        }
    }
}

/// The charge of a refused request: nothing before the caller is authenticated, nothing if the throughput is used up,
/// otherwise the minimum.
pub fn refusal_charge(fault: &Fault) -> Charge {
    match fault {
        Fault::Access(_) | Fault::Limit(LimitFault::Throughput { .. }) => Charge::NONE,
        Fault::Request(_)
        | Fault::Missing(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Limit(_)
        | Fault::Storage(_)
        | Fault::Internal(_) => Charge::MINIMUM,
    }
}

#[test]
fn refusals_are_recorded_beside_what_was_done() {
    let ledger = Ledger::default();
    ledger.add(Charge::MINIMUM);
    let damage = Fault::Storage(StorageFault::Damaged { what: "a record".to_owned() });
    for fault in [Fault::Internal("x".to_owned()), damage] {
        ledger.refuse(&fault, refusal_charge(&fault));
    }
    let created = Charge::from_hundredths(507);
    ledger.add(created);
    let charged = Charge::MINIMUM + Charge::MINIMUM + Charge::MINIMUM + created;
    assert_eq!(ledger.totals(), LedgerTotals { requests: 4, refused: 2, damaged: 1, throttled: 0, charged });
}

#[test]
fn charges_are_taken_from_the_budget_that_applies() {
    let now = || Duration::from_secs(1);
    let ledger = Ledger::default();
    let shared = Arc::new(SharedThroughput::default());
    shared.budget.set_rate(Some(Charge::MINIMUM));
    ledger.limit(Some(Charge::from_hundredths(1000)), 1);
    ledger.add(Charge::from_hundredths(1000));
    // Nothing was spent before the first request was admitted.
    ledger.share(&shared);
    assert_eq!(ledger.admit(Priority::High, now), Ok(()));
    ledger.add(Charge::from_hundredths(150));
    assert!(ledger.admit(Priority::High, now).is_err());
    assert!(shared.budget.admit(now(), Priority::High).is_err());
    ledger.limit(None, 1);
    assert_eq!(ledger.admit(Priority::High, || unreachable!()), Ok(()));
    assert_eq!(ledger.totals().throttled, 1);
}

#[test]
fn a_paused_partition_refuses_until_its_time_is_over() {
    let ledger = Ledger::default();
    let at = |seconds| move || Duration::from_secs(seconds);
    ledger.pause(Duration::from_secs(10));
    assert_eq!(ledger.admit(Priority::High, at(8)), Err(LimitFault::Throughput { retry_after_ms: 2001 }));
    assert_eq!(ledger.admit(Priority::High, at(10)), Ok(()));
    assert_eq!(ledger.admit(Priority::High, || unreachable!()), Ok(()));
}
