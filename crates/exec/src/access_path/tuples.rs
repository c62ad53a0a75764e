//! GROUP BY and DISTINCT, from the values that an index has at a few paths.
//!
//! The postings of each piece of the index are transposed into per-document tuples of values. Documents with the same
//! tuple are processed together, as one document that has only these values.

use model::{DocumentNumber, Fault};
use partition::index::{Columns, IndexPath};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher;
use value::{Value, decode_key};

use super::covered::Values;
use super::extremes::{Extremes, Witness};
use super::values::{Ends, IndexGrouping, is_out_of_sight};
use crate::collect::Collector;
use crate::fault::query_fault;
use crate::found::QueryMetrics;

/// Documents with the same tuple: their number, the first and the last.
struct TupleCount {
    count: u64,
    first: DocumentNumber,
    last: DocumentNumber,
}

/// The meaning of an entry in a column.
enum ColumnEntry {
    Missing,
    Value(Value),
    /// The documents must be read.
    Apart,
}

/// Documents per distinct tuple below which tuples are not worthwhile.
const TUPLES_SHARE: u64 = 2;
/// Tuples that are always built, however few documents there are.
const TUPLES_MIN: u64 = 64;
/// Tuples between two checks of the clock and yields to other tasks.
const TUPLES_AT_A_TIME: usize = 1024;
/// Steps for each document whose tuple is built.
const TURN_STEPS: u64 = 2;
/// Approximate bytes of a tuple.
const TUPLE_BYTES: usize = 96;
/// Approximate bytes of the hash of a tuple.
const HASH_BYTES: usize = 16;

impl IndexGrouping<'_> {
    /// Adds the rows of the part to an empty collector; returns whether that was cheaper than reading all documents.
    pub(crate) async fn run_tuples(
        &self,
        paths: &[Values<'_>],
        collector: &mut Collector,
        metrics: &mut QueryMetrics,
    ) -> Result<bool, Fault> {
        let index_paths: Vec<IndexPath> = paths.iter().map(|values| values.path.clone()).collect();
        let tuples_max = (self.counting.count / TUPLES_SHARE).max(TUPLES_MIN);
        let is_plain = paths.iter().all(|values| values.is_plain);
        let grouping = self.layer.query.grouping.as_ref().filter(|_| is_plain);
        let mut extremes = grouping.map(|grouping| Extremes::new(grouping, paths));
        let mut held = self.context.budget.holding();
        let mut apart = Vec::new();
        let mut bounds = TupleBounds { max: tuples_max, left: tuples_max, are_counted: false };
        // The postings of a piece are transposed without interruption.
        self.task.meter.expect(self.counting.count.saturating_mul(TURN_STEPS));
        if self.task.meter.is_due() {
            self.task.yield_now().await?;
        }
        for piece in 0..self.counting.index.piece_count() {
            let within = self.counting.within.as_ref();
            let Some(columns) = self.counting.index.columns(piece, &index_paths, within).await? else {
                break;
            };
            let mut holding = self.context.budget.holding();
            holding.add(columns.size_bytes()).map_err(query_fault)?;
            let known = known(paths, &columns);
            let turned = (&columns, &known[..]);
            let Some(tuples) = self.piece_tuples(paths, turned, &mut bounds, &mut apart).await? else {
                return Ok(false);
            };
            holding.add(tuples.len() * TUPLE_BYTES).map_err(query_fault)?;
            for (done, (places, alike)) in tuples.into_iter().enumerate() {
                let document = document(paths, &known, &places);
                let ends: Ends = Some((alike.first, alike.last));
                if let Some(extremes) = &mut extremes {
                    held.add(extremes.add(&columns, &places, alike.first)).map_err(query_fault)?;
                }
                self.add(&document, ends, alike.count, collector)?;
                if done % TUPLES_AT_A_TIME == TUPLES_AT_A_TIME - 1 || self.task.meter.is_due() {
                    self.context.check_time().map_err(query_fault)?;
                    self.task.yield_now().await?;
                }
            }
            self.context.check_time().map_err(query_fault)?;
            self.task.yield_now().await?;
        }
        let witnesses = extremes.map(|extremes| extremes.witnesses()).unwrap_or_default();
        if witnesses.len() as u64 > self.apart_max() || !self.agree(&witnesses, metrics).await? {
            return Ok(false);
        }
        self.finish(&apart, collector, metrics).await?;
        Ok(true)
    }

    /// The distinct tuples of a piece; `None` if those of all pieces are too many, or if too many documents must be
    /// read.
    async fn piece_tuples(
        &self,
        paths: &[Values<'_>],
        (columns, known): (&Columns, &[Vec<ColumnEntry>]),
        bounds: &mut TupleBounds,
        apart: &mut Vec<DocumentNumber>,
    ) -> Result<Option<HashMap<Vec<u32>, TupleCount>>, Fault> {
        let apart_before = apart.len();
        let mut found = tuples(columns, known, bounds.left, self.apart_max(), apart);
        let is_only_piece = self.counting.index.piece_count() == 1;
        // Pieces may share tuples, so all of them are counted before the decision.
        if matches!(found, Err(TooMany::Tuples)) && !bounds.are_counted && !is_only_piece {
            if self.has_more_tuples(paths, bounds.max).await? {
                return Ok(None);
            }
            *bounds = TupleBounds { left: u64::MAX, are_counted: true, ..*bounds };
            apart.truncate(apart_before);
            found = tuples(columns, known, bounds.left, self.apart_max(), apart);
        }
        let Ok(found) = found else {
            return Ok(None);
        };
        if !bounds.are_counted {
            bounds.left -= found.len() as u64;
        }
        Ok(Some(found))
    }

    /// Whether there are more than `max` distinct tuples, each counted once over all pieces: the answer must not depend
    /// on the distribution of documents over pieces.
    async fn has_more_tuples(&self, paths: &[Values<'_>], max: u64) -> Result<bool, Fault> {
        let index_paths: Vec<IndexPath> = paths.iter().map(|values| values.path.clone()).collect();
        let mut holding = self.context.budget.holding();
        let mut hashes = HashSet::new();
        for piece in 0..self.counting.index.piece_count() {
            let within = self.counting.within.as_ref();
            let Some(columns) = self.counting.index.columns(piece, &index_paths, within).await? else {
                break;
            };
            let known = known(paths, &columns);
            let before = hashes.len();
            columns.for_each(|_, places| {
                if !is_apart(&known, places) {
                    hashes.insert(hash_of(&columns, places));
                }
                hashes.len() as u64 <= max
            });
            if hashes.len() as u64 > max {
                return Ok(true);
            }
            holding.add((hashes.len() - before) * HASH_BYTES).map_err(query_fault)?;
            self.context.check_time().map_err(query_fault)?;
            self.task.yield_now().await?;
        }
        Ok(false)
    }

    /// Whether the documents have the expected kinds.
    async fn agree(&self, witnesses: &[Witness<'_>], metrics: &mut QueryMetrics) -> Result<bool, Fault> {
        let mut numbers: Vec<DocumentNumber> = witnesses.iter().map(|witness| witness.number).collect();
        numbers.dedup();
        let mut agreed = 0;
        self.read(&numbers, metrics, |row, source| {
            let number = source.stored.map(|stored| stored.number);
            let first = witnesses.partition_point(|witness| Some(witness.number) < number);
            let alike = witnesses[first..].iter().take_while(|witness| Some(witness.number) == number);
            for witness in alike {
                let value = row.evaluate(witness.argument)?;
                agreed += usize::from(value.is_some_and(|value| value.kind() == witness.kind));
            }
            Ok(())
        })
        .await?;
        Ok(agreed == witnesses.len())
    }
}

/// The meaning of the entries of each column.
fn known(paths: &[Values<'_>], columns: &Columns) -> Vec<Vec<ColumnEntry>> {
    let pairs = paths.iter().zip(columns.columns());
    let known = pairs.map(|(values, column)| {
        let codes = column.codes.iter().map(|(code, is_cut)| match decode_key(code) {
            Ok((value, _)) if !is_out_of_sight(values, code, *is_cut) => ColumnEntry::Value(value),
            Ok(_) | Err(_) => ColumnEntry::Apart,
        });
        std::iter::once(ColumnEntry::Missing).chain(codes).collect()
    });
    known.collect()
}

/// Limits of the number of distinct tuples.
#[derive(Clone, Copy)]
struct TupleBounds {
    max: u64,
    /// Tuples that the remaining pieces may have, if no tuple is in two pieces.
    left: u64,
    /// Whether the tuples of all pieces were counted together and are within the limit.
    are_counted: bool,
}

/// Which limit is exceeded.
enum TooMany {
    /// Tuples of this piece and the previous ones.
    Tuples,
    /// Documents that must be read.
    Apart,
}

/// The distinct tuples of a piece, unless these or the documents that must be read are too many.
fn tuples(
    columns: &Columns,
    known: &[Vec<ColumnEntry>],
    tuples_max: u64,
    apart_max: u64,
    apart: &mut Vec<DocumentNumber>,
) -> Result<HashMap<Vec<u32>, TupleCount>, TooMany> {
    let mut tuples: HashMap<Vec<u32>, TupleCount> = HashMap::new();
    let mut too_many = None;
    columns.for_each(|number, places| {
        if let Some(alike) = tuples.get_mut(places) {
            alike.count += 1;
            alike.last = number;
        } else if is_apart(known, places) {
            apart.push(number);
        } else {
            tuples.insert(places.to_vec(), TupleCount { count: 1, first: number, last: number });
        }
        if tuples.len() as u64 > tuples_max {
            too_many = Some(TooMany::Tuples);
        } else if apart.len() as u64 > apart_max {
            too_many = Some(TooMany::Apart);
        }
        too_many.is_none()
    });
    too_many.map_or(Ok(tuples), Err)
}

/// Whether a document with the values of these entries must be read.
fn is_apart(known: &[Vec<ColumnEntry>], places: &[u32]) -> bool {
    let mut pairs = known.iter().zip(places);
    pairs.any(|(known, place)| {
        !matches!(known.get(*place as usize), Some(ColumnEntry::Missing | ColumnEntry::Value(_)))
    })
}

/// A hash of the values of these entries, the same in every piece.
fn hash_of(columns: &Columns, places: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (column, place) in columns.columns().iter().zip(places) {
        let code = place.checked_sub(1).and_then(|place| column.codes.get(place as usize));
        let code = code.map_or(&[][..], |(code, _)| code);
        hasher.write_usize(code.len());
        hasher.write(code);
    }
    hasher.finish()
}

/// A document with the values of a tuple. A path below another has no value where that one has a complete value, so
/// they never conflict.
fn document(paths: &[Values<'_>], known: &[Vec<ColumnEntry>], places: &[u32]) -> Value {
    let mut document = Value::Object(Vec::new());
    for ((values, known), place) in paths.iter().zip(known).zip(places) {
        if let Some(ColumnEntry::Value(value)) = known.get(*place as usize) {
            insert(&mut document, &values.names, value);
        }
    }
    document
}

fn insert(mut target: &mut Value, names: &[&str], value: &Value) {
    for name in names {
        let Value::Object(members) = target else { return };
        let place = members.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            members.push(((*name).to_owned(), Value::Object(Vec::new())));
            members.len() - 1
        });
        target = &mut members[place].1;
    }
    *target = value.clone();
}
