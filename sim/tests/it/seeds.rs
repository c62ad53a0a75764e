//! Five hundred seeds, and the promise that a seed is one run.

use sim::scenario::{Length, draw};
use sim::shrink::shrink;
use sim::simulation::run;

const SEEDS: u64 = 500;
const THREADS: u64 = 2;

#[test]
fn no_seed_ends_in_a_violation() {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for seed in (thread..SEEDS).step_by(usize::try_from(THREADS).unwrap()) {
                    check(seed);
                }
            });
        }
    });
}

fn check(seed: u64) {
    let scenario = draw(seed, Length::Short);
    if let Err(violation) = run(&scenario) {
        let (_, violation) = shrink(&scenario, violation);
        panic!("seed {seed}\n{}\n{}", violation.trace.join("\n"), violation.complaint);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..12 {
        let scenario = draw(seed, Length::Short);
        let first = run(&scenario).unwrap();
        assert_eq!(run(&draw(seed, Length::Short)).unwrap(), first, "seed {seed}");
    }
    let hash = |seed| run(&draw(seed, Length::Short)).unwrap().trace_hash;
    assert_ne!(hash(1), hash(2));
}
