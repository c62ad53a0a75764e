//! The cases, in an order that shares their setup.

mod create;
mod footprint;
mod query;
mod read;

use crate::load::{self, Figures, Target, Work};
use crate::partitions::SIXTY_FOUR_PARTITIONS;
use crate::postgres::Postgres;
use crate::process::{Process, server_core_busy};
use crate::questions::Question;
use crate::report::Row;
use crate::table::TEN_PARTITIONS;
use crate::{Options, Result, scripts};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Connections of reading cases and of writing cases.
pub(crate) const READERS: usize = 32;
pub(crate) const WRITERS: usize = 64;

/// The composite index for one of the queries.
pub(crate) const COMPOSITE: &str =
    r#"[{"path":"/category","order":"ascending"},{"path":"/score","order":"descending"}]"#;

/// Runs all requested cases.
pub(crate) async fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let postgres = Postgres::start()?;
    if options.wants(&["1", "2", "3", "24"]) {
        rows.extend(read::run(options, postgres.as_ref()).await?);
    }
    if options.wants(&["11", "12", "13", "14", "15", "16", "17", "20"]) {
        rows.extend(query::run(options, postgres.as_ref()).await?);
    }
    if options.wants(&["6", "7", "8", "9", "26"]) {
        rows.extend(create::run(options, postgres.as_ref()).await?);
    }
    if options.wants(&["19", "21", "22"]) {
        rows.extend(footprint::run(options).await?);
    }
    Ok(rows)
}

impl Options {
    pub(crate) fn wants(&self, cases: &[&str]) -> bool {
        self.only.is_empty() || cases.iter().any(|case| self.only.iter().any(|wanted| wanted == case))
    }
}

/// The reference server with its two ports.
pub(crate) struct Reference {
    pub(crate) process: Process,
    pub(crate) plain: SocketAddr,
    pub(crate) secure: SocketAddr,
}

pub(crate) fn start_reference() -> Result<Reference> {
    let (process, line) = Process::start(&std::env::current_exe()?, &["reference"])?;
    let mut words = line.split_whitespace().skip(1);
    let mut next = || -> Result<SocketAddr> { Ok(words.next().ok_or("ready line")?.parse()?) };
    Ok(Reference { plain: next()?, secure: next()?, process })
}

/// The median of several measurements by rate.
pub(crate) async fn measure(
    options: &Options,
    process: &Process,
    target: Target,
    work: impl Fn(usize) -> Work,
) -> Result<Figures> {
    let mut all = Vec::new();
    for repeat in 0..options.repeats {
        all.push(measure_once(options, process, target, &work(repeat)).await?);
    }
    all.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    Ok(all.swap_remove(all.len() / 2))
}

/// Measures two servers alternately, after one uncounted turn of each, and returns the pair with the median ratio: a
/// machine that slows down meanwhile affects both.
pub(crate) async fn measure_alternately(
    options: &Options,
    one: (&Process, Target, &Work),
    other: (&Process, Target, &Work),
) -> Result<(Figures, Figures)> {
    let mut all = Vec::new();
    for _ in 0..=options.repeats {
        let first = measure_once(options, one.0, one.1, one.2).await?;
        all.push((first, measure_once(options, other.0, other.1, other.2).await?));
    }
    all.remove(0);
    let ratio = |pair: &(Figures, Figures)| pair.0.rate / pair.1.rate;
    all.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    Ok(all.swap_remove(all.len() / 2))
}

/// Measures once, with the server's cost.
pub(crate) async fn measure_once(
    options: &Options,
    process: &Process,
    target: Target,
    work: &Work,
) -> Result<Figures> {
    let (cpu, busy, switches) = (process.cpu()?, server_core_busy()?, process.switches()?);
    let begun = Instant::now();
    let mut figures = load::run(target, work, Duration::from_secs(options.seconds)).await?;
    let elapsed = begun.elapsed();
    let (cpu, busy) = (process.cpu()? - cpu, server_core_busy()?.saturating_sub(busy));
    let switches = process.switches()?.since(switches);
    if figures.errors > 0 {
        return Err(format!("{} errors in {work:?}", figures.errors).into());
    }
    figures.add_cost(cpu, switches, busy, elapsed);
    Ok(figures)
}

/// Fills a running server and sends one kind of request for some seconds, for use with a profiler. A name that ends in
/// `10` means a container of ten partitions, in `p64` one of 64.
#[allow(clippy::print_stdout)] // what the command is for
pub(crate) async fn drive_for_a_profiler(
    address: SocketAddr,
    what: &str,
    seconds: u64,
    count: usize,
) -> Result<()> {
    let (what, container, throughput) = match (what.strip_suffix("10"), what.strip_suffix("p64")) {
        (Some(what), _) => (what, "ten".to_owned(), TEN_PARTITIONS),
        (None, Some(what)) => (what, "many".to_owned(), SIXTY_FOUR_PARTITIONS),
        (None, None) => (what, "medium".to_owned(), 400),
    };
    // A second run finds the documents already there.
    load::create_container(address, &container, throughput, COMPOSITE).await?;
    let _ = load::fill(address, &container, count).await;
    // No two runs against one server create the same documents.
    let first = std::process::id() as usize * 10_000_000;
    let (connections, work) = match what {
        "reads" => (READERS, Work::Read { container, count }),
        "creates" => (WRITERS, Work::Create { container, first }),
        "empty" => (1, scripts::empty(address, container).await?),
        "five" => (WRITERS, scripts::five(address, container, first).await?),
        "batches" => (WRITERS, Work::Batch { container, first, size: scripts::OPERATIONS }),
        other => {
            let question = Question::named(other)
                .ok_or("reads, creates, empty, five, batches or a question by its name")?;
            (READERS, Work::Query { container, question, count })
        }
    };
    println!("driving");
    let target = Target { address, secure: false, connections };
    println!("{}", rate(&load::run(target, &work, Duration::from_secs(seconds)).await?));
    Ok(())
}

/// Fills a container through batches.
pub(crate) async fn fill(address: SocketAddr, container: &str, count: usize) -> Result<()> {
    fill_indexed(address, container, count, "").await
}

/// Fills a container that also has a composite index.
pub(crate) async fn fill_indexed(
    address: SocketAddr,
    container: &str,
    count: usize,
    composite: &str,
) -> Result<()> {
    load::create_container(address, container, 400, composite).await?;
    load::fill(address, container, count).await
}

pub(crate) fn rate(figures: &Figures) -> String {
    let Figures { rate, p50_us, p99_us, cpu_us, .. } = figures;
    format!("{rate:.0}/s, p50 {p50_us:.0} µs, p99 {p99_us:.0} µs, processor {cpu_us:.1} µs")
}
