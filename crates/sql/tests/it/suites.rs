//! Runs the text files of `tests-data/sql`: a query and its plan, or its faults.
//!
//! A case consists of lines `@name = JSON` for parameters, the query, a line `=>`, and the expected text up to the next
//! empty line. Lines that start with `#` are comments. To rewrite the expected texts, for review as a diff, run the
//! test with `UPDATE_EXPECTED=1`.

use sql::{Parameters, SqlFaults};
use std::path::{Path, PathBuf};
use value::Value;

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 300;

struct Case {
    comments: Vec<String>,
    parameters: Vec<String>,
    query: String,
    expected: String,
}

#[test]
fn every_case_of_every_suite() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-data/sql");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut count = 0;
    let mut failures = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut written = String::new();
        for case in cases(&text) {
            count += 1;
            let found = run(&case);
            if found != case.expected {
                failures.push(format!(
                    "{}\n{}\nexpected:\n{}\nfound:\n{found}\n",
                    file.display(),
                    case.query,
                    case.expected
                ));
            }
            written.push_str(&case_text(&case, &found));
        }
        if is_update {
            std::fs::write(&file, written.trim_start()).unwrap();
        }
    }
    assert!(is_update || failures.is_empty(), "{} failed:\n\n{}", failures.len(), failures.join("\n"));
    assert!(count >= CASES_MIN, "{count} cases");
}

/// The plan or the faults of a case; also checks that the query can be printed.
fn run(case: &Case) -> String {
    let parameters: Parameters = case.parameters.iter().map(|line| parameter(line)).collect();
    let query = match sql::parse(&case.query) {
        Ok(query) => query,
        Err(faults) => return fault_lines(&faults),
    };
    let printed = sql::print(&query);
    let again = sql::parse(&printed).unwrap_or_else(|faults| panic!("{printed}\n{faults}"));
    assert_eq!(again, query, "{printed}");
    assert_eq!(sql::print(&again), printed);
    match sql::lower(&query, &parameters) {
        Ok(plan) => {
            assert_eq!(sql::lower(&again, &parameters).unwrap(), plan, "{printed}");
            plan.to_string()
        }
        Err(faults) => fault_lines(&faults),
    }
}

fn parameter(line: &str) -> (String, Value) {
    let (name, json) = line.split_once(" = ").unwrap();
    (name.to_owned(), Value::from_json(json.as_bytes()).unwrap())
}

fn fault_lines(faults: &SqlFaults) -> String {
    let lines =
        faults.0.iter().map(|fault| format!("{}..{} {}", fault.span.start, fault.span.end, fault.kind));
    lines.collect::<Vec<_>>().join("\n")
}

fn cases(text: &str) -> Vec<Case> {
    let blocks = text.split("\n\n").map(str::trim_end).filter(|block| !block.trim().is_empty());
    blocks.map(read_case).collect()
}

fn read_case(block: &str) -> Case {
    let (head, expected) = block.split_once("\n=>").unwrap_or((block, ""));
    let lines: Vec<&str> = head.trim_start_matches('\n').lines().collect();
    let of = |sign: char| lines.iter().filter(move |line| line.starts_with(sign));
    let is_query = |line: &&&str| !line.starts_with(['#', '@']);
    Case {
        comments: of('#').map(|line| (*line).to_owned()).collect(),
        parameters: of('@').map(|line| (*line).to_owned()).collect(),
        query: lines.iter().filter(is_query).copied().collect::<Vec<_>>().join("\n"),
        expected: expected.trim_start_matches('\n').to_owned(),
    }
}

fn case_text(case: &Case, found: &str) -> String {
    let head = [case.comments.as_slice(), case.parameters.as_slice()].concat();
    let head: String = head.iter().map(|line| format!("{line}\n")).collect();
    format!("\n{head}{}\n=>\n{found}\n", case.query)
}
