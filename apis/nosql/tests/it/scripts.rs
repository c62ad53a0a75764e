//! Definitions of scripts, and the conflicts feed.

use crate::client::{Call, Client};
use http::StatusCode;
use serde_json::{Value as Json, json};

fn script(id: &str) -> Json {
    json!({ "id": id, "body": "function () {}", "triggerType": "pre", "triggerOperation": "create" })
}

#[tokio::test]
async fn scripts_of_every_kind_are_kept() {
    let client = Client::with_container().await;
    for (kind, envelope) in
        [("sprocs", "StoredProcedures"), ("triggers", "Triggers"), ("udfs", "UserDefinedFunctions")]
    {
        let feed = format!("/dbs/d/colls/c/{kind}");
        let made = client.create(&feed, script("s")).await;
        let one = format!("{feed}/s");
        let read = client.send(Call::get(&one)).await;
        assert_eq!((read.json(), read.header("etag")), (made.clone(), made["_etag"].as_str()));
        let rid = made["_rid"].as_str().unwrap().to_lowercase();
        let link = format!("/{}", made["_self"].as_str().unwrap());
        assert_eq!(client.send(Call::get(&link).signed_as(kind, &rid)).await.json(), made);
        assert_eq!(client.send(Call::post(&feed).json(&script("s"))).await.code(), (409, 0));
        client.create(&feed, script("s2")).await;
        client.create(&feed, script("s3")).await;
        assert_eq!(client.listed(&feed, envelope).await, ["s", "s2", "s3"]);

        let mut body = script("s");
        body["body"] = json!("function () { return 1; }");
        let replaced = client.send(Call::put(&one).json(&body)).await;
        assert_eq!((replaced.status, &replaced.json()["body"]), (StatusCode::OK, &body["body"]));
        let stale = Call::put(&one).header("if-match", made["_etag"].as_str().unwrap()).json(&body);
        assert_eq!(client.send(stale).await.code(), (412, 0));
        assert_eq!(client.send(Call::put(&one).json(&script("renamed"))).await.code(), (400, 0));
        let upsert = Call::post(&feed).header("x-ms-documentdb-is-upsert", "true").json(&script("s"));
        assert_eq!(client.send(upsert).await.status, StatusCode::OK);
        assert_eq!(client.send(Call::delete(&one)).await.status, StatusCode::NO_CONTENT);
        assert_eq!(client.send(Call::get(&one)).await.code(), (404, 0));
        assert_eq!(client.send(Call::get(&format!("/dbs/d/colls/x/{kind}/s"))).await.code(), (404, 1003));
    }
}

#[tokio::test]
async fn a_trigger_comes_back_in_the_letter_case_of_its_client() {
    let client = Client::with_container().await;
    let made = client.create("/dbs/d/colls/c/triggers", script("t")).await;
    assert_eq!((&made["triggerType"], &made["triggerOperation"]), (&json!("pre"), &json!("create")));
    let mut capitals = script("t2");
    capitals["triggerType"] = json!("Post");
    capitals["triggerOperation"] = json!("All");
    client.create("/dbs/d/colls/c/triggers", capitals).await;
    let read = client.send(Call::get("/dbs/d/colls/c/triggers/t2")).await.json();
    assert_eq!((&read["triggerType"], &read["triggerOperation"]), (&json!("Post"), &json!("All")));
    let procedure = client.create("/dbs/d/colls/c/sprocs", script("s")).await;
    assert_eq!(procedure.get("triggerType"), None);
}

#[tokio::test]
async fn a_container_has_so_many_scripts_and_no_more() {
    let client = Client::with_container().await;
    for number in 0..50 {
        client.create("/dbs/d/colls/c/udfs", script(&format!("f{number}"))).await;
    }
    let one_more = client.send(Call::post("/dbs/d/colls/c/udfs").json(&script("more"))).await;
    assert_eq!(one_more.code(), (403, 1005));
    let upsert = Call::post("/dbs/d/colls/c/udfs").header("x-ms-documentdb-is-upsert", "true");
    assert_eq!(client.send(upsert.json(&script("f7"))).await.status, StatusCode::OK);
    client.create("/dbs/d/colls/c/triggers", script("t")).await;
}

#[tokio::test]
async fn executing_is_refused_with_a_reason() {
    let client = Client::with_container().await;
    let call = Call::post("/dbs/d/colls/c/sprocs/s").key(&json!(["a"])).json(&json!([1]));
    assert_eq!(client.send(call.clone()).await.code(), (404, 0));
    client.create("/dbs/d/colls/c/sprocs", script("s")).await;
    let answer = client.send(call).await;
    assert_eq!(answer.code(), (400, 0));
    assert!(answer.message().contains("not supported"), "{answer:?}");
}

#[tokio::test]
async fn there_are_no_conflicts() {
    let client = Client::with_container().await;
    assert_eq!(client.listed("/dbs/d/colls/c/conflicts", "Conflicts").await, Vec::<String>::new());
    assert_eq!(client.send(Call::get("/dbs/d/colls/c/conflicts/x")).await.code(), (404, 0));
    assert_eq!(client.send(Call::delete("/dbs/d/colls/c/conflicts/x")).await.code(), (404, 0));
    assert_eq!(client.send(Call::get("/dbs/d/colls/x/conflicts")).await.code(), (404, 1003));
}

#[tokio::test]
async fn ids_of_scripts_may_contain_control_characters() {
    let client = Client::with_container().await;
    for (id, segment) in [("a\tb", "a%09b"), ("a\rb", "a%0Db"), ("a\nb", "a%0Ab")] {
        for kind in ["sprocs", "triggers", "udfs"] {
            client.create(&format!("/dbs/d/colls/c/{kind}"), script(id)).await;
            let one = format!("/dbs/d/colls/c/{kind}/{segment}");
            let signed = |call: Call| call.signed_as(kind, &format!("dbs/d/colls/c/{kind}/{id}"));
            assert_eq!(client.send(signed(Call::get(&one))).await.json()["id"], id);
            assert_eq!(client.send(signed(Call::delete(&one))).await.status, StatusCode::NO_CONTENT);
        }
    }
}
