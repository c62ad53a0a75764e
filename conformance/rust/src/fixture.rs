//! What most tests start with: the shared server over both schemes, a database and an empty container.

use crate::server::Server;
use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, ItemResponse, PartitionKeyDefinition};
use azure_data_cosmos::options::{ContentResponseOnWrite, ItemWriteOptions, OperationOptions, QueryOptions};
use azure_data_cosmos::{CosmosClient, FeedScope, PartitionKey};
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Runtime;

/// One runtime for all tests: the SDK keeps connections beyond a client's end, and they live on the runtime that
/// opened them.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The server of all tests that neither stop it nor count what is in it.
pub static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start_new().end_with_this_process());

/// A name that no other test uses.
pub fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub struct Fixture {
    pub scheme: &'static str,
    pub client: CosmosClient,
    pub database: DatabaseClient,
    /// An empty container with the key path /pk.
    pub container: ContainerClient,
}

/// Runs a test over plain HTTP and over TLS.
pub fn over_both(test: impl AsyncFn(&Fixture)) {
    for scheme in ["http", "https"] {
        RUNTIME.block_on(async {
            let fixture = Fixture::new(&SHARED, scheme).await;
            test(&fixture).await;
            fixture.database.delete(None).await.unwrap();
        });
    }
}

impl Fixture {
    pub async fn new(server: &Server, scheme: &'static str) -> Fixture {
        let client = server.client(scheme).await;
        let name = unique("db");
        client.create_database(&name, None).await.unwrap();
        let database = client.database_client(name);
        let container = make_in(&database, ContainerProperties::new(unique("c"), "/pk".into())).await;
        Fixture { scheme, client, database, container }
    }

    /// A container with the key path /pk and what `change` adds.
    pub async fn make(
        &self,
        change: impl FnOnce(ContainerProperties) -> ContainerProperties,
    ) -> ContainerClient {
        make_in(&self.database, change(ContainerProperties::new(unique("c"), "/pk".into()))).await
    }

    pub async fn make_keyed(&self, key: impl Into<PartitionKeyDefinition>) -> ContainerClient {
        make_in(&self.database, ContainerProperties::new(unique("c"), key.into())).await
    }

    /// Creates an item under the key "a".
    pub async fn create(&self, item: Value) -> ItemResponse {
        create(&self.container, "a", item).await.unwrap()
    }

    pub async fn read(&self, id: &str) -> azure_data_cosmos::Result<Value> {
        self.container.read_item("a", id, None).await?.into_model()
    }
}

async fn make_in(database: &DatabaseClient, properties: ContainerProperties) -> ContainerClient {
    let name = properties.id.to_string();
    database.create_container(properties, None).await.unwrap();
    database.container_client(name, None).await.unwrap()
}

/// Creates an item and asks for it in the answer.
pub async fn create(
    container: &ContainerClient,
    key: impl Into<PartitionKey>,
    item: Value,
) -> azure_data_cosmos::Result<ItemResponse> {
    let id = item["id"].as_str().unwrap().to_owned();
    container.create_item(key, &id, item, Some(with_content())).await
}

/// Options of a write whose answer carries the item; the SDK leaves it out by default.
pub fn with_content() -> ItemWriteOptions {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    ItemWriteOptions::default().with_operation_options(operation)
}

/// The pages of the query for everything.
pub async fn pages(container: &ContainerClient, scope: FeedScope, options: QueryOptions) -> Vec<Vec<Value>> {
    let query = container.query_items::<Value>("SELECT * FROM c", scope, Some(options)).await.unwrap();
    query.into_pages().map(|page| page.unwrap().into_items()).collect().await
}

/// All items.
pub async fn all(container: &ContainerClient) -> Vec<Value> {
    let query =
        container.query_items::<Value>("SELECT * FROM c", FeedScope::full_container(), None).await.unwrap();
    query.try_collect().await.unwrap()
}

/// The ids of all items, in order of their text.
pub async fn ids(container: &ContainerClient) -> Vec<String> {
    let mut ids: Vec<String> =
        all(container).await.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}
