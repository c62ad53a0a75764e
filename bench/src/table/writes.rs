//! Durable creates of one document each on 64 connections: rate, CPU time, latency, context switches.

use super::{Column, Line, Partitions, Peers, Subject, columns, show, verdict};
use crate::cases::{WRITERS, measure_once};
use crate::load::{self, Figures, Target, Work, create_container};
use crate::postgres::OperatorClass;
use crate::process::{Server, quiet};
use crate::{Options, Result, disk};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Uncounted creates that open the partitions and grow the buffers.
const WARM: Duration = Duration::from_millis(500);
/// First number of the counted documents, after those of the warm-up.
const MEASURED_FIRST: usize = 10_000_000;
/// Requirements: the rate relative to PostgreSQL's, the CPU time, the p99 in turns of all connections, ten partitions
/// relative to one.
const RATE_OVER_POSTGRES_MIN: f64 = 2.0;
const CPU_US_MAX: f64 = 50.0;
const P99_TURNS_MAX: f64 = 4.0;
const TEN_OVER_ONE_MIN: f64 = 0.9;

#[allow(clippy::print_stdout)] // what the command is for
pub(super) async fn run(options: &Options, programs: &[PathBuf], peers: &Peers) -> Result<()> {
    let mut columns = columns(programs, peers);
    let mut syncs = Vec::new();
    for turn in 1..=options.repeats {
        let folder = tempfile::tempdir()?;
        syncs.push(disk::sync_times(folder.path())?);
        for column in &mut columns {
            quiet(options.wait).await?;
            let found = create(options, &column.subject, peers).await?;
            println!("turn {turn}, {}: {}", column.name(), describe(&found));
            column.turns.push(found);
        }
    }
    let of = |time: fn(&disk::SyncTimes) -> disk::SyncTime| {
        let median = |figure: fn(&disk::SyncTime) -> f64| {
            super::median(syncs.iter().map(|times| figure(&time(times))).collect())
        };
        format!("p50 {:.0}, p99 {:.0} µs", median(|time| time.p50_us), median(|time| time.p99_us))
    };
    println!(
        "\nfdatasync: 4 KB in a growing file {}; 4 KB preallocated {}; 64 KB, as a group of 64 creates, {}\n",
        of(|times| times.growing),
        of(|times| times.preallocated),
        of(|times| times.group)
    );
    let program = programs.last().ok_or("no server")?;
    show(&columns, &lines(&columns, program)?);
    Ok(())
}

/// One turn, on a new store.
async fn create(options: &Options, subject: &Subject, peers: &Peers) -> Result<Figures> {
    match subject {
        Subject::Postgres(class) => {
            let postgres = peers.postgres.as_ref().ok_or("PostgreSQL does not run")?;
            postgres.creates(options, *class, WRITERS, 1).await
        }
        Subject::Vercel => {
            let server = peers.vercel.as_ref().ok_or("not installed")?.start()?;
            create_on(options, &server, Partitions::One).await
        }
        Subject::Server { program, partitions } => {
            let folder = tempfile::tempdir()?;
            let server = Server::start(program, &folder.path().join("data"), &[])?;
            create_on(options, &server, *partitions).await
        }
    }
}

async fn create_on(options: &Options, server: &Server, partitions: Partitions) -> Result<Figures> {
    let container = partitions.name();
    create_container(server.address, container, partitions.throughput(), "").await?;
    let target = Target { address: server.address, secure: false, connections: WRITERS };
    let work = |first| Work::Create { container: container.to_owned(), first };
    load::run(target, &work(0), WARM).await?;
    measure_once(options, &server.process, target, &work(MEASURED_FIRST)).await
}

fn describe(found: &Figures) -> String {
    let Figures { rate, p50_us, p99_us, cpu_us, switches, others, .. } = found;
    format!(
        "{rate:.0}/s, p50 {:.1} ms, p99 {:.1} ms, processor {cpu_us:.1} µs, switches {:.2} + {:.2}, others on the core {:.0} %",
        p50_us / 1e3,
        p99_us / 1e3,
        switches.0,
        switches.1,
        others * 1e2
    )
}

fn lines(columns: &[Column], program: &Path) -> Result<Vec<Line>> {
    let find = |partitions| columns.iter().find(|column| column.is_of(program, partitions));
    let one = find(Partitions::One).ok_or("no column of one partition")?;
    let ten = find(Partitions::Ten).ok_or("no column of ten partitions")?;
    let peer = columns.iter().find(|column| column.subject == Subject::Postgres(OperatorClass::PathOps));
    let line = |what: &str, required: String, cell: &dyn Fn(&Column) -> String| Line {
        what: what.to_owned(),
        cells: columns.iter().map(cell).collect(),
        required,
    };
    let ten_over_one = ten.over(one, |found| found.rate);
    let mut required = format!(
        "ten ≥ {TEN_OVER_ONE_MIN} of one: {ten_over_one:.2}, {}",
        verdict(ten_over_one >= TEN_OVER_ONE_MIN)
    );
    if let Some(peer) = peer {
        let over = one.over(peer, |found| found.rate);
        let met = verdict(over >= RATE_OVER_POSTGRES_MIN);
        required = format!("≥ {RATE_OVER_POSTGRES_MIN} × PostgreSQL: {met}; {required}");
    }
    let rate = |column: &Column| {
        let rate = format!("{:.0}", column.median(|found| found.rate));
        match peer {
            Some(peer) => format!("{rate} ({:.2} ×)", column.over(peer, |found| found.rate)),
            None => rate,
        }
    };
    let cpu = one.median(|found| found.cpu_us);
    let turns = |column: &Column| column.median(|found| found.p99_us * found.rate / 1e6 / WRITERS as f64);
    let p99 = |column: &Column| {
        format!("{:.1} ({:.1} turns)", column.median(|found| found.p99_us / 1e3), turns(column))
    };
    let switches = |column: &Column| {
        let of = |figure: fn(&Figures) -> f64| column.median(figure);
        format!("{:.2} + {:.2}", of(|found| found.switches.0), of(|found| found.switches.1))
    };
    let others = |column: &Column| format!("{:.0}", column.median(|found| found.others * 1e2));
    Ok(vec![
        line("durable create /s", required, &rate),
        line(
            "processor µs per create",
            format!("≤ {CPU_US_MAX}: {}", verdict(cpu <= CPU_US_MAX)),
            &|column| format!("{:.1}", column.median(|found| found.cpu_us)),
        ),
        line("p50 of a create, ms", String::new(), &|column| {
            format!("{:.1}", column.median(|found| found.p50_us / 1e3))
        }),
        line(
            "p99 of a create, ms",
            format!("≤ {P99_TURNS_MAX} × (64 ÷ rate): {}", verdict(turns(one) <= P99_TURNS_MAX)),
            &p99,
        ),
        line("context switches per create, voluntary + involuntary", String::new(), &switches),
        line("other processes on the server's core, %", String::new(), &others),
    ])
}
