//! Headers of answers that clients depend on.

use crate::client::{Answer, Call, Client, DOCS, container};
use http::StatusCode;
use nosql::NosqlOptions;
use serde_json::{Value as Json, json};

const OWNER: &str = "x-ms-alt-content-path";

fn lsn(answer: &Answer) -> u64 {
    answer.header("lsn").unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_answer_has_the_duration_of_the_request() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    for call in [
        Call::get("/"),
        Call::get("/dbs/d/colls/c"),
        Call::get(&format!("{DOCS}/1")).key(&json!(["a"])),
        Call::get(&format!("{DOCS}/2")).key(&json!(["a"])),
        Call::delete(&format!("{DOCS}/1")).key(&json!(["a"])),
        Call::get("/nothing"),
        Call::get("/").omit("authorization"),
    ] {
        let answer = client.send(call.clone()).await;
        let text = answer.header("x-ms-request-duration-ms").unwrap_or_else(|| panic!("{call:?}"));
        let (whole, decimals) = text.split_once('.').unwrap();
        assert!(whole.parse::<u64>().is_ok() && decimals.len() == 3, "{text}");
        assert!(decimals.parse::<u64>().is_ok(), "{text}");
    }
}

#[tokio::test]
async fn refusals_of_item_requests_carry_the_session() {
    let client = Client::with_container().await;
    let written = client.put_item("1", "a").await;
    let item = |id: &str| format!("{DOCS}/{id}");
    let body = json!({ "id": "1", "pk": "a" });
    let refused = [
        (404, Call::get(&item("2"))),
        (404, Call::delete(&item("2"))),
        (404, Call::put(&item("2")).json(&json!({ "id": "2", "pk": "a" }))),
        (404, Call::patch(&item("2")).json(&json!([{ "op": "set", "path": "/n", "value": 1 }]))),
        (409, Call::post(DOCS).json(&body)),
        (412, Call::put(&item("1")).header("if-match", "\"x\"").json(&body)),
        (412, Call::delete(&item("1")).header("if-match", "\"x\"")),
    ];
    for (status, call) in refused {
        let answer = client.send(call.clone().key(&json!(["a"]))).await;
        assert_eq!(answer.code(), (status, 0), "{call:?}");
        assert_eq!(answer.header("x-ms-session-token"), written.header("x-ms-session-token"), "{call:?}");
        assert_eq!(lsn(&answer), lsn(&written));
        assert_eq!(answer.header("x-ms-documentdb-partitionkeyrangeid"), Some("0"));
        assert_eq!(answer.header("x-ms-content-path"), None);
    }
    // A refusal that says nothing about the items has none.
    let ahead = format!("0:0#{}", lsn(&written) + 1000);
    let call = Call::get(&item("1")).key(&json!(["a"])).header("x-ms-session-token", ahead);
    let answer = client.send(call).await;
    assert_eq!(answer.code(), (404, 1002));
    assert_eq!(answer.header("x-ms-session-token"), None);
    assert_eq!(client.send(Call::get(&item("1")).key(&json!([]))).await.header("x-ms-session-token"), None);
}

#[tokio::test]
async fn bulk_answers_carry_the_session_of_their_range() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "12000").json(&container("c"));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    let bulk = |range: &str, keys: &[&str]| {
        let step = |key: &&str| {
            json!({ "operationType": "Create", "resourceBody": { "id": "1", "pk": key },
                    "partitionKey": json!([key]).to_string() })
        };
        let steps: Vec<Json> = keys.iter().map(step).collect();
        let call = Call::post(DOCS).header("x-ms-cosmos-is-batch-request", "true").json(&json!(steps));
        let call = call.header("x-ms-cosmos-batch-atomic", "false");
        if range.is_empty() { call } else { call.header("x-ms-documentdb-partitionkeyrangeid", range) }
    };
    // The hash of "a" begins with 3A, that of "partitionKey" with 01.
    let created = client.send(bulk("1", &["a"])).await;
    let conflict = client.send(bulk("1", &["a"])).await;
    for answer in [&created, &conflict] {
        assert_eq!(answer.header("x-ms-session-token"), Some(&*format!("1:0#{}", lsn(answer))));
        assert_eq!(answer.header("x-ms-documentdb-partitionkeyrangeid"), Some("1"));
        assert_eq!(answer.header(OWNER), Some("dbs/d/colls/c"));
    }
    assert_eq!(conflict.json()[0]["statusCode"], 409);
    let read = Call::get(&format!("{DOCS}/1")).key(&json!(["a"]));
    assert_eq!(lsn(&client.send(read).await), lsn(&created));
    let both = client.send(bulk("", &["a", "partitionKey"])).await;
    let token = both.header("x-ms-session-token").unwrap();
    let mut ranges: Vec<&str> = token.split(',').map(|entry| entry.split_once(':').unwrap().0).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, ["0", "1"]);
}

#[tokio::test]
async fn the_owner_of_a_resource_is_named() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    client.create("/dbs/d/users", json!({ "id": "ü" })).await;
    let script = json!({ "id": "s", "body": "function () {}" });
    let permission = json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" });
    let key = json!({
        "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAAA",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP" },
    });
    let database = "dbs/d";
    for (path, body, id, owner) in [
        ("/dbs/d/colls", container("e"), "e", database),
        ("/dbs/d/users", json!({ "id": "u" }), "u", database),
        ("/dbs/d/users/%C3%BC/permissions", permission, "p", "dbs/d/users/%C3%BC"),
        ("/dbs/d/colls/c/sprocs", script.clone(), "s", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/udfs", script, "s", "dbs/d/colls/c"),
        ("/dbs/d/clientencryptionkeys", key, "k", database),
    ] {
        let created = client.send(Call::post(path).json(&body)).await;
        assert_eq!(created.status, StatusCode::CREATED, "{path}: {created:?}");
        assert_eq!(created.header(OWNER), Some(owner), "{path}");
        let one = format!("{path}/{id}");
        let read = client.send(Call::get(&one)).await;
        assert_eq!((read.status, read.header(OWNER)), (StatusCode::OK, Some(owner)), "{path}");
        let replaced = client.send(Call::put(&one).json(&body)).await;
        assert_eq!((replaced.status, replaced.header(OWNER)), (StatusCode::OK, Some(owner)), "{path}");
    }
    let read = client.send(Call::get(&format!("{DOCS}/1")).key(&json!(["a"]))).await;
    assert_eq!(read.header(OWNER), Some("dbs/d/colls/c"));
}

#[tokio::test]
async fn a_version_that_the_client_has_is_not_sent_again() {
    let client = Client::with_container().await;
    client.create("/dbs/d/users", json!({ "id": "u" })).await;
    client
        .create(
            "/dbs/d/colls/c/triggers",
            json!({ "id": "t", "body": "x", "triggerType": "Pre", "triggerOperation": "All" }),
        )
        .await;
    let key = json!({
        "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAAA",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP" },
    });
    client.create("/dbs/d/clientencryptionkeys", key).await;
    let permission = json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" });
    client.create("/dbs/d/users/u/permissions", permission).await;
    let throughput = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "400").json(&container("e"));
    assert_eq!(client.send(throughput).await.status, StatusCode::CREATED);
    let offers = client.send(Call::get("/offers")).await.json();
    let offer = format!("/offers/{}", offers["Offers"][0]["id"].as_str().unwrap());
    for path in [
        "/dbs/d",
        "/dbs/d/colls/c",
        "/dbs/d/users/u",
        "/dbs/d/users/u/permissions/p",
        "/dbs/d/colls/c/triggers/t",
        "/dbs/d/clientencryptionkeys/k",
        &offer,
    ] {
        let read = client.send(Call::get(path)).await;
        let etag = read.header("etag").unwrap();
        let again = client.send(Call::get(path).header("if-none-match", etag)).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
        assert!(again.body.is_empty() && again.header("etag") == Some(etag), "{path}");
        let other = client.send(Call::get(path).header("if-none-match", "\"x\"")).await;
        assert_eq!(other.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_read_names_the_location_of_its_resource() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    for path in ["/dbs/d/colls/c/docs/1", "//dbs/d/colls/c", "/dbs/d"] {
        let read = client.send(Call::get(path).key(&json!(["a"]))).await;
        let expected = format!("http://localhost:8081/{}", path.trim_matches('/'));
        assert_eq!(read.header("content-location"), Some(&*expected));
    }
    let public_endpoint = Some("https://db.example:8443".to_owned());
    let client = Client::with_options(NosqlOptions { public_endpoint, ..NosqlOptions::default() }).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let read = client.send(Call::get("/dbs/d")).await;
    assert_eq!(read.header("content-location"), Some("https://db.example:8443/dbs/d"));
}
