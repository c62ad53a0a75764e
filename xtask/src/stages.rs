//! `cargo xtask test`: all stages in order; the others run even if one fails.

use crate::conformance;
use crate::run::{self, cargo};
use crate::tally::{self, Runner, Tally};
use crate::tidy;
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
            "browser" => Group::Browser,
            "kill" => Group::Kill,
            "disk" => Group::Disk,
            "hostile" => Group::Hostile,
            _ => return None,
        })
    }
}

/// A stage: checks pass or fail as a whole, tests are counted.
type Stage = (Group, &'static str, fn(&Path) -> Result<Tally, String>);

const STAGES: [Stage; 16] = [
    (Group::Rust, "format", |root| check(cargo(root, &["fmt", "--all", "--check"]))),
    (Group::Rust, "clippy", |root| {
        check(cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    (Group::Rust, "tidy", |root| tidy::report(root).map(|()| Tally::default())),
    (Group::Rust, "cargo test", |root| {
        counted(Runner::Cargo, cargo(root, &["test", "--workspace", "--no-fail-fast"]))
    }),
    (Group::Rust, "release build", |root| conformance::server(root).map(|_| Tally::default())),
    (Group::Python, "python sdk", |root| counted(Runner::Pytest, conformance::python_suite(root)?)),
    (Group::JavaScript, "javascript sdk", |root| counted(Runner::Node, conformance::javascript_suite(root)?)),
    (Group::Java, "java sdk", |root| counted(Runner::Maven, conformance::java_suite(root)?)),
    (Group::Go, "go sdk", |root| counted(Runner::Go, conformance::go_suite(root)?)),
    (Group::RustSdk, "rust sdk", |root| counted(Runner::Cargo, conformance::rust_sdk_suite(root)?)),
    (Group::Browser, "browser", |root| counted(Runner::Node, conformance::browser_suite(root)?)),
    (Group::Kill, "self-tests of the drivers", |root| {
        counted(Runner::Pytest, conformance::driver_suite(root)?)
    }),
    (Group::Kill, "kill -9", |root| {
        counted(Runner::Driver, conformance::kill_command(root, &["--rounds", "20"])?)
    }),
    (Group::Kill, "histories of racing clients", |root| {
        counted(Runner::Driver, conformance::histories_command(root, &["--rounds", "40"])?)
    }),
    (Group::Disk, "disk full", |root| counted(Runner::Driver, conformance::disk_command(root)?)),
    (Group::Hostile, "hostile clients", |root| counted(Runner::Driver, conformance::hostile_command(root)?)),
];

/// Runs the stages selected by `arguments` and prints the totals.
pub(crate) fn test(root: &Path, arguments: &[String]) -> Result<(), String> {
    let only = only(arguments)?;
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
        let (tally, verdict) = judged(result);
        total += tally;
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
fn judged(result: Result<Tally, String>) -> (Tally, String) {
    match result {
        Ok(tally) if tally == Tally::default() => (tally, "ok".to_owned()),
        Ok(tally) => (tally, tally.to_string()),
        Err(message) => (Tally { passed: 0, failed: 1 }, format!("FAILED: {message}")),
    }
}

fn only(arguments: &[String]) -> Result<Option<Group>, String> {
    match arguments {
        [] => Ok(None),
        [flag, name] if flag == "--only" => {
            Group::parse(name).map(Some).ok_or_else(|| format!("unknown part \"{name}\" after --only"))
        }
        _ => Err(format!(
            "cannot understand {arguments:?}; known: --only rust|python|javascript|java|go|rust-sdk|browser|kill|disk|hostile"
        )),
    }
}

fn check(command: std::process::Command) -> Result<Tally, String> {
    run::plain(command).map(|()| Tally::default())
}

fn counted(runner: Runner, command: std::process::Command) -> Result<Tally, String> {
    let (output, is_good) = run::tee(command)?;
    match tally::count(runner, &output) {
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
        assert_eq!(only(&[]), Ok(None));
        assert_eq!(only(&words("--only kill")), Ok(Some(Group::Kill)));
        assert!(
            only(&words("--only all")).is_err()
                && only(&words("--only")).is_err()
                && only(&words("x")).is_err()
        );
    }
}
