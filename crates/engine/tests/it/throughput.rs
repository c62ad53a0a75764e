//! Requests beyond the provisioned throughput: refused with a delay after which they are served.

use crate::harness::{Harness, KEY, TestAmbient, key, lowered};
use engine::{
    Account, Container, EngineOptions, FeedRequest, Offer, QueryRequest, STORE_SPACES, Scope, ThroughputMode,
};
use kv::{CommitMode, Store};
use model::{
    ContainerDraft, Fault, LimitFault, PartitionKeyDefinition, PartitionKeyKind, PartitionOrdinal, Priority,
    Throughput, ThroughputChange,
};
use plan::Condition;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

/// Creates that must exceed a second of the lowest throughput.
const MANY: usize = 200;

async fn enforcing() -> Harness {
    let options = EngineOptions { throughput: ThroughputMode::Enforce, ..EngineOptions::default() };
    let store = Store::memory(&STORE_SPACES, CommitMode::Thread);
    Harness::with_options(store, TestAmbient::new(), &[KEY], options).await
}

/// A container with this throughput.
async fn scaled_container(harness: &Harness, throughput: Throughput) -> Arc<Container> {
    let database = harness.database("d").await.unwrap();
    let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
    let definition = ContainerDraft::new("c", key).checked().unwrap();
    harness.engine.create_container(harness.admin(&*database), definition, Some(throughput)).await.unwrap()
}

/// The only offer, and the rate to which it is scaled.
fn offer(harness: &Harness) -> (Arc<Offer>, u64) {
    let pass = harness.reader(Account);
    let page = engine::ListRequest { items_max: 10, continuation: None };
    let offer = harness.engine.list_offers(&pass, &page).unwrap().items.remove(0);
    let scaled = harness.engine.scaled_throughput(&pass, &offer);
    (offer, scaled)
}

/// The metrics of throughput, without their labels.
fn metrics(harness: &Harness) -> Vec<String> {
    let mut registry = Registry::default();
    harness.engine.register_metrics(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let figures = text.lines().filter(|line| line.contains("throughput") && !line.starts_with('#'));
    figures.map(|line| line.replace("{database=\"d\",container=\"c\"}", "")).collect()
}

/// Creates documents of one partition key until one is refused; returns how many were created, and the delay.
async fn fill(harness: &Harness, container: &Container, pk: &str, prefix: &str) -> (usize, u64) {
    for index in 0..MANY {
        let json = format!(r#"{{"id":"{prefix}{index}","pk":"{pk}"}}"#);
        match harness.create(container, &json).await {
            Ok(_) => {}
            Err(fault) => return (index, delay(&fault)),
        }
    }
    panic!("nothing was refused");
}

#[track_caller]
fn delay(fault: &Fault) -> u64 {
    let Fault::Limit(LimitFault::Throughput { retry_after_ms }) = fault else { panic!("{fault}") };
    *retry_after_ms
}

/// Two partition keys of different partitions.
fn two_keys(container: &Container) -> [String; 2] {
    let definition = &container.definition().partition_key;
    let effective = |text: &str| definition.effective_key(&key(container, &format!("[\"{text}\"]")));
    let middle = definition.initial_ranges(2)[0].max.clone();
    let (low, high): (Vec<String>, Vec<String>) =
        (0..20).map(|number| format!("k{number}")).partition(|text| effective(text) < middle);
    [low[0].clone(), high[0].clone()]
}

#[tokio::test]
async fn a_second_of_throughput_is_served_and_the_delay_is_true() {
    let harness = enforcing().await;
    let container = harness.container(|_| {}, 400).await;
    let (created, delay_ms) = fill(&harness, &container, "a", "x").await;
    assert!((50..=80).contains(&created), "{created}");
    // The budget opens when there is enough for several requests.
    assert!((100..=250).contains(&delay_ms), "{delay_ms}");
    // Reads, queries and lists draw on the same budget.
    delay(&harness.read(&container, r#"["a"]"#, "x0").await.unwrap_err());
    let feed = FeedRequest { items_max: 10, continuation: None, session: Vec::new() };
    let pass = harness.engine.access().list_documents(&harness.principal, &container, Scope::Container);
    delay(&harness.engine.feed(pass.unwrap(), &feed).await.unwrap_err());
    delay(&query(&harness, &container, Scope::Container).await.unwrap_err());
    harness.ambient.advance_seconds(1);
    harness.read(&container, r#"["a"]"#, "x0").await.unwrap();
    query(&harness, &container, Scope::Container).await.unwrap();
    let (again, _) = fill(&harness, &container, "a", "y").await;
    assert!((48..=80).contains(&again), "{again}");
}

#[tokio::test]
async fn a_hot_partition_does_not_slow_the_others() {
    let harness = enforcing().await;
    let container = harness.container(|_| {}, 12_000).await;
    let [hot, cold] = two_keys(&container);
    let mut refused = None;
    for index in 0..2000 {
        let json = format!(r#"{{"id":"{index}","pk":"{hot}"}}"#);
        refused = harness.create(&container, &json).await.err();
        if refused.is_some() {
            break;
        }
    }
    delay(&refused.expect("a partition has half of the throughput"));
    harness.create(&container, &format!(r#"{{"id":"1","pk":"{cold}"}}"#)).await.unwrap();
    query(&harness, &container, Scope::Key(key(&container, &format!("[\"{cold}\"]")))).await.unwrap();
    // A query over all partitions needs the hot one too.
    delay(&query(&harness, &container, Scope::Container).await.unwrap_err());
}

#[tokio::test]
async fn containers_of_a_database_share_its_throughput() {
    let harness = enforcing().await;
    let throughput = Some(Throughput::manual(400).unwrap());
    let database =
        harness.engine.create_database(harness.admin(Account), "shared", throughput).await.unwrap();
    let mut containers = Vec::new();
    for id in ["one", "two"] {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let definition = ContainerDraft::new(id, key).checked().unwrap();
        let created = harness.engine.create_container(harness.admin(&*database), definition, None).await;
        containers.push(created.unwrap());
    }
    fill(&harness, &containers[0], "a", "x").await;
    let (created, _) = fill(&harness, &containers[1], "a", "x").await;
    assert_eq!(created, 0);
}

#[tokio::test]
async fn a_raised_offer_takes_effect_at_once() {
    let harness = enforcing().await;
    let container = harness.container(|_| {}, 400).await;
    fill(&harness, &container, "a", "x").await;
    let offers = harness
        .engine
        .list_offers(&harness.reader(Account), &engine::ListRequest { items_max: 10, continuation: None });
    let offer = Arc::clone(&offers.unwrap().items[0]);
    let raise = ThroughputChange::To(Throughput::Manual(10_000));
    harness.engine.replace_offer(harness.admin(Account), &offer, raise, &Condition::None).await.unwrap();
    harness.ambient.advance_seconds(1);
    for index in 0..MANY {
        harness.create(&container, &format!(r#"{{"id":"y{index}","pk":"a"}}"#)).await.unwrap();
    }
}

/// Seconds after which housekeeping must have done what it does each second.
const ROUND: Duration = Duration::from_millis(1100);

#[tokio::test(start_paused = true)]
async fn autoscale_serves_up_to_its_maximum_and_says_what_it_used() {
    let harness = enforcing().await;
    let container = scaled_container(&harness, Throughput::autoscale(1000).unwrap()).await;
    assert_eq!(offer(&harness).1, 100);
    assert_eq!(
        metrics(&harness),
        ["throughput 1000", "autoscale_throughput 100", "autoscale_throughput_hour 100"]
    );
    // More than a tenth of the maximum, less than all of it.
    for index in 0..40 {
        harness.create(&container, &format!(r#"{{"id":"{index}","pk":"a"}}"#)).await.unwrap();
    }
    harness.ambient.advance_seconds(1);
    assert_eq!(offer(&harness).1, 206);
    // Then everything: the next request is refused.
    tokio::time::sleep(ROUND).await;
    let mut created = 0;
    let refused = loop {
        match harness.create(&container, &format!(r#"{{"id":"y{created}","pk":"a"}}"#)).await {
            Ok(_) => created += 1,
            Err(fault) => break fault,
        }
        assert!(created < 1000);
    };
    assert!((190..=200).contains(&created) && delay(&refused) < 200, "{created} {refused}");
    harness.ambient.advance_seconds(1);
    assert_eq!(offer(&harness).1, 1000);
    // An idle second later it is scaled down; the hour keeps what was highest.
    harness.ambient.advance_seconds(2);
    assert_eq!(
        metrics(&harness),
        ["throughput 1000", "autoscale_throughput 100", "autoscale_throughput_hour 1000"]
    );
    harness.ambient.advance_seconds(3600);
    assert_eq!(
        metrics(&harness),
        ["throughput 1000", "autoscale_throughput 100", "autoscale_throughput_hour 100"]
    );
}

#[tokio::test]
async fn the_hottest_partition_scales_the_whole_container() {
    let harness = Harness::new().await;
    let container = scaled_container(&harness, Throughput::autoscale(20_000).unwrap()).await;
    let count = container_partitions(&harness, &container);
    assert!(count > 1);
    for index in 0..200 {
        harness.create(&container, &format!(r#"{{"id":"{index}","pk":"a"}}"#)).await.unwrap();
    }
    harness.ambient.advance_seconds(1);
    // 200 creates of 5.14 RU in one of its partitions.
    assert_eq!(offer(&harness).1, 1028 * count);
}

fn container_partitions(harness: &Harness, container: &Container) -> u64 {
    harness.engine.ranges(&harness.reader(container)).ranges.len() as u64
}

#[tokio::test]
async fn a_database_with_autoscale_counts_all_its_containers() {
    let harness = Harness::new().await;
    let autoscale = Some(Throughput::autoscale(4000).unwrap());
    let database = harness.engine.create_database(harness.admin(Account), "shared", autoscale).await.unwrap();
    for id in ["one", "two"] {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let definition = ContainerDraft::new(id, key).checked().unwrap();
        let created = harness.engine.create_container(harness.admin(&*database), definition, None).await;
        let container = created.unwrap();
        for index in 0..100 {
            harness.create(&container, &format!(r#"{{"id":"{index}","pk":"a"}}"#)).await.unwrap();
        }
    }
    harness.ambient.advance_seconds(1);
    assert_eq!(offer(&harness).1, 1028);
    let labelled = "autoscale_throughput_hour{database=\"shared\",container=\"\"} 1028".to_owned();
    assert!(metrics(&harness).contains(&labelled), "{:?}", metrics(&harness));
}

#[tokio::test(start_paused = true)]
async fn autoscale_is_raised_for_what_is_stored() {
    let options = EngineOptions { stored_bytes_per_unit: 10, ..EngineOptions::default() };
    let store = Store::memory(&STORE_SPACES, CommitMode::Thread);
    let harness = Harness::with_options(store, TestAmbient::new(), &[KEY], options).await;
    let autoscale = Throughput::Autoscale { max: 1000, increment_percent: 150 };
    let container = scaled_container(&harness, autoscale).await;
    let before = offer(&harness).0;
    // A hundred units, ten bytes for each, are what a maximum of 1000 allows.
    let text = "x".repeat(900);
    harness.create(&container, &format!(r#"{{"id":"1","pk":"a","text":"{text}"}}"#)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(offer(&harness).0.etag(), before.etag());
    harness
        .create(&container, r#"{"id":"2","pk":"a","text":"more than what is left of the hundred units"}"#)
        .await
        .unwrap();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(61)).await;
        if offer(&harness).0.etag() != before.etag() {
            break;
        }
    }
    // By the increment, in steps of a thousand; the storage alone requires 2000.
    assert_eq!(offer(&harness).0.throughput(), Throughput::Autoscale { max: 3000, increment_percent: 150 });
}

#[tokio::test]
async fn low_priority_is_refused_first() {
    let mut harness = enforcing().await;
    let container = harness.container(|_| {}, 400).await;
    harness.principal = harness.principal.clone().with_priority(Priority::Low);
    let (created, _) = fill(&harness, &container, "a", "x").await;
    assert!((25..=45).contains(&created), "{created}");
    harness.principal = harness.principal.clone().with_priority(Priority::High);
    harness.create(&container, r#"{"id":"y","pk":"a"}"#).await.unwrap();
}

#[tokio::test]
async fn measuring_refuses_nothing() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    for index in 0..MANY {
        harness.create(&container, &format!(r#"{{"id":"{index}","pk":"a"}}"#)).await.unwrap();
    }
}

async fn query(harness: &Harness, container: &Container, scope: Scope) -> Result<usize, Fault> {
    let request = QueryRequest {
        query: Arc::new(lowered("SELECT VALUE c.id FROM c").unwrap()),
        items_max: 1,
        ends_at_ranges: false,
        continuation: None,
        session: Vec::new(),
        text_bytes: 0,
    };
    harness.engine.query(harness.query_pass(container, scope), &request).await.map(|page| page.rows.len())
}

#[tokio::test]
async fn a_paused_partition_refuses_everything_whatever_the_mode() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a"}"#).await.unwrap();
    let time = Duration::from_secs(2);
    harness.engine.pause_partition(&harness.admin(&*container), PartitionOrdinal(0), time).unwrap();
    delay(&harness.read(&container, r#"["a"]"#, "1").await.unwrap_err());
    delay(&query(&harness, &container, Scope::Container).await.unwrap_err());
    harness.ambient.advance_seconds(2);
    assert_eq!(query(&harness, &container, Scope::Container).await, Ok(1));
    assert!(harness.engine.pause_partition(&harness.admin(&*container), PartitionOrdinal(9), time).is_err());
}
