//! Aggregates over all rows, from an index alone.
//!
//! Sums add every value once per document that has it. Extremes are the first value in their direction; of equal
//! numbers they show the plainest kind, which only the documents know, so some of these are read.

use eval::{Context, EvalFault};
use kv::Direction;
use model::{DocumentNumber, Fault};
use partition::index::{Counted, Detail, IndexPath, Lookup};
use plan::StoredDocument;
use plan::query::Expression;
use std::ops::{Bound, ControlFlow};
use value::{Kind, Value, decode_key, key_kind_bytes};

use super::counting::Counting;
use super::covered::IndexFold;
use crate::collect::Collector;
use crate::fault::query_fault;
use crate::found::QueryMetrics;
use crate::program::{Layer, RemainingCheck};
use crate::task::{OpenPart, Task};

/// Maximum number of documents that are read to find the kinds of an extreme.
const KINDS_READ_MAX: usize = 256;
/// Values between two yields to other tasks.
const VALUES_AT_A_TIME: usize = 1024;
/// Steps that are counted for a value.
const VALUE_STEPS: usize = 8;

/// What is needed to compute the aggregates of one part.
pub(crate) struct Folding<'a> {
    pub(crate) task: &'a Task,
    pub(crate) layer: &'a Layer,
    pub(crate) context: &'a Context<'a>,
    pub(crate) open: &'a OpenPart,
    pub(crate) counting: &'a Counting<'a>,
}

impl Folding<'_> {
    /// Adds the aggregates of the part to an empty collector; returns whether the index was sufficient.
    pub(crate) async fn run(
        &self,
        folds: &[IndexFold],
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        for (position, fold) in folds.iter().enumerate() {
            let is_known = match fold {
                IndexFold::All => {
                    add(collector, position, Some(&Value::Bool(true)), self.counting.count);
                    true
                }
                IndexFold::Present(path) => {
                    self.count(Lookup::Present(path.clone()), position, collector).await?
                }
                IndexFold::Matching(known) => self.count(known.lookup.clone(), position, collector).await?,
                IndexFold::Sum(path) => self.sum(path, position, collector, metrics).await?,
                IndexFold::Extreme(path, direction) => {
                    self.extreme(path, *direction, position, collector, metrics).await?
                }
            };
            if !is_known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn count(&self, lookup: Lookup, position: usize, collector: &mut Collector) -> Result<bool, Fault> {
        let Some(documents) = self.counting.documents(Some(lookup)).await? else {
            return Ok(false);
        };
        add(collector, position, Some(&Value::Bool(true)), documents.count());
        Ok(true)
    }

    async fn sum(
        &self,
        path: &IndexPath,
        position: usize,
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        let within = self.counting.within.as_ref();
        let mut walk = self.counting.index.walk(path, Direction::Forward, None, within).await?;
        let mut seen = 0_usize;
        while let Some(counted) = walk.next_counted(|_, _| Detail::Count).await? {
            match number_of(&counted) {
                Some(number) => add(collector, position, Some(&number), counted.count),
                // Whatever the value is, the sum is undefined.
                None => {
                    add(collector, position, Some(&Value::Null), 1);
                    return Ok(true);
                }
            }
            seen += 1;
            self.context.charge(VALUE_STEPS).map_err(query_fault)?;
            if seen.is_multiple_of(VALUES_AT_A_TIME) || self.task.meter.is_due() {
                self.task.yield_now().await?;
            }
        }
        metrics.count_terms(self.open, seen);
        Ok(true)
    }

    async fn extreme(
        &self,
        path: &IndexPath,
        direction: Direction,
        position: usize,
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        // An array or object among the values makes the extreme undefined.
        let low = Bound::Included(vec![*key_kind_bytes(Kind::Array).start()]);
        let high = Bound::Excluded(vec![key_kind_bytes(Kind::Object).end() + 1]);
        let lookup = Lookup::Range { path: path.clone(), low, high };
        match self.counting.documents(Some(lookup)).await? {
            None => return Ok(false),
            Some(containers) if containers.count() > 0 => {
                add(collector, position, Some(&Value::Array(Vec::new())), 1);
                return Ok(true);
            }
            Some(_) => {}
        }
        let first = |code: &[u8], is_cut: bool| {
            let is_number = code.first().is_some_and(|byte| key_kind_bytes(Kind::Int64).contains(byte));
            match (is_cut, is_number) {
                (true, _) => Detail::Numbers,
                (false, true) => Detail::Ends,
                (false, false) => Detail::Count,
            }
        };
        let Some(counted) = self.first(path, direction, first).await? else {
            return Ok(true);
        };
        let value = decode_key(&counted.code).ok().map(|(value, _)| value);
        if let (None, Some(value), false) = (counted.ends, &value, counted.is_truncated) {
            add(collector, position, Some(value), 1);
            return Ok(true);
        }
        if let (Some((number, _)), Some(value)) = (counted.ends, &value) {
            let kinds = self.read(&[number], position, collector, metrics).await?;
            // No equal number is plainer than the one that a code decodes to.
            if kinds.contains(&value.kind()) {
                return Ok(true);
            }
        }
        let Some(counted) = self.first(path, direction, |_, _| Detail::Numbers).await? else {
            return Ok(true);
        };
        if counted.numbers.len() > KINDS_READ_MAX {
            return Ok(false);
        }
        self.read(&counted.numbers, position, collector, metrics).await?;
        Ok(true)
    }

    /// The first value in a direction.
    async fn first(
        &self,
        path: &IndexPath,
        direction: Direction,
        detail: impl Fn(&[u8], bool) -> Detail,
    ) -> Result<Option<Counted>, Fault> {
        let within = self.counting.within.as_ref();
        let mut walk = self.counting.index.walk(path, direction, None, within).await?;
        walk.next_counted(detail).await
    }

    /// Adds the values of documents; returns their kinds.
    async fn read(
        &self,
        numbers: &[DocumentNumber],
        position: usize,
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<Vec<Kind>, Fault> {
        let begun = std::time::Instant::now();
        let documents = self.open.view.by_numbers(numbers, &self.open.part.keys).await?;
        metrics.documents_by_index += documents.len() as u64;
        metrics.count_read(self.open, &documents, begun.elapsed());
        let aggregates = self.layer.query.grouping.iter().flat_map(|grouping| &grouping.aggregates);
        let Some(aggregate) = aggregates.into_iter().nth(position) else {
            return Ok(Vec::new());
        };
        let mut kinds = Vec::new();
        for stored in &documents {
            let value = self.evaluate(stored, &aggregate.argument)?;
            kinds.extend(value.as_ref().map(Value::kind));
            if let Some(accumulator) = collector.whole(position) {
                accumulator.add(value.as_ref().map(Value::as_ref));
            }
        }
        Ok(kinds)
    }

    fn evaluate(&self, stored: &StoredDocument, expression: &Expression) -> Result<Option<Value>, Fault> {
        let mut found = None;
        let (system, document) = (&self.task.program.system, (stored, RemainingCheck::Filter));
        self.layer.for_each_match(self.context, system, document, &mut |row| {
            found = row.evaluate(expression)?.map(eval::Computed::into_value);
            Ok::<_, EvalFault>(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

fn number_of(counted: &Counted) -> Option<Value> {
    if counted.is_truncated {
        return None;
    }
    let (value, _) = decode_key(&counted.code).ok()?;
    value.kind().is_number().then_some(value)
}

fn add(collector: &mut Collector, position: usize, value: Option<&Value>, times: u64) {
    if let Some(accumulator) = collector.whole(position) {
        accumulator.add_times(value.map(Value::as_ref), times);
    }
}
