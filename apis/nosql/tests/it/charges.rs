//! `tests-data/charges/*.txt`: status and charge of requests.
//!
//! ```text
//! container {"partitionKey": …}         an empty container `c`, keyed by `/pk` unless it says otherwise
//!
//! create {"id": "1", "pk": "a"}
//! | 201 5.14
//! ```
//!
//! A string `~1000` in a document stands for a thousand characters. The requests of a file are sent in order, each of
//! them twice if it changes nothing: the same request on the same state costs the same. Members of a container that are
//! not of its definition are `throughput`, `consistency` (of the account) and `enforced`. `as LEVEL` before a request
//! asks for a consistency level, `unsigned` sends it without a credential. A verb in capitals is sent as it is, with
//! path and body.

use crate::client::{Answer, Call, Client, DOCS, container};
use crate::execution;
use crate::text_cases::TextCases;
use engine::script::Limits;
use engine::{EngineOptions, ThroughputMode};
use http::{Method, StatusCode};
use nosql::{Compatibility, NosqlOptions};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 150;

#[tokio::test]
async fn requests_cost_what_the_files_say() {
    let mut cases = TextCases::of("charges");
    for blocks in cases.files() {
        let mut client = Client::with_container().await;
        // Where the last page of a change feed has ended.
        let mut position = String::new();
        for block in blocks {
            let Some(&request) = block.lines().first() else { continue };
            match request.split_once(' ').unwrap_or((request, "")) {
                ("container", text) => client = with_definition(text).await,
                ("fill", text) => fill(&client, text).await,
                ("exhaust", _) => exhaust(&client).await,
                (verb, text) => {
                    let call = call(verb, text, &position);
                    let answer = client.send(call.clone()).await;
                    let found = found(&answer);
                    if matches!(verb, "read" | "query" | "list" | "unchanged" | "as" | "GET" | "feed") {
                        assert_eq!(found, self::found(&client.send(call).await), "{request}");
                    }
                    if let Some(etag) = answer.header("etag").filter(|_| verb == "feed") {
                        etag.clone_into(&mut position);
                    }
                    cases.check(&block, &block.with_lines(request, &[format!("| {found}")]));
                }
            }
        }
    }
    cases.finish(CASES_MIN);
}

fn found(answer: &Answer) -> String {
    let charge = answer.header("x-ms-request-charge").expect("every answer has a charge");
    let status = answer.status.as_u16();
    if !answer.body.starts_with(b"[") {
        return format!("{status} {charge}");
    }
    let steps = answer.json();
    let step = |step: &Json| format!("{} {}", step["statusCode"], step["requestCharge"]);
    let steps: Vec<String> = steps.as_array().unwrap().iter().map(step).collect();
    format!("{status} {charge}: {}", steps.join(", "))
}

/// A client with a container that executes scripts.
async fn with_definition(text: &str) -> Client {
    let mut definition = container("c");
    let Json::Object(members) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
    let mut call = Call::post("/dbs/d/colls");
    let mut options = NosqlOptions { compatibility: Compatibility::Relaxed, ..NosqlOptions::default() };
    let time = Duration::from_secs(60);
    let limits = Limits { time, wait_max: time * 5, ..Limits::for_cores(1) };
    let mut engine = EngineOptions { scripts: Some(execution::options(limits)), ..EngineOptions::default() };
    for (name, value) in members {
        match name.as_str() {
            "throughput" => call = call.header("x-ms-offer-throughput", value.to_string()),
            "consistency" => options.consistency = value.as_str().unwrap().parse().unwrap(),
            "enforced" => engine.throughput = ThroughputMode::Enforce,
            _ => definition[name] = value,
        }
    }
    let client = Client::with_engine(options, engine).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let answer = client.send(call.json(&definition)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    client
}

/// Documents 0 to n - 1 of about a kilobyte; `group` has ten values.
async fn fill(client: &Client, count: &str) {
    for number in 0..count.parse::<usize>().unwrap() {
        let document = json!({
            "id": number.to_string(), "pk": format!("p{}", number % 7), "n": number,
            "group": number % 10, "text": "x".repeat(900),
        });
        client.create(DOCS, document).await;
    }
}

/// Creates items until the throughput is used up.
async fn exhaust(client: &Client) {
    for id in 0..1000 {
        let item = json!({ "id": format!("e{id}"), "pk": "a", "text": "x".repeat(100_000) });
        match client.send(Call::post(DOCS).json(&item)).await.status {
            StatusCode::CREATED => {}
            StatusCode::TOO_MANY_REQUESTS => return,
            other => panic!("{other}"),
        }
    }
    panic!("nothing is refused");
}

fn call(verb: &str, text: &str, position: &str) -> Call {
    let nested = |text: &str| {
        let (verb, text) = text.split_once(' ').unwrap_or((text, ""));
        call(verb, text, position)
    };
    match verb {
        "as" => {
            let (level, request) = text.split_once(' ').unwrap();
            nested(request).header("x-ms-consistency-level", level)
        }
        "unsigned" => nested(text).omit("authorization"),
        "feed" => feed(text, position),
        "bulk" => Call::post(DOCS)
            .header("x-ms-documentdb-partitionkeyrangeid", "0")
            .header("x-ms-cosmos-is-batch-request", "True")
            .header("x-ms-cosmos-batch-continue-on-error", "True")
            .json(&document(text)),
        "delete-key" => Call::post("/dbs/d/colls/c/operations/partitionkeydelete").key(&json!([text])),
        "execute" => {
            let (name, rest) = text.split_once(' ').unwrap();
            let (key, parameters) = rest.split_once(' ').unwrap();
            Call::post(&format!("/dbs/d/colls/c/sprocs/{name}"))
                .key(&json!([key]))
                .json(&document(parameters))
        }
        "triggered" => {
            let (names, item) = text.split_once(' ').unwrap();
            let (pre, post) = names.split_once(',').unwrap_or((names, ""));
            let call = Call::post(DOCS).json(&document(item));
            let call =
                if pre.is_empty() { call } else { call.header("x-ms-documentdb-pre-trigger-include", pre) };
            if post.is_empty() { call } else { call.header("x-ms-documentdb-post-trigger-include", post) }
        }
        "create" => Call::post(DOCS).json(&document(text)),
        "upsert" => Call::post(DOCS).header("x-ms-documentdb-is-upsert", "true").json(&document(text)),
        "replace" => {
            let document = document(text);
            let path = format!("{DOCS}/{}", document["id"].as_str().unwrap());
            Call::put(&path).key(&json!([document["pk"]])).json(&document)
        }
        "list" => Call::get(DOCS),
        "query" => query(text),
        "batch" => {
            let (key, steps) = text.split_once(' ').unwrap();
            Call::post(DOCS)
                .key(&json!([key]))
                .header("x-ms-cosmos-is-batch-request", "True")
                .header("x-ms-cosmos-batch-atomic", "True")
                .json(&document(steps))
        }
        _ if verb.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            let (path, body) = text.split_once(' ').unwrap_or((text, ""));
            let call = Call::new(Method::from_bytes(verb.as_bytes()).unwrap(), path);
            if body.is_empty() { call } else { call.json(&document(body)) }
        }
        _ => addressed(verb, text),
    }
}

/// `latest` or `all`; from the `beginning`, `now` or `next`, which is after the last page; of a key.
fn feed(text: &str, position: &str) -> Call {
    let mut words = text.split(' ');
    let kind = if words.next() == Some("all") { "Full-Fidelity Feed" } else { "Incremental feed" };
    let call = Call::get(DOCS).header("a-im", kind).header("x-ms-max-item-count", "10");
    let call = match words.next() {
        Some("now") => call.header("if-none-match", "*"),
        Some("next") => call.header("if-none-match", position),
        _ => call,
    };
    words.fold(call, |call, key| call.key(&json!([key])))
}

/// Requests on one item: id, partition key, body.
fn addressed(verb: &str, text: &str) -> Call {
    let mut words = text.splitn(3, ' ');
    let path = format!("{DOCS}/{}", words.next().unwrap());
    let key = json!([words.next().unwrap()]);
    let rest = words.next();
    match verb {
        "read" => Call::get(&path).key(&key),
        "unchanged" => Call::get(&path).key(&key).header("if-none-match", "*"),
        "delete" => Call::delete(&path).key(&key),
        "patch" => Call::patch(&path).key(&key).json(&document(rest.unwrap())),
        _ => panic!("{verb}"),
    }
}

fn query(text: &str) -> Call {
    let call = Call::post(DOCS)
        .header("x-ms-documentdb-isquery", "true")
        .header("x-ms-documentdb-query-enablecrosspartition", "true")
        .header("content-type", "application/query+json");
    match text.strip_prefix("in ").and_then(|rest| rest.split_once(' ')) {
        Some((key, text)) => call.key(&json!([key])).json(&json!({ "query": text })),
        None => call.json(&json!({ "query": text })),
    }
}

/// JSON in which strings such as `~1000` are expanded.
fn document(text: &str) -> Json {
    let mut document = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    expand(&mut document);
    document
}

fn expand(value: &mut Json) {
    match value {
        Json::String(text) => {
            if let Some(length) = text.strip_prefix('~').and_then(|length| length.parse().ok()) {
                *text = "x".repeat(length);
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(expand),
        Json::Object(members) => members.values_mut().for_each(expand),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}
