//! Databases, containers, offers, ranges.

use crate::harness::{Harness, KEY, TestAmbient, lowered};
use engine::{Account, Action, Container, Database, Engine, EngineOptions, ListRequest};
use kv::{Batch, CommitMode, Durability, Store};
use model::policy::{CompositeIndex, ComputedProperty};
use model::{
    ConflictFault, ContainerDraft, ContainerNumber, DatabaseNumber, DefaultTtl, Fault, MissingFault,
    OfferNumber, StorageFault,
};
use partition::keyspace::{self, CATALOG, CONTAINER_SPACES, SPACES, container_rows};
use plan::Condition;
use std::sync::Arc;

/// Seconds of a paused clock within which housekeeping has deleted a container.
const SECONDS_MAX: usize = 3_600;

#[tokio::test]
async fn names_are_unique_and_numbers_are_not_reused() {
    let harness = Harness::new().await;
    let first = harness.database("d").await.unwrap();
    assert_eq!(harness.database("d").await.unwrap_err(), Fault::Conflict(ConflictFault::Id));
    harness.engine.delete_database(harness.admin(&*first), &Condition::None).await.unwrap();
    let second = harness.database("d").await.unwrap();
    assert_ne!(first.rid(), second.rid());
    let by_rid = |database: &Database| {
        let rid = database.rid().to_string();
        harness.engine.find_database(&harness.principal, Action::ReadMetadata, &rid)
    };
    assert_eq!(by_rid(&second).unwrap().number(), second.number());
    assert_eq!(by_rid(&first).unwrap_err(), Fault::Missing(MissingFault::Resource));
}

#[tokio::test]
async fn lists_are_paged_and_foreign_continuations_refused() {
    let harness = Harness::new().await;
    for number in 0..5 {
        harness.database(&format!("d{number}")).await.unwrap();
    }
    let list = |continuation| {
        harness.engine.list_databases(&harness.reader(Account), &ListRequest { items_max: 2, continuation })
    };
    let mut seen = Vec::new();
    let mut continuation = None;
    loop {
        let page = list(continuation).unwrap();
        seen.extend(page.items.iter().map(|database| database.id().to_owned()));
        continuation = page.continuation;
        if continuation.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["d0", "d1", "d2", "d3", "d4"]);
    assert!(list(Some("forged".to_owned())).is_err());
}

#[tokio::test]
async fn a_container_has_as_many_partitions_as_its_throughput_asks_for() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 18_000).await;
    let feed = harness.engine.ranges(&harness.reader(&*container));
    assert_eq!(feed.ranges.len(), 3);
    assert_eq!(feed.ranges[0].range.min.to_hex(), "");
    assert_eq!(feed.ranges[2].range.max.to_hex(), "FF");
    for pair in feed.ranges.windows(2) {
        assert_eq!(pair[0].range.max, pair[1].range.min);
    }
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let ambient = TestAmbient::new();
    let harness = Harness::on(store.clone(), ambient.clone()).await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::Seconds(60), 12_000).await;
    let created = harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    drop(harness);
    let harness = Harness::on(store, ambient).await;
    let found = harness.found().unwrap();
    assert_eq!(found.definition(), container.definition());
    assert_eq!((found.rid(), found.etag()), (container.rid(), container.etag()));
    let read = harness.read(&found, r#"["a"]"#, "1").await.unwrap();
    assert_eq!(read.etag, created.etag);
    let next = harness.create(&found, r#"{"id":"2","pk":"a"}"#).await.unwrap();
    assert!(next.lsn > created.lsn && next.number > created.number);
}

#[tokio::test(start_paused = true)]
async fn the_rows_of_a_dropped_container_go() {
    let harness = Harness::new().await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::Seconds(60), 400).await;
    for number in 0..20 {
        harness.create(&container, &format!(r#"{{"id":"{number}","pk":"a"}}"#)).await.unwrap();
    }
    harness.drop_container(&container).await.unwrap();
    let missing = harness.found().unwrap_err();
    assert_eq!(missing, Fault::Missing(MissingFault::Resource));
    let mut left = usize::MAX;
    for _ in 0..SECONDS_MAX {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        left = 0;
        let view = harness.store.view().await.unwrap();
        for space in CONTAINER_SPACES {
            let limit = kv::ScanLimit { rows: 1000, bytes: usize::MAX };
            let range = container_rows(container.number());
            left += view.scan(space, range, kv::Direction::Forward, limit).await.unwrap().rows.len();
        }
        if left == 0 {
            break;
        }
    }
    assert_eq!(left, 0, "rows after {SECONDS_MAX} seconds");
}

/// A request that found the container before it was dropped had its row written after the job that deletes rows: the
/// row would never have been deleted.
#[tokio::test(start_paused = true)]
async fn a_late_write_to_a_dropped_container_is_refused() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.drop_container(&container).await.unwrap();
    let late = harness.create(&container, r#"{"id":"2","pk":"a"}"#).await;
    assert_eq!(late.unwrap_err(), Fault::Missing(MissingFault::Owner));
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let view = harness.store.view().await.unwrap();
    assert_eq!(partition::stray_containers(&view).await.unwrap(), []);
}

/// The whole catalog is restored after a restart, in the stored form.
#[tokio::test]
async fn definitions_survive_a_restart() {
    let (store, ambient) = (Store::memory(&SPACES, CommitMode::Thread), TestAmbient::new());
    let options = || EngineOptions { computed_reader: lowered, ..EngineOptions::default() };
    let harness = Harness::with_options(store.clone(), Arc::clone(&ambient), &[KEY], options()).await;
    let definition = |draft: &mut ContainerDraft| {
        draft.default_ttl = DefaultTtl::Seconds(9);
        let composite = CompositeIndex::over(&[("/a", false), ("/b", true)]).unwrap();
        draft.policies.indexing.composite = vec![composite];
        draft.policies.computed = vec![ComputedProperty::new("p", "SELECT VALUE c.a FROM c")];
    };
    let before = harness.container(definition, 18_000).await;
    let again = Harness::with_options(store, ambient, &[KEY], options()).await;
    let after = again.found().unwrap();
    assert_eq!(after.definition(), before.definition());
    assert_eq!((after.etag(), after.ts(), after.rid()), (before.etag(), before.ts(), before.rid()));
    let ranges = |harness: &Harness, container: &Container| {
        format!("{:?}", harness.engine.ranges(&harness.reader(container)))
    };
    assert_eq!(ranges(&again, &after), ranges(&harness, &before));
}

/// A row of an unknown version, a truncated row or one with trailing bytes is damage, and the fault names the row.
#[tokio::test]
async fn a_row_that_is_not_known_is_damage_with_its_name() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("unknown version 200", |row| row[0] = 200),
        ("1 bytes follow the last field", |row| row.push(0)),
        ("the bytes end inside", |row| row.truncate(row.len() - 1)),
        ("the bytes end inside version", Vec::clear),
    ];
    for (reason, damage) in damages {
        for (name, key) in [
            ("counters", keyspace::catalog_meta_key()),
            ("database 1", keyspace::database_key(DatabaseNumber(1))),
            ("container 1", keyspace::container_key(ContainerNumber(1))),
            ("offer 1", keyspace::offer_key(OfferNumber(1))),
        ] {
            let (store, ambient) = (Store::memory(&SPACES, CommitMode::Thread), TestAmbient::new());
            Harness::on(store.clone(), Arc::clone(&ambient)).await.container(|_| {}, 400).await;
            let row = store.view().await.unwrap().get(CATALOG, &key).await.unwrap().unwrap();
            let mut row = row.to_vec();
            damage(&mut row);
            let mut batch = Batch::default();
            batch.put(CATALOG, key, row);
            store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
            let fault = Engine::open(store, EngineOptions::default(), ambient).await.err();
            let Some(Fault::Storage(StorageFault::Damaged { what })) = fault else {
                panic!("{name}, {reason}: {fault:?}");
            };
            assert!(what.contains(name) && what.contains(reason), "{name}, {reason}: {what}");
        }
    }
}
