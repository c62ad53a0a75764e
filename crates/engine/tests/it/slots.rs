//! Partitions that stop and are opened again: idle, above the limit, panicked.

use crate::harness::{Harness, KEY, TestAmbient};
use engine::{Container, EngineOptions, PartitionBounds};
use kv::{CommitMode, Store};
use model::{Fault, StorageFault};
use partition::keyspace::SPACES;
use partition::planted;
use std::sync::Arc;
use std::time::Duration;

/// Time within which the jobs have searched for idle partitions.
const JOBS_TIME: Duration = Duration::from_secs(30);

/// A store that commits inline, so that a paused clock does not advance while a thread commits.
async fn open(partitions: PartitionBounds) -> Harness {
    on(CommitMode::Inline, partitions).await
}

async fn on(mode: CommitMode, partitions: PartitionBounds) -> Harness {
    let options = EngineOptions { partitions, ..EngineOptions::default() };
    let store = Store::memory(&SPACES, mode);
    Harness::with_options(store, TestAmbient::new(), &[KEY], options).await
}

async fn containers(harness: &Harness, count: usize) -> Vec<Arc<Container>> {
    let mut containers = Vec::with_capacity(count);
    for number in 0..count {
        containers.push(harness.container(|draft| draft.id = format!("c{number}"), 400).await);
    }
    containers
}

async fn create(harness: &Harness, container: &Container, id: usize) -> Result<(), Fault> {
    harness.create(container, &format!(r#"{{"id":"{id}","pk":"a","n":{id}}}"#)).await.map(drop)
}

/// A partition whose writer had panicked was never opened again: all writes and most reads were refused until the next
/// start.
#[tokio::test]
async fn a_writer_that_panics_is_opened_again_by_the_next_request() {
    let harness = open(PartitionBounds::default()).await;
    let container = harness.container(|_| {}, 400).await;
    create(&harness, &container, 1).await.unwrap();
    planted::panic_after(0);
    let fault = create(&harness, &container, 2).await.unwrap_err();
    // The writer may have submitted it: the answer must be that the outcome is unknown.
    assert!(matches!(fault, Fault::Storage(StorageFault::Uncertain { .. })), "{fault:?}");
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
    create(&harness, &container, 3).await.unwrap();
    assert!(harness.read(&container, r#"["a"]"#, "3").await.is_ok());
    assert!(harness.read(&container, r#"["a"]"#, "2").await.is_err());
    assert_eq!(harness.audit_index(&container).await, []);
    assert_eq!(harness.engine.open_partitions(), 1);
    harness.engine.close().await.unwrap();
}

/// A read or a query that finds the writer gone is repeated; only writes can have an unknown outcome.
#[tokio::test]
async fn reads_and_queries_after_a_panic_are_answered() {
    let harness = open(PartitionBounds::default()).await;
    for round in 0..3 {
        let container = harness.container(|draft| draft.id = format!("c{round}"), 400).await;
        create(&harness, &container, 1).await.unwrap();
        planted::panic_after(0);
        assert!(create(&harness, &container, 2).await.is_err());
        match round {
            0 => drop(harness.read(&container, r#"["a"]"#, "1").await.unwrap()),
            1 => assert_eq!(harness.index_progress(&container).await, 100),
            _ => {
                let usage = harness.engine.container_usage(&harness.reader(&*container)).await.unwrap();
                assert_eq!(usage.documents, 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_partition_is_closed_and_its_memory_returns() {
    let harness = open(PartitionBounds { idle_seconds: 60, open_max: 100 }).await;
    let all = containers(&harness, 3).await;
    for container in &all {
        for id in 0..50 {
            create(&harness, container, id).await.unwrap();
        }
    }
    assert_eq!(harness.engine.open_partitions(), 3);
    assert!(harness.engine.index_memory_bytes() > 0);
    harness.ambient.advance_seconds(30);
    tokio::time::sleep(JOBS_TIME).await;
    create(&harness, &all[2], 50).await.unwrap();
    assert_eq!(harness.engine.open_partitions(), 3);
    harness.ambient.advance_seconds(40);
    tokio::time::sleep(JOBS_TIME).await;
    assert_eq!(harness.engine.open_partitions(), 1);
    harness.ambient.advance_seconds(60);
    tokio::time::sleep(JOBS_TIME).await;
    assert_eq!((harness.engine.open_partitions(), harness.engine.index_memory_bytes()), (0, 0));
    for container in &all {
        assert!(harness.read(container, r#"["a"]"#, "7").await.is_ok());
        create(&harness, container, 1000).await.unwrap();
        assert_eq!(harness.audit_index(container).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn beyond_the_bound_the_least_recently_used_are_closed() {
    let harness = open(PartitionBounds { idle_seconds: 1_000_000, open_max: 2 }).await;
    let all = containers(&harness, 5).await;
    for container in &all {
        harness.ambient.advance_seconds(1);
        tokio::time::sleep(JOBS_TIME).await;
        create(&harness, container, 1).await.unwrap();
    }
    tokio::time::sleep(JOBS_TIME).await;
    assert_eq!(harness.engine.open_partitions(), 2);
    // The last two were left open: reading them opens none.
    for container in &all[3..] {
        assert!(harness.read(container, r#"["a"]"#, "1").await.is_ok());
    }
    assert_eq!(harness.engine.open_partitions(), 2);
}

/// A request whose partition is closed meanwhile is routed again; nothing is lost or done twice.
#[tokio::test]
async fn partitions_that_are_closed_all_the_time_serve_all_the_same() {
    let harness = Arc::new(on(CommitMode::Thread, PartitionBounds { idle_seconds: 0, open_max: 0 }).await);
    let container = harness.container(|_| {}, 400).await;
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..4 {
        let (harness, container) = (Arc::clone(&harness), Arc::clone(&container));
        tasks.spawn(async move {
            for number in 0..100 {
                let id = client * 1000 + number;
                create(&harness, &container, id).await.unwrap();
                assert!(harness.read(&container, r#"["a"]"#, &id.to_string()).await.is_ok());
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let usage = harness.engine.container_usage(&harness.reader(&*container)).await.unwrap();
    assert_eq!(usage.documents, 400);
    assert_eq!(harness.audit_index(&container).await, []);
}

/// Many partitions are closed concurrently, and all of them cleanly: the next start continues their LSNs.
#[tokio::test]
async fn an_engine_closes_many_partitions() {
    let (store, ambient) = (Store::memory(&SPACES, CommitMode::Thread), TestAmbient::new());
    let options = EngineOptions {
        partition_throughput_max: 1_000,
        partition_throughput_new: 1_000,
        ..EngineOptions::default()
    };
    let harness = Harness::with_options(store, ambient, &[KEY], options).await;
    let container = harness.container(|_| {}, 600_000).await;
    harness.index_progress(&container).await;
    assert_eq!(harness.engine.open_partitions(), 600);
    harness.engine.close().await.unwrap();
    assert_eq!(harness.engine.open_partitions(), 0);
    let fault = create(&harness, &container, 1).await.unwrap_err();
    assert!(matches!(fault, Fault::Storage(StorageFault::Unavailable { .. })), "{fault:?}");
}
