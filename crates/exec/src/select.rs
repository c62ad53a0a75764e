//! Selection: all documents are looked at, in any order, and the first results by position are kept.
//!
//! Partitions work at the same time, a bounded number of them; what they collect is merged as it comes, which gives
//! the same as one after the other.

use eval::{Context, Meter};
use model::{DocumentNumber, Fault};
use plan::StoredDocument;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::task::JoinSet;
use value::{Value, ValueRef};

use crate::access::{self, Walk};
use crate::collect::{Collector, Wish};
use crate::fault::query_fault;
use crate::found::{Found, QueryMetrics};
use crate::position::Item;
use crate::program::{Check, Input, Layer};
use crate::task::{OpenPart, Task};

/// Partitions that work for one query at the same time.
const PARTITIONS_AT_ONCE: usize = 8;
/// Documents that are fetched by number at a time.
const NUMBERS_AT_A_TIME: usize = 64;
/// Rows of a layer between two looks at the clock and at other tasks.
const ROWS_AT_A_TIME: usize = 1024;

/// A result of the layer below: where it stood, and what it is.
pub(crate) type LayerRow = (Vec<u8>, Value);

/// The results of the innermost layer over partitions.
pub(crate) async fn over_partitions(
    task: &Arc<Task>,
    parts: &[OpenPart],
    wish: &Wish,
    metrics: &mut QueryMetrics,
) -> Result<Found, Fault> {
    let mut collector = collect_all(task, parts, wish, true, metrics).await?;
    if collector.is_in_doubt() {
        collector = collect_all(task, parts, wish, false, metrics).await?;
    }
    collector.finish(innermost(task)?, &task.context()).map_err(query_fault)
}

/// What all partitions have. An index may answer by itself if `by_index` says so.
async fn collect_all(
    task: &Arc<Task>,
    parts: &[OpenPart],
    wish: &Wish,
    by_index: bool,
    metrics: &mut QueryMetrics,
) -> Result<Collector, Fault> {
    let mut collector = Collector::new(innermost(task)?, &task.context(), wish.clone());
    if let [part] = parts {
        let (collected, done) = collect(Arc::clone(task), part.clone(), wish.clone(), by_index).await?;
        metrics.add(&done);
        collector = collected;
    } else {
        let mut waiting = parts.iter();
        let begin = |part: &OpenPart| -> Pin<Box<dyn Future<Output = Collected> + Send>> {
            Box::pin(collect(Arc::clone(task), part.clone(), wish.clone(), by_index))
        };
        let mut here = Vec::new();
        while task.meter.is_inline() {
            here.extend(waiting.by_ref().take(PARTITIONS_AT_ONCE - here.len()).map(begin));
            let Some(collected) = first_of(&mut here, &task.meter).await else {
                break;
            };
            let (collected, done) = collected?;
            metrics.add(&done);
            collector.merge(collected);
        }
        let mut working: JoinSet<Collected> = here.into_iter().collect();
        loop {
            while working.len() < PARTITIONS_AT_ONCE
                && let Some(part) = waiting.next()
            {
                working.spawn(begin(part));
            }
            let Some(collected) = working.join_next().await else {
                break;
            };
            let (collected, done) = collected.map_err(|error| Fault::Internal(error.to_string()))??;
            metrics.add(&done);
            collector.merge(collected);
        }
    }
    Ok(collector)
}

/// What one partition has, and what was done for it.
type Collected = Result<(Collector, QueryMetrics), Fault>;

/// The first that is done of some that share a thread, as long as their work is not moved to another one; there each
/// of them gets a task of its own.
async fn first_of(
    here: &mut Vec<Pin<Box<dyn Future<Output = Collected> + Send>>>,
    meter: &Meter,
) -> Option<Collected> {
    std::future::poll_fn(|context| {
        if here.is_empty() || !meter.is_inline() {
            return Poll::Ready(None);
        }
        for index in 0..here.len() {
            if let Poll::Ready(collected) = here[index].as_mut().poll(context) {
                drop(here.swap_remove(index));
                return Poll::Ready(Some(collected));
            }
            if meter.is_due() {
                break;
            }
        }
        Poll::Pending
    })
    .await
}

fn innermost(task: &Task) -> Result<&Layer, Fault> {
    task.program.layers.first().ok_or_else(|| Fault::Internal("a program without layers".to_owned()))
}

/// What one partition has.
async fn collect(
    task: Arc<Task>,
    open: OpenPart,
    wish: Wish,
    by_index: bool,
) -> Result<(Collector, QueryMetrics), Fault> {
    let layer = innermost(&task)?;
    let context = task.context();
    let mut metrics = QueryMetrics::default();
    if by_index && let Some(collector) = access::by_index(&task, &context, &open, &wish, &mut metrics).await?
    {
        return Ok((collector, metrics));
    }
    let mut collector = Collector::new(layer, &context, wish);
    let mut walk = Walk::begin(layer, open, &mut metrics).await?;
    while let Some(documents) = walk.next(&task.meter, &mut metrics).await? {
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        add_documents(&task, layer, &context, (&documents, walk.check()), &mut collector).await?;
        metrics.evaluation_time += begun.elapsed();
        task.rest().await?;
    }
    Ok((collector, metrics))
}

async fn add_documents(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    (documents, check): (&[StoredDocument], Check),
    collector: &mut Collector,
) -> Result<(), Fault> {
    for stored in documents {
        let tie = stored.number.raw().to_be_bytes();
        let item = Item { tie: &tie, stored: Some(stored), keys: None };
        layer.for_each_match(context, &task.program.system, (stored, check), &mut |row| {
            collector.add(layer, row, item)?;
            Ok(ControlFlow::Continue(()))
        })?;
        if task.meter.is_due() {
            task.rest().await?;
        }
    }
    Ok(())
}

/// The results of the innermost layer over some documents of a part.
pub(crate) async fn over_numbers(
    task: &Task,
    open: &OpenPart,
    numbers: &[DocumentNumber],
    wish: &Wish,
    metrics: &mut QueryMetrics,
) -> Result<Found, Fault> {
    let layer = innermost(task)?;
    let context = task.context();
    let mut collector = Collector::new(layer, &context, wish.clone());
    for some in numbers.chunks(NUMBERS_AT_A_TIME) {
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        let documents = open.view.by_numbers(some, &open.part.keys).await?;
        metrics.documents_by_index += documents.len() as u64;
        metrics.count_read(&documents, begun.elapsed());
        add_documents(task, layer, &context, (&documents, Check::Filter), &mut collector).await?;
        task.rest().await?;
    }
    collector.finish(layer, &context).map_err(query_fault)
}

/// The results of a layer over those of the layer below, or over nothing.
pub(crate) async fn over_rows(
    task: &Task,
    layer: &Layer,
    rows: &[LayerRow],
    wish: &Wish,
    metrics: &mut QueryMetrics,
) -> Result<Found, Fault> {
    let context = task.context();
    let mut collector = Collector::new(layer, &context, wish.clone());
    let mut add = |tie: &[u8], root: ValueRef<'_>| {
        let item = Item { tie, stored: None, keys: None };
        layer.for_each_row(&context, root, None, Check::Filter, &mut |row| {
            collector.add(layer, row, item)?;
            Ok(ControlFlow::Continue(()))
        })
    };
    if layer.input == Input::Nothing {
        add(&[], Value::Null.as_ref())?;
    }
    for chunk in rows.chunks(ROWS_AT_A_TIME) {
        context.check_time().map_err(query_fault)?;
        let begun = Instant::now();
        for (position, value) in chunk {
            add(position, value.as_ref())?;
            if task.meter.is_due() {
                task.rest().await?;
            }
        }
        metrics.evaluation_time += begun.elapsed();
        task.rest().await?;
    }
    collector.finish(layer, &context).map_err(query_fault)
}
