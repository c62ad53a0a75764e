//! Calls that are repeated in a runtime of their own: nobody can tell.

use super::{client, execute, ids};
use crate::client::{Answer, Call, Client, DOCS};
use serde_json::{Value as Json, json};

/// More calls than a script needs to get a shared runtime.
const CALLS: usize = 8;

const LOG: &str = "x-ms-documentdb-script-log-results";

async fn run(client: &Client, parameters: &Json) -> Answer {
    let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(parameters);
    client.send(call.header("x-ms-documentdb-script-enable-logging", "true")).await
}

/// What a client compares: all but times and tokens.
fn seen(answer: &Answer) -> (u16, String, Option<String>, Option<String>) {
    let header = |name| answer.header(name).map(str::to_owned);
    let body = String::from_utf8_lossy(&answer.body);
    let body = body.split("ActivityId").next().unwrap_or_default().to_owned();
    (answer.code().0, body, header(LOG), header("x-ms-request-charge"))
}

#[tokio::test]
async fn a_repeated_procedure_has_one_effect_one_log_and_one_charge() {
    let client = client().await;
    // The assignment in the callback shows that the runtime is shared only after operations were executed.
    let source = r#"function (n) {
        var c = getContext().getCollection();
        console.log("begins");
        c.createDocument(c.getSelfLink(), { id: "item" + n, pk: "k" }, function (err) {
            if (err) throw err;
            console.log("created");
            count = 1;
            c.queryDocuments(c.getSelfLink(), "SELECT VALUE COUNT(1) FROM c", function (err, found) {
                getContext().getResponse().setBody({ all: found[0] - n, created: count });
            });
        });
    }"#;
    let first = execute(&client, source, &json!([0])).await;
    let mut answers = Vec::new();
    for n in 1..=CALLS {
        answers.push(run(&client, &json!([n])).await);
    }
    assert_eq!(first.json(), json!({ "all": 1, "created": 1 }));
    for answer in &answers {
        assert_eq!(seen(answer), seen(&answers[0]));
    }
    assert_eq!(answers[0].header(LOG), Some("begins%0Acreated%0A"));
    assert_eq!(ids(&client).await.len(), CALLS + 1);
    // Each call is one transaction of the log, and no other is.
    let feed = Call::get(DOCS).header("a-im", "Incremental feed").header("x-ms-max-item-count", "100");
    let changes = client.send(feed).await.json();
    let lsns: Vec<_> =
        changes["Documents"].as_array().unwrap().iter().map(|item| item["_lsn"].clone()).collect();
    let first = lsns[0].as_u64().unwrap();
    let expected: Vec<_> = (0..=CALLS as u64).map(|n| json!(first + n)).collect();
    assert_eq!(lsns, expected);
}

#[tokio::test]
async fn a_repeated_procedure_that_fails_leaves_nothing() {
    let client = client().await;
    let source = r#"function (n) {
        var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: "item", pk: "k" }, function (err) {
            console.log("created");
            if (n) missing();
        });
    }"#;
    assert_eq!(execute(&client, source, &json!([1])).await.code(), (400, 0));
    let first = run(&client, &json!([1])).await;
    for _ in 0..CALLS {
        assert_eq!(seen(&run(&client, &json!([1])).await), seen(&first));
    }
    assert!(
        first.message().contains("missing is not defined") && first.message().contains("p.js:5"),
        "{first:?}"
    );
    assert_eq!(first.header(LOG), Some("created%0A"));
    assert_eq!(ids(&client).await, [""; 0]);
    assert_eq!(run(&client, &json!([0])).await.code(), (200, 0));
    assert_eq!(ids(&client).await, ["item"]);
}

#[tokio::test]
async fn a_write_is_repeated_with_both_triggers() {
    let client = client().await;
    let pre = r#"function () {
        var request = getContext().getRequest(), item = request.getBody();
        item.seen = (item.seen || 0) + 1;
        console.log("before");
        request.setBody(item);
    }"#;
    let post = r#"function () {
        var c = getContext().getCollection(), item = getContext().getResponse().getBody();
        c.upsertDocument(c.getSelfLink(), { id: "last", pk: "k", of: item.id }, function (err, last) {
            if (err) throw err;
            console.log("after");
            undeclared = last.of;
            getContext().getResponse().setBody(undeclared);
        });
    }"#;
    for (id, time, body) in [("pre", "Pre", pre), ("post", "Post", post)] {
        let trigger = json!({ "id": id, "body": body, "triggerType": time, "triggerOperation": "All" });
        client.create("/dbs/d/colls/c/triggers", trigger).await;
    }
    let mut answers = Vec::new();
    for n in 0..CALLS {
        let item = json!({ "id": format!("item{n}"), "pk": "k" });
        let call = Call::post(DOCS).key(&json!(["k"])).json(&item);
        let call = call.header("x-ms-documentdb-pre-trigger-include", "pre");
        let call = call.header("x-ms-documentdb-post-trigger-include", "post");
        answers.push(client.send(call.header("x-ms-documentdb-script-enable-logging", "true")).await);
    }
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.code(), (201, 0), "{answer:?}");
        assert_eq!(answer.json(), json!(format!("item{n}")));
        assert_eq!(answer.header(LOG), Some("before%0Aafter%0A"));
        let item = client.send(Call::get(&format!("{DOCS}/item{n}")).key(&json!(["k"]))).await.json();
        assert_eq!(item["seen"], 1);
    }
    // The first write creates the item that later ones replace.
    for answer in &answers[2..] {
        assert_eq!(answer.header("x-ms-request-charge"), answers[1].header("x-ms-request-charge"));
    }
    assert_eq!(ids(&client).await.len(), CALLS + 1);
}
