//! The memory that a query accounts for, compared with what the allocator has given to its thread.
//!
//! The queries read the clock for every row, and the clock of the tests takes a sample each time.

use crate::harness::{Harness, query};
use model::{Fault, QueryFault};
use std::cell::Cell;
use tikv_jemalloc_ctl::thread;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Bytes that a query may hold here. Collections grow in large steps, and a step beyond the limit is seen by no sample;
/// with one of these limits the last step is below it.
const BYTES_MAX: [usize; 3] = [12 << 20, 16 << 20, 21 << 20];
/// Allowed deviation of the accounted from the actual memory, in percent of the actual memory.
const PERCENT_MAX: u64 = 20;
/// The rows of a subquery are one allocation. To grow, it needs its old and its doubled room at the same time, and is
/// refused before it has them: the memory that was taken is then as little as a third of the limit.
const PERCENT_OF_ROWS_MAX: u64 = 200 + PERCENT_MAX;

thread_local! {
    static PEAK: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed.
fn held_bytes() -> u64 {
    let (taken, given) = (thread::allocatedp::read().unwrap(), thread::deallocatedp::read().unwrap());
    taken.get().wrapping_sub(given.get())
}

/// Records the maximum that was held.
pub(crate) fn sample() {
    PEAK.set(PEAK.get().max(held_bytes()));
}

#[tokio::test]
async fn what_a_query_counts_is_what_it_takes() {
    let elements: Vec<String> = (0..3000).map(|number| (number * 7).to_string()).collect();
    let texts: Vec<String> = (0..3000).map(|number| format!("\"element number {number}\"")).collect();
    let document = format!(r#"{{"id":"one","x":[{}],"t":[{}]}}"#, elements.join(","), texts.join(","));
    let mut harness = Harness::of(1, &[&document]).await;
    harness.bytes_max = usize::MAX;
    let mut wrong = Vec::new();
    for text in [
        "SELECT VALUE ARRAY(SELECT VALUE a + b FROM a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0) FROM c",
        "SELECT VALUE ARRAY(SELECT a, b FROM a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0) FROM c",
        "SELECT VALUE ARRAY(SELECT VALUE [a, b] FROM a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0) FROM c",
        "SELECT VALUE ARRAY(SELECT VALUE a || \"!\" FROM a IN c.t JOIN b IN c.x WHERE GetCurrentTimestamp() > 0) FROM c",
        "SELECT VALUE ARRAY(SELECT DISTINCT VALUE [a, b] FROM a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0) FROM c",
        "SELECT a, b, COUNT(1) AS n FROM c JOIN a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0 GROUP BY a, b",
        "SELECT a, SUM(b) AS s FROM c JOIN a IN c.t JOIN b IN c.x WHERE GetCurrentTimestamp() > 0 GROUP BY a || ToString(b), a",
        "SELECT DISTINCT a, b FROM c JOIN a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0",
        "SELECT VALUE a FROM c JOIN a IN c.t JOIN b IN c.x WHERE GetCurrentTimestamp() > 0 ORDER BY c.id",
        "SELECT VALUE COUNT(1) FROM (SELECT a, b FROM c JOIN a IN c.x JOIN b IN c.x WHERE GetCurrentTimestamp() > 0)",
    ] {
        let mut counted = Vec::new();
        for bytes_max in BYTES_MAX {
            harness.bounds.memory_bytes = bytes_max;
            let before = held_bytes();
            PEAK.set(before);
            let fault = harness.page(&query(text), &harness.parts, usize::MAX, None).await.err();
            let taken = PEAK.get() - before;
            assert!(
                matches!(fault, Some(Fault::Query(QueryFault::MemoryExceeded { .. }))),
                "{text}: {fault:?}, {taken} bytes"
            );
            counted.push(bytes_max as u64 * 100 / taken);
        }
        let least = counted.iter().min().copied().unwrap_or(0);
        let above_max = if text.contains("ARRAY(") { PERCENT_OF_ROWS_MAX } else { PERCENT_MAX };
        if least < 100 - PERCENT_MAX || least > 100 + above_max {
            wrong.push(format!("{counted:?} % counted: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
