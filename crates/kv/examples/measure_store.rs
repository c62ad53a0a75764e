//! Measures a store on disk: durable commits, point reads, scans and start time.
//!
//! `cargo run --release -p perihelion-kv --example measure_store [folder]`; without a folder a temporary one is used.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a program for people, not for servers"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kv::{Batch, Direction, Durability, EmbeddedOptions, KeyRange, ScanLimit, Space, SpaceOptions, Store};

const SPACES: [SpaceOptions; 7] = [
    SpaceOptions { name: "records", compressed: true },
    SpaceOptions { name: "numbers", compressed: true },
    SpaceOptions { name: "unique", compressed: true },
    SpaceOptions { name: "expiry", compressed: true },
    SpaceOptions { name: "log", compressed: true },
    SpaceOptions { name: "index", compressed: false },
    SpaceOptions { name: "meta", compressed: true },
];
const RECORDS: Space = Space(0);
const NUMBERS: Space = Space(1);
const LOG: Space = Space(4);
const META: Space = Space(6);

const ROW_BYTES: usize = 1200;
/// Few enough rows that their blocks fit twice into the cache.
const WARM_ROWS: u64 = 5_000;
const COMMIT_TIME: Duration = Duration::from_secs(3);

fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::args().nth(1).map_or(temporary.path().to_path_buf(), PathBuf::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        measure_start_and_idle(&folder.join("empty")).await;
        for (submitters, lanes) in [(1, 1), (64, 1), (64, 8)] {
            measure_commits(&folder.join(format!("commits-{submitters}-{lanes}")), submitters, lanes).await;
        }
        for row_count in [100_000, 1_000_000] {
            measure_reads(&folder.join(format!("reads-{row_count}")), row_count).await;
        }
    });
}

fn open(path: &Path) -> Store {
    Store::open(EmbeddedOptions::new(path, &SPACES)).unwrap()
}

async fn measure_start_and_idle(path: &Path) {
    let before = resident_bytes();
    let started = Instant::now();
    let store = open(path);
    println!("first start of an empty store   {:>10.1} ms", millis(started));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let grown = resident_bytes().saturating_sub(before);
    println!("memory of an empty store        {:>10.1} MiB", grown as f64 / f64::from(1 << 20));
    store.close().await.unwrap();
    let started = Instant::now();
    let store = open(path);
    println!("second start of an empty store  {:>10.1} ms", millis(started));
    store.close().await.unwrap();
}

/// Durable commits of one document each, as a partition submits them: record, number, log row and head.
async fn measure_commits(path: &Path, submitters: u64, lanes: u64) {
    let store = Arc::new(open(path));
    let lanes: Vec<_> = (0..lanes).map(|_| store.lane()).collect();
    let deadline = Instant::now() + COMMIT_TIME;
    let tasks: Vec<_> = (0..submitters)
        .map(|submitter| {
            let store = Arc::clone(&store);
            let lane = lanes[usize::try_from(submitter).unwrap() % lanes.len()].clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while Instant::now() < deadline {
                    let number = submitter << 40 | latencies.len() as u64;
                    let started = Instant::now();
                    store.submit(&lane, document(number), Durability::Sync).await.unwrap();
                    latencies.push(started.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    latencies.sort_unstable();
    let rate = latencies.len() as f64 / COMMIT_TIME.as_secs_f64();
    let share = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_micros();
    println!(
        "durable commits, {submitters:>2} submitters, {:>2} lanes {rate:>8.0} /s   p50 {} us, p99 {} us",
        lanes.len(),
        share(0.5),
        share(0.99),
    );
    Arc::into_inner(store).unwrap().close().await.unwrap();
}

async fn measure_reads(path: &Path, row_count: u64) {
    println!("with {row_count} rows of {ROW_BYTES} bytes:");
    let store = open(path);
    let started = Instant::now();
    load(&store, row_count).await;
    println!(
        "  load, 64 documents a batch    {:>10.0} /s",
        row_count as f64 / started.elapsed().as_secs_f64()
    );
    measure_gets(&store, row_count, "after the load").await;
    drop(store);

    let started = Instant::now();
    let store = open(path);
    println!("  start without a close before  {:>10.1} ms", millis(started));
    wait_for_merges(&store).await;
    measure_gets(&store, row_count, "after a start").await;
    measure_scan(&store).await;
    println!("  bytes on disk                 {:>10.0} MB", store.disk_bytes() as f64 / 1e6);
    store.close().await.unwrap();
    measure_full_journal(path, row_count).await;
}

/// The slowest start: everything since the last flush fills a journal.
async fn measure_full_journal(path: &Path, row_count: u64) {
    let store = open(path);
    load(&store, row_count.min(45_000)).await;
    drop(store);
    let started = Instant::now();
    let store = open(path);
    println!("  start with a full journal     {:>10.1} ms", millis(started));
    drop(store);
}

async fn load(store: &Store, row_count: u64) {
    let lane = store.lane();
    let mut in_flight = std::collections::VecDeque::new();
    for first in (0..row_count).step_by(64) {
        let mut batch = Batch::default();
        (first..row_count.min(first + 64)).for_each(|number| add_document(&mut batch, number));
        in_flight.push_back(store.submit(&lane, batch, Durability::Sync));
        if in_flight.len() == 4 {
            in_flight.pop_front().unwrap().await.unwrap();
        }
    }
    for verdict in in_flight {
        verdict.await.unwrap();
    }
}

/// Point reads in CPU time, so that the figure is meaningful on a shared machine.
async fn measure_gets(store: &Store, row_count: u64, when: &str) {
    let view = store.view().await.unwrap();
    let measure = async |what: &str, count: u64, wanted: &dyn Fn(u64) -> u64| {
        let (wall, processor) = (Instant::now(), processor_nanos());
        for turn in 0..count {
            view.get(RECORDS, &record_key(wanted(turn))).await.unwrap();
        }
        let processor = (processor_nanos() - processor) / count;
        let wall = wall.elapsed().as_nanos() as u64 / count;
        println!("  get, {what:<12} {when:<14} {processor:>8} ns of processor, {wall} ns");
    };
    measure("spread", 20_000, &|turn| turn * 7919 % row_count).await;
    let repeated = |turn| turn * 7919 % WARM_ROWS * 3 % row_count;
    for turn in 0..WARM_ROWS {
        view.get(RECORDS, &record_key(repeated(turn))).await.unwrap().unwrap();
    }
    measure("repeated", 100_000, &repeated).await;
    measure("absent", 100_000, &|turn| row_count + turn).await;
}

async fn measure_scan(store: &Store) {
    let view = store.view().await.unwrap();
    let started = Instant::now();
    let mut range = KeyRange::all();
    let mut row_count = 0;
    while row_count < 100_000 {
        let limit = ScanLimit { rows: 1000, bytes: 4 << 20 };
        let chunk = view.scan(RECORDS, range.clone(), Direction::Forward, limit).await.unwrap();
        row_count += chunk.rows.len();
        let last = &chunk.rows.last().unwrap().0;
        range.start = Bytes::from([&last[..], &[0]].concat());
        if !chunk.more {
            break;
        }
    }
    println!(
        "  scan, chunks of 1000          {:>10} ns a row",
        started.elapsed().as_nanos() / row_count as u128
    );
}

/// Gives the engine time to merge the loaded tables.
async fn wait_for_merges(store: &Store) {
    let mut before = 0;
    while store.disk_bytes() != before {
        before = store.disk_bytes();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn document(number: u64) -> Batch {
    let mut batch = Batch::default();
    add_document(&mut batch, number);
    batch
}

fn add_document(batch: &mut Batch, number: u64) {
    let key = record_key(number);
    batch.put(RECORDS, key.clone(), body(number));
    batch.put(NUMBERS, number.to_be_bytes().to_vec(), key);
    batch.put(LOG, number.to_be_bytes().to_vec(), vec![0; 24]);
    batch.put(META, "head", number.to_be_bytes().to_vec());
}

/// Keys in hash order, like those of documents.
fn record_key(number: u64) -> Bytes {
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Bytes::from([hash.to_be_bytes(), number.to_be_bytes()].concat())
}

/// Bytes that compress about as well as documents do.
fn body(number: u64) -> Bytes {
    let text = format!("{{\"number\":{number},\"name\":\"document {}\",", number.wrapping_mul(31));
    let mut body = text.repeat(ROW_BYTES / text.len() + 1);
    body.truncate(ROW_BYTES);
    body.into()
}

fn millis(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

/// CPU time of this thread.
fn processor_nanos() -> u64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedule.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}
