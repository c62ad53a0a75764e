//! The journals of the embedded engine stay bounded, whichever spaces are written.

use std::path::Path;

use kv::{Batch, Durability, Store};
use tempfile::TempDir;

use crate::stores::{INDEX, META, RECORDS, commit, get, options, put, run};

/// Two journals, each twice as long as planned because the machine is busy, and the last commits.
const BOUND_BYTES: u64 = 4 * 65_000_000 + (16 << 20);

/// Allocated bytes of all journals. Their lengths are not meaningful: they are preallocated.
fn journal_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder.join("engine")).unwrap().map(|entry| entry.unwrap().path());
    let journals = entries.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    // A journal may be removed between the listing and the query of its size.
    journals.filter_map(|path| path.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

/// Writes 400 MB and returns the largest size of the journals during that time.
async fn write_much(store: &Store, folder: &TempDir, add: impl Fn(&mut Batch, u64)) -> u64 {
    let lane = store.lane();
    let mut most = 0;
    for number in 0..400 {
        let mut batch = Batch::default();
        add(&mut batch, number);
        store.submit(&lane, batch, Durability::Buffered).await.unwrap();
        most = most.max(journal_bytes(folder.path()));
    }
    most
}

#[test]
fn an_idle_space_does_not_keep_journals() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        commit(&store, put(META, "idle", "x")).await.unwrap();
        commit(&store, put(INDEX, "idle", "x")).await.unwrap();
        let add = |batch: &mut Batch, number| {
            batch.put(RECORDS, format!("{number:04}"), vec![b'x'; 1_000_000]);
        };
        let most = write_much(&store, &folder, add).await;
        assert!(most < BOUND_BYTES, "the journals took {most} bytes");
        drop(store);
        let store = Store::open(options(&folder)).unwrap();
        assert_eq!(get(&store.view().await.unwrap(), META, "idle").await.as_deref(), Some("x"));
    });
}

#[test]
fn writes_over_several_spaces_share_one_bound() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = Store::open(options(&folder)).unwrap();
        let add = |batch: &mut Batch, number| {
            for space in [RECORDS, INDEX, META] {
                batch.put(space, format!("{number:04}"), vec![b'x'; 333_333]);
            }
        };
        let most = write_much(&store, &folder, add).await;
        assert!(most < BOUND_BYTES, "the journals took {most} bytes");
    });
}
