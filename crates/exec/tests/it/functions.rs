//! User-defined functions in every place of a query, and how often they are called.

use crate::harness::{Harness, query};
use eval::{Context, EvalFault, UserCall, UserCallResult, UserCalls, UserFunctionFault};
use exec::{PendingCalls, UserFunctions};
use std::sync::atomic::{AtomicUsize, Ordering};
use value::Value;

/// Results of a request of up to [`MANY`] calls: the query has to ask for the rest.
const RESULTS_AT_ONCE: usize = 7;
const MANY: usize = 100;

/// Functions written in Rust; they count how often they are asked.
#[derive(Debug, Default)]
pub(crate) struct TestFunctions {
    pub(crate) requests: AtomicUsize,
    pub(crate) calls: AtomicUsize,
}

impl UserFunctions for TestFunctions {
    fn call<'a>(&'a self, calls: &'a [UserCall]) -> PendingCalls<'a> {
        Box::pin(async move {
            self.requests.fetch_add(1, Ordering::Relaxed);
            let count = if calls.len() > MANY { calls.len() } else { calls.len().min(RESULTS_AT_ONCE) };
            let some = &calls[..count];
            self.calls.fetch_add(some.len(), Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(some.iter().map(call).collect())
        })
    }
}

fn call(UserCall { function, arguments }: &UserCall) -> UserCallResult {
    let first = arguments.first().and_then(Option::as_ref);
    match &function[..] {
        "twice" => Ok(first.and_then(|value| value.as_ref().as_i64()).map(|n| Value::Int64(2 * n))),
        "same" => Ok(first.cloned()),
        "isDefined" => Ok(Some(Value::Bool(first.is_some()))),
        "throw" => Err(UserFunctionFault::Failed { message: "thrown".to_owned(), stack: String::new() }),
        _ => Err(UserFunctionFault::NotFound),
    }
}

/// How often calls of a query in memory may depend on each other.
const ROUNDS_MAX: usize = 50;

/// The result of a query in memory that may call the functions.
pub(crate) fn reference<T>(
    context: Context<'_>,
    run: impl Fn(&Context<'_>) -> Result<T, EvalFault>,
) -> Result<T, EvalFault> {
    let calls = UserCalls::at(context.ambient.now_ms());
    calls.begin(context.budget.holding());
    let context = Context { user_calls: Some(calls), ..context };
    let calls = context.user_calls.as_ref().unwrap();
    for _ in 0..ROUNDS_MAX {
        let result = run(&context);
        if !matches!(result, Err(EvalFault::CallPending)) {
            return result;
        }
        let wanted = calls.take_wanted();
        calls.add_results(wanted.iter().map(call).collect())?;
    }
    Err(EvalFault::CallPending)
}

const DOCUMENTS: [&str; 7] = [
    r#"{"id":"1","n":3,"g":"a","tags":[1,2]}"#,
    r#"{"id":"2","n":1,"g":"b","tags":[5]}"#,
    r#"{"id":"3","n":2,"g":"a","tags":[]}"#,
    r#"{"id":"4","g":null,"tags":[3,3,3]}"#,
    r#"{"id":"5","n":2,"g":"b"}"#,
    r#"{"id":"6","n":"3","g":"a","tags":[1]}"#,
    r#"{"id":"7","n":-1,"g":"c","tags":[2,"x"]}"#,
];

const QUERIES: [&str; 32] = [
    "SELECT * FROM c WHERE udf.twice(c.n) > 2",
    "SELECT VALUE udf.twice(c.n) FROM c",
    "SELECT c.id, udf.twice(c.n) AS a, udf.same(c) AS b FROM c",
    "SELECT VALUE udf.same(c) FROM c WHERE c.n > 0",
    "SELECT VALUE udf.isDefined(c.missing) FROM c",
    "SELECT VALUE udf.twice(udf.twice(udf.twice(c.n))) FROM c",
    "SELECT VALUE c.id FROM c WHERE udf.isDefined(c.n) AND udf.twice(c.n) = 4 AND udf.same(c.g) = 'b'",
    "SELECT VALUE c.id FROM c WHERE c.n > 100 OR udf.twice(c.n) = 6",
    "SELECT VALUE c.id FROM c WHERE c.n = 3 AND udf.twice(c.n) = 6",
    "SELECT VALUE c.n = 3 ? udf.twice(c.n) : c.id FROM c",
    "SELECT VALUE [c.id, udf.twice(t)] FROM c JOIN t IN c.tags WHERE udf.twice(t) > 2",
    "SELECT VALUE ARRAY(SELECT VALUE udf.twice(t) FROM t IN c.tags WHERE udf.twice(t) != 4) FROM c",
    "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE udf.twice(t) = 6)",
    "SELECT VALUE (SELECT VALUE SUM(udf.twice(t)) FROM t IN c.tags) FROM c",
    "SELECT VALUE x FROM c JOIN x IN (SELECT VALUE udf.same(c.tags))",
    "SELECT VALUE COUNT(1) FROM c WHERE udf.same(c.g) = 'a'",
    "SELECT VALUE SUM(udf.twice(c.n)) FROM c",
    "SELECT udf.same(c.g) AS g, COUNT(1) AS k FROM c GROUP BY udf.same(c.g)",
    "SELECT c.g, udf.twice(COUNT(1)) AS k FROM c GROUP BY c.g",
    "SELECT VALUE udf.twice(COUNT(1)) FROM c",
    "SELECT DISTINCT VALUE udf.twice(c.n) FROM c",
    "SELECT DISTINCT VALUE udf.same(c.g) FROM c ORDER BY c.n",
    "SELECT VALUE udf.same(c.id) FROM c ORDER BY c.n",
    "SELECT VALUE udf.same(c.id) FROM c WHERE udf.isDefined(c.tags) ORDER BY c.n DESC",
    "SELECT TOP 2 VALUE udf.twice(c.n) FROM c",
    "SELECT VALUE udf.same(c.id) FROM c OFFSET 2 LIMIT 3",
    "SELECT VALUE udf.twice(s.n) FROM (SELECT c.n FROM c WHERE udf.isDefined(c.n)) AS s WHERE udf.twice(s.n) > 2",
    "SELECT VALUE udf.twice(s.k) FROM (SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g) AS s",
    "SELECT VALUE udf.twice(21)",
    "SELECT VALUE udf.same(c._ts) FROM c WHERE udf.same(c._rid) = c._rid",
    "SELECT VALUE udf.throw(c.n) FROM c WHERE c.n > 100",
    "SELECT VALUE udf.same(GetCurrentTimestamp()) FROM c",
];

#[tokio::test]
async fn functions_are_called_in_every_place_of_a_query() {
    for partitions in [1, 3] {
        let harness = Harness::of(partitions, &DOCUMENTS).await;
        for text in QUERIES {
            let expected = harness.measure(&query(text)).await;
            assert!(expected.is_ok(), "{text}: {expected:?}");
            harness.check(text).await;
        }
    }
}

#[tokio::test]
async fn a_fault_of_a_function_names_it() {
    let harness = Harness::of(2, &DOCUMENTS).await;
    for (text, expected) in [
        ("SELECT VALUE udf.throw(c.n) FROM c", "user function 'throw': thrown"),
        ("SELECT * FROM c WHERE udf.nosuch(c.n)", "user function 'nosuch': not found"),
        ("SELECT VALUE udf.twice(RAND()) FROM c", "RAND cannot be used together with user-defined functions"),
    ] {
        let fault = harness.drain(&query(text), 10).await.unwrap_err();
        assert!(fault.to_string().contains(expected), "{fault}");
    }
}

#[tokio::test]
async fn a_fault_after_the_page_does_not_count() {
    let harness = Harness::of(1, &[r#"{"id":"1","n":1}"#, r#"{"id":"2","n":2}"#]).await;
    let text = "SELECT VALUE c.n = 1 ? 'good' : udf.throw(c.n) FROM c";
    let page = harness.page(&query(text), &harness.parts, 1, None).await.unwrap();
    assert_eq!(page.rows.len(), 1);
}

#[tokio::test]
async fn many_rows_are_one_request() {
    let documents: Vec<String> = (0..1_000).map(|n| format!(r#"{{"id":"{n}","n":{n}}}"#)).collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let harness = Harness::of(1, &documents).await;
    let text = "SELECT VALUE COUNT(1) FROM c WHERE udf.twice(c.n) < 1000 AND udf.twice(c.n) > 8";
    assert_eq!(harness.drain(&query(text), 10).await.unwrap(), ["495"]);
    let (requests, calls) = (&harness.functions.requests, &harness.functions.calls);
    assert_eq!(calls.load(Ordering::Relaxed), 1_000, "equal calls of a row are made once");
    assert!(requests.load(Ordering::Relaxed) <= 4, "{requests:?}");
}
