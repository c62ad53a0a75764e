//! Planted faults of the change feed that the readers of the simulation must find.

use crate::HOOKS;
use partition::planted::{PlantedFault, plant};
use sim::scenario::{Length, draw};
use sim::simulation::{Planted, run_planted};

const SEEDS: u64 = 60;

/// One of the seeds finds the fault, with each of `words` in a message.
#[track_caller]
fn found_by_seeds(fault: PlantedFault, words: &[&str]) {
    let _planted = plant(fault);
    let planted = Planted { hooks: Some(HOOKS), ..Planted::default() };
    let mut missing = words.to_vec();
    let mut others = Vec::new();
    for seed in 0..SEEDS {
        if let Err(violation) = run_planted(&draw(seed, Length::Short), planted) {
            missing.retain(|words| !violation.failure.contains(words));
            if missing.is_empty() {
                return;
            }
            others.push(violation.failure);
        }
    }
    panic!("no seed finds {fault:?} with the words {missing:?}, but {others:?}");
}

#[test]
fn a_change_that_readers_miss() {
    found_by_seeds(PlantedFault::ChangesAreMissed, &["LatestVersion change feed", "a reader has"]);
}

#[test]
fn a_change_that_readers_get_twice() {
    found_by_seeds(PlantedFault::ChangesAreRepeated, &["twice"]);
}
