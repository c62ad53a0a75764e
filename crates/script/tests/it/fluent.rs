//! Queries in JavaScript.

use crate::fixture::{Documents, body, execute, thrown};
use serde_json::{Value, json};

fn people() -> Value {
    json!([
        {"id": "a", "name": "Ann", "age": 30, "tags": ["x", "y"], "nested": [[1, [2]], 3]},
        {"id": "b", "name": "Bob", "age": 20, "tags": [], "nested": []},
        {"id": "c", "name": "Cid", "age": 25, "tags": ["x"]}
    ])
}

/// Executes a query and compares the response body.
async fn check(query: &str, expected: Value) {
    let mut documents = Documents::with(people());
    let source = format!("function () {{ var accepted = {query}; if (!accepted.isAccepted) throw 1; }}");
    let finished = execute(&mut documents, &source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), expected, "{query}");
}

#[tokio::test]
async fn each_step_works_alone() {
    check("__.filter(function (p) { return p.age > 22; })", json!([people()[0], people()[2]])).await;
    check("__.map(p => p.age)", json!([30, 20, 25])).await;
    check("__.pluck('name')", json!(["Ann", "Bob", "Cid"])).await;
    check("__.flatten()", people()).await;
    check("__.sortBy(p => p.age)", json!([people()[1], people()[2], people()[0]])).await;
    check("__.sortByDescending(p => p.name)", json!([people()[2], people()[1], people()[0]])).await;
    let pairs = json!([[people()[0], "x"], [people()[0], "y"], [people()[2], "x"]]);
    check("__.unwind(p => p.tags)", pairs).await;
    check("getContext().getCollection().pluck('id')", json!(["a", "b", "c"])).await;
}

#[tokio::test]
async fn steps_are_chained() {
    check("__.chain().value()", people()).await;
    check("__.chain().filter(p => p.age > 22).map(p => p.name).value()", json!(["Ann", "Cid"])).await;
    check("__.chain().sortBy(p => p.age).pluck('id').value()", json!(["b", "c", "a"])).await;
    check("__.chain().pluck('tags').flatten().value()", json!(["x", "y", "x"])).await;
    check("__.chain().filter(p => p.nested).pluck('nested').flatten().value()", json!([1, 2, 3])).await;
    check("__.chain().filter(p => p.nested).pluck('nested').flatten(true).value()", json!([[1, [2]], 3]))
        .await;
    let unwound = "__.chain().unwind(p => p.tags, (p, t) => p.id + t).sortByDescending(v => v).value()";
    check(unwound, json!(["cx", "ay", "ax"])).await;
}

#[tokio::test]
async fn options_and_callback_belong_to_the_end() {
    let source = "function () {
        __.chain().map(p => p.id).value({ pageSize: 2 }, function (err, ids, options) {
            __.pluck('id', { pageSize: 2, continuation: options.continuation }, function (err, rest, end) {
                __.response.setBody([ids, rest, end.continuation === undefined]);
            });
        });
    }";
    let mut documents = Documents::with(people());
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!([["a", "b"], ["c"], true]));
    for query in [
        "chain().map(p => p.id, { pageSize: 2 })",
        "chain().filter(p => p.id, function () {})",
        "filter(5)",
        "map()",
        "pluck(5)",
        "sortBy('age')",
        "unwind('tags')",
    ] {
        assert_eq!(thrown(&format!("function () {{ __.{query}; }}")).await.number, Some(400), "{query}");
    }
}

#[tokio::test]
async fn a_sorted_query_reads_all_pages() {
    let documents: Vec<Value> =
        (0..2500).map(|n| json!({"id": n.to_string(), "n": (n * 7) % 2500})).collect();
    let mut documents = Documents::with(Value::Array(documents));
    let source = "function () {
        __.chain().sortBy(d => d.n).pluck('n').value(function (err, numbers, options) {
            __.response.setBody([numbers.length, numbers.every((n, i) => n === i), options.continuation]);
        });
    }";
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!([2500, true, null]));
    assert_eq!(documents.messages.len(), 3);
}

#[tokio::test]
async fn a_page_is_full_of_results_however_many_documents_a_filter_leaves_out() {
    let numbered: Vec<Value> = (0..450).map(|n| json!({"id": n.to_string(), "n": n})).collect();
    let mut documents = Documents::with(Value::Array(numbered));
    // Each page of two starts where the one before ended; the last one is short.
    let source = "function () {
        var pages = [];
        function next(continuation) {
            var step = __.chain().filter(d => d.n % 90 === 89).pluck('n');
            step.value({ pageSize: 2, continuation }, function (err, numbers, options) {
                pages.push(numbers);
                if (options.continuation) next(options.continuation); else __.response.setBody(pages);
            });
        }
        next();
    }";
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!([[89, 179], [269, 359], [449]]));
    let error = thrown("function () { __.pluck('n', { continuation: 'fluent:x:' }, function () {}); }").await;
    assert_eq!(error.number, Some(400));
}

#[tokio::test]
async fn a_second_query_appends_its_result_as_text() {
    let source = "function () { __.pluck('id'); __.pluck('age'); }";
    let mut documents = Documents::with(people());
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!(r#"["a","b","c"][30,20,25]"#));
}

#[tokio::test]
async fn errors_in_steps_end_the_script() {
    let mut documents = Documents::with(people());
    let source = "function () { __.map(p => p.none.x); }";
    assert!(execute(&mut documents, source, &json!([])).await.is_err());
}
