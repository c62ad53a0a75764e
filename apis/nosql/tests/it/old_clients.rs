//! Forms of answers that depend on the version of the protocol, and what old clients need.

use crate::client::{Call, Client, DOCS};
use http::StatusCode;
use serde_json::json;

const OLD: &str = "2017-11-15";

#[tokio::test]
async fn clients_before_the_vector_form_get_simple_session_tokens() {
    let client = Client::with_container().await;
    let create = |id: &str| Call::post(DOCS).key(&json!(["a"])).json(&json!({ "id": id, "pk": "a" }));
    let old = client.send(create("1").header("x-ms-version", OLD)).await;
    let lsn = old.header("lsn").unwrap();
    assert_eq!(old.header("x-ms-session-token"), Some(&*format!("0:{lsn}")));
    // A refusal has the same form, and the form is understood in requests.
    let refused = client.send(create("1").header("x-ms-version", OLD)).await;
    assert_eq!(refused.header("x-ms-session-token"), Some(&*format!("0:{lsn}")));
    let read = Call::get(&format!("{DOCS}/1")).key(&json!(["a"]));
    let read = read.header("x-ms-session-token", format!("0:{lsn}"));
    for version in ["2018-06-18", "2020-07-15"] {
        let answer = client.send(read.clone().header("x-ms-version", version)).await;
        assert_eq!(answer.header("x-ms-session-token"), Some(&*format!("0:0#{lsn}")), "{version}");
    }
}

#[tokio::test]
async fn clients_before_system_keys_do_not_see_one() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let create =
        Call::post("/dbs/d/colls").json(&json!({ "id": "old" })).header("x-ms-version", "2018-09-17");
    let created = client.send(create).await;
    assert_eq!((created.status, created.json().get("partitionKey")), (StatusCode::CREATED, None));
    client.create("/dbs/d/colls", crate::client::container("keyed")).await;
    for (version, is_shown) in [("2018-09-17", false), ("2018-12-31", true), ("2020-07-15", true)] {
        let get = |path: &str| Call::get(path).header("x-ms-version", version);
        let read = client.send(get("/dbs/d/colls/old")).await.json();
        assert_eq!(read.get("partitionKey").is_some(), is_shown, "{version}");
        let list = client.send(get("/dbs/d/colls")).await.json();
        assert_eq!(list["DocumentCollections"][0].get("partitionKey").is_some(), is_shown, "{version}");
        assert!(list["DocumentCollections"][1].get("partitionKey").is_some());
    }
}

#[tokio::test]
async fn the_account_has_the_numbers_that_old_clients_read() {
    let client = Client::empty().await;
    let account = client.send(Call::get("/")).await;
    for name in ["x-ms-max-media-storage-usage-mb", "x-ms-media-storage-usage-mb"] {
        assert_eq!(account.header(name), Some("0"), "{name}");
    }
}

#[tokio::test]
async fn items_have_no_attachments() {
    let client = Client::with_container().await;
    let rid = client.put_item("1", "a").await.json()["_rid"].clone();
    let list = client.send(Call::get(&format!("{DOCS}/1/attachments")).key(&json!(["a"]))).await;
    assert_eq!(list.json(), json!({ "_rid": rid, "Attachments": [], "_count": 0 }));
    let absent = Call::get(&format!("{DOCS}/2/attachments")).key(&json!(["a"]));
    assert_eq!(client.send(absent).await.code(), (404, 0));
    let create = Call::post(&format!("{DOCS}/1/attachments")).key(&json!(["a"])).json(&json!({ "id": "a" }));
    assert_eq!(client.send(create).await.code(), (405, 0));
}
