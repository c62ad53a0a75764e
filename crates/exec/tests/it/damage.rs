//! A damaged index: no query fails because of it.

use crate::harness::{Harness, query};
use bytes::Bytes;
use kv::{Batch, Direction, Durability, KeyRange, ScanLimit, Space};
use partition::index::IndexOptions;
use partition::keyspace::{INDEX, RECORDS};

/// Much of the index is on disk soon, and nothing of it is kept in memory.
const SMALL: IndexOptions = IndexOptions {
    inline_documents_max: 8,
    flush_documents: 24,
    flush_bytes: 1 << 20,
    run_fan_in: 4,
    memory_bytes_max: 1 << 20,
    cache_bytes: 0,
};

const QUERIES: [&str; 6] = [
    "SELECT VALUE c.n FROM c WHERE c.team = 't3'",
    "SELECT VALUE c.n FROM c WHERE c.n >= 20 AND c.n < 40 ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE c.team = 't5'",
    "SELECT c.team, COUNT(1) AS n FROM c GROUP BY c.team",
    "SELECT DISTINCT VALUE c.team FROM c WHERE c.n > 50",
];

async fn rows_of(harness: &Harness, space: Space) -> Vec<(Bytes, Bytes)> {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = harness.store.view().await.unwrap();
    view.scan(space, KeyRange::all(), Direction::Forward, limit).await.unwrap().rows
}

/// Changes a byte in the middle of every row and deletes the last row.
async fn damage(harness: &Harness, space: Space) -> usize {
    let rows = rows_of(harness, space).await;
    let mut batch = Batch::default();
    for (key, row) in &rows {
        let mut damaged = row.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        damaged.pop();
        batch.put(space, key.clone(), damaged);
    }
    harness.store.submit(&harness.store.lane(), batch, Durability::Sync).await.unwrap();
    rows.len()
}

async fn filled(partitions: u32) -> Harness {
    let harness = Harness::with_index(partitions, SMALL).await;
    for number in 0..200 {
        harness.put(&format!(r#"{{"id":"{number}","n":{number},"team":"t{}"}}"#, number % 7)).await;
    }
    // Runs are written concurrently with the writer.
    while rows_of(&harness, INDEX).await.len() < partitions as usize {
        tokio::task::yield_now().await;
    }
    harness
}

#[tokio::test]
async fn a_query_that_meets_damage_is_answered_from_the_records() {
    for text in QUERIES {
        for partitions in [1, 3] {
            let harness = filled(partitions).await;
            let query = query(text);
            let expected = harness.measure(&query).await.unwrap();
            assert_eq!(harness.drain(&query, 10).await.unwrap(), expected, "{text}");
            assert!(damage(&harness, INDEX).await > 0);
            // The current state is the one with the damage.
            harness.put(r#"{"id":"0","n":0,"team":"t0"}"#).await;
            let expected = harness.measure(&query).await.unwrap();
            for items_max in [1000, 7] {
                assert_eq!(harness.drain(&query, items_max).await.unwrap(), expected, "{text}");
            }
        }
    }
}

#[tokio::test]
async fn damaged_records_are_no_data() {
    let harness = filled(1).await;
    damage(&harness, RECORDS).await;
    harness.put(r#"{"id":"0","n":0,"team":"t0"}"#).await;
    // By a scan of all records, bypassing the record cache.
    let distinct = query("SELECT DISTINCT VALUE c FROM c");
    assert!(harness.drain(&distinct, 10).await.is_err());
}
