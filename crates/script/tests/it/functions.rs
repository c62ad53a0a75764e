//! Batches of calls of user-defined functions.

use crate::fixture::{NOW_MS, workers};
use script::{Clock, Function, FunctionBatch, ResultFault, ScriptFault, Turn};
use std::sync::Arc;
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
    let mut results = workers().evaluate(&batch, Turn::Own).await?;
    assert_eq!(results.len(), 1);
    Ok(results.remove(0))
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
    let results = workers().evaluate(&batch, Turn::Own).await.unwrap();
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
    let Err(ScriptFault::Thrown(error)) = workers().evaluate(&calls, Turn::Own).await else { panic!() };
    assert_eq!(error.function.as_deref(), Some("bad"));
    assert!(error.text.starts_with("TypeError: "), "{}", error.text);
    assert!(error.stack.contains("bad:2:"), "{}", error.stack);
    let calls = batch(&[("broken", "function (x) {\n  return x +;\n}")]);
    let Err(ScriptFault::Syntax(fault)) = workers().evaluate(&calls, Turn::Own).await else { panic!() };
    assert_eq!(fault.line, 2);
    assert!(fault.message.starts_with("broken: "), "{}", fault.message);
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

#[tokio::test]
async fn batches_do_not_see_each_other() {
    let workers = workers();
    let count = "function () { globalThis.n = (globalThis.n || 0) + 1; return globalThis.n; }";
    for _ in 0..2 {
        let mut calls = batch(&[("count", count)]);
        push(&mut calls, 0, &[]);
        push(&mut calls, 0, &[]);
        let results = workers.evaluate(&calls, Turn::Own).await.unwrap();
        assert_eq!(results, [Some(Value::Int64(1)), Some(Value::Int64(2))]);
    }
}
