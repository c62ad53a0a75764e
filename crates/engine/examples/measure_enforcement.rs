//! Measures what enforcing the throughput costs a point read in the process: its time with `enforce` and with `measure`,
//! by turns.
//!
//! `cargo run --release -p perihelion-engine --example measure_enforcement [measure|enforce READS]`; with a mode and a
//! number it only makes these reads, for `valgrind --tool=callgrind`: the difference of two numbers of reads leaves out
//! the start.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a tool for the developer's terminal

use engine::{
    Account, AccountKey, Container, DocumentAddress, Engine, EngineOptions, Keyed, Principal, ReadOptions,
    ThroughputMode,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Store};
use model::{Ambient, ContainerDraft, PartitionKeyDefinition, PartitionKeyKind, Throughput};
use partition::keyspace::SPACES;
use plan::{DocumentOperation, Item, Mutation, Target};
use sha2::Sha256;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};
use value::Document;

const KEY: &[u8] = b"key";
/// More than the reads use, on one partition: nothing is refused.
const THROUGHPUT: u64 = 1_000_000;
const READS: u64 = 50_000;
const ROUNDS: usize = 21;

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The clock as the server has it.
#[derive(Debug)]
struct Now;

impl Ambient for Now {
    #[allow(clippy::disallowed_methods)] // a program's own clock
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        BEGUN.elapsed()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

struct Fixture {
    engine: Arc<Engine>,
    principal: Principal,
    container: Arc<Container>,
}

impl Fixture {
    /// A container with one document in one partition.
    async fn new(throughput: ThroughputMode) -> Fixture {
        let options = EngineOptions {
            keys: vec![AccountKey::new(KEY)],
            partition_throughput_max: THROUGHPUT,
            partition_throughput_new: THROUGHPUT,
            throughput,
            ..EngineOptions::default()
        };
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let engine = Engine::open(store, options, Arc::new(Now)).await.unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
        mac.update(b"payload");
        let signature = mac.finalize().into_bytes();
        let principal = engine.access().verify_signature(b"payload", &signature, 1).unwrap();
        let access = engine.access();
        let pass = access.change_catalog(&principal, Account).unwrap();
        let database = engine.create_database(pass, "d", None).await.unwrap();
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let definition = ContainerDraft::new("c", key).checked().unwrap();
        let rate = Some(Throughput::manual(THROUGHPUT).unwrap());
        let pass = access.change_catalog(&principal, &*database).unwrap();
        let container = engine.create_container(pass, definition, rate).await.unwrap();
        let item = Item::new(Document::from_json(br#"{"id":"i","pk":"p"}"#).unwrap()).unwrap();
        let keyed =
            Keyed::new(&container, None, DocumentOperation::Write(Mutation::Create { item })).unwrap();
        engine.write(engine.access().write(&principal, keyed).unwrap()).await.unwrap();
        Fixture { engine, principal, container }
    }

    async fn read(&self, count: u64) {
        let key = self.container.definition().partition_key.key(vec!["p".into()]).unwrap();
        for _ in 0..count {
            let address = DocumentAddress { key: key.clone(), target: Target::Id("i".to_owned()) };
            let pass = self.engine.access().read_document(&self.principal, &self.container, address).unwrap();
            self.engine.read(pass, &ReadOptions::default()).await.unwrap();
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, count] = &words[..] {
        let is_enforced = mode == "enforce";
        let mode = if is_enforced { ThroughputMode::Enforce } else { ThroughputMode::Measure };
        return Fixture::new(mode).await.read(count.parse().unwrap()).await;
    }
    let fixtures = [Fixture::new(ThroughputMode::Measure).await, Fixture::new(ThroughputMode::Enforce).await];
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for (fixture, times) in fixtures.iter().zip(&mut times) {
            let begun = Instant::now();
            fixture.read(READS).await;
            times.push(begun.elapsed().as_secs_f64() * 1e9 / READS as f64);
        }
    }
    let [measured, enforced] = times;
    let mut more: Vec<f64> =
        enforced.iter().zip(&measured).map(|(enforced, measured)| enforced - measured).collect();
    more.sort_by(f64::total_cmp);
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    println!("a point read: measure {:.0} ns, enforce {:.0} ns", best(&measured), best(&enforced));
    println!("median of the differences of each round: {:.0} ns", more[ROUNDS / 2]);
}
