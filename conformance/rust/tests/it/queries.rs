//! Queries on items. Over all ranges the SDK joins rows by itself as far as order, TOP, OFFSET and LIMIT go; inside one
//! key the server answers anything.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{CreateContainerOptions, MaxItemCountHint, QueryOptions};
use azure_data_cosmos::{FeedScope, Query};
use conformance::fixture::{create, unique};
use conformance::{Fixture, good, over_both};
use futures::TryStreamExt;
use serde_json::{Value, json};

/// A container of three ranges with 40 items under seven keys.
async fn filled(f: &Fixture) -> ContainerClient {
    let name = unique("c");
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(18_000));
    let properties = ContainerProperties::new(name.clone(), "/pk".into());
    f.database.create_container(properties, Some(options)).await.unwrap();
    let container = f.database.container_client(name, None).await.unwrap();
    for number in 0..40 {
        let key = format!("key-{}", number % 7);
        let team = ["red", "green", "blue"][number % 3];
        let item = json!({ "id": format!("{number:02}"), "pk": key, "n": number, "team": team });
        good(201, create(&container, key, item).await);
    }
    container
}

async fn rows(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
    size: u32,
) -> azure_data_cosmos::Result<Vec<Value>> {
    let size = MaxItemCountHint::Limit(size.try_into().unwrap());
    let options = QueryOptions::default().with_max_item_count(size);
    container.query_items::<Value>(query, scope, Some(options)).await?.try_collect().await
}

#[test]
fn rows_of_all_ranges_are_joined() {
    over_both(async |f| {
        let container = filled(f).await;
        for (query, expected) in [
            ("SELECT VALUE c.n FROM c ORDER BY c.n", json!((0..40).collect::<Vec<_>>())),
            (
                "SELECT VALUE c.n FROM c WHERE c.team = 'red' AND c.n > 30 ORDER BY c.n DESC",
                json!([39, 36, 33]),
            ),
            ("SELECT TOP 2 c.id FROM c ORDER BY c.n", json!([{ "id": "00" }, { "id": "01" }])),
            ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", json!([10, 11, 12])),
            ("SELECT VALUE c.nothing FROM c", json!([])),
        ] {
            for size in [1, 7, 100] {
                let found = rows(&container, query, FeedScope::full_container(), size).await.unwrap();
                assert_eq!(json!(found), expected, "{query} by {size}");
            }
        }
        let red =
            rows(&container, "SELECT * FROM c WHERE c.team = 'red'", FeedScope::full_container(), 5).await;
        assert_eq!(red.unwrap().len(), 14);
    });
}

#[test]
fn inside_one_key_anything_is_answered() {
    over_both(async |f| {
        let container = filled(f).await;
        let scope = || FeedScope::partition("key-3");
        for (query, expected) in [
            ("SELECT VALUE COUNT(1) FROM c", json!([6])),
            ("SELECT VALUE AVG(c.n) FROM c", json!([20.5])),
            ("SELECT DISTINCT VALUE c.team FROM c ORDER BY c.team", json!(["blue", "green", "red"])),
            ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC", json!([38, 31])),
            ("SELECT MIN(c.n) AS least, COUNT(1) AS n FROM c", json!([{ "least": 3, "n": 6 }])),
        ] {
            assert_eq!(json!(rows(&container, query, scope(), 2).await.unwrap()), expected, "{query}");
        }
        let query = Query::from("SELECT VALUE c.n FROM c WHERE c.n > @n AND c.team = @team")
            .with_parameter("@n", 5)
            .and_then(|query| query.with_parameter("@team", "green"))
            .unwrap();
        assert_eq!(json!(rows(&container, query, scope(), 10).await.unwrap()), json!([10, 31]));
    });
}

/// What the SDK cannot join it does not ask for.
#[test]
fn aggregates_stay_inside_one_key() {
    over_both(async |f| {
        let container = filled(f).await;
        for query in [
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT c.team FROM c GROUP BY c.team",
            "SELECT DISTINCT c.team FROM c",
        ] {
            assert!(rows(&container, query, FeedScope::full_container(), 10).await.is_err(), "{query}");
        }
    });
}

#[test]
fn what_is_wrong_is_told() {
    over_both(async |f| {
        let container = filled(f).await;
        for query in ["SELECT", "SELECT NOSUCH(c.n) FROM c", "SELECT * FROM c ORDER BY c.n + 1"] {
            let error = rows(&container, query, FeedScope::partition("key-3"), 10).await.unwrap_err();
            assert_eq!(u16::from(error.status().status_code()), 400, "{query}: {error}");
        }
    });
}
