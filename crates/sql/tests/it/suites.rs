//! Runs the text files of `tests-data/sql`: a query and its plan, or its faults.
//!
//! A case consists of lines `@name = JSON` for parameters, the query, a line `=>`, and the expected text up to the next
//! empty line. Lines that start with `#` are comments.

use crate::text_cases::TextCases;
use sql::{Parameters, SqlFaults};
use value::Value;

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 300;

struct Case {
    comments: Vec<String>,
    parameters: Vec<String>,
    query: String,
}

#[test]
fn every_case_of_every_suite() {
    let mut cases = TextCases::of("sql");
    for block in cases.files().into_iter().flatten() {
        let case = read_case(&block.text);
        let found = run(&case);
        cases.check(&block, &case_text(&case, &found));
    }
    cases.finish(CASES_MIN);
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

fn read_case(block: &str) -> Case {
    let (head, _) = block.split_once("\n=>").unwrap_or((block, ""));
    let lines: Vec<&str> = head.lines().collect();
    let of = |sign: char| lines.iter().filter(move |line| line.starts_with(sign));
    let is_query = |line: &&&str| !line.starts_with(['#', '@']);
    Case {
        comments: of('#').map(|line| (*line).to_owned()).collect(),
        parameters: of('@').map(|line| (*line).to_owned()).collect(),
        query: lines.iter().filter(is_query).copied().collect::<Vec<_>>().join("\n"),
    }
}

fn case_text(case: &Case, found: &str) -> String {
    let head = [case.comments.as_slice(), case.parameters.as_slice()].concat();
    let head: String = head.iter().map(|line| format!("{line}\n")).collect();
    format!("{head}{}\n=>\n{found}", case.query)
}
