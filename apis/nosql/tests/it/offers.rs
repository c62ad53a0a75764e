//! Offers: found, listed, changed within their limits.

use crate::client::{Answer, Call, Client, container};
use http::StatusCode;
use serde_json::{Value as Json, json};

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

#[tokio::test]
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
    let lowered = changed(&client, &raised, 500).await.json();
    assert_eq!(lowered["content"]["offerThroughput"], 500);
    assert_eq!(parameters(&lowered)["maxThroughputEverProvisioned"], 50_000);
    let read = client.send(Call::get(&format!("/offers/{}", offer["_rid"].as_str().unwrap()))).await;
    assert_eq!(read.json(), lowered);

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
