//! Batches of calls of user-defined functions.

use crate::fixture::{CALLER, NOW_MS, limits, program, workers};
use script::{Clock, Evaluated, Function, FunctionBatch, Limits, ResultFault, ScriptFault, Turn, Workers};
use std::sync::Arc;
use std::time::Duration;
use value::{Value, ValueRef};

fn batch(functions: &[(&str, &str)]) -> FunctionBatch {
    let functions = functions
        .iter()
        .map(|(name, source)| Function { name: (*name).to_owned(), source: Arc::from(*source) })
        .collect();
    FunctionBatch::new(functions, Clock::Fixed { at_ms: NOW_MS }, 1)
}

fn push(batch: &mut FunctionBatch, function: u16, arguments: &[Option<Value>]) {
    batch.push(function, arguments.iter().map(|argument| argument.as_ref().map(ValueRef::from)));
}

/// Calls one function once.
async fn one(source: &str, arguments: &[Option<Value>]) -> Result<Option<Value>, ScriptFault> {
    let mut batch = batch(&[("f", source)]);
    push(&mut batch, 0, arguments);
    let mut results = workers().evaluate(&batch, Turn::Own(CALLER)).await.into_result()?;
    assert_eq!(results.len(), 1);
    Ok(results.remove(0))
}

/// Calls one function for a number of rows; on a busy machine that takes several batches.
async fn all(
    workers: &Workers,
    source: &str,
    arguments: &[Option<Value>],
    rows: usize,
) -> Result<Vec<Option<Value>>, ScriptFault> {
    let mut results = Vec::new();
    while results.len() < rows {
        let mut calls = batch(&[("f", source)]);
        (results.len()..rows).for_each(|_| push(&mut calls, 0, arguments));
        let more = workers.evaluate(&calls, Turn::Own(CALLER)).await.into_result()?;
        assert!(!more.is_empty(), "{source}");
        results.extend(more);
    }
    Ok(results)
}

fn json(text: &str) -> Option<Value> {
    Some(Value::from_json(text.as_bytes()).unwrap())
}

#[tokio::test]
async fn values_pass_unchanged() {
    let same = "function (value) { return value; }";
    for value in [
        None,
        Some(Value::Null),
        Some(Value::Bool(true)),
        Some(Value::Bool(false)),
        Some(Value::Int64(0)),
        Some(Value::Int64(-2_147_483_648)),
        Some(Value::Int64(2_147_483_648)),
        Some(Value::Int64(-9_007_199_254_740_991)),
        Some(Value::Double(0.1)),
        Some(Value::Double(-0.0)),
        Some(Value::Double(1e300)),
        Some(Value::String(String::new())),
        Some(Value::String("ä€😀\0\"".to_owned())),
        json("[]"),
        json(r#"{"a":[1,2.5,{"b":null}],"ü":"x"}"#),
    ] {
        assert_eq!(one(same, std::slice::from_ref(&value)).await.unwrap(), value);
    }
}

#[tokio::test]
async fn results_are_json_values() {
    for (source, expected) in [
        ("function () { return NaN; }", Some(Value::Null)),
        ("function () { return 1 / 0; }", Some(Value::Null)),
        ("function () { return 3.0; }", Some(Value::Int64(3))),
        ("function () {}", None),
        ("function () { return function () {}; }", None),
        ("function () { return { toJSON: function () { return [1]; } }; }", json("[1]")),
        ("function () { return '\\ud800'; }", Some(Value::String("\u{fffd}".to_owned()))),
        (
            "function () { return { '\\udc00': ['\\ud800', '\\ud83d\\ude00', '\\\\ud800'] }; }",
            json(r#"{"\ufffd":["\ufffd","\ud83d\ude00","\\ud800"]}"#),
        ),
        ("function () { return [typeof JSON.rawJSON]; }", json(r#"["undefined"]"#)),
        (
            "function () { return typeof getContext + typeof __; }",
            Some(Value::String("undefinedundefined".to_owned())),
        ),
        ("function () { return Date.now(); }", Some(Value::Int64(i64::try_from(NOW_MS).unwrap()))),
        (
            "function () { return [typeof SharedArrayBuffer, new Error(5, 'x').number]; }",
            json(r#"["undefined",5]"#),
        ),
    ] {
        assert_eq!(one(source, &[]).await.unwrap(), expected, "{source}");
    }
}

#[tokio::test]
async fn rows_name_their_function() {
    let mut batch = batch(&[
        ("double", "function (n) { return n * 2; }"),
        ("greet", "function (a, b) { return a + ' ' + b; }"),
    ]);
    for n in 0..1000 {
        push(&mut batch, 0, &[Some(Value::Int64(n))]);
        push(&mut batch, 1, &[Some(Value::String("hello".to_owned())), Some(Value::Int64(n))]);
    }
    assert_eq!(batch.len(), 2000);
    assert!(!batch.is_empty() && batch.size_bytes() > 2000);
    let results = workers().evaluate(&batch, Turn::Own(CALLER)).await.into_result().unwrap();
    for n in 0..1000_usize {
        assert_eq!(results[2 * n], Some(Value::Int64(2 * i64::try_from(n).unwrap())));
        assert_eq!(results[2 * n + 1], Some(Value::String(format!("hello {n}"))));
    }
}

#[tokio::test]
async fn errors_name_the_function_and_the_line() {
    let mut calls =
        batch(&[("good", "function () { return 1; }"), ("bad", "function (x) {\n  return x.y.z;\n}")]);
    push(&mut calls, 0, &[]);
    push(&mut calls, 1, &[json("{}")]);
    let Err(ScriptFault::Thrown(error)) = workers().evaluate(&calls, Turn::Own(CALLER)).await.into_result()
    else {
        panic!()
    };
    assert_eq!(error.function.as_deref(), Some("bad"));
    assert!(error.text.starts_with("TypeError: "), "{}", error.text);
    assert!(error.stack.contains("bad:2:"), "{}", error.stack);
    let mut calls = batch(&[("broken", "function (x) {\n  return x +;\n}")]);
    push(&mut calls, 0, &[]);
    let Err(ScriptFault::Syntax(fault)) = workers().evaluate(&calls, Turn::Own(CALLER)).await.into_result()
    else {
        panic!()
    };
    assert_eq!(fault.line, 2);
    assert!(fault.message.starts_with("broken: "), "{}", fault.message);
}

/// Also in a batch with so many rows that they share a runtime.
#[tokio::test]
async fn errors_of_nested_functions_have_a_stack() {
    let nested = "function outer(n) {\n  return [n].map(function (n) {\n    return inner(n);\n  });\n  \
        function inner(n) {\n    if (n === 17) throw new Error(409, 'no ' + n);\n    return n;\n  }\n}";
    for numbers in [17..18, 0..40] {
        let mut calls = batch(&[("nested.js", nested)]);
        numbers.for_each(|n| push(&mut calls, 0, &[Some(Value::Int64(n))]));
        let Err(ScriptFault::Thrown(error)) =
            workers().evaluate(&calls, Turn::Own(CALLER)).await.into_result()
        else {
            panic!()
        };
        assert_eq!((error.number, error.text.as_str()), (Some(409), "Error: no 17"));
        let frames: Vec<&str> = error.stack.lines().map(str::trim).collect();
        let expected = ["at inner (nested.js:6:", "at <anonymous> (nested.js:3:", "at outer (nested.js:2:"];
        assert_eq!(frames.len(), expected.len(), "{frames:?}");
        assert!(frames.iter().zip(expected).all(|(line, frame)| line.starts_with(frame)), "{frames:?}");
    }
}

/// What one call has left counts for no other: here a cycle that the engine has not searched for yet.
#[tokio::test]
async fn each_call_has_all_of_the_memory() {
    let half = "function () {
        var kept = {};
        kept.itself = kept;
        kept.bytes = new Uint8Array(30000000);
        for (var i = 0; i < 10; i += 1) { var small = {}; small.own = []; }
        return kept.bytes.length;
    }";
    for rows in [1, 20] {
        let results = all(&workers(), half, &[], rows).await.unwrap();
        assert_eq!(results, vec![Some(Value::Int64(30_000_000)); rows]);
    }
}

#[tokio::test]
async fn results_have_limits() {
    let deep = "function (n) { var v = []; for (var i = 1; i < n; i++) v = [v]; return v; }";
    assert!(one(deep, &[Some(Value::Int64(128))]).await.is_ok());
    let refused = one(deep, &[Some(Value::Int64(129))]).await;
    assert_eq!(refused, Err(ScriptFault::Result(ResultFault::TooDeep { depth_max: 128 })));
    let large = one("function (n) { return ['x'.repeat(n)]; }", &[Some(Value::Int64(5 << 20))]).await;
    assert!(matches!(large, Err(ScriptFault::Result(ResultFault::TooLarge { .. }))), "{large:?}");
    for source in ["function () { var a = {}; a.a = a; return a; }", "function () { return { n: 1n }; }"] {
        assert!(matches!(one(source, &[]).await, Err(ScriptFault::Thrown(_))), "{source}");
    }
}

/// Functions that find what an earlier row has left.
const LEAKS: [&str; 14] = [
    "function () { globalThis.n = (globalThis.n || 0) + 1; return globalThis.n; }",
    "function () { if (typeof n === 'undefined') n = 0; n += 1; return n; }",
    "function () { this.n = (this.n || 0) + 1; return this.n; }",
    "function f() { f.n = (f.n || 0) + 1; return f.n; }",
    "var n = 0; function f() { n += 1; return n; }",
    "function () { Array.prototype.n = ([].n || 0) + 1; return [].n; }",
    "function () { var p = (function* () {})().__proto__.__proto__; p.n = (p.n || 0) + 1; return p.n; }",
    "function () { var g = [].constructor.constructor('return this')(); g.n = (g.n || 0) + 1; return g.n; }",
    "function () { $script.n = ($script.n || 0) + 1; return $script.n; }",
    "function () { var p = Object.getPrototypeOf(''.matchAll(/x/g)); p.n = (p.n || 0) + 1; return p.n; }",
    "function () { Math.n = (Math.n || 0) + 1; return Math.n; }",
    "function () { try { Math.n = (Math.n || 0) + 1; } catch (e) { return 1; } return Math.n; }",
    "function () { Object.defineProperty(globalThis, 'n', { value: (globalThis.n || 0) + 1 }); return n; }",
    "function (a) { arguments[0] = 1; if (!Date.n) Date.n = 0; Date.n += a; return Date.n; }",
];

#[tokio::test]
async fn rows_do_not_see_each_other() {
    let workers = workers();
    for source in LEAKS {
        let expected = if source.contains("$script") { None } else { Some(Value::Int64(1)) };
        // The runtime of a large batch is kept for the next one; few calls get none.
        for count in [3, 12, 12, 3] {
            let mut calls = batch(&[("leak", source)]);
            for _ in 0..count {
                push(&mut calls, 0, &[Some(Value::Int64(5))]);
            }
            let results = workers.evaluate(&calls, Turn::Own(CALLER)).await.into_result();
            match &expected {
                Some(_) => assert_eq!(results, Ok(vec![expected.clone(); count]), "{source}"),
                None => assert!(matches!(results, Err(ScriptFault::Thrown(_))), "{source}: {results:?}"),
            }
        }
    }
}

#[tokio::test]
async fn an_error_hook_does_not_outlive_its_row() {
    let workers = workers();
    let hook = "function (n) {
        var native = Object.getPrototypeOf(TypeError);
        if (n === 0) native.prepareStackTrace = function () { return 'hooked'; };
        try { null.x; } catch (e) { return String(e.stack).indexOf('hooked'); } }";
    let mut calls = batch(&[("hook", hook)]);
    for n in 0..12 {
        push(&mut calls, 0, &[Some(Value::Int64(n))]);
    }
    let results = workers.evaluate(&calls, Turn::Own(CALLER)).await.into_result().unwrap();
    assert_eq!(results[1..], vec![Some(Value::Int64(-1)); 11]);
}

#[tokio::test]
async fn functions_run_as_they_are_written() {
    for (source, expected) in [
        // Strict code would throw or do something else.
        ("function () { sum = 0; for (i = 0; i < 4; i++) sum += i; return sum; }", json("6")),
        (
            "function () { var o = {}; o.toString = function () { return 'own'; }; return String(o); }",
            json("\"own\""),
        ),
        ("function (a) { arguments[0] = 2; return a; }", json("2")),
        ("function () { return 010; }", json("8")),
        ("function () { 'text'.x = 1; return 1; }", json("1")),
        ("function () { { function inner() { return 3; } } return inner(); }", json("3")),
        (
            "function f() { return g(); } function g() { return 1; } if (true) { function g() { return 2; } }",
            json("2"),
        ),
        (
            "function () { String.prototype.shout = function () { return this + '!'; }; return 'a'.shout(); }",
            json("\"a!\""),
        ),
        ("function () { var e = new Error('x'); e.name = 'Mine'; return String(e); }", json("\"Mine: x\"")),
    ] {
        assert_eq!(one(source, &[Some(Value::Int64(1))]).await.unwrap(), expected, "{source}");
        let results = all(&workers(), source, &[Some(Value::Int64(1))], 12).await.unwrap();
        assert_eq!(results, vec![expected; 12], "{source}");
    }
}

/// Results do not depend on how many rows there are, nor on the queries before.
#[tokio::test]
async fn many_calls_have_the_results_of_single_ones() {
    let workers = workers();
    for source in [
        "function (x) { var root = this; return root ? x : -x; }",
        "function (x) { return typeof this; }",
        "function (x) { return [1].map(function () { return this ? 1 : 0; })[0]; }",
        "function (x) { { function f() { return 1; } } return typeof f; }",
        "function (x) { try { zz = x; return 'ok'; } catch (e) { return e.name; } }",
        "function (x) { try { Array.prototype.zz = x; return 'ok'; } catch (e) { return e.name; } }",
        "function (x) { eval('var y = 1'); return typeof y; }",
        "function (x) { var o = Object.freeze({ a: 1 }); try { o.a = 2; } catch (e) { return 'threw'; } return o.a; }",
        "function (x) { var text = 'a'; try { text.foo = 1; } catch (e) { return 'threw'; } return text; }",
        "function (x) { var o = {}; try { o.toString = function () { return 'T'; }; return '' + o; } catch (e) { return null; } }",
        "function (x) { var o = {}; o.toString = function () { return 'T'; }; return '' + o; }",
        "function f(x) { try { return typeof f.caller; } catch (e) { return 'threw'; } }",
        "function (x) { return Reflect.set(globalThis, 'zz', 1); }",
        "function (x) { try { zz = x; } finally { return 'finally'; } }",
        "function g(x) { return f(x); } function f(x) { yy = x; return typeof yy; }",
        "function (x) { if (typeof count === 'undefined') count = 0; count++; return count; }",
        "function (x) { return [].constructor.constructor('return typeof this')(); }",
    ] {
        let mut results = Vec::new();
        for count in [1, 60, 1] {
            results.extend(all(&workers, source, &[Some(Value::Int64(7))], count).await.unwrap());
        }
        assert!(results.iter().all(|result| *result == results[0]), "{source}: {results:?}");
    }
}

/// Waits in JavaScript, which takes the time of the call.
const WAIT: &str = "function wait(ms) { const end = Date.now() + ms; while (Date.now() < end) {} }";

fn with_time(time: Duration) -> Workers {
    Workers::new(program(), Limits { time, ..limits() })
}

fn numbers(batch: &mut FunctionBatch, count: i64) -> Vec<Option<Value>> {
    let numbers: Vec<_> = (0..count).map(|n| Some(Value::Int64(n))).collect();
    numbers.iter().for_each(|number| push(batch, 0, std::slice::from_ref(number)));
    numbers
}

fn running(source: &str) -> FunctionBatch {
    let functions = vec![Function { name: "f".to_owned(), source: Arc::from(source) }];
    FunctionBatch::new(functions, Clock::Running { start_ms: NOW_MS }, 1)
}

/// Calls a function with the numbers from 0, in as many parts as its results come in.
async fn evaluate_numbers(workers: &Workers, source: &str, count: i64) -> (Vec<Option<Value>>, usize) {
    let (mut results, mut parts) = (Vec::new(), 0);
    while results.len() < usize::try_from(count).unwrap() {
        let mut batch = running(source);
        let done = i64::try_from(results.len()).unwrap();
        (done..count).for_each(|n| push(&mut batch, 0, &[Some(Value::Int64(n))]));
        let some = workers.evaluate(&batch, Turn::Own(CALLER)).await.into_result().unwrap();
        assert!(!some.is_empty());
        results.extend(some);
        parts += 1;
    }
    (results, parts)
}

/// All rows together take longer than one may.
#[tokio::test]
async fn each_row_has_the_time_of_a_script() {
    let workers = with_time(Duration::from_secs(1));
    for body in ["wait(200); return n;", "wait(200); return this ? n : n;"] {
        for count in [7, 12] {
            let source = format!("function f(n) {{ {body} }} {WAIT}");
            let (results, parts) = evaluate_numbers(&workers, &source, count).await;
            assert_eq!(results, numbers(&mut running(&source), count), "{body}");
            assert!(parts > 1, "who waits for slow functions counts their time");
        }
    }
}

/// What it has used of its time in the shared runtime does not count.
#[tokio::test]
async fn a_row_that_is_called_again_has_all_of_its_time() {
    let workers = with_time(Duration::from_secs(2));
    let source = format!("function f(n) {{ if (n === 4) {{ wait(1200); zz = n; }} return n; }} {WAIT}");
    let (results, _) = evaluate_numbers(&workers, &source, 12).await;
    assert_eq!(results, numbers(&mut running(&source), 12));
}

/// Who waits for large results counts their memory.
#[tokio::test]
async fn large_results_come_in_parts() {
    let source = "function (n) { return 'x'.repeat(1 << 20) + n; }";
    let (results, parts) = evaluate_numbers(&workers(), source, 20).await;
    assert!((4..=20).contains(&parts), "{parts}");
    for (n, result) in results.into_iter().enumerate() {
        let text = result.as_ref().and_then(|value| value.as_ref().as_str().map(str::to_owned)).unwrap();
        assert!(text.len() > 1 << 20 && text.ends_with(&n.to_string()));
    }
    let mut batch = running("function () { return 'x'.repeat((4 << 20) + 1); }");
    numbers(&mut batch, 1);
    let refused = workers().evaluate(&batch, Turn::Own(CALLER)).await.into_result();
    assert!(matches!(refused, Err(ScriptFault::Result(_))), "{refused:?}");
}

#[tokio::test]
async fn the_rows_before_a_fault_have_results() {
    let workers = with_time(Duration::from_secs(1));
    for (work, count) in [("for (;;) {}", 12), ("for (;;) {}", 6), ("throw 'no'", 12), ("throw 'no'", 6)] {
        let mut batch = running(&format!("function (n) {{ if (n === 4) {{ {work} }} return n; }}"));
        let mut expected = numbers(&mut batch, count);
        expected.truncate(4);
        let Evaluated { results, fault } = workers.evaluate(&batch, Turn::Own(CALLER)).await;
        assert_eq!(results, expected, "{work}");
        let is_it = match &fault {
            Some(ScriptFault::TimeExceeded { .. }) => work.starts_with("for"),
            Some(ScriptFault::Thrown(thrown)) => thrown.text == "no",
            _ => false,
        };
        assert!(is_it, "{work}: {fault:?}");
    }
}

/// A second call would take the time of a script again.
#[tokio::test]
async fn an_endless_function_is_called_once() {
    let workers = with_time(Duration::from_millis(300));
    let mut batch = running("function () { for (;;) {} }");
    numbers(&mut batch, 16);
    let evaluated = workers.evaluate(&batch, Turn::Own(CALLER)).await;
    assert!(matches!(evaluated.fault, Some(ScriptFault::TimeExceeded { .. })), "{evaluated:?}");
    let mut registry = prometheus_client::registry::Registry::default();
    workers.register_metrics(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let counts: Vec<&str> = text.lines().filter(|line| line.starts_with("script_calls_total")).collect();
    assert!(counts.contains(&"script_calls_total{result=\"time\"} 1"), "{counts:?}");
    assert!(counts.iter().all(|line| line.ends_with(" 0") || line.contains("time")), "{counts:?}");
}

#[tokio::test]
async fn random_numbers_go_on_in_the_rest_of_a_batch() {
    let mut batch = running(&format!("function f() {{ wait(30); return Math.random(); }} {WAIT}"));
    numbers(&mut batch, 12);
    let results = workers().evaluate(&batch, Turn::Own(CALLER)).await.into_result().unwrap();
    for (index, number) in results.iter().enumerate() {
        assert!(!results[..index].contains(number), "{results:?}");
    }
}
