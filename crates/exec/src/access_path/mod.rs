//! How a partition's documents are reached. One file per way; the choice never changes a result.
//!
//! | file | contains |
//! |---|---|
//! | `path`, `choose`, `statistics` | the access path as a value; its choice; the numbers that the choice depends on |
//! | `records` | a scan of all records |
//! | `numbers` | documents in the order of numbers, all or those of a lookup; each document is fetched individually |
//! | `ordered`, `walk_bounds` | documents in the order of sort keys, from an index; where they are in it |
//! | `lookup`, `known`, `spatial`, `computed`, `tested` | what an index knows about a filter |
//! | `shared` | the same for all partitions of a page |
//! | `covered`, `counting` | what an index answers alone, and for which documents |
//! | `folds`, `values`, `tuples`, `extremes` | such answers: aggregates over all rows; GROUP BY and DISTINCT |

mod choose;
mod code_checks;
mod computed;
mod counting;
mod covered;
mod extremes;
mod folds;
mod index_condition;
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
mod walk_bounds;

pub(crate) use choose::{
    Covering, Ordering, all, by_number, choose, comes_by_number, goal, in_order, is_scan_cheaper,
};
pub(crate) use numbers::{NumberWalk, first_chunk};
pub(crate) use ordered::{Codes, OrderedRequest, OrderedWalk};
pub use path::PathKind;
pub(crate) use path::{AccessPath, Use, Way};
pub(crate) use records::RecordWalk;
pub(crate) use shared::{Narrowing, SharedFilter, SharedRequiredTerms};
pub(crate) use statistics::PartStatistics;

use eval::{Context, Meter};
use model::Fault;
use plan::StoredDocument;
use std::sync::Arc;
use std::time::Instant;

use crate::collect::{Collector, ResultWindow};
use crate::found::QueryMetrics;
use crate::program::RemainingCheck;
use crate::task::{OpenPart, Task};
use counting::Counting;
use covered::Covered;
use folds::Folding;
use values::IndexGrouping;

/// A walk over all documents of a part that may pass the filter, in any order.
#[derive(Debug)]
pub(crate) enum DocumentWalk {
    Records(RecordWalk),
    Numbers(Box<NumberWalk>),
}

impl DocumentWalk {
    /// Starts a walk on a path. If the path is an ordered one, the records are scanned instead.
    pub(crate) async fn begin(
        path: AccessPath<'_>,
        open: Arc<OpenPart>,
        metrics: &mut QueryMetrics,
    ) -> Result<DocumentWalk, Fault> {
        let begun = Instant::now();
        let documents = match path.way {
            Way::Lookup(_, Some(documents)) => Some(documents),
            Way::Lookup(narrowing, None) => narrowing.documents_in(&open).await?,
            Way::Records | Way::Numbers | Way::Ordered(_) | Way::Covered(..) => None,
        };
        metrics.index_time += begun.elapsed();
        if let Some(documents) = documents {
            let walk = NumberWalk::over_lookup(open, documents, 0, first_chunk(usize::MAX, false));
            return Ok(DocumentWalk::Numbers(Box::new(walk)));
        }
        Ok(DocumentWalk::Records(RecordWalk::new(open)))
    }

    /// What is still to be checked on the documents.
    pub(crate) fn check(&self) -> RemainingCheck {
        match self {
            DocumentWalk::Records(_) => RemainingCheck::Filter,
            DocumentWalk::Numbers(walk) => walk.check(),
        }
    }

    /// The next chunk; `None` at the end.
    pub(crate) async fn next(
        &mut self,
        meter: &Meter,
        metrics: &mut QueryMetrics,
    ) -> Result<Option<Vec<StoredDocument>>, Fault> {
        match self {
            DocumentWalk::Records(walk) => walk.next(meter, metrics).await,
            DocumentWalk::Numbers(walk) if walk.has_more() => walk.next(metrics).await.map(Some),
            DocumentWalk::Numbers(_) => Ok(None),
        }
    }
}

/// The result of a part, if its index can answer alone.
pub(crate) async fn by_index(
    (task, context, open): (&Task, &Context<'_>, &OpenPart),
    covered: &Covered<'_>,
    filter: Option<&Narrowing>,
    window: &ResultWindow,
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
    let mut collector = Collector::new(layer, context, window.clone());
    let is_known = match covered {
        Covered::Folds(folds) => {
            Folding { task, layer, context, open, counting }.run(folds, &mut collector, metrics).await?
        }
        Covered::Values(values) => {
            let grouping = IndexGrouping { task, layer, context, open, counting };
            grouping.run(values, &mut collector, metrics).await?
        }
        Covered::Tuples(paths) => {
            let grouping = IndexGrouping { task, layer, context, open, counting };
            grouping.run_tuples(paths, &mut collector, metrics).await?
        }
    };
    metrics.index_time += begun.elapsed();
    Ok(is_known.then_some(collector))
}
