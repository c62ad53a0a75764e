//! Documents that another API has stored in the container of a table: which are entities, and what becomes of the
//! others.

use crate::batches::{batch, part, statuses};
use crate::client::{Call, Client, KEY, address, code};
use engine::{Action, Container, Keyed};
use plan::{Condition, DocumentOperation, Item, Mutation};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use value::Document;

/// The container of `people`, as another API sees it.
fn container(client: &Client) -> (engine::Principal, Arc<Container>) {
    let principal = client.engine.access().verify_key(KEY, 1).unwrap();
    let found = client.engine.find_container(&principal, Action::ReadMetadata, table::DATABASE, "people");
    (principal, found.unwrap().resource)
}

/// Stores a document of `people` as another API would.
async fn store(client: &Client, json: &Json) {
    let (principal, table) = container(client);
    let item = Item::new(Document::from_json(json.to_string().as_bytes()).unwrap()).unwrap();
    let operation = DocumentOperation::Write(Mutation::Upsert { item, condition: Condition::None });
    let keyed = Keyed::new(&table, None, operation).unwrap();
    client.engine.write(client.engine.access().write(&principal, keyed).unwrap()).await.unwrap();
}

/// Documents that are no entities: all have the id of the RowKey "x" or "~" where they could be one.
fn no_entities() -> Vec<Json> {
    vec![
        json!({ "id": "x", "PartitionKey": "p", "RowKey": "y", "n": 1 }),
        json!({ "id": "x", "PartitionKey": "p", "n": 1 }),
        json!({ "id": "x", "PartitionKey": "p", "RowKey": 5, "n": 1 }),
        json!({ "id": "x", "PartitionKey": "p", "RowKey": null, "n": 1 }),
        json!({ "id": "x", "PartitionKey": "p", "RowKey": ["x"], "n": 1 }),
        json!({ "id": "x", "PartitionKey": "p", "RowKey": "", "n": 1 }),
        json!({ "id": "x", "PartitionKey": 7, "RowKey": "x", "n": 1 }),
        json!({ "id": "x", "PartitionKey": null, "RowKey": "x", "n": 1 }),
        json!({ "id": "x", "RowKey": "x", "n": 1 }),
    ]
}

/// All entities of a query, over all pages.
async fn rows(client: &Client, query: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = client.send(Call::get(format!("people()?{query}{next}"))).await.expect(200);
        let body = page.json();
        found.extend(body["value"].as_array().unwrap().iter().map(|row| {
            let key = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{row}")).to_owned();
            format!("{} {}", key("PartitionKey"), key("RowKey"))
        }));
        let Some(partition) = page.header("x-ms-continuation-NextPartitionKey") else { return found };
        let row = page.header("x-ms-continuation-NextRowKey").unwrap();
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
    panic!("the pages do not end");
}

#[tokio::test]
async fn queries_and_reads_do_not_see_documents_that_are_no_entities() {
    for document in no_entities() {
        let client = Client::with_table().await;
        store(&client, &document).await;
        for (partition, row) in [("p", "a"), ("p", "z"), ("q", "x")] {
            client.insert(&json!({ "PartitionKey": partition, "RowKey": row, "n": 1 }).to_string()).await;
        }
        for query in
            ["", "$top=1", "$filter=n%20eq%201", "$top=1&$filter=n%20ge%200", "$select=RowKey,PartitionKey"]
        {
            assert_eq!(rows(&client, query).await, ["p a", "p z", "q x"], "{document} {query}");
        }
        for query in
            ["$filter=PartitionKey%20eq%20'p'", "$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20ge%20''"]
        {
            assert_eq!(rows(&client, query).await, ["p a", "p z"], "{document} {query}");
        }
        for row in ["x", "y", ""] {
            assert!(client.entity("p", row).await.is_none(), "{document} {row}");
            let filter = format!("$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20eq%20'{row}'");
            assert!(rows(&client, &filter).await.is_empty(), "{document} {row}");
        }
    }
}

#[tokio::test]
async fn writes_do_not_change_documents_that_are_no_entities() {
    let client = Client::with_table().await;
    let in_partition = no_entities().into_iter().filter(|document| document["PartitionKey"] == "p");
    for document in in_partition {
        store(&client, &document).await;
        let (principal, table) = container(&client);
        let stored = read(&client, &principal, &table).await;
        for row in ["x", "y", ""] {
            for verb in ["PUT", "MERGE", "DELETE"] {
                let call = Call::new(verb, address("p", row)).header("if-match", "*").json("{}");
                let refused = client.refusal(call).await;
                assert_eq!(refused, code(404, "ResourceNotFound"), "{verb} {row} {document}");
                let step = part(verb, &address("p", row), "If-Match: *\r\n", "{}");
                let answer = client.send(batch(&[step])).await.expect(202);
                assert_eq!(statuses(&answer), ["404"], "{verb} {row} {document}: {answer:?}");
            }
        }
        for verb in ["PUT", "MERGE"] {
            let refused = client.refusal(Call::new(verb, address("p", "x")).json("{}")).await;
            assert_eq!(refused, code(409, "EntityAlreadyExists"), "{verb} {document}");
            let answer = client.send(batch(&[part(verb, &address("p", "x"), "", "{}")])).await.expect(202);
            assert_eq!(statuses(&answer), ["409"], "{verb} {document}: {answer:?}");
        }
        let insert = Call::new("POST", "people").json(r#"{"PartitionKey":"p","RowKey":"x"}"#);
        assert_eq!(client.refusal(insert).await, code(409, "EntityAlreadyExists"), "{document}");
        assert_eq!(read(&client, &principal, &table).await, stored, "{document}");
    }
}

/// The document with the id "x" in partition "p", as JSON.
async fn read(client: &Client, principal: &engine::Principal, table: &Arc<Container>) -> Json {
    let key = model::KeyComponent::String("p".to_owned());
    let key = table.definition().partition_key.key(vec![key]).unwrap();
    let address = engine::DocumentAddress { key, target: plan::Target::Id("x".to_owned()) };
    let pass = client.engine.access().read_document(principal, table, address).unwrap();
    let receipt = client.engine.read(pass, &engine::ReadOptions::default()).await.unwrap();
    let plan::Outcome::Read(stored) = receipt.outcome else { panic!("{receipt:?}") };
    let mut text = Vec::new();
    stored.document.root().write_json(&mut text);
    serde_json::from_slice(&text).unwrap()
}

#[tokio::test]
async fn a_document_that_another_api_has_stored_as_an_entity_is_one() {
    let client = Client::with_table().await;
    let document = json!({
        "id": "r", "PartitionKey": "p", "RowKey": "r", "n": 1, "list": [1], "none": null,
        "odata.etag": "fake", "x@odata.type": "Edm.Guid", "x": "q"
    });
    store(&client, &document).await;
    let answer = client.send(Call::get(address("p", "r"))).await.expect(200);
    assert_eq!(answer.text().matches("odata.etag").count(), 1, "{answer:?}");
    assert!(!answer.text().contains("Edm.Guid") && answer.json()["x"] == "q", "{answer:?}");
    assert_eq!(answer.json()["list"], "[1]", "{answer:?}");
    assert_eq!(rows(&client, "").await, ["p r"]);
    client.send(Call::new("MERGE", address("p", "r")).json(r#"{"m":2}"#)).await.expect(204);
    assert_eq!(client.entity("p", "r").await.unwrap()["m"], 2);
    client.send(Call::new("DELETE", address("p", "r")).header("if-match", "*")).await.expect(204);
    store(&client, &json!({ "id": "~", "PartitionKey": "p", "RowKey": "" })).await;
    store(&client, &json!({ "id": "~~a", "PartitionKey": "p", "RowKey": "~a" })).await;
    assert_eq!(rows(&client, "").await, ["p ", "p ~a"]);
}
