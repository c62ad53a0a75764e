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

use crate::access_path::{self, NumberWalk, OrderedRequest, OrderedWalk, Way, first_chunk, is_scan_cheaper};
use crate::collect::ResultWindow;
use crate::fault::query_fault;
use crate::found::{FoundRow, FoundRows, QueryMetrics};
use crate::picks::FoundDocument;
use crate::position::{self, RowSource};
use crate::program::{Layer, RemainingCheck};
use crate::resume::After;
use crate::select;
use crate::task::{OpenPart, Part, SeenState, Task};
use crate::user_calls;

/// How much is wanted at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillLimits {
    pub(crate) rows: usize,
    /// Bytes after which no further row is needed.
    pub(crate) bytes: usize,
    /// Documents that an index finds in order at a time.
    pub(crate) documents: usize,
}

/// The rows of one partition.
#[derive(Debug)]
pub(crate) struct Stream {
    state: StreamState,
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
enum StreamState {
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
        let state = if is_empty { StreamState::Done } else { StreamState::Waiting(part) };
        Stream::at(task, state, reached)
    }

    /// The rows of a part after `after` in the order of its index.
    pub(crate) fn ordered(
        task: &Task,
        open: Arc<OpenPart>,
        (request, scans_after): (Arc<OrderedRequest>, Option<u64>),
        after: &[u8],
    ) -> Stream {
        Stream { scans_after, ..Stream::at(task, StreamState::Ordering(open, request), after.to_vec()) }
    }

    fn at(task: &Task, state: StreamState, reached: Vec<u8>) -> Stream {
        let (rows, holding) = (VecDeque::new(), task.budget.holding());
        Stream { state, rows, holding, reached, seen: 0, found: 0, scans_after: None }
    }

    /// The earliest possible position of its next row; `None` if there is none.
    pub(crate) fn next_position(&self) -> Option<&[u8]> {
        match (self.rows.front(), &self.state) {
            (Some((row, _)), _) => Some(&row.position),
            (None, StreamState::Done) => None,
            (
                None,
                StreamState::Waiting(_)
                | StreamState::Walking(..)
                | StreamState::Ordering(..)
                | StreamState::Ordered(..)
                | StreamState::Selecting(_),
            ) => Some(&self.reached),
        }
    }

    /// Whether it has not advanced beyond a position and has found nothing after it.
    pub(crate) fn is_still_at(&self, position: &[u8]) -> bool {
        !self.has_found_document() && self.next_position() == Some(position)
    }

    /// Whether an index finds the next documents, so that filling the stream reads no document.
    pub(crate) fn is_led_by_index(&self) -> bool {
        let is_led = match &self.state {
            StreamState::Ordering(..) => true,
            StreamState::Ordered(_, walk) => walk.unsorted().is_none(),
            StreamState::Waiting(_)
            | StreamState::Walking(..)
            | StreamState::Selecting(_)
            | StreamState::Done => false,
        };
        is_led && self.rows.is_empty()
    }

    /// Whether an index has found its next document.
    pub(crate) fn has_found_document(&self) -> bool {
        match &self.state {
            StreamState::Ordered(_, walk) => walk.next_number().is_some(),
            StreamState::Waiting(_)
            | StreamState::Walking(..)
            | StreamState::Ordering(..)
            | StreamState::Selecting(_)
            | StreamState::Done => false,
        }
    }

    /// The next document, if an index has found it and no row comes before it. The caller makes its rows.
    pub(crate) fn take_document(&mut self) -> Option<FoundDocument> {
        let StreamState::Ordered(open, walk) = &mut self.state else {
            return None;
        };
        if !self.rows.is_empty() {
            return None;
        }
        let (number, codes) = walk.pop()?;
        let next = walk.next_position().unwrap_or_else(|| walk.position_after(&codes, number));
        let document = FoundDocument { open: Arc::clone(open), number, codes, check: walk.check() };
        self.reach(next);
        Some(document)
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
        limits: FillLimits,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<SeenState>, Fault> {
        self.state = match std::mem::replace(&mut self.state, StreamState::Done) {
            StreamState::Done => StreamState::Done,
            StreamState::Waiting(part) => {
                let open = task.open(part).await?;
                let seen = open.seen();
                self.state = self.first_state(layer, open, limits, metrics).await?;
                return Ok(Some(seen));
            }
            StreamState::Walking(open, mut walk) => {
                let is_broken_off = self.walk(task, layer, &mut walk, limits, metrics).await?;
                if is_broken_off {
                    let walk = walk.restarted_at(self.first_number());
                    StreamState::Walking(open, Box::new(walk))
                } else if !walk.has_more() {
                    StreamState::Done
                } else if self.should_scan(&open, limits).await? {
                    StreamState::Selecting(open)
                } else {
                    StreamState::Walking(open, walk)
                }
            }
            StreamState::Ordering(open, request) => {
                let walk = OrderedWalk::new(Arc::clone(&open), request, &self.reached).await?;
                self.ordered_step(task, (open, Box::new(walk)), limits, metrics).await?
            }
            StreamState::Ordered(open, walk) => {
                self.ordered_step(task, (open, walk), limits, metrics).await?
            }
            StreamState::Selecting(open) => self.select(task, open, limits, metrics).await?,
        };
        Ok(None)
    }

    /// How a part is read: the documents of a lookup, all documents by number, or by selection.
    async fn first_state(
        &mut self,
        layer: &Layer,
        open: Arc<OpenPart>,
        limits: FillLimits,
        metrics: &mut QueryMetrics,
    ) -> Result<StreamState, Fault> {
        let first = self.first_number();
        let begun = Instant::now();
        let path = access_path::by_number(layer, &open).await?;
        metrics.path = metrics.path.or(Some(path.way.kind()));
        self.scans_after = path.scans_after;
        let documents = match path.way {
            Way::Lookup(_, Some(documents)) => Some(documents),
            Way::Lookup(narrowing, None) => narrowing.documents_in(&open).await?,
            Way::Numbers => None,
            // These return all rows, which are then sorted.
            Way::Records | Way::Ordered(_) | Way::Covered(..) => return Ok(StreamState::Selecting(open)),
        };
        metrics.index_time += begun.elapsed();
        let gives_rows = layer.has_one_row() && layer.always_has_result();
        let walk = match documents {
            Some(documents) if documents.set.is_empty() => return Ok(StreamState::Done),
            Some(documents) => {
                let each_gives_a_row = gives_rows && documents.check == RemainingCheck::Nothing;
                let chunk_rows = first_chunk(limits.rows, each_gives_a_row);
                NumberWalk::over_lookup(Arc::clone(&open), documents, first, chunk_rows)
            }
            None => {
                let each_gives_a_row = gives_rows && layer.query.filter.is_none();
                NumberWalk::over_all(Arc::clone(&open), first, first_chunk(limits.rows, each_gives_a_row))
            }
        };
        Ok(StreamState::Walking(open, Box::new(walk)))
    }

    /// Reads all documents for the first rows.
    async fn select(
        &mut self,
        task: &Arc<Task>,
        open: Arc<OpenPart>,
        limits: FillLimits,
        metrics: &mut QueryMetrics,
    ) -> Result<StreamState, Fault> {
        let window = self.window(limits);
        let found = select::over_partitions(task, std::slice::from_ref(&open), &window, metrics).await?;
        let has_more = self.take_found(found)?;
        Ok(if has_more { StreamState::Selecting(open) } else { StreamState::Done })
    }

    /// What is wanted if rows are sorted.
    fn window(&self, limits: FillLimits) -> ResultWindow {
        let after = After::Position(self.reached.clone());
        ResultWindow { after, count: limits.rows, bytes: limits.bytes, with_results: true }
    }

    /// Adds sorted rows; returns whether there may be more.
    fn take_found(&mut self, found: FoundRows) -> Result<bool, Fault> {
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
        limits: FillLimits,
        metrics: &mut QueryMetrics,
    ) -> Result<StreamState, Fault> {
        if let Some(unsorted) = walk.unsorted() {
            let found = select::over_numbers(task, &open, unsorted, &self.window(limits), metrics).await?;
            self.seen += unsorted.len() as u64;
            if !self.take_found(found)? {
                walk.pass_unsorted();
            }
            return Ok(StreamState::Ordered(open, walk));
        }
        if self.should_scan(&open, limits).await? {
            return Ok(StreamState::Selecting(open));
        }
        walk.gather(limits.documents, metrics).await?;
        if let Some(position) = walk.next_position() {
            self.reach(position);
        }
        Ok(if walk.is_at_end() { StreamState::Done } else { StreamState::Ordered(open, walk) })
    }

    /// Adds the rows of documents in the order of numbers; returns the position where it stopped because there are
    /// enough.
    async fn take_rows(
        &mut self,
        task: &Task,
        layer: &Layer,
        documents: &[StoredDocument],
        check: RemainingCheck,
        limits: FillLimits,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let context = task.context();
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        let mut position = Vec::new();
        let mut size = 0;
        let mut is_enough = false;
        if check == RemainingCheck::Nothing {
            self.rows.reserve(documents.len().min(limits.rows));
        }
        if layer.calls.anywhere {
            user_calls::foresee_documents(task, layer, &context, (documents, check)).await?;
        }
        for (index, stored) in documents.iter().enumerate() {
            let tie = stored.number.raw().to_be_bytes();
            let source = RowSource { tie: &tie, stored: Some(stored), keys: None };
            self.seen += 1;
            layer.turn_to(&context, index);
            layer.for_each_match(&context, &task.program.system, (stored, check), &mut |row| {
                position::write_row(&layer.query.order, row, source, &mut position)?;
                if position <= self.reached {
                    return Ok(ControlFlow::Continue(()));
                }
                if let Some(row) = layer.result(row, Some(stored))? {
                    let row = FoundRow { position: position.clone(), size: row.size(), row };
                    size += row.size;
                    self.push(row)?;
                }
                is_enough = self.rows.len() >= limits.rows || size >= limits.bytes;
                Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if is_enough {
                break;
            }
            if task.meter.is_due() {
                task.yield_now().await?;
            }
        }
        metrics.evaluation_time += begun.elapsed();
        Ok(is_enough.then_some(position))
    }

    /// Whether the rest of the part is read by a scan of records.
    async fn should_scan(&self, open: &OpenPart, limits: FillLimits) -> Result<bool, Fault> {
        if self.scans_after.is_none_or(|after| self.seen < after) {
            return Ok(false);
        }
        let total = match open.view.index() {
            Some(index) => open.statistics(index).await?.total,
            None => open.view.counts().documents,
        };
        Ok(is_scan_cheaper(self.seen, self.found, limits.rows as u64, total))
    }

    /// Adds the rows of one chunk; returns whether it stopped because there are enough.
    async fn walk(
        &mut self,
        task: &Task,
        layer: &Layer,
        walk: &mut NumberWalk,
        limits: FillLimits,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        let documents = walk.next(metrics).await?;
        let broken_off_at = self.take_rows(task, layer, &documents, walk.check(), limits, metrics).await?;
        // A chunk that ends with enough rows is not read a second time.
        let is_broken_off = broken_off_at.as_ref().is_some_and(|position| {
            let last = documents.last().map(|last| last.number.raw().to_be_bytes());
            let is_last = last.is_some_and(|last| position.starts_with(&last));
            !(is_last && layer.has_one_row())
        });
        let next = walk.next_number().to_be_bytes().to_vec();
        self.reached = match broken_off_at {
            Some(position) if is_broken_off => position,
            Some(_) | None => next.max(std::mem::take(&mut self.reached)),
        };
        // A page that is nearly complete does not yield.
        if !is_broken_off && walk.has_more() {
            task.yield_now().await?;
        }
        Ok(is_broken_off)
    }
}
