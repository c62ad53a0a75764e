//! Scripts that are called often: their calls share a runtime and must not notice it.

use crate::fixture::{Documents, body, call, workers};
use script::{Call, CallFault, ScriptFault, Workers};
use serde_json::{Value, json};

/// More calls than a script needs to get a shared runtime.
const CALLS: usize = 8;

/// The response bodies of several calls of a script.
async fn bodies(workers: &Workers, source: &str) -> Vec<Value> {
    let mut bodies = Vec::new();
    for number in 0..CALLS {
        let call = call(source, &json!([number]));
        bodies.push(body(&workers.run(&call, &mut Documents::default()).await.expect(source)));
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
async fn a_text_that_reads_the_request_too_early_finds_none() {
    let workers = workers();
    // The text is evaluated before the call begins, when only the request of the call before could be there.
    let source = "(function () { var before = getContext().getRequest().getBody(); \
                  return function () { __.response.setBody(before); }; })()";
    for number in 0..CALLS {
        let run = workers.run(&call(source, &json!([number])), &mut Documents::default()).await;
        assert!(matches!(run, Err(CallFault::Script(ScriptFault::Thrown(_)))), "{run:?}");
    }
}

#[tokio::test]
async fn each_call_has_its_own_input_and_log() {
    let workers = workers();
    let source = "function (n) { console.log('log ' + n); \
                  __.createDocument(__.getSelfLink(), { id: 'i' + n }, function (e, d) { __.response.setBody(d.id); }); }";
    for number in 0..CALLS {
        let mut documents = Documents::default();
        let finished = workers.run(&call(source, &json!([number])), &mut documents).await.unwrap();
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
        let run = workers.run(&call(source, &json!([number])), &mut documents).await;
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
async fn a_callback_that_needs_its_own_runtime_is_run_again() {
    let workers = workers();
    let source = "function () { __.createDocument(__.getSelfLink(), { id: 'a' }, \
                  function () { total = 1; __.response.setBody(total); }); }";
    let shared = call(source, &json!([]));
    let mut again = 0;
    for _ in 0..CALLS {
        match workers.run(&shared, &mut Documents::default()).await {
            Ok(finished) => assert_eq!(body(&finished), json!(1)),
            Err(CallFault::Again) => {
                again += 1;
                let alone = Call { needs_own_runtime: true, ..shared.clone() };
                let finished = workers.run(&alone, &mut Documents::default()).await.unwrap();
                assert_eq!(body(&finished), json!(1));
            }
            Err(fault) => panic!("{fault:?}"),
        }
    }
    // The worker remembers it.
    assert_eq!(again, 1);
}
