//! Queries on documents: where they run, the form of their pages, what is refused. The server merges ranges, as in
//! relaxed mode; `compatibility` tests the other one.

use crate::client::{Answer, Call, Client, DOCS, container};
use serde_json::{Value as Json, json};

fn query(text: &str) -> Call {
    query_with(&json!({ "query": text }))
}

fn query_with(body: &Json) -> Call {
    Call::post(DOCS)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
        .header("x-perihelion-compatibility", "relaxed")
        .json(body)
}

/// A container of three ranges with twenty items under five keys.
async fn filled() -> Client {
    let client = Client::empty().await;
    client.create("/dbs", json!({ "id": "d" })).await;
    let call = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "18000").json(&container("c"));
    assert_eq!(client.send(call).await.code(), (201, 0));
    for number in 0..20 {
        let item = json!({ "id": format!("{number:02}"), "pk": format!("k{}", number % 5), "n": number });
        assert_eq!(client.send(Call::post(DOCS).json(&item)).await.code(), (201, 0));
    }
    client
}

#[track_caller]
fn rows(answer: &Answer) -> Vec<Json> {
    assert_eq!(answer.code(), (200, 0), "{answer:?}");
    let page = answer.json();
    let rows = page["Documents"].as_array().unwrap();
    assert_eq!(page["_count"], rows.len());
    assert_eq!(answer.header("x-ms-item-count").unwrap(), rows.len().to_string());
    assert!(answer.header("x-ms-request-charge").unwrap().parse::<f64>().unwrap() >= 1.0);
    assert!(answer.header("x-ms-content-path").is_some());
    rows.clone()
}

/// The rows of all pages, read `size` at a time.
async fn paged(client: &Client, call: Call, size: usize) -> Vec<Json> {
    let call = call.header("x-ms-max-item-count", size.to_string());
    let (mut next, mut all) = (call.clone(), Vec::new());
    loop {
        let answer = client.send(next).await;
        let page = rows(&answer);
        assert!(page.len() <= size);
        all.extend(page);
        let Some(continuation) = answer.header("x-ms-continuation") else { return all };
        assert!(continuation.len() < 1024, "{continuation}");
        next = call.clone().header("x-ms-continuation", continuation);
    }
}

#[tokio::test]
async fn a_query_sees_an_item_as_it_is_read() {
    let client = Client::with_container().await;
    let made = client.put_item("1", "a").await.json();
    // The item is a part of the row, so the evaluator adds the system properties, not the item writer.
    let found = rows(&client.send(query("SELECT VALUE [c, c._self] FROM c")).await);
    assert_eq!(found, [json!([made, made["_self"]])]);
    let names = |item: &Json| item.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found[0][0]), names(&made));
}

#[tokio::test]
async fn whole_items_come_as_they_are_read() {
    let client = filled().await;
    let found = rows(&client.send(query("SELECT * FROM c WHERE c.id = '07'")).await);
    let read = client.send(Call::get(&format!("{DOCS}/07")).key(&json!(["k2"]))).await;
    assert_eq!(found, [read.json()]);
    let answer = client.send(query("SELECT * FROM c")).await;
    assert_eq!(answer.header("x-ms-session-token").unwrap().split(',').count(), 3);
    assert_eq!(answer.json()["_rid"], client.send(Call::get("/dbs/d/colls/c")).await.json()["_rid"]);
}

#[tokio::test]
async fn shapes_of_queries_are_answered_whole_over_all_ranges() {
    let client = filled().await;
    for (text, expected) in [
        ("SELECT VALUE c.n FROM c WHERE c.n > 16 ORDER BY c.n DESC", json!([19, 18, 17])),
        ("SELECT TOP 2 c.id FROM c ORDER BY c.n", json!([{ "id": "00" }, { "id": "01" }])),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 2", json!([3, 4])),
        ("SELECT VALUE COUNT(1) FROM c", json!([20])),
        ("SELECT VALUE AVG(c.n) FROM c", json!([9.5])),
        ("SELECT MIN(c.n) AS least, MAX(c.n) AS most FROM c", json!([{ "least": 0, "most": 19 }])),
        ("SELECT VALUE SUM(c.n) FROM c WHERE c.pk = 'k1'", json!([34])),
        ("SELECT VALUE 1", json!([1])),
        ("SELECT VALUE c.absent FROM c", json!([])),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c)", json!([5])),
    ] {
        for size in [1, 3, 100] {
            assert_eq!(Json::from(paged(&client, query(text), size).await), expected, "{text} by {size}");
        }
    }
    let mut keys = paged(&client, query("SELECT DISTINCT VALUE c.pk FROM c"), 2).await;
    keys.sort_by_key(ToString::to_string);
    assert_eq!(Json::from(keys), json!(["k0", "k1", "k2", "k3", "k4"]));
    let mut groups = paged(&client, query("SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk"), 2).await;
    groups.sort_by_key(|group| group["pk"].to_string());
    assert_eq!(groups[4], json!({ "pk": "k4", "n": 4 }));
}

#[tokio::test]
async fn parameters_are_filled_in() {
    let client = filled().await;
    let body = json!({
        "query": "SELECT VALUE c.n FROM c WHERE c.pk = @pk AND c.n IN (@a, @b) ORDER BY c.n OFFSET @o LIMIT 5",
        "parameters": [
            { "name": "@pk", "value": "k3" }, { "name": "@a", "value": 3 },
            { "name": "@b", "value": 8.0 }, { "name": "@o", "value": 1 },
        ],
    });
    assert_eq!(rows(&client.send(query_with(&body)).await), [json!(8)]);
    let missing = client.send(query("SELECT VALUE c.n FROM c WHERE c.n = @absent")).await;
    assert_eq!(missing.code(), (400, 0));
    assert!(missing.message().contains("@absent"));
}

#[tokio::test]
async fn old_clients_send_the_bare_text() {
    let client = filled().await;
    let call = Call::post(DOCS)
        .header("content-type", "application/sql")
        .key(&json!(["k0"]))
        .body(b"SELECT VALUE c.n FROM c ORDER BY c.n".to_vec());
    assert_eq!(Json::from(rows(&client.send(call).await)), json!([0, 5, 10, 15]));
}

#[tokio::test]
async fn headers_say_where_a_query_runs() {
    let client = filled().await;
    let count = "SELECT VALUE COUNT(1) FROM c";
    let narrow = |text: &str| query(text).without_header("x-ms-documentdb-query-enablecrosspartition");
    assert_eq!(rows(&client.send(narrow(count).key(&json!(["k1"]))).await), [json!(4)]);
    let mut sum = 0;
    for range in ["0", "1", "2"] {
        let call = narrow(count).header("x-ms-documentdb-partitionkeyrangeid", range);
        sum += rows(&client.send(call).await)[0].as_u64().unwrap();
    }
    assert_eq!(sum, 20);
    let gone = narrow(count).header("x-ms-documentdb-partitionkeyrangeid", "9");
    assert_eq!(client.send(gone).await.code(), (410, 1002));
    // Parts of the hash space, with or without the id of a range.
    let middle = "20000000000000000000000000000000";
    let mut sum = 0;
    for (name, bound) in [("x-ms-end-epk", middle), ("x-ms-start-epk", middle)] {
        let call =
            narrow(count).header("x-ms-read-key-type", "EffectivePartitionKeyRange").header(name, bound);
        sum += rows(&client.send(call).await)[0].as_u64().unwrap();
    }
    assert_eq!(sum, 20);
    let part = narrow(count)
        .header("x-ms-documentdb-partitionkeyrangeid", "0")
        .header("x-ms-start-epk", middle)
        .header("x-ms-end-epk", "FF");
    assert_eq!(rows(&client.send(part).await), [json!(0)]);
}

#[tokio::test]
async fn without_leave_to_cross_partitions_the_filter_must_name_a_key() {
    let client = filled().await;
    let narrow = |text: &str| query(text).without_header("x-ms-documentdb-query-enablecrosspartition");
    for (text, expected) in [
        ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'k1'", json!([4])),
        ("SELECT VALUE c.n FROM c WHERE c.n > 2 AND c.pk = 'k2' ORDER BY c.n", json!([7, 12, 17])),
    ] {
        assert_eq!(Json::from(rows(&client.send(narrow(text)).await)), expected, "{text}");
    }
    for text in
        ["SELECT * FROM c", "SELECT * FROM c WHERE c.pk > 'k1'", "SELECT * FROM c WHERE c.pk IN ('k1', 'k2')"]
    {
        let answer = client.send(narrow(text)).await;
        assert_eq!(answer.code(), (400, 0), "{text}");
        assert!(answer.message().contains("Cross partition query is required but disabled"), "{answer:?}");
        assert_eq!(client.send(query(text)).await.code(), (200, 0), "{text}");
    }
}

#[tokio::test]
async fn hierarchical_keys_and_their_beginnings() {
    let client = Client::with_container().await;
    let mut definition = container("h");
    definition["partitionKey"] = json!({ "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 });
    client.create("/dbs/d/colls", definition).await;
    for number in 0..12 {
        let item = json!({ "id": number.to_string(), "a": number % 2, "b": number % 3, "n": number });
        client.create("/dbs/d/colls/h/docs", item).await;
    }
    let ask = |text: &str| {
        Call::post("/dbs/d/colls/h/docs")
            .header("content-type", "application/query+json")
            .header("x-perihelion-compatibility", "relaxed")
            .json(&json!({ "query": text }))
    };
    let all = "SELECT VALUE c.n FROM c ORDER BY c.n";
    assert_eq!(Json::from(rows(&client.send(ask(all).key(&json!([1, 2]))).await)), json!([5, 11]));
    assert_eq!(Json::from(rows(&client.send(ask(all).key(&json!([1]))).await)), json!([1, 3, 5, 7, 9, 11]));
    for (text, expected) in [
        ("SELECT VALUE c.n FROM c WHERE c.a = 1 AND c.b = 2 ORDER BY c.n", json!([5, 11])),
        ("SELECT VALUE c.n FROM c WHERE c.a = 0 ORDER BY c.n DESC OFFSET 1 LIMIT 2", json!([8, 6])),
    ] {
        assert_eq!(Json::from(rows(&client.send(ask(text)).await)), expected, "{text}");
    }
    assert_eq!(client.send(ask("SELECT * FROM c WHERE c.b = 1")).await.code(), (400, 0));
}

#[tokio::test]
async fn measurements_are_given_to_those_who_ask() {
    let client = filled().await;
    let plain = client.send(query("SELECT * FROM c")).await;
    assert_eq!(plain.header("x-ms-documentdb-query-metrics"), None);
    assert!(plain.header("x-ms-cosmos-query-execution-info").unwrap().contains("reverseRidEnabled"));
    let call = query("SELECT * FROM c WHERE c.n < 3").header("x-ms-documentdb-populatequerymetrics", "True");
    let answer = client.send(call).await;
    let metrics = answer.header("x-ms-documentdb-query-metrics").unwrap();
    assert!(metrics.contains("outputDocumentCount=3;") && !metrics.ends_with(';'), "{metrics}");
}

#[tokio::test]
async fn a_page_reads_hardly_more_documents_than_it_returns() {
    let client = filled().await;
    let key = json!(["k1"]);
    for (text, rows_expected, read_max) in
        [("SELECT TOP 3 * FROM c", 3, 4), ("SELECT TOP 2 * FROM c WHERE c.n > 0", 2, 3)]
    {
        let call = query(text).key(&key).header("x-ms-documentdb-populatequerymetrics", "True");
        let answer = client.send(call).await;
        assert_eq!(rows(&answer).len(), rows_expected);
        let metrics = answer.header("x-ms-documentdb-query-metrics").unwrap();
        let read = metrics.split(';').find_map(|pair| pair.strip_prefix("retrievedDocumentCount=")).unwrap();
        assert!(read.parse::<usize>().unwrap() <= read_max, "{text}: {metrics}");
    }
}

#[tokio::test]
async fn a_page_of_no_rows_is_empty() {
    let client = filled().await;
    let none = query("SELECT TOP 0 * FROM c").header("x-ms-max-item-count", "0");
    let answer = client.send(none).await;
    assert!(rows(&answer).is_empty());
    assert_eq!(answer.header("x-ms-continuation"), None);
    // The size of other pages is left to the server.
    let all = query("SELECT * FROM c").header("x-ms-max-item-count", "0");
    assert_eq!(rows(&client.send(all).await).len(), 20);
}

#[tokio::test]
async fn the_last_row_of_an_order_has_no_continuation() {
    let client = filled().await;
    let pages = async |call: Call, size: usize| {
        let call = call.header("x-ms-max-item-count", size.to_string());
        let (mut next, mut sizes) = (call.clone(), Vec::new());
        loop {
            let answer = client.send(next).await;
            sizes.push(rows(&answer).len());
            let Some(continuation) = answer.header("x-ms-continuation") else { return sizes };
            next = call.clone().header("x-ms-continuation", continuation);
        }
    };
    for text in ["SELECT * FROM c ORDER BY c.n", "SELECT * FROM c ORDER BY c.absent DESC"] {
        assert_eq!(pages(query(text), 2).await, [2; 10], "{text}");
        assert_eq!(pages(query(text), 20).await, [20], "{text}");
        assert_eq!(pages(query(text).key(&json!(["k1"])), 2).await, [2, 2], "{text} in a key");
        for range in ["0", "1", "2"] {
            let call = query(text).header("x-ms-documentdb-partitionkeyrangeid", range);
            let count = pages(call.clone(), 100).await[0];
            assert_eq!(pages(call.clone(), 1).await, vec![1; count.max(1)], "{text} in range {range}");
        }
    }
}

/// What a client that merges ranges sends to resume after the rows that it has returned.
#[tokio::test]
async fn an_ordered_query_goes_on_behind_a_row() {
    let client = filled().await;
    for (id, value) in [("x", json!(null)), ("y", json!("text")), ("z", json!(true)), ("w", json!(7))] {
        let item = json!({ "id": id, "pk": "k0", "n": value });
        assert_eq!(client.send(Call::post(DOCS).json(&item)).await.code(), (201, 0));
    }
    client.create(DOCS, json!({ "id": "v", "pk": "k0" })).await;
    for direction in ["ASC", "DESC"] {
        let text = format!("SELECT c._rid, c.n FROM c ORDER BY c.n {direction}");
        let whole = paged(&client, query(&text), 100).await;
        assert_eq!(whole.len(), 25);
        for (index, row) in whole.iter().enumerate() {
            let value = row.get("n").cloned().unwrap_or(json!([]));
            let point = |rid: Json, exclude: bool| json!({ "query": text, "resumeFilter": { "value": [value], "rid": rid, "exclude": exclude } });
            let behind = paged(&client, query_with(&point(row["_rid"].clone(), true)), 7).await;
            assert_eq!(behind, whole[index + 1..], "{text} behind {row}");
            let from = paged(&client, query_with(&point(row["_rid"].clone(), false)), 7).await;
            assert_eq!(from, whole[index..], "{text} from {row}");
            let is_same = |other: &&Json| other.get("n") == row.get("n");
            let first = whole.iter().position(|other| is_same(&other)).unwrap();
            let last = first + whole.iter().filter(is_same).count();
            assert_eq!(paged(&client, query_with(&point(json!(null), false)), 7).await, whole[first..]);
            assert_eq!(paged(&client, query_with(&point(json!(null), true)), 7).await, whole[last..]);
        }
        // Together with an earlier continuation of the client; the later position wins.
        let page = client.send(query(&text).header("x-ms-max-item-count", "5")).await;
        let token = page.header("x-ms-continuation").unwrap();
        for (index, from) in [(2, 5), (9, 10)] {
            let value = whole[index].get("n").cloned().unwrap_or(json!([]));
            let point = json!({ "value": [value], "rid": whole[index]["_rid"], "exclude": true });
            let body = json!({ "query": text, "resumeFilter": point });
            let rest = rows(&client.send(query_with(&body).header("x-ms-continuation", token)).await);
            assert_eq!(rest, whole[from..], "{text}");
        }
    }
    for (text, values) in [
        ("SELECT * FROM c", json!([1])),
        ("SELECT * FROM c ORDER BY c.n", json!([1, 2])),
        ("SELECT * FROM c ORDER BY c.n", json!([{ "type": "array", "low": 1, "high": 2 }])),
    ] {
        let body = json!({ "query": text, "resumeFilter": { "value": values } });
        assert_eq!(client.send(query_with(&body)).await.code(), (400, 0), "{body}");
    }
}

#[tokio::test]
async fn a_query_is_explained_to_those_who_ask() {
    let client = filled().await;
    let call = query("SELECT VALUE COUNT(1) FROM c WHERE c.n > 3").header("x-perihelion-explain", "true");
    let answer = client.send(call).await;
    assert_eq!(answer.code(), (200, 0));
    let text = answer.json()["explain"].as_str().unwrap().to_owned();
    assert!(text.contains("COUNT"), "{text}");
    let broken = query("SELECT VALUE").header("x-perihelion-explain", "true");
    assert_eq!(client.send(broken).await.code(), (400, 0));
    let odd = query("SELECT VALUE 1").header("x-perihelion-explain", "maybe");
    assert_eq!(client.send(odd).await.code(), (400, 0));
}

#[tokio::test]
async fn computed_properties_are_seen_by_queries_only() {
    let client = Client::with_container().await;
    let mut definition = container("p");
    definition["computedProperties"] =
        json!([{ "name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c" }]);
    client.create("/dbs/d/colls", definition.clone()).await;
    for (id, name) in [("1", "B"), ("2", "a"), ("3", "C")] {
        client.create("/dbs/d/colls/p/docs", json!({ "id": id, "pk": "k", "name": name })).await;
    }
    let ask = |text: &str| {
        Call::post("/dbs/d/colls/p/docs")
            .header("content-type", "application/query+json")
            .key(&json!(["k"]))
            .json(&json!({ "query": text }))
    };
    let found = rows(&client.send(ask("SELECT VALUE c.low FROM c WHERE c.low != 'c' ORDER BY c.low")).await);
    assert_eq!(Json::from(found), json!(["a", "b"]));
    assert!(rows(&client.send(ask("SELECT * FROM c")).await)[0].get("low").is_none());
    definition["id"] = json!("q");
    definition["computedProperties"][0]["query"] = json!("SELECT VALUE LOWR(c.name) FROM c");
    let answer = client.send(Call::post("/dbs/d/colls").json(&definition)).await;
    assert_eq!(answer.code(), (400, 0));
    assert!(answer.message().contains("LOWR"), "{answer:?}");
}

#[tokio::test]
async fn a_computed_property_is_indexed_where_the_policy_names_it() {
    let client = Client::with_container().await;
    let mut definition = container("p");
    definition["computedProperties"] =
        json!([{ "name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c" }]);
    definition["indexingPolicy"] = json!({ "includedPaths": [{ "path": "/*" }, { "path": "/low/?" }] });
    client.create("/dbs/d/colls", definition.clone()).await;
    for (id, name) in [("1", "B"), ("2", "a"), ("3", "b")] {
        client.create("/dbs/d/colls/p/docs", json!({ "id": id, "pk": "k", "name": name })).await;
    }
    let ask = || {
        Call::post("/dbs/d/colls/p/docs")
            .header("content-type", "application/query+json")
            .key(&json!(["k"]))
            .json(&json!({ "query": "SELECT VALUE c.id FROM c WHERE c.low = 'b'" }))
    };
    let explained = client.send(ask().header("x-perihelion-explain", "true")).await;
    let text = explained.json()["explain"].as_str().unwrap().to_owned();
    assert!(text.contains("/low = \"b\""), "{text}");
    assert_eq!(Json::from(rows(&client.send(ask()).await)), json!(["1", "3"]));
    // The new definition applies immediately, even if the index is still that of the old one.
    definition["computedProperties"][0]["query"] = json!("SELECT VALUE c.name FROM c");
    assert_eq!(client.send(Call::put("/dbs/d/colls/p").json(&definition)).await.status, 200);
    assert_eq!(Json::from(rows(&client.send(ask()).await)), json!(["3"]));
}

#[tokio::test]
async fn a_continuation_belongs_to_its_container_and_order() {
    let client = filled().await;
    client.create("/dbs/d/colls", container("other")).await;
    let text = "SELECT VALUE c.n FROM c ORDER BY c.n";
    let first = client.send(query(text).header("x-ms-max-item-count", "2")).await;
    let token = first.header("x-ms-continuation").unwrap().to_owned();
    let parsed: Json = serde_json::from_str(&token).unwrap();
    assert_eq!(parsed[0]["range"], json!({ "min": "", "max": "FF" }));
    let sealed = parsed[0]["token"].as_str().unwrap();
    let resumed = query(text).header("x-ms-max-item-count", "2");
    for token in [&token, sealed] {
        let resumed = resumed.clone().header("x-ms-continuation", token);
        assert_eq!(Json::from(rows(&client.send(resumed).await)), json!([2, 3]));
    }
    let elsewhere = Call { path: "/dbs/d/colls/other/docs".to_owned(), ..query(text) };
    let foreign = [
        query("SELECT VALUE c.n FROM c ORDER BY c.n DESC"),
        query("SELECT VALUE c.n FROM c ORDER BY c.id"),
        query("SELECT VALUE c.n FROM c"),
        query("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n"),
        query("SELECT VALUE c.n FROM c GROUP BY c.n"),
        elsewhere,
        Call::get(DOCS),
    ];
    for call in foreign {
        let answer = client.send(call.header("x-ms-continuation", &token)).await;
        assert_eq!(answer.code(), (400, 0), "{answer:?}");
        assert!(answer.message().contains("Invalid Continuation Token"), "{answer:?}");
    }
    let mut forged = token.clone().into_bytes();
    forged[40] ^= 1;
    let truncated = token.replace(&sealed[sealed.len() - 4..], "");
    for forged in [forged, truncated.into_bytes(), b"nonsense".to_vec(), b"[{\"token\":\"x\"}]".to_vec()] {
        let answer = client.send(query(text).header("x-ms-continuation", forged)).await;
        assert_eq!(answer.code(), (400, 0));
        assert!(answer.message().contains("Invalid Continuation Token"), "{answer:?}");
    }
}

/// Clients that merge ranges replace a placeholder in the filter when they resume, and some name the scope otherwise.
#[tokio::test]
async fn a_continuation_resumes_with_another_filter_and_another_name_of_its_scope() {
    let client = filled().await;
    let text = |filter: &str| {
        format!(
            "SELECT c._rid, [{{\"item\": c.n}}] AS orderByItems, c.n AS payload FROM c WHERE ({filter}) ORDER BY c.n"
        )
    };
    let in_key = |text: &str| query(text).key(&json!(["k1"])).header("x-ms-max-item-count", "2");
    let page = client.send(in_key(&text("true"))).await;
    let token = page.header("x-ms-continuation").unwrap().to_owned();
    let resumed = in_key(&text("c.n >= 6")).header("x-ms-continuation", &token);
    let payloads =
        |answer: &Answer| rows(answer).iter().map(|row| row["payload"].clone()).collect::<Vec<_>>();
    assert_eq!(payloads(&client.send(resumed.clone()).await), [json!(11), json!(16)]);
    let parsed: Json = serde_json::from_str(&token).unwrap();
    let range = &parsed[0]["range"];
    let without_key = resumed.without_header("x-ms-documentdb-partitionkey");
    let by_hash = without_key
        .clone()
        .header("x-ms-start-epk", range["min"].as_str().unwrap())
        .header("x-ms-end-epk", range["max"].as_str().unwrap());
    assert_eq!(payloads(&client.send(by_hash).await), [json!(11), json!(16)]);
    let rid = client.send(Call::get("/dbs/d/colls/c")).await.json()["_rid"].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    for id in ["0", "1", "2"] {
        let by_range =
            without_key.clone().header("x-ms-documentdb-partitionkeyrangeid", format!("{rid},{id}"));
        let answer = client.send(by_range).await;
        match answer.code() {
            (200, 0) => found.extend(payloads(&answer)),
            code => assert_eq!(code, (400, 0), "{answer:?}"),
        }
    }
    assert_eq!(found, [json!(11), json!(16)]);
    let other_key = in_key(&text("true")).key(&json!(["k2"])).header("x-ms-continuation", &token);
    assert_eq!(client.send(other_key).await.code(), (400, 0));
}

#[tokio::test]
async fn a_range_may_be_named_with_its_container() {
    let client = filled().await;
    let rid = |body: Json| body["_rid"].as_str().unwrap().to_owned();
    let own = rid(client.send(Call::get("/dbs/d/colls/c")).await.json());
    let other = rid(client.create("/dbs/d/colls", container("other")).await);
    for (name, code) in [
        ("0".to_owned(), (200, 0)),
        (format!("{own},0"), (200, 0)),
        (format!("{own},9"), (410, 1002)),
        (format!("{other},0"), (410, 1000)),
        (format!("{own},0,0"), (400, 0)),
        (format!("{own},"), (400, 0)),
        (format!("0,{own}"), (400, 0)),
    ] {
        for call in [query("SELECT * FROM c"), Call::get(DOCS)] {
            let call = call.header("x-ms-documentdb-partitionkeyrangeid", &name);
            assert_eq!(client.send(call).await.code(), code, "{name}");
        }
    }
}
