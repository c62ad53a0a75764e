//! The API of procedures.

use crate::fixture::{
    ALT_LINK, CALLER, Documents, NOW_MS, SELF_LINK, body, call, check, execute, thrown, workers,
};
use script::{Clock, DocumentLink, IndexAction, Operation, PageOptions};
use serde_json::{Value, json};

#[tokio::test]
async fn a_procedure_gets_its_parameters_and_answers() {
    let source = "function (a, b) { getContext().getResponse().setBody({ sum: a + b.c }); }";
    check(source, json!([1, {"c": 2}]), json!({"sum": 3})).await;
    check("function () { getContext().getResponse().setBody(arguments.length); }", json!([]), json!(0)).await;
}

#[tokio::test]
async fn a_script_may_be_any_form_of_a_function() {
    for source in [
        "function () { getContext().getResponse().setBody(1); }",
        "function named() { getContext().getResponse().setBody(1); };",
        "() => { getContext().getResponse().setBody(1); }",
        "() => getContext().getResponse().setBody(1)",
        "async function f() { await null; getContext().getResponse().setBody(1); }",
        "async () => { await null; getContext().getResponse().setBody(1); }",
        "// a comment\n/* another */\nfunction f() { getContext().getResponse().setBody(1); }\n// end",
        "function f() { help(1); }\nfunction help(value) { getContext().getResponse().setBody(value); }",
        "var limit = 1; function f() { getContext().getResponse().setBody(limit); }",
        "function f() { implicit = 1; getContext().getResponse().setBody(implicit); }",
        "function f() { with ({ a: 1 }) { getContext().getResponse().setBody(a); } }",
    ] {
        check(source, json!([]), json!(1)).await;
    }
}

#[tokio::test]
async fn bodies_are_json() {
    let set = |value: &str| format!("function () {{ __.response.setBody({value}); }}");
    for (value, expected) in [
        ("'text'", json!("text")),
        ("undefined", Value::Null),
        ("[1.5, -0, 1e300, 'ä€😀']", json!([1.5, 0, 1e300, "ä€😀"])),
        ("{ toJSON: function () { return 7; } }", json!(7)),
        ("{ a: undefined, b: NaN, c: new Date(0) }", json!({"b": null, "c": "1970-01-01T00:00:00.000Z"})),
    ] {
        check(&set(value), json!([]), expected).await;
    }
    let source =
        "function () { var r = getContext().getResponse(); var o = { n: 1 }; r.setBody(o); o.n = 2; }";
    check(source, json!([]), json!({"n": 2})).await;
    let source =
        "function () { var r = __.response; r.appendBody('a'); r.appendBody('b'); r.appendBody({ c: 1 }); }";
    check(source, json!([]), json!("ab{\"c\":1}")).await;
}

#[tokio::test]
async fn messages_have_values_with_names() {
    let source = "function () {
        var context = getContext(), response = context.getResponse(), request = context.getRequest(), texts = [];
        function attempt(work) { try { texts.push(work()); } catch (e) { texts.push([e.number, e.message]); } }
        attempt(function () { return response.getMaxResourceQuota(); });
        attempt(function () { return response.getResourceQuotaCurrentUsage(); });
        attempt(function () { return response.getValue('maxResourceQuota'); });
        attempt(function () { return request.getBody(); });
        attempt(function () { response.setValue('other', 1); });
        attempt(function () { response.setValue('maxResourceQuota', 1); });
        attempt(function () { request.setBody({}); });
        attempt(function () { response.setValue('body', 'a'); response.appendValue('body', 'b'); return response.getBody(); });
        response.setBody(texts);
    }";
    let expected = json!([
        "documentSize=10240;",
        "documentSize=1;",
        "documentSize=10240;",
        [5],
        [400, "Cannot set new values: other"],
        [403, "Not a writable property: maxResourceQuota"],
        [403, "Not a writable property: body"],
        "ab"
    ]);
    check(source, json!([5]), expected).await;
}

#[tokio::test]
async fn errors_take_a_number_and_a_text() {
    let source = "function () {
        class Own extends Error { constructor() { super(412, 'own'); this.name = 'Own'; } }
        var two = new Error(ErrorCodes.Conflict, 'text'), called = Error(400, 'c'), one = new Error('plain'), own = new Own();
        __.response.setBody([two.number, two.body, two.message, two instanceof Error, called.number,
            one.message, one.number === undefined, own instanceof Own, own.number, own.name, String(two),
            new TypeError('t') instanceof Error, new Error('a', { cause: 3 }).cause, two.constructor === Error]);
    }";
    let expected = json!([
        409,
        "text",
        "text",
        true,
        400,
        "plain",
        true,
        true,
        412,
        "Own",
        "Error: text",
        true,
        3,
        true
    ]);
    check(source, json!([]), expected).await;
}

#[tokio::test]
async fn documents_are_created_read_and_changed() {
    let source = "function () {
        var c = getContext().getCollection(), seen = [];
        function note(name) { return function (err, item, options) { seen.push([name, err ? err.number : null, item]); }; }
        c.createDocument(c.getSelfLink(), { id: 'a', n: 1 }, note('create'));
        c.createDocument(c.getAltLink(), '{\"id\":\"a\"}', note('again'));
        c.upsertDocument(c.getSelfLink(), { id: 'a', n: 2 }, { etag: 'e' }, note('upsert'));
        c.readDocument(c.getAltLink() + '/docs/a', note('read'));
        c.replaceDocument(c.getSelfLink() + 'docs/a/', { id: 'a', n: 3 }, { etag: 'f', indexAction: 'exclude' }, note('replace'));
        c.patchDocument(c.getAltLink() + '/docs/a', [{ op: 'incr', path: '/n', value: 1 }], note('patch'));
        c.deleteDocument(c.getAltLink() + '/docs/a', note('delete'));
        c.readDocument(c.getAltLink() + '/docs/a', function (err) {
            seen.push([err.number, err.body, err.message, err instanceof Error]);
            getContext().getResponse().setBody(seen);
        });
    }";
    let mut documents = Documents::default();
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    let patched = json!({"id": "a", "n": 3, "patch": [{"op": "incr", "path": "/n", "value": 1}]});
    let expected = json!([
        ["create", null, {"id": "a", "n": 1}],
        ["again", 409, null],
        ["upsert", null, {"id": "a", "n": 2}],
        ["read", null, {"id": "a", "n": 2}],
        ["replace", null, {"id": "a", "n": 3}],
        ["patch", null, patched],
        ["delete", null, null],
        [404, "Resource Not Found.", "Resource Not Found.", true]
    ]);
    assert_eq!(body(&finished), expected);
    assert_eq!(documents.messages.len(), 1, "operations that are queued together cross together");
    let a = || DocumentLink::Id("a".to_owned());
    let operations = documents.operations();
    assert_eq!(
        operations[2],
        &Operation::Upsert {
            document: r#"{"id":"a","n":2}"#.into(),
            index_action: IndexAction::Default,
            if_match: Some("e".to_owned()),
            wants_document: true,
        }
    );
    assert_eq!(
        operations[4],
        &Operation::Replace {
            document: DocumentLink::Rid("a".to_owned()),
            content: r#"{"id":"a","n":3}"#.into(),
            index_action: IndexAction::Exclude,
            if_match: Some("f".to_owned()),
            wants_document: true,
        }
    );
    assert_eq!(operations[6], &Operation::Delete { document: a(), if_match: None });
}

#[tokio::test]
async fn a_write_without_a_callback_wants_no_document() {
    let source = "function () { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: 'a' });
        c.createDocument(c.getSelfLink(), { id: 'b' }, function () {}); }";
    let mut documents = Documents::default();
    execute(&mut documents, source, &json!([])).await.unwrap();
    let wanted = documents.operations().into_iter().map(|operation| {
        let Operation::Create { wants_document, .. } = operation else { panic!("{operation:?}") };
        *wants_document
    });
    assert_eq!(wanted.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn a_read_of_a_known_version_says_so() {
    let mut documents = Documents::with(json!([{"id": "a", "_etag": "1"}]));
    let source = "function () {
        __.readDocument(__.getAltLink() + '/docs/a', { ifNoneMatch: '1' }, function (err, item, options) {
            __.response.setBody([err === undefined, item === undefined, options.notModified]);
        });
    }";
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!([true, true, true]));
}

#[tokio::test]
async fn missing_ids_are_generated_on_a_copy() {
    let source = "function () {
        var item = { n: 1 };
        __.createDocument(__.getSelfLink(), item, function (err, created) {
            __.createDocument(__.getSelfLink(), { n: 2 }, { disableAutomaticIdGeneration: true }, function (err, other) {
                __.response.setBody([item.id === undefined, created, other]);
            });
        });
    }";
    let mut documents = Documents::default();
    let first = body(&execute(&mut documents, source, &json!([])).await.unwrap());
    assert_eq!(first[0], json!(true));
    let id = first[1]["id"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "4"));
    assert_eq!(first[2], json!({"n": 2}));
    let second = body(&execute(&mut Documents::default(), source, &json!([])).await.unwrap());
    assert_eq!(first, second, "the same seed generates the same id");
}

#[tokio::test]
async fn links_outside_the_collection_are_refused() {
    for operation in [
        "createDocument('dbs/shop/colls/other', {})",
        "createDocument('', {})",
        "upsertDocument(__.getAltLink() + '/docs/a', {})",
        "readDocument('dbs/shop/colls/other/docs/a')",
        "readDocument(__.getAltLink())",
        "replaceDocument('dbs/shop/colls/orders2/docs/a', {})",
        "deleteDocument('dbs/AAAA==/colls/CCCC=/docs/a/')",
        "patchDocument('dbs/other/colls/orders/docs/a', [])",
        "queryDocuments('dbs/shop/colls/other', 'SELECT 1')",
        "readDocuments('dbs/shop')",
    ] {
        let error = thrown(&format!("function () {{ __.{operation}; }}")).await;
        assert_eq!(error.number, Some(400), "{operation}");
        assert!(
            error.message.starts_with("Function is not allowed to operate on resources outside"),
            "{operation}"
        );
    }
}

#[tokio::test]
async fn wrong_arguments_are_refused() {
    for operation in [
        "createDocument(__.getSelfLink(), 5)",
        "createDocument(__.getSelfLink(), [])",
        "createDocument(__.getSelfLink(), 'no json')",
        "createDocument(__.getSelfLink())",
        "createDocument(5, {})",
        "createDocument(__.getSelfLink(), {}, 5)",
        "createDocument(__.getSelfLink(), {}, {}, 5)",
        "createDocument(__.getSelfLink(), {}, { indexAction: 'maybe' })",
        "upsertDocument(__.getSelfLink(), {}, { etag: 5 })",
        "patchDocument(__.getAltLink() + '/docs/a', 'x')",
        "queryDocuments(__.getSelfLink(), 5)",
        "queryDocuments(__.getSelfLink(), { query: 'SELECT 1', parameters: {} })",
        "queryDocuments(__.getSelfLink(), 'SELECT 1', { pageSize: 0 })",
        "readDocuments(__.getSelfLink(), { continuation: 5 })",
        "createAttachment('', {})",
    ] {
        let error = thrown(&format!("function () {{ __.{operation}; }}")).await;
        assert_eq!(error.number, Some(400), "{operation}: {error:?}");
    }
}

#[tokio::test]
async fn queries_have_parameters_and_pages() {
    let source = "function () {
        var c = __, seen = [];
        function page(continuation) {
            c.queryDocuments(c.getSelfLink(), { query: 'SELECT * FROM c WHERE c.n > @n', parameters: [{ name: '@n', value: 1 }] },
                { pageSize: 2, continuation: continuation, enableScan: true }, function (err, items, options) {
                    seen.push([items.length, options]);
                    if (options.continuation) page(options.continuation); else c.response.setBody(seen);
                });
        }
        page();
    }";
    let mut documents = Documents::with(json!([{"id": "a"}, {"id": "b"}, {"id": "c"}]));
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    let sizes = |mut options: Value| {
        options["currentCollectionSizeInMB"] = json!(1.5);
        options["maxCollectionSizeInMB"] = json!(50);
        options
    };
    assert_eq!(body(&finished), json!([[2, sizes(json!({"continuation": "2"}))], [1, sizes(json!({}))]]));
    assert_eq!(
        documents.operations()[1],
        &Operation::Query {
            text: "SELECT * FROM c WHERE c.n > @n".to_owned(),
            parameters: r#"[{"name":"@n","value":1}]"#.into(),
            page: PageOptions { size: Some(2), continuation: Some("2".to_owned()) },
            enable_scan: true,
        }
    );
}

#[tokio::test]
async fn a_refusal_without_a_callback_is_thrown() {
    let error = thrown("function () { __.deleteDocument(__.getAltLink() + '/docs/none'); }").await;
    assert_eq!((error.number, error.message.as_str()), (Some(404), "Resource Not Found."));
    let source =
        "function () { __.readDocument(__.getAltLink() + '/docs/none', function (err) { throw err; }); }";
    assert_eq!(thrown(source).await.number, Some(404));
}

#[tokio::test]
async fn promises_around_operations_work() {
    let source = "async function (count) {
        const c = getContext().getCollection();
        const create = (item) => new Promise((resolve, reject) => {
            const isAccepted = c.createDocument(c.getSelfLink(), item, (err, created) => err ? reject(err) : resolve(created));
            if (!isAccepted) reject(new Error(429, 'not accepted'));
        });
        const items = [];
        for (let i = 0; i < count; i++) items.push(await create({ id: 'i' + i }));
        const all = await Promise.all(['x', 'y', 'z'].map((id) => create({ id })));
        let caught;
        try { await create({ id: 'x' }); } catch (err) { caught = err.number; }
        getContext().getResponse().setBody([items.length, all.map((item) => item.id), caught]);
    }";
    let mut documents = Documents::default();
    let finished = execute(&mut documents, source, &json!([3])).await.unwrap();
    assert_eq!(body(&finished), json!([3, ["x", "y", "z"], 409]));
    let counts: Vec<usize> = documents.messages.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 1, 1, 3, 1]);
}

#[tokio::test]
async fn unhandled_rejections_end_the_script() {
    for source in [
        "async function () { throw new Error(418, 'late'); }",
        "function () { Promise.reject(new Error(418, 'late')); }",
        "async function () { await null; null.x; }",
        "async function () { await new Promise((_, reject) => __.readDocument(__.getAltLink() + '/docs/none', reject)); }",
    ] {
        let _ = thrown(source).await;
    }
    let error = thrown("async function () { await new Promise(() => {}); }").await;
    assert_eq!(error.message, "the promise of the script was never settled");
    let source = "function () { var p = Promise.reject(1); Promise.resolve().then(() => p.catch(() => __.response.setBody('handled'))); }";
    check(source, json!([]), json!("handled")).await;
}

#[tokio::test]
async fn abort_cannot_be_taken_back() {
    for source in [
        "function () { getContext().abort(new Error(400, 'stop')); }",
        "function () { try { getContext().abort(new Error(400, 'stop')); } catch (e) {} __.response.setBody(1); }",
    ] {
        let error = thrown(source).await;
        assert_eq!((error.number, error.text.as_str()), (Some(400), "Error: stop"));
    }
}

#[tokio::test]
async fn operations_are_refused_when_the_budget_is_low() {
    let source = "function () {
        var count = 0;
        function next() {
            var isAccepted = __.createDocument(__.getSelfLink(), { id: 'n' + count }, function (err) { if (err) throw err; count++; next(); });
            if (!isAccepted) __.response.setBody(count);
        }
        next();
    }";
    let mut documents = Documents { budget: Some(3), ..Documents::default() };
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!(3));
    assert_eq!(documents.ids(), ["n0", "n1", "n2"]);
}

#[tokio::test]
async fn queued_operations_are_bounded_and_cross_in_parts() {
    let source = "function () {
        var count = 0;
        while (__.createDocument(__.getSelfLink(), { id: 'n' + count })) count++;
        __.response.setBody(count);
    }";
    let mut documents = Documents::default();
    let finished = execute(&mut documents, source, &json!([])).await.unwrap();
    assert_eq!(body(&finished), json!(script::PENDING_OPERATIONS_MAX));
    assert_eq!(documents.ids().len(), script::PENDING_OPERATIONS_MAX);
    assert!(documents.messages.iter().all(|message| message.len() <= script::MESSAGE_OPERATIONS_MAX));
}

#[tokio::test]
async fn bytes_of_queued_operations_are_bounded() {
    let source = "function (bytes) {
        var text = 'x'.repeat(bytes), count = 0;
        while (__.createDocument(__.getSelfLink(), { id: 'n' + count, text })) count++;
        __.response.setBody(count);
    }";
    let most = script::pending_bytes_max(script::MEMORY_BYTES_DEFAULT);
    // A half fits twice without the rest of the document; a single operation may have more than all others together.
    for (bytes, count) in [(most / 2 - 100, 2), (most / 2, 1), (most - 100, 1)] {
        let mut documents = Documents::default();
        let finished = execute(&mut documents, source, &json!([bytes])).await.unwrap();
        assert_eq!(body(&finished), json!(count), "{bytes} bytes");
        assert_eq!(documents.ids().len(), count);
    }
}

#[tokio::test]
async fn time_and_randomness_come_from_the_call() {
    let source = "function () {
        var d = new Date();
        __.response.setBody([Date.now(), d.getTime(), d.toISOString(), d.getTimezoneOffset(), new Date(5).getTime(),
            typeof Date(), d instanceof Date, Date.UTC(2000, 0), Date.name, Math.random(), Math.random(),
            typeof performance, typeof SharedArrayBuffer, typeof Atomics]);
    }";
    let workers = workers();
    let mut call = call(source, &json!([]));
    let first = body(&workers.run(CALLER, &call, &mut Documents::default()).await.unwrap());
    let second = body(&workers.run(CALLER, &call, &mut Documents::default()).await.unwrap());
    assert_eq!(first, second);
    let expected = json!([
        NOW_MS,
        NOW_MS,
        "2026-01-02T03:04:05.678Z",
        0,
        5,
        "string",
        true,
        946_684_800_000_u64,
        "Date"
    ]);
    assert_eq!(first.as_array().unwrap()[..9], expected.as_array().unwrap()[..]);
    assert_eq!(first.as_array().unwrap()[11..], ["undefined", "undefined", "undefined"]);
    assert_ne!(first[9], first[10]);
    call.seed = 8;
    let other = body(&workers.run(CALLER, &call, &mut Documents::default()).await.unwrap());
    assert_ne!(first[9], other[9]);
    call.source =
        "function () { var start = Date.now(); while (Date.now() === start) {} __.response.setBody(start); }"
            .into();
    call.clock = Clock::Running { start_ms: NOW_MS };
    let start = body(&workers.run(CALLER, &call, &mut Documents::default()).await.unwrap());
    assert!(start.as_u64().unwrap() >= NOW_MS);
}

#[tokio::test]
async fn the_log_is_kept_if_it_is_wanted() {
    let source = "function () { console.log('a %s b %s', 1, { c: 2 }, 'rest'); console.log(undefined, null); console.log(); }";
    let workers = workers();
    let mut call = call(source, &json!([]));
    let finished = workers.run(CALLER, &call, &mut Documents::default()).await.unwrap();
    assert_eq!(finished.log, "a 1 b {\"c\":2} rest\nundefined null\n\n");
    call.logs = false;
    let finished = workers.run(CALLER, &call, &mut Documents::default()).await.unwrap();
    assert_eq!(finished.log, "");
}

#[tokio::test]
async fn links_and_the_shortcut_are_those_of_the_container() {
    let source = "function () {
        __.response.setBody([__.getSelfLink(), getContext().getCollection().getAltLink(), __.request === getContext().getRequest(),
            Object.getPrototypeOf(__) === getContext().getCollection(), this === globalThis]);
    }";
    check(source, json!([]), json!([SELF_LINK, ALT_LINK, true, true, true])).await;
}

#[tokio::test]
async fn nothing_outlives_a_call() {
    let workers = workers();
    let spoil = "function () {
        globalThis.left = 1; Object.prototype.left = 1; Array.prototype.push = null; JSON.stringify = null;
        Promise.prototype.then = null; Error = null; getContext = null; left2 = 2;
        Object.defineProperty(Object.prototype, 'kind', { get() { return 4; } });
    }";
    let look = "function () { getContext().getResponse().setBody([typeof left, typeof left2, ({}).left, typeof [].push]); }";
    workers.run(CALLER, &call(spoil, &json!([])), &mut Documents::default()).await.unwrap();
    let finished = workers.run(CALLER, &call(look, &json!([])), &mut Documents::default()).await.unwrap();
    assert_eq!(body(&finished), json!(["undefined", "undefined", null, "function"]));
    assert_eq!(workers.idle_count(), 1, "both ran in one worker");
}

#[tokio::test]
async fn the_api_works_on_whatever_a_script_replaces() {
    let source = "function () {
        Array.prototype.push = null; Array.prototype[Symbol.iterator] = null; JSON.stringify = JSON.parse = null;
        Object.defineProperty(Object.prototype, 'callback', { get() { throw 'caught'; } });
        Reflect.apply = Reflect.defineProperty = Array.isArray = Number.isInteger = String = null;
        Map.prototype.set = Map.prototype.forEach = null; Promise.prototype.then = null;
        __.createDocument(__.getSelfLink(), { id: 'a', list: [1] }, function (err, item) {
            if (err) throw err;
            getContext().getResponse().setBody(item);
        });
    }";
    check(source, json!([]), json!({"id": "a", "list": [1]})).await;
}

#[tokio::test]
async fn a_host_may_execute_the_first_operations_of_a_message() {
    let source = "function (count) {
        const seen = [];
        const create = (id) => __.createDocument(__.getSelfLink(), { id: `${id}` }, (error, created) => {
            if (error) throw error;
            seen.push(created.id);
            // Queued behind those that the host has not executed yet.
            if (id === 0) create(count);
            __.response.setBody(seen);
        });
        for (let id = 0; id < count; id++) create(id);
    }";
    for prefix in [1, 3, 7, 8] {
        let mut documents = Documents { prefix: Some(prefix), ..Documents::default() };
        let finished = execute(&mut documents, source, &json!([8])).await.unwrap();
        let ids: Vec<String> = (0..9).map(|id| id.to_string()).collect();
        assert_eq!(body(&finished), json!(ids), "{prefix}");
        assert_eq!(documents.ids(), ids, "{prefix}");
        assert_eq!(documents.messages.len(), 9_usize.div_ceil(prefix), "{prefix}");
    }
}

#[tokio::test]
async fn long_links_and_etags_count_as_bytes_of_operations() {
    // Together longer than a message may be.
    let source = "function (operation) {
        const long = 'x'.repeat(1 << 20), link = __.getAltLink() + '/docs/';
        let count = 0;
        const next = {
            readLink: () => __.readDocument(link + long, () => {}),
            readEtag: () => __.readDocument(link + 'a', { ifNoneMatch: long }, () => {}),
            deleteLink: () => __.deleteDocument(link + long, () => {}),
            deleteEtag: () => __.deleteDocument(link + 'a', { etag: long }, () => {}),
            upsertEtag: () => __.upsertDocument(__.getAltLink(), { id: 'a' }, { etag: long }, () => {}),
        }[operation];
        while (count < 40 && next()) count++;
        __.response.setBody(count);
    }";
    for operation in ["readLink", "readEtag", "deleteLink", "deleteEtag", "upsertEtag"] {
        let mut documents = Documents::with(json!([{ "id": "a" }]));
        let finished = execute(&mut documents, source, &json!([operation])).await.unwrap();
        // Each has a few bytes more than one MiB if it also has a link or a document.
        let most = script::pending_bytes_max(script::MEMORY_BYTES_DEFAULT) >> 20;
        let accepted = body(&finished).as_u64().unwrap();
        assert!((most as u64 - 1..=most as u64).contains(&accepted), "{operation}: {accepted}");
        assert!(documents.messages.iter().all(|message| message.len() == 1), "{operation}");
    }
}
