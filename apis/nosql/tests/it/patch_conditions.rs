//! Patches with a condition: applied only if the stored item satisfies the condition.

use crate::client::{Answer, Call, Client, DOCS};
use serde_json::{Value as Json, json};

async fn account() -> Client {
    let client = Client::with_container().await;
    let item = json!({ "id": "1", "pk": "a", "n": 1, "tags": ["x", "y"], "flag": true });
    client.create(DOCS, item).await;
    client
}

async fn patched(client: &Client, condition: &str) -> Answer {
    let body = json!({ "condition": condition, "operations": [{ "op": "incr", "path": "/n", "value": 1 }] });
    client.send(Call::patch(&format!("{DOCS}/1")).key(&json!(["a"])).json(&body)).await
}

async fn number(client: &Client) -> Json {
    client.send(Call::get(&format!("{DOCS}/1")).key(&json!(["a"]))).await.json()["n"].clone()
}

#[tokio::test]
async fn a_condition_that_holds_lets_the_patch_pass() {
    let client = account().await;
    let read = client.send(Call::get(&format!("{DOCS}/1")).key(&json!(["a"]))).await.json();
    let by_rid = format!("from c where c._rid = '{}' and c._ts > 0", read["_rid"].as_str().unwrap());
    let conditions = [
        "from c where c.n = 1",
        "FROM item WHERE item.flag",
        " from c where EXISTS(select value t from t in c.tags where t = 'y')",
        "from c join t in c.tags where t = 'x'",
        "from c",
        &by_rid,
    ];
    for (index, condition) in conditions.iter().enumerate() {
        let answer = patched(&client, condition).await;
        assert_eq!(answer.code(), (200, 0), "{condition}: {answer:?}");
        assert_eq!(number(&client).await, index + 2);
    }
}

#[tokio::test]
async fn a_condition_that_does_not_hold_is_a_failed_precondition() {
    let client = account().await;
    for condition in [
        "from c where c.n = 2",
        "from c where c.absent",
        "from c where c.n",
        "from c where c._etag = 'x'",
        "from c join t in c.absent",
        "from c where false",
    ] {
        let answer = patched(&client, condition).await;
        assert_eq!(answer.code(), (412, 0), "{condition}: {answer:?}");
    }
    assert_eq!(number(&client).await, 1);
}

#[tokio::test]
async fn what_is_no_condition_is_refused() {
    let client = account().await;
    for (condition, said) in [
        ("", "FROM"),
        ("where c.n = 1", "FROM"),
        ("select * from c", "FROM"),
        ("from c where", "SC1001"),
        ("from c where nosuch(c.n)", "SC2005"),
        ("from c where c.n = @n", "@n"),
        ("from c order by c.n", "only"),
        ("from c group by c.n", "only"),
        ("from c offset 0 limit 1", "only"),
        ("from c where udf.f(c.n)", "udf.f"),
    ] {
        let answer = patched(&client, condition).await;
        assert_eq!(answer.code(), (400, 0), "{condition}: {answer:?}");
        assert!(answer.message().contains(said), "{condition}: {answer:?}");
    }
    // Places are relative to the beginning of the condition.
    let answer = patched(&client, "from c where nosuch(c.n)").await;
    assert!(answer.message().contains("\"start\":13,\"end\":19"), "{answer:?}");
    let body = json!({ "condition": 7, "operations": [{ "op": "incr", "path": "/n", "value": 1 }] });
    let answer = client.send(Call::patch(&format!("{DOCS}/1")).key(&json!(["a"])).json(&body)).await;
    assert_eq!(answer.code(), (400, 0));
    assert_eq!(number(&client).await, 1);
}

#[tokio::test]
async fn conditions_hold_or_not_inside_a_batch() {
    let client = account().await;
    let step = |condition: &str| {
        json!({ "operationType": "Patch", "id": "1", "resourceBody": {
            "condition": condition, "operations": [{ "op": "incr", "path": "/n", "value": 1 }],
        } })
    };
    let batch = |steps: Json| {
        Call::post(DOCS)
            .key(&json!(["a"]))
            .header("x-ms-cosmos-is-batch-request", "True")
            .header("x-ms-cosmos-batch-atomic", "True")
            .json(&steps)
    };
    // Each step sees the changes of the previous ones.
    let done = client.send(batch(json!([step("from c where c.n = 1"), step("from c where c.n = 2")]))).await;
    assert_eq!(done.code(), (200, 0), "{done:?}");
    assert_eq!(number(&client).await, 3);
    let refused =
        client.send(batch(json!([step("from c where c.n = 3"), step("from c where c.n = 3")]))).await;
    let codes: Vec<Json> =
        refused.json().as_array().unwrap().iter().map(|step| step["statusCode"].clone()).collect();
    assert_eq!(Json::from(codes), json!([424, 412]));
    assert_eq!(number(&client).await, 3);
}
