//! The walk-throughs of the articles about partitioning: the data and the answers that the suites of all languages
//! share, and which partitions a request reaches.

use crate::fixture::unique;
use crate::server::Server;
use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::CreateContainerOptions;
use serde_json::Value;
use std::ops::Deref;
use std::sync::LazyLock;

/// The shared file.
pub static WALK: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../partitioning.json")).unwrap());

/// The texts of an array.
pub fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// A container, and what the server's own figures tell about it.
pub struct Observed<'a> {
    server: &'a Server,
    database: String,
    name: String,
    client: ContainerClient,
}

impl<'a> Observed<'a> {
    /// A new container with a throughput of its own, or without one.
    pub async fn make(
        server: &'a Server,
        database: &DatabaseClient,
        key: impl Into<PartitionKeyDefinition>,
        throughput: Option<u64>,
    ) -> Observed<'a> {
        let name = unique("c");
        let mut options = CreateContainerOptions::default();
        if let Some(throughput) = throughput {
            options = options.with_throughput(ThroughputProperties::manual(throughput));
        }
        let properties = ContainerProperties::new(name.clone(), key.into());
        database.create_container(properties, Some(options)).await.unwrap();
        let client = database.container_client(name.clone(), None).await.unwrap();
        Observed { server, database: database.name().unwrap().to_owned(), name, client }
    }

    /// Its physical partitions.
    pub fn partitions(&self) -> Vec<Value> {
        self.server.partitions(&self.database, &self.name)
    }

    /// The partitions that had requests while a future ran.
    pub async fn reached(&self, call: impl Future<Output = ()>) -> Vec<String> {
        let before = self.server.requests_by_partition(&self.database, &self.name);
        call.await;
        let mut after = self.server.requests_by_partition(&self.database, &self.name);
        after.retain(|id, count| *count > before.get(id).copied().unwrap_or(0));
        after.into_keys().collect()
    }

    /// Checks how many partitions have requests while a future runs.
    pub async fn reaches(&self, count: u64, call: impl Future<Output = ()>) {
        let reached = self.reached(call).await;
        assert_eq!(reached.len() as u64, count, "{reached:?}");
    }
}

impl Deref for Observed<'_> {
    type Target = ContainerClient;

    fn deref(&self) -> &ContainerClient {
        &self.client
    }
}
