//! Documents in the order of their numbers, in chunks.
//!
//! A partition assigns consecutive numbers to its documents. A partition that results from a split also contains
//! documents with numbers of its ancestors, interleaved with those of its siblings, which are skipped.

use model::{DocumentNumber, Fault};
use partition::NumberScan;
use partition::index::Documents;
use plan::StoredDocument;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::found::QueryMetrics;
use crate::program::RemainingCheck;
use crate::task::OpenPart;

/// Minimum and maximum number of document numbers in a chunk, unless every document gives a row.
const CHUNK_ROWS_MIN: usize = 16;
const CHUNK_ROWS_MAX: usize = 512;
/// Bytes of documents after which a chunk ends.
const CHUNK_BYTES: usize = 1 << 20;

/// A walk over the documents of a partition.
#[derive(Debug)]
pub(crate) struct NumberWalk {
    open: Arc<OpenPart>,
    numbers: Numbers,
    chunk_rows: usize,
}

/// The numbers that remain.
#[derive(Debug)]
enum Numbers {
    /// All numbers of some intervals: first and last of each, in order.
    Stretches(VecDeque<(DocumentNumber, DocumentNumber)>),
    /// Those of a lookup: the next ones, including one more than a chunk has if there are more.
    Lookup(Box<LookupDocuments>, Vec<DocumentNumber>),
}

/// Documents that a lookup has found.
#[derive(Debug)]
pub(crate) struct LookupDocuments {
    pub(crate) set: Documents,
    /// What is still to be checked on them.
    pub(crate) check: RemainingCheck,
}

impl LookupDocuments {
    /// The numbers of a chunk starting at `first`, plus one more if there is one.
    fn next_numbers(&self, first: DocumentNumber, chunk_rows: usize) -> Vec<DocumentNumber> {
        let mut numbers = Vec::with_capacity(CHUNK_ROWS_MIN);
        numbers.extend(self.set.iter_from(Some(first)).take(chunk_rows + 1));
        numbers
    }
}

impl NumberWalk {
    /// A walk over all documents of a part, starting at `first`, with a first chunk of [`first_chunk`].
    pub(crate) fn over_all(open: Arc<OpenPart>, first: u64, chunk_rows: usize) -> NumberWalk {
        let mut stretches: Vec<_> = open
            .part
            .ordinals()
            .filter_map(|ordinal| {
                let start = DocumentNumber::new(ordinal, 0)?;
                let end = DocumentNumber::new(ordinal, DocumentNumber::COUNTER_MAX)?;
                let start = start.max(DocumentNumber::from_raw(first)?);
                (start <= end).then_some((start, end))
            })
            .collect();
        stretches.sort_unstable();
        let numbers = Numbers::Stretches(stretches.into());
        NumberWalk { open, numbers, chunk_rows }
    }

    /// A walk over the documents of a lookup, starting at `first`.
    pub(crate) fn over_lookup(
        open: Arc<OpenPart>,
        documents: Box<LookupDocuments>,
        first: u64,
        chunk_rows: usize,
    ) -> NumberWalk {
        let first = DocumentNumber::from_raw(first);
        let next = first.map(|first| documents.next_numbers(first, chunk_rows)).unwrap_or_default();
        NumberWalk { open, numbers: Numbers::Lookup(documents, next), chunk_rows }
    }

    /// The same walk, starting at another number.
    pub(crate) fn restarted_at(self, first: u64) -> NumberWalk {
        let NumberWalk { open, numbers, chunk_rows } = self;
        match numbers {
            Numbers::Stretches(_) => NumberWalk::over_all(open, first, chunk_rows),
            Numbers::Lookup(documents, _) => NumberWalk::over_lookup(open, documents, first, chunk_rows),
        }
    }

    /// What is still to be checked on the documents.
    pub(crate) fn check(&self) -> RemainingCheck {
        match &self.numbers {
            Numbers::Stretches(_) => RemainingCheck::Filter,
            Numbers::Lookup(documents, _) => documents.check,
        }
    }

    pub(crate) fn has_more(&self) -> bool {
        match &self.numbers {
            Numbers::Stretches(stretches) => !stretches.is_empty(),
            Numbers::Lookup(_, next) => !next.is_empty(),
        }
    }

    /// The smallest number that may remain.
    pub(crate) fn next_number(&self) -> u64 {
        let next = match &self.numbers {
            Numbers::Stretches(stretches) => stretches.front().map(|(first, _)| *first),
            Numbers::Lookup(_, next) => next.first().copied(),
        };
        next.map_or(u64::MAX, DocumentNumber::raw)
    }

    /// The next chunk; it may be empty before the end.
    pub(crate) async fn next(&mut self, metrics: &mut QueryMetrics) -> Result<Vec<StoredDocument>, Fault> {
        let begun = Instant::now();
        let documents = match &mut self.numbers {
            Numbers::Stretches(stretches) => {
                let Some((first, last)) = stretches.pop_front() else {
                    return Ok(Vec::new());
                };
                let scan = NumberScan {
                    first,
                    last,
                    keys: self.open.part.keys.clone(),
                    items_max: self.chunk_rows,
                    bytes_max: CHUNK_BYTES,
                };
                let page = self.open.view.numbered(&scan).await?;
                let next = page.resume_after.and_then(|seen| DocumentNumber::from_raw(seen.raw() + 1));
                if let Some(next) = next.filter(|next| *next <= last) {
                    stretches.push_front((next, last));
                }
                page.documents
            }
            Numbers::Lookup(found, next) => {
                let chunk = &next[..next.len().min(self.chunk_rows)];
                let (documents, fetched) = fetch(&self.open, chunk).await?;
                let more_rows = (self.chunk_rows * 2).min(CHUNK_ROWS_MAX);
                let first = next.get(fetched).copied();
                *next = first.map(|first| found.next_numbers(first, more_rows)).unwrap_or_default();
                metrics.documents_by_index += documents.len() as u64;
                documents
            }
        };
        self.chunk_rows = (self.chunk_rows * 2).min(CHUNK_ROWS_MAX);
        metrics.count_read(&self.open, &documents, begun.elapsed());
        Ok(documents)
    }
}

/// Documents of the first chunk if `wanted` rows are sufficient: one more shows whether there are others. Some may give
/// no row, so a small chunk is enlarged, unless each gives one.
pub(crate) fn first_chunk(wanted: usize, each_gives_a_row: bool) -> usize {
    let chunk_rows_min = if each_gives_a_row { 1 } else { CHUNK_ROWS_MIN };
    wanted.saturating_add(1).clamp(chunk_rows_min, CHUNK_ROWS_MAX)
}

/// Fetches documents by number until the byte limit is reached; returns how many numbers were processed.
async fn fetch(open: &OpenPart, numbers: &[DocumentNumber]) -> Result<(Vec<StoredDocument>, usize), Fault> {
    let (mut documents, mut bytes, mut fetched) = (Vec::new(), 0, 0);
    for some in numbers.chunks(CHUNK_ROWS_MIN) {
        if bytes >= CHUNK_BYTES {
            break;
        }
        let found = open.view.by_numbers(some, &open.part.keys).await?;
        bytes += found.iter().map(|stored: &StoredDocument| stored.document.bytes().len()).sum::<usize>();
        // Few documents arrive in one piece and are not copied.
        if documents.is_empty() {
            documents = found;
        } else {
            documents.extend(found);
        }
        fetched += some.len();
    }
    Ok((documents, fetched))
}
