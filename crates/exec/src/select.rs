//! Selection: all documents are read, in any order, and the first results by position are kept.
//!
//! A limited number of partitions work concurrently. Their collectors are merged as they arrive, which gives the same
//! result as sequential work.

use eval::Context;
use model::{DocumentNumber, Fault};
use plan::StoredDocument;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;
use value::{Value, ValueRef};

use crate::access_path::{self, AccessPath, Covering, DocumentWalk, Way};
use crate::bounded::{self, PartWork};
use crate::collect::{Collected, Collector, ResultWindow};
use crate::fault::query_fault;
use crate::found::{FoundRows, QueryMetrics};
use crate::position::RowSource;
use crate::program::{Layer, LayerInput, RemainingCheck};
use crate::task::{OpenPart, Task};
use crate::user_calls;

/// Documents that are fetched by number in one call.
const NUMBERS_AT_A_TIME: usize = 64;
/// Rows of a layer between two checks of the clock and yields to other tasks.
const ROWS_AT_A_TIME: usize = 1024;

/// A result of the layer below: its position and its value.
pub(crate) type LayerRow = (Vec<u8>, Value);

/// The results of the innermost layer over partitions.
pub(crate) async fn over_partitions(
    task: &Arc<Task>,
    parts: &[Arc<OpenPart>],
    window: &ResultWindow,
    metrics: &mut QueryMetrics,
) -> Result<FoundRows, Fault> {
    let mut collector = collect_all(task, parts, window, Covering::Allowed, metrics).await?;
    if collector.is_in_doubt() {
        collector = collect_all(task, parts, window, Covering::Failed, metrics).await?;
    }
    finish(task, task.innermost()?, &task.context(), collector).await
}

/// The results of a collector.
async fn finish(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    collector: Collector,
) -> Result<FoundRows, Fault> {
    let groups = match collector.end() {
        Collected::Rows(rows) => return Ok(rows),
        Collected::Groups(groups) => groups,
    };
    if layer.calls.of_groups {
        user_calls::foresee_groups(task, layer, context, &groups).await?;
    }
    groups.finish(layer, context).map_err(query_fault)
}

/// The merged collectors of all partitions.
async fn collect_all(
    task: &Arc<Task>,
    parts: &[Arc<OpenPart>],
    window: &ResultWindow,
    covering: Covering,
    metrics: &mut QueryMetrics,
) -> Result<Collector, Fault> {
    let mut collector = Collector::new(task.innermost()?, &task.context(), window.clone());
    if let [part] = parts {
        let (collected, done) = collect(Arc::clone(task), Arc::clone(part), window.clone(), covering).await?;
        metrics.add(&done);
        collector = collected;
    } else {
        let begin = |part: &Arc<OpenPart>| -> PartWork<(Collector, QueryMetrics)> {
            Box::pin(collect(Arc::clone(task), Arc::clone(part), window.clone(), covering))
        };
        let merge = |(collected, done): (Collector, QueryMetrics)| {
            metrics.add(&done);
            collector.merge(collected);
        };
        bounded::for_each_done(&task.meter, parts.iter().map(begin), merge).await?;
    }
    Ok(collector)
}

/// The collector of one partition.
async fn collect(
    task: Arc<Task>,
    open: Arc<OpenPart>,
    window: ResultWindow,
    covering: Covering,
) -> Result<(Collector, QueryMetrics), Fault> {
    let layer = task.innermost()?;
    let context = task.context();
    let mut metrics = QueryMetrics::default();
    let mut path = chosen(layer, &open, covering, &mut metrics).await?;
    if let Way::Covered(covered, filter) = &path.way {
        let part = (&*task, &context, &*open);
        let collected = access_path::by_index(part, covered, filter.as_ref(), &window, &mut metrics).await?;
        if let Some(collector) = collected {
            return Ok((collector, metrics));
        }
        path = chosen(layer, &open, Covering::Failed, &mut metrics).await?;
    }
    let mut collector = Collector::new(layer, &context, window);
    let mut walk = DocumentWalk::begin(path, Arc::clone(&open), &mut metrics).await?;
    while let Some(documents) = walk.next(&task.meter, &mut metrics).await? {
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        add_documents(&task, layer, &context, (&documents, walk.check()), &mut collector).await?;
        metrics.evaluation_time += begun.elapsed();
        task.yield_now().await?;
    }
    Ok((collector, metrics))
}

async fn chosen<'l>(
    layer: &'l Layer,
    open: &OpenPart,
    covering: Covering,
    metrics: &mut QueryMetrics,
) -> Result<AccessPath<'l>, Fault> {
    let begun = Instant::now();
    let path = access_path::all(layer, open, covering).await?;
    metrics.path = metrics.path.or(Some(path.way.kind()));
    metrics.index_time += begun.elapsed();
    Ok(path)
}

async fn add_documents(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    (documents, check): (&[StoredDocument], RemainingCheck),
    collector: &mut Collector,
) -> Result<(), Fault> {
    if layer.calls.anywhere {
        user_calls::foresee_documents(task, layer, context, (documents, check)).await?;
    }
    for (index, stored) in documents.iter().enumerate() {
        layer.turn_to(context, index);
        let tie = stored.number.raw().to_be_bytes();
        let source = RowSource { tie: &tie, stored: Some(stored), keys: None };
        layer.for_each_match(context, &task.program.system, (stored, check), &mut |row| {
            collector.add(layer, row, source)?;
            Ok(ControlFlow::Continue(()))
        })?;
        if task.meter.is_due() {
            task.yield_now().await?;
        }
    }
    Ok(())
}

/// The results of the innermost layer over some documents of a part.
pub(crate) async fn over_numbers(
    task: &Task,
    open: &OpenPart,
    numbers: &[DocumentNumber],
    window: &ResultWindow,
    metrics: &mut QueryMetrics,
) -> Result<FoundRows, Fault> {
    let layer = task.innermost()?;
    let context = task.context();
    let mut collector = Collector::new(layer, &context, window.clone());
    for some in numbers.chunks(NUMBERS_AT_A_TIME) {
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        let documents = open.view.by_numbers(some, &open.part.keys).await?;
        metrics.documents_by_index += documents.len() as u64;
        metrics.count_read(open, &documents, begun.elapsed());
        add_documents(task, layer, &context, (&documents, RemainingCheck::Filter), &mut collector).await?;
        task.yield_now().await?;
    }
    finish(task, layer, &context, collector).await
}

/// The results of a layer over those of the layer below, or without input.
pub(crate) async fn over_rows(
    task: &Task,
    layer: &Layer,
    rows: &[LayerRow],
    window: &ResultWindow,
    metrics: &mut QueryMetrics,
) -> Result<FoundRows, Fault> {
    let context = task.context();
    let mut collector = Collector::new(layer, &context, window.clone());
    let mut add = |index: usize, tie: &[u8], root: ValueRef<'_>| {
        layer.turn_to(&context, index);
        let source = RowSource { tie, stored: None, keys: None };
        layer.for_each_row(&context, root, None, RemainingCheck::Filter, &mut |row| {
            collector.add(layer, row, source)?;
            Ok(ControlFlow::Continue(()))
        })
    };
    // A layer without input has one row, whose root is not read.
    let only = [(Vec::new(), Value::Null)];
    let rows = if layer.input == LayerInput::Nothing { &only[..] } else { rows };
    for chunk in rows.chunks(ROWS_AT_A_TIME) {
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        if layer.calls.anywhere {
            user_calls::foresee_values(task, layer, &context, chunk).await?;
        }
        for (index, (position, value)) in chunk.iter().enumerate() {
            add(index, position, value.as_ref())?;
            if task.meter.is_due() {
                task.yield_now().await?;
            }
        }
        metrics.evaluation_time += begun.elapsed();
        task.yield_now().await?;
    }
    finish(task, layer, &context, collector).await
}
