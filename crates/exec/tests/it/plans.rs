//! `tests-data/plans/*.txt`: which access path is chosen for a query over documents of a given number and kind.
//!
//! ```text
//! data {"documents": 1000, "partitions": 1, "definition": {…}}
//!
//! query SELECT * FROM c WHERE c.n = 7
//! | read …           the access path of each partition, with the numbers that decided
//! |   not …          what else the index offers, and why it is not used
//! ```
//!
//! `query in p7 SELECT …` reads one logical partition. [`document`] defines the documents. A page has a hundred rows.
//!
//! The choice depends only on the documents. So each query is explained over the same documents in several states of
//! the index: in memory, in many small runs on disk, after every document was rewritten and others were deleted or have
//! expired without being swept, after the partitions were reopened, and after the index was rebuilt. All explanations
//! must be equal, a page must do what the explanation says, and it reads the same documents, bytes and terms in all states,
//! which are what it is charged for, except where documents have expired and are still there.

use crate::harness::{Harness, SYSTEM, query};
use crate::text_cases::TextCases;
use exec::{Part, Program, explain};
use partition::index::IndexOptions;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 120;
/// Rows of a page.
const ITEMS_MAX: usize = 100;
/// Logical partitions of a container.
const KEYS: usize = 50;
/// The state with documents that have expired and are still there.
const EXPIRED: usize = 2;
/// Larger data sets are not rewritten, since that takes long.
const REWRITTEN_MAX: usize = 2_000;

/// Much of the index is on disk soon, in many runs.
const MANY_RUNS: IndexOptions = IndexOptions {
    inline_documents_max: 16,
    flush_documents: 256,
    flush_bytes: 1 << 20,
    run_fan_in: 4,
    memory_bytes_max: 4 << 20,
    cache_bytes: 1 << 20,
};

/// The n-th document: `n` is unique, `kind` has five values, `skew` is "common" in nine of ten, `rare` is present in
/// one of a hundred.
fn document(number: usize) -> Json {
    let mut document = json!({
        "id": format!("d{number}"),
        "pk": format!("p{}", number % KEYS),
        "n": number,
        "kind": format!("k{}", number % 5),
        "level": number % 20,
        "skew": if number.is_multiple_of(10) { format!("s{number}") } else { "common".to_owned() },
        "flag": number.is_multiple_of(2),
        "name": format!("name {number:05}"),
        "tags": [format!("t{}", number % 3), format!("u{number}")],
        "nested": { "a": number % 100, "b": null },
        "hidden": number,
        "place": { "type": "Point", "coordinates": [(number % 360) as f64 - 180.0, (number % 90) as f64] },
        "vector": [number % 7, number % 11, 1],
        "words": format!("alpha beta w{}", number % 50),
    });
    if number.is_multiple_of(100) {
        document["rare"] = json!(number);
    }
    document
}

async fn fill(harness: &Harness, documents: usize) {
    for key in 0..KEYS.min(documents) {
        let numbers: Vec<usize> = (key..documents).step_by(KEYS).collect();
        for some in numbers.chunks(50) {
            let documents: Vec<String> = some.iter().map(|number| document(*number).to_string()).collect();
            harness.put_all(&format!("p{key}"), &documents).await;
        }
    }
}

/// The same documents in several states of the index, the simplest first.
async fn states(documents: usize, partitions: u32, definition: &Json) -> Vec<Harness> {
    let mut further = definition.clone();
    further["partitionKey"] = json!("/pk");
    let plain = Harness::made(partitions, &further, IndexOptions::default()).await;
    let runs = Harness::made(partitions, &further, MANY_RUNS).await;
    for harness in [&plain, &runs] {
        fill(harness, documents).await;
    }
    if documents > REWRITTEN_MAX {
        return vec![plain, runs];
    }
    let rewritten = Harness::made(partitions, &further, MANY_RUNS).await;
    fill(&rewritten, documents + KEYS).await;
    fill(&rewritten, documents).await;
    for number in documents..documents + KEYS {
        let (key, id) = (format!("p{}", number % KEYS), format!("d{number}"));
        if number % 2 == 0 {
            rewritten.delete_in(&key, &id).await;
            continue;
        }
        let mut expiring = document(number);
        expiring["ttl"] = json!(1);
        rewritten.put_all(&key, &[expiring.to_string()]).await;
    }
    // Nothing sweeps what expires now.
    rewritten.clock.advance_seconds(60);
    let mut reopened = Harness::made(partitions, &further, MANY_RUNS).await;
    fill(&reopened, documents).await;
    reopened.reopen().await;
    let mut rebuilt = Harness::made(partitions, &further, MANY_RUNS).await;
    fill(&rebuilt, documents).await;
    rebuilt.rebuild().await;
    vec![plain, runs, rewritten, reopened, rebuilt]
}

/// The lines of an explanation about access paths.
async fn path(harness: &Harness, sql: &str, parts: &[Part]) -> Vec<String> {
    let program = Program::new(Arc::new(query(sql)), &harness.computed, SYSTEM).unwrap();
    let text = explain(&program, parts, ITEMS_MAX, Arc::default()).await.unwrap();
    let is_path = |line: &&str| line.starts_with("read ") || line.starts_with("  ");
    text.lines().filter(is_path).map(|line| format!("| {line}")).collect()
}

/// The path of a case, the same in all states.
async fn case(harnesses: &[Harness], text: &str) -> Vec<String> {
    let (key, sql) = match text.strip_prefix("in ") {
        Some(rest) => rest.split_once(' ').map(|(key, sql)| (Some(key), sql)).unwrap(),
        None => (None, text),
    };
    let parts =
        |harness: &Harness| key.map_or_else(|| harness.parts.clone(), |key| vec![harness.logical(key)]);
    let expected = path(&harnesses[0], sql, &parts(&harnesses[0])).await;
    for (state, harness) in harnesses.iter().enumerate().skip(1) {
        assert_eq!(path(harness, sql, &parts(harness)).await, expected, "state {state}: {text}");
    }
    let harness = &harnesses[0];
    let page = harness.page(&query(sql), &parts(harness), ITEMS_MAX, None).await.unwrap();
    for (state, harness) in harnesses.iter().enumerate().skip(1) {
        let other = harness.page(&query(sql), &parts(harness), ITEMS_MAX, None).await.unwrap();
        // A document that has expired is found and gives no row, so that others are read in its place.
        if state != EXPIRED {
            assert_eq!(other.metrics.partitions, page.metrics.partitions, "state {state}: {text}");
        }
    }
    let is_alone = |line: &String| line.contains("the index alone") && !line.contains("side by side");
    if expected.iter().all(is_alone) {
        // A few documents are read for the kinds of numbers.
        assert!(page.metrics.documents_read <= ITEMS_MAX as u64, "{text}");
    }
    if expected.iter().any(|line| line.starts_with("| read all records")) && key.is_none() {
        let count = harness.documents(&harness.parts).await.len() as u64;
        assert_eq!(page.metrics.documents_read, count, "{text}");
    }
    expected
}

#[tokio::test]
async fn every_path_is_the_expected_one() {
    let mut cases = TextCases::of("plans");
    for blocks in cases.files() {
        let mut harnesses = Vec::new();
        for block in blocks {
            match &block.lines()[..] {
                [] => {}
                [first, ..] if first.starts_with("data ") => {
                    let data: Json = serde_json::from_str(&first[5..]).unwrap();
                    let number = |name: &str| u32::try_from(data[name].as_u64().unwrap()).unwrap();
                    let (documents, partitions) = (number("documents") as usize, number("partitions"));
                    let definition = data.get("definition").cloned().unwrap_or_else(|| json!({}));
                    harnesses = states(documents, partitions, &definition).await;
                }
                [first, ..] => {
                    let text = first.strip_prefix("query ").unwrap_or_else(|| panic!("{first}"));
                    let found = case(&harnesses, text).await;
                    cases.check(&block, &block.with_lines(first, &found));
                }
            }
        }
    }
    cases.finish(CASES_MIN);
}

/// Ninety tuples of two hundred documents are few, even if the pieces of the index share many of them.
#[tokio::test]
async fn a_tuple_in_several_pieces_counts_once() {
    let options = IndexOptions { inline_documents_max: 8, flush_documents: 24, ..MANY_RUNS };
    let harness = Harness::with_index(1, options).await;
    for number in 0..200 {
        let (left, right) = (number % 90, number % 45);
        harness.put(&format!(r#"{{"id":"{number}","left":"l{left}","right":"r{right}"}}"#)).await;
    }
    let distinct = query("SELECT DISTINCT c.left, c.right FROM c");
    let page = harness.page(&distinct, &harness.parts, 1000, None).await.unwrap();
    assert_eq!((page.rows.len(), page.metrics.documents_read), (90, 0));
}
