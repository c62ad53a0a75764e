//! Runs seeds on a product with a planted fault, until a checker finds it.

use crate::HOOKS;
use partition::planted::{PlantedFault, plant};
use sim::scenario::{Length, draw};
use sim::simulation::{Planted, run_planted};

/// Seeds until which a fault must be found.
const SEEDS: u64 = 300;

/// Checks that a seed finds the fault with one of the texts `words`, and that the same seed passes without it.
#[track_caller]
pub(crate) fn found_by_a_seed(fault: PlantedFault, words: &[&str]) {
    let planted = Planted { hooks: Some(HOOKS), ..Planted::default() };
    for seed in 0..SEEDS {
        let scenario = draw(seed, Length::Short);
        let guard = plant(fault);
        let result = run_planted(&scenario, planted);
        drop(guard);
        if let Err(violation) = result {
            let is_named = words.iter().any(|words| violation.failure.contains(words));
            assert!(is_named, "seed {seed}: {}", violation.failure);
            run_planted(&scenario, planted).expect("without the fault the seed passes");
            return;
        }
    }
    panic!("{fault:?} was not found");
}
