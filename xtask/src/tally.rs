//! Counts tests in the words of the tools that ran them.

use std::ops::AddAssign;

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Who ran the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `test result: ok. 3 passed; 0 failed; …`, once per binary.
    Cargo,
    /// `=== 1 failed, 2 passed, 1 error in 0.5s ===`, once; without the rules when it is told to be quiet.
    Pytest,
    /// `ℹ pass 3` and `ℹ fail 0`, or the same behind `#`.
    Node,
    /// `3 passed, 0 failed`: our own drivers, last line of that form.
    Driver,
}

/// The tests that a runner's output tells of; `None` when it tells of none, which is never right.
pub(crate) fn count(runner: Runner, output: &str) -> Option<Tally> {
    let lines = output.lines().map(str::trim);
    match runner {
        Runner::Cargo => {
            let mut sum = None;
            for line in lines.filter(|line| line.starts_with("test result:")) {
                *sum.get_or_insert(Tally::default()) += words(line);
            }
            sum
        }
        Runner::Pytest => {
            let is_summary = |line: &&str| {
                let line = line.trim_matches(['=', ' ']);
                let counts = ["passed", "failed", "error"].iter().any(|word| line.contains(word));
                counts && line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" in ")
            };
            lines.rev().find(is_summary).map(words)
        }
        Runner::Node => {
            let last = |name: &str| {
                let number = |line: &str| {
                    line.strip_prefix('ℹ')
                        .or(line.strip_prefix('#'))?
                        .trim()
                        .strip_prefix(name)?
                        .trim()
                        .parse()
                        .ok()
                };
                output.lines().rev().find_map(number)
            };
            Some(Tally { passed: last("pass ")?, failed: last("fail ")? })
        }
        Runner::Driver => {
            let is_total = |line: &&str| line.ends_with(" failed") && line.contains(" passed, ");
            lines.rev().find(is_total).map(words)
        }
    }
}

/// Reads `3 passed`, `2 failed`, `1 error` out of a line.
fn words(line: &str) -> Tally {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut tally = Tally::default();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse::<u64>() else {
            continue;
        };
        match pair[1] {
            "passed" => tally.passed += number,
            "failed" | "error" | "errors" => tally.failed += number,
            _ => {}
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(runner: Runner, output: &str, expected: Option<(u64, u64)>) {
        assert_eq!(count(runner, output), expected.map(|(passed, failed)| Tally { passed, failed }));
    }

    #[test]
    fn every_runner_is_understood() {
        let cargo = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                     test result: FAILED. 4 passed; 2 failed; 0 ignored; finished in 0.1s\n";
        check(Runner::Cargo, cargo, Some((7, 2)));
        check(Runner::Pytest, "..F\n==== 1 failed, 12 passed in 0.50s ====\n", Some((12, 1)));
        check(Runner::Pytest, "....\n37 passed in 9.01s\n", Some((37, 0)));
        check(Runner::Pytest, "===== 12 passed, 1 error in 0.50s =====\n", Some((12, 1)));
        check(Runner::Pytest, "===== 900 passed in 62.50s (0:01:02) =====\n", Some((900, 0)));
        check(Runner::Node, "✔ a (1ms)\nℹ tests 3\nℹ pass 2\nℹ fail 1\nℹ cancelled 0\n", Some((2, 1)));
        check(Runner::Node, "# tests 3\n# pass 3\n# fail 0\n", Some((3, 0)));
        check(Runner::Driver, "round 1: ok\n20 passed, 1 failed\n", Some((20, 1)));
    }

    #[test]
    fn silence_is_not_success() {
        for runner in [Runner::Cargo, Runner::Pytest, Runner::Node, Runner::Driver] {
            check(runner, "Killed\n", None);
        }
    }
}
