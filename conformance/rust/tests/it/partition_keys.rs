//! Partition keys of every type, absent, nested and hierarchical.

use azure_data_cosmos::models::{PartitionKeyDefinition, PartitionKeyVersion};
use azure_data_cosmos::{FeedScope, PartitionKey};
use conformance::fixture::{SHARED, all, create, ids, pages, unique};
use conformance::{good, over_both, plain, refused};
use serde_json::{Value, json};

fn keys() -> Vec<(Value, PartitionKey)> {
    vec![
        (json!("text"), "text".into()),
        (json!(""), "".into()),
        (json!("ünï 🙂"), "ünï 🙂".into()),
        (json!(0), 0.into()),
        (json!(-1), (-1).into()),
        (json!(1.5), 1.5.try_into().unwrap()),
        (json!(true), true.into()),
        (json!(false), false.into()),
        (json!(null), PartitionKey::NULL.into()),
    ]
}

#[test]
fn an_item_is_found_under_its_key() {
    over_both(async |f| {
        for version in [PartitionKeyVersion::V1, PartitionKeyVersion::V2] {
            let container = f.make_keyed(PartitionKeyDefinition::from("/pk").with_version(version)).await;
            for (value, key) in keys() {
                let item = json!({ "id": "1", "pk": value });
                good(201, create(&container, key.clone(), item.clone()).await);
                let read: Value =
                    good(200, container.read_item(key.clone(), "1", None).await).into_model().unwrap();
                assert_eq!(plain(read), item);
                let scope = FeedScope::partition(key);
                assert_eq!(pages(&container, scope, Default::default()).await.concat().len(), 1, "{value}");
            }
            assert_eq!(all(&container).await.len(), keys().len());
        }
    });
}

#[test]
fn an_item_without_a_key_is_not_the_one_with_null() {
    over_both(async |f| {
        let (absent, null) =
            (PartitionKey::from(PartitionKey::UNDEFINED), PartitionKey::from(PartitionKey::NULL));
        good(201, create(&f.container, absent.clone(), json!({ "id": "1", "v": "absent" })).await);
        good(201, create(&f.container, null.clone(), json!({ "id": "1", "pk": null, "v": "null" })).await);
        for (key, v) in [(absent.clone(), "absent"), (null, "null")] {
            let read: Value = good(200, f.container.read_item(key, "1", None).await).into_model().unwrap();
            assert_eq!(read["v"], v);
        }
        good(204, f.container.delete_item(absent, "1", None).await);
        assert_eq!(all(&f.container).await.len(), 1);
    });
}

#[test]
fn nested_and_quoted_paths() {
    over_both(async |f| {
        let nested = f.make_keyed("/address/city").await;
        good(201, create(&nested, "Köln", json!({ "id": "1", "address": { "city": "Köln" } })).await);
        let quoted = f.make_keyed("/\"department name\"").await;
        good(201, create(&quoted, "x", json!({ "id": "1", "department name": "x" })).await);
    });
}

#[test]
fn hierarchical_keys() {
    over_both(async |f| {
        let tenants = f.make_keyed(("/tenant", "/user", "/session")).await;
        for (id, user) in [("a", 1), ("b", 2)] {
            let item = json!({ "id": id, "tenant": "t", "user": user, "session": true });
            good(201, create(&tenants, ("t", user, true), item).await);
        }
        good(200, tenants.read_item(("t", 2, true), "b", None).await);
        refused(404, 0, tenants.read_item(("t", 3, true), "b", None).await);
        good(204, tenants.delete_item(("t", 1, true), "a", None).await);
        assert_eq!(ids(&tenants).await, ["b"]);
    });
}

#[test]
fn a_prefix_of_a_hierarchical_key_lists_what_is_below() {
    over_both(async |f| {
        let tenants = f.make_keyed(("/tenant", "/user")).await;
        for (tenant, user) in [("t", "1"), ("t", "2"), ("u", "1")] {
            let item = json!({ "id": format!("{tenant}{user}"), "tenant": tenant, "user": user });
            good(201, create(&tenants, (tenant, user), item).await);
        }
        let below = pages(&tenants, FeedScope::partition("t"), Default::default()).await.concat();
        let mut below: Vec<&str> = below.iter().map(|item| item["id"].as_str().unwrap()).collect();
        below.sort_unstable();
        assert_eq!(below, ["t1", "t2"]);
    });
}

#[test]
fn a_long_key_is_allowed_and_a_too_long_one_not() {
    over_both(async |f| {
        let item = |key: &str| json!({ "id": "1", "pk": key });
        let (longest, too_long) = ("x".repeat(2048), "x".repeat(2049));
        good(201, create(&f.container, longest.clone(), item(&longest)).await);
        refused(400, 0, create(&f.container, too_long.clone(), item(&too_long)).await);
    });
}

#[test]
fn containers_of_old_clients_need_no_key() {
    over_both(async |f| {
        let name = unique("c");
        let parent = format!("dbs/{}", f.database.name().unwrap());
        SHARED.create_by_hand(&parent, "colls", &json!({ "id": name }));
        let container = f.database.container_client(name, None).await.unwrap();
        let none = PartitionKey::UNDEFINED;
        good(201, create(&container, none.clone(), json!({ "id": "1", "v": 1 })).await);
        good(200, container.upsert_item(none.clone(), "1", json!({ "id": "1", "v": 2 }), None).await);
        let read = container.read_item(none.clone(), "1", None).await.unwrap();
        assert_eq!(plain(read.into_model().unwrap()), json!({ "id": "1", "v": 2 }));
        assert_eq!(ids(&container).await, ["1"]);
        good(204, container.delete_item(none.clone(), "1", None).await);
        refused(404, 0, container.read_item(none, "1", None).await);
    });
}
