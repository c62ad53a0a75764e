//! The pool: turns, waiting, kills, and workers that go away.

use crate::fixture::{CALLER, Documents, body, call, limits, program, workers};
use script::{
    CallFault, CallerId, Clock, Function, FunctionBatch, Host, Limits, Operation, Outcome, Replies, Reply,
    ScriptFault, Turn, WorkerProgram, Workers,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A host that says when it is asked, and answers when it is told.
#[derive(Debug, Default, Clone)]
struct Gate {
    asked: Arc<Notify>,
    open: Arc<Notify>,
}

impl Host for Gate {
    type Fault = ();

    async fn operate(&mut self, operations: Vec<Operation>) -> Result<Replies, ()> {
        self.asked.notify_one();
        self.open.notified().await;
        let replies = operations.iter().map(|_| Reply::Done(Outcome::default())).collect();
        Ok(Replies { replies, is_budget_low: false })
    }
}

const ONE_OPERATION: &str = "function () { __.createDocument(__.getSelfLink(), {}); }";

#[tokio::test]
async fn calls_beyond_the_bounds_are_refused() {
    let workers = Workers::new(
        program(),
        Limits { busy_max: 1, waiting_max: 1, wait_max: Duration::from_millis(1), ..limits() },
    );
    let gate = Gate::default();
    let running = tokio::spawn({
        let (workers, mut gate) = (workers.clone(), gate.clone());
        async move { workers.run(CALLER, &call(ONE_OPERATION, &json!([])), &mut gate).await }
    });
    gate.asked.notified().await;
    // Its wait ends, since the first call does not.
    let waited = workers.run(CALLER, &call("function () {}", &json!([])), &mut Documents::default()).await;
    assert_eq!(waited, Err(CallFault::Script(ScriptFault::Busy)));
    let none = Workers::new(program(), Limits { waiting_max: 0, busy_max: 1, ..limits() });
    let other = Gate::default();
    let second = tokio::spawn({
        let (none, mut other) = (none.clone(), other.clone());
        async move { none.run(CALLER, &call(ONE_OPERATION, &json!([])), &mut other).await }
    });
    other.asked.notified().await;
    assert_eq!(none.check(CALLER, "function () {}").await, Err(ScriptFault::Busy));
    gate.open.notify_one();
    other.open.notify_one();
    assert!(running.await.unwrap().is_ok());
    assert!(second.await.unwrap().is_ok());
    workers.run(CALLER, &call("function () {}", &json!([])), &mut Documents::default()).await.unwrap();
}

#[tokio::test]
async fn slow_scripts_do_not_hold_up_all_others() {
    // Longer than a call waits for an extra turn.
    let wait_max = script::EXTRA_AFTER * 3;
    let workers = Workers::new(program(), Limits { busy_max: 1, wait_max, ..limits() });
    let other = CallerId(2);
    let quick = async |caller| {
        workers.run(caller, &call("function () {}", &json!([])), &mut Documents::default()).await
    };
    let mut running = Vec::new();
    // One caller gets the usual turn and all extra turns but one, which is left to others.
    for caller in [vec![CALLER; script::EXTRA_TURNS], vec![other]].concat() {
        assert!(quick(other).await.is_ok(), "{} slow scripts", running.len());
        let gate = Gate::default();
        let (pool, mut host) = (workers.clone(), gate.clone());
        let slow =
            tokio::spawn(async move { pool.run(caller, &call(ONE_OPERATION, &json!([])), &mut host).await });
        gate.asked.notified().await;
        running.push((slow, gate));
        let is_last_of_one = running.len() == script::EXTRA_TURNS;
        if is_last_of_one {
            assert_eq!(quick(CALLER).await, Err(CallFault::Script(ScriptFault::Busy)));
        }
    }
    let beyond = quick(CallerId(3)).await;
    assert_eq!(beyond, Err(CallFault::Script(ScriptFault::Busy)), "extra turns have a bound");
    for (slow, gate) in running {
        gate.open.notify_one();
        assert!(slow.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn functions_within_an_operation_use_the_turn_of_the_script() {
    let workers = Workers::new(program(), Limits { busy_max: 1, waiting_max: 0, ..limits() });
    let gate = Gate::default();
    let running = tokio::spawn({
        let (workers, mut gate) = (workers.clone(), gate.clone());
        async move { workers.run(CALLER, &call(ONE_OPERATION, &json!([])), &mut gate).await }
    });
    gate.asked.notified().await;
    let function = Function { name: "f".to_owned(), source: Arc::from("function () { return 1; }") };
    let mut batch = FunctionBatch::new(vec![function], Clock::Fixed { at_ms: 0 }, 0);
    batch.push(0, std::iter::empty());
    assert_eq!(workers.evaluate(&batch, Turn::Own(CALLER)).await.into_result(), Err(ScriptFault::Busy));
    let evaluated = workers.evaluate(&batch, Turn::OfScript).await.into_result();
    assert_eq!(evaluated, Ok(vec![Some(value::Value::Int64(1))]));
    gate.open.notify_one();
    assert!(running.await.unwrap().is_ok());
}

#[tokio::test]
async fn many_calls_share_few_workers() {
    let workers = Workers::new(program(), Limits { busy_max: 2, ..limits() });
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..100 {
        let workers = workers.clone();
        calls.spawn(async move {
            let source = "function (n) { getContext().getResponse().setBody(n); }";
            let finished =
                workers.run(CALLER, &call(source, &json!([n])), &mut Documents::default()).await.unwrap();
            assert_eq!(body(&finished), json!(n));
        });
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
    assert!((1..=2 + script::EXTRA_TURNS).contains(&workers.idle_count()));
}

#[tokio::test]
async fn a_host_that_does_not_answer_ends_with_the_time_of_the_script() {
    let workers = Workers::new(program(), Limits { time: Duration::from_millis(200), ..limits() });
    let ended = workers.run(CALLER, &call(ONE_OPERATION, &json!([])), &mut Gate::default()).await;
    let budget = Duration::from_millis(200);
    assert_eq!(ended, Err(CallFault::Script(ScriptFault::TimeExceeded { budget })));
    assert_eq!(workers.idle_count(), 1, "the worker was told to stop and goes on");
    assert_eq!(workers.check(CALLER, "function () {}").await, Ok(()));
}

#[tokio::test]
async fn a_call_that_is_given_up_costs_its_worker_only() {
    let workers = workers();
    let gate = Gate::default();
    let running = tokio::spawn({
        let (workers, mut gate) = (workers.clone(), gate.clone());
        async move { workers.run(CALLER, &call(ONE_OPERATION, &json!([])), &mut gate).await }
    });
    gate.asked.notified().await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(workers.idle_count(), 0);
    assert_eq!(workers.check(CALLER, "function () {}").await, Ok(()));
}

/// The processes of the workers of this memory limit, which no other test has.
#[cfg(target_os = "linux")]
fn worker_processes(memory_bytes: u64) -> Vec<i32> {
    let argument = memory_bytes.to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id: &i32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    })
    .collect()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_check_whose_worker_was_killed_gets_another_one() {
    let memory_bytes = (64 << 20) + 11;
    let workers = Workers::new(program(), Limits { memory_bytes, busy_max: 1, ..limits() });
    workers.check(CALLER, "function () {}").await.unwrap();
    for id in worker_processes(memory_bytes) {
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    }
    assert_eq!(workers.check(CALLER, "function () {}").await, Ok(()));
}

#[tokio::test]
async fn idle_workers_end() {
    let workers = Workers::new(program(), Limits { idle: Duration::from_millis(20), ..limits() });
    workers.check(CALLER, "function () {}").await.unwrap();
    // A generous bound: the test waits for the event, not for the time.
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        while workers.idle_count() > 0 {
            tokio::task::yield_now().await;
        }
    });
    ended.await.unwrap();
    workers.check(CALLER, "function () {}").await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_reported() {
    for path in ["/nowhere/at/all", "/bin/true", "/bin/echo"] {
        let workers = Workers::new(WorkerProgram { path: path.into(), arguments: Vec::new() }, limits());
        let refused = workers.check(CALLER, "function () {}").await;
        assert!(matches!(refused, Err(ScriptFault::Unavailable { .. })), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn calls_are_counted() {
    let workers = workers();
    workers.check(CALLER, "function () {}").await.unwrap();
    workers.check(CALLER, "no function").await.unwrap_err();
    let mut registry = prometheus_client::registry::Registry::default();
    workers.register_metrics(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "script_calls_total{result=\"finished\"} 1",
        "script_calls_total{result=\"failed\"} 1",
        "script_call_seconds_count 2",
        "script_calls_waiting 0",
        "script_workers_started_total 1",
        "script_workers_killed_total 0",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
