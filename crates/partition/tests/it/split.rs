//! Splits of a partition: both children have their documents, log, history and index, through several generations,
//! while documents are written, partitions reopened, logs trimmed and children separated from their ancestors.

use super::TestClock;
use bytes::Bytes;
use kv::{Batch, CommitFault, CommitMode, Direction, Durability, KeyRange, ScanLimit, Store};
use model::{
    ContainerDefinition, ContainerDraft, ContainerNumber, EffectiveKey, EffectiveRange, Lsn,
    PartitionKeyDefinition, PartitionKeyKind, PartitionOrdinal,
};
use partition::index::{IndexMemory, IndexOptions};
use partition::keyspace::{self, HISTORY, INDEX, LOG, PartitionId, SPACES};
use partition::{
    Ancestor, AuditScope, Carryover, ContainerShape, CurrentShape, ExpiryRule, HistoryEntry, LogPosition,
    PartitionEnvironment, PartitionMetrics, PartitionSpec, PhysicalPartition, RecordCache, Remains, audit,
    new_partition_rows,
};
use plan::{
    Condition, DocumentOperation, Item, LogicalKey, Mutation, Outcome, Returned, Target, Transaction,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use value::Document;

const CONTAINER: ContainerNumber = ContainerNumber(1);
/// Few documents become runs, and few runs are merged.
const SMALL_INDEX: IndexOptions = IndexOptions {
    inline_documents_max: 8,
    flush_documents: 24,
    flush_bytes: 1 << 20,
    run_fan_in: 3,
    memory_bytes_max: 1 << 20,
    cache_bytes: 64 << 10,
};
/// Steps in which a separation should have ended.
const STEPS_MAX: usize = 500;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// A document of the model: the text of its body and the LSN of its last version.
type Model = BTreeMap<(usize, String), (String, Lsn)>;

/// A container without a catalog: the test swaps its partitions itself.
struct Partitions {
    store: Store,
    environment: PartitionEnvironment,
    definition: ContainerDefinition,
    shape: Arc<CurrentShape>,
    open: Vec<PhysicalPartition>,
    ordinal_last: u32,
    model: Model,
}

impl Partitions {
    async fn new(history: bool) -> Partitions {
        Partitions::of(PartitionKeyKind::HashV2, history).await
    }

    async fn of(kind: PartitionKeyKind, history: bool) -> Partitions {
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let key = match kind {
            PartitionKeyKind::MultiHash => PartitionKeyDefinition::new(kind, ["/tenant", "/pk"]).unwrap(),
            PartitionKeyKind::HashV1 | PartitionKeyKind::HashV2 => {
                PartitionKeyDefinition::new(kind, ["/pk"]).unwrap()
            }
        };
        let definition = ContainerDraft::new("c", key).checked().unwrap();
        let mut shape = ContainerShape::from(&definition);
        shape.history_seconds = history.then_some(1_000);
        let shape = Arc::new(CurrentShape::new(shape));
        let environment = PartitionEnvironment {
            store: store.clone(),
            cache: Arc::new(RecordCache::new(1 << 20, 7)),
            ambient: Arc::new(TestClock::default()),
            durability: Durability::Sync,
            index: IndexMemory::new(SMALL_INDEX),
            metrics: PartitionMetrics::default(),
        };
        let id = PartitionId { container: CONTAINER, ordinal: PartitionOrdinal(0) };
        let mut batch = Batch::default();
        new_partition_rows(id, 0, &mut batch);
        store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
        let spec = PartitionSpec { id, range: EffectiveRange::full(), ancestors: Vec::new() };
        let first = PhysicalPartition::open(environment.clone(), spec, Arc::clone(&shape)).await.unwrap();
        let (open, model) = (vec![first], Model::new());
        Partitions { store, environment, definition, shape, open, ordinal_last: 0, model }
    }

    fn key(&self, number: usize) -> LogicalKey {
        let definition = &self.definition.partition_key;
        let key = format!("key {number}");
        let components = match definition.paths().len() {
            1 => vec![key.as_str().into()],
            _ => vec![tenant(number).into(), key.as_str().into()],
        };
        let partition_key = definition.key(components).unwrap();
        let effective = definition.effective_key(&partition_key);
        LogicalKey { partition_key, effective }
    }

    fn owner(&self, key: &EffectiveKey) -> &PhysicalPartition {
        self.open.iter().find(|partition| partition.spec().range.contains(key)).unwrap()
    }

    async fn upsert(&mut self, key: usize, id: &str, text: &str) {
        let lsn = self.write(key, upsert(key, id, text)).await;
        self.model.insert((key, id.to_owned()), (text.to_owned(), lsn));
    }

    async fn delete(&mut self, key: usize, id: &str) {
        let target = Target::Id(id.to_owned());
        self.write(key, Mutation::Delete { target, condition: Condition::None }).await;
        self.model.remove(&(key, id.to_owned()));
    }

    async fn write(&self, key: usize, mutation: Mutation) -> Lsn {
        let key = self.key(key);
        let operations = vec![DocumentOperation::Write(mutation)];
        let partition = self.owner(&key.effective);
        let before = partition.lsn();
        let transaction = Transaction { key, operations, returned: Returned::Reads };
        let executed = partition.execute(transaction).await.unwrap();
        assert!(executed.lsn > before, "LSNs do not go back");
        executed.lsn
    }

    /// Splits a partition; `None` if it cannot be divided by documents.
    async fn split(&mut self, index: usize, by_documents: bool) -> Option<()> {
        let parent = &self.open[index];
        let range = parent.spec().range.clone();
        let cut = match by_documents {
            true => parent.middle_by_documents().await.unwrap()?,
            false => self.definition.partition_key.middle(&range)?,
        };
        let before = parent.counts();
        let prepared = parent.prepare_split(cut.clone()).await.unwrap();
        let (sealed, seal) = parent.seal(prepared).await.unwrap();
        let children = [1, 2].map(|step| {
            let ordinal = PartitionOrdinal(self.ordinal_last + step);
            PartitionId { container: CONTAINER, ordinal }
        });
        let mut batch = Batch::default();
        sealed.add_to(children, &mut batch);
        self.store.submit(&self.store.lane(), batch, Durability::Sync).await.unwrap();
        seal.committed();
        self.ordinal_last += 2;
        let mut ancestors = parent.spec().ancestors.clone();
        let ordinal = parent.spec().id.ordinal;
        ancestors.push(Ancestor { ordinal, lsn_last: sealed.lsn_last(), remains: Remains::All });
        let ranges = [
            EffectiveRange { min: range.min, max: cut.clone() },
            EffectiveRange { min: cut, max: range.max },
        ];
        let mut opened = Vec::new();
        for (id, range) in children.into_iter().zip(ranges) {
            let carryover = Arc::new(sealed.carryover(id, Arc::clone(&self.environment.ambient)));
            let spec = PartitionSpec { id, range, ancestors: ancestors.clone() };
            opened.push(self.opened(spec, Some(carryover)).await);
        }
        let counts: Vec<_> = opened.iter().map(PhysicalPartition::counts).collect();
        assert_eq!(counts[0].documents + counts[1].documents, before.documents);
        assert_eq!(counts[0].bytes + counts[1].bytes, before.bytes);
        if by_documents {
            assert!(counts.iter().all(|counts| counts.documents > 0), "{counts:?}");
        }
        self.open.splice(index..=index, opened);
        Some(())
    }

    async fn opened(&self, spec: PartitionSpec, carryover: Option<Arc<Carryover>>) -> PhysicalPartition {
        let (environment, shape) = (self.environment.clone(), Arc::clone(&self.shape));
        let opened = match carryover {
            Some(carryover) => PhysicalPartition::open_after(environment, spec, shape, carryover).await,
            None => PhysicalPartition::open(environment, spec, shape).await,
        };
        opened.unwrap()
    }

    /// Closes a partition, or leaves it as a crash would, and opens it again.
    async fn reopen(&mut self, index: usize, is_closed: bool) {
        let spec = self.open[index].spec().clone();
        if is_closed {
            self.open[index].close().await.unwrap();
        }
        self.open[index] = self.opened(spec, None).await;
    }

    /// Separates a partition until it needs no ancestor.
    async fn separate(&self, index: usize) {
        for _ in 0..STEPS_MAX {
            if self.open[index].separate().await.unwrap().is_empty() {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("a separation does not end");
    }

    /// Opens all partitions again, with ancestors that have left these rows.
    async fn set_remains(&mut self, remains: Remains) {
        for index in 0..self.open.len() {
            let mut spec = self.open[index].spec().clone();
            spec.ancestors.iter_mut().for_each(|ancestor| ancestor.remains = remains);
            self.open[index].close().await.unwrap();
            self.open[index] = self.opened(spec, None).await;
        }
    }

    async fn rows(&self, space: kv::Space) -> Vec<(Bytes, Bytes)> {
        let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let view = self.store.view().await.unwrap();
        view.scan(space, KeyRange::all(), Direction::Forward, limit).await.unwrap().rows
    }

    /// All documents, logs, histories and indexes are as the model says.
    async fn check(&self) {
        for ((key, id), (text, _)) in &self.model {
            let key = self.key(*key);
            let target = Target::Id(id.clone());
            let (outcome, ..) =
                self.owner(&key.effective).read(&key, &target, &Condition::None).await.unwrap();
            let Outcome::Read(stored) = outcome else { panic!("{outcome:?}") };
            let mut json = Vec::new();
            stored.document.root().write_json(&mut json);
            assert!(String::from_utf8(json).unwrap().contains(text.as_str()));
        }
        let specs: Vec<PartitionSpec> = self.open.iter().map(|open| open.spec().clone()).collect();
        let scope = AuditScope {
            container: CONTAINER,
            shape: &self.shape.load(),
            partitions: &specs,
            expiry: ExpiryRule::Exact,
        };
        let view = self.store.view().await.unwrap();
        assert_eq!(audit(&view, &scope).await.unwrap().findings, []);
        for partition in &self.open {
            assert_eq!(partition.audit_index().await.unwrap(), []);
            let range = &partition.spec().range;
            let mut expected: Vec<Lsn> = Vec::new();
            for ((key, _), (_, lsn)) in &self.model {
                if range.contains(&self.key(*key).effective) {
                    expected.push(*lsn);
                }
            }
            expected.sort_unstable();
            assert_eq!(self.logged(partition).await, expected, "{:?}", partition.spec());
        }
    }

    /// The positions of the versions in the log of a partition, in small steps.
    async fn logged(&self, partition: &PhysicalPartition) -> Vec<Lsn> {
        let view = partition.view().await.unwrap();
        let mut found = Vec::new();
        let mut first = LogPosition::default();
        loop {
            let chunk = view.log(first).await.unwrap();
            let Some((last, _)) = chunk.last() else { break };
            first = LogPosition { position: last.position + 1, ..*last };
            assert!(chunk.windows(2).all(|pair| pair[0].0 < pair[1].0), "ascending");
            for (at, entry) in chunk {
                match entry.kind {
                    partition::LogKind::Create
                    | partition::LogKind::Replace
                    | partition::LogKind::Rename { .. } => found.push(at.lsn),
                    partition::LogKind::Delete { .. } | partition::LogKind::Expire { .. } => {}
                }
            }
        }
        found
    }
}

/// Most keys are of one tenant, so that a cut by documents falls between them.
fn tenant(key: usize) -> &'static str {
    if key.is_multiple_of(5) { "small" } else { "large" }
}

fn upsert(key: usize, id: &str, text: &str) -> Mutation {
    let tenant = tenant(key);
    let body = format!(r#"{{"id":"{id}","tenant":"{tenant}","pk":"key {key}","text":"{text}"}}"#);
    let item = Item::new(Document::from_json(body.as_bytes()).unwrap()).unwrap();
    Mutation::Upsert { item, condition: Condition::None }
}

async fn random_writes(partitions: &mut Partitions, random: &mut Random, count: usize) {
    for _ in 0..count {
        let key = random.below(12);
        let id = format!("{}", random.below(8));
        if random.below(4) == 0 && partitions.model.contains_key(&(key, id.clone())) {
            partitions.delete(key, &id).await;
        } else {
            let text = format!("text {}", random.below(1_000));
            partitions.upsert(key, &id, &text).await;
        }
    }
}

#[tokio::test]
async fn splits_at_random_moments_lose_and_repeat_nothing() {
    for seed in 1..=12 {
        let mut random = Random(seed * 0x9E37_79B9);
        let kinds = [PartitionKeyKind::HashV1, PartitionKeyKind::HashV2, PartitionKeyKind::MultiHash];
        let kind = kinds[usize::try_from(seed / 2 % 3).unwrap()];
        let mut partitions = Partitions::of(kind, seed % 3 == 0).await;
        for _ in 0..30 {
            let count = 1 + random.below(40);
            random_writes(&mut partitions, &mut random, count).await;
            let index = random.below(partitions.open.len());
            match random.below(8) {
                0..=2 if partitions.open.len() < 6 => {
                    let by_documents = random.below(2) == 0;
                    partitions.split(index, by_documents).await;
                }
                3 => partitions.reopen(index, random.below(2) == 0).await,
                4 => drop(partitions.open[index].trim_log().await.unwrap()),
                5 | 6 => drop(partitions.open[index].separate().await.unwrap()),
                _ => {}
            }
            partitions.check().await;
        }
        assert!(partitions.open.len() > 1);
    }
}

/// The half after the cut is counted in several steps, and its documents are created, replaced and deleted meanwhile.
/// The audit compares the counts of the children with what they hold.
#[tokio::test]
async fn documents_written_while_a_half_is_counted_count_once() {
    const WRITES_MAX: usize = 2_000;
    let mut partitions = Partitions::new(false).await;
    let text = "x".repeat(20_000);
    for number in 0..400 {
        partitions.upsert(number % 12, &format!("{number}"), &text).await;
    }
    let parent = &partitions.open[0];
    let cut = partitions.definition.partition_key.middle(&EffectiveRange::full()).unwrap();
    let (is_prepared, mut random, mut model) = (Cell::new(false), Random(7), partitions.model.clone());
    let write_meanwhile = async {
        let mut written = 0;
        while !is_prepared.get() && written < WRITES_MAX {
            let (key, id) = (random.below(12), format!("{}", random.below(800)));
            if random.below(3) == 0 && model.contains_key(&(key, id.clone())) {
                let target = Target::Id(id.clone());
                partitions.write(key, Mutation::Delete { target, condition: Condition::None }).await;
                model.remove(&(key, id));
            } else {
                let text = "y".repeat(random.below(4_000));
                let lsn = partitions.write(key, upsert(key, &id, &text)).await;
                model.insert((key, id), (text, lsn));
            }
            written += 1;
        }
        written
    };
    let prepare = async {
        let prepared = parent.prepare_split(cut.clone()).await.unwrap();
        is_prepared.set(true);
        prepared
    };
    let (prepared, written) = tokio::join!(prepare, write_meanwhile);
    assert!(written > 2, "{written} writes");
    drop(prepared);
    partitions.model = model;
    // The half is counted already; only what was written since is added.
    partitions.split(0, false).await.unwrap();
    partitions.check().await;
}

/// After a separation the runs of ancestors can be deleted. Log entries stay under the prefix of the partition that has
/// written them, as long as they are those of last versions.
#[tokio::test]
async fn a_separated_partition_uses_only_its_own_runs() {
    let mut random = Random(99);
    let mut partitions = Partitions::new(false).await;
    random_writes(&mut partitions, &mut random, 300).await;
    partitions.split(0, true).await.unwrap();
    random_writes(&mut partitions, &mut random, 50).await;
    partitions.split(0, true).await.unwrap();
    random_writes(&mut partitions, &mut random, 50).await;
    for index in 0..partitions.open.len() {
        partitions.separate(index).await;
        partitions.check().await;
    }
    let live: Vec<u32> = partitions.open.iter().map(|open| open.spec().id.ordinal.0).collect();
    // Runs of ancestors are shared by nobody any more; the engine deletes them.
    let mut batch = Batch::default();
    for (key, _) in partitions.rows(INDEX).await {
        let ordinal = u32::from_be_bytes(key[4..8].try_into().unwrap());
        if !live.contains(&ordinal) {
            batch.delete(INDEX, key);
        }
    }
    assert!(!batch.is_empty(), "the runs of the parent were shared, not moved");
    partitions.store.submit(&partitions.store.lane(), batch, Durability::Sync).await.unwrap();
    partitions.set_remains(Remains::Log).await;
    partitions.check().await;
    // A new version deletes the entry of the old one, wherever that is.
    let replaced: Vec<(usize, String)> = partitions.model.keys().cloned().collect();
    for (key, id) in replaced {
        partitions.upsert(key, &id, "new").await;
    }
    partitions.check().await;
    for index in 0..partitions.open.len() {
        while partitions.open[index].trim_log().await.unwrap() {}
    }
    let is_left = |key: &[u8]| !live.contains(&u32::from_be_bytes(key[4..8].try_into().unwrap()));
    assert!(!partitions.rows(LOG).await.iter().any(|(key, _)| is_left(key)));
    partitions.set_remains(Remains::Nothing).await;
    partitions.check().await;
}

#[tokio::test]
async fn the_history_of_a_child_spans_its_parent() {
    let mut partitions = Partitions::new(true).await;
    for round in 0..3 {
        for key in 0..6 {
            partitions.upsert(key, "1", &format!("round {round}")).await;
        }
        if round == 0 {
            partitions.split(0, true).await.unwrap();
        }
    }
    partitions.check().await;
    let mut versions = 0;
    for partition in &partitions.open {
        let view = partition.view().await.unwrap();
        let found: Vec<(LogPosition, HistoryEntry)> = view.history(LogPosition::default()).await.unwrap();
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let keys = keyspace::effective_range(CONTAINER, &partition.spec().range);
        assert!(found.iter().all(|(_, entry)| keys.contains(&entry.key)));
        versions += found.len();
    }
    assert_eq!(versions, 18);
    assert!(!partitions.rows(HISTORY).await.is_empty());
}

/// A key that has all documents cannot be divided; two keys can, whatever their sizes.
#[tokio::test]
async fn one_logical_partition_is_not_divided() {
    let mut partitions = Partitions::new(false).await;
    for id in 0..40 {
        partitions.upsert(1, &id.to_string(), "x").await;
    }
    assert_eq!(partitions.split(0, true).await, None);
    partitions.upsert(2, "1", "x").await;
    partitions.split(0, true).await.unwrap();
    partitions.check().await;
}

/// A batch that the caller gives up, or that is refused, leaves the partition serving.
#[tokio::test]
async fn a_split_that_is_not_committed_has_no_effect() {
    let mut partitions = Partitions::new(false).await;
    for key in 0..4 {
        partitions.upsert(key, "1", "x").await;
    }
    let parent = &partitions.open[0];
    let cut = parent.middle_by_documents().await.unwrap().unwrap();
    let prepared = parent.prepare_split(cut.clone()).await.unwrap();
    let (_, seal) = parent.seal(prepared).await.unwrap();
    seal.refused();
    partitions.upsert(1, "2", "y").await;
    partitions.check().await;
    // The caller ends without an answer: the writer ends, and the partition is opened again.
    let parent = &partitions.open[0];
    let prepared = parent.prepare_split(cut).await.unwrap();
    let (sealed, seal) = parent.seal(prepared).await.unwrap();
    drop(seal);
    assert!(parent.trim_log().await.is_err());
    partitions.reopen(0, false).await;
    partitions.upsert(2, "2", "z").await;
    partitions.check().await;
    // The batch of the old seal comes too late.
    let ids = [1, 2].map(|ordinal| PartitionId { container: CONTAINER, ordinal: PartitionOrdinal(ordinal) });
    let mut batch = Batch::default();
    sealed.add_to(ids, &mut batch);
    let late = partitions.store.submit(&partitions.store.lane(), batch, Durability::Sync).await;
    assert!(matches!(late, Err(CommitFault::PreconditionFailed { .. })), "{late:?}");
    partitions.check().await;
}

/// A transaction that waits while the partition is sealed is returned unexecuted.
#[tokio::test]
async fn waiting_transactions_are_returned_when_the_partition_ends() {
    let mut partitions = Partitions::new(false).await;
    for key in 0..4 {
        partitions.upsert(key, "1", "x").await;
    }
    let parent = &partitions.open[0];
    let cut = parent.middle_by_documents().await.unwrap().unwrap();
    let (sealed, seal) = parent.seal(parent.prepare_split(cut).await.unwrap()).await.unwrap();
    let operations = vec![];
    let transaction = Transaction { key: partitions.key(1), operations, returned: Returned::All };
    let waiting = parent.try_execute(transaction);
    let committed = async {
        let ids =
            [1, 2].map(|ordinal| PartitionId { container: CONTAINER, ordinal: PartitionOrdinal(ordinal) });
        let mut batch = Batch::default();
        sealed.add_to(ids, &mut batch);
        partitions.store.submit(&partitions.store.lane(), batch, Durability::Sync).await.unwrap();
        seal.committed();
    };
    let (returned, ()) = tokio::join!(waiting, committed);
    assert!(matches!(returned, Err(partition::Unexecuted::Stopped(_))), "{returned:?}");
    assert!(parent.has_ended());
}
