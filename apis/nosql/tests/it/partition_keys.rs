//! Values of partition keys: long strings, values that are no keys, prefixes.

use crate::client::{Answer, Call, Client, DOCS};
use http::StatusCode;
use serde_json::{Value as Json, json};

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
