//! Measures settings of the storage engine itself, without the store: the number of workers, and whether large values
//! are stored apart from their keys.
//!
//! `cargo run --release -p perihelion-kv --example measure_engine -- DOCUMENTS WORKERS yes|no [REPLACED]`
//!
//! Writes DOCUMENTS documents of 1 KB as a container does (a record under a hash, a number, a log entry), replaces
//! REPLACED of them, waits until the engine is idle, and prints fill rate, bytes on disk, write amplification, CPU time
//! of the workers, point reads and a scan. `yes` separates values.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a program for people, not for servers"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode, Readable,
};

/// Same value as in the store.
const JOURNAL_FLUSH_BYTES: u64 = 65_000_000;
const MEMTABLE_BYTES: u64 = 128_000_000;
const CACHE_BYTES: u64 = 512 << 20;
const OPEN_TABLES: usize = 16_384;
const SEALED_MEMTABLES_MAX: usize = 3;
const FIRST_LEVEL_TABLES_MAX: usize = 24;
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Documents per commit. Commits are not synced: disk latency is not measured.
const COMMIT: u64 = 64;
/// Values of at least this size are separated.
const SEPARATED_BYTES: u32 = 512;
const POINT_READS: u64 = 100_000;
/// The engine counts as idle when it has compacted nothing for this long.
const REST: Duration = Duration::from_secs(3);

struct Spaces {
    database: Database,
    records: Keyspace,
    numbers: Keyspace,
    log: Keyspace,
    journal_bytes: u64,
    stalled: Duration,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let documents: u64 = words[0].parse().unwrap();
    let workers: usize = words[1].parse().unwrap();
    let separated = words[2] == "yes";
    let replaced: u64 = words.get(3).map_or(0, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut spaces = open(folder.path(), workers, separated);
    let (begun, written) = (Instant::now(), written_bytes());
    for first in (0..documents).step_by(COMMIT as usize) {
        commit(&mut spaces, (first..(first + COMMIT).min(documents)).map(|number| (number, number)));
    }
    let filled = begun.elapsed();
    let begun_replacing = Instant::now();
    for first in (0..replaced).step_by(COMMIT as usize) {
        let numbers =
            (first..(first + COMMIT).min(replaced)).map(|step| (hash(step, 1) % documents, documents + step));
        commit(&mut spaces, numbers);
    }
    let replacing = begun_replacing.elapsed();
    rest(&spaces);
    let rested = begun.elapsed() - REST;
    let raw = (documents + replaced) * 1_100;
    println!("{documents} documents, {workers} workers, separated {separated}");
    println!(
        "fill {:.0}/s, waited for workers {:.1} s",
        documents as f64 / filled.as_secs_f64(),
        spaces.stalled.as_secs_f64()
    );
    if replaced > 0 {
        println!("replace {:.0}/s", replaced as f64 / replacing.as_secs_f64());
    }
    println!("at rest after {:.1} s", rested.as_secs_f64());
    println!(
        "disk {} MB of {} MB live",
        folder_bytes(folder.path()) / 1_000_000,
        documents * 1_100 / 1_000_000
    );
    println!("write amplification {:.2}", (written_bytes() - written) as f64 / raw as f64);
    for (name, cpu) in thread_times() {
        println!("processor {name} {cpu:.1} s");
    }
    read(&spaces, documents);
}

fn open(folder: &Path, workers: usize, separated: bool) -> Spaces {
    let database = Database::builder(folder.join("engine"))
        .cache_size(CACHE_BYTES)
        .max_journaling_size(64 << 20)
        .max_cached_files(Some(OPEN_TABLES))
        .worker_threads_unchecked(workers)
        .journal_compression(CompressionType::None)
        .open()
        .unwrap();
    let settings = || {
        let compression = [CompressionType::None, CompressionType::None, CompressionType::Lz4];
        KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE_BYTES)
            .data_block_compression_policy(CompressionPolicy::new(compression))
    };
    let apart = KvSeparationOptions::default().separation_threshold(SEPARATED_BYTES);
    let records = database.keyspace("records", || settings().with_kv_separation(separated.then_some(apart)));
    let records = records.unwrap();
    let numbers = database.keyspace("numbers", settings).unwrap();
    let log = database.keyspace("log", settings).unwrap();
    Spaces { database, records, numbers, log, journal_bytes: 0, stalled: Duration::ZERO }
}

/// Writes versions of documents, given as pairs of document number and version number.
fn commit(spaces: &mut Spaces, numbers: impl Iterator<Item = (u64, u64)>) {
    let begun = Instant::now();
    wait_for_workers(spaces);
    if spaces.journal_bytes >= JOURNAL_FLUSH_BYTES {
        while all(spaces).iter().any(|space| space.sealed_memtable_count() > 0) {
            std::thread::sleep(LOOK_INTERVAL);
        }
        for space in all(spaces) {
            space.rotate_memtable().unwrap();
        }
        spaces.journal_bytes = 0;
    }
    spaces.stalled += begun.elapsed();
    let mut batch = spaces.database.batch().durability(Some(PersistMode::Buffer));
    for (number, version) in numbers {
        let record = value(version);
        spaces.journal_bytes += record.len() as u64 + 150;
        batch.insert(&spaces.records, record_key(number), record);
        batch.insert(&spaces.numbers, number_key(number), record_key(number));
        batch.insert(&spaces.log, number_key(version), record_key(number));
    }
    batch.commit().unwrap();
}

fn wait_for_workers(spaces: &Spaces) {
    let is_behind = |space: &&Keyspace| {
        space.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
            || space.l0_table_count() >= FIRST_LEVEL_TABLES_MAX
    };
    while all(spaces).iter().any(is_behind) {
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn all(spaces: &Spaces) -> [&Keyspace; 3] {
    [&spaces.records, &spaces.numbers, &spaces.log]
}

/// Flushes the memtables and waits until no merge is running.
fn rest(spaces: &Spaces) {
    for space in all(spaces) {
        space.rotate_memtable_and_wait().unwrap();
    }
    let mut seen = (0, 0, Instant::now());
    while seen.2.elapsed() < REST {
        let now = (spaces.database.compactions_completed(), spaces.database.active_compactions());
        if now.1 > 0 || (seen.0, seen.1) != now {
            seen = (now.0, now.1, Instant::now());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn read(spaces: &Spaces, documents: u64) {
    let snapshot = spaces.database.snapshot();
    // The first pass warms the cache.
    for _ in 0..2 {
        let begun = Instant::now();
        for step in 0..POINT_READS {
            let key = record_key(hash(step, 2) % documents);
            assert!(snapshot.get(&spaces.records, key).unwrap().is_some());
        }
        println!("point read {:.1} µs", begun.elapsed().as_secs_f64() * 1e6 / POINT_READS as f64);
    }
    let begun = Instant::now();
    let mut bytes = 0;
    for row in snapshot.iter(&spaces.records) {
        bytes += row.into_inner().unwrap().1.len();
    }
    println!("scan of records {:.1} s, {} MB", begun.elapsed().as_secs_f64(), bytes / 1_000_000);
}

/// A pseudo-random number that is the same in every run.
fn hash(number: u64, salt: u64) -> u64 {
    let mut mixed = (number ^ salt << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ mixed >> 32
}

/// Container, hash of the partition key, id.
fn record_key(number: u64) -> Vec<u8> {
    let partition = hash(number % 1000, 3);
    let mut key = 7u32.to_be_bytes().to_vec();
    key.extend(partition.to_be_bytes());
    key.extend(partition.to_be_bytes());
    key.extend(format!("d{number}").into_bytes());
    key
}

fn number_key(number: u64) -> Vec<u8> {
    let mut key = 7u32.to_be_bytes().to_vec();
    key.extend(number.to_be_bytes());
    key
}

/// 1 KB that compresses about as text does: words of a small vocabulary.
fn value(version: u64) -> Vec<u8> {
    const WORDS: [&str; 8] = ["orbit ", "planet ", "comet ", "dust ", "mass ", "period ", "axis ", "light "];
    let mut value = format!("version {version} ").into_bytes();
    let mut random = version;
    while value.len() < 1024 {
        random = hash(random, 4);
        for byte in random.to_be_bytes() {
            value.extend(WORDS[usize::from(byte) % WORDS.len()].as_bytes());
        }
    }
    value.truncate(1024);
    value
}

/// Bytes this process has caused to be written to disk.
fn written_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap();
    line.parse().unwrap()
}

/// CPU seconds of each thread; the engine's threads are found by name.
fn thread_times() -> Vec<(String, f64)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let time = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.unwrap().path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap();
        let times = std::fs::read_to_string(path.join("schedstat")).unwrap();
        let nanoseconds: f64 = times.split_whitespace().next().unwrap().parse().unwrap();
        (name.trim().to_owned(), nanoseconds / 1e9)
    };
    tasks.map(time).collect()
}

fn folder_bytes(folder: &Path) -> u64 {
    let size = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let about = entry.metadata().unwrap();
        if about.is_dir() { folder_bytes(&entry.path()) } else { about.len() }
    };
    std::fs::read_dir(folder).unwrap().map(size).sum()
}
