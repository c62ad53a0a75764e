//! What a data folder keeps and refuses: contents across opens, lock, format, spaces.

use std::fs;

use kv::{Batch, Durability, OpenFault, SpaceOptions, Store};
use tempfile::TempDir;

use crate::stores::{INDEX, META, RECORDS, SPACES, commit, get, keys, options, put, run};

fn refused(folder: &TempDir) -> OpenFault {
    Store::open(options(folder)).expect_err("the store should have been refused")
}

#[test]
fn everything_is_there_after_a_close() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        for round in 0..3 {
            let store = Store::open(options(&folder)).unwrap();
            assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await.len(), round);
            commit(&store, put(RECORDS, &round.to_string(), "x")).await.unwrap();
            store.close().await.unwrap();
        }
    });
}

#[test]
fn everything_is_there_without_a_close() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        for round in 0..3 {
            let store = Store::open(options(&folder)).unwrap();
            assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await.len(), 2 * round);
            commit(&store, put(RECORDS, &format!("{round}-sync"), "x")).await.unwrap();
            let buffered = put(RECORDS, &format!("{round}-buffered"), "x");
            store.submit(&store.lane(), buffered, Durability::Buffered).await.unwrap();
        }
    });
}

#[test]
fn deletions_and_overwrites_outlive_flushes() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        let mut batch = put(RECORDS, "a", "1");
        batch.put(RECORDS, "b", "1");
        commit(&store, batch).await.unwrap();
        // A close flushes, so that each state is in tables of its own.
        store.close().await.unwrap();
        let store = Store::open(options(&folder)).unwrap();
        let mut batch = put(RECORDS, "a", "2");
        batch.delete(RECORDS, "b");
        commit(&store, batch).await.unwrap();
        store.close().await.unwrap();
        let store = Store::open(options(&folder)).unwrap();
        let view = store.view().await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["a"]);
        assert_eq!(get(&view, RECORDS, "a").await.as_deref(), Some("2"));
    });
}

#[test]
fn unnamed_ingests_are_removed_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        let rows =
            |run: u8| (0..100u8).map(|row| (vec![run, row].into(), "block".into())).collect::<Vec<_>>();
        commit(&store, put(INDEX, "\u{2}-neighbour", "x")).await.unwrap();
        let first = store.ingest(INDEX, rows(1)).await.unwrap();
        store.ingest(INDEX, rows(2)).await.unwrap();
        let mut batch = put(META, "runs", "1");
        batch.name_ingest(first);
        commit(&store, batch).await.unwrap();
        drop(store);

        let store = Store::open(options(&folder)).unwrap();
        let view = store.view().await.unwrap();
        for row in 0..100 {
            assert!(view.get(INDEX, &[1, row]).await.unwrap().is_some());
            let kept = view.get(INDEX, &[2, row]).await.unwrap();
            assert_eq!(kept, None);
        }
        // The number of the removed ingest is not reused.
        let third = store.ingest(INDEX, rows(3)).await.unwrap();
        assert!(third > first);
        assert_eq!(format!("{third:?}"), "IngestId(3)");
    });
}

#[test]
fn a_folder_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        assert!(matches!(refused(&folder), OpenFault::Locked { path } if path == folder.path()));
        store.close().await.unwrap();
        drop(Store::open(options(&folder)).unwrap());
        drop(Store::open(options(&folder)).unwrap());
    });
}

#[test]
fn another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(options(&folder)).unwrap());
    let format = fs::read_to_string(folder.path().join("FORMAT")).unwrap();
    assert!(
        format.starts_with("perihelion store 4\nengine fjall 3\nspace records compressed -\n"),
        "{format}"
    );
    fs::write(folder.path().join("FORMAT"), format.replacen('4', "5", 1)).unwrap();
    assert!(matches!(refused(&folder), OpenFault::NewerFormat { found: 5, supported: 4 }));
    let second = "perihelion store 2\nengine fjall 3\nspace records compressed 1\nown 2\n";
    for (text, version) in [("perihelion store 1\nrecords compressed\n", 1), (second, 2)] {
        fs::write(folder.path().join("FORMAT"), text).unwrap();
        let fault = refused(&folder);
        assert!(matches!(fault, OpenFault::OlderFormat { found, supported: 4 } if found == version));
        assert!(fault.to_string().contains("no upgrade"), "{fault}");
        assert_eq!(fs::read_to_string(folder.path().join("FORMAT")).unwrap(), text);
    }
    for nonsense in [&b"something else"[..], b"", b"\xff\xfe"] {
        fs::write(folder.path().join("FORMAT"), nonsense).unwrap();
        let fault = refused(&folder);
        assert!(matches!(&fault, OpenFault::DamagedFile { path, .. } if path.ends_with("FORMAT")), "{fault}");
    }
    // Without the folder of the engine it may be the file of another program.
    fs::remove_dir_all(folder.path().join("engine")).unwrap();
    assert!(matches!(refused(&folder), OpenFault::NotAStore { .. }));
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("photo.jpg"), "x").unwrap();
    assert!(matches!(refused(&folder), OpenFault::NotAStore { .. }));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn spaces_are_appended_but_never_changed() {
    let folder = tempfile::tempdir().unwrap();
    let with_spaces = |spaces: &[SpaceOptions]| {
        let mut options = options(&folder);
        options.spaces = spaces.to_vec();
        Store::open(options)
    };
    run(async {
        let store = with_spaces(&SPACES[..2]).unwrap();
        commit(&store, put(INDEX, "a", "1")).await.unwrap();
        drop(store);
        let store = with_spaces(&SPACES).unwrap();
        assert_eq!(get(&store.view().await.unwrap(), INDEX, "a").await.as_deref(), Some("1"));
        commit(&store, put(META, "a", "2")).await.unwrap();
        drop(store);
        let swapped = [SPACES[1], SPACES[0], SPACES[2]];
        let recompressed = [SPACES[0], SpaceOptions { name: "index", compressed: true }, SPACES[2]];
        for wrong in [&SPACES[..2], &swapped, &recompressed] {
            assert!(matches!(with_spaces(wrong), Err(OpenFault::SpacesChanged { .. })));
        }
        let store = with_spaces(&SPACES).unwrap();
        assert_eq!(get(&store.view().await.unwrap(), META, "a").await.as_deref(), Some("2"));
    });
}

#[test]
fn an_interrupted_first_opening_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(options(&folder)).unwrap());
    fs::remove_dir_all(folder.path().join("engine")).unwrap();
    fs::create_dir_all(folder.path().join("engine/keyspaces")).unwrap();
    fs::write(folder.path().join("engine/0.jnl"), "").unwrap();
    drop(Store::open(options(&folder)).unwrap());
    // With keyspaces it is a store that has lost a file, and nothing of it is changed.
    fs::remove_file(folder.path().join("engine/version")).unwrap();
    assert!(matches!(refused(&folder), OpenFault::Engine { .. }));
    assert!(folder.path().join("engine/keyspaces/0").exists());
    // The format file is written under another name first.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("FORMAT.new"), "perihel").unwrap();
    fs::write(folder.path().join("LOCK"), "").unwrap();
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        commit(&store, Batch::default()).await.unwrap();
    });
}
