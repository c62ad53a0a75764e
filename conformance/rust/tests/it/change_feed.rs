//! The change feed: both modes, starts, scopes and continuations. The stream of the SDK never ends; an empty page means
//! that there is nothing new.

use azure_data_cosmos::FeedScope;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::{
    ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy, ContainerProperties, ThroughputProperties,
};
use azure_data_cosmos::options::{
    ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, CreateContainerOptions, MaxItemCountHint,
};
use conformance::fixture::{create, unique};
use conformance::{good, over_both};
use futures::StreamExt;
use serde_json::{Value, json};
use std::time::Duration;

/// Pages that no feed of these tests has.
const PAGES_MAX: usize = 1000;
/// Empty pages in a row after which all ranges of a container were read.
const EMPTY_MAX: usize = 4;

/// Reads until there is nothing new. Returns where to go on, too.
async fn changes(
    container: &ContainerClient,
    scope: FeedScope,
    start: ChangeFeedStartFrom,
    options: ChangeFeedOptions,
) -> (Vec<ChangeFeedItem<Value>>, ContinuationToken) {
    let mut pages = container.query_change_feed::<Value>(scope, start, Some(options)).await.unwrap();
    let mut found = Vec::new();
    let mut empty_count = 0;
    for _ in 0..PAGES_MAX {
        let items = pages.next().await.unwrap().unwrap().into_items();
        empty_count = if items.is_empty() { empty_count + 1 } else { 0 };
        found.extend(items);
        if empty_count == EMPTY_MAX {
            return (found, pages.to_continuation_token().unwrap());
        }
    }
    panic!("the feed does not end");
}

fn ids(items: &[ChangeFeedItem<Value>]) -> Vec<&str> {
    items.iter().map(|item| item.current().unwrap()["id"].as_str().unwrap()).collect()
}

fn resumed(token: ContinuationToken) -> ChangeFeedOptions {
    ChangeFeedOptions::default().with_continuation_token(token)
}

async fn create_all(container: &ContainerClient, ids: &[&str]) {
    for id in ids {
        good(201, create(container, "a", json!({ "id": id, "pk": "a" })).await);
    }
}

#[test]
fn last_versions_come_in_the_order_of_writes() {
    over_both(async |f| {
        create_all(&f.container, &["1", "2", "3"]).await;
        f.container.upsert_item("a", "1", json!({ "id": "1", "pk": "a", "n": 2 }), None).await.unwrap();
        f.container.delete_item("a", "2", None).await.unwrap();
        let whole = FeedScope::full_container;
        for size in [1, 100] {
            let size = MaxItemCountHint::Limit(size.try_into().unwrap());
            let options = ChangeFeedOptions::default().with_max_item_count(size);
            let (found, _) = changes(&f.container, whole(), ChangeFeedStartFrom::Beginning, options).await;
            assert_eq!(ids(&found), ["3", "1"]);
            let lsns: Vec<_> = found.iter().map(|item| item.metadata().unwrap().lsn().unwrap()).collect();
            assert!(lsns[0] < lsns[1]);
        }
        let options = ChangeFeedOptions::default();
        let (found, token) = changes(&f.container, whole(), ChangeFeedStartFrom::Now, options).await;
        assert!(found.is_empty());
        create_all(&f.container, &["4"]).await;
        let (found, _) = changes(&f.container, whole(), ChangeFeedStartFrom::Now, resumed(token)).await;
        assert_eq!(ids(&found), ["4"]);
    });
}

#[test]
fn a_wide_container_is_complete_and_a_key_shows_its_own() {
    over_both(async |f| {
        let name = unique("c");
        let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(24_000));
        let properties = ContainerProperties::new(name.clone(), "/pk".into());
        f.database.create_container(properties, Some(options)).await.unwrap();
        let container = f.database.container_client(name, None).await.unwrap();
        for number in 0..30 {
            let (id, key) = (number.to_string(), format!("key-{number}"));
            good(201, create(&container, key.clone(), json!({ "id": id, "pk": key })).await);
        }
        let (start, options) = (ChangeFeedStartFrom::Beginning, ChangeFeedOptions::default());
        let (found, _) = changes(&container, FeedScope::full_container(), start, options).await;
        let mut seen: Vec<u32> = ids(&found).iter().map(|id| id.parse().unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..30).collect::<Vec<_>>());
        let (start, options) = (ChangeFeedStartFrom::Beginning, ChangeFeedOptions::default());
        let (found, _) = changes(&container, FeedScope::partition("key-7"), start, options).await;
        assert_eq!(ids(&found), ["7"]);
    });
}

#[test]
fn all_versions_and_deletes_come_with_metadata() {
    over_both(async |f| {
        let retention = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
        let container = f.make(|properties| properties.with_change_feed_policy(retention)).await;
        let all = || ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
        let scope = FeedScope::full_container;
        let (found, token) = changes(&container, scope(), ChangeFeedStartFrom::Now, all()).await;
        assert!(found.is_empty());
        create_all(&container, &["1"]).await;
        container.upsert_item("a", "1", json!({ "id": "1", "pk": "a", "n": 2 }), None).await.unwrap();
        container.delete_item("a", "1", None).await.unwrap();
        let options = all().with_continuation_token(token);
        let (found, _) = changes(&container, scope(), ChangeFeedStartFrom::Now, options).await;
        let operations: Vec<_> = found.iter().map(|item| item.operation_type().unwrap()).collect();
        use ChangeFeedOperationType::{Create, Delete, Replace};
        assert_eq!(operations, [Create, Replace, Delete]);
        assert_eq!(found[1].previous().unwrap()["id"], "1");
        let metadata = found[2].metadata().unwrap();
        assert_eq!((metadata.id(), metadata.time_to_live_expired()), (Some("1"), Some(false)));
    });
}
