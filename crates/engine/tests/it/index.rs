//! The index as the engine sees it: progress over all partitions, memory over all containers.

use crate::harness::{Harness, KEY, TestAmbient, item};
use crate::query::drain;
use engine::{Container, EngineOptions, Keyed, Scope};
use kv::{CommitMode, Store};
use partition::index::IndexOptions;
use partition::keyspace::SPACES;
use plan::{Condition, Mutation, Operation};
use serde_json::json;
use std::sync::Arc;

/// Small enough for tests: what is not tiny is made beside the writer, and becomes runs.
const SMALL: IndexOptions = IndexOptions {
    inline_documents_max: 4,
    flush_documents: 32,
    flush_bytes: 1 << 20,
    run_fan_in: 4,
    memory_bytes_max: 1 << 20,
    cache_bytes: 1 << 16,
};

async fn open(store: &Store, index: IndexOptions) -> Harness {
    let options = EngineOptions { index, ..EngineOptions::default() };
    Harness::with_options(store.clone(), TestAmbient::new(), &[KEY], options).await
}

async fn put(harness: &Harness, container: &Container, number: usize) {
    let text = json!({ "id": number.to_string(), "pk": format!("k{}", number % 40), "n": number % 10 });
    let mutation = Mutation::Upsert { item: item(&text.to_string()), condition: Condition::None };
    let keyed = Keyed::new(container, None, Operation::Write(mutation)).unwrap();
    harness.engine.write(harness.write_pass(container), keyed).await.unwrap();
}

fn found(harness: &Harness) -> Arc<Container> {
    harness.engine.find_container("d", "c").unwrap().resource
}

#[tokio::test]
async fn partitions_that_nobody_opened_are_not_counted_as_ready() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let harness = open(&store, SMALL).await;
    let container = harness.container(json!({}), 40_000).await;
    for number in 0..400 {
        put(&harness, &container, number).await;
    }
    assert_eq!(harness.engine.index_progress(&container).await.unwrap(), 100);
    let policy = json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 }, "indexingPolicy": { "excludedPaths": [{ "path": "/x/?" }] } });
    let replace =
        harness.engine.replace_container(harness.admin(), &container, &policy, &Condition::None).await;
    drop(replace.unwrap());
    // As after the death of the process: nothing is closed, and nothing is open.
    let harness = open(&store, SMALL).await;
    let container = found(&harness);
    let begun = harness.engine.index_progress(&container).await.unwrap();
    assert!(begun < 100, "{begun}");
    while harness.engine.index_progress(&container).await.unwrap() < 100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.engine.audit_index(&container).await.unwrap(), []);
    let sql = "SELECT VALUE COUNT(1) FROM c WHERE c.n = 3";
    assert_eq!(drain(&harness, &container, sql, Scope::Container, 10).await, ["40"]);
}
