//! Reading changes: random histories compared with a naive journal, and the search by time.

use crate::{Fixture, TestClock, upsert};
use kv::{CommitMode, Durability, KeyRange, Store};
use model::{ChangeFeedFault, DefaultTtl, Fault, Lsn, PartitionKeyDefinition, PartitionKeyKind};
use partition::keyspace::{self, SPACES};
use partition::{ChangeScan, ContainerShape, HistoryKind};
use plan::{Condition, Item, LogicalKey, Mutation, Rename, StoredDocument, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use value::Document;

const SEEDS: u64 = 60;
const STEPS: usize = 120;
const IDS: u64 = 12;
/// Seconds after which documents with a ttl expire.
const TTL_SECONDS: u64 = 5;
/// Pages after which a reader should have reached the end.
const PAGES_MAX: usize = 10_000;

/// A small generator, so that a seed is a case.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A version by the partition key, id and mark of its document.
type Version = (usize, String, u64);

/// One change as the journal has it.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Wrote { current: Version, previous: Option<Version> },
    Removed { previous: Version, expired: bool },
}

/// What the partition should contain.
#[derive(Default)]
struct Journal {
    changes: Vec<(Lsn, usize, Change)>,
    /// Mark and second of expiry of each document.
    live: BTreeMap<(usize, String), (u64, Option<u64>)>,
    marks: u64,
}

/// A reader that continues from page to page.
struct Reader {
    /// The partition key, or all keys.
    key: Option<usize>,
    after: Lsn,
    /// LSNs of earlier pages: none may come again.
    finished: BTreeSet<Lsn>,
    latest: Vec<Version>,
    versions: Vec<(Lsn, Change)>,
    is_latest: bool,
}

struct Case {
    store: Store,
    clock: Arc<TestClock>,
    fixture: Fixture,
    keys: Vec<LogicalKey>,
    random: Random,
    journal: Journal,
    readers: Vec<Reader>,
}

fn logical_key(text: &str) -> LogicalKey {
    let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let partition_key = definition.key(vec![text.into()]).unwrap();
    let effective = definition.effective_key(&partition_key);
    LogicalKey { partition_key, effective }
}

fn version_of(stored: &StoredDocument) -> Version {
    let member = |name| stored.document.root().member(name).unwrap();
    let key = usize::from(member("pk").as_str() == Some("b"));
    let mark = member("mark").to_value().to_json().parse().unwrap();
    (key, member("id").as_str().unwrap().to_owned(), mark)
}

impl Case {
    async fn new(seed: u64) -> Case {
        let store = Store::memory(&SPACES, CommitMode::Inline);
        let clock = Arc::new(TestClock::default());
        Fixture::create(&store).await;
        let fixture = Case::open(&store, &clock).await;
        let after = fixture.partition.lsn();
        let reader = |key, is_latest| Reader {
            key,
            after: if is_latest { Lsn(0) } else { after },
            finished: BTreeSet::new(),
            latest: Vec::new(),
            versions: Vec::new(),
            is_latest,
        };
        let readers =
            vec![reader(None, true), reader(Some(0), true), reader(None, false), reader(Some(1), false)];
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let keys = vec![logical_key("a"), logical_key("b")];
        Case { store, clock, fixture, keys, random, journal: Journal::default(), readers }
    }

    async fn open(store: &Store, clock: &Arc<TestClock>) -> Fixture {
        let fixture = Fixture::open(store, clock, Durability::Sync).await.unwrap();
        let mut shape = ContainerShape::clone(&fixture.shape.load());
        shape.change += 1;
        shape.default_ttl = DefaultTtl::OnDemand;
        shape.history_seconds = Some(1 << 30);
        assert!(fixture.shape.adopt(shape));
        fixture
    }

    fn now(&self) -> u64 {
        use model::Ambient as _;
        self.clock.now_ms() / 1000
    }

    async fn step(&mut self) {
        match self.random.below(12) {
            0 => self.clock.advance_ms(self.random.below(4_000)),
            1 => self.fixture.trim().await,
            2 => self.restart().await,
            3 if self.random.below(4) == 0 => {
                let lsn = self.fixture.partition.lsn();
                self.fixture.partition.set_consumer("reader", lsn).await.unwrap();
            }
            3..=5 => {
                let reader = usize::try_from(self.random.below(4)).unwrap();
                self.read_page(reader).await;
            }
            _ => self.write().await,
        }
    }

    /// Closes the partition, or lets the writer end without closing it, which skips LSNs.
    async fn restart(&mut self) {
        if self.random.below(2) == 0 {
            self.fixture.partition.close().await.unwrap();
        }
        self.fixture = Case::open(&self.store, &self.clock).await;
    }

    async fn write(&mut self) {
        let key = usize::try_from(self.random.below(2)).unwrap();
        let mut live = self.journal.live.clone();
        let mut changes = Vec::new();
        let mut mutations = Vec::new();
        for _ in 0..self.random.below(5) + 1 {
            let id = self.random.below(IDS).to_string();
            mutations.extend(self.mutation(key, &id, &mut live, &mut changes));
        }
        if mutations.is_empty() {
            return;
        }
        let lsn = self.fixture.try_run(&self.keys[key], mutations).await.unwrap();
        self.journal.live = live;
        self.journal.changes.extend(changes.into_iter().map(|change| (lsn, key, change)));
    }

    fn mutation(
        &mut self,
        key: usize,
        id: &str,
        live: &mut BTreeMap<(usize, String), (u64, Option<u64>)>,
        changes: &mut Vec<Change>,
    ) -> Option<Mutation> {
        let now = self.now();
        let name = (key, id.to_owned());
        // An expired document is removed when another one takes its id.
        let mut evict = |live: &mut BTreeMap<_, (u64, Option<u64>)>, name: &(usize, String)| {
            if let Some((mark, _)) = live.get(name).filter(|(_, expiry)| expiry.is_some_and(|at| at <= now)) {
                changes.push(Change::Removed { previous: (key, name.1.clone(), *mark), expired: true });
                live.remove(name);
            }
        };
        let is_expired = live.get(&name).is_some_and(|(_, expiry)| expiry.is_some_and(|at| at <= now));
        match self.random.below(4) {
            0 if live.contains_key(&name) && !is_expired => {
                let (mark, _) = live.remove(&name)?;
                changes.push(Change::Removed { previous: (key, id.to_owned(), mark), expired: false });
                Some(Mutation::Delete { target: Target::Id(id.to_owned()), condition: Condition::None })
            }
            0 => None,
            1 if live.contains_key(&name) && !is_expired => {
                let to = (key, self.random.below(IDS).to_string());
                let is_taken = live.get(&to).is_some_and(|(_, expiry)| expiry.is_none_or(|at| at > now));
                if is_taken {
                    return None;
                }
                evict(live, &to);
                let (mark, _) = live.remove(&name)?;
                let previous = Some((key, id.to_owned(), mark));
                let item = self.item(&to, live, previous, changes);
                let target = Target::Id(id.to_owned());
                Some(Mutation::Replace { target, item, condition: Condition::None, rename: Rename::Allowed })
            }
            _ => {
                evict(live, &name);
                let previous = live.remove(&name).map(|(mark, _)| (key, id.to_owned(), mark));
                let item = self.item(&name, live, previous, changes);
                Some(Mutation::Upsert { item, condition: Condition::None })
            }
        }
    }

    fn item(
        &mut self,
        (key, id): &(usize, String),
        live: &mut BTreeMap<(usize, String), (u64, Option<u64>)>,
        previous: Option<Version>,
        changes: &mut Vec<Change>,
    ) -> Item {
        self.journal.marks += 1;
        let mark = self.journal.marks;
        let expires = self.random.below(4) == 0;
        let ttl = if expires { format!(r#","ttl":{TTL_SECONDS}"#) } else { String::new() };
        let pk = ["a", "b"][*key];
        let text = format!(r#"{{"id":"{id}","pk":"{pk}","mark":{mark}{ttl}}}"#);
        live.insert((*key, id.clone()), (mark, expires.then(|| self.now() + TTL_SECONDS)));
        changes.push(Change::Wrote { current: (*key, id.clone(), mark), previous });
        Item::new(Document::from_json(text.as_bytes()).unwrap()).unwrap()
    }

    /// Reads a page of a random size; returns whether it was the last one.
    async fn read_page(&mut self, index: usize) -> bool {
        let items_max = usize::try_from(self.random.below(6)).unwrap() + 1;
        let reader = &mut self.readers[index];
        let keys = match reader.key {
            None => KeyRange::all(),
            Some(key) => {
                keyspace::logical_range(&keyspace::logical_prefix(crate::ID.container, &self.keys[key]))
            }
        };
        let scan = ChangeScan { after: reader.after, keys, logical: None, items_max, bytes_max: 1 << 20 };
        let view = self.fixture.partition.view().await.unwrap();
        let (lsns, count, reached, is_end) = if reader.is_latest {
            let page = view.changes(&scan).await.unwrap();
            reader.latest.extend(page.changes.iter().map(version_of));
            let lsns: Vec<_> = page.changes.iter().map(|stored| stored.lsn).collect();
            (lsns, page.changes.len(), page.reached, page.is_end)
        } else {
            let page = view.versions(&scan).await.unwrap();
            let lsns: Vec<_> = page.changes.iter().map(|(at, _)| at.lsn).collect();
            let count = page.changes.len();
            for (at, entry) in page.changes {
                let current = entry.current.as_ref().map(version_of);
                let previous = entry.previous.as_ref().map(version_of);
                let change = match (entry.kind, current, previous) {
                    (HistoryKind::Delete, None, Some(previous)) => {
                        Change::Removed { previous, expired: false }
                    }
                    (HistoryKind::Expire, None, Some(previous)) => {
                        Change::Removed { previous, expired: true }
                    }
                    (_, Some(current), previous) => Change::Wrote { current, previous },
                    (kind, _, _) => panic!("{kind:?} without versions"),
                };
                reader.versions.push((at.lsn, change));
            }
            (lsns, count, page.reached, page.is_end)
        };
        assert!(lsns.is_sorted() && lsns.iter().all(|lsn| *lsn > scan.after && *lsn <= reached));
        assert!(lsns.iter().all(|lsn| !reader.finished.contains(lsn)), "a transaction was divided");
        // Only the last transaction may exceed the size of the page.
        let before_last = lsns.iter().filter(|lsn| Some(*lsn) != lsns.last()).count();
        assert!(before_last < items_max || count <= items_max, "{count} changes in a page of {items_max}");
        reader.finished.extend(lsns);
        assert!(reached >= reader.after);
        reader.after = reached;
        is_end
    }

    /// Reads to the end, from where the readers are.
    async fn finish(&mut self) {
        for index in 0..self.readers.len() {
            for page in 0.. {
                assert!(page < PAGES_MAX, "the feed does not end");
                if self.read_page(index).await {
                    break;
                }
            }
            assert_eq!(self.readers[index].after, self.fixture.partition.lsn());
        }
    }

    fn check(&self) {
        let now = self.now();
        for reader in &self.readers {
            let wanted = |key: usize| reader.key.is_none_or(|only| only == key);
            let journal = self.journal.changes.iter().filter(|(_, key, _)| wanted(*key));
            if !reader.is_latest {
                let expected: Vec<_> = journal.map(|(lsn, _, change)| (*lsn, change.clone())).collect();
                assert_eq!(reader.versions, expected);
                continue;
            }
            let seen: BTreeSet<_> = reader.latest.iter().cloned().collect();
            assert_eq!(seen.len(), reader.latest.len(), "a version came twice");
            let written: BTreeSet<_> = journal
                .filter_map(|(_, _, change)| match change {
                    Change::Wrote { current, .. } => Some(current.clone()),
                    Change::Removed { .. } => None,
                })
                .collect();
            assert!(seen.is_subset(&written), "a version that was never written");
            for ((key, id), (mark, expiry)) in &self.journal.live {
                let is_live = expiry.is_none_or(|at| at > now);
                let is_seen = seen.contains(&(*key, id.clone(), *mark));
                assert!(
                    !is_live || !wanted(*key) || is_seen,
                    "{id} of key {key} with mark {mark} is missing"
                );
            }
        }
    }
}

#[tokio::test]
async fn readers_of_random_histories_miss_and_repeat_nothing() {
    for seed in 1..=SEEDS {
        let mut case = Case::new(seed).await;
        for _ in 0..STEPS {
            case.step().await;
        }
        case.finish().await;
        case.check();
        // Readers that start late see what is left: the last version of each live document, once.
        let mut late = Vec::new();
        for reader in case.readers.iter().filter(|reader| reader.is_latest) {
            late.push(Reader {
                key: reader.key,
                after: Lsn(0),
                finished: BTreeSet::new(),
                latest: Vec::new(),
                versions: Vec::new(),
                is_latest: true,
            });
        }
        case.readers = late;
        case.finish().await;
        case.check();
        let now = case.now();
        let live = case.journal.live.values().filter(|(_, expiry)| expiry.is_none_or(|at| at > now)).count();
        assert_eq!(case.readers[0].latest.len(), live, "seed {seed}");
        case.fixture.audited(&case.store).await;
    }
}

fn scan(after: Lsn, items_max: usize) -> ChangeScan {
    ChangeScan { after, keys: KeyRange::all(), logical: None, items_max, bytes_max: 1 << 20 }
}

#[tokio::test]
async fn a_transaction_larger_than_a_chunk_of_the_log_is_one_page() {
    const COUNT: usize = 3_000;
    let fixture = Fixture::new().await;
    let first = fixture.run(vec![upsert("first")]).await;
    let lsn = fixture.run((0..COUNT).map(|id| upsert(&id.to_string())).collect()).await;
    let last = fixture.run(vec![upsert("last")]).await;
    let view = fixture.partition.view().await.unwrap();
    let page = view.changes(&scan(first, 10)).await.unwrap();
    assert_eq!((page.changes.len(), page.reached, page.is_end), (COUNT, lsn, false));
    let page = view.changes(&scan(lsn, 10)).await.unwrap();
    assert_eq!((page.changes.len(), page.reached, page.is_end), (1, last, true));
    let page = view.changes(&scan(last, 10)).await.unwrap();
    assert_eq!((page.changes.len(), page.reached, page.is_end), (0, last, true));
}

#[tokio::test]
async fn a_position_that_was_never_reached_is_refused() {
    let fixture = Fixture::new().await;
    let lsn = fixture.run(vec![upsert("1")]).await;
    let view = fixture.partition.view().await.unwrap();
    let ahead = Fault::from(ChangeFeedFault::Ahead);
    assert_eq!(view.changes(&scan(lsn.next(), 1)).await.unwrap_err(), ahead);
    assert_eq!(view.versions(&scan(lsn.next(), 1)).await.unwrap_err(), ahead);
}

/// Trimming used to count LSNs that a restart had skipped as lost history.
#[tokio::test]
async fn only_trimmed_changes_are_refused() {
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let clock = Arc::new(TestClock::default());
    Fixture::create(&store).await;
    let open = async || {
        let fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
        fixture.retain(Some(100));
        fixture
    };
    let fixture = open().await;
    let first = fixture.run(vec![upsert("1")]).await;
    let second = fixture.run(vec![upsert("2")]).await;
    // Without closing: the next writer skips the LSNs that were reserved.
    let fixture = open().await;
    assert!(fixture.partition.lsn() > second);
    clock.advance_ms(100_000);
    fixture.trim().await;
    let third = fixture.run(vec![upsert("3")]).await;
    let view = fixture.partition.view().await.unwrap();
    let refused = view.versions(&scan(first, 10)).await.unwrap_err();
    assert_eq!(refused, ChangeFeedFault::NotRetained.into());
    let page = view.versions(&scan(second, 10)).await.unwrap();
    assert_eq!(page.changes.iter().map(|(at, _)| at.lsn).collect::<Vec<_>>(), [third]);
    fixture.audited(&store).await;
    // Also after the next restart.
    fixture.partition.close().await.unwrap();
    let fixture = open().await;
    let view = fixture.partition.view().await.unwrap();
    assert!(view.versions(&scan(first, 10)).await.is_err());
    assert_eq!(view.versions(&scan(second, 10)).await.unwrap().changes.len(), 1);
}

#[tokio::test]
async fn a_time_is_found_in_a_long_log() {
    const SECONDS: u64 = 400;
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let clock = Arc::new(TestClock::default());
    Fixture::create(&store).await;
    let mut fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    let mut written: Vec<(u64, Lsn)> = Vec::new();
    for second in 0..SECONDS {
        clock.advance_ms(1000);
        // Nothing is written in some seconds, much in others; some documents are written again later.
        for number in 0..second % 7 {
            let lsn = fixture.run(vec![upsert(&format!("{}-{number}", second % 90))]).await;
            written.push((1_700_000_001 + second, lsn));
        }
        if second % 100 == 50 {
            fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
        }
    }
    let view = fixture.partition.view().await.unwrap();
    let left: BTreeSet<_> = view
        .changes(&scan(Lsn(0), usize::MAX >> 1))
        .await
        .unwrap()
        .changes
        .iter()
        .map(|stored| stored.lsn)
        .collect();
    for second in 1_700_000_000..1_700_000_003 + SECONDS {
        let found = view.lsn_before(second).await.unwrap();
        for (at, lsn) in written.iter().filter(|(_, lsn)| left.contains(lsn)) {
            assert_eq!(*lsn > found, *at >= second, "{second}: {found:?}, {at} {lsn:?}");
        }
    }
    assert!(written.first().unwrap().1 > view.lsn_before(0).await.unwrap());
    assert_eq!(view.lsn_before(u64::MAX).await.unwrap(), view.lsn());
}

/// After a clock that was ahead, a reader may get more than it wants, but not less.
#[tokio::test]
async fn no_change_since_a_time_is_missed_after_the_clock_was_ahead() {
    let store = Store::memory(&SPACES, CommitMode::Inline);
    let clock = Arc::new(TestClock::default());
    Fixture::create(&store).await;
    let mut fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
    let mut number = 0;
    for (ahead_ms, count) in [(0, 10), (600_000, 5), (0, 40), (300_000, 5), (0, 1_100)] {
        clock.advance_ms(ahead_ms);
        for _ in 0..count {
            number += 1;
            clock.advance_ms(1000);
            fixture.run(vec![upsert(&number.to_string())]).await;
        }
        clock.set_back_ms(ahead_ms);
    }
    let highest = 1_700_000_000 + number;
    for is_reopened in [false, true] {
        if is_reopened {
            fixture = Fixture::open(&store, &clock, Durability::Sync).await.unwrap();
        }
        let view = fixture.partition.view().await.unwrap();
        let written = view.changes(&scan(Lsn(0), usize::MAX >> 1)).await.unwrap().changes;
        assert_eq!(written.len() as u64, number);
        for second in (1_700_000_000..=highest).step_by(7) {
            let found = view.lsn_before(second).await.unwrap();
            let missed = written.iter().find(|stored| stored.ts() >= second && stored.lsn <= found);
            assert!(
                missed.is_none(),
                "{second}: {found:?}, {:?}",
                missed.map(|stored| (stored.ts(), stored.lsn))
            );
        }
        // Later times are found exactly again.
        let first = written.iter().map(|stored| stored.lsn).min().unwrap();
        assert!(view.lsn_before(highest).await.unwrap() > first);
    }
}

/// A reader of one key with few documents does not read the log of all keys. Both ways return the same pages.
#[tokio::test]
async fn the_changes_of_a_small_key_are_found_without_the_log() {
    const OTHERS: usize = 1_100;
    let fixture = Fixture::new().await;
    let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let partition_key = definition.key(vec!["b".into()]).unwrap();
    let key = LogicalKey { effective: definition.effective_key(&partition_key), partition_key };
    let write = |id: &str| {
        let text = format!(r#"{{"id":"{id}","pk":"b","mark":1}}"#);
        let item = Item::new(Document::from_json(text.as_bytes()).unwrap()).unwrap();
        Mutation::Upsert { item, condition: Condition::None }
    };
    fixture.try_run(&key, vec![write("replaced"), write("second"), write("first")]).await.unwrap();
    fixture.try_run(&key, vec![write("removed")]).await.unwrap();
    for number in 0..OTHERS {
        fixture.run(vec![upsert(&number.to_string())]).await;
    }
    let removal = Mutation::Delete { target: Target::Id("removed".to_owned()), condition: Condition::None };
    fixture.try_run(&key, vec![write("last"), removal]).await.unwrap();
    fixture.try_run(&key, vec![write("replaced")]).await.unwrap();
    let view = fixture.partition.view().await.unwrap();
    let prefix = keyspace::logical_prefix(crate::ID.container, &key);
    let (mut pages, mut found, mut entries) = (0, Vec::new(), 0);
    let mut after = Lsn(0);
    loop {
        let keys = keyspace::logical_range(&prefix);
        let logical = Some(keyspace::logical_key(&prefix));
        let scan = ChangeScan { after, keys, logical, items_max: 1, bytes_max: 1 << 20 };
        let page = view.changes(&scan).await.unwrap();
        entries += page.entries;
        pages += 1;
        found.extend(page.changes.iter().map(|stored| version_of(stored).1));
        after = page.reached;
        if page.is_end {
            break;
        }
    }
    assert_eq!(found, ["second", "first", "last", "replaced"]);
    assert_eq!((after, pages), (view.lsn(), 4));
    // The four documents for each of the first two pages; the end of the log is read.
    assert!(entries < 20, "{entries}");
    let mut by_log = Vec::new();
    let mut after = Lsn(0);
    loop {
        let keys = keyspace::logical_range(&prefix);
        let scan = ChangeScan { after, keys, logical: None, items_max: 1, bytes_max: 1 << 20 };
        let page = view.changes(&scan).await.unwrap();
        by_log.extend(page.changes.iter().map(|stored| version_of(stored).1));
        after = page.reached;
        if page.is_end {
            break;
        }
    }
    assert_eq!(by_log, found);
}
