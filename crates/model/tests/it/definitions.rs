//! The stored form of definitions: everything a client can define comes back, and no bytes make the reader panic.

use model::{
    ClientEncryptionKeyDefinition, ContainerDefinition, DecodeFault, Decoder, Encoder, KeyComponent,
    PartitionKey, PermissionDefinition, ScriptDefinition, ScriptKind, Throughput,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value as Json, json};

fn encoded(definition: &ContainerDefinition) -> Vec<u8> {
    let mut out = Encoder::default();
    definition.encode(&mut out);
    out.finish()
}

fn decoded(bytes: &[u8]) -> Result<ContainerDefinition, DecodeFault> {
    let mut input = Decoder::new(bytes);
    let definition = ContainerDefinition::decode(&mut input)?;
    input.finish()?;
    Ok(definition)
}

#[track_caller]
fn check(body: &Json) {
    let definition = ContainerDefinition::from_json(body).unwrap();
    let back = decoded(&encoded(&definition)).unwrap();
    assert_eq!(back, definition);
    assert_eq!(Json::from(back.to_json()).to_string(), Json::from(definition.to_json()).to_string());
}

/// One definition with every feature.
fn everything() -> Json {
    json!({
        "id": "everything",
        "partitionKey": { "paths": ["/a", "/\"b c\"/d", "/e"], "kind": "MultiHash", "version": 2 },
        "defaultTtl": 77,
        "analyticalStorageTtl": -1,
        "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/u", "/v/w"] }, { "paths": ["/x"] }] },
        "conflictResolutionPolicy": { "mode": "Custom", "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s" },
        "geospatialConfig": { "type": "Geometry" },
        "changeFeedPolicy": { "retentionDuration": 90 },
        "computedProperties": [{ "name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c" }],
        "vectorEmbeddingPolicy": { "vectorEmbeddings": [
            { "path": "/v1", "dataType": "float16", "dimensions": 3, "distanceFunction": "euclidean",
              "embeddingSource": { "paths": ["/t"], "deep": [{ "x": 1.5 }] } },
            { "path": "/v2", "dataType": "int8", "dimensions": 500, "distanceFunction": "dotproduct" },
            { "path": "/v3", "dataType": "uint8" }] },
        "fullTextPolicy": { "defaultLanguage": "de-DE", "more": [1, null],
            "fullTextPaths": [{ "path": "/text", "language": "fr-FR", "other": true }, { "path": "/title" }] },
        "clientEncryptionPolicy": { "policyFormatVersion": 2, "includedPaths": [
            { "path": "/secret", "clientEncryptionKeyId": "key", "encryptionType": "Randomized",
              "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256" },
            { "path": "/a", "clientEncryptionKeyId": "key", "encryptionType": "Deterministic",
              "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256" }] },
        "indexingPolicy": {
            "indexingMode": "lazy",
            "automatic": true,
            "includedPaths": [
                { "path": "/*" },
                { "path": "/p/\"q r\"/[]/?", "indexes": [{ "kind": "Range", "dataType": "String", "precision": -1 }] }],
            "excludedPaths": [{ "path": "/z/*" }],
            "compositeIndexes": [[{ "path": "/m", "order": "descending" }, { "path": "/n/o" }]],
            "spatialIndexes": [{ "path": "/s/*", "types": ["Polygon", "Point"],
                "boundingBox": { "xmin": -1.25, "ymin": 0, "xmax": 10, "ymax": 20.5 } }],
            "vectorIndexes": [
                { "path": "/v1", "type": "flat" },
                { "path": "/v2", "type": "quantizedFlat", "quantizationByteSize": 9, "quantizerType": "product" },
                { "path": "/v3", "type": "diskANN", "indexingSearchListSize": 50,
                  "vectorIndexShardKey": ["/tenant"] }],
            "fullTextIndexes": [{ "path": "/text" }],
        },
    })
}

#[test]
fn a_definition_with_every_feature_comes_back() {
    check(&everything());
}

#[test]
fn every_kind_of_partition_key_comes_back() {
    for key in [
        json!({ "paths": ["/pk"] }),
        json!({ "paths": ["/pk"], "version": 2 }),
        json!({ "paths": ["/pk/\"quoted name\""], "version": "V2" }),
        json!({ "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 }),
        json!({ "paths": ["/_partitionKey"], "systemKey": true }),
    ] {
        check(&json!({ "id": "c", "partitionKey": key }));
    }
    check(&json!({ "id": "without a key" }));
}

#[test]
fn an_unknown_value_order_is_refused() {
    let mut bytes = encoded(&ContainerDefinition::from_json(&everything()).unwrap());
    assert_eq!(bytes[0], 0);
    bytes[0] = 1;
    let unknown = DecodeFault::Unknown { what: "value order", found: "1".to_owned(), at: 1 };
    assert_eq!(decoded(&bytes), Err(unknown));
}

#[test]
fn small_definitions_come_back() {
    let check = |encode: &dyn Fn(&mut Encoder), same: &dyn Fn(&mut Decoder<'_>) -> bool| {
        let mut out = Encoder::default();
        encode(&mut out);
        let bytes = out.finish();
        let mut input = Decoder::new(&bytes);
        assert!(same(&mut input));
        input.finish().unwrap();
    };
    for throughput in [Throughput::Manual(400), Throughput::Autoscale { max: 1_000_000 }] {
        check(&|out| throughput.encode(out), &|input| Throughput::decode(input) == Ok(throughput));
    }
    let body = json!({ "id": "t", "body": "x", "triggerType": "Post", "triggerOperation": "Upsert" });
    for kind in ScriptKind::ALL {
        let script = ScriptDefinition::from_json(kind, &body).unwrap();
        check(&|out| script.encode(out), &|input| ScriptDefinition::decode(input).as_ref() == Ok(&script));
    }
    let body =
        json!({ "id": "p", "permissionMode": "All", "resource": "dbs/d", "resourcePartitionKey": ["a", {}] });
    let permission = PermissionDefinition::from_json(&body).unwrap();
    check(&|out| permission.encode(out), &|input| {
        PermissionDefinition::decode(input).as_ref() == Ok(&permission)
    });
    let body = json!({
        "id": "k", "encryptionAlgorithm": "A", "wrappedDataEncryptionKey": "AQID",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "a", "more": 1.0 },
    });
    let key = ClientEncryptionKeyDefinition::from_json(&body).unwrap();
    check(&|out| key.encode(out), &|input| ClientEncryptionKeyDefinition::decode(input).as_ref() == Ok(&key));
    let components = vec![
        KeyComponent::Undefined,
        KeyComponent::Null,
        KeyComponent::Bool(true),
        KeyComponent::Bool(false),
        KeyComponent::Number(-0.5),
        KeyComponent::String("ä".to_owned()),
    ];
    let key = PartitionKey { components };
    check(&|out| key.encode(out), &|input| PartitionKey::decode(input).as_ref() == Ok(&key));
}

/// The most levels of JSON that is kept as it is.
const LEVELS: u32 = 4;

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        prop::num::f64::NORMAL.prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(LEVELS, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::from),
            vec((".{0,4}", inner), 0..4).prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    "[a-z]{1,6}|\"[^\"\\\\/*?\\[\\]]{1,5}\""
}

/// Paths of properties that differ: the position is part of the name.
fn paths(prefix: &'static str, most: usize) -> impl Strategy<Value = Vec<String>> {
    vec(vec(name(), 0..3), 0..=most).prop_map(move |lists| {
        let path = |(position, names): (usize, Vec<String>)| {
            let rest: String = names.iter().map(|name| format!("/{name}")).collect();
            format!("/{prefix}{position}{rest}")
        };
        lists.into_iter().enumerate().map(path).collect()
    })
}

fn partition_key() -> impl Strategy<Value = Json> {
    let hash = (paths("k", 1), select(vec![1, 2]), any::<bool>());
    let hash = hash.prop_filter("one path", |(paths, ..)| paths.len() == 1).prop_map(
        |(paths, version, system)| json!({ "paths": paths, "version": version, "systemKey": system }),
    );
    let many = paths("k", 3).prop_filter("a path", |paths| !paths.is_empty());
    prop_oneof![hash, many.prop_map(|paths| json!({ "paths": paths, "kind": "MultiHash", "version": 2 }))]
}

fn indexing() -> impl Strategy<Value = Json> {
    let ends = || vec(select(vec!["/?", "/*", "/[]/?", "/[]/*"]), 12);
    let spatial = subsequence(vec!["Point", "LineString", "Polygon", "MultiPolygon"], 0..=4);
    let parts = (select(vec!["consistent", "lazy"]), any::<bool>(), paths("i", 5), paths("x", 5), ends());
    (parts, vec((paths("c", 8), any::<u8>()), 0..3), paths("s", 3), spatial).prop_map(
        |((mode, automatic, included, excluded, ends), composite, spatial, types)| {
            let ended = |paths: Vec<String>, from: usize| -> Vec<Json> {
                let ends = ends.iter().skip(from);
                paths.iter().zip(ends).map(|(path, end)| json!({ "path": format!("{path}{end}") })).collect()
            };
            let order = |bits: u8, place: usize| if bits >> place & 1 == 0 { "ascending" } else { "descending" };
            let composite = composite.into_iter().enumerate().filter(|(_, (paths, _))| paths.len() >= 2);
            let composite: Vec<Json> = composite
                .map(|(index, (paths, bits))| {
                    let members = paths.iter().enumerate();
                    let member = |(place, path): (usize, &String)| {
                        json!({ "path": format!("/n{index}{path}"), "order": order(bits, place) })
                    };
                    members.map(member).collect()
                })
                .collect();
            let spatial: Vec<Json> = spatial
                .iter()
                .map(|path| json!({ "path": format!("{path}/*"), "types": types }))
                .collect();
            json!({
                "indexingMode": mode, "automatic": automatic, "compositeIndexes": composite,
                "includedPaths": ended(included, 0), "excludedPaths": ended(excluded, 6), "spatialIndexes": spatial,
            })
        },
    )
}

fn others() -> impl Strategy<Value = Map<String, Json>> {
    let vectors = (paths("v", 4), any_json().prop_filter("an object", Json::is_object), 1..=505_u32);
    let vectors = vectors.prop_map(|(paths, source, dimensions)| {
        let types = ["float32", "float16", "int8", "uint8"];
        let distances = ["cosine", "dotproduct", "euclidean"];
        let embedding = |(place, path): (usize, &String)| {
            json!({ "path": path, "dataType": types[place % 4], "dimensions": dimensions,
                    "distanceFunction": distances[place % 3], "embeddingSource": source })
        };
        json!({ "vectorEmbeddings": paths.iter().enumerate().map(embedding).collect::<Vec<_>>() })
    });
    let texts = (paths("t", 3), any_json(), select(vec!["en-US", "de-DE", "1033"])).prop_map(
        |(paths, other, language)| {
            let paths: Vec<Json> = paths
                .iter()
                .map(|path| json!({ "path": path, "language": language, "other": other }))
                .collect();
            json!({ "fullTextPaths": paths, "defaultLanguage": language, "kept": other })
        },
    );
    let unique = vec(paths("u", 3).prop_filter("a path", |paths| !paths.is_empty()), 0..4)
        .prop_map(|keys| json!({ "uniqueKeys": keys.iter().map(|paths| json!({ "paths": paths })).collect::<Vec<_>>() }));
    let ttl = prop_oneof![Just(json!(null)), Just(json!(-1)), (1..=i32::MAX).prop_map(Json::from)];
    let conflict = prop_oneof![
        Just(json!({ "mode": "LastWriterWins", "conflictResolutionPath": "/_ts" })),
        ".{0,20}".prop_map(|procedure| json!({ "mode": "Custom", "conflictResolutionProcedure": procedure })),
    ];
    let feed = (0..500_000_u32).prop_map(|minutes| json!({ "retentionDuration": minutes }));
    let computed = vec("[^\"]{1,30}", 0..4).prop_map(|texts| {
        let property = |(place, text): (usize, &String)| json!({ "name": format!("p{place}"), "query": format!("SELECT VALUE c.x + {text:?}") });
        texts.iter().enumerate().map(property).collect::<Json>()
    });
    let all = (
        prop::option::of(vectors),
        prop::option::of(texts),
        prop::option::of(unique),
        ttl.clone(),
        prop::option::of(ttl),
        prop::option::of(conflict),
        prop::option::of(feed),
        prop::option::of(computed),
    );
    all.prop_map(|(vectors, texts, unique, ttl, analytical, conflict, feed, computed)| {
        let members = [
            ("vectorEmbeddingPolicy", vectors),
            ("fullTextPolicy", texts),
            ("uniqueKeyPolicy", unique),
            ("defaultTtl", Some(ttl)),
            ("analyticalStorageTtl", analytical),
            ("conflictResolutionPolicy", conflict),
            ("changeFeedPolicy", feed),
            ("computedProperties", computed),
        ];
        members.into_iter().filter_map(|(name, json)| Some((name.to_owned(), json?))).collect()
    })
}

fn definition() -> impl Strategy<Value = Json> {
    ("[^/\\\\#?\\p{Cc} ]{1,20}", partition_key(), indexing(), others()).prop_map(
        |(id, key, indexing, mut all)| {
            all.insert("id".to_owned(), id.into());
            all.insert("partitionKey".to_owned(), key);
            all.insert("indexingPolicy".to_owned(), indexing);
            Json::Object(all)
        },
    )
}

proptest! {
    #[test]
    fn random_definitions_come_back(body in definition()) {
        check(&body);
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = decoded(&bytes);
    }

    /// Most random bytes are refused at the first tag; damaged ones get further.
    #[test]
    fn no_damage_panics(damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&ContainerDefinition::from_json(&everything()).unwrap());
        prop_assert!(decoded(&bytes[..cut.index(bytes.len())]).is_err());
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(definition) = decoded(&bytes) {
            prop_assert_eq!(decoded(&encoded(&definition)).unwrap(), definition);
        }
    }
}
