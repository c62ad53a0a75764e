//! The file of counts: one line per case, and the allowed increase of a later build.

use super::Counted;
use crate::Result;
use std::fmt::Write as _;
use std::path::Path;

/// Allowed increase of a later build: a share of the instructions, and context switches per request.
const INSTRUCTIONS_MORE_MAX: f64 = 0.03;
const SWITCHES_MORE_MAX: f64 = 0.1;
/// Long queries yield and switch dozens of times, a few percent more or less in every run.
const SWITCHES_MORE_PART_MAX: f64 = 0.1;

const HEAD: &str = "\
# Counts per request: case, instructions, voluntary and involuntary context switches, futex calls (- if unknown).
# Written by `cargo xtask bench count`; `cargo xtask bench count --against bench/COUNTS` compares a build with it and
# fails above + 3 % instructions or + 0.1 context switches (+ 10 % where there are more than one).
";

pub(super) fn write(path: &Path, counted: &[Counted]) -> Result<()> {
    Ok(std::fs::write(path, text(counted))?)
}

pub(super) fn read(path: &Path) -> Result<Vec<Counted>> {
    let text = std::fs::read_to_string(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    parse(&text)
}

fn text(counted: &[Counted]) -> String {
    let mut text = HEAD.to_owned();
    for count in counted {
        let calls = count.futex_calls.map_or("-".to_owned(), |calls| format!("{calls:.2}"));
        let _ = writeln!(
            text,
            "{:<22} {:>9} {:>6.2} {:>6.2} {calls:>6}",
            count.name, count.instructions, count.switches_voluntary, count.switches_involuntary
        );
    }
    text
}

fn parse(text: &str) -> Result<Vec<Counted>> {
    let mut counted = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, instructions, voluntary, involuntary, calls] = words[..] else {
            return Err(format!("not a line of counts: {line}").into());
        };
        counted.push(Counted {
            name: name.to_owned(),
            instructions: instructions.parse()?,
            switches_voluntary: voluntary.parse()?,
            switches_involuntary: involuntary.parse()?,
            futex_calls: if calls == "-" { None } else { Some(calls.parse()?) },
        });
    }
    Ok(counted)
}

/// Fails if a case exceeds its allowed increase.
pub(super) fn check(before: &[Counted], now: &[Counted]) -> Result<()> {
    let mut exceeded = Vec::new();
    for count in now {
        let Some(base) = before.iter().find(|base| base.name == count.name) else { continue };
        if count.instructions as f64 > base.instructions as f64 * (1.0 + INSTRUCTIONS_MORE_MAX) {
            exceeded.push(format!(
                "{}: {} instructions, were {}",
                count.name, count.instructions, base.instructions
            ));
        }
        let switches_more_max = SWITCHES_MORE_MAX.max(base.switches() * SWITCHES_MORE_PART_MAX);
        if count.switches() > base.switches() + switches_more_max {
            let (now, before) = (count.switches(), base.switches());
            exceeded.push(format!("{}: {now:.2} context switches, were {before:.2}", count.name));
        }
    }
    if exceeded.is_empty() {
        return Ok(());
    }
    Err(exceeded.join("\n").into())
}

/// One row per case; every column is compared with the first.
pub(super) fn table(columns: &[Vec<Counted>]) -> String {
    let mut text = String::from(
        "| case | instructions | context switches, voluntary + involuntary | futex calls |\n|---|---|---|---|\n",
    );
    let Some((first, others)) = columns.split_first() else { return text };
    for base in first {
        let mut instructions = base.instructions.to_string();
        let mut switches = format!("{:.2} + {:.2}", base.switches_voluntary, base.switches_involuntary);
        let mut calls = calls_text(base);
        for other in others.iter().filter_map(|column| column.iter().find(|other| other.name == base.name)) {
            let percent = (other.instructions as f64 / base.instructions as f64 - 1.0) * 100.0;
            let _ = write!(instructions, " → {} ({percent:+.1} %)", other.instructions);
            let _ =
                write!(switches, " → {:.2} + {:.2}", other.switches_voluntary, other.switches_involuntary);
            let _ = write!(calls, " → {}", calls_text(other));
        }
        let _ = writeln!(text, "| {} | {instructions} | {switches} | {calls} |", base.name);
    }
    text
}

fn calls_text(counted: &Counted) -> String {
    counted.futex_calls.map_or("–".to_owned(), |calls| format!("{calls:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(instructions: u64, switches: f64) -> Vec<Counted> {
        vec![Counted {
            name: "read".to_owned(),
            instructions,
            switches_voluntary: switches,
            switches_involuntary: 0.25,
            futex_calls: None,
        }]
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut all = counted(60_000, 1.5);
        all.push(Counted { name: "create".to_owned(), futex_calls: Some(2.25), ..all[0].clone() });
        assert_eq!(parse(&text(&all)).unwrap(), all);
    }

    #[test]
    fn a_build_may_take_three_percent_and_a_tenth_of_a_switch_more() {
        let before = counted(100_000, 0.5);
        assert!(check(&before, &counted(103_000, 0.5)).is_ok());
        assert!(check(&before, &counted(103_001, 0.5)).is_err());
        assert!(check(&before, &counted(100_000, 0.59)).is_ok());
        assert!(check(&before, &counted(100_000, 0.61)).is_err());
        let before = counted(100_000, 19.75);
        assert!(check(&before, &counted(100_000, 21.7)).is_ok());
        assert!(check(&before, &counted(100_000, 21.8)).is_err());
    }
}
