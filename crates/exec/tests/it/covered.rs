//! Answers from the index alone: compared with the reference, and without reading more documents than needed.

use crate::harness::{Harness, query};

/// Documents that one page reads.
async fn documents_read(harness: &Harness, text: &str) -> u64 {
    harness.page(&query(text), &harness.parts, 100, None).await.unwrap().metrics.documents_read
}

/// Values that an index does not know completely: kinds of numbers, long strings, arrays, objects.
async fn mixed(partitions: u32) -> Harness {
    let harness = Harness::new(partitions).await;
    let values = [
        "1", "1.0", "1", "2.0", "2", "-0.0", "0", "0.0", "2.5", "null", "true", "false", r#""a""#, r#""b""#,
        r#""A""#, r#""1""#, r#""1.0""#,
    ];
    for round in 0..4 {
        for (index, value) in values.iter().enumerate() {
            let kind = ["x", "y", "z"][(index + round) % 3];
            harness
                .put(&format!(r#"{{"id":"{round}-{index}","v":{value},"kind":"{kind}","n":{index}}}"#))
                .await;
        }
        harness.put(&format!(r#"{{"id":"none {round}","kind":"x"}}"#)).await;
    }
    for number in 0..4 {
        let long = format!("{}{}", "m".repeat(300), number % 2);
        harness.put(&format!(r#"{{"id":"long {number}","v":"{long}","kind":"y"}}"#)).await;
        harness.put(&format!(r#"{{"id":"array {number}","v":[{}],"kind":"z"}}"#, number % 2)).await;
    }
    harness
}

const QUERIES: [&str; 40] = [
    "SELECT c.kind, MIN(c.v) AS low, MAX(c.v) AS high FROM c WHERE NOT IS_ARRAY(c.v) GROUP BY c.kind",
    "SELECT c.n, MAX(c.v) AS high FROM c WHERE IS_NUMBER(c.v) GROUP BY c.n",
    "SELECT c.kind, c.v, COUNT(1) AS n FROM c GROUP BY c.kind, c.v",
    "SELECT c.kind, SUM(c.n) AS sum, AVG(c.n) AS average, COUNT(c.v) AS values FROM c GROUP BY c.kind",
    "SELECT c.kind, SUM(c.n) AS sum FROM c WHERE c.n > 2 AND c.v != 1 GROUP BY c.kind",
    "SELECT c.kind, MAX(c.n) AS high, MIN(c.kind) AS low FROM c GROUP BY c.kind",
    "SELECT c.kind, COUNTIF(c.v = 'a') AS a FROM c GROUP BY c.kind",
    "SELECT DISTINCT c.kind, c.v FROM c",
    "SELECT DISTINCT c.v, c.kind FROM c ORDER BY c.kind DESC, c.v",
    "SELECT DISTINCT VALUE c.kind || c.v FROM c WHERE IS_STRING(c.v)",
    "SELECT c.v, COUNT(1) AS n FROM c GROUP BY c.v",
    "SELECT c.v, COUNT(c.v) AS n, SUM(c.v) AS s, AVG(c.v) AS a FROM c GROUP BY c.v",
    "SELECT c.v, MIN(c.v) AS low, MAX(c.v) AS high FROM c GROUP BY c.v",
    "SELECT c.v, COUNT(1) AS n FROM c WHERE c.kind = 'x' GROUP BY c.v",
    "SELECT c.kind, COUNT(c) AS n FROM c WHERE c.n >= 3 GROUP BY c.kind",
    "SELECT LOWER(c.v) AS low, COUNT(1) AS n FROM c GROUP BY LOWER(c.v)",
    "SELECT StringToNumber(c.v) AS number, COUNT(1) AS n FROM c GROUP BY StringToNumber(c.v)",
    "SELECT c.v[0] AS first, COUNT(1) AS n FROM c GROUP BY c.v[0]",
    "SELECT IS_NUMBER(c.v) AS is, COUNTIF(c.v = 1) AS ones FROM c GROUP BY IS_NUMBER(c.v)",
    "SELECT DISTINCT VALUE c.v FROM c",
    "SELECT DISTINCT c.v FROM c",
    "SELECT DISTINCT c.v, 1 AS one, c.v AS again FROM c WHERE c.kind != 'x'",
    "SELECT DISTINCT VALUE c.v + 0 FROM c",
    "SELECT DISTINCT VALUE StringToNumber(c.v) FROM c",
    "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v",
    "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v DESC",
    "SELECT DISTINCT VALUE UPPER(c.v) FROM c ORDER BY c.v DESC",
    "SELECT DISTINCT c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE MIN(c.v) FROM c",
    "SELECT VALUE MAX(c.v) FROM c",
    "SELECT VALUE MIN(c.v) FROM c WHERE IS_NUMBER(c.v)",
    "SELECT VALUE MAX(c.v) FROM c WHERE IS_NUMBER(c.v)",
    "SELECT VALUE MAX(c.v) FROM c WHERE IS_NUMBER(c.v) AND c.v <= 2",
    "SELECT VALUE MAX(c.v) FROM c WHERE NOT IS_ARRAY(c.v)",
    "SELECT VALUE SUM(c.v) FROM c WHERE IS_NUMBER(c.v)",
    "SELECT VALUE AVG(c.v) FROM c WHERE IS_NUMBER(c.v) AND c.kind = 'y'",
    "SELECT VALUE SUM(c.v) FROM c",
    "SELECT COUNT(1) AS all, COUNT(c.v) AS there, COUNTIF(c.kind = 'x') AS x, MIN(c.n) AS low, MAX(c.n) AS high FROM c",
    "SELECT COUNT(1) AS all, SUM(c.n) AS sum, MAX(c._ts) AS last FROM c WHERE c.kind = 'y'",
    "SELECT DISTINCT COUNT(1) AS n FROM c GROUP BY c.kind",
];

#[tokio::test]
async fn what_the_index_says_is_what_the_documents_say() {
    for partitions in [1, 3] {
        let harness = mixed(partitions).await;
        for text in QUERIES {
            harness.check(text).await;
        }
        for id in ["0-0", "1-0", "0-3", "2-5", "3-16", "none 2", "long 1", "array 0"] {
            harness.delete(id).await;
        }
        harness.put(r#"{"id":"0-1","v":7,"kind":"w"}"#).await;
        harness.put(r#"{"id":"0-2","v":1.0,"kind":"x","ttl":5}"#).await;
        harness.put(r#"{"id":"3-1","v":"soon gone","kind":"v","ttl":5}"#).await;
        for seconds in [1, 10] {
            harness.clock.advance_seconds(seconds);
            for text in QUERIES {
                harness.check(text).await;
            }
        }
    }
}

#[tokio::test]
async fn no_more_documents_are_read_than_the_index_leaves_open() {
    let harness = Harness::new(2).await;
    for number in 0..60 {
        let kind = number % 3;
        harness.put(&format!(r#"{{"id":"{number}","kind":"k{kind}","n":{number},"r":{kind}}}"#)).await;
    }
    for text in [
        "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
        "SELECT c.kind, COUNT(1) AS n FROM c WHERE c.r < 2 GROUP BY c.kind",
        "SELECT DISTINCT VALUE c.kind FROM c",
        "SELECT DISTINCT c.kind FROM c ORDER BY c.kind",
        "SELECT COUNT(1) AS all, COUNT(c.n) AS n, COUNTIF(c.n > 7) AS more, SUM(c.n) AS sum FROM c",
        "SELECT VALUE MAX(c.kind) FROM c",
        "SELECT c.kind, SUM(c.r) AS sum, COUNT(1) AS n FROM c GROUP BY c.kind",
        "SELECT c.kind, COUNT(c.r) AS n FROM c WHERE c.n < 50 GROUP BY c.kind",
    ] {
        assert_eq!(documents_read(&harness, text).await, 0, "{text}");
        harness.check(text).await;
    }
    // One document for each number that is shown, in each partition.
    for (text, most) in [
        ("SELECT c.r, COUNT(1) AS n FROM c GROUP BY c.r", 6),
        ("SELECT VALUE MIN(c.n) FROM c", 2),
        ("SELECT c.kind, MIN(c.r) AS low, MAX(c.r) AS high FROM c GROUP BY c.kind", 6),
        ("SELECT VALUE MAX(c._ts) FROM c", 2),
    ] {
        let read = documents_read(&harness, text).await;
        assert!((1..=most).contains(&read), "{text}: {read}");
        harness.check(text).await;
    }
}

#[tokio::test]
async fn expired_documents_do_not_count_before_they_are_swept() {
    let harness = Harness::new(2).await;
    for number in 0..40 {
        let ttl = if number < 10 { r#","ttl":5"# } else { "" };
        harness.put(&format!(r#"{{"id":"{number}","kind":"k{}","n":{number}{ttl}}}"#, number % 4)).await;
    }
    let texts = [
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'k1'",
        "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
        "SELECT VALUE SUM(c.n) FROM c",
        "SELECT VALUE MIN(c.n) FROM c",
    ];
    for (seconds, count) in [(0, "40"), (4, "40"), (1, "30")] {
        harness.clock.advance_seconds(seconds);
        assert_eq!(harness.drain(&query(texts[0]), 1).await.unwrap(), [count]);
        for text in texts {
            harness.check(text).await;
            assert!(documents_read(&harness, text).await <= 2, "{text}");
        }
    }
}

#[tokio::test]
async fn large_sums_are_those_of_the_kinds_that_are_stored() {
    let large = 1_i64 << 53;
    for (first, second) in
        [(format!("{large}"), "1"), (format!("{large}"), "1.0"), (format!("{large}.0"), "1")]
    {
        let harness = Harness::new(2).await;
        harness.put(&format!(r#"{{"id":"1","v":{first}}}"#)).await;
        harness.put(&format!(r#"{{"id":"2","v":{second}}}"#)).await;
        harness.check("SELECT VALUE SUM(c.v) FROM c").await;
        harness.check("SELECT SUM(c.v) AS sum, AVG(c.v) AS average, MAX(c.v) AS high FROM c").await;
    }
}
