//! A disk that is nearly full: growing commits are refused, everything else continues, and it recovers by itself.

use std::fs::File;

use fs4::FileExt;
use kv::{Batch, CommitFault, Health, Store};

use crate::stores::{INDEX, RECORDS, commit, get, keys, options, put, run};

/// Bytes that other programs on the disk may use or free without disturbing the test.
const SLACK_BYTES: u64 = 1 << 30;

/// Commits until the free space is measured again: it takes a fraction of a second, so far fewer are needed.
const COMMITS_MAX: usize = 1_000_000;

#[test]
fn a_nearly_full_disk_refuses_growth_and_recovers_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir_in(folder.path()).unwrap();
    let mut options = options(&data);
    let free_bytes = fs4::available_space(folder.path()).unwrap();
    options.free_space_reserve_bytes = free_bytes.saturating_sub(SLACK_BYTES);
    run(async {
        let store = Store::open(options).unwrap();
        commit(&store, put(RECORDS, "a", "1")).await.unwrap();
        assert_eq!(store.health(), Health::Serving);

        let ballast_path = folder.path().join("ballast");
        File::create(&ballast_path).unwrap().allocate(2 * SLACK_BYTES).unwrap();
        // The measured free space is reused for a short time, so the first commits may still be accepted.
        let mut refused = None;
        for _ in 0..COMMITS_MAX {
            refused = commit(&store, put(RECORDS, "a", "1")).await.err();
            if refused.is_some() {
                break;
            }
        }
        let fault = refused.unwrap();
        assert!(
            matches!(fault, CommitFault::Full { free_bytes, reserve_bytes } if free_bytes < reserve_bytes)
        );
        assert!(matches!(store.health(), Health::Full { .. }));
        let rows = vec![("a".into(), "x".into())];
        assert!(matches!(store.ingest(INDEX, rows).await, Err(CommitFault::Full { .. })));
        assert_eq!(get(&store.view().await.unwrap(), RECORDS, "a").await.as_deref(), Some("1"));
        let mut shrinking = Batch::default();
        shrinking.delete(RECORDS, "a");
        shrinking.mark_shrinking();
        let view = commit(&store, shrinking).await.unwrap();
        assert!(keys(&view, RECORDS).await.is_empty());

        std::fs::remove_file(ballast_path).unwrap();
        let view = commit(&store, put(RECORDS, "c", "1")).await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["c"]);
        assert_eq!(store.health(), Health::Serving);
    });
}
