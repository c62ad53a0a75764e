//! Collecting: of all rows that come, in any order, the first by position that a page needs.
//!
//! Memory is bounded by the page where the shape of the query allows it, and accounted everywhere. Collectors of
//! several partitions are merged, in any order, to what one collector over all rows would hold.

mod distinct;
mod groups;
mod rows;

use eval::{Context, EvalFault, MatchedRow};

use crate::found::Found;
use crate::position::Item;
use crate::program::{Layer, Shape};
use crate::resume::After;
use distinct::{Distinct, DistinctOrdered};
use groups::CollectedGroups;
use rows::Rows;

/// Which results are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Those behind this place; only groups that must all be known can deal with a cut position.
    pub(crate) after: After,
    /// Most results.
    pub(crate) count: usize,
    /// Bytes of results after which no further one is needed.
    pub(crate) bytes: usize,
    /// Whether results are wanted, or only their positions.
    pub(crate) with_results: bool,
}

impl Wish {
    /// All results.
    pub(crate) fn all() -> Wish {
        let after = After::Position(Vec::new());
        Wish { after, count: usize::MAX, bytes: usize::MAX, with_results: true }
    }

    /// The exact position behind which results are wanted; the beginning of a cut one.
    fn position(&self) -> &[u8] {
        match &self.after {
            After::Position(position) => position,
            After::Cut { beginning, .. } => beginning,
        }
    }
}

/// Rows as they are collected.
#[derive(Debug)]
pub(crate) enum Collector {
    Rows(Rows),
    Distinct(Distinct),
    DistinctOrdered(DistinctOrdered),
    Groups(CollectedGroups),
}

impl Collector {
    /// An empty one for results of a layer.
    pub(crate) fn new(layer: &Layer, context: &Context<'_>, wish: Wish) -> Collector {
        match layer.shape {
            Shape::Rows => Collector::Rows(Rows::new(context, wish)),
            Shape::Distinct => Collector::Distinct(Distinct::new(context, wish)),
            Shape::DistinctOrdered => Collector::DistinctOrdered(DistinctOrdered::new(context, wish)),
            Shape::Groups | Shape::AllGroups => Collector::Groups(CollectedGroups::new(layer, context, wish)),
        }
    }

    /// Takes a row that passed the filter.
    pub(crate) fn add(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        item: Item<'_>,
    ) -> Result<(), EvalFault> {
        match self {
            Collector::Rows(rows) => rows.add(layer, row, item),
            Collector::Distinct(distinct) => distinct.add(layer, row, item),
            Collector::DistinctOrdered(distinct) => distinct.add(layer, row, item),
            Collector::Groups(groups) => groups.add(layer, row, item),
        }
    }

    /// Takes so many rows that are only counted.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        match self {
            Collector::Groups(groups) => groups.add_rows(rows),
            Collector::Rows(_) | Collector::Distinct(_) | Collector::DistinctOrdered(_) => {}
        }
    }

    /// Takes all that another one for the same layer and wish has.
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

    /// The results in their order.
    pub(crate) fn finish(self, layer: &Layer, context: &Context<'_>) -> Result<Found, EvalFault> {
        match self {
            Collector::Rows(rows) => Ok(rows.finish()),
            Collector::Distinct(distinct) => Ok(distinct.finish()),
            Collector::DistinctOrdered(distinct) => Ok(distinct.finish()),
            Collector::Groups(groups) => groups.finish(layer, context),
        }
    }
}
