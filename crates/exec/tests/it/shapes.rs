//! Every shape of a query, over one and several partitions, in pages of all sizes.

use crate::harness::{Harness, query};

const DOCUMENTS: [&str; 14] = [
    r#"{"id":"1","n":3,"g":"a","tags":["x","y"],"o":{"p":1}}"#,
    r#"{"id":"2","n":1,"g":"b","tags":["x"],"o":{"p":2}}"#,
    r#"{"id":"3","n":2,"g":"a","tags":[],"o":{"p":1.0}}"#,
    r#"{"id":"4","n":3,"g":null,"tags":["z","x","x"]}"#,
    r#"{"id":"5","g":"b","tags":"none"}"#,
    r#"{"id":"6","n":"3","g":"a","o":7}"#,
    r#"{"id":"7","n":null,"g":1}"#,
    r#"{"id":"8","n":true,"g":1.0,"tags":[1,[2]]}"#,
    r#"{"id":"9","n":-1.5,"g":"a"}"#,
    r#"{"id":"10","n":3,"g":"b","tags":["y"]}"#,
    r#"{"id":"11","n":[1],"g":{"k":1}}"#,
    r#"{"id":"12","n":{"a":1},"g":{"k":1}}"#,
    r#"{"id":"13","n":0,"tags":["x","w"]}"#,
    r#"{"id":"14","n":3,"g":"a","tags":["y","y"]}"#,
];

const QUERIES: [&str; 52] = [
    "SELECT * FROM c",
    "SELECT VALUE c FROM c",
    "SELECT c FROM c",
    "SELECT * FROM c WHERE c.n = 3",
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.n FROM c",
    "SELECT c.id, c.missing, c._ts, c._rid FROM c",
    "SELECT VALUE c.id FROM c WHERE c._ts > 0 AND c.n > 0",
    "SELECT VALUE c.id FROM c WHERE c._self != null",
    "SELECT VALUE c._etag FROM c WHERE c.g = 'a'",
    "SELECT VALUE c['_ts'] FROM c",
    "SELECT VALUE x FROM c.o x",
    "SELECT VALUE x FROM c._rid x",
    "SELECT VALUE t FROM t IN c.tags",
    "SELECT c.id, t FROM c JOIN t IN c.tags",
    "SELECT c.id, t, u FROM c JOIN t IN c.tags JOIN u IN c.tags WHERE t != u",
    "SELECT VALUE [c._ts, t] FROM c JOIN t IN c.tags WHERE t = 'x'",
    "SELECT VALUE t FROM c JOIN (SELECT DISTINCT VALUE x FROM x IN c.tags) AS t",
    "SELECT TOP 3 * FROM c",
    "SELECT TOP 0 * FROM c",
    "SELECT TOP 5 VALUE c.n FROM c",
    "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 5",
    "SELECT VALUE c.id FROM c OFFSET 20 LIMIT 5",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT * FROM c ORDER BY c.g",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.g, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.g DESC, c.n",
    "SELECT VALUE c.id FROM c ORDER BY c._ts DESC",
    "SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.n DESC",
    "SELECT TOP 4 VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 3 LIMIT 4",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT DISTINCT c.g FROM c",
    "SELECT DISTINCT c.g, c.n FROM c WHERE c.n > 0 OFFSET 1 LIMIT 2",
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.n",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 2",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(c) FROM c WHERE c.g = 'a'",
    "SELECT COUNT(1) AS k, SUM(c.n) AS s, MIN(c.n) AS lo, MAX(c.n) AS hi, AVG(c.o.p) AS a FROM c",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE MAX(c._ts) FROM c",
    "SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g",
    "SELECT VALUE c.g FROM c GROUP BY c.g",
    "SELECT c.g, c.n, COUNT(1) AS k FROM c GROUP BY c.g, c.n OFFSET 2 LIMIT 4",
    "SELECT t, COUNT(1) AS k FROM c JOIN t IN c.tags GROUP BY t",
    "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.g",
    "SELECT VALUE s.id FROM (SELECT c.id, c.n FROM c WHERE c.n >= 2) AS s",
    "SELECT VALUE s FROM (SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g) AS s WHERE s.k > 1",
    "SELECT VALUE SUM(s.k) FROM (SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g) AS s",
];

const MORE_QUERIES: [&str; 14] = [
    "SELECT VALUE 1",
    "SELECT VALUE x FROM x IN (SELECT VALUE [3, 1, 2])",
    "SELECT VALUE x FROM x IN (SELECT VALUE c.tags FROM c)",
    "SELECT * FROM (SELECT * FROM c) AS s",
    "SELECT VALUE s._rid FROM (SELECT * FROM c) AS s",
    "SELECT VALUE t.a FROM (SELECT s.id AS a FROM (SELECT c.id FROM c WHERE c.n = 3) AS s) AS t",
    "SELECT DISTINCT VALUE s.g FROM (SELECT c.g FROM c) AS s",
    "SELECT c.id, ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t != 'x') AS rest FROM c",
    "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'y')",
    "SELECT VALUE (SELECT VALUE c) FROM c",
    "SELECT VALUE (SELECT VALUE t FROM t IN c.tags) FROM c",
    "SELECT VALUE DOCUMENTID(c) FROM c",
    "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.g, 'a')",
    "SELECT VALUE IS_DEFINED(c) AND IS_OBJECT(c) FROM c",
];

#[tokio::test]
async fn every_shape_gives_what_the_measure_gives() {
    for partitions in [1, 3, 8] {
        let harness = Harness::of(partitions, &DOCUMENTS).await;
        for text in QUERIES.iter().chain(&MORE_QUERIES) {
            harness.check(text).await;
        }
    }
}

#[tokio::test]
async fn an_empty_container_has_its_results_too() {
    let harness = Harness::new(3).await;
    for text in QUERIES.iter().chain(&MORE_QUERIES) {
        harness.check(text).await;
    }
}

#[tokio::test]
async fn one_logical_partition_is_asked_alone() {
    let harness = Harness::of(3, &DOCUMENTS).await;
    for text in ["SELECT * FROM c", "SELECT VALUE COUNT(1) FROM c", "SELECT VALUE t FROM t IN c.tags"] {
        let query = query(text);
        let parts = [harness.logical("4")];
        let found = harness.drain_over(&query, &parts, 2).await.unwrap();
        assert_eq!(Ok(found), harness.measure_over(&query, &parts).await, "{text}");
    }
}

#[tokio::test]
async fn computed_properties_stand_for_their_expressions() {
    let mut harness = Harness::of(3, &DOCUMENTS).await;
    let lower = query("SELECT VALUE UPPER(c.g) FROM c");
    let tags = query("SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t != 'x') FROM c");
    harness.computed = vec![("big".to_owned(), lower), ("rest".to_owned(), tags)];
    for (text, plain) in [
        ("SELECT VALUE c.big FROM c", "SELECT VALUE UPPER(c.g) FROM c"),
        ("SELECT * FROM c WHERE c['big'] = 'A'", "SELECT * FROM c WHERE UPPER(c.g) = 'A'"),
        (
            "SELECT c.big, COUNT(1) AS k FROM c GROUP BY c.big",
            "SELECT UPPER(c.g) AS big, COUNT(1) AS k FROM c GROUP BY UPPER(c.g)",
        ),
        (
            "SELECT u, c.rest FROM c JOIN u IN c.tags WHERE EXISTS(SELECT VALUE v FROM v IN c.rest WHERE v = u)",
            "SELECT u, ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t != 'x') AS rest FROM c JOIN u IN c.tags \
             WHERE EXISTS(SELECT VALUE v FROM v IN c.tags WHERE v = u AND v != 'x')",
        ),
        (
            "SELECT VALUE s.big FROM (SELECT c.big FROM c) AS s",
            "SELECT VALUE UPPER(c.g) FROM c WHERE IS_STRING(c.g)",
        ),
    ] {
        let expected = harness.measure(&query(plain)).await.unwrap();
        assert_eq!(harness.drain(&query(text), 3).await.unwrap(), expected, "{text}");
    }
    let ordered = harness.drain(&query("SELECT VALUE c.big FROM c ORDER BY c.big DESC"), 2).await.unwrap();
    let mut expected = harness.measure(&query("SELECT VALUE UPPER(c.g) FROM c")).await.unwrap();
    expected.sort_by(|left, right| right.cmp(left));
    assert_eq!(ordered, expected);
    harness.computed.push(("odd".to_owned(), query("SELECT VALUE COUNT(1) FROM c")));
    assert!(harness.drain(&query("SELECT * FROM c"), 2).await.is_err());
}
