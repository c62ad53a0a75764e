//! Thousands of bad requests: every route with every field spoiled in every way that makes sense for it.
//!
//! Each must be refused with a status of its own kind, an error body and an activity id, and change nothing.

mod values;

use crate::client::{Answer, Call, Client, DOCS, NOW, container, date_at};
use http::{Method, StatusCode};
use serde_json::{Value as Json, json};
use values::{
    AUTOSCALES, BATCHES, CONTAINERS, CONTINUATIONS, COUNTS, DATABASES, ITEMS, KEYS, PATCHES, RANGES, RATES,
    RIDS, SESSIONS, VERSIONS,
};

const COLLECTION: &str = "/dbs/d/colls/c";
const ITEM: &str = "/dbs/d/colls/c/docs/1";

/// A good request and what can be spoiled about it.
struct Good {
    call: Call,
    fields: &'static [Field],
}

/// A part of a request that a route reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// The partition key header, needed.
    Key,
    /// The partition key header, which may be absent.
    OptionalKey,
    Session,
    Page,
    Range,
    Version,
    Throughput,
    IntendedContainer,
    DatabaseBody,
    ContainerBody,
    ItemBody,
    PatchBody,
    BatchBody,
}

use Field::{
    BatchBody, ContainerBody, DatabaseBody, IntendedContainer, ItemBody, Key, OptionalKey, Page, PatchBody,
    Range, Session, Throughput, Version,
};

fn item_body() -> Json {
    json!({ "id": "new", "pk": "a", "ttl": 60, "x": { "y": [1, 2] } })
}

fn stored_body() -> Json {
    json!({ "id": "1", "pk": "a", "ttl": 60, "x": { "y": [1, 2] } })
}

fn full_container(id: &str) -> Json {
    let mut body = container(id);
    body["defaultTtl"] = json!(60);
    body["indexingPolicy"] = json!({ "indexingMode": "consistent", "includedPaths": [{ "path": "/*" }] });
    body
}

fn steps() -> Json {
    json!([
        { "operationType": "Create", "resourceBody": { "id": "new", "pk": "a" }, "partitionKey": "[\"a\"]" },
        { "operationType": "Delete", "id": "1", "partitionKey": "[\"a\"]" },
    ])
}

fn good_requests() -> Vec<Good> {
    let key = json!(["a"]);
    let good = |call: Call, fields: &'static [Field]| Good { call, fields };
    let batch = |atomic: &str| {
        let call = Call::post(DOCS).header("x-ms-cosmos-is-batch-request", "true");
        call.header("x-ms-cosmos-batch-atomic", atomic).json(&steps())
    };
    let patch = json!({ "operations": [{ "op": "set", "path": "/x", "value": 1 }] });
    vec![
        good(Call::get("/"), &[]),
        good(Call::get("/dbs"), &[Page]),
        good(Call::post("/dbs").json(&json!({ "id": "new" })), &[DatabaseBody, Throughput]),
        good(Call::get("/dbs/d"), &[]),
        good(Call::delete("/dbs/d"), &[Version]),
        good(Call::get("/dbs/d/colls"), &[Page]),
        good(Call::post("/dbs/d/colls").json(&full_container("new")), &[ContainerBody, Throughput]),
        good(Call::get(COLLECTION), &[]),
        good(Call::put(COLLECTION).json(&full_container("c")), &[ContainerBody, Version]),
        good(Call::delete(COLLECTION), &[Version]),
        good(Call::get("/dbs/d/colls/c/pkranges"), &[IntendedContainer]),
        good(Call::get("/offers"), &[Page]),
        good(Call::get("/offers/AQAA"), &[]),
        good(Call::get(DOCS), &[Page, Session, OptionalKey, Range, IntendedContainer]),
        good(Call::post(DOCS).key(&key).json(&item_body()), &[ItemBody, OptionalKey, IntendedContainer]),
        good(
            Call::post(DOCS).key(&key).header("x-ms-documentdb-is-upsert", "true").json(&stored_body()),
            &[ItemBody, OptionalKey, IntendedContainer, Version],
        ),
        good(Call::get(ITEM).key(&key), &[Key, Session, IntendedContainer]),
        good(Call::put(ITEM).key(&key).json(&stored_body()), &[ItemBody, Key, IntendedContainer, Version]),
        good(Call::patch(ITEM).key(&key).json(&patch), &[PatchBody, Key, IntendedContainer, Version]),
        good(Call::delete(ITEM).key(&key), &[Key, IntendedContainer, Version]),
        good(batch("true").key(&key), &[BatchBody, Key, IntendedContainer]),
        good(batch("false").header("x-ms-documentdb-partitionkeyrangeid", "0"), &[BatchBody, Range]),
        good(Call::post("/dbs/d/colls/c/operations/partitionkeydelete").key(&key), &[Key, IntendedContainer]),
    ]
}

async fn account() -> Client {
    let client = Client::with_container().await;
    for id in ["1", "2"] {
        client.put_item(id, "a").await;
    }
    client
}

/// All that a client can see.
async fn everything(client: &Client) -> Vec<Answer> {
    let mut seen = Vec::new();
    for path in ["/dbs", "/dbs/d/colls", "/offers", DOCS] {
        seen.push(client.send(Call::get(path)).await);
    }
    seen
}

/// Each request is good before it is spoiled, or its refusal would prove nothing.
#[tokio::test]
async fn the_unspoiled_requests_are_good() {
    for good in good_requests() {
        let client = account().await;
        let name = format!("{} {}", good.call.verb, good.call.path);
        let answer = client.send(good.call).await;
        assert!(answer.status.is_success(), "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn every_spoiled_request_is_refused_and_changes_nothing() {
    let client = account().await;
    let before = everything(&client).await;
    let mut count = 0;
    for good in good_requests() {
        for (name, call) in spoiled(&good) {
            let title = format!("{} {}: {name}", call.verb, call.path);
            check(&title, &client.send(call).await);
            count += 1;
        }
    }
    let after = everything(&client).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.status, &before.body), (after.status, &after.body));
    }
    assert!(count >= 1000, "{count} bad requests");
}

#[track_caller]
fn check(title: &str, answer: &Answer) {
    assert!(answer.status.is_client_error(), "{title}: {} {answer:?}", answer.status);
    assert_ne!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{title}");
    let body = answer.json();
    assert!(body["code"].as_str().is_some_and(|code| !code.is_empty()), "{title}");
    let activity = answer.header("x-ms-activity-id").unwrap();
    assert_eq!(activity.len(), 36, "{title}");
    assert!(answer.message().contains(activity), "{title}");
    assert!(answer.message().chars().count() < 1200, "{title}");
    assert!(answer.header("x-ms-request-charge").is_some(), "{title}");
    assert_eq!(answer.header("content-length").unwrap(), answer.body.len().to_string(), "{title}");
}

/// All spoiled forms of a request, with what was done to each.
fn spoiled(good: &Good) -> Vec<(String, Call)> {
    let mut calls = spoiled_credentials(&good.call);
    calls.extend(spoiled_shapes(&good.call));
    for field in good.fields {
        calls.extend(match field {
            Key => [spoiled_keys(&good.call), vec![absent_key(&good.call)]].concat(),
            OptionalKey => spoiled_keys(&good.call),
            Session => with_headers(&good.call, "x-ms-session-token", SESSIONS),
            Page => [
                with_headers(&good.call, "x-ms-max-item-count", COUNTS),
                with_headers(&good.call, "x-ms-continuation", CONTINUATIONS),
            ]
            .concat(),
            Range => [
                with_headers(&good.call, "x-ms-documentdb-partitionkeyrangeid", RANGES),
                with_headers(&good.call, "x-ms-documentdb-partitionkeyrangeid", &[b"9"]),
            ]
            .concat(),
            Version => with_headers(&good.call, "if-match", VERSIONS),
            Throughput => [
                with_headers(&good.call, "x-ms-offer-throughput", RATES),
                with_headers(&good.call, "x-ms-cosmos-offer-autopilot-settings", AUTOSCALES),
            ]
            .concat(),
            IntendedContainer => with_headers(&good.call, "x-ms-cosmos-intended-collection-rid", RIDS),
            DatabaseBody => spoiled_bodies(&good.call, DATABASES),
            ContainerBody => spoiled_bodies(&good.call, CONTAINERS),
            ItemBody => spoiled_bodies(&good.call, ITEMS),
            PatchBody => spoiled_bodies(&good.call, PATCHES),
            BatchBody => spoiled_bodies(&good.call, BATCHES),
        });
    }
    calls
}

fn with_headers(call: &Call, name: &str, values: &[&[u8]]) -> Vec<(String, Call)> {
    let named = |value: &&[u8]| {
        (format!("{name} = {}", String::from_utf8_lossy(value)), call.clone().header(name, value))
    };
    values.iter().map(named).collect()
}

fn spoiled_keys(call: &Call) -> Vec<(String, Call)> {
    let name = "x-ms-documentdb-partitionkey";
    let mut calls = with_headers(call, name, KEYS);
    let long = format!("[\"{}\"]", "k".repeat(2049));
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    calls.extend(with_headers(call, name, &[long.as_bytes(), deep.as_bytes()]));
    calls
}

fn absent_key(call: &Call) -> (String, Call) {
    ("no partition key".to_owned(), call.clone().without_header("x-ms-documentdb-partitionkey"))
}

fn spoiled_credentials(call: &Call) -> Vec<(String, Call)> {
    let mut calls = vec![
        ("no credential".to_owned(), call.clone().omit("authorization")),
        ("no date".to_owned(), call.clone().omit("x-ms-date")),
        ("another's signature".to_owned(), call.clone().signed_as("docs", "dbs/e/colls/f")),
    ];
    let signature = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let credentials = [
        "x".to_owned(),
        "type%3Dmaster".to_owned(),
        format!("type=master&ver=1.0&sig={signature}"),
        format!("type=master&ver=9.0&sig={signature}"),
        format!("type=resource&ver=1.0&sig={signature}"),
        format!("type=aad&ver=1.0&sig={signature}"),
        format!("type=master&ver=1.0&sig={signature}{signature}"),
        "type=master&ver=1.0&sig=".to_owned(),
        "type=master&ver=1.0&sig=%zz".to_owned(),
        format!("type=master&type=master&ver=1.0&sig={signature}"),
    ];
    for credential in credentials {
        calls.push((format!("credential {credential}"), call.clone().header("authorization", &credential)));
    }
    calls.push(("credential in no text".to_owned(), call.clone().header("authorization", b"type=\xFF")));
    for date in ["now", "0", "2023-11-14T22:13:20Z", &date_at(NOW - 901), &date_at(NOW + 901), &date_at(0)] {
        calls.push((format!("date {date}"), call.clone().header("x-ms-date", date)));
    }
    calls
}

fn spoiled_shapes(call: &Call) -> Vec<(String, Call)> {
    let mut calls = with_headers(
        call,
        "x-ms-consistency-level",
        &[b"Strong", b"BoundedStaleness", b"Best", b"1", b"\xFF"],
    );
    let verb = Method::from_bytes(b"BREW").unwrap();
    calls.push(("unknown verb".to_owned(), Call { verb, ..call.clone() }));
    for suffix in ["//", "/x/y/z", "/%zz", "/%ff%fe", "/x%"] {
        let path = format!("{}{suffix}", call.path.trim_end_matches('/'));
        if path != "//" {
            calls.push((format!("path {path}"), Call { path, ..call.clone() }));
        }
    }
    calls.push(("large header".to_owned(), call.clone().header("x-filler", "x".repeat(40_000))));
    calls
}

/// Bodies that are no JSON or not of this kind, and bodies with one member wrong or missing.
fn spoiled_bodies(call: &Call, members: &[(&str, &[&str])]) -> Vec<(String, Call)> {
    let text = String::from_utf8(call.body.clone()).unwrap();
    let mut bodies: Vec<(String, Vec<u8>)> = Vec::new();
    for whole in
        ["", " ", "null", "true", "1", "\"x\"", "{", "[", "}", "{}", "[[]]", "{\"id\":}", "\u{FEFF}{}"]
    {
        bodies.push((format!("body {whole}"), whole.as_bytes().to_vec()));
    }
    bodies.push(("body cut short".to_owned(), text.as_bytes()[..text.len() - 1].to_vec()));
    bodies.push(("body and more".to_owned(), format!("{text} x").into_bytes()));
    bodies.push(("body in no text".to_owned(), b"{\"id\":\"\xC3\x28\"}".to_vec()));
    if text.starts_with('{') {
        for levels in [128, 100_000] {
            let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            bodies.push((format!("{levels} levels below"), with_member(&text, "/deep", &deep)));
        }
    }
    if members.iter().any(|(pointer, _)| *pointer == "/id") {
        let long = format!("\"{}\"", "n".repeat(1024));
        bodies.push(("long id".to_owned(), with_member(&text, "/id", &long)));
    }
    for (pointer, values) in members {
        for value in *values {
            bodies.push((format!("{pointer} = {value}"), with_member(&text, pointer, value)));
        }
    }
    bodies.into_iter().map(|(name, body)| (name, call.clone().body(body))).collect()
}

/// `text` with the value at `pointer` replaced by the raw text `value`, which may be no JSON.
fn with_member(text: &str, pointer: &str, value: &str) -> Vec<u8> {
    const MARK: &str = "the place of the value";
    let mut json: Json = serde_json::from_str(text).unwrap();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = json.pointer_mut(parent).unwrap();
    if let Json::Array(elements) = parent {
        elements[name.parse::<usize>().unwrap()] = MARK.into();
    } else {
        parent[name] = MARK.into();
    }
    json.to_string().replace(&format!("\"{MARK}\""), value).into_bytes()
}
