//! User-defined functions in queries.

use super::{client, client_with, execute};
use crate::client::{Answer, Call, Client, DOCS};
use serde_json::{Value as Json, json};
use std::time::Duration;

async fn define(client: &Client, id: &str, body: &str) {
    client.create("/dbs/d/colls/c/udfs", json!({ "id": id, "body": body })).await;
}

async fn query(client: &Client, text: &str) -> Answer {
    let call = Call::post(DOCS).header("x-ms-documentdb-isquery", "true");
    let call = call.header("content-type", "application/query+json");
    let call = call.header("x-ms-documentdb-query-enablecrosspartition", "true");
    let call = call.header("x-perihelion-compatibility", "relaxed");
    client.send(call.json(&json!({ "query": text }))).await
}

async fn rows(client: &Client, text: &str) -> Json {
    let answer = query(client, text).await;
    assert_eq!(answer.code(), (200, 0), "{text}: {answer:?}");
    answer.json()["Documents"].clone()
}

async fn with_incomes() -> Client {
    let client = client().await;
    for (id, income) in [("a", json!(500)), ("b", json!(5_000)), ("c", json!(50_000)), ("d", Json::Null)] {
        let item = json!({ "id": id, "pk": id, "income": income, "tags": [id, "x"] });
        assert_eq!(client.send(Call::post(DOCS).key(&json!([id])).json(&item)).await.code(), (201, 0));
    }
    client
}

#[tokio::test]
async fn functions_are_called_in_queries() {
    let client = with_incomes().await;
    let tax = "function tax(income) { if (income == undefined) throw 'no input'; if (income < 1000) return income * 0.1;
        else if (income < 10000) return income * 0.2; else return income * 0.4; }";
    define(&client, "tax", tax).await;
    define(&client, "kind", "function (value) { return value === undefined ? 'undefined' : typeof value; }")
        .await;
    define(&client, "whole", "function (item) { return item.id + item.tags.length + item._rid.length; }")
        .await;
    define(&client, "nothing", "function () {}").await;
    let text = "SELECT VALUE c.id FROM c WHERE c.income != null AND udf.tax(c.income) > 900 ORDER BY c.id";
    assert_eq!(rows(&client, text).await, json!(["b", "c"]));
    let text = "SELECT VALUE udf.tax(c.income) FROM c WHERE c.id IN ('a', 'b') ORDER BY c.id";
    assert_eq!(rows(&client, text).await, json!([50, 1000]));
    let text =
        "SELECT VALUE [udf.kind(c.missing), udf.kind(c.income), udf.kind(c.tags)] FROM c WHERE c.id = 'a'";
    assert_eq!(rows(&client, text).await, json!([["undefined", "number", "object"]]));
    assert_eq!(rows(&client, "SELECT VALUE udf.whole(c) FROM c WHERE c.id = 'a'").await, json!(["a224"]));
    assert_eq!(rows(&client, "SELECT VALUE udf.nothing() FROM c").await, json!([]));
    let text = "SELECT VALUE SUM(udf.tax(c.income)) FROM c WHERE IS_NUMBER(c.income)";
    assert_eq!(rows(&client, text).await, json!([21_050]));
}

#[tokio::test]
async fn a_fault_names_function_and_line() {
    let client = with_incomes().await;
    define(&client, "bad", "function bad(value) {\n    return value.missing.deeper;\n}").await;
    let refused = query(&client, "SELECT VALUE udf.bad(c.income) FROM c").await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("TypeError") && refused.message().contains("bad.js:2"), "{refused:?}");
    let absent = query(&client, "SELECT VALUE udf.absent(c.income) FROM c WHERE false").await;
    assert_eq!(absent.code(), (400, 0));
    assert!(absent.message().contains("udf.absent"), "{absent:?}");
    // Rows that are not returned may fail.
    define(&client, "picky", "function (id) { if (id !== 'a') throw new Error(id); return id; }").await;
    assert_eq!(rows(&client, "SELECT VALUE udf.picky(c.id) FROM c WHERE c.id = 'a'").await, json!(["a"]));
    // There is no container for a function.
    define(&client, "outside", "function () { return typeof getContext; }").await;
    assert_eq!(
        rows(&client, "SELECT VALUE udf.outside() FROM c WHERE c.id = 'a'").await,
        json!(["undefined"])
    );
}

/// Also where many rows share a runtime.
#[tokio::test]
async fn a_fault_of_a_nested_function_has_its_stack() {
    let client = client().await;
    let item = json!({ "id": "a", "pk": "k", "numbers": (0..60).collect::<Vec<_>>() });
    assert_eq!(client.send(Call::post(DOCS).key(&json!(["k"])).json(&item)).await.code(), (201, 0));
    let nested = "function outer(n) {\n    return inner(n);\n    function inner(n) {\n        \
        if (n === 41) throw new Error(409, 'no ' + n);\n        return n;\n    }\n}";
    define(&client, "nested", nested).await;
    define(&client, "texts", "function (n) {\n    if (n === 41) throw 'text ' + n;\n    return n;\n}").await;
    let text = |name: &str, filter: &str| {
        format!("SELECT VALUE udf.{name}(n) FROM c JOIN n IN c.numbers WHERE {filter}")
    };
    for filter in ["true", "n = 41"] {
        let refused = query(&client, &text("nested", filter)).await;
        assert_eq!(refused.code(), (400, 0));
        let message = refused.message();
        for part in
            ["function 'udf.nested'", "Error: no 41", "at inner (nested.js:4:", "at outer (nested.js:2:"]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
        let refused = query(&client, &text("texts", filter)).await;
        assert_eq!(refused.code(), (400, 0));
        assert!(refused.message().contains("function 'udf.texts'. Exception = text 41"), "{refused:?}");
    }
    // A procedure gets the fault of a function as that of its query.
    let source = "function () {
        __.queryDocuments(__.getSelfLink(), 'SELECT VALUE udf.nested(41) FROM c', function (err) {
            if (err) throw err;
        }); }";
    let refused = execute(&client, source, &json!([])).await;
    assert_eq!(refused.code(), (400, 400));
    for part in ["udf.nested", "no 41", "at inner (nested.js:4:", "p.js:3:"] {
        assert!(refused.message().contains(part), "{part}: {refused:?}");
    }
}

#[tokio::test]
async fn results_of_functions_are_limited() {
    let client = client().await;
    client.put_item("a", "k").await;
    define(&client, "cyclic", "function () {\n    var a = {};\n    a.a = a;\n    return a;\n}").await;
    define(&client, "deep", "function () { var v = []; for (var i = 0; i < 200; i++) v = [v]; return v; }")
        .await;
    define(&client, "large", "function () { return ['x'.repeat(5 << 20)]; }").await;
    for (name, reason) in [("cyclic", "circular"), ("deep", "levels"), ("large", "bytes")] {
        let refused = query(&client, &format!("SELECT VALUE udf.{name}() FROM c")).await;
        assert_eq!(refused.code(), (400, 0), "{name}");
        let message = refused.message();
        assert!(message.contains(&format!("udf.{name}")) && message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn a_changed_function_takes_effect_at_once() {
    let client = with_incomes().await;
    define(&client, "f", "function () { return 1; }").await;
    assert_eq!(rows(&client, "SELECT VALUE udf.f() FROM c WHERE c.id = 'a'").await, json!([1]));
    let body = json!({ "id": "f", "body": "function () { return 2; }" });
    assert_eq!(client.send(Call::put("/dbs/d/colls/c/udfs/f").json(&body)).await.code(), (200, 0));
    assert_eq!(rows(&client, "SELECT VALUE udf.f() FROM c WHERE c.id = 'a'").await, json!([2]));
    client.send(Call::delete("/dbs/d/colls/c/udfs/f")).await;
    assert_eq!(query(&client, "SELECT VALUE udf.f() FROM c WHERE c.id = 'a'").await.code(), (400, 0));
}

#[tokio::test]
async fn an_endless_function_is_stopped() {
    let client = client_with(Duration::from_secs(3)).await;
    client.put_item("a", "k").await;
    define(&client, "endless", "function () { for (;;) {} }").await;
    define(&client, "fine", "function () { return 1; }").await;
    let refused = query(&client, "SELECT VALUE udf.endless() FROM c").await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("the setting script-timeout-ms"), "{refused:?}");
    assert_eq!(rows(&client, "SELECT VALUE udf.fine() FROM c").await, json!([1]));
}

#[tokio::test]
async fn queries_of_procedures_call_functions_too() {
    let client = client().await;
    define(&client, "twice", "function (n) { return 2 * n; }").await;
    client.put_item("a", "k").await;
    let source = "function () { __.queryDocuments(__.getSelfLink(), 'SELECT VALUE udf.twice(c.n) FROM c',
        function (err, found) { if (err) throw err; __.response.setBody(found); }); }";
    assert_eq!(execute(&client, source, &json!([])).await.json(), json!([2]));
}

/// The calls of one batch together take longer than a script may, each for itself does not.
#[tokio::test]
async fn slow_functions_are_called_in_small_batches() {
    let client = client_with(Duration::from_secs(1)).await;
    let slow = "function (n) { const end = Date.now() + 100; while (Date.now() < end) {} return n; }";
    define(&client, "slow", slow).await;
    let item = json!({ "id": "a", "pk": "k", "numbers": (0..20).collect::<Vec<_>>() });
    assert_eq!(client.send(Call::post(DOCS).key(&json!(["k"])).json(&item)).await.code(), (201, 0));
    let text = "SELECT VALUE SUM(udf.slow(n)) FROM c JOIN n IN c.numbers";
    assert_eq!(rows(&client, text).await, json!([190]));
}
