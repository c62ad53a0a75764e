//! Housekeeping of expiry: many documents at once, damaged ones among them, and no work while nothing is due.

use crate::harness::{Harness, KEY, TestAmbient, unique_mail};
use bytes::Bytes;
use engine::{Container, EngineOptions, PartitionBounds};
use kv::{Batch, CommitMode, Direction, Durability, FaultScript, KeyRange, ScanLimit, Space, Store};
use model::{ContainerDraft, DefaultTtl};
use partition::keyspace::{
    EXPIRY, LOG, META, NUMBERS, PartitionId, RECORDS, SPACES, UNIQUE, container_rows, reschedule_key,
};
use plan::{Condition, Mutation, Target};
use std::sync::Arc;
use std::time::Duration;

/// Turns of the scheduler within which the state that a test waits for must be reached.
const TURNS_MAX: usize = 100_000;
/// Time within which the jobs have done what is due.
const JOBS_TIME: Duration = Duration::from_secs(5);
/// Time within which every log was trimmed.
const TRIM_TIME: Duration = Duration::from_secs(65);

fn inline() -> Store {
    Store::memory(&SPACES, CommitMode::Inline)
}

async fn rows(store: &Store, space: Space, range: KeyRange) -> Vec<(Bytes, Bytes)> {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = store.view().await.unwrap();
    view.scan(space, range, Direction::Forward, limit).await.unwrap().rows
}

async fn count(harness: &Harness, space: Space, container: &Container) -> usize {
    rows(&harness.store, space, container_rows(container.number())).await.len()
}

async fn fill(harness: &Harness, container: &Container, documents: usize) {
    for id in 0..documents {
        let text = format!(r#"{{"id":"{id}","pk":"key {}","mail":"m{id}"}}"#, id % 37);
        harness.create(container, &text).await.unwrap();
    }
}

/// A container of this name whose documents expire.
fn named(draft: &mut ContainerDraft, id: &str, seconds: u32) {
    draft.id = id.to_owned();
    draft.default_ttl = DefaultTtl::Seconds(seconds);
}

/// One damaged record ended the sweep of its container, and of all containers after it, in every round.
#[tokio::test(start_paused = true)]
async fn a_damaged_record_stops_neither_its_container_nor_another() {
    let harness = Harness::on(inline(), TestAmbient::new()).await;
    let mut containers = Vec::new();
    for id in ["first", "second"] {
        let container = harness.container(|draft| named(draft, id, 10), 400).await;
        fill(&harness, &container, 60).await;
        containers.push(container);
    }
    // The writer becomes idle meanwhile, and reads the store again.
    tokio::time::sleep(JOBS_TIME).await;
    let records = rows(&harness.store, RECORDS, container_rows(containers[0].number())).await;
    let mut batch = Batch::default();
    for (key, row) in records.iter().take(3) {
        batch.put(RECORDS, key.clone(), row.slice(..row.len() / 2));
    }
    harness.store.submit(&harness.store.lane(), batch, Durability::Sync).await.unwrap();
    harness.ambient.advance_seconds(20);
    tokio::time::sleep(JOBS_TIME).await;
    assert_eq!(count(&harness, RECORDS, &containers[0]).await, 3);
    assert_eq!(count(&harness, RECORDS, &containers[1]).await, 0);
    assert_eq!(harness.engine.skipped_documents(), 3);
    // Documents that expire later are swept nevertheless.
    fill(&harness, &containers[0], 2).await;
    harness.ambient.advance_seconds(20);
    tokio::time::sleep(JOBS_TIME).await;
    assert_eq!(count(&harness, RECORDS, &containers[0]).await, 3);
}

#[tokio::test(start_paused = true)]
async fn documents_of_many_partition_keys_go_with_all_their_rows() {
    let harness = Harness::on(inline(), TestAmbient::new()).await;
    let expiring = |draft: &mut ContainerDraft| {
        draft.default_ttl = DefaultTtl::Seconds(10);
        draft.unique_keys = unique_mail();
    };
    let container = harness.container(expiring, 18_000).await;
    fill(&harness, &container, 700).await;
    harness.create(&container, r#"{"id":"stays","pk":"key 1","mail":"m","ttl":-1}"#).await.unwrap();
    harness.ambient.advance_seconds(20);
    tokio::time::sleep(JOBS_TIME).await;
    for (space, left) in [(RECORDS, 1), (NUMBERS, 1), (UNIQUE, 1), (EXPIRY, 0)] {
        assert_eq!(count(&harness, space, &container).await, left, "{space:?}");
    }
    let usage = harness.engine.container_usage(&harness.reader(&*container)).await.unwrap();
    assert_eq!(usage.documents, 1);
    assert_eq!(harness.audit_index(&container).await, []);
}

/// A walk over all records started again after every restart.
#[tokio::test(start_paused = true)]
async fn writing_expiry_rows_anew_goes_on_where_it_stopped() {
    const DOCUMENTS: usize = 1000;
    let store = Store::memory(&SPACES, CommitMode::Stepped);
    let committed = store.clone();
    tokio::spawn(async move {
        loop {
            committed.step_is_due().await;
            tokio::task::yield_now().await;
            committed.step();
        }
    });
    let harness = Harness::on(store.clone(), TestAmbient::new()).await;
    let container = harness.container(|_| {}, 400).await;
    fill(&harness, &container, DOCUMENTS).await;
    let expiring = |draft: &mut ContainerDraft| draft.default_ttl = DefaultTtl::Seconds(1_000_000);
    harness.replace(&container, expiring).await.unwrap();
    let mut turns = 0;
    while count(&harness, EXPIRY, &container).await == 0 {
        turns += 1;
        assert!(turns < TURNS_MAX, "the walk does not begin");
        tokio::task::yield_now().await;
    }
    // Jobs stop between two steps. The store stays open for the next engine.
    let engine = Arc::clone(&harness.engine);
    let closing = tokio::spawn(async move { engine.stop_jobs().await });
    closing.await.unwrap();
    let written = rows(&store, EXPIRY, container_rows(container.number())).await;
    assert!(!written.is_empty() && written.len() < DOCUMENTS, "{}", written.len());
    let id = PartitionId { container: container.number(), ordinal: model::PartitionOrdinal(0) };
    let saved = store.view().await.unwrap().get(META, &reschedule_key(id)).await.unwrap();
    assert!(saved.is_some(), "no checkpoint");
    drop(harness);
    // Rows before the checkpoint are not written again: without them only the rest is written.
    let mut batch = Batch::default();
    written.iter().for_each(|(key, _)| batch.delete(EXPIRY, key.clone()));
    store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
    let again = Harness::on(store.clone(), TestAmbient::new()).await;
    tokio::time::sleep(JOBS_TIME).await;
    assert_eq!(count(&again, EXPIRY, &container).await, DOCUMENTS - written.len());
}

/// Every second every container with a time to live was scanned.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_nothing_is_due() {
    let script = FaultScript::seeded(1);
    let store = Store::faulty(inline(), script.clone());
    let harness = Harness::on(store, TestAmbient::new()).await;
    for id in 0..20 {
        let container = harness.container(|draft| named(draft, &format!("c{id}"), 1000), 400).await;
        fill(&harness, &container, 2).await;
    }
    tokio::time::sleep(JOBS_TIME).await;
    let calls = script.call_count();
    for _ in 0..30 {
        harness.ambient.advance_seconds(1);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(script.call_count(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_closed_partition_is_opened_when_something_is_due() {
    let partitions = PartitionBounds { idle_seconds: 10, open_max: 100 };
    let options = EngineOptions { partitions, ..EngineOptions::default() };
    let harness = Harness::with_options(inline(), TestAmbient::new(), &[KEY], options).await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::Seconds(100), 400).await;
    fill(&harness, &container, 10).await;
    for _ in 0..60 {
        harness.ambient.advance_seconds(1);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((harness.engine.open_partitions(), count(&harness, RECORDS, &container).await), (0, 10));
    for _ in 0..60 {
        harness.ambient.advance_seconds(1);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((harness.engine.open_partitions(), count(&harness, RECORDS, &container).await), (0, 0));
}

/// The logs of all partitions were one piece of work, so that each waited for the previous ones. As separate pieces
/// there are more of them than are listed at once.
#[tokio::test(start_paused = true)]
async fn the_logs_of_many_partitions_are_trimmed() {
    const CONTAINERS: usize = 70;
    let harness = Harness::on(inline(), TestAmbient::new()).await;
    for id in 0..CONTAINERS {
        let container = harness.container(|draft| draft.id = format!("c{id}"), 400).await;
        harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
        let target = Target::Id("1".to_owned());
        let delete = Mutation::Delete { target, condition: Condition::None };
        harness.write(&container, delete).await.unwrap();
    }
    assert_eq!(rows(&harness.store, LOG, KeyRange::all()).await.len(), CONTAINERS, "the deletions");
    tokio::time::sleep(TRIM_TIME).await;
    assert_eq!(rows(&harness.store, LOG, KeyRange::all()).await, []);
}
