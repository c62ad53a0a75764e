//! A product with planted defects: missing, changed or additional rows, and broken guarantees.

use bytes::Bytes;
use kv::{Batch, Direction, Durability, KeyRange, ScanLimit, Space, Survivors};
use partition::keyspace::{EXPIRY, HISTORY, LOG, META, NUMBERS, RECORDS, UNIQUE};
use serde_json::json;
use sim::clients::Page;
use sim::feeds::Feed;
use sim::history::{Moment, Stored, version_of};
use sim::naive::{Body, DefaultTtl, Logical, Rules};
use sim::scenario::{
    KEYS, PreconditionTemplate, Request, RequestKind, Scenario, Scope, StepKind, StepTemplate, Trouble, Wave,
    id_text,
};
use sim::simulation::{Planted, run_planted};
use sim::world::World;
use std::sync::Arc;

fn scenario(waves: Vec<Wave>) -> Scenario {
    Scenario {
        kind: model::PartitionKeyKind::HashV2,
        seed: 1,
        buffered: false,
        partitions: 1,
        unique: vec![vec!["mail"]],
        default_ttl: DefaultTtl::Seconds(100),
        waves,
    }
}

fn creation(ids: std::ops::Range<usize>) -> Wave {
    let template = |id: usize| {
        let json = json!({ "id": id_text(id), "pk": "a", "w": id, "mail": format!("m{id}") });
        StepTemplate {
            kind: StepKind::Create,
            id,
            body: json.as_object().unwrap().clone(),
            edits: Vec::new(),
            precondition: PreconditionTemplate::None,
            by_number: false,
        }
    };
    let batch = RequestKind::Batch { key: 0, templates: ids.map(template).collect() };
    let request = Request { pause: 0, want: batch };
    Wave::Clients { lanes: vec![vec![request]], trouble: Trouble::default(), crash: None }
}

fn rows(world: &World, space: Space) -> Vec<(Bytes, Bytes)> {
    let everything = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = run(world.store.view()).unwrap();
    let scan = view.scan(space, KeyRange::all(), Direction::Forward, everything);
    run(scan).unwrap().rows
}

fn commit(world: &World, change: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::default();
    change(&mut batch);
    let committed = world.store.submit(&world.store.lane(), batch, Durability::Sync);
    world.store.step();
    run(committed).unwrap();
}

/// Memory answers at once; nothing here ever waits.
fn run<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("memory does not wait"),
    }
}

/// The scenario passes unchanged, and fails with `words` in the message once `sabotage` was applied.
#[track_caller]
fn noticed(words: &str, sabotage: impl Fn(&World)) {
    let scenario = scenario(vec![creation(0..3)]);
    run_planted(&scenario, Planted::default()).unwrap();
    let planted = Planted { sabotage: Some(&sabotage), ..Planted::default() };
    let violation = run_planted(&scenario, planted).expect_err("the sabotage was not noticed");
    assert!(violation.failure.contains(words), "{}", violation.failure);
}

fn lose_first(space: Space) -> impl Fn(&World) {
    move |world| {
        let (key, _) = rows(world, space).remove(0);
        commit(world, |batch| batch.delete(space, key));
    }
}

#[test]
fn a_lost_record() {
    noticed("the records are not what the answers say", lose_first(RECORDS));
}

#[test]
fn a_lost_number() {
    noticed("space 1 holds None", lose_first(NUMBERS));
}

#[test]
fn a_skipped_unique_row() {
    noticed("space 2 holds None", lose_first(UNIQUE));
}

#[test]
fn a_lost_expiry_row() {
    noticed("space 3 holds None", lose_first(EXPIRY));
}

#[test]
fn a_lost_log_entry() {
    noticed("is not in the log", lose_first(LOG));
}

#[test]
fn a_unique_row_that_names_another_document() {
    noticed("space 2 holds Some", |world| {
        let unique = rows(world, UNIQUE);
        commit(world, |batch| batch.put(UNIQUE, unique[0].0.clone(), unique[1].1.clone()));
    });
}

#[test]
fn an_expiry_row_that_nobody_asked_for() {
    noticed("no record implies", |world| {
        let mut key = rows(world, EXPIRY).remove(0).0.to_vec();
        key[11] ^= 1;
        commit(world, |batch| batch.put(EXPIRY, key, Bytes::new()));
    });
}

#[test]
fn a_record_in_the_wrong_place() {
    noticed("two records have one id", |world| {
        let (key, row) = rows(world, RECORDS).remove(0);
        let copy = [&key[..], b"x"].concat();
        commit(world, |batch| batch.put(RECORDS, copy, row));
    });
}

#[test]
fn damaged_bytes_of_a_record() {
    noticed("damaged", |world| {
        let (key, row) = rows(world, RECORDS).remove(0);
        commit(world, |batch| batch.put(RECORDS, key, row.slice(..20)));
    });
}

#[test]
fn a_head_that_counts_wrong() {
    noticed("counts PartitionCounts", |world| {
        let (key, head) = rows(world, META).remove(0);
        let mut head = head.to_vec();
        // Documents are the eighth field after the format byte.
        head[1 + 7 * 8 + 7] += 1;
        commit(world, |batch| batch.put(META, key, head));
    });
}

#[test]
fn a_log_entry_at_another_position() {
    noticed("contradicts the last versions", |world| {
        let (key, row) = rows(world, LOG).remove(0);
        let mut moved = key.to_vec();
        // The last byte of the position in the transaction.
        *moved.last_mut().unwrap() = 9;
        commit(world, |batch| {
            batch.delete(LOG, key);
            batch.put(LOG, moved, row);
        });
    });
}

#[test]
fn a_log_entry_of_another_time() {
    noticed("is not in the log", |world| {
        let (key, row) = rows(world, LOG).remove(0);
        let mut row = row.to_vec();
        *row.last_mut().unwrap() ^= 1;
        commit(world, |batch| batch.put(LOG, key, row));
    });
}

#[test]
fn a_lost_history_entry() {
    noticed("the history entry", lose_first(HISTORY));
}

#[test]
fn a_history_entry_of_another_document() {
    noticed("the history entry", |world| {
        let history = rows(world, HISTORY);
        commit(world, |batch| batch.put(HISTORY, history[0].0.clone(), history[1].1.clone()));
    });
}

#[test]
fn a_partition_without_its_owner() {
    noticed("has no owner", |world| {
        let (head, _) = rows(world, META).remove(0);
        let owner = [&head[..8], b"o"].concat();
        commit(world, |batch| batch.delete(META, owner));
    });
}

#[test]
fn an_expiry_row_without_its_effective_key() {
    noticed("space 3 holds Some", |world| {
        let (key, _) = rows(world, EXPIRY).remove(0);
        commit(world, |batch| batch.put(EXPIRY, key, Bytes::new()));
    });
}

/// Acknowledged before the sync: a crash loses writes that were acknowledged as durable.
#[test]
fn an_acknowledgement_before_the_sync() {
    let scenario =
        scenario(vec![creation(0..2), creation(2..4), Wave::Crash(Survivors::Synced, Trouble::default())]);
    run_planted(&scenario, Planted::default()).unwrap();
    let planted = Planted { durability: Some(Durability::Buffered), ..Planted::default() };
    let violation = run_planted(&scenario, planted).expect_err("the lost writes were not noticed");
    assert!(violation.failure.contains("records"), "{}", violation.failure);
}

/// The checks of a feed or a query whose two pages show these documents, while the first state became the second one.
fn drain(
    query: Option<usize>,
    states: [&[Stored]; 2],
    pages: [&[Stored]; 2],
) -> Result<bool, sim::world::CheckFailure> {
    let rules = Rules { unique: Vec::new(), default_ttl: DefaultTtl::Off, now: 10 };
    let key_rules = vec![rules; KEYS.len()];
    let state = |stored: &[Stored]| -> Logical {
        let version =
            |stored: &Stored| (stored.body["id"].as_str().unwrap().to_owned(), Arc::new(version_of(stored)));
        stored.iter().map(version).collect()
    };
    let page = |continuation: Option<&str>| Page {
        documents: Vec::new(),
        continuation: continuation.map(str::to_owned),
    };
    let moments = states.map(|stored| vec![vec![Moment::initial(state(stored))]]);
    let mut feed = Feed::new(Scope::Container, query, 1);
    feed.take(&key_rules, &page(Some("more")), pages[0], 5, &moments[0])?;
    feed.on_quiet_moment(&key_rules, &moments[0], |_, _| true)?;
    feed.take(&key_rules, &page(None), pages[1], 5, &moments[1])?;
    feed.on_quiet_moment(&key_rules, &moments[1], |_, _| true)
}

fn stored(id: &str, mark: u64) -> Stored {
    let body: Body = json!({ "id": id, "pk": "a", "w": mark }).as_object().unwrap().clone();
    Stored { number: mark, ordinal: 0, lsn: mark, stamp: mark, etag: format!("\"{mark}\""), ts: 10, body }
}

#[test]
fn a_feed_that_loses_or_repeats_a_document() {
    let all = [stored("a", 1), stored("b", 2)];
    let drain = |first: &[Stored], second: &[Stored]| drain(None, [&all, &all], [first, second]);
    assert_eq!(drain(&all[..1], &all[1..]), Ok(true));
    assert!(drain(&all[..1], &[]).unwrap_err().contains("without b"));
    assert!(drain(&all[..1], &all).unwrap_err().contains("twice"));
    let stale = Stored { etag: "\"9\"".to_owned(), ..all[1].clone() };
    assert!(drain(&all[..1], &[stale]).unwrap_err().contains("never was"));
}

#[test]
fn a_query_that_loses_repeats_or_misplaces_a_document() {
    let all = [stored("a", 1), stored("b", 2)];
    let drained =
        |query, first: &[Stored], second: &[Stored]| drain(Some(query), [&all, &all], [first, second]);
    let (plain, filtered, ascending, descending) = (0, 1, 2, 3);
    for query in [plain, ascending] {
        assert_eq!(drained(query, &all[..1], &all[1..]), Ok(true));
        assert!(drained(query, &all[..1], &[]).unwrap_err().contains("without b"));
        assert!(drained(query, &all, &all[1..]).unwrap_err().contains("twice"));
    }
    assert_eq!(drained(descending, &all[1..], &all[..1]), Ok(true));
    assert!(drained(ascending, &all[1..], &all[..1]).unwrap_err().contains("after"));
    assert!(drained(descending, &all[..1], &all[1..]).unwrap_err().contains("after"));
    assert!(drained(filtered, &all[..1], &[]).is_err(), "it does not match");
    // A document that has changed may be shown in both versions, in one or in none.
    let changed = Stored { number: 1, ..stored("a", 3) };
    let later = [changed.clone(), stored("b", 2)];
    let while_changed =
        |query, first: &[Stored], second: &[Stored]| drain(Some(query), [&all, &later], [first, second]);
    assert_eq!(while_changed(ascending, &all, &later[..1]), Ok(true));
    assert_eq!(while_changed(ascending, &all, &[]), Ok(true));
    assert_eq!(while_changed(ascending, &all[1..], &[]), Ok(true));
    // Without an order it keeps its place.
    assert!(while_changed(plain, &all, &[changed]).unwrap_err().contains("twice"));
}
