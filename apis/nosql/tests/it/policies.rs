//! Policies of containers over the wire, usage, and containers of old clients.

use crate::client::{Call, Client, container};
use http::StatusCode;
use serde_json::{Value as Json, json};

const COLLS: &str = "/dbs/d/colls";

fn with(name: &str, value: Json) -> Json {
    let mut body = container("new");
    body[name] = value;
    body
}

#[tokio::test]
async fn a_full_definition_comes_back_as_the_service_writes_it() {
    let client = Client::with_container().await;
    let mut body = container("full");
    let policies = json!({
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{ "path": "/*" }, { "path": "/a/[]/b/?" }],
            "excludedPaths": [{ "path": "/\"_etag\"/?" }, { "path": "/v/*" }],
            "compositeIndexes": [[{ "path": "/a", "order": "ascending" }, { "path": "/b", "order": "descending" }]],
            "spatialIndexes": [{ "path": "/loc/*", "types": ["Point", "Polygon"] }],
            "vectorIndexes": [{ "path": "/v", "type": "quantizedFlat", "quantizationByteSize": 8 }],
            "fullTextIndexes": [{ "path": "/text" }],
        },
        "conflictResolutionPolicy":
            { "mode": "LastWriterWins", "conflictResolutionPath": "/stamp", "conflictResolutionProcedure": "" },
        "geospatialConfig": { "type": "Geography" },
        "changeFeedPolicy": { "retentionDuration": 10 },
        "computedProperties": [{ "name": "cp", "query": "SELECT VALUE LOWER(c.a) FROM c" }],
        "vectorEmbeddingPolicy": { "vectorEmbeddings": [
            { "path": "/v", "dataType": "float32", "dimensions": 16, "distanceFunction": "cosine" },
        ] },
        "fullTextPolicy": { "defaultLanguage": "en-US", "fullTextPaths": [{ "path": "/text", "language": "en-US" }] },
        "analyticalStorageTtl": -1,
    });
    for (name, policy) in policies.as_object().unwrap() {
        body[name] = policy.clone();
    }
    let made = client.create(COLLS, body).await;
    for (name, policy) in policies.as_object().unwrap() {
        assert_eq!(made[name], *policy, "{name}");
    }
    let again = client.send(Call::put("/dbs/d/colls/full").json(&made)).await;
    assert_eq!(again.status, StatusCode::OK, "{again:?}");
    for (name, policy) in policies.as_object().unwrap() {
        assert_eq!(again.json()[name], *policy, "{name}");
    }
}

#[tokio::test]
async fn refusals_name_policy_and_reason() {
    let client = Client::with_container().await;
    let vector_index = json!({ "vectorIndexes": [{ "path": "/v", "type": "flat" }] });
    for (name, value, reason) in [
        ("indexingPolicy", json!({ "includedPaths": [{ "path": "/a" }] }), "/?"),
        ("indexingPolicy", json!({ "compositeIndexes": [[{ "path": "/a" }]] }), "composite"),
        ("indexingPolicy", vector_index, "/v not matching in Embedding's path"),
        ("conflictResolutionPolicy", json!({ "mode": "Never" }), "LastWriterWins"),
        ("computedProperties", json!([{ "name": "x", "query": "SELECT c.x FROM c" }]), "SELECT VALUE"),
        ("geospatialConfig", json!({ "type": "Flat" }), "Geography"),
        ("analyticalStorageTtl", json!(-2), "whole number"),
    ] {
        let answer = client.send(Call::post(COLLS).json(&with(name, value))).await;
        assert_eq!(answer.code(), (400, 0), "{name}");
        assert!(answer.message().contains(name) && answer.message().contains(reason), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_fixed_can_be_left_out_of_a_replace_but_not_changed() {
    let client = Client::with_container().await;
    let body = with("uniqueKeyPolicy", json!({ "uniqueKeys": [{ "paths": ["/email"] }] }));
    client.create(COLLS, body).await;
    let replaced = client.send(Call::put("/dbs/d/colls/new").json(&container("new"))).await;
    assert_eq!(replaced.json()["uniqueKeyPolicy"]["uniqueKeys"][0]["paths"][0], "/email");
    let changed = with("uniqueKeyPolicy", json!({ "uniqueKeys": [{ "paths": ["/phone"] }] }));
    let answer = client.send(Call::put("/dbs/d/colls/new").json(&changed)).await;
    assert_eq!(answer.code(), (400, 0));
    assert!(answer.message().contains("uniqueKeyPolicy"), "{answer:?}");
}

#[tokio::test]
async fn an_encryption_policy_needs_its_keys() {
    let client = Client::with_container().await;
    let policy = json!({ "policyFormatVersion": 1, "includedPaths": [{
        "path": "/secret",
        "clientEncryptionKeyId": "k",
        "encryptionType": "Randomized",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
    }] });
    let call = Call::post(COLLS).json(&with("clientEncryptionPolicy", policy));
    let refused = client.send(call.clone()).await;
    assert_eq!(refused.code(), (400, 0));
    assert!(refused.message().contains("clientEncryptionPolicy"), "{refused:?}");
    let key = json!({
        "id": "k",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AQIDBA==",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP" },
    });
    client.create("/dbs/d/clientencryptionkeys", key).await;
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn usage_is_told_to_those_who_ask() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    client.create("/dbs/d/colls/c/udfs", json!({ "id": "f", "body": "function f() {}" })).await;
    let plain = client.send(Call::get("/dbs/d/colls/c")).await;
    assert_eq!(plain.header("x-ms-resource-usage"), None);
    let asked = Call::get("/dbs/d/colls/c").header("x-ms-documentdb-populatequotainfo", "True");
    let answer = client.send(asked).await;
    let usage = answer.header("x-ms-resource-usage").unwrap();
    assert!(usage.contains("functions=1;") && usage.contains("documentsCount=1;"), "{usage}");
    let quota = answer.header("x-ms-resource-quota").unwrap();
    assert!(quota.contains("storedProcedures=100;") && quota.contains("documentsCount=-1;"), "{quota}");
    let progress = answer.header("x-ms-documentdb-collection-index-transformation-progress");
    assert_eq!(progress, Some("100"));
}

#[tokio::test]
async fn containers_of_old_clients_need_no_key_anywhere() {
    let client = Client::with_container().await;
    let made = client.create(COLLS, json!({ "id": "old" })).await;
    assert_eq!(made["partitionKey"]["paths"], json!(["/_partitionKey"]));
    assert_eq!(made["partitionKey"]["systemKey"], true);
    let docs = "/dbs/d/colls/old/docs";
    client.create(docs, json!({ "id": "1", "n": 1 })).await;
    let upsert = Call::post(docs).header("x-ms-documentdb-is-upsert", "true");
    assert_eq!(client.send(upsert.json(&json!({ "id": "2" }))).await.status, StatusCode::CREATED);
    let one = format!("{docs}/1");
    assert_eq!(client.send(Call::get(&one)).await.json()["n"], 1);
    assert_eq!(
        client.send(Call::get(&one).header("x-ms-documentdb-partitionkey", "[]")).await.json()["n"],
        1
    );
    assert_eq!(
        client.send(Call::get(&one).header("x-ms-documentdb-partitionkey", "[{}]")).await.json()["n"],
        1
    );
    let replace = Call::put(&one).json(&json!({ "id": "1", "n": 2 }));
    assert_eq!(client.send(replace).await.json()["n"], 2);
    let patch = json!({ "operations": [{ "op": "incr", "path": "/n", "value": 1 }] });
    assert_eq!(client.send(Call::patch(&one).json(&patch)).await.json()["n"], 3);
    assert_eq!(client.listed(docs, "Documents").await, ["1", "2"]);
    let batch = |atomic: &str, steps: Json| {
        let call = Call::post(docs).header("x-ms-cosmos-is-batch-request", "true");
        call.header("x-ms-cosmos-batch-atomic", atomic).json(&steps)
    };
    let created = json!([{ "operationType": "Create", "resourceBody": { "id": "3" } }]);
    assert_eq!(client.send(batch("true", created)).await.status, StatusCode::OK);
    let deleted = json!([{ "operationType": "Delete", "id": "3" }, { "operationType": "Read", "id": "2" }]);
    assert_eq!(client.send(batch("false", deleted)).await.status, StatusCode::OK);
    assert_eq!(client.send(Call::delete(&one)).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.listed(docs, "Documents").await, ["2"]);
    // Replacing such a container needs no key either.
    let replaced = Call::put("/dbs/d/colls/old").json(&json!({ "id": "old", "defaultTtl": -1 }));
    assert_eq!(client.send(replaced).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_bare_slash_is_the_root_of_the_documents() {
    let client = Client::with_container().await;
    let etag = json!({ "path": "/\"_etag\"/?" });
    let made =
        client.create(COLLS, with("indexingPolicy", json!({ "includedPaths": [{ "path": "/" }] }))).await;
    assert_eq!(made["indexingPolicy"]["includedPaths"], json!([{ "path": "/*" }]));
    assert_eq!(made["indexingPolicy"]["excludedPaths"], json!([etag]));
    let excluded = json!({ "includedPaths": [{ "path": "/a/?" }], "excludedPaths": [{ "path": "/" }] });
    let mut body = with("indexingPolicy", excluded);
    body["id"] = json!("other");
    let made = client.create(COLLS, body).await;
    assert_eq!(made["indexingPolicy"]["includedPaths"], json!([{ "path": "/a/?" }]));
    assert_eq!(made["indexingPolicy"]["excludedPaths"], json!([{ "path": "/*" }, etag]));
}

#[tokio::test]
async fn the_version_of_the_key_comes_back_as_it_was_given() {
    let client = Client::with_container().await;
    let body = |id: &str, key: Json| json!({ "id": id, "partitionKey": key });
    let implied = json!({ "paths": ["/pk"], "kind": "Hash" });
    let stated = json!({ "paths": ["/pk"], "kind": "Hash", "version": 1 });
    for (id, key, other) in [("implied", &implied, &stated), ("stated", &stated, &implied)] {
        client.create(COLLS, body(id, key.clone())).await;
        let one = format!("{COLLS}/{id}");
        // A replacement may write it in the other way.
        let replaced = client.send(Call::put(&one).json(&body(id, other.clone()))).await;
        assert_eq!((replaced.status, &replaced.json()["partitionKey"]), (StatusCode::OK, key));
        assert_eq!(client.send(Call::get(&one)).await.json()["partitionKey"], *key);
    }
}

#[tokio::test]
async fn paths_of_keys_are_checked() {
    let client = Client::with_container().await;
    let wanted =
        "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard";
    for path in ["/id ds", "/a*", "/a/", "id"] {
        let body = json!({ "id": "new", "partitionKey": { "paths": [path], "kind": "Hash", "version": 2 } });
        let answer = client.send(Call::post(COLLS).json(&body)).await;
        assert_eq!(answer.code(), (400, 0), "{path}");
        assert!(answer.message().contains(wanted), "{}", answer.message());
    }
    let paths = ["/a", "/b", "/c", "/d"];
    let body = json!({ "id": "new", "partitionKey": { "paths": paths, "kind": "MultiHash", "version": 2 } });
    let answer = client.send(Call::post(COLLS).json(&body)).await;
    let wanted = "Too many partition key paths (4) specified. A maximum of 3 is allowed.";
    assert!(answer.message().contains(wanted), "{}", answer.message());
}

#[tokio::test]
async fn vector_policies_are_checked_in_a_replace() {
    let client = Client::with_container().await;
    let embeddings = json!({ "vectorEmbeddings": [
        { "path": "/v", "dataType": "float32", "dimensions": 256, "distanceFunction": "cosine" },
    ] });
    let index = |kind: &str| json!({ "vectorIndexes": [{ "path": "/v", "type": kind }] });
    let mut body = with("vectorEmbeddingPolicy", embeddings.clone());
    body["indexingPolicy"] = index("flat");
    client.create(COLLS, body.clone()).await;
    let replace = |body: &Json| Call::put("/dbs/d/colls/new").json(body);
    let without = with("indexingPolicy", index("flat"));
    let answer = client.send(replace(&without)).await;
    assert_eq!(answer.code(), (400, 0));
    let wanted = "The Vector Indexing Policy's path::/v not matching in Embedding's path.";
    assert!(answer.message().contains(wanted), "{}", answer.message());
    body["indexingPolicy"] = index("quantizedFlat");
    let answer = client.send(replace(&body)).await;
    assert_eq!(answer.code(), (400, 0));
    let wanted = "Paths in existing vector indexing policy cannot be modified in Collection Replace";
    assert!(answer.message().contains(wanted), "{}", answer.message());
    // A client that knows nothing of vectors keeps the embeddings.
    let replaced = client.send(replace(&container("new"))).await;
    assert_eq!((replaced.status, &replaced.json()["vectorEmbeddingPolicy"]), (StatusCode::OK, &embeddings));
}

#[tokio::test]
async fn statistics_are_added_on_request() {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post(COLLS).header("x-ms-offer-throughput", "12000").json(&container("c"));
    assert_eq!(client.send(call).await.status, StatusCode::CREATED);
    client.put_item("1", "a").await;
    let read = Call::get("/dbs/d/colls/c").header("x-ms-documentdb-populatepartitionstatistics", "true");
    let statistics = client.send(read).await.json()["statistics"].clone();
    let [first, second] = &statistics.as_array().unwrap()[..] else { panic!("{statistics}") };
    assert_eq!((&first["id"], &first["documentCount"]), (&json!("0"), &json!(0)));
    assert_eq!(
        (&second["id"], &second["documentCount"], &second["sizeInKB"]),
        (&json!("1"), &json!(1), &json!(1))
    );
    assert_eq!(client.send(Call::get("/dbs/d/colls/c")).await.json().get("statistics"), None);
}
