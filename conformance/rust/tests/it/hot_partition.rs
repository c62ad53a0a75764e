//! Throughput that is enforced: a hot partition is throttled alone, and the retries of the SDK carry a client through.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::options::{ItemWriteOptions, OperationOptions, ThrottlingRetryOptions};
use conformance::fixture::{RUNTIME, create, unique};
use conformance::server::Server;
use conformance::walk::{Observed, WALK, texts};
use conformance::{good, refused};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn start() -> Server {
    Server::start_in("dev", &texts(&WALK["hot"]["flags"]))
}

fn number(name: &str) -> u64 {
    WALK["hot"][name].as_u64().unwrap()
}

/// Creates an item and does not retry.
async fn create_once(
    container: &ContainerClient,
    device: &str,
    item: Value,
) -> azure_data_cosmos::Result<()> {
    let mut retries = ThrottlingRetryOptions::default();
    retries.max_retry_count = Some(0);
    let mut operation = OperationOptions::default();
    operation.throttling_retry_options = Some(retries);
    let options = ItemWriteOptions::default().with_operation_options(operation);
    let id = item["id"].as_str().unwrap().to_owned();
    container.create_item(device.to_owned(), &id, item, Some(options)).await.map(|_| ())
}

/// An item with many indexed values, which is expensive to write.
fn large(device: &str, values: &str) -> Value {
    json!({ "id": "large", "deviceId": device, "values": (0..number(values)).collect::<Vec<_>>() })
}

/// The partitions that have refused requests, and how many.
fn throttled(container: &Observed<'_>) -> BTreeMap<String, u64> {
    let count = |partition: Value| {
        (partition["id"].as_str().unwrap().to_owned(), partition["throttledRequests"].as_u64().unwrap())
    };
    container.partitions().into_iter().map(count).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_hot_partition_throttles_itself_only() {
    let server = start();
    RUNTIME.block_on(async {
        let client = server.client("http").await;
        let database = unique("db");
        client.create_database(&database, None).await.unwrap();
        let database = client.database_client(database);
        let container = Observed::make(&server, &database, "/deviceId", Some(number("throughput"))).await;
        let readings = WALK["telemetry"]["readings"].as_array().unwrap();
        let devices: BTreeSet<&str> =
            readings.iter().map(|reading| reading["deviceId"].as_str().unwrap()).collect();
        let mut home = BTreeMap::new();
        for &device in &devices {
            let reached = container.reached(async {
                create_once(&container, device, json!({ "id": "1", "deviceId": device })).await.unwrap();
            });
            let [partition] = <[String; 1]>::try_from(reached.await).unwrap();
            home.insert(device, partition);
        }
        assert_eq!(home.values().collect::<BTreeSet<_>>().len() as u64, number("partitions"));
        let hot = *devices.first().unwrap();
        create_once(&container, hot, large(hot, "values")).await.unwrap();
        refused(429, 3200, create_once(&container, hot, json!({ "id": "2", "deviceId": hot })).await);
        let before = throttled(&container);
        let patient = async {
            for number in 0..3 {
                let item = json!({ "id": format!("patient{number}"), "deviceId": hot });
                good(201, create(&container, hot, item).await);
            }
        };
        let others = async {
            for &device in devices.iter().filter(|device| home[*device] != home[hot]) {
                create_once(&container, device, json!({ "id": "2", "deviceId": device })).await.unwrap();
            }
        };
        futures::join!(patient, others);
        let after = throttled(&container);
        assert_eq!(after.keys().collect::<Vec<_>>(), [&home[hot]]);
        assert!(after[&home[hot]] > before[&home[hot]], "the patient client was refused, too");
    });
}

#[test]
fn containers_share_an_enforced_throughput() {
    let server = start();
    RUNTIME.block_on(async {
        let name = unique("db");
        server.create_sharing_database(&name, number("throughput"));
        let database = server.client("http").await.database_client(name);
        let one = Observed::make(&server, &database, "/deviceId", None).await;
        let two = Observed::make(&server, &database, "/deviceId", None).await;
        let own = Observed::make(&server, &database, "/deviceId", Some(400)).await;
        create_once(&one, "a", large("a", "sharedValues")).await.unwrap();
        refused(429, 3200, create_once(&two, "b", json!({ "id": "1", "deviceId": "b" })).await);
        let patient = create(&two, "b", json!({ "id": "patient", "deviceId": "b" }));
        let (patient, other) =
            futures::join!(patient, create_once(&own, "b", json!({ "id": "1", "deviceId": "b" })));
        good(201, patient);
        other.unwrap();
    });
}
