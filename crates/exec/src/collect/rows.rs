//! The first rows by position, in a heap with the last of them on top.

use eval::{Context, EvalFault, Holding, MatchedRow};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use value::Value;

use super::ResultWindow;
use crate::found::{FoundRow, FoundRows, QueryRow};
use crate::position::{self, RowSource};
use crate::program::Layer;

/// The first rows by position.
#[derive(Debug)]
pub(crate) struct FirstRows {
    window: ResultWindow,
    heap: BinaryHeap<HeapRow>,
    /// Bytes of it that are accounted.
    room: usize,
    /// Bytes of the results in the heap.
    size: usize,
    has_left_out: bool,
    holding: Holding,
    position: Vec<u8>,
}

/// A row in the heap; compared by position alone, which no two rows share.
#[derive(Debug)]
struct HeapRow {
    found: FoundRow,
    weight: usize,
}

impl Ord for HeapRow {
    fn cmp(&self, other: &HeapRow) -> Ordering {
        self.found.position.cmp(&other.found.position)
    }
}

impl PartialOrd for HeapRow {
    fn partial_cmp(&self, other: &HeapRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapRow {
    fn eq(&self, other: &HeapRow) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for HeapRow {}

impl FirstRows {
    pub(super) fn new(context: &Context<'_>, window: ResultWindow) -> FirstRows {
        FirstRows {
            window,
            heap: BinaryHeap::new(),
            room: 0,
            size: 0,
            has_left_out: false,
            holding: context.budget.holding(),
            position: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let mut position = std::mem::take(&mut self.position);
        position::write_row(&layer.query.order, row, source, &mut position)?;
        if self.wants(&position) {
            let nothing = || Some(QueryRow::Value(Value::Null));
            let result = if !self.window.with_results && layer.always_has_result() {
                nothing()
            } else {
                layer
                    .result(row, source.stored)?
                    .and_then(|row| if self.window.with_results { Some(row) } else { nothing() })
            };
            if let Some(row) = result {
                let weight = row.weight()? + eval::allocated(position.len());
                self.holding.add(weight)?;
                let size = row.size();
                self.keep(HeapRow { found: FoundRow { position: position.clone(), row, size }, weight });
                let room = eval::allocated(self.heap.capacity() * size_of::<HeapRow>());
                self.holding.resize(&mut self.room, room)?;
            }
        }
        self.position = position;
        Ok(())
    }

    /// Whether a row at `position` is among the first so far.
    fn wants(&mut self, position: &[u8]) -> bool {
        if position <= self.window.position() {
            return false;
        }
        let is_full = self.heap.len() >= self.window.count || self.size >= self.window.bytes;
        let is_behind = is_full && self.heap.peek().is_none_or(|last| last.found.position[..] < *position);
        self.has_left_out |= is_behind;
        !is_behind
    }

    /// Adds a row, and removes rows that no longer fit on the page.
    fn keep(&mut self, held: HeapRow) {
        self.size = self.size.saturating_add(held.found.size);
        self.heap.push(held);
        loop {
            let is_over = self.heap.len() > self.window.count;
            let Some(last) = self.heap.peek() else {
                return;
            };
            if !is_over && self.size - last.found.size < self.window.bytes {
                return;
            }
            if let Some(last) = self.heap.pop() {
                self.size -= last.found.size;
                self.holding.give_back(last.weight);
                self.has_left_out = true;
            }
        }
    }

    pub(super) fn merge(&mut self, other: FirstRows) {
        self.has_left_out |= other.has_left_out;
        self.holding.absorb(other.holding);
        for held in other.heap {
            if self.wants(&held.found.position) {
                self.keep(held);
            } else {
                self.holding.give_back(held.weight);
            }
        }
    }

    pub(super) fn finish(self) -> FoundRows {
        let rows: Vec<FoundRow> = self.heap.into_sorted_vec().into_iter().map(|held| held.found).collect();
        let reached = rows.last().map(|row| row.position.clone()).unwrap_or_default();
        FoundRows { rows, has_more: self.has_left_out, reached, holding: self.holding }
    }
}
