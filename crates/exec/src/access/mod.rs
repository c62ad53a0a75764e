//! How a partition's documents are reached. One file per way; which one is taken never changes a result.
//!
//! | file | holds |
//! |---|---|
//! | `path`, `choose`, `statistics` | the access path as a value; the choice of it; the numbers that it depends on |
//! | `records` | all records as they lie |
//! | `numbers` | in the order of numbers, all or those that an index named; each document is fetched by itself |
//! | `ordered` | in the order of a sort key, as an index has it |
//! | `lookup`, `known`, `spatial`, `computed`, `tested` | what an index can say about a filter, by lookups or value by value |
//! | `shared` | the same for all partitions of a page |
//! | `covered`, `counting` | what an index answers by itself, and of which documents |
//! | `folds`, `values`, `tuples`, `extremes` | such answers: aggregates over everything; groups and different results |

mod choose;
mod computed;
mod counting;
mod covered;
mod extremes;
mod folds;
mod known;
mod lookup;
mod numbers;
mod ordered;
mod path;
mod records;
mod shared;
mod spatial;
mod statistics;
mod tested;
mod tuples;
mod values;

pub(crate) use choose::{
    Covering, Ordering, all, by_number, choose, comes_by_number, goal, in_order, is_scan_cheaper,
};
pub(crate) use numbers::NumberWalk;
pub(crate) use ordered::{Codes, OrderedRequest, OrderedWalk};
pub use path::PathKind;
pub(crate) use path::{AccessPath, Use, Way};
pub(crate) use records::RecordWalk;
pub(crate) use shared::{Narrowing, SharedFilter, SharedNeedles};
pub(crate) use statistics::Statistics;

use eval::{Context, Meter};
use model::Fault;
use plan::StoredDocument;
use std::sync::Arc;
use std::time::Instant;

use crate::collect::{Collector, Wish};
use crate::found::QueryMetrics;
use crate::program::Check;
use crate::task::{OpenPart, Task};
use counting::Counting;
use covered::Covered;
use folds::Folding;
use values::Grouping;

/// A walk over all documents of a part that the filter may let pass, in any order.
#[derive(Debug)]
pub(crate) enum Walk {
    Records(RecordWalk),
    Numbers(Box<NumberWalk>),
}

impl Walk {
    /// A walk on a path. One that gives documents in an order is walked as the records lie.
    pub(crate) async fn begin(
        path: AccessPath<'_>,
        open: Arc<OpenPart>,
        metrics: &mut QueryMetrics,
    ) -> Result<Walk, Fault> {
        let begun = Instant::now();
        let named = match path.way {
            Way::Lookup(_, Some(named)) => Some(named),
            Way::Lookup(narrowing, None) => narrowing.named(&open).await?,
            Way::Records | Way::Numbers | Way::Ordered(_) | Way::Covered(..) => None,
        };
        metrics.index_time += begun.elapsed();
        if let Some(named) = named {
            let walk = NumberWalk::over_named(open, named, 0, usize::MAX);
            return Ok(Walk::Numbers(Box::new(walk)));
        }
        Ok(Walk::Records(RecordWalk::new(open)))
    }

    /// What is left to be found out of the documents.
    pub(crate) fn check(&self) -> Check {
        match self {
            Walk::Records(_) => Check::Filter,
            Walk::Numbers(walk) => walk.check(),
        }
    }

    /// The next chunk; nothing at the end.
    pub(crate) async fn next(
        &mut self,
        meter: &Meter,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<StoredDocument>>, Fault> {
        match self {
            Walk::Records(walk) => walk.next(meter, metrics).await,
            Walk::Numbers(walk) if walk.has_more() => walk.next(metrics).await.map(Some),
            Walk::Numbers(_) => Ok(None),
        }
    }
}

/// What a part has, if its index knows that by itself.
pub(crate) async fn by_index(
    (task, context, open): (&Task, &Context<'_>, &OpenPart),
    covered: &Covered<'_>,
    filter: Option<&Narrowing>,
    wish: &Wish,
    metrics: &mut QueryMetrics,
) -> Result<Option<Collector>, Fault> {
    let (Some(layer), Some(index)) = (task.program.layers.first(), open.view.index()) else {
        return Ok(None);
    };
    let begun = Instant::now();
    let Some(counting) = Counting::begin(open, index, filter).await? else {
        return Ok(None);
    };
    let counting = &counting;
    let mut collector = Collector::new(layer, context, wish.clone());
    let is_known = match covered {
        Covered::Folds(folds) => {
            Folding { task, layer, context, open, counting }.run(folds, &mut collector, metrics).await?
        }
        Covered::Values(values) => {
            let grouping = Grouping { task, layer, context, open, counting };
            grouping.run(values, &mut collector, metrics).await?
        }
        Covered::Tuples(paths) => {
            let grouping = Grouping { task, layer, context, open, counting };
            grouping.run_tuples(paths, &mut collector, metrics).await?
        }
    };
    metrics.index_time += begun.elapsed();
    Ok(is_known.then_some(collector))
}
