//! Tasks of the project: `cargo xtask test`, `tidy`, `kill`, `disk-full`, `hostile`, `damage`, `bench`.
//!
//! Each task uses the repository's files and external tools; nothing here is linked into the server.

#![allow(clippy::print_stdout, clippy::print_stderr)] // what tasks are for

mod bench;
mod clients;
mod conformance;
mod run;
mod stages;
mod tally;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask TASK

  test [--only PART] [--update]                    every check and test; the totals are the last line
       parts: rust python javascript java go rust-sdk generations browser kill disk hostile
       --update writes the table of clients in COMPAT.md, which is otherwise compared with what ran
  tidy                                             crate dependencies, file sizes, heads, links
  kill [--rounds N] [--seed S] [--splits]          kill -9 under load, restart, compare; also while partitions split
  histories [--rounds N] [--seed S]                concurrent clients; one order of events must explain every answer
  disk-full                                        fill a small disk, free it, compare
  hostile                                          clients with excessive requests, and a normal one
  damage                                           flip bits in every file of a store and open it
  bench [--seconds N] [--repeats N] [--large N] [--only 1,2,6]   ratios to the reference and to PostgreSQL
  bench table|writes|reads [--beside BINARY] [--peers yes|no]     one and ten partitions compared with PostgreSQL and other builds
  bench soak [--minutes N] [--rate N] [--write FILE]   a long mixed load at a fixed rate, a line per minute
  bench count [--against bench/COUNTS | --beside BINARY]   instructions and context switches per request; alone, it
       writes bench/COUNTS; against it, it fails above + 3 % or + 0.1 switches";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let rest = arguments.get(1..).unwrap_or_default();
    let result = match arguments.first().map(String::as_str) {
        Some("test") => stages::test(&root, rest),
        Some("tidy") => tidy::report(&root),
        Some("kill") => conformance::kill(&root, rest),
        Some("histories") => conformance::histories(&root, rest),
        Some("disk-full") => conformance::disk_full(&root),
        Some("hostile") => conformance::hostile(&root),
        Some("damage") => damage(&root),
        Some("bench") => bench::run(&root, rest),
        Some(other) => Err(format!("unknown task \"{other}\"\n\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The long variant of the store's tests with damaged files.
fn damage(root: &Path) -> Result<(), String> {
    let test =
        ["test", "--release", "--package", "perihelion-kv", "--test", "it", "damage::", "--", "--nocapture"];
    let mut cargo = run::cargo(root, &test);
    cargo.env("KV_DAMAGE_ALL_FILES", "1");
    run::plain(cargo)
}

/// The repository's top folder.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
