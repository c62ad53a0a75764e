//! Both compatibility modes, where they differ.

use crate::client::{Answer, Call, Client, DOCS, container};
use nosql::{Compatibility, NosqlOptions};
use serde_json::{Value as Json, json};

const MODE: &str = "x-perihelion-compatibility";
const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";

fn query_in(path: &str, text: &str) -> Call {
    Call::post(path)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
        .json(&json!({ "query": text }))
}

fn query(text: &str) -> Call {
    query_in(DOCS, text)
}

fn relaxed(call: Call) -> Call {
    call.header(MODE, "relaxed")
}

#[track_caller]
fn rows(answer: &Answer) -> Vec<Json> {
    assert_eq!(answer.code(), (200, 0), "{answer:?}");
    answer.json()["Documents"].as_array().unwrap().clone()
}

/// A container with twenty items under five keys, and an empty one with a composite index.
async fn filled(throughput: &str) -> Client {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", throughput).json(&container("c"));
    assert_eq!(client.send(call).await.code(), (201, 0));
    for number in 0..20 {
        let item = json!({ "id": format!("{number:02}"), "pk": format!("k{}", number % 5), "n": number });
        assert_eq!(client.send(Call::post(DOCS).json(&item)).await.code(), (201, 0));
    }
    client
}

/// The ids of the ranges.
async fn ranges(client: &Client) -> Vec<String> {
    let answer = client.send(Call::get("/dbs/d/colls/c/pkranges")).await.json();
    let ranges = answer["PartitionKeyRanges"].as_array().unwrap();
    ranges.iter().map(|range| range["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_query_that_needs_a_merge_is_left_to_the_client_whatever_the_number_of_ranges() {
    for throughput in ["400", "25000"] {
        let client = filled(throughput).await;
        for text in [
            "SELECT * FROM c ORDER BY c.n",
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT COUNT(1) AS k FROM c",
            "SELECT c.pk, COUNT(1) AS k FROM c GROUP BY c.pk",
            "SELECT DISTINCT VALUE c.pk FROM c",
            "SELECT TOP 3 * FROM c",
            "SELECT * FROM c OFFSET 1 LIMIT 3",
            "SELECT TOP 3 * FROM c ORDER BY VectorDistance(c.v, [1, 2])",
            "SELECT TOP 3 * FROM c ORDER BY RANK FullTextScore(c.id, '01')",
            "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c)",
            "SELECT VALUE MAX(c.n) FROM c WHERE c.pk IN ('k1', 'k2')",
        ] {
            let refused = client.send(query(text)).await;
            assert_eq!(refused.code(), (400, 1004), "{text}: {refused:?}");
            let message = refused.message();
            assert!(message.contains("cross partition query can not be directly served by the gateway"));
            assert!(message.contains("--compatibility relaxed"), "{message}");
            let info: Json =
                serde_json::from_str(refused.json()["additionalErrorInfo"].as_str().unwrap()).unwrap();
            let features = "Aggregate, MultipleOrderBy, MultipleAggregates, OrderBy, OffsetAndLimit, Distinct, \
                            GroupBy, Top, DCount, NonValueAggregate, NonStreamingOrderBy, HybridSearch";
            let plan = query(text)
                .without_header("x-ms-documentdb-isquery")
                .header("x-ms-cosmos-is-query-plan-request", "True")
                .header("x-ms-cosmos-supported-query-features", features);
            assert_eq!(info, client.send(plan).await.json(), "{text}");
            assert_eq!(client.send(relaxed(query(text))).await.code(), (200, 0), "{text}");
            // Where the client says where, and where one key is all there is.
            assert_eq!(client.send(query(text).key(&json!(["k1"]))).await.code(), (200, 0), "{text}");
            assert_eq!(client.send(query(text).header(RANGE, "0")).await.code(), (200, 0), "{text}");
        }
        let in_one_key = query("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'k1'");
        assert_eq!(rows(&client.send(in_one_key).await), [json!(4)]);
    }
}

#[tokio::test]
async fn the_plan_of_a_refusal_leads_to_the_rows_that_the_server_would_merge() {
    let client = filled("25000").await;
    let refused = client.send(query("SELECT VALUE COUNT(1) FROM c WHERE c.n > 4")).await.json();
    let plan: Json = serde_json::from_str(refused["additionalErrorInfo"].as_str().unwrap()).unwrap();
    let rewritten = plan["queryInfo"]["rewrittenQuery"].as_str().unwrap();
    let mut sum = 0;
    for range in ranges(&client).await {
        let answer = client.send(query(rewritten).header(RANGE, range)).await;
        sum += rows(&answer)[0][0]["item"].as_u64().unwrap();
    }
    assert_eq!(sum, 15);
}

#[tokio::test]
async fn what_no_client_can_merge_is_refused_with_its_reason() {
    let client = filled("400").await;
    let text = "SELECT VALUE COUNT(1) + 5 FROM c";
    let refused = client.send(query(text)).await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("Compositions of aggregates"), "{refused:?}");
    assert!(refused.message().contains("--compatibility relaxed"), "{refused:?}");
    assert_eq!(rows(&client.send(relaxed(query(text))).await), [json!(25)]);
}

#[tokio::test]
async fn pages_of_a_plain_query_end_where_ranges_end() {
    let client = filled("25000").await;
    let text = "SELECT VALUE c.id FROM c";
    let all = rows(&client.send(relaxed(query(text))).await);
    assert_eq!(all.len(), 20);
    let mut by_range = Vec::new();
    for range in ranges(&client).await {
        by_range.push(rows(&client.send(query(text).header(RANGE, range)).await));
    }
    by_range.retain(|rows| !rows.is_empty());
    assert!(by_range.len() > 1);
    for size in [100, 3] {
        let call = query(text).header("x-ms-max-item-count", size.to_string());
        let (mut next, mut pages) = (call.clone(), Vec::new());
        loop {
            let answer = client.send(next).await;
            pages.push(rows(&answer));
            let Some(continuation) = answer.header("x-ms-continuation") else { break };
            next = call.clone().header("x-ms-continuation", continuation);
        }
        let pages: Vec<_> = pages.into_iter().filter(|page| !page.is_empty()).collect();
        let expected: Vec<Vec<Json>> =
            by_range.iter().flat_map(|rows| rows.chunks(size).map(<[Json]>::to_vec)).collect();
        assert_eq!(pages, expected, "pages of {size}");
    }
}

#[tokio::test]
async fn an_order_of_several_paths_needs_a_composite_index() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let mut definition = container("i");
    definition["indexingPolicy"] = json!({
        "compositeIndexes": [[{ "path": "/a" }, { "path": "/b", "order": "descending" }]],
    });
    client.create("/dbs/d/colls", definition).await;
    let ordered =
        |path, order: &str| query_in(path, &format!("SELECT * FROM c ORDER BY {order}")).key(&json!(["a"]));
    for (path, order) in [
        (DOCS, "c.a, c.b"),
        ("/dbs/d/colls/i/docs", "c.a, c.b"),
        ("/dbs/d/colls/i/docs", "c.b DESC, c.a"),
        ("/dbs/d/colls/i/docs", "c.a, c.b DESC, c.id"),
    ] {
        let refused = client.send(ordered(path, order)).await;
        assert_eq!(refused.code(), (400, 0), "{order}: {refused:?}");
        let message = refused.message();
        let sentence =
            "The order by query does not have a corresponding composite index that it can be served from.";
        assert!(message.starts_with(sentence) && message.contains("--compatibility relaxed"), "{message}");
        assert_eq!(client.send(relaxed(ordered(path, order))).await.code(), (200, 0), "{order}");
    }
    for order in ["c.a, c.b DESC", "c.a DESC, c.b ASC", "c.a", "c.b DESC"] {
        assert_eq!(client.send(ordered("/dbs/d/colls/i/docs", order)).await.code(), (200, 0), "{order}");
    }
}

#[tokio::test]
async fn a_vector_distance_is_not_sorted_by_direction() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    for direction in ["ASC", "DESC"] {
        let text = format!("SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1, 2]) {direction}");
        for call in [query(&text), query(&text).key(&json!(["a"]))] {
            let refused = client.send(call.clone()).await;
            assert_eq!(refused.code(), (400, 0), "{refused:?}");
            let sentence =
                "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
            assert!(refused.message().starts_with(sentence), "{refused:?}");
            assert_eq!(client.send(relaxed(call)).await.code(), (200, 0));
        }
    }
}

#[tokio::test]
async fn unknown_versions_of_the_protocol_are_refused() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let read = || Call::get(&format!("{DOCS}/1")).key(&json!(["a"]));
    assert_eq!(client.send(read()).await.code(), (200, 0));
    for version in ["2014-08-21", "2017-11-15", "2018-12-31", "2020-07-15", "2020-11-05"] {
        assert_eq!(client.send(read().header("x-ms-version", version)).await.code(), (200, 0), "{version}");
    }
    for version in ["abc", "2099-01-01", "2020-07-15\u{e9}"] {
        let call = read().header("x-ms-version", version);
        let refused = client.send(call.clone()).await;
        assert_eq!(refused.code(), (400, 0), "{version}");
        assert!(refused.message().contains("--compatibility relaxed"), "{refused:?}");
        assert_eq!(client.send(relaxed(call)).await.code(), (200, 0), "{version}");
    }
}

#[tokio::test]
async fn the_setting_is_for_requests_without_the_header() {
    let options = NosqlOptions { compatibility: Compatibility::Relaxed, ..NosqlOptions::default() };
    let client = Client::with_options(options).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    let count = || query("SELECT VALUE COUNT(1) FROM c");
    assert_eq!(rows(&client.send(count()).await), [json!(0)]);
    assert_eq!(client.send(count().header(MODE, "strict")).await.code(), (400, 1004));
    for odd in ["lenient", "Strict"] {
        assert_eq!(client.send(count().header(MODE, odd)).await.code(), (400, 0), "{odd}");
    }
}

#[tokio::test]
async fn strict_mode_answers_where_a_merge_is_no_question() {
    let client = filled("25000").await;
    // An explanation is ours and returns no rows.
    let explained = query("SELECT * FROM c ORDER BY c.n, c.id").header("x-perihelion-explain", "true");
    assert_eq!(client.send(explained).await.code(), (200, 0));
    // A container without a partition key has one logical partition.
    client.create("/dbs/d/colls", json!({ "id": "old" })).await;
    client.create("/dbs/d/colls/old/docs", json!({ "id": "1" })).await;
    let count = query_in("/dbs/d/colls/old/docs", "SELECT VALUE COUNT(1) FROM c");
    let count = count.without_header("x-ms-documentdb-query-enablecrosspartition");
    assert_eq!(rows(&client.send(count).await), [json!(1)]);
}
