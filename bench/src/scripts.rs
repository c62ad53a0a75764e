//! Server-side JavaScript: procedures over batches, the overhead of a call, functions in queries.

use crate::cases::{WRITERS, fill, measure_once, rate};
use crate::client::Client;
use crate::load::{self, Target, Work};
use crate::process::Server;
use crate::questions::Question;
use crate::report::{Goal, Row};
use crate::signature::Signer;
use crate::{Options, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Documents of a procedure call and of a batch.
pub(crate) const OPERATIONS: usize = 5;
/// Documents that a function is called for.
const DOCUMENTS: usize = 100_000;
/// First number of created documents, and the distance between those of two measurements.
const CREATED_FIRST: usize = 10_000_000;
/// Most time of an empty call, in microseconds, and of the first call, in milliseconds.
const EMPTY_US: f64 = 150.0;
const FIRST_MS: f64 = 60.0;
/// Most memory of a worker in MiB.
const WORKER_MIB: f64 = 15.0;
/// Fewest rows per second of a filter by a function.
const ROWS_PER_SECOND: f64 = 300_000.0;

/// Connections that execute slow procedures on one partition key, beside one that writes there.
const SLOW_CONNECTIONS: usize = 8;
/// The partition key of slow procedures is that of the document with the first number, that of the others another.
const SLOW_KEY: usize = 0;
const OTHER_KEY: usize = 1;

/// The scripts: id and body.
const PROCEDURES: [(&str, &str); 4] = [
    ("empty", "function () { getContext().getResponse().setBody(1); }"),
    (
        "create",
        "function (items) { var c = getContext().getCollection(); items.forEach(function (item) { \
         if (!c.createDocument(c.getSelfLink(), item)) throw new Error('not accepted'); }); }",
    ),
    (
        "chain",
        "function (items) { var c = getContext().getCollection(), n = 0; next(); function next() { \
         if (n < items.length && !c.createDocument(c.getSelfLink(), items[n++], done)) \
         throw new Error('not accepted'); } function done(err) { if (err) throw err; next(); } }",
    ),
    (
        "slow",
        "function () { var c = getContext().getCollection(), end = Date.now() + 150; while (Date.now() < end); \
         c.upsertDocument(c.getSelfLink(), { id: 'slow', pk: 'p0' }); }",
    ),
];
const FUNCTIONS: [(&str, &str); 2] = [
    ("isLarge", "function (score) { return score > 5000; }"),
    ("isLargeDocument", "function (document) { return document.score > 5000; }"),
];

/// Runs all cases.
pub(crate) async fn run(options: &Options) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    prepare(options, &data).await?;
    // A definition is compiled when it is stored, so the server that stored them has a warm worker.
    let server = Server::start(&options.server, &data, &[])?;
    server.process.at_rest().await?;
    let mut rows = calls(options, &server).await?;
    rows.extend(functions(options, &server).await?);
    rows.extend(creates(options, &server).await?);
    rows.push(beside_slow(options, &server).await?);
    Ok(rows)
}

/// Documents and scripts, by a server that ends.
async fn prepare(options: &Options, data: &Path) -> Result<()> {
    let server = Server::start(&options.server, data, &[])?;
    let address = server.address;
    fill(address, "scripts", DOCUMENTS).await?;
    load::create_container(address, "batched", 400, "").await?;
    for (id, body) in PROCEDURES {
        define(address, "scripts", "sprocs", id, body).await?;
    }
    for (id, body) in FUNCTIONS {
        define(address, "scripts", "udfs", id, body).await?;
    }
    server.process.at_rest().await?;
    server.process.stop()
}

fn execute(procedure: &'static str, first: usize, documents: usize) -> Work {
    Work::Execute { container: "scripts".to_owned(), procedure, first, documents }
}

fn on(server: &Server, connections: usize) -> Target {
    Target { address: server.address, secure: false, connections }
}

/// The first call, empty calls, and the worker that has executed them.
async fn calls(options: &Options, server: &Server) -> Result<Vec<Row>> {
    if worker_memory_kib(server.process.id())? > 0 {
        return Err("a worker runs before the first call".into());
    }
    let begun = Instant::now();
    load::run_exactly(server.address, &execute("empty", 0, 0), 1, 0..1).await?;
    let first_ms = begun.elapsed().as_secs_f64() * 1e3;
    let figures = format!("{first_ms:.1} ms");
    let mut rows =
        vec![row("first call after the start, over 60 ms", figures, first_ms / FIRST_MS, Goal::AtMost(1.0))];
    let empty = measure_once(options, &server.process, on(server, 1), &execute("empty", 0, 0)).await?;
    let ratio = empty.p50_us / EMPTY_US;
    rows.push(row("p50 of an empty procedure, over 150 µs", rate(&empty), ratio, Goal::AtMost(1.0)));
    let worker_mib = worker_memory_kib(server.process.id())? as f64 / 1024.0;
    let figures = format!("{worker_mib:.1} MiB");
    rows.push(row(
        "memory of a warm worker, over 15 MiB",
        figures,
        worker_mib / WORKER_MIB,
        Goal::AtMost(1.0),
    ));
    Ok(rows)
}

/// Filters by a function: of a number, and of whole documents, for which there is no goal.
async fn functions(options: &Options, server: &Server) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (question, of, goal) in [
        (Question::Function, "a number", Some(Goal::AtLeast(1.0))),
        (Question::FunctionOfDocument, "the document", None),
    ] {
        let function = Work::Query { container: "scripts".to_owned(), question, count: DOCUMENTS };
        let asked = measure_once(options, &server.process, on(server, 1), &function).await?;
        let rows_per_second = asked.rate * DOCUMENTS as f64;
        let figures = format!("{rows_per_second:.0} rows/s, {}", rate(&asked));
        let what = format!("filter by a function of {of} over 100,000 documents, over 300,000 rows/s");
        let ratio = rows_per_second / ROWS_PER_SECOND;
        rows.push(Row { case: "scripts", what, figures, ratio, goal });
    }
    Ok(rows)
}

/// Procedures that create documents, over batches of the same: all creates at once, and each in the callback of the last.
async fn creates(options: &Options, server: &Server) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (round, (procedure, how)) in
        [("create", "at once"), ("chain", "in a chain of callbacks")].iter().enumerate()
    {
        let mut pairs = Vec::new();
        for turn in 0..options.repeats {
            let first = CREATED_FIRST * (1 + turn + round * options.repeats);
            let batch = Work::Batch { container: "batched".to_owned(), first, size: OPERATIONS };
            let target = on(server, WRITERS);
            let one = measure_once(options, &server.process, target, &execute(procedure, first, OPERATIONS))
                .await?;
            pairs.push((one, measure_once(options, &server.process, target, &batch).await?));
        }
        pairs.sort_by(|a, b| (a.0.rate / a.1.rate).total_cmp(&(b.0.rate / b.1.rate)));
        let (procedures, batches) = &pairs[pairs.len() / 2];
        let figures = format!("{} of {}", rate(procedures), rate(batches));
        let what = format!("procedure that creates five documents {how}, over a batch of the same");
        rows.push(row(&what, figures, procedures.rate / batches.rate, Goal::AtLeast(0.35)));
    }
    Ok(rows)
}

/// Empty calls on one partition key beside slow procedures and single writes on another.
async fn beside_slow(options: &Options, server: &Server) -> Result<Row> {
    let empty = execute("empty", OTHER_KEY, 0);
    let alone = measure_once(options, &server.process, on(server, 1), &empty).await?;
    let duration = Duration::from_secs(options.seconds);
    let slow = execute("slow", SLOW_KEY, 0);
    // The document with the first number, again and again.
    let write = Work::Overwrite { container: "scripts".to_owned(), count: SLOW_KEY + 1 };
    let (beside, slow, written) = tokio::join!(
        measure_once(options, &server.process, on(server, 1), &empty),
        load::run(on(server, SLOW_CONNECTIONS), &slow, duration),
        load::run(on(server, 1), &write, duration),
    );
    let (beside, slow, written) = (beside?, slow?, written?);
    let figures = format!(
        "p99 {:.1} ms, alone {:.2} ms; slow procedures {:.1}/s, {} refused; writes {:.0}/s, {} refused",
        beside.p99_us / 1e3,
        alone.p99_us / 1e3,
        slow.rate,
        slow.errors,
        written.rate,
        written.errors
    );
    let what = "p99 of an empty procedure beside procedures of 150 ms and writes on another partition key, over the same alone";
    let ratio = beside.p99_us / alone.p99_us;
    Ok(Row { case: "scripts", what: what.to_owned(), figures, ratio, goal: None })
}

fn row(what: &str, figures: String, ratio: f64, goal: Goal) -> Row {
    Row { case: "scripts", what: what.to_owned(), figures, ratio, goal: Some(goal) }
}

/// Calls of an empty procedure, which is created if it does not exist.
pub(crate) async fn empty(address: SocketAddr, container: String) -> Result<Work> {
    let (procedure, body) = PROCEDURES[0];
    let _ = define(address, &container, "sprocs", procedure, body).await;
    Ok(Work::Execute { container, procedure, first: 0, documents: 0 })
}

/// Calls of a procedure that creates documents, numbered from `first` on.
pub(crate) async fn five(address: SocketAddr, container: String, first: usize) -> Result<Work> {
    let (procedure, body) = PROCEDURES[1];
    let _ = define(address, &container, "sprocs", procedure, body).await;
    Ok(Work::Execute { container, procedure, first, documents: OPERATIONS })
}

/// Creates a script of a container.
async fn define(address: SocketAddr, container: &str, kind: &str, id: &str, body: &str) -> Result<()> {
    let mut client = Client::connect(address, false).await?;
    let signer = Signer::new()?;
    let link = format!("dbs/bench/colls/{container}");
    let authorization = signer.authorization("post", kind, &link);
    let body = format!(r#"{{"id":"{id}","body":"{body}"}}"#);
    let request = format!(
        "POST /{link}/{kind} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\
         authorization: {authorization}\r\ncontent-length: {}\r\n\r\n{body}",
        signer.date,
        body.len()
    );
    let answer = client.send(request.as_bytes()).await?;
    if answer.status == 201 {
        return Ok(());
    }
    Err(format!("{kind}/{id}: {} {}", answer.status, client.body(&answer)).into())
}

/// Resident memory of the largest child of a process, in KiB.
fn worker_memory_kib(id: u32) -> Result<u64> {
    let mut largest = 0;
    for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
        let children = std::fs::read_to_string(task?.path().join("children"))?;
        for child in children.split_whitespace() {
            let text = std::fs::read_to_string(Path::new("/proc").join(child).join("status"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS line")?;
            largest = largest.max(line.split_whitespace().next().ok_or("no figure")?.parse()?);
        }
    }
    Ok(largest)
}
