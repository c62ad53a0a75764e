//! Counts over runs whose values fill several blocks.

use super::*;
use crate::index::piece::Piece;

/// Documents of one run whose values fill several blocks.
const DOCUMENTS_OF_BLOCKS: u64 = 800;

#[tokio::test]
async fn a_range_over_several_blocks_is_counted_exactly_up_to_any_limit() {
    let indexing = IndexingPolicy::default();
    let rules = Arc::new(Rules::of(&indexing, (&[], &[]), |_| None));
    let policy = NaivePolicy { paths: vec![(Vec::new(), false, true)], none: false, composites: Vec::new() };
    let options = IndexOptions {
        flush_documents: usize::try_from(DOCUMENTS_OF_BLOCKS).unwrap(),
        ..IndexOptions::default()
    };
    let mut case = Case::with(Random(1), policy, rules, options).await;
    let text = |counter: u64| format!("{counter:04} {}", "x".repeat(150));
    let mut changes = Changes::new();
    for counter in 1..=DOCUMENTS_OF_BLOCKS {
        let body = json!({"id": counter.to_string(), "a": text(counter), "tags": [text(counter), text(counter + 1)]});
        let document = Document::from_json(body.to_string().as_bytes()).unwrap();
        let logical = Bytes::from_static(&[10, 7, 1]);
        let version = DocumentVersion { number: number(counter), logical, ts: 1000, document };
        changes.insert(number(counter), Some(version));
    }
    let prepared = Prepared::new(case.index_writer.rules(), changes);
    case.index_writer.apply(prepared, Lsn(1)).await;
    case.finish_job().await;
    let blocks = case.index_writer.pieces().iter().find_map(|piece| match piece {
        Piece::Run(piece) => Some(piece.run.fences.len()),
        Piece::Segment(_) => None,
    });
    assert!(blocks.is_some_and(|blocks| blocks > 8), "{blocks:?}");

    let path = index_path(&vec![Some("a".to_owned())]);
    let elements = index_path(&vec![Some("tags".to_owned()), None]);
    let live = |dead: bool| move |counter: &u64| !dead || !counter.is_multiple_of(10);
    for dead in [false, true] {
        if dead {
            let gone = (1..=DOCUMENTS_OF_BLOCKS).filter(|counter| counter.is_multiple_of(10));
            let changes: Changes = gone.map(|counter| (number(counter), None)).collect();
            let prepared = Prepared::new(case.index_writer.rules(), changes);
            case.index_writer.apply(prepared, Lsn(2)).await;
        }
        let reader = case.reader().await;
        for (first, last) in [(1, DOCUMENTS_OF_BLOCKS), (100, 700), (400, 405), (790, 900)] {
            let bound = |counter| Bound::Included(code(&json!(text(counter))));
            let expected = (first..=last.min(DOCUMENTS_OF_BLOCKS)).filter(live(dead)).count() as u64;
            let (low, high) = (bound(first), bound(last));
            let lookup = Lookup::Range { path: path.clone(), low: low.clone(), high: high.clone() };
            for most in [0, 1, expected / 2, expected.saturating_sub(1), expected, expected + 1, u64::MAX] {
                let count = reader.count_bound(&lookup, None, most).await.unwrap();
                assert_eq!(count, expected.min(most), "{first} to {last}, at most {most}, {dead}");
            }
            // A document counts once for each of its elements, but there are no more than all documents.
            let with = |counter: u64| live(dead)(&counter) && (1..=DOCUMENTS_OF_BLOCKS).contains(&counter);
            let holders = |term: u64| u64::from(with(term)) + u64::from(with(term - 1));
            let all = (1..=DOCUMENTS_OF_BLOCKS).filter(live(dead)).count() as u64;
            let expected = (first..=last).map(holders).sum::<u64>().min(all);
            let lookup = Lookup::Range { path: elements.clone(), low, high };
            for most in [0, 1, expected / 2, expected.saturating_sub(1), expected, expected + 1, u64::MAX] {
                let count = reader.count_bound(&lookup, None, most).await.unwrap();
                assert_eq!(count, expected.min(most), "elements {first} to {last}, at most {most}, {dead}");
            }
        }
    }
}
