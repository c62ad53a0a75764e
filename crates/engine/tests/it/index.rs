//! The index as the engine sees it: progress over all partitions, memory over all containers.

use crate::harness::{Harness, KEY, TestAmbient, item, lowered};
use crate::query::drain;
use engine::{Container, EngineOptions, Keyed, Scope};
use kv::{CommitMode, Store};
use model::ContainerDraft;
use model::policy::{CompositeIndex, ComputedProperty, IndexingPolicy, SpatialIndex};
use partition::index::IndexOptions;
use partition::keyspace::SPACES;
use plan::{Condition, DocumentOperation, Mutation};
use serde_json::json;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Small enough for tests: an index that is not tiny is built concurrently with the writer, and becomes runs.
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
    let keyed = Keyed::new(container, None, DocumentOperation::Write(mutation)).unwrap();
    harness.engine.write(harness.write_pass(keyed)).await.unwrap();
}

fn found(harness: &Harness) -> Arc<Container> {
    harness.found().unwrap()
}

/// Turns of the other tasks within which an index is built.
const TURNS_MAX: usize = 1_000_000;

/// Waits until the index of a container has its policy.
async fn wait_for_index(harness: &Harness, container: &Container) {
    for _ in 0..TURNS_MAX {
        if harness.index_progress(container).await == 100 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the index is not built");
}

#[tokio::test]
async fn partitions_that_nobody_opened_are_not_counted_as_ready() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let harness = open(&store, SMALL).await;
    let container = harness.container(|_| {}, 24_000).await;
    for number in 0..400 {
        put(&harness, &container, number).await;
    }
    assert_eq!(harness.index_progress(&container).await, 100);
    // As after a crash of the process: nothing was closed, and nothing is open.
    let harness = open(&store, SMALL).await;
    let container = found(&harness);
    let policy = IndexingPolicy::by_texts(&[], &["/x/?"]).unwrap();
    drop(harness.replace(&container, |draft| draft.policies.indexing = policy).await.unwrap());
    let container = found(&harness);
    let begun = harness.index_progress(&container).await;
    assert!(begun < 100, "{begun}");
    wait_for_index(&harness, &container).await;
    assert_eq!(harness.audit_index(&container).await, []);
    let sql = "SELECT VALUE COUNT(1) FROM c WHERE c.n = 3";
    assert_eq!(drain(&harness, &container, sql, Scope::Container, 10).await, ["40"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_containers_share_one_bound_on_memory() {
    const CONTAINERS: usize = 300;
    const WRITERS: usize = 12;
    const DOCUMENTS: usize = 24;
    // An eighth of the memory is more than one of these documents in each container.
    let index =
        IndexOptions { flush_documents: 32_768, memory_bytes_max: 768 << 10, run_fan_in: 64, ..SMALL };
    let harness = Arc::new(open(&Store::memory(&SPACES, CommitMode::Thread), index).await);
    let mut containers = Vec::new();
    for number in 0..CONTAINERS {
        containers.push(harness.container(|draft| draft.id = format!("c{number}"), 400).await);
    }
    let mut writers = JoinSet::new();
    for some in containers.chunks(CONTAINERS / WRITERS) {
        let (harness, some) = (Arc::clone(&harness), some.to_vec());
        writers.spawn(async move {
            let mut most = 0;
            for number in 0..DOCUMENTS {
                for container in &some {
                    put(&harness, container, number).await;
                    most = most.max(harness.engine.index_memory_bytes());
                }
            }
            most
        });
    }
    let most = writers.join_all().await.into_iter().max().unwrap();
    let bound = index.memory_bytes_max;
    assert!((bound * 7 / 8..=bound).contains(&most), "{most} bytes at most");
    for container in containers.iter().step_by(29) {
        let ask = |sql| drain(&harness, container, sql, Scope::Container, 3);
        assert_eq!(ask("SELECT VALUE COUNT(1) FROM c WHERE c.n = 3").await, ["3"]);
        assert_eq!(
            ask("SELECT VALUE c.n FROM c WHERE c.n > 7 ORDER BY c.n DESC").await,
            ["9", "9", "8", "8"]
        );
        assert_eq!(harness.audit_index(container).await, []);
    }
}

/// Cells and computed values in segments and in runs, after other definitions and after a crash of the process.
#[tokio::test]
async fn geometries_and_computed_values_are_verified() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let options = || EngineOptions { index: SMALL, computed_reader: lowered, ..EngineOptions::default() };
    let harness = Harness::with_options(store.clone(), TestAmbient::new(), &[KEY], options()).await;
    let computed =
        |factor: u32| vec![ComputedProperty::new("tens", format!("SELECT VALUE c.n * {factor} FROM c"))];
    let definition = |draft: &mut ContainerDraft| {
        draft.policies.computed = computed(10);
        let mut indexing = IndexingPolicy::by_texts(&["/*", "/tens/?"], &[]).unwrap();
        indexing.composite = vec![CompositeIndex::over(&[("/tens", false), ("/id", true)]).unwrap()];
        indexing.spatial = vec![SpatialIndex::at("/at/*", &[]).unwrap()];
        draft.policies.indexing = indexing;
    };
    let mut container = harness.container(definition, 12_000).await;
    let put = async |container: &Container, number: usize| {
        let (east, north) = (number % 90, number % 45);
        let ring = [[east, north], [east + 2, north], [east + 1, north + 2], [east, north]];
        let geometry = match number % 3 {
            0 => json!({ "type": "Point", "coordinates": [east, north] }),
            1 => json!({ "type": "Polygon", "coordinates": [ring] }),
            _ => json!("nowhere"),
        };
        let text = json!({ "id": number.to_string(), "pk": format!("k{}", number % 40), "n": number % 10, "at": geometry });
        let mutation = Mutation::Upsert { item: item(&text.to_string()), condition: Condition::None };
        let keyed = Keyed::new(container, None, DocumentOperation::Write(mutation)).unwrap();
        harness.engine.write(harness.write_pass(keyed)).await.unwrap();
    };
    for (factor, first) in [(10, 0), (20, 200), (30, 400)] {
        let replaced = harness.replace(&container, |draft| draft.policies.computed = computed(factor)).await;
        container = replaced.unwrap();
        for number in first..first + 300 {
            put(&container, number).await;
        }
        wait_for_index(&harness, &container).await;
        assert_eq!(harness.audit_index(&container).await, []);
    }
    // As after a crash of the process: nothing was closed.
    let verified = engine::verify(&store, lowered, TestAmbient::new()).await.unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!((verified.containers[0].documents, verified.containers[0].unindexed), (700, 0));
}
