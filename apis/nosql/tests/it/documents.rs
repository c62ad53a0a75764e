//! Single documents: create, read, upsert, replace, patch, delete, and their conditions.

use crate::client::{Call, Client, DOCS, NOW};
use http::StatusCode;
use serde_json::{Value as Json, json};

fn item(id: &str) -> String {
    format!("{DOCS}/{id}")
}

fn key() -> Json {
    json!(["a"])
}

#[tokio::test]
async fn a_new_item_carries_system_properties_and_headers() {
    let client = Client::with_container().await;
    let body = json!({ "id": "1", "pk": "a", "x": [1, 2.5, null], "_etag": "old", "_ts": 1, "_own": 7 });
    let answer = client.send(Call::post(DOCS).key(&key()).json(&body)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let made = answer.json();
    assert_eq!((&made["x"], &made["_own"]), (&body["x"], &body["_own"]));
    assert_eq!((&made["_ts"], &made["_attachments"]), (&json!(NOW), &json!("attachments/")));
    let container = client.send(Call::get("/dbs/d/colls/c")).await.json();
    let rid = made["_rid"].as_str().unwrap();
    assert_eq!(made["_self"], format!("{}docs/{rid}/", container["_self"].as_str().unwrap()));
    assert_eq!(answer.header("etag").unwrap(), made["_etag"]);
    assert_eq!(answer.header("x-ms-alt-content-path"), Some("dbs/d/colls/c"));
    assert_eq!(answer.header("x-ms-content-path").unwrap(), container["_rid"]);
    let lsn = answer.header("lsn").unwrap().to_owned();
    assert!(lsn.parse::<u64>().unwrap() > 0);
    assert_eq!(answer.header("x-ms-session-token").unwrap(), format!("0:0#{lsn}"));
    assert_eq!(answer.header("x-ms-documentdb-partitionkeyrangeid"), Some("0"));
    assert_eq!(answer.header("x-ms-request-charge"), Some("5.42"));
    assert_eq!(answer.header("content-length").unwrap(), answer.body.len().to_string());
    assert_eq!(answer.header("content-type"), Some("application/json"));

    let read = client.send(Call::get(&item("1")).key(&key())).await;
    assert_eq!((read.status, read.json()), (StatusCode::OK, made));
    assert_eq!(read.header("x-ms-request-charge"), Some("1.00"));
    assert_eq!(read.header("x-ms-session-token").unwrap(), format!("0:0#{lsn}"));
}

#[tokio::test]
async fn an_item_is_found_by_its_self_link() {
    let client = Client::with_container().await;
    let made = client.put_item("1", "a").await.json();
    let rid = made["_rid"].as_str().unwrap().to_lowercase();
    let link = format!("/{}", made["_self"].as_str().unwrap());
    let read = client.send(Call::get(&link).key(&key()).signed_as("docs", &rid)).await;
    assert_eq!(read.json(), made);
    let deleted = client.send(Call::delete(&link).key(&key()).signed_as("docs", &rid)).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(client.send(Call::get(&item("1")).key(&key())).await.code(), (404, 0));
}

#[tokio::test]
async fn absence_and_conflict_have_their_codes() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let again = client.send(Call::post(DOCS).key(&key()).json(&json!({ "id": "1", "pk": "a" }))).await;
    assert_eq!(again.code(), (409, 0));
    let only_new =
        Call::post(DOCS).key(&key()).header("if-none-match", "*").json(&json!({ "id": "1", "pk": "a" }));
    assert_eq!(client.send(only_new.clone()).await.code(), (409, 0));
    let only_new = only_new.header("x-ms-documentdb-is-upsert", "True");
    assert_eq!(client.send(only_new).await.code(), (412, 0));
    client.put_item("1", "b").await;
    let body = json!({ "id": "2", "pk": "a" });
    for call in [
        Call::get(&item("2")).key(&key()),
        Call::delete(&item("2")).key(&key()),
        Call::put(&item("2")).key(&key()).json(&body),
        Call::patch(&item("2")).key(&key()).json(&json!([{ "op": "set", "path": "/x", "value": 1 }])),
    ] {
        let answer = client.send(call).await;
        assert_eq!(answer.code(), (404, 0), "{answer:?}");
        assert_eq!(answer.json()["code"], "NotFound");
    }
    assert_eq!(client.send(Call::get("/dbs/d/colls/x/docs/1").key(&key())).await.code(), (404, 1003));
    assert_eq!(client.send(Call::get("/dbs/x/colls/c/docs/1").key(&key())).await.code(), (404, 1003));
}

#[tokio::test]
async fn header_and_body_must_agree_on_the_key() {
    let client = Client::with_container().await;
    let body = json!({ "id": "1", "pk": "a" });
    let answer = client.send(Call::post(DOCS).key(&json!(["b"])).json(&body)).await;
    assert_eq!(answer.code(), (400, 1001));
    // The body is sufficient to find the key of a new item, but not of a stored one.
    assert_eq!(client.send(Call::post(DOCS).json(&body)).await.status, StatusCode::CREATED);
    for call in [Call::get(&item("1")), Call::delete(&item("1")), Call::put(&item("1")).json(&body)] {
        let answer = client.send(call).await;
        assert_eq!(answer.code(), (400, 0), "{answer:?}");
        assert!(answer.message().starts_with("PartitionKey value must be supplied"), "{answer:?}");
    }
}

#[tokio::test]
async fn keys_of_every_kind_find_their_item() {
    let client = Client::with_container().await;
    for (index, (value, header)) in [
        ("null", "[null]"),
        ("true", "[true]"),
        ("1.0", "[1]"),
        ("-2.5", "[-2.5]"),
        ("\"é\"", "[\"\\u00e9\"]"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!("{{\"id\":\"{index}\",\"pk\":{value}}}").into_bytes();
        let call = Call::post(DOCS).header("x-ms-documentdb-partitionkey", header).body(body);
        assert_eq!(client.send(call).await.status, StatusCode::CREATED, "{value}");
        let call = Call::get(&item(&index.to_string())).header("x-ms-documentdb-partitionkey", header);
        assert_eq!(client.send(call).await.status, StatusCode::OK, "{value}");
    }
    let call = Call::post(DOCS).header("x-ms-documentdb-partitionkey", "[{}]").json(&json!({ "id": "none" }));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn upsert_creates_and_then_replaces() {
    let client = Client::with_container().await;
    let upsert = |n: u32| {
        let call = Call::post(DOCS).key(&key()).header("x-ms-documentdb-is-upsert", "true");
        call.json(&json!({ "id": "1", "pk": "a", "n": n }))
    };
    assert_eq!(client.send(upsert(1)).await.status, StatusCode::CREATED);
    let second = client.send(upsert(2)).await;
    assert_eq!((second.status, &second.json()["n"]), (StatusCode::OK, &json!(2)));
}

#[tokio::test]
async fn versions_guard_every_write() {
    let client = Client::with_container().await;
    let first = client.put_item("1", "a").await;
    let etag = first.header("etag").unwrap();
    let body = json!({ "id": "1", "pk": "a", "n": 2 });
    let second = client.send(Call::put(&item("1")).key(&key()).header("if-match", etag).json(&body)).await;
    assert_eq!(second.status, StatusCode::OK, "{second:?}");
    assert_eq!(second.json()["_rid"], first.json()["_rid"]);
    let upsert = Call::post(DOCS).header("x-ms-documentdb-is-upsert", "true").json(&body);
    let patch = Call::patch(&item("1")).json(&json!([{ "op": "incr", "path": "/n", "value": 1 }]));
    for call in [Call::put(&item("1")).json(&body), upsert, patch.clone(), Call::delete(&item("1"))] {
        let answer = client.send(call.key(&key()).header("if-match", etag)).await;
        assert_eq!(answer.code(), (412, 0), "{answer:?}");
    }
    let any = client.send(patch.key(&key()).header("if-match", "*")).await;
    assert_eq!((any.status, &any.json()["n"]), (StatusCode::OK, &json!(3)));
}

#[tokio::test]
async fn a_known_version_is_not_sent_again() {
    let client = Client::with_container().await;
    let made = client.put_item("1", "a").await;
    let etag = made.header("etag").unwrap();
    let known = client.send(Call::get(&item("1")).key(&key()).header("if-none-match", etag)).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    assert_eq!(known.header("etag"), Some(etag));
    assert_eq!(known.header("x-ms-request-charge"), Some("1.00"));
    assert!(known.body.is_empty() && known.header("content-length").is_none());
    let other = client.send(Call::get(&item("1")).key(&key()).header("if-none-match", "\"x\"")).await;
    assert_eq!(other.status, StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_prefers_little_gets_no_body() {
    let client = Client::with_container().await;
    let body = json!({ "id": "1", "pk": "a" });
    let minimal = |call: Call| call.key(&key()).header("prefer", "return=minimal");
    for (call, status) in [
        (Call::post(DOCS).json(&body), 201),
        (Call::put(&item("1")).json(&body), 200),
        (Call::patch(&item("1")).json(&json!([{ "op": "set", "path": "/x", "value": 1 }])), 200),
    ] {
        let answer = client.send(minimal(call)).await;
        assert_eq!(answer.code(), (status, 0));
        assert!(answer.body.is_empty() && answer.header("etag").is_some());
        assert_eq!(answer.header("content-length"), Some("0"));
    }
    assert!(!client.send(minimal(Call::get(&item("1")))).await.body.is_empty());
}

#[tokio::test]
async fn patches_apply_in_order_or_not_at_all() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let patch = |body: Json| Call::patch(&item("1")).key(&key()).json(&body);
    let answer = client
        .send(patch(json!({ "operations": [
            { "op": "add", "path": "/list", "value": [1] },
            { "op": "add", "path": "/list/-", "value": 2 },
            { "op": "incr", "path": "/n", "value": 1.5 },
            { "op": "move", "from": "/list", "path": "/moved" },
        ]})))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!((&answer.json()["n"], &answer.json()["moved"]), (&json!(2.5), &json!([1, 2])));
    for operations in [
        json!([{ "op": "set", "path": "/n", "value": 9 }, { "op": "remove", "path": "/absent" }]),
        json!([{ "op": "set", "path": "/id", "value": "2" }]),
        json!([{ "op": "set", "path": "/pk", "value": "b" }]),
        json!([{ "op": "set", "path": "/_etag", "value": "b" }]),
        json!([]),
        json!({ "operations": 1 }),
        json!((0..11).map(|n| json!({ "op": "set", "path": "/n", "value": n })).collect::<Vec<_>>()),
    ] {
        assert_eq!(client.send(patch(operations.clone())).await.code(), (400, 0), "{operations}");
    }
    assert_eq!(client.send(Call::get(&item("1")).key(&key())).await.json()["n"], 2.5);
}

#[tokio::test]
async fn an_item_can_be_renamed_and_not_moved() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    client.put_item("taken", "a").await;
    let rid = client.send(Call::get(&item("1")).key(&key())).await.json()["_rid"].clone();
    let rename = |id: &str| Call::put(&item("1")).key(&key()).json(&json!({ "id": id, "pk": "a" }));
    assert_eq!(client.send(rename("taken")).await.code(), (409, 0));
    let renamed = client.send(rename("2")).await;
    assert_eq!((renamed.status, &renamed.json()["id"]), (StatusCode::OK, &json!("2")));
    assert_eq!(renamed.json()["_rid"], rid);
    assert_eq!(client.send(Call::get(&item("1")).key(&key())).await.code(), (404, 0));
    assert_eq!(client.send(Call::get(&item("2")).key(&key())).await.json()["_rid"], rid);
    assert_eq!(client.send(rename("3")).await.code(), (404, 0));
    client.put_item("1", "a").await;
    let moved = Call::put(&item("1")).key(&key()).json(&json!({ "id": "1", "pk": "b" }));
    assert_eq!(client.send(moved).await.code(), (400, 1001));
}

#[tokio::test]
async fn the_largest_item_fits_and_one_byte_more_does_not() {
    let client = Client::with_container().await;
    let padded = |size: usize| {
        let frame = "{\"id\":\"1\",\"pk\":\"a\",\"x\":\"\"}".len();
        format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":\"{}\"}}", "x".repeat(size - frame)).into_bytes()
    };
    let limit = 2 * 1024 * 1024;
    let call = Call::post(DOCS).key(&key()).body(padded(limit));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    let call = Call::post(DOCS).key(&key()).body(padded(limit + 1));
    let answer = client.send(call).await;
    assert_eq!(answer.code(), (413, 0));
    assert_eq!(answer.json()["code"], "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_session_ahead_of_the_store_is_refused() {
    let client = Client::with_container().await;
    let made = client.put_item("1", "a").await;
    let token = made.header("x-ms-session-token").unwrap();
    let read = |token: &str| Call::get(&item("1")).key(&key()).header("x-ms-session-token", token);
    assert_eq!(client.send(read(token)).await.status, StatusCode::OK);
    assert_eq!(client.send(read(&format!("{token}9"))).await.code(), (404, 1002));
    assert_eq!(client.send(read("77:0#99")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_item_may_come_in_binary_form() {
    let client = Client::with_container().await;
    // {"id": "1", "pk": "a", "_rid": null, "n": 7} with two names of the system dictionary.
    let binary = b"\x80\xEA\x11\x2C\x811\x82pk\x81a\x25\xD0\x81n\xC8\x07\x81m\xE0".to_vec();
    let post = |body: Vec<u8>| Call::post(DOCS).key(&key()).body(body);
    let made = client.send(post(binary.clone())).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let (id, n, m) = (&made.json()["id"], &made.json()["n"], &made.json()["m"]);
    assert_eq!((id, n, m), (&json!("1"), &json!(7), &json!([])));
    assert!(made.json()["_rid"].is_string());
    assert_eq!(client.send(Call::get(&item("1")).key(&key())).await.json(), made.json());
    assert_eq!(client.send(post(binary[..binary.len() - 1].to_vec())).await.code(), (400, 0));
    // References to a long string: small on the wire, too large for an item.
    let long = 50_000_u16;
    let mut body = vec![0x81, b's', 0xC1];
    body.extend(long.to_le_bytes());
    body.extend(vec![b'x'; long.into()]);
    body.extend([0x81, b'l', 0xE2, 60 * 3]);
    for _ in 0..60 {
        body.extend([0xC4, 8, 0]);
    }
    let mut bomb = vec![0x80, 0xEC];
    bomb.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    bomb.extend(body);
    assert_eq!(client.send(post(bomb)).await.code(), (413, 0));
}

#[tokio::test]
async fn ids_may_contain_characters_of_urls() {
    let client = Client::with_container().await;
    for (id, segment) in [
        ("Disallowed?Chars", "Disallowed%3FChars"),
        ("a/b", "a%2Fb"),
        ("a\\b", "a%5Cb"),
        ("a#b", "a%23b"),
        ("a%2Fb", "a%252Fb"),
        ("/", "%2F"),
        ("a\tb\r\n", "a%09b%0D%0A"),
    ] {
        let body = |n: i32| json!({ "id": id, "pk": "a", "n": n });
        let created = client.send(Call::post(DOCS).key(&key()).json(&body(1))).await;
        assert_eq!(created.status, StatusCode::CREATED, "{id}: {created:?}");
        let one = item(segment);
        let signed = |call: Call| call.key(&key()).signed_as("docs", &format!("dbs/d/colls/c/docs/{id}"));
        assert_eq!(client.send(signed(Call::get(&one))).await.json()["n"], 1, "{id}");
        assert_eq!(client.send(signed(Call::put(&one).json(&body(2)))).await.status, StatusCode::OK, "{id}");
        let link = format!("/{}", created.json()["_self"].as_str().unwrap());
        let rid = created.json()["_rid"].as_str().unwrap().to_lowercase();
        let by_rid = client.send(Call::get(&link).key(&key()).signed_as("docs", &rid)).await;
        assert_eq!((&by_rid.json()["n"], &by_rid.json()["id"]), (&json!(2), &json!(id)));
        let query = json!({ "query": "SELECT VALUE c.n FROM c WHERE c.id = @id",
                            "parameters": [{ "name": "@id", "value": id }] });
        let query = Call::post(DOCS).key(&key()).header("x-ms-documentdb-isquery", "true").json(&query);
        assert_eq!(client.send(query).await.json()["Documents"], json!([2]));
        let steps = json!([{ "operationType": "Read", "id": id }]);
        let batch = Call::post(DOCS).key(&key()).header("x-ms-cosmos-is-batch-request", "true");
        let batch = client.send(batch.header("x-ms-cosmos-batch-atomic", "true").json(&steps)).await;
        assert_eq!(batch.json()[0]["resourceBody"]["n"], 2);
        assert_eq!(client.send(signed(Call::delete(&one))).await.status, StatusCode::NO_CONTENT, "{id}");
    }
}

#[tokio::test]
async fn a_time_to_live_of_null_is_refused() {
    let client = Client::with_container().await;
    let body = json!({ "id": "1", "pk": "a", "ttl": null });
    assert_eq!(client.send(Call::post(DOCS).key(&key()).json(&body)).await.code(), (400, 0));
    client.put_item("1", "a").await;
    let patch = json!([{ "op": "add", "path": "/ttl", "value": null }]);
    assert_eq!(client.send(Call::patch(&item("1")).key(&key()).json(&patch)).await.code(), (400, 0));
}

#[tokio::test]
async fn positions_start_low_and_a_transaction_has_one() {
    let client = Client::with_container().await;
    let lsn = |answer: &crate::client::Answer| answer.header("lsn").unwrap().parse::<u64>().unwrap();
    let first = lsn(&client.put_item("1", "a").await);
    assert!(first < 10, "{first}");
    let create = |id: &str| json!({ "operationType": "Create", "resourceBody": { "id": id, "pk": "a" } });
    let batch = Call::post(DOCS).key(&key()).header("x-ms-cosmos-is-batch-request", "true");
    let batch = batch.header("x-ms-cosmos-batch-atomic", "true");
    let answer = client.send(batch.json(&json!([create("2"), create("3"), create("4")]))).await;
    assert_eq!((answer.status, lsn(&answer)), (StatusCode::OK, first + 1));
}

#[tokio::test]
async fn empty_members_of_a_session_token_are_skipped() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let read = |token: &str| Call::get(&item("1")).key(&key()).header("x-ms-session-token", token);
    assert_eq!(client.send(read("0:0#1,1:0#7,")).await.status, StatusCode::OK);
    assert_eq!(client.send(read("0:0#100000,1:0#7,")).await.code(), (404, 1002));
    assert_eq!(client.send(read("0:0#1,x")).await.code(), (400, 0));
}
