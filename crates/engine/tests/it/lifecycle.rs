//! How partitions are opened, and how an engine is closed.

use crate::harness::{Harness, HeldStore, KEY, TestAmbient, pass_turns};
use bytes::Bytes;
use engine::EngineOptions;
use kv::{CommitMode, FaultScript, Health, InjectedFault, StorageCall, Store};
use model::policy::IndexingPolicy;
use model::{ContainerNumber, Fault, PartitionOrdinal, StorageFault};
use partition::index::IndexOptions;
use partition::keyspace::{META, PartitionId, SPACES, manifest_key};
use std::sync::Arc;

/// Turns of the scheduler within which the state that a test waits for must be reached.
const TURNS_MAX: usize = 10_000;

/// A few documents become a run.
const SMALL: IndexOptions = IndexOptions {
    inline_documents_max: 4,
    flush_documents: 16,
    flush_bytes: 1 << 20,
    run_fan_in: 4,
    memory_bytes_max: 1 << 20,
    cache_bytes: 1 << 16,
};

async fn open(store: &Store) -> Harness {
    let options = EngineOptions { index: SMALL, ..EngineOptions::default() };
    Harness::with_options(store.clone(), TestAmbient::new(), &[KEY], options).await
}

/// The row that lists the runs of the index of the only partition.
async fn manifest(store: &Store) -> Option<Bytes> {
    let id = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(0) };
    store.view().await.unwrap().get(META, &manifest_key(id)).await.unwrap()
}

/// Waits until there is a manifest other than `before`.
async fn new_manifest(store: &Store, before: Option<&Bytes>) -> Bytes {
    for _ in 0..TURNS_MAX {
        if let Some(manifest) = manifest(store).await
            && Some(&manifest) != before
        {
            return manifest;
        }
        tokio::task::yield_now().await;
    }
    panic!("the index was not saved");
}

/// The opening ended with the request that had started it, and the next request started another one while work of the
/// first was still running.
#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_does_not_stop_the_opening_of_a_partition() {
    let held = HeldStore::new();
    let store = held.store.clone();
    let harness = open(&store).await;
    let container = harness.container(|_| {}, 400).await;
    for id in 0..40 {
        harness.create(&container, &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.unwrap();
    }
    let old = new_manifest(&store, None).await;
    drop(harness);
    // The index is of another policy than the one with which the partition is opened.
    let harness = open(&store).await;
    let container = harness.found().unwrap();
    let policy = IndexingPolicy::by_texts(&[], &["/x/?"]).unwrap();
    let container = harness.replace(&container, |draft| draft.policies.indexing = policy).await.unwrap();
    held.hold();
    tokio::select! {
        biased;
        _ = harness.read(&container, r#"["a"]"#, "1") => panic!("the opening waits for a commit"),
        () = pass_turns() => {}
    }
    held.release();
    // No request uses the partition any more.
    new_manifest(&store, Some(&old)).await;
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
    assert_eq!(harness.audit_index(&container).await, []);
}

/// The first partition that could not be closed kept all others and the store open.
#[tokio::test(start_paused = true)]
async fn an_engine_closes_its_store_whatever_its_partitions_say() {
    let script = FaultScript::seeded(1);
    let store = Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone());
    let harness = open(&store).await;
    for id in ["a", "b", "c"] {
        let container = harness.container(|draft| draft.id = id.to_owned(), 400).await;
        harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    }
    script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
    let failed = harness.engine.close().await.unwrap_err();
    assert!(matches!(failed, Fault::Storage(StorageFault::Uncertain { .. })), "{failed:?}");
    assert_eq!(store.health(), Health::Closed);
}

/// A writer must not end with the threads of the request that opened its partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_outlives_the_runtime_of_the_request_that_opened_it() {
    let harness = Arc::new(open(&Store::memory(&SPACES, CommitMode::Thread)).await);
    let container = harness.container(|_| {}, 400).await;
    let (elsewhere, opened) = (Arc::clone(&harness), Arc::clone(&container));
    let request = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(elsewhere.create(&opened, r#"{"id":"1","pk":"a"}"#)).map(drop)
    });
    tokio::task::spawn_blocking(|| request.join().unwrap()).await.unwrap().unwrap();
    harness.create(&container, r#"{"id":"2","pk":"a"}"#).await.unwrap();
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
}
