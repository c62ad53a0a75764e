//! Scopes: which names are visible where, with one frame for each current query.

use super::Lowering;
use crate::ast::Expression;
use crate::fault::{FaultKind, Span};
use plan::query::{Aggregate, SlotId};

/// A query whose clauses are being lowered.
pub(super) struct QueryFrame<'query> {
    /// The sources so far, by name; a source without a name also fills a slot.
    sources: Vec<Option<&'query str>>,
    first_slot: u16,
    /// The current clause.
    pub(super) clause: Clause,
    /// Set while rows are grouped: then only keys and aggregates can be referenced.
    pub(super) grouped_by: Option<&'query [Expression]>,
    /// Aggregates found so far.
    pub(super) aggregates: Vec<Aggregate>,
}

/// The clause that is being lowered: it determines which expressions are allowed.
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

impl<'query> QueryFrame<'query> {
    pub(super) fn new(first_slot: u16) -> QueryFrame<'query> {
        QueryFrame {
            sources: Vec::new(),
            first_slot,
            clause: Clause::From,
            grouped_by: None,
            aggregates: Vec::new(),
        }
    }

    /// The slot of the next source. The limits on joins and nested queries are far below 2^16.
    pub(super) fn next_slot(&self) -> u16 {
        self.first_slot + u16::try_from(self.sources.len()).unwrap_or(u16::MAX - self.first_slot)
    }

    /// Adds a source; returns false if the name exists.
    pub(super) fn add(&mut self, name: Option<&'query str>) -> bool {
        let is_new = name.is_none() || !self.sources.contains(&name);
        self.sources.push(name);
        is_new
    }

    /// The number of sources.
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

/// The meaning of a name.
pub(super) enum Resolved {
    Slot(SlotId),
    /// A source whose rows are grouped.
    Grouped,
    Unknown,
}

impl Lowering<'_> {
    /// Resolves a name, innermost query first.
    pub(super) fn resolve(&self, name: &str) -> Resolved {
        for frame in self.frames.iter().rev() {
            if let Some(slot) = frame.find(name) {
                let is_grouped = frame.grouped_by.is_some() && frame.clause != Clause::Aggregate;
                return if is_grouped { Resolved::Grouped } else { Resolved::Slot(slot) };
            }
        }
        Resolved::Unknown
    }

    /// Reports a name that cannot be referenced; `whole` is the path that starts with it.
    pub(super) fn refuse_name(&mut self, name: &str, span: Span, whole: &Expression) {
        match self.resolve(name) {
            _ if !self.has_room() => {}
            Resolved::Grouped => {
                let reference = crate::print_expression(whole);
                self.fault(FaultKind::Ungrouped { reference }, whole.span);
            }
            Resolved::Unknown | Resolved::Slot(_) => {
                self.fault(FaultKind::UnknownIdentifier { name: name.to_owned() }, span);
            }
        }
    }
}
