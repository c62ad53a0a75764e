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
use std::time::Instant;

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

/// The scripts: id and body.
const PROCEDURES: [(&str, &str); 2] = [
    ("empty", "function () { getContext().getResponse().setBody(1); }"),
    (
        "create",
        "function (items) { var c = getContext().getCollection(); items.forEach(function (item) { \
         if (!c.createDocument(c.getSelfLink(), item)) throw new Error('not accepted'); }); }",
    ),
];
const FUNCTION: (&str, &str) = ("isLarge", "function (score) { return score > 5000; }");

/// Runs all cases.
pub(crate) async fn run(options: &Options) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, &folder.path().join("data"), &[])?;
    let address = server.address;
    fill(address, "scripts", DOCUMENTS).await?;
    load::create_container(address, "batched", 400, "").await?;
    for (id, body) in PROCEDURES {
        define(address, "scripts", "sprocs", id, body).await?;
    }
    define(address, "scripts", "udfs", FUNCTION.0, FUNCTION.1).await?;
    server.process.at_rest().await?;

    let at = |connections| Target { address, secure: false, connections };
    let execute = |procedure: &'static str, first, documents| Work::Execute {
        container: "scripts".to_owned(),
        procedure,
        first,
        documents,
    };
    let begun = Instant::now();
    load::run_exactly(address, &execute("empty", 0, 0), 1, 0..1).await?;
    let first_ms = begun.elapsed().as_secs_f64() * 1e3;
    let figures = format!("{first_ms:.1} ms");
    let mut rows =
        vec![row("first call after the start, over 60 ms", figures, first_ms / FIRST_MS, Goal::AtMost(1.0))];

    let empty = measure_once(options, &server.process, at(1), &execute("empty", 0, 0)).await?;
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

    let question = Question::Function;
    let function = Work::Query { container: "scripts".to_owned(), question, count: DOCUMENTS };
    let asked = measure_once(options, &server.process, at(1), &function).await?;
    let rows_per_second = asked.rate * DOCUMENTS as f64;
    let figures = format!("{rows_per_second:.0} rows/s, {}", rate(&asked));
    let what = "filter by a function of a number over 100,000 documents, over 300,000 rows/s";
    rows.push(row(what, figures, rows_per_second / ROWS_PER_SECOND, Goal::AtLeast(1.0)));

    let mut pairs = Vec::new();
    for turn in 0..options.repeats {
        let first = CREATED_FIRST * (1 + turn);
        let procedure = execute("create", first, OPERATIONS);
        let batch = Work::Batch { container: "batched".to_owned(), first, size: OPERATIONS };
        let one = measure_once(options, &server.process, at(WRITERS), &procedure).await?;
        pairs.push((one, measure_once(options, &server.process, at(WRITERS), &batch).await?));
    }
    pairs.sort_by(|a, b| (a.0.rate / a.1.rate).total_cmp(&(b.0.rate / b.1.rate)));
    let (procedures, batches) = &pairs[pairs.len() / 2];
    let figures = format!("{} of {}", rate(procedures), rate(batches));
    let what = "procedure that creates five documents, over a batch of the same";
    rows.push(row(what, figures, procedures.rate / batches.rate, Goal::AtLeast(0.35)));
    Ok(rows)
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
