//! Transactional batches and bulks.

use crate::client::{Answer, Call, Client, DOCS, container};
use http::StatusCode;
use serde_json::{Value as Json, json};

fn batch(steps: Json) -> Call {
    let call = Call::post(DOCS).key(&json!(["a"])).header("x-ms-cosmos-is-batch-request", "True");
    call.header("x-ms-cosmos-batch-atomic", "True").json(&steps)
}

fn bulk(range: &str, steps: Json) -> Call {
    let call = Call::post(DOCS).header("x-ms-documentdb-partitionkeyrangeid", range);
    let call =
        call.header("x-ms-cosmos-is-batch-request", "true").header("x-ms-cosmos-batch-atomic", "false");
    call.header("x-ms-cosmos-batch-continue-on-error", "true").json(&steps)
}

fn statuses(answer: &Answer) -> Vec<u64> {
    let json = answer.json();
    json.as_array().unwrap().iter().map(|step| step["statusCode"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_batch_does_all_steps_and_sees_its_own_writes() {
    let client = Client::with_container().await;
    client.put_item("old", "a").await;
    let answer = client
        .send(batch(json!([
            { "operationType": "Create", "resourceBody": { "id": "1", "pk": "a" } },
            { "operationType": "Upsert", "resourceBody": { "id": "1", "pk": "a", "n": 1 } },
            { "operationType": "Replace", "id": "1", "resourceBody": { "id": "1", "pk": "a", "n": 2 } },
            { "operationType": "Patch", "id": "1",
              "resourceBody": { "operations": [{ "op": "incr", "path": "/n", "value": 3 }] } },
            { "operationType": "Read", "id": "1" },
            { "operationType": "Delete", "id": "old" },
            { "operationType": "Create", "resourceBody": { "id": "2", "pk": "a" }, "minimalReturnPreference": true },
        ])))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(statuses(&answer), [201, 200, 200, 200, 200, 204, 201]);
    let steps = answer.json();
    assert_eq!(steps[4]["resourceBody"]["n"], 5);
    assert_eq!(steps[4]["eTag"], steps[4]["resourceBody"]["_etag"]);
    assert!(steps[5].get("resourceBody").is_none() && steps[6].get("resourceBody").is_none());
    assert!(steps[6]["eTag"].is_string());
    assert!(answer.header("x-ms-session-token").is_some());
}

#[tokio::test]
async fn one_refused_step_undoes_the_batch() {
    let client = Client::with_container().await;
    client.put_item("old", "a").await;
    let create = json!({ "operationType": "Create", "resourceBody": { "id": "1", "pk": "a" } });
    let deep = (0..128).fold(json!(1), |inner, _| json!([inner]));
    for (step, expected, substatus) in [
        (json!({ "operationType": "Create", "resourceBody": { "id": "old", "pk": "a" } }), 409, 0),
        (json!({ "operationType": "Read", "id": "absent" }), 404, 0),
        (json!({ "operationType": "Delete", "id": "old", "ifMatch": "\"x\"" }), 412, 0),
        (json!({ "operationType": "Create", "resourceBody": { "id": "2", "pk": "b" } }), 400, 1001),
        (json!({ "operationType": "Create", "resourceBody": { "id": 5, "pk": "a" } }), 400, 0),
        (json!({ "operationType": "Create", "resourceBody": { "id": "2", "pk": "a", "x": deep } }), 400, 0),
        (json!({ "operationType": "Create" }), 400, 0),
        (json!({ "operationType": "Delete" }), 400, 0),
        (json!({ "operationType": "Destroy", "id": "old" }), 400, 0),
    ] {
        let answer = client.send(batch(json!([create, step, create]))).await;
        assert_eq!(answer.status, StatusCode::MULTI_STATUS, "{step}: {answer:?}");
        assert_eq!(statuses(&answer), [424, expected, 424], "{step}");
        assert_eq!(answer.json()[1].get("subStatusCode").map_or(0, |code| code.as_u64().unwrap()), substatus);
        let read = client.send(Call::get(&format!("{DOCS}/1")).key(&json!(["a"]))).await;
        assert_eq!(read.code(), (404, 0), "{step}");
    }
}

#[tokio::test]
async fn a_batch_has_bounds() {
    let client = Client::with_container().await;
    let steps = |count: usize| {
        let step =
            |id| json!({ "operationType": "Upsert", "resourceBody": { "id": format!("i{id}"), "pk": "a" } });
        Json::Array((0..count).map(step).collect())
    };
    assert_eq!(client.send(batch(steps(100))).await.status, StatusCode::OK);
    assert_eq!(client.send(batch(steps(101))).await.code(), (400, 0));
    assert_eq!(client.send(batch(steps(0))).await.code(), (400, 0));
    let without_key = batch(steps(1)).without_header("x-ms-documentdb-partitionkey");
    assert_eq!(client.send(without_key).await.code(), (400, 0));
    let large = batch(json!([{ "operationType": "Read", "id": "x".repeat(2 * 1024 * 1024) }]));
    assert_eq!(client.send(large).await.code(), (413, 0));
    let binary = batch(json!([])).body(vec![0x81, 0, 0]);
    assert!(client.send(binary).await.message().contains("binary"));
}

#[tokio::test]
async fn each_step_of_a_bulk_stands_alone() {
    let client = Client::with_container().await;
    client.put_item("old", "a").await;
    let answer = client
        .send(bulk(
            "0",
            json!([
                { "operationType": "Create", "resourceBody": { "id": "1", "pk": "x" }, "partitionKey": "[\"x\"]" },
                { "operationType": "Create", "resourceBody": { "id": "old", "pk": "a" }, "partitionKey": "[\"a\"]" },
                { "operationType": "Read", "id": "old", "partitionKey": "[\"a\"]" },
                { "operationType": "Upsert", "resourceBody": { "id": "2", "pk": "y" }, "partitionKey": "[\"z\"]" },
                { "operationType": "Delete", "id": "absent", "partitionKey": "[\"a\"]" },
                { "operationType": "Delete", "id": "old" },
                { "operationType": "Delete", "id": "old", "partitionKey": "a" },
            ]),
        ))
        .await;
    assert_eq!(answer.status, StatusCode::MULTI_STATUS, "{answer:?}");
    assert_eq!(statuses(&answer), [201, 409, 200, 400, 404, 400, 400]);
    assert_eq!(answer.json()[3]["subStatusCode"], 1001);
    assert_eq!(answer.json()[2]["resourceBody"]["id"], "old");
    let good = json!([{ "operationType": "Delete", "id": "old", "partitionKey": "[\"a\"]" }]);
    assert_eq!(client.send(bulk("0", good.clone())).await.status, StatusCode::OK);
    assert_eq!(client.send(bulk("7", good.clone())).await.code(), (410, 1002));
    assert_eq!(client.send(bulk("x", good)).await.code(), (400, 0));
}

#[tokio::test]
async fn a_bulk_for_another_range_is_sent_back_whole() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "12000").json(&container("c"));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    // The hash of "a" begins with 3A: the upper half.
    let steps = json!([{ "operationType": "Create", "resourceBody": { "id": "1", "pk": "a" }, "partitionKey": "[\"a\"]" }]);
    assert_eq!(client.send(bulk("0", steps.clone())).await.code(), (410, 1002));
    assert_eq!(client.send(bulk("1", steps)).await.status, StatusCode::OK);
}

/// Stores documents of a megabyte each in the container.
async fn put_large(client: &Client, count: usize) {
    for number in 0..count {
        let item = json!({ "id": format!("large{number}"), "pk": "a", "n": 0, "text": "x".repeat(1 << 20) });
        let answer = client.send(Call::post(DOCS).key(&json!(["a"])).json(&item)).await;
        assert_eq!(answer.status, StatusCode::CREATED);
    }
}

fn reads(count: usize) -> Vec<Json> {
    (0..count).map(|number| json!({ "operationType": "Read", "id": format!("large{number}") })).collect()
}

fn increments(count: usize) -> Vec<Json> {
    let patch = json!({ "operations": [{ "op": "incr", "path": "/n", "value": 1 }] });
    let step =
        |number| json!({ "operationType": "Patch", "id": format!("large{number}"), "resourceBody": patch });
    (0..count).map(step).collect()
}

#[tokio::test]
async fn the_answer_of_a_batch_is_bounded_and_a_refused_one_did_nothing() {
    let client = Client::with_container().await;
    put_large(&client, 4).await;
    let read = client.send(batch(json!(reads(3)))).await;
    assert_eq!(statuses(&read), [200, 200, 200]);
    let create = json!({ "operationType": "Create", "resourceBody": { "id": "new", "pk": "a" } });
    for steps in [[vec![create.clone()], reads(4)].concat(), [vec![create], increments(4)].concat()] {
        let refused = client.send(batch(json!(steps))).await;
        assert_eq!(statuses(&refused), [424, 424, 424, 424, 413]);
        assert_eq!(refused.json()[4]["subStatusCode"], 3402);
        let read = Call::get("/dbs/d/colls/c/docs/new").key(&json!(["a"]));
        assert_eq!(client.send(read).await.code(), (404, 0));
    }
    // Documents that are not returned do not count for the limit of the answer.
    let quiet = batch(json!(increments(4))).header("prefer", "return=minimal");
    assert_eq!(statuses(&client.send(quiet).await), [200; 4]);
    let read = client.send(Call::get("/dbs/d/colls/c/docs/large3").key(&json!(["a"]))).await;
    assert_eq!(read.json()["n"], 1);
}

#[tokio::test]
async fn steps_of_a_bulk_beyond_the_answer_are_not_begun() {
    let client = Client::with_container().await;
    put_large(&client, 1).await;
    let step = json!({ "operationType": "Patch", "id": "large0", "partitionKey": "[\"a\"]",
        "resourceBody": { "operations": [{ "op": "incr", "path": "/n", "value": 1 }] } });
    let create = json!({ "operationType": "Create", "resourceBody": { "id": "new", "pk": "a" }, "partitionKey": "[\"a\"]" });
    let answer = client.send(bulk("0", json!([vec![step; 20], vec![create]].concat()))).await;
    assert!(answer.body.len() < 5 << 20, "{} bytes", answer.body.len());
    let statuses = statuses(&answer);
    let done = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(statuses.iter().filter(|status| **status == 413).count(), 20 - done, "{statuses:?}");
    assert!(done < 20 && statuses[20] == 201, "{statuses:?}");
    let read = client.send(Call::get("/dbs/d/colls/c/docs/large0").key(&json!(["a"]))).await;
    assert_eq!(read.json()["n"], done, "what was refused did not happen");
}

#[tokio::test]
async fn a_bulk_of_reads_brings_back_as_much_as_an_answer_holds() {
    let client = Client::with_container().await;
    put_large(&client, 12).await;
    let mut steps = reads(12);
    steps.iter_mut().for_each(|step| step["partitionKey"] = json!("[\"a\"]"));
    let answer = client.send(bulk("0", json!(steps))).await;
    assert!(answer.body.len() < 5 << 20, "{} bytes", answer.body.len());
    assert_eq!(answer.status, StatusCode::MULTI_STATUS);
    assert_eq!(statuses(&answer), [vec![200; 3], vec![413; 9]].concat());
}

#[tokio::test]
async fn an_error_ends_a_bulk_if_the_request_says_so() {
    let client = Client::with_container().await;
    let create = |id: &str, ttl: i64| json!({ "operationType": "Create", "resourceBody": { "id": id, "pk": "a", "ttl": ttl }, "partitionKey": "[\"a\"]" });
    let stopping = |steps: Json| bulk("0", steps).header("x-ms-cosmos-batch-continue-on-error", "False");
    // Refused before the partition is asked, and by it.
    let answer = client.send(stopping(json!([create("1", 5), create("2", -10), create("3", 5)]))).await;
    assert_eq!((answer.status, statuses(&answer)), (StatusCode::MULTI_STATUS, vec![201, 400, 424]));
    let read = json!({ "operationType": "Read", "id": "absent", "partitionKey": "[\"a\"]" });
    let steps = json!([create("4", 5), create("4", 5), create("5", 5), create("6", -10), read]);
    let answer = client.send(stopping(steps.clone())).await;
    assert_eq!(statuses(&answer), [201, 409, 424, 424, 424]);
    for id in ["3", "5"] {
        let read = Call::get(&format!("{DOCS}/{id}")).key(&json!(["a"]));
        assert_eq!(client.send(read).await.code(), (404, 0), "{id}");
    }
    assert_eq!(statuses(&client.send(bulk("0", steps)).await), [409, 409, 201, 400, 404]);
    let bad = bulk("0", json!([])).header("x-ms-cosmos-batch-continue-on-error", "maybe");
    assert_eq!(client.send(bad).await.code(), (400, 0));
}

#[tokio::test]
async fn a_step_that_reads_a_known_version_says_so() {
    let client = Client::with_container().await;
    let etag = client.put_item("1", "a").await.json()["_etag"].clone();
    for member in ["ifMatch", "ifNoneMatch"] {
        let mut step = json!({ "operationType": "Read", "id": "1", "partitionKey": "[\"a\"]" });
        step[member] = etag.clone();
        assert_eq!(statuses(&client.send(bulk("0", json!([step]))).await), [304], "{member}");
        step[member] = json!("\"other\"");
        assert_eq!(statuses(&client.send(bulk("0", json!([step]))).await), [200], "{member}");
    }
}

#[tokio::test]
async fn a_batch_that_reads_waits_for_no_state_that_is_not_there() {
    let client = Client::with_container().await;
    let written = client.put_item("1", "a").await;
    let lsn: u64 = written.header("lsn").unwrap().parse().unwrap();
    let read = json!({ "operationType": "Read", "id": "1" });
    let create = json!({ "operationType": "Create", "resourceBody": { "id": "2", "pk": "a" } });
    let at = |steps: Json, lsn: u64| batch(steps).header("x-ms-session-token", format!("0:0#{lsn}"));
    for steps in [json!([read]), json!([create, read])] {
        assert_eq!(client.send(at(steps, lsn + 2000)).await.code(), (404, 1002));
    }
    let absent = Call::get(&format!("{DOCS}/2")).key(&json!(["a"]));
    assert_eq!(client.send(absent).await.code(), (404, 0));
    assert_eq!(client.send(at(json!([create]), lsn + 2000)).await.status, StatusCode::OK);
    assert_eq!(client.send(at(json!([read]), lsn)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_step_may_give_an_item_another_id() {
    let client = Client::with_container().await;
    for id in ["1", "2", "taken"] {
        client.put_item(id, "a").await;
    }
    let rename = |from: &str, to: &str| {
        json!({ "operationType": "Replace", "id": from, "resourceBody": { "id": to, "pk": "a" },
                "partitionKey": "[\"a\"]" })
    };
    assert_eq!(statuses(&client.send(batch(json!([rename("1", "new")]))).await), [200]);
    assert_eq!(statuses(&client.send(bulk("0", json!([rename("2", "newer")]))).await), [200]);
    assert_eq!(statuses(&client.send(batch(json!([rename("new", "taken")]))).await), [409]);
    assert_eq!(statuses(&client.send(bulk("0", json!([rename("newer", "taken")]))).await), [409]);
    for (id, status) in [("1", 404), ("2", 404), ("new", 200), ("newer", 200)] {
        let read = client.send(Call::get(&format!("{DOCS}/{id}")).key(&json!(["a"]))).await;
        assert_eq!(read.status.as_u16(), status, "{id}");
    }
}

#[tokio::test]
async fn a_bulk_does_not_say_that_its_container_is_absent() {
    let client = Client::with_container().await;
    let steps = json!([{ "operationType": "Read", "id": "1", "partitionKey": "[\"a\"]" }]);
    let mut call = bulk("0", steps.clone());
    call.path = "/dbs/d/colls/absent/docs".to_owned();
    assert_eq!(client.send(call).await.code(), (404, 0));
    let mut call = batch(steps);
    call.path = "/dbs/d/colls/absent/docs".to_owned();
    assert_eq!(client.send(call).await.code(), (404, 1003));
}
