//! The partition keys that cause most of the charges of a partition, approximately.
//!
//! A sample of the requests is counted with the space-saving algorithm: a fixed number of keys is kept, and a new key
//! takes the place of the one with the lowest weight and inherits it. A key with more than one part in `KEPT` of all
//! charges is always among them. Weights are halved from time to time, so that the recent past counts.

use model::{Charge, PartitionKey};
use std::sync::{Mutex, PoisonError};

/// Keys that are kept.
const KEPT: usize = 16;
/// Charges in hundredths of a request unit after which weights are halved: about a minute of a partition that serves
/// 400 RU/s, since one of eight requests is counted.
const HALVED_AT: u64 = 400 * 60 * 100 / 8;
/// One of this number of requests is counted.
const SAMPLED: u64 = 8;

/// A partition key and its part of the charges.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// The key.
    pub key: PartitionKey,
    /// Its part of the recent charges of the partition, from 0 to 1; possibly too high, never too low by much.
    pub share: f64,
}

/// The keys of one partition with most charges.
#[derive(Debug, Default)]
pub(crate) struct HotKeys {
    weights: Mutex<Weights>,
}

#[derive(Debug, Default)]
struct Weights {
    keys: Vec<(PartitionKey, u64)>,
    total: u64,
}

impl HotKeys {
    /// Whether the request with this number is counted. The numbers are scattered: of a client that uses its keys in
    /// turn, every eighth request could be one of few keys.
    pub(crate) fn is_sampled(request: u64) -> bool {
        let scattered = request.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (scattered ^ (scattered >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32 & (SAMPLED - 1) == 0
    }

    /// Counts a request. If others are counting at this moment, it is left out.
    pub(crate) fn count(&self, key: &PartitionKey, charge: Charge) {
        let Ok(mut weights) = self.weights.try_lock() else { return };
        weights.add(key, charge.hundredths());
    }

    /// The keys with the greatest parts of the charges, greatest first.
    pub(crate) fn greatest(&self, count: usize) -> Vec<HotKey> {
        let weights = self.weights.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys: Vec<_> = weights.keys.iter().collect();
        keys.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let total = weights.total.max(1) as f64;
        let hot = |(key, weight): &(PartitionKey, u64)| HotKey {
            key: key.clone(),
            share: (*weight as f64 / total).min(1.0),
        };
        keys.into_iter().take(count).map(hot).collect()
    }
}

impl Weights {
    fn add(&mut self, key: &PartitionKey, weight: u64) {
        self.total += weight;
        if let Some((_, known)) = self.keys.iter_mut().find(|(known, _)| known == key) {
            *known += weight;
        } else if self.keys.len() < KEPT {
            self.keys.push((key.clone(), weight));
        } else if let Some(lowest) = self.keys.iter_mut().min_by_key(|(_, weight)| *weight) {
            *lowest = (key.clone(), lowest.1 + weight);
        }
        if self.total > HALVED_AT {
            self.total /= 2;
            self.keys.iter_mut().for_each(|(_, weight)| *weight /= 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::KeyComponent;

    fn key(text: &str) -> PartitionKey {
        PartitionKey { components: vec![KeyComponent::String(text.to_owned())] }
    }

    #[test]
    fn a_key_with_many_charges_is_found_among_many_others() {
        let keys = HotKeys::default();
        for number in 0..20_000 {
            let text = if number % 4 == 0 { "hot".to_owned() } else { format!("k{number}") };
            keys.count(&key(&text), Charge::from_hundredths(100));
        }
        let greatest = keys.greatest(3);
        assert_eq!(greatest[0].key, key("hot"));
        assert!((0.2..0.4).contains(&greatest[0].share), "{greatest:?}");
        assert!(greatest[1].share < 0.1, "{greatest:?}");
    }

    #[test]
    fn keys_used_in_turn_are_all_sampled() {
        for count in [2, 3, 4, 8, 12, 16, 24, 64] {
            let mut sampled = vec![0; count];
            (0..count * 800)
                .filter(|it| HotKeys::is_sampled(*it as u64))
                .for_each(|it| sampled[it % count] += 1);
            assert!(sampled.iter().all(|times| (50..160).contains(times)), "{count}: {sampled:?}");
        }
    }

    #[test]
    fn the_recent_past_counts() {
        let keys = HotKeys::default();
        for text in ["old", "new"] {
            (0..20_000).for_each(|_| keys.count(&key(text), Charge::from_hundredths(100)));
        }
        assert_eq!(keys.greatest(1)[0].key, key("new"));
        assert!(keys.greatest(1)[0].share > 0.9);
    }
}
