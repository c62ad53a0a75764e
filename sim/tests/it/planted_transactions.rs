//! A product that commits transactions which others have overtaken: the checkers find it within a few seeds. Without the
//! fault the same seeds pass.

use crate::HOOKS;
use partition::planted::{PlantedFault, plant};
use sim::scenario::{Length, draw};
use sim::simulation::{Planted, run_planted};

/// Seeds until which a fault must be found.
const SEEDS: u64 = 300;

#[track_caller]
fn found_by_a_seed(fault: PlantedFault) {
    let planted = Planted { hooks: Some(HOOKS), ..Planted::default() };
    for seed in 0..SEEDS {
        let scenario = draw(seed, Length::Short);
        let guard = plant(fault);
        let result = run_planted(&scenario, planted);
        drop(guard);
        if let Err(violation) = result {
            let words = ["no order explains", "the records are not what the answers say"];
            let is_named = words.iter().any(|words| violation.failure.contains(words));
            assert!(is_named, "seed {seed}: {}", violation.failure);
            run_planted(&scenario, planted).expect("without the fault the seed passes");
            return;
        }
    }
    panic!("{fault:?} was not found");
}

#[test]
fn a_transaction_that_is_not_validated_is_found() {
    found_by_a_seed(PlantedFault::DraftsAreNotValidated);
}

#[test]
fn a_forgotten_floor_is_found() {
    found_by_a_seed(PlantedFault::FloorIsForgotten);
}
