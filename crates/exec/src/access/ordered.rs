//! Documents in the order of sort keys, as the index of a partition has it.
//!
//! A composite index has the order of all keys at once, documents without a value included; it is walked backwards for
//! the order with all directions turned, and only where its tuples begin with what a filter fixes of the first keys.
//! Otherwise the values at the path of the first key are walked. Ascending: first the documents without a value at the path, then
//! value by value. Descending: the other way round. Documents with the same value come by number, in the direction of
//! the key. Where the index cannot tell their order, because it has only the beginning of long values or because there
//! are further keys, the documents of that value are given as a heap to be sorted.

use eval::Meter;
use kv::{Direction, KeyRange};
use model::{DocumentNumber, Fault};
use partition::PartitionView;
use partition::index::{Documents, IndexPath, Lookup, TermWalk, write_tuple_member};
use plan::StoredDocument;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;
use value::{Value, decode_key_descending, decode_key_optional, encode_undefined};

use super::lookup::fixed_code;
use super::numbers::fetch;
use crate::fault::query_fault;
use crate::found::QueryMetrics;
use crate::program::Check;
use crate::task::{OpenPart, rest_if_due};

/// Fewest and most numbers that are gathered before their documents are fetched.
const CHUNK_ROWS_MIN: usize = 8;
const CHUNK_ROWS_MAX: usize = 128;

/// Values between two looks at the meter.
const VALUES_AT_A_TIME: usize = 64;
/// What a value counts for that is walked past.
const VALUE_STEPS: u64 = 8;

/// What the terms of a walk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderKind {
    /// Values of the only key.
    Values,
    /// Values of the first key; others decide between equal ones.
    FirstValues,
    /// Values of all keys together.
    Tuples,
}

/// What is asked of the index.
#[derive(Debug)]
pub(crate) struct OrderedRequest {
    pub(crate) path: IndexPath,
    pub(crate) kind: OrderKind,
    /// Whether the terms are walked backwards.
    pub(crate) is_backwards: bool,
    /// Whether of equal values the document with the largest number comes first.
    pub(crate) are_numbers_turned: bool,
    /// Whether each key that the terms hold descends.
    pub(crate) keys: Vec<bool>,
    /// The documents that may be wanted; all if nothing is said.
    pub(crate) within: Option<Lookup>,
    /// Whether that says all that the filter says.
    pub(crate) is_exact: bool,
    /// What the terms of all documents that may be wanted begin with.
    pub(crate) beginning: Option<Beginning>,
    /// Rows that will do.
    pub(crate) wanted: usize,
}

/// What tuples begin with whose first values are fixed.
#[derive(Debug)]
pub(crate) struct Beginning {
    code: Vec<u8>,
    /// Whether a document whose tuple begins so is one that the lookup finds, whatever else it has.
    pub(crate) is_all: bool,
}

impl Beginning {
    /// What a lookup fixes of tuples with values at these paths, some of them turned; nothing if not even the first.
    pub(crate) fn of(
        within: &Lookup,
        paths: impl IntoIterator<Item = (IndexPath, bool)>,
    ) -> Option<Beginning> {
        let mut code = Vec::new();
        let mut fixed = Vec::new();
        for (path, is_turned) in paths {
            let Some(value) = fixed_code(within, &path) else { break };
            code.extend(value.iter().map(|byte| if is_turned { !byte } else { *byte }));
            fixed.push((path, value));
        }
        let is_said = |part: &Lookup| fixed.iter().any(|(path, value)| is_term(part, path, value));
        let parts = if let Lookup::And(parts) = within { parts } else { std::slice::from_ref(within) };
        let is_all = parts.iter().all(is_said);
        (!fixed.is_empty()).then_some(Beginning { code, is_all })
    }

    /// The first code behind all that begin so.
    fn behind(&self) -> Bound<Vec<u8>> {
        let Some(last) = self.code.iter().rposition(|byte| *byte != u8::MAX) else {
            return Bound::Unbounded;
        };
        let mut code = self.code[..=last].to_vec();
        code[last] += 1;
        Bound::Excluded(code)
    }
}

fn is_term(lookup: &Lookup, wanted: &IndexPath, value: &[u8]) -> bool {
    matches!(lookup, Lookup::Term { path, code } if path == wanted && code == value)
}

/// The codes of the sort keys of some documents; taken over from the walk, not copied.
type Codes = Arc<Vec<u8>>;

/// What comes next.
pub(crate) enum OrderedStep {
    /// Documents in their order with the codes of their sort keys, and the position that all of their rows are before.
    Sorted(Vec<(StoredDocument, Codes)>, Vec<u8>),
    /// Numbers of documents, in no order, that come before all that follow.
    Heap(Vec<DocumentNumber>),
    /// Nothing.
    End,
}

/// See the file's head.
pub(crate) struct OrderedWalk {
    view: PartitionView,
    keys: KeyRange,
    meter: Arc<Meter>,
    kind: OrderKind,
    is_backwards: bool,
    are_numbers_turned: bool,
    check: Check,
    terms: Option<TermWalk>,
    /// Documents without a value, until their turn has come.
    valueless: Option<Vec<DocumentNumber>>,
    /// What is left out of the first documents: those up to a number with this value.
    start: Option<(Vec<u8>, u64)>,
    /// Numbers whose documents are next, in order, with the codes of their sort keys.
    numbers: VecDeque<(DocumentNumber, Codes)>,
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
        open: &OpenPart,
        request: OrderedRequest,
        after: &[u8],
    ) -> Result<OrderedWalk, Fault> {
        let OrderedRequest {
            path,
            kind,
            is_backwards,
            are_numbers_turned,
            keys: directions,
            within,
            is_exact,
            beginning,
            wanted,
        } = request;
        let chunk_rows = wanted.clamp(CHUNK_ROWS_MIN, CHUNK_ROWS_MAX);
        let index =
            open.view.index().ok_or_else(|| Fault::Internal("an order without an index".to_owned()))?;
        let code = first_code(after, &directions, kind, is_backwards);
        let is_in_valueless = kind != OrderKind::Tuples && code.as_ref() == Some(&undefined_code());
        let is_all_said = beginning.as_ref().is_some_and(|beginning| beginning.is_all);
        let narrowed = match &within {
            Some(within) if !is_all_said => Some(open.looked_up(index, within).await?),
            Some(_) | None => None,
        };
        let is_answered = is_exact && narrowed.as_ref().is_none_or(Documents::is_exact);
        // Ascending they come first, descending last; tuples have them among the others.
        let are_valueless_left = code.is_none() || is_in_valueless || is_backwards;
        let valueless = if kind != OrderKind::Tuples && are_valueless_left {
            let missing = Lookup::Without(Box::new(Lookup::Present(path.clone())));
            let missing =
                within.map_or_else(|| missing.clone(), |within| Lookup::And(vec![within, missing.clone()]));
            Some(open.looked_up(index, &missing).await?.iter().collect())
        } else {
            None
        };
        let terms = if is_in_valueless && is_backwards {
            None
        } else {
            let direction = if is_backwards { Direction::Backward } else { Direction::Forward };
            let mut from = code.clone().filter(|_| !is_in_valueless);
            if let (OrderKind::Tuples, true, Some(from)) = (kind, is_backwards, &mut from) {
                // A tuple has a mark behind its values.
                from.push(u8::MAX);
            }
            let (first, behind) = match &beginning {
                Some(beginning) => (Bound::Included(beginning.code.clone()), beginning.behind()),
                None => (Bound::Unbounded, Bound::Unbounded),
            };
            let (low, high) = match (from, direction) {
                (None, _) => (first, behind),
                (Some(from), Direction::Forward) => (Bound::Included(from), behind),
                (Some(from), Direction::Backward) => (first, Bound::Included(from)),
            };
            Some(index.walk_between(&path, direction, low, high, narrowed.as_ref()).await?)
        };
        let number = |code: &Vec<u8>| number_behind(after, code.len(), are_numbers_turned);
        let start = code.and_then(|code| number(&code).map(|number| (code, number)));
        let start = start.filter(|_| kind != OrderKind::FirstValues);
        Ok(OrderedWalk {
            view: open.view.clone(),
            keys: open.part.keys.clone(),
            meter: Arc::clone(&open.meter),
            kind,
            is_backwards,
            are_numbers_turned,
            check: if is_answered { Check::Nothing } else { Check::Filter },
            terms,
            valueless,
            start,
            numbers: VecDeque::with_capacity(chunk_rows),
            heap: None,
            chunk_rows,
        })
    }

    /// What is left to be found out of documents that come in order.
    pub(crate) fn check(&self) -> Check {
        self.check
    }

    /// What comes next.
    pub(crate) async fn next(&mut self, metrics: &mut QueryMetrics) -> Result<OrderedStep, Fault> {
        let begun = Instant::now();
        let mut walked = 0_usize;
        while self.numbers.len() < self.chunk_rows && self.heap.is_none() && self.gather().await? {
            walked += 1;
            if walked.is_multiple_of(VALUES_AT_A_TIME) {
                self.meter.spend(VALUES_AT_A_TIME as u64 * VALUE_STEPS).map_err(query_fault)?;
                rest_if_due(&self.meter).await?;
            }
        }
        metrics.index_time += begun.elapsed();
        if self.numbers.is_empty() {
            return Ok(self.heap.take().map_or(OrderedStep::End, OrderedStep::Heap));
        }
        let begun = Instant::now();
        let some: Vec<_> = self.numbers.iter().take(self.chunk_rows).map(|(number, _)| *number).collect();
        let (documents, fetched) = fetch(&self.view, &self.keys, &some).await?;
        self.chunk_rows = (self.chunk_rows * 2).min(CHUNK_ROWS_MAX);
        metrics.documents_by_index += documents.len() as u64;
        metrics.count_read(&documents, begun.elapsed());
        let last = fetched.checked_sub(1).and_then(|last| self.numbers.get(last));
        let reached = last.map(|(number, codes)| self.position_behind(codes, *number)).unwrap_or_default();
        let mut looked_at = self.numbers.drain(..fetched);
        let with_codes = |document: StoredDocument| {
            let (_, codes) = looked_at.find(|(number, _)| *number == document.number)?;
            Some((document, codes))
        };
        Ok(OrderedStep::Sorted(documents.into_iter().filter_map(with_codes).collect(), reached))
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

    fn take(&mut self, mut numbers: Vec<DocumentNumber>, mut code: Vec<u8>, is_cut: bool) {
        if is_cut || self.kind == OrderKind::FirstValues {
            self.heap = Some(numbers).filter(|numbers| !numbers.is_empty());
            return;
        }
        if self.kind == OrderKind::Tuples {
            // The mark behind the values.
            code.pop();
        }
        if let Some((_, last)) = self.start.take().filter(|(start, _)| *start == code) {
            let is_left = |number: &DocumentNumber| {
                if self.are_numbers_turned { number.raw() <= last } else { number.raw() >= last }
            };
            numbers.retain(is_left);
        }
        if self.are_numbers_turned {
            numbers.reverse();
        }
        if self.is_backwards {
            code.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let codes: Codes = Arc::new(code);
        self.numbers.extend(numbers.into_iter().map(|number| (number, Arc::clone(&codes))));
    }

    /// The position behind all rows of a document with these codes of its sort keys.
    fn position_behind(&self, codes: &[u8], number: DocumentNumber) -> Vec<u8> {
        let number = if self.are_numbers_turned { !number.raw() } else { number.raw() };
        [codes, &number.to_be_bytes(), &u32::MAX.to_be_bytes()].concat()
    }
}

fn undefined_code() -> Vec<u8> {
    let mut code = Vec::new();
    encode_undefined(&mut code);
    code
}

/// The code of the values at the beginning of a position, as the terms have it; nothing where there is none, or only
/// the beginning of one.
fn first_code(position: &[u8], directions: &[bool], kind: OrderKind, is_backwards: bool) -> Option<Vec<u8>> {
    let mut rest = position;
    let mut code = Vec::new();
    for is_descending in directions {
        let (value, behind) = if *is_descending {
            decode_key_descending(rest).ok()?
        } else {
            decode_key_optional(rest).ok()?
        };
        if kind == OrderKind::Tuples {
            let value = value.as_ref().map(Value::as_ref);
            // What follows a long value is not in the tuple.
            if write_tuple_member(value, *is_descending != is_backwards, &mut code) {
                return Some(code);
            }
        } else {
            let bytes = rest[..rest.len() - behind.len()].iter();
            code.extend(bytes.map(|byte| if is_backwards { !byte } else { *byte }));
        }
        rest = behind;
    }
    Some(code)
}

/// The number behind the code of a position.
fn number_behind(position: &[u8], code_length: usize, is_turned: bool) -> Option<u64> {
    let bytes = position.get(code_length..)?.first_chunk::<8>()?;
    let number = u64::from_be_bytes(*bytes);
    Some(if is_turned { !number } else { number })
}
