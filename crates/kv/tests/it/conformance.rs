//! Behaviour common to all backends.

use bytes::Bytes;
use kv::{
    Batch, CommitFault, Direction, Durability, Health, KEY_BYTES_MAX, KEY_RESERVED, KeyRange,
    LANE_BATCHES_MAX, ReadFault, ScanLimit, Space,
};

use crate::stores::{ALL_ROWS, INDEX, META, RECORDS, commit, get, keys, on_every_kind, put};

#[test]
fn a_batch_is_seen_whole_and_across_spaces() {
    on_every_kind(async |store| {
        let mut batch = put(RECORDS, "a", "1");
        batch.put(INDEX, "a", "2");
        batch.put(META, "a", "");
        let view = commit(&store, batch).await.unwrap();
        assert_eq!(get(&view, RECORDS, "a").await.as_deref(), Some("1"));
        assert_eq!(get(&view, INDEX, "a").await.as_deref(), Some("2"));
        assert_eq!(get(&view, META, "a").await.as_deref(), Some(""));
        assert_eq!(get(&view, META, "b").await, None);
    });
}

#[test]
fn the_last_operation_on_a_key_wins() {
    on_every_kind(async |store| {
        let mut batch = put(RECORDS, "put", "1");
        batch.put(RECORDS, "put", "2");
        batch.put(RECORDS, "deleted", "1");
        batch.delete(RECORDS, "deleted");
        batch.delete(RECORDS, "kept");
        batch.put(RECORDS, "kept", "1");
        let view = commit(&store, batch).await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["kept", "put"]);
        assert_eq!(get(&view, RECORDS, "put").await.as_deref(), Some("2"));

        // The same across batches of one group: both are sent before either is awaited.
        let lane = store.lane();
        let first = store.submit(&lane, put(RECORDS, "put", "3"), Durability::Sync);
        let mut second = Batch::default();
        second.delete(RECORDS, "put");
        let second = store.submit(&lane, second, Durability::Sync);
        first.await.unwrap();
        assert_eq!(keys(&second.await.unwrap(), RECORDS).await, ["kept"]);
    });
}

#[test]
fn a_view_does_not_change() {
    on_every_kind(async |store| {
        let before = commit(&store, put(RECORDS, "a", "1")).await.unwrap();
        let mut batch = put(RECORDS, "a", "2");
        batch.put(RECORDS, "b", "2");
        let after = commit(&store, batch).await.unwrap();
        let mut batch = Batch::default();
        batch.delete(RECORDS, "a");
        commit(&store, batch).await.unwrap();

        assert_eq!(get(&before, RECORDS, "a").await.as_deref(), Some("1"));
        assert_eq!(keys(&before, RECORDS).await, ["a"]);
        assert_eq!(get(&after, RECORDS, "a").await.as_deref(), Some("2"));
        assert_eq!(keys(&after, RECORDS).await, ["a", "b"]);
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["b"]);
    });
}

#[test]
fn a_failed_requirement_stops_its_batch_only() {
    on_every_kind(async |store| {
        commit(&store, put(META, "epoch", "1")).await.unwrap();
        let catch_panic = |expected: Option<&str>, key: &str| {
            let mut batch = put(RECORDS, key, "x");
            batch.require(META, "epoch", expected.map(|text| Bytes::from(text.to_owned())));
            batch
        };
        commit(&store, catch_panic(Some("1"), "right")).await.unwrap();
        for expected in [Some("2"), Some(""), None] {
            let fault = commit(&store, catch_panic(expected, "wrong")).await.unwrap_err();
            assert_eq!(fault, CommitFault::PreconditionFailed { space: META, key: Bytes::from("epoch") });
        }
        let mut absent = put(RECORDS, "absent", "x");
        absent.require(META, "nobody", None);
        commit(&store, absent).await.unwrap();
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["absent", "right"]);
    });
}

#[test]
fn a_requirement_sees_earlier_batches_and_not_its_own() {
    on_every_kind(async |store| {
        let step = |from: Option<&'static str>, to: &'static str| {
            let mut batch = put(META, "epoch", to);
            batch.require(META, "epoch", from.map(Bytes::from));
            store.submit(&store.lane(), batch, Durability::Sync)
        };
        assert!(step(None, "1").await.is_ok());
        let late = step(None, "9");
        let second = step(Some("1"), "2");
        assert!(matches!(late.await, Err(CommitFault::PreconditionFailed { .. })));
        let view = second.await.unwrap();
        assert_eq!(get(&view, META, "epoch").await.as_deref(), Some("2"));
    });
}

#[test]
fn a_lane_breaks_at_its_first_fault() {
    on_every_kind(async |store| {
        let (lane, other) = (store.lane(), store.lane());
        let mut bad = put(RECORDS, "bad", "x");
        bad.require(META, "nobody", Some(Bytes::from("there")));
        let first = store.submit(&lane, put(RECORDS, "first", "x"), Durability::Sync);
        let bad = store.submit(&lane, bad, Durability::Sync);
        let later = store.submit(&lane.clone(), put(RECORDS, "later", "x"), Durability::Sync);
        let others = store.submit(&other, put(RECORDS, "other", "x"), Durability::Sync);
        assert!(first.await.is_ok());
        assert!(matches!(bad.await, Err(CommitFault::PreconditionFailed { .. })));
        assert_eq!(later.await.unwrap_err(), CommitFault::ChainBroken);
        assert!(others.await.is_ok());
        let still = store.submit(&lane, put(RECORDS, "still", "x"), Durability::Sync);
        assert_eq!(still.await.unwrap_err(), CommitFault::ChainBroken);
        let view = commit(&store, put(RECORDS, "new", "x")).await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["first", "new", "other"]);
    });
}

#[test]
fn batches_apply_in_the_order_of_their_lane() {
    on_every_kind(async |store| {
        let lanes = [store.lane(), store.lane(), store.lane()];
        let mut verdicts = Vec::new();
        for number in 0..LANE_BATCHES_MAX / 2 {
            let lane = number % 3;
            let mut batch = put(RECORDS, &format!("lane {lane}"), &number.to_string());
            // Requires the batch before it.
            let before = number.checked_sub(3).map(|before| Bytes::from(before.to_string()));
            batch.require(RECORDS, format!("lane {lane}"), before);
            verdicts.push(store.submit(&lanes[lane], batch, Durability::Buffered));
        }
        for (number, verdict) in verdicts.into_iter().enumerate() {
            let key = format!("lane {}", number % 3);
            let value: usize = get(&verdict.await.unwrap(), RECORDS, &key).await.unwrap().parse().unwrap();
            assert!(value >= number && value % 3 == number % 3, "the view of batch {number} shows {value}");
        }
        let view = store.view().await.unwrap();
        for last in LANE_BATCHES_MAX / 2 - 3..LANE_BATCHES_MAX / 2 {
            assert_eq!(get(&view, RECORDS, &format!("lane {}", last % 3)).await, Some(last.to_string()));
        }
    });
}

#[test]
fn a_batch_of_several_lanes_comes_between_their_others() {
    on_every_kind(async |store| {
        let (left, right) = (store.lane(), store.lane());
        let mut verdicts = vec![
            store.submit_lanes(&[&left], put(RECORDS, "left", "1"), Durability::Sync),
            store.submit_lanes(&[&right], put(RECORDS, "right", "1"), Durability::Sync),
        ];
        let mut both = put(RECORDS, "left", "2");
        both.put(RECORDS, "right", "2");
        for key in ["left", "right"] {
            both.require(RECORDS, key, Some(Bytes::from("1")));
        }
        verdicts.push(store.submit_lanes(&[&left, &right], both, Durability::Sync));
        for (lane, key) in [(&left, "left"), (&right, "right")] {
            let mut later = put(RECORDS, key, "3");
            later.require(RECORDS, key, Some(Bytes::from("2")));
            verdicts.push(store.submit_lanes(&[lane], later, Durability::Sync));
        }
        for verdict in verdicts {
            verdict.await.unwrap();
        }
        // If it fails, or one of its lanes has failed before, all of its lanes are broken.
        let mut bad = Batch::default();
        bad.require(RECORDS, "left", None);
        let bad = store.submit(&left, bad, Durability::Sync);
        let both = store.submit_lanes(&[&left, &right], put(RECORDS, "both", "x"), Durability::Sync);
        let later = store.submit(&right, put(RECORDS, "later", "x"), Durability::Sync);
        assert!(matches!(bad.await, Err(CommitFault::PreconditionFailed { .. })));
        assert_eq!(both.await.unwrap_err(), CommitFault::ChainBroken);
        assert_eq!(later.await.unwrap_err(), CommitFault::ChainBroken);
        assert_eq!(keys(&store.view().await.unwrap(), RECORDS).await, ["left", "right"]);
    });
}

#[test]
fn the_lane_of_a_refused_batch_is_resolved_at_once() {
    on_every_kind(async |store| {
        let lane = store.lane();
        store.submit(&lane, put(RECORDS, "a", "1"), Durability::Sync).await.unwrap();
        let mut bad = put(RECORDS, "a", "2");
        bad.require(RECORDS, "a", None);
        store.submit(&lane, bad, Durability::Sync).await.unwrap_err();
        let next = store.resolve_lane(&lane).await.unwrap();
        assert!(!lane.is_rewound() && !next.is_rewound());
        let view = store.submit(&next, put(RECORDS, "b", "1"), Durability::Sync).await.unwrap();
        assert_eq!(get(&view, RECORDS, "a").await.as_deref(), Some("1"));
        assert_eq!(keys(&view, RECORDS).await, ["a", "b"]);
    });
}

#[test]
fn scans_walk_both_ways_in_chunks() {
    on_every_kind(async |store| {
        let mut batch = Batch::default();
        for number in 0..10 {
            batch.put(RECORDS, format!("k{number}"), vec![b'v'; 100]);
        }
        batch.put(INDEX, "k5", "elsewhere");
        let view = commit(&store, batch).await.unwrap();
        let range = |start: &'static str, end: Option<&'static str>| KeyRange {
            start: start.into(),
            end: end.map(Bytes::from),
        };
        let scan = async |range: KeyRange, direction, rows, bytes| {
            let chunk = view.scan(RECORDS, range, direction, ScanLimit { rows, bytes }).await.unwrap();
            let last = |key: &Bytes| key[1] - b'0';
            (chunk.rows.iter().map(|(key, _)| last(key)).collect::<Vec<_>>(), chunk.more)
        };
        use Direction::{Backward, Forward};
        let many = usize::MAX;
        assert_eq!(scan(KeyRange::all(), Forward, many, many).await, ((0..10).collect(), false));
        assert_eq!(scan(KeyRange::all(), Backward, many, many).await, ((0..10).rev().collect(), false));
        assert_eq!(scan(range("k3", Some("k6")), Forward, many, many).await, (vec![3, 4, 5], false));
        assert_eq!(scan(range("k3", Some("k6")), Backward, many, many).await, (vec![5, 4, 3], false));
        assert_eq!(scan(range("k3", Some("k6")), Forward, 2, many).await, (vec![3, 4], true));
        assert_eq!(scan(range("k3", Some("k6")), Backward, 2, many).await, (vec![5, 4], true));
        assert_eq!(scan(range("k3", Some("k6")), Forward, 3, many).await, (vec![3, 4, 5], false));
        assert_eq!(scan(range("k8", None), Forward, 2, many).await, (vec![8, 9], false));
        assert_eq!(scan(range("k35", Some("k55")), Forward, many, many).await, (vec![4, 5], false));
        assert_eq!(scan(range("", None), Forward, many, 250).await, (vec![0, 1, 2], true));
        assert_eq!(scan(range("", None), Forward, many, 1).await, (vec![0], true));
        assert_eq!(scan(range("", None), Forward, 0, 0).await, (vec![0], true));
        assert_eq!(scan(range("k6", Some("k3")), Forward, many, many).await, (vec![], false));
        assert_eq!(scan(range("k6", Some("k6")), Backward, many, many).await, (vec![], false));
        assert_eq!(scan(KeyRange::prefix("k7"), Backward, many, many).await, (vec![7], false));
        assert_eq!(scan(KeyRange::prefix("l"), Forward, many, many).await, (vec![], false));
    });
}

#[test]
fn keys_are_scanned_without_their_values() {
    on_every_kind(async |store| {
        let mut batch = Batch::default();
        for number in 0..10 {
            batch.put(RECORDS, format!("k{number}"), vec![b'v'; 100]);
        }
        batch.delete(RECORDS, "k4");
        let view = commit(&store, batch).await.unwrap();
        let scan = async |range: KeyRange, rows, bytes| {
            let chunk = view.scan_keys(RECORDS, range, ScanLimit { rows, bytes }).await.unwrap();
            (chunk.keys.iter().map(|key| key[1] - b'0').collect::<Vec<_>>(), chunk.more)
        };
        let many = usize::MAX;
        let range =
            |start: &'static str, end: &'static str| KeyRange { start: start.into(), end: Some(end.into()) };
        assert_eq!(scan(KeyRange::all(), many, many).await, (vec![0, 1, 2, 3, 5, 6, 7, 8, 9], false));
        assert_eq!(scan(range("k3", "k6"), many, many).await, (vec![3, 5], false));
        assert_eq!(scan(KeyRange::all(), 2, many).await, (vec![0, 1], true));
        assert_eq!(scan(range("k6", "k3"), many, many).await, (vec![], false));
        // Values do not count: a key has two bytes.
        assert_eq!(scan(KeyRange::all(), many, 5).await, (vec![0, 1, 2], true));
    });
}

#[test]
fn many_rows_are_read_in_the_order_asked() {
    on_every_kind(async |store| {
        let mut batch = put(RECORDS, "a", "1");
        batch.put(RECORDS, "b", "2");
        let view = commit(&store, batch).await.unwrap();
        let keys = ["b", "x", "a", "b"].map(Bytes::from);
        let values = view.get_many(RECORDS, &keys).await.unwrap();
        let expected = [Some("2"), None, Some("1"), Some("2")].map(|value| value.map(Bytes::from));
        assert_eq!(values, expected);
        assert!(view.get_many(RECORDS, &[]).await.unwrap().is_empty());
    });
}

#[test]
fn keys_and_values_may_be_large_and_values_empty() {
    on_every_kind(async |store| {
        let long_key = "k".repeat(4096);
        let longest_key = vec![b'l'; KEY_BYTES_MAX];
        let value: Vec<u8> = (0..2_000_000u32).map(|number| (number % 251) as u8).collect();
        let mut batch = put(RECORDS, &long_key, "");
        batch.put(RECORDS, longest_key.clone(), "x");
        batch.put(INDEX, "large", value.clone());
        let view = commit(&store, batch).await.unwrap();
        assert_eq!(get(&view, RECORDS, &long_key).await.as_deref(), Some(""));
        assert_eq!(view.get(RECORDS, &longest_key).await.unwrap(), Some(Bytes::from("x")));
        assert_eq!(view.get(INDEX, b"large").await.unwrap(), Some(Bytes::from(value)));
    });
}

#[test]
fn misshapen_batches_are_refused_whole() {
    on_every_kind(async |store| {
        let refused = async |mut batch: Batch| {
            batch.put(RECORDS, "companion", "x");
            commit(&store, batch).await.unwrap_err()
        };
        let mut too_long = Batch::default();
        too_long.put(RECORDS, vec![0; KEY_BYTES_MAX + 1], "x");
        let length = KEY_BYTES_MAX + 1;
        assert_eq!(refused(too_long).await, CommitFault::BadKey { space: RECORDS, length });
        assert_eq!(refused(put(RECORDS, "", "x")).await, CommitFault::BadKey { space: RECORDS, length: 0 });
        for space in [Space(3), Space(255)] {
            assert_eq!(refused(put(space, "a", "x")).await, CommitFault::UnknownSpace { space });
        }
        let mut too_large = Batch::default();
        too_large.put(RECORDS, "a", vec![0; kv::BATCH_BYTES_MAX]);
        assert!(matches!(refused(too_large).await, CommitFault::TooLarge { .. }));
        let view = store.view().await.unwrap();
        assert!(keys(&view, RECORDS).await.is_empty());
        assert_eq!(view.get(Space(3), b"a").await, Err(ReadFault::UnknownSpace { space: Space(3) }));
    });
}

/// The embedded engine has a row under this key in every space from which rows were deleted.
#[test]
fn the_reserved_key_can_be_neither_written_nor_read() {
    on_every_kind(async |store| {
        for value in ["1", "2"] {
            commit(&store, put(RECORDS, "a", value)).await.unwrap();
            let mut batch = put(META, "a", value);
            batch.delete(RECORDS, "a");
            batch.delete(META, "b");
            commit(&store, batch).await.unwrap();
        }
        let reserved = || Bytes::from_static(KEY_RESERVED);
        let view = store.view().await.unwrap();
        for space in [RECORDS, META] {
            assert_eq!(view.get(space, KEY_RESERVED).await, Ok(None));
            assert_eq!(view.get_many(space, &[reserved()]).await, Ok(vec![None]));
            let count = usize::from(space == META);
            for range in [KeyRange::all(), KeyRange::prefix(reserved()), KeyRange::prefix("")] {
                let expected = if range.contains(b"a") { count } else { 0 };
                for direction in [Direction::Forward, Direction::Backward] {
                    let rows = view.scan(space, range.clone(), direction, ALL_ROWS).await.unwrap();
                    assert_eq!((rows.rows.len(), rows.more), (expected, false), "{space:?} {range:?}");
                }
                let keys = view.scan_keys(space, range.clone(), ALL_ROWS).await.unwrap();
                assert_eq!((keys.keys.len(), keys.more), (expected, false), "{space:?} {range:?}");
            }
        }
        let refused = CommitFault::ReservedKey { space: RECORDS };
        let mut batches = [Batch::default(), Batch::default(), Batch::default()];
        batches[0].put(RECORDS, reserved(), "x");
        batches[1].delete(RECORDS, reserved());
        batches[2].require(RECORDS, reserved(), None);
        for batch in batches {
            assert_eq!(commit(&store, batch).await.unwrap_err(), refused);
        }
        let ingested = store.ingest(RECORDS, vec![(reserved(), Bytes::new())]).await;
        assert_eq!(ingested, Err(refused));
        // The next key is an ordinary one.
        let mut batch = Batch::default();
        batch.put(RECORDS, vec![0, 0], "x");
        let view = commit(&store, batch).await.unwrap();
        let rows = view.scan(RECORDS, KeyRange::all(), Direction::Forward, ALL_ROWS).await.unwrap().rows;
        assert_eq!(rows, [(Bytes::from(vec![0, 0]), Bytes::from("x"))]);
    });
}

#[test]
fn a_batch_without_operations_is_a_question() {
    on_every_kind(async |store| {
        commit(&store, Batch::default()).await.unwrap();
        let mut question = Batch::default();
        question.require(META, "epoch", None);
        assert!(commit(&store, question).await.is_ok());
        let mut question = Batch::default();
        question.require(META, "epoch", Some(Bytes::from("1")));
        assert!(matches!(commit(&store, question).await, Err(CommitFault::PreconditionFailed { .. })));
    });
}

#[test]
fn an_ingest_is_there_once_it_is_named() {
    on_every_kind(async |store| {
        let rows = |prefix: &str| -> Vec<(Bytes, Bytes)> {
            (0..1000).map(|number| (format!("{prefix}{number:04}").into(), Bytes::from("block"))).collect()
        };
        commit(&store, put(INDEX, "run0", "older")).await.unwrap();
        let named = store.ingest(INDEX, rows("run1-")).await.unwrap();
        let forgotten = store.ingest(INDEX, rows("run2-")).await.unwrap();
        assert_ne!(named, forgotten);
        let mut batch = put(META, "runs", "run1");
        batch.name_ingest(named);
        let view = commit(&store, batch).await.unwrap();
        assert_eq!(get(&view, INDEX, "run1-0999").await.as_deref(), Some("block"));

        let mut again = Batch::default();
        again.name_ingest(named);
        assert_eq!(commit(&store, again).await.unwrap_err(), CommitFault::UnknownIngest { ingest: named });

        store.reopen().await.unwrap();
        let view = store.view().await.unwrap();
        let found = keys(&view, INDEX).await;
        assert_eq!(found.len(), 1001);
        assert!(found.iter().all(|key| !key.starts_with("run2")));
        let mut late = Batch::default();
        late.name_ingest(forgotten);
        let fault = commit(&store, late).await.unwrap_err();
        assert_eq!(fault, CommitFault::UnknownIngest { ingest: forgotten });
    });
}

#[test]
fn an_ingest_takes_any_sorted_rows() {
    on_every_kind(async |store| {
        let row = |key: &'static str| (Bytes::from(key), Bytes::from("x"));
        let unsorted = store.ingest(INDEX, vec![row("a"), row("c"), row("b")]).await;
        assert_eq!(unsorted.unwrap_err(), CommitFault::Unsorted { index: 2 });
        let twice = store.ingest(INDEX, vec![row("a"), row("a")]).await;
        assert_eq!(twice.unwrap_err(), CommitFault::Unsorted { index: 1 });
        let unknown = store.ingest(Space(7), vec![row("a")]).await;
        assert_eq!(unknown.unwrap_err(), CommitFault::UnknownSpace { space: Space(7) });
        let empty = store.ingest(INDEX, Vec::new()).await.unwrap();
        let mut batch = Batch::default();
        batch.name_ingest(empty);
        commit(&store, batch).await.unwrap();
        assert!(keys(&store.view().await.unwrap(), INDEX).await.is_empty());
    });
}

#[test]
fn reopening_keeps_what_was_committed() {
    on_every_kind(async |store| {
        let before = commit(&store, put(RECORDS, "a", "1")).await.unwrap();
        store.reopen().await.unwrap();
        // The old view works as before, or reports that it does not.
        match before.get(RECORDS, b"a").await {
            Ok(value) => assert_eq!(value, Some(Bytes::from("1"))),
            Err(fault) => assert_eq!(fault, ReadFault::Poisoned),
        }
        let view = commit(&store, put(RECORDS, "b", "2")).await.unwrap();
        assert_eq!(keys(&view, RECORDS).await, ["a", "b"]);
        assert_eq!(store.health(), Health::Serving);
    });
}

#[test]
fn a_closed_store_says_so() {
    on_every_kind(async |store| {
        let other = store.clone();
        let view = commit(&store, put(RECORDS, "a", "1")).await.unwrap();
        let last = store.submit(&store.lane(), put(RECORDS, "b", "1"), Durability::Buffered);
        store.close().await.unwrap();
        assert!(last.await.is_ok(), "what waits is committed before the store closes");
        assert_eq!(other.health(), Health::Closed);
        assert_eq!(commit(&other, put(RECORDS, "c", "1")).await.unwrap_err(), CommitFault::Closed);
        assert_eq!(view.get(RECORDS, b"a").await, Err(ReadFault::Closed));
        assert_eq!(other.view().await.map(|_| ()).unwrap_err(), ReadFault::Closed);
        assert_eq!(other.reopen().await, Err(CommitFault::Closed));
        assert_eq!(other.clone().close().await, Err(CommitFault::Closed));
    });
}

#[test]
fn a_long_scan_sees_one_state_over_all_its_chunks() {
    on_every_kind(async |store| {
        let mut batch = Batch::default();
        for number in 0..2000 {
            batch.put(RECORDS, format!("{number:06}"), "old");
        }
        let view = commit(&store, batch).await.unwrap();
        let mut seen = 0;
        let mut start = Bytes::new();
        loop {
            let range = KeyRange { start: start.clone(), end: None };
            let limit = ScanLimit { rows: 333, ..ALL_ROWS };
            let chunk = view.scan(RECORDS, range, Direction::Forward, limit).await.unwrap();
            assert!(chunk.rows.iter().all(|(_, value)| value == "old"));
            seen += chunk.rows.len();
            let mut next = chunk.rows.last().unwrap().0.to_vec();
            next.push(0);
            start = next.into();
            let mut batch = put(RECORDS, &format!("{seen:06}"), "new");
            batch.put(RECORDS, format!("{seen:06}-added"), "new");
            commit(&store, batch).await.unwrap();
            if !chunk.more {
                break;
            }
        }
        assert_eq!(seen, 2000);
    });
}
