//! Runs many seeds and prints the smallest scenario of the first that fails, or checks a recorded history.
#![allow(clippy::print_stdout)] // a program for people at a terminal

use clap::Parser;
use sim::scenario::{Length, draw};
use sim::shrink::shrink;
use sim::simulation::{Planted, run_planted};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeded simulations of the engine against a naive model.
#[derive(Parser)]
struct Arguments {
    /// Seeds to run, as first..end.
    #[arg(long, default_value = "0..1000")]
    seeds: String,
    /// Scenarios of some tens of operations instead of hundreds.
    #[arg(long)]
    short: bool,
    /// Print the trace of every seed.
    #[arg(long)]
    trace: bool,
    /// Continue after a failing seed, without shrinking it.
    #[arg(long)]
    keep_going: bool,
    /// Compare this many pairs of random queries and documents with simple rules instead.
    #[arg(long, value_name = "PAIRS")]
    queries: Option<u64>,
    /// Run simulations of background work instead: definitions, jobs, index builds, consumers of logs.
    #[arg(long)]
    housekeeping: bool,
    /// Check the histories that clients recorded in this file instead.
    #[arg(long, value_name = "FILE")]
    judge: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    count_planted_panics();
    if let Some(file) = &arguments.judge {
        return check_recorded(file);
    }
    let Some((first, end)) = parse_seeds(&arguments.seeds) else {
        println!("seeds are given as first..end");
        return ExitCode::from(2);
    };
    if let Some(pairs) = arguments.queries {
        return compare_queries(first, pairs);
    }
    if arguments.housekeeping {
        return keep_house(first, end, arguments.keep_going);
    }
    let length = if arguments.short { Length::Short } else { Length::Long };
    let (mut operations, mut faults, mut crashes, mut splits, mut failed) = (0, 0, 0, 0, 0);
    for seed in first..end {
        let scenario = draw(seed, length);
        match run_planted(&scenario, planted()) {
            Ok(summary) => {
                operations += summary.operations;
                faults += summary.faults;
                crashes += summary.crashes;
                splits += summary.splits;
                if arguments.trace {
                    println!("seed {seed}: {:016x}, {} operations", summary.trace_hash, summary.operations);
                }
            }
            Err(violation) if arguments.keep_going => {
                failed += 1;
                let first_line = violation.failure.lines().next().unwrap_or_default();
                println!("seed {seed} fails in wave {}: {first_line}", violation.wave);
            }
            Err(violation) => {
                println!("seed {seed} fails in wave {}: {}", violation.wave, violation.failure);
                let (small, violation) = shrink(&scenario, planted(), violation);
                println!("\nthe smallest failing scenario has {} waves", small.waves.len());
                println!(
                    "buffered {}, partitions {}, unique {:?}, default {:?}",
                    small.buffered, small.partitions, small.unique, small.default_ttl
                );
                for line in &violation.trace {
                    println!("{line}");
                }
                println!("{}", violation.failure);
                return ExitCode::FAILURE;
            }
        }
    }
    let panics = PANICS.load(Ordering::Relaxed);
    println!(
        "{} seeds, {operations} operations, {faults} faults, {crashes} crashes, {splits} splits, {panics} panics",
        end - first
    );
    if failed > 0 {
        println!("{failed} seeds failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The faults injected into the product: none, unless this program is built with planted faults.
fn planted() -> Planted<'static> {
    #[cfg(feature = "planted-faults")]
    let hooks = Some(sim::hooks::Hooks::PLANTED);
    #[cfg(not(feature = "planted-faults"))]
    let hooks = None;
    Planted { hooks, ..Planted::default() }
}

/// Number of planted panics so far.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts the planted panics, and suppresses their output.
fn count_planted_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() == Some("planted panic") {
            PANICS.fetch_add(1, Ordering::Relaxed);
        } else {
            usual(panic);
        }
    }));
}

/// Runs seeds from `first` on until `pairs` pairs are compared.
fn compare_queries(first: u64, pairs: u64) -> ExitCode {
    let mut total = sim::queries::Tally::default();
    for seed in first.. {
        match sim::queries::compare(seed) {
            Ok(tally) => {
                total.pairs += tally.pairs;
                total.pages += tally.pages;
                total.rows += tally.rows;
            }
            Err(failure) => {
                println!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        if total.pairs >= pairs {
            break;
        }
    }
    println!("{} pairs, {} pages, {} rows, all as the rules say", total.pairs, total.pages, total.rows);
    ExitCode::SUCCESS
}

fn keep_house(first: u64, end: u64, keep_going: bool) -> ExitCode {
    let mut failed = 0;
    for seed in first..end {
        if let Err(failure) = sim::housekeeping::play(&sim::course::draw(seed), planted().hooks) {
            println!("{failure}");
            failed += 1;
            if !keep_going {
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{} seeds of housekeeping", end - first);
    if failed > 0 {
        println!("{failed} seeds failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn check_recorded(file: &Path) -> ExitCode {
    let checked = std::fs::read_to_string(file).map_err(|error| error.to_string());
    match checked.and_then(|text| sim::recorded::check(&text)) {
        Ok(checked) => {
            println!("{} operations in {} histories, all explained", checked.operations, checked.histories);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{}: {failure}", file.display());
            ExitCode::FAILURE
        }
    }
}

fn parse_seeds(text: &str) -> Option<(u64, u64)> {
    let (first, end) = text.split_once("..")?;
    Some((first.parse().ok()?, end.parse().ok()?))
}
