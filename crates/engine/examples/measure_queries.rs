//! Measures queries without HTTP: each compared with a plain scan of the store and a point read, on the embedded store.
//!
//! `cargo run --release -p perihelion-engine --example measure_queries [DOCUMENTS [QUERY …]]`

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a tool for the developer's terminal

use engine::{
    Account, AccountKey, Container, DocumentAddress, Engine, EngineOptions, Keyed, Principal, QueryRequest,
    ReadOptions, Scope,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{Direction, EmbeddedOptions, KeyRange, ScanLimit, Store};
use model::policy::CompositeIndex;
use model::{Ambient, ContainerDraft, PartitionKeyDefinition, PartitionKeyKind, Throughput};
use partition::keyspace::{self, RECORDS, SPACES};
use plan::{DocumentOperation, Item, Mutation, Target};
use serde_json::json;
use sha2::Sha256;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;
use value::Document;

const KEY: &[u8] = b"key";
/// Documents that are written concurrently.
const WRITERS: usize = 256;
/// How long each measurement is repeated.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

const QUERIES: [&str; 12] = [
    "SELECT * FROM c WHERE c.mail = 'u777@example.org'",
    "SELECT * FROM c WHERE c.pk = 'p7' AND c.lot = 0",
    "SELECT * FROM c WHERE c.category = 'c3' AND c.city = 'city 3'",
    "SELECT * FROM c WHERE c.count >= 100 AND c.count < 120",
    "SELECT TOP 20 * FROM c WHERE c.category = 'c3' ORDER BY c.score DESC",
    "SELECT TOP 20 * FROM c WHERE c.category = 'c3' ORDER BY c.category ASC, c.score DESC",
    "SELECT TOP 20 * FROM c ORDER BY c._ts DESC",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.category = 'c3'",
    "SELECT c.category, COUNT(1) AS n FROM c GROUP BY c.category",
    "SELECT DISTINCT VALUE c.category FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE LENGTH(c.text) = 41",
];

#[derive(Debug)]
struct Now;

impl Ambient for Now {
    #[allow(clippy::disallowed_methods)] // a program's own clock
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fn document(number: usize) -> String {
    let padding = "x".repeat(620);
    json!({
        "id": format!("d{number}"), "pk": format!("p{}", number % 1000), "category": format!("c{}", number % 20),
        "price": (number % 1000) as f64 + 0.5, "count": number, "lot": number / 5000,
        "active": number.is_multiple_of(2), "mail": format!("u{number}@example.org"),
        "user": { "name": format!("user {}", number % 5000), "age": number % 90 },
        "tags": [format!("t{}", number % 7), format!("t{}", number % 11)],
        "score": number as f64 / 7.0, "city": format!("city {}", number % 300), "text": padding,
    })
    .to_string()
}

struct Fixture {
    engine: Arc<Engine>,
    principal: Principal,
    container: Arc<Container>,
}

impl Fixture {
    async fn new(store: Store) -> Fixture {
        let options = EngineOptions { keys: vec![AccountKey::new(KEY)], ..EngineOptions::default() };
        let engine = Engine::open(store, options, Arc::new(Now)).await.unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
        mac.update(b"payload");
        let signature = mac.finalize().into_bytes();
        let principal = engine.access().verify_signature(b"payload", &signature, 1).unwrap();
        let access = engine.access();
        let pass = access.change_catalog(&principal, Account).unwrap();
        let database = engine.create_database(pass, "d", None).await.unwrap();
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let mut draft = ContainerDraft::new("c", key);
        let composite = CompositeIndex::over(&[("/category", false), ("/score", true)]).unwrap();
        draft.policies.indexing.composite = vec![composite];
        let definition = draft.checked();
        let throughput = Some(Throughput::manual(400).unwrap());
        let pass = access.change_catalog(&principal, &*database).unwrap();
        let container = engine.create_container(pass, definition.unwrap(), throughput).await.unwrap();
        Fixture { engine, principal, container }
    }

    async fn write(self: Arc<Fixture>, number: usize) {
        let item = Item::new(Document::from_json(document(number).as_bytes()).unwrap()).unwrap();
        let operation = DocumentOperation::Write(Mutation::Create { item });
        let keyed = Keyed::new(&self.container, None, operation).unwrap();
        let pass = self.engine.access().write(&self.principal, keyed).unwrap();
        self.engine.write(pass).await.unwrap();
    }

    async fn read(&self, number: usize) {
        let component = format!("p{}", number % 1000).as_str().into();
        let key = self.container.definition().partition_key.key(vec![component]);
        let address = DocumentAddress { key: key.unwrap(), target: Target::Id(format!("d{number}")) };
        let access = self.engine.access();
        let pass = access.read_document(&self.principal, &self.container, address).unwrap();
        self.engine.read(pass, &ReadOptions::default()).await.unwrap();
    }

    /// Rows and bytes of the first page, and how it was found.
    async fn ask(&self, text: &str) -> (usize, u64) {
        let query = sql::lower(&sql::parse(text).unwrap(), &sql::Parameters::none()).unwrap();
        let request = QueryRequest {
            query: Arc::new(query),
            items_max: 100,
            continuation: None,
            session: Vec::new(),
            ends_at_ranges: false,
            text_bytes: 0,
        };
        let access = self.engine.access();
        let pass = access.query_documents(&self.principal, &self.container, Scope::Container).unwrap();
        let page = self.engine.query(pass, &request).await.unwrap();
        (page.rows.len(), page.metrics.documents_read)
    }
}

/// The median time of a repeated measurement.
async fn median(mut once: impl AsyncFnMut()) -> Duration {
    let mut times = Vec::new();
    let end = Instant::now() + LONG_ENOUGH;
    while Instant::now() < end || times.len() < 3 {
        let begun = Instant::now();
        once().await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

/// Walks all rows of a space without processing them.
async fn scan(store: &Store, mut range: KeyRange) -> usize {
    let view = store.view().await.unwrap();
    let mut rows = 0;
    loop {
        let limit = ScanLimit { rows: 1024, bytes: 1 << 20 };
        let chunk = view.scan(RECORDS, range.clone(), Direction::Forward, limit).await.unwrap();
        rows += chunk.rows.len();
        match chunk.rows.last() {
            Some((key, _)) if chunk.more => range = keyspace::after(&range, key),
            Some(_) | None => return rows,
        }
    }
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let own: Vec<String> = arguments.collect();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(EmbeddedOptions::new(folder.path().join("store"), &SPACES)).unwrap();
    let fixture = Arc::new(Fixture::new(store.clone()).await);
    let begun = Instant::now();
    let mut writes = JoinSet::new();
    for number in 0..count {
        if writes.len() >= WRITERS {
            writes.join_next().await.unwrap().unwrap();
        }
        writes.spawn(Arc::clone(&fixture).write(number));
    }
    writes.join_all().await;
    println!("{count} documents written, {:.1} µs each", begun.elapsed().as_secs_f64() * 1e6 / count as f64);
    let range = keyspace::container_rows(fixture.container.number());
    let bare = median(async || assert_eq!(scan(&store, range.clone()).await, count)).await;
    println!(
        "{:10.1} µs  bare scan, {:.2} µs a record",
        bare.as_secs_f64() * 1e6,
        bare.as_secs_f64() * 1e6 / count as f64
    );
    let mut number = 0;
    let read = median(async || {
        number = (number + 104_729) % count;
        fixture.read(number).await;
    });
    println!("{:10.1} µs  point read", read.await.as_secs_f64() * 1e6);
    let queries = if own.is_empty() { QUERIES.map(str::to_owned).to_vec() } else { own };
    for text in &queries {
        let (rows, read) = fixture.ask(text).await;
        let time = median(async || {
            fixture.ask(text).await;
        });
        let time = time.await.as_secs_f64() * 1e6;
        let of_scan = bare.as_secs_f64() * 1e6 / time;
        println!(
            "{time:10.1} µs  {rows} rows, {read} documents read, {of_scan:.2} × the bare scan's speed: {text}"
        );
    }
}
