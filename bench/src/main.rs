//! Benchmark driver: starts the reference server, this server and PostgreSQL, drives them, prints ratios.
//!
//! Servers run on core 0, this program on core 1. Absolute figures are not meaningful on a shared machine; ratios of
//! figures from one run are, and the reference runs before and after. Never part of a test.

mod cases;
mod client;
mod count;
mod disk;
mod documents;
mod entities;
mod load;
mod npm;
mod overwrite;
mod partitions;
mod postgres;
mod process;
mod questions;
mod reference;
mod report;
mod scripts;
mod signature;
mod soak;
mod table;

use crate::count::Destination;
use crate::soak::Soak;
use crate::table::Part;
use std::path::PathBuf;
use std::time::Duration;

/// Any error ends the run with its text.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Options of a run.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) server: PathBuf,
    /// Length of one measurement.
    pub(crate) seconds: u64,
    /// Measurements of a case; the median is used.
    pub(crate) repeats: usize,
    /// Documents of the large container.
    pub(crate) large: usize,
    /// How long a turn of a table waits for an idle machine.
    pub(crate) wait: Duration,
    /// Cases to run; empty means all.
    pub(crate) only: Vec<String>,
}

fn main() -> Result<()> {
    process::move_to_client_core();
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
    let (command, flags) = match arguments.split_first() {
        Some((command, flags)) if !command.starts_with("--") => (command.as_str(), flags),
        Some(_) | None => ("cases", arguments.as_slice()),
    };
    let Flags { options, others, peers, destination, soak } = parse(command, flags)?;
    match command {
        "cases" => {
            let rows = runtime.block_on(cases::run(&options))?;
            report::show(&rows);
            Ok(())
        }
        "count" => runtime.block_on(count::run(&options, &others, &destination)),
        "entities" => runtime.block_on(entities::run(&options)),
        "overwrite" => runtime.block_on(overwrite::run(&options)),
        "partitions" => {
            let rows = runtime.block_on(partitions::run(&options))?;
            report::show(&rows);
            Ok(())
        }
        "scripts" => {
            let rows = runtime.block_on(scripts::run(&options))?;
            report::show(&rows);
            Ok(())
        }
        "soak" => runtime.block_on(soak::run(&options, &soak)),
        "table" => runtime.block_on(table::run(&options, &others, &[Part::Writes, Part::Reads], peers)),
        "writes" => runtime.block_on(table::run(&options, &others, &[Part::Writes], peers)),
        "reads" => runtime.block_on(table::run(&options, &others, &[Part::Reads], peers)),
        other => Err(format!("unknown command {other}; known: {COMMANDS}").into()),
    }
}

const COMMANDS: &str =
    "cases, table, writes, reads, count, overwrite, partitions, scripts, entities, soak, drive, reference";
const FLAGS: &str = "--server FILE, --beside FILE, --seconds N, --repeats N, --large N, --only 1,2,6, \
    --peers yes|no, --wait SECONDS, --write FILE, --against FILE, --profiles FOLDER, --minutes N, --rate N";

/// The parsed command line.
struct Flags {
    options: Options,
    /// Builds to compare with.
    others: Vec<PathBuf>,
    /// Whether peers are measured too.
    peers: bool,
    /// Where the counts go.
    destination: Destination,
    /// Options of the long load.
    soak: Soak,
}

fn parse(command: &str, flags: &[String]) -> Result<Flags> {
    let (mut others, mut destination) = (Vec::new(), Destination::default());
    // The quick comparisons of builds run without peers, and take the median of five.
    let (mut peers, seconds, repeats) = match command {
        "table" => (true, 5, 5),
        "writes" | "reads" => (false, 5, 5),
        "overwrite" => (false, 120, 2),
        _ => (true, 8, 3),
    };
    let mut options = Options {
        server: PathBuf::from("target/release/perihelion"),
        seconds,
        repeats,
        large: 1_000_000,
        wait: Duration::ZERO,
        only: Vec::new(),
    };
    let mut soak = Soak { minutes: 60, rate: 2000.0, file: PathBuf::from("soak.txt") };
    let mut rest = flags.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--server" => options.server = PathBuf::from(value),
            "--beside" => others.push(PathBuf::from(value)),
            "--seconds" => options.seconds = value.parse()?,
            "--repeats" => options.repeats = value.parse()?,
            "--large" => options.large = value.parse()?,
            "--wait" => options.wait = Duration::from_secs(value.parse()?),
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--write" if command == "soak" => soak.file = PathBuf::from(value),
            "--write" => destination.write = Some(PathBuf::from(value)),
            "--minutes" => soak.minutes = value.parse()?,
            "--rate" => soak.rate = value.parse()?,
            "--against" => destination.against = Some(PathBuf::from(value)),
            "--profiles" => destination.profiles = Some(PathBuf::from(value)),
            "--peers" => peers = value == "yes",
            other => return Err(format!("unknown flag {other}; known: {FLAGS}").into()),
        }
    }
    Ok(Flags { options, others, peers, destination, soak })
}
