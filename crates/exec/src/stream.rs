//! Streaming: rows of several partitions in the order of numbers or of an index, read only as far as they are wanted.
//!
//! A partition is read only after all rows before its first number were returned. If so few documents pass a filter
//! that a scan of all records is cheaper than fetching documents one by one, the rest of a partition is selected.

use eval::{EvalFault, Holding};
use model::Fault;
use plan::StoredDocument;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::access_path::{self, NumberWalk, OrderedRequest, OrderedWalk, Way, is_scan_cheaper};
use crate::collect::Wish;
use crate::fault::query_fault;
use crate::found::{Found, FoundRow, QueryMetrics};
use crate::picks::Named;
use crate::position::{self, Item};
use crate::program::{Check, Layer};
use crate::resume::After;
use crate::select;
use crate::task::{OpenPart, Part, Seen, Task};

/// How much is wanted at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) rows: usize,
    /// Bytes after which no further row is needed.
    pub(crate) bytes: usize,
    /// Documents that an index finds in order at a time.
    pub(crate) named: usize,
}

/// The rows of one partition.
#[derive(Debug)]
pub(crate) struct Stream {
    state: State,
    /// Rows that were found and not returned yet, with the bytes they hold.
    rows: VecDeque<(FoundRow, usize)>,
    holding: Holding,
    /// Rows that are not found yet come after this position.
    reached: Vec<u8>,
    seen: u64,
    found: u64,
    /// Number of documents after which the rest may be read by a scan of records.
    scans_after: Option<u64>,
}

#[derive(Debug)]
enum State {
    /// Not read yet.
    Waiting(Part),
    /// By number.
    Walking(Arc<OpenPart>, Box<NumberWalk>),
    /// To be walked in the order of an index.
    Ordering(Arc<OpenPart>, Arc<OrderedRequest>),
    /// In the order of an index.
    Ordered(Arc<OpenPart>, Box<OrderedWalk>),
    /// By reading all documents.
    Selecting(Arc<OpenPart>),
    Done,
}

impl Stream {
    /// The rows of `part` after `after` in the order of numbers.
    pub(crate) fn new(task: &Task, part: Part, after: &[u8]) -> Stream {
        let first = part.ordinals().min().map_or(0, |ordinal| u64::from(ordinal.0) << 40);
        let reached = after.max(&first.to_be_bytes()[..]).to_vec();
        // Nothing was ever written, or all documents were deleted.
        let is_empty = part.source.documents() == 0;
        let state = if is_empty { State::Done } else { State::Waiting(part) };
        Stream::at(task, state, reached)
    }

    /// The rows of a part after `after` in the order of its index.
    pub(crate) fn ordered(
        task: &Task,
        open: Arc<OpenPart>,
        (request, scans_after): (Arc<OrderedRequest>, Option<u64>),
        after: &[u8],
    ) -> Stream {
        Stream { scans_after, ..Stream::at(task, State::Ordering(open, request), after.to_vec()) }
    }

    fn at(task: &Task, state: State, reached: Vec<u8>) -> Stream {
        let (rows, holding) = (VecDeque::new(), task.budget.holding());
        Stream { state, rows, holding, reached, seen: 0, found: 0, scans_after: None }
    }

    /// The earliest possible position of its next row; `None` if there is none.
    pub(crate) fn next_place(&self) -> Option<&[u8]> {
        match (self.rows.front(), &self.state) {
            (Some((row, _)), _) => Some(&row.position),
            (None, State::Done) => None,
            (
                None,
                State::Waiting(_)
                | State::Walking(..)
                | State::Ordering(..)
                | State::Ordered(..)
                | State::Selecting(_),
            ) => Some(&self.reached),
        }
    }

    /// Whether it has not advanced beyond a position and has found nothing after it.
    pub(crate) fn stands_at(&self, place: &[u8]) -> bool {
        let is_known = match &self.state {
            State::Ordered(_, walk) => walk.next_number().is_some(),
            State::Waiting(_)
            | State::Walking(..)
            | State::Ordering(..)
            | State::Selecting(_)
            | State::Done => false,
        };
        !is_known && self.next_place() == Some(place)
    }

    /// Whether an index finds the next documents, so that filling the stream reads no document.
    pub(crate) fn is_led_by_index(&self) -> bool {
        let is_led = match &self.state {
            State::Ordering(..) => true,
            State::Ordered(_, walk) => walk.heap().is_none(),
            State::Waiting(_) | State::Walking(..) | State::Selecting(_) | State::Done => false,
        };
        is_led && self.rows.is_empty()
    }

    /// The next document, if an index has found it and no row comes before it. The caller makes its rows.
    pub(crate) fn take_named(&mut self) -> Option<Named> {
        let State::Ordered(open, walk) = &mut self.state else {
            return None;
        };
        if !self.rows.is_empty() {
            return None;
        }
        let (number, codes) = walk.pop()?;
        let next = walk.next_position().unwrap_or_else(|| walk.position_behind(&codes, number));
        let named = Named { open: Arc::clone(open), number, codes, check: walk.check() };
        self.reach(next);
        Some(named)
    }

    /// Counts the rows of a document that an index found.
    pub(crate) fn count_named(&mut self, rows: u64) {
        self.seen += 1;
        self.found += rows;
    }

    /// Records that nothing up to this position remains.
    fn reach(&mut self, position: Vec<u8>) {
        if position > self.reached {
            self.reached = position;
        }
    }

    /// The next row, if it was found already.
    pub(crate) fn pop(&mut self) -> Option<FoundRow> {
        let (row, weight) = self.rows.pop_front()?;
        self.holding.give_back(weight);
        Some(row)
    }

    fn push(&mut self, row: FoundRow) -> Result<(), EvalFault> {
        let weight = row.row.weight()? + eval::allocated(row.position.len()) + size_of::<(FoundRow, usize)>();
        self.holding.add(weight)?;
        self.rows.push_back((row, weight));
        self.found += 1;
        Ok(())
    }

    /// Searches one chunk of documents for rows; returns the state that is read, if this call opened the part.
    pub(crate) async fn fill(
        &mut self,
        task: &Arc<Task>,
        layer: &Layer,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Seen>, Fault> {
        self.state = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => State::Done,
            State::Waiting(part) => {
                let open = task.open(part).await?;
                let seen = open.seen();
                self.state = self.begun(layer, open, wanted, metrics).await?;
                return Ok(Some(seen));
            }
            State::Walking(open, mut walk) => {
                let is_broken_off = self.walk(task, layer, &mut walk, wanted, metrics).await?;
                if is_broken_off {
                    let walk = walk.restarted_at(self.first_number());
                    State::Walking(open, Box::new(walk))
                } else if !walk.has_more() {
                    State::Done
                } else if self.should_scan(&open, wanted).await? {
                    State::Selecting(open)
                } else {
                    State::Walking(open, walk)
                }
            }
            State::Ordering(open, request) => {
                let walk = OrderedWalk::new(Arc::clone(&open), request, &self.reached).await?;
                self.ordered_step(task, (open, Box::new(walk)), wanted, metrics).await?
            }
            State::Ordered(open, walk) => self.ordered_step(task, (open, walk), wanted, metrics).await?,
            State::Selecting(open) => self.select(task, open, wanted, metrics).await?,
        };
        Ok(None)
    }

    /// How a part is read: the documents of a lookup, all documents by number, or by selection.
    async fn begun(
        &mut self,
        layer: &Layer,
        open: Arc<OpenPart>,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<State, Fault> {
        let first = self.first_number();
        let begun = Instant::now();
        let path = access_path::by_number(layer, &open).await?;
        metrics.path = metrics.path.or(Some(path.way.kind()));
        self.scans_after = path.scans_after;
        let named = match path.way {
            Way::Lookup(_, Some(named)) => Some(named),
            Way::Lookup(narrowing, None) => narrowing.named(&open).await?,
            Way::Numbers => None,
            // These return all rows, which are then sorted.
            Way::Records | Way::Ordered(_) | Way::Covered(..) => return Ok(State::Selecting(open)),
        };
        metrics.index_time += begun.elapsed();
        let walk = match named {
            Some(named) if named.documents.is_empty() => return Ok(State::Done),
            Some(named) => NumberWalk::over_named(Arc::clone(&open), named, first, wanted.rows),
            None => NumberWalk::over_all(Arc::clone(&open), first, wanted.rows),
        };
        Ok(State::Walking(open, Box::new(walk)))
    }

    /// Reads all documents for the first rows.
    async fn select(
        &mut self,
        task: &Arc<Task>,
        open: Arc<OpenPart>,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<State, Fault> {
        let wish = self.wish(wanted);
        let found = select::over_partitions(task, std::slice::from_ref(&open), &wish, metrics).await?;
        let has_more = self.take_found(found)?;
        Ok(if has_more { State::Selecting(open) } else { State::Done })
    }

    /// What is wanted if rows are sorted.
    fn wish(&self, wanted: Wanted) -> Wish {
        let after = After::Position(self.reached.clone());
        Wish { after, count: wanted.rows, bytes: wanted.bytes, with_results: true }
    }

    /// Adds sorted rows; returns whether there may be more.
    fn take_found(&mut self, found: Found) -> Result<bool, Fault> {
        drop(found.holding);
        // All rows up to the last are found, whatever way is used for the others.
        let last = found.rows.last().map(|row| row.position.clone());
        found.rows.into_iter().try_for_each(|row| self.push(row)).map_err(query_fault)?;
        if found.has_more {
            self.reached = found.reached;
        } else if let Some(last) = last {
            self.reach(last);
        }
        Ok(found.has_more)
    }

    /// The smallest number of rows that are not found yet.
    fn first_number(&self) -> u64 {
        self.reached.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// One step in the order of an index: sorts the next documents or finds them by number.
    async fn ordered_step(
        &mut self,
        task: &Task,
        (open, mut walk): (Arc<OpenPart>, Box<OrderedWalk>),
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<State, Fault> {
        if let Some(heap) = walk.heap() {
            let found = select::over_numbers(task, &open, heap, &self.wish(wanted), metrics).await?;
            self.seen += heap.len() as u64;
            if !self.take_found(found)? {
                walk.pass_heap();
            }
            return Ok(State::Ordered(open, walk));
        }
        if self.should_scan(&open, wanted).await? {
            return Ok(State::Selecting(open));
        }
        walk.gather(wanted.named, metrics).await?;
        if let Some(position) = walk.next_position() {
            self.reach(position);
        }
        Ok(if walk.is_at_end() { State::Done } else { State::Ordered(open, walk) })
    }

    /// Adds the rows of documents in the order of numbers; returns the position where it stopped because there are
    /// enough.
    async fn take_rows(
        &mut self,
        task: &Task,
        layer: &Layer,
        documents: &[StoredDocument],
        check: Check,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let context = task.context();
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        let mut position = Vec::new();
        let mut size = 0;
        let mut is_enough = false;
        if check == Check::Nothing {
            self.rows.reserve(documents.len().min(wanted.rows));
        }
        for stored in documents {
            let tie = stored.number.raw().to_be_bytes();
            let item = Item { tie: &tie, stored: Some(stored), keys: None };
            self.seen += 1;
            layer.for_each_match(&context, &task.program.system, (stored, check), &mut |row| {
                position::write_row(&layer.query.order, row, item, &mut position)?;
                if position <= self.reached {
                    return Ok(ControlFlow::Continue(()));
                }
                if let Some(row) = layer.result(row, Some(stored))? {
                    let row = FoundRow { position: position.clone(), size: row.size(), row };
                    size += row.size;
                    self.push(row)?;
                }
                is_enough = self.rows.len() >= wanted.rows || size >= wanted.bytes;
                Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if is_enough {
                break;
            }
            if task.meter.is_due() {
                task.rest().await?;
            }
        }
        metrics.evaluation_time += begun.elapsed();
        Ok(is_enough.then_some(position))
    }

    /// Whether the rest of the part is read by a scan of records.
    async fn should_scan(&self, open: &OpenPart, wanted: Wanted) -> Result<bool, Fault> {
        if self.scans_after.is_none_or(|after| self.seen < after) {
            return Ok(false);
        }
        let total = match open.view.index() {
            Some(index) => open.statistics(index).await?.total,
            None => open.view.counts().documents,
        };
        Ok(is_scan_cheaper(self.seen, self.found, wanted.rows as u64, total))
    }

    /// Adds the rows of one chunk; returns whether it stopped because there are enough.
    async fn walk(
        &mut self,
        task: &Task,
        layer: &Layer,
        walk: &mut NumberWalk,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        let documents = walk.next(metrics).await?;
        let broken_off_at = self.take_rows(task, layer, &documents, walk.check(), wanted, metrics).await?;
        // A chunk that ends with enough rows is not read a second time.
        let is_broken_off = broken_off_at.as_ref().is_some_and(|position| {
            let last = documents.last().map(|last| last.number.raw().to_be_bytes());
            let is_last = last.is_some_and(|last| position.starts_with(&last));
            !(is_last && layer.has_one_row())
        });
        let behind = walk.next_number().to_be_bytes().to_vec();
        self.reached = match broken_off_at {
            Some(position) if is_broken_off => position,
            Some(_) | None => behind.max(std::mem::take(&mut self.reached)),
        };
        // A page that is nearly complete does not yield.
        if !is_broken_off && walk.has_more() {
            task.rest().await?;
        }
        Ok(is_broken_off)
    }
}
