//! Entities: every row of the table of write verbs, representations, answers.

use crate::client::{Call, Client, address, code};
use serde_json::json;

const BEN: &str = r#"{"PartitionKey":"Smith","RowKey":"Ben","Age":30,"Email":"ben@example.com"}"#;

#[tokio::test]
async fn an_insert_answers_with_the_entity_or_without() {
    let client = Client::with_table().await;
    let inserted = client.insert(BEN).await;
    let body = inserted.json();
    assert_eq!(
        (&body["PartitionKey"], &body["RowKey"], &body["Age"]),
        (&json!("Smith"), &json!("Ben"), &json!(30))
    );
    assert_eq!(inserted.header("etag"), body["odata.etag"].as_str());
    let location = "https://tables.example/storage/people(PartitionKey='Smith',RowKey='Ben')";
    assert_eq!(inserted.header("location"), Some(location));
    assert!(inserted.header("content-type").unwrap().contains("odata=minimalmetadata"));
    assert_eq!(client.refusal(Call::new("POST", "people").json(BEN)).await, code(409, "EntityAlreadyExists"));
    let call = Call::new("POST", "people()").json(r#"{"PartitionKey":"","RowKey":""}"#);
    let quiet = client.send(call.header("prefer", "return-no-content")).await.expect(204);
    assert!(quiet.body.is_empty() && quiet.header("etag").is_some());
    assert_eq!(quiet.header("preference-applied"), Some("return-no-content"));
    assert_eq!(quiet.header("dataserviceid"), quiet.header("location"));
    assert!(client.entity("", "").await.is_some());
    assert_eq!(client.refusal(Call::new("POST", "absent").json(BEN)).await, code(404, "TableNotFound"));
}

#[tokio::test]
async fn all_answers_have_their_headers() {
    let client = Client::with_table().await;
    for call in [
        Call::get("people()"),
        Call::get("absent()"),
        Call::get("people()").signing(crate::client::Signing::None),
    ] {
        let call = call.header("x-ms-client-request-id", "mine").header("x-ms-version", "2020-10-02");
        let answer = client.send(call).await;
        assert_eq!(answer.header("x-ms-client-request-id"), Some("mine"), "{answer:?}");
        assert_eq!(answer.header("x-ms-version"), Some("2020-10-02"));
        assert_eq!(answer.header("x-ms-request-id").map(str::len), Some(36));
        assert_eq!(answer.header("date"), Some("Tue, 14 Nov 2023 22:13:20 GMT"));
        assert!(answer.header("x-ms-request-charge").is_some());
    }
}

/// `(verb, has If-Match)` on an entity that is there, absent, or of another version.
#[tokio::test]
async fn every_row_of_the_table_of_write_verbs() {
    let client = Client::with_table().await;
    let wrong = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"";
    for (verb, tunnel) in [("PUT", ""), ("MERGE", ""), ("PATCH", ""), ("POST", "MERGE"), ("POST", "PUT")] {
        let row = format!("{verb}{tunnel}");
        let merges = verb != "PUT" && tunnel != "PUT";
        let write = |condition: Option<&str>, body: &str| {
            let mut call = Call::new(verb, address("p", &row)).json(body);
            if !tunnel.is_empty() {
                call = call.header("X-HTTP-Method", tunnel);
            }
            match condition {
                Some(condition) => call.header("if-match", condition),
                None => call,
            }
        };
        // Replace and merge of an absent entity.
        for condition in ["*", wrong] {
            let refused = client.refusal(write(Some(condition), r#"{"a":1}"#)).await;
            assert_eq!(refused, code(404, "ResourceNotFound"), "{row}");
        }
        assert!(client.entity("p", &row).await.is_none());
        // Insert or replace, insert or merge.
        let first = client.send(write(None, r#"{"a":1,"b":2}"#)).await.expect(204);
        let second = client.send(write(None, r#"{"a":3}"#)).await.expect(204);
        let (old, new) = (first.header("etag").unwrap(), second.header("etag").unwrap());
        assert_ne!(old, new, "{row}");
        let entity = client.entity("p", &row).await.unwrap();
        assert_eq!((&entity["a"], entity.get("b").is_some()), (&json!(3), merges), "{row}");
        // Under a condition.
        for stale in [old, wrong, "\"foreign\""] {
            let refused = client.refusal(write(Some(stale), r#"{"a":9}"#)).await;
            assert_eq!(refused, code(412, "UpdateConditionNotSatisfied"), "{row}");
        }
        assert_eq!(client.refusal(write(Some("x"), r#"{"a":9}"#)).await, code(400, "InvalidInput"));
        assert_eq!(client.entity("p", &row).await.unwrap()["a"], 3);
        client.send(write(Some(new), r#"{"a":4}"#)).await.expect(204);
        client.send(write(Some("*"), r#"{"c":5}"#)).await.expect(204);
        let entity = client.entity("p", &row).await.unwrap();
        assert_eq!((entity.get("a").is_some(), &entity["c"]), (merges, &json!(5)), "{row}");
    }
}

#[tokio::test]
async fn a_delete_needs_a_condition() {
    let client = Client::with_table().await;
    let etag = client.insert(BEN).await.header("etag").unwrap().to_owned();
    let delete = || Call::new("DELETE", address("Smith", "Ben"));
    assert_eq!(client.refusal(delete()).await, code(400, "MissingRequiredHeader"));
    let wrong = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"";
    let refused = client.refusal(delete().header("if-match", wrong)).await;
    assert_eq!(refused, code(412, "UpdateConditionNotSatisfied"));
    client.send(delete().header("if-match", etag)).await.expect(204);
    assert_eq!(client.refusal(delete().header("if-match", "*")).await, code(404, "ResourceNotFound"));
}

#[tokio::test]
async fn types_come_back_to_the_bit_at_every_level() {
    let client = Client::with_table().await;
    client
        .insert(
            r#"{"PartitionKey":"p","RowKey":"r","i":3,"d":3.0,"l@odata.type":"Edm.Int64","l":"9007199254740993",
                "n@odata.type":"Edm.Double","n":"NaN","t@odata.type":"Edm.DateTime","t":"2024-02-03T04:05:06.7890001Z",
                "g@odata.type":"Edm.Guid","g":"00112233-4455-6677-8899-aabbccddeeff","b@odata.type":"Edm.Binary",
                "b":"AAEC","s":"text","z":null,"f":true,"id":"own"}"#,
        )
        .await;
    let read = |level: &str| {
        Call::get(address("p", "r")).header("accept", format!("application/json;odata={level}"))
    };
    let none = client.send(read("nometadata")).await.expect(200);
    assert!(none.text().contains(r#""d":3.0"#) && none.text().contains(r#""i":3,"#), "{none:?}");
    assert!(!none.text().contains("odata"), "{none:?}");
    let minimal = client.send(read("minimalmetadata")).await.expect(200).json();
    for (name, edm_type) in [
        ("l", "Edm.Int64"),
        ("n", "Edm.Double"),
        ("t", "Edm.DateTime"),
        ("g", "Edm.Guid"),
        ("b", "Edm.Binary"),
    ] {
        assert_eq!(minimal[format!("{name}@odata.type")], edm_type);
    }
    assert_eq!((&minimal["l"], &minimal["n"]), (&json!("9007199254740993"), &json!("NaN")));
    assert_eq!((&minimal["t"], &minimal["id"]), (&json!("2024-02-03T04:05:06.7890001Z"), &json!("own")));
    assert!(minimal.get("z").is_none() && minimal.get("d@odata.type").is_none());
    let full = client.send(read("fullmetadata")).await.expect(200).json();
    assert_eq!(full["odata.type"], "storage.people");
    assert_eq!(full["odata.editLink"], "people(PartitionKey='p',RowKey='r')");
    assert_eq!(full["Timestamp@odata.type"], "Edm.DateTime");
    let selected = client
        .send(Call::get(address("p", "r") + "?$select=s,absent&$format=application/json;odata=nometadata"));
    assert_eq!(selected.await.json(), json!({ "s": "text" }));
}

#[tokio::test]
async fn keys_with_any_text_are_addressed() {
    let client = Client::with_table().await;
    for (key, encoded) in
        [("it's", "it%27%27s"), ("a b%", "a%20b%25"), ("é😀", "%C3%A9%F0%9F%98%80"), ("~", "~")]
    {
        let body = json!({ "PartitionKey": key, "RowKey": key }).to_string();
        let inserted = client.insert(&body).await;
        let read = client.send(Call::get(address(encoded, encoded))).await.expect(200);
        assert_eq!(read.json()["RowKey"], key);
        let location =
            inserted.header("location").unwrap().strip_prefix("https://tables.example/storage/").unwrap();
        client.send(Call::get(location)).await.expect(200);
    }
    // Its document has another id.
    let long = "x".repeat(1024);
    let insert = json!({ "PartitionKey": long, "RowKey": long }).to_string();
    client.send(Call::new("POST", "people").cosmos().json(&insert)).await.expect(201);
    let read = client.send(Call::get(address(&long, &long)).cosmos()).await.expect(200);
    assert_eq!(read.json()["RowKey"], long.as_str());
    client.send(Call::get(address(&long, &long[1..])).cosmos()).await.expect(404);
}

#[tokio::test]
async fn timestamps_are_the_etags() {
    let client = Client::with_table().await;
    let mut etags = std::collections::HashSet::new();
    for row in 0..20 {
        let body = json!({ "PartitionKey": "p", "RowKey": row.to_string() }).to_string();
        let inserted = client.insert(&body).await;
        let (etag, body) = (inserted.header("etag").unwrap().to_owned(), inserted.json());
        let time = body["Timestamp"].as_str().unwrap().replace(':', "%3A");
        assert_eq!(etag, format!("W/\"datetime'{time}'\""));
        assert!(etags.insert(etag));
    }
}

#[tokio::test]
async fn an_empty_condition_is_refused() {
    let client = Client::with_table().await;
    client.insert(BEN).await;
    let write = Call::new("PUT", address("Smith", "Ben")).json("{}").header("if-match", "");
    assert_eq!(client.refusal(write).await, code(400, "InvalidInput"));
    assert_eq!(client.entity("Smith", "Ben").await.unwrap()["Age"], 30);
}
