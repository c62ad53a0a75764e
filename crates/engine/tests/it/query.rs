//! Queries through the engine: scopes, continuations, sessions and charges. What queries compute is tested below.

use crate::harness::{Harness, KEY, TestAmbient, item, key, lowered, text};
use engine::{Container, EngineOptions, QueryPage, QueryRequest, QueryRow, Scope};
use kv::{CommitMode, Store};
use model::policy::{
    CompositeIndex, ComputedProperty, DistanceFunction, VectorEmbedding, VectorEmbeddingPolicy,
};
use model::{
    ComputedRule, DefinitionPart, EffectiveKey, EffectiveRange, Fault, Lsn, MissingFault,
    PartitionKeyDefinition, PartitionKeyKind, PartitionOrdinal, RequestFault, SessionToken,
};
use partition::keyspace::SPACES;
use plan::{Condition, Mutation, Target};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use value::PropertyPath;

pub(crate) fn request(
    sql: &str,
    scope: Scope,
    items_max: usize,
    continuation: Option<String>,
) -> (Scope, QueryRequest) {
    let query = sql::lower(&sql::parse(sql).unwrap(), &sql::Parameters::none()).unwrap();
    let request = QueryRequest {
        query: Arc::new(query),
        items_max,
        ends_at_ranges: false,
        continuation,
        session: Vec::new(),
        text_bytes: 0,
    };
    (scope, request)
}

pub(crate) async fn ask(
    harness: &Harness,
    container: &Container,
    (scope, request): &(Scope, QueryRequest),
) -> Result<QueryPage, Fault> {
    harness.engine.query(harness.query_pass(container, scope.clone()), request).await
}

fn row(row: &QueryRow) -> String {
    match row {
        QueryRow::Document(stored) => text(stored),
        QueryRow::Value(value) => value.to_json(),
    }
}

pub(crate) async fn drain(
    harness: &Harness,
    container: &Container,
    sql: &str,
    scope: Scope,
    items_max: usize,
) -> Vec<String> {
    let mut rows = Vec::new();
    let mut continuation = None;
    loop {
        let request = request(sql, scope.clone(), items_max, continuation);
        let page = ask(harness, container, &request).await.unwrap();
        rows.extend(page.rows.iter().map(row));
        continuation = page.continuation.map(|next| next.text);
        match &continuation {
            Some(text) => assert!(text.len() <= 1024, "a continuation of {} characters", text.len()),
            None => return rows,
        }
    }
}

/// Sixty documents with seven keys over three partitions.
async fn filled(harness: &Harness) -> Arc<Container> {
    let container = harness.container(|_| {}, 18_000).await;
    for number in 0..60 {
        let json = format!(r#"{{"id":"{number}","pk":"{}","n":{}}}"#, number % 7, number % 10);
        harness.create(&container, &json).await.unwrap();
    }
    container
}

#[tokio::test]
async fn scopes_divide_the_documents() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    let ids = "SELECT VALUE c.id FROM c";
    let all = drain(&harness, &container, ids, Scope::Container, 7).await;
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 60);
    let mut by_range = Vec::new();
    for ordinal in 0..3 {
        let scope = Scope::Range(PartitionOrdinal(ordinal), None);
        by_range.extend(drain(&harness, &container, ids, scope, 7).await);
    }
    assert_eq!(by_range, all);
    let middle = EffectiveKey::from_hex("15").unwrap();
    let mut by_hash = Vec::new();
    for range in [
        EffectiveRange { min: EffectiveKey::MIN, max: middle.clone() },
        EffectiveRange { min: middle, max: EffectiveKey::max() },
    ] {
        by_hash.extend(drain(&harness, &container, ids, Scope::Hashes(range), 4).await);
    }
    assert_eq!(by_hash.iter().collect::<BTreeSet<_>>(), all.iter().collect::<BTreeSet<_>>());
    assert_eq!(by_hash.len(), 60);
    let scope = Scope::Key(key(&container, r#"["3"]"#));
    assert_eq!(drain(&harness, &container, "SELECT VALUE COUNT(1) FROM c", scope, 1).await, ["9"]);
}

#[tokio::test]
async fn results_are_the_same_for_all_page_sizes() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    for sql in [
        "SELECT * FROM c",
        "SELECT * FROM c ORDER BY c.n DESC",
        "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
        "SELECT DISTINCT VALUE c.n FROM c",
        "SELECT VALUE c.id FROM c WHERE c.n > 4 OFFSET 3 LIMIT 11",
    ] {
        let all = drain(&harness, &container, sql, Scope::Container, 1000).await;
        assert!(!all.is_empty());
        for items_max in [1, 4, 60] {
            assert_eq!(drain(&harness, &container, sql, Scope::Container, items_max).await, all, "{sql}");
        }
    }
}

#[tokio::test]
async fn a_continuation_survives_a_restart_and_changes() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let ambient = TestAmbient::new();
    let (first, continuation) = {
        let harness = Harness::on(store.clone(), Arc::clone(&ambient)).await;
        let container = filled(&harness).await;
        let asked = request("SELECT VALUE c.id FROM c ORDER BY c.n", Scope::Container, 25, None);
        let page = ask(&harness, &container, &asked).await.unwrap();
        let last = page.rows.last().map(row).unwrap();
        let id = last.trim_matches('"').to_owned();
        let number: u32 = id.parse().unwrap();
        let delete = Mutation::Delete { target: Target::Id(id), condition: Condition::None };
        let header = key(&container, &format!(r#"["{}"]"#, number % 7));
        let keyed =
            engine::Keyed::new(&container, Some(header), plan::DocumentOperation::Write(delete)).unwrap();
        harness.engine.write(harness.write_pass(keyed)).await.unwrap();
        (page.rows.iter().map(row).collect::<Vec<_>>(), page.continuation.map(|next| next.text))
    };
    let harness = Harness::on(store, ambient).await;
    let container = harness.found().unwrap();
    let asked = request("SELECT VALUE c.id FROM c ORDER BY c.n", Scope::Container, 100, continuation);
    let rest = ask(&harness, &container, &asked).await.unwrap();
    assert!(rest.continuation.is_none());
    let all: BTreeSet<String> = first.into_iter().chain(rest.rows.iter().map(row)).collect();
    assert_eq!(all.len(), 60);
}

#[tokio::test]
async fn a_continuation_of_another_request_is_refused() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    let sql = "SELECT * FROM c";
    let page = ask(&harness, &container, &request(sql, Scope::Container, 5, None)).await.unwrap();
    let token = page.continuation.unwrap().text;
    let mut forged = token.clone();
    forged.pop();
    let of_key = request(sql, Scope::Key(key(&container, r#"["3"]"#)), 5, None);
    let of_key = ask(&harness, &container, &of_key).await.unwrap().continuation.unwrap().text;
    let ranked =
        "SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.id, '1'), FullTextScore(c.id, '2'))";
    let by_rank = ask(&harness, &container, &request(ranked, Scope::Container, 5, None)).await.unwrap();
    let by_rank = by_rank.continuation.unwrap().text;
    for bad in [
        request(sql, Scope::Container, 5, Some(forged)),
        request(sql, Scope::Container, 5, Some("null".to_owned())),
        request("SELECT * FROM c ORDER BY c.n", Scope::Container, 5, Some(token.clone())),
        request("SELECT DISTINCT VALUE c.n FROM c", Scope::Container, 5, Some(token.clone())),
        request("SELECT c.n FROM c GROUP BY c.n", Scope::Container, 5, Some(token.clone())),
        request("SELECT * FROM c OFFSET 1 LIMIT 50", Scope::Container, 5, Some(token.clone())),
        request("SELECT VALUE c FROM c JOIN x IN c.n", Scope::Container, 5, Some(token.clone())),
        request("SELECT * FROM (SELECT VALUE d FROM d) c", Scope::Container, 5, Some(token.clone())),
        request(sql, Scope::Key(key(&container, r#"["4"]"#)), 5, Some(of_key)),
        request(ranked, Scope::Range(PartitionOrdinal(0), None), 5, Some(by_rank)),
    ] {
        let fault = ask(&harness, &container, &bad).await.unwrap_err();
        assert!(matches!(fault, Fault::Request(RequestFault::BadContinuation(_))), "{fault}");
    }
    // The same query written differently is the same query.
    let same = request("select *  from   x", Scope::Container, 5, Some(token));
    assert_eq!(ask(&harness, &container, &same).await.unwrap().rows.len(), 5);
    let absent = request(sql, Scope::Range(PartitionOrdinal(77), None), 5, None);
    assert!(matches!(ask(&harness, &container, &absent).await.unwrap_err(), Fault::Missing(_)));
}

/// The sort keys share more bytes than a continuation keeps, so its position is found by the rows that it names. These
/// need not be in the scope of the next request, nor pass its filter.
#[tokio::test]
async fn a_continuation_with_a_long_sort_key_repeats_no_row() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 18_000).await;
    let long = "x".repeat(400);
    for number in 0..60 {
        let json = format!(r#"{{"id":"{number}","pk":"{}","l":"{long}{:02}"}}"#, number % 7, number * 7 % 60);
        harness.create(&container, &json).await.unwrap();
    }
    let range_of = |json: &str| {
        let hash = container.definition().partition_key.effective_key(&key(&container, json));
        let ranges = harness.engine.ranges(&harness.reader(&*container)).ranges;
        ranges.iter().find(|range| range.range.contains(&hash)).unwrap().ordinal
    };
    let range = Scope::Range(range_of(r#"["3"]"#), None);
    let sql = "SELECT c.pk, c.id FROM c ORDER BY c.l";
    let of_range = drain(&harness, &container, sql, range.clone(), 1000).await;
    let is_of_key = |row: &&String| row.contains(r#""pk":"3""#);
    for count in 1..of_range.len() {
        let page = ask(&harness, &container, &request(sql, range.clone(), count, None)).await.unwrap();
        let token = page.continuation.map(|next| next.text);
        let scope = Scope::Key(key(&container, r#"["3"]"#));
        let rest = ask(&harness, &container, &request(sql, scope, 100, token.clone())).await.unwrap();
        let expected: Vec<&String> = of_range[count..].iter().filter(is_of_key).collect();
        assert_eq!(
            rest.rows.iter().map(row).collect::<Vec<_>>().iter().collect::<Vec<_>>(),
            expected,
            "{count}"
        );
        let filtered = "SELECT c.pk, c.id FROM c WHERE c.pk = '3' ORDER BY c.l";
        let rest = ask(&harness, &container, &request(filtered, range.clone(), 100, token)).await.unwrap();
        assert_eq!(
            rest.rows.iter().map(row).collect::<Vec<_>>().iter().collect::<Vec<_>>(),
            expected,
            "{count}"
        );
    }
    // The named rows may be in another partition.
    let page = ask(&harness, &container, &request(sql, Scope::Container, 5, None)).await.unwrap();
    let narrower = request(sql, range, 100, page.continuation.map(|next| next.text));
    let fault = ask(&harness, &container, &narrower).await.unwrap_err();
    assert!(matches!(fault, Fault::Request(RequestFault::BadContinuation(_))), "{fault}");
}

#[tokio::test]
async fn a_continuation_continues_in_every_scope_that_contains_its_rest() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    let scope_of = |json: &str| Scope::Key(key(&container, json));
    let hash = container.definition().partition_key.effective_key(&key(&container, r#"["3"]"#));
    let ranges = harness.engine.ranges(&harness.reader(&*container)).ranges;
    for sql in ["SELECT c.pk, c.id FROM c", "SELECT c.pk, c.id FROM c ORDER BY c.n DESC"] {
        let all = drain(&harness, &container, sql, Scope::Container, 1000).await;
        let of_key: Vec<String> = all.iter().filter(|row| row.contains(r#""pk":"3""#)).cloned().collect();
        let first = async |scope| {
            let page = ask(&harness, &container, &request(sql, scope, 4, None)).await.unwrap();
            page.continuation.unwrap().text
        };
        let rest = async |scope, continuation: &str| {
            let request = request(sql, scope, 100, Some(continuation.to_owned()));
            let page = ask(&harness, &container, &request).await.unwrap();
            page.rows.iter().map(row).collect::<Vec<_>>()
        };
        // The key by its value, by its hash, by the range that contains it, and not named at all.
        let hashes = EffectiveRange::point(hash.clone());
        let owner = ranges.iter().find(|range| range.range.contains(&hash)).unwrap().ordinal;
        for origin in [scope_of(r#"["3"]"#), Scope::Hashes(hashes.clone())] {
            let continuation = first(origin).await;
            for scope in [
                scope_of(r#"["3"]"#),
                Scope::Hashes(hashes.clone()),
                Scope::Range(owner, None),
                Scope::Container,
            ] {
                assert_eq!(rest(scope.clone(), &continuation).await, of_key[4..], "{sql} {scope:?}");
            }
        }
        // What a narrower scope returns are its own documents of the rest.
        let continuation = first(Scope::Container).await;
        let expected: Vec<&String> = all[4..].iter().filter(|row| of_key.contains(row)).collect();
        assert_eq!(rest(scope_of(r#"["3"]"#), &continuation).await.iter().collect::<Vec<_>>(), expected);
        let mut by_range = Vec::new();
        for range in &ranges {
            by_range.extend(rest(Scope::Range(range.ordinal, None), &continuation).await);
        }
        by_range.sort();
        let mut expected = all[4..].to_vec();
        expected.sort();
        assert_eq!(by_range, expected, "{sql}");
    }
}

/// The first hash uses the beginning of a string only, so another key may have the same.
#[tokio::test]
async fn a_continuation_of_a_long_key_continues_with_this_key_only() {
    let harness = Harness::new().await;
    let first_hash = PartitionKeyDefinition::new(PartitionKeyKind::HashV1, ["/pk"]).unwrap();
    let container = harness.container(|draft| draft.partition_key = first_hash, 400).await;
    let long = "x".repeat(101);
    for id in 0..3 {
        harness.create(&container, &format!(r#"{{"id":"{id}","pk":"{long}"}}"#)).await.unwrap();
    }
    let scope = Scope::Key(key(&container, &format!(r#"["{long}"]"#)));
    let sql = "SELECT VALUE c.id FROM c";
    let page = ask(&harness, &container, &request(sql, scope.clone(), 1, None)).await.unwrap();
    let continuation = page.continuation.unwrap().text;
    let rest = request(sql, scope, 10, Some(continuation.clone()));
    assert_eq!(ask(&harness, &container, &rest).await.unwrap().rows.len(), 2);
    let wider = request(sql, Scope::Container, 10, Some(continuation));
    let fault = ask(&harness, &container, &wider).await.unwrap_err();
    assert!(matches!(fault, Fault::Request(RequestFault::BadContinuation(_))), "{fault}");
}

#[tokio::test]
async fn a_continuation_is_not_bound_to_filter_and_projection() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    let first = request("SELECT VALUE c.n FROM c ORDER BY c.n", Scope::Container, 25, None);
    let page = ask(&harness, &container, &first).await.unwrap();
    assert_eq!(page.rows.last().map(row).unwrap(), "4");
    let continuation = page.continuation.map(|next| next.text);
    // What clients send that merge ranges themselves: the last sort value becomes a condition.
    let sql = "SELECT c._rid, [{\"item\": c.n}] AS orderByItems FROM c WHERE (c.n >= 4) ORDER BY c.n";
    let page = ask(&harness, &container, &request(sql, Scope::Container, 100, continuation)).await.unwrap();
    assert_eq!(page.rows.len(), 35);
    assert!(row(&page.rows[0]).contains(r#""item":4"#));
}

#[tokio::test]
async fn sessions_charges_and_metrics_are_told() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    let count = request("SELECT VALUE COUNT(1) FROM c", Scope::Container, 10, None);
    let page = ask(&harness, &container, &count).await.unwrap();
    // The index has the count.
    assert_eq!((row(&page.rows[0]).as_str(), page.metrics.documents_read), ("60", 0));
    let count = request("SELECT VALUE COUNT(c.n + LENGTH(c.id)) FROM c", Scope::Container, 10, None);
    let page = ask(&harness, &container, &count).await.unwrap();
    assert_eq!(page.session.len(), 3);
    assert_eq!((page.metrics.documents_read, page.metrics.rows), (60, 1));
    let again = ask(&harness, &container, &count).await.unwrap();
    assert_eq!(page.charge, again.charge);
    let ahead = SessionToken { ordinal: PartitionOrdinal(0), lsn: Lsn(u64::MAX) };
    let (scope, count) = count;
    let ahead = (scope, QueryRequest { session: vec![ahead], ..count });
    let fault = ask(&harness, &container, &ahead).await.unwrap_err();
    assert!(matches!(fault, Fault::Missing(MissingFault::Session)));
}

#[tokio::test]
async fn an_explanation_names_the_way() {
    let harness = Harness::new().await;
    let container = filled(&harness).await;
    let explain = |sql: &str, scope| {
        let (scope, request) = request(sql, scope, 10, None);
        let (engine, pass) = (&harness.engine, harness.query_pass(&container, scope));
        async move { engine.explain(pass, &request).await.unwrap() }
    };
    let text = explain("SELECT * FROM c WHERE c.n = 1", Scope::Container).await;
    let paths = text.lines().filter(|line| line.contains("documents by lookup of /n = 1; "));
    assert!(paths.count() > 1, "each partition has a path: {text}");
    let rest = "evaluate on documents as stored\nfrom container\nwhere ($0.n = 1)\nselect row $0\nappend ranges, rows by number\n";
    assert!(text.ends_with(rest), "{text}");
    let text = explain("SELECT * FROM c", Scope::Key(key(&container, r#"["3"]"#))).await;
    assert!(text.starts_with("read documents by lookup of the logical partition; "), "{text}");
}

#[tokio::test]
async fn an_explanation_knows_the_distance_function_of_the_policy() {
    let harness = Harness::new().await;
    let embedding = VectorEmbedding {
        dimensions: 2,
        distance: DistanceFunction::Euclidean,
        ..VectorEmbedding::new(PropertyPath::parse("/v").unwrap())
    };
    let vectors = Some(VectorEmbeddingPolicy { embeddings: vec![embedding] });
    let container = harness.container(|draft| draft.policies.vectors = vectors, 400).await;
    let sql = "SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.v, [1, 2])";
    let (scope, request) = request(sql, Scope::Container, 10, None);
    let text = harness.engine.explain(harness.query_pass(&container, scope), &request).await.unwrap();
    assert!(text.contains("euclidean"), "{text}");
}

#[tokio::test]
async fn documents_come_as_they_are_stored() {
    let harness = Harness::new().await;
    let container = harness.container(|_| {}, 400).await;
    harness
        .write(
            &container,
            Mutation::Upsert { item: item(r#"{"id":"1","pk":"a"}"#), condition: Condition::None },
        )
        .await
        .unwrap();
    let page =
        ask(&harness, &container, &request("SELECT * FROM c", Scope::Container, 5, None)).await.unwrap();
    assert!(matches!(&page.rows[..], [QueryRow::Document(_)]));
    let parts = "SELECT c.id, c._ts, c._etag FROM c";
    let page = ask(&harness, &container, &request(parts, Scope::Container, 5, None)).await.unwrap();
    let found = row(&page.rows[0]);
    assert!(found.contains("\"_ts\":1700000000") && found.contains("_etag"), "{found}");
}

/// The composite index is walked from the value that the filter fixes, in every direction and on every page.
#[tokio::test]
async fn composite_orders_begin_at_the_value_of_the_filter() {
    let harness = Harness::new().await;
    let composite = vec![CompositeIndex::over(&[("/kind", false), ("/n", true)]).unwrap()];
    let container = harness.container(|draft| draft.policies.indexing.composite = composite, 400).await;
    for number in 0..900 {
        let kind = ["a", "b", "bb", "c"][number % 4];
        let json =
            format!(r#"{{"id":"{number}","pk":"{}","kind":"{kind}","n":{}}}"#, number % 3, number / 4 % 50);
        harness.create(&container, &json).await.unwrap();
    }
    for (first, second) in [("ASC", "DESC"), ("DESC", "ASC")] {
        for kind in ["a", "b", "bb", "c", "none"] {
            let ordered = format!(
                "SELECT VALUE c.n FROM c WHERE c.kind = '{kind}' ORDER BY c.kind {first}, c.n {second}"
            );
            let plain = format!("SELECT VALUE c.n FROM c WHERE c.kind = '{kind}'");
            let mut expected = drain(&harness, &container, &plain, Scope::Container, 1000).await;
            expected.sort_by_key(|number| number.parse::<i64>().unwrap());
            if second == "DESC" {
                expected.reverse();
            }
            for items_max in [1000, 7] {
                assert_eq!(
                    drain(&harness, &container, &ordered, Scope::Container, items_max).await,
                    expected,
                    "{ordered}"
                );
            }
        }
    }
}

/// Calls of [`counted_reader`].
static READS: AtomicUsize = AtomicUsize::new(0);

fn counted_reader(text: &str) -> Option<plan::query::Query> {
    READS.fetch_add(1, Ordering::SeqCst);
    lowered(text)
}

/// Each query parsed the text of every computed property again, and each definition twice.
#[tokio::test]
async fn computed_properties_are_read_with_the_definition_and_not_with_each_query() {
    let options = EngineOptions { computed_reader: counted_reader, ..EngineOptions::default() };
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let harness = Harness::with_options(store, TestAmbient::new(), &[KEY], options).await;
    let tens = || vec![ComputedProperty::new("tens", "SELECT VALUE c.n * 10 FROM c")];
    let container = harness.container(|draft| draft.policies.computed = tens(), 400).await;
    harness.create(&container, r#"{"id":"1","pk":"a","n":2}"#).await.unwrap();
    assert_eq!(READS.load(Ordering::SeqCst), 1);
    for _ in 0..3 {
        let request = request("SELECT VALUE c.tens FROM c WHERE c.tens = 20", Scope::Container, 10, None);
        let page = ask(&harness, &container, &request).await.unwrap();
        assert_eq!(page.rows.iter().map(row).collect::<Vec<_>>(), ["20"]);
    }
    assert_eq!(READS.load(Ordering::SeqCst), 1);
    let hundreds = || vec![ComputedProperty::new("tens", "SELECT VALUE c.n * 100 FROM c")];
    let container = harness.replace(&container, |draft| draft.policies.computed = hundreds()).await.unwrap();
    assert_eq!(READS.load(Ordering::SeqCst), 2);
    let request = request("SELECT VALUE c.tens FROM c", Scope::Container, 10, None);
    let page = ask(&harness, &container, &request).await.unwrap();
    assert_eq!(page.rows.iter().map(row).collect::<Vec<_>>(), ["200"]);
}

#[tokio::test]
async fn a_definition_with_an_unreadable_computed_property_is_refused() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let options = EngineOptions { computed_reader: lowered, ..EngineOptions::default() };
    let harness = Harness::with_options(store, TestAmbient::new(), &[KEY], options).await;
    let container = harness.container(|_| {}, 400).await;
    let query = "SELECT VALUE c.a +";
    let unreadable = || vec![ComputedProperty::new("p", query)];
    let refused = harness.replace(&container, |draft| draft.policies.computed = unreadable()).await;
    let rule = ComputedRule::Query { query: query.to_owned() };
    let expected = DefinitionPart::ComputedProperties.violates(rule);
    assert_eq!(refused.unwrap_err(), Fault::Request(expected));
    assert!(harness.found().unwrap().definition().policies.computed.is_empty());
}

#[tokio::test]
async fn a_stored_container_with_an_unreadable_computed_property_cannot_be_queried() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let options = EngineOptions { computed_reader: lowered, ..EngineOptions::default() };
    let harness = Harness::with_options(store.clone(), TestAmbient::new(), &[KEY], options).await;
    let readable = || vec![ComputedProperty::new("p", "SELECT VALUE c.a FROM c")];
    harness.container(|draft| draft.policies.computed = readable(), 400).await;
    // A later version of the program does not understand the query.
    let harness = Harness::on(store, TestAmbient::new()).await;
    let container = harness.found().unwrap();
    let request = request("SELECT * FROM c", Scope::Container, 10, None);
    let fault = ask(&harness, &container, &request).await.unwrap_err();
    assert!(fault.to_string().contains("'p'"), "{fault}");
}
