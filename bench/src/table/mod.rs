//! The table of peers: containers of one and of ten partitions compared with PostgreSQL and with other builds.
//!
//! All columns are measured in turns, so that a machine whose speed changes affects all of them; a figure is the median
//! of its turns, a ratio the median of the ratios of one turn.

mod reads;
mod writes;

use crate::load::Figures;
use crate::npm::{self, Installed};
use crate::postgres::{OperatorClass, Postgres, SETTINGS};
use crate::{Options, Result};
use std::path::{Path, PathBuf};

/// Part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Writes,
    Reads,
}

/// Throughput that gives a container one partition, and ten.
const ONE_PARTITION: u64 = 400;
pub(crate) const TEN_PARTITIONS: u64 = 60_000;

/// One or ten partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partitions {
    One,
    Ten,
}

impl Partitions {
    const ALL: [Partitions; 2] = [Partitions::One, Partitions::Ten];

    fn throughput(self) -> u64 {
        match self {
            Partitions::One => ONE_PARTITION,
            Partitions::Ten => TEN_PARTITIONS,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Partitions::One => "one",
            Partitions::Ten => "ten",
        }
    }
}

/// A measured system.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Postgres(OperatorClass),
    Vercel,
    Server { program: PathBuf, partitions: Partitions },
}

struct Peers {
    postgres: Option<Postgres>,
    vercel: Option<Installed>,
}

/// A column: a subject and the results of its turns.
struct Column {
    subject: Subject,
    turns: Vec<Figures>,
}

/// A line of the table: one cell per column, and the requirement for the build under test.
struct Line {
    what: String,
    cells: Vec<String>,
    required: String,
}

/// Measures the requested parts and prints their tables.
#[allow(clippy::print_stdout)] // what the command is for
pub(crate) async fn run(options: &Options, others: &[PathBuf], parts: &[Part], peers: bool) -> Result<()> {
    let peers = if peers { start_peers()? } else { Peers { postgres: None, vercel: None } };
    let programs: Vec<PathBuf> = others.iter().chain([&options.server]).cloned().collect();
    for part in parts {
        match part {
            Part::Writes => writes::run(options, &programs, &peers).await?,
            Part::Reads => reads::run(options, &programs, &peers).await?,
        }
    }
    Ok(())
}

#[allow(clippy::print_stdout)] // what the command is for
fn start_peers() -> Result<Peers> {
    let postgres = Postgres::start()?;
    match &postgres {
        Some(_) => println!("PostgreSQL 15: prepared statements, {}\n", SETTINGS.join(", ")),
        None => println!("PostgreSQL 15 is not installed: its columns are missing\n"),
    }
    let vercel = match npm::VERCEL.install() {
        Ok(vercel) => {
            println!("{}\n", npm::VERCEL.configuration);
            Some(vercel)
        }
        Err(reason) => {
            println!("@vercel/cosmosdb-server is left out: {reason}\n");
            None
        }
    };
    Ok(Peers { postgres, vercel })
}

/// Peers first, then the builds, the one under test last.
fn columns(programs: &[PathBuf], peers: &Peers) -> Vec<Column> {
    let postgres = OperatorClass::ALL.into_iter().map(Subject::Postgres).filter(|_| peers.postgres.is_some());
    let vercel = peers.vercel.iter().map(|_| Subject::Vercel);
    let servers = programs.iter().flat_map(|program| {
        Partitions::ALL.map(|partitions| Subject::Server { program: program.clone(), partitions })
    });
    postgres.chain(vercel).chain(servers).map(|subject| Column { subject, turns: Vec::new() }).collect()
}

impl Column {
    fn name(&self) -> String {
        match &self.subject {
            Subject::Postgres(class) => format!("PostgreSQL, {}", class.name()),
            Subject::Vercel => "@vercel/cosmosdb-server".to_owned(),
            Subject::Server { program, partitions } => {
                let name = program.file_name().unwrap_or_default().to_string_lossy();
                format!(
                    "{name}, {} partition{}",
                    partitions.name(),
                    if *partitions == Partitions::One { "" } else { "s" }
                )
            }
        }
    }

    fn median(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(self.turns.iter().map(figure).collect())
    }

    /// The median ratio of this column's figure to that of another in the same turn.
    fn over(&self, other: &Column, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(self.turns.iter().zip(&other.turns).map(|(one, other)| figure(one) / figure(other)).collect())
    }

    fn is_of(&self, program: &Path, wanted: Partitions) -> bool {
        match &self.subject {
            Subject::Server { program: own, partitions } => own == program && *partitions == wanted,
            Subject::Postgres(_) | Subject::Vercel => false,
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**short**" }
}

#[allow(clippy::print_stdout)] // what the command is for
fn show(columns: &[Column], lines: &[Line]) {
    let names: Vec<String> = columns.iter().map(Column::name).collect();
    println!("| case | {} | required |", names.join(" | "));
    println!("|---|{}---|", "---|".repeat(names.len()));
    for Line { what, cells, required } in lines {
        println!("| {what} | {} | {required} |", cells.join(" | "));
    }
    println!();
}
