//! Unique keys: once in a logical partition, whatever operation writes them.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{UniqueKey, UniqueKeyPolicy};
use conformance::fixture::create;
use conformance::{Fixture, good, over_both, refused};
use serde_json::{Value, json};

fn item(id: &str, mail: &str) -> Value {
    json!({ "id": id, "pk": "a", "mail": mail })
}

/// A container where each mail is there once, with x and y in it.
async fn strict(f: &Fixture) -> ContainerClient {
    let policy = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/mail"));
    let strict = f.make(|properties| properties.with_unique_key_policy(policy)).await;
    good(201, create(&strict, "a", item("1", "x")).await);
    good(201, create(&strict, "a", item("2", "y")).await);
    strict
}

#[test]
fn equal_values_collide_in_one_partition() {
    over_both(async |f| {
        let strict = strict(f).await;
        refused(409, 0, create(&strict, "a", item("3", "x")).await);
        good(201, create(&strict, "b", json!({ "id": "3", "pk": "b", "mail": "x" })).await);
    });
}

#[test]
fn every_operation_is_held_to_it() {
    over_both(async |f| {
        let strict = strict(f).await;
        refused(409, 0, strict.replace_item("a", "2", item("2", "x"), None).await);
        refused(409, 0, strict.upsert_item("a", "2", item("2", "x"), None).await);
        refused(409, 0, strict.upsert_item("a", "3", item("3", "x"), None).await);
    });
}

#[test]
fn a_value_is_free_again_when_its_item_goes() {
    over_both(async |f| {
        let strict = strict(f).await;
        good(204, strict.delete_item("a", "1", None).await);
        good(201, create(&strict, "a", item("3", "x")).await);
    });
}
