//! The stores under test: the same suite runs on each kind.

use std::future::Future;
use std::time::Duration;

use kv::{
    Batch, CommitFault, CommitMode, Direction, Durability, EmbeddedOptions, FaultScript, KeyRange, Link,
    ScanLimit, Space, SpaceOptions, Store, View,
};
use tempfile::TempDir;

pub(crate) const SPACES: [SpaceOptions; 3] = [
    SpaceOptions { name: "records", compressed: true },
    SpaceOptions { name: "index", compressed: false },
    SpaceOptions { name: "meta", compressed: true },
];
pub(crate) const RECORDS: Space = Space(0);
pub(crate) const INDEX: Space = Space(1);
pub(crate) const META: Space = Space(2);

/// Practically no limit.
pub(crate) const ALL_ROWS: ScanLimit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    Memory,
    MemoryInline,
    Embedded,
    FaultyMemory,
    FaultyInline,
    FaultyEmbedded,
    RoundTrip,
}

pub(crate) const KINDS: [Kind; 7] = [
    Kind::Memory,
    Kind::MemoryInline,
    Kind::Embedded,
    Kind::FaultyMemory,
    Kind::FaultyInline,
    Kind::FaultyEmbedded,
    Kind::RoundTrip,
];

/// Options of a small store: the reserve is off unless a test needs it.
pub(crate) fn options(folder: &TempDir) -> EmbeddedOptions {
    let mut options = EmbeddedOptions::new(folder.path(), &SPACES);
    options.cache_bytes = 8 << 20;
    options.free_space_reserve_bytes = 0;
    // Never during a test: intentional damage must look like that of a power failure.
    options.sync_record_interval = Duration::from_secs(3600);
    options
}

pub(crate) fn open(kind: Kind, folder: &TempDir) -> Store {
    let script = || FaultScript::seeded(1);
    match kind {
        Kind::Memory => Store::memory(&SPACES, CommitMode::Thread),
        Kind::MemoryInline => Store::memory(&SPACES, CommitMode::Inline),
        Kind::Embedded => Store::open(options(folder)).unwrap(),
        Kind::FaultyMemory => Store::faulty(open(Kind::Memory, folder), script()),
        Kind::FaultyInline => Store::faulty(open(Kind::MemoryInline, folder), script()),
        Kind::FaultyEmbedded => Store::faulty(open(Kind::Embedded, folder), script()),
        Kind::RoundTrip => Store::round_trip(&SPACES, Link::seeded(1)),
    }
}

/// Runs one case on a store of every kind.
pub(crate) fn on_every_kind<F: Future<Output = ()>>(case: impl Fn(Store) -> F) {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        run(async {
            eprintln!("on {kind:?}");
            case(open(kind, &folder)).await;
        });
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

pub(crate) fn put(space: Space, key: &str, value: &str) -> Batch {
    let mut batch = Batch::default();
    batch.put(space, key.to_owned(), value.to_owned());
    batch
}

pub(crate) async fn commit(store: &Store, batch: Batch) -> Result<View, CommitFault> {
    store.submit(&store.lane(), batch, Durability::Sync).await
}

pub(crate) async fn get(view: &View, space: Space, key: &str) -> Option<String> {
    let value = view.get(space, key.as_bytes()).await.unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// All keys of a space, in order.
pub(crate) async fn keys(view: &View, space: Space) -> Vec<String> {
    let chunk = view.scan(space, KeyRange::all(), Direction::Forward, ALL_ROWS).await.unwrap();
    chunk.rows.iter().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap()).collect()
}
