//! Scripted failures, torn writes and crashes: acknowledged batches stay, others are complete or absent.

use bytes::Bytes;
use kv::{
    Batch, CommitFault, CommitMode, Direction, Durability, FaultScript, Health, InjectedFault, KeyRange,
    ReadFault, StorageCall, Store, Survivors,
};

use crate::stores::{ALL_ROWS, INDEX, Kind, META, RECORDS, SPACES, commit, get, keys, open, put, run};

fn scripted(seed: u64) -> (Store, FaultScript) {
    let script = FaultScript::seeded(seed);
    (Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone()), script)
}

/// Runs a case on a faulty store in memory and on one on disk.
fn on_faulty(case: impl AsyncFn(Store, FaultScript)) {
    for kind in [Kind::MemoryInline, Kind::Embedded] {
        let folder = tempfile::tempdir().unwrap();
        let script = FaultScript::seeded(7);
        let store = Store::faulty(open(kind, &folder), script.clone());
        run(async {
            eprintln!("on {kind:?}");
            case(store, script).await;
        });
    }
}

/// More storage calls than the workload makes.
const CALLS_MAX: u64 = 1_000;

/// Most reopens that a script makes fail in one test, and one that succeeds.
const REOPENS_MAX: usize = 3;

/// Reopens the store until the planned faults are used up.
async fn reopen_past_faults(store: &Store) {
    for _ in 1..REOPENS_MAX {
        if store.reopen().await.is_ok() {
            return;
        }
    }
    store.reopen().await.unwrap();
}

/// Reopens the store, unless its own thread was faster.
async fn recover(store: &Store) {
    store.reopen().await.unwrap();
    assert_eq!(store.health(), Health::Serving);
}

#[test]
fn a_failed_commit_poisons_until_reopened() {
    on_faulty(async |store, script| {
        commit(&store, put(RECORDS, "a", "1")).await.unwrap();
        // Reopening fails for a while too, so that the poisoned state can be observed.
        script.fail_next(StorageCall::Commit, InjectedFault::Fail);
        script.fail_next(StorageCall::Reopen, InjectedFault::Fail);
        script.fail_next(StorageCall::Reopen, InjectedFault::Fail);
        let fault = commit(&store, put(RECORDS, "b", "1")).await.unwrap_err();
        assert!(matches!(fault, CommitFault::Uncertain { .. }), "{fault}");
        assert!(matches!(store.health(), Health::Poisoned { .. }));
        let refused = commit(&store, put(RECORDS, "c", "1")).await.unwrap_err();
        assert!(matches!(refused, CommitFault::Poisoned { .. }), "{refused}");
        assert!(matches!(store.reopen().await, Err(CommitFault::Poisoned { .. })));
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["a"]);
        reopen_past_faults(&store).await;
        let view = commit(&store, put(RECORDS, "d", "1")).await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["a", "d"]);
    });
}

#[test]
fn a_commit_whose_sync_failed_shows_up_after_reopening() {
    on_faulty(async |store, script| {
        script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
        script.fail_next(StorageCall::Reopen, InjectedFault::Fail);
        let fault = commit(&store, put(RECORDS, "a", "1")).await.unwrap_err();
        assert!(matches!(fault, CommitFault::Uncertain { .. }));
        assert!(
            keys(&store.view().await.unwrap(), RECORDS).await.is_empty(),
            "not visible while its outcome is unknown"
        );
        reopen_past_faults(&store).await;
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["a"]);
    });
}

#[test]
fn a_poisoned_store_recovers_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let script = FaultScript::seeded(1);
    let store = Store::faulty(open(Kind::Embedded, &folder), script.clone());
    run(async {
        script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
        script.fail_next(StorageCall::Reopen, InjectedFault::Fail);
        commit(&store, put(RECORDS, "a", "1")).await.unwrap_err();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while store.health() != Health::Serving {
            assert!(std::time::Instant::now() < deadline, "still {:?}", store.health());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let view = commit(&store, put(RECORDS, "b", "1")).await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["a", "b"]);
    });
}

#[test]
fn a_torn_group_leaves_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [Kind::Memory, Kind::Embedded] {
        let script = FaultScript::seeded(1);
        let store = Store::faulty(open(kind, &folder), script.clone());
        run(async {
            script.fail_next(StorageCall::Commit, InjectedFault::Tear { survive: 2 });
            let batches: Vec<_> = (0..40)
                .map(|number| {
                    let mut batch = put(RECORDS, &format!("{number:02}"), "x");
                    batch.put(INDEX, format!("{number:02}"), "x");
                    store.submit(&store.lane(), batch, Durability::Sync)
                })
                .collect();
            let mut acknowledged = Vec::new();
            for (number, batch) in batches.into_iter().enumerate() {
                match batch.await {
                    Ok(_) => acknowledged.push(format!("{number:02}")),
                    Err(CommitFault::Uncertain { .. } | CommitFault::Poisoned { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            recover(&store).await;
            let view = store.view().await.unwrap();
            let found = keys(&view, RECORDS).await;
            assert_eq!(found, keys(&view, INDEX).await, "every batch is whole");
            assert!(acknowledged.iter().all(|key| found.contains(key)));
            assert!(found.len() <= acknowledged.len() + 2);
        });
    }
}

#[test]
fn a_broken_lane_stays_broken_over_a_reopening() {
    on_faulty(async |store, script| {
        let lane = store.lane();
        script.fail_next(StorageCall::Commit, InjectedFault::Fail);
        store.submit(&lane, put(RECORDS, "a", "1"), Durability::Sync).await.unwrap_err();
        recover(&store).await;
        let later = store.submit(&lane, put(RECORDS, "b", "1"), Durability::Sync).await;
        assert_eq!(later.unwrap_err(), CommitFault::ChainBroken);
        commit(&store, put(RECORDS, "c", "1")).await.unwrap();
    });
}

#[test]
fn failed_reads_say_how() {
    on_faulty(async |store, script| {
        let view = commit(&store, put(RECORDS, "a", "1")).await.unwrap();
        script.fail_next(StorageCall::Read, InjectedFault::Fail);
        assert!(matches!(view.get(RECORDS, b"a").await, Err(ReadFault::Io { space: RECORDS, .. })));
        script.fail_next(StorageCall::Read, InjectedFault::Damage);
        let scan = view.scan(RECORDS, KeyRange::all(), Direction::Forward, ALL_ROWS).await;
        assert!(matches!(scan, Err(ReadFault::Damaged { space: RECORDS, .. })));
        assert_eq!(get(&view, RECORDS, "a").await.as_deref(), Some("1"));
        // A requirement that cannot be read refuses its batch and affects no other.
        script.fail_next(StorageCall::Read, InjectedFault::Fail);
        let mut batch = put(RECORDS, "b", "1");
        batch.require(RECORDS, "a", Some(Bytes::from("1")));
        assert!(matches!(commit(&store, batch).await, Err(CommitFault::Unreadable(_))));
        assert_eq!(store.health(), Health::Serving);
    });
}

#[test]
fn required_rows_are_read_again_after_a_failed_commit() {
    on_faulty(async |store, script| {
        let step = |from: Option<Bytes>, to: &'static str| {
            let mut batch = put(META, "head", to);
            batch.require(META, "head", from);
            commit(&store, batch)
        };
        step(None, "1").await.unwrap();
        script.fail_next(StorageCall::Commit, InjectedFault::Fail);
        step(Some(Bytes::from("1")), "2").await.unwrap_err();
        recover(&store).await;
        let stored = get(&store.view().await.unwrap(), META, "head").await;
        assert_eq!(stored.as_deref(), Some("1"));
        assert!(matches!(
            step(Some(Bytes::from("2")), "3").await,
            Err(CommitFault::PreconditionFailed { .. })
        ));
        step(stored.map(Bytes::from), "3").await.unwrap();
    });
}

#[test]
fn a_named_ingest_changes_required_rows() {
    on_faulty(async |store, _| {
        let step = |from: Option<&'static str>| {
            let mut batch = put(RECORDS, "a", "1");
            batch.require(INDEX, "row", from.map(Bytes::from));
            commit(&store, batch)
        };
        step(None).await.unwrap();
        let ingest = store.ingest(INDEX, vec![("row".into(), "x".into())]).await.unwrap();
        let mut batch = Batch::default();
        batch.name_ingest(ingest);
        commit(&store, batch).await.unwrap();
        step(Some("x")).await.unwrap();
        assert!(matches!(step(None).await, Err(CommitFault::PreconditionFailed { .. })));
    });
}

#[test]
fn a_torn_ingest_leaves_nothing() {
    on_faulty(async |store, script| {
        let rows = |run: u8| (0..50u8).map(|row| (vec![run, row].into(), "x".into())).collect::<Vec<_>>();
        for kind in [InjectedFault::Fail, InjectedFault::Tear { survive: 20 }] {
            script.fail_next(StorageCall::Ingest, kind);
            assert!(matches!(store.ingest(INDEX, rows(1)).await, Err(CommitFault::Uncertain { .. })));
            assert!(keys(&store.view().await.unwrap(), INDEX).await.is_empty());
        }
        let ingest = store.ingest(INDEX, rows(1)).await.unwrap();
        let mut batch = Batch::default();
        batch.name_ingest(ingest);
        let view = commit(&store, batch).await.unwrap();
        assert_eq!(keys(&view, INDEX).await.len(), 50);
    });
}

#[test]
fn a_crash_keeps_what_was_synced_and_a_prefix_of_the_rest() {
    for (survivors, expected) in [
        (Survivors::Synced, vec!["0", "1"]),
        (Survivors::First(1), vec!["0", "1", "2"]),
        (Survivors::First(9), vec!["0", "1", "2", "3"]),
        (Survivors::All, vec!["0", "1", "2", "3"]),
    ] {
        let (store, script) = scripted(1);
        run(async {
            let lane = store.lane();
            for (key, durability) in [
                ("0", Durability::Buffered),
                ("1", Durability::Sync),
                ("2", Durability::Buffered),
                ("3", Durability::Buffered),
            ] {
                store.submit(&lane, put(RECORDS, key, "x"), durability).await.unwrap();
            }
            let view = store.view().await.unwrap();
            let after = script.crash(survivors).unwrap();
            assert_eq!(keys(&after.view().await.unwrap(), RECORDS).await, expected);
            assert_eq!(view.get(RECORDS, b"0").await, Err(ReadFault::Closed));
            assert!(commit(&store, put(RECORDS, "4", "x")).await.is_err());
            commit(&after, put(RECORDS, "5", "x")).await.unwrap();
            assert!(script.crash(Survivors::Synced).is_some(), "the new store plays the same script");
        });
    }
}

#[test]
fn a_crash_removes_unnamed_ingests() {
    let (store, script) = scripted(1);
    run(async {
        let rows = |run: &'static str| vec![(Bytes::from(run), Bytes::from("x"))];
        let named = store.ingest(INDEX, rows("named")).await.unwrap();
        let late = store.ingest(INDEX, rows("late")).await.unwrap();
        store.ingest(INDEX, rows("never")).await.unwrap();
        let mut batch = Batch::default();
        batch.name_ingest(named);
        commit(&store, batch).await.unwrap();
        let mut batch = put(META, "a", "x");
        batch.name_ingest(late);
        store.submit(&store.lane(), batch, Durability::Buffered).await.unwrap();
        let after = script.crash(Survivors::Synced).unwrap();
        assert_eq!(keys(&after.view().await.unwrap(), INDEX).await, ["named"]);
        assert!(keys(&after.view().await.unwrap(), META).await.is_empty());
    });
}

/// Every call of a small workload fails once, in every way; then the store crashes. Acknowledged batches must be
/// present, other batches only if their outcome was unknown, and every batch must be complete.
#[test]
fn failing_any_call_loses_nothing_acknowledged() {
    let kinds = [
        InjectedFault::Fail,
        InjectedFault::FailSync,
        InjectedFault::Tear { survive: 0 },
        InjectedFault::Tear { survive: 1 },
    ];
    let mut failed = 0;
    for kind in kinds {
        for number in 1.. {
            assert!(number < CALLS_MAX, "the workload does not end");
            let (store, script) = scripted(number);
            script.fail_call(number, kind);
            let (acknowledged, uncertain) = run(workload(&store));
            script.clear_faults();
            let after = script.crash(Survivors::Drawn).unwrap();
            run(async {
                let view = after.view().await.unwrap();
                let found = keys(&view, RECORDS).await;
                assert_eq!(found, keys(&view, META).await, "every batch is whole");
                assert!(acknowledged.iter().all(|key| found.contains(key)), "call {number}, {kind:?}");
                let known = |key: &String| acknowledged.contains(key) || uncertain.contains(key);
                assert!(found.iter().all(known), "call {number}, {kind:?}: {found:?}");
                commit(&after, put(RECORDS, "after", "x")).await.unwrap();
            });
            if script.fault_count() == 0 {
                break;
            }
            failed += 1;
        }
    }
    assert!(failed > 60, "{failed} calls failed");
}

/// Commits, reads and ingests; returns the acknowledged keys and those with unknown outcome.
async fn workload(store: &Store) -> (Vec<String>, Vec<String>) {
    let (mut acknowledged, mut uncertain) = (Vec::new(), Vec::new());
    for number in 0..8u8 {
        let key = format!("key {number}");
        let mut batch = put(RECORDS, &key, "x");
        batch.put(META, key.clone(), "x");
        batch.require(RECORDS, key.clone(), None);
        if number % 3 == 0
            && let Ok(ingest) = store.ingest(INDEX, vec![(vec![number].into(), "x".into())]).await
        {
            batch.name_ingest(ingest);
        }
        match commit(store, batch).await {
            Ok(view) => {
                view.get(RECORDS, key.as_bytes()).await.ok();
                acknowledged.push(key);
            }
            Err(CommitFault::Uncertain { .. }) => uncertain.push(key),
            Err(_) => {}
        }
        if store.health() != Health::Serving {
            store.reopen().await.ok();
        }
    }
    (acknowledged, uncertain)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = |seed| {
        let (store, script) = scripted(seed);
        script.fail_randomly(100);
        let outcome = run(workload(&store));
        script.clear_faults();
        let after = script.crash(Survivors::Drawn).unwrap();
        (outcome, script.call_count(), run(async { keys(&after.view().await.unwrap(), RECORDS).await }))
    };
    for seed in 0..50 {
        assert_eq!(trace(seed), trace(seed));
    }
    assert!((0..50).any(|seed| trace(seed) != trace(seed + 1)));
}

#[test]
fn stepped_batches_wait_and_are_torn_as_one_group() {
    let script = FaultScript::seeded(1);
    let store = Store::faulty(Store::memory(&SPACES, CommitMode::Stepped), script.clone());
    run(async {
        let submit = |key: &str| store.submit(&store.lane(), put(RECORDS, key, "1"), Durability::Sync);
        let first = submit("a");
        assert!(keys(&store.view().await.unwrap(), RECORDS).await.is_empty());
        store.step_is_due().await;
        store.step();
        first.await.unwrap();
        script.fail_next(StorageCall::Commit, InjectedFault::Tear { survive: 1 });
        let uncertain = [submit("b"), submit("c")];
        store.step();
        for answer in uncertain {
            assert!(matches!(answer.await, Err(CommitFault::Uncertain { .. })));
        }
        recover(&store).await;
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["a", "b"]);
    });
}

/// A disk may drop what it could not sync, also of submitters that were not part of the failure.
#[test]
fn lanes_with_unsynced_batches_are_rewound_by_a_reopening() {
    run(async {
        for kind in [InjectedFault::DropUnsynced, InjectedFault::Fail] {
            let (store, script) = scripted(3);
            let lanes: Vec<_> = (0..4).map(|_| store.lane()).collect();
            let submit = |lane: usize, key: &str, durability| {
                store.submit(&lanes[lane], put(RECORDS, key, "x"), durability)
            };
            submit(0, "synced-0", Durability::Buffered).await.unwrap();
            submit(1, "synced-1", Durability::Sync).await.unwrap();
            submit(1, "buffered-1", Durability::Buffered).await.unwrap();
            submit(2, "buffered-2", Durability::Buffered).await.unwrap();
            script.fail_next(StorageCall::Commit, InjectedFault::Fail);
            script.fail_next(StorageCall::Reopen, kind);
            submit(3, "failed", Durability::Sync).await.unwrap_err();
            assert!(lanes.iter().all(|lane| !lane.is_rewound()), "not before the store was reopened");
            reopen_past_faults(&store).await;
            let found = keys(&store.view().await.unwrap(), RECORDS).await;
            let is_dropped = kind == InjectedFault::DropUnsynced;
            let kept: &[&str] = if is_dropped { &[] } else { &["buffered-1", "buffered-2"] };
            assert_eq!(found, [kept, &["synced-0", "synced-1"]].concat());
            // Whether they are lost is not known in general, so their submitters must check.
            assert_eq!(
                lanes.iter().map(kv::Lane::is_rewound).collect::<Vec<_>>(),
                [false, true, true, false]
            );
            assert!(submit(0, "more", Durability::Sync).await.is_ok());
            assert!(matches!(submit(1, "more", Durability::Sync).await, Err(CommitFault::ChainBroken)));
        }
    });
}

#[test]
fn a_lane_is_resolved_when_the_outcome_is_known() {
    on_faulty(async |store, script| {
        let lane = store.lane();
        script.fail_next(StorageCall::Commit, InjectedFault::FailSync);
        script.fail_next(StorageCall::Reopen, InjectedFault::Fail);
        script.fail_next(StorageCall::Reopen, InjectedFault::Fail);
        let fault = store.submit(&lane, put(RECORDS, "a", "1"), Durability::Sync).await.unwrap_err();
        assert!(matches!(fault, CommitFault::Uncertain { .. }), "{fault}");
        assert!(matches!(store.resolve_lane(&lane).await, Err(CommitFault::Poisoned { .. })));
        reopen_past_faults(&store).await;
        let next = store.resolve_lane(&lane).await.unwrap();
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["a"]);
        assert!(store.submit(&next, put(RECORDS, "b", "1"), Durability::Sync).await.is_ok());
    });
}

/// A submitter that has replaced its lane after a refused batch still learns of its losses.
#[test]
fn a_lane_is_rewound_with_the_one_it_comes_after() {
    run(async {
        let (store, script) = scripted(3);
        let lane = store.lane();
        store.submit(&lane, put(RECORDS, "acknowledged", "x"), Durability::Buffered).await.unwrap();
        let mut bad = Batch::default();
        bad.require(RECORDS, "acknowledged", None);
        store.submit(&lane, bad, Durability::Buffered).await.unwrap_err();
        let next = store.resolve_lane(&lane).await.unwrap();
        script.fail_next(StorageCall::Commit, InjectedFault::Fail);
        script.fail_next(StorageCall::Reopen, InjectedFault::DropUnsynced);
        commit(&store, put(RECORDS, "of another", "x")).await.unwrap_err();
        store.reopen().await.unwrap();
        assert!(next.is_rewound());
        let refused = store.submit(&next, put(RECORDS, "more", "x"), Durability::Sync).await;
        assert_eq!(refused.unwrap_err(), CommitFault::ChainBroken);
        let fresh = store.resolve_lane(&next).await.unwrap();
        assert!(!fresh.is_rewound());
        assert!(store.submit(&fresh, put(RECORDS, "more", "x"), Durability::Sync).await.is_ok());
    });
}

/// Reopening a healthy store syncs it first.
#[test]
fn a_reopening_without_need_rewinds_nobody() {
    on_faulty(async |store, _| {
        let lane = store.lane();
        store.submit(&lane, put(RECORDS, "a", "x"), Durability::Buffered).await.unwrap();
        store.reopen().await.unwrap();
        assert!(!lane.is_rewound());
        store.submit(&lane, put(RECORDS, "b", "x"), Durability::Sync).await.unwrap();
    });
}
