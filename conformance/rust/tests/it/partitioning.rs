//! The walk-throughs of the articles about partitioning: what is stored where, which partitions a query reaches. The
//! data and the answers are shared with the suites of the other languages. Partitions are counted by the server's
//! metrics. This SDK has aggregates only in the scope of a key, has no degree of parallelism and creates no database
//! with throughput.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use azure_data_cosmos::{FeedScope, TransactionalBatch};
use conformance::fixture::{SHARED, create, ids, unique};
use conformance::walk::{Observed, WALK, texts};
use conformance::{Fixture, good, over_both, refused};
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

fn throughput(walk: &Value) -> Option<u64> {
    walk["throughput"].as_u64()
}

async fn make(
    f: &Fixture,
    key: impl Into<PartitionKeyDefinition>,
    throughput: Option<u64>,
) -> Observed<'static> {
    Observed::make(&SHARED, &f.database, key, throughput).await
}

async fn fill(container: &ContainerClient) {
    for reading in WALK["telemetry"]["readings"].as_array().unwrap() {
        let device = reading["deviceId"].as_str().unwrap().to_owned();
        good(201, create(container, device, reading.clone()).await);
    }
}

/// A container with the readings.
async fn telemetry(f: &Fixture) -> Observed<'static> {
    let walk = &WALK["telemetry"];
    let container = make(f, walk["partitionKey"].as_str().unwrap(), throughput(walk)).await;
    fill(&container).await;
    container
}

async fn rows(container: &ContainerClient, query: &str, scope: FeedScope, size: u32) -> Vec<Value> {
    let size = MaxItemCountHint::Limit(size.try_into().unwrap());
    let options = QueryOptions::default().with_max_item_count(size);
    let query = container.query_items::<Value>(query.to_owned(), scope, Some(options)).await.unwrap();
    query.try_collect().await.unwrap()
}

fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(Value::to_string);
    rows
}

#[test]
fn throughput_decides_the_number_of_partitions() {
    over_both(async |f| {
        let walk = &WALK["telemetry"];
        let container = telemetry(f).await;
        let count = walk["partitions"].as_u64().unwrap() as usize;
        assert_eq!(container.read_feed_ranges(None).await.unwrap().len(), count);
        let partitions = container.partitions();
        let documents: Vec<u64> =
            partitions.iter().map(|found| found["documents"].as_u64().unwrap()).collect();
        assert_eq!(documents.len(), count);
        assert!(!documents.contains(&0));
        assert_eq!(documents.iter().sum::<u64>(), walk["readings"].as_array().unwrap().len() as u64);
    });
}

#[test]
fn a_reading_is_found_by_its_device() {
    over_both(async |f| {
        let container = telemetry(f).await;
        let mut reading = WALK["telemetry"]["reading"].clone();
        let (id, device) =
            (reading["id"].as_str().unwrap().to_owned(), reading["deviceId"].as_str().unwrap().to_owned());
        let read = async || -> Value {
            container.read_item(device.clone(), &id, None).await.unwrap().into_model().unwrap()
        };
        container
            .reaches(1, async {
                good(201, create(&container, device.clone(), reading.clone()).await);
                assert_eq!(read().await["metricValue"], 105);
                reading["metricValue"] = json!(104);
                good(200, container.replace_item(device.clone(), &id, reading, None).await);
                assert_eq!(read().await["metricValue"], 104);
                good(204, container.delete_item(device.clone(), &id, None).await);
            })
            .await;
        refused(404, 0, container.read_item(device.clone(), &id, None).await);
    });
}

#[test]
fn a_filter_on_the_key_reaches_one_partition() {
    over_both(async |f| {
        let container = telemetry(f).await;
        for walk in WALK["telemetry"]["queries"].as_array().unwrap() {
            let text = walk["text"].as_str().unwrap();
            let key = walk["key"].as_str();
            if key.is_none() && walk["isAggregate"] == true {
                continue;
            }
            for size in [3, 100] {
                let scope =
                    key.map_or_else(FeedScope::full_container, |key| FeedScope::partition(key.to_owned()));
                container
                    .reaches(walk["reaches"].as_u64().unwrap(), async {
                        let mut found = rows(&container, text, scope, size).await;
                        if walk["isOrdered"] == false {
                            found = sorted(found);
                        }
                        assert_eq!(json!(found), walk["expected"], "{text}");
                    })
                    .await;
            }
        }
    });
}

#[test]
fn raised_throughput_splits_each_partition_twice() {
    over_both(async |f| {
        let walk = &WALK["raise"];
        let figure = |name: &str| walk[name].as_u64().unwrap();
        let raise = async || {
            let container = make(f, "/deviceId", Some(figure("from"))).await;
            fill(&container).await;
            assert_eq!(container.partitions().len(), 1);
            let wanted = ThroughputProperties::manual(figure("to"));
            // One answer, and another for each time that the SDK asks again.
            let answers = container.begin_replace_throughput(wanted, None).await.unwrap().count().await;
            let read = container.read_throughput(None).await.unwrap().unwrap();
            assert_eq!(read.throughput(), Some(figure("to")));
            let partitions = container.partitions();
            assert_eq!(partitions.len() as u64, figure("partitions"));
            let generations = |partition: &Value| partition["parents"].as_array().unwrap().len() as u64;
            assert!(partitions.iter().all(|partition| generations(partition) == figure("generations")));
            assert_eq!(ids(&container).await.len(), WALK["telemetry"]["readings"].as_array().unwrap().len());
            answers
        };
        let answers = join_all((0..figure("containers")).map(|_| raise())).await;
        // One of several, since a fast server may be ready before it answers.
        assert!(answers.iter().any(|&answers| answers > 1), "no change was pending");
    });
}

#[test]
fn a_synthetic_key_spreads_a_device_over_days() {
    over_both(async |f| {
        let walk = &WALK["synthetic"];
        let container = make(f, walk["partitionKey"].as_str().unwrap(), throughput(walk)).await;
        let (devices, dates) = (texts(&walk["devices"]), texts(&walk["dates"]));
        for device in &devices {
            for date in &dates {
                let key = format!("{device}-{date}");
                let item = json!({ "id": "1", "deviceId": device, "date": date, "partitionKey": key });
                good(201, create(&container, key, item).await);
            }
        }
        let key = format!("{}-{}", devices[0], dates[0]);
        container
            .reaches(1, async {
                good(200, container.read_item(key.clone(), "1", None).await);
                let scope = FeedScope::partition(key.clone());
                assert_eq!(rows(&container, "SELECT VALUE c.date FROM c", scope, 10).await, [dates[0]]);
            })
            .await;
        container
            .reaches(4, async {
                let query =
                    format!("SELECT VALUE c.date FROM c WHERE c.deviceId = '{}' ORDER BY c.date", devices[0]);
                assert_eq!(rows(&container, &query, FeedScope::full_container(), 3).await, dates);
            })
            .await;
    });
}

#[test]
fn tenants_share_a_container() {
    over_both(async |f| {
        let walk = &WALK["tenants"];
        let container = make(f, walk["partitionKey"].as_str().unwrap(), throughput(walk)).await;
        let names = texts(&walk["names"]);
        for &tenant in &names {
            let item = |id: &str| json!({ "id": id, "tenantId": tenant, "owner": tenant });
            let batch = TransactionalBatch::new(tenant.to_owned()).create_item(item("profile")).unwrap();
            let batch = batch.create_item(item("settings")).unwrap();
            container.execute_transactional_batch(batch, None).await.unwrap();
        }
        let (first, second) = (names[0].to_owned(), names[1].to_owned());
        container
            .reaches(1, async {
                let scope = FeedScope::partition(first.clone());
                assert_eq!(rows(&container, "SELECT VALUE COUNT(1) FROM c", scope, 10).await, [2]);
            })
            .await;
        let batch = TransactionalBatch::new(first.clone()).delete_item("profile", None);
        let batch = batch.create_item(json!({ "id": "settings", "tenantId": first })).unwrap();
        let answer = container.execute_transactional_batch(batch, None).await.unwrap().into_model().unwrap();
        let statuses: Vec<u16> = answer.results().iter().map(|result| result.status_code()).collect();
        assert_eq!(statuses, [424, 409]);
        good(204, container.delete_item(first, "profile", None).await);
        good(200, container.read_item(second, "profile", None).await);
        container
            .reaches(4, async {
                let found =
                    rows(&container, "SELECT VALUE c.owner FROM c", FeedScope::full_container(), 10).await;
                assert_eq!(found.len(), 2 * names.len() - 1);
            })
            .await;
    });
}

#[test]
fn a_large_tenant_has_a_container_of_its_own() {
    over_both(async |f| {
        let small = make(f, "/id", Some(400)).await;
        let large = make(f, "/id", Some(20_000)).await;
        assert_eq!(small.partitions().len(), 1);
        assert_eq!(large.partitions().len(), 4);
        good(201, create(&small, "1", json!({ "id": "1" })).await);
        large
            .reaches(0, async {
                assert_eq!(ids(&small).await, ["1"]);
                let wanted = ThroughputProperties::manual(500);
                small.begin_replace_throughput(wanted, None).await.unwrap().await.unwrap();
            })
            .await;
        assert!(ids(&large).await.is_empty());
        assert_eq!(large.read_throughput(None).await.unwrap().unwrap().throughput(), Some(20_000));
    });
}

#[test]
fn prefixes_of_hierarchical_keys_reach_one_partition() {
    over_both(async |f| {
        let walk = &WALK["hierarchical"];
        let [tenant_path, user_path, session_path] = texts(&walk["partitionKeys"])[..] else {
            panic!("three paths");
        };
        let container = make(f, (tenant_path, user_path, session_path), throughput(walk)).await;
        let tenants = texts(&walk["tenants"]);
        for &tenant in &tenants {
            for &user in &texts(&walk["users"]) {
                for &session in &texts(&walk["sessions"]) {
                    let id = format!("{user}{session}");
                    let item = json!({ "id": id, "tenantId": tenant, "userId": user, "sessionId": session });
                    let key = (tenant.to_owned(), user.to_owned(), session.to_owned());
                    good(201, create(&container, key, item).await);
                }
            }
        }
        let (tenant, user, session) = (tenants[0].to_owned(), "u1", "s1");
        let below = async |scope| sorted(rows(&container, "SELECT VALUE c.id FROM c", scope, 3).await);
        container
            .reaches(1, async {
                good(200, container.read_item((tenant.clone(), user, session), "u1s1", None).await);
                let found = below(FeedScope::partition(tenant.clone())).await;
                assert_eq!(found, ["u1s1", "u1s2", "u2s1", "u2s2"]);
                assert_eq!(below(FeedScope::partition((tenant.clone(), user))).await, ["u1s1", "u1s2"]);
                assert_eq!(below(FeedScope::partition((tenant.clone(), user, session))).await, ["u1s1"]);
            })
            .await;
        container
            .reaches(4, async {
                let query = "SELECT VALUE c.id FROM c WHERE c.userId = 'u1'";
                let found = rows(&container, query, FeedScope::full_container(), 10).await;
                assert_eq!(found.len(), 2 * tenants.len());
            })
            .await;
    });
}

#[test]
fn containers_share_the_throughput_of_a_database() {
    over_both(async |f| {
        let rate = throughput(&WALK["shared"]);
        let name = unique("db");
        SHARED.create_sharing_database(&name, rate.unwrap());
        let database = f.client.database_client(name);
        let sharing = Observed::make(&SHARED, &database, "/pk", None).await;
        let own = Observed::make(&SHARED, &database, "/pk", rate).await;
        assert_eq!(sharing.partitions().len(), 1);
        assert_eq!(own.partitions().len(), 4);
        assert_eq!(database.read_throughput(None).await.unwrap().unwrap().throughput(), rate);
        assert!(sharing.read_throughput(None).await.unwrap().is_none());
        database.delete(None).await.unwrap();
    });
}
