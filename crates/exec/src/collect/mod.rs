//! Collecting: of all rows, which arrive in any order, the first ones by position that a page needs.
//!
//! Memory is limited by the page if the shape of the query allows it, and always accounted. Collectors of several
//! partitions can be merged in any order; the result is that of one collector over all rows.

mod distinct;
mod groups;
mod rows;

use eval::{Accumulator, Context, EvalFault, MatchedRow};
use model::DocumentNumber;

use crate::found::FoundRows;
use crate::position::{self, RowSource};
use crate::program::{Layer, Shape};
use crate::resume::After;
use distinct::{Distinct, DistinctOrdered};
use groups::CollectedGroups;
pub(crate) use groups::EndedGroups;
use rows::FirstRows;

/// Which results are wanted.
#[derive(Clone, Debug)]
pub(crate) struct ResultWindow {
    /// Results after this position; only groups that must all be known support a truncated position.
    pub(crate) after: After,
    /// Maximum number of results.
    pub(crate) count: usize,
    /// Bytes of results after which no further one is needed.
    pub(crate) bytes: usize,
    /// Whether results are wanted, or only their positions.
    pub(crate) with_results: bool,
}

impl ResultWindow {
    pub(crate) fn all() -> ResultWindow {
        let after = After::Position(Vec::new());
        ResultWindow { after, count: usize::MAX, bytes: usize::MAX, with_results: true }
    }

    /// The exact position after which results are wanted; the beginning of a truncated one.
    fn position(&self) -> &[u8] {
        match &self.after {
            After::Position(position) => position,
            After::Cut { beginning, .. } => beginning,
        }
    }
}

/// Rows while they are collected.
#[derive(Debug)]
pub(crate) enum Collector {
    Rows(FirstRows),
    Distinct(Distinct),
    DistinctOrdered(DistinctOrdered),
    Groups(CollectedGroups),
}

impl Collector {
    /// An empty collector for results of a layer.
    pub(crate) fn new(layer: &Layer, context: &Context<'_>, window: ResultWindow) -> Collector {
        match layer.shape {
            Shape::Rows => Collector::Rows(FirstRows::new(context, window)),
            Shape::Distinct => Collector::Distinct(Distinct::new(context, window)),
            Shape::DistinctOrdered => Collector::DistinctOrdered(DistinctOrdered::new(context, window)),
            Shape::Groups | Shape::AllGroups => {
                Collector::Groups(CollectedGroups::new(layer, context, window))
            }
        }
    }

    /// Adds a row that passed the filter.
    pub(crate) fn add(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        match self {
            Collector::Rows(rows) => rows.add(layer, row, source),
            Collector::Distinct(distinct) => distinct.add(layer, row, source),
            Collector::DistinctOrdered(distinct) => distinct.add(layer, row, source),
            Collector::Groups(groups) => groups.add(layer, row, source),
        }
    }

    /// Adds a row that represents several rows, as an index knows them: the kind of a number may be another one that is
    /// equal, until [`show_as`](Self::show_as).
    pub(crate) fn add_times(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
        times: u64,
    ) -> Result<(), EvalFault> {
        match self {
            Collector::Groups(groups) => groups.add_times(layer, row, source, times),
            Collector::Rows(_) | Collector::Distinct(_) | Collector::DistinctOrdered(_) => {
                self.add(layer, row, source)
            }
        }
    }

    /// The accumulator of an aggregate over all rows.
    pub(crate) fn whole(&mut self, position: usize) -> Option<&mut Accumulator> {
        match self {
            Collector::Groups(groups) => groups.whole(position),
            Collector::Rows(_) | Collector::Distinct(_) | Collector::DistinctOrdered(_) => None,
        }
    }

    /// Whether a result depends on kinds of numbers that an index does not know.
    pub(crate) fn is_in_doubt(&self) -> bool {
        match self {
            Collector::Groups(groups) => groups.is_in_doubt(),
            Collector::Rows(_) | Collector::Distinct(_) | Collector::DistinctOrdered(_) => false,
        }
    }

    /// The documents that decide with which kind the numbers of results are shown.
    pub(crate) fn shown_by(&self, layer: &Layer) -> Vec<DocumentNumber> {
        let places = match self {
            Collector::Groups(groups) => groups.number_origins(),
            Collector::Distinct(distinct) => distinct.number_origins(),
            Collector::DistinctOrdered(distinct) => distinct.number_places(),
            Collector::Rows(_) => Vec::new(),
        };
        let numbers = places.into_iter().filter_map(|place| position::number_of(&layer.query.order, place));
        numbers.filter_map(DocumentNumber::from_raw).collect()
    }

    /// Shows a result as the deciding row has it.
    pub(crate) fn show_as(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        match self {
            Collector::Groups(groups) => groups.show_as(layer, row, source),
            Collector::Distinct(distinct) => distinct.show_as(layer, row, source),
            Collector::DistinctOrdered(distinct) => distinct.show_as(layer, row, source),
            Collector::Rows(_) => Ok(()),
        }
    }

    /// Adds everything from another collector for the same layer and request.
    pub(crate) fn merge(&mut self, other: Collector) {
        match (self, other) {
            (Collector::Rows(rows), Collector::Rows(other)) => rows.merge(other),
            (Collector::Distinct(distinct), Collector::Distinct(other)) => distinct.merge(other),
            (Collector::DistinctOrdered(distinct), Collector::DistinctOrdered(other)) => {
                distinct.merge(other)
            }
            (Collector::Groups(groups), Collector::Groups(other)) => groups.merge(other),
            // One layer has one shape.
            (
                Collector::Rows(_)
                | Collector::Distinct(_)
                | Collector::DistinctOrdered(_)
                | Collector::Groups(_),
                _,
            ) => {}
        }
    }

    /// What was collected, after all rows were added.
    pub(crate) fn end(self) -> Collected {
        match self {
            Collector::Rows(rows) => Collected::Rows(rows.finish()),
            Collector::Distinct(distinct) => Collected::Rows(distinct.finish()),
            Collector::DistinctOrdered(distinct) => Collected::Rows(distinct.finish()),
            Collector::Groups(groups) => Collected::Groups(groups.end()),
        }
    }
}

/// What was collected.
#[derive(Debug)]
pub(crate) enum Collected {
    /// Results in their order.
    Rows(FoundRows),
    /// Groups whose results are still to be evaluated.
    Groups(EndedGroups),
}
