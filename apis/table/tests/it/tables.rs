//! Tables: create, list, read, delete, stored access policies.

use crate::batches::{batch, part};
use crate::client::{Call, Client, code};
use engine::{Account, ListRequest};
use model::policy::IndexingPolicy;
use serde_json::json;
use std::sync::Arc;

fn create(name: &str) -> Call {
    Call::new("POST", "Tables").json(&json!({ "TableName": name }).to_string())
}

#[tokio::test]
async fn a_table_is_created_read_listed_and_deleted() {
    let client = Client::empty().await;
    assert_eq!(client.send(Call::get("Tables")).await.expect(200).json()["value"], json!([]));
    let created = client.send(create("people")).await.expect(201);
    assert_eq!(created.json()["TableName"], "people");
    assert_eq!(created.json()["odata.metadata"], "https://tables.example/storage/$metadata#Tables/@Element");
    assert_eq!(created.header("location"), Some("https://tables.example/storage/Tables('people')"));
    let quiet = client.send(create("other").header("prefer", "return-no-content")).await.expect(204);
    assert_eq!(quiet.header("preference-applied"), Some("return-no-content"));
    assert_eq!(client.refusal(create("people")).await, code(409, "TableAlreadyExists"));
    let read = client.send(Call::get("Tables('people')")).await.expect(200);
    assert_eq!(read.json()["TableName"], "people");
    let list = client.send(Call::get("Tables").header("accept", "application/json;odata=nometadata")).await;
    assert_eq!(list.json(), json!({ "value": [{ "TableName": "other" }, { "TableName": "people" }] }));
    client.send(Call::new("DELETE", "Tables('people')")).await.expect(204);
    for verb in ["DELETE", "GET"] {
        let gone = client.refusal(Call::new(verb, "Tables('people')")).await;
        assert_eq!(gone, code(404, "ResourceNotFound"));
    }
    assert_eq!(client.refusal(Call::get("people()")).await, code(404, "TableNotFound"));
}

#[tokio::test]
async fn lists_are_filtered_and_paged_by_name() {
    let client = Client::empty().await;
    for name in ["delta", "alpha", "charlie", "bravo"] {
        client.send(create(name)).await.expect(201);
    }
    let names = |answer: &crate::client::Answer| {
        let body = answer.json();
        let tables = body["value"].as_array().unwrap().iter();
        tables.map(|table| table["TableName"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = client.send(Call::get("Tables?$top=3")).await.expect(200);
    assert_eq!(names(&first), ["alpha", "bravo", "charlie"]);
    assert_eq!(first.header("x-ms-continuation-NextTableName"), Some("delta"));
    let second = client.send(Call::get("Tables?$top=3&NextTableName=delta")).await.expect(200);
    assert_eq!(
        (names(&second), second.header("x-ms-continuation-NextTableName")),
        (vec!["delta".to_owned()], None)
    );
    let filter = "Tables?$filter=TableName%20ge%20'b'%20and%20TableName%20lt%20'c'";
    assert_eq!(names(&client.send(Call::get(filter)).await), ["bravo"]);
    for query in ["$top=0", "$top=1001", "$top=x", "$filter=TableName%20eq", "$top=1&$top=2"] {
        assert_eq!(client.refusal(Call::get(format!("Tables?{query}"))).await.0, 400, "{query}");
    }
}

#[tokio::test]
async fn case_matters_in_accounts_of_cosmos_only() {
    let client = Client::with_table().await;
    assert_eq!(client.refusal(create("People")).await, code(409, "TableAlreadyExists"));
    client.send(Call::get("PEOPLE()")).await.expect(200);
    assert_eq!(client.refusal(Call::get("PEOPLE()").cosmos()).await, code(404, "TableNotFound"));
    client.send(create("People").cosmos()).await.expect(201);
    client.send(Call::get("people()").cosmos()).await.expect(200);
}

/// The first of them was taken, also to delete it.
#[tokio::test]
async fn a_name_that_several_tables_have_in_other_cases_is_that_of_none() {
    let client = Client::with_table().await;
    client.send(create("People").cosmos()).await.expect(201);
    assert_eq!(client.refusal(Call::get("PEOPLE()")).await, code(404, "TableNotFound"));
    let deletion = Call::new("DELETE", "Tables('PEOPLE')");
    assert_eq!(client.refusal(deletion).await, code(404, "ResourceNotFound"));
    assert_eq!(client.refusal(create("PEOPLE")).await, code(409, "TableAlreadyExists"));
    for name in ["people", "People"] {
        client.send(Call::get(format!("{name}()"))).await.expect(200);
    }
    client.send(Call::new("DELETE", "Tables('people')")).await.expect(204);
    client.send(Call::get("PEOPLE()")).await.expect(200);
}

#[tokio::test]
async fn names_have_limits() {
    let client = Client::empty().await;
    client.send(create("abc")).await.expect(201);
    client.send(create(&"t".repeat(63))).await.expect(201);
    client.send(create(&"t".repeat(254)).cosmos()).await.expect(201);
    for name in ["ab", "1abc", "a-bc", "tables", "", "a'b"] {
        assert_eq!(client.refusal(create(name)).await, code(400, "InvalidResourceName"), "{name}");
    }
    assert_eq!(client.refusal(create(&"t".repeat(64))).await, code(400, "InvalidResourceName"));
    assert_eq!(client.refusal(create(&"t".repeat(255)).cosmos()).await, code(400, "InvalidResourceName"));
    for body in ["", "{}", "[]", "{\"TableName\":5}", "x"] {
        let refused = client.refusal(Call::new("POST", "Tables").json(body)).await;
        assert_eq!(refused, code(400, "InvalidInput"), "{body}");
    }
    assert_eq!(client.refusal(Call::get("a-b()")).await, code(400, "InvalidResourceName"));
}

#[tokio::test]
async fn throughput_is_by_headers() {
    let client = Client::empty().await;
    client.send(create("manual").header("x-ms-offer-throughput", "800")).await.expect(201);
    let settings = "x-ms-cosmos-offer-autopilot-settings";
    client.send(create("scaled").header(settings, r#"{"maxThroughput":4000}"#)).await.expect(201);
    let access = client.engine.access();
    let principal = access.verify_key(crate::client::KEY, 1).unwrap();
    let pass = access.read_catalog(&principal, Account).unwrap();
    let offers =
        client.engine.list_offers(&pass, &ListRequest { items_max: 10, continuation: None }).unwrap();
    let rates: Vec<u64> = offers.items.iter().map(|offer| offer.throughput().max()).collect();
    assert_eq!(rates, [800, 4000]);
    for (name, value) in [
        ("x-ms-offer-throughput", "399"),
        ("x-ms-offer-throughput", "x"),
        ("x-ms-offer-throughput", "1000100"),
        (settings, "{}"),
        (settings, "x"),
        (settings, r#"{"maxThroughput":999}"#),
    ] {
        let refused = client.refusal(create("other").header(name, value)).await;
        assert_eq!(refused, code(400, "InvalidHeaderValue"), "{name}: {value}");
    }
    let both =
        create("other").header("x-ms-offer-throughput", "400").header(settings, r#"{"maxThroughput":4000}"#);
    assert_eq!(client.refusal(both).await, code(400, "InvalidHeaderValue"));
    assert_eq!(client.refusal(Call::get("Tables('other')")).await, code(404, "ResourceNotFound"));
}

#[tokio::test]
async fn stored_policies_are_replaced_and_go_with_their_table() {
    let client = Client::with_table().await;
    let empty = client.send(Call::get("people?comp=acl")).await.expect(200);
    assert!(empty.text().contains("<SignedIdentifiers></SignedIdentifiers>"), "{empty:?}");
    let put = |body: &str| Call::new("PUT", "people?comp=acl").body("application/xml", body);
    let policy = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>2030-01-01T00:00:00Z</Expiry>\
                  <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    client.send(put(policy)).await.expect(204);
    assert!(client.send(Call::get("people?comp=acl")).await.text().contains("<Id>one</Id>"));
    assert_eq!(
        client.refusal(put("<x/>").header("accept", "application/xml")).await,
        code(400, "InvalidXmlDocument")
    );
    assert_eq!(client.refusal(put(policy).cosmos()).await, code(501, "NotImplemented"));
    client.send(Call::new("DELETE", "Tables('people')")).await.expect(204);
    assert_eq!(client.refusal(put(policy)).await, code(404, "TableNotFound"));
    client.send(create("people")).await.expect(201);
    assert!(!client.send(Call::get("people?comp=acl")).await.text().contains("one"));
}

/// Creates a container in the database of the tables as another API would.
async fn create_container(client: &Client, name: &str, path: &str, indexing: IndexingPolicy) {
    let (engine, access) = (&client.engine, client.engine.access());
    let principal = access.verify_key(crate::client::KEY, 1).unwrap();
    let found = engine.find_database(&principal, engine::Action::ChangeMetadata, table::DATABASE).unwrap();
    let key = model::PartitionKeyDefinition::new(model::PartitionKeyKind::HashV2, [path]).unwrap();
    let mut draft = model::ContainerDraft::new(name, key);
    draft.policies.indexing = indexing;
    let pass = access.change_catalog(&principal, &*found).unwrap();
    engine.create_container(pass, draft.checked().unwrap(), None).await.unwrap();
}

#[tokio::test]
async fn a_container_of_another_api_is_no_table() {
    let client = Client::with_table().await;
    create_container(&client, "foreign", "/pk", IndexingPolicy::default()).await;
    for call in
        [Call::get("foreign()"), Call::new("POST", "foreign").json(r#"{"PartitionKey":"p","RowKey":"r"}"#)]
    {
        assert_eq!(client.refusal(call).await, code(404, "TableNotFound"));
    }
    for verb in ["GET", "DELETE"] {
        let refused = client.refusal(Call::new(verb, "Tables('foreign')")).await;
        assert_eq!(refused, code(404, "ResourceNotFound"), "{verb}");
    }
    let tables = client.send(Call::get("Tables")).await.json();
    assert_eq!(tables["value"].as_array().unwrap().len(), 1);
    // A client that creates a table unless it exists must not take it for one.
    for call in [create("foreign"), create("foreign").cosmos()] {
        let refused = client.send(call).await;
        assert_eq!(refused.refusal(), code(409, "ResourceTypeMismatch"));
        assert!(refused.text().contains("not a table"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_container_with_the_key_of_a_table_is_one_whatever_its_indexes() {
    let client = Client::with_table().await;
    for (name, indexing) in [("plain", IndexingPolicy::default()), ("bare", IndexingPolicy::none())] {
        create_container(&client, name, "/PartitionKey", indexing).await;
        assert_eq!(client.refusal(create(name)).await, code(409, "TableAlreadyExists"), "{name}");
        client.send(Call::get(format!("Tables('{name}')"))).await.expect(200);
        for (partition, row) in [("b", "2"), ("a", "9"), ("b", "1"), ("a", "1")] {
            let body = json!({ "PartitionKey": partition, "RowKey": row }).to_string();
            client.send(Call::new("POST", name).json(&body)).await.expect(201);
        }
        let page = client.send(Call::get(format!("{name}()?$select=PartitionKey,RowKey"))).await.expect(200);
        let rows: Vec<String> = page.json()["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| [&row["PartitionKey"], &row["RowKey"]].map(|key| key.as_str().unwrap()).concat())
            .collect();
        assert_eq!(rows, ["a1", "a9", "b1", "b2"], "{name}");
        let filtered =
            client.send(Call::get(format!("{name}()?$filter=RowKey%20eq%20'1'"))).await.expect(200);
        assert_eq!(filtered.json()["value"].as_array().unwrap().len(), 2, "{name}");
        client.send(Call::new("DELETE", format!("Tables('{name}')"))).await.expect(204);
    }
}

#[tokio::test]
async fn a_table_may_have_the_name_of_the_account_in_the_host() {
    let client = Client::empty().await;
    let in_host = |call: Call| call.cosmos().header("host", "cosmos.tables.example");
    client.send(in_host(create("cosmos"))).await.expect(201);
    let insert = Call::new("POST", "cosmos").json(r#"{"PartitionKey":"p","RowKey":"r"}"#);
    client.send(in_host(insert)).await.expect(201);
    for path in ["cosmos", "cosmos()", "cosmos/cosmos"] {
        let page = client.send(in_host(Call::get(path))).await.expect(200);
        assert_eq!(page.json()["value"][0]["RowKey"], "r", "{path}");
    }
    let properties = in_host(Call::get("cosmos?restype=service&comp=properties"));
    client.send(properties).await.expect(200);
}

/// Requests on a table that is deleted meanwhile succeed, or find no table.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_may_be_deleted_under_load() {
    let client = Arc::new(Client::empty().await);
    for round in 0..20 {
        client.send(create("people")).await.expect(201);
        let load = (0..8).map(|task| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { until_deleted(&client, task).await })
        });
        let load: Vec<_> = load.collect();
        let rows =
            async { client.send(Call::get("people()")).await.json()["value"].as_array().unwrap().len() };
        assert!(rows.await < 1000, "round {round}");
        client.send(Call::new("DELETE", "Tables('people')")).await.expect(204);
        for ended in load {
            ended.await.unwrap();
        }
    }
}

/// Sends requests of all kinds until one finds no table.
async fn until_deleted(client: &Client, task: usize) {
    for count in 0..10_000 {
        let row = format!("{task}-{count}");
        let entity = json!({ "PartitionKey": "p", "RowKey": row }).to_string();
        let answer = match (task + count) % 4 {
            0 => client.send(Call::new("POST", "people").json(&entity)).await,
            1 => client.send(Call::get("people(PartitionKey='p',RowKey='0-0')")).await,
            2 => client.send(Call::get("people()?$filter=RowKey%20ge%20'1'")).await,
            _ => client.send(batch(&[part("POST", "people", "", &entity)])).await,
        };
        let text = answer.text();
        match answer.status.as_u16() {
            404 if answer.refusal().1 == "TableNotFound" => return,
            202 if text.contains("TableNotFound") => return,
            202 => assert!(text.contains("201 Created"), "{answer:?}"),
            404 => assert_eq!(answer.refusal().1, "ResourceNotFound"),
            status => assert!([200, 201].contains(&status), "{answer:?}"),
        }
    }
    panic!("the table is still there");
}
