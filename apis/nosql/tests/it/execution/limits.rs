//! What bounds scripts from outside: the throughput, the size of a response; and what scripts read of their container.

use super::{client, execute, options, workers};
use crate::client::{Answer, Call, Client, DOCS, KEY, Still, container};
use engine::script::Limits;
use engine::{
    AccountKey, Action, Engine, EngineOptions, LockWhen, STORE_SPACES, ThroughputMode, TransactionOptions,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Store};
use model::KeyComponent;
use serde_json::{Value as Json, json};
use sha2::Sha256;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use value::{Value, ValueRef};

/// Writes that exceed a second of the throughput of a container.
const MANY: usize = 400;

/// An account with a procedure and a trigger, and its engine.
async fn with_engine(limits: Limits, throughput: ThroughputMode) -> (Client, Arc<Engine>) {
    let limits = Limits { time: Duration::from_secs(60), wait_max: Duration::from_secs(300), ..limits };
    let engine_options = EngineOptions {
        keys: vec![AccountKey::new(KEY)],
        scripts: Some(options(limits)),
        throughput,
        ..EngineOptions::default()
    };
    let store = Store::memory(&STORE_SPACES, CommitMode::Thread);
    let engine = Engine::open(store, engine_options, Arc::new(Still::default())).await.unwrap();
    let client = Client::over(Arc::clone(&engine));
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    let procedure = json!({ "id": "p", "body": "function () { __.response.setBody(1); }" });
    client.create("/dbs/d/colls/c/sprocs", procedure).await;
    let trigger =
        json!({ "id": "t", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All" });
    client.create("/dbs/d/colls/c/triggers", trigger).await;
    (client, engine)
}

fn write(n: usize) -> Call {
    Call::post(DOCS).key(&json!(["k"])).json(&json!({ "id": n.to_string(), "pk": "k" }))
}

#[tokio::test]
async fn scripts_beyond_the_throughput_are_refused() {
    let (client, _) = with_engine(Limits::for_cores(3), ThroughputMode::Enforce).await;
    let procedure = || Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!([]));
    let triggered = |n| write(n).header("x-ms-documentdb-pre-trigger-include", "t");
    assert_eq!(client.send(procedure()).await.code(), (200, 0));
    assert_eq!(client.send(triggered(MANY)).await.code(), (201, 0));
    let mut refused = None;
    for n in 0..MANY {
        let answer = client.send(write(n)).await;
        if answer.code().0 == 429 {
            refused = Some(n);
            break;
        }
        assert_eq!(answer.code(), (201, 0));
    }
    assert!(refused.is_some(), "{MANY} writes fit the throughput");
    for call in [procedure(), triggered(MANY + 1)] {
        let refused = client.send(call).await;
        assert_eq!(refused.code(), (429, 3200), "{refused:?}");
        let delay: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
        assert!(delay > 0);
    }
}

/// The lock of the partition key passes from one holder to the next while the procedure waits to be committed.
#[tokio::test]
async fn a_procedure_whose_key_is_held_for_five_seconds_is_refused() {
    // No other test has workers of this memory; they end when they have nothing to do.
    let memory_bytes = (64 << 20) + 17;
    let limits = Limits { memory_bytes, idle: Duration::ZERO, ..Limits::for_cores(3) };
    let (client, engine) = with_engine(limits, ThroughputMode::Measure).await;
    let body = "function () { __.createDocument(__.getSelfLink(), { id: 'new', pk: 'k' }, function () { \
                var begun = Date.now(); while (Date.now() < begun + 300); }); }";
    let changed = json!({ "id": "p", "body": body });
    assert_eq!(client.send(Call::put("/dbs/d/colls/c/sprocs/p").json(&changed)).await.code(), (200, 0));
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    mac.update(b"payload");
    let principal = engine.access().verify_signature(b"payload", &mac.finalize().into_bytes(), 1).unwrap();
    let container = engine.find_container(&principal, Action::ReadMetadata, "d", "c").unwrap().resource;
    let component = KeyComponent::from_value(ValueRef::from(&Value::String("k".to_owned()))).unwrap();
    let key = container.definition().partition_key.key(vec![component]).unwrap();
    let pass = engine.access().transact(&principal, &container, key);
    let locking =
        TransactionOptions { time_max: Duration::from_secs(60), session: Vec::new(), lock: LockWhen::Begin };
    while !workers(memory_bytes).is_empty() {
        tokio::task::yield_now().await;
    }
    let first = engine.begin(&pass, &locking).await.unwrap();
    let mut second = pin!(engine.begin(&pass, &locking));
    let mut answer =
        pin!(client.send(Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!([]))));
    let mut has_begun = false;
    loop {
        tokio::select! {
            biased;
            second = &mut second => panic!("the lock is held: {second:?}"),
            answer = &mut answer => panic!("the lock is held: {answer:?}"),
            () = tokio::task::yield_now() => {}
        }
        let is_running = !workers(memory_bytes).is_empty();
        if has_begun && !is_running {
            break;
        }
        has_begun |= is_running;
    }
    // The script has ended. From now on the clock advances when nothing else is to be done.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    drop(first);
    let second = second.await.unwrap();
    let refused = answer.await;
    assert_eq!(refused.code(), (449, 0), "{refused:?}");
    drop(second);
    assert_eq!(client.send(Call::get("/dbs/d/colls/c/docs/new").key(&json!(["k"]))).await.code(), (404, 0));
}

#[tokio::test]
async fn a_response_has_4_megabytes_at_most() {
    let client = client().await;
    // With the quotes of the text it has the number of bytes.
    let source = "function (bytes) { __.response.setBody('x'.repeat(bytes - 2)); }";
    let largest = execute(&client, source, &json!([4 << 20])).await;
    assert_eq!((largest.code(), largest.body.len()), ((200, 0), 4 << 20));
    assert_eq!(execute(&client, source, &json!([(4 << 20) + 1])).await.code(), (400, 413));
}

/// The quota and the usage of the container, as clients read them.
async fn quota_and_usage(client: &Client) -> [Json; 2] {
    let call = Call::get("/dbs/d/colls/c").header("x-ms-documentdb-populatequotainfo", "true");
    let answer = client.send(call).await;
    let header = |name| json!(answer.header(name).unwrap());
    [header("x-ms-resource-quota"), header("x-ms-resource-usage")]
}

fn megabytes(text: &Json) -> f64 {
    let (_, rest) = text.as_str().unwrap().split_once(";collectionSize=").unwrap();
    let kilobytes: f64 = rest.trim_end_matches(';').parse().unwrap();
    kilobytes / 1024.0
}

fn member(answer: &Answer, name: &str) -> f64 {
    answer.json()[name].as_f64().unwrap_or_else(|| panic!("{answer:?}"))
}

#[tokio::test]
async fn scripts_read_the_quota_and_the_usage_of_their_container() {
    let client = client().await;
    for n in 0..50 {
        let item = json!({ "id": n.to_string(), "pk": "k", "text": "x".repeat(10_000) });
        assert_eq!(client.send(Call::post(DOCS).key(&json!(["k"])).json(&item)).await.code(), (201, 0));
    }
    let source = "function () { var r = getContext().getResponse(); \
                  r.setBody([r.getMaxResourceQuota(), r.getResourceQuotaCurrentUsage()]); }";
    execute(&client, source, &json!([])).await;
    let read = client.send(Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!([]))).await;
    let [quota, usage] = quota_and_usage(&client).await;
    assert_eq!(read.json(), json!([quota, usage]));
    assert!(usage.as_str().unwrap().contains("storedProcedures=1;"), "{usage}");
    let source = "function () { __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', function (err, found, options) { \
                  if (err) throw err; __.response.setBody({ count: found.length, \
                  now: options.currentCollectionSizeInMB, most: options.maxCollectionSizeInMB }); }); }";
    let sizes = execute(&client, source, &json!([])).await;
    assert!((member(&sizes, "now") - megabytes(&usage)).abs() < 0.001, "{sizes:?} {usage}");
    assert!((member(&sizes, "most") - megabytes(&quota)).abs() < 0.001, "{sizes:?} {quota}");
    assert_eq!(sizes.json()["count"], 50);
    // Triggers too.
    let body =
        "function () { var r = getContext().getResponse(); r.setBody({ most: r.getMaxResourceQuota() }); }";
    let trigger = json!({ "id": "t", "body": body, "triggerType": "Post", "triggerOperation": "All" });
    client.create("/dbs/d/colls/c/triggers", trigger).await;
    let item = json!({ "id": "last", "pk": "k" });
    let call = Call::post(DOCS).key(&json!(["k"])).header("x-ms-documentdb-post-trigger-include", "t");
    assert_eq!(client.send(call.json(&item)).await.json()["most"], quota);
}
