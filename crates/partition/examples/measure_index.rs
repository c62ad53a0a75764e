//! Measures the costs and speed of the index: creates with the index on and off, memory and disk per document,
//! lookups.
//!
//! `cargo run --release -p perihelion-partition --example measure_index [documents] [folder]`; without a folder the
//! store is in memory.
//!
//! `… --example measure_index universes [documents]` measures what runs keep in memory per document instead: after
//! creation, after a fifth of the documents was replaced, and after a tenth was deleted, in any order.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a program for people, not for servers"
)]

use kv::{Batch, CommitMode, Direction, Durability, EmbeddedOptions, KeyRange, ScanLimit, Store};
use model::policy::IndexingPolicy;
use model::{
    Ambient, ContainerDefinition, ContainerDraft, ContainerNumber, EffectiveRange, PartitionKeyDefinition,
    PartitionKeyKind, PartitionOrdinal,
};
use partition::index::{IndexMemory, IndexOptions, IndexPath, IndexReader, IndexStep, Lookup};
use partition::keyspace::{INDEX, PartitionId, SPACES};
use partition::{
    ContainerShape, CurrentShape, PartitionEnvironment, PartitionMetrics, PartitionSpec, PhysicalPartition,
    RecordCache, new_partition_rows,
};
use plan::{Condition, DocumentOperation, Item, LogicalKey, Mutation, Returned, Target, Transaction};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use value::{Document, Value};

/// Concurrent clients: the writer commits waiting transactions together.
const CLIENTS: usize = 64;
const LOOKUPS: u32 = 1000;

#[derive(Debug)]
struct Clock;

impl Ambient for Clock {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

struct Bench {
    store: Store,
    partition: Arc<PhysicalPartition>,
    memory: Arc<IndexMemory>,
    definition: ContainerDefinition,
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("universes") {
        let documents = std::env::args().nth(2).map_or(5_000_000, |text| text.parse().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        runtime.unwrap().block_on(universes(documents));
        return;
    }
    let documents: usize = std::env::args().nth(1).map_or(100_000, |text| text.parse().unwrap());
    let folder = std::env::args().nth(2);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let mut figures = Vec::new();
        for (name, policy) in [("off", IndexingPolicy::none()), ("on", IndexingPolicy::default())] {
            let path = folder.as_ref().map(|folder| Path::new(folder).join(format!("index-{name}")));
            let bench = Bench::open(path.as_deref(), &policy).await;
            let (elapsed, cpu) = bench.load(documents).await;
            println!(
                "index {name}: {:.0} documents/s, {:.1} µs processor time each",
                documents as f64 / elapsed.as_secs_f64(),
                cpu.as_secs_f64() * 1e6 / documents as f64
            );
            figures.push(cpu.as_secs_f64());
            if name == "on" {
                bench.sizes(documents).await;
                bench.lookups(documents).await;
                bench.restart(path.as_deref(), &policy).await;
            }
        }
        println!("processor time with the index: {:.2} of that without", figures[1] / figures[0]);
    });
}

/// Documents of one transaction.
const TOGETHER: u64 = 1_000;

async fn universes(documents: u64) {
    let policy = IndexingPolicy::by_texts(&["/v/?"], &["/*"]).unwrap();
    let bench = Bench::open(None, &policy).await;
    let upsert = |id: u64| {
        let text = format!(r#"{{"id":"{id}","pk":"a","v":{}}}"#, id % 100);
        let item = Item::new(Document::from_json(text.as_bytes()).unwrap()).unwrap();
        Mutation::Upsert { item, condition: Condition::None }
    };
    bench.change((0..documents).map(upsert)).await;
    bench.run_memory("created").await;
    // Multiplied by an odd constant, the low bits of a count take all values in no visible order.
    let shuffled = |count: u64| count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    bench.change((0..documents / 5).map(|count| upsert(shuffled(count) % documents))).await;
    bench.run_memory("replaced").await;
    let delete =
        |id: u64| Mutation::Delete { target: Target::Id(id.to_string()), condition: Condition::None };
    let gone: BTreeSet<u64> = (0..documents / 10).map(|count| shuffled(count) % documents).collect();
    bench.change(gone.into_iter().map(delete)).await;
    bench.run_memory("deleted").await;
}

impl Bench {
    async fn change(&self, mutations: impl Iterator<Item = Mutation>) {
        let partition_key = self.definition.partition_key.key(vec!["a".into()]).unwrap();
        let effective = self.definition.partition_key.effective_key(&partition_key);
        let mut mutations = mutations.map(DocumentOperation::Write).peekable();
        while mutations.peek().is_some() {
            let operations = mutations.by_ref().take(TOGETHER as usize).collect();
            let key = LogicalKey { partition_key: partition_key.clone(), effective: effective.clone() };
            let transaction = Transaction { key, operations, returned: Returned::Reads };
            self.partition.execute(transaction).await.unwrap();
        }
    }

    async fn run_memory(&self, name: &str) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let documents = self.partition.counts().documents as f64;
        println!(
            "{name}: {documents} documents, of each {:.3} bytes of universes, {:.3} bytes of runs in memory",
            self.memory.universe_bytes() as f64 / documents,
            self.memory.run_bytes() as f64 / documents,
        );
        println!("  resident memory {} MB", resident_bytes() >> 20);
    }

    async fn open(path: Option<&Path>, policy: &IndexingPolicy) -> Bench {
        let store = match path {
            Some(path) => Store::open(EmbeddedOptions::new(path, &SPACES)).unwrap(),
            None => Store::memory(&SPACES, CommitMode::Thread),
        };
        let mut batch = Batch::default();
        new_partition_rows(id(), 0, &mut batch);
        store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
        Bench::over(store, policy).await
    }

    async fn over(store: Store, policy: &IndexingPolicy) -> Bench {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV1, ["/pk"]).unwrap();
        let mut draft = ContainerDraft::new("c", key);
        draft.policies.indexing = policy.clone();
        let definition = draft.checked().unwrap();
        let memory = IndexMemory::new(IndexOptions::default());
        let environment = PartitionEnvironment {
            store: store.clone(),
            cache: Arc::new(RecordCache::new(64 << 20, 7)),
            ambient: Arc::new(Clock),
            durability: Durability::Sync,
            index: Arc::clone(&memory),
            metrics: PartitionMetrics::default(),
        };
        let spec = PartitionSpec { id: id(), range: EffectiveRange::full(), ancestors: Vec::new() };
        let shape = Arc::new(CurrentShape::new(ContainerShape::from(&definition)));
        let partition = Arc::new(PhysicalPartition::open(environment, spec, shape).await.unwrap());
        Bench { store, partition, memory, definition }
    }

    async fn load(&self, documents: usize) -> (Duration, Duration) {
        let (started, cpu) = (Instant::now(), processor_time());
        let clients = (0..CLIENTS).map(|client| {
            let (partition, definition) = (Arc::clone(&self.partition), self.definition.clone());
            tokio::spawn(async move {
                for number in (client..documents).step_by(CLIENTS) {
                    let document = Document::from_json(body(number).to_string().as_bytes()).unwrap();
                    let partition_key = definition.partition_key.extract(&document).unwrap();
                    let effective = definition.partition_key.effective_key(&partition_key);
                    let item = Item::new(document).unwrap();
                    let create = Mutation::Create { item };
                    let key = LogicalKey { partition_key, effective };
                    let operations = vec![DocumentOperation::Write(create)];
                    partition
                        .execute(Transaction { key, operations, returned: Returned::All })
                        .await
                        .unwrap();
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        (started.elapsed(), processor_time() - cpu)
    }

    async fn sizes(&self, documents: usize) {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let view = self.store.view().await.unwrap();
        let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let rows = view.scan(INDEX, KeyRange::all(), Direction::Forward, limit).await.unwrap().rows;
        let bytes: usize = rows.iter().map(|(key, row)| key.len() + row.len()).sum();
        let held = self.memory.held_bytes();
        println!(
            "  segments {held} bytes, runs {bytes} bytes, both {} a document",
            (held + bytes) / documents
        );
        println!("  resident memory {} MB", resident_bytes() >> 20);
    }

    async fn lookups(&self, documents: usize) {
        let view = self.partition.view().await.unwrap();
        let reader = view.index().unwrap();
        let middle = i64::try_from(documents / 2).unwrap();
        let common = || term("kind", &Value::Int64(3));
        let medium = || term("city", &Value::String("city 77".to_owned()));
        let range = Lookup::Range {
            path: path("order"),
            low: Bound::Included(code(&Value::Int64(middle))),
            high: Bound::Excluded(code(&Value::Int64(middle + 100))),
        };
        let cases = [
            ("unique value", term("name", &Value::String(format!("name {middle}")))),
            ("medium value", medium()),
            ("common and medium", Lookup::And(vec![common(), medium()])),
            ("two common ones", Lookup::And(vec![common(), term("flag", &Value::Bool(true))])),
            ("range of 100", range),
            ("present", Lookup::Present(path("maybe"))),
        ];
        for (name, lookup) in cases {
            measure(reader, name, &lookup).await;
        }
        let within = reader.documents(&common()).await.unwrap();
        let started = Instant::now();
        for _ in 0..LOOKUPS {
            let mut walk =
                reader.walk(&path("order"), Direction::Backward, None, Some(&within)).await.unwrap();
            let mut found = 0;
            while found < 20 {
                found += walk.next().await.unwrap().unwrap().numbers.len();
            }
        }
        println!("  order, top 20 of a common value: {:.1} µs", each(started));
    }

    async fn restart(self, path: Option<&Path>, policy: &IndexingPolicy) {
        if path.is_none() {
            return;
        }
        let Bench { store, partition, .. } = self;
        drop(partition);
        let started = Instant::now();
        let bench = Bench::over(store, policy).await;
        println!("  opened again after {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
        drop(bench);
    }
}

async fn measure(reader: &IndexReader, name: &str, lookup: &Lookup) {
    let found = reader.documents(lookup).await.unwrap().count();
    let started = Instant::now();
    for _ in 0..LOOKUPS {
        reader.documents(lookup).await.unwrap();
    }
    println!("  {name}: {found} documents in {:.1} µs", each(started));
}

fn each(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e6 / f64::from(LOOKUPS)
}

fn id() -> PartitionId {
    PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(0) }
}

fn path(name: &str) -> IndexPath {
    IndexPath::property([IndexStep::Name(name)])
}

fn code(value: &Value) -> Vec<u8> {
    let mut code = Vec::new();
    value::encode_key_value(value, &mut code);
    code
}

fn term(name: &str, value: &Value) -> Lookup {
    Lookup::Term { path: path(name), code: code(value) }
}

/// About a kilobyte, twenty paths: unique, medium and common values.
fn body(number: usize) -> Json {
    let status = ["new", "open", "closed"][number % 3];
    let text = |length: usize| "lorem ipsum dolor sit amet ".repeat(length / 27 + 1)[..length].to_owned();
    json!({
        "id": format!("document {number}"),
        "pk": format!("key {}", number % 1000),
        "name": format!("name {number}"),
        "order": number,
        "kind": number % 5,
        "flag": number.is_multiple_of(2),
        "city": format!("city {}", number * 7919 % 1000),
        "price": (number % 10_000) as f64 / 100.0,
        "created": format!("2026-01-{:02}T12:{:02}:00Z", number % 28 + 1, number % 60),
        "maybe": if number.is_multiple_of(3) { json!(1) } else { Json::Null },
        "address": { "street": format!("street {}", number % 5000), "zip": number % 9000, "country": "NL" },
        "tags": [format!("tag {}", number % 20), format!("tag {}", number % 13)],
        "status": status,
        "owner": format!("owner {}", number % 300),
        "score": number * 31 % 1009,
        "text": text(600),
    })
}

fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
