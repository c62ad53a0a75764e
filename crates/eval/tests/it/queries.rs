//! `tests-data/eval/queries/*.txt`: documents, a query, its rows.
//!
//! ```text
//! documents          the following lines are documents, numbered from 1, up to an empty line
//! {"a":1}
//!
//! query SELECT VALUE c.a FROM c
//! 1                  rows up to an empty line, or one line `fault: text`
//! ```

use eval::{Budget, Context, DocumentRow, run};
use plan::query::{Expression, Order, Query, SlotId, SortKey};
use value::Document;

use crate::ambient::Still;
use std::sync::Arc;

use crate::expressions::with_functions;
use crate::text;
use crate::text_cases::TextCases;

/// Fewest cases of all files together.
const CASES_MIN: usize = 90;

#[test]
fn every_case_of_every_file() {
    let mut cases = TextCases::of("eval/queries");
    for blocks in cases.files() {
        let mut documents = Vec::new();
        for block in blocks {
            match &block.lines()[..] {
                [] => {}
                ["documents", lines @ ..] => {
                    documents =
                        lines.iter().map(|line| Document::from_json(line.as_bytes()).unwrap()).collect();
                }
                [first, ..] => {
                    let query = first.strip_prefix("query ").unwrap_or_else(|| panic!("{first}"));
                    let found = rows_of(&text::query(query), &documents);
                    cases.check(&block, &block.with_lines(first, &found));
                }
            }
        }
    }
    cases.finish(CASES_MIN);
}

fn rows_of(query: &Query, documents: &[Document]) -> Vec<String> {
    let ambient = Still::default();
    let context = Context::new(&ambient, Budget::new(1 << 20, 10_000));
    let budget = Arc::clone(&context.budget);
    // The order of the documents does not matter.
    let result = with_functions(context, |context| {
        let rows = documents.iter().enumerate().rev();
        let row =
            rows.map(|(index, document)| DocumentRow { number: index as u64 + 1, root: document.root() });
        run(context, query, row)
    });
    assert_eq!(budget.bytes_held(), 0, "memory is given back");
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
