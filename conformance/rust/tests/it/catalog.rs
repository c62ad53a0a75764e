//! Databases and containers: create, read, replace, delete, list, and the definitions that come back.

use azure_data_cosmos::clients::DatabaseClient;
use azure_data_cosmos::models::{
    CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties, IndexingMode,
    IndexingPolicy, PartitionKeyDefinition, ThroughputProperties, TimeToLive, UniqueKey, UniqueKeyPolicy,
};
use azure_data_cosmos::options::CreateContainerOptions;
use azure_data_cosmos::{CosmosClient, Query};
use conformance::check::common;
use conformance::fixture::{create, ids, unique};
use conformance::{good, over_both, refused};
use futures::TryStreamExt;
use serde_json::json;

async fn database_names(client: &CosmosClient) -> Vec<String> {
    let found = client.query_databases(Query::from("SELECT * FROM c"), None).await.unwrap();
    found.map_ok(|found| found.id.unwrap()).try_collect().await.unwrap()
}

async fn container_names(database: &DatabaseClient) -> azure_data_cosmos::Result<Vec<String>> {
    let found = database.query_containers(Query::from("SELECT * FROM c"), None).await?;
    let mut names: Vec<String> = found.map_ok(|found| found.id.to_string()).try_collect().await?;
    names.sort();
    Ok(names)
}

#[test]
fn a_database_is_created_read_listed_and_deleted() {
    over_both(async |f| {
        let name = unique("db");
        let created = f.client.create_database(&name, None).await.unwrap();
        assert_eq!(u16::from(created.status().status_code()), 201);
        common(created.headers());
        let created = created.into_model().unwrap();
        let database = f.client.database_client(name.clone());
        let read = database.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(read.id.as_deref(), Some(name.as_str()));
        assert_eq!(read.system_properties.resource_id, created.system_properties.resource_id);
        let rid = read.system_properties.resource_id.unwrap();
        assert_eq!(read.system_properties.self_link.unwrap(), format!("dbs/{rid}/"));
        assert!(database_names(&f.client).await.contains(&name));
        database.delete(None).await.unwrap();
        refused(404, 0, database.read(None).await);
        refused(404, 0, database.delete(None).await);
        assert!(!database_names(&f.client).await.contains(&name));
    });
}

#[test]
fn a_second_database_of_a_name_is_a_conflict() {
    over_both(async |f| {
        refused(409, 0, f.client.create_database(f.database.name().unwrap(), None).await);
    });
}

#[test]
fn names_may_have_unusual_characters() {
    over_both(async |f| {
        for name in ["ünïcödé 数据库", "with space", "a+b", "100%", "a&b=c", "q'uote\"d", "dots.and~tildes"]
        {
            let name = format!("{name}{}", unique(""));
            f.client.create_database(&name, None).await.unwrap();
            let database = f.client.database_client(name.clone());
            let properties = ContainerProperties::new(name.clone(), "/pk".into());
            database.create_container(properties, None).await.unwrap();
            let container = database.container_client(name.clone(), None).await.unwrap();
            good(201, create(&container, "a", json!({ "id": "1", "pk": "a" })).await);
            assert_eq!(container_names(&database).await.unwrap(), [name]);
            database.delete(None).await.unwrap();
        }
    });
}

#[test]
fn forbidden_names_are_refused() {
    over_both(async |f| {
        for name in ["a/b", "a?b", "a#b", "space at the end ", &"n".repeat(256)] {
            refused(400, 0, f.client.create_database(name, None).await);
        }
    });
}

#[test]
fn a_container_has_the_defaults_of_the_service() {
    over_both(async |f| {
        let read = f.container.read(None).await.unwrap();
        common(read.headers());
        let properties = read.into_model().unwrap();
        assert_eq!(properties.partition_key, PartitionKeyDefinition::from("/pk"));
        let indexing = properties.indexing_policy.unwrap();
        assert!(indexing.automatic && indexing.indexing_mode == Some(IndexingMode::Consistent));
        assert_eq!(indexing.included_paths[0].path, "/*");
        assert_eq!(indexing.excluded_paths[0].path, "/\"_etag\"/?");
        assert_eq!(properties.conflict_resolution_policy.unwrap().resolution_path, "/_ts");
        assert_eq!(properties.default_ttl, TimeToLive::Forever);
        f.container.delete(None).await.unwrap();
        refused(404, 0, f.container.read(None).await);
        refused(404, 0, f.container.delete(None).await);
    });
}

#[test]
fn a_second_container_of_a_name_is_a_conflict() {
    over_both(async |f| {
        let name = f.container.read(None).await.unwrap().into_model().unwrap().id;
        let again = ContainerProperties::new(name, "/other".into());
        refused(409, 0, f.database.create_container(again, None).await);
    });
}

#[test]
fn policies_come_back_as_they_were_given() {
    over_both(async |f| {
        let composite = CompositeIndex::default()
            .with_property(CompositeIndexProperty::new("/a", CompositeIndexOrder::Ascending))
            .with_property(CompositeIndexProperty::new("/b", CompositeIndexOrder::Descending));
        let indexing = IndexingPolicy::default()
            .with_indexing_mode(IndexingMode::Consistent)
            .with_included_path("/*")
            .with_excluded_path("/big/*")
            .with_composite_index(composite.clone());
        let unique_keys = UniqueKeyPolicy::default()
            .with_unique_key(UniqueKey::default().with_path("/a").with_path("/b/c"));
        let container = f.make(|properties| {
            properties
                .with_indexing_policy(indexing)
                .with_unique_key_policy(unique_keys.clone())
                .with_default_ttl(3600)
        });
        let kept = container.await.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(kept.default_ttl, TimeToLive::Seconds(3600));
        assert_eq!(kept.unique_key_policy.unwrap(), unique_keys);
        assert_eq!(kept.indexing_policy.unwrap().composite_indexes, [composite]);
    });
}

#[test]
fn replace_changes_policies_and_keeps_the_items() {
    over_both(async |f| {
        f.create(json!({ "id": "1", "pk": "a" })).await;
        let before = f.container.read(None).await.unwrap().into_model().unwrap();
        let changed = before.clone().with_default_ttl(TimeToLive::NoDefault);
        let after = f.container.replace(changed, None).await.unwrap().into_model().unwrap();
        assert_eq!(after.default_ttl, TimeToLive::NoDefault);
        assert_eq!(after.system_properties.resource_id, before.system_properties.resource_id);
        assert_ne!(after.system_properties.etag, before.system_properties.etag);
        assert_eq!(ids(&f.container).await, ["1"]);
        let other = ContainerProperties::new(after.id.clone(), "/other".into());
        refused(400, 0, f.container.replace(other, None).await);
    });
}

#[test]
fn containers_are_listed() {
    over_both(async |f| {
        let mut expected = container_names(&f.database).await.unwrap();
        assert_eq!(expected.len(), 1);
        for _ in 0..3 {
            let made = f.make(|properties| properties).await;
            expected.push(made.read(None).await.unwrap().into_model().unwrap().id.to_string());
        }
        expected.sort();
        assert_eq!(container_names(&f.database).await.unwrap(), expected);
    });
}

#[test]
fn what_is_in_a_missing_database_is_404() {
    over_both(async |f| {
        let missing = f.client.database_client(unique("none"));
        refused(404, 0, missing.read(None).await);
        let properties = ContainerProperties::new("c", "/pk".into());
        refused(404, 1003, missing.create_container(properties, None).await);
        refused(404, 1003, container_names(&missing).await);
        // The client of a container reads it at once.
        assert!(missing.container_client("c", None).await.is_err());
    });
}

#[test]
fn more_throughput_makes_more_ranges() {
    over_both(async |f| {
        let name = unique("c");
        let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(18_000));
        let properties = ContainerProperties::new(name.clone(), "/pk".into());
        f.database.create_container(properties, Some(options)).await.unwrap();
        let wide = f.database.container_client(name, None).await.unwrap();
        assert_eq!(wide.read_feed_ranges(None).await.unwrap().len(), 3);
        assert_eq!(f.container.read_feed_ranges(None).await.unwrap().len(), 1);
        for number in 0..30 {
            let (id, key) = (number.to_string(), format!("key-{number}"));
            good(201, create(&wide, key.clone(), json!({ "id": id, "pk": key })).await);
        }
        assert_eq!(ids(&wide).await.len(), 30);
    });
}

#[test]
fn throughput_is_checked() {
    over_both(async |f| {
        for wrong in [399, 450] {
            let options =
                CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(wrong));
            let properties = ContainerProperties::new(unique("c"), "/pk".into());
            refused(400, 0, f.database.create_container(properties, Some(options)).await);
        }
    });
}

#[test]
fn resources_are_found_by_their_rid() {
    use azure_data_cosmos::ResourceId;
    over_both(async |f| {
        f.create(json!({ "id": "1", "pk": "a" })).await;
        let database = f.database.read(None).await.unwrap().into_model().unwrap();
        let container = f.container.read(None).await.unwrap().into_model().unwrap();
        let rid = |properties: &azure_data_cosmos::models::SystemProperties| {
            ResourceId::from(properties.resource_id.clone().unwrap())
        };
        let by_rid = f.client.database_client(rid(&database.system_properties));
        assert_eq!(by_rid.read(None).await.unwrap().into_model().unwrap().id, database.id);
        let by_rid = by_rid.container_client(rid(&container.system_properties), None).await.unwrap();
        assert_eq!(ids(&by_rid).await, ["1"]);
    });
}
