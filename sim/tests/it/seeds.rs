//! Five hundred seeds, and a check that a seed always gives the same run.

use crate::HOOKS;
use sim::scenario::{Length, Scenario, draw};
use sim::shrink::shrink;
use sim::simulation::{Planted, Summary, run_planted};

const SEEDS: u64 = 500;
const THREADS: u64 = 2;

#[test]
fn no_seed_ends_in_a_violation() {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for seed in (thread..SEEDS).step_by(usize::try_from(THREADS).unwrap()) {
                    check(seed, Length::Short);
                }
            });
        }
    });
}

/// Long runs that once ended in a violation.
#[test]
fn no_long_seed_fails_again() {
    // Rows of a split partition returned, because the store lost their deletion before the map said that none remain.
    check(3141, Length::Long);
}

fn check(seed: u64, length: Length) {
    let scenario = draw(seed, length);
    let planted = Planted { hooks: Some(HOOKS), ..Planted::default() };
    if let Err(violation) = run_planted(&scenario, planted) {
        let (_, violation) = shrink(&scenario, planted, violation);
        panic!("seed {seed}\n{}\n{}", violation.trace.join("\n"), violation.failure);
    }
}

fn play(scenario: &Scenario) -> Summary {
    run_planted(scenario, Planted { hooks: Some(HOOKS), ..Planted::default() }).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..12 {
        let scenario = draw(seed, Length::Short);
        let first = play(&scenario);
        assert_eq!(play(&draw(seed, Length::Short)), first, "seed {seed}");
    }
    let hash = |seed| play(&draw(seed, Length::Short)).trace_hash;
    assert_ne!(hash(1), hash(2));
}
