//! Counts instructions, context switches and futex calls per request: figures that do not depend on the speed of the
//! machine, so that later builds can be compared with a file.
//!
//! Each server binary gets its own data folders, filled by one connection and closed cleanly, so that the state of its
//! index is the same in every run. Instructions are counted under callgrind; context switches and futex calls without
//! it, as a slowed server groups its work differently.

mod callgrind;
mod file;
mod native;

use crate::cases::{COMPOSITE, READERS, WRITERS};
use crate::load::{self, Work};
use crate::partitions::SIXTY_FOUR_PARTITIONS;
use crate::process::Server;
use crate::questions::Question;
use crate::table::TEN_PARTITIONS;
use crate::{Options, Result};
use native::Native;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Documents of the container that is read: one index run, and segments after it.
const DOCUMENTS: usize = 40_000;
/// First number of created documents.
const CREATED_FIRST: usize = 10_000_000;

/// Where the counts go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Destination {
    /// The file to write.
    pub(crate) write: Option<PathBuf>,
    /// The file to compare with.
    pub(crate) against: Option<PathBuf>,
    /// A folder for one callgrind profile per case, for `callgrind_annotate`. Then only instructions are counted.
    pub(crate) profiles: Option<PathBuf>,
}

/// A counted case: its name, the number of warm-up requests and of counted requests.
struct Case {
    name: &'static str,
    work: Work,
    connections: usize,
    /// Connections under callgrind: fewer if many would wait too long for their turn.
    connections_slowed: usize,
    warm: usize,
    requests: usize,
}

/// Counts of one case per request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counted {
    name: String,
    instructions: u64,
    switches_voluntary: f64,
    switches_involuntary: f64,
    /// `None` if the kernel's trace points are not available.
    futex_calls: Option<f64>,
}

impl Counted {
    fn switches(&self) -> f64 {
        self.switches_voluntary + self.switches_involuntary
    }
}

fn cases() -> Vec<Case> {
    let container = || "medium".to_owned();
    let asked = |name, question, connections, warm, requests| {
        let work = Work::Query { container: container(), question, count: DOCUMENTS };
        Case { name, work, connections, connections_slowed: connections, warm, requests }
    };
    let question = |name, question, warm, requests| asked(name, question, READERS, warm, requests);
    let long = |name, question, warm, requests| asked(name, question, 1, warm, requests);
    let over_ten = |name, question, warm, requests| {
        let work = Work::Query { container: "medium10".to_owned(), question, count: DOCUMENTS };
        Case { name, work, connections: READERS, connections_slowed: 2, warm, requests }
    };
    let create = |name, container: &str, connections, requests| {
        let work = Work::Create { container: container.to_owned(), first: CREATED_FIRST };
        Case { name, work, connections, connections_slowed: connections, warm: 200, requests }
    };
    let read = Work::Read { container: container(), count: DOCUMENTS };
    vec![
        Case {
            name: "read",
            work: read,
            connections: READERS,
            connections_slowed: READERS,
            warm: 2_000,
            requests: 4_000,
        },
        question("equality", Question::Lot, 500, 500),
        question("unique", Question::Mail, 500, 500),
        over_ten("unique-10-partitions", Question::Mail, 500, 500),
        question("top", Question::Top, 100, 100),
        over_ten("top-10-partitions", Question::Top, 100, 100),
        question("top-composite", Question::TopComposite, 100, 100),
        question("count", Question::Count, 500, 500),
        question("groups", Question::Groups, 100, 100),
        long("means", Question::Means, 20, 20),
        long("scan", Question::Scan, 3, 5),
        create("create-1-connection", "created", 1, 600),
        create("create", "created64", WRITERS, 2_000),
        create("create-10-partitions", "created10", WRITERS, 2_000),
        create("create-64-partitions", "created64p", WRITERS, 2_000),
        Case {
            name: "batch-100",
            work: Work::Batch { container: "batched".to_owned(), first: CREATED_FIRST, size: 100 },
            connections: 1,
            connections_slowed: 1,
            warm: 5,
            requests: 20,
        },
    ]
}

/// Counts all cases for each server and prints them next to each other, or next to those of a file.
#[allow(clippy::print_stdout)] // what the command is for
pub(crate) async fn run(options: &Options, others: &[PathBuf], destination: &Destination) -> Result<()> {
    let mut columns = Vec::new();
    let before = match &destination.against {
        Some(path) => Some(file::read(path)?),
        None => None,
    };
    columns.extend(before.clone());
    for server in others.iter().chain([&options.server]) {
        columns.push(count_one(options, server, destination.profiles.as_deref()).await?);
    }
    print!("{}", file::table(&columns));
    let counted = columns.last().ok_or("nothing was counted")?;
    if let Some(path) = &destination.write {
        file::write(path, counted)?;
    }
    match before {
        Some(before) => file::check(&before, counted),
        None => Ok(()),
    }
}

async fn count_one(options: &Options, server: &Path, profiles: Option<&Path>) -> Result<Vec<Counted>> {
    let cases: Vec<Case> = cases().into_iter().filter(|case| options.wants(&[case.name])).collect();
    let instructions = callgrind::count(server, &cases, profiles).await?;
    let natively = match profiles {
        Some(_) => vec![Native::default(); cases.len()],
        None => native::count(server, &cases).await?,
    };
    let counted = cases.iter().zip(instructions).zip(natively);
    Ok(counted
        .map(|((case, instructions), native)| Counted {
            name: case.name.to_owned(),
            instructions,
            switches_voluntary: native.voluntary,
            switches_involuntary: native.involuntary,
            futex_calls: native.futex_calls,
        })
        .collect())
}

/// Creates and fills the containers of all cases.
async fn fill(server: &Path, data: &Path) -> Result<()> {
    let server = Server::start(server, data, &[])?;
    load::create_container(server.address, "medium", 400, COMPOSITE).await?;
    load::create_container(server.address, "medium10", TEN_PARTITIONS, COMPOSITE).await?;
    for container in ["created", "created64", "batched"] {
        load::create_container(server.address, container, 400, "").await?;
    }
    load::create_container(server.address, "created10", TEN_PARTITIONS, "").await?;
    load::create_container(server.address, "created64p", SIXTY_FOUR_PARTITIONS, "").await?;
    load::fill_by(server.address, "medium", DOCUMENTS, 1).await?;
    load::fill_by(server.address, "medium10", DOCUMENTS, 1).await?;
    server.process.at_rest().await?;
    server.process.stop()
}

impl Case {
    /// Sends the requests `numbers` on `connections` connections.
    async fn send(&self, server: &Server, connections: usize, numbers: Range<usize>) -> Result<()> {
        load::run_exactly(server.address, &self.work, connections, numbers).await
    }

    fn writes(&self) -> bool {
        match &self.work {
            Work::Create { .. }
            | Work::Overwrite { .. }
            | Work::Batch { .. }
            | Work::Execute { .. }
            | Work::Replace { .. }
            | Work::Delete { .. } => true,
            Work::Read { .. } | Work::ReadOne { .. } | Work::Query { .. } | Work::QueryOne { .. } => false,
            Work::Entity(work) => work.is_write(),
        }
    }
}
