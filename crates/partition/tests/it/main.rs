//! A partition on a store in memory: what its log keeps, and for whom; and its index.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod bounds;
mod index;

use kv::{Batch, CommitMode, Durability, Store};
use model::{Ambient, ContainerDefinition, ContainerNumber, EffectiveRange, Lsn, PartitionOrdinal};
use partition::index::{IndexMemory, IndexOptions};
use partition::keyspace::{PartitionId, SPACES};
use partition::{
    ContainerShape, CurrentShape, LogKind, PartitionSpec, PhysicalPartition, RecordCache, Surroundings,
    new_partition_rows,
};
use plan::{Condition, Item, LogicalKey, Mutation, Operation, Returned, StepFault, Target, Transaction};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use value::Document;

/// A clock that stands until the test moves it.
#[derive(Debug)]
struct TestClock(AtomicU64);

impl Default for TestClock {
    fn default() -> TestClock {
        TestClock(AtomicU64::new(1_700_000_000_000))
    }
}

impl TestClock {
    fn advance_ms(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

impl Ambient for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

struct Fixture {
    partition: PhysicalPartition,
    key: LogicalKey,
}

impl Fixture {
    async fn new() -> Fixture {
        let definition =
            json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } });
        let definition = ContainerDefinition::from_json(&definition).unwrap();
        let id = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(0) };
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let mut batch = Batch::default();
        new_partition_rows(id, &mut batch);
        store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
        let shape = Arc::new(CurrentShape::new(ContainerShape::from(&definition)));
        let spec = PartitionSpec { id, range: EffectiveRange::full() };
        let surroundings = Surroundings {
            store,
            cache: Arc::new(RecordCache::new(1 << 20, 7)),
            ambient: Arc::new(TestClock::default()),
            durability: Durability::Sync,
            index: IndexMemory::new(IndexOptions::default()),
        };
        let partition = PhysicalPartition::open(surroundings, spec, shape).await.unwrap();
        let partition_key = definition.partition_key.parse_header(r#"["a"]"#).unwrap();
        let effective = definition.partition_key.effective_key(&partition_key);
        Fixture { partition, key: LogicalKey { partition_key, effective } }
    }

    async fn run(&self, mutations: Vec<Mutation>) -> Lsn {
        self.try_run(&self.key, mutations).await.unwrap()
    }

    async fn try_run(&self, key: &LogicalKey, mutations: Vec<Mutation>) -> Result<Lsn, StepFault> {
        let operations = mutations.into_iter().map(Operation::Write).collect();
        let transaction = Transaction { key: key.clone(), operations, returned: Returned::Reads };
        self.partition.execute(transaction).await.map(|executed| executed.lsn)
    }

    async fn log(&self) -> Vec<(Lsn, LogKind, Lsn)> {
        let entries = self.partition.view().await.unwrap().log(Lsn(0)).await.unwrap();
        entries.into_iter().map(|(lsn, entry)| (lsn, entry.kind, entry.lsn_last)).collect()
    }
}

fn upsert(id: &str) -> Mutation {
    padded(id, 0)
}

/// A document with so many bytes of text.
fn padded(id: &str, pad: usize) -> Mutation {
    let text = format!(r#"{{"id":"{id}","pk":"a","pad":"{}"}}"#, "x".repeat(pad));
    let document = Document::from_json(text.as_bytes()).unwrap();
    Mutation::Upsert { item: Item::new(document).unwrap(), condition: Condition::None }
}

fn delete(id: &str) -> Mutation {
    Mutation::Delete { target: Target::Id(id.to_owned()), condition: Condition::None }
}

#[tokio::test]
async fn without_consumers_the_log_holds_live_versions_and_untrimmed_deletions() {
    let fixture = Fixture::new().await;
    fixture.run(vec![upsert("1")]).await;
    let second = fixture.run(vec![upsert("1")]).await;
    assert_eq!(fixture.log().await, [(second, LogKind::Replace, second)]);
    let third = fixture.run(vec![delete("1")]).await;
    assert_eq!(fixture.log().await, [(third, LogKind::Delete, third)]);
    assert!(!fixture.partition.trim_log().await.unwrap());
    assert_eq!(fixture.log().await, []);
}

#[tokio::test]
async fn what_a_consumer_has_not_read_stays() {
    let fixture = Fixture::new().await;
    let first = fixture.run(vec![upsert("1")]).await;
    fixture.partition.set_consumer("reader", Lsn(0)).await.unwrap();
    let second = fixture.run(vec![upsert("1")]).await;
    let third = fixture.run(vec![delete("1")]).await;
    fixture.partition.trim_log().await.unwrap();
    let all = [
        (first, LogKind::Create, first),
        (second, LogKind::Replace, second),
        (third, LogKind::Delete, third),
    ];
    assert_eq!(fixture.log().await, all);
}

#[tokio::test]
async fn the_entries_of_a_transaction_know_its_end() {
    let fixture = Fixture::new().await;
    let last = fixture.run(vec![upsert("1"), upsert("2"), upsert("3")]).await;
    let log = fixture.log().await;
    assert_eq!(log.len(), 3);
    assert!(log.iter().all(|(_, _, end)| *end == last));
    assert_eq!(log.iter().map(|(lsn, ..)| last.0 - lsn.0).collect::<Vec<_>>(), [2, 1, 0]);
}

/// Trimming dropped the entries of deletions only: what was kept for a slow consumer stayed for ever.
#[tokio::test]
async fn what_was_kept_for_a_consumer_goes_when_it_was_read() {
    let fixture = Fixture::new().await;
    fixture.run(vec![upsert("1")]).await;
    fixture.run(vec![upsert("2")]).await;
    // The position of trimming is behind both entries when the consumer comes.
    assert!(!fixture.partition.trim_log().await.unwrap());
    fixture.partition.set_consumer("reader", Lsn(0)).await.unwrap();
    let mut last = Lsn(0);
    for _ in 0..1000 {
        last = fixture.run(vec![upsert("1")]).await;
    }
    fixture.run(vec![delete("2")]).await;
    while fixture.partition.trim_log().await.unwrap() {}
    assert_eq!(fixture.log().await.len(), 1003, "nothing was read yet");
    let middle = Lsn(last.0 - 500);
    fixture.partition.set_consumer("reader", middle).await.unwrap();
    while fixture.partition.trim_log().await.unwrap() {}
    assert_eq!(fixture.log().await.len(), 501);
    fixture.partition.set_consumer("reader", fixture.partition.lsn()).await.unwrap();
    while fixture.partition.trim_log().await.unwrap() {}
    assert_eq!(fixture.log().await, [(last, LogKind::Replace, last)]);
}
