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
//! them twice if it changes nothing: the same request on the same state costs the same.

use crate::client::{Answer, Call, Client, DOCS, container};
use crate::text_cases::TextCases;
use http::StatusCode;
use nosql::{Compatibility, NosqlOptions};
use serde_json::{Value as Json, json};

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 60;

#[tokio::test]
async fn requests_cost_what_the_files_say() {
    let mut cases = TextCases::of("charges");
    for blocks in cases.files() {
        let mut client = Client::with_container().await;
        for block in blocks {
            let Some(&request) = block.lines().first() else { continue };
            match request.split_once(' ').unwrap_or((request, "")) {
                ("container", text) => client = with_definition(text).await,
                ("fill", text) => fill(&client, text).await,
                (verb, text) => {
                    let call = call(verb, text);
                    let found = found(&client.send(call.clone()).await);
                    if matches!(verb, "read" | "query" | "list" | "unchanged") {
                        assert_eq!(found, self::found(&client.send(call).await), "{request}");
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
    if status != StatusCode::MULTI_STATUS.as_u16() && !answer.body.starts_with(b"[") {
        return format!("{status} {charge}");
    }
    let steps = answer.json();
    let step = |step: &Json| format!("{} {}", step["statusCode"], step["requestCharge"]);
    let steps: Vec<String> = steps.as_array().unwrap().iter().map(step).collect();
    format!("{status} {charge}: {}", steps.join(", "))
}

/// A client with a container; `"throughput"` is not part of its definition.
async fn with_definition(text: &str) -> Client {
    let client = Client::with_options(NosqlOptions {
        compatibility: Compatibility::Relaxed,
        ..NosqlOptions::default()
    })
    .await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let mut definition = container("c");
    let Json::Object(members) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
    let mut call = Call::post("/dbs/d/colls");
    for (name, value) in members {
        match name.as_str() {
            "throughput" => call = call.header("x-ms-offer-throughput", value.to_string()),
            _ => definition[name] = value,
        }
    }
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

fn call(verb: &str, text: &str) -> Call {
    match verb {
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
        _ => addressed(verb, text),
    }
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
