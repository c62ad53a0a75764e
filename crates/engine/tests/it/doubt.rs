//! Commits with an unknown outcome: they are resolved before anything depends on them.

use crate::harness::{Harness, KEY, TestAmbient};
use engine::{Container, EngineOptions};
use kv::{CommitMode, Durability, FaultScript, InjectedFault, StorageCall, Store};
use model::{ConflictFault, ContainerDraft, DefaultTtl, Fault, MissingFault, StorageFault};
use partition::keyspace::SPACES;
use std::sync::Arc;
use std::time::Duration;

async fn scripted() -> (Harness, FaultScript) {
    let script = FaultScript::seeded(1);
    let store = Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone());
    (Harness::on(store, TestAmbient::new()).await, script)
}

async fn create_in_doubt(harness: &Harness, script: &FaultScript, container: &Arc<Container>, json: &str) {
    // The first use of a partition opens it, which commits.
    harness.read(container, r#"["a"]"#, "none").await.unwrap_err();
    script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
    let doubtful = harness.create(container, json).await;
    assert!(matches!(doubtful, Err(Fault::Storage(StorageFault::Uncertain { .. }))), "{doubtful:?}");
}

/// The writer continued from the state before the batch with the unknown outcome: it stored a second document under the
/// same id, and gave it the number and ETag of the first.
#[tokio::test(start_paused = true)]
async fn a_write_that_came_to_light_is_seen_by_the_next() {
    let (harness, script) = scripted().await;
    let container = harness.container(|_| {}, 400).await;
    // Opens the partition, which is a separate commit.
    harness.read(&container, r#"["a"]"#, "1").await.unwrap_err();
    create_in_doubt(&harness, &script, &container, r#"{"id":"1","pk":"a","n":1}"#).await;
    let waiting = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await;
    assert!(matches!(waiting, Err(Fault::Storage(StorageFault::Unavailable { .. }))), "{waiting:?}");
    harness.store.reopen().await.unwrap();
    let first = harness.read(&container, r#"["a"]"#, "1").await.unwrap();
    let again = harness.create(&container, r#"{"id":"1","pk":"a","n":2}"#).await;
    assert_eq!(again.unwrap_err(), Fault::Conflict(ConflictFault::Id));
    let second = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await.unwrap();
    assert!(second.lsn > first.lsn && second.number > first.number);
}

/// Partitions that were not part of the failure held views of the engine that was closed, and every request that kept
/// them from becoming idle was refused because of that.
#[tokio::test(start_paused = true)]
async fn partitions_without_a_part_in_it_go_on_after_a_reopening() {
    let (harness, script) = scripted().await;
    let container = harness.container(|_| {}, 18_000).await;
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

/// The catalog in memory kept the container, so writes to it were acknowledged; the next start found it dropped.
#[tokio::test(start_paused = true)]
async fn a_drop_that_came_to_light_counts_before_the_next_write() {
    let (harness, script) = scripted().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
    let doubtful = harness.drop_container(&container).await;
    assert!(matches!(doubtful, Err(Fault::Storage(StorageFault::Uncertain { .. }))), "{doubtful:?}");
    harness.store.reopen().await.unwrap();
    let late = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await;
    assert_eq!(late.unwrap_err(), Fault::Missing(MissingFault::Owner));
    assert!(harness.found().is_err());
}

/// A definition that the store had and the catalog in memory had not: documents expired by one and not by the other.
#[tokio::test(start_paused = true)]
async fn a_definition_that_came_to_light_counts_and_keeps_its_partitions() {
    let (harness, script) = scripted().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let expiring = |draft: &mut ContainerDraft| draft.default_ttl = DefaultTtl::Seconds(10);
    script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
    let doubtful = harness.replace(&container, expiring).await;
    assert!(doubtful.is_err());
    harness.store.reopen().await.unwrap();
    harness.ambient.advance_seconds(20);
    let expired = harness.read(&container, r#"["a"]"#, "1").await;
    assert_eq!(expired.unwrap_err(), Fault::Missing(MissingFault::Resource));
    let found = harness.found().unwrap();
    let one = harness.create(&found, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let other = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await.unwrap();
    assert!(other.lsn > one.lsn && other.number > one.number);
}

/// The writer of another partition kept head, index and cached records of rows that were lost.
#[tokio::test(start_paused = true)]
async fn what_a_reopening_has_taken_is_forgotten_by_all_writers() {
    for rests in [false, true] {
        let script = FaultScript::seeded(1);
        let store = Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone());
        let options = EngineOptions { durability: Durability::Buffered, ..EngineOptions::default() };
        let harness = Harness::with_options(store, TestAmbient::new(), &[KEY], options).await;
        let failing = harness.container(|draft| draft.id = "failing".to_owned(), 400).await;
        let other = harness.container(|draft| draft.id = "other".to_owned(), 400).await;
        // The first batch of a writer reserves LSNs, which must be durable; the next ones are not.
        harness.create(&other, r#"{"id":"1","pk":"a","n":1}"#).await.unwrap();
        let lost = harness.create(&other, r#"{"id":"2","pk":"a","n":2}"#).await.unwrap();
        assert!(harness.read(&other, r#"["a"]"#, "2").await.is_ok());
        if rests {
            // The writer releases its view.
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        script.fail_next(StorageCall::Commit, InjectedFault::Fail);
        script.fail_next(StorageCall::Reopen, InjectedFault::DropUnsynced);
        harness.create(&failing, r#"{"id":"1","pk":"a"}"#).await.unwrap_err();
        harness.store.reopen().await.unwrap();
        // The first read makes the writer check; the second may be answered from the cache.
        for _ in 0..2 {
            let gone = harness.read(&other, r#"["a"]"#, "2").await;
            assert_eq!(gone.unwrap_err(), Fault::Missing(MissingFault::Resource), "rests: {rests}");
        }
        assert!(harness.read(&other, r#"["a"]"#, "1").await.is_ok());
        assert_eq!(harness.audit_index(&other).await, []);
        let again = harness.create(&other, r#"{"id":"2","pk":"a","n":3}"#).await.unwrap();
        assert!(again.lsn > lost.lsn && again.number > lost.number, "what was seen is not given again");
        assert_eq!(harness.audit_index(&other).await, []);
    }
}
