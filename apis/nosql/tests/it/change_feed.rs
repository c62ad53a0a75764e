//! The change feed: positions, scopes, pages and what is refused.

use crate::client::{Answer, Call, Client, DOCS, container};
use http::StatusCode;
use serde_json::{Value as Json, json};
use std::time::Duration;

const ALL_VERSIONS: &str = "Full-Fidelity Feed";

fn latest() -> Call {
    Call::get(DOCS).header("a-im", "Incremental feed")
}

fn versions(position: &str) -> Call {
    Call::get(DOCS).header("a-im", ALL_VERSIONS).header("if-none-match", position)
}

fn ids(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let documents = json["Documents"].as_array().unwrap();
    assert_eq!(json["_count"], documents.len());
    documents.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_owned()
}

/// Changes from `first` on until there are no more, and the position then.
async fn drained(client: &Client, first: Call, follow: impl Fn(&str) -> Call) -> (Vec<Answer>, String) {
    let mut pages = Vec::new();
    let mut answer = client.send(first).await;
    for _ in 0..1000 {
        let position = etag(&answer);
        if answer.status == StatusCode::NOT_MODIFIED {
            return (pages, position);
        }
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        pages.push(answer);
        answer = client.send(follow(&position)).await;
    }
    panic!("the feed does not end");
}

/// A container of four ranges with items 0 to 39, each with its own key.
async fn wide() -> Client {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "24000").json(&container("c"));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    for number in 0..40 {
        client.put_item(&number.to_string(), &format!("k{number}")).await;
    }
    client
}

async fn upsert(client: &Client, id: &str, key: &str) {
    let call = Call::post(DOCS).header("x-ms-documentdb-is-upsert", "True").key(&json!([key]));
    let answer = client.send(call.json(&json!({ "id": id, "pk": key }))).await;
    assert!(answer.status.is_success(), "{answer:?}");
}

async fn retain(client: &Client, minutes: u32) {
    let mut definition = container("c");
    definition["changeFeedPolicy"] = json!({ "retentionDuration": minutes });
    let replaced = client.send(Call::put("/dbs/d/colls/c").json(&definition)).await;
    assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
}

#[tokio::test]
async fn one_etag_covers_several_partitions() {
    let client = wide().await;
    for size in ["1", "7", "100"] {
        let sized = |call: Call| call.header("x-ms-max-item-count", size);
        let follow = |position: &str| sized(latest()).header("if-none-match", position);
        let (pages, position) = drained(&client, sized(latest()), follow).await;
        let mut seen: Vec<u32> = pages.iter().flat_map(ids).map(|id| id.parse().unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..40).collect::<Vec<_>>(), "each item once");
        upsert(&client, "0", "k0").await;
        let since = client.send(follow(&position)).await;
        assert_eq!(ids(&since), ["0"]);
        // A reader of one of the partitions can use it too.
        let (pages, _) =
            drained(&client, latest(), |position| latest().header("if-none-match", position)).await;
        assert_eq!(pages.iter().flat_map(ids).count(), 40);
        for range in 0..4 {
            let of_range = follow(&position).header("x-ms-documentdb-partitionkeyrangeid", range.to_string());
            let answer = client.send(of_range).await;
            let is_owner = answer.status == StatusCode::OK;
            assert!(!is_owner || ids(&answer) == ["0"], "{answer:?}");
        }
    }
}

/// Otherwise a partition that is always written would hide the others.
#[tokio::test]
async fn partitions_take_turns() {
    let client = wide().await;
    let one = |call: Call| call.header("x-ms-max-item-count", "1");
    let mut answer = client.send(one(latest())).await;
    let hot = ids(&answer).remove(0);
    let mut seen = vec![hot.clone()];
    for _ in 0..200 {
        upsert(&client, &hot, &format!("k{hot}")).await;
        answer = client.send(one(latest()).header("if-none-match", etag(&answer))).await;
        seen.extend(ids(&answer));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 40, "{seen:?}");
}

#[tokio::test]
async fn a_feed_from_now_on_covers_all_partitions() {
    let client = wide().await;
    let now = client.send(latest().header("if-none-match", "*")).await;
    assert_eq!((now.status, now.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(now.header("x-ms-session-token").unwrap().split(',').count(), 4);
    for id in ["1", "2", "3", "4"] {
        upsert(&client, id, &format!("k{id}")).await;
    }
    let mut seen = ids(&client.send(latest().header("if-none-match", etag(&now))).await);
    seen.sort_unstable();
    assert_eq!(seen, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn large_items_make_pages_of_few() {
    let client = Client::with_container().await;
    for id in 0..6 {
        let item = json!({ "id": id.to_string(), "pk": "a", "t": "x".repeat(1_400_000) });
        client.create(DOCS, item).await;
    }
    let (pages, _) = drained(&client, latest(), |position| latest().header("if-none-match", position)).await;
    assert_eq!(pages.iter().flat_map(ids).collect::<Vec<_>>(), ["0", "1", "2", "3", "4", "5"]);
    assert!(pages.iter().all(|page| page.body.len() < 4 << 20) && pages.len() >= 3);
}

#[tokio::test]
async fn changes_beyond_the_retention_are_refused_and_not_skipped() {
    let client = Client::with_container().await;
    let refused = client.send(versions("*")).await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("retention"), "{refused:?}");
    client.put_item("0", "a").await;
    retain(&client, 10).await;
    let start = etag(&client.send(versions("*")).await);
    client.put_item("1", "a").await;
    // The history starts with the retention.
    assert_eq!(client.send(versions("\"1\"")).await.code(), (400, 0));
    let page = client.send(versions(&start)).await;
    assert_eq!(page.json()["Documents"][0]["current"]["id"], "1");
    // Without a retention, what is written is missing in the history for ever.
    retain(&client, 0).await;
    assert_eq!(client.send(versions(&start)).await.code(), (400, 0));
    client.put_item("2", "a").await;
    retain(&client, 10).await;
    let refused = client.send(versions(&start)).await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("not retained"), "{refused:?}");
    let again = client.send(versions("*")).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    client.put_item("3", "a").await;
    assert_eq!(client.send(versions(&etag(&again))).await.json()["_count"], 1);
}

#[tokio::test]
async fn versions_start_now_or_at_a_position() {
    let client = Client::with_container().await;
    retain(&client, 10).await;
    let call = || Call::get(DOCS).header("a-im", ALL_VERSIONS);
    let since = || call().header("if-modified-since", "Sun, 01 Jan 2023 00:00:00 GMT");
    for call in [call(), since()] {
        let refused = client.send(call).await;
        assert_eq!(refused.code(), (400, 0));
        assert!(refused.message().contains("from now on"), "{refused:?}");
    }
    for format in ["2021-09-16", "x"] {
        let call = versions("*").header("x-ms-cosmos-changefeed-wire-format-version", format);
        assert_eq!(client.send(call).await.code(), (400, 0));
    }
}

#[tokio::test]
async fn a_time_counts_for_the_first_page_only() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    client.advance(100);
    client.put_item("2", "a").await;
    let answer = client.send(latest()).await;
    let ts = answer.json()["Documents"][1]["_ts"].as_u64().unwrap();
    let since = |seconds| latest().header("if-modified-since", crate::client::date_at(seconds));
    assert_eq!(ids(&client.send(since(ts)).await), ["2"]);
    assert_eq!(ids(&client.send(since(ts - 100)).await), ["1", "2"]);
    let none = client.send(since(ts + 1)).await;
    assert_eq!(none.status, StatusCode::NOT_MODIFIED);
    assert_eq!(ids(&client.send(since(ts + 1).header("if-none-match", "\"0\"")).await), ["1", "2"]);
    assert_eq!(client.send(since(ts + 10)).await.status, StatusCode::NOT_MODIFIED, "clocks differ");
    let refused = client.send(since(ts + 3600)).await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("ahead"), "{refused:?}");
}

#[tokio::test]
async fn a_hierarchical_key_identifies_a_deleted_item() {
    let client = Client::with_container().await;
    let definition = json!({
        "id": "h",
        "partitionKey": { "paths": ["/tenant", "/a/b"], "kind": "MultiHash", "version": 2 },
        "changeFeedPolicy": { "retentionDuration": 10 },
    });
    client.create("/dbs/d/colls", definition).await;
    let docs = "/dbs/d/colls/h/docs";
    client.create(docs, json!({ "id": "x", "tenant": "t\"", "a": { "b": 1.5 } })).await;
    let call =
        |position: &str| Call::get(docs).header("a-im", ALL_VERSIONS).header("if-none-match", position);
    let start = etag(&client.send(call("*")).await);
    let deleted = client.send(Call::delete(&format!("{docs}/x")).key(&json!(["t\"", 1.5]))).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let row: Json = client.send(call(&start)).await.json()["Documents"][0].clone();
    assert_eq!(row["metadata"]["partitionKey"], json!({ "tenant": "t\"", "a/b": 1.5 }));
    assert_eq!((&row["metadata"]["id"], &row["previous"]["id"]), (&json!("x"), &json!("x")));
    assert!(row.get("current").is_none());
}

/// Some clients read both modes in one form.
#[tokio::test]
async fn last_versions_come_with_metadata_too() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let call = |format| latest().header("x-ms-cosmos-changefeed-wire-format-version", format);
    let row = client.send(call("2021-09-15")).await.json()["Documents"][0].clone();
    assert_eq!(row["current"]["id"], "1");
    assert_eq!(
        (&row["metadata"]["lsn"], &row["metadata"]["crts"]),
        (&row["current"]["_lsn"], &row["current"]["_ts"])
    );
    assert!(row.get("previous").is_none() && row["metadata"].get("operationType").is_none());
    assert_eq!(client.send(call("2021-09-16")).await.code(), (400, 0));
}

/// The retention ends by time: what is older is deleted from the history, and a reader that comes back too late learns
/// it instead of missing changes.
#[tokio::test(start_paused = true)]
async fn a_position_older_than_the_retention_is_refused() {
    let client = Client::with_container().await;
    retain(&client, 10).await;
    let start = etag(&client.send(versions("*")).await);
    client.put_item("1", "a").await;
    let reader = etag(&client.send(versions(&start)).await);
    let mut refused = client.send(versions(&start)).await;
    assert_eq!(refused.status, StatusCode::OK);
    client.advance(9 * 60);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(client.send(versions(&start)).await.json()["_count"], 1, "within the retention");
    for minute in 0..60 {
        client.advance(60);
        client.put_item(&format!("later {minute}"), "a").await;
        // Housekeeping deletes what is older than the retention.
        tokio::time::sleep(Duration::from_secs(60)).await;
        refused = client.send(versions(&start)).await;
        if refused.status != StatusCode::OK {
            break;
        }
    }
    assert_eq!(refused.code(), (400, 0), "{refused:?}");
    assert!(refused.message().contains("not retained any more"), "{refused:?}");
    // So is one that has read the first change but not the next, if that is gone too; the present is readable.
    let (pages, _) = drained(&client, latest(), |at| latest().header("if-none-match", at)).await;
    assert!(pages.iter().flat_map(ids).any(|id| id == "1"));
    let now = client.send(versions("*")).await;
    assert_eq!(now.status, StatusCode::NOT_MODIFIED);
    client.put_item("last", "a").await;
    assert_eq!(client.send(versions(&etag(&now))).await.json()["_count"], 1);
    let old = client.send(versions(&reader)).await;
    assert!(old.code() == (400, 0) || old.json()["Documents"][0]["current"]["id"] == "later 0", "{old:?}");
}

/// Only ids of ranges can be gone. A position is text of the reader.
#[tokio::test]
async fn positions_and_ranges_of_another_container_are_refused() {
    let client = wide().await;
    client.create("/dbs/d/colls", container("small")).await;
    let small = "/dbs/d/colls/small/docs";
    client.create(small, json!({ "id": "1", "pk": "a" })).await;
    let (_, position) = drained(&client, latest(), |at| latest().header("if-none-match", at)).await;
    assert!(position.contains(':'), "a position in several partitions: {position}");
    let of_small = || Call::get(small).header("a-im", "Incremental feed");
    let refused = client.send(of_small().header("if-none-match", &position)).await;
    assert_eq!(refused.code(), (400, 0), "{refused:?}");
    assert!(refused.message().contains("another container"), "{refused:?}");
    let range = |id: &str| of_small().header("x-ms-documentdb-partitionkeyrangeid", id);
    assert_eq!(client.send(range("3")).await.code(), (410, 1002));
    let rid = client.send(Call::get("/dbs/d/colls/c")).await.json()["_rid"].as_str().unwrap().to_owned();
    assert_eq!(client.send(range(&format!("{rid},0"))).await.code(), (410, 1000));
    assert_eq!(ids(&client.send(of_small()).await), ["1"]);
}
