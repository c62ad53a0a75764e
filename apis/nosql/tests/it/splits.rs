//! A container whose partitions are split because of a higher rate: what clients with an old map of its ranges see.

use crate::client::{Answer, Call, Client, DOCS, container};
use serde_json::{Value as Json, json};
use std::time::Duration;

const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";
const PENDING: &str = "x-ms-offer-replace-pending";
/// Requests after which the splits should be done.
const REQUESTS_MAX: usize = 5_000;

fn query(range: &str) -> Call {
    Call::post(DOCS)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header(RANGE, range)
        .json(&json!({ "query": "SELECT VALUE c.id FROM c" }))
}

fn ranges_of(answer: &Answer) -> Vec<(String, Json)> {
    let body = answer.json();
    let ranges = body["PartitionKeyRanges"].as_array().unwrap();
    let range = |range: &Json| (range["id"].as_str().unwrap().to_owned(), range["parents"].clone());
    ranges.iter().map(range).collect()
}

#[tokio::test(start_paused = true)]
async fn old_range_ids_tags_and_tokens_stay_valid() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "1000").json(&container("c"));
    assert_eq!(client.send(call).await.code(), (201, 0));
    for number in 0..40 {
        let item = json!({ "id": number.to_string(), "pk": format!("k{}", number % 9) });
        assert_eq!(client.send(Call::post(DOCS).json(&item)).await.code(), (201, 0));
    }
    let feed = Call::get("/dbs/d/colls/c/pkranges").header("a-im", "Incremental feed");
    let first = client.send(feed.clone()).await;
    let tag = first.header("etag").unwrap().to_owned();
    // The rate is raised; the partitions follow.
    let mut offer = client.send(Call::get("/offers")).await.json()["Offers"][0].clone();
    offer["content"]["offerThroughput"] = json!(30_000);
    let path = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    let mut answer = client.send(Call::put(&path).json(&offer)).await;
    assert_eq!((answer.code(), answer.header(PENDING)), ((200, 0), Some("true")));
    for _ in 0..REQUESTS_MAX {
        answer = client.send(Call::get(&path)).await;
        if answer.header(PENDING) == Some("false") {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(answer.header(PENDING), Some("false"));
    // All ranges name their ancestors; a client with the old tag gets what is new.
    let now = client.send(feed.clone()).await;
    let ranges = ranges_of(&now);
    assert_eq!(ranges.len(), 4);
    assert!(ranges.iter().all(|(_, parents)| parents[0] == "0" && parents.as_array().unwrap().len() == 2));
    let since = client.send(feed.clone().header("if-none-match", &tag)).await;
    assert_eq!(ranges_of(&since), ranges);
    let tag = now.header("etag").unwrap().to_owned();
    assert_eq!(client.send(feed.header("if-none-match", &tag)).await.code(), (304, 0));
    // The old range still means all items, and its token is for it.
    let answer = client.send(query("0")).await;
    assert_eq!(answer.json()["_count"], 40);
    let token = answer.header("x-ms-session-token").unwrap().to_owned();
    assert!(token.starts_with("0:") && !token.contains(','), "{token}");
    let again = client.send(query("0").header("x-ms-session-token", &token)).await;
    assert_eq!(again.json()["_count"], 40);
    let mut count = 0;
    for (id, _) in &ranges {
        let answer = client.send(query(id).header("x-ms-session-token", &token)).await;
        count += answer.json()["_count"].as_u64().unwrap();
    }
    assert_eq!(count, 40);
    // Only a range that never existed is gone.
    assert_eq!(client.send(query("99")).await.code(), (410, 1002));
}
