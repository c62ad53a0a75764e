//! Offers: found, listed, changed within their limits.

use crate::client::{Answer, Call, Client, DOCS, container};
use engine::{EngineOptions, ThroughputMode};
use http::StatusCode;
use nosql::NosqlOptions;
use serde_json::{Value as Json, json};
use std::time::Duration;

const PENDING: &str = "x-ms-offer-replace-pending";
const MINIMUM: &str = "x-ms-cosmos-min-throughput";
/// Requests after which the splits for a higher rate should be done.
const REQUESTS_MAX: usize = 5_000;

#[tokio::test]
async fn offers_are_found_by_rid_and_listed() {
    let client = Client::empty().await;
    let settings = "{\"maxThroughput\":4000}";
    let call = Call::post("/dbs")
        .header("x-ms-cosmos-offer-autopilot-settings", settings)
        .json(&json!({ "id": "d" }));
    let database = client.send(call).await.json();
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "500").json(&container("c"));
    let made = client.send(call).await.json();
    let list = client.send(Call::get("/offers")).await.json();
    let offers = list["Offers"].as_array().unwrap();
    assert_eq!(offers.len(), 2);
    assert_eq!(offers[0]["offerResourceId"], database["_rid"]);
    assert_eq!(offers[0]["content"]["offerAutopilotSettings"]["maxThroughput"], 4000);
    assert_eq!(offers[0]["content"]["offerThroughput"], 400);
    assert_eq!((&offers[1]["resource"], &offers[1]["offerResourceId"]), (&made["_self"], &made["_rid"]));
    assert_eq!(offers[1]["content"]["offerThroughput"], 500);
    let answer = client.send(Call::get(&format!("/offers/{}", offers[1]["_rid"].as_str().unwrap()))).await;
    assert_eq!(answer.json(), offers[1]);
    assert_eq!(answer.header("x-ms-offer-replace-pending"), Some("false"));
    assert_eq!(client.send(Call::get("/offers/AAAA")).await.code(), (404, 0));
}

/// An account with a container of 400 RU/s, and its offer.
async fn with_offer() -> (Client, Json) {
    let client = Client::with_container().await;
    let list = client.send(Call::get("/offers")).await.json();
    let offer = list["Offers"][0].clone();
    (client, offer)
}

fn put(offer: &Json) -> Call {
    Call::put(&format!("/offers/{}", offer["_rid"].as_str().unwrap())).json(offer)
}

async fn changed(client: &Client, offer: &Json, rate: u64) -> Answer {
    let mut body = offer.clone();
    body["content"]["offerThroughput"] = json!(rate);
    client.send(put(&body)).await
}

async fn read(client: &Client, offer: &Json) -> Answer {
    client.send(Call::get(&format!("/offers/{}", offer["_rid"].as_str().unwrap()))).await
}

/// Reads an offer until its change is complete.
async fn completed(client: &Client, offer: &Json) -> Answer {
    for _ in 0..REQUESTS_MAX {
        let answer = read(client, offer).await;
        if answer.header(PENDING) == Some("false") {
            return answer;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the change is never complete");
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_changed_and_its_history_kept() {
    let (client, offer) = with_offer().await;
    let answer = changed(&client, &offer, 50_000).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("x-ms-offer-replace-pending"), Some("true"));
    assert_eq!(answer.header("x-ms-cosmos-min-throughput"), Some("500"));
    let raised = answer.json();
    assert_eq!(raised["content"]["offerThroughput"], 50_000);
    assert_ne!(raised["_etag"], offer["_etag"]);
    let parameters = |offer: &Json| offer["content"]["offerMinimumThroughputParameters"].clone();
    assert_eq!(parameters(&raised)["maxThroughputEverProvisioned"], 50_000);

    for rate in [0, 400, 499, 550, 1_000_100] {
        let refused = changed(&client, &raised, rate).await;
        assert_eq!(refused.code(), (400, 0), "{rate}");
        assert!(refused.message().contains("content.offerThroughput"), "{refused:?}");
    }
    completed(&client, &offer).await;
    let lowered = changed(&client, &raised, 500).await.json();
    assert_eq!(lowered["content"]["offerThroughput"], 500);
    assert_eq!(parameters(&lowered)["maxThroughputEverProvisioned"], 50_000);
    assert_eq!(read(&client, &offer).await.json(), lowered);

    let stale = put(&lowered).header("if-match", offer["_etag"].as_str().unwrap());
    assert_eq!(client.send(stale).await.code(), (412, 0));
}

#[tokio::test]
async fn a_rate_migrates_both_ways_and_only_so() {
    let (client, offer) = with_offer().await;
    let mut autoscale = offer.clone();
    autoscale["content"] = json!({ "offerAutopilotSettings": { "maxThroughput": 4000 } });
    assert_eq!(client.send(put(&autoscale)).await.code(), (400, 0));

    let to_autoscale = put(&offer).header("x-ms-cosmos-migrate-offer-to-autopilot", "true");
    let migrated = client.send(to_autoscale.clone()).await;
    assert_eq!(migrated.status, StatusCode::OK, "{migrated:?}");
    assert_eq!(migrated.header("x-ms-cosmos-min-throughput"), Some("1000"));
    assert_eq!(migrated.json()["content"]["offerAutopilotSettings"]["maxThroughput"], 1000);
    assert_eq!(client.send(to_autoscale).await.code(), (400, 0));

    let answer = client.send(put(&autoscale)).await;
    assert_eq!(answer.json()["content"]["offerAutopilotSettings"]["maxThroughput"], 4000);
    autoscale["content"]["offerAutopilotSettings"]["maxThroughput"] = json!(4500);
    assert_eq!(client.send(put(&autoscale)).await.code(), (400, 0));
    assert_eq!(changed(&client, &offer, 500).await.code(), (400, 0));

    let back = put(&offer).header("x-ms-cosmos-migrate-offer-to-manual-throughput", "True");
    let back = client.send(back).await.json();
    assert_eq!(back["content"]["offerThroughput"], 4000);
    assert!(back["content"].get("offerAutopilotSettings").is_none());
}

#[tokio::test]
async fn a_database_pays_for_its_containers() {
    let client = Client::empty().await;
    let call = Call::post("/dbs").header("x-ms-offer-throughput", "1000").json(&json!({ "id": "d" }));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    for number in 0..27 {
        client.create("/dbs/d/colls", container(&format!("c{number}"))).await;
    }
    let own = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "400").json(&container("own"));
    assert_eq!(client.send(own).await.status, StatusCode::CREATED);
    let offer = client.send(Call::get("/offers")).await.json()["Offers"][0].clone();
    let answer = changed(&client, &offer, 600).await;
    assert_eq!((answer.status, answer.header("x-ms-cosmos-min-throughput")), (StatusCode::OK, Some("600")));
    assert_eq!(changed(&client, &offer, 500).await.code(), (400, 0));
}

#[tokio::test]
async fn an_offer_is_replaced_by_itself_only() {
    let (client, offer) = with_offer().await;
    for (name, value) in [("_rid", "AgAA"), ("offerResourceId", "AQAAAA=="), ("resource", "dbs/AQAAAA==/")] {
        let mut body = offer.clone();
        body[name] = json!(value);
        let path = format!("/offers/{}", offer["_rid"].as_str().unwrap());
        let answer = client.send(Call::put(&path).json(&body)).await;
        assert_eq!(answer.code(), (400, 0), "{name}");
        assert!(answer.message().contains(name), "{answer:?}");
    }
    assert_eq!(client.send(Call::put("/offers/AgAA").json(&offer)).await.code(), (404, 0));
}

/// Another change would have to undo or outrun the splits of the first.
#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_one_before() {
    let (client, offer) = with_offer().await;
    let raised = changed(&client, &offer, 50_000).await;
    assert_eq!(raised.header(PENDING), Some("true"));
    for rate in [60_000, 50_000, 500] {
        let refused = changed(&client, &offer, rate).await;
        assert_eq!(refused.code(), (423, 0), "{refused:?}");
        assert_eq!(refused.json()["code"], "Locked");
        assert!(refused.message().contains("another scale operation in progress"), "{refused:?}");
    }
    let migration = put(&offer).header("x-ms-cosmos-migrate-offer-to-autopilot", "true");
    assert_eq!(client.send(migration.clone()).await.code(), (423, 0));
    // What is wrong in any case is said first, and so is a version that is not the present one.
    assert_eq!(changed(&client, &offer, 450).await.code(), (400, 0));
    let stale = put(&raised.json()).header("if-match", offer["_etag"].as_str().unwrap());
    assert_eq!(client.send(stale).await.code(), (412, 0));
    let settled = completed(&client, &offer).await;
    assert_eq!(settled.json(), raised.json());
    assert_eq!(client.send(migration).await.status, StatusCode::OK);
}

/// One request unit per second for each gigabyte in the service; here for each hundred bytes.
#[tokio::test]
async fn the_minimum_follows_what_is_stored() {
    let engine = EngineOptions { stored_bytes_per_unit: 100, ..EngineOptions::default() };
    let client = Client::with_engine(NosqlOptions::default(), engine).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    let offer = client.send(Call::get("/offers")).await.json()["Offers"][0].clone();
    assert_eq!(read(&client, &offer).await.header(MINIMUM), Some("400"));
    client.create(DOCS, json!({ "id": "1", "pk": "a", "text": "x".repeat(60_100) })).await;
    assert_eq!(read(&client, &offer).await.header(MINIMUM), Some("700"));
    assert_eq!(changed(&client, &offer, 600).await.code(), (400, 0));
    let raised = changed(&client, &offer, 700).await;
    assert_eq!((raised.status, raised.header(MINIMUM)), (StatusCode::OK, Some("700")));
    // At a tenth of the maximum autoscale must have as much.
    let migrated = client.send(put(&offer).header("x-ms-cosmos-migrate-offer-to-autopilot", "true")).await;
    assert_eq!(migrated.json()["content"]["offerAutopilotSettings"]["maxThroughput"], 7000);
    assert_eq!(migrated.header(MINIMUM), Some("7000"));
    assert_eq!(client.send(Call::delete(&format!("{DOCS}/1")).key(&json!(["a"]))).await.code(), (204, 0));
    assert_eq!(read(&client, &offer).await.header(MINIMUM), Some("1000"));
    let back = put(&offer).header("x-ms-cosmos-migrate-offer-to-manual-throughput", "true");
    assert_eq!(client.send(back).await.header(MINIMUM), Some("400"));
    assert_eq!(changed(&client, &offer, 400).await.status, StatusCode::OK);
}

#[tokio::test]
async fn autoscale_refuses_what_exceeds_its_maximum() {
    let engine = EngineOptions { throughput: ThroughputMode::Enforce, ..EngineOptions::default() };
    let client = Client::with_engine(NosqlOptions::default(), engine).await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let settings = json!({ "maxThroughput": 1000 }).to_string();
    let made = Call::post("/dbs/d/colls").header("x-ms-cosmos-offer-autopilot-settings", settings);
    assert_eq!(client.send(made.json(&container("c"))).await.status, StatusCode::CREATED);
    let offer = client.send(Call::get("/offers")).await.json()["Offers"][0].clone();
    assert_eq!(offer["content"]["offerThroughput"], 100, "a tenth of the maximum: nothing is used");
    let create =
        |id: usize| Call::post(DOCS).key(&json!(["a"])).json(&json!({ "id": id.to_string(), "pk": "a" }));
    let mut created = 0;
    let refused = loop {
        let answer = client.send(create(created)).await;
        if answer.status != StatusCode::CREATED {
            break answer;
        }
        created += 1;
        assert!(created < 1000, "nothing is refused");
    };
    // 5.14 RU each.
    assert_eq!((created, refused.code()), (195, (429, 3200)));
    assert_eq!(refused.header("x-ms-request-charge"), Some("0.00"));
    let delay_ms: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
    assert!((1..1000).contains(&delay_ms), "{delay_ms}");
    client.advance(1);
    assert_eq!(read(&client, &offer).await.json()["content"]["offerThroughput"], 1000);
    assert_eq!(client.send(create(created)).await.status, StatusCode::CREATED);
    client.advance(60);
    assert_eq!(read(&client, &offer).await.json()["content"]["offerThroughput"], 100);
}
