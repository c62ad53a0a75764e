//! Queries over databases, containers, offers and the other small resources.

use crate::client::{Answer, Call, Client, container};
use serde_json::{Value as Json, json};

fn query(path: &str, text: &str) -> Call {
    Call::post(path).header("content-type", "application/query+json").json(&json!({ "query": text }))
}

fn with_parameters(path: &str, text: &str, parameters: Json) -> Call {
    let body = json!({ "query": text, "parameters": parameters });
    Call::post(path).header("x-ms-documentdb-isquery", "True").json(&body)
}

#[track_caller]
fn rows(answer: &Answer, envelope: &str) -> Vec<Json> {
    assert_eq!(answer.code(), (200, 0), "{answer:?}");
    let page = answer.json();
    let rows = page[envelope].as_array().unwrap();
    assert_eq!(page["_count"], rows.len());
    assert_eq!(answer.header("x-ms-item-count").unwrap(), rows.len().to_string());
    rows.clone()
}

/// Each client queries the offer of a container in a different form.
#[tokio::test]
async fn the_offer_of_a_container_is_found_in_the_words_of_every_client() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let made = client.create("/dbs/d/colls", container("c")).await;
    client.create("/dbs/d/colls", container("other")).await;
    let (link, rid) = (made["_self"].as_str().unwrap(), made["_rid"].as_str().unwrap());
    let calls = [
        with_parameters(
            "/offers",
            "SELECT * FROM root r WHERE r.resource=@link",
            json!([{ "name": "@link", "value": link }]),
        ),
        query("/offers", &format!("SELECT * from root where root.resource = \"{link}\"")),
        query("/offers", &format!("SELECT * FROM c WHERE c.offerResourceId = '{rid}'")),
        with_parameters(
            "/offers",
            "select * from c where c.offerResourceId = @resourceId",
            json!([{ "name": "@resourceId", "value": rid }]),
        ),
        with_parameters(
            "/offers/",
            "select * from root r where r.offerResourceId= @targetRID",
            json!([{ "name": "@targetRID", "value": rid }]),
        ),
    ];
    for call in calls {
        let found = rows(&client.send(call).await, "Offers");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["content"]["offerThroughput"], 400);
        let path = format!("/offers/{}", found[0]["_rid"].as_str().unwrap());
        assert_eq!(client.send(Call::get(&path)).await.json(), found[0]);
    }
    let none = query("/offers", "SELECT * FROM c WHERE c.offerResourceId = 'x'");
    assert!(rows(&client.send(none).await, "Offers").is_empty());
}

#[tokio::test]
async fn every_list_can_be_queried() {
    let client = Client::with_container().await;
    client.create("/dbs/d/users", json!({ "id": "u" })).await;
    let permission = json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" });
    client.create("/dbs/d/users/u/permissions", permission).await;
    for kind in ["sprocs", "udfs"] {
        let script = json!({ "id": "s", "body": "function () {}" });
        client.create(&format!("/dbs/d/colls/c/{kind}"), script).await;
    }
    for (path, envelope, expected) in [
        ("/dbs", "Databases", json!(["d"])),
        ("/dbs/d/colls", "DocumentCollections", json!(["c"])),
        ("/dbs/d/users", "Users", json!(["u"])),
        ("/dbs/d/users/u/permissions", "Permissions", json!(["p"])),
        ("/dbs/d/clientencryptionkeys", "ClientEncryptionKeys", json!([])),
        ("/dbs/d/colls/c/sprocs", "StoredProcedures", json!(["s"])),
        ("/dbs/d/colls/c/triggers", "Triggers", json!([])),
        ("/dbs/d/colls/c/udfs", "UserDefinedFunctions", json!(["s"])),
        ("/dbs/d/colls/c/conflicts", "Conflicts", json!([])),
    ] {
        let everything = client.send(query(path, "SELECT * FROM c")).await;
        let listed = client.send(Call::get(path)).await.json();
        assert_eq!(Json::from(rows(&everything, envelope)), listed[envelope], "{path}");
        let ids = client.send(query(path, "SELECT VALUE c.id FROM c WHERE c._ts > 0")).await;
        assert_eq!(Json::from(rows(&ids, envelope)), expected, "{path}");
        let none = client.send(query(path, "SELECT c.id FROM c WHERE c.id = 'absent'")).await;
        assert!(rows(&none, envelope).is_empty(), "{path}");
    }
    let paths = "SELECT VALUE p FROM c JOIN p IN c.partitionKey.paths";
    let found = client.send(query("/dbs/d/colls", paths)).await;
    assert_eq!(rows(&found, "DocumentCollections"), [json!("/pk")]);
}

#[tokio::test]
async fn results_come_in_pages_that_belong_to_their_query() {
    let client = Client::empty().await;
    for number in 0..5 {
        client.create("/dbs", json!({ "id": format!("d{number}") })).await;
    }
    let call =
        query("/dbs", "SELECT VALUE c.id FROM c ORDER BY c.id DESC").header("x-ms-max-item-count", "2");
    let mut pages = Vec::new();
    let mut next = call.clone();
    let mut first = None;
    loop {
        let answer = client.send(next).await;
        pages.push(Json::from(rows(&answer, "Databases")));
        let Some(continuation) = answer.header("x-ms-continuation") else { break };
        first.get_or_insert(continuation.to_owned());
        next = call.clone().header("x-ms-continuation", continuation);
    }
    assert_eq!(Json::from(pages), json!([["d4", "d3"], ["d2", "d1"], ["d0"]]));
    let token = first.unwrap();
    for other in [
        query("/dbs", "SELECT VALUE c.id FROM c"),
        query("/dbs/d0/colls", "SELECT VALUE c.id FROM c ORDER BY c.id DESC"),
        Call::get("/dbs"),
    ] {
        let answer = client.send(other.header("x-ms-continuation", &token)).await;
        assert_eq!(answer.code(), (400, 0), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_told_as_the_service_does() {
    let client = Client::empty().await;
    let answer = client.send(query("/dbs", "SELECT BADFUNC(c.id) FROM c")).await;
    assert_eq!(answer.code(), (400, 0));
    let message = answer.message();
    let errors: Json = serde_json::from_str(message.split("\r\n").next().unwrap()).unwrap();
    assert_eq!(errors["errors"][0]["code"], "SC2005");
    assert_eq!(errors["errors"][0]["location"], json!({ "start": 7, "end": 14 }));
    for text in ["SELECT udf.f(c.id) FROM c", "SELECT * FROM c ORDER BY RANK FullTextScore(c.id, 'x')"] {
        client.send(Call::post("/dbs").json(&json!({ "id": "d" }))).await;
        assert_eq!(client.send(query("/dbs", text)).await.code(), (400, 0), "{text}");
    }
}
