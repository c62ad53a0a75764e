//! Pre- and post-triggers.

use super::{client, ids};
use crate::client::{Answer, Call, Client, DOCS};
use http::StatusCode;
use serde_json::{Value as Json, json};

const PRE: &str = "x-ms-documentdb-pre-trigger-include";
const POST: &str = "x-ms-documentdb-post-trigger-include";

async fn define(client: &Client, id: &str, time: &str, operation: &str, body: &str) {
    let trigger = json!({ "id": id, "body": body, "triggerType": time, "triggerOperation": operation });
    client.create("/dbs/d/colls/c/triggers", trigger).await;
}

async fn create(client: &Client, body: &Json, header: &str, trigger: &str) -> Answer {
    client.send(Call::post(DOCS).key(&json!(["k"])).header(header, trigger).json(body)).await
}

#[tokio::test]
async fn a_pre_trigger_changes_the_item() {
    let client = client().await;
    let stamp = "function () { var request = getContext().getRequest(), item = request.getBody();
        if (!('timestamp' in item)) { item.timestamp = 7; } request.setBody(item); }";
    define(&client, "stamp", "Pre", "All", stamp).await;
    let made = create(&client, &json!({ "id": "a", "pk": "k" }), PRE, "stamp").await;
    assert_eq!((made.status, &made.json()["timestamp"]), (StatusCode::CREATED, &json!(7)));
    let stored = client.send(Call::get("/dbs/d/colls/c/docs/a").key(&json!(["k"]))).await;
    assert_eq!(stored.json(), made.json());
    assert_eq!(stored.header("etag"), made.header("etag"));
    let one = "/dbs/d/colls/c/docs/a";
    let body = json!({ "id": "a", "pk": "k", "n": 2 });
    let replaced = client.send(Call::put(one).key(&json!(["k"])).header(PRE, "stamp").json(&body)).await;
    assert_eq!((replaced.status, &replaced.json()["timestamp"]), (StatusCode::OK, &json!(7)));
    let upsert = Call::post(DOCS).key(&json!(["k"])).header("x-ms-documentdb-is-upsert", "true");
    let upserted = client.send(upsert.header(PRE, "stamp").json(&body)).await;
    assert_eq!((upserted.status, &upserted.json()["timestamp"]), (StatusCode::OK, &json!(7)));
    let plain = client.send(Call::put(one).key(&json!(["k"])).json(&body)).await;
    assert_eq!(plain.json().get("timestamp"), None);
}

#[tokio::test]
async fn a_pre_trigger_refuses_a_dangling_reference() {
    let client = client().await;
    let check = r#"function () {
        var collection = getContext().getCollection(), book = getContext().getRequest().getBody();
        collection.queryDocuments(collection.getSelfLink(), { query: "SELECT VALUE COUNT(1) FROM c WHERE c.id = @a",
            parameters: [{ name: "@a", value: book.author }] }, function (err, found) {
            if (err) throw err;
            if (found[0] === 0) throw new Error(409, "no author " + book.author);
        });
    }"#;
    define(&client, "check", "Pre", "Create", check).await;
    client.put_item("a", "k").await;
    let book = |id: &str, author: &str| json!({ "id": id, "pk": "k", "author": author });
    assert_eq!(create(&client, &book("b1", "a"), PRE, "check").await.code(), (201, 0));
    let refused = create(&client, &book("b2", "nobody"), PRE, "check").await;
    assert_eq!(refused.code(), (400, 409));
    assert!(refused.message().contains("no author nobody"), "{refused:?}");
    assert_eq!(ids(&client).await, ["a", "b1"]);
}

#[tokio::test]
async fn a_post_trigger_counts_in_the_same_transaction() {
    let client = client().await;
    let count = r#"function () {
        var collection = getContext().getCollection(), made = getContext().getResponse().getBody();
        if (made.poison) throw new Error("poisoned");
        collection.readDocument(collection.getAltLink() + "/docs/count", function (err, count) {
            if (err) throw err;
            count.n++;
            collection.replaceDocument(count._self, count, function (err) { if (err) throw err; });
        });
    }"#;
    define(&client, "count", "Post", "Create", count).await;
    client.put_item("count", "k").await;
    let made = create(&client, &json!({ "id": "a", "pk": "k" }), POST, "count").await;
    assert_eq!(made.code(), (201, 0), "{made:?}");
    let counted = client.send(Call::get("/dbs/d/colls/c/docs/count").key(&json!(["k"]))).await;
    assert_eq!(counted.json()["n"], 2);
    // One transaction has one LSN, and the client's session has seen it.
    let lsn = |answer: &Answer, name: &str| answer.header(name).unwrap().parse::<u64>().unwrap();
    assert_eq!(lsn(&counted, "x-ms-item-lsn"), lsn(&made, "x-ms-item-lsn"));
    let poisoned = create(&client, &json!({ "id": "b", "pk": "k", "poison": true }), POST, "count").await;
    assert_eq!(poisoned.code(), (400, 0));
    assert_eq!(ids(&client).await, ["a", "count"]);
    let conflict = create(&client, &json!({ "id": "a", "pk": "k" }), POST, "count").await;
    assert_eq!(conflict.code(), (409, 0));
}

#[tokio::test]
async fn a_post_trigger_changes_the_answer() {
    let client = client().await;
    let shout = "function () { var response = getContext().getResponse(), made = response.getBody();
        response.setBody({ id: made.id, shouted: true }); }";
    define(&client, "shout", "Post", "All", shout).await;
    let made = create(&client, &json!({ "id": "a", "pk": "k" }), POST, "shout").await;
    assert_eq!((made.status, made.json()), (StatusCode::CREATED, json!({ "id": "a", "shouted": true })));
    let one = || Call::get("/dbs/d/colls/c/docs/a").key(&json!(["k"]));
    let stored = client.send(one()).await;
    assert_eq!(stored.header("etag"), made.header("etag"));
    assert_eq!(stored.json().get("shouted"), None, "only the answer is changed");
    // The other headers stay what they were.
    assert_eq!(stored.header("x-ms-item-lsn"), made.header("x-ms-item-lsn"));
    let minimal =
        Call::post(DOCS).key(&json!(["k"])).header("prefer", "return=minimal").header(POST, "shout");
    let minimal = client.send(minimal.json(&json!({ "id": "b", "pk": "k" }))).await;
    assert_eq!((minimal.status, minimal.body.is_empty()), (StatusCode::CREATED, true));
    let deleted = Call::delete("/dbs/d/colls/c/docs/a").key(&json!(["k"])).header(POST, "shout");
    define(&client, "gone", "Post", "Delete", "function () { getContext().getResponse().setBody(1); }").await;
    assert_eq!(client.send(deleted).await.status, StatusCode::BAD_REQUEST, "there is no body to read");
    let deleted =
        client.send(Call::delete("/dbs/d/colls/c/docs/a").key(&json!(["k"])).header(POST, "gone")).await;
    assert_eq!((deleted.status, deleted.body.is_empty()), (StatusCode::NO_CONTENT, true));
}

#[tokio::test]
async fn the_answer_has_the_item_that_a_post_trigger_has_created_anew() {
    let client = client().await;
    let anew =
        "function () { var c = getContext().getCollection(), made = getContext().getResponse().getBody();
        c.deleteDocument(made._self, function (err) {
            if (err) throw err;
            c.createDocument(c.getSelfLink(), { id: made.id, pk: made.pk, anew: true });
        }); }";
    define(&client, "anew", "Post", "All", anew).await;
    let made = create(&client, &json!({ "id": "a", "pk": "k" }), POST, "anew").await;
    let stored = client.send(Call::get("/dbs/d/colls/c/docs/a").key(&json!(["k"]))).await;
    assert_eq!((made.header("etag"), made.json()), (stored.header("etag"), stored.json()));
    assert_eq!(made.json()["anew"], true);
}

#[tokio::test]
async fn the_answer_has_the_version_that_a_post_trigger_has_left() {
    let client = client().await;
    let twice =
        "function () { var c = getContext().getCollection(), made = getContext().getResponse().getBody();
        made.twice = true;
        c.replaceDocument(made._self, made, function (err) { if (err) throw err; }); }";
    define(&client, "twice", "Post", "All", twice).await;
    let made = create(&client, &json!({ "id": "a", "pk": "k" }), POST, "twice").await;
    let one = || Call::get("/dbs/d/colls/c/docs/a").key(&json!(["k"]));
    let stored = client.send(one()).await;
    assert_eq!(made.header("etag"), stored.header("etag"));
    assert_eq!(made.json(), stored.json());
    let body = json!({ "id": "a", "pk": "k", "n": 2 });
    let guarded = Call::put("/dbs/d/colls/c/docs/a").key(&json!(["k"]));
    let guarded = guarded.header("if-match", made.header("etag").unwrap());
    assert_eq!(client.send(guarded.json(&body)).await.status, StatusCode::OK);
    // One that is gone is answered as it was written.
    let vanish = "function () { getContext().getCollection().deleteDocument(getContext().getResponse().getBody()._self); }";
    define(&client, "vanish", "Post", "All", vanish).await;
    let made = create(&client, &json!({ "id": "b", "pk": "k" }), POST, "vanish").await;
    assert_eq!((made.status, &made.json()["id"]), (StatusCode::CREATED, &json!("b")));
    assert_eq!(ids(&client).await, ["a"]);
}

#[tokio::test]
async fn the_log_of_a_trigger_that_fails_is_returned() {
    let client = client().await;
    define(&client, "say", "Pre", "All", "function () { console.log('first'); }").await;
    define(&client, "fail", "Post", "All", "function () { console.log('second'); throw new Error('no'); }")
        .await;
    let call = Call::post(DOCS).key(&json!(["k"])).header(PRE, "say").header(POST, "fail");
    let call = call.header("x-ms-documentdb-script-enable-logging", "true");
    let refused = client.send(call.json(&json!({ "id": "a", "pk": "k" }))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.header("x-ms-documentdb-script-log-results"), Some("first%0Asecond%0A"));
}

#[tokio::test]
async fn a_delete_has_triggers_too() {
    let client = client().await;
    let keep = "function () { throw new Error(403, 'kept'); }";
    define(&client, "keep", "Pre", "Delete", keep).await;
    let note = "function () { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: 'note', pk: 'k', by: getContext().getRequest().getOperationType() }); }";
    define(&client, "note", "Post", "Delete", note).await;
    client.put_item("a", "k").await;
    let delete = || Call::delete("/dbs/d/colls/c/docs/a").key(&json!(["k"]));
    assert_eq!(client.send(delete().header(PRE, "keep")).await.code(), (400, 403));
    assert_eq!(client.send(delete().header(POST, "note")).await.status, StatusCode::NO_CONTENT);
    assert_eq!(ids(&client).await, ["note"]);
    let note = client.send(Call::get("/dbs/d/colls/c/docs/note").key(&json!(["k"]))).await.json();
    assert_eq!(note["by"], "Delete");
}

#[tokio::test]
async fn triggers_that_do_not_fit_are_refused() {
    let client = client().await;
    define(&client, "pre", "Pre", "Replace", "function () {}").await;
    define(&client, "post", "Post", "All", "function () {}").await;
    let body = json!({ "id": "a", "pk": "k" });
    for (header, trigger, reason) in [
        (PRE, "pre", "for the operation Replace, and the request is a create"),
        (PRE, "post", "it is a post-trigger"),
        (POST, "pre", "it is a pre-trigger"),
        (PRE, "nothing", "no trigger of this name"),
        (POST, "post,post", "at most one"),
    ] {
        let refused = create(&client, &body, header, trigger).await;
        assert_eq!(refused.code(), (400, 0), "{trigger}");
        assert!(refused.message().contains(reason), "{refused:?}");
    }
    assert_eq!(ids(&client).await, Vec::<String>::new());
    assert_eq!(create(&client, &body, POST, "post").await.code(), (201, 0));
    let patch = json!({ "operations": [{ "op": "set", "path": "/n", "value": 1 }] });
    let patch = Call::patch("/dbs/d/colls/c/docs/a").key(&json!(["k"])).header(POST, "post").json(&patch);
    assert_eq!(client.send(patch).await.code(), (400, 0));
    let batch = json!([{ "operationType": "Read", "id": "a" }]);
    let batch =
        Call::post(DOCS).key(&json!(["k"])).header("x-ms-cosmos-is-batch-request", "true").json(&batch);
    for atomic in ["true", "false"] {
        let batch = batch.clone().header("x-ms-cosmos-batch-atomic", atomic).header(PRE, "pre");
        assert_eq!(client.send(batch).await.code(), (400, 0));
    }
}

/// The right to another id is that of the item that is stored, not that of the request.
#[tokio::test]
async fn a_pre_trigger_changes_the_id_of_a_replaced_item() {
    let client = client().await;
    let rename = "function () { var request = getContext().getRequest(), item = request.getBody();
        item.id = item.id + 'x'; request.setBody(item); }";
    define(&client, "rename", "Pre", "Replace", rename).await;
    client.put_item("a", "k").await;
    let put = Call::put("/dbs/d/colls/c/docs/a").key(&json!(["k"])).header(PRE, "rename");
    let replaced = client.send(put.json(&json!({ "id": "a", "pk": "k" }))).await;
    assert_eq!(replaced.code(), (200, 0), "{replaced:?}");
    assert_eq!(ids(&client).await, ["ax"]);
}
