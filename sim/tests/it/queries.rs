//! Twenty thousand pairs of random queries and documents, checked by rules that share nothing with the product.

const PAIRS: u64 = 20_000;
const THREADS: u64 = 4;

/// Partitions whose drafts are compared with their commits.
const DRAFTS: u64 = 200;

#[test]
fn a_draft_shows_what_its_writes_leave_when_they_are_committed() {
    let mut pairs = 0;
    for seed in 0..DRAFTS {
        match sim::queries::drafts(seed) {
            Ok(tally) => pairs += tally.pairs,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(pairs >= DRAFTS * 30, "only {pairs} pairs");
}

#[test]
fn no_query_gives_other_rows_than_the_rules() {
    let seeds = PAIRS / 50;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for seed in (thread..seeds).step_by(usize::try_from(THREADS).unwrap()) {
                    if let Err(failure) = sim::queries::compare(seed) {
                        panic!("{failure}");
                    }
                }
            });
        }
    });
}
