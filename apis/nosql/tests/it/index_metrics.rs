//! Index metrics of queries, and advice on how they are written.

use crate::client::{Answer, Call, Client, DOCS, container};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value as Json, json};

const INDEXES: &str = "x-ms-cosmos-index-utilization";
const FIRST_FORM: &str = "x-ms-cosmos-populateindexmetrics";
const SECOND_FORM: &str = "x-ms-cosmos-populateindexmetrics-V2";

fn query(text: &str) -> Call {
    Call::post(DOCS)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
        .header("x-perihelion-compatibility", "relaxed")
        .json(&json!({ "query": text }))
}

/// A container whose policy excludes `/plain` and has one composite index.
async fn filled() -> Client {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let mut definition = container("c");
    definition["indexingPolicy"] = json!({
        "includedPaths": [{ "path": "/*" }],
        "excludedPaths": [{ "path": "/plain/*" }, { "path": "/\"two words\"/?" }],
        "compositeIndexes": [[{ "path": "/a" }, { "path": "/b", "order": "descending" }]],
    });
    client.create("/dbs/d/colls", definition).await;
    for number in 0..20 {
        let item = json!({ "id": number.to_string(), "pk": format!("k{}", number % 5), "a": number, "tags": [number] });
        assert_eq!(client.send(Call::post(DOCS).json(&item)).await.code(), (201, 0));
    }
    client
}

/// The header in its older form.
#[track_caller]
fn first_form(answer: &Answer) -> Json {
    assert_eq!(answer.code(), (200, 0), "{answer:?}");
    let text = BASE64_STANDARD.decode(answer.header(INDEXES).unwrap()).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The header in its newer form.
#[track_caller]
fn decoded(answer: &Answer, name: &str) -> Json {
    assert_eq!(answer.code(), (200, 0), "{answer:?}");
    let mut bytes = Vec::new();
    let mut rest = answer.header(name).unwrap().bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            _ => byte,
        });
    }
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn the_shape_of_a_query_decides() {
    let client = filled().await;
    // Used paths, missing paths, used and missing composite indexes.
    for (text, expected) in [
        ("SELECT VALUE COUNT(1) FROM c", json!([[], [], [], []])),
        ("SELECT VALUE MAX(c.a) FROM c", json!([["/a/? High"], [], [], []])),
        ("SELECT c.a, COUNT(1) FROM c GROUP BY c.a", json!([["/a/? High"], [], [], []])),
        ("SELECT DISTINCT VALUE c.a FROM c WHERE c.b = 1", json!([["/b/? High", "/a/? High"], [], [], []])),
        ("SELECT c.plain, COUNT(1) FROM c GROUP BY c.plain", json!([[], [], [], []])),
    ] {
        check(&client, text, &expected).await;
    }
    for (filter, expected) in [
        ("", json!([[], [], [], []])),
        ("WHERE c.name = 'x'", json!([["/name/? High"], [], [], []])),
        ("WHERE c.x.y > 2 OR c.name = 'x'", json!([["/x/y/? High", "/name/? High"], [], [], []])),
        ("WHERE c.name != 'x'", json!([["/name/? Low"], [], [], []])),
        ("WHERE IS_DEFINED(c.name) AND c.name > 'x'", json!([["/name/? High"], [], [], []])),
        ("WHERE ARRAY_CONTAINS(c.tags, 7)", json!([["/tags/[]/? High"], [], [], []])),
        ("WHERE c[\"1 2\"] = 7", json!([["/\"1 2\"/? High"], [], [], []])),
        // Paths that the policy excludes.
        ("WHERE c.plain.deep = 1", json!([[], ["/plain/deep/? High"], [], []])),
        ("WHERE c[\"two words\"] != 1", json!([[], ["/\"two words\"/? Low"], [], []])),
        ("WHERE c.name = 1 OR c.plain = 1", json!([[], ["/plain/? High"], [], []])),
        ("WHERE ARRAY_CONTAINS(c.plain, 1)", json!([[], ["/plain/[]/? High"], [], []])),
        ("ORDER BY c.plain", json!([[], ["/plain/? High"], [], []])),
        // What no policy can change.
        ("WHERE c._etag = 'x'", json!([[], [], [], []])),
        // Several equalities, and equalities with ranges.
        ("WHERE c.a = 1 AND c.c = 2", json!([["/a/? High", "/c/? High"], [], [], ["/a ASC /c ASC"]])),
        ("WHERE c.b = 1 AND c.a = 2", json!([["/b/? High", "/a/? High"], [], [], []])),
        (
            "WHERE c.name = 'Tim' AND c.age > 15 AND c.town = 'Redmond' AND c.timestamp > 2349230183",
            json!([
                ["/name/? High", "/age/? High", "/town/? High", "/timestamp/? High"],
                [],
                [],
                ["/name ASC /town ASC /age ASC", "/name ASC /town ASC /timestamp ASC"]
            ]),
        ),
        ("WHERE c.a = 1 AND c.b BETWEEN 2 AND 3", json!([["/a/? High", "/b/? High"], [], [], []])),
        ("WHERE c.x > 1 AND c.y > 2", json!([["/x/? High", "/y/? High"], [], [], []])),
        ("WHERE c.x = 1 OR c.y = 2", json!([["/x/? High", "/y/? High"], [], [], []])),
        // Orders.
        ("ORDER BY c.a DESC", json!([["/a/? High"], [], [], []])),
        ("ORDER BY c.a, c.b DESC", json!([[], [], ["/a ASC /b DESC"], []])),
        ("ORDER BY c.a DESC, c.b", json!([[], [], ["/a ASC /b DESC"], []])),
        ("ORDER BY c.a, c.b", json!([["/a/? High"], [], [], ["/a ASC /b ASC"]])),
        ("WHERE c.x = 1 ORDER BY c.a DESC", json!([["/x/? High", "/a/? High"], [], [], ["/x ASC /a DESC"]])),
        ("WHERE c.a = 1 ORDER BY c.a, c.b DESC", json!([["/a/? High"], [], ["/a ASC /b DESC"], []])),
    ] {
        check(&client, &format!("SELECT * FROM c {filter}"), &expected).await;
    }
}

async fn check(client: &Client, text: &str, expected: &Json) {
    let indexes = first_form(&client.send(query(text).header(FIRST_FORM, "True")).await);
    let single = |index: &Json| format!("{} {}", index["IndexSpec"].as_str().unwrap(), score(index)).into();
    let composite = |index: &Json| {
        assert_eq!(score(index), "High");
        let specs = index["IndexSpecs"].as_array().unwrap();
        let specs: Vec<&str> = specs.iter().map(|spec| spec.as_str().unwrap()).collect();
        specs.join(" ").into()
    };
    let list = |name: &str, text: &dyn Fn(&Json) -> Json| -> Json {
        indexes[name].as_array().unwrap().iter().map(text).collect()
    };
    let found = json!([
        list("UtilizedSingleIndexes", &single),
        list("PotentialSingleIndexes", &single),
        list("UtilizedCompositeIndexes", &composite),
        list("PotentialCompositeIndexes", &composite),
    ]);
    assert_eq!(found, *expected, "{text}");
}

fn score(index: &Json) -> &str {
    index["IndexImpactScore"].as_str().unwrap()
}

#[tokio::test]
async fn both_forms_come_with_every_page_if_they_are_asked_for() {
    let client = filled().await;
    let text = "SELECT * FROM c WHERE c.plain = 1 OR c.a > 2 AND c.a != 9";
    assert_eq!(client.send(query(text)).await.header(INDEXES), None);
    assert_eq!(client.send(query(text).header(FIRST_FORM, "false")).await.header(INDEXES), None);
    assert_eq!(client.send(query(text).header(SECOND_FORM, "perhaps")).await.code(), (400, 0));
    // A query on one key is answered from that key.
    let by_key = query("SELECT * FROM c").key(&json!(["k1"])).header("x-ms-max-item-count", "3");
    let call = by_key.clone().header(FIRST_FORM, "True");
    let page = client.send(call.clone()).await;
    let single = json!({
        "FilterExpression": "", "IndexSpec": "/pk/?", "FilterPreciseSet": true, "IndexPreciseSet": true,
        "IndexImpactScore": "High",
    });
    let expected = json!({
        "UtilizedSingleIndexes": [single], "PotentialSingleIndexes": [],
        "UtilizedCompositeIndexes": [], "PotentialCompositeIndexes": [],
    });
    assert_eq!(first_form(&page), expected);
    let token = page.header("x-ms-continuation").unwrap();
    assert_eq!(first_form(&client.send(call.header("x-ms-continuation", token)).await), expected);
    let answer = client.send(by_key.header(FIRST_FORM, "True").header(SECOND_FORM, "true")).await;
    let expected = json!({
        "UtilizedIndexes": { "SingleIndexes": [{ "IndexSpec": "/pk/?" }], "CompositeIndexes": [] },
        "PotentialIndexes": { "SingleIndexes": [], "CompositeIndexes": [] },
    });
    assert_eq!(decoded(&answer, INDEXES), expected);
    let text = "SELECT * FROM c WHERE c.a = 'ß' AND c.plain = 2";
    let answer = client.send(query(text).header(SECOND_FORM, "true")).await;
    let expected = json!({
        "UtilizedIndexes": { "SingleIndexes": [{ "IndexSpec": "/a/?" }], "CompositeIndexes": [] },
        "PotentialIndexes": {
            "SingleIndexes": [{ "IndexSpec": "/plain/?", "IndexImpactScore": "High" }],
            "CompositeIndexes": [{ "IndexSpecs": ["/a ASC", "/plain ASC"], "IndexImpactScore": "High" }],
        },
    });
    assert_eq!(decoded(&answer, INDEXES), expected);
    // Lists are not queries.
    let list = client.send(Call::get(DOCS).header(FIRST_FORM, "True")).await;
    assert_eq!((list.code(), list.header(INDEXES)), ((200, 0), None));
}

#[tokio::test]
async fn advice_comes_with_the_first_page() {
    const WANTED: &str = "x-ms-cosmos-populatequeryadvice";
    const ADVICE: &str = "x-ms-cosmos-query-advice";
    let client = filled().await;
    let text = "SELECT * FROM c WHERE NOT CONTAINS(c.id, 'x') AND LOWER(c.pk) != 'K'";
    let call = query(text).header("x-ms-max-item-count", "4");
    assert_eq!(client.send(call.clone()).await.header(ADVICE), None);
    let call = call.header(WANTED, "True");
    let page = client.send(call.clone()).await;
    let expected = json!([{ "Id": "QA1002", "Params": [] }, { "Id": "QA1006", "Params": [] }]);
    assert_eq!(decoded(&page, ADVICE), expected);
    let next = client.send(call.header("x-ms-continuation", page.header("x-ms-continuation").unwrap())).await;
    assert_eq!((next.code(), next.header(ADVICE)), ((200, 0), None));
    let fine = client.send(query("SELECT * FROM c WHERE c.a = 1").header(WANTED, "True")).await;
    assert_eq!((fine.code(), fine.header(ADVICE)), ((200, 0), None));
}
