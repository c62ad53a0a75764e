//! A product whose splits are wrong: the checkers find it within a few seeds. Without the fault the same seeds pass.

use crate::HOOKS;
use partition::planted::{PlantedFault, plant};
use sim::scenario::{Length, draw};
use sim::simulation::{Planted, run_planted};

/// Seeds until which a fault must be found.
const SEEDS: u64 = 300;

#[track_caller]
fn found_by_a_seed(fault: PlantedFault, words: &[&str]) {
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

#[test]
fn a_forgotten_mask_is_found() {
    found_by_a_seed(PlantedFault::SiblingIsNotMasked, &["audit of the index"]);
}

#[test]
fn a_forgotten_log_entry_is_found() {
    found_by_a_seed(
        PlantedFault::AncestorsAreForgotten,
        &["audit of the index", "is not in the log", "a reader has", "change feed of"],
    );
}
