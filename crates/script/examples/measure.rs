//! Measures calls of scripts without the rest of the server.
//!
//! `cargo build --release -p perihelion-script --bins --example measure && target/release/examples/measure [ONLY]`

use bytes::Bytes;
use script::{
    Call, CallerId, Clock, Function, FunctionBatch, Host, Limits, Links, Operation, Outcome, Quota, Replies,
    Reply, Role, Turn, WorkerProgram, Workers,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use value::{Value, ValueRef};

/// Replies to every operation with the same document.
struct Echo;

impl Host for Echo {
    type Fault = ();

    async fn operate(&mut self, operations: Vec<Operation>) -> Result<Replies, ()> {
        let done =
            Outcome { body: Some(Bytes::from_static(br#"{"id":"1","value":2}"#)), ..Outcome::default() };
        let replies = operations.iter().map(|_| Reply::Done(done.clone())).collect();
        Ok(Replies { replies, is_budget_low: false })
    }
}

const CALLER: CallerId = CallerId(1);

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() {
    let folder = std::env::current_exe().expect("the example has a path");
    let path = folder.parent().and_then(|folder| folder.parent()).expect("examples are in a folder");
    let program = WorkerProgram { path: path.join("script-test-worker"), arguments: Vec::new() };
    let workers = Workers::new(program, Limits::for_cores(2));

    let started = Instant::now();
    run(&workers, &call("function () {}")).await;
    println!("first call            {:?}", started.elapsed());
    sample("empty call", &workers, &call("function () {}"), Duration::ZERO).await;
    sample("empty call, 300 µs apart", &workers, &call("function () {}"), Duration::from_micros(300)).await;
    let five = "function () { var c = getContext().getCollection(), l = c.getSelfLink(); \
        for (var i = 0; i < 5; i++) c.createDocument(l, { id: 'a' + i, value: i }, function (e) { if (e) throw e; }); \
        getContext().getResponse().setBody(5); }";
    sample("5 operations, 1 message", &workers, &call(five), Duration::ZERO).await;
    let chained = "function () { var c = getContext().getCollection(), l = c.getSelfLink(); \
        function next(i) { if (i === 5) return getContext().getResponse().setBody(5); \
        c.createDocument(l, { id: 'a' + i, value: i }, function (e) { if (e) throw e; next(i + 1); }); } next(0); }";
    sample("5 operations, 5 messages", &workers, &call(chained), Duration::ZERO).await;
    for (name, source) in [
        ("number", "function (a) { return a * 2; }"),
        ("2 arguments", "function (a, b) { return b + a > 5; }"),
        ("text", "function (a, b) { return b.length > a; }"),
    ] {
        functions(name, &workers, source).await;
    }
    show_resident("after these");
    let greedy = "function () { var a = []; try { while (true) a.push(new Array(1000).fill(1)); } catch (e) { a = 0; } }";
    run(&workers, &call(greedy)).await;
    show_resident("after all memory was used");
}

#[allow(clippy::print_stdout)]
fn show_resident(when: &str) {
    for (process, resident) in workers_resident() {
        println!("worker {process} {when}: {resident}");
    }
}

/// Processor time that the worker has used.
fn processor_time() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let Some((process, _)) = workers_resident().pop() else { return Duration::ZERO };
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<u32>().ok()).unwrap_or(0);
    TICK * (ticks(13) + ticks(14))
}

/// Resident memory of the child processes.
fn workers_resident() -> Vec<(String, String)> {
    let own = format!("PPid:\t{}", std::process::id());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let status =
        |folder: &std::path::Path| std::fs::read_to_string(folder.join("status")).unwrap_or_default();
    processes
        .map(|process| (process.file_name().to_string_lossy().into_owned(), status(&process.path())))
        .filter(|(_, status)| status.lines().any(|line| line == own))
        .map(|(name, status)| {
            let resident =
                status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
            (name, resident.collect::<Vec<_>>().join(" "))
        })
        .collect()
}

fn call(source: &str) -> Call {
    Call {
        name: "measured".to_owned(),
        source: Arc::from(source),
        role: Role::Procedure { parameters: Bytes::from_static(b"[]") },
        links: Links { self_link: "a/b/c/d/".to_owned(), alt_link: "a/e/c/f".to_owned() },
        clock: Clock::Running { start_ms: 1_700_000_000_000 },
        seed: 1,
        logs: false,
        quota: Quota::default(),
        needs_own_runtime: false,
    }
}

async fn run(workers: &Workers, call: &Call) {
    workers.run(CALLER, call, &mut Echo).await.expect("the script ends");
}

#[allow(clippy::print_stdout)]
async fn sample(name: &str, workers: &Workers, call: &Call, gap: Duration) {
    const CALLS: usize = 3000;
    if std::env::args().nth(1).is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let mut times = Vec::with_capacity(CALLS);
    let used = processor_time();
    for _ in 0..CALLS {
        if !gap.is_zero() {
            let until = Instant::now() + gap;
            while Instant::now() < until {
                tokio::task::yield_now().await;
            }
        }
        let started = Instant::now();
        run(workers, call).await;
        times.push(started.elapsed());
    }
    times.sort();
    let used = processor_time().saturating_sub(used) / u32::try_from(CALLS).unwrap_or(1);
    let (p50, p99) = (times[CALLS / 2], times[CALLS * 99 / 100]);
    println!("{name:26} p50 {p50:?}  p99 {p99:?}  processor time of the worker {used:?}");
}

#[allow(clippy::print_stdout)]
async fn functions(name: &str, workers: &Workers, source: &str) {
    const ROWS: usize = 100_000;
    const BATCH: usize = 1000;
    let text = Value::String("some text of a document".to_owned());
    let started = Instant::now();
    for batch in 0..ROWS / BATCH {
        let function = Function { name: "f".to_owned(), source: Arc::from(source) };
        let clock = Clock::Fixed { at_ms: 0 };
        let mut calls = FunctionBatch::new(vec![function], clock, 1);
        for row in 0..BATCH {
            let number = Value::Int64(i64::try_from(batch + row).unwrap_or(0));
            let second = if name == "text" { &text } else { &number };
            let arguments = [Some(ValueRef::from(&number)), Some(ValueRef::from(second))];
            calls.push(0, arguments.into_iter());
        }
        let results = workers.evaluate(&calls, Turn::Own(CALLER)).await.into_result();
        let results = results.expect("the functions return");
        assert_eq!(results.len(), BATCH);
    }
    #[allow(clippy::cast_precision_loss)]
    let rate = ROWS as f64 / started.elapsed().as_secs_f64();
    println!("functions, {name:15} {rate:.0} rows/s");
}
