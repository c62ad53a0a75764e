//! The order of rows without ORDER BY: ranges by lower bound, inside a range documents in the order of insertion; the
//! same for every access path, page size and division of the container.

use crate::harness::{Harness, SYSTEM, query, row_text};
use exec::{Part, PartScope, Resume};
use model::{EffectiveKey, EffectiveRange};
use partition::{PartitionView, keyspace};
use serde_json::{Value as Json, json};

const DOCUMENTS: u64 = 120;
/// Maximum number of pages of one query; each has a row, except for a last one of each range.
const PAGES_MAX: usize = 200;

/// Pseudorandom numbers that are the same in every run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Some documents, a few of them replaced or deleted later.
fn writes(seed: u64) -> Vec<Json> {
    let mut seeded = Seeded(seed);
    let document = |id: u64, seeded: &mut Seeded| json!({ "id": id.to_string(), "n": seeded.below(9), "s": format!("t{}", seeded.below(40)), "a": [1, 2] });
    let mut writes: Vec<Json> = (0..DOCUMENTS).map(|id| document(id, &mut seeded)).collect();
    for _ in 0..DOCUMENTS / 4 {
        let id = seeded.below(DOCUMENTS);
        writes.push(match seeded.below(3) {
            0 => json!({ "gone": id.to_string() }),
            _ => document(id, &mut seeded),
        });
    }
    writes
}

/// The documents that remain, in the order of insertion: a document keeps its position when it is replaced.
fn left(writes: &[Json]) -> Vec<Json> {
    let mut left: Vec<Json> = Vec::new();
    for write in writes {
        let id = write.get("id").or(write.get("gone")).unwrap();
        let at = left.iter().position(|document| document["id"] == *id);
        match (at, write.get("gone")) {
            (Some(at), Some(_)) => drop(left.remove(at)),
            (Some(at), None) => left[at] = write.clone(),
            (None, Some(_)) => {}
            (None, None) => left.push(write.clone()),
        }
    }
    left
}

async fn filled(partitions: u32, further: &Json, writes: &[Json]) -> Harness {
    let harness = Harness::with_turned_ordinals(partitions, further).await;
    for write in writes {
        match write.get("gone") {
            Some(id) => harness.delete_if_there(id.as_str().unwrap()).await,
            None => harness.put(&write.to_string()).await,
        }
    }
    harness
}

type Filter = fn(&Json) -> bool;

const FILTERS: [(&str, Filter); 6] = [
    ("true", |_| true),
    ("c.n = 3", |document| document["n"] == 3),
    ("c.n > 2 AND c.n < 7", |document| (3..7).contains(&document["n"].as_u64().unwrap())),
    ("c.s LIKE '%7'", |document| document["s"].as_str().unwrap().ends_with('7')),
    ("c.n % 4 = 1", |document| document["n"].as_u64().unwrap() % 4 == 1),
    ("c.n = 3 OR STARTSWITH(c.s, 't1')", |document| {
        document["n"] == 3 || document["s"].as_str().unwrap().starts_with("t1")
    }),
];

/// The expected ids of the rows of parts that are separate ranges.
fn expected(harness: &Harness, parts: &[Part], documents: &[Json], filter: Filter) -> Vec<String> {
    let mut expected = Vec::new();
    for part in parts {
        let hashes = keyspace::hashes_of(&part.keys);
        let inside = documents.iter().filter(|document| hashes.contains(&harness.hash(id(document))));
        expected
            .extend(inside.filter(|document| filter(document)).map(|document| document["id"].to_string()));
    }
    expected
}

fn id(document: &Json) -> &str {
    document["id"].as_str().unwrap()
}

fn halves(part: &Part) -> [Part; 2] {
    let EffectiveRange { min, max } = keyspace::hashes_of(&part.keys);
    let number = |key: &EffectiveKey| {
        let mut bytes = [0; 8];
        let length = key.as_bytes().len().min(8);
        bytes[..length].copy_from_slice(&key.as_bytes()[..length]);
        u64::from_be_bytes(bytes)
    };
    // Hashes fill a quarter of the first byte's values.
    let middle = u64::midpoint(number(&min), number(&max).min(0x40 << 56));
    let middle = EffectiveKey::from_bytes(&middle.to_be_bytes());
    [(min, middle.clone()), (middle, max)].map(|(min, max)| {
        let hashes = EffectiveRange { min, max };
        let keys = keyspace::effective_range(SYSTEM.container, &hashes);
        Part { keys, scope: PartScope::Hashes(hashes), ..part.clone() }
    })
}

#[tokio::test]
async fn order_depends_on_no_access_path_and_no_page_size() {
    let writes = writes(1);
    let documents = left(&writes);
    for partitions in [1, 8] {
        for further in
            [json!({}), json!({ "indexingPolicy": { "indexingMode": "none", "automatic": false } })]
        {
            let harness = filled(partitions, &further, &writes).await;
            let stretches: Vec<Part> = harness.parts.iter().flat_map(halves).collect();
            let turned: Vec<Part> = harness.parts.iter().rev().cloned().collect();
            let unindexed = harness.fixed(PartitionView::without_index).await;
            for (condition, filter) in FILTERS {
                let query = query(&format!("SELECT VALUE c.id FROM c WHERE {condition}"));
                for (given, ranges) in [
                    (&harness.parts, &harness.parts),
                    (&turned, &harness.parts),
                    (&unindexed, &harness.parts),
                    (&stretches, &stretches),
                ] {
                    let expected = expected(&harness, ranges, &documents, filter);
                    for items_max in (1..=10).chain([expected.len().max(1), expected.len() + 1, 1000]) {
                        let found = harness.drain_over(&query, given, items_max).await.unwrap();
                        assert_eq!(
                            found, expected,
                            "{condition}, {partitions}, {further}, pages of {items_max}"
                        );
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_continuation_goes_on_exactly_after_its_range_was_split() {
    let writes = writes(2);
    let documents = left(&writes);
    for partitions in [1, 3] {
        let harness = filled(partitions, &json!({}), &writes).await;
        let halves: Vec<Part> = harness.parts.iter().flat_map(halves).collect();
        let quarters: Vec<Part> = halves.iter().flat_map(self::halves).collect();
        for (condition, filter) in FILTERS {
            let query = query(&format!("SELECT VALUE c.id FROM c WHERE {condition}"));
            for (first_pages, items_max) in [(1, 1), (1, 7), (2, 5), (3, 13), (4, 3)] {
                let mut rows: Vec<String> = Vec::new();
                let mut resume = None;
                // Some pages over the whole, some over halves, the rest over quarters.
                for at in 0..PAGES_MAX {
                    let cuts = [&harness.parts, &halves, &quarters];
                    let parts = cuts[(at / first_pages).min(cuts.len() - 1)];
                    let page = harness.page(&query, parts, items_max, resume).await.unwrap();
                    rows.extend(page.rows.iter().map(row_text));
                    let Some(next) = page.resume else { break };
                    resume = Some(Resume::decode(&next.encode()).unwrap());
                }
                // Inside a range of the initial division the order is that of insertion.
                let mut once = rows.clone();
                once.sort();
                let mut all = expected(&harness, &harness.parts, &documents, filter);
                all.sort();
                assert_eq!(once, all, "{condition}, {partitions} partitions, pages of {items_max}");
                let by_quarter = expected(&harness, &quarters, &documents, filter);
                for quarter in &quarters {
                    let of_quarter = expected(&harness, std::slice::from_ref(quarter), &documents, filter);
                    let found: Vec<&String> = rows.iter().filter(|row| of_quarter.contains(row)).collect();
                    assert!(found.into_iter().eq(&of_quarter), "{condition}: the order inside of a range");
                }
                assert_eq!(by_quarter.len(), rows.len());
            }
        }
    }
}

#[tokio::test]
async fn a_full_page_reads_no_range_behind_it() {
    let writes = writes(3);
    let harness = filled(8, &json!({}), &writes).await;
    let first = &harness.parts[..1];
    let count = expected(&harness, first, &left(&writes), |_| true).len();
    let page = harness.page(&query("SELECT * FROM c"), &harness.parts, count, None).await.unwrap();
    assert_eq!(page.seen.len(), 1);
    assert_eq!(page.metrics.documents_read, count as u64);
    // A row that is inserted into the first range before the next page comes after the last row that was returned.
    let mut ids = (0..1000).map(|id| format!("new{id}"));
    let id = ids.find(|id| harness.partitions[0].spec().range.contains(&harness.hash(id))).unwrap();
    harness.put(&json!({ "id": id }).to_string()).await;
    let all = query("SELECT VALUE c.id FROM c");
    let page = harness.page(&all, &harness.parts, 2, page.resume).await.unwrap();
    assert_eq!(row_text(&page.rows[0]), format!("\"{id}\""));
    assert_eq!(page.seen.len(), 2);
}

#[tokio::test]
async fn a_fixed_part_stays_as_it_is() {
    let harness = filled(3, &json!({}), &writes(4)).await;
    let fixed = harness.fixed(|view| view).await;
    for text in [
        "SELECT VALUE c.id FROM c WHERE c.n > 2",
        "SELECT VALUE c.id FROM c ORDER BY c.s, c.n",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.n, COUNT(1) AS count FROM c GROUP BY c.n",
    ] {
        let query = query(text);
        let before = harness.drain_over(&query, &fixed, 5).await.unwrap();
        assert_eq!(before, harness.drain(&query, 5).await.unwrap());
        harness.put(&json!({ "id": "new", "n": 100, "s": "a" }).to_string()).await;
        assert_eq!(harness.drain_over(&query, &fixed, 5).await.unwrap(), before, "{text}");
        assert_ne!(harness.drain(&query, 5).await.unwrap(), before, "{text}");
        harness.delete("new").await;
    }
}

#[tokio::test]
async fn ordered_rows_of_many_partitions_are_merged_before_their_documents_are_read() {
    const ROWS: usize = 20;
    let harness = Harness::new(8).await;
    let mut seeded = Seeded(5);
    for id in 0..1600 {
        let (n, g) = (seeded.below(100_000), id % 3);
        harness.put(&json!({ "id": id.to_string(), "n": n, "g": g }).to_string()).await;
    }
    for rest in ["ORDER BY c.n", "ORDER BY c.n DESC", "WHERE c.g = 1 ORDER BY c.n DESC"] {
        let query = query(&format!("SELECT VALUE c.id FROM c {rest}"));
        let expected = harness.measure(&query).await.unwrap();
        let page = harness.page(&query, &harness.parts, ROWS, None).await.unwrap();
        assert_eq!(page.rows.iter().map(row_text).collect::<Vec<_>>(), expected[..ROWS]);
        assert_eq!(page.metrics.documents_read, ROWS as u64, "{rest}");
        let next = harness.page(&query, &harness.parts, ROWS, page.resume).await.unwrap();
        assert_eq!(next.rows.iter().map(row_text).collect::<Vec<_>>(), expected[ROWS..2 * ROWS]);
        // The page continues at a document that was returned.
        assert!(next.metrics.documents_read <= ROWS as u64 + 1, "{rest}: {:?}", next.metrics);
        let ordinals: Vec<u32> = page.seen.iter().map(|(ordinal, _)| ordinal.0).collect();
        assert_eq!(ordinals, (0..8).collect::<Vec<_>>());
        assert_eq!(harness.drain(&query, 133).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_rare_value_is_read_where_it_is_and_all_partitions_are_seen() {
    let harness = Harness::new(8).await;
    for id in 0..400 {
        harness.put(&json!({ "id": id.to_string(), "n": id, "g": id % 2 }).to_string()).await;
    }
    for n in [0, 7, 200, 399, 400] {
        for filter in [format!("c.n = {n}"), format!("c.g = {} AND c.n = {n}", n % 2)] {
            let query = query(&format!("SELECT VALUE c.id FROM c WHERE {filter}"));
            let page = harness.page(&query, &harness.parts, 10, None).await.unwrap();
            let expected: Vec<String> = (n < 400).then(|| format!("\"{n}\"")).into_iter().collect();
            assert_eq!(page.rows.iter().map(row_text).collect::<Vec<_>>(), expected, "{filter}");
            assert_eq!(page.metrics.documents_read, expected.len() as u64, "{filter}");
            let mut ordinals: Vec<u32> = page.seen.iter().map(|(ordinal, _)| ordinal.0).collect();
            ordinals.sort_unstable();
            assert_eq!(ordinals, (0..8).collect::<Vec<_>>(), "{filter}");
        }
    }
}

#[tokio::test]
async fn pages_over_forty_partitions_are_those_of_one() {
    let writes = writes(6);
    let harness = filled(40, &json!({}), &writes).await;
    for text in [
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.s DESC",
        "SELECT VALUE c.id FROM c WHERE c.n < 5 ORDER BY c.s, c.n DESC",
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.a ORDER BY c.n",
        "SELECT c.n, COUNT(1) AS count FROM c GROUP BY c.n",
        "SELECT DISTINCT VALUE c.s FROM c",
    ] {
        harness.check(text).await;
    }
}

/// Documents whose order the index does not know are returned as a whole set; then a scan turns out to be cheaper. It
/// continues after the set.
#[tokio::test]
async fn a_scan_that_begins_after_unsorted_documents_does_not_give_it_again() {
    let harness = Harness::new(1).await;
    for id in 0..6000 {
        harness.put(&json!({ "id": id.to_string(), "n": id, "s": id / 3000 }).to_string()).await;
    }
    for rest in ["ORDER BY c.s, c.n", "ORDER BY c.s, c.n DESC"] {
        let query = query(&format!("SELECT VALUE c.id FROM c WHERE c.n % 7 = 1 {rest}"));
        let expected = harness.measure(&query).await.unwrap();
        assert_eq!(expected.len(), 857);
        for page in [10, 1000] {
            assert_eq!(harness.drain(&query, page).await.unwrap(), expected, "{rest}, pages of {page}");
        }
    }
}
