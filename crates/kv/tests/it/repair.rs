//! Journals with a broken commit: torn ends are cut by themselves, damage is cut on request, and both are told apart
//! also where commits were not synced.

use std::fs;
use std::path::{Path, PathBuf};

use kv::{Durability, OpenFault, Repair, Store};
use tempfile::TempDir;

use crate::stores::{RECORDS, commit, keys, options, put, run};

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

/// The newest journal and its bytes, without the zeros at its end.
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

/// A loss of power may keep a later unsynced commit and lose an earlier one.
#[test]
fn unsynced_commits_behind_a_torn_one_are_cut_with_it() {
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

/// A commit that was synced, and so everything before it, is not cut without being asked for.
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

/// The number of a commit is under no checksum: a lower one would have the engine skip the commit.
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

/// The cut bytes lie beside the folder, which here is the system's folder for temporary files.
fn remove_saved(saved: &Path) {
    fs::remove_dir_all(saved.parent().unwrap()).unwrap();
}
