//! The index of a partition over its lifetime: small runs, restarts, new policies, damage, failing stores.

use crate::TestClock;
use kv::{
    Batch, CommitMode, Direction, Durability, FaultScript, InjectedFault, KeyRange, ScanLimit, Space,
    StorageCall, Store,
};
use model::policy::{CompositeIndex, IndexingPolicy};
use model::{
    ContainerDefinition, ContainerDraft, ContainerNumber, EffectiveRange, Fault, PartitionKeyDefinition,
    PartitionKeyKind, PartitionOrdinal,
};
use partition::index::{Coverage, IndexMemory, IndexOptions, IndexPath, IndexStep, Lookup};
use partition::keyspace::{INDEX, META, PartitionId, RECORDS, SPACES};
use partition::{
    ContainerShape, CurrentShape, PartitionEnvironment, PartitionMetrics, PartitionSpec, PhysicalPartition,
    RecordCache, STEPS_MAX, new_partition_rows,
};
use plan::{
    Condition, DocumentOperation, Item, LogicalKey, Mutation, Returned, StepFault, Target, Transaction,
};
use serde_json::json;
use std::sync::Arc;
use value::Document;

pub(crate) const SMALL: IndexOptions = IndexOptions {
    inline_documents_max: 8,
    flush_documents: 24,
    flush_bytes: 1 << 20,
    run_fan_in: 2,
    memory_bytes_max: 1 << 20,
    cache_bytes: 0,
};

/// A container of one partition over a store that outlives it.
pub(crate) struct IndexFixture {
    pub(crate) store: Store,
    pub(crate) shape: Arc<CurrentShape>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) partition: PhysicalPartition,
    pub(crate) key: LogicalKey,
}

fn definition(policy: &IndexingPolicy) -> ContainerDefinition {
    let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let mut draft = ContainerDraft::new("c", key);
    draft.policies.indexing = policy.clone();
    draft.checked().unwrap()
}

pub(crate) fn policy(included: &[&str], excluded: &[&str]) -> IndexingPolicy {
    IndexingPolicy::by_texts(included, excluded).unwrap()
}

/// The same with a composite index on two properties.
pub(crate) fn with_order(policy: IndexingPolicy) -> IndexingPolicy {
    let order = CompositeIndex::over(&[("/odd", false), ("/v", true)]).unwrap();
    IndexingPolicy { composite: vec![order], ..policy }
}

const ID: PartitionId = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(0) };

async fn open(
    store: &Store,
    shape: &Arc<CurrentShape>,
    clock: &Arc<TestClock>,
) -> Result<PhysicalPartition, Fault> {
    open_with(store, shape, clock, IndexMemory::new(SMALL)).await
}

pub(crate) async fn open_with(
    store: &Store,
    shape: &Arc<CurrentShape>,
    clock: &Arc<TestClock>,
    index: Arc<IndexMemory>,
) -> Result<PhysicalPartition, Fault> {
    let spec = PartitionSpec { id: ID, range: EffectiveRange::full(), ancestors: Vec::new() };
    let environment = PartitionEnvironment {
        store: store.clone(),
        cache: Arc::new(RecordCache::new(1 << 20, 7)),
        ambient: Arc::clone(clock) as Arc<_>,
        durability: Durability::Sync,
        index,
        metrics: PartitionMetrics::default(),
    };
    PhysicalPartition::open(environment, spec, Arc::clone(shape)).await
}

impl IndexFixture {
    pub(crate) async fn new(store: Store) -> IndexFixture {
        let definition = definition(&IndexingPolicy::default());
        let mut batch = Batch::default();
        new_partition_rows(ID, 0, &mut batch);
        store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
        let shape = Arc::new(CurrentShape::new(ContainerShape::from(&definition)));
        let clock = Arc::new(TestClock::default());
        let partition = open(&store, &shape, &clock).await.unwrap();
        let partition_key = definition.partition_key.key(vec!["a".into()]).unwrap();
        let effective = definition.partition_key.effective_key(&partition_key);
        IndexFixture { store, shape, clock, partition, key: LogicalKey { partition_key, effective } }
    }

    pub(crate) async fn in_memory() -> IndexFixture {
        IndexFixture::new(Store::memory(&SPACES, CommitMode::Inline)).await
    }

    /// As after the death of the process: nothing is closed.
    pub(crate) async fn restart(&mut self) {
        self.partition = open(&self.store, &self.shape, &self.clock).await.unwrap();
    }

    pub(crate) fn replace_policy(&self, policy: &IndexingPolicy) {
        let mut shape = ContainerShape::from(&definition(policy));
        shape.change = self.shape.load().change + 1;
        assert!(self.shape.adopt(shape));
    }

    pub(crate) async fn run(&self, mutation: Mutation) -> Result<(), StepFault> {
        let transaction = Transaction {
            key: self.key.clone(),
            operations: vec![DocumentOperation::Write(mutation)],
            returned: Returned::All,
        };
        self.partition.execute(transaction).await.map(drop)
    }

    pub(crate) async fn put(&self, id: usize, version: usize) -> Result<(), StepFault> {
        let text =
            json!({ "id": format!("{id}"), "pk": "a", "v": version, "odd": id % 2, "tags": [id % 3, "x"] });
        let document = Document::from_json(text.to_string().as_bytes()).unwrap();
        self.run(Mutation::Upsert { item: Item::new(document).unwrap(), condition: Condition::None }).await
    }

    pub(crate) async fn delete(&self, id: usize) -> Result<(), StepFault> {
        self.run(Mutation::Delete { target: Target::Id(format!("{id}")), condition: Condition::None }).await
    }

    /// Waits until the index has no running work that changes its rows.
    pub(crate) async fn wait_until_stable(&self) {
        const ROUNDS_MAX: usize = 10_000;
        let mut before = usize::MAX;
        for _ in 0..ROUNDS_MAX {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            let rows = self.index_rows().await.len();
            if rows == before && self.partition.index_progress() == 100 {
                return;
            }
            before = rows;
        }
        panic!("the index does not become stable: {} %", self.partition.index_progress());
    }

    pub(crate) async fn index_rows(&self) -> Vec<(bytes::Bytes, bytes::Bytes)> {
        let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let view = self.store.view().await.unwrap();
        view.scan(INDEX, KeyRange::all(), Direction::Forward, limit).await.unwrap().rows
    }

    pub(crate) async fn audit(&self) {
        let findings = self.partition.audit_index().await.unwrap();
        assert!(findings.is_empty(), "{:?}", findings.first());
        let view = self.partition.view().await.unwrap();
        let counted = view.index().unwrap().document_count();
        assert_eq!(counted, self.partition.counts().documents);
    }

    pub(crate) async fn count(&self, name: &str, value: i64) -> Result<u64, Fault> {
        let mut code = Vec::new();
        value::encode_key_value(&value::Value::Int64(value), &mut code);
        let path = IndexPath::property([IndexStep::Name(name)]);
        let view = self.partition.view().await.unwrap();
        let lookup = Lookup::Term { path, code };
        Ok(view.index().unwrap().documents(&lookup).await?.count())
    }
}

#[tokio::test]
async fn runs_and_restarts_agree_with_the_records() {
    runs_and_restarts(IndexFixture::in_memory().await).await;
}

/// The same over a store where every call takes a round trip and calls overtake each other. When the partition is
/// opened again, jobs of the previous opening still run. They used to delete rows of the opened index.
#[tokio::test(start_paused = true)]
async fn runs_and_restarts_over_round_trips_agree_with_the_records() {
    for seed in 0..6 {
        runs_and_restarts(IndexFixture::new(Store::round_trip(&SPACES, kv::Link::seeded(seed))).await).await;
    }
}

async fn runs_and_restarts(mut fixture: IndexFixture) {
    for round in 0..12 {
        for step in 0..40 {
            let id = (round * 17 + step * 7) % 90;
            if step % 5 == 4 {
                fixture.delete(id).await.ok();
            } else {
                fixture.put(id, round).await.unwrap();
            }
        }
        fixture.audit().await;
        if round % 2 == 1 {
            fixture.wait_until_stable().await;
            assert!(!fixture.index_rows().await.is_empty(), "something must be on disk");
        }
        fixture.restart().await;
        fixture.audit().await;
    }
    assert_eq!(
        fixture.count("odd", 0).await.unwrap() + fixture.count("odd", 1).await.unwrap(),
        fixture.partition.counts().documents
    );
}

#[tokio::test(start_paused = true)]
async fn segments_become_one_when_nothing_is_written() {
    let fixture = IndexFixture::in_memory().await;
    for id in 0..6 {
        fixture.put(id, 1).await.unwrap();
    }
    let pieces = async || fixture.partition.view().await.unwrap().index().unwrap().piece_count();
    assert_eq!(pieces().await, 6, "too few of a size to be merged while writing");
    // The writer is idle after a second.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    fixture.wait_until_stable().await;
    assert_eq!(pieces().await, 1);
    fixture.delete(3).await.unwrap();
    fixture.put(4, 2).await.unwrap();
    fixture.audit().await;
    assert_eq!(fixture.count("odd", 1).await.unwrap(), 2);
}

#[tokio::test]
async fn the_old_index_serves_while_one_for_a_new_policy_is_built() {
    let mut fixture = IndexFixture::in_memory().await;
    for id in 0..100 {
        fixture.put(id, 1).await.unwrap();
    }
    fixture.wait_until_stable().await;
    assert_eq!(fixture.partition.index_progress(), 100);
    let odd = IndexPath::property([IndexStep::Name("odd")]);
    let version = IndexPath::property([IndexStep::Name("v")]);
    fixture.replace_policy(&with_order(policy(&["/odd/?"], &["/*"])));
    assert!(fixture.partition.index_progress() < 100);
    fixture.partition.reshape();
    for id in 50..150 {
        fixture.put(id, 2).await.unwrap();
        if id % 10 == 0 {
            fixture.delete(id - 45).await.unwrap();
        }
        fixture.audit().await;
    }
    fixture.wait_until_stable().await;
    fixture.audit().await;
    for _ in 0..2 {
        let view = fixture.partition.view().await.unwrap();
        let reader = view.index().unwrap();
        assert_eq!(reader.covers(&odd), Coverage::Whole);
        assert_eq!(reader.covers(&version), Coverage::None);
        fixture.restart().await;
        fixture.wait_until_stable().await;
        fixture.audit().await;
    }
    // And back again, always with an index.
    fixture.replace_policy(&IndexingPolicy::none());
    fixture.partition.reshape();
    fixture.replace_policy(&IndexingPolicy::default());
    fixture.partition.reshape();
    fixture.wait_until_stable().await;
    fixture.audit().await;
    assert_eq!(fixture.count("v", 2).await.unwrap(), 95);
}

#[tokio::test]
async fn damage_is_reported_and_the_index_is_rebuilt() {
    let mut fixture = IndexFixture::in_memory().await;
    for id in 0..100 {
        fixture.put(id, id % 7).await.unwrap();
    }
    fixture.wait_until_stable().await;
    let expected = fixture.count("v", 3).await.unwrap();
    let rows = fixture.index_rows().await;
    for index in 0..rows.len() {
        let rows = fixture.index_rows().await;
        let Some((key, row)) = rows.get(index % rows.len().max(1)) else { break };
        let mut damaged = row.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        let mut batch = Batch::default();
        batch.put(INDEX, key.clone(), damaged);
        fixture.store.submit(&fixture.store.lane(), batch, Durability::Sync).await.unwrap();
        fixture.put(1000 + index, 99).await.unwrap();
        if index % 2 == 0 {
            fixture.restart().await;
        }
        // Correct, or a fault, or no index: never wrong.
        for _ in 0..20 {
            fixture.wait_until_stable().await;
            if fixture.partition.view().await.unwrap().index().is_none() {
                continue;
            }
            match fixture.count("v", 3).await {
                Ok(count) => assert_eq!(count, expected),
                Err(fault) => assert!(matches!(fault, Fault::Storage(_))),
            }
            if fixture.partition.audit_index().await.is_ok_and(|findings| findings.is_empty()) {
                break;
            }
        }
        fixture.audit().await;
    }
    let mut batch = Batch::default();
    batch.put(META, partition::keyspace::manifest_key(ID), b"nonsense".to_vec());
    fixture.store.submit(&fixture.store.lane(), batch, Durability::Sync).await.unwrap();
    fixture.restart().await;
    fixture.wait_until_stable().await;
    fixture.audit().await;
}

/// A build used to start again when a reader found damage in the old index.
#[tokio::test]
async fn damage_to_the_old_index_does_not_restart_the_build() {
    const TURNS_MAX: usize = 100_000;
    let fixture = IndexFixture::in_memory().await;
    for id in 0..5_000 {
        fixture.put(id, id % 7).await.unwrap();
    }
    fixture.wait_until_stable().await;
    let mut batch = Batch::default();
    for (key, row) in fixture.index_rows().await {
        let mut damaged = row.to_vec();
        damaged[0] ^= 0x10;
        batch.put(INDEX, key, damaged);
    }
    fixture.store.submit(&fixture.store.lane(), batch, Durability::Sync).await.unwrap();
    // Readers get a view from after the damage.
    fixture.put(1, 1).await.unwrap();
    fixture.replace_policy(&policy(&[], &["/tags/*"]));
    fixture.partition.reshape();
    let mut turns = 0;
    // Two of five steps: a build that starts again would be seen after one step.
    while fixture.partition.index_progress() < 40 {
        tokio::task::yield_now().await;
        turns += 1;
        assert!(turns < TURNS_MAX, "the build makes no progress");
    }
    let mut progress = fixture.partition.index_progress();
    assert!(progress < 90, "{progress} % of the build in one turn");
    assert!(matches!(fixture.count("v", 3).await, Err(Fault::Storage(_))));
    while progress < 100 {
        tokio::task::yield_now().await;
        let now = fixture.partition.index_progress();
        assert!(now >= progress, "the build was at {progress} % and is at {now} %");
        progress = now;
        turns += 1;
        assert!(turns < TURNS_MAX, "the build does not end");
    }
    fixture.wait_until_stable().await;
    fixture.audit().await;
    nothing_unnamed(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_anywhere_leaves_the_index_right() {
    for kind in [InjectedFault::Fail, InjectedFault::FailSync, InjectedFault::Tear { survive: 1 }] {
        for call in (1..400).step_by(41) {
            let script = FaultScript::seeded(call);
            let store = Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone());
            let mut fixture = IndexFixture::new(store).await;
            script.fail_call(call, kind);
            if call % 3 == 0 {
                script.fail_next(StorageCall::Ingest, kind);
            }
            for id in 0..60 {
                fixture.put(id % 45, id).await.ok();
                fixture.store.reopen().await.ok();
            }
            script.clear_faults();
            fixture.store.reopen().await.unwrap();
            // Long enough for a failed build to be retried.
            for id in 0..40 {
                fixture.clock.advance_ms(1_000);
                fixture.put(id % 45, 7).await.unwrap();
                if id % 10 == 0 {
                    assert_eq!(fixture.partition.audit_index().await.unwrap(), []);
                }
            }
            fixture.wait_until_stable().await;
            fixture.audit().await;
            fixture.restart().await;
            fixture.wait_until_stable().await;
            fixture.audit().await;
        }
    }
}

/// The marks of ingests that no batch has named, in the store's own space.
async fn unnamed_ingests(store: &Store) -> usize {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let pending = KeyRange::prefix("pending");
    let view = store.view().await.unwrap();
    view.scan(Space(u8::MAX), pending, Direction::Forward, limit).await.unwrap().rows.len()
}

/// Waits until the rows of abandoned work are deleted.
pub(crate) async fn nothing_unnamed(fixture: &IndexFixture) {
    fixture.wait_until_stable().await;
    assert_eq!(unnamed_ingests(&fixture.store).await, 0);
    // An opening deletes the rows of runs that no manifest names.
    let before = fixture.index_rows().await;
    let reopened = open(&fixture.store, &fixture.shape, &fixture.clock).await.unwrap();
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.index_rows().await.len(), before.len(), "an opening found rows of unnamed runs");
    drop(reopened);
}

/// Their rows and the marks of their ingests used to stay until the next start.
#[tokio::test]
async fn abandoned_builds_leave_no_rows() {
    let fixture = IndexFixture::in_memory().await;
    for id in 0..300 {
        fixture.put(id, 1).await.unwrap();
    }
    fixture.wait_until_stable().await;
    let policies = ["v", "odd", "tags"].map(|path| policy(&[], &[&format!("/{path}/?")]));
    let mut most = 0;
    for turns in 0..60 {
        fixture.replace_policy(&policies[turns % policies.len()]);
        fixture.partition.reshape();
        for _ in 0..turns {
            tokio::task::yield_now().await;
            most = most.max(unnamed_ingests(&fixture.store).await);
        }
        if turns % 7 == 0 {
            fixture.put(turns, 2).await.unwrap();
        }
    }
    assert!(most > 0, "no build was given up with rows in the store");
    nothing_unnamed(&fixture).await;
    fixture.audit().await;
}

#[tokio::test]
async fn a_failing_build_is_tried_again_after_growing_pauses_and_leaves_no_rows() {
    let fixture = IndexFixture::in_memory().await;
    // More than a build reads in one step, so that it has written runs before it reads the last record.
    for id in 0..1_200 {
        fixture.put(id, 1).await.unwrap();
    }
    fixture.wait_until_stable().await;
    // The last record cannot be read.
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = fixture.store.view().await.unwrap();
    let records = view.scan(RECORDS, KeyRange::all(), Direction::Forward, limit).await.unwrap().rows;
    let (key, row) = records.last().unwrap().clone();
    let mut batch = Batch::default();
    batch.put(RECORDS, key.clone(), row.slice(..4));
    fixture.store.submit(&fixture.store.lane(), batch, Durability::Sync).await.unwrap();
    fixture.replace_policy(&policy(&[], &["/v/?"]));
    let mut ingests_seen = ingests(&fixture.store).await;
    let mut builds = Vec::new();
    for second in 0..40 {
        fixture.partition.reshape();
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(unnamed_ingests(&fixture.store).await, 0, "after second {second}");
        let now = ingests(&fixture.store).await;
        if now > ingests_seen {
            builds.push(second);
        }
        ingests_seen = now;
        fixture.clock.advance_ms(1_000);
    }
    assert_eq!(builds, [0, 1, 3, 7, 15, 31]);
    // After the repair the index is built.
    let mut batch = Batch::default();
    batch.put(RECORDS, key, row);
    fixture.store.submit(&fixture.store.lane(), batch, Durability::Sync).await.unwrap();
    fixture.clock.advance_ms(3_600_000);
    fixture.partition.reshape();
    nothing_unnamed(&fixture).await;
    fixture.audit().await;
}

/// Ingests that the store has ever started.
async fn ingests(store: &Store) -> u64 {
    let row = store.view().await.unwrap().get(Space(u8::MAX), b"last").await.unwrap();
    row.map_or(0, |row| u64::from_be_bytes(row.as_ref().try_into().unwrap()))
}

/// A build used to take as much of the store as it could, without the budget of other housekeeping.
#[tokio::test]
async fn an_index_is_built_in_steps_of_the_common_budget() {
    const TURNS_MAX: usize = 10_000;
    let fixture = IndexFixture::in_memory().await;
    for id in 0..40 {
        fixture.put(id, 0).await.unwrap();
    }
    fixture.replace_policy(&policy(&[], &["/odd/?"]));
    let memory = IndexMemory::new(SMALL);
    let mut others = Vec::new();
    for _ in 0..STEPS_MAX {
        others.push(memory.steps().step().await);
    }
    let (store, shape, clock) = (&fixture.store, &fixture.shape, &fixture.clock);
    let partition = open_with(store, shape, clock, Arc::clone(&memory)).await.unwrap();
    for _ in 0..TURNS_MAX {
        tokio::task::yield_now().await;
    }
    assert_eq!(partition.index_progress(), 0, "all steps are taken");
    others.pop();
    let mut turns = 0;
    while partition.index_progress() < 100 {
        tokio::task::yield_now().await;
        turns += 1;
        assert!(turns < TURNS_MAX, "the build makes no progress");
    }
    assert_eq!(partition.audit_index().await.unwrap(), []);
}
