//! Slows down addresses that repeatedly send wrong credentials.
//!
//! Only responses to failed credentials are delayed. A valid credential is never delayed or refused, whoever shares the
//! address: blocking an address would let one attacker behind a NAT lock out everyone else.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time window in which failures are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Delay of a response.
const DELAY: Duration = Duration::from_secs(1);
/// Most addresses tracked in a window. Further addresses are treated as repeated failures.
const ADDRESSES_MAX: usize = 65_536;
/// Prefix length of an IPv6 site. A site chooses the remaining bits freely, so its addresses count as one.
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
    /// Responses to the first `failures_max` failures of an address per minute are not delayed.
    pub(crate) fn new(failures_max: u32) -> Backoff {
        Backoff {
            failures_max,
            window: Mutex::new(Window { begun: Instant::now(), failures: HashMap::new() }),
        }
    }

    /// Counts a failure and returns the delay of its response, if any.
    ///
    /// A proxy on this machine represents all its clients, so loopback is not counted.
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
