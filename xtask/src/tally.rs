//! Counts tests from the output of their runners.

use std::ops::AddAssign;

/// Number of tests that ran.
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

/// The program that ran the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `test result: ok. 3 passed; 0 failed; …`, once per binary.
    Cargo,
    /// `=== 1 failed, 2 passed, 1 error in 0.5s ===`, once; without the rules in quiet mode.
    Pytest,
    /// `ℹ pass 3` and `ℹ fail 0`, or the same after `#`.
    Node,
    /// `Tests run: 3, Failures: 1, Errors: 0, Skipped: 0`, last line of that form.
    Maven,
    /// `--- PASS: TestItems/create (0.01s)`, once per test and once more for its parent test.
    Go,
    /// `3 passed, 0 failed`: the project's own drivers, last line of that form.
    Driver,
}

/// The number of tests in a runner's output; `None` if it has none, which is never right.
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
        Runner::Maven => lines.rev().find_map(maven),
        Runner::Go => go(output),
        Runner::Driver => {
            let is_total = |line: &&str| line.ends_with(" failed") && line.contains(" passed, ");
            lines.rev().find(is_total).map(words)
        }
    }
}

/// Parses the line with Maven's totals. A skipped test is neither passed nor failed.
fn maven(line: &str) -> Option<Tally> {
    let (_, counts) = line.split_once("Tests run: ")?;
    let mut numbers = counts.split(", ").map(|part| part.rsplit(": ").next().unwrap_or(part).parse().ok());
    let [run, failures, errors, skipped]: [u64; 4] =
        [numbers.next()??, numbers.next()??, numbers.next()??, numbers.next()??];
    let failed = failures + errors;
    Some(Tally { passed: run.saturating_sub(failed + skipped), failed })
}

/// Counts Go's tests, without those that only contain others.
fn go(output: &str) -> Option<Tally> {
    let end = |line: &str| {
        let (verdict, rest) = line.trim().strip_prefix("--- ")?.split_once(": ")?;
        Some((rest.split(' ').next()?.to_owned(), verdict == "PASS", verdict == "FAIL"))
    };
    let ends: Vec<(String, bool, bool)> = output.lines().filter_map(end).collect();
    let holders: std::collections::HashSet<&str> =
        ends.iter().flat_map(|(name, ..)| name.match_indices('/').map(|(at, _)| &name[..at])).collect();
    let mut tally = None;
    for (name, has_passed, has_failed) in &ends {
        let sum = tally.get_or_insert(Tally::default());
        if !holders.contains(name.as_str()) {
            *sum += Tally { passed: (*has_passed).into(), failed: (*has_failed).into() };
        }
    }
    tally
}

/// Parses `3 passed`, `2 failed`, `1 error` from a line.
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
        let maven = "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 2 s -- in A\n\
                     [ERROR] Tests run: 9, Failures: 2, Errors: 1, Skipped: 1\n[ERROR] There are failures.\n";
        check(Runner::Maven, maven, Some((5, 3)));
        check(Runner::Maven, "[INFO] Tests run: 236, Failures: 0, Errors: 0, Skipped: 0\n", Some((236, 0)));
        let go = "=== RUN   TestA\n--- FAIL: TestA (0.1s)\n    --- PASS: TestA/one (0.1s)\n\
                  \u{20}   --- FAIL: TestA/two (0.0s)\n--- PASS: TestB (0.0s)\n--- SKIP: TestC (0.0s)\nFAIL\n";
        check(Runner::Go, go, Some((2, 1)));
        check(Runner::Driver, "round 1: ok\n20 passed, 1 failed\n", Some((20, 1)));
    }

    #[test]
    fn silence_is_not_success() {
        for runner in [Runner::Cargo, Runner::Pytest, Runner::Node, Runner::Maven, Runner::Go, Runner::Driver]
        {
            check(runner, "Killed\n", None);
        }
    }
}
