//! Time to live: of the container and of items.

use azure_data_cosmos::models::{ContainerProperties, TimeToLive};
use conformance::check::eventually;
use conformance::fixture::{create, ids, unique};
use conformance::{good, over_both, refused};
use serde_json::json;

#[test]
fn the_default_of_the_container_counts_unless_the_item_says_otherwise() {
    over_both(async |f| {
        let mortal = f.make(|properties| properties.with_default_ttl(1)).await;
        for item in [
            json!({ "id": "short", "pk": "a" }),
            json!({ "id": "ever", "pk": "a", "ttl": -1 }),
            json!({ "id": "long", "pk": "a", "ttl": 1000 }),
        ] {
            good(201, create(&mortal, "a", item).await);
        }
        eventually(async || mortal.read_item("a", "short", None).await.is_err()).await;
        refused(404, 0, mortal.read_item("a", "short", None).await);
        assert_eq!(ids(&mortal).await, ["ever", "long"]);
        good(201, create(&mortal, "a", json!({ "id": "short", "pk": "a" })).await);
    });
}

#[test]
fn an_item_expires_where_the_container_has_no_default() {
    over_both(async |f| {
        let mortal = f.make(|properties| properties.with_default_ttl(TimeToLive::NoDefault)).await;
        good(201, create(&mortal, "a", json!({ "id": "short", "pk": "a", "ttl": 1 })).await);
        good(201, create(&mortal, "a", json!({ "id": "ever", "pk": "a" })).await);
        eventually(async || ids(&mortal).await.len() == 1).await;
        assert_eq!(ids(&mortal).await, ["ever"]);
    });
}

#[test]
fn a_time_to_live_out_of_bounds_is_refused() {
    over_both(async |f| {
        refused(400, 0, create(&f.container, "a", json!({ "id": "1", "pk": "a", "ttl": 0 })).await);
        let properties = ContainerProperties::new(unique("c"), "/pk".into()).with_default_ttl(0);
        refused(400, 0, f.database.create_container(properties, None).await);
    });
}
