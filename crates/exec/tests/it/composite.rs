//! Orders of several keys that a composite index has, with a filter that fixes some of them.

use crate::harness::Harness;
use serde_json::json;

/// Values of the first two keys, in all forms that tuples can have: whole, missing, only a mark, truncated.
fn values() -> Vec<String> {
    let long = "x".repeat(300);
    let values = ["1", "\"a\"", "\"ab\"", "null", "true", "[1]", "[1,2]", "{\"k\":1}", "255"];
    values.into_iter().map(str::to_owned).chain([format!("\"{long}1\""), format!("\"{long}2\"")]).collect()
}

async fn filled(partitions: u32) -> Harness {
    let path = |path: &str, order: &str| json!({ "path": path, "order": order });
    let indexes = json!([
        [path("/g", "ascending"), path("/n", "descending")],
        [path("/h", "descending"), path("/g", "ascending"), path("/n", "ascending")],
    ]);
    let policy = json!({ "indexingPolicy": {
        "includedPaths": [{ "path": "/*" }], "excludedPaths": [], "compositeIndexes": indexes,
    } });
    let harness = Harness::with(partitions, &policy).await;
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
