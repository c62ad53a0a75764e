//! Seeds of background work, and planted faults that these seeds must find.

use crate::HOOKS;
use partition::planted::{PlantedFault, panic_in_job, plant};
use sim::course::draw;
use sim::housekeeping::play;

const SEEDS: u64 = 80;

#[test]
fn no_seed_of_housekeeping_ends_in_a_complaint() {
    for seed in 0..SEEDS {
        play(&draw(seed), Some(HOOKS)).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// One of the seeds finds the fault, with `words` in its message.
#[track_caller]
fn found_by_a_seed(fault: PlantedFault, words: &str) {
    let _planted = plant(fault);
    let complaints = (0..SEEDS).filter_map(|seed| play(&draw(seed), Some(HOOKS)).err());
    let mut others = Vec::new();
    for failure in complaints {
        if failure.contains(words) {
            return;
        }
        others.push(failure);
    }
    panic!("no seed finds {fault:?} in these words, but {others:?}");
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

/// A record that cannot be read ended the sweep of its container, and of all containers after it.
#[test]
fn a_damaged_record_that_ends_the_sweep() {
    found_by_a_seed(PlantedFault::PoisonEndsSweep, "was not swept");
}

/// A writer that panicked stayed stopped until the next start.
#[test]
fn a_writer_that_is_not_opened_again() {
    found_by_a_seed(PlantedFault::PanickedStaysStopped, "the partition has stopped");
}

/// A writer whose opening had begun before its container was dropped wrote rows after they were deleted.
#[test]
fn a_container_that_is_dropped_while_it_is_opened() {
    found_by_a_seed(PlantedFault::OpeningIsMissed, "rows of the dropped container");
}

/// A job that panicked ended all jobs, and the engine could not be closed any more.
#[test]
fn a_job_that_panics_stops_no_other() {
    let jobs = [
        "reschedule expiry",
        "sweep expired documents",
        "drop a container",
        "trim logs",
        "close idle partitions",
    ];
    for (seed, job) in (0..).zip(jobs) {
        panic_in_job(job);
        play(&draw(seed), Some(HOOKS)).unwrap_or_else(|failure| panic!("{job}: {failure}"));
    }
}
