//! Documents in the order of the first sort key, as the index of a partition has it.
//!
//! Ascending: first the documents without a value at the path, then value by value. Descending: the other way round.
//! Documents with the same value come by number, in the direction of the key. Where the index cannot tell their order,
//! because it has only the beginning of long values or because there are further keys, the documents of that value are
//! given as a heap to be sorted.

use kv::{Direction, KeyRange};
use model::{DocumentNumber, Fault};
use partition::PartitionView;
use partition::index::{IndexPath, Lookup, TermWalk};
use plan::StoredDocument;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use value::{decode_key_descending, decode_key_optional, encode_undefined};

use super::numbers::fetch;
use crate::found::QueryMetrics;

/// Fewest and most numbers that are gathered before their documents are fetched.
const CHUNK_ROWS_MIN: usize = 8;
const CHUNK_ROWS_MAX: usize = 128;

/// What is asked of the index.
#[derive(Debug)]
pub(crate) struct OrderedRequest {
    pub(crate) path: IndexPath,
    pub(crate) is_backwards: bool,
    /// Whether nothing but the number decides between equal values.
    pub(crate) is_only_key: bool,
    /// The documents that may be wanted; all if nothing is said.
    pub(crate) within: Option<Lookup>,
    /// Rows that will do.
    pub(crate) wanted: usize,
}

/// What comes next.
pub(crate) enum OrderedStep {
    /// Documents in their order, and the position that all of their rows are before.
    Sorted(Vec<StoredDocument>, Vec<u8>),
    /// Numbers of documents, in no order, that come before all that follow.
    Heap(Vec<DocumentNumber>),
    /// Nothing.
    End,
}

/// See the file's head.
pub(crate) struct OrderedWalk {
    view: PartitionView,
    keys: KeyRange,
    is_backwards: bool,
    is_only_key: bool,
    terms: Option<TermWalk>,
    /// Documents without a value, until their turn has come.
    valueless: Option<Vec<DocumentNumber>>,
    /// What is left out of the first documents: those up to a number with this value.
    start: Option<(Vec<u8>, u64)>,
    /// Numbers whose documents are next, in order, with the code of their value.
    numbers: VecDeque<(DocumentNumber, Arc<[u8]>)>,
    heap: Option<Vec<DocumentNumber>>,
    chunk_rows: usize,
}

impl std::fmt::Debug for OrderedWalk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OrderedWalk")
    }
}

impl OrderedWalk {
    /// A walk behind a position, or from the beginning if that is empty.
    pub(crate) async fn new(
        view: PartitionView,
        keys: KeyRange,
        request: OrderedRequest,
        after: &[u8],
    ) -> Result<OrderedWalk, Fault> {
        let OrderedRequest { path, is_backwards, is_only_key, within, wanted } = request;
        let chunk_rows = wanted.clamp(CHUNK_ROWS_MIN, CHUNK_ROWS_MAX);
        let index = view.index().ok_or_else(|| Fault::Internal("an order without an index".to_owned()))?;
        let code = first_code(after, is_backwards);
        let undefined = undefined_code();
        let is_in_valueless = code.as_ref() == Some(&undefined);
        let narrowed = match &within {
            Some(within) => Some(index.documents(within).await?),
            None => None,
        };
        // Ascending they come first, descending last.
        let valueless = if code.is_none() || is_in_valueless || is_backwards {
            let missing = Lookup::Without(Box::new(Lookup::Present(path.clone())));
            let missing =
                within.map_or_else(|| missing.clone(), |within| Lookup::And(vec![within, missing.clone()]));
            Some(index.documents(&missing).await?.iter().collect())
        } else {
            None
        };
        let terms = if is_in_valueless && is_backwards {
            None
        } else {
            let direction = if is_backwards { Direction::Backward } else { Direction::Forward };
            let from = code.clone().filter(|_| !is_in_valueless);
            Some(index.walk(&path, direction, from, narrowed.as_ref()).await?)
        };
        let start =
            code.and_then(|code| Some((code.clone(), number_behind(after, code.len(), is_backwards)?)));
        let start = start.filter(|_| is_only_key);
        let numbers = VecDeque::new();
        Ok(OrderedWalk {
            view,
            keys,
            is_backwards,
            is_only_key,
            terms,
            valueless,
            start,
            numbers,
            heap: None,
            chunk_rows,
        })
    }

    /// What comes next.
    pub(crate) async fn next(&mut self, metrics: &mut QueryMetrics) -> Result<OrderedStep, Fault> {
        let begun = Instant::now();
        while self.numbers.len() < self.chunk_rows && self.heap.is_none() && self.gather().await? {}
        metrics.index_time += begun.elapsed();
        if self.numbers.is_empty() {
            return Ok(self.heap.take().map_or(OrderedStep::End, OrderedStep::Heap));
        }
        let begun = Instant::now();
        let some: Vec<_> = self.numbers.iter().take(self.chunk_rows).map(|(number, _)| *number).collect();
        let (documents, fetched) = fetch(&self.view, &self.keys, &some).await?;
        self.chunk_rows = (self.chunk_rows * 2).min(CHUNK_ROWS_MAX);
        let mut reached = Vec::new();
        for (number, code) in self.numbers.drain(..fetched) {
            reached = position_behind(&code, number, self.is_backwards);
        }
        metrics.documents_by_index += documents.len() as u64;
        metrics.count_read(&documents, begun.elapsed());
        Ok(OrderedStep::Sorted(documents, reached))
    }

    /// Takes the documents of one more value; tells whether there were any.
    async fn gather(&mut self) -> Result<bool, Fault> {
        if !self.is_backwards
            && let Some(valueless) = self.valueless.take()
        {
            self.take(valueless, undefined_code(), false);
            return Ok(true);
        }
        if let Some(terms) = &mut self.terms {
            if let Some(step) = terms.next().await? {
                self.take(step.numbers, step.code, step.is_cut);
                return Ok(true);
            }
            self.terms = None;
        }
        let Some(valueless) = self.valueless.take() else {
            return Ok(false);
        };
        self.take(valueless, undefined_code(), false);
        Ok(true)
    }

    fn take(&mut self, mut numbers: Vec<DocumentNumber>, code: Vec<u8>, is_cut: bool) {
        if is_cut || !self.is_only_key {
            self.heap = Some(numbers).filter(|numbers| !numbers.is_empty());
            return;
        }
        if let Some((_, last)) = self.start.take().filter(|(start, _)| *start == code) {
            let is_behind = |number: &DocumentNumber| {
                if self.is_backwards { number.raw() <= last } else { number.raw() >= last }
            };
            numbers.retain(is_behind);
        }
        if self.is_backwards {
            numbers.reverse();
        }
        let code: Arc<[u8]> = code.into();
        self.numbers.extend(numbers.into_iter().map(|number| (number, Arc::clone(&code))));
    }
}

fn undefined_code() -> Vec<u8> {
    let mut code = Vec::new();
    encode_undefined(&mut code);
    code
}

/// The code of the first key of a position; nothing where there is none, or only the beginning of one.
fn first_code(position: &[u8], is_backwards: bool) -> Option<Vec<u8>> {
    if is_backwards {
        let (_, rest) = decode_key_descending(position).ok()?;
        return Some(position[..position.len() - rest.len()].iter().map(|byte| !byte).collect());
    }
    let (_, rest) = decode_key_optional(position).ok()?;
    Some(position[..position.len() - rest.len()].to_vec())
}

/// The number behind the code of a position with one key.
fn number_behind(position: &[u8], code_length: usize, is_backwards: bool) -> Option<u64> {
    let bytes = position.get(code_length..)?.first_chunk::<8>()?;
    let number = u64::from_be_bytes(*bytes);
    Some(if is_backwards { !number } else { number })
}

/// The position behind all rows of a document with a value.
fn position_behind(code: &[u8], number: DocumentNumber, is_backwards: bool) -> Vec<u8> {
    let mut position = [code, &number.raw().to_be_bytes()].concat();
    if is_backwards {
        position.iter_mut().for_each(|byte| *byte = !*byte);
    }
    position.extend_from_slice(&u32::MAX.to_be_bytes());
    position
}
