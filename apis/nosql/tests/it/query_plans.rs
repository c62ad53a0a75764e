//! Plans for clients that merge the answers of ranges themselves. The rewritten texts have their own cases.

use crate::client::{Answer, Call, Client, DOCS, container};
use serde_json::{Value as Json, json};

const ALL: &str = "Aggregate, CompositeAggregate, MultipleOrderBy, MultipleAggregates, OrderBy, OffsetAndLimit, \
                   Distinct, GroupBy, Top, DCount, NonValueAggregate, NonStreamingOrderBy, CountIf";

fn plan_of(path: &str, query: &Json) -> Call {
    Call::post(path)
        .header("x-ms-cosmos-is-query-plan-request", "True")
        .header("x-ms-cosmos-supported-query-features", ALL)
        .header("content-type", "application/json")
        .json(query)
}

async fn plan(client: &Client, text: &str) -> Json {
    let answer = client.send(plan_of(DOCS, &json!({ "query": text }))).await;
    assert_eq!(answer.code(), (200, 0), "{text}: {answer:?}");
    answer.json()
}

fn full_range() -> Json {
    json!([{ "min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false }])
}

#[tokio::test]
async fn a_plan_has_every_member_that_clients_read() {
    let client = Client::with_container().await;
    assert_eq!(
        plan(&client, "SELECT * FROM c").await,
        json!({
            "partitionedQueryExecutionInfoVersion": 2,
            "queryInfo": {
                "distinctType": "None",
                "top": null, "offset": null, "limit": null,
                "orderBy": [], "orderByExpressions": [],
                "groupByExpressions": [], "groupByAliases": [],
                "aggregates": [], "groupByAliasToAggregateType": {},
                "rewrittenQuery": "",
                "hasSelectValue": false,
                "dCountInfo": null,
                "hasNonStreamingOrderBy": false,
            },
            "queryRanges": full_range(),
            "hybridSearchQueryInfo": null,
        })
    );
    let text = "SELECT c.team, COUNT(1) AS n FROM c GROUP BY c.team OFFSET 1 LIMIT 2";
    let grouped = plan(&client, text).await["queryInfo"].clone();
    assert_eq!(grouped["groupByExpressions"], json!(["c.team"]));
    assert_eq!(grouped["groupByAliases"], json!(["team", "n"]));
    assert_eq!(grouped["groupByAliasToAggregateType"], json!({ "team": null, "n": "Count" }));
    assert_eq!((&grouped["offset"], &grouped["limit"]), (&json!(1), &json!(2)));
    let ordered =
        plan(&client, "SELECT TOP 3 VALUE c.a FROM c ORDER BY c.a, c.b DESC").await["queryInfo"].clone();
    assert_eq!(ordered["orderBy"], json!(["Ascending", "Descending"]));
    assert_eq!(ordered["orderByExpressions"], json!(["c.a", "c.b"]));
    assert_eq!((&ordered["top"], &ordered["hasSelectValue"]), (&json!(3), &json!(true)));
    let text = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)";
    let counted = plan(&client, text).await["queryInfo"].clone();
    assert_eq!(counted["dCountInfo"], json!({ "dCountAlias": "" }));
    assert_eq!(counted["distinctType"], "Unordered");
}

#[tokio::test]
async fn ranges_are_those_of_the_keys_that_the_filter_names() {
    let client = Client::with_container().await;
    let point =
        |hash: &str| json!({ "min": hash, "max": hash, "isMinInclusive": true, "isMaxInclusive": true });
    let (a, redmond) = ("3A5381E1114EB8D3FCC90795045B49B7", "22E342F38A486A088463DFF7838A5963");
    for (text, expected) in [
        ("SELECT * FROM c WHERE c.pk = 'a'", json!([point(a)])),
        ("SELECT * FROM c WHERE c.pk IN ('a', 'redmond', 'a')", json!([point(redmond), point(a)])),
        ("SELECT * FROM c WHERE c.pk > 'a'", full_range()),
        ("SELECT VALUE 1", json!([point("")])),
    ] {
        assert_eq!(plan(&client, text).await["queryRanges"], expected, "{text}");
    }
    let call = plan_of(DOCS, &json!({ "query": "SELECT * FROM c ORDER BY c.x" })).key(&json!(["a"]));
    let with_key = client.send(call).await.json();
    assert_eq!(with_key["queryRanges"], json!([point(a)]));
}

#[tokio::test]
async fn the_beginning_of_a_hierarchical_key_is_an_interval() {
    let client = Client::with_container().await;
    let mut definition = container("h");
    definition["partitionKey"] = json!({ "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 });
    client.create("/dbs/d/colls", definition).await;
    let text = "SELECT * FROM c WHERE c.a = 'a' ORDER BY c.x";
    let answer = client.send(plan_of("/dbs/d/colls/h/docs", &json!({ "query": text }))).await.json();
    let hash = "3A5381E1114EB8D3FCC90795045B49B7";
    let range =
        json!({ "min": hash, "max": format!("{hash}FF"), "isMinInclusive": true, "isMaxInclusive": false });
    assert_eq!(answer["queryRanges"], json!([range]));
    // There may be many keys below this one, in several ranges.
    assert_eq!(answer["queryInfo"]["orderBy"], json!(["Ascending"]));
}

#[tokio::test]
async fn distances_are_ordered_as_the_policy_of_their_path_says() {
    let client = Client::with_container().await;
    let mut definition = container("v");
    definition["vectorEmbeddingPolicy"] = json!({ "vectorEmbeddings": [
        { "path": "/near", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean" },
        { "path": "/like", "dataType": "float32", "dimensions": 2, "distanceFunction": "cosine" },
    ] });
    client.create("/dbs/d/colls", definition).await;
    for (text, direction) in [
        ("SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.near, [1, 2])", "Ascending"),
        ("SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.like, [1, 2])", "Descending"),
        (
            "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.like, [1, 2], false, {'distanceFunction':'Euclidean'})",
            "Ascending",
        ),
    ] {
        let answer = client.send(plan_of("/dbs/d/colls/v/docs", &json!({ "query": text }))).await.json();
        assert_eq!(answer["queryInfo"]["orderBy"], json!([direction]), "{text}");
        assert_eq!(answer["queryInfo"]["hasNonStreamingOrderBy"], true);
    }
}

#[tokio::test]
async fn a_client_that_lacks_a_feature_is_told_which() {
    let client = Client::with_container().await;
    let ask = |features: &str, text: &str| {
        plan_of(DOCS, &json!({ "query": text })).header("x-ms-cosmos-supported-query-features", features)
    };
    let few = "MultipleOrderBy,OffsetAndLimit,OrderBy,Top";
    assert_eq!(client.send(ask(few, "SELECT TOP 1 * FROM c ORDER BY c.x")).await.code(), (200, 0));
    for (text, named) in [
        ("SELECT VALUE COUNT(1) FROM c", "Aggregate"),
        ("SELECT c.a FROM c GROUP BY c.a", "GroupBy"),
        ("SELECT DISTINCT c.a FROM c", "Distinct"),
        ("SELECT COUNT(1) AS n, COUNTIF(c.x) AS m FROM c", "NonValueAggregate, MultipleAggregates, CountIf"),
    ] {
        let answer = client.send(ask(few, text)).await;
        assert_eq!(answer.code(), (400, 1004), "{text}");
        assert!(answer.message().contains(named), "{answer:?}");
    }
    // A query that can be sent unchanged needs no features.
    let none = Call::post(DOCS)
        .header("x-ms-cosmos-is-query-plan-request", "True")
        .json(&json!({ "query": "SELECT * FROM c" }));
    assert_eq!(client.send(none).await.code(), (200, 0));
}

#[tokio::test]
async fn an_order_is_part_of_the_plan_also_for_one_key() {
    let client = Client::with_container().await;
    let text = "SELECT TOP 3 * FROM c WHERE c.pk = 'x' ORDER BY c.n DESC";
    let by_header =
        plan_of(DOCS, &json!({ "query": text.replace("WHERE c.pk = 'x' ", "") })).key(&json!(["x"]));
    for plan in [plan(&client, text).await, client.send(by_header).await.json()] {
        assert_eq!(
            (&plan["queryInfo"]["orderBy"], &plan["queryInfo"]["top"]),
            (&json!(["Descending"]), &json!(3))
        );
        assert!(plan["queryInfo"]["rewrittenQuery"].as_str().unwrap().contains("orderByItems"));
        assert_eq!(plan["queryRanges"].as_array().unwrap().len(), 1);
        assert_eq!(plan["queryRanges"][0]["isMaxInclusive"], true);
    }
}

#[tokio::test]
async fn a_plan_needs_no_values_of_parameters() {
    let client = Client::with_container().await;
    let found = plan(&client, "SELECT * FROM c WHERE c.pk = @pk AND c.n > @n ORDER BY c.n").await;
    assert_eq!(found["queryInfo"]["orderBy"], json!(["Ascending"]));
    assert!(found["queryInfo"]["rewrittenQuery"].as_str().unwrap().contains("@pk"));
    // An unknown key may be in any range.
    assert_eq!(found["queryRanges"], full_range());
    let executed = Call::post(DOCS)
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
        .json(&json!({ "query": "SELECT * FROM c WHERE c.pk = @pk" }));
    assert_eq!(client.send(executed).await.code(), (400, 0));
    let count = client.send(plan_of(DOCS, &json!({ "query": "SELECT TOP @n * FROM c" }))).await;
    assert_eq!(count.code(), (400, 0));
}

#[tokio::test]
async fn what_no_client_can_join_is_refused_unless_it_is_about_one_key() {
    let client = Client::with_container().await;
    let ask = |text: &str| plan_of(DOCS, &json!({ "query": text }));
    let refused: [(&str, &str); 4] = [
        ("SELECT c.a, ABS(AVG(c.b)) AS x FROM c GROUP BY c.a", "Compositions of aggregates"),
        ("SELECT DISTINCT c.a FROM c GROUP BY c.a, c.b", "DISTINCT"),
        ("SELECT TOP 2147483648 * FROM c", "SC2060"),
        ("SELECT BADFUNC(c.a) FROM c", "SC2005"),
    ];
    for (text, said) in refused {
        let answer: Answer = client.send(ask(text)).await;
        assert_eq!(answer.code(), (400, 0), "{text}");
        assert!(answer.message().contains(said), "{answer:?}");
    }
    let one_key = ask("SELECT c.a, ABS(AVG(c.b)) AS x FROM c GROUP BY c.a").key(&json!(["a"]));
    assert_eq!(client.send(one_key).await.json()["queryInfo"]["rewrittenQuery"], "");
    let missing = Call::post("/dbs/d/colls/absent/docs").header("x-ms-cosmos-is-query-plan-request", "True");
    assert_eq!(client.send(missing.json(&json!({ "query": "SELECT 1" }))).await.code(), (404, 1003));
}

#[tokio::test]
async fn clients_that_join_by_themselves_fuse_ranks_too() {
    let client = Client::with_container().await;
    let text = "SELECT TOP 10 * FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim'), VectorDistance(c.v, [1]), [2, 1])";
    let body = json!({ "query": text });
    let all = format!("{ALL}, HybridSearch, WeightedRankFusion");
    let answer = client.send(plan_of(DOCS, &body).header("x-ms-cosmos-supported-query-features", all)).await;
    let plan = answer.json();
    let hybrid = &plan["hybridSearchQueryInfo"];
    assert_eq!(hybrid["componentQueryInfos"].as_array().unwrap().len(), 2);
    assert_eq!(hybrid["componentQueryInfos"][0]["top"], 120);
    assert_eq!(hybrid["componentWeights"], json!([2.0, 1.0]));
    assert_eq!((&hybrid["skip"], &hybrid["take"]), (&json!(null), &json!(10)));
    assert_eq!(hybrid["requiresGlobalStatistics"], true);
    assert_eq!(client.send(plan_of(DOCS, &body)).await.code(), (400, 1004));
    // For a client that queries without a plan the ranks are fused here.
    let plain = Call::post(DOCS)
        .header("x-ms-documentdb-isquery", "True")
        .header("x-perihelion-compatibility", "relaxed")
        .header("x-ms-documentdb-query-enablecrosspartition", "True");
    assert_eq!(client.send(plain.json(&body)).await.code(), (200, 0));
}
