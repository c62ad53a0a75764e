//! Keys of an account that write, that only read, that change; and tokens of an identity provider.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, TransactionalBatch};
use azure_data_cosmos::{CosmosClient, CosmosError};
use conformance::check::eventually;
use conformance::fixture::{RUNTIME, create, ids};
use conformance::issuer::Issuer;
use conformance::server::{KEY, Server};
use conformance::{good, refused};
use futures::TryStreamExt;
use serde_json::{Value, json};

fn over_schemes(test: impl AsyncFn(&'static str)) {
    for scheme in ["http", "https"] {
        RUNTIME.block_on(test(scheme));
    }
}

fn item() -> Value {
    json!({ "id": "1", "pk": "a" })
}

async fn fill(client: &CosmosClient) {
    client.create_database("db", None).await.unwrap();
    let properties = ContainerProperties::new("c", "/pk".into());
    client.database_client("db").create_container(properties, None).await.unwrap();
    good(201, create(&container(client).await, "a", item()).await);
}

async fn container(client: &CosmosClient) -> ContainerClient {
    client.database_client("db").container_client("c", None).await.unwrap()
}

/// The refusal that a new client meets at the latest when it opens the container.
async fn refusal(client: azure_data_cosmos::Result<CosmosClient>) -> CosmosError {
    match client {
        Err(error) => error,
        Ok(client) => client.database_client("db").container_client("c", None).await.err().unwrap(),
    }
}

fn pair(error: &CosmosError) -> (u16, u32) {
    let status = error.status();
    (u16::from(status.status_code()), status.sub_status().map_or(0, |substatus| u32::from(substatus.value())))
}

#[test]
fn read_only_keys_read_and_do_not_write() {
    over_schemes(async |scheme| {
        let server = Server::start_in("serve", &[]);
        let with = async |name| server.client_with_key(scheme, &server.keys("show", name)).await.unwrap();
        fill(&with("primary").await).await;
        for name in ["primary-readonly", "secondary-readonly"] {
            let client = with(name).await;
            let items = container(&client).await;
            good(200, items.read_item("a", "1", None).await);
            assert_eq!(ids(&items).await, ["1"]);
            refused(403, 0, items.upsert_item("a", "1", item(), None).await);
            refused(403, 0, items.delete_item("a", "1", None).await);
            let batch = TransactionalBatch::new("a").upsert_item(item(), None).unwrap();
            refused(403, 0, items.execute_transactional_batch(batch, None).await);
            refused(403, 0, client.create_database("other", None).await);
            refused(403, 0, items.delete(None).await);
        }
        good(200, container(&with("secondary").await).await.upsert_item("a", "1", item(), None).await);
        // The key that everybody knows opens nothing here.
        assert_eq!(pair(&refusal(server.client_with_key(scheme, KEY).await).await).0, 401);
    });
}

#[test]
fn a_rotated_key_is_refused_and_the_other_goes_on() {
    over_schemes(async |scheme| {
        let server = Server::start_in("serve", &[]);
        let with = async |name| server.client_with_key(scheme, &server.keys("show", name)).await.unwrap();
        let leaves = with("primary").await;
        fill(&leaves).await;
        let (leaves, stays) = (container(&leaves).await, container(&with("secondary").await).await);
        server.keys("rotate", "primary");
        eventually(async || {
            good(200, stays.read_item("a", "1", None).await);
            leaves.read_item("a", "1", None).await.is_err_and(|error| pair(&error).0 == 401)
        })
        .await;
        good(200, container(&with("primary").await).await.upsert_item("a", "1", item(), None).await);
    });
}

#[test]
fn tokens_have_the_rights_of_their_holder() {
    over_schemes(async |scheme| {
        let issuer = Issuer::new();
        let folder = tempfile::tempdir().unwrap();
        let roles = r#"{ principal = "reader", role = "reader", scope = "/dbs/db" },
                       { principal = "writer", role = "contributor", scope = "/dbs/db/colls/c" }"#;
        let settings = issuer.settings(&folder, roles);
        let server = Server::start_in("dev", &["--identity", settings.to_str().unwrap()]);
        fill(&server.client(scheme).await).await;
        for principal in ["reader", "writer"] {
            let client = server.client_with_tokens(scheme, issuer.credential(principal)).await.unwrap();
            let items = container(&client).await;
            good(200, items.read_item("a", "1", None).await);
            assert_eq!(ids(&items).await, ["1"]);
            refused(403, 5300, client.create_database("other", None).await);
            let databases = client.query_databases("SELECT * FROM c", None).await.unwrap();
            refused(403, 5301, databases.try_collect::<Vec<_>>().await);
            let written = items.upsert_item("a", "1", item(), None).await;
            if principal == "writer" {
                good(200, written);
            } else {
                refused(403, 5302, written);
            }
        }
        let nobody = server.client_with_tokens(scheme, issuer.credential("nobody")).await;
        assert_eq!(pair(&refusal(nobody).await), (403, 5301));
        let foreign = server.client_with_tokens(scheme, Issuer::new().credential("reader")).await;
        assert_eq!(pair(&refusal(foreign).await), (401, 5004));
    });
}
