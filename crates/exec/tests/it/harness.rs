//! A container of several partitions on a store in memory, with a clock that the test controls, and the reference for
//! queries over it: the same query over all its documents at once.

use crate::definition::definition;
use crate::functions::{self, TestFunctions};
use eval::{Budget, Context, DocumentRow, QueryMemory};
use exec::{
    Page, PageRequest, ParsedProperty, Part, PartScope, PartSource, Program, QueryBounds, QueryRow, Resume,
};
use kv::{Batch, CommitMode, Durability, KeyRange, Store};
use model::policy::{ComputedProperty, PolicyPath};
use model::{
    Ambient, ContainerDefinition, ContainerDraft, ContainerNumber, DatabaseNumber, EffectiveKey, Fault,
    PartitionOrdinal,
};
use partition::index::{Fingerprint, IndexMemory, IndexOptions};
use partition::keyspace::{self, PartitionId, SPACES};
use partition::{
    ContainerShape, CurrentShape, PartitionEnvironment, PartitionMetrics, PartitionSpec, PartitionView,
    PhysicalPartition, RecordCache, RecordScan, new_partition_rows,
};
use plan::query::Query;
use plan::{
    Condition, DocumentOperation, Item, LogicalKey, Mutation, Returned, StoredDocument, SystemProperties,
    Target, Transaction,
};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use value::{Document, Value};

pub(crate) const SYSTEM: SystemProperties = SystemProperties {
    database: DatabaseNumber(1),
    container: ContainerNumber(1),
    link: |rid| rid.to_string(),
};

/// Maximum number of yields while a partition builds its index.
const YIELDS_MAX: usize = 1_000_000;

/// A clock that stands still until the test moves it.
#[derive(Debug)]
pub(crate) struct Clock(AtomicU64);

impl Ambient for Clock {
    fn now_ms(&self) -> u64 {
        crate::memory::sample();
        self.0.load(Ordering::SeqCst)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl Clock {
    pub(crate) fn set_back_seconds(&self, seconds: u64) {
        self.0.fetch_sub(seconds * 1000, Ordering::SeqCst);
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

pub(crate) struct Harness {
    pub(crate) store: Store,
    pub(crate) clock: Arc<Clock>,
    pub(crate) partitions: Vec<Arc<PhysicalPartition>>,
    /// The whole of each partition.
    pub(crate) parts: Vec<Part>,
    pub(crate) computed: Vec<ParsedProperty>,
    pub(crate) bounds: QueryBounds,
    pub(crate) memory: Arc<QueryMemory>,
    /// Bytes after which a page ends.
    pub(crate) bytes_max: usize,
    pub(crate) functions: Arc<TestFunctions>,
    definition: ContainerDefinition,
    environment: PartitionEnvironment,
    shape: Arc<CurrentShape>,
}

impl Harness {
    /// A container with the id as its partition key, so that documents spread over its partitions.
    pub(crate) async fn new(partitions: u32) -> Harness {
        Harness::with(partitions, &json!({})).await
    }

    pub(crate) async fn with_index(partitions: u32, options: IndexOptions) -> Harness {
        Harness::made(partitions, &json!({}), options).await
    }

    /// The same with further members in its definition.
    pub(crate) async fn with(partitions: u32, further: &Json) -> Harness {
        Harness::made(partitions, further, IndexOptions::default()).await
    }

    /// The same with ordinals that descend where lower bounds ascend, as may be the result of splits.
    pub(crate) async fn with_turned_ordinals(partitions: u32, further: &Json) -> Harness {
        Harness::numbered(partitions, further, IndexOptions::default(), |at| partitions - 1 - at).await
    }

    /// The same with both.
    pub(crate) async fn made(partitions: u32, further: &Json, options: IndexOptions) -> Harness {
        Harness::numbered(partitions, further, options, |at| at).await
    }

    async fn numbered(
        partitions: u32,
        further: &Json,
        options: IndexOptions,
        ordinal: impl Fn(u32) -> u32,
    ) -> Harness {
        let definition = definition(further);
        let clock = Arc::new(Clock(AtomicU64::new(1_700_000_000_000)));
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let environment = PartitionEnvironment {
            store: store.clone(),
            cache: Arc::new(RecordCache::new(1 << 20, 7)),
            ambient: clock.clone(),
            durability: Durability::Sync,
            index: IndexMemory::new(options),
            metrics: PartitionMetrics::default(),
        };
        let shape = Arc::new(CurrentShape::new(ContainerShape::new(&definition, |text| Some(query(text)))));
        let (mut parts, mut opened_all) = (Vec::new(), Vec::new());
        for (at, range) in (0..).zip(definition.partition_key.initial_ranges(partitions)) {
            let id = PartitionId { container: SYSTEM.container, ordinal: PartitionOrdinal(ordinal(at)) };
            let mut batch = Batch::default();
            new_partition_rows(id, 0, &mut batch);
            store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
            let keys = keyspace::effective_range(SYSTEM.container, &range);
            let spec = PartitionSpec { id, range, ancestors: Vec::new() };
            let opened =
                PhysicalPartition::open(environment.clone(), spec, Arc::clone(&shape)).await.unwrap();
            let opened = Arc::new(opened);
            opened_all.push(Arc::clone(&opened));
            parts.push(Part {
                source: PartSource::Live(opened),
                keys,
                scope: PartScope::Whole,
                ancestors: Vec::new(),
            });
        }
        let computed = definition.policies.computed.iter();
        let computed = computed.map(|property| (property.name.clone(), query(&property.query))).collect();
        Harness {
            store,
            clock,
            partitions: opened_all,
            parts,
            computed,
            bounds: QueryBounds::default(),
            memory: Arc::new(QueryMemory::new(1 << 30)),
            bytes_max: 1 << 20,
            functions: Arc::default(),
            definition,
            environment,
            shape,
        }
    }

    pub(crate) async fn of(partitions: u32, documents: &[&str]) -> Harness {
        Harness::filled(Harness::new(partitions).await, documents).await
    }

    pub(crate) async fn filled(harness: Harness, documents: &[&str]) -> Harness {
        for json in documents {
            harness.put(json).await;
        }
        harness
    }

    /// The logical key of an id, and the partition that owns it.
    fn route(&self, id: &str) -> (LogicalKey, &PhysicalPartition) {
        let key = &self.definition.partition_key;
        let partition_key = key.key(vec![id.into()]).unwrap();
        let effective = key.effective_key(&partition_key);
        let owns = |partition: &&Arc<PhysicalPartition>| partition.spec().range.contains(&effective);
        let partition = self.partitions.iter().find(owns).unwrap();
        (LogicalKey { partition_key, effective }, partition)
    }

    pub(crate) async fn put(&self, json: &str) {
        let item = Item::new(Document::from_json(json.as_bytes()).unwrap()).unwrap();
        let (key, partition) = self.route(item.id());
        let operation = DocumentOperation::Write(Mutation::Upsert { item, condition: Condition::None });
        partition
            .execute(Transaction { key, operations: vec![operation], returned: Returned::All })
            .await
            .unwrap();
    }

    /// Writes documents of one partition key.
    pub(crate) async fn put_all(&self, partition_key: &str, documents: &[String]) {
        let (key, partition) = self.route(partition_key);
        let operation = |json: &String| {
            let item = Item::new(Document::from_json(json.as_bytes()).unwrap()).unwrap();
            DocumentOperation::Write(Mutation::Upsert { item, condition: Condition::None })
        };
        let operations = documents.iter().map(operation).collect();
        partition.execute(Transaction { key, operations, returned: Returned::Reads }).await.unwrap();
    }

    /// Closes all partitions and opens them again, and waits for their indexes.
    pub(crate) async fn reopen(&mut self) {
        for (at, part) in self.parts.iter_mut().enumerate() {
            let (environment, shape) = (self.environment.clone(), Arc::clone(&self.shape));
            let spec = self.partitions[at].spec().clone();
            self.partitions[at].close().await.unwrap();
            let opened = Arc::new(PhysicalPartition::open(environment, spec, shape).await.unwrap());
            let mut waited = 0;
            while opened.view().await.unwrap().index().is_none() {
                waited += 1;
                assert!(waited < YIELDS_MAX, "no index after it was opened again");
                tokio::task::yield_now().await;
            }
            part.source = PartSource::Live(Arc::clone(&opened));
            self.partitions[at] = opened;
        }
    }

    /// Changes the indexing policy and changes it back, and waits each time until the index is rebuilt.
    pub(crate) async fn rebuild(&mut self) {
        let mut other = ContainerDraft::clone(&self.definition);
        other.policies.indexing.excluded.push(PolicyPath::parse("/left/out/?").unwrap());
        let other = other.checked().unwrap();
        for definition in [&other, &self.definition] {
            let mut shape = ContainerShape::new(definition, |text| Some(query(text)));
            shape.change = self.shape.load().change + 1;
            let before = self.fingerprints().await;
            assert!(self.shape.adopt(shape));
            self.partitions.iter().for_each(|partition| partition.reshape());
            let mut waited = 0;
            while self.fingerprints().await.iter().zip(&before).any(|(now, before)| now == before) {
                waited += 1;
                assert!(waited < YIELDS_MAX, "the index is not rebuilt");
                tokio::task::yield_now().await;
            }
        }
    }

    /// The rules that the index of each partition was built with.
    async fn fingerprints(&self) -> Vec<Option<Fingerprint>> {
        let mut found = Vec::new();
        for partition in &self.partitions {
            found.push(partition.view().await.unwrap().index().map(|index| index.fingerprint()));
        }
        found
    }

    pub(crate) async fn delete(&self, id: &str) {
        self.delete_in(id, id).await;
    }

    /// Deletes a document of a partition key.
    pub(crate) async fn delete_in(&self, partition_key: &str, id: &str) {
        let (key, partition) = self.route(partition_key);
        let mutation = Mutation::Delete { target: Target::Id(id.to_owned()), condition: Condition::None };
        let operations = vec![DocumentOperation::Write(mutation)];
        partition.execute(Transaction { key, operations, returned: Returned::All }).await.unwrap();
    }

    /// Deletes a document that may not exist.
    pub(crate) async fn delete_if_there(&self, id: &str) {
        let (key, partition) = self.route(id);
        let mutation = Mutation::Delete { target: Target::Id(id.to_owned()), condition: Condition::None };
        let operations = vec![DocumentOperation::Write(mutation)];
        let done = partition.execute(Transaction { key, operations, returned: Returned::All }).await;
        assert!(done.is_ok() || matches!(done.unwrap_err().fault, Fault::Missing(_)));
    }

    pub(crate) fn hash(&self, id: &str) -> EffectiveKey {
        self.route(id).0.effective
    }

    /// The part that contains only one logical partition.
    pub(crate) fn logical(&self, id: &str) -> Part {
        let (key, partition) = self.route(id);
        let part = self.parts.iter().zip(&self.partitions).find(|(_, one)| std::ptr::eq(&***one, partition));
        let (part, _) = part.unwrap();
        let prefix = keyspace::logical_prefix(SYSTEM.container, &key);
        let scope = PartScope::Logical(keyspace::logical_key(&prefix));
        Part { keys: keyspace::logical_range(&prefix), scope, ..part.clone() }
    }

    /// The whole of each partition in its current state, or in what `change` makes of it.
    pub(crate) async fn fixed(&self, change: impl Fn(PartitionView) -> PartitionView) -> Vec<Part> {
        let mut parts = Vec::new();
        for (part, partition) in self.parts.iter().zip(&self.partitions) {
            let view = change(partition.view().await.unwrap());
            parts.push(Part { source: PartSource::Fixed(Arc::new(view)), ..part.clone() });
        }
        parts
    }

    /// All documents that exist now.
    pub(crate) async fn documents(&self, parts: &[Part]) -> Vec<StoredDocument> {
        let mut documents = Vec::new();
        for part in parts {
            let range: KeyRange = part.keys.clone();
            let scan = RecordScan { range, items_max: usize::MAX, bytes_max: usize::MAX };
            let view = match &part.source {
                PartSource::Live(partition) => partition.view().await.unwrap(),
                PartSource::Fixed(view) => PartitionView::clone(view),
            };
            documents.extend(view.page(&scan).await.unwrap().documents);
        }
        documents
    }

    /// The reference: the result of the query over all documents at once.
    pub(crate) async fn measure(&self, query: &Query) -> Result<Vec<String>, String> {
        self.measure_over(query, &self.parts).await
    }

    pub(crate) async fn measure_over(&self, query: &Query, parts: &[Part]) -> Result<Vec<String>, String> {
        let documents = self.documents(parts).await;
        let context = Context::new(&*self.clock, Budget::new(1 << 30, u64::MAX));
        let extended: Vec<_> = documents
            .iter()
            .map(|stored| self.with_computed(&context, &SYSTEM.extend(stored).unwrap()))
            .collect();
        let results = functions::reference(context, |context| {
            let rows = documents.iter().zip(&extended);
            let rows =
                rows.map(|(stored, whole)| DocumentRow { number: stored.number.raw(), root: whole.root() });
            eval::run(context, query, rows)
        });
        let results = results.map_err(|fault| fault.to_string())?;
        Ok(results.iter().map(Value::to_json).collect())
    }

    /// The document as queries see it, its computed properties as members.
    fn with_computed(&self, context: &Context<'_>, document: &Document) -> Document {
        let mut value = document.to_value();
        let Value::Object(members) = &mut value else { panic!("{value:?}") };
        for ComputedProperty { name, query: text } in &self.definition.policies.computed {
            members.retain(|(member, _)| member != name);
            let found =
                eval::run(context, &query(text), [DocumentRow { number: 0, root: document.root() }]).unwrap();
            members.extend(found.into_iter().map(|value| (name.clone(), value)));
        }
        Document::from_value(&value).unwrap()
    }

    pub(crate) async fn page(
        &self,
        query: &Query,
        parts: &[Part],
        items_max: usize,
        resume: Option<Resume>,
    ) -> Result<Page, Fault> {
        let program = Arc::new(Program::new(Arc::new(query.clone()), &self.computed, SYSTEM)?);
        let (bounds, parts) = (self.bounds, parts.to_vec());
        let request = PageRequest {
            program,
            items_max,
            bytes_max: self.bytes_max,
            ends_at_ranges: false,
            resume,
            bounds,
            memory: Arc::clone(&self.memory),
            user_functions: self.functions.clone(),
            parts,
        };
        exec::page(Arc::new(request), self.clock.clone(), Arc::default()).await
    }

    /// All pages, each continued from the encoded position of the previous one.
    pub(crate) async fn drain(&self, query: &Query, items_max: usize) -> Result<Vec<String>, Fault> {
        self.drain_over(query, &self.parts, items_max).await
    }

    pub(crate) async fn drain_over(
        &self,
        query: &Query,
        parts: &[Part],
        items_max: usize,
    ) -> Result<Vec<String>, Fault> {
        let mut rows = Vec::new();
        let mut resume = None;
        loop {
            let page = self.page(query, parts, items_max, resume).await?;
            assert!(page.rows.len() <= items_max);
            rows.extend(page.rows.iter().map(row_text));
            let Some(next) = page.resume else {
                return Ok(rows);
            };
            let bytes = next.encode();
            assert!(bytes.len() <= 460, "a continuation of {} bytes", bytes.len());
            resume = Some(Resume::decode(&bytes).unwrap());
        }
    }

    /// Compares all page sizes with the reference.
    #[track_caller]
    pub(crate) fn check<'a>(&'a self, text: &'a str) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let query = query(text);
            let expected = self.measure(&query).await;
            for items_max in [1, 2, 3, 7, 100] {
                let found = self.drain(&query, items_max).await;
                match &expected {
                    Ok(expected) => {
                        assert_eq!(&found.unwrap(), expected, "{text}, pages of {items_max}, {place}")
                    }
                    Err(_) => assert!(found.is_err(), "{text}, pages of {items_max}, {place}"),
                }
            }
        }
    }
}

pub(crate) fn query(text: &str) -> Query {
    let tree = sql::parse(text).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    sql::lower(&tree, &sql::Parameters::none()).unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

/// The text of a row as a client sees it.
pub(crate) fn row_text(row: &QueryRow) -> String {
    match row {
        QueryRow::Document(stored) => SYSTEM.extend(stored).unwrap().to_value().to_json(),
        QueryRow::Value(value) => value.to_json(),
    }
}
