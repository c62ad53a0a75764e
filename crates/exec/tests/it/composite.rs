//! Orders of several keys that a composite index has, with a filter that fixes some of them or sets bounds to them.

use crate::harness::{Harness, query, row_text};
use partition::index::IndexOptions;
use serde_json::json;
use std::cmp::Ordering;

/// Values of the first two keys, in all forms that tuples can have: whole, missing, only a mark, truncated.
fn values() -> Vec<String> {
    let long = "x".repeat(300);
    let values = ["1", "\"a\"", "\"ab\"", "null", "true", "[1]", "[1,2]", "{\"k\":1}", "255"];
    values.into_iter().map(str::to_owned).chain([format!("\"{long}1\""), format!("\"{long}2\"")]).collect()
}

async fn filled(partitions: u32) -> Harness {
    filled_with(partitions, IndexOptions::default()).await
}

async fn filled_with(partitions: u32, options: IndexOptions) -> Harness {
    let path = |path: &str, order: &str| json!({ "path": path, "order": order });
    let indexes = json!([
        [path("/g", "ascending"), path("/n", "descending")],
        [path("/h", "descending"), path("/g", "ascending"), path("/n", "ascending")],
    ]);
    let policy = json!({ "indexingPolicy": {
        "includedPaths": [{ "path": "/*" }], "excludedPaths": [], "compositeIndexes": indexes,
    } });
    let harness = Harness::made(partitions, &policy, options).await;
    let values = values();
    for number in 0..120 {
        let [g, h] = [number % 12, number / 12 % 3].map(|index| values.get(index));
        let member = |name: &str, value: Option<&String>| {
            value.map(|value| format!(r#","{name}":{value}"#)).unwrap_or_default()
        };
        let (g, h) = (member("g", g), member("h", h));
        harness.put(&format!(r#"{{"id":"{number}","n":{}{g}{h}}}"#, number * 7 % 31)).await;
    }
    harness
}

#[tokio::test]
async fn what_a_filter_fixes_of_an_order_is_all_that_is_walked() {
    for partitions in [1, 3] {
        let harness = filled(partitions).await;
        for value in values() {
            for order in ["c.g, c.n DESC", "c.g DESC, c.n"] {
                harness
                    .check(&format!("SELECT VALUE c.id FROM c WHERE c.g = {value} ORDER BY {order}"))
                    .await;
            }
            for order in ["c.h DESC, c.g, c.n", "c.h, c.g DESC, c.n DESC"] {
                let filter = format!("c.g = {value} AND c.h = 1");
                harness.check(&format!("SELECT TOP 2 * FROM c WHERE {filter} ORDER BY {order}")).await;
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_fixed_is_still_asked_for() {
    let harness = filled(1).await;
    for filter in [
        "c.g = 1 AND c.n > 9",
        "c.g = 1 AND c.h = 1 AND c.n != 3",
        "c.g = 1 AND c.g = 'a'",
        "c.g IN (1, 'a')",
        "c.h = 1 AND c.n = 5",
        "c.g = 'a' AND STARTSWITH(c.h, 'a')",
    ] {
        for order in ["c.g, c.n DESC", "c.g DESC, c.n", "c.h DESC, c.g, c.n"] {
            harness.check(&format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY {order}")).await;
        }
    }
}

/// Much of the index is on disk soon, in many runs.
const MANY_RUNS: IndexOptions = IndexOptions {
    inline_documents_max: 4,
    flush_documents: 16,
    flush_bytes: 1 << 20,
    run_fan_in: 4,
    memory_bytes_max: 4 << 20,
    cache_bytes: 1 << 20,
};

/// Orders that an index has: tuples in both directions, and values of the first key.
const ORDERS: [&str; 8] = [
    "c.g, c.n DESC",
    "c.g DESC, c.n",
    "c.h DESC, c.g, c.n",
    "c.h, c.g DESC, c.n DESC",
    "c.g",
    "c.g DESC",
    "c.g, c.n",
    "c.h DESC, c.n",
];

#[tokio::test]
async fn a_range_of_the_first_key_that_is_not_fixed_sets_bounds() {
    let mut ranges = Vec::new();
    for value in values() {
        for sign in ["<", "<=", ">", ">="] {
            ranges.push(format!("c.g {sign} {value}"));
            ranges.push(format!("c.h = 1 AND c.g {sign} {value}"));
        }
    }
    for (harness, orders) in [
        (filled(1).await, &ORDERS[..]),
        (filled_with(1, MANY_RUNS).await, &ORDERS[1..3]),
        (filled(3).await, &ORDERS[3..4]),
    ] {
        for range in &ranges {
            for order in orders {
                harness.check(&format!("SELECT VALUE c.id FROM c WHERE {range} ORDER BY {order}")).await;
            }
        }
    }
}

#[tokio::test]
async fn bounds_at_both_ends_and_with_further_conditions() {
    let long = "x".repeat(300);
    let filters = [
        "c.g > 'a' AND c.g <= 'ab'".to_owned(),
        "c.g >= 1 AND c.g < 255".to_owned(),
        "c.g BETWEEN 'a' AND 'b'".to_owned(),
        "c.g > 255 AND c.g < 1".to_owned(),
        "c.g > 1 AND c.g > 'a'".to_owned(),
        "c.g = 1 AND c.n > 9".to_owned(),
        "c.g = 'a' AND c.n > 3 AND c.n <= 20".to_owned(),
        "c.h = 1 AND c.g = 'a' AND c.n < 20".to_owned(),
        "c.g >= 'a' AND c.n > 9".to_owned(),
        "c.g >= 'a' AND c.h = 1".to_owned(),
        "c.g >= 'a' AND c.n % 2 = 0".to_owned(),
        "c.g >= 'a' AND c.id LIKE '%3%'".to_owned(),
        "STARTSWITH(c.g, 'a')".to_owned(),
        "STARTSWITH(c.g, '')".to_owned(),
        "IS_NUMBER(c.g)".to_owned(),
        "IS_ARRAY(c.g)".to_owned(),
        "IS_OBJECT(c.g) AND c.n > 3".to_owned(),
        "c.g IN (1, 'a')".to_owned(),
        "c.g >= true".to_owned(),
        "c.g <= null".to_owned(),
        format!("c.g > '{long}1'"),
        format!("c.g >= '{long}2' AND c.h = 1"),
        format!("c.g < '{long}2' AND c.g >= 'ab'"),
        format!("STARTSWITH(c.g, '{long}')"),
    ];
    for harness in [filled(1).await, filled_with(1, MANY_RUNS).await] {
        for filter in &filters {
            for order in ORDERS {
                harness.check(&format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY {order}")).await;
            }
        }
    }
}

#[tokio::test]
async fn a_disjunction_of_keys_in_order_sets_bounds() {
    let harness = filled(1).await;
    for filter in [
        "c.g > 'a' OR (c.g = 'a' AND c.n >= 9)",
        "c.g < 'a' OR (c.g = 'a' AND c.n <= 9)",
        "c.g > 1 OR (c.g = 1 AND c.n > 9)",
        "(c.g > 'a' OR (c.g = 'a' AND c.n >= 9)) AND (c.g < 'ab' OR (c.g = 'ab' AND c.n <= 20))",
        "(c.g > 'a' OR (c.g = 'a' AND c.n >= 9)) AND c.g >= 'ab'",
        "(c.g > 'a' OR (c.g = 'a' AND c.n >= 9)) AND c.g = 'a'",
        "c.g > 'ab' OR (c.g = 'a' AND c.n >= 9)",
        "c.h > 0 OR (c.h = 0 AND c.g >= 'a')",
        "c.h < 2 OR (c.h = 1 AND c.g < 'ab')",
        "c.h > 'a' OR (c.h = 'a' AND c.g >= 'a') OR c.h = 1",
        "c.h = 1 AND (c.g > 'a' OR (c.g = 'a' AND c.n >= 9))",
        "c.g > 'a' OR (c.g = 'a' AND c.id > '5')",
        "c.g < 1 OR c.g > 1",
    ] {
        for order in ORDERS {
            harness.check(&format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY {order}")).await;
        }
    }
}

/// A page from a key on reads as many values of the index in a large container as in a small one.
#[tokio::test]
async fn the_values_that_a_page_reads_do_not_grow_with_the_container() {
    const PAGE: usize = 10;
    let path = |path: &str| json!({ "path": path, "order": "ascending" });
    let policy = json!({ "indexingPolicy": {
        "includedPaths": [{ "path": "/*" }], "excludedPaths": [],
        "compositeIndexes": [[path("/p"), path("/r")]],
    } });
    let queries = [
        "SELECT * FROM c WHERE c.p >= 'p3' ORDER BY c.p, c.r",
        "SELECT * FROM c WHERE c.p > 'p3' AND c.p < 'p8' ORDER BY c.p, c.r",
        "SELECT * FROM c WHERE c.p < 'p8' ORDER BY c.p DESC, c.r DESC",
        "SELECT * FROM c WHERE c.p = 'p3' AND c.r >= 'r2' ORDER BY c.p, c.r",
        "SELECT * FROM c WHERE c.r >= 'r2' ORDER BY c.r",
        "SELECT * FROM c WHERE c.r < 'r7' ORDER BY c.r DESC",
        "SELECT * FROM c WHERE c.p > 'p3' OR (c.p = 'p3' AND c.r >= 'r2') ORDER BY c.p, c.r",
        // These pass values before the first one of the page, at most so many.
        "SELECT * FROM c WHERE c.p >= 'p3' AND c.r >= 'r2' ORDER BY c.p, c.r",
        "SELECT * FROM c WHERE c.p < 'p8' AND c.r >= 'r2' AND c.r < 'r9' ORDER BY c.p DESC, c.r DESC",
    ]
    .map(query);
    let mut visited = Vec::new();
    for documents in [1_000, 4_000] {
        let harness = Harness::made(1, &policy, MANY_RUNS).await;
        for number in 0..documents {
            let (p, r) = (number % 10, number * 7 % 1009);
            harness.put(&format!(r#"{{"id":"{number}","p":"p{p}","r":"r{r}-{number}"}}"#)).await;
        }
        let mut values = Vec::new();
        for query in &queries {
            let first = harness.page(query, &harness.parts, PAGE, None).await.unwrap();
            assert_eq!(first.rows.len(), PAGE);
            let second = harness.page(query, &harness.parts, PAGE, first.resume).await.unwrap();
            assert_eq!(second.rows.len(), PAGE);
            values.push([first.metrics.index_values, second.metrics.index_values]);
        }
        visited.push(values);
    }
    assert_eq!(visited[0][..7], visited[1][..7]);
    let most = visited.iter().flatten().flatten().max();
    assert!(most.is_some_and(|most| (1..=5 * PAGE as u64).contains(most)), "{visited:?}");
}

/// A walk that passes many values skips those of a first key, or looks up the few that are in a range of the second key.
#[tokio::test]
async fn a_walk_past_many_values_skips_or_looks_up() {
    for (first_keys, most) in [(10, 20..700), (4_000, 512..20_000)] {
        check_walk_past_many_values(first_keys, most).await;
    }
}

async fn check_walk_past_many_values(first_keys: usize, range: std::ops::Range<u64>) {
    const PAGE: usize = 2;
    let path = |path: &str, order: &str| json!({ "path": path, "order": order });
    let policy = json!({ "indexingPolicy": {
        "includedPaths": [{ "path": "/*" }], "excludedPaths": [],
        "compositeIndexes": [
            [path("/p", "ascending"), path("/r", "ascending")],
            [path("/p", "ascending"), path("/r", "descending")],
        ],
    } });
    let harness = Harness::made(1, &policy, MANY_RUNS).await;
    let mut expected = Vec::new();
    for number in 0..4_000 {
        let (p, r) = (number % first_keys, number * 7 % 1009);
        harness.put(&format!(r#"{{"id":"{number}","p":"p{p:04}","r":"r{r:04}-{number}"}}"#)).await;
        if p >= 1 && (500..503).contains(&r) {
            expected.push((p, format!("r{r:04}-{number}"), number.to_string()));
        }
    }
    let ids = |rows: &[exec::QueryRow]| rows.iter().map(row_text).collect::<Vec<_>>();
    for (order, is_p_turned, is_r_turned) in [
        ("c.p, c.r", false, false),
        ("c.p DESC, c.r DESC", true, true),
        ("c.p, c.r DESC", false, true),
        ("c.p DESC, c.r", true, false),
    ] {
        let filter = "c.p >= 'p0001' AND c.r >= 'r0500' AND c.r < 'r0503'";
        let query = query(&format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY {order}"));
        let (mut found, mut resume, mut most) = (Vec::new(), None, 0);
        for _ in 0..=expected.len() {
            let page = harness.page(&query, &harness.parts, PAGE, resume).await.unwrap();
            found.extend(ids(&page.rows));
            most = most.max(page.metrics.index_values);
            resume = page.resume;
            if resume.is_none() {
                break;
            }
        }
        expected.sort_by(|one, other| {
            let turned = |order: Ordering, is_turned| if is_turned { order.reverse() } else { order };
            turned(one.0.cmp(&other.0), is_p_turned).then(turned(one.1.cmp(&other.1), is_r_turned))
        });
        let ids: Vec<String> = expected.iter().map(|(_, _, id)| format!("\"{id}\"")).collect();
        assert_eq!(found, ids, "{order}");
        assert!(range.contains(&most), "{first_keys} {order}: {most}");
    }
}
