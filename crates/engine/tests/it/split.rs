//! Splits: clients do not notice them. Old range ids, continuations and session tokens stay valid, through several
//! generations; documents are neither lost nor repeated.

use crate::harness::{self, Harness, HeldStore, KEY, TestAmbient, item};
use crate::query::{ask, drain, request};
use engine::{
    Account, ChangeMode, ChangeRequest, ChangeStart, Changes, Container, EngineOptions, FeedRequest,
    PartitionState, Scope, SplitAt, StoredContainer, verify,
};
use model::{
    DefaultTtl, Fault, LimitFault, Lsn, MissingFault, PartitionKeyDefinition, PartitionKeyKind,
    PartitionOrdinal, RequestFault, SessionToken, Throughput, ThroughputChange,
};
use partition::index::IndexOptions;
use plan::{Condition, Mutation, Target};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const SMALL_INDEX: IndexOptions = IndexOptions {
    inline_documents_max: 8,
    flush_documents: 24,
    flush_bytes: 1 << 20,
    run_fan_in: 3,
    memory_bytes_max: 1 << 20,
    cache_bytes: 64 << 10,
};
/// Simulated seconds after which housekeeping should be done.
const SECONDS_MAX: usize = 600;

fn options() -> EngineOptions {
    EngineOptions { index: SMALL_INDEX, ..EngineOptions::default() }
}

async fn harness(options: EngineOptions) -> Harness {
    // Commits are turns of the scheduler, so that the paused clock does not pass them by.
    Harness::with_options(HeldStore::new().store, TestAmbient::new(), &[KEY], options).await
}

fn text_of(row: &engine::QueryRow) -> String {
    match row {
        engine::QueryRow::Value(value) => value.to_json(),
        engine::QueryRow::Document(_) => panic!("a value"),
    }
}

fn document(number: usize) -> String {
    format!(r#"{{"id":"{number}","pk":"{}","n":{},"m":{}}}"#, number % 23, number, number % 7)
}

async fn split(harness: &Harness, container: &Container, ordinal: u32, at: SplitAt) -> [u32; 2] {
    let pass = harness.admin(container);
    let children = harness.engine.split_partition(&pass, PartitionOrdinal(ordinal), at).await;
    children.unwrap().map(|child| child.0)
}

fn ordinals(harness: &Harness, container: &Container) -> Vec<u32> {
    let feed = harness.engine.ranges(&harness.reader(container));
    feed.ranges.iter().map(|range| range.ordinal.0).collect()
}

/// Splits the first partition until there are `count`.
async fn split_until(harness: &Harness, container: &Container, count: usize) {
    while ordinals(harness, container).len() < count {
        let list = harness.engine.partition_list(&harness.reader(container)).await.unwrap();
        let largest = list.iter().max_by_key(|status| status.documents).unwrap();
        split(harness, container, largest.ordinal.0, SplitAt::Documents).await;
    }
}

/// Stops housekeeping and compares all rows with the documents.
async fn verified(harness: &Harness) -> usize {
    harness.engine.stop_jobs().await;
    let store = harness.store.clone();
    let verification = verify(&store, |_| None, harness.ambient.clone()).await.unwrap();
    for container in &verification.containers {
        assert_eq!((&container.findings[..], &container.index_findings[..]), (&[][..], &[][..]));
    }
    assert!(verification.is_sound());
    let documents: u64 = verification.containers.iter().map(|container| container.documents).sum();
    usize::try_from(documents).unwrap()
}

#[tokio::test(start_paused = true)]
async fn clients_continue_while_a_container_splits_from_one_to_eight() {
    let harness = Arc::new(harness(options()).await);
    let container = harness.container(|_| {}, 1_000).await;
    for number in 0..200 {
        harness.create(&container, &document(number)).await.unwrap();
    }
    // Writers that never stop.
    let mut writers = Vec::new();
    for writer in 0..4 {
        let (harness, container) = (Arc::clone(&harness), Arc::clone(&container));
        writers.push(tokio::spawn(async move {
            for number in 0..150 {
                harness.create(&container, &document(1_000 + writer * 1_000 + number)).await.unwrap();
                tokio::task::yield_now().await;
            }
        }));
    }
    let queries = [
        ("SELECT VALUE c.id FROM c WHERE c.n < 200", false),
        ("SELECT VALUE c.id FROM c WHERE c.n < 200 ORDER BY c.n", true),
        ("SELECT VALUE c.id FROM c WHERE c.m = 3 AND c.n < 200", false),
    ];
    let mut open: Vec<(Vec<String>, Option<String>)> = vec![(Vec::new(), None); queries.len()];
    let mut feed: (Vec<String>, Option<String>) = (Vec::new(), None);
    for round in 0..200 {
        if round % 12 == 3 && ordinals(&harness, &container).len() < 8 {
            let count = ordinals(&harness, &container).len() + 1;
            split_until(&harness, &container, count).await;
        }
        for ((sql, _), (rows, continuation)) in queries.iter().zip(&mut open) {
            if !rows.is_empty() && continuation.is_none() {
                continue;
            }
            let page = request(sql, Scope::Container, 3, continuation.take());
            let page = ask(&harness, &container, &page).await.unwrap();
            rows.extend(page.rows.iter().map(text_of));
            *continuation = page.continuation.map(|next| next.text);
        }
        if feed.0.is_empty() || feed.1.is_some() {
            let scope = Scope::Range(PartitionOrdinal(0), None);
            let pass = harness.engine.access().list_documents(&harness.principal, &container, scope).unwrap();
            let request = FeedRequest { items_max: 20, continuation: feed.1.take(), session: Vec::new() };
            let page = harness.engine.feed(pass, &request).await.unwrap();
            let id = |stored: &plan::StoredDocument| {
                stored.document.root().member("id").unwrap().as_str().unwrap().to_owned()
            };
            feed.0.extend(page.documents.iter().map(id));
            feed.1 = page.continuation.map(|next| next.text);
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(ordinals(&harness, &container).len(), 8);
    for ((sql, is_ordered), (rows, continuation)) in queries.iter().zip(open) {
        assert_eq!(continuation, None, "{sql} is drained");
        let distinct: BTreeSet<&String> = rows.iter().collect();
        let expected = if sql.contains("c.m") { 29 } else { 200 };
        assert_eq!((rows.len(), distinct.len()), (expected, expected), "{sql}");
        if *is_ordered {
            let expected: Vec<String> = (0..200).map(|number| format!("\"{number}\"")).collect();
            assert_eq!(rows, expected);
        }
    }
    let distinct: BTreeSet<&String> = feed.0.iter().collect();
    assert_eq!(distinct.len(), feed.0.len(), "the feed repeats nothing");
    assert!((0..200).all(|number| distinct.contains(&number.to_string())), "the feed misses nothing");
    let all = drain(&harness, &container, "SELECT VALUE c.id FROM c", Scope::Container, 50).await;
    assert_eq!(all.len(), 800);
    let counted = drain(&harness, &container, "SELECT VALUE COUNT(1) FROM c", Scope::Container, 50).await;
    assert_eq!(counted, ["800"]);
    assert_eq!(harness.audit_index(&container).await, []);
    assert_eq!(verified(&harness).await, 800);
}

/// A cut that falls between the keys of one tenant: what addresses the tenant by the prefix of the key is in both
/// children, also for clients that have begun before.
#[tokio::test]
async fn a_prefix_of_a_hierarchical_key_spans_a_cut() {
    let harness = harness(options()).await;
    let paths = ["/tenant", "/user"];
    let key = PartitionKeyDefinition::new(PartitionKeyKind::MultiHash, paths).unwrap();
    let container = harness.container(|draft| draft.partition_key = key, 1_000).await;
    let json = |number: usize| {
        let tenant = if number.is_multiple_of(10) { "small" } else { "large" };
        format!(r#"{{"id":"{number}","tenant":"{tenant}","user":"{}","n":{number}}}"#, number % 23)
    };
    for number in 0..100 {
        harness.create(&container, &json(number)).await.unwrap();
    }
    let prefix = || Scope::Key(harness::key(&container, r#"["large"]"#));
    let feed = async |continuation: Option<String>| {
        let pass = harness.engine.access().list_documents(&harness.principal, &container, prefix()).unwrap();
        let request = FeedRequest { items_max: 7, continuation, session: Vec::new() };
        let page = harness.engine.feed(pass, &request).await.unwrap();
        (
            page.documents.iter().map(harness::text).collect::<Vec<_>>(),
            page.continuation.map(|next| next.text),
        )
    };
    let changes = async |start: ChangeStart| {
        let pass = harness.engine.access().read_changes(&harness.principal, &container, prefix()).unwrap();
        let mode = ChangeMode::LatestVersion;
        let request = ChangeRequest { mode, start, items_max: 7, session: Vec::new() };
        let page = harness.engine.changes(pass, &request).await.unwrap();
        let Changes::Latest(documents) = page.changes else { panic!("last versions") };
        (documents.iter().map(harness::text).collect::<Vec<_>>(), page.position)
    };
    let query_page = async |sql: &str, (mut rows, next): (Vec<String>, Option<String>)| {
        let page = ask(&harness, &container, &request(sql, prefix(), 7, next)).await.unwrap();
        rows.extend(page.rows.iter().map(text_of));
        (rows, page.continuation.map(|next| next.text))
    };
    let queries = ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC"];
    let (mut listed, mut next) = feed(None).await;
    let (mut changed, mut position) = changes(ChangeStart::Beginning).await;
    let mut drained = vec![(Vec::new(), None); queries.len()];
    // Each split halves the partition that has most of the tenant.
    for count in 2..=5 {
        split_until(&harness, &container, count).await;
        for (sql, one) in queries.iter().zip(&mut drained) {
            *one = query_page(sql, std::mem::take(one)).await;
        }
        let (more, rest) = feed(next.take()).await;
        (listed, next) = ([listed, more].concat(), rest);
        let (more, reached) = changes(ChangeStart::After(position)).await;
        (changed, position) = ([changed, more].concat(), reached);
    }
    while next.is_some() {
        let (more, rest) = feed(next.take()).await;
        (listed, next) = ([listed, more].concat(), rest);
    }
    loop {
        let (more, reached) = changes(ChangeStart::After(position)).await;
        position = reached;
        if more.is_empty() {
            break;
        }
        changed.extend(more);
    }
    for (sql, one) in queries.iter().zip(&mut drained) {
        while one.1.is_some() {
            *one = query_page(sql, std::mem::take(one)).await;
        }
        let distinct: BTreeSet<&String> = one.0.iter().collect();
        assert_eq!((one.0.len(), distinct.len()), (90, 90), "{sql}");
    }
    let descending: Vec<String> =
        (0..100).rev().filter(|n: &usize| !n.is_multiple_of(10)).map(|n| n.to_string()).collect();
    assert_eq!(drained[1].0, descending);
    for shown in [&listed, &changed] {
        let distinct: BTreeSet<&String> = shown.iter().collect();
        assert_eq!((shown.len(), distinct.len()), (90, 90));
        assert!(shown.iter().all(|text| text.contains("large")));
    }
    let mut owners = 0;
    for ordinal in ordinals(&harness, &container) {
        let scope = Scope::Range(PartitionOrdinal(ordinal), None);
        let sql = "SELECT VALUE c.n FROM c WHERE c.tenant = 'large'";
        owners += usize::from(!drain(&harness, &container, sql, scope, 100).await.is_empty());
    }
    assert!(owners >= 3, "the tenant is in {owners} partitions");
    let read = harness.read(&container, r#"["large","1"]"#, "1").await.unwrap();
    assert!(harness::text(&read).contains("\"n\":1"));
    assert_eq!(verified(&harness).await, 100);
}

#[tokio::test]
async fn old_ids_and_tokens_mean_the_descendants() {
    let harness = harness(options()).await;
    let container = harness.container(|_| {}, 1_000).await;
    for number in 0..60 {
        harness.create(&container, &document(number)).await.unwrap();
    }
    let sql = "SELECT VALUE c.id FROM c";
    let of_range = |ordinal| Scope::Range(PartitionOrdinal(ordinal), None);
    let before: BTreeSet<String> =
        drain(&harness, &container, sql, of_range(0), 7).await.into_iter().collect();
    assert_eq!(split(&harness, &container, 0, SplitAt::Middle).await, [1, 2]);
    assert_eq!(split(&harness, &container, 1, SplitAt::Documents).await, [3, 4]);
    assert_eq!(ordinals(&harness, &container), [3, 4, 2]);
    let after: BTreeSet<String> =
        drain(&harness, &container, sql, of_range(0), 7).await.into_iter().collect();
    assert_eq!(before, after);
    let first = drain(&harness, &container, sql, of_range(1), 7).await.len();
    let second = drain(&harness, &container, sql, of_range(2), 7).await.len();
    assert_eq!(first + second, 60);
    let absent = request(sql, of_range(5), 5, None);
    let fault = ask(&harness, &container, &absent).await.unwrap_err();
    assert_eq!(fault, MissingFault::Range { id: "5".to_owned() }.into());
    // A client that knows only the old range gets a token for it. Some derive tokens for its descendants from it.
    for number in 100..140 {
        harness.create(&container, &document(number)).await.unwrap();
    }
    let page = ask(&harness, &container, &request(sql, of_range(0), 1_000, None)).await.unwrap();
    let [token] = page.session[..] else { panic!("{:?}", page.session) };
    assert_eq!(token.ordinal, PartitionOrdinal(0));
    let live = ask(&harness, &container, &request(sql, Scope::Container, 1_000, None)).await.unwrap();
    assert_eq!(live.session.len(), 3);
    let derived = live.session.iter().map(|live| SessionToken { ordinal: live.ordinal, ..token });
    let mut with_token = request(sql, of_range(0), 1_000, None);
    with_token.1.session = derived.chain([token]).collect();
    assert_eq!(ask(&harness, &container, &with_token).await.unwrap().rows.len(), 100);
    // A token of a live range that is ahead is refused, as before.
    let ahead = SessionToken { ordinal: PartitionOrdinal(3), lsn: Lsn(u64::MAX) };
    with_token.1.session = vec![ahead];
    let fault = ask(&harness, &container, &with_token).await.unwrap_err();
    assert_eq!(fault, MissingFault::Session.into());
    // The feed of ranges names all ancestors, and what is new since an older map.
    let feed = harness.engine.ranges(&harness.reader(&*container));
    let parents: Vec<Vec<u32>> =
        feed.ranges.iter().map(|range| range.parents.iter().map(|parent| parent.0).collect()).collect();
    assert_eq!(parents, [vec![0, 1], vec![0, 1], vec![0]]);
    let change = feed.ranges[2].etag.stamp;
    assert_eq!(feed.since(change).map(|range| range.ordinal.0).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(feed.since(feed.change).count(), 0);
    // All of this survives a restart.
    harness.engine.stop_jobs().await;
    let again = Harness::with_options(harness.store.clone(), TestAmbient::new(), &[KEY], options()).await;
    let container = again.found().unwrap();
    assert_eq!(drain(&again, &container, sql, of_range(0), 7).await.len(), 100);
    assert_eq!(verified(&again).await, 100);
}

#[tokio::test(start_paused = true)]
async fn more_throughput_splits_every_partition_evenly() {
    let harness = harness(options()).await;
    let container = harness.container(|_| {}, 1_000).await;
    for number in 0..60 {
        harness.create(&container, &document(number)).await.unwrap();
    }
    let account = harness.reader(Account);
    let page = engine::ListRequest { items_max: 10, continuation: None };
    let offer = harness.engine.list_offers(&account, &page).unwrap().items.remove(0);
    assert!(!harness.engine.is_offer_pending(&account, &offer));
    let wanted = ThroughputChange::To(Throughput::manual(30_000).unwrap());
    let replaced =
        harness.engine.replace_offer(harness.admin(Account), &offer, wanted, &Condition::None).await;
    let replaced = replaced.unwrap();
    assert!(harness.engine.is_offer_pending(&account, &replaced));
    for _ in 0..SECONDS_MAX {
        if !harness.engine.is_offer_pending(&account, &replaced) {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let definition = &container.definition().partition_key;
    let ranges = harness.engine.ranges(&harness.reader(&*container)).ranges;
    let ranges: Vec<_> = ranges.into_iter().map(|range| range.range).collect();
    assert_eq!(ranges.len(), 4);
    let widths: Vec<u128> = ranges.iter().map(|range| definition.hash_count(range)).collect();
    assert!(widths.iter().all(|width| width.abs_diff(widths[0]) < 8), "{widths:?}");
    // Never fewer.
    let wanted = ThroughputChange::To(Throughput::manual(1_000).unwrap());
    let _ = harness.engine.replace_offer(harness.admin(Account), &replaced, wanted, &Condition::None).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(ordinals(&harness, &container).len(), 4);
    assert_eq!(verified(&harness).await, 60);
}

/// A partition above its size is split until all are below it; then the rows of the split ones disappear.
#[tokio::test(start_paused = true)]
async fn large_partitions_are_split_and_separated() {
    let options = EngineOptions { partition_bytes_max: 6_000, ..options() };
    let harness = harness(options.clone()).await;
    let container = harness.container(|_| {}, 1_000).await;
    for number in 0..300 {
        harness.create(&container, &document(number)).await.unwrap();
    }
    let is_done = async || {
        let list = harness.engine.partition_list(&harness.reader(&*container)).await.unwrap();
        let small = list.iter().all(|status| status.document_bytes <= 6_000);
        small && list.iter().all(|status| status.state == PartitionState::Serving)
    };
    let mut seconds = 0;
    while !is_done().await {
        seconds += 1;
        let list = harness.engine.partition_list(&harness.reader(&*container)).await.unwrap();
        assert!(seconds < SECONDS_MAX, "{list:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let count = ordinals(&harness, &container).len();
    assert!(count >= 4, "{count}");
    let counted = drain(&harness, &container, "SELECT VALUE COUNT(1) FROM c", Scope::Container, 50).await;
    assert_eq!(counted, ["300"]);
    assert_eq!(harness.audit_index(&container).await, []);
    assert_eq!(verified(&harness).await, 300);
    let view = harness.store.view().await.unwrap();
    let stored: Vec<StoredContainer> = engine::stored_containers(&view, |_| None).await.unwrap();
    let ancestors = stored[0].partitions.iter().flat_map(|spec| &spec.ancestors);
    assert!(ancestors.clone().count() > 0 && ancestors.clone().all(|ancestor| !ancestor.remains.has_runs()));
}

#[tokio::test(start_paused = true)]
async fn one_logical_partition_is_not_split_and_not_tried_for_ever() {
    let options = EngineOptions { partition_bytes_max: 2_000, ..options() };
    let harness = harness(options).await;
    let container = harness.container(|_| {}, 1_000).await;
    for number in 0..60 {
        harness.create(&container, &format!(r#"{{"id":"{number}","pk":"one"}}"#)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ordinals(&harness, &container), [0]);
    let pass = harness.admin(&*container);
    let refused = harness.engine.split_partition(&pass, PartitionOrdinal(0), SplitAt::Documents).await;
    assert_eq!(refused, Err(RequestFault::Indivisible { id: "0".to_owned() }.into()));
    let absent = harness.engine.split_partition(&pass, PartitionOrdinal(9), SplitAt::Middle).await;
    assert_eq!(absent, Err(MissingFault::Range { id: "9".to_owned() }.into()));
    let outside = SplitAt::Key(model::EffectiveKey::MIN);
    let refused = harness.engine.split_partition(&pass, PartitionOrdinal(0), outside).await;
    assert!(matches!(refused, Err(Fault::Request(RequestFault::Indivisible { .. }))));
    assert_eq!(verified(&harness).await, 60);
}

/// A container that is dropped while one of its partitions is split leaves nothing.
#[tokio::test(start_paused = true)]
async fn a_drop_during_a_split_leaves_no_rows() {
    for turns in 0..40 {
        let held = HeldStore::new();
        let store = held.store.clone();
        let harness = Arc::new(Harness::with_options(store, TestAmbient::new(), &[KEY], options()).await);
        let container = harness.container(|_| {}, 1_000).await;
        for number in 0..40 {
            harness.create(&container, &document(number)).await.unwrap();
        }
        let splitting = {
            let (harness, container) = (Arc::clone(&harness), Arc::clone(&container));
            tokio::spawn(async move {
                let pass = harness.admin(&*container);
                harness.engine.split_partition(&pass, PartitionOrdinal(0), SplitAt::Documents).await
            })
        };
        for _ in 0..turns * 3 {
            tokio::task::yield_now().await;
        }
        harness.drop_container(&container).await.unwrap();
        if let Err(fault) = splitting.await.unwrap() {
            assert_eq!(fault, Fault::Missing(MissingFault::Owner), "after {turns} turns");
        }
        let mut rows = usize::MAX;
        for _ in 0..SECONDS_MAX {
            tokio::time::sleep(Duration::from_secs(1)).await;
            rows = container_rows(&harness).await;
            if rows == 0 {
                break;
            }
        }
        assert_eq!(rows, 0, "after {turns} turns");
        harness.engine.close().await.unwrap();
    }
}

async fn container_rows(harness: &Harness) -> usize {
    let view = harness.store.view().await.unwrap();
    let limit = kv::ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let mut count = 0;
    for space in partition::keyspace::CONTAINER_SPACES {
        let all = kv::KeyRange::all();
        count += view.scan(space, all, kv::Direction::Forward, limit).await.unwrap().rows.len();
    }
    count
}

/// Documents that expire, and a change of the default time to live, while partitions are split.
#[tokio::test(start_paused = true)]
async fn expiry_continues_through_splits() {
    let harness = harness(options()).await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::OnDemand, 1_000).await;
    for number in 0..80 {
        let ttl = if number % 2 == 0 { r#","ttl":30"# } else { "" };
        let json = format!(r#"{{"id":"{number}","pk":"{}"{ttl}}}"#, number % 9);
        harness.create(&container, &json).await.unwrap();
    }
    split_until(&harness, &container, 3).await;
    let container =
        harness.replace(&container, |draft| draft.default_ttl = DefaultTtl::Seconds(100)).await.unwrap();
    split_until(&harness, &container, 5).await;
    harness.ambient.advance_seconds(40);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let usage = harness.engine.container_usage(&harness.reader(&*container)).await.unwrap();
    assert_eq!((usage.documents, usage.partitions), (40, 5));
    harness.ambient.advance_seconds(100);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let usage = harness.engine.container_usage(&harness.reader(&*container)).await.unwrap();
    assert_eq!(usage.documents, 0);
    let fault = harness.read(&container, r#"["1"]"#, "1").await.unwrap_err();
    assert_eq!(fault, MissingFault::Resource.into());
    assert_eq!(verified(&harness).await, 0);
}

/// A partition key whose documents have reached their limit refuses writes that add to them, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_full_logical_partition_can_be_read_and_emptied() {
    let options = EngineOptions { logical_partition_bytes_max: 4_000, ..options() };
    let harness = harness(options).await;
    let container = harness.container(|_| {}, 1_000).await;
    let json = |id: usize, key: &str, text: &str| format!(r#"{{"id":"{id}","pk":"{key}","t":"{text}"}}"#);
    let text = "x".repeat(100);
    let mut refused = None;
    for id in 0..60 {
        match harness.create(&container, &json(id, "a", &text)).await {
            Ok(_) => tokio::time::sleep(Duration::from_secs(11)).await,
            Err(fault) => {
                refused = Some((id, fault));
                break;
            }
        }
    }
    let Some((count, fault)) = refused else { panic!("it was never full") };
    assert!(matches!(fault, Fault::Limit(LimitFault::LogicalPartitionFull { limit: 4_000, .. })), "{fault}");
    assert!((10..40).contains(&count), "{count}");
    // Another key, reads, and writes that add nothing.
    harness.create(&container, &json(0, "b", &text)).await.unwrap();
    harness.read(&container, r#"["a"]"#, "0").await.unwrap();
    let shorter = Mutation::Upsert { item: item(&json(0, "a", "short")), condition: Condition::None };
    harness.write(&container, shorter).await.unwrap();
    let delete = Mutation::Delete { target: Target::Id("1".to_owned()), condition: Condition::None };
    harness.write(&container, delete).await.unwrap();
    harness.create(&container, &json(100, "a", &text)).await.unwrap();
    assert_eq!(verified(&harness).await, count + 1);
}

/// Documents that had expired were counted for ever: their partition key refused writes although it was empty.
#[tokio::test(start_paused = true)]
async fn a_full_logical_partition_accepts_writes_after_its_documents_have_expired() {
    let options = EngineOptions { logical_partition_bytes_max: 4_000, ..options() };
    let harness = harness(options).await;
    let container = harness.container(|draft| draft.default_ttl = DefaultTtl::OnDemand, 1_000).await;
    let text = "x".repeat(100);
    let json = |id: usize| format!(r#"{{"id":"{id}","pk":"a","t":"{text}","ttl":30}}"#);
    let mut is_refused = false;
    for id in 0..60 {
        if harness.create(&container, &json(id)).await.is_err() {
            is_refused = true;
            break;
        }
        tokio::time::sleep(Duration::from_secs(11)).await;
    }
    assert!(is_refused);
    harness.ambient.advance_seconds(31);
    let mut created = harness.create(&container, &json(100)).await;
    for _ in 0..SECONDS_MAX {
        if created.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        created = harness.create(&container, &json(100)).await;
    }
    created.unwrap();
}
