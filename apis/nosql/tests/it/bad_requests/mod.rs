//! Thousands of bad requests: every route with every field spoiled in every way that makes sense for it.
//!
//! Each must be refused with an appropriate status, an error body and an activity id, and change nothing.

mod values;

use crate::client::{Answer, Call, Client, DOCS, NOW, container, date_at};
use http::{Method, StatusCode};
use serde_json::{Value as Json, json};
use values::{
    AUTOSCALES, BATCHES, CONTAINERS, CONTINUATIONS, COUNTS, DATABASES, ENCRYPTION_KEYS, FLAGS, ITEMS, KEYS,
    LIVES, OFFERS, PATCHES, PERMISSIONS, POSITIONS, QUERIES, RANGES, RATES, RIDS, SCRIPTS, SESSIONS, TIMES,
    TRIGGERS, VERSIONS,
};

const COLLECTION: &str = "/dbs/d/colls/c";
const ITEM: &str = "/dbs/d/colls/c/docs/1";

/// A good request and the parts that can be spoiled.
struct Good {
    call: Call,
    fields: &'static [Field],
}

/// A part of a request that a route reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// The partition key header, required.
    Key,
    /// The partition key header, optional.
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
    PermissionBody,
    ScriptBody,
    TriggerBody,
    EncryptionKeyBody,
    OfferBody,
    QueryBody,
    /// The lifetime of a token.
    Life,
    Upsert,
    Migration,
    Quota,
    /// The headers of a query.
    QueryFlags,
    /// The headers of a change feed.
    Changes,
    /// A kind of feed, optional.
    Kind,
    /// An interval of effective keys.
    Interval,
}

use Field::{
    BatchBody, Changes, ContainerBody, DatabaseBody, EncryptionKeyBody, IntendedContainer, Interval,
    ItemBody, Key, Kind, Life, Migration, OfferBody, OptionalKey, Page, PatchBody, PermissionBody, QueryBody,
    QueryFlags, Quota, Range, ScriptBody, Session, Throughput, TriggerBody, Upsert, Version,
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

fn permission(id: &str, item: &str) -> Json {
    let resource = format!("dbs/d/colls/c/docs/{item}");
    json!({ "id": id, "permissionMode": "All", "resource": resource, "resourcePartitionKey": ["a"] })
}

fn script(id: &str) -> Json {
    json!({ "id": id, "body": "function () {}" })
}

fn trigger(id: &str) -> Json {
    json!({ "id": id, "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All" })
}

fn encryption_key(id: &str) -> Json {
    json!({
        "id": id,
        "encryptionAlgorithm": "A",
        "wrappedDataEncryptionKey": "AQID",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "a" },
    })
}

const USERS: &str = "/dbs/d/users";
const USER: &str = "/dbs/d/users/u";
const PERMISSION_LIST: &str = "/dbs/d/users/u/permissions";
const PERMISSION: &str = "/dbs/d/users/u/permissions/p";
const ENCRYPTION_KEY_LIST: &str = "/dbs/d/clientencryptionkeys";

/// Requests about users, permissions, scripts, keys, conflicts and changes of offers.
fn good_small_requests() -> Vec<Good> {
    let good = |call: Call, fields: &'static [Field]| Good { call, fields };
    let offer = json!({ "content": { "offerThroughput": 500 } });
    let mut requests = vec![
        good(Call::get(USERS), &[Page]),
        good(Call::post(USERS).json(&json!({ "id": "new" })), &[DatabaseBody, Upsert]),
        good(Call::get(USER), &[]),
        good(Call::put(USER).json(&json!({ "id": "other" })), &[DatabaseBody, Version]),
        good(Call::delete(USER), &[Version]),
        good(Call::get(PERMISSION_LIST), &[Page, Life]),
        good(Call::post(PERMISSION_LIST).json(&permission("new", "2")), &[PermissionBody, Life, Upsert]),
        good(Call::get(PERMISSION), &[Life]),
        good(Call::put(PERMISSION).json(&permission("p", "2")), &[PermissionBody, Version, Life]),
        good(Call::delete(PERMISSION), &[Version]),
        good(Call::get(ENCRYPTION_KEY_LIST), &[Page]),
        good(Call::post(ENCRYPTION_KEY_LIST).json(&encryption_key("new")), &[EncryptionKeyBody]),
        good(Call::get("/dbs/d/clientencryptionkeys/k"), &[]),
        good(
            Call::put("/dbs/d/clientencryptionkeys/k").json(&encryption_key("k")),
            &[EncryptionKeyBody, Version],
        ),
        good(Call::get("/dbs/d/colls/c/conflicts"), &[Page, IntendedContainer]),
        good(Call::put("/offers/AQAA").json(&offer), &[OfferBody, Version, Migration]),
    ];
    for (kind, body, field) in [
        ("sprocs", script as fn(&str) -> Json, &[ScriptBody, IntendedContainer, Upsert] as &'static [Field]),
        ("triggers", trigger, &[TriggerBody, IntendedContainer, Upsert]),
        ("udfs", script, &[ScriptBody, IntendedContainer, Upsert]),
    ] {
        let (list, one) = (format!("/dbs/d/colls/c/{kind}"), format!("/dbs/d/colls/c/{kind}/s"));
        let replace: &'static [Field] =
            if kind == "triggers" { &[TriggerBody, Version] } else { &[ScriptBody, Version] };
        requests.push(good(Call::get(&list), &[Page, IntendedContainer]));
        requests.push(good(Call::post(&list).json(&body("new")), field));
        requests.push(good(Call::get(&one), &[IntendedContainer]));
        requests.push(good(Call::put(&one).json(&body("s")), replace));
        requests.push(good(Call::delete(&one), &[Version]));
    }
    requests
}

/// Queries over items and over all lists.
fn good_queries() -> Vec<Good> {
    let body = json!({
        "query": "SELECT * FROM c WHERE c.n = @n ORDER BY c.n OFFSET 0 LIMIT @n",
        "parameters": [{ "name": "@n", "value": 1 }],
    });
    let query = |path: &str| Call::post(path).header("x-ms-documentdb-isquery", "true").json(&body);
    let everywhere = |call: Call| {
        call.header("x-ms-documentdb-query-enablecrosspartition", "true")
            .header("x-perihelion-compatibility", "relaxed")
    };
    let plan = Call::post(DOCS)
        .header("x-ms-cosmos-is-query-plan-request", "true")
        .header("x-ms-cosmos-supported-query-features", "OrderBy, OffsetAndLimit")
        .json(&body);
    let mut requests = vec![
        Good {
            call: everywhere(query(DOCS)),
            fields: &[QueryBody, QueryFlags, Page, Session, OptionalKey, Range, IntendedContainer],
        },
        Good { call: query(DOCS).key(&json!(["a"])), fields: &[QueryBody, Page] },
        Good { call: plan, fields: &[QueryBody, OptionalKey, IntendedContainer] },
    ];
    let lists = ["/dbs", "/dbs/d/colls", "/offers", USERS, PERMISSION_LIST, ENCRYPTION_KEY_LIST];
    let scripts = ["/dbs/d/colls/c/sprocs", "/dbs/d/colls/c/triggers", "/dbs/d/colls/c/udfs"];
    for path in lists.into_iter().chain(scripts).chain(["/dbs/d/colls/c/conflicts"]) {
        requests.push(Good { call: query(path), fields: &[QueryBody, Page] });
    }
    requests
}

fn good_requests() -> Vec<Good> {
    let mut requests = good_large_requests();
    requests.extend(good_small_requests());
    requests.extend(good_queries());
    requests
}

/// Requests about the account, databases, containers and items.
fn good_large_requests() -> Vec<Good> {
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
        good(Call::get(COLLECTION), &[Quota]),
        good(Call::put(COLLECTION).json(&full_container("c")), &[ContainerBody, Version]),
        good(Call::delete(COLLECTION), &[Version]),
        good(Call::get("/dbs/d/colls/c/pkranges"), &[IntendedContainer, Kind]),
        good(
            Call::get(DOCS).header("a-im", "Incremental feed"),
            &[Changes, Kind, Session, OptionalKey, Range, Interval, IntendedContainer],
        ),
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
    client.create(USERS, json!({ "id": "u" })).await;
    client.create(PERMISSION_LIST, permission("p", "1")).await;
    client.create(ENCRYPTION_KEY_LIST, encryption_key("k")).await;
    for kind in ["sprocs", "triggers", "udfs"] {
        client.create(&format!("/dbs/d/colls/c/{kind}"), trigger("s")).await;
    }
    client
}

/// Everything that a client can see.
async fn everything(client: &Client) -> Vec<Answer> {
    let mut seen = Vec::new();
    let scripts = ["/dbs/d/colls/c/sprocs", "/dbs/d/colls/c/triggers", "/dbs/d/colls/c/udfs"];
    let lists = ["/dbs", "/dbs/d/colls", "/offers", DOCS, USERS, PERMISSION_LIST, ENCRYPTION_KEY_LIST];
    for path in lists.into_iter().chain(scripts) {
        seen.push(client.send(Call::get(path)).await);
    }
    seen
}

/// Each request is good before it is spoiled; otherwise its refusal would prove nothing.
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
    assert!(count >= 2000, "{count} bad requests");
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

/// All spoiled forms of a request, with a description of each.
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
            PermissionBody => spoiled_bodies(&good.call, PERMISSIONS),
            ScriptBody => spoiled_bodies(&good.call, SCRIPTS),
            TriggerBody => spoiled_bodies(&good.call, TRIGGERS),
            EncryptionKeyBody => spoiled_bodies(&good.call, ENCRYPTION_KEYS),
            OfferBody => spoiled_bodies(&good.call, OFFERS),
            QueryBody => [spoiled_bodies(&good.call, QUERIES), spoiled_queries(&good.call)].concat(),
            QueryFlags => [
                with_headers(&good.call, "x-ms-documentdb-query-enablecrosspartition", FLAGS),
                with_headers(&good.call, "x-ms-documentdb-query-enablecrosspartition", &[b"false"]),
                with_headers(&good.call, "x-ms-documentdb-populatequerymetrics", FLAGS),
                with_headers(&good.call, "x-perihelion-compatibility", &[b"x", b"Strict", b"\xFF"]),
                with_headers(&good.call, "x-ms-start-epk", &[b"x", b"0", b"\xFF"]),
                with_headers(&good.call, "x-ms-end-epk", &[b"x", b"0", b"\xFF"]),
            ]
            .concat(),
            Changes => [
                with_headers(&good.call, "if-none-match", POSITIONS),
                with_headers(&good.call, "if-modified-since", TIMES),
                with_headers(&good.call, "if-modified-since", &[date_at(NOW + 3600).as_bytes()]),
                with_headers(&good.call, "x-ms-max-item-count", COUNTS),
                with_headers(
                    &good.call,
                    "x-ms-cosmos-changefeed-wire-format-version",
                    &[b"x", b"2021-09-16", b"\xFF"],
                ),
                // Without a retention there is no history.
                with_headers(&good.call, "a-im", &[b"Full-Fidelity Feed"]),
            ]
            .concat(),
            Kind => with_headers(&good.call, "a-im", &[b"x", b"Incremental", b"feed", b"\xFF"]),
            Interval => {
                let inverted = good.call.clone().header("x-ms-start-epk", "30").header("x-ms-end-epk", "10");
                let of_range = inverted.clone().header("x-ms-documentdb-partitionkeyrangeid", "0");
                let bounds = ["x-ms-start-epk", "x-ms-end-epk"];
                let bounds = bounds.map(|name| with_headers(&good.call, name, &[b"x", b"0", b"1G", b"\xFF"]));
                let inverted = [inverted, of_range].map(|call| ("an inverted interval".to_owned(), call));
                [bounds.concat(), inverted.to_vec()].concat()
            }
            Life => with_headers(&good.call, "x-ms-documentdb-expiry-seconds", LIVES),
            Upsert => with_headers(&good.call, "x-ms-documentdb-is-upsert", FLAGS),
            Quota => with_headers(&good.call, "x-ms-documentdb-populatequotainfo", FLAGS),
            Migration => [
                with_headers(&good.call, "x-ms-cosmos-migrate-offer-to-autopilot", FLAGS),
                // It is already manual.
                with_headers(&good.call, "x-ms-cosmos-migrate-offer-to-manual-throughput", &[b"true", b"2"]),
            ]
            .concat(),
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

/// Texts and numbers of parameters above their limits.
fn spoiled_queries(call: &Call) -> Vec<(String, Call)> {
    let long = format!("SELECT * FROM c{}", " ".repeat(512 * 1024));
    let deep = format!("SELECT VALUE {}1{} FROM c", "(".repeat(50_000), ")".repeat(50_000));
    let wide = format!("SELECT VALUE c FROM c WHERE {}", vec!["c.a"; 2_001].join(" OR "));
    let joined = format!("SELECT VALUE 1 FROM c {}", "JOIN t IN c.a ".repeat(11));
    let texts = [("long", long), ("deep", deep), ("wide", wide), ("joined", joined)];
    let bodies = texts.into_iter().map(|(name, text)| (name, json!({ "query": text })));
    let many: Vec<Json> =
        (0..10_001).map(|number| json!({ "name": format!("@p{number}"), "value": 1 })).collect();
    let many = ("many parameters", json!({ "query": "SELECT VALUE 1", "parameters": many }));
    let named = |(name, body): (&str, Json)| (name.to_owned(), call.clone().json(&body));
    bodies.chain([many]).map(named).collect()
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

/// Bodies that are not JSON or not of this kind, and bodies with one wrong or missing member.
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

/// `text` with the value at `pointer` replaced by the raw text `value`, which may be invalid JSON.
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
