//! GROUP BY and DISTINCT, from the values that an index has at one path.
//!
//! Each value is processed as a document that has only this value, once per document with it. If the index does not
//! know a value completely (arrays, objects, truncated values), its documents are read. An index does not know the kind
//! of a number either: at the end the first document of each result with a number is read, and the result is shown with
//! its kind.

use eval::{Context, MatchedRow, for_each_row};
use kv::Direction;
use model::{DocumentNumber, Fault};
use partition::index::{Detail, Lookup};
use plan::StoredDocument;
use std::ops::ControlFlow;
use std::time::Instant;
use value::{Kind, Value, decode_key, key_kind_bytes};

use super::choose::FETCH_COST;
use super::counting::Counting;
use super::covered::Values;
use crate::collect::Collector;
use crate::fault::query_fault;
use crate::found::QueryMetrics;
use crate::position::RowSource;
use crate::program::{Layer, RemainingCheck};
use crate::task::{OpenPart, Task};

/// Values between two yields to other tasks.
const VALUES_AT_A_TIME: usize = 1024;
/// Steps for a value, in addition to its rows.
const VALUE_STEPS: usize = 4;
/// Documents that are fetched by number in one call.
const NUMBERS_AT_A_TIME: usize = 64;
/// Documents that may be read in place of their values, even if the part has few documents.
const APART_MIN: u64 = 16;

/// What is needed to compute the results of one part.
pub(crate) struct IndexGrouping<'a> {
    pub(crate) task: &'a Task,
    pub(crate) layer: &'a Layer,
    pub(crate) context: &'a Context<'a>,
    pub(crate) open: &'a OpenPart,
    pub(crate) counting: &'a Counting<'a>,
}

/// The first and the last document with a value.
pub(super) type Ends = Option<(DocumentNumber, DocumentNumber)>;

impl IndexGrouping<'_> {
    /// Adds the rows of the part to an empty collector; returns whether that was cheaper than reading all documents.
    pub(crate) async fn run(
        &self,
        values: &Values<'_>,
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        let index = self.counting.index;
        let within = self.counting.within.as_ref();
        let apart_max = self.apart_max();
        let mut walk = index.walk(&values.path, Direction::Forward, None, within).await?;
        let mut apart = Vec::new();
        let (mut seen, mut left) = (0_usize, self.counting.count);
        while let Some(counted) = walk.next_counted(|code, is_cut| detail(values, code, is_cut)).await? {
            left = left.saturating_sub(counted.count);
            seen += 1;
            self.context.charge(VALUE_STEPS).map_err(query_fault)?;
            if seen.is_multiple_of(VALUES_AT_A_TIME) || self.task.meter.is_due() {
                self.task.yield_now().await?;
            }
            if !counted.numbers.is_empty() {
                apart.extend(counted.numbers);
                if apart.len() as u64 > apart_max {
                    return Ok(false);
                }
                continue;
            }
            let value =
                decode_key(&counted.code).map_err(|_| Fault::Internal("code of a term".to_owned()))?;
            let document = nested(&values.names, value.0);
            self.add(&document, counted.ends, counted.count, collector)?;
        }
        metrics.count_terms(self.open, seen);
        if left > 0 {
            let ends = if values.needs_ends { self.valueless_ends(values).await? } else { None };
            self.add(&Value::Object(Vec::new()), ends, left, collector)?;
        }
        self.finish(&apart, collector, metrics).await?;
        Ok(true)
    }

    /// Maximum number of documents that are read in place of their values; beyond it the other way is cheaper.
    pub(super) fn apart_max(&self) -> u64 {
        (self.counting.count / FETCH_COST).max(APART_MIN)
    }

    /// Adds documents whose values are not completely known, and shows results with the kinds of their first documents.
    pub(super) async fn finish(
        &self,
        apart: &[DocumentNumber],
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<(), Fault> {
        self.read(apart, metrics, |row, source| collector.add(self.layer, row, source)).await?;
        let shown_by = collector.shown_by(self.layer);
        self.read(&shown_by, metrics, |row, source| collector.show_as(self.layer, row, source)).await
    }

    async fn valueless_ends(&self, values: &Values<'_>) -> Result<Ends, Fault> {
        let missing = Lookup::Without(Box::new(Lookup::Present(values.path.clone())));
        let documents = self.counting.documents(Some(missing)).await?;
        Ok(documents.and_then(|documents| documents.iter().next().zip(documents.iter_back_from(None).next())))
    }

    /// Adds the row of a document that represents several; the index has answered the filter.
    pub(super) fn add(
        &self,
        document: &Value,
        ends: Ends,
        times: u64,
        collector: &mut Collector,
    ) -> Result<(), Fault> {
        let tie = self.tie(ends);
        let source = RowSource { tie: &tie, stored: None, keys: None };
        let root = Some(document.as_ref());
        for_each_row(self.context, &self.layer.query, root, None, &mut |row| {
            collector.add_times(self.layer, row, source, times)?;
            Ok(ControlFlow::Continue(()))
        })
        .map(drop)
        .map_err(query_fault)
    }

    /// The tie of the first document of those with the value; in a descending order that is the last one.
    fn tie(&self, ends: Ends) -> [u8; 8] {
        let query = &self.layer.query;
        let is_backwards = query.grouping.is_none() && query.order.turns_ties();
        match ends {
            None => [0; 8],
            Some((_, last)) if is_backwards => (!last.raw()).to_be_bytes(),
            Some((first, _)) => first.raw().to_be_bytes(),
        }
    }

    /// Reads documents and passes on their rows.
    pub(super) async fn read(
        &self,
        numbers: &[DocumentNumber],
        metrics: &mut QueryMetrics,
        mut take: impl FnMut(MatchedRow<'_>, RowSource<'_>) -> Result<(), eval::EvalFault>,
    ) -> Result<(), Fault> {
        for some in numbers.chunks(NUMBERS_AT_A_TIME) {
            self.context.check_time().map_err(query_fault)?;
            let begun = Instant::now();
            let documents: Vec<StoredDocument> =
                self.open.view.by_numbers(some, &self.open.part.keys).await?;
            metrics.documents_by_index += documents.len() as u64;
            metrics.count_read(self.open, &documents, begun.elapsed());
            for stored in &documents {
                let tie = stored.number.raw().to_be_bytes();
                let source = RowSource { tie: &tie, stored: Some(stored), keys: None };
                let (system, document) = (&self.task.program.system, (stored, RemainingCheck::Filter));
                self.layer.for_each_match(self.context, system, document, &mut |row| {
                    take(row, source)?;
                    Ok(ControlFlow::Continue(()))
                })?;
                if self.task.meter.is_due() {
                    self.task.yield_now().await?;
                }
            }
            self.task.yield_now().await?;
        }
        Ok(())
    }
}

fn detail(values: &Values<'_>, code: &[u8], is_cut: bool) -> Detail {
    match (is_out_of_sight(values, code, is_cut), is_number(code) || values.needs_ends) {
        (true, _) => Detail::Numbers,
        (false, true) => Detail::Ends,
        (false, false) => Detail::Count,
    }
}

fn is_number(code: &[u8]) -> bool {
    code.first().is_some_and(|byte| key_kind_bytes(Kind::Int64).contains(byte))
}

/// Whether documents with a value must be read, because its code is not sufficient.
pub(super) fn is_out_of_sight(values: &Values<'_>, code: &[u8], is_cut: bool) -> bool {
    is_cut || is_number(code) && !values.is_plain
}

/// A document with one value.
fn nested(names: &[&str], value: Value) -> Value {
    names.iter().rev().fold(value, |inner, name| Value::Object(vec![((*name).to_owned(), inner)]))
}
