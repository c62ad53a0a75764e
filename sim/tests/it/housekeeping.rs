//! Seeds of the engine's own work, and the faults that these seeds find when they are put in again.

use partition::planted::{PlantedFault, plant};
use sim::housekeeping::{draw, play};

const SEEDS: u64 = 80;

#[test]
fn no_seed_of_housekeeping_ends_in_a_complaint() {
    for seed in 0..SEEDS {
        play(&draw(seed)).unwrap_or_else(|complaint| panic!("{complaint}"));
    }
}

/// One of the seeds notices the fault, with `words` in its complaint.
#[track_caller]
fn found_by_a_seed(fault: PlantedFault, words: &str) {
    let _planted = plant(fault);
    let complaints: Vec<String> = (0..SEEDS).filter_map(|seed| play(&draw(seed)).err()).take(1).collect();
    let [complaint] = &complaints[..] else { panic!("no seed finds {fault:?}") };
    assert!(complaint.contains(words), "{complaint}");
}

#[test]
fn an_old_definition_that_returns() {
    found_by_a_seed(PlantedFault::OldDefinitionReturns, "is gone before its time");
}

#[test]
fn runs_of_builds_that_were_given_up() {
    found_by_a_seed(PlantedFault::UnnamedRunsStay, "no manifest names the runs");
}

#[test]
fn entries_of_replaced_versions_that_stay() {
    found_by_a_seed(PlantedFault::ReplacedEntriesStay, "contradicts the last versions");
}
