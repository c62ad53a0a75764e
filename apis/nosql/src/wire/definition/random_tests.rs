//! Random definitions: each round-trips through its stored form and its wire form.

use super::container::{read, read_change, write};
use model::{ContainerDefinition, Decoder, Encoder};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value as Json, json};

fn check(body: &Json) -> Result<(), TestCaseError> {
    let definition = read(body).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
    let mut out = Encoder::default();
    definition.encode(&mut out);
    let stored = ContainerDefinition::decode(&mut Decoder::new(&out.finish()));
    prop_assert_eq!(stored.as_ref(), Ok(&definition));
    let written = Json::from(write(&definition));
    prop_assert_eq!(Json::from(write(&stored.unwrap())).to_string(), written.to_string());
    let again = read(&written);
    prop_assert_eq!(again.as_ref(), Ok(&definition));
    let replaced = read_change(&definition, &written).and_then(|change| Ok(change.applied(&definition)?));
    prop_assert_eq!(replaced, Ok(definition));
    Ok(())
}

/// Maximum depth of opaque JSON.
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

/// Different property paths: the position is part of the name.
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
        check(&body)?;
    }
}
