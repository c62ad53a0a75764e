//! Slows down addresses that keep sending wrong credentials.
//!
//! Only answers to failed credentials are held back. A good credential is never delayed and never refused, whoever
//! shares the address: to lock an address out would let one stranger behind it lock out all others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long failures are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// How long an answer is held back.
const DELAY: Duration = Duration::from_secs(1);
/// Addresses that are remembered in a window. Beyond, newcomers are taken for repeaters.
const ADDRESSES_MAX: usize = 65_536;
/// A site gets this much of an IPv6 address and chooses the rest: it counts as one.
const IPV6_SITE_BITS: u32 = 64;

/// Counts failures by address.
#[derive(Debug)]
pub(crate) struct Backoff {
    failures_max: u32,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    begun: Instant,
    failures: HashMap<IpAddr, u32>,
}

impl Backoff {
    /// So many failures of an address in a minute are answered at once.
    pub(crate) fn new(failures_max: u32) -> Backoff {
        Backoff {
            failures_max,
            window: Mutex::new(Window { begun: Instant::now(), failures: HashMap::new() }),
        }
    }

    /// Counts a failure; how long its answer is to be held back, if it is.
    ///
    /// A proxy on this machine speaks for all its clients, so loopback is not counted.
    pub(crate) fn failed(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return None;
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(window.begun) >= WINDOW {
            *window = Window { begun: now, failures: HashMap::new() };
        }
        let full = window.failures.len() >= ADDRESSES_MAX;
        match window.failures.get_mut(&site(address)) {
            Some(count) => {
                *count = count.saturating_add(1);
                (*count > self.failures_max).then_some(DELAY)
            }
            None if full => Some(DELAY),
            None => {
                window.failures.insert(site(address), 1);
                (self.failures_max == 0).then_some(DELAY)
            }
        }
    }
}

fn site(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let mask = u128::MAX << (u128::BITS - IPV6_SITE_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(backoff: &Backoff, address: &str, count: usize, now: Instant) -> usize {
        let address = address.parse().unwrap();
        (0..count).filter(|_| backoff.failed(address, now).is_some()).count()
    }

    #[test]
    fn the_twenty_first_failure_of_a_minute_waits() {
        let backoff = Backoff::new(20);
        let now = Instant::now();
        assert_eq!(delays(&backoff, "10.0.0.1", 20, now), 0);
        assert_eq!(delays(&backoff, "10.0.0.1", 5, now), 5);
        assert_eq!(delays(&backoff, "10.0.0.2", 20, now), 0);
        assert_eq!(delays(&backoff, "10.0.0.1", 20, now + WINDOW), 0);
    }

    #[test]
    fn a_site_is_one_and_this_machine_is_none() {
        let backoff = Backoff::new(1);
        let now = Instant::now();
        assert_eq!(delays(&backoff, "2001:db8:1:2::1", 1, now), 0);
        assert_eq!(delays(&backoff, "2001:db8:1:2:ffff::9", 1, now), 1);
        assert_eq!(delays(&backoff, "2001:db8:1:3::1", 1, now), 0);
        assert_eq!(delays(&backoff, "::ffff:10.0.0.1", 1, now) + delays(&backoff, "10.0.0.1", 1, now), 1);
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(delays(&backoff, address, 9, now), 0);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let backoff = Backoff::new(1);
        let now = Instant::now();
        for number in 0..u32::try_from(ADDRESSES_MAX).unwrap() {
            assert!(backoff.failed(IpAddr::V4((0x0A00_0000 + number).into()), now).is_none());
        }
        assert_eq!(delays(&backoff, "192.0.2.1", 1, now), 1);
        assert_eq!(backoff.window.lock().unwrap().failures.len(), ADDRESSES_MAX);
        assert_eq!(delays(&backoff, "192.0.2.1", 1, now + WINDOW), 0);
    }
}
