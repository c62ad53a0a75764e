//! Values of partition keys: long strings, values that are no keys, prefixes.

use crate::client::{Answer, Call, Client, DOCS, container};
use engine::EngineOptions;
use http::StatusCode;
use nosql::NosqlOptions;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// An account with a container whose key definition has no version, which is the first one.
async fn first_version(unique: bool) -> Client {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let mut definition = json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash" } });
    if unique {
        definition["uniqueKeyPolicy"] = json!({ "uniqueKeys": [{ "paths": ["/u"] }] });
    }
    client.create("/dbs/d/colls", definition).await;
    client
}

async fn create(client: &Client, key: &str, id: &str) -> Answer {
    let item = json!({ "id": id, "pk": key, "u": 1, "end": key.chars().last().unwrap().to_string() });
    client.send(Call::post(DOCS).key(&json!([key])).json(&item)).await
}

fn ends(answer: &Answer) -> Vec<Json> {
    answer.json()["Documents"].as_array().unwrap().iter().map(|item| item["end"].clone()).collect()
}

#[tokio::test]
async fn keys_of_the_first_version_may_be_as_long_as_others() {
    let client = first_version(false).await;
    for length in [101, 102, 132, 263, 2048] {
        let key = "k".repeat(length);
        assert_eq!(create(&client, &key, "1").await.status, StatusCode::CREATED, "{length}");
        let read = client.send(Call::get(&format!("{DOCS}/1")).key(&json!([key]))).await;
        assert_eq!(read.json()["pk"], key);
    }
    assert_eq!(create(&client, &"k".repeat(2049), "1").await.code(), (400, 0));
    // More than 100 bytes in fewer than 100 characters, with a pair of units at the cut.
    for key in ["é".repeat(99), format!("{}😀x", "é".repeat(99))] {
        assert_eq!(create(&client, &key, "1").await.status, StatusCode::CREATED);
    }
}

#[tokio::test]
async fn keys_with_one_hash_are_different_logical_partitions() {
    let client = first_version(true).await;
    let [first, second] = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(150)));
    // The same id and the same unique value in each.
    for key in [&first, &second] {
        assert_eq!(create(&client, key, "1").await.status, StatusCode::CREATED);
        assert_eq!(create(&client, key, "1").await.code(), (409, 0));
        assert_eq!(create(&client, key, "2").await.code(), (409, 0), "the unique value is taken");
    }
    for (key, end) in [(&first, "a"), (&second, "b")] {
        let read = client.send(Call::get(&format!("{DOCS}/1")).key(&json!([key]))).await;
        assert_eq!(read.json()["end"], end);
        assert_eq!(ends(&client.send(Call::get(DOCS).key(&json!([key]))).await), [end]);
        let query = |text: &str, value: &Json| {
            let body = json!({ "query": text, "parameters": [{ "name": "@key", "value": value }] });
            Call::post(DOCS).header("content-type", "application/query+json").json(&body)
        };
        let within = query("SELECT * FROM c ORDER BY c.end", &Json::Null).key(&json!([key]));
        assert_eq!(ends(&client.send(within).await), [end]);
        let pinned = query("SELECT * FROM c WHERE c.pk = @key", &json!(key))
            .header("x-ms-documentdb-query-enablecrosspartition", "true");
        assert_eq!(ends(&client.send(pinned).await), [end]);
    }
    // A transaction is in one logical partition, not in all that share the hash.
    let steps = json!([{ "operationType": "Create", "resourceBody": { "id": "3", "pk": second, "u": 3 } }]);
    let batch = Call::post(DOCS).key(&json!([first])).header("x-ms-cosmos-is-batch-request", "true");
    let answer = client.send(batch.header("x-ms-cosmos-batch-atomic", "true").json(&steps)).await;
    assert_eq!(answer.json()[0]["statusCode"], 400);
    // Deleting one logical partition keeps the other.
    let delete = Call::post("/dbs/d/colls/c/operations/partitionkeydelete").key(&json!([first]));
    assert_eq!(client.send(delete).await.status, StatusCode::OK);
    assert_eq!(ends(&client.send(Call::get(DOCS).key(&json!([first]))).await), [] as [Json; 0]);
    assert_eq!(ends(&client.send(Call::get(DOCS).key(&json!([second]))).await), ["b"]);
}

#[tokio::test]
async fn objects_and_arrays_at_the_path_count_as_undefined() {
    let client = Client::with_container().await;
    for (id, key) in [("o", json!({ "a": 1 })), ("a", json!([1])), ("e", json!({}))] {
        let item = json!({ "id": id, "pk": key });
        let answer = client.send(Call::post(DOCS).key(&json!([{}])).json(&item)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let read = client.send(Call::get(&format!("{DOCS}/{id}")).key(&json!([{}]))).await;
        assert_eq!(read.json()["pk"], key);
    }
    let replaced = json!({ "id": "o", "pk": { "b": 2 } });
    let answer = client.send(Call::put(&format!("{DOCS}/o")).key(&json!([{}])).json(&replaced)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let moved = json!({ "id": "o", "pk": "x" });
    let answer = client.send(Call::put(&format!("{DOCS}/o")).key(&json!([{}])).json(&moved)).await;
    assert_eq!(answer.code(), (400, 1001));
}

#[tokio::test]
async fn a_key_with_another_number_of_components_names_no_item() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let key = json!({ "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 });
    client.create("/dbs/d/colls", json!({ "id": "c", "partitionKey": key })).await;
    let item = json!({ "id": "1", "a": "x", "b": {} });
    let create = Call::post(DOCS).key(&json!(["x", {}])).json(&item);
    assert_eq!(client.send(create.clone()).await.status, StatusCode::CREATED);
    for key in [json!(["x"]), json!(["x", {}, "z"])] {
        for call in [Call::get(&format!("{DOCS}/1")), Call::delete(&format!("{DOCS}/1")), create.clone()] {
            let answer = client.send(call.key(&key)).await;
            assert_eq!(answer.code(), (400, 1001), "{key}: {answer:?}");
        }
        let batch = Call::post(DOCS).key(&key).header("x-ms-cosmos-is-batch-request", "true");
        let batch = batch.header("x-ms-cosmos-batch-atomic", "true");
        let answer = client.send(batch.json(&json!([{ "operationType": "Read", "id": "1" }]))).await;
        assert_eq!(answer.code(), (400, 1001));
        assert!(
            answer.message().starts_with("Partition key provided either doesn't correspond to definition")
        );
        assert!(answer.message().contains("wrong-pk-value"));
    }
}

/// 20 GB in the service; here a few kilobytes.
#[tokio::test(start_paused = true)]
async fn a_full_logical_partition_takes_no_more_but_serves() {
    let engine = EngineOptions { logical_partition_bytes_max: 10_000, ..EngineOptions::default() };
    let client = Client::with_engine(NosqlOptions::default(), engine).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    let item = |id: usize, bytes: usize| json!({ "id": id.to_string(), "pk": "a", "t": "x".repeat(bytes) });
    let mut count = 0;
    let refused = loop {
        let answer = client.send(Call::post(DOCS).json(&item(count, 1000))).await;
        if answer.status != StatusCode::CREATED {
            break answer;
        }
        count += 1;
        assert!(count < 1000, "nothing is refused");
        // Housekeeping finds large logical partitions.
        tokio::time::sleep(Duration::from_secs(20)).await;
    };
    assert_eq!((count, refused.code()), (9, (403, 1014)));
    assert!(
        refused.message().starts_with("Partition key reached maximum size of 10000 bytes."),
        "{refused:?}"
    );
    assert_eq!(refused.header("x-ms-request-charge"), Some("1.00"));
    let path = format!("{DOCS}/0");
    let key = json!(["a"]);
    let larger = client.send(Call::put(&path).key(&key).json(&item(0, 3000))).await;
    assert_eq!(larger.code(), (403, 1014));
    let patch = json!({ "operations": [{ "op": "set", "path": "/more", "value": "x".repeat(3000) }] });
    assert_eq!(client.send(Call::patch(&path).key(&key).json(&patch)).await.code(), (403, 1014));
    // Reads, other keys, writes that make it smaller, and deletions work.
    assert_eq!(client.send(Call::get(&path).key(&key)).await.code(), (200, 0));
    let query = Call::post(DOCS).key(&key).header("x-ms-documentdb-isquery", "true");
    let query = query.header("content-type", "application/query+json");
    let found = client.send(query.json(&json!({ "query": "SELECT VALUE COUNT(1) FROM c" }))).await;
    assert_eq!(found.json()["Documents"], json!([9]));
    client.put_item("0", "b").await;
    assert_eq!(client.send(Call::put(&path).key(&key).json(&item(0, 10))).await.code(), (200, 0));
    assert_eq!(client.send(Call::delete(&path).key(&key)).await.code(), (204, 0));
    assert_eq!(client.send(Call::post(DOCS).json(&item(100, 900))).await.code(), (201, 0));
}
