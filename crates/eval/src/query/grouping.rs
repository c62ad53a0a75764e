//! Grouping of rows.
//!
//! The result depends neither on the order of rows nor on how they were distributed over merged instances: aggregates
//! are exact, and of keys that are equal but differ in kind, such as 1 and 1.0, those of the first row by origin are
//! kept.

use std::collections::{BinaryHeap, HashMap};

use plan::query::Grouping;
use value::{Kind, Value, ValueRef, encode_key, encode_undefined};

use super::hash::{KeyHash, hash_of};
use super::rows::MatchedRow;
use crate::budget::{Holding, allocated, table_bytes, weigh_inside};
use crate::{Accumulator, Computed, Context, EvalFault, GroupRow};

/// Which groups are kept: the first by hash after a given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptGroups {
    /// Groups up to this hash are dropped.
    pub after: Option<KeyHash>,
    /// Most groups.
    pub count: usize,
}

/// Groups by the key code of their keys.
#[derive(Debug)]
pub struct Groups {
    holding: Holding,
    groups: HashMap<Vec<u8>, Group>,
    /// Counted bytes of the two collections.
    room: usize,
    kept: Option<KeptGroups>,
    /// The hashes of the groups in a max-heap; only used if not all groups are kept.
    largest: BinaryHeap<(KeyHash, Vec<u8>)>,
    has_left_out: bool,
    code: Vec<u8>,
}

#[derive(Debug)]
struct Group {
    keys: Vec<Option<Value>>,
    accumulators: Vec<Accumulator>,
    /// Origin of the first row.
    origin: Vec<u8>,
    /// Bytes charged to the budget.
    weight: usize,
}

impl Groups {
    /// Creates an empty set of groups. Without `kept` all groups are kept.
    pub fn new(grouping: &Grouping, context: &Context<'_>, kept: Option<KeptGroups>) -> Groups {
        let mut groups = Groups {
            holding: context.budget.holding(),
            groups: HashMap::new(),
            room: 0,
            kept: kept.filter(|_| !grouping.keys.is_empty()),
            largest: BinaryHeap::new(),
            has_left_out: false,
            code: Vec::new(),
        };
        if grouping.keys.is_empty() {
            // Aggregates without keys have a result even without rows.
            let accumulators = fresh(grouping);
            let group = Group { keys: Vec::new(), accumulators, origin: Vec::new(), weight: 0 };
            groups.groups.insert(Vec::new(), group);
        }
        groups
    }

    /// Adds a row to its group. `origin` is the position of the row among all rows.
    pub fn add(&mut self, grouping: &Grouping, row: MatchedRow<'_>, origin: &[u8]) -> Result<(), EvalFault> {
        self.fold(grouping, row, origin, |accumulator, value| accumulator.add_row(value, origin))
    }

    /// Adds `times` equal rows as stored in an index, see [`Accumulator::add_times`].
    pub fn add_times(
        &mut self,
        grouping: &Grouping,
        row: MatchedRow<'_>,
        origin: &[u8],
        times: u64,
    ) -> Result<(), EvalFault> {
        self.fold(grouping, row, origin, |accumulator, value| accumulator.add_times(value, times))
    }

    #[inline]
    fn fold(
        &mut self,
        grouping: &Grouping,
        row: MatchedRow<'_>,
        origin: &[u8],
        add: impl Fn(&mut Accumulator, Option<ValueRef<'_>>),
    ) -> Result<(), EvalFault> {
        let keys = self.evaluate_keys(grouping, row)?;
        if !self.groups.contains_key(&self.code[..]) && !self.begin(grouping, &keys, origin)? {
            return Ok(());
        }
        let Some(group) = self.groups.get_mut(&self.code[..]) else {
            return Ok(());
        };
        if origin < &group.origin[..] {
            group.keys = keys.into_iter().map(|key| key.map(Computed::into_value)).collect();
            group.origin = origin.to_vec();
        }
        for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&grouping.aggregates) {
            let argument = row.evaluate(&aggregate.argument)?;
            let before = accumulator.weight();
            add(accumulator, argument.as_ref().map(Computed::as_ref));
            let more = accumulator.weight().saturating_sub(before);
            group.weight += more;
            self.holding.add(more)?;
        }
        Ok(())
    }

    /// The accumulator of an aggregate without keys.
    pub fn whole(&mut self, position: usize) -> Option<&mut Accumulator> {
        self.groups.get_mut(&[][..])?.accumulators.get_mut(position)
    }

    /// Whether some aggregate depends on number kinds that an index does not store.
    pub fn is_in_doubt(&self) -> bool {
        self.groups.values().flat_map(|group| &group.accumulators).any(Accumulator::is_in_doubt)
    }

    /// Origins of groups with numbers in their keys, whose kinds an index does not store.
    pub fn number_origins(&self) -> Vec<&[u8]> {
        let may_hold = |kind: Kind| kind.is_number() || kind == Kind::Array || kind == Kind::Object;
        let groups =
            self.groups.values().filter(|group| group.keys.iter().flatten().any(|key| may_hold(key.kind())));
        groups.map(|group| &group.origin[..]).collect()
    }

    /// Replaces the keys of a group by those of its first row.
    pub fn show_as(
        &mut self,
        grouping: &Grouping,
        row: MatchedRow<'_>,
        origin: &[u8],
    ) -> Result<(), EvalFault> {
        let keys = self.evaluate_keys(grouping, row)?;
        if let Some(group) = self.groups.get_mut(&self.code[..]).filter(|group| group.origin == origin) {
            group.keys = keys.into_iter().map(|key| key.map(Computed::into_value)).collect();
        }
        Ok(())
    }

    /// Evaluates the keys of a row and writes their key code to `self.code`.
    fn evaluate_keys<'a>(
        &mut self,
        grouping: &'a Grouping,
        row: MatchedRow<'a>,
    ) -> Result<Vec<Option<Computed<'a>>>, EvalFault> {
        let mut keys = Vec::with_capacity(grouping.keys.len());
        self.code.clear();
        for key in &grouping.keys {
            let key = row.evaluate(key)?;
            match &key {
                Some(key) => encode_key(key.as_ref(), &mut self.code),
                None => encode_undefined(&mut self.code),
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Creates the group of the current key code, if it is kept.
    fn begin(
        &mut self,
        grouping: &Grouping,
        keys: &[Option<Computed<'_>>],
        origin: &[u8],
    ) -> Result<bool, EvalFault> {
        if !self.makes_room() {
            return Ok(false);
        }
        let codes = if self.kept.is_some() { 2 } else { 1 };
        let mut weight = codes * allocated(self.code.len())
            + allocated(origin.len())
            + allocated(keys.len() * size_of::<Option<Value>>());
        for key in keys.iter().flatten() {
            weight += weigh_inside(key.as_ref())?;
        }
        let accumulators = fresh(grouping);
        weight += accumulators.iter().map(Accumulator::weight).sum::<usize>();
        self.holding.add(weight)?;
        let keys = keys.iter().map(|key| key.as_ref().map(|key| key.as_ref().to_value())).collect();
        let group = Group { keys, accumulators, origin: origin.to_vec(), weight };
        self.groups.insert(self.code.clone(), group);
        let room = table_bytes::<(Vec<u8>, Group)>(self.groups.capacity())
            + allocated(self.largest.capacity() * size_of::<(KeyHash, Vec<u8>)>());
        self.holding.resize(&mut self.room, room)?;
        Ok(true)
    }

    /// Whether the group of the current key code is kept; if so, one above the count is dropped.
    ///
    /// A dropped group is never needed again: enough smaller hashes exist, and they stay.
    fn makes_room(&mut self) -> bool {
        let Some(kept) = self.kept else {
            return true;
        };
        let hash = hash_of(&self.code);
        if kept.after.is_some_and(|after| hash <= after) {
            return false;
        }
        if self.largest.len() >= kept.count {
            self.has_left_out = true;
            if self.largest.peek().is_none_or(|(largest, _)| *largest < hash) {
                return false;
            }
            if let Some((_, code)) = self.largest.pop()
                && let Some(group) = self.groups.remove(&code)
            {
                self.holding.give_back(group.weight);
            }
        }
        self.largest.push((hash, self.code.clone()));
        true
    }

    /// Merges the groups of another instance of the same query and limits.
    pub fn merge(&mut self, other: Groups) {
        let Groups { holding, groups, has_left_out, .. } = other;
        self.has_left_out |= has_left_out;
        self.holding.absorb(holding);
        for (code, group) in groups {
            self.code = code;
            if let Some(known) = self.groups.get_mut(&self.code[..]) {
                // The origin is empty on both sides for aggregates without keys, and there are no keys to choose.
                if group.origin < known.origin {
                    known.keys = group.keys;
                    known.origin = group.origin;
                }
                let before: usize = known.accumulators.iter().map(Accumulator::weight).sum();
                for (accumulator, more) in known.accumulators.iter_mut().zip(group.accumulators) {
                    accumulator.merge(more);
                }
                let after: usize = known.accumulators.iter().map(Accumulator::weight).sum();
                let growth = after.saturating_sub(before).min(group.weight);
                known.weight += growth;
                self.holding.give_back(group.weight - growth);
            } else if self.makes_room() {
                self.groups.insert(self.code.clone(), group);
            } else {
                self.holding.give_back(group.weight);
            }
        }
    }

    /// Whether groups after the kept ones were dropped.
    pub fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// The results of the groups, in the order of their hashes.
    pub fn finish_by_hash(self) -> Vec<(KeyHash, GroupRow)> {
        let hashed = self.groups.into_iter().map(|(code, group)| (hash_of(&code), group.finish()));
        let mut rows: Vec<_> = hashed.collect();
        rows.sort_by_key(|(hash, _)| *hash);
        rows
    }

    /// The results of the groups, in the order of their first rows.
    pub(super) fn finish_as_seen(self) -> Vec<GroupRow> {
        let mut groups: Vec<Group> = self.groups.into_values().collect();
        groups.sort_by(|left, right| left.origin.cmp(&right.origin));
        groups.into_iter().map(Group::finish).collect()
    }
}

impl Group {
    fn finish(self) -> GroupRow {
        let aggregates = self.accumulators.iter().map(Accumulator::finish).collect();
        GroupRow { keys: self.keys, aggregates }
    }
}

fn fresh(grouping: &Grouping) -> Vec<Accumulator> {
    grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect()
}
