//! Filters on an engine in memory: the same rows as the naive evaluator, and keys that are sought, not sorted.

use super::generate::{self, Row};
use super::naive;
use crate::filter::{Filter, lower, parse};
use engine::{
    Account, AccountKey, Container, Engine, EngineOptions, Keyed, Principal, QueryRequest, QueryRow, Scope,
    pinned_keys,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Store};
use model::policy::CompositeIndex;
use model::{Ambient, ContainerDraft, PartitionKeyDefinition, PartitionKeyKind, Throughput, Ticks};
use partition::keyspace::SPACES;
use plan::query::Query;
use plan::{DocumentOperation, Item, Mutation};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRng, TestRunner};
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use value::Value;

#[derive(Debug, Default)]
struct CountedTime {
    random: AtomicU64,
}

impl Ambient for CountedTime {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.random.fetch_add(1, Ordering::SeqCst).to_le_bytes()[0]);
    }
}

/// A table in an engine in memory.
struct Table {
    engine: Arc<Engine>,
    principal: Principal,
    container: Arc<Container>,
}

impl Table {
    async fn new(throughput: u64) -> Table {
        let key = b"key of the tests";
        let options = EngineOptions { keys: vec![AccountKey::new(key)], ..EngineOptions::default() };
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let engine = Engine::open(store, options, Arc::new(CountedTime::default())).await.unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(b"payload");
        let signature = mac.finalize().into_bytes();
        let principal = engine.access().verify_signature(b"payload", &signature, 1).unwrap();
        let admin = engine.access().change_catalog(&principal, Account).unwrap();
        let database = engine.create_database(admin, "TablesDB", None).await.unwrap();
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/PartitionKey"]).unwrap();
        let mut draft = ContainerDraft::new("t", key);
        let index = CompositeIndex::over(&[("/PartitionKey", false), ("/RowKey", false)]).unwrap();
        draft.policies.indexing.composite = vec![index];
        let admin = engine.access().change_catalog(&principal, &*database).unwrap();
        let throughput = Some(Throughput::manual(throughput).unwrap());
        let created = engine.create_container(admin, draft.checked().unwrap(), throughput).await;
        let container = created.unwrap();
        Table { engine, principal, container }
    }

    async fn insert(&self, row: &Row) {
        let item = Item::new(row.document()).unwrap();
        let operation = DocumentOperation::Write(Mutation::Create { item });
        let keyed = Keyed::new(&self.container, None, operation).unwrap();
        let pass = self.engine.access().write(&self.principal, keyed).unwrap();
        self.engine.write(pass).await.map_err(|refusal| refusal.fault).unwrap();
    }

    /// The scope of a query: the one partition key that its filter pins, or everything.
    fn scope(&self, query: &Query) -> Scope {
        match pinned_keys(query, &self.container.definition().partition_key).as_deref() {
            Some([key]) => Scope::Key(key.clone()),
            Some(_) | None => Scope::Container,
        }
    }

    fn request(query: Query, items_max: usize, continuation: Option<String>) -> QueryRequest {
        let (ends_at_ranges, session) = (false, Vec::new());
        QueryRequest {
            query: Arc::new(query),
            items_max,
            ends_at_ranges,
            continuation,
            session,
            text_bytes: 0,
        }
    }

    /// Keys of all entities that a filter keeps, in pages.
    async fn keys(&self, filter: Option<&Filter>, items_max: usize) -> Vec<(String, String)> {
        let lowered = lower(filter);
        let mut keys = Vec::new();
        let mut continuation = None;
        for _ in 0..10_000 {
            let pass = self.engine.access();
            let pass =
                pass.query_documents(&self.principal, &self.container, self.scope(&lowered.query)).unwrap();
            let request = Table::request(lowered.query.clone(), items_max, continuation);
            let page = self.engine.query(pass, &request).await.unwrap();
            for row in &page.rows {
                let QueryRow::Document(stored) = row else { panic!("a row that is no document") };
                let root = stored.document.root();
                let key = |name: &str| root.member(name).unwrap().as_str().unwrap().to_owned();
                if !lowered.needs_check || filter.unwrap().matches(root, stored.time) {
                    keys.push((key("PartitionKey"), key("RowKey")));
                }
            }
            continuation = page.continuation.map(|next| next.text);
            if continuation.is_none() {
                return keys;
            }
        }
        panic!("pages without an end");
    }

    async fn explain(&self, filter: &str, items_max: usize) -> String {
        let filter = parse(filter).unwrap();
        let query = lower(filter.as_ref()).query;
        let scope = self.scope(&query);
        let pass = self.engine.access().query_documents(&self.principal, &self.container, scope).unwrap();
        self.engine.explain(pass, &Table::request(query, items_max, None)).await.unwrap()
    }
}

#[tokio::test]
async fn the_engine_returns_what_filters_mean() {
    let table = Table::new(400).await;
    let config = Config::default();
    let mut runner =
        TestRunner::new_with_rng(config.clone(), TestRng::deterministic_rng(config.rng_algorithm));
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < 40 {
        let mut row = generate::row().new_tree(&mut runner).unwrap().current();
        let is_new = !rows
            .iter()
            .any(|known| (&known.partition_key, &known.row_key) == (&row.partition_key, &row.row_key));
        if is_new {
            table.insert(&row).await;
            // Written in order at a time that stands still: each is one tick later.
            row.ticks = 0;
            rows.push(row);
        }
    }
    let mut filters = 0;
    while filters < 400 {
        let filter = generate::filter().new_tree(&mut runner).unwrap().current();
        if generate::text(&filter).contains("Timestamp") {
            continue;
        }
        filters += 1;
        let kept = rows.iter().filter(|row| naive::keeps(&filter, row));
        let mut expected: Vec<_> = kept.map(|row| (row.partition_key.clone(), row.row_key.clone())).collect();
        expected.sort();
        let items_max = [1, 3, 1000][filters % 3];
        assert_eq!(table.keys(Some(&filter), items_max).await, expected, "{}", generate::text(&filter));
    }
    rows.sort_by(|one, other| {
        (&one.partition_key, &one.row_key).cmp(&(&other.partition_key, &other.row_key))
    });
    let all: Vec<_> = rows.into_iter().map(|row| (row.partition_key, row.row_key)).collect();
    assert_eq!(table.keys(None, 7).await, all);
}

#[tokio::test]
async fn times_are_compared_to_the_tick() {
    let table = Table::new(400).await;
    for index in 0..5 {
        let properties = Vec::new();
        let row_key = index.to_string();
        table.insert(&Row { partition_key: "p".to_owned(), row_key, properties, ticks: 0 }).await;
    }
    let pass = table.engine.access();
    let pass = pass.query_documents(&table.principal, &table.container, Scope::Container).unwrap();
    let page = table.engine.query(pass, &Table::request(lower(None).query, 10, None)).await.unwrap();
    let times: Vec<Ticks> = page
        .rows
        .iter()
        .map(|row| match row {
            QueryRow::Document(stored) => stored.time,
            QueryRow::Value(_) => panic!("a row that is no document"),
        })
        .collect();
    assert_eq!(times.len(), 5);
    let middle = Value::Ticks(i64::try_from(times[2].0).unwrap()).to_json();
    let middle = middle.trim_matches('"');
    for (operator, expected) in
        [("lt", "01"), ("le", "012"), ("eq", "2"), ("ge", "234"), ("gt", "34"), ("ne", "0134")]
    {
        let filter = parse(&format!("Timestamp {operator} datetime'{middle}'")).unwrap();
        let keys = table.keys(filter.as_ref(), 10).await;
        assert_eq!(keys.into_iter().map(|(_, row)| row).collect::<String>(), expected, "{operator}");
    }
}

#[tokio::test]
async fn keys_are_sought_and_pages_are_not_sorted() {
    let table = Table::new(400).await;
    for index in 0..3000 {
        let [a, t] = [Value::Int32(index % 7), Value::Ticks(i64::from(index))];
        let properties = vec![("a".to_owned(), a), ("t".to_owned(), t)];
        let (partition_key, row_key) = (format!("p{}", index % 3), format!("r{index:04}"));
        table.insert(&Row { partition_key, row_key, properties, ticks: 0 }).await;
    }
    let in_order = "read documents in the order of /PartitionKey, /RowKey";
    let (partition, p1) = ("the logical partition and", "/PartitionKey = \"p1\"");
    for (filter, expected) in [
        ("", format!("{in_order}; 3000 of 3000 documents")),
        (
            "PartitionKey eq 'p1'",
            format!("{in_order} bounded by {p1}, of the lookup of the rest of {partition} {p1}; 1000 of"),
        ),
        (
            "PartitionKey eq 'p1' and RowKey ge 'r0100'",
            format!("{in_order} bounded by {p1} and /RowKey >= \"r0100\", of the lookup of the rest of"),
        ),
        (
            "PartitionKey gt 'p0' and PartitionKey lt 'p2'",
            format!(
                "{in_order} bounded by /PartitionKey > \"p0\" and /PartitionKey < \"p2\"; 3000 documents"
            ),
        ),
        ("PartitionKey ge 'p1'", format!("{in_order} bounded by /PartitionKey >= \"p1\"; 3000 documents")),
        (
            "not (PartitionKey lt 'p1')",
            format!("{in_order} bounded by /PartitionKey >= \"p1\"; 3000 documents"),
        ),
        (
            "PartitionKey gt 'p1' or (PartitionKey eq 'p1' and RowKey ge 'r0100')",
            format!(
                "{in_order} bounded by (/PartitionKey > \"p1\" or {p1} and /RowKey >= \"r0100\"); 3000 doc"
            ),
        ),
        (
            "t lt datetime'1970-01-01T00:00:00.000001Z'",
            "read documents by lookup of /t < \"1970-01-01T00:00:00.0000010Z\"; 10 of 3000".to_owned(),
        ),
        ("a ge 0", format!("{in_order}, of the lookup of /a >= 0; 3000 of")),
        (
            "PartitionKey eq 'p1' and RowKey eq 'r0001'",
            format!(
                "read documents by lookup of {partition} (/PartitionKey = \"p1\" and /RowKey = \"r0001\"); 1 of"
            ),
        ),
        (
            "PartitionKey eq 'p1' and a eq 3",
            format!("read documents by lookup of {partition} (/PartitionKey = \"p1\" and /a = 3); 143 of"),
        ),
    ] {
        let explained = table.explain(filter, 50).await;
        assert!(explained.starts_with(&expected), "{filter}\n{explained}");
    }
}
