//! Processes that are killed while they write: acknowledged batches are present, and writing continues.
//!
//! The engine once stopped accepting writes after a kill and a start, so every round kills the store of the round
//! before and continues writing.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use kv::{Batch, Durability, OpenFault, Store};

use crate::stores::{INDEX, META, RECORDS, commit, get, keys, options, put, run};

/// Set for the child only: the folder it writes to.
const FOLDER_VARIABLE: &str = "KV_CRASH_FOLDER";

const ROUNDS: u64 = 6;
const ACKNOWLEDGED_PER_ROUND: usize = 400;

/// Not a test by itself: the child process of the next one. Each batch puts one row into each of two spaces and
/// increments the counter; its number is printed once it is acknowledged.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(FOLDER_VARIABLE) else {
        return;
    };
    let mut options = kv::EmbeddedOptions::new(path, &crate::stores::SPACES);
    options.free_space_reserve_bytes = 0;
    run(async {
        let store = Store::open(options).unwrap();
        let counted = get(&store.view().await.unwrap(), META, "count").await;
        let first = counted.map_or(0, |count| count.parse::<u64>().unwrap() + 1);
        let lane = store.lane();
        let mut in_flight = std::collections::VecDeque::new();
        for number in first.. {
            let mut batch = put(RECORDS, &format!("{number:010}"), &"x".repeat(20_000));
            batch.put(INDEX, format!("{number:010}"), "x");
            batch.put(META, "count", number.to_string());
            in_flight.push_back((number, store.submit(&lane, batch, Durability::Sync)));
            if in_flight.len() == 8 {
                let (number, verdict) = in_flight.pop_front().unwrap();
                verdict.await.unwrap();
                println!("acknowledged {number}");
            }
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let last_acknowledged = write_until_killed(folder.path());
        run(async {
            let store = Store::open(options(&folder)).unwrap();
            let view = store.view().await.unwrap();
            let records = keys(&view, RECORDS).await;
            assert_eq!(records, keys(&view, INDEX).await, "every batch is whole");
            let count = records.len() as u64;
            assert!(
                count > last_acknowledged,
                "round {round}: {count} rows, acknowledged {last_acknowledged}"
            );
            assert_eq!(get(&view, META, "count").await.unwrap(), (count - 1).to_string());
        });
    }
}

/// Runs the child until it has acknowledged enough, kills it, and returns the last number it acknowledged.
fn write_until_killed(folder: &Path) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER_VARIABLE, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut acknowledged = lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
    let enough = acknowledged.by_ref().nth(ACKNOWLEDGED_PER_ROUND).expect("the child should have written");
    child.kill().unwrap();
    let last = acknowledged.last().unwrap_or(enough);
    child.wait().unwrap();
    last
}

/// A power failure may leave any part of the last, unsynced commit: here each time a different page of it is zero, or
/// everything from that page on.
#[test]
fn a_torn_tail_is_dropped_whole() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(options(&folder)).unwrap());
    for round in 0..12u64 {
        run(async {
            let store = Store::open(options(&folder)).unwrap();
            let view = commit(&store, put(RECORDS, &format!("{round:02}-kept"), "x")).await.unwrap();
            assert_eq!(keys(&view, RECORDS).await.len() as u64, round + 1, "no torn batch came back");
            drop(view);
            let before = journal_end(folder.path());
            let mut torn = Batch::default();
            for row in 0..4 {
                torn.put(RECORDS, format!("{round:02}-torn-{row}"), vec![b'x'; 6_000]);
            }
            commit(&store, torn).await.unwrap();
            drop(store);
            let after = journal_end(folder.path());
            let page = before + (after - before) * (round % 6) / 6;
            damage_journal(folder.path(), page, if round < 6 { 512 } else { after - page });
        });
    }
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        let found = keys(&store.view().await.unwrap(), RECORDS).await;
        assert!(found.iter().all(|key| key.ends_with("kept")), "{found:?}");
        assert_eq!(found.len(), 12);
    });
}

/// Damage before acknowledged commits is no torn tail: whatever byte it hits, it is reported.
#[test]
fn damage_before_acknowledged_commits_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (start, end) = run(async {
        let store = Store::open(options(&folder)).unwrap();
        commit(&store, put(RECORDS, "first", "x")).await.unwrap();
        let start = journal_end(folder.path());
        commit(&store, put(RECORDS, "hit", &"x".repeat(40))).await.unwrap();
        let end = journal_end(folder.path());
        commit(&store, put(RECORDS, "later", "x")).await.unwrap();
        (start, end)
    });
    let mut intact = Vec::new();
    journal(folder.path()).read_to_end(&mut intact).unwrap();
    for position in start..end {
        flip_journal(folder.path(), position);
        match Store::open(options(&folder)) {
            Err(OpenFault::Damaged { position: found, .. }) => assert_eq!(found as u64, start),
            Err(other) => panic!("byte {position}: {other}"),
            // The checksum does not cover the number of a commit.
            Ok(_) => assert!((5..13).contains(&(position - start)), "byte {position} went unnoticed"),
        }
        let mut journal = journal(folder.path());
        journal.set_len(0).unwrap();
        journal.write_all(&intact).unwrap();
    }
}

fn flip_journal(folder: &Path, position: u64) {
    let mut journal = journal(folder);
    let mut byte = [0];
    journal.seek(SeekFrom::Start(position)).unwrap();
    journal.read_exact(&mut byte).unwrap();
    journal.seek(SeekFrom::Start(position)).unwrap();
    journal.write_all(&[byte[0] ^ 0x40]).unwrap();
}

fn journal(folder: &Path) -> std::fs::File {
    let entries = std::fs::read_dir(folder.join("engine")).unwrap().map(|entry| entry.unwrap().path());
    let journals = entries.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    OpenOptions::new().read(true).write(true).open(journals.max().unwrap()).unwrap()
}

/// End of the used bytes of a journal, before its preallocated zeros.
fn journal_end(folder: &Path) -> u64 {
    let mut bytes = Vec::new();
    journal(folder).read_to_end(&mut bytes).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |position| position as u64 + 1)
}

fn damage_journal(folder: &Path, position: u64, length: u64) {
    let mut journal = journal(folder);
    journal.seek(SeekFrom::Start(position)).unwrap();
    journal.write_all(&vec![0; usize::try_from(length).unwrap()]).unwrap();
}
