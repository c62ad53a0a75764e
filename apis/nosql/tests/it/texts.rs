//! Words that clients and their tests look for in the texts of refusals.

use crate::client::{Call, Client, DOCS, container};
use serde_json::{Value as Json, json};

#[tokio::test]
async fn a_refusal_says_what_it_was_about() {
    let client = Client::with_container().await;
    let one = format!("{DOCS}/none");
    let item = json!({ "id": "1", "pk": "a" });
    client.put_item("1", "a").await;
    for (call, subject) in [
        (Call::delete(&one), "Document, OperationType: Delete"),
        (Call::get(&one), "Document, OperationType: Read"),
        (Call::put(&one).json(&json!({ "id": "none", "pk": "a" })), "Document, OperationType: Replace"),
        (Call::post(DOCS).json(&item), "Document, OperationType: Create"),
        (Call::get("/dbs/d/colls/none"), "Collection, OperationType: Read"),
        (Call::get("/dbs/none"), "Database, OperationType: Read"),
        (Call::delete("/dbs/d/colls/c/sprocs/none"), "StoredProcedure, OperationType: Delete"),
    ] {
        let message = client.send(call.key(&json!(["a"]))).await.message();
        assert!(message.ends_with(&format!(", ResourceType: {subject}")), "{message}");
    }
    assert!(!client.send(Call::get("/nothing")).await.message().contains("ResourceType"));
}

#[tokio::test]
async fn items_and_batches_are_refused_in_the_words_of_the_service() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    let one = format!("{DOCS}/1");
    let patch = |path: &str| json!([{ "op": "add", "path": path, "value": 1 }]);
    let batch = |steps: Vec<Json>| {
        let call = Call::post(DOCS).header("x-ms-cosmos-is-batch-request", "true");
        call.header("x-ms-cosmos-batch-atomic", "true").json(&json!(steps))
    };
    let step = json!({ "operationType": "Read", "id": "1" });
    for (call, words) in [
        (Call::get(&format!("{DOCS}/2")), "Resource Not Found"),
        (Call::patch(&format!("{DOCS}/2")).json(&patch("/x")), "Resource Not Found"),
        (
            Call::patch(&one).json(&patch("/nonExistentParent/child")),
            "no path found beyond: 'nonExistentParent'",
        ),
        (batch(Vec::new()), "Batch request has no operations."),
        (batch(vec![step; 101]), "Batch request has more operations than what is supported."),
        (
            Call::post(DOCS).json(&json!({ "id": "x".repeat(1024), "pk": "a" })),
            "Ensure to provide a unique non-empty string less than '1024' characters.",
        ),
        (Call::post(DOCS).json(&json!({ "id": "1", "pk": "b" })), "wrong-pk-value"),
        (
            Call::post(DOCS).body(vec![b' '; 3 * 1024 * 1024]),
            "Message: {\"Errors\":[\"Request size is too large\"]}\r\n",
        ),
    ] {
        let message = client.send(call.key(&json!(["a"]))).await.message();
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[tokio::test]
async fn definitions_are_refused_in_the_words_of_the_service() {
    let client = Client::with_container().await;
    let with = |name: &str, value: Json| {
        let mut body = container("new");
        body[name] = value;
        body
    };
    let embedding = |name: &str, value: Json| {
        let mut embedding = json!({ "path": "/vector1", "dataType": "float32", "dimensions": 256,
                                    "distanceFunction": "euclidean" });
        embedding[name] = value;
        with("vectorEmbeddingPolicy", json!({ "vectorEmbeddings": [embedding] }))
    };
    let index = |name: &str, value: Json| {
        let mut index = json!({ "path": "/vector1", "type": "diskANN" });
        index[name] = value;
        let mut body = embedding("dimensions", json!(256));
        body["indexingPolicy"] = json!({ "vectorIndexes": [index] });
        body
    };
    let text = |language: &str, path: &str| {
        let paths = json!([{ "path": path, "language": language }]);
        with("fullTextPolicy", json!({ "defaultLanguage": "en-US", "fullTextPaths": paths }))
    };
    let spatial = |kind: &str, index: Json| {
        let mut body = with("geospatialConfig", json!({ "type": kind }));
        body["indexingPolicy"] = json!({ "spatialIndexes": [index] });
        body
    };
    let plain = json!({ "path": "/a/*", "types": ["Point"] });
    let mut boxed = plain.clone();
    boxed["boundingBox"] = json!({ "xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1 });
    for (body, words) in [
        (
            with("id", json!("x".repeat(256))),
            vec!["Ensure to provide a unique non-empty string less than '255' characters."],
        ),
        (with("computedProperties", json!("x")), vec!["One of the specified inputs is invalid"]),
        (index("vectorIndexShardKey", json!("x")), vec!["One of the specified inputs is invalid"]),
        (embedding("dataType", json!("float64")), vec!["Vector Embedding Policy has an invalid DataType"]),
        (
            embedding("dimensions", json!(8000)),
            vec![
                "The Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value",
            ],
        ),
        (embedding("dimensions", json!(-1)), vec!["The Vector Embedding Policy has Dimensions:-1"]),
        (
            embedding("distanceFunction", json!("handMeasured")),
            vec!["Vector Embedding Policy has an invalid DistanceFunction:handMeasured"],
        ),
        (index("path", json!("/other")), vec!["/other not matching in Embedding's path"]),
        (index("type", json!("notFlat")), vec!["Index Type::notFlat is invalid"]),
        (
            index("quantizationByteSize", json!(0)),
            vec![
                "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and",
            ],
        ),
        (
            index("quantizationByteSize", json!(257)),
            vec![
                "QuantizationByteSize value :: 257 is out of range. The allowed range is between 1 and 256.",
            ],
        ),
        (
            index("indexingSearchListSize", json!(5)),
            vec![
                "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
            ],
        ),
        (
            index("vectorIndexShardKey", json!(["country"])),
            vec!["The Vector Indexing Policy has an invalid Shard Path: country."],
        ),
        (
            index("vectorIndexShardKey", json!(["/a", "/b", "/c"])),
            vec![
                "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
            ],
        ),
        (text("en-US", "abstract"), vec!["The Full Text Policy contains an invalid Path: abstract"]),
        (
            text("spa-SPA", "/abstract"),
            vec![
                "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are: \"en-US\"",
            ],
        ),
        (spatial("Geometry", plain), vec!["boundingBox", "Geometry"]),
        (spatial("Geography", boxed), vec!["boundingBox", "Geography"]),
    ] {
        let answer = client.send(Call::post("/dbs/d/colls").json(&body)).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}");
        let message = answer.message();
        assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    }
}

#[tokio::test]
async fn a_throughput_below_the_minimum_is_told() {
    let client = Client::with_container().await;
    let create = || Call::post("/dbs/d/colls").json(&container("new"));
    for (name, value, rate, min) in [
        ("x-ms-offer-throughput", "100", "100", 400),
        ("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":-200}", "-200", 1000),
        ("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":200}", "200", 1000),
    ] {
        let answer = client.send(create().header(name, value)).await;
        let words = format!("Requested throughput {rate} is less than required minimum throughput {min}");
        assert!(answer.status.as_u16() == 400 && answer.message().contains(&words), "{answer:?}");
    }
}
