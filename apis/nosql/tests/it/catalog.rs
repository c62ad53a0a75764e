//! Account, databases, containers, ranges, offers.

use crate::client::{Call, Client, DOCS, container};
use http::StatusCode;
use nosql::{ConnectionInfo, NosqlOptions};
use serde_json::{Value as Json, json};

#[tokio::test]
async fn the_account_tells_the_address_that_the_client_used() {
    let client = Client::empty().await;
    let answer = client.send(Call::get("/")).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("etag"), None);
    let account = answer.json();
    assert_eq!(account["id"], "localhost");
    assert_eq!(account["writableLocations"][0]["databaseAccountEndpoint"], "http://localhost:8081/");
    assert_eq!(account["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    let text = account["queryEngineConfiguration"].as_str().unwrap();
    assert!(serde_json::from_str::<Json>(text).unwrap().is_object());

    let call = Call::get("/").header("host", "acct.example:443");
    let account = client
        .send_by(
            call,
            ConnectionInfo { secure: true, peer: std::net::Ipv4Addr::LOCALHOST.into(), memory: None },
        )
        .await
        .json();
    assert_eq!(account["readableLocations"][0]["databaseAccountEndpoint"], "https://acct.example:443/");
    assert_eq!(account["id"], "acct");
}

#[tokio::test]
async fn a_configured_endpoint_goes_before_the_used_one() {
    let public_endpoint = Some("https://db.example".to_owned());
    let client = Client::with_options(NosqlOptions { public_endpoint, ..NosqlOptions::default() }).await;
    let account = client.send(Call::get("/")).await.json();
    assert_eq!(account["writableLocations"][0]["databaseAccountEndpoint"], "https://db.example/");
}

#[tokio::test]
async fn a_database_lives_by_name_and_by_rid() {
    let client = Client::empty().await;
    let made = client.create("/dbs/", json!({ "id": "my db" })).await;
    let rid = made["_rid"].as_str().unwrap();
    assert_eq!(made["_self"], format!("dbs/{rid}/"));
    assert_eq!((&made["_colls"], &made["_users"]), (&json!("colls/"), &json!("users/")));
    let by_name = client.send(Call::get("/dbs/my%20db")).await;
    assert_eq!(by_name.json(), made);
    assert_eq!(by_name.header("etag").unwrap(), made["_etag"]);
    let by_rid = Call::get(&format!("/dbs/{rid}/")).signed_as("dbs", &rid.to_lowercase());
    assert_eq!(client.send(by_rid).await.json(), made);

    let twice = client.send(Call::post("/dbs").json(&json!({ "id": "my db" }))).await;
    assert_eq!(twice.code(), (409, 0));
    let deleted = client.send(Call::delete("/dbs/my%20db")).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert!(deleted.body.is_empty() && deleted.header("content-length").is_none());
    assert_eq!(client.send(Call::get("/dbs/my%20db")).await.code(), (404, 0));
    assert_eq!(client.send(Call::get("/dbs/my%20db/colls")).await.code(), (404, 1003));
}

#[tokio::test]
async fn databases_and_containers_are_listed_in_pages() {
    let client = Client::empty().await;
    for number in 0..5 {
        client.create("/dbs", json!({ "id": format!("d{number}") })).await;
        client.create("/dbs/d0/colls", container(&format!("c{number}"))).await;
    }
    for (path, envelope, prefix) in
        [("/dbs", "Databases", "d"), ("/dbs/d0/colls/", "DocumentCollections", "c")]
    {
        let expected: Vec<String> = (0..5).map(|number| format!("{prefix}{number}")).collect();
        let by_query = Call::post(path)
            .header("content-type", "application/query+json")
            .json(&json!({ "query": "SELECT * FROM c" }));
        for call in [Call::get(path), by_query] {
            let call = call.header("x-ms-max-item-count", "2");
            assert_eq!(ids_in_pages(&client, call, envelope).await, expected, "{path}");
        }
    }
}

/// The ids on all pages of a list.
async fn ids_in_pages(client: &Client, mut call: Call, envelope: &str) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let answer = client.send(call.clone()).await;
        let page = answer.json();
        let items = page[envelope].as_array().unwrap();
        assert!(items.len() <= 2 && page["_count"] == items.len());
        assert_eq!(answer.header("x-ms-item-count").unwrap(), items.len().to_string());
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(continuation) = answer.header("x-ms-continuation") else {
            return ids;
        };
        call = call.header("x-ms-continuation", continuation);
    }
}

#[tokio::test]
async fn a_container_has_defaults_and_links() {
    let client = Client::with_container().await;
    let answer = client.send(Call::get("/dbs/d/colls/c")).await;
    let made = answer.json();
    assert_eq!(made["indexingPolicy"]["indexingMode"], "consistent");
    assert_eq!(made["conflictResolutionPolicy"]["conflictResolutionPath"], "/_ts");
    assert_eq!(made["geospatialConfig"]["type"], "Geography");
    assert_eq!(made["_docs"], "docs/");
    assert_eq!(answer.header("etag").unwrap(), made["_etag"]);
    let (link, rid) = (made["_self"].as_str().unwrap(), made["_rid"].as_str().unwrap());
    let by_rid = Call::get(&format!("/{link}")).signed_as("colls", &rid.to_lowercase());
    assert_eq!(client.send(by_rid).await.json(), made);
    let ranges = Call::get(&format!("/{link}pkranges")).signed_as("pkranges", &rid.to_lowercase());
    assert_eq!(client.send(ranges).await.json()["_rid"], rid);
}

#[tokio::test]
async fn a_container_is_replaced_but_not_its_key() {
    let client = Client::with_container().await;
    let before = client.send(Call::get("/dbs/d/colls/c")).await.json();
    let mut body = before.clone();
    body["defaultTtl"] = json!(60);
    let answer = client.send(Call::put("/dbs/d/colls/c").json(&body)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.json()["defaultTtl"], 60);
    assert_ne!(answer.json()["_etag"], before["_etag"]);
    assert_eq!(answer.json()["_rid"], before["_rid"]);

    let stale = Call::put("/dbs/d/colls/c").header("if-match", before["_etag"].as_str().unwrap()).json(&body);
    assert_eq!(client.send(stale).await.code(), (412, 0));
    body["partitionKey"]["paths"] = json!(["/other"]);
    assert_eq!(client.send(Call::put("/dbs/d/colls/c").json(&body)).await.code(), (400, 0));
}

#[tokio::test]
async fn a_container_made_anew_has_a_new_rid() {
    let client = Client::with_container().await;
    let first = client.send(Call::get("/dbs/d/colls/c")).await.json()["_rid"].as_str().unwrap().to_owned();
    assert_eq!(client.send(Call::delete("/dbs/d/colls/c")).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.send(Call::get(&format!("{DOCS}/1")).key(&json!(["a"]))).await.code(), (404, 1003));
    client.create("/dbs/d/colls", container("c")).await;
    let old = Call::get(&format!("{DOCS}/1")).key(&json!(["a"]));
    let old = old.header("x-ms-cosmos-intended-collection-rid", &first);
    assert_eq!(client.send(old).await.code(), (400, 1024));
}

#[tokio::test]
async fn ranges_end_with_not_modified() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "24000").json(&container("c"));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    let call = Call::get("/dbs/d/colls/c/pkranges/").header("x-ms-max-item-count", "-1");
    let call = call.header("a-im", "Incremental feed");
    let answer = client.send(call.clone()).await;
    let ranges = answer.json()["PartitionKeyRanges"].as_array().unwrap().clone();
    assert_eq!(ranges.len(), 4);
    assert_eq!((&ranges[0]["minInclusive"], &ranges[3]["maxExclusive"]), (&json!(""), &json!("FF")));
    assert_eq!(ranges[1]["minInclusive"], "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    assert_eq!((&ranges[0]["id"], &ranges[0]["parents"]), (&json!("0"), &json!([])));
    let etag = answer.header("etag").unwrap();
    let again = client.send(call.header("if-none-match", etag)).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    assert_eq!(again.header("etag").unwrap(), etag);
    assert!(again.body.is_empty() && again.header("content-length").is_none());
}

#[tokio::test]
async fn the_number_of_ranges_follows_the_throughput() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let rates = [(400, 1), (10_000, 1), (10_100, 2), (12_000, 2), (18_000, 3), (25_100, 5), (30_000, 5)];
    for (rate, count) in rates {
        let id = format!("c{rate}");
        let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", rate.to_string());
        assert_eq!(client.send(call.json(&container(&id))).await.status, StatusCode::CREATED);
        let ranges = client.send(Call::get(&format!("/dbs/d/colls/{id}/pkranges"))).await.json();
        assert_eq!(ranges["_count"], count, "{rate}");
    }
    let autoscale = Call::post("/dbs/d/colls")
        .header("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":18000}")
        .json(&container("auto"));
    assert_eq!(client.send(autoscale).await.status, StatusCode::CREATED);
    assert_eq!(client.send(Call::get("/dbs/d/colls/auto/pkranges")).await.json()["_count"], 3);
}

#[tokio::test]
async fn region_and_consistency_are_settings_of_the_account() {
    let options = NosqlOptions {
        region: "West US".to_owned(),
        consistency: nosql::ConsistencyLevel::Strong,
        ..NosqlOptions::default()
    };
    let client = Client::with_options(options).await;
    let account = client.send(Call::get("/").header("x-ms-consistency-level", "Strong")).await.json();
    assert_eq!(account["writableLocations"][0]["name"], "West US");
    assert_eq!(account["userConsistencyPolicy"]["defaultConsistencyLevel"], "Strong");
    let client = Client::empty().await;
    let account = client.send(Call::get("/")).await.json();
    assert_eq!(account["readableLocations"][0]["name"], "Local");
    assert_eq!(account["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    let strong = Call::get("/").header("x-ms-consistency-level", "Strong");
    assert_eq!(client.send(strong).await.code(), (400, 0));
}
