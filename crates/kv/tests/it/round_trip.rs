//! Fully independent lanes: an unknown outcome in one does not affect another, and each is resolved separately.

use bytes::Bytes;
use kv::{Batch, CommitFault, Durability, Health, Link, Store};

use crate::stores::{META, RECORDS, SPACES, commit, get, keys, put};

fn linked() -> (Store, Link) {
    let link = Link::seeded(7);
    (Store::round_trip(&SPACES, link.clone()), link)
}

/// The clock is paused and advances to the next deadline when all tasks wait.
fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(case);
}

/// A batch that advances a partition's head, as writers send them.
fn step(head: &'static str, from: Option<&'static str>, to: &'static str) -> Batch {
    let mut batch = put(META, head, to);
    batch.require(META, head, from.map(Bytes::from));
    batch.put(RECORDS, format!("{head} {to}"), "x");
    batch
}

#[test]
fn a_lost_answer_leaves_one_lane_in_doubt() {
    for is_applied in [true, false] {
        run(async {
            let (store, link) = linked();
            let (uncertain, other) = (store.lane(), store.lane());
            if is_applied {
                link.lose_next_answer();
            } else {
                link.lose_next_request();
            }
            let lost = store.submit(&uncertain, step("a", None, "1"), Durability::Sync);
            // Sent before the outcome of the first is known, so it must not be applied without it.
            let later = store.submit(&uncertain, step("a", Some("1"), "2"), Durability::Sync);
            // The first is in transit when the other lane's batches are sent.
            tokio::task::yield_now().await;
            for (from, to) in [(None, "1"), (Some("1"), "2")] {
                store.submit(&other, step("b", from, to), Durability::Sync).await.unwrap();
            }
            assert!(matches!(lost.await, Err(CommitFault::Uncertain { .. })));
            assert_eq!(later.await.unwrap_err(), CommitFault::ChainBroken);
            assert_eq!(store.health(), Health::Serving);
            let broken = store.submit(&uncertain, step("a", None, "3"), Durability::Sync).await;
            assert_eq!(broken.unwrap_err(), CommitFault::ChainBroken);

            let next = store.resolve_lane(&uncertain).await.unwrap();
            let view = store.view().await.unwrap();
            let head = get(&view, META, "a").await;
            assert_eq!(
                head.as_deref(),
                is_applied.then_some("1"),
                "the head says what has become of the batch"
            );
            let from = head.as_ref().map(|_| "1");
            store.submit(&next, step("a", from, "4"), Durability::Sync).await.unwrap();
            store.submit(&other, step("b", Some("2"), "3"), Durability::Sync).await.unwrap();
        });
    }
}

/// A batch may arrive long after its submitter has given up. Nobody may continue before it has.
#[test]
fn a_lane_is_not_resolved_while_a_batch_is_in_transit() {
    run(async {
        let (store, link) = linked();
        let lane = store.lane();
        link.delay_next_request();
        let late = store.submit(&lane, step("a", None, "1"), Durability::Sync);
        assert!(matches!(late.await, Err(CommitFault::Uncertain { .. })));
        assert!(keys(&store.view().await.unwrap(), RECORDS).await.is_empty());
        assert!(matches!(store.resolve_lane(&lane).await, Err(CommitFault::Uncertain { .. })));
        commit(&store, put(RECORDS, "of another", "x")).await.unwrap();
        link.deliver();
        store.resolve_lane(&lane).await.unwrap();
        let view = store.view().await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["a 1", "of another"]);
    });
}

/// A late batch of a former owner: the row that it requires was written by another, so it has no effect.
#[test]
fn a_late_batch_is_fenced_by_what_it_requires() {
    run(async {
        let (store, link) = linked();
        let former = store.lane();
        commit(&store, step("owner", None, "1")).await.unwrap();
        link.delay_next_request();
        let late = store.submit(&former, step("owner", Some("1"), "late"), Durability::Sync);
        assert!(matches!(late.await, Err(CommitFault::Uncertain { .. })));
        commit(&store, step("owner", Some("1"), "2")).await.unwrap();
        link.deliver();
        store.resolve_lane(&former).await.unwrap();
        let view = store.view().await.unwrap();
        assert_eq!(get(&view, META, "owner").await.as_deref(), Some("2"));
        assert_eq!(keys(&view, RECORDS).await, ["owner 1", "owner 2"]);
    });
}

/// Batches of different lanes overtake each other; the views in their answers are still consistent.
#[test]
fn lanes_overtake_each_other() {
    run(async {
        let (store, _) = linked();
        let mut orders = Vec::new();
        for round in 0..20 {
            let verdicts: Vec<_> = (0..8)
                .map(|lane| {
                    let mut batch = put(RECORDS, &format!("{round:02}-{lane}"), "x");
                    batch.put(META, format!("{round:02}-{lane}"), "x");
                    store.submit(&store.lane(), batch, Durability::Sync)
                })
                .collect();
            let mut seen = Vec::new();
            for verdict in verdicts {
                let view = verdict.await.unwrap();
                let found = keys(&view, RECORDS).await;
                assert_eq!(found, keys(&view, META).await, "every batch is whole");
                seen.push(found.len());
            }
            orders.push(seen);
        }
        assert!(orders.iter().any(|seen| !seen.is_sorted()), "{orders:?}");
    });
}
