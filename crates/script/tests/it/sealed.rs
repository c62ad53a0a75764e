//! Scripts that are called often: their calls share a runtime and must not notice it.

use crate::fixture::{CALLER, Documents, NOW_MS, body, call, limits, program, thrown, workers};
use script::{Call, CallFault, Clock, Limits, ScriptFault, Workers};
use serde_json::{Value, json};
use std::time::Duration;

/// More calls than a script needs to get a shared runtime.
const CALLS: usize = 8;

/// The response bodies of several calls of a script.
async fn bodies(workers: &Workers, source: &str) -> Vec<Value> {
    let mut bodies = Vec::new();
    for number in 0..CALLS {
        let call = call(source, &json!([number]));
        bodies.push(body(&workers.run(CALLER, &call, &mut Documents::default()).await.expect(source)));
    }
    bodies
}

#[tokio::test]
async fn calls_see_nothing_of_those_before() {
    let workers = workers();
    for (source, expected) in [
        // State that a script keeps where it can.
        ("function () { globalThis.n = (globalThis.n || 0) + 1; __.response.setBody(n); }", json!(1)),
        ("function () { n = typeof n === 'undefined' ? 1 : n + 1; __.response.setBody(n); }", json!(1)),
        ("var n = 0; function f() { n += 1; __.response.setBody(n); }", json!(1)),
        ("function f() { f.n = (f.n || 0) + 1; __.response.setBody(f.n); }", json!(1)),
        ("function () { Array.prototype.n = ([].n || 0) + 1; __.response.setBody([].n); }", json!(1)),
        ("function () { __.n = (__.n || 0) + 1; __.response.setBody(__.n); }", json!(1)),
        ("function () { var c = getContext(); c.n = (c.n || 0) + 1; __.response.setBody(c.n); }", json!(1)),
        ("function () { console.n = (console.n || 0) + 1; __.response.setBody(console.n); }", json!(1)),
        // The methods of what the server gives to scripts.
        (
            "function () { var m = __.createDocument; m.n = (m.n || 0) + 1; __.response.setBody(m.n); }",
            json!(1),
        ),
        (
            "function () { var m = __.response.setBody; m.n = (m.n || 0) + 1; __.response.setBody(m.n); }",
            json!(1),
        ),
        (
            "function () { var m = getContext().abort; m.n = (m.n || 0) + 1; __.response.setBody(m.n); }",
            json!(1),
        ),
        (
            "function () { var c = getContext().getCollection(); c.map = c.map.n = 1; \
             __.response.setBody([c.map, __.map, typeof getContext().getRequest().n]); }",
            json!([1, 1, "undefined"]),
        ),
        (
            "function () { __ = { n: (__.n || 0) + 1, response: __.response }; __.response.setBody(__.n); }",
            json!(1),
        ),
        // The response of the call before.
        ("function () { __.response.appendBody('a'); }", json!("a")),
        // The random numbers and the time belong to the call.
        ("function () { __.response.setBody(Math.random() + Date.now()); }", Value::Null),
    ] {
        let bodies = bodies(&workers, source).await;
        let expected = if expected.is_null() { bodies[0].clone() } else { expected };
        assert_eq!(bodies, vec![expected; CALLS], "{source}");
    }
}

#[tokio::test]
async fn an_error_of_a_microtask_is_that_of_the_script() {
    let source = "function () { queueMicrotask(function () { throw new Error('later'); }); }";
    assert_eq!(thrown(source).await.text, "Error: later");
    let source = "function () { queueMicrotask(function () { later(); }); }";
    assert_eq!(thrown(source).await.text, "ReferenceError: later is not defined");
}

#[tokio::test]
async fn a_text_uses_the_api_outside_of_its_function() {
    let workers = workers();
    for source in [
        "(function () { var before = __.request.getBody(); \
         return function () { __.response.setBody(before); }; })()",
        "var collection = getContext().getCollection(), response = getContext().getResponse();
         function main(n) { if (collection.getAltLink()) response.setBody([n]); }",
        "var context = getContext(), input = context.getRequest().getBody();
         function main(n) { input.length = 0; input[0] = n; context.getResponse().setBody(input); }",
    ] {
        for number in 0..CALLS {
            let call = call(source, &json!([number]));
            let finished = workers.run(CALLER, &call, &mut Documents::default()).await.unwrap();
            assert_eq!(body(&finished), json!([number]), "{source}");
        }
    }
    let source = "var links = [], collection = getContext().getCollection();
                  collection.createDocument(collection.getSelfLink(), { id: 'a' }, \
                      function (e, d) { links.push(d.id); getContext().getResponse().setBody(links); });
                  function main() { links.push('main'); }";
    for _ in 0..CALLS {
        let finished =
            workers.run(CALLER, &call(source, &json!([])), &mut Documents::default()).await.unwrap();
        assert_eq!(body(&finished), json!(["main", "a"]));
    }
}

#[tokio::test]
async fn each_call_has_its_own_input_and_log() {
    let workers = workers();
    let source = "function (n) { console.log('log ' + n); \
                  __.createDocument(__.getSelfLink(), { id: 'i' + n }, function (e, d) { __.response.setBody(d.id); }); }";
    for number in 0..CALLS {
        let mut documents = Documents::default();
        let finished = workers.run(CALLER, &call(source, &json!([number])), &mut documents).await.unwrap();
        assert_eq!(body(&finished), json!(format!("i{number}")));
        assert_eq!(finished.log, format!("log {number}\n"));
        assert_eq!(documents.ids(), [format!("i{number}")]);
    }
}

#[tokio::test]
async fn a_throw_leaves_nothing_behind() {
    let workers = workers();
    let source = "function (n) { __.createDocument(__.getSelfLink(), { id: 'a' }); console.log(n); \
                  if (n % 2) throw new Error('odd ' + n); __.response.setBody(n); }";
    for number in 0..2 * CALLS {
        let mut documents = Documents::default();
        let run = workers.run(CALLER, &call(source, &json!([number])), &mut documents).await;
        if number % 2 == 0 {
            let finished = run.unwrap();
            assert_eq!((body(&finished), finished.log), (json!(number), format!("{number}\n")));
            assert_eq!(documents.ids(), ["a"]);
        } else {
            let Err(CallFault::Script(ScriptFault::Thrown(thrown))) = run else { panic!("{run:?}") };
            assert_eq!(thrown.message, format!("odd {number}"));
            assert!(documents.documents.is_empty());
        }
    }
}

#[tokio::test]
async fn a_call_that_the_host_has_ended_leaves_nothing_behind() {
    let workers = workers();
    let source = "function (n) { __.response.setBody([n]); \
                  ['a' + n, 'b' + n].forEach(function (id) { __.createDocument(__.getSelfLink(), { id: id }, \
                      function (e, d) { __.response.setBody(__.response.getBody().concat(d.id)); }); }); }";
    for number in 0..2 * CALLS {
        let is_ended = number % 2 == 1;
        let mut documents = Documents { prefix: Some(1), end: is_ended.then_some(2), ..Documents::default() };
        let run = workers.run(CALLER, &call(source, &json!([number])), &mut documents).await;
        if is_ended {
            assert_eq!(run, Err(CallFault::Host("ended by the host")));
        } else {
            let expected = json!([number, format!("a{number}"), format!("b{number}")]);
            assert_eq!(body(&run.unwrap()), expected);
        }
    }
}

#[tokio::test]
async fn a_callback_that_needs_its_own_runtime_is_run_again() {
    let workers = workers();
    let source = "function () { __.createDocument(__.getSelfLink(), { id: 'a' }, \
                  function () { total = 1; __.response.setBody(total); }); }";
    let shared = call(source, &json!([]));
    let mut again = 0;
    for _ in 0..CALLS {
        match workers.run(CALLER, &shared, &mut Documents::default()).await {
            Ok(finished) => assert_eq!(body(&finished), json!(1)),
            Err(CallFault::Again) => {
                again += 1;
                let alone = Call { needs_own_runtime: true, ..shared.clone() };
                let finished = workers.run(CALLER, &alone, &mut Documents::default()).await.unwrap();
                assert_eq!(body(&finished), json!(1));
            }
            Err(fault) => panic!("{fault:?}"),
        }
    }
    // The worker remembers it.
    assert_eq!(again, 1);
}

#[tokio::test]
async fn a_long_call_that_needs_its_own_runtime_has_all_of_its_time_again() {
    let limits = Limits { time: Duration::from_secs(10), ..limits() };
    let workers = Workers::new(program(), limits);
    // The long calls take more of the time than a call that the worker repeats by itself.
    let source = "function (ms) { var start = Date.now(); while (Date.now() - start < ms); \
                  if (ms > 0) total = 1; __.response.setBody(ms); }";
    let with = |ms: u64| Call { clock: Clock::Running { start_ms: NOW_MS }, ..call(source, &json!([ms])) };
    for _ in 0..CALLS {
        let finished = workers.run(CALLER, &with(0), &mut Documents::default()).await.unwrap();
        assert_eq!(body(&finished), json!(0));
    }
    let run = workers.run(CALLER, &with(600), &mut Documents::default()).await;
    assert!(matches!(run, Err(CallFault::Again)), "{run:?}");
    // The worker remembers it.
    let finished = workers.run(CALLER, &with(600), &mut Documents::default()).await.unwrap();
    assert_eq!(body(&finished), json!(600));
}
