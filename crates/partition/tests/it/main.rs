//! A partition on a store in memory: what its log keeps for which consumers, and its index.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod bounds;
mod changes;
mod drafts;
mod history;
mod index;
mod index_restart;
mod locks;
mod ownership;
mod rename;
mod round_trip;
mod split;

use bytes::Bytes;
use kv::{Batch, CommitMode, Durability, Store};
use model::{
    Ambient, ContainerDraft, ContainerNumber, EffectiveRange, Fault, Lsn, PartitionKeyDefinition,
    PartitionKeyKind, PartitionOrdinal,
};
use partition::index::{IndexMemory, IndexOptions};
use partition::keyspace::{PartitionId, SPACES, document_key};
use partition::{
    AuditScope, ContainerShape, CurrentShape, ExpiryRule, LogKind, LogPosition, PartitionEnvironment,
    PartitionMetrics, PartitionSpec, PhysicalPartition, RecordCache, audit, new_partition_rows,
};
use plan::{
    Condition, DocumentOperation, Item, LogicalKey, Mutation, Outcome, Returned, StepFault, Target,
    Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use value::Document;

/// Steps after which trimming a log should have ended.
const TRIM_STEPS_MAX: usize = 1_000;

/// A clock that stands still until the test moves it.
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

    fn set_back_ms(&self, milliseconds: u64) {
        self.0.fetch_sub(milliseconds, Ordering::SeqCst);
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

const ID: PartitionId = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(0) };

struct Fixture {
    partition: PhysicalPartition,
    shape: Arc<CurrentShape>,
    key: LogicalKey,
}

/// Lets turns of the scheduler pass in which all tasks proceed as far as they can.
async fn pass_turns() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

impl Fixture {
    async fn new() -> Fixture {
        Fixture::on(Store::memory(&SPACES, CommitMode::Thread)).await
    }

    async fn on(store: Store) -> Fixture {
        Fixture::create(&store).await;
        Fixture::open(&store, &Arc::default(), Durability::Sync).await.unwrap()
    }

    /// The rows of the partition.
    async fn create(store: &Store) {
        let mut batch = Batch::default();
        new_partition_rows(ID, 0, &mut batch);
        store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
    }

    async fn open(store: &Store, clock: &Arc<TestClock>, durability: Durability) -> Result<Fixture, Fault> {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let definition = ContainerDraft::new("c", key).checked().unwrap();
        let shape = Arc::new(CurrentShape::new(ContainerShape::from(&definition)));
        let spec = PartitionSpec { id: ID, range: EffectiveRange::full(), ancestors: Vec::new() };
        let environment = PartitionEnvironment {
            store: store.clone(),
            cache: Arc::new(RecordCache::new(1 << 20, 7)),
            ambient: Arc::clone(clock) as Arc<_>,
            durability,
            index: IndexMemory::new(IndexOptions::default()),
            metrics: PartitionMetrics::default(),
        };
        let partition = PhysicalPartition::open(environment, spec, Arc::clone(&shape)).await?;
        let partition_key = definition.partition_key.key(vec!["a".into()]).unwrap();
        let effective = definition.partition_key.effective_key(&partition_key);
        Ok(Fixture { partition, shape, key: LogicalKey { partition_key, effective } })
    }

    /// Changes the retention of the history.
    fn retain(&self, history_seconds: Option<u64>) {
        let mut shape = ContainerShape::clone(&self.shape.load());
        shape.change += 1;
        shape.history_seconds = history_seconds;
        assert!(self.shape.adopt(shape));
    }

    async fn run(&self, mutations: Vec<Mutation>) -> Lsn {
        self.try_run(&self.key, mutations).await.unwrap()
    }

    async fn try_run(&self, key: &LogicalKey, mutations: Vec<Mutation>) -> Result<Lsn, StepFault> {
        let operations = mutations.into_iter().map(DocumentOperation::Write).collect();
        let transaction = Transaction { key: key.clone(), operations, returned: Returned::Reads };
        self.partition.execute(transaction).await.map(|executed| executed.lsn)
    }

    /// Trims the log until nothing is left to trim.
    async fn trim(&self) {
        for _ in 0..TRIM_STEPS_MAX {
            if !self.partition.trim_log().await.unwrap() {
                return;
            }
        }
        panic!("trimming does not end");
    }

    async fn log(&self) -> Vec<(LogPosition, LogKind)> {
        let entries = self.partition.view().await.unwrap().log(LogPosition::default()).await.unwrap();
        entries.into_iter().map(|(at, entry)| (at, entry.kind)).collect()
    }

    /// All rows and the index agree with the records.
    async fn audited(&self, store: &Store) {
        let scope = AuditScope {
            container: ID.container,
            shape: &self.shape.load(),
            partitions: &[self.partition.spec().clone()],
            expiry: ExpiryRule::Exact,
        };
        let view = store.view().await.unwrap();
        assert_eq!(audit(&view, &scope).await.unwrap().findings, []);
        assert_eq!(self.partition.audit_index().await.unwrap(), []);
    }

    fn record_key(&self, id: &str) -> Bytes {
        document_key(ContainerNumber(1), &self.key, id.into()).into()
    }
}

fn start_of(lsn: Lsn) -> LogPosition {
    LogPosition::start_of(lsn)
}

fn upsert(id: &str) -> Mutation {
    padded(id, 0)
}

/// A document with `bytes` bytes of text.
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
    assert_eq!(fixture.log().await, [(start_of(second), LogKind::Replace)]);
    let third = fixture.run(vec![delete("1")]).await;
    let key = fixture.record_key("1");
    assert_eq!(fixture.log().await, [(start_of(third), LogKind::Delete { key })]);
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
        (start_of(first), LogKind::Create),
        (start_of(second), LogKind::Replace),
        (start_of(third), LogKind::Delete { key: fixture.record_key("1") }),
    ];
    assert_eq!(fixture.log().await, all);
}

#[tokio::test]
async fn a_transaction_has_one_lsn_and_its_changes_have_positions() {
    let fixture = Fixture::new().await;
    let before = fixture.partition.lsn();
    let lsn = fixture.run(vec![upsert("1"), upsert("2"), upsert("3")]).await;
    assert_eq!(lsn, before.next());
    let at = |position| LogPosition { lsn, position };
    let created = |position| (at(position), LogKind::Create);
    assert_eq!(fixture.log().await, [created(0), created(1), created(2)]);
    // A document that a transaction writes twice has one log entry.
    let lsn = fixture.run(vec![upsert("1"), upsert("2"), upsert("1"), delete("2"), upsert("3")]).await;
    assert_eq!(lsn, before.next().next());
    let at = |position| LogPosition { lsn, position };
    let key = fixture.record_key("2");
    let expected = [(at(2), LogKind::Replace), (at(3), LogKind::Delete { key }), (at(4), LogKind::Replace)];
    assert_eq!(fixture.log().await, expected);
    // A transaction without changes takes no LSN.
    assert_eq!(fixture.run(vec![]).await, lsn);
}

#[tokio::test]
async fn versions_of_a_transaction_have_stamps_and_times_of_their_own() {
    let fixture = Fixture::new().await;
    let operations = ["1", "2", "1"].map(upsert).map(DocumentOperation::Write).into();
    let transaction = Transaction { key: fixture.key.clone(), operations, returned: Returned::All };
    let executed = fixture.partition.execute(transaction).await.unwrap();
    let stored: Vec<_> = executed
        .outcomes
        .into_iter()
        .filter_map(|(outcome, _)| match outcome {
            Outcome::Created(stored) | Outcome::Replaced(stored) => Some(stored),
            Outcome::Deleted | Outcome::Read(_) | Outcome::NotModified(_) | Outcome::Nothing => None,
        })
        .collect();
    assert_eq!(stored.len(), 3);
    assert!(stored.iter().all(|version| version.lsn == executed.lsn));
    assert!(stored.windows(2).all(|pair| pair[0].etag.stamp < pair[1].etag.stamp));
    // The clock stands still.
    assert!(stored.windows(2).all(|pair| pair[0].time < pair[1].time));
    assert!(stored.iter().all(|version| version.ts() == 1_700_000_000));
}

/// Trimming used to delete only the entries of deletions: entries kept for a slow consumer stayed forever.
#[tokio::test]
async fn entries_kept_for_a_consumer_are_trimmed_after_it_has_read_them() {
    let fixture = Fixture::new().await;
    fixture.run(vec![upsert("1")]).await;
    fixture.run(vec![upsert("2")]).await;
    // The trimmed position is after both entries when the consumer is registered.
    assert!(!fixture.partition.trim_log().await.unwrap());
    fixture.partition.set_consumer("reader", Lsn(0)).await.unwrap();
    let mut last = Lsn(0);
    for _ in 0..1000 {
        last = fixture.run(vec![upsert("1")]).await;
    }
    fixture.run(vec![delete("2")]).await;
    fixture.trim().await;
    assert_eq!(fixture.log().await.len(), 1003, "nothing was read yet");
    let middle = Lsn(last.0 - 500);
    fixture.partition.set_consumer("reader", middle).await.unwrap();
    fixture.trim().await;
    assert_eq!(fixture.log().await.len(), 501);
    fixture.partition.set_consumer("reader", fixture.partition.lsn()).await.unwrap();
    fixture.trim().await;
    assert_eq!(fixture.log().await, [(start_of(last), LogKind::Replace)]);
}

/// A transaction with more entries than one trim step reads.
#[tokio::test]
async fn the_entries_of_a_large_transaction_are_trimmed_in_steps() {
    const COUNT: usize = 9_000;
    let fixture = Fixture::new().await;
    let ids: Vec<String> = (0..COUNT).map(|id| id.to_string()).collect();
    fixture.run(ids.iter().map(|id| upsert(id)).collect()).await;
    fixture.run(ids.iter().map(|id| delete(id)).collect()).await;
    let kept = fixture.run(vec![upsert("kept")]).await;
    let mut steps = 1;
    while fixture.partition.trim_log().await.unwrap() {
        steps += 1;
        assert!(steps <= COUNT, "trimming does not end");
    }
    assert!(steps > 1, "all in one step");
    assert_eq!(fixture.log().await, [(start_of(kept), LogKind::Create)]);
}

fn item(json: &str) -> Item {
    Item::new(Document::from_json(json.as_bytes()).unwrap()).unwrap()
}
