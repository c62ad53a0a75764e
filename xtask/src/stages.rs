//! `cargo xtask test`: all stages in order; the others run even if one fails.

use crate::clients::{self, Row, Table};
use crate::conformance;
use crate::run::{self, cargo};
use crate::tally::{self, Runner, Tally};
use crate::tidy;
use std::ops::AddAssign;
use std::path::Path;
use std::time::Instant;

/// The group of a stage, for `--only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Rust,
    Python,
    JavaScript,
    Java,
    Go,
    RustSdk,
    Table,
    Generations,
    Browser,
    Kill,
    Disk,
    Hostile,
}

impl Group {
    fn parse(name: &str) -> Option<Group> {
        Some(match name {
            "rust" => Group::Rust,
            "python" => Group::Python,
            "javascript" => Group::JavaScript,
            "java" => Group::Java,
            "go" => Group::Go,
            "rust-sdk" => Group::RustSdk,
            "table" => Group::Table,
            "generations" => Group::Generations,
            "browser" => Group::Browser,
            "kill" => Group::Kill,
            "disk" => Group::Disk,
            "hostile" => Group::Hostile,
            _ => return None,
        })
    }
}

/// What a stage found: counts of tests, and the clients that passed all of theirs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) clients: Vec<Row>,
}

impl From<Tally> for Outcome {
    fn from(tally: Tally) -> Outcome {
        Outcome { tally, clients: Vec::new() }
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.tally += other.tally;
        self.clients.extend(other.clients);
    }
}

/// A stage: checks pass or fail as a whole, tests are counted.
type Stage = (Group, &'static str, fn(&Path) -> Result<Outcome, String>);

const STAGES: [Stage; 22] = [
    (Group::Rust, "format", |root| check(cargo(root, &["fmt", "--all", "--check"]))),
    (Group::Rust, "clippy", |root| {
        check(cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    (Group::Rust, "tidy", |root| tidy::report(root).map(|()| Outcome::default())),
    (Group::Rust, "cargo test", |root| {
        counted(Runner::Cargo, cargo(root, &["test", "--workspace", "--no-fail-fast"]))
    }),
    (Group::Rust, "release build", |root| conformance::server(root).map(|_| Outcome::default())),
    (Group::Python, "python sdk", |root| {
        client(Runner::Pytest, conformance::python_suite(root, "tests")?, "conformance/python")
    }),
    (Group::JavaScript, "javascript sdk", |root| {
        client(Runner::Node, conformance::javascript_suite(root, "test")?, "conformance/javascript")
    }),
    (Group::Java, "java sdk", |root| {
        client(Runner::Maven, conformance::java_suite(root, "perihelion")?, "conformance/java")
    }),
    (Group::Go, "go sdk", |root| client(Runner::Go, conformance::go_suite(root, ".")?, "conformance/go")),
    (Group::RustSdk, "rust sdk", |root| {
        let outcome = counted(Runner::Cargo, conformance::rust_sdk_suite(root)?)?;
        named(outcome.tally, &conformance::rust_sdk_client(root)?, "conformance/rust")
    }),
    (Group::Table, "table client of python", |root| {
        client(Runner::Pytest, conformance::python_suite(root, "table")?, "conformance/python/table")
    }),
    (Group::Table, "table client of javascript", |root| {
        client(Runner::Node, conformance::javascript_suite(root, "table")?, "conformance/javascript/table")
    }),
    (Group::Table, "table client of java", |root| {
        let folder = "conformance/java/src/test/java/perihelion/table";
        client(Runner::Maven, conformance::java_suite(root, "perihelion/table")?, folder)
    }),
    (Group::Table, "table client of go", |root| {
        client(Runner::Go, conformance::go_suite(root, "./table")?, "conformance/go/table")
    }),
    (Group::Generations, "old and third-party clients", conformance::generations),
    (Group::Browser, "browser", |root| counted(Runner::Node, conformance::browser_suite(root)?)),
    (Group::Kill, "self-tests of the drivers", |root| {
        counted(Runner::Pytest, conformance::driver_suite(root)?)
    }),
    (Group::Kill, "kill -9", |root| {
        counted(Runner::Driver, conformance::kill_command(root, &["--rounds", "20"])?)
    }),
    (Group::Kill, "kill -9 during splits", |root| {
        counted(Runner::Driver, conformance::kill_command(root, &["--rounds", "12", "--splits"])?)
    }),
    (Group::Kill, "histories of racing clients", |root| {
        counted(Runner::Driver, conformance::histories_command(root, &["--rounds", "40"])?)
    }),
    (Group::Disk, "disk full", |root| counted(Runner::Driver, conformance::disk_command(root)?)),
    (Group::Hostile, "hostile clients", |root| counted(Runner::Driver, conformance::hostile_command(root)?)),
];

/// Runs the stages selected by `arguments` and prints the totals.
pub(crate) fn test(root: &Path, arguments: &[String]) -> Result<(), String> {
    let (only, table) = selection(arguments)?;
    conformance::build_tools()?;
    let begun = Instant::now();
    let mut total = Tally::default();
    let mut lines = Vec::new();
    for (group, name, stage) in STAGES {
        if only.is_some_and(|only| only != group) {
            continue;
        }
        println!("\n== {name}");
        let stage_begun = Instant::now();
        let result = stage(root);
        let seconds = stage_begun.elapsed().as_secs_f64();
        let written = clients::settle(root, result.as_ref().map_or(&[], |outcome| &outcome.clients), table);
        let (tally, mut verdict) = judged(result);
        total += tally;
        if let Err(message) = written {
            total.failed += 1;
            verdict = format!("{verdict}; FAILED: {message}");
        }
        lines.push(format!("{seconds:7.1} s  {name}: {verdict}"));
    }
    println!("\n== summary after {:.0} s", begun.elapsed().as_secs_f64());
    for line in lines {
        println!("{line}");
    }
    println!("{total}");
    if total.failed > 0 { Err(format!("{} failed", total.failed)) } else { Ok(()) }
}

/// A failed stage without a failed test counts as one failure.
fn judged(result: Result<Outcome, String>) -> (Tally, String) {
    match result {
        Ok(Outcome { tally, .. }) if tally == Tally::default() => (tally, "ok".to_owned()),
        Ok(Outcome { tally, .. }) => (tally, tally.to_string()),
        Err(message) => (Tally { passed: 0, failed: 1 }, format!("FAILED: {message}")),
    }
}

/// The stages to run and what to do with the table of clients.
fn selection(arguments: &[String]) -> Result<(Option<Group>, Table), String> {
    let mut only = None;
    let mut table = Table::Compare;
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--update" => table = Table::Update,
            "--only" => {
                let name = words.next().unwrap_or_default();
                let group =
                    Group::parse(name).ok_or_else(|| format!("unknown part \"{name}\" after --only"))?;
                only = Some(group);
            }
            _ => return Err(format!("cannot understand \"{word}\"; known: --only PART, --update")),
        }
    }
    Ok((only, table))
}

fn check(command: std::process::Command) -> Result<Outcome, String> {
    run::plain(command).map(|()| Outcome::default())
}

fn counted(runner: Runner, command: std::process::Command) -> Result<Outcome, String> {
    let (output, is_good) = run::tee(command)?;
    total(runner, &output, is_good).map(Outcome::from)
}

/// The suite of an SDK, which names its client in its output.
fn client(runner: Runner, command: std::process::Command, folder: &str) -> Result<Outcome, String> {
    let (output, is_good) = run::tee(command)?;
    named(total(runner, &output, is_good)?, &output, folder)
}

/// Counts with their client. One with failures has no place in the table.
pub(crate) fn named(tally: Tally, output: &str, folder: &str) -> Result<Outcome, String> {
    if tally.failed > 0 {
        return Ok(Outcome::from(tally));
    }
    Ok(Outcome { tally, clients: vec![Row::from_output(output, folder, tally)?] })
}

/// The counts in the output of a runner, if they agree with how it ended.
fn total(runner: Runner, output: &str, is_good: bool) -> Result<Tally, String> {
    match tally::count(runner, output) {
        None => Err("no totals were printed".to_owned()),
        Some(tally) if !is_good && tally.failed == 0 => Err(format!("{tally}, but it ended badly")),
        Some(Tally { passed: 0, failed: 0 }) => Err("no test ran".to_owned()),
        Some(tally) => Ok(tally),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> std::process::Command {
        run::command("sh", Path::new("/"), &["-c", script])
    }

    #[test]
    fn bad_ends_and_silence_count_as_failures() {
        let good = counted(Runner::Driver, shell("echo 2 passed, 0 failed"));
        assert_eq!(judged(good).0, Tally { passed: 2, failed: 0 });
        let failed = counted(Runner::Driver, shell("echo 2 passed, 3 failed; exit 1"));
        assert_eq!(judged(failed).0, Tally { passed: 2, failed: 3 });
        for script in ["echo 2 passed, 0 failed; exit 1", "exit 0", "echo 0 passed, 0 failed"] {
            assert_eq!(
                judged(counted(Runner::Driver, shell(script))).0,
                Tally { passed: 0, failed: 1 },
                "{script}"
            );
        }
    }

    #[test]
    fn parts_are_chosen_by_name() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(selection(&[]), Ok((None, Table::Compare)));
        assert_eq!(selection(&words("--only kill")), Ok((Some(Group::Kill), Table::Compare)));
        assert_eq!(selection(&words("--update --only go")), Ok((Some(Group::Go), Table::Update)));
        assert_eq!(selection(&words("--only table")), Ok((Some(Group::Table), Table::Compare)));
        for bad in ["--only all", "--only", "x"] {
            assert!(selection(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_suite_names_its_client_unless_it_fails() {
        let named = r#"echo 'client {"client":"a","version":"1","language":"Go","protocol":"2018-12-31"}'"#;
        let good =
            client(Runner::Driver, shell(&format!("{named}; echo 2 passed, 0 failed")), "c/a").unwrap();
        assert_eq!((good.tally.passed, good.clients.len()), (2, 1));
        let bad = client(Runner::Driver, shell(&format!("{named}; echo 2 passed, 1 failed; exit 1")), "c/a")
            .unwrap();
        assert_eq!((bad.tally.failed, bad.clients.len()), (1, 0));
        assert!(client(Runner::Driver, shell("echo 2 passed, 0 failed"), "c/a").is_err());
    }
}
