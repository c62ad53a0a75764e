//! Rows folded into groups.

use std::collections::HashMap;

use plan::query::Grouping;
use value::{encode_key, encode_undefined};

use crate::budget::Holding;
use crate::expression::Frame;
use crate::{Accumulator, Computed, Context, EvalFault, GroupRow};

/// Groups by the key code of their keys, in the order of their first rows.
pub(super) struct Groups<'a> {
    grouping: &'a Grouping,
    holding: Holding<'a>,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
}

struct Group {
    keys: Vec<Option<value::Value>>,
    accumulators: Vec<Accumulator>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(grouping: &'a Grouping, context: &'a Context<'_>) -> Groups<'a> {
        let mut groups = Groups {
            grouping,
            holding: context.budget.holding(),
            places: HashMap::new(),
            groups: Vec::new(),
        };
        if grouping.keys.is_empty() {
            // Aggregates over everything have a result also when there is nothing.
            groups.places.insert(Vec::new(), 0);
            groups.groups.push(groups.empty(Vec::new()));
        }
        groups
    }

    fn empty(&self, keys: Vec<Option<value::Value>>) -> Group {
        let accumulators = self.grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind));
        Group { keys, accumulators: accumulators.collect() }
    }

    /// Folds a row into its group.
    pub(super) fn add(&mut self, frame: Frame<'_>) -> Result<(), EvalFault> {
        let place = self.place(frame)?;
        let Some(group) = self.groups.get_mut(place) else {
            return Ok(());
        };
        for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&self.grouping.aggregates) {
            let argument = frame.evaluate(&aggregate.argument)?;
            let before = accumulator.weight();
            accumulator.add(argument.as_ref().map(Computed::as_ref));
            self.holding.add(accumulator.weight().saturating_sub(before))?;
        }
        Ok(())
    }

    /// Where the group of a row stands; it is made if it is new.
    fn place(&mut self, frame: Frame<'_>) -> Result<usize, EvalFault> {
        let mut code = Vec::new();
        let mut keys = Vec::with_capacity(self.grouping.keys.len());
        for key in &self.grouping.keys {
            let key = frame.evaluate(key)?;
            match &key {
                Some(key) => encode_key(key.as_ref(), &mut code),
                None => encode_undefined(&mut code),
            }
            keys.push(key);
        }
        if let Some(place) = self.places.get(&code) {
            return Ok(*place);
        }
        for key in keys.iter().flatten() {
            self.holding.add_value(key.as_ref())?;
        }
        let group = self.empty(keys.into_iter().map(|key| key.map(Computed::into_value)).collect());
        let weight: usize = group.accumulators.iter().map(Accumulator::weight).sum();
        self.holding.add(code.len() + weight)?;
        self.places.insert(code, self.groups.len());
        self.groups.push(group);
        Ok(self.groups.len() - 1)
    }

    /// What the groups came to.
    pub(super) fn finish(self) -> impl Iterator<Item = GroupRow> {
        self.groups.into_iter().map(|group| GroupRow {
            keys: group.keys,
            aggregates: group.accumulators.iter().map(Accumulator::finish).collect(),
        })
    }
}
