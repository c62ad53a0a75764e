//! Time to live.

use crate::harness::{Harness, TestAmbient, item, unique_mail};
use engine::Container;
use kv::{CommitMode, Direction, KeyRange, ScanLimit, Store};
use model::{ContainerDraft, DefaultTtl};
use partition::keyspace::{EXPIRY, LOG, RECORDS, SPACES, container_rows, parse_log_key};
use partition::{LogEntry, LogKind, LogPosition};
use plan::{Condition, Mutation};
use std::sync::Arc;
use std::time::Duration;

/// Turns of the scheduler within which a job must reach the state that a test waits for.
const TURNS_MAX: usize = 100_000;
/// Seconds of a paused clock within which housekeeping has done its work.
const SECONDS_MAX: usize = 3_600;

async fn rows(harness: &Harness, space: kv::Space) -> usize {
    rows_in(harness, space, KeyRange::all()).await
}

async fn rows_in(harness: &Harness, space: kv::Space, range: KeyRange) -> usize {
    let limit = ScanLimit { rows: 1000, bytes: usize::MAX };
    let view = harness.store.view().await.unwrap();
    view.scan(space, range, Direction::Forward, limit).await.unwrap().rows.len()
}

/// Waits until a space has a number of rows.
async fn wait_for_rows(harness: &Harness, space: kv::Space, is_wanted: impl Fn(usize) -> bool) {
    for _ in 0..SECONDS_MAX {
        if is_wanted(rows(harness, space).await) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{} rows after {SECONDS_MAX} seconds", rows(harness, space).await);
}

/// An engine whose store commits one group at a time, between turns of the other tasks.
async fn stepped() -> Harness {
    let store = Store::memory(&SPACES, CommitMode::Stepped);
    let committed = store.clone();
    tokio::spawn(async move {
        loop {
            committed.step_is_due().await;
            tokio::task::yield_now().await;
            committed.step();
        }
    });
    Harness::on(store, TestAmbient::new()).await
}

/// Waits until the job has written the first expiry row of `container`.
async fn walk_begins(harness: &Harness, container: &Container) {
    for _ in 0..TURNS_MAX {
        if rows_in(harness, EXPIRY, container_rows(container.number())).await > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the job does not come to the container");
}

async fn replace_default(harness: &Harness, container: &Container, seconds: Option<u32>) -> Arc<Container> {
    let default_ttl = seconds.map_or(DefaultTtl::Off, DefaultTtl::Seconds);
    harness.replace(container, |draft| draft.default_ttl = default_ttl).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_expired_document_is_absent_at_once_and_swept_later() {
    let harness = Harness::new().await;
    let expiring = |draft: &mut ContainerDraft| {
        draft.default_ttl = DefaultTtl::Seconds(10);
        draft.unique_keys = unique_mail();
    };
    let container = harness.container(expiring, 400).await;
    let old = harness.create(&container, r#"{"id":"1","pk":"a","mail":"x"}"#).await.unwrap();
    harness.create(&container, r#"{"id":"2","pk":"a","mail":"y","ttl":-1}"#).await.unwrap();
    harness.ambient.advance_seconds(9);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
    harness.ambient.advance_seconds(1);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
    // Its id and its unique values are free although no sweep has run.
    let new = harness.create(&container, r#"{"id":"3","pk":"a","mail":"x"}"#).await.unwrap();
    assert_ne!(new.number, old.number);
    harness.create(&container, r#"{"id":"1","pk":"a","mail":"z"}"#).await.unwrap();
    harness.ambient.advance_seconds(10);
    wait_for_rows(&harness, RECORDS, |count| count <= 1).await;
    assert!(harness.read(&container, r#"["a"]"#, "2").await.is_ok());
    assert_eq!(rows(&harness, EXPIRY).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_changed_default_counts_for_documents_that_are_there() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.ambient.advance_seconds(100);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
    let expiring = |draft: &mut ContainerDraft| draft.default_ttl = DefaultTtl::Seconds(200);
    let container = harness.replace(&container, expiring).await.unwrap();
    wait_for_rows(&harness, EXPIRY, |count| count > 0).await;
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_ok());
    harness.ambient.advance_seconds(100);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
    wait_for_rows(&harness, RECORDS, |count| count == 0).await;
}

#[tokio::test]
async fn time_does_not_go_back_a_little_for_a_partition() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let first = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.ambient.set_back_seconds(60);
    let upsert = Mutation::Upsert { item: item(r#"{"id":"2","pk":"a"}"#), condition: Condition::None };
    harness.write(&container, upsert).await.unwrap();
    assert_eq!(harness.read(&container, r#"["a"]"#, "2").await.unwrap().ts(), first.ts());
}

/// One write under a wrong clock kept `_ts` of its partition in the future, and documents with a time to live existed
/// for as long.
#[tokio::test(start_paused = true)]
async fn a_partition_that_was_written_under_a_wrong_clock_returns_to_the_right_one() {
    const CENTURY: u64 = 100 * 365 * 24 * 3600;
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let harness = Harness::on(store.clone(), TestAmbient::new()).await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::OnDemand, 400).await;
    let before = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.ambient.advance_seconds(CENTURY);
    let wrong = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await.unwrap();
    assert_eq!(wrong.ts(), before.ts() + CENTURY);
    // While it serves, and when it is opened.
    harness.ambient.set_back_seconds(CENTURY);
    let right = harness.create(&container, r#"{"id":"3","pk":"a","ttl":2}"#).await.unwrap();
    assert_eq!(right.ts(), before.ts());
    harness.ambient.advance_seconds(CENTURY);
    harness.create(&container, r#"{"id":"4","pk":"b"}"#).await.unwrap();
    harness.ambient.set_back_seconds(CENTURY);
    let ambient = Arc::clone(&harness.ambient);
    // Its jobs must not write any more.
    drop(harness);
    let reopened = Harness::on(store, ambient).await;
    let container = reopened.found().unwrap();
    let right = reopened.create(&container, r#"{"id":"5","pk":"a","ttl":2}"#).await.unwrap();
    assert_eq!(right.ts(), before.ts());
    reopened.ambient.advance_seconds(2);
    assert!(reopened.read(&container, r#"["a"]"#, "5").await.is_err(), "it expires in time");
    // LSNs and therefore ETags have only increased.
    assert!(right.lsn > wrong.lsn && wrong.lsn > before.lsn);
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_does_not_come_back_when_the_clock_steps_back() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let harness = Harness::on(store, TestAmbient::new()).await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::Seconds(10), 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.ambient.advance_seconds(10);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
    assert_eq!(rows(&harness, RECORDS).await, 1, "not swept yet");
    harness.ambient.set_back_seconds(10);
    assert!(harness.read(&container, r#"["a"]"#, "1").await.is_err());
    // Its id is free for the writer, too.
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
}

/// The job that rewrites expiry rows skipped documents that the new default had already expired: they were absent for
/// all readers and stayed in the store forever.
#[tokio::test(start_paused = true)]
async fn what_a_new_default_lets_expire_at_once_is_swept_too() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.ambient.advance_seconds(100);
    let expiring = |draft: &mut ContainerDraft| draft.default_ttl = DefaultTtl::Seconds(50);
    harness.replace(&container, expiring).await.unwrap();
    wait_for_rows(&harness, RECORDS, |count| count == 0).await;
}

/// The new document took its LSN first and its log entry was then written under the LSN of the evicted one: the log had
/// lost the eviction and had no entry for the version.
#[tokio::test(start_paused = true)]
async fn an_evicted_holder_of_a_unique_key_has_a_log_entry_of_its_own() {
    // Without a commit thread, for which the clock would advance: the sweep must not come first.
    let harness = Harness::on(Store::memory(&SPACES, CommitMode::Inline), TestAmbient::new()).await;
    let expiring = |draft: &mut ContainerDraft| {
        draft.default_ttl = DefaultTtl::Seconds(10);
        draft.unique_keys = unique_mail();
    };
    let container = harness.container(expiring, 400).await;
    let old = harness.create(&container, r#"{"id":"1","pk":"a","mail":"x"}"#).await.unwrap();
    harness.ambient.advance_seconds(20);
    let new = harness.create(&container, r#"{"id":"2","pk":"a","mail":"x"}"#).await.unwrap();
    let everything = ScanLimit { rows: 1000, bytes: usize::MAX };
    let log = harness
        .store
        .view()
        .await
        .unwrap()
        .scan(LOG, KeyRange::all(), Direction::Forward, everything)
        .await
        .unwrap();
    let entries: Vec<_> = log
        .rows
        .iter()
        .map(|(key, row)| {
            let entry = LogEntry::decode(row).unwrap();
            (parse_log_key(key).unwrap(), entry.kind, entry.number)
        })
        .collect();
    let [(evicted_at, LogKind::Expire { .. }, evicted), (created_at, LogKind::Create, created)] =
        &entries[..]
    else {
        panic!("{entries:?}");
    };
    assert_eq!((*evicted, *created), (old.number, new.number));
    // One transaction.
    assert_eq!(*evicted_at, LogPosition { lsn: new.lsn, position: 0 });
    assert_eq!(*created_at, LogPosition { lsn: new.lsn, position: 1 });
}

/// The job restored the definition that it had read at the start of its round, and deleted the documents that expired
/// by the default of that definition.
#[tokio::test(start_paused = true)]
async fn a_default_that_is_removed_while_the_job_is_elsewhere_lets_nothing_expire() {
    let harness = stepped().await;
    let mut containers = Vec::new();
    for id in ["a", "b", "c"] {
        let container = harness.container(|draft| draft.id = id.to_owned(), 400).await;
        for document in 0..40 {
            harness.create(&container, &format!(r#"{{"id":"{document}","pk":"a"}}"#)).await.unwrap();
        }
        containers.push(container);
    }
    let [first, second, third] = &containers[..] else { panic!("three containers") };
    // While the job walks the first container, the others become pending: the next round has both.
    replace_default(&harness, first, Some(10_000)).await;
    walk_begins(&harness, first).await;
    replace_default(&harness, second, Some(10_000)).await;
    let third = replace_default(&harness, third, Some(5)).await;
    // While the job walks the second, the default of the third is removed in time.
    walk_begins(&harness, second).await;
    assert_eq!(rows_in(&harness, EXPIRY, container_rows(third.number())).await, 0, "not yet walked");
    let third = replace_default(&harness, &third, None).await;
    harness.ambient.advance_seconds(60);
    // Several rounds of the job.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(rows_in(&harness, EXPIRY, container_rows(second.number())).await, 40, "the walk has ended");
    for document in 0..40 {
        assert!(harness.read(&third, r#"["a"]"#, &document.to_string()).await.is_ok(), "{document}");
    }
    assert_eq!(rows_in(&harness, RECORDS, container_rows(third.number())).await, 40);
}
