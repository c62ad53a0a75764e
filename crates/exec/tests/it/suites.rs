//! `tests-data/query/*.txt`: documents, queries, their explanations and their results.
//!
//! ```text
//! documents          the lines after it are documents, up to an empty line; members of the container's
//!                    definition may follow on the same line
//! {"id":"1","a":1}
//!
//! query SELECT VALUE c.a FROM c
//! | read …           the explanation
//! 1                  the rows up to an empty line, or one line `fault: text`
//! ```
//!
//! Each query runs over one, three and eight partitions in pages of one, three and a hundred rows. All pages together
//! must return what the reference (`Harness::measure`) returns, in its order. The rows in the file are those of one
//! partition; over several the same rows come in another order, since numbers differ, unless an offset or a limit
//! selects among them.

use crate::harness::{Harness, SYSTEM, query};
use crate::text_cases::TextCases;
use exec::{Program, QueryRow, explain};
use plan::query::Query;

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 80;

const PARTITIONS: [u32; 3] = [1, 3, 8];

#[tokio::test]
async fn every_case_of_every_file() {
    let mut cases = TextCases::of("query");
    for blocks in cases.files() {
        let mut harnesses = Vec::new();
        for block in blocks {
            match &block.lines()[..] {
                [] => {}
                [first, documents @ ..] if first.starts_with("documents") => {
                    let further = first.strip_prefix("documents ").unwrap_or("{}");
                    let further = serde_json::from_str(further).unwrap();
                    harnesses = Vec::new();
                    for partitions in PARTITIONS {
                        harnesses.push(
                            Harness::filled(Harness::with(partitions, &further).await, documents).await,
                        );
                    }
                }
                [first, ..] => {
                    let sql = first.strip_prefix("query ").unwrap_or_else(|| panic!("{first}"));
                    let found = answers(&harnesses, &query(sql), sql).await;
                    cases.check(&block, &block.with_lines(first, &found));
                }
            }
        }
    }
    cases.finish(CASES_MIN);
}

/// Explanation and rows, after all comparisons that do not need the file.
async fn answers(harnesses: &[Harness], query: &Query, sql: &str) -> Vec<String> {
    let program = Program::new(std::sync::Arc::new(query.clone()), &harnesses[0].computed, SYSTEM).unwrap();
    let explained = explain(&program, &harnesses[0].parts, 1000, Default::default()).await.unwrap();
    let mut lines: Vec<String> = explained.lines().map(|line| format!("| {line}")).collect();
    let mut first: Option<Vec<String>> = None;
    for harness in harnesses {
        let expected = harness.measure(query).await;
        for items_max in [1, 3, 100] {
            let found = harness.drain(query, items_max).await;
            match (&expected, found) {
                (Ok(expected), Ok(found)) => assert_eq!(found, *expected, "{sql}, pages of {items_max}"),
                (Err(_), Err(_)) => {}
                (expected, found) => panic!("{sql}, pages of {items_max}: {found:?} instead of {expected:?}"),
            }
        }
        let rows = rows(harness, query).await;
        match &mut first {
            None => first = Some(rows),
            Some(first) if query.limit.is_none() && query.offset == 0 => {
                let (mut one, mut many) = (first.clone(), rows);
                one.sort();
                many.sort();
                assert_eq!(one, many, "{sql}");
            }
            Some(_) => {}
        }
    }
    lines.extend(first.unwrap_or_default());
    lines
}

/// The rows in one page; documents as they are stored, since their system properties depend on the partition.
async fn rows(harness: &Harness, query: &Query) -> Vec<String> {
    match harness.page(query, &harness.parts, 1000, None).await {
        Err(fault) => vec![format!("fault: {fault}")],
        Ok(page) => {
            let text = |row: &QueryRow| match row {
                QueryRow::Document(stored) => stored.document.to_value().to_json(),
                QueryRow::Value(value) => value.to_json(),
            };
            page.rows.iter().map(text).collect()
        }
    }
}
