//! The change feed: several partitions, restarts, charges and what is refused.

use crate::harness::{Harness, TestAmbient, item, key, text};
use engine::{
    ChangeFeedPage, ChangeMode, ChangePosition, ChangeRequest, ChangeStart, Changes, Container, Keyed, Scope,
    SplitAt,
};
use kv::{CommitMode, Store};
use model::policy::ChangeFeedPolicy;
use model::{
    ChangeFeedFault, Charge, ContainerDraft, Fault, Lsn, MissingFault, PartitionOrdinal, SessionToken,
};
use partition::keyspace::SPACES;
use plan::{Condition, DocumentOperation, Mutation, Target};

const PAGES_MAX: usize = 1000;

fn request(mode: ChangeMode, start: ChangeStart) -> ChangeRequest {
    ChangeRequest { mode, start, items_max: 3, session: Vec::new() }
}

async fn read(
    harness: &Harness,
    container: &Container,
    scope: Scope,
    request: &ChangeRequest,
) -> Result<ChangeFeedPage, Fault> {
    let pass = harness.engine.access().read_changes(&harness.principal, container, scope).unwrap();
    harness.engine.changes(pass, request).await
}

/// The ids of all changes from `start` on, and the position after them.
async fn drain(
    harness: &Harness,
    container: &Container,
    mode: ChangeMode,
    start: ChangeStart,
) -> (Vec<String>, ChangePosition) {
    let mut ids = Vec::new();
    let mut start = start;
    for _ in 0..PAGES_MAX {
        let page = read(harness, container, Scope::Container, &request(mode, start)).await.unwrap();
        let id = |json: String| serde_json::from_str::<serde_json::Value>(&json).unwrap()["id"].to_string();
        match &page.changes {
            Changes::Latest(documents) => ids.extend(documents.iter().map(|stored| id(text(stored)))),
            Changes::All(entries) => ids.extend(entries.iter().map(|(_, entry)| {
                let version = entry.current.as_ref().or(entry.previous.as_ref()).unwrap();
                format!("{:?} {}", entry.kind, id(text(version)))
            })),
        }
        if page.changes.is_empty() {
            return (ids, page.position);
        }
        start = ChangeStart::After(page.position);
    }
    panic!("the feed does not end");
}

fn retained(draft: &mut ContainerDraft) {
    draft.policies.change_feed = Some(ChangeFeedPolicy { retention_minutes: 5 });
}

async fn delete(harness: &Harness, container: &Container, id: &str, of_key: &str) {
    let mutation = Mutation::Delete { target: Target::Id(id.to_owned()), condition: Condition::None };
    let keyed =
        Keyed::new(container, Some(key(container, of_key)), DocumentOperation::Write(mutation)).unwrap();
    harness.engine.write(harness.write_pass(keyed)).await.unwrap();
}

#[tokio::test]
async fn readers_continue_after_the_engine_is_opened_again() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let ambient = TestAmbient::new();
    let (latest, all);
    {
        let harness = Harness::on(store.clone(), ambient.clone()).await;
        let container = harness.container(retained, 18_000).await;
        (_, all) = drain(&harness, &container, ChangeMode::AllVersions, ChangeStart::Now).await;
        for number in 0..20 {
            let json = format!(r#"{{"id":"{number}","pk":"{number}"}}"#);
            harness.create(&container, &json).await.unwrap();
        }
        let (seen, position) =
            drain(&harness, &container, ChangeMode::LatestVersion, ChangeStart::Beginning).await;
        assert_eq!(seen.len(), 20);
        assert!(!position.named.is_empty(), "{position:?}");
        latest = position;
        // Without closing: LSNs that were reserved are skipped.
    }
    let harness = Harness::on(store, ambient).await;
    let container = harness.found().unwrap();
    harness.create(&container, r#"{"id":"new","pk":"3"}"#).await.unwrap();
    delete(&harness, &container, "5", r#"["5"]"#).await;
    let after = ChangeStart::After(latest);
    assert_eq!(drain(&harness, &container, ChangeMode::LatestVersion, after).await.0, [r#""new""#]);
    let (seen, _) = drain(&harness, &container, ChangeMode::AllVersions, ChangeStart::After(all)).await;
    assert_eq!(seen.len(), 22, "{seen:?}");
    assert!(seen.contains(&r#"Delete "5""#.to_owned()) && seen.contains(&r#"Create "5""#.to_owned()));
}

#[tokio::test]
async fn pages_are_charged_to_their_partitions_and_have_their_sessions() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 18_000).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let latest = |start| request(ChangeMode::LatestVersion, start);
    let page = read(&harness, &container, Scope::Container, &latest(ChangeStart::Beginning)).await.unwrap();
    assert_eq!((page.changes.len(), page.charge), (1, Charge::MINIMUM));
    assert_eq!(page.session.len(), 3);
    let after = ChangeStart::After(page.position.clone());
    let none = read(&harness, &container, Scope::Container, &latest(after.clone())).await.unwrap();
    assert_eq!((none.changes.len(), none.charge, &none.position), (0, Charge::MINIMUM, &page.position));
    // A session ahead of a partition is refused, and so is a position.
    let ahead = SessionToken { ordinal: PartitionOrdinal(1), lsn: Lsn(1 << 40) };
    let refused = ChangeRequest { session: vec![ahead], ..latest(after) };
    let refused = read(&harness, &container, Scope::Container, &refused).await.unwrap_err();
    assert_eq!(refused, Fault::Missing(MissingFault::Session));
    let ahead = ChangePosition { base: Lsn(1 << 40), ..ChangePosition::default() };
    let refused = latest(ChangeStart::After(ahead));
    let refused = read(&harness, &container, Scope::Container, &refused).await.unwrap_err();
    assert_eq!(refused, ChangeFeedFault::Ahead.into());
    let range = Scope::Range(PartitionOrdinal(9), None);
    let refused = read(&harness, &container, range, &latest(ChangeStart::Now)).await.unwrap_err();
    assert!(matches!(refused, Fault::Missing(MissingFault::Range { .. })), "{refused}");
}

#[tokio::test]
async fn a_dropped_container_has_no_changes() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    harness.drop_container(&container).await.unwrap();
    let latest = request(ChangeMode::LatestVersion, ChangeStart::Beginning);
    let refused = read(&harness, &container, Scope::Container, &latest).await.unwrap_err();
    assert_eq!(refused, Fault::Missing(MissingFault::Owner));
}

#[tokio::test]
async fn versions_of_a_container_without_a_retention_are_refused() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    let all = request(ChangeMode::AllVersions, ChangeStart::Now);
    let refused = read(&harness, &container, Scope::Container, &all).await.unwrap_err();
    assert_eq!(refused, ChangeFeedFault::NoRetention.into());
    let container = harness.replace(&container, retained).await.unwrap();
    for (start, fault) in
        [(ChangeStart::Beginning, ChangeFeedFault::Start), (ChangeStart::Since(0), ChangeFeedFault::Start)]
    {
        let refused = request(ChangeMode::AllVersions, start);
        let refused = read(&harness, &container, Scope::Container, &refused).await.unwrap_err();
        assert_eq!(refused, fault.into());
    }
    assert!(read(&harness, &container, Scope::Container, &all).await.is_ok());
}

/// The changes of a scope from a position on, as operation and text, and the position after them.
async fn changes_of(
    harness: &Harness,
    container: &Container,
    scope: &Scope,
    mode: ChangeMode,
    mut position: ChangePosition,
) -> (Vec<String>, ChangePosition) {
    let mut rows = Vec::new();
    for _ in 0..PAGES_MAX {
        let request = request(mode, ChangeStart::After(position));
        let page = read(harness, container, scope.clone(), &request).await.unwrap();
        position = page.position;
        match &page.changes {
            Changes::Latest(documents) => rows.extend(documents.iter().map(text)),
            Changes::All(entries) => rows.extend(entries.iter().map(|(_, entry)| {
                let version = entry.current.as_ref().or(entry.previous.as_ref()).unwrap();
                format!("{:?} {}", entry.kind, text(version))
            })),
        }
        if page.changes.is_empty() {
            return (rows, position);
        }
    }
    panic!("the feed does not end");
}

/// Readers of both modes, of the container, of the range that is split and of a key, continue through splits of several
/// generations. Positions taken before a split hold for its parts.
#[tokio::test(start_paused = true)]
async fn readers_continue_through_splits() {
    let store = crate::harness::HeldStore::new().store;
    let harness = Harness::on(store, TestAmbient::new()).await;
    let container = harness.container(retained, 400).await;
    let write = async |number: u32, version: u32| {
        let json = format!(r#"{{"id":"{number}","pk":"{}","v":{version}}}"#, number % 11);
        let mutation = Mutation::Upsert { item: item(&json), condition: Condition::None };
        let key = key(&container, &format!(r#"["{}"]"#, number % 11));
        let keyed = Keyed::new(&container, Some(key), DocumentOperation::Write(mutation)).unwrap();
        harness.engine.write(harness.write_pass(keyed)).await.unwrap();
        json
    };
    let key_scope = Scope::Key(key(&container, r#"["3"]"#));
    let scopes = [Scope::Container, Scope::Range(PartitionOrdinal(0), None), key_scope];
    let now = request(ChangeMode::AllVersions, ChangeStart::Now);
    let start = read(&harness, &container, Scope::Container, &now).await.unwrap().position;
    let mut readers: Vec<_> = scopes
        .iter()
        .flat_map(|scope| [(scope, ChangeMode::LatestVersion), (scope, ChangeMode::AllVersions)])
        .map(|(scope, mode)| (scope, mode, start.clone(), Vec::new()))
        .collect();
    let mut all = Vec::new();
    let mut last = std::collections::BTreeMap::new();
    for generation in 0..4 {
        for number in 0..40 {
            let json = write(number, generation).await;
            let kind = if generation == 0 { "Create" } else { "Replace" };
            all.push((number % 11, format!("{kind} {json}")));
            last.insert(number, json);
        }
        let list = harness.engine.partition_list(&harness.reader(&*container)).await.unwrap();
        let largest = list.iter().max_by_key(|status| status.documents).unwrap().ordinal;
        // One of the positions is older than the split, the others are reached after it.
        for (index, (scope, mode, position, rows)) in readers.iter_mut().enumerate() {
            if index % 2 == generation as usize % 2 {
                let (more, reached) = changes_of(&harness, &container, scope, *mode, position.clone()).await;
                rows.extend(more);
                *position = reached;
            }
        }
        let pass = harness.admin(&*container);
        harness.engine.split_partition(&pass, largest, SplitAt::Documents).await.unwrap();
    }
    delete(&harness, &container, "3", r#"["3"]"#).await;
    let deleted = last.remove(&3).unwrap();
    all.push((3, format!("Delete {deleted}")));
    for (scope, mode, position, mut rows) in readers {
        let (more, _) = changes_of(&harness, &container, scope, mode, position).await;
        rows.extend(more);
        let is_wanted = |key: u32| !matches!(scope, Scope::Key(_)) || key == 3;
        if mode == ChangeMode::LatestVersion {
            let distinct: std::collections::BTreeSet<_> = rows.iter().collect();
            assert_eq!(distinct.len(), rows.len(), "a version came twice in {scope:?}");
            let missing = last.iter().find(|(number, json)| is_wanted(*number % 11) && !rows.contains(json));
            assert_eq!(missing, None, "in {scope:?}");
            continue;
        }
        // In the order of each key, and complete.
        for key in (0..11).filter(|key| is_wanted(*key)) {
            let of_key = |text: &&String| text.contains(&format!(r#""pk":"{key}""#));
            let expected: Vec<_> = all.iter().filter(|(of, _)| *of == key).map(|(_, text)| text).collect();
            assert_eq!(rows.iter().filter(of_key).collect::<Vec<_>>(), expected, "in {scope:?}");
        }
    }
    // The position of the first range before any split, used for each of its parts.
    let ranges = harness.engine.ranges(&harness.reader(&*container)).ranges;
    assert_eq!(ranges.len(), 5);
    let mut seen = Vec::new();
    for range in ranges {
        let scope = Scope::Range(range.ordinal, None);
        let mode = ChangeMode::LatestVersion;
        seen.extend(changes_of(&harness, &container, &scope, mode, start.clone()).await.0);
    }
    seen.sort();
    let mut expected: Vec<_> = last.into_values().collect();
    expected.sort();
    assert_eq!(seen, expected);
}
