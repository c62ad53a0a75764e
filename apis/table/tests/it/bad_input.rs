//! Bad input in every field of an entity: the documented code, and nothing is written.

use crate::client::{Call, Client, address, code};
use serde_json::json;

fn text(units: usize) -> String {
    "x".repeat(units)
}

#[tokio::test]
async fn bad_bodies_are_refused_by_inserts_and_updates() {
    let client = Client::with_table().await;
    for (members, expected) in [
        (r#""a":[1]"#.to_owned(), "InvalidInput"),
        (r#""a":{"b":1}"#.to_owned(), "InvalidInput"),
        (r#""a":1,"a":2"#.to_owned(), "DuplicatePropertiesSpecified"),
        (r#""a@odata.type":"Edm.Int64","a":"x""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.Int64","a":"9223372036854775808""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.Guid","a":"x""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.Binary","a":"*""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.Binary","a":"AAE""#.to_owned(), "InvalidInput"),
        (r#""a":2147483648"#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.DateTime","a":"1600-12-31T23:59:59Z""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.DateTime","a":"2024-13-01""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.Double","a":"1e999""#.to_owned(), "InvalidInput"),
        (r#""a@odata.type":"Edm.Nothing","a":1"#.to_owned(), "InvalidInput"),
        (r#""a b":1"#.to_owned(), "PropertyNameInvalid"),
        (r#""1a":1"#.to_owned(), "PropertyNameInvalid"),
        (format!(r#""{}":1"#, text(256)), "PropertyNameTooLong"),
        (format!(r#""a":"{}""#, text(32 * 1024 + 1)), "PropertyValueTooLarge"),
    ] {
        let insert =
            Call::new("POST", "people").json(&format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#));
        assert_eq!(client.refusal(insert).await, code(400, expected), "{members:.60}");
        for verb in ["PUT", "MERGE"] {
            let update = Call::new(verb, address("p", "r")).json(&format!("{{{members}}}"));
            assert_eq!(client.refusal(update).await, code(400, expected), "{verb} {members:.60}");
        }
        assert!(client.entity("p", "r").await.is_none());
    }
    for body in ["", "[]", "1", "{", "{}x", "\u{feff}x"] {
        let refused = client.refusal(Call::new("POST", "people").json(body)).await;
        assert_eq!(refused, code(400, "InvalidInput"), "{body}");
    }
}

#[tokio::test]
async fn bad_keys_are_refused() {
    let client = Client::with_table().await;
    for (keys, expected) in [
        (json!({ "PartitionKey": "p" }), "PropertiesNeedValue"),
        (json!({ "RowKey": "r" }), "PropertiesNeedValue"),
        (json!({ "PartitionKey": null, "RowKey": "r" }), "PropertiesNeedValue"),
        (json!({ "PartitionKey": 1, "RowKey": "r" }), "InvalidInput"),
        (json!({ "PartitionKey": "p", "RowKey": "a/b" }), "OutOfRangeInput"),
        (json!({ "PartitionKey": "a\\b", "RowKey": "r" }), "OutOfRangeInput"),
        (json!({ "PartitionKey": "a#", "RowKey": "r" }), "OutOfRangeInput"),
        (json!({ "PartitionKey": "p", "RowKey": "a?" }), "OutOfRangeInput"),
        (json!({ "PartitionKey": "p", "RowKey": "a\nb" }), "OutOfRangeInput"),
        (json!({ "PartitionKey": text(513), "RowKey": "r" }), "KeyValueTooLarge"),
        (json!({ "PartitionKey": "p", "RowKey": text(513) }), "KeyValueTooLarge"),
    ] {
        let refused = client.refusal(Call::new("POST", "people").json(&keys.to_string())).await;
        assert_eq!(refused, code(400, expected), "{keys:.80}");
    }
    for (path, expected) in [
        (address("a%2Fb", "r"), "OutOfRangeInput"),
        (address("p", "a%23"), "OutOfRangeInput"),
        (address("p", &text(513)), "KeyValueTooLarge"),
    ] {
        for verb in ["GET", "PUT", "MERGE", "DELETE"] {
            let call = Call::new(verb, path.clone()).header("if-match", "*").json("{}");
            assert_eq!(client.refusal(call).await, code(400, expected), "{verb} {path:.80}");
        }
    }
    let differing = Call::new("PUT", address("p", "r")).json(r#"{"PartitionKey":"q"}"#);
    assert_eq!(client.refusal(differing).await, code(400, "InvalidInput"));
    assert_eq!(client.send(Call::get("people()")).await.json()["value"], json!([]));
}

#[tokio::test]
async fn keys_and_times_have_the_limits_of_the_account() {
    let client = Client::with_table().await;
    let put = |units: usize| Call::new("PUT", address(&text(units), &text(units))).json("{}");
    client.send(put(512)).await.expect(204);
    assert_eq!(client.refusal(put(513)).await, code(400, "KeyValueTooLarge"));
    client.send(put(1024).cosmos()).await.expect(204);
    assert_eq!(client.refusal(put(1025).cosmos()).await, code(400, "KeyValueTooLarge"));
    let time = |time: &str| {
        let body = json!({ "t@odata.type": "Edm.DateTime", "t": time }).to_string();
        Call::new("PUT", address("p", "r")).json(&body)
    };
    client.send(time("1601-01-01T00:00:00Z")).await.expect(204);
    assert_eq!(client.refusal(time("1600-12-31T23:59:59.9999999Z")).await, code(400, "InvalidInput"));
    client.send(time("0001-01-01T00:00:00Z").cosmos()).await.expect(204);
    assert_eq!(client.entity("p", "r").await.unwrap()["t"], "0001-01-01T00:00:00.0000000Z");
}

fn properties(from: usize, to: usize) -> String {
    let members: Vec<String> = (from..to).map(|index| format!(r#""n{index}":1"#)).collect();
    format!("{{{}}}", members.join(","))
}

#[tokio::test]
async fn an_entity_has_at_most_252_properties_also_after_a_merge() {
    let client = Client::with_table().await;
    let put = |to: usize| Call::new("PUT", address("p", "r")).json(&properties(0, to));
    assert_eq!(client.refusal(put(253)).await, code(400, "TooManyProperties"));
    client.send(put(252)).await.expect(204);
    let merge = |from: usize, to: usize| Call::new("MERGE", address("p", "r")).json(&properties(from, to));
    client.send(merge(200, 252)).await.expect(204);
    assert_eq!(client.refusal(merge(252, 253)).await, code(400, "TooManyProperties"));
    assert!(client.entity("p", "r").await.unwrap().get("n252").is_none());
}

#[tokio::test]
async fn an_entity_has_a_megabyte_or_two_also_after_a_merge() {
    let client = Client::with_table().await;
    // A text of 32,000 characters counts 64,004 bytes, its name and the property about a dozen more.
    let texts = |from: usize, count: usize| {
        let members: Vec<String> =
            (from..from + count).map(|index| format!(r#""s{index}":"{}""#, text(32_000))).collect();
        format!("{{{}}}", members.join(","))
    };
    let put = |count: usize| Call::new("PUT", address("p", "r")).json(&texts(0, count));
    assert_eq!(client.refusal(put(17)).await, code(400, "EntityTooLarge"));
    client.send(put(16)).await.expect(204);
    let merge = |call: Call| call.json(&texts(16, 1));
    let refused = client.refusal(merge(Call::new("MERGE", address("p", "r")))).await;
    assert_eq!(refused, code(400, "EntityTooLarge"));
    client.send(merge(Call::new("MERGE", address("p", "r"))).cosmos()).await.expect(204);
    client.send(put(32).cosmos()).await.expect(204);
    assert_eq!(client.refusal(put(33).cosmos()).await, code(400, "EntityTooLarge"));
}

#[tokio::test]
async fn throttled_requests_are_told_apart_by_account() {
    let options = engine::EngineOptions { throughput: engine::ThroughputMode::Enforce, ..Default::default() };
    let client = Client::with(options).await;
    let create = Call::new("POST", "Tables").json(r#"{"TableName":"people"}"#);
    client.send(create.header("x-ms-offer-throughput", "400")).await.expect(201);
    let mut throttled = None;
    for row in 0..200 {
        let body = json!({ "PartitionKey": "p", "RowKey": row.to_string(), "s": text(2000) }).to_string();
        let answer = client.send(Call::new("POST", "people").json(&body)).await;
        if answer.status.as_u16() != 201 {
            throttled = Some(answer);
            break;
        }
    }
    let throttled = throttled.expect("400 request units a second are used up");
    assert_eq!(throttled.refusal(), code(503, "ServerBusy"));
    assert!(throttled.header("x-ms-retry-after-ms").is_some());
    let cosmos = client.refusal(Call::get(address("p", "0")).cosmos()).await;
    assert_eq!(cosmos, code(429, "TooManyRequests"));
    client.advance(100);
}
