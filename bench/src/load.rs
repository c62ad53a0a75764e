//! Closed-loop load: N connections, each sending its next request after the last response.

use crate::Result;
use crate::client::Client;
use crate::documents;
use crate::entities::EntityWork;
use crate::process::Switches;
use crate::questions::Question;
use crate::signature::Signer;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Results of one measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) errors: u64,
    /// Number of responses.
    pub(crate) requests: usize,
    /// CPU time of the server per request.
    pub(crate) cpu_us: f64,
    /// Voluntary and involuntary context switches of the server per request.
    pub(crate) switches: (f64, f64),
    /// Share of the server's core used by other processes.
    pub(crate) others: f64,
}

/// The client-side figures.
pub(crate) fn figures(mut latencies: Vec<u32>, elapsed: Duration) -> Figures {
    latencies.sort_unstable();
    let percentile =
        |percent: usize| latencies.get(latencies.len() * percent / 100).copied().map_or(0.0, f64::from);
    Figures {
        rate: latencies.len() as f64 / elapsed.as_secs_f64(),
        p50_us: percentile(50),
        p99_us: percentile(99),
        requests: latencies.len(),
        ..Figures::default()
    }
}

impl Figures {
    /// Adds the server's cost of a measurement.
    pub(crate) fn add_cost(&mut self, cpu: Duration, switches: Switches, busy: Duration, elapsed: Duration) {
        let requests = self.requests as f64;
        self.cpu_us = cpu.as_secs_f64() * 1e6 / requests;
        self.switches = (switches.voluntary as f64 / requests, switches.involuntary as f64 / requests);
        self.others = busy.saturating_sub(cpu).as_secs_f64() / elapsed.as_secs_f64();
    }
}

/// The kind of requests.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Read documents of a container that holds `count`.
    Read {
        container: String,
        count: usize,
    },
    /// Replace documents of a container that holds `count`.
    Overwrite {
        container: String,
        count: usize,
    },
    /// Create documents from number `first` on.
    Create {
        container: String,
        first: usize,
    },
    /// Create documents in batches of `size` from number `first` on.
    Batch {
        container: String,
        first: usize,
        size: usize,
    },
    /// Execute a procedure with `documents` documents as its parameter, numbered from `first` on.
    Execute {
        container: String,
        procedure: &'static str,
        first: usize,
        documents: usize,
    },
    /// Ask a container that holds `count` documents.
    Query {
        container: String,
        question: Question,
        count: usize,
    },
    /// Read the document of the request's own number, or replace, delete or query it.
    ReadOne {
        container: String,
    },
    Replace {
        container: String,
    },
    Delete {
        container: String,
    },
    QueryOne {
        container: String,
        question: Question,
    },
    /// A request of the Table API.
    Entity(EntityWork),
}

/// The target and the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) secure: bool,
    pub(crate) connections: usize,
}

/// Runs `work` for `duration` and returns the results. A batch counts as one request.
pub(crate) async fn run(target: Target, work: &Work, duration: Duration) -> Result<Figures> {
    let next = Rc::new(RefCell::new(0usize));
    let latencies = Rc::new(RefCell::new(Vec::<u32>::with_capacity(1 << 20)));
    let errors = Rc::new(RefCell::new(0u64));
    let local = LocalSet::new();
    let mut clients = Vec::new();
    for _ in 0..target.connections {
        clients.push(Client::connect(target.address, target.secure).await?);
    }
    let signer = Signer::new()?;
    let begun = Instant::now();
    let until = begun + duration;
    for mut client in clients {
        let (next, latencies, errors) = (Rc::clone(&next), Rc::clone(&latencies), Rc::clone(&errors));
        let (work, signer) = (work.clone(), signer.clone());
        local.spawn_local(async move {
            let mut request = Vec::with_capacity(4096);
            while Instant::now() < until {
                let number = next.replace_with(|number| *number + 1);
                request.clear();
                write_request(&mut request, &signer, &work, number);
                let sent = Instant::now();
                match client.send(&request).await {
                    Ok(answer) if answer.status < 300 => {
                        latencies
                            .borrow_mut()
                            .push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
                    }
                    Ok(_) => *errors.borrow_mut() += 1,
                    Err(_) => {
                        *errors.borrow_mut() += 1;
                        return;
                    }
                }
            }
        });
    }
    local.await;
    let mut found = figures(latencies.take(), begun.elapsed());
    found.errors = errors.take();
    Ok(found)
}

/// Sends the requests `numbers` of `work`, each once; a refused request ends the run.
pub(crate) async fn run_exactly(
    address: SocketAddr,
    work: &Work,
    connections: usize,
    numbers: Range<usize>,
) -> Result<()> {
    let signer = Signer::new()?;
    let numbers = Rc::new(RefCell::new(numbers));
    let local = LocalSet::new();
    let mut senders = Vec::new();
    for _ in 0..connections {
        let mut client = Client::connect(address, false).await?;
        let (work, signer, numbers) = (work.clone(), signer.clone(), Rc::clone(&numbers));
        senders.push(local.spawn_local(async move {
            let mut request = Vec::with_capacity(4096);
            loop {
                let Some(number) = numbers.borrow_mut().next() else { return Ok(()) };
                request.clear();
                write_request(&mut request, &signer, &work, number);
                let answer = client.send(&request).await?;
                if answer.status >= 300 {
                    return Err(format!("{work:?}: {} {}", answer.status, client.body(&answer)).into());
                }
            }
        }));
    }
    local.await;
    for sender in senders {
        let sent: Result<()> = sender.await?;
        sent?;
    }
    Ok(())
}

/// Scatters numbers over the whole container, in the same way in every run.
pub(crate) fn scattered(number: usize, count: usize) -> usize {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % count
}

/// Writes the request with this number.
pub(crate) fn write_request(out: &mut Vec<u8>, signer: &Signer, work: &Work, number: usize) {
    match work {
        Work::Read { container, count } => {
            one(out, signer, "GET", container, scattered(number, *count), "");
        }
        Work::Overwrite { container, count } => {
            let number = scattered(number, *count);
            one(out, signer, "PUT", container, number, &documents::json(number));
        }
        Work::Entity(work) => work.write(out, signer, number),
        Work::ReadOne { container } => one(out, signer, "GET", container, number, ""),
        Work::Replace { container } => {
            one(out, signer, "PUT", container, number, &documents::json(number));
        }
        Work::Delete { container } => one(out, signer, "DELETE", container, number, ""),
        Work::QueryOne { container, question } => {
            let (key, body) = question.body(number);
            query(out, signer, container, key.as_deref(), &body);
        }
        Work::Create { container, first } => {
            let number = first + number;
            let body = documents::json(number);
            let key = documents::partition_key(number);
            post(out, signer, container, &key, "", &body);
        }
        Work::Query { container, question, count } => {
            let (key, body) = question.body(scattered(number, *count));
            query(out, signer, container, key.as_deref(), &body);
        }
        Work::Execute { container, procedure, first, documents } => {
            let base = first + number * documents;
            let numbers = (0..*documents).map(|step| base + step * documents::PARTITIONS * 1_000_003);
            let items: Vec<String> = numbers.map(documents::json).collect();
            let body = format!("[[{}]]", items.join(","));
            let link = format!("dbs/bench/colls/{container}/sprocs/{procedure}");
            let authorization = signer.authorization("post", "sprocs", &link);
            head(out, "POST", &link, signer, &authorization, &documents::partition_key(base));
            out.extend_from_slice(format!("content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
        Work::Batch { container, first, size } => {
            let base = first + number * size;
            // All documents of a batch share a key, so their numbers must be equal modulo the partitions.
            let key = documents::partition_key(base);
            let body = batch_body((0..*size).map(|step| base + step * documents::PARTITIONS * 1_000_003));
            post(out, signer, container, &key, BATCH_HEADERS, &body);
        }
    }
}

/// A request for one document by its id.
fn one(out: &mut Vec<u8>, signer: &Signer, verb: &str, container: &str, number: usize, body: &str) {
    let id = documents::id(number);
    let link = format!("dbs/bench/colls/{container}/docs/{id}");
    let authorization = signer.authorization(&verb.to_ascii_lowercase(), "docs", &link);
    head(out, verb, &link, signer, &authorization, &documents::partition_key(number));
    if !body.is_empty() {
        out.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.as_bytes());
}

const BATCH_HEADERS: &str = "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";

fn batch_body(numbers: impl Iterator<Item = usize>) -> String {
    let mut body = String::from("[");
    for (position, number) in numbers.enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let document = documents::json(number);
        body.push_str(&format!(r#"{separator}{{"operationType":"Create","resourceBody":{document}}}"#));
    }
    body.push(']');
    body
}

fn query(out: &mut Vec<u8>, signer: &Signer, container: &str, key: Option<&str>, body: &str) {
    let link = format!("dbs/bench/colls/{container}");
    let authorization = signer.authorization("post", "docs", &link);
    let scope = match key {
        Some(key) => format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n"),
        // The server merges partitions: that is what is measured.
        None => "x-ms-documentdb-query-enablecrosspartition: True\r\nx-perihelion-compatibility: relaxed\r\n"
            .to_owned(),
    };
    let head = format!(
        "POST /{link}/docs HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\
         authorization: {authorization}\r\n{scope}x-ms-documentdb-isquery: True\r\n\
         content-type: application/query+json\r\nx-ms-max-item-count: 100\r\ncontent-length: {}\r\n\r\n",
        signer.date,
        body.len()
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body.as_bytes());
}

fn post(out: &mut Vec<u8>, signer: &Signer, container: &str, key: &str, headers: &str, body: &str) {
    let link = format!("dbs/bench/colls/{container}");
    let authorization = signer.authorization("post", "docs", &link);
    head(out, "POST", &format!("{link}/docs"), signer, &authorization, key);
    out.extend_from_slice(headers.as_bytes());
    out.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(body.as_bytes());
}

fn head(out: &mut Vec<u8>, verb: &str, path: &str, signer: &Signer, authorization: &str, key: &str) {
    for part in [
        verb,
        " /",
        path,
        " HTTP/1.1\r\nhost: localhost\r\nx-ms-date: ",
        &signer.date,
        "\r\nx-ms-version: 2020-07-15\r\nauthorization: ",
        authorization,
        "\r\nx-ms-documentdb-partitionkey: [\"",
        key,
        "\"]\r\n",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Loads documents 0 to `count` in batches, on a few connections.
pub(crate) async fn fill(address: SocketAddr, container: &str, count: usize) -> Result<()> {
    fill_by(address, container, count, 4).await
}

/// The same with a given number of connections.
pub(crate) async fn fill_by(
    address: SocketAddr,
    container: &str,
    count: usize,
    connections: usize,
) -> Result<()> {
    const BATCH: usize = 100;
    let local = LocalSet::new();
    let signer = Signer::new()?;
    let mut loaders = Vec::new();
    for first in 0..connections {
        let mut client = Client::connect(address, false).await?;
        let (container, signer) = (container.to_owned(), signer.clone());
        loaders.push(local.spawn_local(async move {
            for partition in (first..documents::PARTITIONS).step_by(connections) {
                let numbers: Vec<usize> = (partition..count).step_by(documents::PARTITIONS).collect();
                for chunk in numbers.chunks(BATCH) {
                    let mut request = Vec::new();
                    let body = batch_body(chunk.iter().copied());
                    post(
                        &mut request,
                        &signer,
                        &container,
                        &documents::partition_key(partition),
                        BATCH_HEADERS,
                        &body,
                    );
                    let answer = client.send(&request).await?;
                    if answer.status != 200 {
                        return Err(format!("loading: {} {}", answer.status, client.body(&answer)).into());
                    }
                }
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        }));
    }
    local.await;
    for loader in loaders {
        loader.await??;
    }
    Ok(())
}

/// Creates the database and a container with the given throughput, which indexes everything, and `composite` too.
pub(crate) async fn create_container(
    address: SocketAddr,
    container: &str,
    throughput: u64,
    composite: &str,
) -> Result<()> {
    let mut client = Client::connect(address, false).await?;
    let signer = Signer::new()?;
    let mut create = async |path: &str, kind: &str, link: &str, headers: &str, body: &str| -> Result<()> {
        let mut request = Vec::new();
        head(&mut request, "POST", path, &signer, &signer.authorization("post", kind, link), "");
        request.extend_from_slice(headers.as_bytes());
        request.extend_from_slice(format!("content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        let answer = client.send(&request).await?;
        if answer.status == 201 || answer.status == 409 {
            return Ok(());
        }
        Err(format!("{path}: {} {}", answer.status, client.body(&answer)).into())
    };
    create("dbs", "dbs", "", "", r#"{"id":"bench"}"#).await?;
    let body = format!(
        r#"{{"id":"{container}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},"indexingPolicy":{{"indexingMode":"consistent","automatic":true,"includedPaths":[{{"path":"/*"}}],"compositeIndexes":[{composite}]}}}}"#
    );
    create(
        "dbs/bench/colls",
        "colls",
        "dbs/bench",
        &format!("x-ms-offer-throughput: {throughput}\r\n"),
        &body,
    )
    .await
}
