//! Point reads and queries of a container of one and of ten partitions.

use super::{Column, Line, Partitions, Peers, Subject, columns, show, verdict};
use crate::cases::{COMPOSITE, READERS, Reference, measure_once, start_reference};
use crate::load::{self, Figures, Target, Work};
use crate::npm::Installed;
use crate::postgres::{OperatorClass, Postgres};
use crate::process::{Server, quiet};
use crate::questions::Question;
use crate::{Options, Result};
use std::path::{Path, PathBuf};

/// Documents of every container, and of the emulator of npm.
const DOCUMENTS: usize = 100_000;
const VERCEL_DOCUMENTS: usize = 2_000;
/// Connections of the sorting query: PostgreSQL takes tens of milliseconds for one.
const SORTERS: usize = 4;
/// Required rate of a point read relative to the reference.
const POINT_READ_MIN: f64 = 0.7;

/// A question and its requirement.
struct Case {
    what: &'static str,
    question: Question,
    connections: usize,
    required: Required,
}

enum Required {
    /// CPU µs of ten partitions divided by those of one.
    TenOverOne(f64),
    /// CPU µs.
    CpuUs(f64),
}

const CASES: [Case; 3] = [
    Case {
        what: "unique value across partitions",
        question: Question::Mail,
        connections: READERS,
        required: Required::TenOverOne(1.5),
    },
    Case {
        what: "filter + ORDER BY, top 20",
        question: Question::Top,
        connections: SORTERS,
        required: Required::TenOverOne(2.0),
    },
    Case {
        what: "equality in a partition, 5 rows",
        question: Question::Lot,
        connections: READERS,
        required: Required::CpuUs(35.0),
    },
];

/// A running server with its containers filled.
struct Filled {
    /// The build; `None` for the emulator of npm.
    program: Option<PathBuf>,
    documents: usize,
    server: Server,
    _folder: Option<tempfile::TempDir>,
}

pub(super) async fn run(options: &Options, programs: &[PathBuf], peers: &Peers) -> Result<()> {
    let mut servers = Vec::new();
    for program in programs {
        servers.push(fill(program).await?);
    }
    let program = programs.last().ok_or("no server")?;
    if let Some(vercel) = &peers.vercel {
        servers.push(fill_vercel(vercel).await?);
    }
    let mut lines = vec![point_reads(options, programs, &servers, peers).await?];
    let mut asked: Vec<Vec<Column>> = CASES.iter().map(|_| columns(programs, peers)).collect();
    if let Some(postgres) = &peers.postgres {
        ask_postgres(options, postgres, &mut asked).await?;
    }
    for (case, columns) in CASES.iter().zip(&mut asked) {
        for _ in 0..options.repeats {
            for column in columns.iter_mut() {
                if column.subject == Subject::Vercel && case.question == Question::Lot {
                    // It refuses a query whose partition key is in the header only.
                    continue;
                }
                if let Some((filled, container)) = filled(&servers, &column.subject) {
                    let container = container.to_owned();
                    let work = Work::Query { container, question: case.question, count: filled.documents };
                    column.turns.push(ask(options, &filled.server, case.connections, &work).await?);
                }
            }
        }
        lines.push(line(case, columns, program)?);
    }
    show(&columns(programs, peers), &lines);
    Ok(())
}

/// Runs all questions against PostgreSQL, with one index after the other.
async fn ask_postgres(options: &Options, postgres: &Postgres, asked: &mut [Vec<Column>]) -> Result<()> {
    for class in OperatorClass::ALL {
        postgres.filled(class, DOCUMENTS).await?;
        for (case, columns) in CASES.iter().zip(asked.iter_mut()) {
            let column = columns.iter_mut().find(|column| column.subject == Subject::Postgres(class));
            let column = column.ok_or("no column of PostgreSQL")?;
            for _ in 0..options.repeats {
                let found = postgres.ask(options, case.connections, case.question, DOCUMENTS).await?;
                column.turns.push(found);
            }
        }
    }
    Ok(())
}

async fn fill(program: &Path) -> Result<Filled> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(program, &folder.path().join("data"), &[])?;
    for partitions in Partitions::ALL {
        load::create_container(server.address, partitions.name(), partitions.throughput(), COMPOSITE).await?;
        load::fill(server.address, partitions.name(), DOCUMENTS).await?;
    }
    server.process.at_rest().await?;
    Ok(Filled { program: Some(program.to_owned()), documents: DOCUMENTS, server, _folder: Some(folder) })
}

/// The emulator, with fewer documents: it has no index and accepts one document at a time.
async fn fill_vercel(vercel: &Installed) -> Result<Filled> {
    let server = vercel.start()?;
    let container = Partitions::One.name();
    load::create_container(server.address, container, Partitions::One.throughput(), "").await?;
    let work = Work::Create { container: container.to_owned(), first: 0 };
    load::run_exactly(server.address, &work, 1, 0..VERCEL_DOCUMENTS).await?;
    Ok(Filled { program: None, documents: VERCEL_DOCUMENTS, server, _folder: None })
}

/// The server of a column and its container; `None` for PostgreSQL.
fn filled<'a>(servers: &'a [Filled], subject: &Subject) -> Option<(&'a Filled, &'static str)> {
    let find = |wanted: Option<&Path>| servers.iter().find(|filled| filled.program.as_deref() == wanted);
    match subject {
        Subject::Postgres(_) => None,
        Subject::Vercel => find(None).map(|filled| (filled, Partitions::One.name())),
        Subject::Server { program, partitions } => {
            find(Some(program)).map(|filled| (filled, partitions.name()))
        }
    }
}

async fn ask(options: &Options, server: &Server, connections: usize, work: &Work) -> Result<Figures> {
    let target = Target { address: server.address, secure: false, connections };
    quiet(options.wait).await?;
    measure_once(options, &server.process, target, work).await
}

/// Point reads, each turn followed by one of the reference.
async fn point_reads(
    options: &Options,
    programs: &[PathBuf],
    servers: &[Filled],
    peers: &Peers,
) -> Result<Line> {
    let reference = start_reference()?;
    let mut columns = columns(programs, peers);
    let mut limits: Vec<Column> =
        columns.iter().map(|column| Column { subject: column.subject.clone(), turns: Vec::new() }).collect();
    if let Some(postgres) = &peers.postgres {
        postgres.filled(OperatorClass::PathOps, DOCUMENTS).await?;
    }
    for turn in 0..=options.repeats {
        for (column, limit) in columns.iter_mut().zip(&mut limits) {
            let found = match (filled(servers, &column.subject), &peers.postgres) {
                (Some((filled, container)), _) => {
                    let work = Work::Read { container: container.to_owned(), count: filled.documents };
                    ask(options, &filled.server, READERS, &work).await?
                }
                (None, Some(postgres)) => postgres.reads(options, READERS, DOCUMENTS).await?,
                (None, None) => return Err("a column without a server".into()),
            };
            let of_reference = read_reference(options, &reference).await?;
            // The first turn warms the caches.
            if turn > 0 {
                column.turns.push(found);
                limit.turns.push(of_reference);
            }
        }
    }
    let shares: Vec<f64> =
        columns.iter().zip(&limits).map(|(column, limit)| column.over(limit, |found| found.rate)).collect();
    let cell = |(column, share): (&Column, &f64)| format!("{share:.2} ({})", microseconds(column));
    let own = columns
        .iter()
        .position(|column| programs.last().is_some_and(|program| column.is_of(program, Partitions::One)))
        .ok_or("no column of one partition")?;
    Ok(Line {
        what: "point read, rate over the reference's (processor µs)".to_owned(),
        cells: columns.iter().zip(&shares).map(cell).collect(),
        required: format!("≥ {POINT_READ_MIN}: {}", verdict(shares[own] >= POINT_READ_MIN)),
    })
}

async fn read_reference(options: &Options, reference: &Reference) -> Result<Figures> {
    let work = Work::Read { container: "one".to_owned(), count: DOCUMENTS };
    let target = Target { address: reference.plain, secure: false, connections: READERS };
    measure_once(options, &reference.process, target, &work).await
}

fn line(case: &Case, columns: &[Column], program: &Path) -> Result<Line> {
    let find = |partitions| columns.iter().find(|column| column.is_of(program, partitions));
    let one = find(Partitions::One).ok_or("no column of one partition")?;
    let ten = find(Partitions::Ten).ok_or("no column of ten partitions")?;
    let required = match case.required {
        Required::TenOverOne(bound) => {
            let ratio = ten.over(one, |found| found.cpu_us);
            format!("ten ≤ {bound} × one: {ratio:.2}, {}", verdict(ratio <= bound))
        }
        Required::CpuUs(bound) => {
            format!("≤ {bound}: {}", verdict(one.median(|found| found.cpu_us) <= bound))
        }
    };
    let what = format!("{}, processor µs", case.what);
    Ok(Line { what, cells: columns.iter().map(microseconds).collect(), required })
}

/// CPU time and latency; a dash if not measured.
fn microseconds(column: &Column) -> String {
    if column.turns.is_empty() {
        return "–".to_owned();
    }
    let of = |figure: fn(&Figures) -> f64| column.median(figure);
    format!("{:.1}, p99 {:.1} ms", of(|found| found.cpu_us), of(|found| found.p99_us) / 1e3)
}
