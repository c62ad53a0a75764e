//! Checks that the index has every term of every record, and no other.
//!
//! Derives the terms again from the records of the same view and compares them with all pieces. Holds both in memory,
//! some hundred bytes per document; for tests and the offline check.

use crate::index::IndexReader;
use crate::index::code::PRESENT;
use crate::index::manifest::{Manifest, stored_runs};
use crate::index::path::{LOGICAL_PATH, path_length};
use crate::index::piece::Piece;
use crate::index::recovery::next_records;
use crate::index::run_cursor::{RunCursor, RunSource};
use crate::index::terms::TermWalker;
use crate::index::universe::Universe;
use crate::keyspace::{self, PartitionId};
use crate::storage::damaged;
use bytes::Bytes;
use kv::View;
use model::{ContainerNumber, DocumentNumber, EffectiveRange, Fault};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A difference between index and records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexFinding {
    /// A document is in no piece, or in several.
    #[error("the document {number:?} is live in {count} pieces of the index")]
    Alive {
        /// The document.
        number: DocumentNumber,
        /// The number of pieces.
        count: usize,
    },
    /// A piece has a live document that does not exist.
    #[error("the index has the document {number:?}, which does not exist")]
    Ghost {
        /// The document.
        number: DocumentNumber,
    },
    /// The posting of a term lacks documents or has wrong ones.
    #[error("the term {path:?} {code:?} lacks {missing:?} and has {surplus:?} too many")]
    Term {
        /// The code of the path.
        path: Bytes,
        /// The code of the value.
        code: Bytes,
        /// Documents that have the value but are not in the index.
        missing: Vec<DocumentNumber>,
        /// Documents that are in the index but do not have the value.
        surplus: Vec<DocumentNumber>,
    },
}

type AuditTerms = BTreeMap<(Bytes, Bytes), BTreeSet<DocumentNumber>>;

/// The runs of a partition that have rows in the store but are not in its manifest. There may be some during an index
/// build or a flush, and none otherwise.
pub async fn unnamed_runs(view: &View, partition: PartitionId) -> Result<Vec<u64>, Fault> {
    let mut runs = stored_runs(view, partition).await?;
    if let Some(manifest) = Manifest::load(view, partition).await? {
        manifest.runs.iter().filter(|run| run.owner == partition.ordinal).for_each(|run| {
            runs.remove(&run.id);
        });
    }
    Ok(runs.into_iter().collect())
}

/// Compares the index with the records of a hash range.
pub(crate) async fn audit_index(
    reader: &IndexReader,
    container: ContainerNumber,
    range: &EffectiveRange,
) -> Result<Vec<IndexFinding>, Fault> {
    let mut expected = AuditTerms::new();
    let mut numbers = BTreeSet::new();
    let mut walker = TermWalker::new(&reader.rules);
    let mut range = keyspace::effective_range(container, range);
    while let Some(versions) = next_records(&reader.view, &mut range).await? {
        for version in versions {
            numbers.insert(version.number);
            let mut expect = |path: &[u8], code: &[u8]| {
                let term = (Bytes::copy_from_slice(path), Bytes::copy_from_slice(code));
                expected.entry(term).or_default().insert(version.number);
            };
            walker.walk(&version, |path, code| {
                expect(path, code);
                if path != LOGICAL_PATH {
                    expect(path, PRESENT);
                }
            });
        }
    }
    let mut findings = compare_numbers(reader, &numbers);
    let found = found_terms(reader).await?;
    compare_terms(expected, found, &mut findings);
    Ok(findings)
}

fn compare_numbers(reader: &IndexReader, expected: &BTreeSet<DocumentNumber>) -> Vec<IndexFinding> {
    let mut alive: BTreeMap<DocumentNumber, usize> = expected.iter().map(|number| (*number, 0)).collect();
    let mut findings = Vec::new();
    for piece in &*reader.pieces {
        for (rank, number) in (0_u32..).zip(piece.universe().iter()) {
            if piece.dead().contains(rank) {
                continue;
            }
            match alive.get_mut(&number) {
                Some(count) => *count += 1,
                None => findings.push(IndexFinding::Ghost { number }),
            }
        }
    }
    let wrong = alive.into_iter().filter(|(_, count)| *count != 1);
    findings.extend(wrong.map(|(number, count)| IndexFinding::Alive { number, count }));
    findings
}

/// All terms of all pieces with their live documents.
async fn found_terms(reader: &IndexReader) -> Result<AuditTerms, Fault> {
    let mut terms = AuditTerms::new();
    for piece in &*reader.pieces {
        match piece {
            Piece::Run(part) => {
                let mut cursor =
                    RunCursor::whole(Arc::clone(&part.run), RunSource::View(reader.view.clone())).await?;
                while let Some(entry) = cursor.next().await? {
                    let length = path_length(&entry.key).ok_or_else(|| damaged("key of a term"))?;
                    let (path, code) = entry.key.split_at(length);
                    let term = (Bytes::copy_from_slice(path), Bytes::copy_from_slice(code));
                    let posting = cursor.posting(&entry).await?;
                    let holders = terms.entry(term).or_default();
                    posting.for_each(part.run.numbers.len(), |rank| {
                        if !part.dead.contains(rank) {
                            holders.extend(Universe::Packed(&part.run.numbers).get(rank));
                        }
                    });
                }
            }
            Piece::Segment(part) => {
                let segment = &part.segment;
                for field in 0..segment.field_count() {
                    let path = Bytes::copy_from_slice(segment.path(field));
                    for term in segment.terms(field) {
                        let code = Bytes::copy_from_slice(segment.code(term));
                        let posting = segment.posting(term);
                        let holders = terms.entry((path.clone(), code)).or_default();
                        posting.for_each(segment.numbers().len(), |rank| {
                            if !part.dead.contains(rank) {
                                holders.extend(segment.numbers().get(rank as usize));
                            }
                        });
                    }
                }
            }
        }
    }
    Ok(terms)
}

fn compare_terms(mut expected: AuditTerms, found: AuditTerms, findings: &mut Vec<IndexFinding>) {
    let mut report = |(path, code): (Bytes, Bytes), missing: Vec<_>, surplus: Vec<_>| {
        if !missing.is_empty() || !surplus.is_empty() {
            findings.push(IndexFinding::Term { path, code, missing, surplus });
        }
    };
    for (term, holders) in found {
        let wanted = expected.remove(&term).unwrap_or_default();
        let missing = wanted.difference(&holders).copied().collect();
        let surplus = holders.difference(&wanted).copied().collect();
        report(term, missing, surplus);
    }
    for (term, holders) in expected {
        report(term, holders.into_iter().collect(), Vec::new());
    }
}
