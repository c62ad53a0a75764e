//! The query of a filter, its evaluation on one entity and the naive evaluator agree.

use super::generate::{self, Row};
use super::naive;
use crate::filter::{Filter, lower, parse};
use eval::{Budget, Context, DocumentRow};
use model::{Ambient, Ticks};
use proptest::prelude::*;
use value::{Document, Value};

#[derive(Debug)]
struct StillTime;

impl Ambient for StillTime {
    fn now_ms(&self) -> u64 {
        0
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// The document as queries see it, with the second of its time.
fn seen_by_queries(row: &Row) -> Document {
    let second = Value::Int64(i64::try_from(row.ticks / 10_000_000).unwrap());
    row.document().extended(&[("_ts", second.as_ref())]).unwrap()
}

/// Keys of the rows that the query of a filter returns, checked where the query says so.
fn selected(filter: Option<&Filter>, rows: &[Row]) -> Vec<(String, String)> {
    let lowered = lower(filter);
    let documents: Vec<Document> = rows.iter().map(seen_by_queries).collect();
    let numbered =
        documents.iter().zip(0..).map(|(document, number)| DocumentRow { number, root: document.root() });
    let ambient = StillTime;
    let context = Context::new(&ambient, Budget::new(1 << 24, 1 << 20));
    let found = eval::run(&context, &lowered.query, numbered).unwrap();
    let keys = found.iter().map(|found| {
        let key = |name: &str| found.member(name).unwrap().as_ref().as_str().unwrap().to_owned();
        (key("PartitionKey"), key("RowKey"))
    });
    let is_kept = |(partition, row_key): &(String, String)| {
        let row = rows.iter().find(|row| row.partition_key == *partition && row.row_key == *row_key).unwrap();
        !lowered.needs_check || filter.unwrap().matches(row.document().root(), Ticks(row.ticks))
    };
    keys.filter(is_kept).collect()
}

fn expected(filter: &Filter, rows: &[Row]) -> Vec<(String, String)> {
    let kept = rows.iter().filter(|row| naive::keeps(filter, row));
    let mut keys: Vec<_> = kept.map(|row| (row.partition_key.clone(), row.row_key.clone())).collect();
    keys.sort();
    keys
}

fn check(filter: &Filter, rows: &[Row]) -> Result<(), TestCaseError> {
    let expected = expected(filter, rows);
    prop_assert_eq!(&selected(Some(filter), rows), &expected, "{}", generate::text(filter));
    let mut matching: Vec<_> = rows
        .iter()
        .filter(|row| filter.matches(row.document().root(), Ticks(row.ticks)))
        .map(|row| (row.partition_key.clone(), row.row_key.clone()))
        .collect();
    matching.sort();
    prop_assert_eq!(matching, expected, "{}", generate::text(filter));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn queries_return_what_the_filter_means(filter in generate::filter(), rows in generate::rows()) {
        check(&filter, &rows)?;
    }

    #[test]
    fn texts_are_read_back(filter in generate::filter(), rows in generate::rows()) {
        let text = generate::text(&filter);
        let read = parse(&text).unwrap().unwrap();
        prop_assert_eq!(format!("{read:?}"), format!("{filter:?}"));
        prop_assert_eq!(expected(&read, &rows), expected(&filter, &rows));
    }
}

#[test]
fn without_a_filter_all_rows_come_in_the_order_of_keys() {
    let row = |partition: &str, row: &str| Row {
        partition_key: partition.to_owned(),
        row_key: row.to_owned(),
        properties: Vec::new(),
        ticks: 0,
    };
    let rows = [row("b", "1"), row("a", "2"), row("B", "3"), row("a", "10"), row("", "x"), row("é", "")];
    let keys = selected(None, &rows);
    let expected = [("", "x"), ("B", "3"), ("a", "10"), ("a", "2"), ("b", "1"), ("é", "")];
    assert_eq!(keys, expected.map(|(partition, row)| (partition.to_owned(), row.to_owned())));
    assert!(!lower(None).needs_check);
}

/// The rows `x` of the table below that a filter keeps.
#[track_caller]
fn check_kept(text: &str, expected: &str) {
    let properties: [(&str, Option<Value>); 8] = [
        ("missing", None),
        ("text", Some(Value::from("5"))),
        ("int", Some(Value::Int32(5))),
        ("long", Some(Value::Int64(5))),
        ("double", Some(Value::Double(5.0))),
        ("more", Some(Value::Double(5.5))),
        ("nan", Some(Value::Double(f64::NAN))),
        ("flag", Some(Value::Bool(true))),
    ];
    let rows = properties.map(|(name, value)| Row {
        partition_key: name.to_owned(),
        row_key: String::new(),
        properties: value.map(|value| ("x".to_owned(), value)).into_iter().collect(),
        ticks: 0,
    });
    let filter = parse(text).unwrap().unwrap();
    let names: Vec<String> = selected(Some(&filter), &rows).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.join(" "), expected, "{text}");
}

#[test]
fn missing_properties_and_other_types_do_not_match() {
    check_kept("x eq 5", "double int long");
    check_kept("x eq 5L", "double int long");
    check_kept("x eq 5.0", "double int long");
    check_kept("x ne 5", "more nan");
    check_kept("not (x eq 5)", "more nan");
    check_kept("not (x ne 5)", "double int long");
    check_kept("x gt 5", "more");
    check_kept("not (x gt 5)", "double int long");
    check_kept("x ne '5'", "");
    check_kept("x ne 'a'", "text");
    check_kept("x ne true", "");
    check_kept("x ne false", "flag");
    check_kept("x", "flag");
    check_kept("not x", "");
    check_kept("x eq NaN", "");
    check_kept("x ne NaN", "double int long more nan");
    check_kept("x ne guid'00000000-0000-0000-0000-000000000000'", "");
    check_kept("x eq 5 or x eq '5' or x eq true", "double flag int long text");
}
