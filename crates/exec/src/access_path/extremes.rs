//! Extremes of groups with respect to kinds of numbers: of equal numbers the plainest kind is shown.
//!
//! An index does not know kinds; it decodes a number as the plainest kind possible. So for each group one document with
//! the extreme is remembered. If that document has the number in this kind, the result is correct.

use model::DocumentNumber;
use partition::index::Columns;
use plan::query::{AggregateKind, Expression, Grouping};
use std::collections::HashMap;
use value::{Kind, decode_key, encode_undefined};

use super::covered::Values;

/// Approximate bytes of a group in addition to its codes.
const ENTRY_BYTES: usize = 96;

/// The extremes of one aggregate.
struct Extreme<'a> {
    argument: &'a Expression,
    column: usize,
    wants_last: bool,
    /// For each group the extreme code so far and a document that has it.
    found: HashMap<Vec<u8>, (Vec<u8>, DocumentNumber)>,
}

/// The extremes of all groups.
pub(super) struct Extremes<'a> {
    /// The columns of the group keys.
    keys: Vec<usize>,
    extremes: Vec<Extreme<'a>>,
}

/// A document to verify: the expression that is evaluated on it and the expected kind.
pub(super) struct Witness<'a> {
    pub(super) number: DocumentNumber,
    pub(super) argument: &'a Expression,
    pub(super) kind: Kind,
}

impl<'a> Extremes<'a> {
    /// For a grouping whose keys and extremes are plain values.
    pub(super) fn new(grouping: &'a Grouping, paths: &[Values<'_>]) -> Extremes<'a> {
        let column = |expression: &Expression| {
            let names = expression.document_path()?;
            paths.iter().position(|values| values.names == names)
        };
        let keys = grouping.keys.iter().filter_map(column).collect();
        let extremes = grouping.aggregates.iter().filter_map(|aggregate| {
            let wants_last = match aggregate.kind {
                AggregateKind::Min => false,
                AggregateKind::Max => true,
                AggregateKind::Count
                | AggregateKind::CountIf
                | AggregateKind::Sum
                | AggregateKind::Avg
                | AggregateKind::MakeList
                | AggregateKind::MakeSet => return None,
            };
            let argument = &aggregate.argument;
            Some(Extreme { argument, column: column(argument)?, wants_last, found: HashMap::new() })
        });
        Extremes { keys, extremes: extremes.collect() }
    }

    /// Adds the documents of a tuple, of which `number` is one; returns approximately how many more bytes are held.
    pub(super) fn add(&mut self, columns: &Columns, places: &[u32], number: DocumentNumber) -> usize {
        if self.extremes.is_empty() {
            return 0;
        }
        let mut bytes = 0;
        let mut group = Vec::new();
        for key in &self.keys {
            match code_at(columns, places, *key) {
                Some(code) => group.extend_from_slice(code),
                None => encode_undefined(&mut group),
            }
        }
        for extreme in &mut self.extremes {
            let Some(code) = code_at(columns, places, extreme.column) else {
                continue;
            };
            let wants_last = extreme.wants_last;
            let is_better =
                |known: &Vec<u8>| if wants_last { code > known.as_slice() } else { code < known.as_slice() };
            match extreme.found.get_mut(&group) {
                Some((known, _)) if !is_better(known) => {}
                Some(known) => *known = (code.to_vec(), number),
                None => {
                    bytes += group.len() + code.len() + ENTRY_BYTES;
                    extreme.found.insert(group.clone(), (code.to_vec(), number));
                }
            }
        }
        bytes
    }

    /// Documents whose extremes are numbers, ascending.
    pub(super) fn witnesses(&self) -> Vec<Witness<'a>> {
        let of_one = |extreme: &Extreme<'a>| {
            let argument = extreme.argument;
            let witness = move |(code, number): &(Vec<u8>, DocumentNumber)| {
                let kind = decode_key(code).ok()?.0.kind();
                kind.is_number().then_some(Witness { number: *number, argument, kind })
            };
            extreme.found.values().filter_map(witness).collect::<Vec<_>>()
        };
        let mut witnesses: Vec<Witness<'a>> = self.extremes.iter().flat_map(of_one).collect();
        witnesses.sort_by_key(|witness| witness.number);
        witnesses
    }
}

fn code_at<'c>(columns: &'c Columns, places: &[u32], column: usize) -> Option<&'c [u8]> {
    let place = places.get(column)?.checked_sub(1)?;
    columns.columns().get(column)?.codes.get(place as usize).map(|(code, _)| code.as_slice())
}
