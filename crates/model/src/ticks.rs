//! Time as it is stored: ticks of 100 ns since 1970-01-01 UTC.

/// Ticks of one second.
const PER_SECOND: u64 = 10_000_000;
/// Ticks of one millisecond.
const PER_MS: u64 = 10_000;

/// A time in ticks of 100 ns since 1970-01-01 UTC. Within a partition each version has later ticks than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

impl Ticks {
    /// The first tick of a second.
    pub fn from_seconds(seconds: u64) -> Ticks {
        Ticks(seconds.saturating_mul(PER_SECOND))
    }

    /// The first tick of a millisecond.
    pub(crate) fn from_ms(milliseconds: u64) -> Ticks {
        Ticks(milliseconds.saturating_mul(PER_MS))
    }

    /// The second that contains it: `_ts` of a document.
    pub fn seconds(self) -> u64 {
        self.0 / PER_SECOND
    }

    /// The next tick.
    #[must_use]
    pub fn next(self) -> Ticks {
        Ticks(self.0.saturating_add(1))
    }
}

#[test]
fn a_second_has_ten_million_ticks() {
    assert_eq!(Ticks::from_seconds(7), Ticks::from_ms(7000));
    assert_eq!(Ticks(Ticks::from_seconds(8).0 - 1).seconds(), 7);
    assert_eq!(Ticks(Ticks::from_seconds(8).0 - 1).next().seconds(), 8);
}
