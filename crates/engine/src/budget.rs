//! The budget of request units of a partition, or of a database whose containers share throughput.
//!
//! A budget is refilled continuously at its rate and holds at most one second of it, so a client may spend a whole
//! second's worth at once. A request is admitted while anything is left; its charge, known only afterwards, may
//! overdraw the budget, and later requests wait until the debt is paid. What is left follows from one number: the
//! moment at which the budget is full again.
//!
//! A budget that is used up is closed until some of it is there again, enough for several requests. All waiting clients
//! are told that moment, and then share what is there. If it was open as soon as anything is left, a client that asks all
//! the time would take everything, and those that wait as they are told would come too late each time.
//!
//! If more clients come at that moment than can be served, the next ones are told later moments: clients that wait as
//! told do not all return at the same moment to be refused again.

use model::{Charge, LimitFault, Priority};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a budget holds at most, as the time in which it is refilled.
const FULL: Duration = Duration::from_secs(1);
/// What one request can take of a budget, as the time in which it is refilled: a script or a query that reads very much
/// does not close a container for longer.
const TAKEN_AT_ONCE_MAX: Duration = Duration::from_secs(60);
/// What requests of low priority leave for others, as the time in which it is refilled.
const LOW_PRIORITY_LEAVES: Duration = Duration::from_millis(500);
/// What is there when a budget opens, as the time in which it is refilled: at least this, and enough for some requests.
const OPENS_WITH_MIN: Duration = Duration::from_millis(100);
const OPENS_WITH_REQUESTS: u64 = 16;
/// Time after a budget was used up in which clients that come count as waiting for it. Clients that do not wait come
/// later too, and must not delay the others.
const CROWD: Duration = Duration::from_millis(10);
/// As many of them are told the moment when the budget opens; only what is more is a crowd.
const CROWD_MIN: u64 = OPENS_WITH_REQUESTS;
/// Limit of the delay that the stagger adds; clients that do not come back must not delay others for longer.
const STAGGER_MAX: Duration = Duration::from_secs(5);
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Request units that are refilled at a rate.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Hundredths of a request unit per second; 0 means that nothing is limited.
    rate: AtomicU64,
    /// The rate at which the debt was counted, if that was another one.
    rate_before: AtomicU64,
    /// When the budget is full again, in nanoseconds of the engine's monotonic time.
    full_at: AtomicU64,
    /// When the budget was closed, and when it opens again.
    closed_at: AtomicU64,
    opens_at: AtomicU64,
    /// Requests that were refused right after that.
    refused: AtomicU64,
    /// When the requests of all waiting clients are paid.
    promised: AtomicU64,
    /// The charge of the last request in nanoseconds of refill.
    last_cost: AtomicU64,
    /// A mean of the charges in which the last request counts an eighth.
    mean_cost: AtomicU64,
}

impl Budget {
    /// Sets the request units that are refilled in a second; `None` ends the limit.
    pub(crate) fn set_rate(&self, per_second: Option<Charge>) {
        let hundredths = per_second.map_or(0, |rate| rate.hundredths().max(1));
        let before = self.rate.swap(hundredths, Ordering::Relaxed);
        if before > 0 && hundredths > 0 && before != hundredths {
            // Of several changes without a request in between, the debt was counted at the first rate.
            let _ = self.rate_before.compare_exchange(0, before, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Counts what is owed at the present rate: a debt of request units is paid sooner when the rate is raised.
    fn convert_debt(&self, now: u64) {
        let before = self.rate_before.swap(0, Ordering::Relaxed);
        let rate = self.rate.load(Ordering::Relaxed);
        if before == 0 || rate == 0 {
            return;
        }
        for moment in [&self.full_at, &self.opens_at, &self.promised] {
            let _ = moment.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| {
                let owed = u128::from(at.checked_sub(now)?) * u128::from(before) / u128::from(rate);
                Some(now.saturating_add(u64::try_from(owed).unwrap_or(u64::MAX)))
            });
        }
    }

    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.rate.load(Ordering::Relaxed) > 0
    }

    /// Takes over the debt of another budget.
    pub(crate) fn owe_as(&self, other: &Budget) {
        self.full_at.fetch_max(other.full_at.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Admits a request at the time `now`, or says when to come back.
    pub(crate) fn admit(&self, now: Duration, priority: Priority) -> Result<(), LimitFault> {
        if !self.is_limited() {
            return Ok(());
        }
        let now = nanos(now);
        if self.rate_before.load(Ordering::Relaxed) > 0 {
            self.convert_debt(now);
        }
        // An idle budget is full now: what was not used is not saved up.
        let full_at = self.full_at.fetch_max(now, Ordering::Relaxed).max(now);
        let may_owe = match priority {
            Priority::High => nanos(FULL),
            Priority::Low => nanos(FULL - LOW_PRIORITY_LEAVES),
        };
        let owed = full_at - now;
        let is_closed = now < self.opens_at.load(Ordering::Relaxed);
        if owed < may_owe && !is_closed {
            return Ok(());
        }
        let free_at = (full_at + 1).saturating_sub(may_owe).max(now + 1);
        let at = match priority {
            Priority::Low => free_at.max(self.opens_at.load(Ordering::Relaxed)),
            // More may have been overdrawn since it was closed.
            Priority::High if is_closed => self.told(now).max(free_at),
            Priority::High => {
                self.opens_at.store(free_at + self.opens_with(), Ordering::Relaxed);
                self.closed_at.store(now, Ordering::Relaxed);
                self.refused.store(0, Ordering::Relaxed);
                self.told(now)
            }
        };
        Err(LimitFault::Throughput {
            retry_after_ms: at.saturating_sub(now).div_ceil(NANOS_PER_SECOND / 1000),
        })
    }

    /// The moment for which a request that is refused now is told to come back.
    fn told(&self, now: u64) -> u64 {
        let opens_at = self.opens_at.load(Ordering::Relaxed);
        let promised = self.promised.load(Ordering::Relaxed).max(opens_at);
        let is_in_time = now < self.closed_at.load(Ordering::Relaxed) + nanos(CROWD);
        if is_in_time && self.refused.fetch_add(1, Ordering::Relaxed) >= CROWD_MIN {
            let latest = opens_at + nanos(STAGGER_MAX);
            self.promised.store((promised + self.usual_cost()).min(latest), Ordering::Relaxed);
        }
        let between = self.opens_with();
        opens_at + (promised - opens_at) / between * between
    }

    /// What is there when the budget opens.
    fn opens_with(&self) -> u64 {
        let some = self.usual_cost().saturating_mul(OPENS_WITH_REQUESTS);
        some.clamp(nanos(OPENS_WITH_MIN), nanos(FULL))
    }

    /// What a refused request will probably cost: one large request does not delay all others.
    fn usual_cost(&self) -> u64 {
        self.last_cost.load(Ordering::Relaxed).min(self.mean_cost.load(Ordering::Relaxed))
    }

    /// Takes the charge of a request from the budget.
    pub(crate) fn spend(&self, charge: Charge) {
        // A charge is far below 10^8 units, so that this does not saturate.
        let work = charge.hundredths().saturating_mul(NANOS_PER_SECOND);
        if let Some(cost) = work.checked_div(self.rate.load(Ordering::Relaxed)) {
            let cost = cost.min(nanos(TAKEN_AT_ONCE_MAX));
            self.full_at.fetch_add(cost, Ordering::Relaxed);
            let mean = self.mean_cost.load(Ordering::Relaxed);
            self.mean_cost
                .store(if mean == 0 { cost } else { mean - mean / 8 + cost / 8 }, Ordering::Relaxed);
            self.last_cost.store(cost, Ordering::Relaxed);
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    // 584 years.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(rate: u64) -> Budget {
        let budget = Budget::default();
        budget.set_rate(Some(units(rate)));
        budget
    }

    fn at(ms: u64) -> Duration {
        Duration::from_secs(1_000) + Duration::from_millis(ms)
    }

    fn units(units: u64) -> Charge {
        Charge::from_hundredths(units * 100)
    }

    #[track_caller]
    fn refused(admitted: Result<(), LimitFault>) -> u64 {
        match admitted {
            Err(LimitFault::Throughput { retry_after_ms }) => retry_after_ms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_rate_everything_is_admitted() {
        let budget = Budget::default();
        budget.spend(units(1_000_000));
        assert_eq!(budget.admit(at(0), Priority::Low), Ok(()));
    }

    #[test]
    fn the_first_refusal_after_a_large_request_has_the_true_delay() {
        let budget = budget(100);
        for _ in 0..10 {
            budget.admit(at(0), Priority::High).unwrap();
            budget.spend(units(1));
        }
        budget.admit(at(0), Priority::High).unwrap();
        budget.spend(units(440));
        // 450 units are owed, of which 100 may be: 3.5 s, and one until there is enough for several requests.
        assert_eq!(refused(budget.admit(at(0), Priority::High)), 4501);
        assert_eq!(refused(budget.admit(at(0), Priority::High)), 4501);
    }

    #[test]
    fn one_second_may_be_spent_at_once_and_the_delay_is_true() {
        let budget = budget(400);
        for _ in 0..80 {
            assert_eq!(budget.admit(at(0), Priority::High), Ok(()));
            budget.spend(units(5));
        }
        let delay = refused(budget.admit(at(0), Priority::High));
        // Sixteen such requests can be served then.
        assert_eq!((delay, refused(budget.admit(at(0), Priority::High))), (201, 201));
        assert_eq!(refused(budget.admit(at(200), Priority::High)), 1);
        assert_eq!(budget.admit(at(delay), Priority::High), Ok(()));
    }

    #[test]
    fn an_overdraft_is_paid_before_the_next_request() {
        let budget = budget(400);
        assert_eq!(budget.admit(at(0), Priority::High), Ok(()));
        budget.spend(units(2000));
        // Four of the five seconds must pass before anything is left, and one before it is enough for several requests.
        let delay = refused(budget.admit(at(100), Priority::High));
        assert!((4900..=4901).contains(&delay), "{delay}");
        assert!(budget.admit(at(4999), Priority::High).is_err());
        assert_eq!(budget.admit(at(5001), Priority::High), Ok(()));
    }

    #[test]
    fn what_is_not_used_is_not_saved_up() {
        let budget = budget(100);
        assert_eq!(budget.admit(at(0), Priority::High), Ok(()));
        assert_eq!(budget.admit(at(60_000), Priority::High), Ok(()));
        budget.spend(units(100));
        refused(budget.admit(at(60_000), Priority::High));
    }

    #[test]
    fn the_admitted_rate_is_the_rate() {
        let budget = budget(1000);
        let mut admitted = 0;
        for ms in 0..10_000 {
            for _ in 0..3 {
                if budget.admit(at(ms), Priority::High).is_ok() {
                    budget.spend(units(5));
                    admitted += 5;
                }
            }
        }
        // Ten seconds, and the one that was there at the beginning; some of it may be saved up at the end.
        assert!((10_890..=11_010).contains(&admitted), "{admitted}");
    }

    #[test]
    fn requests_of_low_priority_leave_room() {
        let budget = budget(100);
        assert_eq!(budget.admit(at(0), Priority::Low), Ok(()));
        budget.spend(units(60));
        refused(budget.admit(at(0), Priority::Low));
        assert_eq!(budget.admit(at(0), Priority::High), Ok(()));
    }

    #[test]
    fn refused_clients_are_told_different_moments() {
        let budget = budget(100);
        assert_eq!(budget.admit(at(0), Priority::High), Ok(()));
        budget.spend(units(100));
        budget.spend(units(10));
        let delays: Vec<u64> = (0..40).map(|_| refused(budget.admit(at(0), Priority::High))).collect();
        // Ten requests are served each second.
        assert_eq!(delays[..16], [1101; 16]);
        assert_eq!((delays[30], delays[39]), (2101, 3101));
        // Clients that never return do not delay others for ever.
        let last = (0..1000).map(|_| refused(budget.admit(at(0), Priority::High))).last();
        assert!(last.is_some_and(|last| last <= 6_101), "{last:?}");
    }

    #[test]
    fn a_debt_is_taken_over() {
        let (parent, child) = (budget(400), budget(200));
        parent.spend(units(4000));
        child.owe_as(&parent);
        let at = |seconds| child.admit(Duration::from_secs(seconds), Priority::High);
        assert!(at(8).is_err());
        assert!(at(10).is_ok());
    }

    #[test]
    fn one_request_closes_a_budget_for_a_minute_at_most() {
        let budget = budget(400);
        budget.admit(at(0), Priority::High).unwrap();
        budget.spend(units(322_903));
        assert!(budget.admit(at(58_999), Priority::High).is_err());
        assert_eq!(budget.admit(at(61_000), Priority::High), Ok(()));
    }

    #[test]
    fn a_higher_rate_pays_a_debt_sooner() {
        let budget = budget(400);
        budget.admit(at(0), Priority::High).unwrap();
        budget.spend(units(20_000));
        // 49 s until something is left, and one more until it is enough for several requests.
        let before = refused(budget.admit(at(0), Priority::High));
        assert!((49_000..=50_100).contains(&before), "{before}");
        budget.set_rate(Some(units(1_000)));
        budget.set_rate(Some(units(10_000)));
        let after = refused(budget.admit(at(0), Priority::High));
        assert!((1_000..=2_100).contains(&after), "{after}");
        assert_eq!(budget.admit(at(after), Priority::High), Ok(()));
        // And a lower one later; what was never owed does not matter.
        budget.set_rate(Some(units(400)));
        assert_eq!(budget.admit(at(60_000), Priority::High), Ok(()));
    }

    /// Retries of a client that waits as it is told, as SDKs do by themselves.
    const RETRIES_MAX: u32 = 9;

    /// A client that sends one request after another, each with the same charge.
    struct Client {
        /// Whether it waits as it is told.
        is_patient: bool,
        units: u64,
        /// When it sends its next request, in milliseconds.
        next_ms: u64,
        retries: u32,
        served: u64,
        gave_up: u64,
    }

    impl Client {
        fn new(is_patient: bool, units: u64) -> Client {
            Client { is_patient, units, next_ms: 0, retries: 0, served: 0, gave_up: 0 }
        }

        fn ask(&mut self, budget: &Budget, now_ms: u64) {
            match budget.admit(at(now_ms), Priority::High) {
                Ok(()) => {
                    budget.spend(units(self.units));
                    self.served += 1;
                    self.retries = 0;
                    self.next_ms = now_ms + 1;
                }
                // It tries again and again.
                Err(_) if !self.is_patient => self.next_ms = now_ms + 1,
                Err(_) if self.retries == RETRIES_MAX => {
                    self.gave_up += 1;
                    self.retries = 0;
                    self.next_ms = now_ms + 1;
                }
                Err(LimitFault::Throughput { retry_after_ms }) => {
                    self.retries += 1;
                    self.next_ms = now_ms + retry_after_ms;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    /// Clients that share a budget for a minute.
    fn share(rate: u64, clients: &mut [Client]) {
        let budget = budget(rate);
        for ms in 0..60_000 {
            // Who comes first in a millisecond changes.
            let first = usize::try_from(ms).unwrap() % clients.len();
            clients.rotate_left(first);
            for client in clients.iter_mut().filter(|client| client.next_ms <= ms) {
                client.ask(&budget, ms);
            }
            clients.rotate_right(first);
        }
    }

    /// A client that ignores delays gets no more than its share, and those that wait are served.
    #[test]
    fn clients_that_wait_are_served_next_to_one_that_does_not() {
        for (rate, units) in [(400, 1), (400, 10), (400, 100), (4_000, 5), (10_000, 10)] {
            let mut clients = vec![Client::new(false, units)];
            clients.extend((0..8).map(|_| Client::new(true, units)));
            share(rate, &mut clients);
            let served: Vec<(u64, u64)> =
                clients.iter().map(|client| (client.served, client.gave_up)).collect();
            let total: u64 = clients.iter().map(|client| client.served).sum();
            assert!(total * units >= rate * 57, "the rate is used: {served:?}");
            let share = total / 9;
            for client in &clients[1..] {
                assert!(client.served * 3 >= share, "at {rate}, {units} units: {served:?}");
                assert!(client.gave_up * 10 <= client.served, "at {rate}, {units} units: {served:?}");
            }
        }
    }

    /// Clients that all wait share evenly.
    #[test]
    fn clients_that_wait_share_evenly() {
        for (rate, units) in [(400, 1), (400, 10), (400, 100), (4_000, 5)] {
            let mut clients: Vec<Client> = (0..9).map(|_| Client::new(true, units)).collect();
            share(rate, &mut clients);
            let served: Vec<(u64, u64)> =
                clients.iter().map(|client| (client.served, client.gave_up)).collect();
            let total: u64 = clients.iter().map(|client| client.served).sum();
            assert!(total * units >= rate * 55, "the rate is used: {served:?}");
            assert!(clients.iter().all(|client| client.served * 9 * 2 >= total), "{served:?}");
            assert!(clients.iter().all(|client| client.gave_up * 10 <= client.served), "{served:?}");
        }
    }

    /// Far more clients than one opening serves are spread over later ones.
    #[test]
    fn a_crowd_that_waits_is_served() {
        let mut clients: Vec<Client> = (0..100).map(|_| Client::new(true, 10)).collect();
        share(400, &mut clients);
        let served: Vec<(u64, u64)> = clients.iter().map(|client| (client.served, client.gave_up)).collect();
        let total: u64 = clients.iter().map(|client| client.served).sum();
        assert!(total * 10 >= 400 * 55, "the rate is used: {served:?}");
        assert!(clients.iter().all(|client| client.served > 0), "{served:?}");
        let gave_up: u64 = clients.iter().map(|client| client.gave_up).sum();
        assert!(gave_up * 10 <= total, "{gave_up} gave up, {total} were served");
    }
}
