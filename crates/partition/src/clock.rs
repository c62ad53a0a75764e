//! The time of one partition: the clock, except that it does not go back by small amounts.
//!
//! Readers and the writer use it. If the clock is set back by up to [`AHEAD_SECONDS_MAX`], the time of the partition
//! stands still until the clock has caught up: `_ts` does not go back, and expired documents do not reappear. A
//! partition that is further ahead was written or read under a wrong clock; it returns to the clock.

use crate::keyspace::PartitionId;
use model::{Ambient, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Limit of the seconds that the time of a partition may be ahead of the clock.
pub(crate) const AHEAD_SECONDS_MAX: u64 = 60;

/// The clock of one partition; see the file's comment for how it differs from the system clock.
#[derive(Debug)]
pub(crate) struct PartitionClock {
    partition: PartitionId,
    ambient: Arc<dyn Ambient>,
    /// The latest second that was returned.
    latest: AtomicU64,
    /// The latest second that was given up because it was too far ahead of the clock. Versions up to it do not make
    /// the partition go ahead again, so that a new opening returns the same time as the one before it.
    given_up: AtomicU64,
}

impl PartitionClock {
    pub(crate) fn new(partition: PartitionId, ambient: Arc<dyn Ambient>) -> PartitionClock {
        PartitionClock { partition, ambient, latest: AtomicU64::new(0), given_up: AtomicU64::new(0) }
    }

    /// Starts with the time of the last write when the partition is opened. The time that an earlier opening has
    /// returned still counts, also if the last write was under a wrong clock.
    pub(crate) fn begin_at(&self, seconds: u64) {
        let now = self.ambient.now_seconds();
        match seconds.saturating_sub(now) {
            0..=AHEAD_SECONDS_MAX if seconds <= self.given_up.load(Ordering::Relaxed) => {}
            0..=AHEAD_SECONDS_MAX => self.reach(seconds),
            ahead_seconds => {
                self.given_up.fetch_max(seconds, Ordering::Relaxed);
                self.warn_ahead(ahead_seconds, now);
            }
        }
        self.now();
    }

    /// A version was written at `seconds`: no earlier second is returned after this.
    pub(crate) fn reach(&self, seconds: u64) {
        if seconds > self.latest.load(Ordering::Relaxed) {
            self.latest.fetch_max(seconds, Ordering::Relaxed);
        }
    }

    /// The time of [`PartitionClock::now`] in ticks.
    pub(crate) fn now_ticks(&self) -> Ticks {
        let ticks = self.ambient.now_ticks();
        let latest = self.latest.load(Ordering::Relaxed);
        let now = ticks.seconds();
        let seconds = if now == latest { now } else { self.moved(now, latest) };
        if seconds == now { ticks } else { Ticks::from_seconds(seconds) }
    }

    /// Seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        let now = self.ambient.now_seconds();
        let latest = self.latest.load(Ordering::Relaxed);
        if now == latest { now } else { self.moved(now, latest) }
    }

    fn moved(&self, now: u64, latest: u64) -> u64 {
        if now > latest {
            self.latest.fetch_max(now, Ordering::Relaxed);
            return now;
        }
        let ahead_seconds = latest - now;
        if ahead_seconds <= AHEAD_SECONDS_MAX {
            return latest;
        }
        // Of the threads that notice it at the same time, one logs it.
        if self.latest.compare_exchange(latest, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.given_up.fetch_max(latest, Ordering::Relaxed);
            self.warn_ahead(ahead_seconds, now);
        }
        now
    }

    fn warn_ahead(&self, ahead_seconds: u64, clock_seconds: u64) {
        tracing::warn!(event = "clock_ahead", partition = ?self.partition, ahead_seconds, clock_seconds, "the stored time was ahead of the clock; the partition uses the clock again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ContainerNumber, PartitionOrdinal};

    #[derive(Debug)]
    struct Moved(AtomicU64);

    impl Ambient for Moved {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst) * 1000
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    fn clock_at_1000() -> (Arc<Moved>, PartitionClock) {
        let ambient = Arc::new(Moved(AtomicU64::new(1000)));
        let id = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(0) };
        let clock = PartitionClock::new(id, Arc::clone(&ambient) as Arc<_>);
        (ambient, clock)
    }

    /// The last write was an hour ahead. A new opening returned to the clock, before the time that the previous
    /// opening had returned.
    #[test]
    fn a_new_opening_stands_still_where_the_last_one_did() {
        let (ambient, clock) = clock_at_1000();
        clock.begin_at(4600);
        assert_eq!(clock.now(), 1000);
        ambient.0.store(990, Ordering::SeqCst);
        assert_eq!(clock.now(), 1000);
        clock.begin_at(4600);
        assert_eq!(clock.now(), 1000);
    }

    /// The clock was set back by an hour, and then forward again to shortly before the last write. Versions were
    /// written at that time; the opening after a failure of the writer jumped ahead to the last write under the old
    /// clock.
    #[test]
    fn a_new_opening_does_not_return_to_a_time_that_was_given_up() {
        let (ambient, clock) = clock_at_1000();
        let at = |seconds| ambient.0.store(seconds, Ordering::SeqCst);
        at(4600);
        clock.begin_at(4600);
        at(1000);
        assert_eq!(clock.now(), 1000, "the hour is given up");
        at(4592);
        assert_eq!(clock.now(), 4592);
        clock.begin_at(4600);
        assert_eq!(clock.now(), 4592);

        at(4595);
        clock.begin_at(4601);
        assert_eq!(clock.now(), 4601, "a later time was written by somebody else");
    }

    #[test]
    fn a_partition_stands_still_within_the_bound_and_returns_beyond_it() {
        let (ambient, clock) = clock_at_1000();
        let at = |seconds| {
            ambient.0.store(seconds, Ordering::SeqCst);
            clock.now()
        };
        clock.begin_at(1000 + AHEAD_SECONDS_MAX);
        assert_eq!(at(1000), 1060);
        assert_eq!([at(1059), at(1061), at(1001)], [1060, 1061, 1061]);
        assert_eq!([at(1000), at(1030), at(1002)], [1000, 1030, 1030], "61 seconds are too many");
        clock.begin_at(5000);
        assert_eq!(at(1031), 1031);
    }
}
