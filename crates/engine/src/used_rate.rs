//! The request units that are used: in total, in the last second, and at most in one second of the hour.
//!
//! Seconds are those of the rounds of housekeeping. A figure whose second two requests begin at the same moment may be
//! slightly too low, which is acceptable for metrics.

use model::Charge;
use std::sync::atomic::{AtomicU64, Ordering};

const SECONDS_PER_HOUR: u64 = 3600;

/// Charges by second, in hundredths of a request unit.
#[derive(Debug)]
pub(crate) struct UsedRate {
    /// All charges.
    charged: AtomicU64,
    /// The second of the first request since the last change of these figures.
    second: AtomicU64,
    /// The total charge when that second began.
    charged_before: AtomicU64,
    /// The charge of the second before it.
    previous: AtomicU64,
    /// The highest charge of a complete second of `hour`, times `parts`.
    highest: AtomicU64,
    /// Hours since 1970.
    hour: AtomicU64,
    /// Equal parts of the throughput, of which this is one.
    parts: AtomicU64,
}

impl Default for UsedRate {
    fn default() -> UsedRate {
        UsedRate {
            charged: AtomicU64::default(),
            second: AtomicU64::default(),
            charged_before: AtomicU64::default(),
            previous: AtomicU64::default(),
            highest: AtomicU64::default(),
            hour: AtomicU64::default(),
            parts: AtomicU64::new(1),
        }
    }
}

impl UsedRate {
    pub(crate) fn add(&self, charge: Charge) {
        self.charged.fetch_add(charge.hundredths(), Ordering::Relaxed);
    }

    /// Notes a request in a second; the first one ends the second before.
    pub(crate) fn begin_second(&self, second: u64) {
        let ended = self.second.swap(second, Ordering::Relaxed);
        if ended == second {
            return;
        }
        let charged = self.charged.load(Ordering::Relaxed);
        let used = charged.saturating_sub(self.charged_before.swap(charged, Ordering::Relaxed));
        self.previous.store(if ended + 1 == second { used } else { 0 }, Ordering::Relaxed);
        let hour = ended / SECONDS_PER_HOUR;
        if self.hour.swap(hour, Ordering::Relaxed) != hour {
            self.highest.store(0, Ordering::Relaxed);
        }
        self.highest.fetch_max(self.times_parts(used), Ordering::Relaxed);
    }

    /// The charge since the start.
    pub(crate) fn total(&self) -> Charge {
        Charge::from_hundredths(self.charged.load(Ordering::Relaxed))
    }

    /// The charge of the last complete second.
    pub(crate) fn last_second(&self, now: u64) -> Charge {
        let hundredths = match now.saturating_sub(self.second.load(Ordering::Relaxed)) {
            0 => self.previous.load(Ordering::Relaxed),
            1 => self.unfinished(),
            2.. => 0,
        };
        Charge::from_hundredths(hundredths)
    }

    /// What the throughput of the whole must be for this part to serve its last second.
    pub(crate) fn needed_now(&self, now: u64) -> Charge {
        Charge::from_hundredths(self.times_parts(self.last_second(now).hundredths()))
    }

    /// What the throughput of the whole must have been for this part to serve every second of this hour.
    pub(crate) fn needed_in_hour(&self, now: u64) -> Charge {
        let hour = now / SECONDS_PER_HOUR;
        let is_of_hour = |seen: u64| if seen == hour { u64::MAX } else { 0 };
        let complete = self.highest.load(Ordering::Relaxed) & is_of_hour(self.hour.load(Ordering::Relaxed));
        let second = self.second.load(Ordering::Relaxed);
        let unfinished = self.times_parts(self.unfinished()) & is_of_hour(second / SECONDS_PER_HOUR);
        Charge::from_hundredths(complete.max(unfinished))
    }

    /// Sets of how many equal parts of the throughput this is one.
    pub(crate) fn set_parts(&self, parts: u64) {
        self.parts.store(parts, Ordering::Relaxed);
    }

    /// Takes over the highest rate of the partition that this one was split from.
    pub(crate) fn inherit(&self, parent: &UsedRate) {
        let second = parent.second.load(Ordering::Relaxed);
        self.second.store(second, Ordering::Relaxed);
        self.hour.store(second / SECONDS_PER_HOUR, Ordering::Relaxed);
        self.highest.store(parent.needed_in_hour(second).hundredths(), Ordering::Relaxed);
    }

    fn unfinished(&self) -> u64 {
        let charged = self.charged.load(Ordering::Relaxed);
        charged.saturating_sub(self.charged_before.load(Ordering::Relaxed))
    }

    fn times_parts(&self, hundredths: u64) -> u64 {
        hundredths.saturating_mul(self.parts.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: u64) -> Charge {
        Charge::from_hundredths(units * 100)
    }

    #[test]
    fn the_last_second_is_the_last_complete_one() {
        let used = UsedRate::default();
        used.begin_second(7);
        used.add(units(5));
        assert_eq!((used.last_second(7), used.last_second(8)), (Charge::NONE, units(5)));
        used.begin_second(8);
        used.begin_second(8);
        used.add(units(1));
        assert_eq!(used.last_second(8), units(5));
        assert_eq!((used.last_second(9), used.last_second(10)), (units(1), Charge::NONE));
        used.begin_second(12);
        assert_eq!((used.last_second(12), used.total()), (Charge::NONE, units(6)));
    }

    #[test]
    fn the_highest_second_counts_within_its_hour() {
        let used = UsedRate::default();
        used.set_parts(4);
        for (second, charge) in [(7200, 10), (7201, 30), (7205, 20)] {
            used.begin_second(second);
            used.add(units(charge));
        }
        assert_eq!(used.needed_in_hour(7205), units(120));
        assert_eq!(used.needed_in_hour(10_799), units(120));
        assert_eq!(used.needed_in_hour(10_800), Charge::NONE);
        used.begin_second(10_800);
        used.add(units(50));
        // Also while its second is not complete, and when nothing came after it.
        assert_eq!(used.needed_in_hour(10_800), units(200));
        assert_eq!(used.needed_in_hour(10_900), units(200));
        assert_eq!(used.needed_now(10_801), units(200));
        assert_eq!(used.needed_now(10_802), Charge::NONE);
    }

    #[test]
    fn a_split_keeps_what_was_highest() {
        let (parent, child) = (UsedRate::default(), UsedRate::default());
        parent.set_parts(1);
        parent.begin_second(7200);
        parent.add(units(40));
        child.set_parts(2);
        child.inherit(&parent);
        assert_eq!(child.needed_in_hour(7200), units(40));
        child.add(units(10));
        child.begin_second(7201);
        assert_eq!(child.needed_in_hour(7201), units(40));
        assert_eq!((child.total(), child.needed_now(7201)), (units(10), units(20)));
    }
}
