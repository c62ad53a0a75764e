//! The first rows by position, in a heap with the last of them on top.

use eval::{Context, EvalFault, Holding, MatchedRow};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use value::Value;

use super::Wish;
use crate::found::{Found, FoundRow, QueryRow};
use crate::position::{self, Item};
use crate::program::Layer;

/// The first rows by position.
#[derive(Debug)]
pub(crate) struct Rows {
    wish: Wish,
    heap: BinaryHeap<Held>,
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
struct Held {
    found: FoundRow,
    weight: usize,
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        self.found.position.cmp(&other.found.position)
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

impl Rows {
    pub(super) fn new(context: &Context<'_>, wish: Wish) -> Rows {
        Rows {
            wish,
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
        item: Item<'_>,
    ) -> Result<(), EvalFault> {
        let mut position = std::mem::take(&mut self.position);
        position::write_row(&layer.query.order, row, item, &mut position)?;
        if self.wants(&position) {
            let nothing = || Some(QueryRow::Value(Value::Null));
            let result = if !self.wish.with_results && layer.always_has_result() {
                nothing()
            } else {
                layer
                    .result(row, item.stored)?
                    .and_then(|row| if self.wish.with_results { Some(row) } else { nothing() })
            };
            if let Some(row) = result {
                let weight = row.weight()? + eval::allocated(position.len());
                self.holding.add(weight)?;
                let size = row.size();
                self.keep(Held { found: FoundRow { position: position.clone(), row, size }, weight });
                let room = eval::allocated(self.heap.capacity() * size_of::<Held>());
                self.holding.resize(&mut self.room, room)?;
            }
        }
        self.position = position;
        Ok(())
    }

    /// Whether a row at `position` is among the first so far.
    fn wants(&mut self, position: &[u8]) -> bool {
        if position <= self.wish.position() {
            return false;
        }
        let is_full = self.heap.len() >= self.wish.count || self.size >= self.wish.bytes;
        let is_behind = is_full && self.heap.peek().is_none_or(|last| last.found.position[..] < *position);
        self.has_left_out |= is_behind;
        !is_behind
    }

    /// Adds a row, and removes rows that no longer fit on the page.
    fn keep(&mut self, held: Held) {
        self.size = self.size.saturating_add(held.found.size);
        self.heap.push(held);
        loop {
            let is_over = self.heap.len() > self.wish.count;
            let Some(last) = self.heap.peek() else {
                return;
            };
            if !is_over && self.size - last.found.size < self.wish.bytes {
                return;
            }
            if let Some(last) = self.heap.pop() {
                self.size -= last.found.size;
                self.holding.give_back(last.weight);
                self.has_left_out = true;
            }
        }
    }

    pub(super) fn merge(&mut self, other: Rows) {
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

    pub(super) fn finish(self) -> Found {
        let rows: Vec<FoundRow> = self.heap.into_sorted_vec().into_iter().map(|held| held.found).collect();
        let reached = rows.last().map(|row| row.position.clone()).unwrap_or_default();
        Found { rows, has_more: self.has_left_out, reached, holding: self.holding }
    }
}
