//! Measures how fast documents are created and how fast they are swept when all have expired, and how long an engine
//! with many open partitions takes to close.
//!
//! `cargo run --release -p perihelion-engine --example measure_housekeeping [documents] [partitions]`

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a program for people, not for servers"
)]

use engine::{Account, AccountKey, Action, Container, Engine, EngineOptions, Keyed, Principal};
use hmac::{Hmac, KeyInit, Mac};
use kv::{EmbeddedOptions, Store};
use model::{Ambient, ContainerDraft, DefaultTtl, PartitionKeyDefinition, PartitionKeyKind, Throughput};
use partition::keyspace::SPACES;
use plan::{DocumentOperation, Item, Mutation};
use serde_json::json;
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use value::Document;

/// Concurrent clients: the writer commits waiting transactions together.
const CLIENTS: usize = 64;
const KEY: &[u8] = b"key of the measurement";
/// Request units of one partition, so that a container has many.
const PARTITION_THROUGHPUT: u64 = 500;
const PARTITIONS_PER_CONTAINER: usize = 1_000;
/// Time to live of documents in seconds.
const TTL: u32 = 1_000;

#[derive(Debug)]
struct Clock(AtomicU64);

impl Ambient for Clock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fn main() {
    let argument = |place| std::env::args().nth(place).map(|text| text.parse::<u64>().unwrap());
    let (documents, partitions) = (argument(1).unwrap_or(50_000), argument(2).unwrap_or(2_000));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        sweep(usize::try_from(documents).unwrap()).await;
        close(partitions).await;
    });
}

async fn open(store: Store, clock: &Arc<Clock>) -> (Arc<Engine>, Principal) {
    let options = EngineOptions {
        keys: vec![AccountKey::new(KEY)],
        partition_throughput_max: PARTITION_THROUGHPUT,
        partition_throughput_new: PARTITION_THROUGHPUT,
        ..EngineOptions::default()
    };
    let engine = Engine::open(store, options, Arc::clone(clock) as Arc<_>).await.unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    mac.update(b"payload");
    let principal = engine.access().verify_signature(b"payload", &mac.finalize().into_bytes(), 1).unwrap();
    (engine, principal)
}

async fn container(engine: &Engine, principal: &Principal, id: &str, throughput: u64) -> Arc<Container> {
    let access = engine.access();
    let database = match engine.find_database(principal, Action::ReadMetadata, "d") {
        Ok(found) => found,
        Err(_) => {
            let pass = access.change_catalog(principal, Account).unwrap();
            engine.create_database(pass, "d", None).await.unwrap()
        }
    };
    let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let default_ttl = DefaultTtl::Seconds(TTL);
    let definition = ContainerDraft { default_ttl, ..ContainerDraft::new(id, key) }.checked().unwrap();
    let throughput = Throughput::manual(throughput).unwrap();
    let pass = access.change_catalog(principal, &*database).unwrap();
    engine.create_container(pass, definition, Some(throughput)).await.unwrap()
}

fn folder_store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(EmbeddedOptions::new(folder.path().join("store"), &SPACES)).unwrap();
    (folder, store)
}

async fn create(engine: &Engine, principal: &Principal, container: &Container, id: usize) {
    let text = json!({
        "id": id.to_string(), "pk": format!("key {}", id % 1000), "name": format!("name {id}"), "n": id,
        "text": "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor",
    });
    let document = Document::from_json(text.to_string().as_bytes()).unwrap();
    let item = Item::new(document).unwrap();
    let operation = DocumentOperation::Write(Mutation::Create { item });
    let keyed = Keyed::new(container, None, operation).unwrap();
    let pass = engine.access().write(principal, keyed).unwrap();
    engine.write(pass).await.unwrap();
}

async fn sweep(documents: usize) {
    let clock = Arc::new(Clock(AtomicU64::new(1_700_000_000_000)));
    let (_folder, store) = folder_store();
    let (engine, principal) = open(store, &clock).await;
    let container = container(&engine, &principal, "c", PARTITION_THROUGHPUT).await;
    let next = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (engine, principal) = (Arc::clone(&engine), principal.clone());
        let (container, next) = (Arc::clone(&container), Arc::clone(&next));
        clients.spawn(async move {
            loop {
                let id = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                if id >= documents {
                    return;
                }
                create(&engine, &principal, &container, id).await;
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let created = started.elapsed();
    clock.0.fetch_add(2 * u64::from(TTL) * 1000, Ordering::SeqCst);
    let pass = engine.access().read_catalog(&principal, &*container).unwrap();
    let left = async || engine.container_usage(&pass).await.unwrap().documents;
    while left().await == documents as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let started = Instant::now();
    while left().await > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let swept = started.elapsed();
    let rate = |time: Duration| documents as f64 / time.as_secs_f64();
    println!("created {documents} documents at {:.0}/s, swept at {:.0}/s", rate(created), rate(swept));
    engine.close().await.unwrap();
}

async fn close(partitions: u64) {
    let clock = Arc::new(Clock(AtomicU64::new(1_700_000_000_000)));
    let (_folder, store) = folder_store();
    let (engine, principal) = open(store, &clock).await;
    let mut containers = Vec::new();
    for first in (0..partitions).step_by(PARTITIONS_PER_CONTAINER) {
        let count = (partitions - first).min(PARTITIONS_PER_CONTAINER as u64);
        let id = format!("c{first}");
        containers.push(container(&engine, &principal, &id, count * PARTITION_THROUGHPUT).await);
    }
    let started = Instant::now();
    for container in &containers {
        let pass = engine.access().read_catalog(&principal, &**container).unwrap();
        engine.index_progress(&pass).await.unwrap();
    }
    println!("opened {} partitions in {:?}", engine.open_partitions(), started.elapsed());
    for (container, id) in containers.iter().flat_map(|container| (0..1000).map(move |id| (container, id))) {
        create(&engine, &principal, container, id).await;
    }
    let started = Instant::now();
    engine.close().await.unwrap();
    println!("closed them in {:?}", started.elapsed());
}
