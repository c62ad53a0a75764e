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

/// What a caller sees of a run: the result and log, or the error; and the documents. A script that has to be run again
/// is.
async fn outcome(workers: &Workers, call: &Call) -> String {
    let mut documents = Documents::with(json!([{ "id": "first", "n": 1 }]));
    let run = match workers.run(CALLER, call, &mut documents).await {
        Err(CallFault::Again) => {
            documents = Documents::with(json!([{ "id": "first", "n": 1 }]));
            let alone = Call { needs_own_runtime: true, ..call.clone() };
            workers.run(CALLER, &alone, &mut documents).await
        }
        run => run,
    };
    match run {
        Ok(finished) => format!("{finished:?} {:?}", documents.documents),
        Err(fault) => format!("{fault:?}"),
    }
}

/// Texts of functions that could notice that their calls share a runtime, or that they are strict there. `S(…)` sets the
/// response.
const NOTICING: &[&str] = &[
    // Globals and undeclared variables.
    "function () { x = 1; S(x); }",
    "function () { S(typeof x); x = 1; }",
    "function () { try { x = 1; } catch (e) { S('caught'); } S(typeof x); }",
    "function () { var x = 1; S(globalThis.x === undefined); }",
    "function () { this.x = (this.x || 0) + 1; S(x); }",
    "function () { globalThis.x = (globalThis.x || 0) + 1; S(globalThis.x); }",
    "function () { Math.max.constructor('x = 1')(); S(x); }",
    "function () { var f = Math['max']['const' + 'ructor']('return this'); S(typeof f()); }",
    "function () { S(typeof [].map['const' + 'ructor']('return this')().Array); }",
    "function () { (0, eval)('var y = 1'); S(y); }",
    "function () { undefined = 1; NaN = 2; S(String(undefined)); }",
    "function () { Array = 1; S(Array); }",
    "function () { Object = { keys: function () { return 'mine'; } }; S(Object.keys()); }",
    "function () { Math.x = (Math.x || 0) + 1; S(Math.x); }",
    "function () { delete Math.max; S(typeof Math.max); }",
    "function () { S(delete Math.max); }",
    "function () { delete Array.prototype.map; S([].map === undefined); }",
    "function () { __ = 1; S(typeof __); }",
    "function () { getContext = 1; S(typeof getContext); }",
    "function () { ErrorCodes.Mine = (ErrorCodes.Mine || 0) + 1; S(ErrorCodes.Mine); }",
    "function () { console.log = function () {}; console.log('x'); S(1); }",
    // Prototypes, with inherited properties that are read-only when they are frozen.
    "function () { Object.prototype.x = 1; S(({}).x); }",
    "function () { var o = {}; o.toString = function () { return 'mine'; }; S('' + o); }",
    "function () { var e = new Error('m'); e.name = 'Mine'; throw e; }",
    "function () { var e = new Error('m'); e.message = 'other'; throw e; }",
    "function () { var o = {}; o.constructor = 1; S(o); }",
    "function (n, o) { var c = {}; for (var k in o) c[k] = o[k]; S(c); }",
    "function () { var c = {}; ['a', 'valueOf', 'constructor'].forEach(function (w) { c[w] = (c[w] || 0) + 1; }); S(c); }",
    "function () { var a = [1]; a.map = function () { return 'mine'; }; S(a.map()); }",
    "function () { Object.setPrototypeOf(Array.prototype, { x: 1 }); S([].x); }",
    "function () { Array.prototype.__proto__ = null; S([].hasOwnProperty === undefined); }",
    "function () { Error.prepareStackTrace = function () { return 'mine'; }; S(new Error('x').stack); }",
    "function () { Object.getPrototypeOf(TypeError).stackTraceLimit = 0; S(new TypeError('x').stack); }",
    "function () { S(TypeError.stackTraceLimit); }",
    "function () { S('' + Object.getPrototypeOf(TypeError).prepareStackTrace); }",
    "function () { Error.captureStackTrace(Math); S(typeof Math.stack); }",
    // What tells that something is frozen.
    "function () { S([Object.isFrozen(Math), Object.isSealed(Array.prototype), Object.isExtensible(JSON)]); }",
    "function () { S(Object['is' + 'Frozen'](Math)); }",
    "function () { S(Object.getOwnPropertyDescriptor(Math, 'max').writable); }",
    "function () { S(Object.getOwnPropertyDescriptors(Math).max.writable); }",
    "function () { S(typeof Object.prototype.__lookupGetter__.call(Object, 'isFrozen')); }",
    "function () { S(Reflect.set(Math, 'x', 1) + ' ' + Math.x); }",
    "function () { S(new Proxy(Math, { get: function () { return 5; } }).max); }",
    "function () { new Proxy(Math, { set: function () { return true; } }).x = 1; S(Math.x === undefined); }",
    "function () { S(Object.keys(new Proxy(Array.prototype, { ownKeys: function () { return []; } }))); }",
    "function () { Object.freeze(Math); Math.x = 1; S(typeof Math.x); }",
    // Strict code.
    "function () { S((function () { return this === undefined; })()); }",
    "function (n) { n = 5; S(arguments[0]); }",
    "function () { S(typeof arguments.callee); }",
    "function () { { function inner() {} } S(typeof inner); }",
    "function () { var brace = '}'; { function inner() {} } S(typeof inner); }",
    "function f() { S(g()); } function g() { return 1; } if (true) { function g() { return 2; } }",
    "function () { var inner = 1; if (inner) { function inner() {} } S(typeof inner); }",
    "function () { S(010); }",
    "function () { with ({ x: 1 }) { S(x); } }",
    "function () { var o = Object.freeze({ a: 1 }); o.a = 2; S(o); }",
    "function () { 'text'.length = 1; (5).x = 1; S(1); }",
    "function () { var f = function g() { g = 1; return typeof g; }; S(f()); }",
    "function () { var f = function () { return f.caller; }; S(f()); }",
    "function () { S(delete Object.prototype); }",
    "function () { eval('var y = 1'); S(typeof y); }",
    // Errors that code hides.
    "function () { try { Math.max = 1; } finally { return S(Math.max); } }",
    "function () { Promise.resolve().then(function () { x = 1; S(x); }).catch(function () { S('no'); }); }",
    "async function () { try { await 1; x = 1; S(x); } catch (e) { S('no'); } }",
    "function () { Array['from' + 'Async']([1])['th' + 'en'](function (a) { x = a; S(x); }, 1); }",
    "function () { import('x'); S(1); }",
    "function () { queueMicrotask(function () { S('later'); }); }",
    "function () { queueMicrotask(function () { throw new Error('later'); }); }",
    "function () { globalThis['queue' + 'Microtask'](function () { x = 1; S(x); }); }",
    "function () { var i = {}; i[Symbol.iterator] = function () { return { next: function () { return {}; }, \
        return: function () { x = 1; console.log(x); return {}; } }; }; for (var v of i) { break; } S(x); }",
    "function () { var e = new Error(418, 'first'); var i = { next: function () { return { value: 1 }; }, \
        return: function () { x = 1; e.number = 419; return {}; } }; i[Symbol.iterator] = function () { return i; }; \
        for (var v of i) { throw e; } }",
    "function () { var o = { m() { return super.toString(); } }; var m = o.m; S(m()); }",
    "function () { var q = { of: 8 }, r = q?. of / 2; try { x = 1; S('own'); } catch (e) { S('no'); } var z = 1 / 2; }",
    "function () { { function\u{feff}inner() {} } S(typeof inner); }",
    // State of the language that is no property.
    "function () { var f = (x) => x; var o = f`a`; S(Object.isFrozen(o)); }",
    "function () { var r = /a/g; r.test('aa'); S(r.lastIndex); }",
    "function () { S(Symbol.keyFor(Symbol.for('mine'))); }",
    "function () { S([Math.random(), Math.random(), Date.now(), new Date().toISOString()]); }",
    "function () { class A { static n = 0; } A.n++; S(A.n); }",
    "function () { var m = new WeakMap(); var had = m.has(Math); m.set(Math, 1); S(had); }",
    "function () { globalThis['Weak' + 'Ref'].n = 1; S(WeakRef.n); }",
    "(function () { var n = 0; return function () { n++; S(n); }; })()",
    "function () { function* g() { yield 1; } var p = Object.getPrototypeOf(g); p.x = (p.x || 0) + 1; S(p.x); }",
    // The API.
    "function () { __.x = (__.x || 0) + 1; S(__.x); }",
    "function () { var c = __.chain(); c.x = 1; var p = Object.getPrototypeOf(c); p.x = (p.x || 0) + 1; S(p.x); }",
    "function () { Object.getPrototypeOf(__.chain()).filter = 1; S(1); }",
    "function () { __.filter(function (d) { seen = d.id; return true; }, function (e, f) { S(seen + f.length); }); }",
    "function () { __.readDocument(__.getAltLink() + '/docs/first', function (e, d) { d.toString = 1; S(d); }); }",
    "function () { __.createDocument(__.getSelfLink(), { id: 'a' }, function () { y = 1; S(y); }); }",
    "function () { __.createDocument(__.getSelfLink(), { id: 'first' }, function (e) { e.name = 'Mine'; throw e; }); }",
    "function () { __.createDocument(__.getSelfLink(), { id: 'first' }); }",
    "function () { console.log(typeof x); x = 1; console.log(x); S(x); }",
    "function () { console.log(1); getContext().abort(new TypeError('stop')); }",
    "function () { null.x; }",
    "function () { x; }",
    "function () { throw null; }",
    "function () { throw { name: 'TypeError', message: 'mine' }; }",
    "function () { throw { message: 'm', get number() { x = 412; return x; } }; }",
    "function () { throw { toString: function () { x = 'mine'; return x; } }; }",
    "function () { var e = new Error('m'); Object.defineProperty(e, 'stack', { get: function () { x = 's'; return x; } }); \
        throw e; }",
    "function () { throw Object.create(null); }",
    "function () { var f = function () { f(); }; f(); }",
    "function () { S(1n); }",
    "function () { var a = []; a.push(a); S(a); }",
];

#[tokio::test]
async fn calls_end_as_if_each_had_a_runtime_of_its_own() {
    let workers = workers();
    for source in NOTICING {
        let source = source.replace("S(", "getContext().getResponse().setBody(");
        let shared = call(&source, &json!([1, { "a": 1, "toString": 2, "constructor": 3 }]));
        let alone = Call { needs_own_runtime: true, ..shared.clone() };
        let expected = outcome(&workers, &alone).await;
        for number in 0..CALLS {
            assert_eq!(outcome(&workers, &shared).await, expected, "call {number} of {source}");
        }
        assert_eq!(outcome(&workers, &alone).await, expected, "{source}");
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
