//! Stored procedures.

use super::{client, client_with, client_with_memory, execute, ids, kill_workers};
use crate::client::{Call, Client, DOCS};
use http::StatusCode;
use serde_json::{Value as Json, json};
use std::time::Duration;

const INSERT_BOOK: &str = r#"
function insertBook(book) {
    var collection = getContext().getCollection();
    var link = collection.getSelfLink();
    var accepted = collection.createDocument(link, book, function (err, created) {
        if (err) throw err;
        collection.queryDocuments(link, { query: "SELECT * FROM c WHERE c.type = 'author' AND c.id = @id",
            parameters: [{ name: "@id", value: book.author }] }, function (err, authors) {
            if (err) throw err;
            if (authors.length !== 1) throw new Error(404, "no author " + book.author);
            var author = authors[0];
            author.countOfBooks = (author.countOfBooks || 0) + 1;
            collection.replaceDocument(author._self, author, { etag: author._etag }, function (err, replaced) {
                if (err) throw err;
                getContext().getResponse().setBody({ book: created.id, countOfBooks: replaced.countOfBooks });
            });
        });
    });
    if (!accepted) throw new Error("not accepted");
}"#;

async fn with_author() -> Client {
    let client = client().await;
    let author = json!({ "id": "a", "pk": "k", "type": "author" });
    assert_eq!(client.send(Call::post(DOCS).key(&json!(["k"])).json(&author)).await.code(), (201, 0));
    client
}

#[tokio::test]
async fn a_book_and_the_count_of_its_author_change_together() {
    let client = with_author().await;
    let book = |id: &str, author: &str| json!([{ "id": id, "pk": "k", "type": "book", "author": author }]);
    let first = execute(&client, INSERT_BOOK, &book("b1", "a")).await;
    assert_eq!((first.status, first.json()), (StatusCode::OK, json!({ "book": "b1", "countOfBooks": 1 })));
    let charge: f64 = first.header("x-ms-request-charge").unwrap().parse().unwrap();
    assert!(charge > 10.0, "{first:?}");
    assert!(first.header("x-ms-session-token").is_some() && first.header("x-ms-alt-content-path").is_some());
    let second = execute(&client, INSERT_BOOK, &book("b2", "a")).await;
    assert_eq!(second.json()["countOfBooks"], 2);
    // The book was created before the author was found missing.
    let refused = execute(&client, INSERT_BOOK, &book("b3", "nobody")).await;
    assert_eq!(refused.code(), (400, 404));
    assert!(refused.message().contains("no author nobody"), "{refused:?}");
    assert_eq!(ids(&client).await, ["a", "b1", "b2"]);
    let conflict = execute(&client, INSERT_BOOK, &book("b1", "a")).await;
    assert_eq!(conflict.code(), (400, 409));
    let author = client.send(Call::get("/dbs/d/colls/c/docs/a").key(&json!(["k"]))).await.json();
    assert_eq!(author["countOfBooks"], 2);
}

#[tokio::test]
async fn parameters_and_results_are_json() {
    let client = client().await;
    let echo = "function (a, b) { getContext().getResponse().setBody([typeof a, a, typeof b, b]); }";
    let answer = execute(&client, echo, &json!([{ "x": [1, null] }, "text"])).await;
    assert_eq!(answer.json(), json!(["object", { "x": [1, null] }, "string", "text"]));
    let answer = execute(&client, echo, &json!([])).await;
    assert_eq!(answer.json(), json!(["undefined", null, "undefined", null]));
    let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"]));
    assert_eq!(
        client.send(call.clone().body(Vec::new())).await.json(),
        json!(["undefined", null, "undefined", null])
    );
    for body in ["{}", "7", "\"x\"", "[1", "[1]x", "nothing"] {
        let refused = client.send(call.clone().body(body.into())).await;
        assert_eq!(refused.code(), (400, 0), "{body}");
        assert!(refused.message().contains("JSON array"), "{refused:?}");
    }
    let text =
        execute(&client, "function () { getContext().getResponse().setBody('héllo'); }", &json!([])).await;
    assert_eq!(text.json(), json!("héllo"));
    let nothing = execute(&client, "function () {}", &json!([])).await;
    assert_eq!((nothing.status, nothing.body.len()), (StatusCode::OK, 0));
}

#[tokio::test]
async fn a_procedure_needs_its_partition_key_and_stays_in_it() {
    let client = client().await;
    let create = "function (pk) { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: 'x', pk: pk }, function (err) { if (err) throw err; }); }";
    assert_eq!(execute(&client, create, &json!(["k"])).await.code(), (200, 0));
    let other = execute(&client, create, &json!(["other"])).await;
    assert_eq!(other.code(), (400, 400));
    assert!(other.message().contains("partition keys other than the one"), "{other:?}");
    let without = client.send(Call::post("/dbs/d/colls/c/sprocs/p").json(&json!(["k"]))).await;
    assert_eq!(without.code(), (400, 0));
    let absent =
        client.send(Call::post("/dbs/d/colls/c/sprocs/none").key(&json!(["k"])).json(&json!([]))).await;
    assert_eq!(absent.code(), (404, 0));
    let triggered = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"]));
    let triggered = triggered.header("x-ms-documentdb-pre-trigger-include", "t").json(&json!([]));
    assert_eq!(client.send(triggered).await.code(), (400, 0));
    // What is in other partition keys cannot be seen.
    client.put_item("elsewhere", "other").await;
    let count = "function () { __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', function (err, found) {
        __.response.setBody(found); }); }";
    assert_eq!(execute(&client, count, &json!([])).await.json(), json!([1]));
}

#[tokio::test]
async fn a_script_sees_its_own_writes() {
    let client = client().await;
    let source = r#"function () {
        var c = getContext().getCollection(), link = c.getSelfLink(), seen = [];
        c.createDocument(link, { id: "a", pk: "k", n: 1 }, function (err, a) {
            c.upsertDocument(link, { id: "b", pk: "k", n: 2 }, function (err, b) {
                c.readDocument(c.getAltLink() + "/docs/a", function (err, read) {
                    seen.push(read._etag === a._etag, read.n);
                    c.deleteDocument(b._self, function (err) {
                        c.readDocument(b._self, function (err) {
                            seen.push(err.number);
                            c.readDocuments(link, function (err, all) {
                                seen.push(all.length);
                                c.queryDocuments(link, "SELECT VALUE c.n FROM c ORDER BY c.n", function (err, found) {
                                    getContext().getResponse().setBody(seen.concat(found));
                                });
                            });
                        });
                    });
                });
            });
        });
    }"#;
    let answer = execute(&client, source, &json!([])).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!([true, 1, 404, 1, 1])));
    // The version that the script has seen is the one that is stored.
    let stored = client.send(Call::get("/dbs/d/colls/c/docs/a").key(&json!(["k"]))).await.json();
    let read = "function () { var c = getContext().getCollection();
        c.readDocument(c.getAltLink() + '/docs/a', function (err, d) { getContext().getResponse().setBody(d); }); }";
    assert_eq!(execute(&client, read, &json!([])).await.json(), stored);
}

#[tokio::test]
async fn bulk_procedures_go_on_where_they_stopped() {
    let client = client().await;
    let import = r#"function bulkImport(docs) {
        var collection = getContext().getCollection(), count = 0;
        if (docs.length === 0) { getContext().getResponse().setBody(0); return; }
        tryCreate(docs[count], callback);
        function tryCreate(doc, callback) {
            var isAccepted = collection.createDocument(collection.getSelfLink(), doc, callback);
            if (!isAccepted) getContext().getResponse().setBody(count);
        }
        function callback(err) {
            if (err) throw err;
            count++;
            if (count >= docs.length) getContext().getResponse().setBody(count);
            else tryCreate(docs[count], callback);
        }
    }"#;
    let docs: Vec<Json> = (0..250).map(|n| json!({ "id": format!("i{n}"), "pk": "k", "n": n })).collect();
    assert_eq!(execute(&client, import, &json!([docs])).await.json(), 250);
    let delete = r#"function bulkDelete(query) {
        var collection = getContext().getCollection(), deleted = 0;
        queryAndDelete();
        function queryAndDelete(continuation) {
            collection.queryDocuments(collection.getSelfLink(), query, { continuation: continuation, pageSize: 30 },
                function (err, found, options) {
                    if (err) throw err;
                    if (found.length > 0) deleteAll(found);
                    else if (options.continuation) queryAndDelete(options.continuation);
                    else getContext().getResponse().setBody({ deleted: deleted, continuation: false });
                });
        }
        function deleteAll(found) {
            if (found.length === 0) return queryAndDelete();
            collection.deleteDocument(found[0]._self, {}, function (err) {
                if (err) throw err;
                deleted++;
                found.shift();
                deleteAll(found);
            });
        }
    }"#;
    let answer = execute(&client, delete, &json!(["SELECT * FROM c WHERE c.n >= 100"])).await;
    assert_eq!(answer.json(), json!({ "deleted": 150, "continuation": false }));
    assert_eq!(ids(&client).await.len(), 100);
}

#[tokio::test]
async fn a_throw_leaves_nothing_and_tells_where() {
    let client = client().await;
    let source = "function () {\n    var c = getContext().getCollection();\n    c.createDocument(c.getSelfLink(), \
        { id: 'a', pk: 'k' });\n    c.createDocument(c.getSelfLink(), { id: 'b', pk: 'k' }, function () {\n        \
        throw new Error('after two');\n    });\n}";
    let answer = execute(&client, source, &json!([])).await;
    assert_eq!(answer.code(), (400, 0));
    let message = answer.message();
    assert!(
        message.starts_with("Message: {\"Errors\":[\"Encountered exception while executing function."),
        "{message}"
    );
    assert!(message.contains("Error: after two") && message.contains("p.js:5"), "{message}");
    assert_eq!(ids(&client).await, Vec::<String>::new());
    let abort =
        execute(&client, "function () { getContext().abort(new Error(429, 'enough')); }", &json!([])).await;
    assert_eq!(abort.code(), (400, 429));
}

#[tokio::test]
async fn bad_text_is_refused_when_it_is_stored() {
    let client = client().await;
    for (kind, body) in [
        ("sprocs", "function () { var }"),
        ("triggers", "function ("),
        ("udfs", "function f() { return 1 +; }"),
    ] {
        let script = json!({ "id": "s", "body": body, "triggerType": "Pre", "triggerOperation": "All" });
        let refused = client.send(Call::post(&format!("/dbs/d/colls/c/{kind}")).json(&script)).await;
        assert_eq!(refused.code(), (400, 65535), "{kind}: {refused:?}");
        assert!(
            refused.message().contains("SyntaxError") && refused.message().contains("at line "),
            "{refused:?}"
        );
        assert_eq!(client.send(Call::get(&format!("/dbs/d/colls/c/{kind}/s"))).await.code(), (404, 0));
    }
}

#[tokio::test]
async fn results_are_limited() {
    let client = client().await;
    let large = "function () { getContext().getResponse().setBody('x'.repeat(5 << 20)); }";
    assert_eq!(execute(&client, large, &json!([])).await.code(), (400, 413));
    let cyclic = "function () { var a = {}; a.a = a; getContext().getResponse().setBody(a); }";
    assert_eq!(execute(&client, cyclic, &json!([])).await.code().0, 400);
}

#[tokio::test]
async fn time_is_limited() {
    let client = client_with(Duration::from_secs(3)).await;
    let endless = "function () { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: 'a', pk: 'k' }, function () { for (;;) {} }); }";
    let refused = execute(&client, endless, &json!([])).await;
    assert_eq!(refused.code(), (408, 0));
    assert!(refused.message().contains("time of 3s, which the setting script-timeout-ms"), "{refused:?}");
    assert_eq!(ids(&client).await, Vec::<String>::new());
    let next = execute(&client, "function () { getContext().getResponse().setBody(1); }", &json!([])).await;
    assert_eq!((next.status, next.json()), (StatusCode::OK, json!(1)));
}

#[tokio::test]
async fn memory_is_limited() {
    let client = client_with_memory(13 << 20).await;
    let greedy = "function () { var a = []; for (;;) a.push(new Array(1000).fill(1)); }";
    let refused = execute(&client, greedy, &json!([])).await;
    assert_eq!(refused.code(), (403, 0), "{refused:?}");
    assert!(refused.message().contains("bytes, which the setting script-memory-bytes"), "{refused:?}");
}

#[tokio::test]
async fn a_log_is_returned_if_the_client_wants_it() {
    let client = client().await;
    let source = "function (what) { console.log('saw %s', what); console.log('ü' + ';'); }";
    let quiet = execute(&client, source, &json!(["x"])).await;
    assert_eq!(quiet.header("x-ms-documentdb-script-log-results"), None);
    let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!(["it"]));
    let answer = client.send(call.header("x-ms-documentdb-script-enable-logging", "true")).await;
    let log = answer.header("x-ms-documentdb-script-log-results").unwrap();
    assert!(log.contains("saw%20it") && log.contains("%C3%BC%3B"), "{log}");
}

#[tokio::test]
async fn the_log_of_a_procedure_that_fails_is_returned() {
    let client = client().await;
    let source = "function () { console.log('before'); throw new Error('no'); }";
    let quiet = execute(&client, source, &json!([])).await;
    assert_eq!((quiet.code(), quiet.header("x-ms-documentdb-script-log-results")), ((400, 0), None));
    let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!([]));
    let answer = client.send(call.header("x-ms-documentdb-script-enable-logging", "true")).await;
    assert_eq!(answer.code(), (400, 0));
    assert_eq!(answer.header("x-ms-documentdb-script-log-results"), Some("before%0A"));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_procedure_whose_worker_was_killed_is_run_again() {
    let client = client_with_memory((64 << 20) + 13).await;
    let source = "function (id) { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: id, pk: 'k' }); }";
    assert_eq!(execute(&client, source, &json!(["a"])).await.code(), (200, 0));
    // The worker waits for its next call, which then fails in the middle.
    kill_workers((64 << 20) + 13);
    let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!(["b"]));
    assert_eq!(client.send(call).await.code(), (200, 0));
    assert_eq!(ids(&client).await, ["a", "b"]);
}

#[tokio::test]
async fn a_changed_procedure_takes_effect_at_once() {
    let client = client().await;
    for n in 0..5 {
        let source = format!("function () {{ getContext().getResponse().setBody({n}); }}");
        assert_eq!(execute(&client, &source, &json!([])).await.json(), n);
    }
    assert_eq!(client.send(Call::delete("/dbs/d/colls/c/sprocs/p")).await.status, StatusCode::NO_CONTENT);
    let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!([]));
    assert_eq!(client.send(call).await.code(), (404, 0));
}

#[tokio::test]
async fn counters_of_concurrent_procedures_are_not_lost() {
    let client = client().await;
    let source = r#"function () {
        var c = getContext().getCollection(), link = c.getAltLink() + "/docs/counter";
        c.readDocument(link, function (err, found) {
            var counter = found || { id: "counter", pk: "k", n: 0 };
            counter.n++;
            c.upsertDocument(c.getSelfLink(), counter, function (err) { if (err) throw err;
                getContext().getResponse().setBody(counter.n); });
        });
    }"#;
    assert_eq!(execute(&client, source, &json!([])).await.json(), 1);
    let call = || client.send(Call::post("/dbs/d/colls/c/sprocs/p").key(&json!(["k"])).json(&json!([])));
    let (a, b, c, d) = tokio::join!(call(), call(), call(), call());
    let mut counts: Vec<i64> = [a, b, c, d].iter().map(|answer| answer.json().as_i64().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 3, 4, 5]);
}

#[tokio::test]
async fn a_permission_for_one_key_executes_a_procedure_on_that_key_only() {
    let client = client().await;
    assert_eq!(execute(&client, "function () { return 1; }", &json!([])).await.status, StatusCode::OK);
    client.create("/dbs/d/users", json!({ "id": "u" })).await;
    let permission = json!({ "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c/sprocs/p",
        "resourcePartitionKey": ["a"] });
    let permission = client.create("/dbs/d/users/u/permissions", permission).await;
    let token = permission["_token"].as_str().unwrap();
    for (key, status) in [("a", 200), ("b", 403)] {
        let call = Call::post("/dbs/d/colls/c/sprocs/p").key(&json!([key])).json(&json!([]));
        assert_eq!(client.send(call.token(token)).await.status, status, "{key}");
    }
}

#[tokio::test]
async fn a_procedure_that_fails_is_charged_for_what_it_did() {
    let client = client().await;
    let source = r#"function () {
        var collection = getContext().getCollection();
        for (var i = 0; i < 20; i++) collection.createDocument(collection.getSelfLink(), { id: "" + i, pk: "k" });
        collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c", function () { throw "enough"; });
    }"#;
    let answer = execute(&client, source, &json!([])).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let charge: f64 = answer.header("x-ms-request-charge").unwrap().parse().unwrap();
    assert!(charge > 100.0, "{charge}");
    assert_eq!(ids(&client).await, [""; 0]);
}

#[tokio::test]
async fn a_long_transaction_is_not_accepted_any_further() {
    let client = client().await;
    // More than a transaction may write; the procedure stops when it is told to.
    let source = r#"function () {
        var collection = getContext().getCollection(), text = "x".repeat(400000), count = 0;
        next();
        function next() {
            var accepted = count < 200 && collection.createDocument(collection.getSelfLink(),
                { id: "d" + count, pk: "k", text: text }, function (err) { if (err) throw err; count++; next(); });
            if (!accepted) getContext().getResponse().setBody(count);
        }
    }"#;
    let answer = execute(&client, source, &json!([])).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let count = answer.json().as_u64().unwrap();
    assert!((10..100).contains(&count), "{count}");
    assert_eq!(ids(&client).await.len() as u64, count);
}

/// Their replies together are larger than a message to the script, and than its memory.
#[tokio::test]
async fn many_large_documents_are_read_in_parts() {
    let client = client().await;
    let large = json!({ "id": "large", "pk": "k", "text": "x".repeat(1_900_000) });
    assert_eq!(client.send(Call::post(DOCS).key(&json!(["k"])).json(&large)).await.code(), (201, 0));
    let source = r#"function (count) {
        var collection = getContext().getCollection(), bytes = 0;
        for (var i = 0; i < count; i++) {
            collection.readDocument(collection.getAltLink() + "/docs/large", function (err, read) {
                if (err) throw err;
                bytes += read.text.length;
                getContext().getResponse().setBody(bytes);
            });
        }
    }"#;
    let answer = execute(&client, source, &json!([20])).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!(20 * 1_900_000)));
}
