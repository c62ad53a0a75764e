//! Bad input of scripts: each is refused with its status, and nothing is written.

use super::{client, execute, ids, options};
use crate::client::{Call, Client, DOCS, container};
use engine::script::Limits;
use kv::{CommitMode, Store};
use nosql::NosqlOptions;
use partition::keyspace::SPACES;
use serde_json::{Value as Json, json};

const PROCEDURE: &str = "/dbs/d/colls/c/sprocs/p";

/// Creates two items and then does `what`.
fn after_writes(what: &str) -> String {
    format!(
        "function () {{ var c = getContext().getCollection(), link = c.getSelfLink(), r = getContext().getResponse();
            c.createDocument(link, {{ id: 'one', pk: 'k' }});
            c.createDocument(link, {{ id: 'two', pk: 'k' }}, function (err) {{ if (err) throw err; {what} }}); }}"
    )
}

async fn is_empty(client: &Client) {
    assert_eq!(ids(client).await, Vec::<String>::new());
}

#[tokio::test]
async fn results_that_cannot_be_sent_undo_everything() {
    let client = client().await;
    for (what, code, text) in [
        ("var a = {}; a.a = a; r.setBody(a);", (400, 0), "circular"),
        ("var a = {}; r.setBody(a); a.a = a;", (400, 0), "circular"),
        ("r.setBody({ n: 1n });", (400, 0), "BigInt"),
        ("r.setBody({ toJSON: function () { throw new Error(7, 'no JSON'); } });", (400, 7), "no JSON"),
        ("var v = []; for (var i = 0; i < 200; i++) v = [v]; r.setBody(v);", (400, 0), "levels"),
        ("r.setBody('x'.repeat(5 << 20));", (400, 413), "limit of"),
        ("for (;;) r.appendBody('x'.repeat(1 << 20));", (400, 413), "limit of"),
    ] {
        let refused = execute(&client, &after_writes(what), &json!([])).await;
        assert_eq!(refused.code(), code, "{what}: {refused:?}");
        assert!(refused.message().contains(text), "{what}: {refused:?}");
        is_empty(&client).await;
    }
    assert_eq!(execute(&client, &after_writes(""), &json!([])).await.code(), (200, 0));
    assert_eq!(ids(&client).await, ["one", "two"]);
}

/// The error of the server, thrown by the script.
#[tokio::test]
async fn a_thrown_error_of_an_operation_has_number_text_and_line() {
    let client = client().await;
    let read = |link: &str| {
        format!(
            "\nc.readDocument({link}, function found(err) {{\n    check(err);\n}});\n\
            function check(err) {{\n    if (err) throw err;\n}}"
        )
    };
    let refused = execute(&client, &after_writes(&read("c.getAltLink() + '/docs/none'")), &json!([])).await;
    assert_eq!(refused.code(), (400, 404));
    let message = refused.message();
    for part in [r#"Error: {\"Errors\":[\"Resource Not Found\"]}"#, "at check (p.js:8:", "at found (p.js:5:"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    let again =
        "\nc.createDocument(link, { id: 'one', pk: 'k' }, function (err) {\n    if (err) throw err; });";
    let refused = execute(&client, &after_writes(again), &json!([])).await;
    assert_eq!(refused.code(), (400, 409));
    let message = refused.message();
    assert!(message.contains("already exists") && message.contains("(p.js:5:"), "{message}");
    is_empty(&client).await;
}

#[tokio::test]
async fn parameters_and_partition_keys_are_checked_before_the_call() {
    let client = client().await;
    let made = json!({ "id": "p", "body": after_writes("") });
    client.create("/dbs/d/colls/c/sprocs", made).await;
    let call = Call::post(PROCEDURE);
    for key in [json!(["k", "l"]), json!([]), json!([["k"]]), json!([{ "a": 1 }]), json!("k")] {
        let refused = client.send(call.clone().key(&key).json(&json!([]))).await;
        assert_eq!(refused.status.as_u16(), 400, "{key}: {refused:?}");
    }
    let text = call.clone().header("x-ms-documentdb-partitionkey", "k").json(&json!([]));
    assert_eq!(client.send(text).await.status.as_u16(), 400);
    assert_eq!(client.send(call.clone().json(&json!([]))).await.code(), (400, 0));
    // The items of the procedure have another key.
    let other = client.send(call.clone().key(&json!(["l"])).json(&json!([]))).await;
    assert_eq!(other.code(), (400, 400), "{other:?}");
    let call = call.key(&json!(["k"]));
    for parameters in [json!({}), json!("text"), json!(7), json!(null), json!(true)] {
        let refused = client.send(call.clone().json(&parameters)).await;
        assert_eq!(refused.code(), (400, 0), "{parameters}");
        assert!(refused.message().contains("JSON array"), "{refused:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(client.send(call.clone().body(deep.into())).await.status.as_u16(), 400);
    let large = client.send(call.clone().json(&json!(["x".repeat(3 << 20)]))).await;
    assert_eq!(large.status.as_u16(), 413, "{large:?}");
    let absent = Call::post("/dbs/d/colls/c/sprocs/absent").key(&json!(["k"])).json(&json!([]));
    assert_eq!(client.send(absent).await.code(), (404, 0));
    is_empty(&client).await;
    assert_eq!(client.send(call.json(&json!([]))).await.code(), (200, 0));
}

#[tokio::test]
async fn a_procedure_needs_a_whole_hierarchical_key() {
    let client = client().await;
    let paths = json!({ "paths": ["/pk", "/sub"], "kind": "MultiHash", "version": 2 });
    client.create("/dbs/d/colls", json!({ "id": "h", "partitionKey": paths })).await;
    let body = "function () { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: 'one', pk: 'k', sub: 's' }); }";
    client.create("/dbs/d/colls/h/sprocs", json!({ "id": "p", "body": body })).await;
    let call = Call::post("/dbs/d/colls/h/sprocs/p").json(&json!([]));
    for key in [json!(["k"]), json!(["k", "s", "t"]), json!([])] {
        let refused = client.send(call.clone().key(&key)).await;
        assert_eq!(refused.status.as_u16(), 400, "{key}: {refused:?}");
    }
    assert_eq!(client.send(call.clone().key(&json!(["k", "t"]))).await.code(), (400, 400));
    assert_eq!(client.listed("/dbs/d/colls/h/docs", "Documents").await, Vec::<String>::new());
    assert_eq!(client.send(call.key(&json!(["k", "s"]))).await.code(), (200, 0));
}

async fn refused_definition(client: &Client, body: &str) -> String {
    let mut message = String::new();
    for kind in ["sprocs", "triggers", "udfs"] {
        let script = json!({ "id": "s", "body": body, "triggerType": "Pre", "triggerOperation": "All" });
        let feed = format!("/dbs/d/colls/c/{kind}");
        let refused = client.send(Call::post(&feed).json(&script)).await;
        assert_eq!(refused.code(), (400, 65535), "{kind}: {refused:?}");
        message = refused.message();
        assert_eq!(client.send(Call::get(&format!("{feed}/s"))).await.code(), (404, 0));
    }
    message
}

#[tokio::test]
async fn texts_that_are_no_function_are_refused_with_their_place() {
    let client = client().await;
    for (body, text) in [
        ("\n// later\n", "the script is empty, a function is expected at line 1, column 1"),
        ("\n  42", "the script is a number, not a function at line 2, column 3"),
        ("var f = function () {};", "the script declares no function at line 1, column 1"),
        ("function () {}\nfunction () {}", "function without a name; in a script of several"),
        ("function () {\n  var x = ;\n}", "at line 2, column 11"),
    ] {
        let message = refused_definition(&client, body).await;
        assert!(message.contains("SyntaxError: ") && message.contains(text), "{body}: {message}");
    }
    // Deeper than the parser goes.
    for open in ["(", "[", "{", "function () {", "!"] {
        let message = refused_definition(&client, &open.repeat(50_000)).await;
        assert!(message.contains("at line 1, column "), "{open}: {message}");
    }
    // A definition that is refused does not replace the one before.
    let feed = "/dbs/d/colls/c/sprocs";
    client.create(feed, json!({ "id": "p", "body": after_writes("") })).await;
    let bad = json!({ "id": "p", "body": "function (" });
    assert_eq!(client.send(Call::put(PROCEDURE).json(&bad)).await.code(), (400, 65535));
    let upsert = Call::post(feed).header("x-ms-documentdb-is-upsert", "true").json(&bad);
    assert_eq!(client.send(upsert).await.code(), (400, 65535));
    let call = Call::post(PROCEDURE).key(&json!(["k"])).json(&json!([]));
    assert_eq!(client.send(call).await.code(), (200, 0));
}

/// Definitions that were stored while the server did not execute scripts are not checked before they are called.
#[tokio::test]
async fn texts_that_are_no_function_are_refused_when_they_are_called() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let scribe = Client::on_store(store.clone(), NosqlOptions::default(), None).await;
    scribe.create("/dbs", json!({ "id": "d" })).await;
    scribe.create("/dbs/d/colls", container("c")).await;
    let body = "function () {\n  return +;\n}";
    let script = json!({ "id": "p", "body": body, "triggerType": "Pre", "triggerOperation": "All" });
    for kind in ["sprocs", "triggers", "udfs"] {
        scribe.create(&format!("/dbs/d/colls/c/{kind}"), script.clone()).await;
    }
    drop(scribe);
    let client = Client::on_store(store, NosqlOptions::default(), Some(options(Limits::for_cores(3)))).await;
    let call = |path: &str| Call::post(path).key(&json!(["k"]));
    let item = json!({ "id": "a", "pk": "k" });
    for refused in [
        client.send(call(PROCEDURE).json(&json!([]))).await,
        client.send(call(DOCS).header("x-ms-documentdb-pre-trigger-include", "p").json(&item)).await,
    ] {
        assert_eq!(refused.code(), (400, 65535), "{refused:?}");
        assert!(refused.message().contains("SyntaxError: "), "{refused:?}");
        assert!(refused.message().contains("at line 2, column 11"), "{refused:?}");
    }
    is_empty(&client).await;
    client.put_item("a", "k").await;
    let query = call(DOCS).header("x-ms-documentdb-isquery", "true");
    let query = query.header("content-type", "application/query+json");
    let refused = client.send(query.json(&json!({ "query": "SELECT VALUE udf.p() FROM c" }))).await;
    assert_eq!(refused.code(), (400, 0), "{refused:?}");
    assert!(refused.message().contains("udf.p") && refused.message().contains("at line 2,"), "{refused:?}");
}

#[tokio::test]
async fn triggers_that_fail_undo_the_write() {
    let client = client().await;
    let pre = |body: &str| {
        format!("function () {{ var r = getContext().getRequest(), item = r.getBody(); {body} }}")
    };
    let post = |body: &str| format!("function () {{ var r = getContext().getResponse(); {body} }}");
    let deep = "var v = []; for (var i = 0; i < 200; i++) v = [v];";
    let scripts = [
        ("Pre", pre("item.item = item; r.setBody(item);"), (400, 0), "circular"),
        ("Pre", pre("r.setBody([item]);"), (400, 0), "a JSON object"),
        ("Pre", pre("r.setBody('text');"), (400, 0), "a JSON object"),
        ("Pre", pre("item.pk = 'other'; r.setBody(item);"), (400, 1001), "PartitionKey"),
        ("Pre", pre(&format!("{deep} item.v = v; r.setBody(item);")), (400, 0), "levels"),
        ("Pre", pre("item.text = 'x'.repeat(3 << 20); r.setBody(item);"), (413, 0), "too large"),
        ("Post", post("var a = []; a.push(a); r.setBody(a);"), (400, 0), "circular"),
        ("Post", post(&format!("{deep} r.setBody(v);")), (400, 0), "levels"),
        ("Post", post("r.setBody('x'.repeat(5 << 20));"), (400, 413), "limit of"),
    ];
    for (number, (time, body, code, text)) in scripts.into_iter().enumerate() {
        let id = format!("t{number}");
        let trigger = json!({ "id": id, "body": body, "triggerType": time, "triggerOperation": "All" });
        client.create("/dbs/d/colls/c/triggers", trigger).await;
        let header = format!("x-ms-documentdb-{}-trigger-include", time.to_lowercase());
        let create = Call::post(DOCS).key(&json!(["k"])).header(&header, &id);
        let refused = client.send(create.json(&json!({ "id": "a", "pk": "k" }))).await;
        assert_eq!(refused.code(), code, "{body}: {refused:?}");
        assert!(refused.message().contains(text), "{body}: {refused:?}");
        is_empty(&client).await;
    }
    let twice: Json =
        json!({ "id": "t0", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All" });
    assert_eq!(client.send(Call::post("/dbs/d/colls/c/triggers").json(&twice)).await.code(), (409, 0));
    is_empty(&client).await;
}

/// Who uses an SDK knows the name of the trigger and the option, not the header.
#[tokio::test]
async fn triggers_that_cannot_run_are_named_with_the_option_of_the_request() {
    let client = client().await;
    for (id, time, operation) in [("a", "Pre", "All"), ("b", "Post", "All"), ("gone", "Pre", "Delete")] {
        let trigger =
            json!({ "id": id, "body": "function () {}", "triggerType": time, "triggerOperation": operation });
        client.create("/dbs/d/colls/c/triggers", trigger).await;
    }
    let pre = ("preTriggerInclude", "x-ms-documentdb-pre-trigger-include");
    let post = ("postTriggerInclude", "x-ms-documentdb-post-trigger-include");
    for ((option, header), names, reason) in [
        (pre, "a,gone", "a request has at most one pre-trigger"),
        (pre, "a,a", "a request has at most one pre-trigger"),
        (post, "b,b", "a request has at most one post-trigger"),
        (pre, "b", "it is a post-trigger, which belongs into the option postTriggerInclude"),
        (post, "a", "it is a pre-trigger, which belongs into the option preTriggerInclude"),
        (pre, "absent", "the container has no trigger of this name"),
        (pre, "gone", "it is for the operation Delete, and the request is a create"),
    ] {
        let create = Call::post(DOCS).key(&json!(["k"])).header(header, names);
        let refused = client.send(create.json(&json!({ "id": "a", "pk": "k" }))).await;
        assert_eq!(refused.code(), (400, 0), "{names}: {refused:?}");
        for part in [&format!("-trigger \"{names}\""), option, header, reason] {
            let message = refused.message().replace("\\\"", "\"");
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    is_empty(&client).await;
}
