//! A container that is dropped: while its partition is being opened, and before it is created again under the same
//! name.

use crate::harness::{Harness, HeldStore, TestAmbient, key, pass_turns};
use engine::{Container, DocumentAddress, ReadOptions};
use kv::{Batch, CommitMode, Durability, Store};
use model::{EffectiveRange, Fault, MissingFault, PartitionOrdinal, SessionToken};
use partition::index::{IndexMemory, IndexOptions};
use partition::keyspace::{CATALOG, META, PartitionId, SPACES, container_rows, dropped_key, head_key};
use partition::{
    ContainerShape, CurrentShape, PartitionEnvironment, PartitionMetrics, PartitionSpec, PhysicalPartition,
    RecordCache, stray_containers,
};
use plan::{Condition, Target};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Rounds of the jobs within which the state that a test waits for must be reached.
const ROUNDS_MAX: usize = 1_000;
/// The index of a few documents is built concurrently with the writer.
const SMALL: IndexOptions = IndexOptions {
    inline_documents_max: 4,
    flush_documents: 16,
    flush_bytes: 1 << 20,
    run_fan_in: 4,
    memory_bytes_max: 1 << 20,
    cache_bytes: 1 << 16,
};

/// Sets the LSN of the only partition of a container, which was never opened.
async fn age(harness: &Harness, container: &Container, lsn: u64) {
    let head = head_key(PartitionId { container: container.number(), ordinal: PartitionOrdinal(0) });
    let mut row = harness.store.view().await.unwrap().get(META, &head).await.unwrap().unwrap().to_vec();
    // The LSN and the reserved LSN are the first fields after the format byte.
    row[1..9].copy_from_slice(&lsn.to_be_bytes());
    row[9..17].copy_from_slice(&lsn.to_be_bytes());
    let mut batch = Batch::default();
    batch.put(META, head, row);
    harness.store.submit(&harness.store.lane(), batch, Durability::Sync).await.unwrap();
}

/// LSNs started at the number of the container times 2³²: a partition that had used more of them was followed by one
/// that started below it.
#[tokio::test(start_paused = true)]
async fn a_container_that_is_created_again_begins_above_its_predecessor() {
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let mut harness = Harness::on(store.clone(), TestAmbient::new()).await;
    let mut stamps = std::collections::BTreeSet::new();
    for (round, is_gone) in [(1, false), (2, true), (3, false)] {
        let old = harness.container(|_| {}, 400).await;
        age(&harness, &old, round << 40).await;
        let written = harness.create(&old, r#"{"id":"1","pk":"a"}"#).await.unwrap();
        assert!(stamps.insert(written.etag.stamp));
        assert!(written.lsn.0 > round << 40);
        harness.engine.delete_container(harness.admin(&*old), &Condition::None).await.unwrap();
        if is_gone {
            let range = container_rows(old.number());
            let limit = kv::ScanLimit { rows: 1, bytes: usize::MAX };
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            let view = harness.store.view().await.unwrap();
            let heads = view.scan(META, range, kv::Direction::Forward, limit).await.unwrap();
            assert!(heads.rows.is_empty(), "the head is still there");
            // The floor of LSNs also survives a restart.
            harness = Harness::on(store.clone(), TestAmbient::new()).await;
        }
        let new = harness.container(|_| {}, 400).await;
        let seen = SessionToken { ordinal: PartitionOrdinal(0), lsn: written.lsn };
        let address = DocumentAddress { key: key(&new, r#"["a"]"#), target: Target::Id("1".to_owned()) };
        let access = harness.engine.access();
        let pass = access.read_document(&harness.principal, &new, address).unwrap();
        let options = ReadOptions { session: vec![seen], ..ReadOptions::default() };
        let absent = harness.engine.read(pass, &options).await.unwrap_err().fault;
        assert_eq!(absent, Fault::Missing(MissingFault::Resource), "not that the session is ahead");
        let again = harness.create(&new, r#"{"id":"1","pk":"a"}"#).await.unwrap();
        assert!(again.lsn > written.lsn && stamps.insert(again.etag.stamp), "{again:?}");
        harness.engine.delete_container(harness.admin(&*new), &Condition::None).await.unwrap();
    }
}

/// The batch of the write came after that of the drop: its client got an error about a row of the store with another
/// value, and the advice to retry.
#[tokio::test(start_paused = true)]
async fn a_write_that_comes_behind_the_drop_of_its_container_finds_none() {
    let held = HeldStore::new();
    let store = held.store.clone();
    let harness = Arc::new(Harness::on(store, TestAmbient::new()).await);
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    held.hold();
    let (dropping, dropped) = (Arc::clone(&harness), Arc::clone(&container));
    let drop = tokio::spawn(async move { dropping.drop_container(&dropped).await });
    pass_turns().await;
    let (writing, late) = (Arc::clone(&harness), Arc::clone(&container));
    let write = tokio::spawn(async move { writing.create(&late, r#"{"id":"2","pk":"a"}"#).await });
    pass_turns().await;
    held.release();
    drop.await.unwrap().unwrap();
    assert_eq!(write.await.unwrap().unwrap_err(), Fault::Missing(MissingFault::Owner));
}

/// The store had the drop and the catalog not yet: a partition without an owner could not be opened, and clients got
/// advice to retry with the text of an internal state.
#[tokio::test(start_paused = true)]
async fn requests_between_the_commit_of_a_drop_and_its_end_find_no_container() {
    for is_open in [false, true] {
        let held = HeldStore::new();
        let harness = Arc::new(Harness::on(held.store.clone(), TestAmbient::new()).await);
        let container = harness.container(|_| {}, 400).await;
        if is_open {
            harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
        }
        let mut drop = Box::pin(harness.drop_container(&container));
        assert!(poll_fn(|context| Poll::Ready(drop.as_mut().poll(context).is_pending())).await);
        // Its batch is committed, and nobody has looked at the result.
        pass_turns().await;
        let (writing, late) = (Arc::clone(&harness), Arc::clone(&container));
        let write = tokio::spawn(async move { writing.create(&late, r#"{"id":"2","pk":"a"}"#).await });
        pass_turns().await;
        let (reading, late) = (Arc::clone(&harness), Arc::clone(&container));
        let read = tokio::spawn(async move { reading.read(&late, r#"["a"]"#, "1").await });
        pass_turns().await;
        assert!(!write.is_finished() && !read.is_finished(), "open before: {is_open}");
        drop.await.unwrap();
        let missing = Fault::Missing(MissingFault::Owner);
        assert_eq!(write.await.unwrap().unwrap_err(), missing, "open before: {is_open}");
        assert_eq!(read.await.unwrap().unwrap_err(), missing, "open before: {is_open}");
    }
}

/// The job that deletes the rows of a dropped container closed only partitions whose opening had ended. The writer of
/// one that was being opened saved its index after the job, and those rows were never deleted.
#[tokio::test(start_paused = true)]
async fn a_container_that_is_dropped_while_its_partition_is_being_opened_leaves_no_row() {
    let held = HeldStore::new();
    let store = held.store.clone();
    let harness = Arc::new(Harness::on(store.clone(), TestAmbient::new()).await);
    let container = harness.container(|_| {}, 400).await;
    for id in 0..40 {
        harness.create(&container, &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.unwrap();
    }
    // An opening that the engine does not see, with an index to be built. Its first rows wait for the store.
    let id = PartitionId { container: container.number(), ordinal: PartitionOrdinal(0) };
    let environment = PartitionEnvironment {
        store: store.clone(),
        cache: Arc::new(RecordCache::new(1 << 20, 7)),
        ambient: harness.ambient.clone(),
        durability: Durability::Sync,
        index: IndexMemory::new(SMALL),
        metrics: PartitionMetrics::default(),
    };
    let shape = Arc::new(CurrentShape::new(ContainerShape::from(container.definition())));
    let spec = PartitionSpec { id, range: EffectiveRange::full(), ancestors: Vec::new() };
    let late = PhysicalPartition::open(environment, spec, shape).await.unwrap();
    held.hold();
    pass_turns().await;
    let (dropping, dropped) = (Arc::clone(&harness), Arc::clone(&container));
    let drop = tokio::spawn(async move { dropping.drop_container(&dropped).await });
    tokio::task::yield_now().await;
    held.release();
    drop.await.unwrap().unwrap();
    let mut rounds = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let view = store.view().await.unwrap();
        if view.get(CATALOG, &dropped_key(container.number())).await.unwrap().is_none() {
            break;
        }
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "the rows were not deleted");
    }
    late.close().await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let view = store.view().await.unwrap();
    assert_eq!(stray_containers(&view).await.unwrap(), []);
}
