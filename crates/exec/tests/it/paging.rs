//! Pages while documents change: unchanged rows are returned once, whatever happens to the others.

use crate::harness::{Harness, query, row_text};
use exec::{QueryRow, Resume};

async fn filled(partitions: u32, count: u32) -> Harness {
    let harness = Harness::new(partitions).await;
    for number in 0..count {
        let json = format!(r#"{{"id":"{number}","n":{},"g":"{}","live":true}}"#, number % 17, number % 5);
        harness.put(&json).await;
    }
    harness
}

fn id_of(row: &QueryRow) -> String {
    match row {
        QueryRow::Document(stored) => {
            stored.document.root().member("id").unwrap().as_str().unwrap().to_owned()
        }
        QueryRow::Value(value) => value.as_ref().as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn what_does_not_change_comes_once_while_others_change() {
    for text in [
        "SELECT * FROM c",
        "SELECT VALUE c.id FROM c WHERE c.live",
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.g, c.n DESC",
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c GROUP BY c.id",
    ] {
        for partitions in [1, 4] {
            let harness = filled(partitions, 60).await;
            let query = query(text);
            let mut seen = Vec::new();
            let mut resume = None;
            let mut step = 0;
            loop {
                let page = harness.page(&query, &harness.parts, 4, resume).await.unwrap();
                seen.extend(page.rows.iter().map(id_of));
                let Some(next) = page.resume else {
                    break;
                };
                resume = Some(Resume::decode(&next.encode()).unwrap());
                // Every third document is deleted or moved in every order, including the last one returned.
                let victim = (step * 3) % 60;
                step += 1;
                if step % 2 == 0 {
                    harness.delete(&victim.to_string()).await;
                } else {
                    harness.put(&format!(r#"{{"id":"{victim}","n":{step},"g":"moved","live":false}}"#)).await;
                }
            }
            let changed: Vec<String> = (0..step).map(|step| ((step * 3) % 60).to_string()).collect();
            for id in (0..60).map(|id| id.to_string()).filter(|id| !changed.contains(id)) {
                let times = seen.iter().filter(|seen| **seen == id).count();
                assert_eq!(times, 1, "{text}: {id} over {partitions} partitions");
            }
        }
    }
}

#[tokio::test]
async fn sort_keys_longer_than_a_continuation_go_on_exactly() {
    for (partitions, descending) in [(1, false), (3, false), (3, true)] {
        let harness = Harness::new(partitions).await;
        let long = "x".repeat(3000);
        for number in 0..30 {
            harness.put(&format!(r#"{{"id":"{number}","s":"{long}{:02}"}}"#, number * 7 % 30)).await;
        }
        let order = if descending { " DESC" } else { "" };
        for text in ["SELECT * FROM c ORDER BY c.s", "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.s"] {
            let query = query(&format!("{text}{order}"));
            let expected = harness.measure(&query).await.unwrap();
            for items_max in [1, 4, 100] {
                assert_eq!(harness.drain(&query, items_max).await.unwrap(), expected);
            }
        }
        // The last three rows of a page change: the query continues after the fourth last, which is unchanged.
        let query = query(&format!("SELECT VALUE c.id FROM c ORDER BY c.s{order}"));
        let expected = harness.measure(&query).await.unwrap();
        let page = harness.page(&query, &harness.parts, 10, None).await.unwrap();
        assert_eq!(page.rows.iter().map(row_text).collect::<Vec<_>>(), expected[..10]);
        let ids: Vec<String> = page.rows.iter().map(id_of).collect();
        harness.delete(&ids[9]).await;
        harness.put(&format!(r#"{{"id":"{}","s":"other"}}"#, ids[8])).await;
        harness.delete(&ids[7]).await;
        let rest = harness.page(&query, &harness.parts, 100, page.resume).await.unwrap();
        let mut rest: Vec<String> = rest.rows.iter().map(row_text).collect();
        rest.retain(|row| *row != format!("\"{}\"", ids[8]));
        assert_eq!(rest, expected[10..]);
    }
}

#[tokio::test]
async fn when_all_that_was_named_has_changed_nothing_is_lost() {
    let harness = Harness::new(2).await;
    let long = "x".repeat(3000);
    for number in 0..30 {
        harness.put(&format!(r#"{{"id":"{number}","s":"{long}{number:02}"}}"#)).await;
    }
    let query = query("SELECT VALUE c.id FROM c ORDER BY c.s");
    let page = harness.page(&query, &harness.parts, 12, None).await.unwrap();
    for row in &page.rows {
        harness.delete(&id_of(row)).await;
    }
    let rest = harness.page(&query, &harness.parts, 100, page.resume).await.unwrap();
    let expected: Vec<String> = (12..30).map(|number| number.to_string()).collect();
    assert_eq!(rest.rows.iter().map(id_of).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn expired_documents_are_absent_at_once() {
    let harness = Harness::of(3, &[r#"{"id":"1"}"#, r#"{"id":"2","ttl":10}"#, r#"{"id":"3"}"#]).await;
    let count = query("SELECT VALUE COUNT(1) FROM c");
    let all = query("SELECT VALUE c.id FROM c");
    assert_eq!(harness.drain(&count, 1).await.unwrap(), ["3"]);
    harness.clock.advance_seconds(10);
    assert_eq!(harness.drain(&count, 1).await.unwrap(), ["2"]);
    assert_eq!(harness.drain(&all, 1).await.unwrap().len(), 2);
}

/// The time of a partition does not go back by a little. Queries used the clock instead, and showed expired documents
/// again that reads did not find.
#[tokio::test]
async fn expired_documents_do_not_return_when_the_clock_is_set_back() {
    let harness = Harness::of(3, &[r#"{"id":"1"}"#, r#"{"id":"2","ttl":10}"#]).await;
    harness.clock.advance_seconds(10);
    let queries = ["SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.id"].map(query);
    for seconds in [0, 5] {
        harness.clock.set_back_seconds(seconds);
        for query in &queries {
            assert_eq!(harness.drain(query, 1).await.unwrap(), [r#""1""#]);
        }
        let counted = harness.drain(&query("SELECT VALUE COUNT(1) FROM c"), 1).await.unwrap();
        assert_eq!(counted, ["1"]);
    }
}

#[tokio::test]
async fn fixed_time_is_the_same_on_all_pages() {
    let harness = filled(2, 6).await;
    let query = query("SELECT VALUE GetCurrentTimestampStatic() FROM c");
    let mut times = Vec::new();
    let mut resume = None;
    loop {
        let page = harness.page(&query, &harness.parts, 2, resume).await.unwrap();
        times.extend(page.rows.iter().map(row_text));
        harness.clock.advance_seconds(1);
        match page.resume {
            Some(next) => resume = Some(next),
            None => break,
        }
    }
    times.dedup();
    assert_eq!(times.len(), 1);
}

#[tokio::test]
async fn large_offsets_are_passed_over() {
    let harness = Harness::new(2).await;
    for number in 0..2500 {
        harness.put(&format!(r#"{{"id":"{number}","n":{number}}}"#)).await;
    }
    for text in [
        "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2100 LIMIT 5",
        "SELECT VALUE c.n FROM c OFFSET 2100 LIMIT 5",
        "SELECT DISTINCT VALUE c.n FROM c OFFSET 2100 LIMIT 5",
        "SELECT VALUE c.n FROM c GROUP BY c.n OFFSET 2100 LIMIT 5",
    ] {
        let query = query(text);
        assert_eq!(Ok(harness.drain(&query, 3).await.unwrap()), harness.measure(&query).await, "{text}");
    }
    // A selective filter is answered by a scan, with the same rows in the same order.
    let few = query("SELECT VALUE c.n FROM c WHERE c.n % 500 = 1");
    assert_eq!(Ok(harness.drain(&few, 2).await.unwrap()), harness.measure(&few).await);
}
