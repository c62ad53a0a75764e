//! Benchmark driver: starts the reference server, this server and PostgreSQL, drives them, prints ratios.
//!
//! Servers run on core 0, this program on core 1. Absolute figures say little on a shared machine; what counts are
//! ratios of figures from one run, and the reference runs before and after. Never part of a test.

mod cases;
mod client;
mod count;
mod disk;
mod documents;
mod load;
mod postgres;
mod process;
mod questions;
mod reference;
mod report;
mod signature;

use std::path::PathBuf;

/// Any error ends the run with its text.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How a run is made.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The server's binary.
    pub(crate) server: PathBuf,
    /// Length of one measurement.
    pub(crate) seconds: u64,
    /// Measurements of a case; the median counts.
    pub(crate) repeats: usize,
    /// Documents of the large container.
    pub(crate) large: usize,
    /// Cases to run; empty means all.
    pub(crate) only: Vec<String>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if arguments.first().map(String::as_str) == Some("reference") {
        let documents = arguments.get(1).map_or(Ok(100_000), |text| text.parse())?;
        return runtime.block_on(reference::serve(documents));
    }
    if let [command, address, what, seconds, count] = arguments.as_slice()
        && command == "drive"
    {
        let work = cases::drive_for_a_profiler(address.parse()?, what, seconds.parse()?, count.parse()?);
        return runtime.block_on(work);
    }
    let (options, others) = parse(&arguments)?;
    if arguments.first().map(String::as_str) == Some("count") {
        return runtime.block_on(count::run(&options, &others));
    }
    let table = runtime.block_on(cases::run(&options))?;
    report::show(&table);
    Ok(())
}

/// The options, and the servers to compare with.
fn parse(arguments: &[String]) -> Result<(Options, Vec<PathBuf>)> {
    let mut others = Vec::new();
    let mut options = Options {
        server: PathBuf::from("target/release/perihelion"),
        seconds: 8,
        repeats: 3,
        large: 1_000_000,
        only: Vec::new(),
    };
    let mut rest = arguments.iter().skip_while(|word| *word == "count");
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--server" => options.server = PathBuf::from(value),
            "--beside" => others.push(PathBuf::from(value)),
            "--seconds" => options.seconds = value.parse()?,
            "--repeats" => options.repeats = value.parse()?,
            "--large" => options.large = value.parse()?,
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            other => {
                let known = "--server FILE, --beside FILE, --seconds N, --repeats N, --large N, --only 1,2,6";
                return Err(format!("unknown flag {other}; known: {known}").into());
            }
        }
    }
    Ok((options, others))
}
