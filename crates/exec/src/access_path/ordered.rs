//! Documents in the order of sort keys, from the index of a partition.
//!
//! A composite index has the order of all keys, including documents without a value. It is walked backwards if all
//! directions are reversed.
//!
//! Otherwise the values at the path of the first key are walked. Ascending: first the documents without a value at the
//! path, then value by value. Descending: the reverse. Documents with the same value come by number, in the direction
//! of the key. If the index does not know their order, because long values are truncated or because there are further
//! keys, the documents of that value are returned as a set to be sorted.
//!
//! If a filter sets bounds to the first keys, only the terms within them are walked. Ranges of later keys are checked on
//! the terms.

use kv::Direction;
use model::{DocumentNumber, Fault};
use partition::index::{Documents, IndexPath, Lookup, TermWalk, write_tuple_member};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;
use value::{Value, decode_key_descending, decode_key_optional, encode_undefined};

use super::code_checks::{PassedValues, Visit};
use super::index_condition::tighter;
use super::shared::Narrowing;
use super::walk_bounds::WalkBounds;
use crate::fault::query_fault;
use crate::found::QueryMetrics;
use crate::program::RemainingCheck;
use crate::task::{OpenPart, yield_if_due};

/// Values between two checks of the meter.
const VALUES_AT_A_TIME: usize = 64;
/// Steps that are counted for a value that is walked.
const VALUE_STEPS: u64 = 8;

/// The terms that a walk visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderKind {
    /// Values of the only key.
    Values,
    /// Values of the first key; other keys decide between equal ones.
    FirstValues,
    /// Values of all keys together.
    Tuples,
}

/// What is requested from the index.
#[derive(Debug)]
pub(crate) struct OrderedRequest {
    pub(crate) path: IndexPath,
    pub(crate) kind: OrderKind,
    /// Whether the terms are walked backwards.
    pub(crate) is_backwards: bool,
    /// Whether of equal values the document with the largest number comes first.
    pub(crate) are_numbers_turned: bool,
    /// For each key that the terms contain, whether it is descending.
    pub(crate) keys: Vec<bool>,
    /// The documents that may be wanted; all if `None`.
    pub(crate) within: Option<Narrowing>,
    /// Whether `within` is equivalent to the filter.
    pub(crate) is_exact: bool,
    /// The bounds of the terms of all documents that may be wanted.
    pub(crate) bounds: Option<WalkBounds>,
    /// Whether a document gives at most one row.
    pub(crate) has_one_row: bool,
    /// Text of the keys that the index orders by, if they are explained.
    pub(crate) text: Option<String>,
}

impl OrderedRequest {
    fn direction(&self) -> Direction {
        if self.is_backwards { Direction::Backward } else { Direction::Forward }
    }

    /// The bounds of a walk that continues at a code.
    fn ends(&self, from: &Bound<Vec<u8>>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let ends = self.bounds.as_ref().map(WalkBounds::ends);
        let (low, high) = ends.unwrap_or((Bound::Unbounded, Bound::Unbounded));
        match self.direction() {
            Direction::Forward => (tighter(&low, from, Ordering::Greater), high),
            Direction::Backward => (low, tighter(&high, from, Ordering::Less)),
        }
    }
}

/// The codes of the sort keys of some documents; shared with the walk, not copied.
pub(crate) type Codes = Arc<Vec<u8>>;

/// A walk over the documents of a part in the order of sort keys.
pub(crate) struct OrderedWalk {
    open: Arc<OpenPart>,
    request: Arc<OrderedRequest>,
    check: RemainingCheck,
    terms: Option<TermWalk>,
    /// The values that were not wanted, as long as the terms are checked.
    passed: Option<PassedValues>,
    /// Values of the index that were visited and are not yet counted.
    visited: u64,
    /// Whether the documents without a value are still to come.
    are_valueless_left: bool,
    /// What is skipped at the start: documents with this value before a number, or up to it.
    start: Option<Start>,
    /// The next documents, in order, with the codes of their sort keys.
    numbers: VecDeque<(DocumentNumber, Codes)>,
    /// Documents after those, unsorted, that come before all others.
    unsorted: Option<Vec<DocumentNumber>>,
}

impl std::fmt::Debug for OrderedWalk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OrderedWalk")
    }
}

impl OrderedWalk {
    /// A walk that starts after a position, or at the beginning if the position is empty.
    pub(crate) async fn new(
        open: Arc<OpenPart>,
        request: Arc<OrderedRequest>,
        after: &[u8],
    ) -> Result<OrderedWalk, Fault> {
        let OrderedRequest { path, kind, is_backwards, within, bounds, .. } = &*request;
        let (kind, is_backwards) = (*kind, *is_backwards);
        let index =
            open.view.index().ok_or_else(|| Fault::Internal("an order without an index".to_owned()))?;
        let code = first_code(after, &request.keys, kind, is_backwards);
        let is_in_valueless = kind != OrderKind::Tuples && code.as_ref() == Some(&undefined_code());
        let passed =
            bounds.as_ref().and_then(|bounds| bounds.checks.as_ref()).map(|_| PassedValues::default());
        let looked_up = match bounds {
            Some(_) if passed.is_some() => None,
            Some(bounds) => bounds.rest.as_ref(),
            None => within.as_ref().map(|within| &*within.lookup),
        };
        let mut visited = 0;
        let narrowed = match looked_up {
            Some(lookup) => {
                visited = index.work_bound(lookup)?;
                Some(open.documents_of(index, lookup).await?)
            }
            None => None,
        };
        let is_answered = request.is_exact
            && passed.is_none()
            && bounds.as_ref().is_none_or(|bounds| bounds.is_exact)
            && narrowed.as_ref().is_none_or(Documents::is_exact);
        let is_nothing = narrowed.as_ref().is_some_and(Documents::is_empty)
            || bounds.as_ref().is_some_and(WalkBounds::is_empty);
        // Ascending they come first, descending last; tuples include them. Bounds exclude them.
        let are_valueless_left = !is_nothing
            && bounds.is_none()
            && kind != OrderKind::Tuples
            && (code.is_none() || is_in_valueless || is_backwards);
        let terms = if is_nothing || is_in_valueless && is_backwards {
            None
        } else {
            let direction = request.direction();
            let mut from = code.clone().filter(|_| !is_in_valueless);
            if let (OrderKind::Tuples, true, Some(from)) = (kind, is_backwards, &mut from) {
                // A tuple has a mark after its values.
                from.push(u8::MAX);
            }
            let from = from.map_or(Bound::Unbounded, Bound::Included);
            let (low, high) = request.ends(&from);
            Some(index.walk_between(path, direction, low, high, narrowed).await?)
        };
        let start = code.filter(|_| kind != OrderKind::FirstValues);
        let start = start.and_then(|code| Start::new(after, code, &request));
        let check = if is_answered { RemainingCheck::Nothing } else { RemainingCheck::Filter };
        let numbers = VecDeque::new();
        let unsorted = None;
        Ok(OrderedWalk {
            open,
            request,
            check,
            terms,
            passed,
            visited,
            are_valueless_left,
            start,
            numbers,
            unsorted,
        })
    }

    /// What is still to be checked on documents that come in order.
    pub(crate) fn check(&self) -> RemainingCheck {
        self.check
    }

    /// Walks until `count` documents are known by number, or some that must be sorted. No document is read.
    pub(crate) async fn gather(&mut self, count: usize, metrics: &mut QueryMetrics) -> Result<(), Fault> {
        let begun = Instant::now();
        let mut walked = 0_usize;
        while self.numbers.len() < count && self.unsorted.is_none() && self.gather_value().await? {
            walked += 1;
            if walked.is_multiple_of(VALUES_AT_A_TIME) {
                self.open.meter.spend(VALUES_AT_A_TIME as u64 * VALUE_STEPS).map_err(query_fault)?;
                yield_if_due(&self.open.meter).await?;
            }
        }
        metrics.index_values += std::mem::take(&mut self.visited) + walked as u64;
        metrics.index_time += begun.elapsed();
        Ok(())
    }

    /// The next document, if it is known.
    pub(crate) fn next_number(&self) -> Option<DocumentNumber> {
        self.numbers.front().map(|(number, _)| *number)
    }

    /// The position where the rows of the next document begin, if it is known by number.
    pub(crate) fn next_position(&self) -> Option<Vec<u8>> {
        let (number, codes) = self.numbers.front()?;
        Some([codes, &self.tie(*number)[..]].concat())
    }

    /// The next document, if it is known by number.
    pub(crate) fn pop(&mut self) -> Option<(DocumentNumber, Codes)> {
        self.numbers.pop_front()
    }

    /// The position after all rows of a document with these codes of its sort keys.
    pub(crate) fn position_after(&self, codes: &[u8], number: DocumentNumber) -> Vec<u8> {
        [codes, &self.tie(number), &u32::MAX.to_be_bytes()].concat()
    }

    /// The next documents, if they must be sorted.
    pub(crate) fn unsorted(&self) -> Option<&[DocumentNumber]> {
        self.unsorted.as_deref().filter(|_| self.numbers.is_empty())
    }

    /// Drops the documents that had to be sorted, since they have been returned.
    pub(crate) fn pass_unsorted(&mut self) {
        self.unsorted = None;
    }

    /// Whether nothing remains after [`gather`](Self::gather).
    pub(crate) fn is_at_end(&self) -> bool {
        self.numbers.is_empty() && self.unsorted.is_none() && self.terms.is_none() && !self.are_valueless_left
    }

    /// Adds the documents of one more value; returns whether there may be others.
    async fn gather_value(&mut self) -> Result<bool, Fault> {
        if !self.request.is_backwards && self.are_valueless_left {
            return self.take_valueless().await;
        }
        if let Some(terms) = &mut self.terms {
            if let Some(step) = terms.next().await? {
                let checks = self.request.bounds.as_ref().and_then(|bounds| bounds.checks.as_ref());
                let visit = match (&mut self.passed, checks) {
                    (Some(passed), Some(checks)) => {
                        passed.visit(checks, &step.code, step.is_truncated, self.request.direction())
                    }
                    (None, _) | (_, None) => Visit::Take,
                };
                match visit {
                    Visit::Take => {}
                    Visit::Pass => return Ok(true),
                    Visit::Skip(next) => return self.walk_from(next, None).await,
                    Visit::LookUp => return self.look_up_after(step.code).await,
                }
                self.take(step.numbers, step.code, step.is_truncated);
                return Ok(true);
            }
            self.terms = None;
        }
        if self.are_valueless_left { self.take_valueless().await } else { Ok(false) }
    }

    /// Continues with the documents of a lookup instead of checking terms, after those with this code.
    async fn look_up_after(&mut self, code: Vec<u8>) -> Result<bool, Fault> {
        self.passed = None;
        let rest = self.request.bounds.as_ref().and_then(|bounds| bounds.rest.as_ref());
        let (Some(index), Some(lookup)) = (self.open.view.index(), rest) else { return Ok(false) };
        self.visited += index.work_bound(lookup)?;
        let found = self.open.documents_of(index, lookup).await?;
        let next = if found.is_empty() { None } else { Some(Bound::Excluded(code)) };
        self.walk_from(next, Some(found)).await
    }

    /// Continues at a code, or ends. There may be more documents.
    async fn walk_from(
        &mut self,
        next: Option<Bound<Vec<u8>>>,
        within: Option<Documents>,
    ) -> Result<bool, Fault> {
        self.terms = None;
        if let (Some(next), Some(index)) = (next, self.open.view.index()) {
            let (low, high) = self.request.ends(&next);
            let (path, direction) = (&self.request.path, self.request.direction());
            self.terms = Some(index.walk_between(path, direction, low, high, within).await?);
        }
        Ok(true)
    }

    /// Adds the documents without a value; most paths have none.
    async fn take_valueless(&mut self) -> Result<bool, Fault> {
        self.are_valueless_left = false;
        let OrderedRequest { path, within, .. } = &*self.request;
        let Some(index) = self.open.view.index() else { return Ok(false) };
        if index.is_everywhere(path).await? {
            return Ok(true);
        }
        let missing = Lookup::Without(Box::new(Lookup::Present(path.clone())));
        let missing = match within {
            Some(within) => Lookup::And(vec![Lookup::clone(&within.lookup), missing]),
            None => missing,
        };
        let numbers = self.open.documents_of(index, &missing).await?.iter().collect();
        self.take(numbers, undefined_code(), false);
        Ok(true)
    }

    fn take(&mut self, mut numbers: Vec<DocumentNumber>, mut code: Vec<u8>, is_cut: bool) {
        let OrderedRequest { kind, is_backwards, are_numbers_turned, .. } = *self.request;
        if is_cut || kind == OrderKind::FirstValues {
            self.unsorted = Some(numbers).filter(|numbers| !numbers.is_empty());
            return;
        }
        if kind == OrderKind::Tuples {
            // The mark after the values.
            code.pop();
        }
        if let Some(start) = self.start.take().filter(|start| start.code == code) {
            numbers.retain(|number| start.is_remaining(*number, are_numbers_turned));
        }
        if are_numbers_turned {
            numbers.reverse();
        }
        if is_backwards {
            code.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let codes: Codes = Arc::new(code);
        self.numbers.extend(numbers.into_iter().map(|number| (number, Arc::clone(&codes))));
    }

    /// The number as it is written in positions.
    fn tie(&self, number: DocumentNumber) -> [u8; 8] {
        let number = if self.request.are_numbers_turned { !number.raw() } else { number.raw() };
        number.to_be_bytes()
    }
}

fn undefined_code() -> Vec<u8> {
    let mut code = Vec::new();
    encode_undefined(&mut code);
    code
}

/// The code of the values at the beginning of a position, as the terms have it; `None` if there is none or it is
/// truncated.
fn first_code(position: &[u8], directions: &[bool], kind: OrderKind, is_backwards: bool) -> Option<Vec<u8>> {
    let mut rest = position;
    let mut code = Vec::new();
    for is_descending in directions {
        let (value, after) = if *is_descending {
            decode_key_descending(rest).ok()?
        } else {
            decode_key_optional(rest).ok()?
        };
        if kind == OrderKind::Tuples {
            let value = value.as_ref().map(Value::as_ref);
            // The tuple ends at a truncated value.
            if write_tuple_member(value, *is_descending != is_backwards, &mut code) {
                return Some(code);
            }
        } else {
            let bytes = rest[..rest.len() - after.len()].iter();
            code.extend(bytes.map(|byte| if is_backwards { !byte } else { *byte }));
        }
        rest = after;
    }
    Some(code)
}

/// Bytes of a document number and of a row number in a position.
const NUMBER_BYTES: usize = 8;
const ROW_BYTES: usize = 4;

/// The document at which a resumed walk starts.
struct Start {
    code: Vec<u8>,
    number: u64,
    /// Whether all rows of the document were returned.
    is_given: bool,
}

impl Start {
    /// `None` if the position was truncated before the number.
    fn new(position: &[u8], code: Vec<u8>, request: &OrderedRequest) -> Option<Start> {
        let after = position.get(code.len()..)?;
        let number = u64::from_be_bytes(*after.first_chunk::<NUMBER_BYTES>()?);
        let number = if request.are_numbers_turned { !number } else { number };
        let is_given = request.has_one_row && after.len() == NUMBER_BYTES + ROW_BYTES;
        Some(Start { code, number, is_given })
    }

    /// Whether a document with the same value is still to be returned.
    fn is_remaining(&self, number: DocumentNumber, are_numbers_turned: bool) -> bool {
        match number.raw().cmp(&self.number) {
            Ordering::Equal => !self.is_given,
            Ordering::Less => are_numbers_turned,
            Ordering::Greater => !are_numbers_turned,
        }
    }
}
