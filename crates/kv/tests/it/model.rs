//! A store against its simplest model, over random operations, reopens and crashes.

use std::collections::BTreeMap;

use bytes::Bytes;
use kv::{
    Batch, CommitFault, CommitMode, Direction, Durability, FaultScript, KeyRange, Link, ScanLimit, Space,
    Store, Survivors,
};
use proptest::prelude::*;

use crate::stores::{SPACES, options, run};

/// One step of a random run.
#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Change>),
    Require {
        space: u8,
        key: u8,
        expected: Option<u8>,
    },
    Get {
        space: u8,
        key: u8,
    },
    Scan {
        space: u8,
        start: u8,
        end: Option<u8>,
        backward: bool,
        rows: usize,
    },
    Reopen,
    /// The process ends without a close; in memory, the power fails.
    Restart,
}

#[derive(Clone, Debug)]
struct Change {
    space: u8,
    key: u8,
    value: Option<u8>,
}

type Model = BTreeMap<(u8, u8), u8>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let space = 0..3u8;
    // The key 0 is reserved; scans begin there too.
    let key = 1..12u8;
    let change = (space.clone(), key.clone(), proptest::option::of(any::<u8>()))
        .prop_map(|(space, key, value)| Change { space, key, value });
    let step = prop_oneof![
        8 => proptest::collection::vec(change, 1..6).prop_map(Step::Commit),
        2 => (space.clone(), key.clone(), proptest::option::of(0..4u8))
            .prop_map(|(space, key, expected)| Step::Require { space, key, expected }),
        4 => (space.clone(), key.clone()).prop_map(|(space, key)| Step::Get { space, key }),
        4 => (space, 0..12u8, proptest::option::of(key), any::<bool>(), 1..8usize).prop_map(
            |(space, start, end, backward, rows)| Step::Scan { space, start, end, backward, rows }
        ),
        1 => Just(Step::Reopen),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..60)
}

async fn play(mut store: Store, steps: Vec<Step>, restart: impl Fn(Store) -> Store) {
    let mut model = Model::new();
    for step in steps {
        match step {
            Step::Commit(changes) => commit(&store, &mut model, changes).await,
            Step::Require { space, key, expected } => require(&store, &mut model, space, key, expected).await,
            Step::Get { space, key } => {
                let found = store.view().await.unwrap().get(Space(space), &[key]).await.unwrap();
                assert_eq!(found, model.get(&(space, key)).map(|value| Bytes::from(vec![*value])));
            }
            Step::Scan { space, start, end, backward, rows } => {
                scan(&store, &model, space, start..end.unwrap_or(u8::MAX), backward, rows).await;
            }
            Step::Reopen => store.reopen().await.unwrap(),
            Step::Restart => store = restart(store),
        }
    }
}

async fn commit(store: &Store, model: &mut Model, changes: Vec<Change>) {
    let mut batch = Batch::default();
    for Change { space, key, value } in changes {
        match value {
            Some(value) => {
                batch.put(Space(space), vec![key], vec![value]);
                model.insert((space, key), value);
            }
            None => {
                batch.delete(Space(space), vec![key]);
                model.remove(&(space, key));
            }
        }
    }
    store.submit(&store.lane(), batch, Durability::Sync).await.unwrap();
}

async fn require(store: &Store, model: &mut Model, space: u8, key: u8, expected: Option<u8>) {
    let mut batch = Batch::default();
    batch.require(Space(space), vec![key], expected.map(|value| Bytes::from(vec![value])));
    batch.put(Space(space), vec![key], vec![key % 4]);
    let verdict = store.submit(&store.lane(), batch, Durability::Sync).await;
    if model.get(&(space, key)).copied() == expected {
        verdict.unwrap();
        model.insert((space, key), key % 4);
    } else {
        assert!(matches!(verdict, Err(CommitFault::PreconditionFailed { .. })));
    }
}

async fn scan(
    store: &Store,
    model: &Model,
    space: u8,
    keys: std::ops::Range<u8>,
    backward: bool,
    rows: usize,
) {
    let inside = |(found_space, key): &(u8, u8)| *found_space == space && keys.contains(key);
    let mut expected: Vec<(Bytes, Bytes)> = model
        .iter()
        .filter(|(row, _)| inside(row))
        .map(|((_, key), value)| (vec![*key].into(), vec![*value].into()))
        .collect();
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    if backward {
        expected.reverse();
    }
    let range = KeyRange { start: vec![keys.start].into(), end: Some(vec![keys.end].into()) };
    let limit = ScanLimit { rows, bytes: usize::MAX };
    let chunk = store.view().await.unwrap().scan(Space(space), range, direction, limit).await.unwrap();
    assert_eq!(chunk.more, expected.len() > rows);
    expected.truncate(rows);
    assert_eq!(chunk.rows, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_as_its_model(steps in steps()) {
        let script = FaultScript::seeded(1);
        let store = Store::faulty(Store::memory(&SPACES, CommitMode::Inline), script.clone());
        let restart = |store: Store| {
            drop(store);
            script.crash(Survivors::Synced).unwrap()
        };
        run(play(store, steps, restart));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_remote_store_is_as_its_model(steps in steps(), seed in 0..u64::MAX) {
        run(async { play(Store::round_trip(&SPACES, Link::seeded(seed)), steps, |store| store).await });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_disk_is_as_its_model(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(options(&folder)).unwrap();
        let restart = |store: Store| {
            drop(store);
            Store::open(options(&folder)).unwrap()
        };
        run(play(store, steps, restart));
    }
}
