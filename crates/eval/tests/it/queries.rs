//! `tests-data/eval/queries/*.txt`: documents, a query, its rows.
//!
//! ```text
//! documents          the following lines are documents, numbered from 1, up to an empty line
//! {"a":1}
//!
//! query SELECT VALUE c.a FROM c
//! 1                  rows up to an empty line, or one line `fault: text`
//! ```
//!
//! `UPDATE_EXPECTED=1` writes the actual rows into the files, to review the difference.

use std::path::Path;

use eval::{Budget, Context, DocumentRow, run};
use plan::query::{Expression, Order, Query, SlotId, SortKey};
use value::Document;

use crate::ambient::Still;
use crate::expressions::TestFunctions;
use crate::text;

/// Fewest cases of all files together.
const CASES_MIN: usize = 90;

#[test]
fn every_case_of_every_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-data/eval/queries");
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let blocks = std::fs::read_to_string(&path).unwrap();
        let mut documents = Vec::new();
        let mut written: Vec<String> = Vec::new();
        for block in blocks.trim_end().split("\n\n") {
            written.push(block.to_owned());
            let lines: Vec<&str> =
                block.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
            match lines.as_slice() {
                [] => {}
                ["documents", lines @ ..] => {
                    documents =
                        lines.iter().map(|line| Document::from_json(line.as_bytes()).unwrap()).collect();
                }
                [query, rows @ ..] => {
                    count += 1;
                    let query = query.strip_prefix("query ").unwrap_or_else(|| panic!("{name}: {query}"));
                    let found = rows_of(&text::query(query), &documents);
                    if found != rows && std::env::var_os("UPDATE_EXPECTED").is_some() {
                        let notes = block.lines().filter(|line| line.starts_with('#')).map(str::to_owned);
                        let lines = notes.chain([format!("query {query}")]).chain(found);
                        *written.last_mut().unwrap() = lines.collect::<Vec<_>>().join("\n");
                    } else if found != rows {
                        failures.push(format!("{name}: {query}\n    gives {}", found.join("\n          ")));
                    }
                }
            }
        }
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&path, written.join("\n\n") + "\n").unwrap();
        }
    }
    assert!(failures.is_empty(), "{} of {count} fail\n{}", failures.len(), failures.join("\n"));
    assert!(count >= CASES_MIN, "only {count} cases");
}

fn rows_of(query: &Query, documents: &[Document]) -> Vec<String> {
    let ambient = Still::default();
    let context = Context::new(&ambient, Budget::new(1 << 20, 10_000)).with_user_functions(&TestFunctions);
    let rows = documents
        .iter()
        .enumerate()
        .map(|(index, document)| DocumentRow { number: index as u64 + 1, root: document.root() });
    // The order of the documents does not matter.
    let result = run(&context, query, rows.rev());
    assert_eq!(context.budget.bytes_held(), 0, "memory is given back");
    match result {
        Ok(rows) => rows.iter().map(value::Value::to_json).collect(),
        Err(fault) => vec![format!("fault: {fault}")],
    }
}

/// The service orders by paths of the document only; here joined values can be ordered too.
#[test]
fn joined_rows_are_ordered_by_what_is_joined() {
    let documents = [r#"{"id":"1","a":[2,1]}"#, r#"{"id":"2","a":[1,3]}"#];
    let documents = documents.map(|text| Document::from_json(text.as_bytes()).unwrap());
    let mut query = text::query("SELECT VALUE [c.id, x] FROM c JOIN x IN c.a");
    for (descending, expected) in [
        (false, [r#"["1",1]"#, r#"["2",1]"#, r#"["1",2]"#, r#"["2",3]"#]),
        (true, [r#"["2",3]"#, r#"["1",2]"#, r#"["2",1]"#, r#"["1",1]"#]),
    ] {
        let expression = Expression::Slot(SlotId(1));
        query.order = Order::Keys(vec![SortKey { expression, path: None, descending }]);
        assert_eq!(rows_of(&query, &documents), expected);
    }
}
