//! Measures interactive transactions with five operations against batches with the same five, by 64 clients with a
//! partition key each, and transactions that all use one partition key.
//!
//! `cargo run --release -p perihelion-engine --example measure_transactions [seconds]`

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a program for people, not for servers"
)]

use engine::{
    Account, AccountKey, Container, Engine, EngineOptions, LockWhen, Principal, Transaction,
    TransactionOptions,
};
use kv::{EmbeddedOptions, Store};
use model::{
    Ambient, ContainerDraft, Fault, PartitionKey, PartitionKeyDefinition, PartitionKeyKind, Throughput,
};
use partition::keyspace::SPACES;
use plan::{Condition, DocumentOperation, Item, Mutation, Returned};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use value::Document;

/// Concurrent clients: the writer commits waiting transactions together.
const CLIENTS: usize = 64;
/// Operations of a batch or transaction.
const OPERATIONS: usize = 5;
/// Rounds of each kind, by turns.
const ROUNDS: usize = 3;
const KEY: &[u8] = b"key of the measurement";

#[derive(Debug)]
struct Clock;

impl Ambient for Clock {
    #[allow(clippy::disallowed_methods)] // the clock of a program
    fn now_ms(&self) -> u64 {
        u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A batch; each client has its partition key.
    Batch,
    /// A transaction; each client has its partition key.
    Transaction,
    /// A transaction; all clients use one partition key.
    Contended,
}

struct World {
    engine: Arc<Engine>,
    principal: Principal,
    container: Arc<Container>,
    done: AtomicU64,
    refused: AtomicU64,
    runs: AtomicU64,
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(2.0, |text| text.parse::<f64>().unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(EmbeddedOptions::new(folder.path().join("store"), &SPACES)).unwrap();
        let world = Arc::new(open(store).await);
        for round in 0..=ROUNDS {
            for kind in [Kind::Batch, Kind::Transaction, Kind::Contended] {
                let rate = measure(&world, kind, Duration::from_secs_f64(seconds)).await;
                let (refused, runs) =
                    (world.refused.swap(0, Ordering::SeqCst), world.runs.swap(0, Ordering::SeqCst));
                let name = if round == 0 { "warm-up" } else { "" };
                println!("{kind:?}: {rate:.0} per second, {runs} runs, {refused} refused {name}");
            }
        }
        world.engine.close().await.unwrap();
    });
}

async fn open(store: Store) -> World {
    let options = EngineOptions { keys: vec![AccountKey::new(KEY)], ..EngineOptions::default() };
    let engine = Engine::open(store, options, Arc::new(Clock)).await.unwrap();
    let principal = engine.access().verify_key(KEY, 1).unwrap();
    let access = engine.access();
    let database = engine.create_database(access.change_catalog(&principal, Account).unwrap(), "d", None);
    let database = database.await.unwrap();
    let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let definition = ContainerDraft::new("c", key).checked().unwrap();
    let pass = access.change_catalog(&principal, &*database).unwrap();
    let throughput = Some(Throughput::manual(400).unwrap());
    let container = engine.create_container(pass, definition, throughput).await.unwrap();
    let (done, refused, runs) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    World { engine, principal, container, done, refused, runs }
}

/// Transactions per second.
async fn measure(world: &Arc<World>, kind: Kind, time: Duration) -> f64 {
    world.done.store(0, Ordering::SeqCst);
    let begun = Instant::now();
    let client = |client: usize| {
        let world = Arc::clone(world);
        tokio::spawn(async move {
            let mut count = 0;
            while begun.elapsed() < time {
                world.perform(kind, client, count).await;
                count += 1;
            }
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    for client in clients {
        client.await.unwrap();
    }
    world.done.load(Ordering::SeqCst) as f64 / begun.elapsed().as_secs_f64()
}

impl World {
    async fn perform(&self, kind: Kind, client: usize, count: usize) {
        let client = if kind == Kind::Contended { 0 } else { client };
        let name = format!("key {client}");
        let key: PartitionKey =
            self.container.definition().partition_key.key(vec![name.as_str().into()]).unwrap();
        let operations = operations(&name, count);
        let is_done = match kind {
            Kind::Batch => {
                let access = self.engine.access();
                let pass = access.batch(&self.principal, &self.container, key, operations).unwrap();
                self.engine.batch(pass, Returned::All, &[]).await.unwrap().result.is_ok()
            }
            Kind::Transaction | Kind::Contended => {
                let pass = self.engine.access().transact(&self.principal, &self.container, key);
                let lock = LockWhen::Conflicts;
                let options =
                    TransactionOptions { time_max: Duration::from_secs(5), session: Vec::new(), lock };
                let run = |mut transaction: Transaction| {
                    let operations = operations.clone();
                    self.runs.fetch_add(1, Ordering::SeqCst);
                    async move {
                        for operation in operations {
                            transaction.execute(operation).await.unwrap();
                        }
                        (transaction, Ok::<_, Fault>(()))
                    }
                };
                self.engine.transact(&pass, &options, run).await.is_ok()
            }
        };
        let counter = if is_done { &self.done } else { &self.refused };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

fn operations(key: &str, count: usize) -> Vec<DocumentOperation> {
    let upsert = |place: usize| {
        let text = json!({
            "id": format!("{}", (count * OPERATIONS + place) % 1000), "pk": key, "name": format!("name {count}"),
            "n": count, "text": "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor",
        });
        let item = Item::new(Document::from_json(text.to_string().as_bytes()).unwrap()).unwrap();
        DocumentOperation::Write(Mutation::Upsert { item, condition: Condition::None })
    };
    (0..OPERATIONS).map(upsert).collect()
}
