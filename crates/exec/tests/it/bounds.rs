//! Limits of a query: memory, rows, time and size of a page, below and above each limit.

use crate::harness::{Harness, query};
use eval::QueryMemory;
use exec::QueryBounds;
use model::{Fault, LimitFault, QueryFault};
use std::sync::Arc;

/// A count that no index can answer alone.
const COUNT: &str = "SELECT VALUE COUNT(c.n + LENGTH(c.id)) FROM c";

async fn filled() -> Harness {
    let harness = Harness::new(2).await;
    for number in 0..50 {
        harness.put(&format!(r#"{{"id":"{number}","n":{number},"text":"{}"}}"#, "x".repeat(500))).await;
    }
    harness
}

#[tokio::test]
async fn memory_is_bounded_and_bounded_shapes_need_little() {
    let mut harness = filled().await;
    harness.bounds.memory_bytes = 12_000;
    for text in [
        "SELECT * FROM c ORDER BY c.n",
        "SELECT DISTINCT VALUE c.text || c.id FROM c",
        "SELECT c.text, c.id FROM c GROUP BY c.text, c.id",
    ] {
        // Three rows fit at a time, all together do not.
        assert_eq!(harness.drain(&query(text), 3).await.unwrap().len(), 50, "{text}");
        let fault = harness.drain(&query(text), 50).await.unwrap_err();
        assert!(
            matches!(fault, Fault::Query(QueryFault::MemoryExceeded { bytes_max: 12_000 })),
            "{text}: {fault}"
        );
    }
    let all = query("SELECT DISTINCT VALUE c.text || c.id FROM c ORDER BY c.n");
    assert!(matches!(
        harness.drain(&all, 1).await.unwrap_err(),
        Fault::Query(QueryFault::MemoryExceeded { .. })
    ));
}

#[tokio::test]
async fn queries_together_stay_within_their_memory() {
    let mut harness = filled().await;
    let text = "SELECT VALUE REPLICATE(c.text, 15) FROM c";
    assert_eq!(harness.drain(&query(text), 50).await.unwrap().len(), 50);
    harness.memory = Arc::new(QueryMemory::new(100_000));
    let fault = harness.drain(&query(text), 50).await.unwrap_err();
    assert!(matches!(fault, Fault::Limit(LimitFault::Overloaded { .. })), "{fault}");
    assert_eq!(harness.memory.bytes_drawn(), 0);
}

#[tokio::test]
async fn rows_are_bounded() {
    let mut harness = filled().await;
    let count = query(COUNT);
    harness.bounds.rows = 50;
    assert_eq!(harness.drain(&count, 1).await.unwrap(), ["50"]);
    harness.bounds.rows = 49;
    let fault = harness.drain(&count, 1).await.unwrap_err();
    assert!(matches!(fault, Fault::Query(QueryFault::RowsExceeded { rows_max: 49 })));
}

#[tokio::test]
async fn time_is_bounded_where_a_page_cannot_end_earlier() {
    let mut harness = filled().await;
    harness.bounds = QueryBounds { time_ms: 0, ..QueryBounds::default() };
    let fault = harness.drain(&query(COUNT), 1).await.unwrap_err();
    assert!(matches!(fault, Fault::Query(QueryFault::TimeExceeded { milliseconds_max: 0 })));
}

#[tokio::test]
async fn a_late_page_is_given_as_far_as_it_is() {
    let mut harness = filled().await;
    harness.bounds = QueryBounds { patience_ms: 0, ..QueryBounds::default() };
    let page = harness.page(&query("SELECT * FROM c"), &harness.parts, 10, None).await.unwrap();
    assert!(page.rows.is_empty() && page.resume.is_some());
}

#[tokio::test]
async fn a_page_ends_when_it_is_large() {
    let harness = Harness::new(1).await;
    for number in 0..8 {
        harness.put(&format!(r#"{{"id":"{number}","text":"{}"}}"#, "x".repeat(300_000))).await;
    }
    for text in ["SELECT * FROM c", "SELECT VALUE c.text FROM c ORDER BY c.id"] {
        let query = query(text);
        let page = harness.page(&query, &harness.parts, 100, None).await.unwrap();
        assert_eq!(page.rows.len(), 4, "{text}");
        assert_eq!(harness.drain(&query, 100).await.unwrap().len(), 8);
    }
}

#[tokio::test]
async fn reading_ends_when_the_page_is_full() {
    let harness = filled().await;
    let page = harness.page(&query("SELECT TOP 3 * FROM c"), &harness.parts, 100, None).await.unwrap();
    assert!(page.resume.is_none() && page.seen.len() == 1);
    assert!(page.metrics.documents_read < 20, "{:?}", page.metrics);
    let page = harness.page(&query(COUNT), &harness.parts, 1, None).await.unwrap();
    assert_eq!((page.metrics.documents_read, page.metrics.rows, page.seen.len()), (50, 1, 2));
}
