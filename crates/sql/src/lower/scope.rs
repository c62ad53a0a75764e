//! Which names are seen where: one frame for each open query.

use super::Lowering;
use crate::ast::Expression;
use crate::fault::{FaultKind, Place};
use plan::query::{Aggregate, SlotId};

/// A query whose clauses are being lowered.
pub(super) struct Frame<'query> {
    /// The sources so far, by name; a source without a name fills a slot all the same.
    sources: Vec<Option<&'query str>>,
    first_slot: u16,
    /// The clause that is being lowered.
    pub(super) clause: Clause,
    /// Set while rows are groups: then only keys and aggregates can be referred to.
    pub(super) grouped_by: Option<&'query [Expression]>,
    /// Aggregates found so far.
    pub(super) aggregates: Vec<Aggregate>,
}

/// What may stand where.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    /// A path of a source.
    From,
    Where,
    GroupBy,
    OrderBy,
    /// Scores are computed here.
    Rank,
    Select,
    /// Inside the argument of an aggregate.
    Aggregate,
}

impl<'query> Frame<'query> {
    pub(super) fn new(first_slot: u16) -> Frame<'query> {
        Frame {
            sources: Vec::new(),
            first_slot,
            clause: Clause::From,
            grouped_by: None,
            aggregates: Vec::new(),
        }
    }

    /// The slot that the next source fills. Joins and nested queries are bounded far below what 16 bits can count.
    pub(super) fn next_slot(&self) -> u16 {
        self.first_slot + u16::try_from(self.sources.len()).unwrap_or(u16::MAX - self.first_slot)
    }

    /// Adds a source; false if its name is taken.
    pub(super) fn add(&mut self, name: Option<&'query str>) -> bool {
        let is_new = name.is_none() || !self.sources.contains(&name);
        self.sources.push(name);
        is_new
    }

    /// How many sources there are.
    pub(super) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// The slot of a source of this query, by position in the FROM clause.
    pub(super) fn slot(&self, position: usize) -> SlotId {
        SlotId(self.first_slot + u16::try_from(position).unwrap_or(0))
    }

    fn find(&self, name: &str) -> Option<SlotId> {
        let position = self.sources.iter().position(|source| *source == Some(name))?;
        Some(self.slot(position))
    }
}

/// What a name stands for.
pub(super) enum Resolved {
    Slot(SlotId),
    /// A source whose rows have been folded into groups.
    Grouped,
    Unknown,
}

impl Lowering<'_> {
    /// Looks a name up, innermost query first.
    pub(super) fn resolve(&self, name: &str) -> Resolved {
        for frame in self.frames.iter().rev() {
            if let Some(slot) = frame.find(name) {
                let is_grouped = frame.grouped_by.is_some() && frame.clause != Clause::Aggregate;
                return if is_grouped { Resolved::Grouped } else { Resolved::Slot(slot) };
            }
        }
        Resolved::Unknown
    }

    /// Complains about a name that cannot be referred to; `whole` is the path it begins.
    pub(super) fn refuse_name(&mut self, name: &str, place: Place, whole: &Expression) {
        match self.resolve(name) {
            _ if !self.has_room() => {}
            Resolved::Grouped => {
                let reference = crate::print_expression(whole);
                self.fault(FaultKind::Ungrouped { reference }, whole.place);
            }
            Resolved::Unknown | Resolved::Slot(_) => {
                self.fault(FaultKind::UnknownIdentifier { name: name.to_owned() }, place);
            }
        }
    }
}
