//! The history of all versions: its entries, its retention, and that containers without it write none.

use crate::{Fixture, TestClock, delete, upsert};
use kv::{CommitMode, Durability, Store};
use model::Lsn;
use partition::keyspace::SPACES;
use partition::{HistoryEntry, HistoryKind, LogPosition};
use std::sync::Arc;

/// The retention in these tests.
const SECONDS: u64 = 100;

async fn new_fixture(history_seconds: Option<u64>) -> (Store, Arc<TestClock>, Fixture) {
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let clock = Arc::new(TestClock::default());
    Fixture::create(&store).await;
    let fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    retain(&fixture, history_seconds);
    (store, clock, fixture)
}

fn retain(fixture: &Fixture, history_seconds: Option<u64>) {
    fixture.retain(history_seconds);
}

async fn history(fixture: &Fixture) -> Vec<(LogPosition, HistoryEntry)> {
    fixture.partition.view().await.unwrap().history(LogPosition::default()).await.unwrap()
}

async fn kinds(fixture: &Fixture) -> Vec<(LogPosition, HistoryKind, Option<Lsn>)> {
    let entries = history(fixture).await.into_iter();
    entries.map(|(at, entry)| (at, entry.kind, entry.previous.map(|previous| previous.lsn))).collect()
}

#[tokio::test]
async fn every_version_and_removal_is_kept() {
    let (store, _, fixture) = new_fixture(Some(SECONDS)).await;
    let first = fixture.run(vec![upsert("1"), upsert("2"), upsert("1")]).await;
    let second = fixture.run(vec![upsert("1")]).await;
    let third = fixture.run(vec![delete("1")]).await;
    let at = |lsn, position| LogPosition { lsn, position };
    let expected = [
        (at(first, 0), HistoryKind::Create, None),
        (at(first, 1), HistoryKind::Create, None),
        (at(first, 2), HistoryKind::Replace, Some(first)),
        (at(second, 0), HistoryKind::Replace, Some(first)),
        (at(third, 0), HistoryKind::Delete, Some(second)),
    ];
    assert_eq!(kinds(&fixture).await, expected);
    let entries = history(&fixture).await;
    assert!(entries.iter().all(|(_, entry)| entry.current.is_none() == (entry.kind == HistoryKind::Delete)));
    let keys: Vec<_> = entries.iter().map(|(_, entry)| entry.key.clone()).collect();
    assert_eq!(keys, ["1", "2", "1", "1", "1"].map(|id| fixture.record_key(id)));
    fixture.audited(&store).await;
}

#[tokio::test]
async fn the_history_is_trimmed_by_time_and_without_a_retention() {
    let (store, clock, fixture) = new_fixture(None).await;
    fixture.run(vec![upsert("1")]).await;
    assert!(history(&fixture).await.is_empty());
    retain(&fixture, Some(SECONDS));
    let early = fixture.run(vec![upsert("1"), upsert("2")]).await;
    clock.advance_ms(SECONDS * 1000 - 1);
    let late = fixture.run(vec![upsert("1")]).await;
    fixture.trim().await;
    let lsns = async |fixture: &Fixture| -> Vec<Lsn> {
        history(fixture).await.into_iter().map(|(at, _)| at.lsn).collect()
    };
    assert_eq!(lsns(&fixture).await, [early, early, late]);
    clock.advance_ms(1);
    fixture.trim().await;
    assert_eq!(lsns(&fixture).await, [late]);
    fixture.audited(&store).await;
    // History before a gap is useless.
    retain(&fixture, None);
    fixture.run(vec![upsert("3")]).await;
    retain(&fixture, Some(SECONDS));
    let last = fixture.run(vec![delete("3")]).await;
    fixture.audited(&store).await;
    fixture.trim().await;
    assert_eq!(lsns(&fixture).await, [last]);
    fixture.audited(&store).await;
    retain(&fixture, None);
    fixture.trim().await;
    assert_eq!(lsns(&fixture).await, []);
    fixture.audited(&store).await;
}

/// A transaction with more entries than one trim step reads.
#[tokio::test]
async fn a_long_history_is_trimmed_in_steps() {
    const COUNT: usize = 9_000;
    let (store, clock, fixture) = new_fixture(Some(SECONDS)).await;
    fixture.run((0..COUNT).map(|id| upsert(&id.to_string())).collect()).await;
    clock.advance_ms(SECONDS * 1000);
    let last = fixture.run(vec![upsert("1")]).await;
    let mut steps = 1;
    while fixture.partition.trim_log().await.unwrap() {
        steps += 1;
        assert!(steps <= COUNT, "trimming does not end");
    }
    assert!(steps > 1, "all in one step");
    assert_eq!(history(&fixture).await.into_iter().map(|(at, _)| at.lsn).collect::<Vec<_>>(), [last]);
    fixture.audited(&store).await;
}
