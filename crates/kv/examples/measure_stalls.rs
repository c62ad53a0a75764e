//! Measures how long durable commits take while the store flushes, rotates its journal and takes ingests: the
//! distribution of their times, and the longest ones with the second in which they began.
//!
//! `cargo run --release -p perihelion-kv --example measure_stalls [SECONDS [GROUPS_PER_SECOND [INGESTS_PER_SECOND]]]`
//!
//! A commit is a group as 64 clients make it: 30 documents of 1 KB with the rows that a partition writes for them.
//! Commits are due at a fixed rate, and each counts from when it was due, so a stall delays all that are due meanwhile.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a program for people, not for servers"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kv::{Batch, Durability, EmbeddedOptions, Space, SpaceOptions, Store};

/// As in the server: how long commits wait while a memtable is freed depends on it.
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const SPACES: [SpaceOptions; 9] = [
    SpaceOptions { name: "records", compressed: true },
    SpaceOptions { name: "numbers", compressed: true },
    SpaceOptions { name: "unique", compressed: true },
    SpaceOptions { name: "expiry", compressed: true },
    SpaceOptions { name: "log", compressed: true },
    SpaceOptions { name: "index", compressed: false },
    SpaceOptions { name: "meta", compressed: false },
    SpaceOptions { name: "catalog", compressed: false },
    SpaceOptions { name: "history", compressed: true },
];
const RECORDS: Space = Space(0);
const NUMBERS: Space = Space(1);
const LOG: Space = Space(4);
const INDEX: Space = Space(5);
const META: Space = Space(6);
const CATALOG: Space = Space(7);

const DOCUMENTS: u64 = 30;
const BODY_BYTES: usize = 1024;
/// Rows and bytes of an ingest, as an index run has them.
const INGEST_ROWS: u64 = 2000;
const INGEST_ROW_BYTES: usize = 4096;
/// Seconds that are not shown: a new store creates its spaces.
const LEFT_OUT_SECONDS: f64 = 2.0;
/// How many of the longest commits are shown.
const LONGEST: usize = 12;

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let seconds = words.first().copied().unwrap_or(30);
    let rate = words.get(1).copied().unwrap_or(300);
    let ingests = words.get(2).copied().unwrap_or(0);
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(EmbeddedOptions::new(folder.path(), &SPACES)).unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let mut times = runtime.block_on(async {
        let until = Instant::now() + Duration::from_secs(seconds);
        let ingesting = (ingests > 0).then(|| tokio::spawn(ingest(Arc::clone(&store), ingests, until)));
        let times = commit(&store, rate, until).await;
        if let Some(ingesting) = ingesting {
            ingesting.await.unwrap();
        }
        times
    });
    times.retain(|(at, _)| *at >= LEFT_OUT_SECONDS);
    report(&mut times);
}

/// Commits at a rate and returns when each was due, in seconds, and its time.
async fn commit(store: &Store, rate: u64, until: Instant) -> Vec<(f64, Duration)> {
    let lane = store.lane();
    let begun = Instant::now();
    let mut waiting = Vec::new();
    for group in 0_u64.. {
        let due = begun + Duration::from_nanos(group * 1_000_000_000 / rate);
        if due >= until {
            break;
        }
        tokio::time::sleep_until(due.into()).await;
        let verdict = store.submit(&lane, documents(group), Durability::Sync);
        waiting.push(tokio::spawn(async move {
            verdict.await.unwrap();
            ((due - begun).as_secs_f64(), due.elapsed())
        }));
    }
    let mut times = Vec::new();
    for time in waiting {
        times.push(time.await.unwrap());
    }
    times
}

/// Ingests runs at a rate, each under a new prefix.
async fn ingest(store: Arc<Store>, rate: u64, until: Instant) {
    let mut timer = tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate).unwrap());
    for run in 0_u64.. {
        timer.tick().await;
        if Instant::now() >= until {
            return;
        }
        let key = |row: u64| Bytes::from([run.to_be_bytes(), row.to_be_bytes()].concat());
        let rows = (0..INGEST_ROWS).map(|row| (key(row), body(run << 20 | row, INGEST_ROW_BYTES)));
        let ingested = store.ingest(INDEX, rows.collect()).await.unwrap();
        let mut naming = Batch::default();
        naming.put(META, "run", run.to_be_bytes().to_vec());
        naming.name_ingest(ingested);
        store.submit(&store.lane(), naming, Durability::Sync).await.unwrap();
    }
}

fn documents(group: u64) -> Batch {
    let mut batch = Batch::default();
    for number in group * DOCUMENTS..(group + 1) * DOCUMENTS {
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
        let key = Bytes::from([hash.to_be_bytes(), number.to_be_bytes()].concat());
        batch.put(RECORDS, key.clone(), body(number, BODY_BYTES));
        batch.put(NUMBERS, number.to_be_bytes().to_vec(), key);
        batch.put(LOG, number.to_be_bytes().to_vec(), vec![0; 24]);
    }
    batch.put(META, "head", group.to_be_bytes().to_vec());
    if group.is_multiple_of(100) {
        batch.put(CATALOG, "counter", group.to_be_bytes().to_vec());
    }
    batch
}

/// Bytes that compress about as well as documents do.
fn body(number: u64, length: usize) -> Bytes {
    let text = format!("{{\"number\":{number},\"name\":\"document {}\",", number.wrapping_mul(31));
    let mut body = text.repeat(length / text.len() + 1);
    body.truncate(length);
    body.into()
}

fn report(times: &mut [(f64, Duration)]) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let share = |share: f64| millis(times[(times.len() as f64 * share) as usize].1);
    println!(
        "{} commits: p50 {:.1} ms, p99 {:.1}, p99.9 {:.1}, longest {:.1}",
        times.len(),
        share(0.5),
        share(0.01),
        share(0.001),
        share(0.0)
    );
    for bound in [10, 20, 50, 100] {
        let count = times.iter().filter(|(_, time)| millis(*time) > f64::from(bound)).count();
        println!("longer than {bound} ms: {count}");
    }
    // A stall delays the commits that are due meanwhile: only the first one of each is shown.
    let mut shown: Vec<f64> = Vec::new();
    for (at, time) in times.iter() {
        if shown.len() < LONGEST && shown.iter().all(|other| (other - at).abs() > 0.2) {
            shown.push(*at);
            println!("at {at:.2} s: {:.1} ms", millis(*time));
        }
    }
}
