//! Counts instructions and context switches per request: figures that do not depend on how fast the machine is.
//!
//! Each server binary gets a data folder of its own, filled by one connection and closed in order, so that the state
//! of its index is the same in every run. It is opened again under callgrind, which counts only between the first
//! and the last request of a case.

use crate::cases::{COMPOSITE, EIGHT_PARTITIONS, READERS, WRITERS};
use crate::load::{self, Work};
use crate::process::{Process, Server};
use crate::questions::Question;
use crate::{Options, Result};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Documents of the container that is read: a run of the index, and segments behind it.
const DOCUMENTS: usize = 40_000;
/// Documents of a case are created from here on.
const CREATED_FIRST: usize = 10_000_000;

/// What is counted: its name, how often before it counts, and how often then.
struct Case {
    name: &'static str,
    work: Work,
    connections: usize,
    warm: usize,
    requests: usize,
}

/// What one case takes.
struct Counted {
    name: &'static str,
    instructions: u64,
    switches: f64,
}

fn cases() -> Vec<Case> {
    let container = || "medium".to_owned();
    let asked = |name, question, connections, warm, requests| {
        let work = Work::Query { container: container(), question, count: DOCUMENTS };
        Case { name, work, connections, warm, requests }
    };
    let question = |name, question, warm, requests| asked(name, question, READERS, warm, requests);
    // So slow under callgrind that many at a time would wait too long for their turn.
    let long = |name, question, warm, requests| asked(name, question, 1, warm, requests);
    let create = |name, container: &str, connections| {
        let work = Work::Create { container: container.to_owned(), first: CREATED_FIRST };
        Case { name, work, connections, warm: 200, requests: 2_000 }
    };
    let read = Work::Read { container: container(), count: DOCUMENTS };
    vec![
        Case { name: "point read", work: read, connections: READERS, warm: 2_000, requests: 4_000 },
        question("equality in a partition, 5 rows", Question::Lot, 500, 500),
        question("unique value", Question::Mail, 500, 500),
        question("filter + ORDER BY, top 20", Question::Top, 100, 100),
        question("composite order, top 20", Question::TopComposite, 100, 100),
        question("COUNT", Question::Count, 500, 500),
        question("GROUP BY, COUNT", Question::Groups, 100, 100),
        long("GROUP BY, AVG", Question::Means, 20, 20),
        long("filter that no index answers", Question::Scan, 3, 5),
        create("create, 1 connection", "created", 1),
        create("create, 64 connections", "created64", WRITERS),
        create("create, 64 connections, 8 partitions", "created8", WRITERS),
        Case {
            name: "batch of 100",
            work: Work::Batch { container: "batched".to_owned(), first: CREATED_FIRST, size: 100 },
            connections: 1,
            warm: 5,
            requests: 20,
        },
    ]
}

/// Counts all cases for each server and prints them side by side.
#[allow(clippy::print_stdout)] // what the command is for
pub(crate) async fn run(options: &Options, others: &[PathBuf]) -> Result<()> {
    let mut columns = Vec::new();
    for server in others.iter().chain([&options.server]) {
        columns.push(count_one(options, server).await?);
    }
    print!("{}", table(&columns));
    Ok(())
}

async fn count_one(options: &Options, server: &Path) -> Result<Vec<Counted>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fill(server, &data).await?;
    let dumps = folder.path().join("callgrind");
    let out_file = format!("--callgrind-out-file={}", dumps.display());
    let under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", &out_file];
    let server = Server::start_under(&under, server, &data, &[])?;
    let mut counted = Vec::new();
    for (number, case) in (1..).zip(cases().into_iter().filter(|case| options.wants(&[case.name]))) {
        counted.push(count_case(&server, &case, &dumps, number).await?);
    }
    Ok(counted)
}

async fn fill(server: &Path, data: &Path) -> Result<()> {
    let server = Server::start(server, data, &[])?;
    load::create_container(server.address, "medium", 400, COMPOSITE).await?;
    for container in ["created", "created64", "batched"] {
        load::create_container(server.address, container, 400, "").await?;
    }
    load::create_container(server.address, "created8", EIGHT_PARTITIONS, "").await?;
    load::fill_by(server.address, "medium", DOCUMENTS, 1).await?;
    server.process.at_rest().await?;
    server.process.stop()
}

async fn count_case(server: &Server, case: &Case, dumps: &Path, number: u32) -> Result<Counted> {
    let Server { process, address } = server;
    send(*address, case, 0, case.warm).await?;
    control(process, &["--zero"])?;
    control(process, &["--instr=on"])?;
    let switches = process.switches()?;
    send(*address, case, case.warm, case.requests).await?;
    let switches = process.switches()?.since(switches).voluntary;
    control(process, &["--instr=off"])?;
    control(process, &["--dump"])?;
    let dump = PathBuf::from(format!("{}.{number}", dumps.display()));
    Ok(Counted {
        name: case.name,
        instructions: total(&dump)? / case.requests as u64,
        switches: switches as f64 / case.requests as f64,
    })
}

async fn send(address: SocketAddr, case: &Case, first: usize, requests: usize) -> Result<()> {
    load::run_exactly(address, &case.work, case.connections, first..first + requests).await
}

fn control(process: &Process, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("callgrind_control");
    command.args(arguments).arg(process.id().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status()?.success() {
        Ok(())
    } else {
        Err(format!("callgrind_control {arguments:?} failed").into())
    }
}

/// The instructions in a dump.
fn total(dump: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(dump)?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("no totals in the dump")?;
    Ok(line.trim().parse()?)
}

/// One row per case; every server is compared with the first.
fn table(columns: &[Vec<Counted>]) -> String {
    let mut text = String::from("| case | instructions | context switches |\n|---|---|---|\n");
    let Some((first, others)) = columns.split_first() else { return text };
    for (row, base) in first.iter().enumerate() {
        let mut instructions = base.instructions.to_string();
        let mut switches = format!("{:.2}", base.switches);
        for other in others.iter().filter_map(|column| column.get(row)) {
            let percent = (other.instructions as f64 / base.instructions as f64 - 1.0) * 100.0;
            let _ = write!(instructions, " → {} ({percent:+.1} %)", other.instructions);
            let _ = write!(switches, " → {:.2}", other.switches);
        }
        let _ = writeln!(text, "| {} | {instructions} | {switches} |", base.name);
    }
    text
}
