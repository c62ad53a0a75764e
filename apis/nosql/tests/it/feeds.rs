//! Read feeds and the deletion of a partition key.

use crate::client::{Call, Client, DOCS, container};
use http::StatusCode;
use serde_json::json;

/// Reads a feed to its end and returns the ids.
async fn drain(client: &Client, first: Call) -> Vec<String> {
    let mut ids = Vec::new();
    let mut call = first;
    loop {
        let answer = client.send(call.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let page = answer.json();
        let items = page["Documents"].as_array().unwrap();
        assert_eq!(page["_count"], items.len());
        assert_eq!(answer.header("x-ms-item-count").unwrap(), items.len().to_string());
        assert!(items.iter().all(|item| item["_self"].is_string()));
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(continuation) = answer.header("x-ms-continuation") else {
            return ids;
        };
        call = call.header("x-ms-continuation", continuation);
    }
}

#[tokio::test]
async fn a_feed_gives_every_item_once_whatever_the_page_and_scope() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "18000").json(&container("c"));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    let mut all = Vec::new();
    for number in 0..40 {
        client.put_item(&format!("i{number:02}"), &format!("k{}", number % 8)).await;
        all.push(format!("i{number:02}"));
    }
    for size in ["1", "7", "-1", "1000"] {
        let mut ids = drain(&client, Call::get(DOCS).header("x-ms-max-item-count", size)).await;
        ids.sort();
        assert_eq!(ids, all, "pages of {size}");
    }
    let mut by_range = Vec::new();
    for range in ["0", "1", "2"] {
        let call = Call::get(DOCS).header("x-ms-documentdb-partitionkeyrangeid", range);
        by_range.extend(drain(&client, call.header("x-ms-max-item-count", "3")).await);
    }
    by_range.sort();
    assert_eq!(by_range, all);
    let by_key = drain(&client, Call::get(DOCS).key(&json!(["k3"])).header("x-ms-max-item-count", "2")).await;
    assert_eq!(by_key, ["i03", "i11", "i19", "i27", "i35"]);
    let unknown = Call::get(DOCS).header("x-ms-documentdb-partitionkeyrangeid", "9");
    assert_eq!(client.send(unknown).await.code(), (410, 1002));
}

#[tokio::test]
async fn a_part_of_a_range_gives_its_items_only() {
    let client = Client::with_container().await;
    for number in 0..20 {
        client.put_item(&number.to_string(), &format!("k{number}")).await;
    }
    let part = |start: &str, end: &str| {
        let call = Call::get(DOCS).header("x-ms-documentdb-partitionkeyrangeid", "0");
        let call = call.header("x-ms-read-key-type", "EffectivePartitionKeyRange");
        call.header("x-ms-start-epk", start).header("x-ms-end-epk", end)
    };
    let lower = drain(&client, part("", "20")).await;
    let upper = drain(&client, part("20", "FF")).await;
    assert_eq!(lower.len() + upper.len(), 20);
    assert!(!lower.is_empty() && !upper.is_empty());
}

#[tokio::test]
async fn a_continuation_is_good_for_its_own_feed_only() {
    let client = Client::with_container().await;
    client.create("/dbs/d/colls", container("other")).await;
    for number in 0..3 {
        client.put_item(&number.to_string(), "a").await;
    }
    let first = Call::get(DOCS).header("x-ms-max-item-count", "1");
    let answer = client.send(first.clone()).await;
    let continuation = answer.header("x-ms-continuation").unwrap();
    assert!(continuation.len() < 1024);
    let elsewhere = Call::get("/dbs/d/colls/other/docs").header("x-ms-continuation", continuation);
    assert_eq!(client.send(elsewhere).await.code(), (400, 0));
    let other_kind = Call::get("/dbs").header("x-ms-continuation", continuation);
    assert_eq!(client.send(other_kind).await.code(), (400, 0));
    let mut forged = continuation.to_owned();
    forged.replace_range(30..31, if &forged[30..31] == "A" { "B" } else { "A" });
    assert_eq!(client.send(first.header("x-ms-continuation", forged)).await.code(), (400, 0));
}

#[tokio::test]
async fn all_items_of_a_key_are_deleted_and_no_others() {
    let client = Client::with_container().await;
    for number in 0..12 {
        client.put_item(&number.to_string(), if number % 3 == 0 { "keep" } else { "drop" }).await;
    }
    let path = "/dbs/d/colls/c/operations/partitionkeydelete";
    let answer = client.send(Call::post(path).key(&json!(["drop"]))).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0), "{answer:?}");
    assert_eq!(drain(&client, Call::get(DOCS)).await, ["0", "3", "6", "9"]);
    assert_eq!(client.send(Call::post(path)).await.code(), (400, 0));
}
