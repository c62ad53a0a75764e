//! Journals with a broken commit: torn tails are truncated automatically, damage is cut on request, and both are
//! distinguished also where commits were not synced.

use std::fs;
use std::path::{Path, PathBuf};

use kv::{Durability, OpenFault, Repair, Store};
use tempfile::TempDir;

use crate::stores::{INDEX, RECORDS, commit, keys, options, put, run};

/// Commits rows named after their durability and number, and returns where each starts in the journal.
async fn write(store: &Store, folder: &TempDir, durabilities: &[Durability]) -> Vec<usize> {
    let mut starts = Vec::new();
    for (number, durability) in durabilities.iter().enumerate() {
        starts.push(content(folder).1.len());
        let batch = put(RECORDS, &format!("{number}"), &"x".repeat(100));
        store.submit(&store.lane(), batch, *durability).await.unwrap();
    }
    starts
}

/// The newest journal and its bytes, without its zero tail.
fn content(folder: &TempDir) -> (PathBuf, Vec<u8>) {
    let entries = fs::read_dir(folder.path().join("engine")).unwrap().map(|entry| entry.unwrap().path());
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jnl");
    let path = entries.filter(is_journal).max().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    (path, bytes)
}

/// A store with one closed row "base" and the given commits in its journal, of which one is then broken.
fn broken(durabilities: &[Durability], broken: usize) -> (TempDir, usize) {
    let folder = tempfile::tempdir().unwrap();
    let starts = run(async {
        let store = Store::open(options(&folder)).unwrap();
        commit(&store, put(RECORDS, "base", "x")).await.unwrap();
        store.close().await.unwrap();
        let store = Store::open(options(&folder)).unwrap();
        write(&store, &folder, durabilities).await
    });
    let (path, mut bytes) = content(&folder);
    // In the value of the commit's row.
    bytes[starts[broken] + 60] ^= 1;
    fs::write(path, bytes).unwrap();
    (folder, starts[broken])
}

fn found(folder: &TempDir) -> Vec<String> {
    run(async {
        let store = Store::open(options(folder)).unwrap();
        keys(&store.view().await.unwrap(), RECORDS).await
    })
}

use Durability::{Buffered, Sync};

/// A power failure may keep a later unsynced commit and lose an earlier one.
#[test]
fn unsynced_commits_after_a_torn_one_are_cut_with_it() {
    for (durabilities, torn) in [
        (&[Sync, Buffered, Buffered, Buffered][..], 1),
        (&[Sync, Buffered, Buffered, Buffered], 2),
        (&[Sync, Buffered, Sync, Buffered, Buffered], 3),
        (&[Buffered, Buffered], 0),
    ] {
        let (folder, _) = broken(durabilities, torn);
        let expected: Vec<String> =
            (0..torn).map(|number| number.to_string()).chain(["base".to_owned()]).collect();
        assert_eq!(found(&folder), expected, "{durabilities:?}, torn {torn}");
    }
}

/// A synced commit, and so everything before it, is not cut without a request.
#[test]
fn a_broken_commit_in_front_of_a_synced_one_is_damage() {
    for (durabilities, damaged) in [
        (&[Sync, Sync][..], 0),
        (&[Sync, Buffered, Sync], 1),
        (&[Sync, Buffered, Buffered, Sync], 1),
        (&[Sync, Buffered, Buffered, Sync, Buffered, Buffered], 2),
        (&[Sync, Sync, Buffered, Buffered], 1),
    ] {
        let (folder, start) = broken(durabilities, damaged);
        let what = format!("{durabilities:?}, damaged {damaged}");
        match Store::open(options(&folder)) {
            Err(OpenFault::Damaged { position, .. }) => assert_eq!(position, start, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        let before = content(&folder).1;
        let repair = repair_of(&folder);
        assert_eq!(repair.cuts.len(), 1, "{what}");
        let cut = &repair.cuts[0];
        assert_eq!((cut.position, cut.cut_bytes), (start as u64, (before.len() - start) as u64), "{what}");
        assert_eq!(fs::read(&cut.saved).unwrap(), before[start..], "{what}");
        assert_eq!(repair.readable_commits, durabilities.len() - damaged - 1, "{what}");
        assert!(!repair.is_torn, "{what}");
        let expected: Vec<String> =
            (0..damaged).map(|number| number.to_string()).chain(["base".to_owned()]).collect();
        assert_eq!(found(&folder), expected, "{what}");
        remove_saved(&cut.saved);
    }
}

/// No checksum covers the number of a commit: a lower one would make the engine skip the commit.
#[test]
fn a_changed_number_of_the_first_commit_is_damage() {
    for (position, length) in [(0, 0), (5, 1), (12, 1)] {
        let (folder, _) = broken(&[Sync, Sync], 1);
        let (path, mut bytes) = content(&folder);
        match length {
            0 => bytes.clear(),
            _ => bytes[position] ^= 1,
        }
        fs::write(path, bytes).unwrap();
        assert!(matches!(Store::open(options(&folder)), Err(OpenFault::Damaged { position: 0, .. })));
        let repair = repair_of(&folder);
        assert_eq!((repair.cuts[0].position, repair.is_torn), (0, false));
        assert_eq!(found(&folder), ["base"]);
        remove_saved(&repair.cuts[0].saved);
    }
}

/// A store with commits in its journal whose sync is recorded if `recorded`; returns where each commit starts.
fn unclosed(folder: &TempDir, recorded: bool) -> Vec<usize> {
    run(async {
        let store = Store::open(options(folder)).unwrap();
        commit(&store, put(RECORDS, "base", "x")).await.unwrap();
        store.close().await.unwrap();
        let mut options = options(folder);
        if recorded {
            options.sync_record_interval = std::time::Duration::ZERO;
        }
        let store = Store::open(options).unwrap();
        write(&store, folder, &[Sync, Buffered, Sync, Sync]).await
    })
}

/// An interrupted copy of the folder: a missing tail of the journal is neither truncated nor overlooked.
#[test]
fn a_shortened_journal_is_no_torn_one() {
    let folder = tempfile::tempdir().unwrap();
    let starts = unclosed(&folder, true);
    let (path, whole) = content(&folder);
    let mut lengths = starts.clone();
    lengths.extend([whole.len() - 1, starts[2] + 1, starts[3] + 60]);
    for length in lengths {
        // Short, and short with preallocated zeros.
        for zeros in [0, 5000] {
            let shortened: Vec<u8> = whole[..length].iter().copied().chain(vec![0; zeros]).collect();
            fs::write(&path, &shortened).unwrap();
            let last_start = *starts.iter().filter(|start| **start <= length).max().unwrap();
            match Store::open(options(&folder)) {
                Err(OpenFault::Shortened { position, synced_bytes, .. }) => {
                    assert_eq!((position, synced_bytes), (last_start, whole.len() as u64));
                }
                Err(OpenFault::Damaged { position: 0, .. }) if length == 0 => {}
                other => panic!("{length} bytes: {other:?}"),
            }
            assert!(kv::StoreCopy::of(folder.path()).is_err(), "{length} bytes");
            assert_eq!(fs::read(&path).unwrap(), shortened, "nothing was cut");
        }
    }
    fs::write(&path, &whole[..starts[3] + 60]).unwrap();
    let repair = repair_of(&folder);
    assert_eq!((repair.is_torn, repair.shortened_from), (false, Some(whole.len() as u64)));
    assert_eq!((repair.cuts[0].position, repair.cuts[0].cut_bytes), (starts[3] as u64, 60));
    assert_eq!(found(&folder), ["0", "1", "2", "base"]);
    remove_saved(&repair.cuts[0].saved);
}

/// The end of a commit whose sync was not recorded may be torn, and is truncated as usual.
#[test]
fn an_end_that_was_not_recorded_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let starts = unclosed(&folder, false);
    let (path, whole) = content(&folder);
    fs::write(&path, &whole[..starts[3] + 60]).unwrap();
    assert_eq!(found(&folder), ["0", "1", "2", "base"]);
}

/// Opening a store records the journals it finds, also after a killed process.
#[test]
fn what_an_opening_has_found_is_missed_later() {
    let folder = tempfile::tempdir().unwrap();
    let starts = unclosed(&folder, false);
    assert_eq!(found(&folder), ["0", "1", "2", "3", "base"]);
    let (path, whole) = content(&folder);
    fs::write(&path, &whole[..starts[3]]).unwrap();
    assert!(matches!(Store::open(options(&folder)), Err(OpenFault::Shortened { .. })));
}

/// Journals of 65 MB each: the engine rotates by itself, and the previous one is not flushed at once.
#[test]
fn a_shortened_journal_before_the_newest_is_missed_too() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let mut options = options(&folder);
        options.sync_record_interval = std::time::Duration::ZERO;
        let store = Store::open(options).unwrap();
        let mut number = 0;
        while journals(&folder).len() < 2 && number < 200 {
            commit(&store, put(RECORDS, &format!("{number:04}"), &"x".repeat(1_000_000))).await.unwrap();
            number += 1;
        }
        commit(&store, put(RECORDS, "newest", "x")).await.unwrap();
    });
    let synced = fs::read(folder.path().join("SYNCED")).unwrap();
    let entries: Vec<(u64, u64)> = synced[8..136]
        .chunks(16)
        .map(|entry| {
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
            (number(&entry[..8]), number(&entry[8..]))
        })
        .filter(|(number, _)| *number != u64::MAX)
        .collect();
    // The record is exact for every journal that still exists.
    for (number, path) in journals(&folder) {
        let bytes = fs::read(&path).unwrap();
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        assert!(entries.contains(&(number, length)), "journal {number} of {length} bytes, {entries:?}");
    }
    let (oldest, path) = journals(&folder).into_iter().next().unwrap();
    let (_, length) = entries.iter().find(|(number, _)| *number == oldest).copied().unwrap();
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(length - 1).unwrap();
    assert!(matches!(
        Store::open(options(&folder)),
        Err(OpenFault::Shortened { .. } | OpenFault::Damaged { .. })
    ));
}

/// Journals with their numbers, the oldest first.
fn journals(folder: &TempDir) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder.path().join("engine")).unwrap().map(|entry| entry.unwrap().path());
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jnl");
    let number = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut found: Vec<(u64, PathBuf)> =
        entries.filter(is_journal).map(|path| (number(&path), path)).collect();
    found.sort();
    found
}

/// Without its record of synced lengths a store is not opened; only the operator can decide whether it is complete.
#[test]
fn a_lost_record_of_syncs_is_rebuilt_by_a_repair() {
    for is_removed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        unclosed(&folder, true);
        let path = folder.path().join("SYNCED");
        if is_removed {
            fs::remove_file(&path).unwrap();
            assert!(matches!(Store::open(options(&folder)), Err(OpenFault::Missing { .. })));
        } else {
            fs::write(&path, "other").unwrap();
            assert!(matches!(Store::open(options(&folder)), Err(OpenFault::DamagedFile { .. })));
        }
        let repair = repair_of(&folder);
        assert!(repair.is_synced_lost && repair.cuts.is_empty());
        assert_eq!(found(&folder), ["0", "1", "2", "3", "base"]);
    }
}

/// What an earlier version has left: a journal that was cut although the tables of one space have more.
#[test]
fn a_torn_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let starts = run(async {
        let store = Store::open(options(&folder)).unwrap();
        let mut starts = Vec::new();
        for key in ["a", "b"] {
            starts.push(content(&folder).1.len());
            let mut batch = put(RECORDS, key, "x");
            batch.put(INDEX, key.to_owned(), "x".to_owned());
            commit(&store, batch).await.unwrap();
        }
        // Flushes the memtable of the space.
        store.ingest(INDEX, vec![("run".into(), "ingested".into())]).await.unwrap();
        starts
    });
    let ((path, whole), synced) = (content(&folder), folder.path().join("SYNCED"));
    let recorded = fs::read(&synced).unwrap();
    // An ingest that no commit has named yet proves nothing.
    assert_eq!(found(&folder), ["a", "b"]);
    fs::write(&path, &whole[..starts[1]]).unwrap();
    fs::write(synced, recorded).unwrap();
    let opened = Store::open(options(&folder)).map(drop);
    for torn in [opened, kv::repair(folder.path()).map(drop)] {
        match torn {
            Err(OpenFault::Torn { spaces, .. }) => assert_eq!(spaces, ["index"]),
            other => panic!("{other:?}"),
        }
    }
    let mut options = options(&folder);
    options.accepts_torn = true;
    drop(Store::open(options).unwrap());
}

#[test]
fn a_sound_store_is_not_repaired_and_an_open_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(options(&folder)).unwrap();
    run(commit(&store, put(RECORDS, "a", "x"))).unwrap();
    assert!(matches!(kv::repair(folder.path()), Err(OpenFault::Locked { .. })));
    drop(store);
    let before = content(&folder);
    assert_eq!(repair_of(&folder).cuts, []);
    assert_eq!(content(&folder), before);
    assert!(matches!(kv::repair(&folder.path().join("engine")), Err(OpenFault::NotAStore { .. })));
}

fn repair_of(folder: &TempDir) -> Repair {
    kv::repair(folder.path()).unwrap()
}

/// The cut bytes are next to the store's folder, here in the system's folder for temporary files.
fn remove_saved(saved: &Path) {
    fs::remove_dir_all(saved.parent().unwrap()).unwrap();
}
