//! Commits whose outcome is unknown: what came of them is found out before anything rests on it.

use crate::harness::{Harness, TestAmbient};
use engine::Container;
use kv::{CommitMode, FaultKind, FaultScript, StorageCall, Store};
use model::{ConflictFault, Fault, StorageFault};
use partition::keyspace::SPACES;
use serde_json::json;
use std::sync::Arc;

async fn scripted() -> (Harness, FaultScript) {
    let script = FaultScript::seeded(1);
    let store = Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone());
    (Harness::on(store, TestAmbient::new()).await, script)
}

async fn create_in_doubt(harness: &Harness, script: &FaultScript, container: &Arc<Container>, json: &str) {
    script.fail_next(StorageCall::Commit, FaultKind::FailSync);
    let doubtful = harness.create(container, json).await;
    assert!(
        matches!(doubtful, Err(Fault::Storage(StorageFault::Uncertain { .. }))),
        "{doubtful:?}"
    );
}

/// The writer went on from the state before the doubtful batch: it stored a second document under the same id, and
/// gave it the number and ETag of the first.
#[tokio::test(start_paused = true)]
async fn a_write_that_came_to_light_is_seen_by_the_next() {
    let (harness, script) = scripted().await;
    let container = harness.container(json!({}), 400).await;
    create_in_doubt(&harness, &script, &container, r#"{"id":"1","pk":"a","n":1}"#).await;
    let waiting = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await;
    assert!(
        matches!(waiting, Err(Fault::Storage(StorageFault::Unavailable { .. }))),
        "{waiting:?}"
    );
    harness.store.reopen().await.unwrap();
    let first = harness.read(&container, r#"["a"]"#, "1").await.unwrap();
    let again = harness.create(&container, r#"{"id":"1","pk":"a","n":2}"#).await;
    assert_eq!(again.unwrap_err(), Fault::Conflict(ConflictFault::Id));
    let second = harness
        .create(&container, r#"{"id":"2","pk":"a"}"#)
        .await
        .unwrap();
    assert!(second.lsn > first.lsn && second.number > first.number);
}

/// Partitions that had no part in the failure held views of the engine that was closed, and every request that kept
/// them awake was refused on their account.
#[tokio::test(start_paused = true)]
async fn partitions_without_a_part_in_it_go_on_after_a_reopening() {
    let (harness, script) = scripted().await;
    let container = harness.container(json!({}), 30_000).await;
    for number in 0..30 {
        let json = format!(r#"{{"id":"1","pk":"{number}"}}"#);
        harness.create(&container, &json).await.unwrap();
    }
    create_in_doubt(&harness, &script, &container, r#"{"id":"2","pk":"0"}"#).await;
    harness.store.reopen().await.unwrap();
    for number in 0..30 {
        let key = format!(r#"["{number}"]"#);
        harness.read(&container, &key, "1").await.unwrap();
        let json = format!(r#"{{"id":"3","pk":"{number}"}}"#);
        harness.create(&container, &json).await.unwrap();
    }
}
