//! Distinct results.
//!
//! Without an order the first results by hash are kept, and memory is limited by the page. With an order a result has
//! the position of its first row, and that row may come last: so all results are kept, within the budget. Results that
//! are equal but differ in kind, such as 1 and 1.0, are shown as in the first row by origin, or by order.

use eval::{Computed, Context, EvalFault, Holding, KeyHash, MatchedRow, hash_of};
use std::collections::btree_map::Entry as TreeEntry;
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeMap, HashMap};
use value::{Kind, Value, encode_key};

use super::ResultWindow;
use crate::found::{FoundRow, FoundRows, QueryRow, value_size};
use crate::position::{self, RowSource};
use crate::program::Layer;

/// Approximate bytes of a hash and its map entry.
const ENTRY_BYTES: usize = 64;

/// Codes whose hashes are cached: most rows have a result that was seen before.
const HASHES_REMEMBERED: usize = 4096;
/// Longest code whose hash is cached.
const CODE_REMEMBERED_BYTES: usize = 64;

/// A result that is kept.
#[derive(Debug)]
struct DistinctResult {
    /// The origin of the row, or its position in the order.
    place: Vec<u8>,
    value: Value,
    size: usize,
    weight: usize,
}

impl DistinctResult {
    fn new(place: Vec<u8>, value: Value) -> Result<DistinctResult, EvalFault> {
        let weight = eval::weigh(value.as_ref())? + place.len() + ENTRY_BYTES;
        Ok(DistinctResult { place, size: value_size(&value), value, weight })
    }
}

/// The first results by hash.
#[derive(Debug)]
pub(crate) struct Distinct {
    window: ResultWindow,
    results: BTreeMap<KeyHash, DistinctResult>,
    size: usize,
    has_left_out: bool,
    holding: Holding,
    code: Vec<u8>,
    hashes: HashMap<Vec<u8>, KeyHash>,
}

impl Distinct {
    pub(super) fn new(context: &Context<'_>, window: ResultWindow) -> Distinct {
        Distinct {
            window,
            results: BTreeMap::new(),
            size: 0,
            has_left_out: false,
            holding: context.budget.holding(),
            code: Vec::new(),
            hashes: HashMap::new(),
        }
    }

    /// The hash of the current code.
    fn hash(&mut self) -> KeyHash {
        if let Some(hash) = self.hashes.get(&self.code[..]) {
            return *hash;
        }
        let hash = hash_of(&self.code);
        if self.code.len() <= CODE_REMEMBERED_BYTES && self.hashes.len() < HASHES_REMEMBERED {
            self.hashes.insert(self.code.clone(), hash);
        }
        hash
    }

    pub(super) fn add(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let Some(result) = row.project(&layer.query.projection)? else {
            return Ok(());
        };
        self.code.clear();
        encode_key(result.as_ref(), &mut self.code);
        let hash = self.hash();
        if !self.wants(&hash) {
            return Ok(());
        }
        let mut origin = Vec::new();
        position::write_origin(row, source, &mut origin);
        if self.results.get(&hash).is_some_and(|known| known.place <= origin) {
            return Ok(());
        }
        let held = DistinctResult::new(origin, result.into_value())?;
        self.holding.add(held.weight)?;
        self.keep(hash, held);
        Ok(())
    }

    fn wants(&mut self, hash: &KeyHash) -> bool {
        if &hash[..] <= self.window.position() {
            return false;
        }
        let is_full = self.results.len() >= self.window.count || self.size >= self.window.bytes;
        let is_behind = is_full && self.results.last_key_value().is_none_or(|(last, _)| last < hash);
        self.has_left_out |= is_behind;
        !is_behind
    }

    fn keep(&mut self, hash: KeyHash, held: DistinctResult) {
        self.size = self.size.saturating_add(held.size);
        match self.results.entry(hash) {
            TreeEntry::Vacant(place) => {
                place.insert(held);
            }
            TreeEntry::Occupied(mut place) => {
                let loser = if held.place < place.get().place { place.insert(held) } else { held };
                self.size -= loser.size;
                self.holding.give_back(loser.weight);
            }
        }
        loop {
            let is_over = self.results.len() > self.window.count;
            let Some((_, last)) = self.results.last_key_value() else {
                return;
            };
            if !is_over && self.size - last.size < self.window.bytes {
                return;
            }
            if let Some((_, last)) = self.results.pop_last() {
                self.size -= last.size;
                self.holding.give_back(last.weight);
                self.has_left_out = true;
            }
        }
    }

    /// Origins of results that contain numbers.
    pub(super) fn number_origins(&self) -> Vec<&[u8]> {
        self.results.values().filter(|held| has_number(&held.value)).map(|held| &held.place[..]).collect()
    }

    /// Shows a result as its first row by origin has it.
    pub(super) fn show_as(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let Some(result) = row.project(&layer.query.projection)? else {
            return Ok(());
        };
        let mut origin = Vec::new();
        position::write_origin(row, source, &mut origin);
        let held = self.results.get_mut(&hash_of_value(&result));
        if let Some(held) = held.filter(|held| held.place == origin) {
            held.value = result.into_value();
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Distinct) {
        self.has_left_out |= other.has_left_out;
        self.holding.absorb(other.holding);
        for (hash, held) in other.results {
            if self.wants(&hash) {
                self.keep(hash, held);
            } else {
                self.holding.give_back(held.weight);
            }
        }
    }

    pub(super) fn finish(self) -> FoundRows {
        let row = |(hash, held): (KeyHash, DistinctResult)| FoundRow {
            position: hash.to_vec(),
            row: QueryRow::Value(held.value),
            size: held.size,
        };
        let rows: Vec<FoundRow> = self.results.into_iter().map(row).collect();
        let reached = rows.last().map(|row| row.position.clone()).unwrap_or_default();
        FoundRows { rows, has_more: self.has_left_out, reached, holding: self.holding }
    }
}

fn hash_of_value(value: &Computed<'_>) -> KeyHash {
    let mut code = Vec::new();
    encode_key(value.as_ref(), &mut code);
    hash_of(&code)
}

/// Whether a result is a number or may contain one.
fn has_number(value: &Value) -> bool {
    let may_hold = |value: &Value| {
        let kind = value.kind();
        kind.is_number() || kind == Kind::Array || kind == Kind::Object
    };
    if let Value::Object(members) = value {
        return members.iter().any(|(_, member)| may_hold(member));
    }
    may_hold(value)
}

/// All results with the positions of their first rows.
#[derive(Debug)]
pub(crate) struct DistinctOrdered {
    window: ResultWindow,
    results: HashMap<KeyHash, DistinctResult>,
    holding: Holding,
    code: Vec<u8>,
}

impl DistinctOrdered {
    pub(super) fn new(context: &Context<'_>, window: ResultWindow) -> DistinctOrdered {
        DistinctOrdered {
            window,
            results: HashMap::new(),
            holding: context.budget.holding(),
            code: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let Some(result) = row.project(&layer.query.projection)? else {
            return Ok(());
        };
        self.code.clear();
        encode_key(result.as_ref(), &mut self.code);
        let hash = hash_of(&self.code);
        let mut place = Vec::new();
        position::write_row(&layer.query.order, row, source, &mut place)?;
        if self.results.get(&hash).is_some_and(|known| known.place <= place) {
            return Ok(());
        }
        // For results of an earlier page only the position is needed.
        let is_given = &place[..] <= self.window.position();
        let value = if is_given { Value::Null } else { result.into_value() };
        let held = DistinctResult::new(place, value)?;
        self.holding.add(held.weight)?;
        self.keep(hash, held);
        Ok(())
    }

    fn keep(&mut self, hash: KeyHash, held: DistinctResult) {
        match self.results.entry(hash) {
            MapEntry::Vacant(place) => {
                place.insert(held);
            }
            MapEntry::Occupied(mut place) => {
                let loser = if held.place < place.get().place { place.insert(held) } else { held };
                self.holding.give_back(loser.weight);
            }
        }
    }

    /// Positions of results that contain numbers.
    pub(super) fn number_places(&self) -> Vec<&[u8]> {
        self.results.values().filter(|held| has_number(&held.value)).map(|held| &held.place[..]).collect()
    }

    /// Shows a result as its first row in the order has it.
    pub(super) fn show_as(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let Some(result) = row.project(&layer.query.projection)? else {
            return Ok(());
        };
        let mut place = Vec::new();
        position::write_row(&layer.query.order, row, source, &mut place)?;
        let held = self.results.get_mut(&hash_of_value(&result));
        if let Some(held) = held.filter(|held| held.place == place) {
            held.value = result.into_value();
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: DistinctOrdered) {
        self.holding.absorb(other.holding);
        for (hash, held) in other.results {
            self.keep(hash, held);
        }
    }

    pub(super) fn finish(self) -> FoundRows {
        let after = self.window.position();
        let wanted = self.results.into_values().filter(|held| &held.place[..] > after);
        let row = |held: DistinctResult| FoundRow {
            position: held.place,
            row: QueryRow::Value(held.value),
            size: held.size,
        };
        let mut rows: Vec<FoundRow> = wanted.map(row).collect();
        rows.sort_by(|left, right| left.position.cmp(&right.position));
        let has_more = rows.len() > self.window.count;
        rows.truncate(self.window.count);
        let reached = rows.last().map(|row| row.position.clone()).unwrap_or_default();
        FoundRows { rows, has_more, reached, holding: self.holding }
    }
}
