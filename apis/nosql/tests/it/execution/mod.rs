//! Scripts that are executed: procedures, triggers and functions through the API.

mod definitions;
mod functions;
mod limits;
mod procedures;
mod refusals;
mod repetition;
mod triggers;

use crate::client::{Answer, Call, Client, container};
use engine::ScriptOptions;
use engine::script::{Limits, WorkerProgram};
use nosql::NosqlOptions;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// An account with database `d` and container `c`, keyed by `/pk`, that executes scripts. A slow machine does not reach
/// their limits by accident.
async fn client() -> Client {
    client_with(Duration::from_secs(60)).await
}

async fn client_with(time: Duration) -> Client {
    client_of(Limits { time, wait_max: Duration::from_secs(300), ..Limits::for_cores(3) }).await
}

/// With workers of this memory limit.
async fn client_with_memory(memory_bytes: u64) -> Client {
    let time = Duration::from_secs(60);
    client_of(Limits { time, wait_max: time * 5, memory_bytes, ..Limits::for_cores(1) }).await
}

/// Kills the workers of this memory limit, which no other test has.
fn kill_workers(memory_bytes: u64) {
    for id in workers(memory_bytes) {
        assert!(std::process::Command::new("kill").args(["-9", &id]).status().unwrap().success());
    }
}

/// The process ids of the workers of this memory limit.
fn workers(memory_bytes: u64) -> Vec<String> {
    let argument = memory_bytes.to_string();
    let is_worker = |process: &std::fs::DirEntry| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(is_worker);
    processes.map(|process| process.file_name().into_string().unwrap()).collect()
}

async fn client_of(limits: Limits) -> Client {
    let client = Client::with_scripts(NosqlOptions::default(), Some(options(limits))).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    client
}

pub(crate) fn options(limits: Limits) -> ScriptOptions {
    let path = env!("CARGO_BIN_EXE_nosql-test-worker").into();
    ScriptOptions { program: WorkerProgram { path, arguments: Vec::new() }, limits }
}

/// Stores a procedure and executes it on the partition key `k`.
async fn execute(client: &Client, source: &str, parameters: &Json) -> Answer {
    let path = "/dbs/d/colls/c/sprocs";
    let body = json!({ "id": "p", "body": source });
    let made = Call::post(path).header("x-ms-documentdb-is-upsert", "true").json(&body);
    let made = client.send(made).await;
    assert!(made.status.is_success(), "{made:?}");
    client.send(Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(parameters)).await
}

/// The ids of all items, in order.
async fn ids(client: &Client) -> Vec<String> {
    let mut ids = client.listed("/dbs/d/colls/c/docs", "Documents").await;
    ids.sort();
    ids
}
