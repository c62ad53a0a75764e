//! Streaming: rows of several partitions in the order of numbers or of an index, no further than they are wanted.
//!
//! A partition is begun when all rows before its first number are given. Where a filter lets so few documents pass
//! that looking at all records is cheaper than to fetch one after the other, the rest of a partition is selected.

use eval::{EvalFault, Holding};
use model::{DocumentNumber, Fault};
use plan::StoredDocument;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::access::{self, NumberWalk, OrderedRequest, OrderedStep, OrderedWalk, is_scan_cheaper};
use crate::collect::Wish;
use crate::fault::query_fault;
use crate::found::{FoundRow, QueryMetrics};
use crate::position::{self, Item};
use crate::program::{Check, Layer};
use crate::resume::After;
use crate::select;
use crate::task::{OpenPart, Part, PartScope, Task};

/// Rows and documents that are seen before a decision between fetching and scanning.
const SEEN_BEFORE_DECISION: u64 = 2048;

/// How much is wanted at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) rows: usize,
    /// Bytes after which no further row is needed.
    pub(crate) bytes: usize,
}

/// The rows of one partition.
#[derive(Debug)]
pub(crate) struct Stream {
    part: Part,
    state: State,
    /// Rows that were found and not given yet, with what they hold.
    rows: VecDeque<(FoundRow, usize)>,
    holding: Holding,
    /// Rows that are not found yet are behind this.
    reached: Vec<u8>,
    seen: u64,
    found: u64,
}

#[derive(Debug)]
enum State {
    /// Not read yet.
    Waiting,
    /// By number.
    Walking(OpenPart, Box<NumberWalk>),
    /// To be walked in the order of an index, by a request that is made anew if it is missing.
    Ordering(OpenPart, Option<Box<OrderedRequest>>),
    /// In the order of an index, perhaps with documents that must be sorted first.
    Ordered(OpenPart, Box<OrderedWalk>, Vec<DocumentNumber>),
    /// By looking at everything.
    Selecting(OpenPart),
    Done,
}

impl Stream {
    /// The rows of `part` behind `after` in the order of numbers.
    pub(crate) fn new(task: &Task, part: Part, after: &[u8]) -> Stream {
        let first = part.ordinals().min().map_or(0, |ordinal| u64::from(ordinal.0) << 40);
        let reached = after.max(&first.to_be_bytes()[..]).to_vec();
        // Nothing was ever written to it, or all is gone.
        let is_empty = part.source.documents() == 0;
        let state = if is_empty { State::Done } else { State::Waiting };
        Stream {
            part,
            state,
            rows: VecDeque::new(),
            holding: task.budget.holding(),
            reached,
            seen: 0,
            found: 0,
        }
    }

    /// The rows of a part behind `after` in the order of its index.
    pub(crate) fn ordered(task: &Task, open: OpenPart, request: OrderedRequest, after: &[u8]) -> Stream {
        let (part, reached) = (open.part.clone(), after.to_vec());
        let (rows, holding) = (VecDeque::new(), task.budget.holding());
        Stream {
            part,
            state: State::Ordering(open, Some(Box::new(request))),
            rows,
            holding,
            reached,
            seen: 0,
            found: 0,
        }
    }

    /// Where its next row stands at the earliest; nothing if there is none.
    pub(crate) fn next_place(&self) -> Option<&[u8]> {
        match (self.rows.front(), &self.state) {
            (Some((row, _)), _) => Some(&row.position),
            (None, State::Done) => None,
            (
                None,
                State::Waiting
                | State::Walking(..)
                | State::Ordering(..)
                | State::Ordered(..)
                | State::Selecting(_),
            ) => Some(&self.reached),
        }
    }

    /// The next row, if it is found already.
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

    /// Looks for rows in one chunk of documents; tells the state it reads when it begins.
    pub(crate) async fn fill(
        &mut self,
        task: &Arc<Task>,
        layer: &Layer,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<OpenPart>, Fault> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Done => Ok(None),
            State::Waiting => {
                let open = task.open(self.part.clone()).await?;
                self.state = self.begun(layer, &open, wanted, metrics).await?;
                Ok(Some(open))
            }
            State::Walking(open, mut walk) => {
                let is_broken_off = self.walk(task, layer, &mut walk, wanted, metrics).await?;
                self.state = if is_broken_off {
                    let walk = walk.restarted_at(self.first_number(), self.part.ordinals());
                    State::Walking(open, Box::new(walk))
                } else if !walk.has_more() {
                    State::Done
                } else if self.should_scan(layer, wanted) {
                    State::Selecting(open)
                } else {
                    State::Walking(open, walk)
                };
                Ok(None)
            }
            State::Ordering(open, request) => {
                let again = || access::ordering(layer, &open, wanted.rows).map(Box::new);
                let request = request.or_else(again);
                let request =
                    request.ok_or_else(|| Fault::Internal("an order without an index".to_owned()))?;
                let walk = OrderedWalk::new(&open, *request, &self.reached).await?;
                self.state = State::Ordered(open, Box::new(walk), Vec::new());
                Ok(None)
            }
            State::Ordered(open, walk, heap) => {
                self.state = self.ordered_step(task, layer, open, walk, heap, wanted, metrics).await?;
                Ok(None)
            }
            State::Selecting(open) => {
                let after = After::Position(self.reached.clone());
                let wish = Wish { after, count: wanted.rows, bytes: wanted.bytes, with_results: true };
                let found =
                    select::over_partitions(task, std::slice::from_ref(&open), &wish, metrics).await?;
                drop(found.holding);
                found.rows.into_iter().try_for_each(|row| self.push(row)).map_err(query_fault)?;
                if found.has_more {
                    self.reached = found.reached;
                    self.state = State::Selecting(open);
                }
                Ok(None)
            }
        }
    }

    /// How a part is read: the documents that an index names, else all; else they are selected.
    async fn begun(
        &self,
        layer: &Layer,
        open: &OpenPart,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<State, Fault> {
        let (view, keys) = (open.view.clone(), self.part.keys.clone());
        let first = self.first_number();
        let begun = Instant::now();
        let named = access::named_cheaply(layer, open).await?;
        metrics.index_time += begun.elapsed();
        if let Some(named) = named {
            let walk = NumberWalk::over_named(view, keys, named, first, wanted.rows);
            return Ok(State::Walking(open.clone(), Box::new(walk)));
        }
        if self.part.scope != PartScope::Whole {
            return Ok(State::Selecting(open.clone()));
        }
        let walk = NumberWalk::over_all(view, keys, self.part.ordinals(), first, wanted.rows);
        Ok(State::Walking(open.clone(), Box::new(walk)))
    }

    /// The number that rows not found yet have at least.
    fn first_number(&self) -> u64 {
        self.reached.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// One step in the order of an index.
    #[allow(clippy::too_many_arguments)] // the parts of a state that is taken apart and put together again
    async fn ordered_step(
        &mut self,
        task: &Task,
        layer: &Layer,
        open: OpenPart,
        mut walk: Box<OrderedWalk>,
        heap: Vec<DocumentNumber>,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<State, Fault> {
        if !heap.is_empty() {
            let after = After::Position(self.reached.clone());
            let wish = Wish { after, count: wanted.rows, bytes: wanted.bytes, with_results: true };
            let found = select::over_numbers(task, &open, &heap, &wish, metrics).await?;
            self.seen += heap.len() as u64;
            drop(found.holding);
            found.rows.into_iter().try_for_each(|row| self.push(row)).map_err(query_fault)?;
            if found.has_more {
                self.reached = found.reached;
                return Ok(State::Ordered(open, walk, heap));
            }
            return Ok(State::Ordered(open, walk, Vec::new()));
        }
        match walk.next(metrics).await? {
            OrderedStep::End => Ok(State::Done),
            OrderedStep::Heap(heap) => Ok(State::Ordered(open, walk, heap)),
            OrderedStep::Sorted(documents, reached) => {
                let with_codes = documents.iter().map(|(stored, codes)| (stored, Some(&codes[..])));
                let taken = self.take_rows(task, layer, with_codes, walk.check(), wanted, metrics).await?;
                if let Some(position) = taken {
                    self.reached = position;
                    return Ok(State::Ordering(open, None));
                }
                task.rest().await?;
                self.reached = reached.max(std::mem::take(&mut self.reached));
                Ok(if self.should_scan(layer, wanted) {
                    State::Selecting(open)
                } else {
                    State::Ordered(open, walk, Vec::new())
                })
            }
        }
    }

    /// Takes the rows of documents that come in order, some with the codes of their sort keys; tells where it broke off
    /// because there are enough.
    async fn take_rows<'d>(
        &mut self,
        task: &Task,
        layer: &Layer,
        documents: impl Iterator<Item = (&'d StoredDocument, Option<&'d [u8]>)>,
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
            self.rows.reserve(documents.size_hint().0.min(wanted.rows));
        }
        for (stored, keys) in documents {
            let tie = stored.number.raw().to_be_bytes();
            let item = Item { tie: &tie, stored: Some(stored), keys };
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

    fn should_scan(&self, layer: &Layer, wanted: Wanted) -> bool {
        let total = self.part.source.documents();
        self.part.scope == PartScope::Whole
            && self.seen >= SEEN_BEFORE_DECISION
            && is_scan_cheaper(layer, self.seen, self.found, wanted.rows as u64, total)
    }

    /// Takes the rows of one chunk; tells whether it broke off because there are enough.
    async fn walk(
        &mut self,
        task: &Task,
        layer: &Layer,
        walk: &mut NumberWalk,
        wanted: Wanted,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        let documents = walk.next(metrics).await?;
        let without_codes = documents.iter().map(|stored| (stored, None));
        let broken_off_at = self.take_rows(task, layer, without_codes, walk.check(), wanted, metrics).await?;
        // A chunk that ends with enough rows is not begun again for nothing.
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
        // A page that is nearly made need not let others go first.
        if !is_broken_off && walk.has_more() {
            task.rest().await?;
        }
        Ok(is_broken_off)
    }
}
