//! Items one by one: create, read, replace, upsert, delete, and what comes back.

use azure_data_cosmos::options::BinaryEncodingOptions;
use conformance::fixture::{SHARED, create, ids, with_content};
use conformance::server::{KEY, stranger};
use conformance::{good, over_both, plain, refused};
use serde_json::{Value, json};

#[test]
fn an_item_is_created_read_replaced_upserted_and_deleted() {
    over_both(async |f| {
        let item = json!({ "id": "1", "pk": "a", "v": 1 });
        let created: Value = good(201, create(&f.container, "a", item.clone()).await).into_model().unwrap();
        assert_eq!(plain(created.clone()), item);
        let read: Value = good(200, f.container.read_item("a", "1", None).await).into_model().unwrap();
        assert_eq!(read, created);
        let item = json!({ "id": "1", "pk": "a", "v": 2 });
        good(200, f.container.replace_item("a", "1", &item, None).await);
        let item = json!({ "id": "1", "pk": "a", "v": 3 });
        good(200, f.container.upsert_item("a", "1", &item, None).await);
        assert_eq!(plain(f.read("1").await.unwrap()), item);
        good(204, f.container.delete_item("a", "1", None).await);
        refused(404, 0, f.read("1").await);
        refused(404, 0, f.container.delete_item("a", "1", None).await);
        good(201, f.container.upsert_item("a", "1", &item, Some(with_content())).await);
        assert_eq!(ids(&f.container).await, ["1"]);
    });
}

#[test]
fn system_properties_are_those_of_the_service() {
    over_both(async |f| {
        let created = f.create(json!({ "id": "1", "pk": "a" })).await;
        let etag = created.headers().etag().unwrap().to_string();
        let created: Value = created.into_model().unwrap();
        assert_eq!(created["_etag"], etag);
        assert_eq!(created["_attachments"], "attachments/");
        let tail = format!("/docs/{}/", created["_rid"].as_str().unwrap());
        assert!(created["_self"].as_str().unwrap().ends_with(&tail));
        let again =
            f.container.upsert_item("a", "1", json!({ "id": "1", "pk": "a", "v": 1 }), Some(with_content()));
        let again: Value = good(200, again.await).into_model().unwrap();
        assert_eq!(again["_rid"], created["_rid"]);
        assert_ne!(again["_etag"], created["_etag"]);
        assert!(again["_ts"].as_u64() >= created["_ts"].as_u64());
    });
}

#[test]
fn a_second_item_of_an_id_is_a_conflict() {
    over_both(async |f| {
        f.create(json!({ "id": "1", "pk": "a", "v": 1 })).await;
        refused(409, 0, create(&f.container, "a", json!({ "id": "1", "pk": "a", "v": 2 })).await);
        assert_eq!(f.read("1").await.unwrap()["v"], 1);
        good(201, create(&f.container, "b", json!({ "id": "1", "pk": "b" })).await);
    });
}

#[test]
fn a_replace_needs_an_item_and_may_change_its_id() {
    over_both(async |f| {
        refused(404, 0, f.container.replace_item("a", "1", json!({ "id": "1", "pk": "a" }), None).await);
        f.create(json!({ "id": "1", "pk": "a" })).await;
        good(200, f.container.replace_item("a", "1", json!({ "id": "2", "pk": "a" }), None).await);
        assert_eq!(ids(&f.container).await, ["2"]);
        f.create(json!({ "id": "1", "pk": "a" })).await;
        refused(409, 0, f.container.replace_item("a", "1", json!({ "id": "2", "pk": "a" }), None).await);
    });
}

#[test]
fn the_key_of_the_item_must_be_the_key_of_the_request() {
    over_both(async |f| {
        refused(400, 1001, create(&f.container, "a", json!({ "id": "1", "pk": "b" })).await);
        assert!(ids(&f.container).await.is_empty());
    });
}

#[test]
fn a_write_leaves_the_item_out_unless_it_is_asked_for() {
    over_both(async |f| {
        let created =
            good(201, f.container.create_item("a", "1", json!({ "id": "1", "pk": "a" }), None).await);
        let etag = created.headers().etag().cloned();
        assert!(created.into_body().is_empty());
        let read = good(200, f.container.read_item("a", "1", None).await);
        assert_eq!(read.headers().etag().cloned(), etag);
    });
}

#[test]
fn unusual_ids() {
    let long = "x".repeat(255);
    let ids =
        ["a b", "100%", "a+b", "ünï", "数据", "🙂", "a:b@c;d,e", "(a)[b]{c}", "'quoted'", "a.b~c", &long];
    over_both(async |f| {
        for id in ids {
            let item = json!({ "id": id, "pk": "a" });
            good(201, create(&f.container, "a", item.clone()).await);
            assert_eq!(f.read(id).await.unwrap()["id"], id);
            good(200, f.container.replace_item("a", id, &item, None).await);
            good(204, f.container.delete_item("a", id, None).await);
        }
    });
}

#[test]
fn values_come_back_as_they_were() {
    let item = json!({
        "id": "1", "pk": "a", "none": null, "yes": true, "no": false, "text": "tab\t nul\u{0} ü 🙂", "empty": "",
        "numbers": [0, 31, 32, -1, 255, 65536, 9_007_199_254_740_993_i64, i64::MIN, i64::MAX, 0.1, 5e-324, 1e21, -1.5],
        "nested": { "list": [[], {}, [1, [2, [3]]]] }, "long": "x".repeat(70_000),
    });
    over_both(async |f| {
        f.create(item.clone()).await;
        assert_eq!(plain(f.read("1").await.unwrap()), item);
    });
}

#[test]
fn an_item_of_more_than_two_megabytes_is_refused() {
    let item = |size: usize| json!({ "id": "1", "pk": "a", "text": "x".repeat(size) });
    over_both(async |f| {
        refused(413, 0, create(&f.container, "a", item(2 * 1024 * 1024)).await);
        good(201, create(&f.container, "a", item(2 * 1024 * 1024 - 4096)).await);
    });
}

#[test]
fn items_without_an_id_that_fits_are_refused() {
    over_both(async |f| {
        for item in
            [json!({ "pk": "a" }), json!({ "id": 7, "pk": "a" }), json!({ "id": "", "pk": "a" }), json!([])]
        {
            refused(400, 0, f.container.create_item("a", "1", item, None).await);
        }
        assert!(ids(&f.container).await.is_empty());
    });
}

#[test]
fn a_larger_read_costs_more() {
    over_both(async |f| {
        f.create(json!({ "id": "s", "pk": "a" })).await;
        f.create(json!({ "id": "l", "pk": "a", "text": "x".repeat(100_000) })).await;
        let charge = async |id: &str| {
            let read = good(200, f.container.read_item("a", id, None).await);
            read.headers().request_charge().unwrap().value()
        };
        assert_eq!(charge("s").await, 1.0);
        assert!(charge("l").await > 5.0);
    });
}

#[test]
fn items_as_text_instead_of_the_binary_form() {
    over_both(async |f| {
        let text = BinaryEncodingOptions::new().with_enabled(false);
        let builder = stranger().await.with_binary_encoding_options(text);
        let client = SHARED.build(builder, f.scheme, KEY).await.unwrap();
        let database = client.database_client(f.database.name().unwrap().to_owned());
        let name = f.container.read(None).await.unwrap().into_model().unwrap().id.to_string();
        let container = database.container_client(name, None).await.unwrap();
        let item = json!({ "id": "1", "pk": "a", "v": [1, 2.5, "x"] });
        good(201, create(&container, "a", item.clone()).await);
        // What one form wrote the other reads.
        assert_eq!(plain(f.read("1").await.unwrap()), item);
    });
}
